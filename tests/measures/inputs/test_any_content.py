"""Tests that files with any content are read or refused, and never fail in another way."""

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import cupel_measures as cupel

PLAIN = ["1", "2", "a", "b", "Q0", "0", "9.5", "nan", "1_0", "1e999", "#", "{", "[1]", "<top>", "NaN"]
NAMES = ["query_id", "doc_id", "score", "relevance", "rank"]
WORDS = st.sampled_from([*PLAIN, *NAMES, '"', "", "é", "\u00a0", "\x00", "9" * 400])
LINES = st.lists(st.lists(WORDS, max_size=7), max_size=6)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers(-5, 10**400) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=12,
)
HEADERS = st.sampled_from(["", "query_id,doc_id,score\n", "qid\tdocno\tlabel\n", "topic doc rank\n"])


def text_of(rows: list[list[str]], separator: str, header: str) -> bytes:
    return (header + "".join(separator.join(row) + "\n" for row in rows)).encode()


CONTENTS = (
    st.binary(max_size=80)
    | st.builds(text_of, LINES, st.sampled_from([" ", "\t", ",", ";"]), HEADERS)
    | VALUES.map(lambda value: json.dumps(value).encode())
    | st.lists(VALUES, max_size=3).map(lambda values: b"\n".join(json.dumps(v).encode() for v in values))
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=CONTENTS)
def test_any_file_is_read_or_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(content)
    with contextlib.suppress(cupel.Refused):
        cupel.qrels(tmp_path / "file")
    with contextlib.suppress(cupel.Refused):
        cupel.evaluate({"1": {"a": 1, "b": 0}, "2": {"a": 2}}, tmp_path / "file", "AP nDCG@10")
    (run,) = cupel.runs(tmp_path / "file").values()
    with contextlib.suppress(cupel.Refused):
        run.read()


@given(value=VALUES)
def test_any_value_is_read_or_refused(value: Any) -> None:
    for read in (cupel.qrels, lambda given: cupel.evaluate({"1": {"a": 1}}, given, "AP")):
        with contextlib.suppress(cupel.Refused, TypeError, FileNotFoundError, ValueError):
            read(value)


def test_open_files_and_lists_of_frames_are_named(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("1 Q0 a 1 2.5 tag\n")
    with (tmp_path / "run").open() as file, pytest.raises(TypeError, match="open file; give its path"):
        cupel.runs(file)
    frames = [pytest.importorskip("pandas").DataFrame({"qid": ["1"], "docno": ["a"], "score": [1.0]})]
    with pytest.raises(TypeError, match="give a dictionary from name to data frame"):
        cupel.runs(frames)


@pytest.mark.parametrize("value", [None, 3, 2.5, {"1": ["a", "b"]}, [["a"]], [3]])
def test_values_of_another_kind_are_named(value: Any) -> None:
    for read in (cupel.qrels, cupel.runs):
        with pytest.raises((TypeError, cupel.Refused), match=r"expected|columns-missing"):
            read(value)
