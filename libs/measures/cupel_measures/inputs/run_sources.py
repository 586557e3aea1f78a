"""Runs from any source: files, and tables and arrays in memory."""

import glob
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cupel_measures.findings import Refused
from cupel_measures.inputs.array_runs import ArrayRun
from cupel_measures.inputs.run_inputs import FileRun, RunInput
from cupel_measures.inputs.run_names import STANDARD_INPUT, STDIN, named_files
from cupel_measures.inputs.table_runs import TableRun
from cupel_measures.inputs.table_sources import is_by_name, table_of
from cupel_measures.reading.unreadable_files import unreadable

UNNAMED = "run"
"""Name of a run that is given as a table without a name."""

Runs = Mapping[str, RunInput]
"""Runs by name."""


def runs(source: Any, *, name: str = UNNAMED) -> dict[str, RunInput]:
    """Return runs by name, in the given order.

    source: a path, a pattern such as "runs/*.gz", a folder (its files are named by their paths in it), "-"
    for standard input, or a list of these; a dictionary from topic to document to score, a data frame or
    other named columns, records of topic, document and score, or the result of `array_run`; or a dictionary
    from name to such a source. Files are read when they are scored, in any format that INPUTS.md lists.
    name: the name of a run that is given as a table without a name.

    Raise FileNotFoundError if a pattern has no file, ValueError if a file is given twice, Refused if columns
    or ids of a table are invalid, and TypeError for an unknown kind of source.
    """
    if isinstance(source, str | Path):
        source = [source]
    if _is_paths(source):
        return _from_files(source)
    if is_by_name(source):
        return {str(name): _one(part, str(name)) for name, part in source.items()}
    return {name: _one(source, name)}


def _one(source: Any, name: str) -> RunInput:
    if isinstance(source, FileRun | TableRun | ArrayRun):
        return source
    if isinstance(source, str | Path):
        return (
            FileRun(Path(STDIN), sys.stdin.buffer.read())
            if source == STANDARD_INPUT
            else FileRun(Path(source))
        )
    return TableRun(name, table_of(source, "score", name))


def _from_files(sources: Sequence[str | Path]) -> dict[str, RunInput]:
    paths = [path for item in sources if item != STANDARD_INPUT for path in _files(item)]
    found: dict[str, RunInput] = {name: FileRun(path) for name, path in named_files(paths).items()}
    if STANDARD_INPUT in sources:
        found[STDIN] = _one(STANDARD_INPUT, STDIN)
    return found


def _is_paths(source: Any) -> bool:
    return (
        isinstance(source, list | tuple) and bool(source) and all(isinstance(p, str | Path) for p in source)
    )


def _files(pattern: str | Path) -> list[Path]:
    """Return the file or folder with this path, or the files that match the pattern.

    The files are sorted by name.
    """
    if Path(pattern).exists() or not glob.has_magic(str(pattern)):
        path = Path(pattern)
        if not path.is_file() and not path.is_dir():
            raise Refused(unreadable(FileNotFoundError(2, "no such file"), path))
        return [path]
    found = sorted(map(Path, glob.glob(str(pattern), recursive=True)))
    if not found:
        raise FileNotFoundError(2, "no file matches the pattern", str(pattern))
    return found
