"""Tables in JSON and JSON Lines."""

import json
from collections.abc import Mapping
from typing import Any

from cupel_measures.findings import Finding, Findings, Refused, declare
from cupel_measures.inputs.table_sources import table_of
from cupel_measures.inputs.topic_tables import ID_TWICE, Table
from cupel_measures.reading.column_names import Content, is_header

NOT_JSON = declare(
    "json-syntax",
    "error",
    "a file that begins as JSON is not valid JSON or JSON Lines",
    "write one JSON value, or one object on each line",
)
SHAPE = declare(
    "json-shape",
    "error",
    "the JSON is no table of topics, documents and numbers",
    'write {"topic": {"document": 1.5}}, or objects such as {"query_id": "1", "doc_id": "d", "score": 1.5}',
)


def json_table(data: bytes, content: Content, name: str) -> Table:
    """Return the scores or grades in JSON or JSON Lines.

    JSON is an object from topic to document to number, a list of objects, or an object from names of columns
    to lists. JSON Lines have one object a line. Raise Refused, with the line of a syntax error, if the text
    is no such table, if a key is repeated, or if an id is invalid or repeated.
    """
    findings = Findings()
    lines = data.splitlines()
    filled = [line for line in lines if line.strip()]
    by_line = len(filled) > 1 and _is_json(filled[0])
    text = b"[" + b",".join(filled) + b"]" if by_line else data
    hook = None if by_line and _has_plain_keys(filled) else _Unique(name, findings)
    try:
        value = json.loads(text, object_pairs_hook=hook)
    except (ValueError, RecursionError) as problem:
        raise _refused(lines if by_line else [], problem, name) from None
    if findings.refused:
        raise Refused(findings)
    _check_shape(value, name)
    return table_of(value, content, name)


class _Unique:
    """Conversion of JSON objects to dictionaries, with errors for repeated keys."""

    def __init__(self, name: str, findings: Findings) -> None:
        self._name, self._findings = name, findings

    def __call__(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) < len(pairs):
            seen = set[str]()
            for key, _ in pairs:
                if key in seen:
                    message = f"the key {key!r} is repeated in an object"
                    self._findings.add(
                        Finding(code=ID_TWICE, message=message, file=self._name, sample=key[:80])
                    )
                seen.add(key)
        return result


def _has_plain_keys(lines: list[bytes]) -> bool:
    """Return whether each key of the first object occurs once on each line.

    False can also mean that an id is equal to a key.
    """
    first, data = json.loads(lines[0]), b"\n".join(lines)
    return (
        isinstance(first, dict)
        and b"\\" not in data
        and all(data.count(json.dumps(key).encode()) == len(lines) for key in first)
    )


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _refused(lines: list[bytes], problem: Exception, name: str) -> Refused:
    """Return the refusal of invalid JSON.

    lines: the lines of JSON Lines; empty for other JSON.
    """
    findings = Findings()
    for number, line in enumerate(lines, 1):
        if line.strip() and not _is_json(line):
            sample = line[:80].decode(errors="replace")
            message = "the line is not valid JSON"
            findings.add(Finding(code=NOT_JSON, message=message, file=name, line=number, sample=sample))
    if not findings.refused:
        place = problem if isinstance(problem, json.JSONDecodeError) else None
        message = f"invalid JSON: {place.msg if place else problem}"
        row, column = (place.lineno, place.colno) if place else (None, None)
        findings.add(Finding(code=NOT_JSON, message=message, file=name, line=row, column=column))
    return Refused(findings)


def _check_shape(value: Any, name: str) -> None:
    """Refuse JSON that is neither a table nor a list of objects."""
    problem = None
    if isinstance(value, list):
        if not all(isinstance(record, Mapping) for record in value):
            problem = "the list has elements that are no objects"
    elif not isinstance(value, Mapping):
        problem = f"the file contains a {type(value).__name__}"
    else:
        parts = [*value.values()]
        levels = {type(part) for part in parts}
        if levels - {dict} and not (levels == {list} and is_header([*value])):
            problem = "the values of the object are neither objects (documents) nor named columns"
        elif levels == {dict} and any(isinstance(deep, dict) for part in parts for deep in part.values()):
            problem = "the objects are nested three deep; for several runs, write a file for each"
    if problem is not None:
        findings = Findings()
        findings.add(Finding(code=SHAPE, message=problem, file=name))
        raise Refused(findings)
