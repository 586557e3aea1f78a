"""Stored qrels: their digest and their compact blob."""

import hashlib
import itertools
import json
import zlib
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cupel_measures.model import Aspect, Ids, Ints, LabelSet, Qrels, Subtopics


def qrels_digest(qrels: Qrels) -> str:
    """Return the SHA-256, in hex, of the data in `qrels`.

    It is computed from a canonical text of all data that a score can depend on.

    The text consists of UTF-8 lines, whose words are separated by tabs, in this order:

    - `cupel-qrels 1`;
    - per aspect, in the order of the aspects: `aspect` and a JSON object with sorted keys and without spaces.
      Its keys are name, labels, lowest, unjudged, threshold (a label index), gains and embedding (null if not
      declared), and inferred. Labels that are consecutive integers are written as {"range":[first,last]};
    - per declared set of label tuples, by name: `label_set`, name, JSON list of aspects, JSON list of sorted
      tuples;
    - per topic of the collection, in byte order of the ids: `topic` and the id. The documents of its pool
      follow, in byte order: `document`, id, and per aspect a label index (-1 negative, -2 unjudged, -3
      absent). The judgments by subtopic follow each document, in byte order: `subtopic`, id, judgment.
    """
    digest = hashlib.sha256()
    for line in _canonical(qrels):
        digest.update(line.encode() + b"\n")
    return digest.hexdigest()


def _canonical(qrels: Qrels) -> Iterator[str]:
    yield "cupel-qrels 1"
    for aspect in qrels.aspects:
        yield f"aspect\t{_json(_declared(aspect))}"
    for name, label_set in sorted(qrels.label_sets.items()):
        yield f"label_set\t{name}\t{_json(label_set.aspects)}\t{_json(sorted(label_set.tuples))}"
    documents, labels = qrels.documents.to_list(), qrels.labels.T.tolist()
    subtopics = _subtopic_lines(qrels.subtopics)
    for topic, begin, end in _pools(qrels):
        yield f"topic\t{topic}"
        for d in range(begin, end):
            yield "\t".join(["document", documents[d].decode(), *map(str, labels[d])])
            yield from subtopics.get(d, ())


def _pools(qrels: Qrels) -> list[tuple[str, int, int]]:
    """Return the pools of all topics of the collection, sorted by topic.

    A pool is (topic, first document, end of its documents).
    """
    begins, ends = qrels.offsets[:-1].tolist(), qrels.offsets[1:].tolist()
    pools = [*zip(qrels.topics, begins, ends, strict=True), *((name, 0, 0) for name in qrels.unjudged_topics)]
    return sorted(pools)


def _subtopic_lines(subtopics: Subtopics | None) -> dict[int, list[str]]:
    lines: dict[int, list[str]] = {}
    if subtopics is not None:
        columns = (subtopics.document, subtopics.subtopic, subtopics.judgment)
        for document, subtopic, judgment in zip(*(column.tolist() for column in columns), strict=True):
            lines.setdefault(document, []).append(f"subtopic\t{subtopics.names[subtopic]}\t{judgment}")
    return lines


def _declared(aspect: Aspect) -> dict[str, Any]:
    """Return an aspect as JSON data; equivalent declarations have the same data."""
    labels, step = list(aspect.labels), 1 if aspect.ascending else -1
    is_range = aspect.integer and labels == list(range(int(labels[0]), int(labels[-1]) + step, step))
    return {
        "name": aspect.name,
        "labels": {"range": [labels[0], labels[-1]]} if is_range else labels,
        "lowest": aspect.lowest,
        "unjudged": aspect.unjudged,
        "threshold": aspect.threshold,
        "gains": aspect.declared_gains,
        "embedding": aspect.declared_embedding,
        "inferred": aspect.inferred,
    }


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=_rational)


def _rational(value: Fraction) -> str:
    """Return a rational, such as `1/3` in an embedding, as text.

    JSON has no such numbers.
    """
    return str(value)


def _aspect(declared: Mapping[str, Any]) -> Aspect:
    """Return the aspect with the data that `_declared` returned."""
    data: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in declared.items()
    }
    if isinstance(data["labels"], dict):
        first, last = data["labels"]["range"]
        data["labels"] = range(first, last + (1 if first <= last else -1), 1 if first <= last else -1)
    gains, embedding = data.pop("gains"), data.pop("embedding")
    if embedding is not None:
        embedding = tuple(Fraction(g) if isinstance(g, str) else g for g in embedding)
    return Aspect(declared_gains=gains, declared_embedding=embedding, **data)


_MAGIC = b"cupel-qrels 1\n"


def pack_qrels(qrels: Qrels) -> bytes:
    """Return `qrels` as one compact blob for `unpack_qrels`.

    Equal qrels give equal blobs.

    The blob is a magic line and zlib data: a JSON header line and the arrays that it lists, little-endian
    int32.
    """
    pools = _pools(qrels)
    sizes = np.array([end - begin for _, begin, end in pools], dtype=np.int64)
    arrays = [sizes, np.diff(qrels.documents.starts), qrels.labels.ravel()]
    header: dict[str, Any] = {
        "aspects": [_declared(aspect) for aspect in qrels.aspects],
        "topics": [topic for topic, _, _ in pools],
        "label_sets": {n: [s.aspects, sorted(s.tuples)] for n, s in qrels.label_sets.items()},
        "subtopics": None,
    }
    if qrels.subtopics is not None:
        header["subtopics"] = qrels.subtopics.names
        arrays += [qrels.subtopics.document, qrels.subtopics.subtopic, qrels.subtopics.judgment]
    header["lengths"] = [len(array) for array in arrays]
    body = [_json(header).encode() + b"\n", *(array.astype("<i4").tobytes() for array in arrays)]
    return _MAGIC + zlib.compress(b"".join([*body, qrels.documents.blob]), 6)


def unpack_qrels(blob: bytes) -> Qrels:
    """Return the qrels of a blob from `pack_qrels`. Raise ValueError for other bytes.

    Blobs of earlier releases are read too. Those releases scored topics that have no judgments; the result
    has these topics in `unjudged_topics`.
    """
    if not blob.startswith(_MAGIC):
        raise ValueError("not packed qrels, or packed by another version")
    text, _, rest = zlib.decompress(blob[len(_MAGIC) :]).partition(b"\n")
    header = json.loads(text)
    ends = np.cumsum([0, *header["lengths"]]) * 4
    sizes, lengths, labels, *subtopics = (
        np.frombuffer(rest[a:b], dtype="<i4").astype(np.int32) for a, b in itertools.pairwise(ends)
    )
    aspects = tuple(map(_aspect, header["aspects"]))
    qrels = Qrels(
        aspects=aspects,
        topics=tuple(header["topics"]),
        offsets=_starts(sizes),
        documents=Ids(rest[ends[-1] :], _starts(lengths)),
        labels=labels.reshape(len(aspects), -1),
        label_sets={
            n: LabelSet(tuple(a), frozenset(map(tuple, t))) for n, (a, t) in header["label_sets"].items()
        },
        subtopics=Subtopics(tuple(header["subtopics"]), *subtopics) if subtopics else None,
    )
    return qrels.judged_only()


def _starts(lengths: NDArray[np.int32]) -> Ints:
    starts = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=starts[1:])
    return starts
