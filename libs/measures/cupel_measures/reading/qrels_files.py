"""Reading qrels: judgments of one aspect or several, from one file or several (compatibility.md 1.4).

A file is rows of words between spaces and tabs, and is described by its columns: `topic`, `document`,
`_` (anything) and names of aspects. A plain qrels file has `topic _ document ASPECT`, a wide one a
column per aspect; SUBTOPICS is the layout of diversity qrels. Blank lines are skipped, and so are
comments: lines whose first byte is `#`. LF or CRLF, with or without a byte order mark, plain or compressed.
A file of scores (`document ASPECT`, with steps) labels what the other files judge.
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
from cupel_measures.reading.qrels_blobs import pack_qrels, qrels_digest, unpack_qrels

__all__ = ["QrelsFile", "build_qrels", "pack_qrels", "qrels_digest", "read_qrels", "unpack_qrels", "unscaled"]

TOPIC, SUBTOPIC, DOCUMENT, JUDGMENT, ANYTHING = "topic", "subtopic", "document", "judgment", "_"
SUBTOPICS = (TOPIC, SUBTOPIC, DOCUMENT, JUDGMENT)
COLUMNS = declare(
    "qrels-columns",
    "error",
    "a line has not as many columns as the layout of its file",
    "give every line those columns, or name the layout of the file in a collection file",
)
TWICE = declare(
    "qrels-judged-twice",
    "error",
    "a document is judged twice for the same topic and aspect",
    "keep one of the lines",
)
NOT_TEXT = declare(
    "qrels-not-text",
    "error",
    "a line is not UTF-8 text, or has a NUL byte",
    "save the file as UTF-8",
)
LINE_ENDS = declare(
    "qrels-line-ends",
    "error",
    "a line has a carriage return that no newline follows, as lines of an old Mac end",
    "save the file with newlines (LF, or CR LF) at the ends of lines",
)
EMPTY = declare("qrels-empty", "error", "a qrels file has no judgments", "check that it is the right file")
PARTLY_JUDGED = declare(
    "qrels-partly-judged",
    "warning",
    "documents are judged for one aspect and not for another",
    "nothing, where that is meant: each aspect counts its own judgments, and measures that combine labels "
    "take the lowest label where one is missing",
)
TOPIC_LEFT_OUT = declare(
    "qrels-topic-left-out",
    "warning",
    "topics that the topics file does not list are left out",
    "list them in the topics file, if they belong to the collection",
)
NO_JUDGMENTS = declare(
    "qrels-topic-without-judgments",
    "warning",
    "listed topics have no judgments: every run scores 0 on them",
    "take them off the topics file, unless that is meant",
)
NO_RELEVANT = declare(
    "qrels-topic-without-relevant",
    "warning",
    "topics have no relevant document: measures of relevance score 0 on them",
    "nothing, where that is meant",
)


@dataclass(frozen=True)
class QrelsFile:
    """A file to read: the name that findings give it, where its bytes are, and its columns from the left.

    steps: what makes labels of a file of scores, whose columns are the document and the aspect.
    """

    name: str
    source: Source
    columns: tuple[str, ...]
    steps: Steps | None = None

    @classmethod
    def plain(cls, name: str, source: Source, aspect: str) -> "QrelsFile":
        """A four-column file of one aspect."""
        return cls(name, source, (TOPIC, ANYTHING, DOCUMENT, aspect))


def read_qrels(
    source: Source,
    *,
    aspect: Aspect | None = None,
    name: str | None = None,
    findings: Findings | None = None,
    limits: Limits | None = None,
) -> Qrels:
    """Read one plain four-column file; the scale of an aspect called relevance is inferred without `aspect`.

    Warnings are added to `findings`. Raises Refused with every error of the file.
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
    """Read `files` into one Qrels; several may give judgments of one aspect.

    topics: the topics of the collection, those without judgments included; default: those of the files.
    Warnings are added to `findings`. Raises Refused with every error of every file, and all warnings.
    """
    table = _Table.of(aspects)
    for file in sorted(files, key=lambda file: file.steps is not None):  # scores label what others judge
        _read(file, table, limits or Limits())
    if not table.findings.refused:
        _compare_topics(table, topics)
        _count_partly_judged(table)
    if table.findings.refused:
        raise Refused(table.findings)
    qrels = _qrels(table, topics)
    _count_topics_without_relevant(qrels, table.findings)
    if findings is not None:
        findings.extend(table.findings)
    return qrels


