"""Compact blobs of rankings, and their digests.

A blob is stored once per run instead of its text.
"""

import hashlib
import struct
from itertools import pairwise, repeat

import numpy as np

from cupel_measures.model import Ids, Ranking, Run

MAGIC = b"CUPELR1\n"
_HEAD = struct.Struct("<8sQQQQ")  # magic, topics, documents, bytes of topics, bytes of documents
LONGEST = 8 << 30


def pack(run: Run) -> bytes:
    """Return the ranking of `run` as bytes.

    They are a header and one zstd frame of its columns, little-endian.
    """
    import zstandard  # imported late, because readers do not need it

    ranking, ids = run.ranking, run.ranking.documents
    topics = "\n".join(ranking.topics).encode()
    head = _HEAD.pack(MAGIC, len(ranking.topics), len(ids), len(topics), len(ids.blob))
    columns = (
        ranking.offsets.astype("<i8").tobytes(),
        np.diff(ids.starts).astype("<u4").tobytes(),
        ranking.scores.astype("<f8").tobytes(),
        topics,
        ids.blob,
    )
    return head + zstandard.ZstdCompressor(level=3, write_checksum=True).compress(b"".join(columns))


def unpack(blob: bytes) -> Ranking:
    """Return the ranking of a blob from `pack`.

    Raise ValueError if the blob is invalid or damaged.
    """
    import zstandard

    if blob[:8] != MAGIC or len(blob) < _HEAD.size:
        raise ValueError("not a packed ranking")
    _, topics, documents, topic_bytes, id_bytes = _HEAD.unpack_from(blob)
    sizes = (8 * (topics + 1), 4 * documents, 8 * documents, topic_bytes, id_bytes)
    if sum(sizes) > LONGEST:
        raise ValueError("the packed ranking claims an impossible size")
    try:
        data = zstandard.ZstdDecompressor().decompress(blob[_HEAD.size :], max_output_size=sum(sizes))
    except zstandard.ZstdError as error:
        raise ValueError(f"the packed ranking is damaged: {error}") from error
    if len(data) != sum(sizes):
        raise ValueError("the packed ranking is damaged: its size does not match its header")
    cuts = np.cumsum((0, *sizes)).tolist()
    offsets = np.frombuffer(data, "<i8", topics + 1, cuts[0])
    starts = np.zeros(documents + 1, np.int64)
    np.cumsum(np.frombuffer(data, "<u4", documents, cuts[1]), out=starts[1:])
    scores = np.frombuffer(data, "<f8", documents, cuts[2])
    scores = np.require(
        scores, requirements="A"
    )  # they may be unaligned, because the lengths before them have four bytes
    names = tuple(data[cuts[3] : cuts[4]].decode().split("\n")) if topics else ()
    if starts[-1] != id_bytes or offsets[-1] != documents or len(names) != topics:
        raise ValueError("the packed ranking is damaged: its columns do not match")
    return Ranking(names, offsets, Ids(data[cuts[4] : cuts[5]], starts), scores)


def digest(ranking: Ranking) -> str:
    """Return the SHA-256 (hex) of the uncut ranking.

    It is computed from the lines `topic TAB document TAB repr(score)`.
    """
    content = hashlib.sha256()
    blob, offsets = ranking.documents.blob.decode(), ranking.offsets.tolist()
    starts = ranking.documents.starts
    if len(blob) != len(ranking.documents.blob):  # convert offsets in bytes to offsets in characters
        lead = (np.frombuffer(ranking.documents.blob, np.uint8) & 0xC0) != 0x80
        starts = np.concatenate([[0], np.cumsum(lead)])[starts]
    for topic, low, high in zip(ranking.topics, offsets, offsets[1:], strict=False):
        cuts = starts[low : high + 1].tolist()
        documents = [blob[a:b] for a, b in pairwise(cuts)]
        scores = map(repr, ranking.scores[low:high].tolist())
        lines = map("\t".join, zip(repeat(topic), documents, scores))
        content.update(("\n".join(lines) + "\n").encode() if high > low else b"")
    return content.hexdigest()
