"""Readers of qrels: judgments of one or more aspects, from one or more files.

A file consists of lines of words separated by spaces or tabs. Its columns are `topic`, `document`, `_`
(anything) and names of aspects. A plain qrels file has `topic _ document ASPECT`, a wide one has a column per
aspect; SUBTOPICS is the layout of diversity qrels. Blank lines and lines that start with `#` are skipped.
Lines end with LF or CR LF; a byte order mark is allowed; files may be compressed. A file of scores (`document
ASPECT`, with steps) labels documents that the other files judge.
"""

import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from cupel_measures.findings import Finding, Findings, Refused, declare
from cupel_measures.model import ABSENT, UNJUDGED, Aspect, Ids, Ints, Qrels, Subtopics
from cupel_measures.reading.compression import Limits, Source, name_of, open_plain
from cupel_measures.reading.content_formats import foreign
from cupel_measures.reading.declarations.label_scales import (
    ERRORS,
    HIGHEST_INFERRED,
    INTEGER,
    NOT_INTEGER,
    WRONG,
    LabelScale,
    unscaled,
)
from cupel_measures.reading.declarations.score_labels import Steps, scores_in
from cupel_measures.reading.lines.text_columns import BOM, Text, changes, ids_at, regular_columns
from cupel_measures.reading.lines.text_lines import text_lines
from cupel_measures.reading.qrels_blobs import pack_qrels, qrels_digest, unpack_qrels
from cupel_measures.reading.topic_warnings import EMPTY, count_topics_without_relevant, report_topics

__all__ = ["QrelsFile", "build_qrels", "pack_qrels", "qrels_digest", "read_qrels", "unpack_qrels", "unscaled"]

TOPIC, SUBTOPIC, DOCUMENT, JUDGMENT, ANYTHING = "topic", "subtopic", "document", "judgment", "_"
SUBTOPICS = (TOPIC, SUBTOPIC, DOCUMENT, JUDGMENT)
COLUMNS = declare(
    "qrels-columns",
    "error",
    "a line has a different number of columns than the layout of the file",
    "write the expected columns on every line, or declare the layout in a collection file",
)
TWICE = declare(
    "qrels-judged-twice",
    "error",
    "a document is judged twice for the same topic and the same aspect or subtopic",
    "keep only one of the lines",
)
NOT_TEXT = declare(
    "qrels-not-text",
    "error",
    "a line is not UTF-8 text or contains a NUL byte",
    "save the file as UTF-8",
)
PARTLY_JUDGED = declare(
    "qrels-partly-judged",
    "warning",
    "documents are judged for one aspect but not for another",
    "no action needed if this is intended; measures of one aspect use only the judgments of this aspect, and "
    "measures that combine labels replace a missing label by the lowest one",
)


@dataclass(frozen=True)
class QrelsFile:
    """A qrels file.

    It has a name in findings, a source, and columns from left to right.

    steps: division of scores into labels, for a file of scores with the columns document and aspect.
    """

    name: str
    source: Source
    columns: tuple[str, ...]
    steps: Steps | None = None

    @classmethod
    def plain(cls, name: str, source: Source, aspect: str) -> "QrelsFile":
        """Return a four-column file of one aspect."""
        return cls(name, source, (TOPIC, ANYTHING, DOCUMENT, aspect))


def read_qrels(
    source: Source,
    *,
    aspect: Aspect | None = None,
    name: str | None = None,
    findings: Findings | None = None,
    limits: Limits | None = None,
) -> Qrels:
    """Read a plain four-column file.

    Without `aspect`, infer the scale of an aspect named relevance.

    Add warnings to `findings`. Raise Refused, with every error of the file, if there is an error.
    """
    aspect = aspect or unscaled("relevance")
    file = QrelsFile.plain(name or name_of(source) or "qrels", source, aspect.name)
    return build_qrels([aspect], [file], findings=findings, limits=limits)


def build_qrels(
    aspects: Sequence[Aspect],
    files: Sequence[QrelsFile],
    *,
    topics: Sequence[str] | None = None,
    findings: Findings | None = None,
    limits: Limits | None = None,
) -> Qrels:
    """Read `files` into one Qrels. Several files can judge the same aspect.

    topics: all topics of the collection (default: those of the files). Topics without any judgment become
    `Qrels.unjudged_topics`. Add warnings to `findings`. Raise Refused, with all errors and warnings of all
    files, if there is an error.
    """
    table = _JudgmentTable.of(aspects)
    # files of scores come last, because they label documents that other files judge
    for file in sorted(files, key=lambda file: file.steps is not None):
        _read(file, table, limits or Limits())
    if table.findings.refused:
        raise Refused(table.findings)
    qrels = _qrels(table, topics)
    report_topics(qrels, {topic.decode() for topic in table.pools}, table.findings)
    _count_partly_judged(table)
    if table.findings.refused:
        raise Refused(table.findings)
    count_topics_without_relevant(qrels, table.findings)
    if findings is not None:
        findings.extend(table.findings)
    return qrels