@dataclass(frozen=True, eq=False)
class _Table:
    """Judgments as they are read. A (topic, document) pair has a slot; each aspect has a column of labels
    by slot, and one that says where they came from. subtopics: (slot, subtopic) -> judgment."""

    scales: tuple["LabelScale", ...]
    labels: tuple["array[int]", ...]
    origins: tuple["array[int]", ...]
    names: tuple[str, ...]
    files: list[str] = field(default_factory=list)
    pools: dict[bytes, dict[bytes, int]] = field(default_factory=dict)
    subtopics: dict[tuple[int, bytes], int] = field(default_factory=dict)
    findings: Findings = field(default_factory=Findings)

    @classmethod
    def of(cls, aspects: Sequence[Aspect]) -> "_Table":
        scales = tuple(map(LabelScale, aspects))
        names = tuple(aspect.name for aspect in aspects)
        return cls(scales, tuple(array("i") for _ in scales), tuple(array("q") for _ in scales), names)

    def aspect(self, name: str) -> int:
        return self.names.index(name)

    def ordinal(self, file: QrelsFile) -> int:
        """The number of a file that is read now."""
        self.files.append(file.name)
        return len(self.files) - 1

    def origin(self, packed: int) -> tuple[str, int]:
        """File and line of a label."""
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
"""An origin is a line number shifted by this, and the number of a file."""


def text_lines(data: bytes, name: str, code: str, findings: Findings) -> list[bytes]:
    """The lines of a text file, without a byte order mark; one that is no text (reported under `code`) or has
    a lone carriage return (qrels-line-ends) is reported and emptied."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        findings.add(Finding(code, "the file is UTF-16", name, 1, 1))
        return []
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    try:
        data.decode()
        if b"\0" not in data and data.count(b"\r") == data.count(b"\r\n"):
            return lines
    except UnicodeDecodeError:
        pass
    for index, line in enumerate(lines):
        problem = _no_text(line)
        found = code if problem is not None else LINE_ENDS
        wrong = problem if problem is not None else line.find(b"\r", 0, len(line) - 1)
        if wrong >= 0 and findings.room(found):
            column, sample = len(line[:wrong].decode()) + 1, ascii(line[:60])[2:-1]
            findings.add(Finding(found, _what(line[wrong]), name, index + 1, column, sample=sample))
        elif wrong >= 0:
            findings.count(found)
        lines[index] = b"" if wrong >= 0 else line
    return lines


def _what(byte: int) -> str:
    """What is wrong with a byte in a text."""
    names = {0: "a NUL byte", 13: "a carriage return here, and no newline after it"}
    return names.get(byte, f"byte 0x{byte:02x} is not UTF-8")


def _no_text(line: bytes) -> int | None:
    """Where `line` stops being text, if it does."""
    try:
        line.decode()
        wrong = len(line)
    except UnicodeDecodeError as problem:
        wrong = problem.start
    nul = line.find(b"\0", 0, wrong)
    return nul if nul >= 0 else wrong if wrong < len(line) else None


def _read(file: QrelsFile, table: _Table, limits: Limits) -> None:
    try:
        with open_plain(file.source, limits) as stream:
            data = stream.read()
    except Refused as refused:
        for finding in refused.findings:
            table.findings.add(replace(finding, file=finding.file or file.name))
        return
    if _read_plain(file, data, table):
        return
    found = sum(table.findings.totals.values())
    lines = text_lines(data, file.name, NOT_TEXT, table.findings)
    if file.steps is not None:
        _label_by_scores(file, file.steps, lines, table)
    elif file.columns == SUBTOPICS:
        _read_subtopics(file, lines, table)
    else:
        _read_labels(file, lines, table)
    fine = found == sum(table.findings.totals.values())
    if fine and not any(line.strip() and not line.startswith(b"#") for line in lines):
        table.findings.add(Finding(EMPTY, "no judgments", file.name))


def _read_plain(file: QrelsFile, data: bytes, table: _Table) -> bool:
    """Read the usual file as columns: plain, topic by topic, nothing odd about any line, no pair twice.

    False, with nothing read, where it is not that: then it is read line by line, to the same end.
    """
    text = _plain_text(data) if file.columns[:-1] == (TOPIC, ANYTHING, DOCUMENT) else None
    fields = regular_columns(text, 4) if text else None
    if text is None or fields is None:
        return False
    aspect, first = table.aspect(file.columns[-1]), len(table.labels[0])
    starts, lengths = (
        fields.starts,
        [end - start for start, end in zip(fields.starts, fields.ends, strict=True)],
    )
    labels = list(map(table.scales[aspect].__getitem__, ids_at(text, starts[3], lengths[3])))
    heads = changes(text, starts[0], lengths[0])
    topics, documents = ids_at(text, starts[0][heads], lengths[0][heads]), ids_at(text, starts[2], lengths[2])
    pools = {
        topic: dict(zip(documents[a:b], range(first + a, first + b), strict=True))
        for topic, (a, b) in zip(topics, pairwise([*heads.tolist(), len(fields)]), strict=True)
    }
    twice = sum(map(len, pools.values())) < len(fields)  # a pair, or a topic that comes back
    if twice or min(labels) <= WRONG or not table.pools.keys().isdisjoint(pools):
        return False
    table.pools.update(pools)
    origins = (np.arange(1, len(fields) + 1) << _FILE_BITS) | table.ordinal(file)
    for index, (column, origin) in enumerate(zip(table.labels, table.origins, strict=True)):
        column.extend(labels if index == aspect else [ABSENT] * len(fields))
        origin.extend(origins.tolist() if index == aspect else [0] * len(fields))
    return True


def _plain_text(data: bytes) -> Text | None:
    """`data` without a byte order mark, with a newline at its end; None where it is not UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return None
    data = data.removeprefix(BOM)
    return Text.of(data if data.endswith(b"\n") else data + b"\n")


