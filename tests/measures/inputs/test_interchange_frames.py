"""Tests of frames that have only the data-frame interchange protocol."""

from typing import Any

import numpy as np
import pytest

import cupel_measures as cupel

QRELS = {"1": {"a": 2, "b": 0}, "2": {"é": 1}}


class Buffer:
    """Buffer of the protocol over an array."""

    def __init__(self, array: Any) -> None:
        self.array = np.ascontiguousarray(array)
        self.ptr, self.bufsize = self.array.ctypes.data, self.array.nbytes


class Column:
    """Column of the protocol. validity: None, or a bit mask with 1 for values that are there."""

    def __init__(
        self, kind: int, bits: int, buffers: dict[str, Any], *, size: int, offset: int = 0, labels: Any = None
    ) -> None:
        self.dtype, self.offset, self._size = (kind, bits, "", "="), offset, size
        self._buffers = {"validity": None, "offsets": None, **buffers}
        self.describe_categorical = {"is_dictionary": True, "categories": labels}
        self.describe_null = (3, 0) if self._buffers["validity"] else (0, None)

    def size(self) -> int:
        return self._size

    def get_buffers(self) -> dict[str, Any]:
        return self._buffers

    def get_chunks(self) -> list["Column"]:
        """Return two chunks: the first value, and the others."""
        if self._size < 2:
            return [self]
        labels = self.describe_categorical["categories"]
        sizes = ((0, 1), (1, self._size - 1))
        return [Column(*self.dtype[:2], self._buffers, size=n, offset=a, labels=labels) for a, n in sizes]


class Frame:
    """Frame with nothing but the protocol."""

    def __init__(self, columns: dict[str, Column]) -> None:
        self._columns = columns

    def __dataframe__(self, nan_as_null: bool = False, allow_copy: bool = True) -> "Frame":
        return self

    def column_names(self) -> list[str]:
        return [*self._columns]

    def get_column_by_name(self, name: str) -> Column:
        return self._columns[name]


def strings(values: list[str]) -> Column:
    data = [value.encode() for value in values]
    offsets = np.cumsum([0, *map(len, data)]).astype(np.int32)
    memory = np.frombuffer(b"".join(data), np.uint8)
    buffers = {"data": (Buffer(memory), (1, 8, "C", "=")), "offsets": (Buffer(offsets), (0, 32, "i", "="))}
    return Column(21, 8, buffers, size=len(values))


def numbers(values: list[float], missing: int | None = None) -> Column:
    buffers: dict[str, Any] = {"data": (Buffer(np.array(values)), (2, 64, "g", "="))}
    if missing is not None:
        bits = np.packbits([place != missing for place in range(len(values))], bitorder="little")
        buffers["validity"] = (Buffer(bits), (20, 1, "b", "="))
    return Column(2, 64, buffers, size=len(values))


def categories(codes: list[int], labels: list[str]) -> Column:
    buffers = {"data": (Buffer(np.array(codes, np.int8)), (0, 8, "c", "="))}
    return Column(23, 8, buffers, size=len(codes), labels=strings(labels))


def test_frame_of_the_protocol_is_read() -> None:
    columns = {"score": numbers([9.5, 8.5, 1.0]), "doc_id": strings(["b", "a", "é"])}
    for topics in (strings(["1", "1", "2"]), categories([0, 0, 1], ["1", "2"])):
        scores = cupel.evaluate(QRELS, Frame({"query_id": topics, **columns}), "AP")
        assert scores["run"]["AP"] == 0.75


def test_missing_value_is_refused() -> None:
    frame = Frame(
        {
            "query_id": strings(["1", "1"]),
            "doc_id": strings(["a", "b"]),
            "score": numbers([9.5, 8.5], missing=1),
        }
    )
    with pytest.raises(cupel.Refused, match="score of document 'b' of topic '1' is None"):
        cupel.evaluate(QRELS, frame, "AP")


@pytest.mark.filterwarnings("ignore")
def test_protocol_of_pandas_is_read() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"query_id": ["1", "1", "2"], "doc_id": ["b", "a", "é"], "score": [9.5, 8.5, 1.0]})

    class Hidden:
        def __dataframe__(self) -> Any:
            return frame.__dataframe__()

    assert cupel.evaluate(QRELS, Hidden(), "AP")["run"]["AP"] == 0.75
