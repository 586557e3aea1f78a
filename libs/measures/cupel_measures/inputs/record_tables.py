"""Tables from records: named tuples, dictionaries, objects and triples."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from operator import attrgetter, itemgetter
from typing import Any

from cupel_measures.findings import Finding, Findings, Refused
from cupel_measures.inputs.column_tables import table_of_columns
from cupel_measures.inputs.topic_tables import Table
from cupel_measures.reading.column_names import MISSING, ColumnRoles, Content, roles_of

IN_ORDER = ColumnRoles(topic=0, document=1, value=2)


def is_records(source: Any) -> bool:
    """Return whether a source can be iterated over as records."""
    return isinstance(source, Iterable) and not isinstance(source, str | bytes | Mapping)


def record_table(source: Iterable[Any], content: Content, name: str) -> Table:
    """Return the scores or grades of records.

    A record is a tuple (topic, document, number), or has parts with names such as query_id, doc_id and score.
    All records are of the kind of the first one. Raise Refused if a part is missing, or if an id is invalid
    or repeated.
    """
    records = list(source)
    if not records:
        return {}
    first = records[0]
    names = _names(first)
    if not names:
        _check_triples(records, name)
    roles = roles_of([*map(str, names)], content, name) if names else IN_ORDER
    by_item = not names or isinstance(first, Mapping)
    columns = []
    for place in (roles.topic, roles.document, roles.value):
        key = names[place] if names else place
        get: Any = itemgetter(key) if by_item else attrgetter(str(key))
        columns.append(_column(records, get, key, name))
    topics, documents, values = columns
    return table_of_columns(topics, documents, values, content, name, by_rank=roles.by_rank)


def _names(record: Any) -> Sequence[Any]:
    """Return the names of the parts of a record; none for a tuple or list."""
    if isinstance(record, Mapping):
        return [*record]
    if hasattr(record, "_fields"):
        return record._fields  # type: ignore[no-any-return]
    if isinstance(record, tuple | list):
        return ()
    if is_dataclass(record):
        return [field.name for field in fields(record)]
    if hasattr(record, "__dataframe__"):
        raise TypeError("got a list of data frames; give a dictionary from name to data frame")
    names = getattr(record, "__slots__", None) or [*getattr(record, "__dict__", ())]
    if not names:
        expected = "a named tuple, dictionary or object, or a tuple (topic, document, number)"
        raise TypeError(f"a record is a {type(record).__name__}; expected {expected}")
    return [names] if isinstance(names, str) else names


def _check_triples(records: Sequence[Any], name: str) -> None:
    findings = Findings()
    for row, record in enumerate(records, 1):
        if not isinstance(record, tuple | list) or len(record) != 3:
            message = (
                f"record {row} is {record!r:.60}; expected (topic, document, number), or parts with names"
            )
            findings.add(Finding(code=MISSING, message=message, file=name))
    if findings.refused:
        raise Refused(findings)


def _column(records: Sequence[Any], get: Any, key: Any, name: str) -> list[Any]:
    try:
        return list(map(get, records))
    except (KeyError, AttributeError, IndexError, TypeError):
        findings = Findings()
        for row, record in enumerate(records, 1):
            try:
                get(record)
            except (KeyError, AttributeError, IndexError, TypeError):
                message = f"record {row} has no {key}: {record!r:.60}"
                findings.add(Finding(code=MISSING, message=message, file=name))
        raise Refused(findings) from None
