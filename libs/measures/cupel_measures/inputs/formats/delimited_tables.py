"""Tables in CSV and TSV with a header, and the three columns of MS MARCO runs."""

import csv
from collections.abc import Sequence
from typing import Any

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
    "no action needed if it is the rank; otherwise write a header, such as query_id doc_id score",
)


def delimited_table(data: bytes, content: Content, name: str) -> Table:
    """Return the scores or grades of CSV, TSV, or words that are separated by spaces, with a header.

    Raise Refused if a column is missing or ambiguous, if a line has another number of fields than the header,
    or if an id is invalid or repeated.
    """
    lines = text_of(data, content, name)
    separator = fields_of(next(line for line in lines if line.strip() and not line.startswith("#")))[1]
    numbered = [
        (number, line) for number, line in enumerate(lines, 1) if line.strip() and not line.startswith("#")
    ]
    rows = _rows([line for _, line in numbered], separator, name)
    header = [field.strip() for field in rows[0]]
    roles = roles_of(header, content, name)
    _check_widths(rows, [number for number, _ in numbered], len(header), name)
    columns = [list(column) for column in zip(*rows[1:], strict=True)] or [[] for _ in header]
    return table_of_columns(
        columns[roles.topic],
        columns[roles.document],
        numbers_of(columns[roles.value]),
        content,
        name,
        by_rank=roles.by_rank,
    )


def ranked_table(data: bytes, name: str) -> tuple[Table, Findings]:
    """Return a run of three columns (topic, document, rank), and the warning that it was read so.

    Raise Refused if the third column is not the ranks 1, 2, 3, ... of each topic, because it is unclear what
    it is.
    """
    lines = [line for line in text_of(data, "score", name) if not line.startswith("#")]
    rows = _rows([line for line in lines if line.strip()], None, name)
    findings = Findings()
    if any(len(row) != 3 for row in rows):
        row = next(row for row in rows if len(row) != 3)
        message = f"the file begins with three columns, but a line has {len(row)}: {' '.join(row)[:60]}"
        findings.add(Finding(code=FIELDS, message=message, file=name))
        raise Refused(findings)
    topics, documents, third = (list(column) for column in zip(*rows, strict=True))
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
    """Return the lines of a file in UTF-8. Raise Refused, with each line that is not text, otherwise."""
    findings = Findings()
    lines = text_lines(data, name, RUN_NOT_TEXT if content == "score" else QRELS_NOT_TEXT, findings)
    if findings.refused:
        raise Refused(findings)
    return b"\n".join(lines).decode().replace("\r", "").split("\n")


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


def _rows(lines: Sequence[str], separator: str | None, name: str) -> list[list[str]]:
    if separator is None:
        return [line.split() for line in lines]
    if not any('"' in line for line in lines):
        return [line.split(separator) for line in lines]
    try:
        return list(csv.reader(lines, delimiter=separator, strict=True))
    except csv.Error as problem:
        findings = Findings()
        findings.add(Finding(code=FIELDS, message=f"a field cannot be read: {problem}", file=name))
        raise Refused(findings) from None


def _check_widths(rows: Sequence[Sequence[str]], numbers: Sequence[int], width: int, name: str) -> None:
    if set(map(len, rows)) == {width}:
        return
    findings = Findings()
    if len(rows) < len(numbers):  # quoted fields with line ends
        findings.add(Finding(code=FIELDS, message="a quoted field contains a line end", file=name))
    for number, row in zip(numbers, rows, strict=False):
        if len(row) != width:
            message = f"{len(row)} field{'s' * (len(row) != 1)}; the header has {width}"
            sample = " ".join(row)[:80]
            findings.add(Finding(code=FIELDS, message=message, file=name, line=number, sample=sample))
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