@dataclass(frozen=True, eq=False, kw_only=True)
class _JudgmentTable:
    """The judgments that were read so far.

    The slot of a (topic, document) pair is the index of its judgments. labels: by aspect, the label index of
    each slot. origins: by aspect, the file and line of each label. names: the names of the aspects. files:
    the names of the files. pools: topic -> document -> slot. subtopics: (slot, subtopic) -> judgment.
    """

    scales: tuple[LabelScale, ...]
    labels: tuple["array[int]", ...]
    origins: tuple["array[int]", ...]
    names: tuple[str, ...]
    files: list[str] = field(default_factory=list)
    pools: dict[bytes, dict[bytes, int]] = field(default_factory=dict)
    subtopics: dict[tuple[int, bytes], int] = field(default_factory=dict)
    findings: Findings = field(default_factory=Findings)

    @classmethod
    def of(cls, aspects: Sequence[Aspect]) -> "_JudgmentTable":
        scales = tuple(map(LabelScale, aspects))
        names = tuple(aspect.name for aspect in aspects)
        return cls(
            scales=scales,
            labels=tuple(array("i") for _ in scales),
            origins=tuple(array("q") for _ in scales),
            names=names,
        )

    def aspect(self, name: str) -> int:
        return self.names.index(name)

    def ordinal(self, file: QrelsFile) -> int:
        """Add a file, and return its number."""
        self.files.append(file.name)
        return len(self.files) - 1

    def origin(self, packed: int) -> tuple[str, int]:
        """Return the file and line of a label. packed: an element of `origins`."""
        return self.files[packed & (1 << _FILE_BITS) - 1], packed >> _FILE_BITS

    def slot(self, topic: bytes, document: bytes) -> int:
        pool = self.pools.get(topic)
        if pool is None:
            pool = self.pools[topic] = {}
        slot = pool.get(document)
        if slot is None:
            slot = pool[document] = len(self.labels[0])
            for labels, origins in zip(self.labels, self.origins, strict=True):
                labels.append(ABSENT)
                origins.append(0)
        return slot


_FILE_BITS = 16
"""Number of low bits of an origin that contain the number of the file. The other bits are the line."""


def _read(file: QrelsFile, table: _JudgmentTable, limits: Limits) -> None:
    try:
        with open_plain(file.source, limits) as stream:
            data = stream.read()
    except Refused as refused:
        for finding in refused.findings:
            table.findings.add(replace(finding, file=finding.file or file.name))
        return
    if _read_plain(file, data, table):
        return
    is_plain = file.columns[:-1] == (TOPIC, ANYTHING, DOCUMENT)
    if is_plain and (other := foreign(data, "relevance", file.name)):
        table.findings.add(other)
        return
    earlier = sum(table.findings.totals.values())
    lines = text_lines(data, file.name, NOT_TEXT, table.findings)
    if file.steps is not None:
        _label_by_scores(file, file.steps, lines, table)
    elif file.columns == SUBTOPICS:
        _read_subtopics(file, lines, table)
    else:
        _read_labels(file, lines, table)
    has_no_findings = earlier == sum(table.findings.totals.values())
    if has_no_findings and not any(line.strip() and not line.startswith(b"#") for line in lines):
        table.findings.add(Finding(code=EMPTY, message="no judgments", file=file.name))


def _read_plain(file: QrelsFile, data: bytes, table: _JudgmentTable) -> bool:
    """Read a plain file as columns.

    Return False, without reading anything, if this is not possible.

    It is possible if no line is irregular, no pair of topic and document is repeated, and lines are grouped
    by topic. Other files are read line by line.
    """
    text = _plain_text(data) if file.columns[:-1] == (TOPIC, ANYTHING, DOCUMENT) else None
    fields = regular_columns(text, 4) if text else None
    if text is None or fields is None:
        return False
    aspect, first = table.aspect(file.columns[-1]), len(table.labels[0])
    starts = fields.starts
    lengths = [end - start for start, end in zip(starts, fields.ends, strict=True)]
    labels = list(map(table.scales[aspect].__getitem__, ids_at(text, starts[3], lengths[3])))
    heads = changes(text, starts[0], lengths[0])
    topics, documents = ids_at(text, starts[0][heads], lengths[0][heads]), ids_at(text, starts[2], lengths[2])
    pools = {
        topic: dict(zip(documents[a:b], range(first + a, first + b), strict=True))
        for topic, (a, b) in zip(topics, pairwise([*heads.tolist(), len(fields)]), strict=True)
    }
    # a pair is repeated, or the lines are not grouped by topic
    twice = sum(map(len, pools.values())) < len(fields)
    if twice or min(labels) <= WRONG or not table.pools.keys().isdisjoint(pools):
        return False
    table.pools.update(pools)
    origins = (np.arange(1, len(fields) + 1) << _FILE_BITS) | table.ordinal(file)
    for index, (column, origin) in enumerate(zip(table.labels, table.origins, strict=True)):
        column.extend(labels if index == aspect else [ABSENT] * len(fields))
        origin.extend(origins.tolist() if index == aspect else [0] * len(fields))
    return True


