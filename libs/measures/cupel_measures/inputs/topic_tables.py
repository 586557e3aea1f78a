"""Tables of topics, documents and numbers in memory."""

from collections import Counter
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np

from cupel_measures.findings import Finding, Findings, Refused, declare
from cupel_measures.reading.column_names import Content
from cupel_measures.reading.lines.decimal_columns import decimal_comma

Table = Mapping[str, Mapping[str, float]]
"""Topic -> document -> score or grade. All ids are strings."""

BLANK = declare(
    "id-blank",
    "error",
    "a topic or document id is empty or contains white space",
    "use ids without spaces, tabs and line ends; files in TREC format separate columns by them",
)
NOT_AN_ID = declare(
    "id-type",
    "error",
    "a topic or document id is neither a string nor a whole number",
    "convert ids to strings; a missing value is not an id",
)
ID_TWICE = declare(
    "id-twice",
    "error",
    "two ids of a table are equal as strings, such as 1 and '1'",
    "convert all ids to strings, and keep only one of the entries",
)
COMMENT = declare(
    "id-comment",
    "error",
    "a topic id begins with #, which begins a comment in files in TREC format",
    "use other topic ids",
)
NUMBERS = (int, float, np.integer, np.floating)


def nesting(source: Any) -> int:
    """Return how many dictionaries are inside each other, along the first values."""
    depth = 0
    while isinstance(source, Mapping):
        depth += 1
        source = next(iter(source.values()), None)
    return depth


def check_table(table: Table, content: Content, name: str, code: str) -> Findings:
    """Return an error for each invalid id and each value that is no number.

    code: the code of errors about values.
    """
    findings = Findings()
    for topic, values in table.items():
        for id_ in blank_ids([topic, *values]):
            where = "topic id" if id_ is topic else f"document id of topic {topic!r}"
            message = f"the {where} {id_!r} is empty or contains white space"
            findings.add(Finding(code=BLANK, message=message, file=name, topic=topic, sample=id_))
        if topic.startswith("#"):
            message = f"the topic id {topic!r} begins with #"
            findings.add(Finding(code=COMMENT, message=message, file=name, topic=topic))
        for document, value in not_numbers(values):
            message = f"the {content} of document {document!r} of topic {topic!r} is {value!r}"
            message += decimal_comma(str(value)) or ", not a finite number"
            findings.add(Finding(code=code, message=message, file=name, topic=topic, sample=str(value)))
    return findings


def blank_ids(ids: Sequence[str]) -> list[str]:
    """Return the ids that are empty or contain white space."""
    joined = "".join(ids).encode(errors="replace")  # like the readers of files, only ASCII white space counts
    if joined.split(maxsplit=1) == [joined] and all(ids):
        return []
    return [id_ for id_ in ids if (data := id_.encode(errors="replace")).split() != [data]]


def not_numbers(values: Mapping[str, float]) -> list[tuple[str, object]]:
    """Return the documents whose value is not a finite number, with the value."""
    if all(map(is_number_type, set(map(type, values.values())))) and _is_finite(sum(values.values())):
        return []
    return [
        (document, value)
        for document, value in values.items()
        if not is_number_type(type(value)) or not _is_finite(value)
    ]


def _is_finite(value: float) -> bool:
    try:
        return isfinite(value)
    except OverflowError:  # an integer that exceeds double precision
        return False


def is_number_type(kind: type) -> bool:
    """Return whether values of this type are numbers; truth values are not."""
    return issubclass(kind, NUMBERS) and kind is not bool


def nested_table(source: Mapping[Any, Mapping[Any, Any]], name: str) -> Table:
    """Return a dictionary from topic to document to number, with all ids as strings.

    The inner dictionaries are copied only if necessary. Raise Refused if an id is invalid.
    """
    findings = Findings()
    table = {}
    topics = _strings([*source], "topic", name, findings)
    for topic, values in zip(topics, source.values(), strict=True):
        given = [*values]
        ids = _strings(given, f"document of topic {topic!r}", name, findings)
        table[topic] = values if ids is given else dict(zip(ids, values.values(), strict=True))
    if findings.refused:
        raise Refused(findings)
    return table


def _strings(ids: list[Any], what: str, name: str, findings: Findings) -> list[str]:
    """Return ids as strings.

    Report ids that are neither strings nor whole numbers, and duplicates.
    """
    if set(map(type, ids)) <= {str}:
        return ids
    strings = [str(id_) for id_ in ids]
    for id_ in ids:
        if isinstance(id_, bool) or not isinstance(id_, str | int | np.integer):
            message = f"the id {id_!r} of a {what} is a {type(id_).__name__}"
            findings.add(Finding(code=NOT_AN_ID, message=message, file=name, sample=str(id_)))
    for id_, times in Counter(strings).items():
        if times > 1:
            message = f"the id {id_!r} of a {what} is given {times} times, as a number and as a string"
            findings.add(Finding(code=ID_TWICE, message=message, file=name, sample=id_))
    return strings
