"""First stage of the diagnosing run reader: from text to columns of rows.

It reports all errors of each line.

It processes blocks of complete lines in numpy and looks at single lines only to report them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from cupel_measures.findings import Finding, Findings, Refused, declare
from cupel_measures.model import Floats, Ints
from cupel_measures.reading import compression
from cupel_measures.reading.compression import Limits, limit_reached
from cupel_measures.reading.lines import text_columns
from cupel_measures.reading.lines.decimal_columns import decimal_comma, numbers
from cupel_measures.reading.lines.ir_metadata import LONGEST
from cupel_measures.reading.lines.text_columns import BOM, Columns, Text, changes, columns_of, ids_at

BLOCK = 1 << 20
SAMPLE = 80
"""Length of the excerpts in findings, in characters."""

NOT_TEXT = declare(
    "run-not-text", "error", "a line is not UTF-8 text or contains a NUL byte", "save the file as UTF-8"
)
LINE_ENDS = declare(
    "run-line-ends",
    "error",
    "a line contains a carriage return without a newline",
    "end lines with LF or CR LF",
)
EMPTY = declare("run-empty", "error", "the run has no lines", "check that it is the right file")
FEW_COLUMNS = declare(
    "run-columns",
    "error",
    "a line has fewer than six columns",
    "write topic, Q0, document, rank, score and tag on each line, separated by spaces or tabs",
)
SCORE = declare(
    "run-score",
    "error",
    "a score is not a number or exceeds double precision",
    "write a decimal number, such as 12.5 or 1e-3",
)
RANK = declare("run-rank", "error", "a rank is not a number", "number the documents of a topic 1, 2, 3, ...")
SECOND_COLUMN = declare(
    "run-second-column",
    "warning",
    "the second column is not Q0",
    "no action needed; the second column is ignored",
)


@dataclass(kw_only=True)
class RunRows:
    """Rows of a run in file order, as columns, with the findings so far.

    names: topics in order of appearance. topic: int32[n], indices into `names`. ids: concatenated document
    ids. length: int32[n], bytes of each id. line, column: int32[n], position of the document id in the
    file. good: bool[n], whether score and rank are numbers.
    """

    names: list[bytes]
    topic: Ints
    ids: bytes
    length: Ints
    score: Floats
    rank: Floats
    line: Ints
    column: Ints
    good: Ints
    tag: str
    comments: list[tuple[int, str]]
    findings: Findings


def shown(text: bytes) -> str:
    """Return the excerpt of `text` that a finding quotes."""
    sample = text.decode(errors="backslashreplace")
    return sample if len(sample) <= SAMPLE else sample[:SAMPLE] + "..."


def read_rows(stream: BinaryIO, limits: Limits, file: str | None) -> RunRows:
    """Read all rows of the run in `stream`, with its errors as findings.

    Stop early at a limit.
    """
    parser = _LineParser(limits=limits, file=file)
    try:
        for data in _blocks(stream, limits):
            if not parser.read_block(data):
                break
    except Refused as refused:
        parser.findings.extend(refused.findings.in_file(file))
    if not parser.names and not parser.findings.refused:
        parser.findings.add(Finding(code=EMPTY, message="the file has no lines except comments", file=file))
    return parser.rows()


def _blocks(stream: BinaryIO, limits: Limits) -> Iterator[bytes]:
    """Yield blocks of complete lines.

    A line above the length limit is yielded before its newline is read, and the last line can lack a newline.
    If the stream raises Refused, yield the complete lines before the damage first, then raise it.
    """
    kept, first, broken = b"", True, None
    while broken is None:
        chunk, broken = _chunk(stream)
        if not chunk:
            break
        data = kept + (chunk.removeprefix(BOM) if first else chunk)
        first, cut = False, data.rfind(b"\n") + 1
        if len(data) - cut > limits.line:
            cut = len(data)
        kept = data[cut:]
        if cut:
            yield data[:cut]
    if broken:
        raise broken
    if kept:
        yield kept


def _chunk(stream: BinaryIO) -> tuple[bytes, Refused | None]:
    """Return about BLOCK bytes, and the exception if the stream is damaged.

    At the end there are fewer bytes.
    """
    pieces, size = [], 0
    try:
        while size < BLOCK and (piece := stream.read1(BLOCK - size)):  # type: ignore[attr-defined]
            pieces.append(piece)
            size += len(piece)
    except Refused as refused:
        return b"".join(pieces), refused
    return b"".join(pieces), None


_COLUMNS = ("topic", "length", "score", "rank", "line", "column", "good")
"""Columns of `RunRows`, in the order in which the parser stores them."""


@dataclass(kw_only=True)
class _LineParser:
    """State of the parser: the rows and findings so far."""

    limits: Limits
    file: str | None
    findings: Findings = field(default_factory=Findings)
    names: dict[bytes, int] = field(default_factory=dict)
    tag: bytes = b""
    comments: list[tuple[int, str]] = field(default_factory=list)
    _lines: int = 0
    _commented: int = 0
    _depths: Ints = field(default_factory=lambda: np.zeros(64, np.int64))
    _parts: list[tuple[NDArray[Any], ...]] = field(default_factory=list)
    _ids: list[bytes] = field(default_factory=list)

    def read_block(self, data: bytes) -> bool:
        """Read a block of complete lines. Return False at a limit."""
        if self._lines == 0 and data[:2] in (b"\xff\xfe", b"\xfe\xff"):
            self._add(NOT_TEXT, "the file is UTF-16", 1, 1)
            return False
        data = data if data.endswith(b"\n") else data + b"\n"
        data, fits = self._within_limits(self._without_lone_returns(data))
        text = Text.of(self._text_only(data))
        fields = columns_of(text)
        lines = _Lines(text, fields, self._lines + 1)
        self._keep_comments(lines)
        self._report_short_lines(lines)
        fits = self._keep_rows(lines) and fits
        self._lines += len(fields.breaks)
        return fits

    def rows(self) -> RunRows:
        none = np.zeros(0, np.int64)
        parts = [np.concatenate(part) for part in zip(*self._parts, strict=True)] or [none] * len(_COLUMNS)
        self._parts.clear()
        ids = b"".join(self._ids)
        self._ids.clear()
        columns = dict(zip(_COLUMNS, parts, strict=True))
        return RunRows(
            names=list(self.names),
            ids=ids,
            tag=self.tag.decode(),
            comments=self.comments,
            findings=self.findings,
            **columns,
        )

    def _add(self, code: str, message: str, line: int, column: int, **more: str) -> None:
        self.findings.add(
            Finding(code=code, message=message, file=self.file, line=line, column=column, **more)
        )

    def _without_lone_returns(self, data: bytes) -> bytes:
        """Report lines with a lone carriage return.

        Return `data` with these lines emptied.
        """
        if data.count(b"\r") == data.count(b"\r\n"):
            return data
        lines = data.split(b"\n")
        for number, line in enumerate(lines):
            at = line.find(b"\r", 0, len(line) - 1)
            if at < 0 or _not_text(line) is not None:  # this line is reported as not text
                continue
            if self.findings.room(LINE_ENDS):
                message = "carriage return without a newline"
                column, sample = len(line[:at].decode(errors="replace")) + 1, shown(line[: at + 1][-SAMPLE:])
                self._add(LINE_ENDS, message, self._lines + number + 1, column, sample=sample)
            else:
                self.findings.count(LINE_ENDS)
            lines[number] = b""
        return b"\n".join(lines)

    def _within_limits(self, data: bytes) -> tuple[bytes, bool]:
        """Return the lines of `data` before the first one above a limit.

        Return also whether these are all lines.
        """
        breaks = np.flatnonzero(np.frombuffer(data, np.uint8) == text_columns.NEWLINE)
        wide = np.flatnonzero(np.diff(breaks, prepend=-1) - 1 > self.limits.line)
        narrow = int(wide[0]) if wide.size else len(breaks)
        fitting = min(narrow, self.limits.lines - self._lines)
        if fitting == len(breaks):
            return data, True
        code, limit = compression.LINES, self.limits.lines
        if fitting == narrow:
            code, limit = compression.LINE, self.limits.line
        self.findings.add(limit_reached(code, limit, file=self.file, line=self._lines + fitting + 1))
        return data[: int(breaks[fitting - 1]) + 1 if fitting else 0], False

    def _text_only(self, data: bytes) -> bytes:
        """Report lines that are not text, and return `data` with these lines blank."""
        if b"\0" not in data:
            if data.isascii():
                return data
            try:
                data.decode()
                return data
            except UnicodeDecodeError:
                pass
        lines = data.split(b"\n")
        for number, line in enumerate(lines):
            problem = _not_text(line)
            if problem is None:
                continue
            if self.findings.room(NOT_TEXT):
                at, message = problem
                column = len(line[:at].decode(errors="replace")) + 1
                self._add(NOT_TEXT, message, self._lines + number + 1, column, sample=shown(line[:SAMPLE]))
            else:
                self.findings.count(NOT_TEXT)
            lines[number] = b" " * len(line)
        return b"\n".join(lines)

    def _keep_comments(self, lines: "_Lines") -> None:
        for index in lines.fields.comments.tolist():
            if self._commented > LONGEST:
                return
            text = lines.line(index).rstrip(b"\r").decode()
            self._commented += len(text)
            self.comments.append((lines.first + index, text))

    def _report_short_lines(self, lines: "_Lines") -> None:
        short, room = lines.fields.short, self.findings.room(FEW_COLUMNS)
        for index in short[:room].tolist():
            line = lines.line(index).rstrip()
            words = line.split()
            column = len(line.decode()) + 1
            count = f"{len(words)} column{'s' * (len(words) != 1)}"
            message = f"{count}; expected six (topic Q0 document rank score tag)"
            topic = shown(words[0])
            self._add(FEW_COLUMNS, message, lines.first + index, column, topic=topic, sample=shown(line))
        self.findings.count(FEW_COLUMNS, len(short[room:]))

    def _keep_rows(self, lines: "_Lines") -> bool:
        """Store the rows of the block as columns. Return False at a limit."""
        fields, text = lines.fields, lines.text
        if not len(fields):
            return True
        starts, ends = fields.starts, fields.ends
        if not self._parts:
            self.tag = text.data[int(starts[text_columns.TAG][0]) : int(ends[text_columns.TAG][0])]
        self._check_second_column(lines)
        score = self._numbers(lines, text_columns.SCORE, SCORE, "score")
        rank = self._numbers(lines, text_columns.RANK, RANK, "rank")
        good = ~(np.isnan(score) | np.isnan(rank))
        topic = self._topics(text, starts[text_columns.TOPIC], ends[text_columns.TOPIC])
        begin, end = starts[text_columns.DOCUMENT], ends[text_columns.DOCUMENT]
        self._ids.append(_concatenated(text, begin, end))
        places = (
            end - begin,
            score,
            rank,
            fields.line + lines.first,
            lines.columns(text_columns.DOCUMENT),
            good,
        )
        small = [part.astype(np.int32) if part.dtype == np.int64 else part for part in (topic, *places)]
        self._parts.append(tuple(small))
        return self._depth_fits(lines, topic)

    def _check_second_column(self, lines: "_Lines") -> None:
        start, end = lines.fields.starts[text_columns.SECOND], lines.fields.ends[text_columns.SECOND]
        other = np.flatnonzero((end - start != 2) | ((lines.text.words[start] & np.uint64(0xFFFF)) != 0x3051))
        if not other.size:
            return
        if SECOND_COLUMN not in self.findings.totals:
            row = int(other[0])
            sample, line = lines.field(text_columns.SECOND, row), lines.number(row)
            message = f"the second column is {sample!r}, not Q0; it is ignored"
            column = int(lines.columns(text_columns.SECOND)[row])
            self._add(SECOND_COLUMN, message, line, column, sample=sample)
            self.findings.count(SECOND_COLUMN, len(other) - 1)
        else:
            self.findings.count(SECOND_COLUMN, len(other))

    def _numbers(self, lines: "_Lines", which: int, code: str, name: str) -> Floats:
        """Return the values of a numeric column, NaN for text that is not a number."""
        values, wrong = numbers(lines.text, lines.fields.starts[which], lines.fields.ends[which])
        if code == SCORE and not np.isfinite(values).all():
            wrong = np.union1d(wrong, np.flatnonzero(np.isinf(values)))
        if wrong.size:
            places, room = lines.columns(which), self.findings.room(code)
            for row in wrong[:room].tolist():
                sample, topic = lines.field(which, row), lines.field(text_columns.TOPIC, row)
                problem = "beyond the range of double precision" if values[row] else "not a number"
                message = f"the {name} {sample!r} is {problem}{decimal_comma(sample)}"
                self._add(code, message, lines.number(row), int(places[row]), topic=topic, sample=sample)
            self.findings.count(code, len(wrong[room:]))
            values[wrong] = np.nan
        return values

    def _topics(self, text: Text, start: Ints, end: Ints) -> Ints:
        heads = changes(text, start, end - start)
        names = self.names
        codes = [
            names.setdefault(name, len(names)) for name in ids_at(text, start[heads], (end - start)[heads])
        ]
        return np.repeat(np.array(codes, np.int64), np.diff(np.append(heads, len(start))))

    def _depth_fits(self, lines: "_Lines", topic: Ints) -> bool:
        """Return whether the numbers of topics and documents are within the limits.

        Documents are counted per topic.
        """
        if len(self.names) > len(self._depths):
            self._depths = np.concatenate([self._depths, np.zeros(len(self.names), np.int64)])
        self._depths += np.bincount(topic, minlength=len(self._depths))
        if len(self.names) > self.limits.topics:
            row = int(np.flatnonzero(topic >= self.limits.topics)[0])
            self._report_limit(compression.TOPICS, self.limits.topics, lines, row)
            return False
        if self._depths.max() > self.limits.depth:
            deep = np.flatnonzero(topic == self._depths.argmax())
            over = int(self._depths.max()) - self.limits.depth
            self._report_limit(compression.DEPTH, self.limits.depth, lines, int(deep[len(deep) - over]))
            return False
        return True

    def _report_limit(self, code: str, limit: int, lines: "_Lines", row: int) -> None:
        topic = lines.field(text_columns.TOPIC, row)
        self.findings.add(limit_reached(code, limit, file=self.file, line=lines.number(row), topic=topic))


@dataclass(frozen=True, eq=False)
class _Lines:
    """A parsed block. first: line number of its first line, from 1."""

    text: Text
    fields: Columns
    first: int

    def number(self, row: int) -> int:
        """Return the line number of a row."""
        return self.first + int(self.fields.line[row])

    def line(self, index: int) -> bytes:
        breaks = self.fields.breaks
        return self.text.data[int(breaks[index - 1]) + 1 if index else 0 : int(breaks[index])]

    def field(self, which: int, row: int) -> str:
        return shown(self.text.data[int(self.fields.starts[which][row]) : int(self.fields.ends[which][row])])

    def columns(self, which: int) -> Ints:
        """Return the column of a field in each row: int64[n], in characters from 1."""
        breaks, line, start = self.fields.breaks, self.fields.line, self.fields.starts[which]
        begin = np.where(line > 0, breaks[line - 1] + 1, 0)
        if not self.text.data.isascii():
            data = np.frombuffer(self.text.data, np.uint8)
            characters = np.cumsum((data & 0xC0) != 0x80)
            start, begin = characters[start], characters[begin]
        places: Ints = start - begin + 1
        return places


def _not_text(line: bytes) -> tuple[int, str] | None:
    """Return the byte offset and the reason if a line is not text, else None."""
    try:
        line.decode()
    except UnicodeDecodeError as error:
        at = line.find(b"\0", 0, error.start)
        if at < 0:
            return error.start, f"byte {line[error.start]:#04x} is not valid UTF-8"
    at = line.find(b"\0")
    return (at, "NUL byte") if at >= 0 else None


def _concatenated(text: Text, start: Ints, end: Ints) -> bytes:
    """Return the fields concatenated."""
    steps = np.zeros(len(text) + 1, np.int8)
    steps[start] = 1
    steps[end] = -1
    inside = np.cumsum(steps[:-1], dtype=np.int8).view(np.bool_)
    return np.frombuffer(text.data, np.uint8, len(text))[inside].tobytes()