def _plain_text(data: bytes) -> Text | None:
    """Return `data` without a byte order mark and with a final newline.

    Return None if it is not UTF-8.
    """
    try:
        data.decode()
    except UnicodeDecodeError:
        return None
    data = data.removeprefix(BOM)
    return Text.of(data if data.endswith(b"\n") else data + b"\n")


def _rows(file: QrelsFile, lines: list[bytes], findings: Findings) -> Iterator[tuple[int, list[bytes]]]:
    """Yield line number and words of each row.

    Report rows with a wrong number of columns.
    """
    width = len(file.columns)
    for number, line in enumerate(lines, 1):
        words = line.split()
        if len(words) == width and not line.startswith(b"#"):
            yield number, words
        elif words and not line.startswith(b"#") and not findings.room(COLUMNS):
            findings.count(COLUMNS)
        elif words and not line.startswith(b"#"):
            findings.add(_wrong_width(file, number, line, len(words), findings))


def _wrong_width(file: QrelsFile, number: int, line: bytes, words: int, findings: Findings) -> Finding:
    expected = f"{len(file.columns)} ({' '.join(file.columns)})"
    message = f"{words} column{'s' * (words != 1)}, expected {expected}"
    if COLUMNS not in findings.totals and words > len(file.columns) == 4:
        message += (
            "; if the file has a column per aspect or judgments by subtopic, declare this in a collection "
            "file: columns: [topic, _, document, a, b] or layout: subtopics"
        )
    width = len(file.columns)
    begins = [match.start() for match in re.finditer(rb"\S+", line)] + [len(line.rstrip())]
    column = len(line[: begins[min(words, width)]].decode()) + 1
    first, sample = line.split()[0].decode()[:80], line.decode().strip()[:80]
    topic = first if file.columns[0] == TOPIC else None
    return Finding(
        code=COLUMNS, message=message, file=file.name, line=number, column=column, topic=topic, sample=sample
    )


def _read_labels(file: QrelsFile, lines: list[bytes], table: _JudgmentTable) -> None:
    topic, document = file.columns.index(TOPIC), file.columns.index(DOCUMENT)
    ordinal = table.ordinal(file)
    judged = [(i, table.aspect(name)) for i, name in enumerate(file.columns) if name in table.names]
    columns = [(i, table.scales[a], table.labels[a], table.origins[a]) for i, a in judged]
    for number, words in _rows(file, lines, table.findings):
        slot = table.slot(words[topic], words[document])
        for column, scale, labels, origins in columns:
            label = scale[words[column]]
            if label > WRONG and labels[slot] == ABSENT:
                labels[slot] = label
                origins[slot] = number << _FILE_BITS | ordinal
                continue
            code = ERRORS[label] if label <= WRONG else TWICE
            if not table.findings.room(code):
                table.findings.count(code)
                continue
            if label <= WRONG:
                message = scale.complaint(words[column])
            else:
                message = _twice(words, file, scale.aspect, table.origin(origins[slot]))
            table.findings.add(_finding(code, message, file, number, column, lines))


def _twice(words: list[bytes], file: QrelsFile, aspect: Aspect, first: tuple[str, int]) -> str:
    document = words[file.columns.index(DOCUMENT)].decode()
    where = f"line {first[1]}" + (f" of {first[0]}" if first[0] != file.name else "")
    message = f"document {document} is already judged for {aspect.name} on {where}"
    if file.columns[1] == ANYTHING and words[1] not in (b"0", b"Q0"):
        message += f"; if column 2 ({words[1].decode()}) is a subtopic, declare layout: subtopics"
    return message


