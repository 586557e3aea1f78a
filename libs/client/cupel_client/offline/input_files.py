"""Input files of the command line, including pipes and unreadable files."""

import os
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from cupel_measures.findings import Findings, Refused
from cupel_measures.inputs.irds_collections import PREFIX
from cupel_measures.inputs.run_names import STANDARD_INPUT, STDIN, named_files, names_of
from cupel_measures.reading.compression import Limits, open_plain, reopenable
from cupel_measures.reading.content_formats import has_grades, head_of
from cupel_measures.reading.run_files import TAG

PIPES = "pipes"
"""Key of the paths of pipes in the data of the command's context."""
HEAD = 1 << 16
"""Maximum number of bytes to read in order to find the first row of a file."""


class InputFile(click.Path):
    """Path of an input file or folder, or a data set irds:ID.

    Standard input ("-") and pipes, such as `<(zcat run.gz)`, are copied to temporary files.
    """

    def __init__(self) -> None:
        super().__init__(exists=True, readable=False, path_type=Path)

    def convert(
        self,
        value: str,  # type: ignore[override]
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Path:
        if value.startswith(PREFIX):
            return Path(value)
        is_input = value == STANDARD_INPUT
        path = Path(STDIN) if is_input else Path(os.fsdecode(super().convert(value, param, ctx)))
        if ctx is None or (not is_input and (path.is_file() or path.is_dir())):
            return path
        copy = Path(ctx.with_resource(TemporaryDirectory(prefix="cupel-"))) / path.name
        ctx.meta.setdefault(PIPES, {})[copy] = str(path)
        try:
            with nullcontext(sys.stdin.buffer) if is_input else path.open("rb") as stream:
                copy.write_bytes(reopenable(stream, Limits()))  # type: ignore[arg-type]  # the result is bytes for a stream
        except OSError as problem:
            self.fail(f"cannot read {value!r}: {problem.strerror}", param, ctx)
        return copy


def shown_path(path: Path) -> str:
    """Return the path as on the command line, also for the copy of a pipe."""
    return _pipes().get(path, str(path))


def shown_name(name: str) -> str:
    """Return the name of a file for messages: for a pipe, its path."""
    return next((pipe for copy, pipe in _pipes().items() if copy.name == name), name)


def named(findings: Findings, name: str) -> Findings:
    """Return the findings of a file.

    Those of a pipe lack the note that the tag differs from the name.
    """
    if all(copy.name != name for copy in _pipes()) or TAG not in findings.totals:
        return findings
    listed = [finding for finding in findings if finding.code != TAG]
    return Findings(listed, {code: total for code, total in findings.totals.items() if code != TAG})


def _pipes() -> Mapping[Path, str]:
    """Return the path of each copied pipe by the path of its copy."""
    context = click.get_current_context(silent=True)
    return {} if context is None else context.meta.get(PIPES, {})


def looks_like_qrels(path: Path) -> bool:
    """Return whether the first row has the columns of qrels.

    These are four columns, or five columns of which the last two are integers and the second is not Q0, or
    the header of a table of grades. Return False if the file cannot be read, for example because it does not
    exist.
    """
    if has_grades(head_of(path)):
        return True
    row = first_row(path)
    labels = all(re.fullmatch(rb"[+-]?\d+", word) for word in row[3:])
    return len(row) == 4 or (len(row) == 5 and labels and row[1].upper() != b"Q0")


def first_row(path: Path) -> list[bytes]:
    """Return the words of the first line that is neither blank nor a comment.

    Only the first HEAD bytes are read, after decompression, so a longer line is cut. Return an empty list if
    there is no such line or the file cannot be read.
    """
    try:
        with open_plain(path) as stream:
            begin = stream.read(HEAD)
    except (Refused, OSError):
        return []
    rows = (line.split() for line in begin.removeprefix(b"\xef\xbb\xbf").split(b"\n") if line[:1] != b"#")
    return next(filter(None, rows), [])


def named_runs(paths: Sequence[Path]) -> dict[str, Path]:
    """Return runs by distinct names; a folder stands for the files in it.

    A file that is given twice is a usage error.
    """
    try:
        return named_files(paths)
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def run_names(paths: Sequence[Path]) -> list[str]:
    """Return a distinct name for each run.

    A file that is given twice is a usage error.
    """
    try:
        return names_of(paths)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
