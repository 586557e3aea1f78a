"""Runs from any source: files, and tables in memory."""

import glob
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cupel_measures.findings import Refused
from cupel_measures.inputs.run_inputs import FileRun, RunInput
from cupel_measures.inputs.run_names import names_of
from cupel_measures.inputs.table_runs import TableRun
from cupel_measures.inputs.topic_tables import nesting, table_of
from cupel_measures.reading.unreadable_files import unreadable

UNNAMED = "run"
"""Name of a run that is given as a table without a name."""

Runs = Mapping[str, RunInput]
"""Runs by name."""


def runs(source: Any, *, name: str = UNNAMED) -> dict[str, RunInput]:
    """Return runs by name, in the given order.

    source: a path, a pattern such as "runs/*.gz", or a list of both; a dictionary from topic to document to
    score, or another table of topics, documents and scores; or a dictionary from name to such a source. Files
    are read when they are scored. name: the name of a run that is given as a table without a name.

    Raise FileNotFoundError if a pattern has no file, ValueError if a file is given twice, Refused if ids of a
    table are invalid, and TypeError for an unknown kind of source.
    """
    if isinstance(source, str | Path) or _is_paths(source):
        paths = [
            path for item in ([source] if isinstance(source, str | Path) else source) for path in _files(item)
        ]
        return {name: FileRun(path) for name, path in zip(names_of(paths), paths, strict=True)}
    if _is_by_name(source):
        return {str(name): _one(part, str(name)) for name, part in source.items()}
    return {name: _one(source, name)}


def _one(source: Any, name: str) -> RunInput:
    if isinstance(source, FileRun | TableRun):
        return source
    if isinstance(source, str | Path):
        return FileRun(Path(source))
    return TableRun(name, table_of(source, "score", name))


def _is_paths(source: Any) -> bool:
    return (
        isinstance(source, list | tuple) and bool(source) and all(isinstance(p, str | Path) for p in source)
    )


def _is_by_name(source: Any) -> bool:
    """Return whether the keys of a dictionary are names of runs, not topics."""
    if not isinstance(source, Mapping) or not source:
        return False
    return nesting(source) == 3 or not all(isinstance(part, Mapping) for part in source.values())


def _files(pattern: str | Path) -> list[Path]:
    """Return the file with this path, or the files that match the pattern.

    The files are sorted by name.
    """
    if Path(pattern).exists() or not glob.has_magic(str(pattern)):
        path = Path(pattern)
        if not path.is_file():
            raise Refused(unreadable(FileNotFoundError(2, "no such file"), path))
        return [path]
    found = sorted(map(Path, glob.glob(str(pattern), recursive=True)))
    if not found:
        raise FileNotFoundError(2, "no file matches the pattern", str(pattern))
    return found