def _rows(file: QrelsFile, lines: list[bytes], findings: Findings) -> Iterator[tuple[int, list[bytes]]]:
    """Line number and words of every row; a row with the wrong number of columns is reported."""
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
            "; where a file has a column per aspect, or subtopics, a collection file names its layout: "
            "columns: [topic, _, document, a, b] or layout: subtopics"
        )
    width = len(file.columns)
    begins = [match.start() for match in re.finditer(rb"\S+", line)] + [len(line.rstrip())]
    column = len(line[: begins[min(words, width)]].decode()) + 1
    first, sample = line.split()[0].decode()[:80], line.decode().strip()[:80]
    topic = first if file.columns[0] == TOPIC else None
    return Finding(COLUMNS, message, file.name, number, column, topic, sample)


def _read_labels(file: QrelsFile, lines: list[bytes], table: _Table) -> None:
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
    message = f"document {document} is judged for {aspect.name} already, in {where}"
    if file.columns[1] == ANYTHING and words[1] not in (b"0", b"Q0"):
        message += f"; where column 2 ({words[1].decode()}) is a subtopic, say layout: subtopics"
    return message


def _finding(
    code: str, message: str, file: QrelsFile, number: int, column: int, lines: list[bytes]
) -> Finding:
    """A finding about word `column` of line `number`, with the character where the word begins, from 1."""
    line = lines[number - 1]
    begins = [match.start() for match in re.finditer(rb"\S+", line)]
    words = line.split()
    topic = words[file.columns.index(TOPIC)].decode()
    place = len(line[: begins[column]].decode()) + 1
    return Finding(code, message, file.name, number, place, topic, words[column].decode()[:80])


