"""Reader of document texts.

The format is JSON Lines with one object per document, with its id and its text.

A text is split into words, which are sequences of Unicode letters, marks, digits and connecting punctuation,
in lower case. Words are not stemmed, and no stop words are removed.
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
from cupel_measures.reading.lines.document_order import concatenate_ranges

IDS = ("id", "docno", "doc_id")
"""Keys that can contain the id of a document. The first one that is present is used."""
FIRST_MARK = 0x300
COUNTED = 1 << 22
"""Number of words that are counted at a time."""
_EXAMPLE = '{"id": "d1", "title": "Red cabbage", "text": "How to cook it"}'

NOT_JSON = declare(
    "texts-not-json",
    "error",
    "a line of a texts file is not a JSON object in UTF-8",
    f"write one object per line, such as {_EXAMPLE}",
)
NO_ID = declare(
    "texts-id",
    "error",
    "a document has no id, or an id that a run file cannot contain",
    f"write an id without spaces, as in {_EXAMPLE}",
)
NO_TEXT = declare(
    "texts-text",
    "error",
    "a document has no text, or its text or title is not a string",
    f'write a text, as in {_EXAMPLE}; an empty text is ""',
)
TWICE = declare(
    "texts-twice", "error", "a document occurs twice in a texts file", "keep only one of the lines"
)
LACKING = declare(
    "texts-lacking",
    "warning",
    "some documents that are relevant to a subtopic have no text, so the models of subtopics omit them, and "
    "rankings treat them as documents without words",
    "add the texts of these documents, with the document ids of the qrels",
)
EMPTY = declare("texts-empty", "error", "the texts file has no documents", "check that it is the right file")


def words_of(text: str) -> list[str]:
    """Return the words of `text`, in order."""
    # lower() turns U+0130, the Turkish capital i, into an i with a combining dot; keep a plain i
    return _word().findall(unicodedata.normalize("NFC", text).lower().replace("i\u0307", "i"))


@cache
def _word() -> re.Pattern[str]:
    r"""Return the pattern of a Unicode word (UTS 18).

    Python's `\w` lacks marks, which many scripts need.
    """
    points = chain(range(FIRST_MARK, 0x1F000), range(0xE0100, 0xE01F0))  # all marks are in these ranges
    marks = "".join(chr(point) for point in points if unicodedata.category(chr(point)).startswith("M"))
    # matching the long class is slow, so exclude characters before the first mark
    return re.compile(rf"\w+(?:(?![\0-{chr(FIRST_MARK - 1)}])[{marks}]+\w*)*")


def read_texts(source: Source, *, name: str | None = None, limits: Limits | None = None) -> Texts:
    """Read a texts file, plain or compressed.

    Each line is an object with `id` (or `docno` or `doc_id`), `text` and optionally `title`, which is put
    before the text. Raise Refused, with all errors, if the file is invalid, and OSError if it cannot be read.
    """
    limits = limits or Limits()
    parser = _TextParser(file=name or name_of(source))
    with open_plain(source, limits) as stream:
        for number, line in _lines(stream, limits, parser.file):
            parser.add(number, line)
    if not parser.documents and not parser.findings.refused:
        parser.findings.add(Finding(code=EMPTY, message="no documents", file=parser.file))
    if parser.findings.refused:
        raise Refused(parser.findings)
    return parser.texts()


@dataclass(frozen=True)
class TextsFile:
    """A texts file of a collection: its name in findings, and its source."""

    name: str
    source: Source
    limits: Limits | None = None

    def read(self) -> Texts:
        """Read the file as `read_texts` does."""
        return read_texts(self.source, name=self.name, limits=self.limits)


def check_texts(texts: Texts, qrels: Qrels) -> Findings:
    """Warn if documents that are relevant to a subtopic have no text or an empty one."""
    findings = Findings()
    if qrels.subtopics is None:
        return findings
    relevant = np.unique(qrels.subtopics.document[qrels.subtopics.judgment > 0])
    place = texts.places(qrels.documents)[relevant]
    lacking = relevant[(place < 0) | (texts.offsets[place + 1] == texts.offsets[place])]
    if len(lacking):
        sample = qrels.documents[int(lacking[0])]
        message = f"{len(lacking):,} of {len(relevant):,} relevant documents, such as {sample}, have no text"
        findings.add(Finding(code=LACKING, message=message, sample=sample), len(lacking))
    return findings


def join_texts(
    ranking: Ranking, qrels: Qrels, texts: Texts, *, profile: Profile = DEFAULT, depth: int | None = None
) -> Content:
    """Return the texts that `ranking` ranks, one row per topic of the qrels.

    They are ordered and cut as by `join`.
    """
    topics = {name: number for number, name in enumerate(ranking.topics)}
    number = np.array([topics.get(name, -1) for name in qrels.topics], dtype=np.int64)
    there = number >= 0
    begin = np.where(there, ranking.offsets[number], 0)
    count = np.where(there, ranking.offsets[number + there] - begin, 0)
    count = count if depth is None else np.minimum(count, depth)
    chosen = order_of(ranking, profile)[concatenate_ranges(begin, count)]
    return Content(texts, np.concatenate([[0], np.cumsum(count)]), texts.places(ranking.documents)[chosen])


def _lines(stream: BinaryIO, limits: Limits, file: str | None) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are not blank, with their numbers.

    Raise Refused at the first line above the limit.
    """
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


