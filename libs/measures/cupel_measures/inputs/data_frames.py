"""Tables from data frames: pandas, polars, Arrow, and columns of equal length.

No library of data frames is imported. A frame is recognised by its methods.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cupel_measures.inputs.column_tables import table_of_columns
from cupel_measures.inputs.interchange_frames import interchange_columns
from cupel_measures.inputs.topic_tables import Table
from cupel_measures.reading.column_names import Content, is_header, roles_of


def is_frame(source: Any) -> bool:
    """Return whether a source consists of named columns.

    These are data frames, structured arrays, and dictionaries from names of columns to columns.
    """
    if isinstance(source, Mapping):
        if not all(map(_is_column, source.values())):  # stops at the first score of a run
            return False
        return is_header([*map(str, source)])
    if isinstance(source, np.ndarray):
        return source.dtype.names is not None
    return hasattr(source, "__dataframe__") or (hasattr(source, "columns") and hasattr(source, "__getitem__"))


def _is_column(value: Any) -> bool:
    return hasattr(value, "__len__") and not isinstance(value, Mapping | str)


def frame_table(frame: Any, content: Content, name: str) -> Table:
    """Return the scores or grades of a data frame.

    Raise Refused if a column is missing or ambiguous, or if an id is invalid or repeated.
    """
    if type(frame).__name__ == "LazyFrame":
        frame = frame.collect()
    names = [*_names(frame)]
    roles = roles_of([*map(str, names)], content, name)
    chosen = [names[place] for place in (roles.topic, roles.document, roles.value)]
    topics, documents, values = _columns(frame, chosen)
    return table_of_columns(topics, documents, values, content, name, by_rank=roles.by_rank)


def _names(frame: Any) -> Sequence[Any]:
    if isinstance(frame, Mapping):
        return [*frame]
    if isinstance(frame, np.ndarray):
        return frame.dtype.names or ()
    for attribute in ("column_names", "columns"):  # Arrow has both; its `columns` are not names
        if hasattr(frame, attribute):
            names = getattr(frame, attribute)
            return names() if callable(names) else names  # type: ignore[no-any-return]
    return [*frame.__dataframe__().column_names()]


def _columns(frame: Any, names: Sequence[Any]) -> list[list[Any]]:
    if hasattr(frame, "__getitem__"):
        return [_values(frame[name]) for name in names]
    return interchange_columns(frame.__dataframe__(), names)


def _values(column: Any) -> list[Any]:
    for method in ("tolist", "to_list", "to_pylist"):
        if hasattr(column, method):
            return list(getattr(column, method)())
    return list(column)
