"""Tables from any source in memory: dictionaries, data frames and records."""

from collections.abc import Mapping
from typing import Any

from cupel_measures.inputs.data_frames import frame_table, is_frame
from cupel_measures.inputs.record_tables import is_records, record_table
from cupel_measures.inputs.topic_tables import Table, nested_table, nesting
from cupel_measures.reading.column_names import Content


def table_of(source: Any, content: Content, name: str) -> Table:
    """Return a table of scores or grades with ids that are strings.

    source: a dictionary from topic to document to number, a data frame or other named columns, or records.
    name: shown in findings. Raise Refused if a column is missing or ambiguous, or if an id is invalid or
    repeated, and TypeError for another kind of source.
    """
    if hasattr(source, "read"):
        raise TypeError(f"{name}: got an open file; give its path instead")
    if is_frame(source):
        return frame_table(source, content, name)
    if is_records(source):
        return record_table(source, content, name)
    if not isinstance(source, Mapping) and hasattr(source, "to_dict"):
        return record_table(source.to_dict("records"), content, name)
    if not isinstance(source, Mapping) or not all(isinstance(part, Mapping) for part in source.values()):
        expected = f"a dictionary from topic to document to {content}"
        raise TypeError(f"{name}: expected {expected}, a data frame, records or a path, got {type(source)}")
    return nested_table(source, name)


def is_by_name(source: Any) -> bool:
    """Return whether the keys of a dictionary are names, not topics or columns."""
    if not isinstance(source, Mapping) or not source or is_frame(source):
        return False
    parts = [*source.values()]
    return nesting(source) == 3 or not all(isinstance(p, Mapping) for p in parts) or any(map(is_frame, parts))
