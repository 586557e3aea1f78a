"""Tables in Parquet, if a package that reads Parquet is installed."""

import io
from collections.abc import Callable
from importlib import import_module
from typing import Any

from cupel_measures.findings import Finding, Findings, Refused, declare
from cupel_measures.inputs.data_frames import frame_table
from cupel_measures.inputs.topic_tables import Table
from cupel_measures.reading.column_names import Content

NO_READER = declare(
    "package-missing",
    "error",
    "a source needs a package that is not installed",
    "install the package, or convert the file to a format that Cupel reads itself",
)
DAMAGED = declare(
    "parquet-damaged",
    "error",
    "a Parquet file cannot be read",
    "create the file again and send all of it",
)
READERS = (("pyarrow.parquet", "read_table"), ("polars", "read_parquet"), ("pandas", "read_parquet"))
"""Modules and functions that read Parquet, in the order in which they are tried."""


def parquet_table(data: bytes, content: Content, name: str) -> Table:
    """Return the scores or grades of a Parquet file.

    Raise Refused if no package can read Parquet, or if a column or an id is missing or invalid.
    """
    for module, function in READERS:
        try:
            read: Callable[[Any], Any] = getattr(import_module(module), function)
            frame = read(io.BytesIO(data))
        except ImportError:  # also raised by pandas, if it has no engine
            continue
        except Exception as problem:  # each package has its own exceptions
            raise _refused(DAMAGED, f"cannot be read as Parquet: {problem}", name) from problem
        return frame_table(frame, content, name)
    needed = "reading Parquet needs the package pyarrow or polars, which is not installed"
    raise _refused(NO_READER, needed, name)


def _refused(code: str, message: str, name: str) -> Refused:
    findings = Findings()
    findings.add(Finding(code=code, message=message, file=name))
    return Refused(findings)
