"""Tests that tables of scores are joined as files are: ranks, tie groups, depth, in both implementations."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cupel_measures.inputs import table_runs
from cupel_measures.inputs.table_runs import has_scores, join_table
from cupel_measures.model.profiles import PROFILES
from support.data.small_collections import joined_of, qrels_of

ids = st.sampled_from(["a", "b", "c", "z", "é", "\ud7ff", "\ue000", "\U0001f600", "aa", "d10", "d9"])
numbers = st.sampled_from([0.0, -0.0, 1, 2.5, -2.5, 0.1, 0.100000001, 1e-320, 1e39, -1e39, 1e308, -7, 2**62])
scored = st.dictionaries(ids, numbers, max_size=11)


@pytest.fixture(params=["compiled", "numpy"])
def reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "numpy":
        monkeypatch.setattr(table_runs, "extension", None)
    elif table_runs.extension is None:
        pytest.skip("the extension was not built")


COLUMNS = ("retrieved", "offsets", "document", "rank", "first", "last")


@pytest.mark.usefixtures("reader")
@pytest.mark.filterwarnings("ignore:overflow")
def test_rows_are_those_of_the_simplest_implementation() -> None:
    @settings(max_examples=120, deadline=None)
    @given(
        st.dictionaries(
            st.sampled_from("123"), st.dictionaries(ids, st.integers(0, 2), min_size=1), min_size=1
        ),
        st.dictionaries(st.sampled_from("1234"), scored),
        st.sampled_from([*PROFILES.values()]),
        st.sampled_from([None, 1, 3]),
    )
    def check(judged: Any, run: Any, profile: Any, depth: int | None) -> None:
        qrels = qrels_of(judged)
        ours = join_table(run, qrels, profile=profile, depth=depth)
        simple = joined_of(run, qrels, profile=profile, depth=depth)
        for column in COLUMNS:
            assert getattr(ours, column).tolist() == getattr(simple, column).tolist(), column
            assert getattr(ours, column).dtype == getattr(simple, column).dtype

    check()


@pytest.mark.parametrize("order", [1, -1, 613])
@pytest.mark.parametrize("profile", PROFILES.values(), ids=str)
def test_implementations_agree_on_deep_tables(
    order: int, profile: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    qrels = qrels_of({"1": {f"d{i}": i % 3 for i in range(0, 3000, 7)}})
    table = {"1": {f"d{i * order % 2003}": (i * 7919 % 1009) / 7 - 60 for i in range(2003)}}
    compiled = join_table(table, qrels, profile=profile)
    monkeypatch.setattr(table_runs, "extension", None)
    assert [getattr(compiled, column).tolist() for column in COLUMNS] == [
        getattr(join_table(table, qrels, profile=profile), column).tolist() for column in COLUMNS
    ]
    assert (compiled.first < compiled.last).any()


class Word(str):
    __slots__ = ()


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize(
    ("table", "right"),
    [
        ({}, True),
        ({"a": 1, "b": 2.5, "c": float("inf"), "d": float("-inf")}, True),
        ({"a": float("nan")}, False),
        ({"a": "1"}, False),
        ({"a": None}, False),
        ({1: 1.0}, False),
        ({"a": np.float32(1)}, False),
        ({Word("a"): 1.0}, False),
    ],
)
def test_dictionaries_without_plain_scores_are_recognised(table: Any, right: bool) -> None:
    assert has_scores(table) is right


@pytest.mark.usefixtures("reader")
def test_scores_and_ids_of_other_types_are_joined_too() -> None:
    qrels = qrels_of({"1": {"a": 1, "b": 0}})
    tables: list[Any] = [{"a": np.float32(1), "b": np.int64(2)}, {Word("a"): 1.0, Word("b"): 2.0}]
    for table in tables:
        joined = join_table({"1": table}, qrels, profile=PROFILES["cupel"])
        assert joined.rank.tolist() == [1, 2]
        assert joined.document.tolist() == [1, 0]
