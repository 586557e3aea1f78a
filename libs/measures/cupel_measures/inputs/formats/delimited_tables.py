"""Tables in CSV and TSV with a header, and the three columns of MS MARCO runs."""

import csv
from collections.abc import Sequence
from operator import methodcaller
from typing import Any, NoReturn

from cupel_measures.findings import Finding, Findings, Refused, declare
from cupel_measures.inputs.column_tables import table_of_columns
from cupel_measures.inputs.topic_tables import Table
from cupel_measures.reading.column_names import UNCLEAR, Content, roles_of
from cupel_measures.reading.content_formats import fields_of
from cupel_measures.reading.lines.run_lines import NOT_TEXT as RUN_NOT_TEXT
from cupel_measures.reading.lines.text_lines import text_lines
from cupel_measures.reading.qrels_files import NOT_TEXT as QRELS_NOT_TEXT

FIELDS = declare(
    "table-fields",
    "error",
    "a line of a table has more or fewer fields than the header",
    "write the same number of fields on each line; put quotation marks around a field that has the separator",
)
RANKS = declare(
    "run-three-columns",
    "warning",
    "three columns without a header are read as topic, document and rank, as in MS MARCO",
    "no action needed if the third column is the rank; otherwise write a header: query_id doc_id score",
)


def delimited_table(data: bytes, content: Content, name: str) -> Table:
    """Return the scores or grades of CSV, TSV or words in columns, with a header.

    Raise Refused if a column is missing or ambiguous, if a line has another number of fields than the header,
    or if an id is invalid or repeated.
    """
    lines = text_of(data, content, name)
    first = next(at for at, line in enumerate(lines) if line.strip() and not line.startswith("#"))
    lines = lines[first:]
    header, separator = fields_of(lines[0])
    roles = roles_of(header, content, name)
    columns = _columns([line for line in lines[1:] if line.strip()], len(header), separator)
    if columns is None:
        _refuse_widths(lines, first + 1, len(header), separator, name)
    return table_of_columns(
        columns[roles.topic],
        columns[roles.document],
        numbers_of(columns[roles.value]),
        content,
        name,
        by_rank=roles.by_rank,
    )


def ranked_table(data: bytes, name: str) -> tuple[Table, Findings]:
    """Return a run of three columns (topic, document, rank), and a warning about it.

    Raise Refused if the third column is not the ranks 1, 2, 3, ... of each topic, because its meaning
    is then unclear.
    """
    lines = [line for line in text_of(data, "score", name) if line.strip() and not line.startswith("#")]
    findings = Findings()
    columns = _columns(lines, 3, None)
    if columns is None:
        line = next(line for line in lines if len(line.split()) != 3)
        message = f"the file begins with three columns, but a line has {len(line.split())}: {line:.60}"
        findings.add(Finding(code=FIELDS, message=message, file=name))
        raise Refused(findings)
    topics, documents, third = columns
    ranks = numbers_of(third)
    if not _are_ranks(topics, ranks):
        message = "three columns without a header; the third is not the ranks 1, 2, 3, ... of each topic"
        message += f" (it begins with {', '.join(third[:3])})"
        findings.add(Finding(code=UNCLEAR, message=message, file=name))
        raise Refused(findings)
    table = table_of_columns(topics, documents, ranks, "score", name, by_rank=True)
    message = "three columns without a header; the third is read as the rank"
    findings.add(Finding(code=RANKS, message=message, file=name, line=1))
    return table, findings


def text_of(data: bytes, content: Content, name: str) -> list[str]:
    """Return the lines of a file.

    Raise Refused, with each line that is not text in UTF-8.
    """
    findings = Findings()
    text_lines(data, name, RUN_NOT_TEXT if content == "score" else QRELS_NOT_TEXT, findings)
    if findings.refused:
        raise Refused(findings)
    return data.decode().replace("\r\n", "\n").split("\n")


def numbers_of(words: Sequence[str]) -> list[Any]:
    """Return words as numbers. Words that are no numbers stay as they are."""
    if "_" not in "".join(words):  # Python accepts 1_000
        try:
            return list(map(float, words))
        except ValueError:
            pass
    return [_number(word) for word in words]


def _number(word: str) -> float | str:
    try:
        return word if "_" in word else float(word)
    except ValueError:
        return word


def _columns(lines: list[str], width: int, separator: str | None) -> list[list[str]] | None:
    """Return the columns of a table; None if not all lines have `width` fields."""
    if not any('"' in line for line in lines) or separator is None:
        if separator is not None and set(map(methodcaller("count", separator), lines)) - {width - 1}:
            return None
        fields = separator.join(lines).split(separator) if separator else " ".join(lines).split()
        if separator is None and set(map(len, map(str.split, lines))) - {width}:
            return None
        return [fields[place::width] for place in range(width)] if lines else [[] for _ in range(width)]
    try:
        rows = list(csv.reader(lines, delimiter=separator, strict=True))
    except csv.Error:
        return None
    if len(rows) < len(lines) or set(map(len, rows)) - {width}:
        return None
    return [list(column) for column in zip(*rows, strict=True)]


def _refuse_widths(lines: list[str], first: int, width: int, separator: str | None, name: str) -> NoReturn:
    """Refuse a table, with an error for each line with too many or too few fields."""
    findings = Findings()
    for number, line in enumerate(lines, first):
        try:
            fields = next(csv.reader([line], delimiter=separator, strict=True)) if separator else line.split()
            problem = "" if len(fields) == width or not line.strip() else f"{len(fields)} fields"
        except csv.Error as error:
            problem = f"quotation marks that do not match ({error})"
        if problem:
            message = f"the line has {problem}; the header has {width} fields"
            findings.add(Finding(code=FIELDS, message=message, file=name, line=number, sample=line[:80]))
    if not findings.refused:
        findings.add(Finding(code=FIELDS, message="a quoted field contains a line end", file=name))
    raise Refused(findings)


def _are_ranks(topics: Sequence[str], values: Sequence[Any]) -> bool:
    """Return whether the values of each topic are 1, 2, 3, ..., in any order."""
    by_topic: dict[str, list[Any]] = {}
    for topic, value in zip(topics, values, strict=True):
        by_topic.setdefault(topic, []).append(value)
    return all(
        not any(isinstance(value, str) for value in ranks) and sorted(ranks) == list(range(1, len(ranks) + 1))
        for ranks in by_topic.values()
    )
