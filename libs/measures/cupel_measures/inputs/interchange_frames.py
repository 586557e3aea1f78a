"""Columns of frames that have only the data-frame interchange protocol.

The protocol is described at https://data-apis.org/dataframe-protocol/latest/.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

KINDS = {0: "i", 1: "u", 2: "f", 20: "?"}
"""Kind of the protocol -> numpy kind, for numbers and truth values."""
STRING, CATEGORICAL = 21, 23
NEVER_MISSING, NAN, SENTINEL, BITS, BYTES = range(5)


def interchange_columns(frame: Any, names: Sequence[str]) -> list[list[Any]]:
    """Return columns of a frame of the interchange protocol. Missing values are None."""
    columns = [frame.get_column_by_name(name) for name in names]
    return [[value for chunk in column.get_chunks() for value in _values(chunk)] for column in columns]


def _values(column: Any) -> list[Any]:
    kind, bits = int(column.dtype[0]), int(column.dtype[1])
    buffers = column.get_buffers()
    if kind == CATEGORICAL:
        described = column.describe_categorical
        labels = _values(described["categories"])
        codes = _numbers(buffers["data"], column).tolist()
        values = [labels[code] if 0 <= code < len(labels) else None for code in codes]
    elif kind == STRING:
        values = _strings(buffers, column)
    elif kind in KINDS:
        values = _numbers(buffers["data"], column).tolist()
    else:
        raise TypeError(f"columns of kind {kind} with {bits} bits are not supported; convert them to strings")
    return _with_missing(values, buffers["validity"], column)


def _memory(buffer: Any) -> bytes:
    import ctypes  # imported late, because few frames have only the protocol

    return ctypes.string_at(buffer.ptr, buffer.bufsize)


def _numbers(data: tuple[Any, Any], column: Any) -> Any:
    buffer, dtype = data
    kind, bits = int(dtype[0]), int(dtype[1])
    if kind == 20 and bits == 1:
        packed = np.frombuffer(_memory(buffer), np.uint8)
        flags = np.unpackbits(packed, bitorder="little").astype(bool)
    else:
        flags = np.frombuffer(_memory(buffer), np.dtype(f"{KINDS[kind]}{bits // 8}" if kind != 20 else "?"))
    return flags[column.offset : column.offset + column.size()]


def _strings(buffers: Any, column: Any) -> list[Any]:
    data = _memory(buffers["data"][0])
    offset_buffer, offset_type = buffers["offsets"]
    bounds = np.frombuffer(_memory(offset_buffer), np.dtype(f"i{int(offset_type[1]) // 8}"))
    cuts = bounds[column.offset : column.offset + column.size() + 1].tolist()
    return [data[begin:end].decode() for begin, end in pairwise(cuts)]


def _with_missing(values: list[Any], validity: Any, column: Any) -> list[Any]:
    how, missing = column.describe_null
    if int(how) == SENTINEL:
        return [None if value == missing else value for value in values]
    if int(how) not in (BITS, BYTES) or validity is None:
        return values
    memory = np.frombuffer(_memory(validity[0]), np.uint8)
    flags = np.unpackbits(memory, bitorder="little") if int(how) == BITS or validity[1][1] == 1 else memory
    marks = flags[column.offset : column.offset + len(values)].tolist()
    return [None if mark == missing else value for mark, value in zip(marks, values, strict=True)]
