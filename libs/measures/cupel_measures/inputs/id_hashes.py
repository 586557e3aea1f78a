"""Hashes of document ids in arrays, to find judged and repeated documents quickly."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Cells = NDArray[Any]
"""Document ids of shape (topics, k)."""
Hashes = NDArray[np.uint64]

BLOCK = 1 << 16
"""Number of ids that are hashed at a time; their bytes fit into the second-level cache."""
_FACTOR, _SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(32)
_TOPIC_FACTOR = np.uint64(0xD1B54A32D192ED03)
FILTER_BITS = 20
"""Size of the filter: 2^20 bytes, which fit into the second-level cache."""
_TO_SLOT = np.uint64(64 - FILTER_BITS)


def hashes_of(ids: Cells) -> Hashes:
    """Return a hash of each id, in the shape of `ids`. Equal ids have equal hashes."""
    if ids.dtype.kind in "iu":
        return ids.astype(np.uint64, copy=False).view(np.uint64)
    if ids.dtype.kind == "O":
        objects = ids.ravel().tolist()
        strings = objects if set(map(type, objects)) <= {str} else map(str, objects)
        flat = np.fromiter(map(hash, strings), np.int64, ids.size)
        return flat.view(np.uint64).reshape(ids.shape)
    return _text_hashes(np.ascontiguousarray(ids))


def _text_hashes(ids: Cells) -> Hashes:
    """Hash fixed-width text, eight bytes per step, in blocks."""
    width = ids.dtype.itemsize
    hashes = np.empty(ids.size, np.uint64)
    flat = ids.ravel()
    for begin in range(0, ids.size, BLOCK):
        block = flat[begin : begin + BLOCK]
        raw = block.view(np.uint8).reshape(len(block), width)
        if width % 8:
            raw = np.pad(raw, ((0, 0), (0, 8 - width % 8)))
        words = raw.view(np.uint64)
        value = np.zeros(len(block), np.uint64)
        for column in range(words.shape[1]):
            value = (value ^ words[:, column]) * _FACTOR
            value ^= value >> _SHIFT
        hashes[begin : begin + BLOCK] = value
    return hashes.reshape(ids.shape)


def code_points(ids: Cells) -> NDArray[Any]:
    """Return the character codes of fixed-width text, along an additional last axis."""
    kind: Any = np.uint8 if ids.dtype.kind == "S" else np.uint32
    return np.ascontiguousarray(ids)[..., None].view(kind)


def has_white_space(ids: Cells) -> bool:
    """Return whether any id contains ASCII white space."""
    if ids.dtype.kind in "iu":
        return False
    if ids.dtype.kind == "O":
        joined = "".join(map(str, ids.ravel().tolist())).encode(errors="replace")
        return joined.split(maxsplit=1) != [joined]
    points = code_points(ids).reshape(len(ids), -1)
    return any(bool(((row - row.dtype.type(9) < 5) | (row == 32)).any()) for row in points)


def repeated_cells(ids: Cells, present: NDArray[np.bool_], hashes: Hashes) -> list[tuple[int, int]]:
    """Return the cells whose id is already in an earlier column of the same row."""
    ordered = np.sort(hashes.astype(np.uint32) if hashes.max(initial=0) < 1 << 32 else hashes, axis=1)
    suspects = np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1)).tolist()
    repeated = []
    for row in suspects:
        seen = set[str]()
        for column in np.flatnonzero(present[row]).tolist():
            id_ = str(ids[row, column])
            if id_ in seen:
                repeated.append((row, column))
            seen.add(id_)
    return repeated


def judged_cells(ids: Cells, hashes: Hashes, pools: Sequence[Mapping[str, int]]) -> list[tuple[int, int]]:
    """Return the cells that can be judged, by row; the caller looks up their ids.

    A filter, indexed by the hash of topic and document, excludes nearly all other cells, and the hash itself
    the rest, except if hashes are equal by chance. pools: the judged documents of each row.
    """
    names = [document for pool in pools for document in pool]
    topics = np.repeat(np.arange(len(pools), dtype=np.uint64), [len(pool) for pool in pools])
    keys, valid = _hashes_of_names(names, ids.dtype)
    judged = np.unique(_mixed(keys, topics[valid]))
    marks = np.zeros(1 << FILTER_BITS, bool)
    marks[judged >> _TO_SLOT] = True
    found: list[tuple[int, int]] = []
    size = max(1, BLOCK // max(1, ids.shape[1]))
    for begin in range(0, len(ids) if len(judged) else 0, size):
        block = hashes[begin : begin + size]
        mixed = _mixed(block, np.arange(begin, begin + len(block), dtype=np.uint64)[:, None]).ravel()
        cells = np.flatnonzero(marks[mixed >> _TO_SLOT])
        place = np.minimum(np.searchsorted(judged, mixed[cells]), len(judged) - 1)
        cells = cells[judged[place] == mixed[cells]]
        rows, columns = np.divmod(cells, ids.shape[1])
        found += zip((rows + begin).tolist(), columns.tolist(), strict=True)
    return found


def _hashes_of_names(names: list[str], dtype: np.dtype[Any]) -> tuple[Hashes, NDArray[np.bool_]]:
    """Return the hashes of the ids that fit into an array of `dtype`, and which fit."""
    valid = np.ones(len(names), bool)
    if dtype.kind in "iu":
        largest = int(np.iinfo(dtype).max)
        valid = np.array([n.isdecimal() and n.isascii() and int(n) <= largest for n in names], bool)
        numbers = [int(name) for name, fits in zip(names, valid, strict=True) if fits]
        return np.array(numbers, np.uint64), valid
    if dtype.kind == "O":
        return hashes_of(np.array([*names, None], dtype=object)[:-1]), valid
    if dtype.kind == "S":
        encoded = [name.encode() for name in names]
        valid = np.array([len(data) <= dtype.itemsize for data in encoded], bool)
        return hashes_of(np.array([d for d in encoded if len(d) <= dtype.itemsize], dtype)), valid
    longest = dtype.itemsize // 4
    valid = np.array([len(name) <= longest for name in names], bool)
    return hashes_of(np.array([name for name in names if len(name) <= longest], dtype)), valid


def _mixed(hashes: Hashes, topics: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return a hash of each pair of a document and a topic."""
    mixed: NDArray[np.uint64] = (hashes + topics * _TOPIC_FACTOR) * _FACTOR
    return mixed