class _LineError(ValueError):
    """Error in a line: the code and the message of a finding."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(eq=False, kw_only=True)
class _TextParser:
    """State of the parser: the documents so far.

    words: concatenated words of all documents, as term numbers in the order of first use. lengths: number of
    words of each document.
    """

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
                raise _LineError(TWICE, f"document {document.decode()} is already on line {first}")
        except _LineError as error:
            sample = line[:80].decode(errors="replace").rstrip()
            self.findings.add(
                Finding(code=error.code, message=str(error), file=self.file, line=number, sample=sample)
            )
            return
        self.documents[document] = number
        if not self.findings.refused:
            words = words_of(text)
            self.words.extend(map(self.terms.__getitem__, words))
            self.lengths.append(len(words))

    def texts(self) -> Texts:
        vocabulary = sorted(self.terms)  # by code points, which is the byte order of UTF-8
        place = np.empty(len(vocabulary), dtype=np.int32)
        place[[self.terms[term] for term in vocabulary]] = np.arange(len(vocabulary))
        words = place[np.frombuffer(self.words, dtype=np.intc)]
        starts = np.concatenate([[0], np.cumsum(np.frombuffer(self.lengths, dtype=np.int64))])
        packed = Ids.of([term.encode() for term in vocabulary])
        offsets, term, count = _counted(words, starts, len(vocabulary))
        documents = Ids.of(list(self.documents))
        return Texts(documents=documents, vocabulary=packed, offsets=offsets, term=term, count=count)


def _record(line: bytes) -> dict[str, Any]:
    try:
        record = json.loads(line.decode())
    except UnicodeDecodeError as problem:
        message = f"the byte {line[problem.start]:#04x} at column {problem.start + 1} is not valid UTF-8"
        raise _LineError(NOT_JSON, message) from None
    except json.JSONDecodeError as problem:
        raise _LineError(NOT_JSON, f"invalid JSON at column {problem.colno}: {problem.msg}") from None
    except (ValueError, RecursionError):
        raise _LineError(NOT_JSON, "invalid JSON: a number is too large or the nesting too deep") from None
    if not isinstance(record, dict):
        raise _LineError(NOT_JSON, f"expected an object such as {_EXAMPLE}")
    return record


def _id(record: dict[str, Any]) -> bytes:
    key = next((key for key in IDS if key in record), None)
    if key is None:
        keys = ", ".join(list(record)[:12])
        raise _LineError(NO_ID, f"no {', '.join(IDS[:-1])} or {IDS[-1]}; the keys are {keys or 'none'}")
    value = record[key]
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    try:
        if isinstance(value, str) and value.split() == [value] and "\0" not in value:
            return value.encode()
    except UnicodeEncodeError:
        pass
    raise _LineError(NO_ID, f"{key} is {json.dumps(value)[:60]}; expected a word without spaces")


def _text(record: dict[str, Any]) -> str:
    if "text" not in record:
        raise _LineError(NO_TEXT, f"no text; the keys are {', '.join(list(record)[:12])}")
    title, text = record.get("title"), record["text"]
    for key, value in (("title", title), ("text", text)):
        if not isinstance(value, str) and (key, value) != ("title", None):
            raise _LineError(NO_TEXT, f"{key} is {json.dumps(value)[:60]}; expected a string")
    return f"{title}\n{text}" if title else str(text)


def _counted(
    words: NDArray[np.int32], starts: Ints, terms: int
) -> tuple[Ints, NDArray[np.int32], NDArray[np.int32]]:
    """Return offsets, distinct terms and their counts by document, as in `Texts`."""
    parts = []
    for a, b in topic_blocks(starts, COUNTED):
        document = np.repeat(np.arange(a, b), np.diff(starts[a : b + 1]))
        keys, count = np.unique(document * terms + words[starts[a] : starts[b]], return_counts=True)
        distinct = np.bincount(keys // max(terms, 1) - a, minlength=b - a)
        parts.append((distinct, (keys % max(terms, 1)).astype(np.int32), count.astype(np.int32)))
    distinct, term, count = (np.concatenate(column) for column in zip(*parts, strict=True))
    return np.concatenate([[0], np.cumsum(distinct)]), term, count
