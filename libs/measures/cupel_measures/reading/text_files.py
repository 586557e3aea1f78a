"""Reading the texts of documents: JSON Lines, an object per document with its id and its text (design.md 6).

A text is taken as its words: runs of letters, marks, digits and connecting punctuation as Unicode has them,
lower-cased (spec 7.5). Nothing is stemmed and nothing left out.
"""

import json
import re
import unicodedata
from array import array
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from cupel_measures.findings import Finding, Findings, Refused, declare
from cupel_measures.model import Content, Ids, Ints, Qrels, Ranking, Texts
from cupel_measures.model.profiles import DEFAULT, Profile
from cupel_measures.reading.compression import DOCUMENT, Limits, Source, limit_reached, name_of, open_plain
from cupel_measures.reading.joins import order_of, topic_blocks
from cupel_measures.reading.lines.document_order import spread

IDS = ("id", "docno", "doc_id")
"""Keys that may hold a document's id; the first that is there counts."""
FIRST_MARK = 0x300
COUNTED = 1 << 22
"""Words that are counted at a time."""
_EXAMPLE = '{"id": "d1", "title": "Red cabbage", "text": "How to cook it"}'

NOT_JSON = declare(
    "texts-not-json",
    "error",
    "a line of a texts file is not a JSON object in UTF-8",
    f"write one object on a line, as {_EXAMPLE}",
)
NO_ID = declare(
    "texts-id",
    "error",
    "a document has no id, or one that no run could name",
    f"give it one, as in {_EXAMPLE}",
)
NO_TEXT = declare(
    "texts-text",
    "error",
    "a document has no text, or a text or title that is no string",
    f'give it one, as in {_EXAMPLE}; "" is an empty text',
)
TWICE = declare("texts-twice", "error", "a document stands in a texts file twice", "keep one of the lines")
LACKING = declare(
    "texts-lacking",
    "warning",
    "documents that are relevant to a subtopic have no text: measures of content pass over them",
    "add their texts, under the ids that the qrels have",
)
EMPTY = declare("texts-empty", "error", "a texts file has no documents", "check that it is the right file")


def words_of(text: str) -> list[str]:
    """The words of `text`, in order."""
    # U+0130, the capital of a Turkish i, becomes an i with a second dot: as a word it is a plain i
    return _word().findall(unicodedata.normalize("NFC", text).lower().replace("i\u0307", "i"))


@cache
def _word() -> re.Pattern[str]:
    """A word of Unicode (UTS 18). Python's own class has no marks: it would cut words of many scripts."""
    points = chain(range(FIRST_MARK, 0x1F000), range(0xE0100, 0xE01F0))  # no marks are elsewhere
    marks = "".join(chr(point) for point in points if unicodedata.category(chr(point)).startswith("M"))
    # the long class is slow to try: a character before the first mark is none
    return re.compile(rf"\w+(?:(?![\0-{chr(FIRST_MARK - 1)}])[{marks}]+\w*)*")


def read_texts(source: Source, *, name: str | None = None, limits: Limits | None = None) -> Texts:
    """Read a texts file, plain or compressed: an object a line with `id` (or `docno`, `doc_id`), `text`, and
    perhaps a `title`, which is put in front of the text.

    Raises Refused with everything that is wrong with it; OSError where it can't be read.
    """
    limits = limits or Limits()
    reading = _Reading(name or name_of(source))
    with open_plain(source, limits) as stream:
        for number, line in _lines(stream, limits, reading.file):
            reading.add(number, line)
    if not reading.documents and not reading.findings.refused:
        reading.findings.add(Finding(EMPTY, "no documents", reading.file))
    if reading.findings.refused:
        raise Refused(reading.findings)
    return reading.texts()


@dataclass(frozen=True)
class TextsFile:
    """A texts file that a collection names: the name that findings give it, and where its bytes are."""

    name: str
    source: Source
    limits: Limits | None = None

    def read(self) -> Texts:
        """As `read_texts`."""
        return read_texts(self.source, name=self.name, limits=self.limits)


def check_texts(texts: Texts, qrels: Qrels) -> Findings:
    """A warning where documents that are relevant to a subtopic have no text, or an empty one."""
    findings = Findings()
    if qrels.subtopics is None:
        return findings
    relevant = np.unique(qrels.subtopics.document[qrels.subtopics.judgment > 0])
    place = texts.places(qrels.documents)[relevant]
    lacking = relevant[(place < 0) | (texts.offsets[place + 1] == texts.offsets[place])]
    if len(lacking):
        sample = qrels.documents[int(lacking[0])]
        message = f"{len(lacking):,} of {len(relevant):,} relevant documents have no text, such as {sample}"
        findings.add(Finding(LACKING, message, sample=sample), len(lacking))
    return findings


def join_texts(
    ranking: Ranking, qrels: Qrels, texts: Texts, *, profile: Profile = DEFAULT, depth: int | None = None
) -> Content:
    """The texts that `ranking` ranks, a row per topic of the qrels; order and depth as `join` has them."""
    topics = {name: number for number, name in enumerate(ranking.topics)}
    number = np.array([topics.get(name, -1) for name in qrels.topics], dtype=np.int64)
    there = number >= 0
    begin = np.where(there, ranking.offsets[number], 0)
    count = np.where(there, ranking.offsets[number + there] - begin, 0)
    count = count if depth is None else np.minimum(count, depth)
    chosen = order_of(ranking, profile)[spread(begin, count)]
    return Content(texts, np.concatenate([[0], np.cumsum(count)]), texts.places(ranking.documents)[chosen])


