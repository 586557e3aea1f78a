"""Rows of documents: the compiled part and numpy do the same, to the last bit, and nonsense is refused."""

from collections.abc import Callable
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cupel_measures.model import Qrels
from cupel_measures.scoring import rows
from cupel_measures.scoring.pool import Mask
from cupel_measures.scoring.rows import Hits
from support.data.random_collections import collections, runs, values
from support.data.small_collections import Scored

compiled_only = pytest.mark.skipif(rows.extension is None, reason="the extension was not compiled")

POOL = 40
masks = st.lists(st.booleans(), min_size=POOL, max_size=POOL).map(np.array)
ranks = st.lists(st.integers(1, 1 << 30), unique=True, max_size=12).map(sorted)


@st.composite
def hits(draw: st.DrawFn) -> Hits:
    by_row = draw(st.lists(ranks, max_size=6))
    row = np.repeat(np.arange(len(by_row)), [len(one) for one in by_row])
    rank = np.array([rank for one in by_row for rank in one], dtype=np.int64)
    document = draw(st.lists(st.integers(0, POOL - 1), min_size=len(rank), max_size=len(rank)))
    return Hits.by_row(row, rank, np.array(document, dtype=np.int64), len(by_row))


def numpy_alone(make: Callable[[], object]) -> object:
    with mock.patch.object(rows, "extension", None):
        return make()


@compiled_only
@given(hits(), masks)
def test_documents_are_kept_as_numpy_keeps_them(some: Hits, mask: Mask) -> None:
    def columns() -> list[list[int]]:
        found = some.of_documents(mask)
        assert (found.rank.dtype, found.document.dtype, found.starts.dtype) == (np.int32, np.int32, np.int64)
        return [found.rank.tolist(), found.document.tolist(), found.starts.tolist(), found.row.tolist()]

    assert columns() == numpy_alone(columns)
    assert columns()[1] == [one for one in some.document.tolist() if mask[one]]


@compiled_only
@given(hits(), masks, masks)
def test_what_stands_above_is_counted_as_numpy_counts_it(some: Hits, those: Mask, others: Mask) -> None:
    def counted() -> list[int]:
        return some.above(those, others).tolist()

    assert counted() == numpy_alone(counted)
    seen = [list(some.document[some.row == row]) for row in range(some.rows)]
    above = [sum(others[d] for d in of[:i]) for of in seen for i, one in enumerate(of) if those[one]]
    assert counted() == above


@compiled_only
@given(hits(), st.data())
def test_sums_and_precisions_have_the_bits_of_numpy(some: Hits, data: st.DataObject) -> None:
    number = st.floats(allow_nan=False, allow_infinity=False, width=32)
    drawn = np.array(data.draw(st.lists(number, min_size=len(some.rank), max_size=len(some.rank))))
    for values_ in (drawn, np.arange(len(drawn)), np.repeat(drawn, 2)[::2]):
        assert some.sum(values_).tobytes() == numpy_alone(lambda: some.sum(values_).tobytes())  # noqa: B023
    anew = Hits(some.rank, some.document, some.starts)
    assert some.precision.tobytes() == numpy_alone(lambda: anew.precision.tobytes())


@compiled_only
@given(collections(), runs())
@settings(max_examples=20, deadline=None)
def test_every_measure_has_the_same_bits_without_the_extension(qrels: Qrels, run: Scored) -> None:
    assert values(qrels, run) == numpy_alone(lambda: values(qrels, run))


ONE = np.array([1, 2], dtype=np.int32)
STARTS = np.array([0, 2])


@compiled_only
@pytest.mark.parametrize("starts", [[], [0], [0, 1], [0, 3, 2], [1, 2], [0, -1, 2]])
def test_rows_that_do_not_cut_the_columns_are_refused(starts: list[int]) -> None:
    wrong = np.array(starts, dtype=np.int64)
    for call in (
        lambda: rows.extension.only(np.ones(3, dtype=bool), ONE, ONE, wrong),
        lambda: rows.extension.above(np.ones(3, dtype=bool), np.ones(3, dtype=bool), ONE, wrong),
        lambda: rows.extension.sums(np.ones(2), wrong),
        lambda: rows.extension.precisions(ONE, wrong),
    ):
        with pytest.raises(ValueError, match="wanted"):
            call()


@compiled_only
@pytest.mark.parametrize("document", [[0, 3], [-1, 0], [0], [0, 1, 2]])
def test_documents_that_the_pool_does_not_have_are_refused(document: list[int]) -> None:
    mask, wrong = np.ones(3, dtype=bool), np.array(document, dtype=np.int32)
    with pytest.raises(ValueError, match="wanted"):
        rows.extension.only(mask, ONE, wrong, STARTS)
    with pytest.raises(ValueError, match="wanted"):
        rows.extension.above(mask, mask, wrong, STARTS)
    with pytest.raises(ValueError, match="wanted"):
        rows.extension.above(mask, mask[:2], ONE, STARTS)


@compiled_only
def test_columns_that_are_not_aligned_are_refused() -> None:
    skewed = np.zeros(17, dtype=np.uint8)[1:]
    with pytest.raises(ValueError, match="wanted"):
        rows.extension.sums(np.ones(1), skewed)
    with pytest.raises(ValueError, match="wanted"):
        rows.extension.sums(skewed, STARTS)
    with pytest.raises(ValueError, match="wanted"):
        rows.extension.precisions(skewed[:8], STARTS)