def _finding(
    code: str, message: str, file: QrelsFile, number: int, column: int, lines: list[bytes]
) -> Finding:
    """Return a finding about word `column` of line `number`.

    Its column is that of the first character.
    """
    line = lines[number - 1]
    begins = [match.start() for match in re.finditer(rb"\S+", line)]
    words = line.split()
    topic = words[file.columns.index(TOPIC)].decode()
    place = len(line[: begins[column]].decode()) + 1
    return Finding(
        code=code,
        message=message,
        file=file.name,
        line=number,
        column=place,
        topic=topic,
        sample=words[column].decode()[:80],
    )


def _read_subtopics(file: QrelsFile, lines: list[bytes], table: _JudgmentTable) -> None:
    for number, (topic, subtopic, document, judgment) in _rows(file, lines, table.findings):
        slot = table.slot(topic, document)
        is_invalid = not INTEGER.fullmatch(judgment) or abs(int(judgment)) > HIGHEST_INFERRED
        code = NOT_INTEGER if is_invalid else TWICE if (slot, subtopic) in table.subtopics else None
        if code is None:
            table.subtopics[slot, subtopic] = int(judgment)
        elif not table.findings.room(code):
            table.findings.count(code)
        elif is_invalid:
            message = f"{judgment.decode()!r} is not an integer within ±{HIGHEST_INFERRED:,}"
            table.findings.add(_finding(NOT_INTEGER, message, file, number, 3, lines))
        else:
            message = f"document {document.decode()} is already judged for subtopic {subtopic.decode()}"
            table.findings.add(_finding(TWICE, message, file, number, 2, lines))


def _label_by_scores(file: QrelsFile, steps: Steps, lines: list[bytes], table: _JudgmentTable) -> None:
    """Label every pooled document by its score.

    A document without a score has the lowest label.
    """
    by_document = steps.labels(scores_in(_rows(file, lines, table.findings), file.name, table.findings))
    labels = table.labels[table.aspect(file.columns[-1])]
    for pool in table.pools.values():
        for document, slot in pool.items():
            labels[slot] = by_document.get(document, 0)


def _count_partly_judged(table: _JudgmentTable) -> None:
    """Report, for each aspect, documents that are judged only for other aspects.

    A finding counts (topic, document) pairs.
    """
    if len(table.labels) < 2 or not table.pools:
        return
    judged = np.array(table.labels, dtype=np.int32) > UNJUDGED
    any_aspect = judged.any(axis=0)
    for scale, mine in zip(table.scales, judged, strict=True):
        missing = int(np.count_nonzero(any_aspect & ~mine))
        if missing:
            are = "is" if missing == 1 else "are"
            message = (
                f"{missing} of {any_aspect.size} (topic, document) pairs {are} judged for another aspect, "
                f"but not for {scale.aspect.name}"
            )
            table.findings.add(
                Finding(code=PARTLY_JUDGED, message=message, sample=scale.aspect.name), missing
            )


def _qrels(table: _JudgmentTable, topics: Sequence[str] | None) -> Qrels:
    """Return the qrels, with topics and their documents sorted by bytes.

    topics: all topics of the collection, if given.
    """
    names = sorted(table.pools) if topics is None else sorted({topic.encode() for topic in topics})
    pools = [sorted(table.pools.get(topic, {}).items()) for topic in names]
    offsets = np.zeros(len(names) + 1, dtype=np.int64)
    np.cumsum([len(pool) for pool in pools], out=offsets[1:])
    slots = np.array([slot for pool in pools for _, slot in pool], dtype=np.int64)
    labels = np.array(table.labels, dtype=np.int32).reshape(len(table.scales), -1)
    qrels = Qrels(
        aspects=tuple(scale.settled() for scale in table.scales),
        topics=tuple(topic.decode() for topic in names),
        offsets=offsets,
        documents=Ids.of([document for pool in pools for document, _ in pool]),
        labels=labels[:, slots],
        subtopics=_subtopics(table, slots) if table.subtopics else None,
    )
    return qrels.judged_only()


def _subtopics(table: _JudgmentTable, slots: Ints) -> Subtopics:
    """Return the judgments by subtopic, without those of ignored topics.

    They are sorted by document, then subtopic.

    slots: the slot of each document of the qrels.
    """
    place = {slot: document for document, slot in enumerate(slots.tolist())}
    names = sorted({subtopic for _, subtopic in table.subtopics})
    index = {name: i for i, name in enumerate(names)}
    rows = sorted(
        (place[slot], index[subtopic], judgment)
        for (slot, subtopic), judgment in table.subtopics.items()
        if slot in place
    )
    document, subtopic, judgment = np.array(rows, dtype=np.int32).reshape(-1, 3).T.copy()
    return Subtopics(tuple(name.decode() for name in names), document, subtopic, judgment)