def _lines(stream: BinaryIO, limits: Limits, file: str | None) -> Iterator[tuple[int, bytes]]:
    """Lines that are not blank, with their numbers; one above the limit is the last."""
    number = 0
    while line := stream.readline(limits.document + 1):
        number += 1
        if len(line) > limits.document:
            findings = Findings()
            findings.add(limit_reached(DOCUMENT, limits.document, file=file, line=number))
            raise Refused(findings)
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        if line.strip():
            yield number, line


class _Wrong(ValueError):
    """What is wrong with a line: a code and a message."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(eq=False)
class _Reading:
    """Documents as they are read. words: of all documents, one after another, each the number of a term in
    the order of first use. lengths: how many words each document has."""

    file: str | None
    findings: Findings = field(default_factory=Findings)
    documents: dict[bytes, int] = field(default_factory=dict)
    terms: defaultdict[str, int] = field(default_factory=defaultdict)
    words: "array[int]" = field(default_factory=lambda: array("i"))
    lengths: "array[int]" = field(default_factory=lambda: array("q"))

    def __post_init__(self) -> None:
        self.terms.default_factory = self.terms.__len__

    def add(self, number: int, line: bytes) -> None:
        try:
            record = _record(line)
            document, text = _id(record), _text(record)
            if document in self.documents:
                first = self.documents[document]
                raise _Wrong(TWICE, f"document {document.decode()} stands in line {first} already")
        except _Wrong as wrong:
            sample = line[:80].decode(errors="replace").rstrip()
            self.findings.add(Finding(wrong.code, str(wrong), self.file, number, sample=sample))
            return
        self.documents[document] = number
        if not self.findings.refused:
            words = words_of(text)
            self.words.extend(map(self.terms.__getitem__, words))
            self.lengths.append(len(words))

    def texts(self) -> Texts:
        vocabulary = sorted(self.terms)  # by code points, which is the order of bytes in UTF-8
        place = np.empty(len(vocabulary), dtype=np.int32)
        place[[self.terms[term] for term in vocabulary]] = np.arange(len(vocabulary))
        words = place[np.frombuffer(self.words, dtype=np.intc)]
        starts = np.concatenate([[0], np.cumsum(np.frombuffer(self.lengths, dtype=np.int64))])
        packed = Ids.of([term.encode() for term in vocabulary])
        return Texts(Ids.of(list(self.documents)), packed, *_counted(words, starts, len(vocabulary)))


def _record(line: bytes) -> dict[str, Any]:
    try:
        record = json.loads(line.decode())
    except UnicodeDecodeError as problem:
        message = f"the byte {line[problem.start]:#04x} at column {problem.start + 1} is no UTF-8"
        raise _Wrong(NOT_JSON, message) from None
    except json.JSONDecodeError as problem:
        raise _Wrong(NOT_JSON, f"no JSON from column {problem.colno} on: {problem.msg}") from None
    except (ValueError, RecursionError):
        raise _Wrong(NOT_JSON, "a number or a nesting here is out of reach") from None
    if not isinstance(record, dict):
        raise _Wrong(NOT_JSON, f"expected an object, as {_EXAMPLE}")
    return record


def _id(record: dict[str, Any]) -> bytes:
    key = next((key for key in IDS if key in record), None)
    if key is None:
        keys = ", ".join(list(record)[:12])
        raise _Wrong(NO_ID, f"no {', '.join(IDS[:-1])} or {IDS[-1]}; there is {keys or 'nothing'}")
    value = record[key]
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    try:
        if isinstance(value, str) and value.split() == [value] and "\0" not in value:
            return value.encode()
    except UnicodeEncodeError:
        pass
    raise _Wrong(NO_ID, f"{key} is {json.dumps(value)[:60]}; an id is a word without blanks")


def _text(record: dict[str, Any]) -> str:
    if "text" not in record:
        raise _Wrong(NO_TEXT, f"no text; there is {', '.join(list(record)[:12])}")
    title, text = record.get("title"), record["text"]
    for key, value in (("title", title), ("text", text)):
        if not isinstance(value, str) and (key, value) != ("title", None):
            raise _Wrong(NO_TEXT, f"{key} is {json.dumps(value)[:60]}; a string is wanted")
    return f"{title}\n{text}" if title else str(text)


def _counted(
    words: NDArray[np.int32], starts: Ints, terms: int
) -> tuple[Ints, NDArray[np.int32], NDArray[np.int32]]:
    """The different terms of each document, ascending, and how often each stands there, as in `Texts`."""
    parts = []
    for a, b in topic_blocks(starts, COUNTED):
        document = np.repeat(np.arange(a, b), np.diff(starts[a : b + 1]))
        keys, count = np.unique(document * terms + words[starts[a] : starts[b]], return_counts=True)
        different = np.bincount(keys // max(terms, 1) - a, minlength=b - a)
        parts.append((different, (keys % max(terms, 1)).astype(np.int32), count.astype(np.int32)))
    different, term, count = (np.concatenate(column) for column in zip(*parts, strict=True))
    return np.concatenate([[0], np.cumsum(different)]), term, count