def _read_subtopics(file: QrelsFile, lines: list[bytes], table: _Table) -> None:
    for number, (topic, subtopic, document, judgment) in _rows(file, lines, table.findings):
        slot = table.slot(topic, document)
        wrong = not INTEGER.fullmatch(judgment) or abs(int(judgment)) > HIGHEST_INFERRED
        code = NOT_INTEGER if wrong else TWICE if (slot, subtopic) in table.subtopics else None
        if code is None:
            table.subtopics[slot, subtopic] = int(judgment)
        elif not table.findings.room(code):
            table.findings.count(code)
        elif wrong:
            message = f"{judgment.decode()!r} is no judgment: an integer of at most {HIGHEST_INFERRED:,}"
            table.findings.add(_finding(NOT_INTEGER, message, file, number, 3, lines))
        else:
            message = f"document {document.decode()} is judged for subtopic {subtopic.decode()} already"
            table.findings.add(_finding(TWICE, message, file, number, 2, lines))


def _label_by_scores(file: QrelsFile, steps: Steps, lines: list[bytes], table: _Table) -> None:
    """Give every pooled document the label of its score; the lowest, if it has none."""
    found = steps.labels(scores_in(_rows(file, lines, table.findings), file.name, table.findings))
    labels = table.labels[table.aspect(file.columns[-1])]
    for pool in table.pools.values():
        for document, slot in pool.items():
            labels[slot] = found.get(document, 0)


def _compare_topics(table: _Table, topics: Sequence[str] | None) -> None:
    """Report how the listed topics and those of the files differ."""
    if topics is None:
        return
    judged, listed = {topic.decode() for topic in table.pools}, set(topics)
    for code, what, names in (
        (TOPIC_LEFT_OUT, "judged but not listed, and left out", judged - listed),
        (NO_JUDGMENTS, "listed without judgments", listed - judged),
    ):
        if names:
            message = f"{_counted(len(names), 'topic')} {what}: {_some(sorted(names))}"
            table.findings.add(Finding(code, message, sample=min(names)), len(names))


def _count_partly_judged(table: _Table) -> None:
    """Report, for each aspect, the pairs that are judged for another aspect and not for this one."""
    if len(table.labels) < 2 or not table.pools:
        return
    judged = np.array(table.labels, dtype=np.int32) > UNJUDGED
    some = judged.any(axis=0)
    for scale, mine in zip(table.scales, judged, strict=True):
        missing = int(np.count_nonzero(some & ~mine))
        if missing:
            pairs = "pair is" if missing == 1 else "pairs are"
            message = (
                f"{missing} of {some.size} (topic, document) {pairs} judged, but not for {scale.aspect.name}"
            )
            table.findings.add(Finding(PARTLY_JUDGED, message, sample=scale.aspect.name), missing)


def _count_topics_without_relevant(qrels: Qrels, findings: Findings) -> None:
    sizes = np.diff(qrels.offsets)
    for aspect, labels in zip(qrels.aspects, qrels.labels, strict=True):
        relevant = np.bincount(qrels.topic_of[labels >= aspect.threshold], minlength=len(qrels.topics))
        names = [qrels.topics[t] for t in np.flatnonzero((relevant == 0) & (sizes > 0))]
        if names:
            topics = _counted(len(names), "topic")
            message = f"{topics} without a document relevant for {aspect.name}: {_some(names)}"
            findings.add(Finding(NO_RELEVANT, message, sample=names[0]), len(names))


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")


def _qrels(table: _Table, topics: Sequence[str] | None) -> Qrels:
    """Sort topics, and documents within them, by their bytes."""
    names = sorted(table.pools) if topics is None else sorted({topic.encode() for topic in topics})
    pools = [sorted(table.pools.get(topic, {}).items()) for topic in names]
    offsets = np.zeros(len(names) + 1, dtype=np.int64)
    np.cumsum([len(pool) for pool in pools], out=offsets[1:])
    slots = np.array([slot for pool in pools for _, slot in pool], dtype=np.int64)
    labels = np.array(table.labels, dtype=np.int32).reshape(len(table.scales), -1)
    return Qrels(
        tuple(scale.settled() for scale in table.scales),
        tuple(topic.decode() for topic in names),
        offsets,
        Ids.of([document for pool in pools for document, _ in pool]),
        labels[:, slots],
        subtopics=_subtopics(table, slots) if table.subtopics else None,
    )


def _subtopics(table: _Table, slots: Ints) -> Subtopics:
    """Rows by document of the qrels, then subtopic; those of topics that are left out are dropped."""
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
