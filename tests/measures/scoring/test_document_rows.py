"""Tests that rows of documents are bit-identical in the C extension and in numpy.

The C extension also rejects invalid arrays.
"""

from collections.abc import Callable
from functools import partial
from typing import Any
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

requires_extension = pytest.mark.skipif(rows.extension is None, reason="the extension was not compiled")

POOL = 40
masks = st.lists(st.booleans(), min_size=POOL, max_size=POOL).map(np.array)
ranks = st.lists(st.integers(1, 1 << 30), unique=True, max_size=12).map(sorted)


@st.composite
def hits(draw: st.DrawFn) -> Hits:
    by_row = draw(st.lists(ranks, max_size=6))
    row = np.repeat(np.arange(len(by_row)), [len(row_ranks) for row_ranks in by_row])
    rank = np.array([rank for row_ranks in by_row for rank in row_ranks], dtype=np.int64)
    document = draw(st.lists(st.integers(0, POOL - 1), min_size=len(rank), max_size=len(rank)))
    return Hits.by_row(row, rank, np.array(document, dtype=np.int64), len(by_row))


def without_extension(call: Callable[[], Any]) -> Any:
    """Return the result of `call`, computed by numpy."""
    with mock.patch.object(rows, "extension", None):
        return call()


@requires_extension
@given(hits(), masks)
def test_filtering_documents_equals_numpy(rows_drawn: Hits, mask: Mask) -> None:
    def columns() -> list[list[int]]:
        kept = rows_drawn.of_documents(mask)
        assert (kept.rank.dtype, kept.document.dtype, kept.starts.dtype) == (np.int32, np.int32, np.int64)
        return [kept.rank.tolist(), kept.document.tolist(), kept.starts.tolist(), kept.row.tolist()]

    assert columns() == without_extension(columns)
    assert columns()[1] == [document for document in rows_drawn.document.tolist() if mask[document]]


@requires_extension
@given(hits(), masks, masks)
def test_counting_documents_above_equals_numpy(rows_drawn: Hits, those: Mask, others: Mask) -> None:
    def counted() -> list[int]:
        return rows_drawn.above(those, others).tolist()

    assert counted() == without_extension(counted)
    documents = [list(rows_drawn.document[rows_drawn.row == row]) for row in range(rows_drawn.rows)]
    above = [
        sum(others[d] for d in row[:i])
        for row in documents
        for i, document in enumerate(row)
        if those[document]
    ]
    assert counted() == above


@requires_extension
@given(hits(), st.data())
def test_sums_and_precisions_are_bit_identical_to_numpy(rows_drawn: Hits, data: st.DataObject) -> None:
    number = st.floats(allow_nan=False, allow_infinity=False, width=32)
    drawn = np.array(
        data.draw(st.lists(number, min_size=len(rows_drawn.rank), max_size=len(rows_drawn.rank)))
    )
    for values_ in (drawn, np.arange(len(drawn)), np.repeat(drawn, 2)[::2]):
        summed = partial(rows_drawn.sum, values_)
        assert summed().tobytes() == without_extension(summed).tobytes()
    fresh = Hits(rows_drawn.rank, rows_drawn.document, rows_drawn.starts)
    assert rows_drawn.precision.tobytes() == without_extension(lambda: fresh.precision.tobytes())


@requires_extension
@given(collections(), runs())
@settings(max_examples=20, deadline=None)
def test_every_measure_is_bit_identical_without_the_extension(qrels: Qrels, run: Scored) -> None:
    assert values(qrels, run) == without_extension(lambda: values(qrels, run))


TWO_RANKS = np.array([1, 2], dtype=np.int32)
STARTS = np.array([0, 2])


@requires_extension
@pytest.mark.parametrize("starts", [[], [0], [0, 1], [0, 3, 2], [1, 2], [0, -1, 2]])
def test_invalid_row_boundaries_are_rejected(starts: list[int]) -> None:
    wrong = np.array(starts, dtype=np.int64)
    for call in (
        lambda: rows.extension.only(np.ones(3, dtype=bool), TWO_RANKS, TWO_RANKS, wrong),
        lambda: rows.extension.above(np.ones(3, dtype=bool), np.ones(3, dtype=bool), TWO_RANKS, wrong),
        lambda: rows.extension.sums(np.ones(2), wrong),
        lambda: rows.extension.precisions(TWO_RANKS, wrong),
    ):
        with pytest.raises(ValueError, match="expected columns"):
            call()


@requires_extension
@pytest.mark.parametrize("document", [[0, 3], [-1, 0], [0], [0, 1, 2]])
def test_documents_outside_the_pool_are_rejected(document: list[int]) -> None:
    mask, wrong = np.ones(3, dtype=bool), np.array(document, dtype=np.int32)
    with pytest.raises(ValueError, match="expected columns"):
        rows.extension.only(mask, TWO_RANKS, wrong, STARTS)
    with pytest.raises(ValueError, match="expected columns"):
        rows.extension.above(mask, mask, wrong, STARTS)
    with pytest.raises(ValueError, match="expected columns"):
        rows.extension.above(mask, mask[:2], TWO_RANKS, STARTS)


@requires_extension
def test_unaligned_columns_are_rejected() -> None:
    skewed = np.zeros(17, dtype=np.uint8)[1:]
    with pytest.raises(ValueError, match="expected columns"):
        rows.extension.sums(np.ones(1), skewed)
    with pytest.raises(ValueError, match="expected columns"):
        rows.extension.sums(skewed, STARTS)
    with pytest.raises(ValueError, match="expected columns"):
        rows.extension.precisions(skewed[:8], STARTS)
