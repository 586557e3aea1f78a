"""Formats of files, recognised by their first bytes."""

import re
from typing import Literal

from cupel_measures.findings import Finding, Refused, declare
from cupel_measures.reading.column_names import GRADE, Content, is_header
from cupel_measures.reading.compression import Limits, Source, open_plain
from cupel_measures.reading.lines.text_columns import BOM

HEAD = 1 << 16
"""Number of bytes from which a format is recognised, after decompression."""

Format = Literal["lines", "json", "delimited", "three columns", "parquet", "html", "xml", "csv", "pdf"]
"""lines: of TREC, or anything else. delimited: with a header of known names. csv: without such a header."""

OTHER_FORMAT = declare(
    "file-format",
    "error",
    "the file is in another format, such as a web page",
    "give a run or qrels in TREC format, or a table with a header such as query_id,doc_id,score",
)
OTHER_KIND = declare(
    "file-kind",
    "error",
    "the file is of another kind, such as qrels instead of a run",
    "check the order of the files: the qrels come first, then the runs",
)
SHAPES: dict[Content, str] = {
    "score": "a run (topic Q0 document rank score tag)",
    "relevance": "qrels (topic 0 document grade)",
}
_LOOKS: dict[Format, str] = {
    "json": "JSON",
    "delimited": "a table with a header",
    "three columns": "three columns without a header",
    "parquet": "Parquet",
    "html": "a web page (HTML)",
    "xml": "XML or SGML",
    "csv": "CSV without a header",
    "pdf": "PDF",
}
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_MARKUP = re.compile(rb"<(!doctype|\?xml|/?[a-z]+)\b", re.IGNORECASE)
_PAGE = re.compile(rb"<(!doctype html|html|head|body)\b", re.IGNORECASE)
_FIELDS = re.compile(r"[^\s,;]+[,;][^\s,;]+[,;]")


def head_of(source: Source, limits: Limits | None = None) -> bytes:
    """Return the first HEAD bytes of a file, after decompression.

    There are none if it cannot be read.
    """
    try:
        with open_plain(source, limits) as stream:
            return stream.read(HEAD).removeprefix(BOM)
    except (Refused, OSError):
        return b""


def format_of(head: bytes) -> Format:
    """Return the format of a file with these first bytes."""
    start = head.lstrip()
    if head.startswith((b"PAR1", b"%PDF-")):
        return "parquet" if head.startswith(b"PAR1") else "pdf"
    rows = [] if b"\0" in head[:1024] else rows_of(head)
    if not rows or _is_run_row(rows[0].split()) or _is_qrels_row(rows[0].split()):
        return "lines"
    if _MARKUP.match(start):
        return "html" if _PAGE.search(start[:1024]) else "xml"
    if start[:1] in (b"{", b"["):
        return "json"
    if is_header(fields_of(rows[0])[0]):
        return "delimited"
    if len(rows[0].split()) <= 3 and _FIELDS.match(rows[0]):
        return "csv"
    return "three columns" if {len(row.split()) for row in rows} == {3} else "lines"


def has_grades(head: bytes) -> bool:
    """Return whether a file with these first bytes is a table of grades."""
    form = format_of(head)
    if form == "delimited":
        return not {*map(str.lower, fields_of(rows_of(head)[0])[0])}.isdisjoint(GRADE)
    return form == "json" and any(b'"%s"' % name.encode() in head for name in GRADE)


def fields_of(line: str) -> tuple[list[str], str | None]:
    """Return the fields of a header, and their separator; None for white space."""
    for separator in ("\t", ",", ";"):
        if separator in line:
            return [field.strip().strip('"') for field in line.split(separator)], separator
    return line.split(), None


def rows_of(head: bytes) -> list[str]:
    """Return the complete lines of the first bytes, without blank lines and comments."""
    lines = head[: head.rfind(b"\n") + 1 or None].decode(errors="replace").splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#")]


def foreign(
    source: Source, content: Content, name: str | None, limits: Limits | None = None
) -> Finding | None:
    """Return the finding that a file is of another format or kind, or None.

    content: whether the file should be a run or qrels, in TREC format.
    """
    head = head_of(source, limits)
    form = format_of(head)
    if form != "lines":
        message = f"the file looks like {_LOOKS[form]}, not like {SHAPES[content]}"
        return Finding(code=OTHER_FORMAT, message=message, file=name)
    other: Content = "relevance" if content == "score" else "score"
    is_other = _is_qrels_row if content == "score" else _is_run_row
    rows = [row.split() for row in rows_of(head)]
    if rows and all(map(is_other, rows)):
        message = f"the file looks like {SHAPES[other]}, not like {SHAPES[content]}"
        return Finding(code=OTHER_KIND, message=message, file=name)
    return None


def _is_run_row(words: list[str]) -> bool:
    return len(words) >= 6 and all(map(_NUMBER.fullmatch, words[3:5]))


def _is_qrels_row(words: list[str]) -> bool:
    return len(words) == 4 and words[3].lstrip("-").isdigit()
