"""Files that a command line names: pipes among them, and some that can't be read."""

import os
import re
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from cupel_measures.findings import Finding, Findings, Refused, declare
from cupel_measures.reading.compression import Limits, open_plain, reopenable

UNREADABLE = declare(
    "file-unreadable",
    "error",
    "a file can't be read",
    "name a file, not a folder, that you may read",
)
HEAD = 1 << 16
"""Bytes in which the first row of a file is looked for."""


class InputFile(click.Path):
    """A path; of what can be read only once (a pipe, as of `<(zcat run.gz)`), that of a copy."""

    def __init__(self) -> None:
        super().__init__(exists=True, readable=False, path_type=Path)

    def convert(
        self,
        value: str,  # type: ignore[override]
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Path:
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        if ctx is None or path.is_file() or path.is_dir():
            return path
        copy = Path(ctx.with_resource(TemporaryDirectory(prefix="cupel-"))) / path.name
        try:
            with path.open("rb") as stream:
                copy.write_bytes(reopenable(stream, Limits()))  # type: ignore[arg-type]  # of a stream: bytes
        except OSError as problem:
            self.fail(f"{value!r} can't be read: {problem.strerror}", param, ctx)
        return copy


def unreadable(problem: OSError, path: Path) -> Findings:
    """The finding that `path` could not be read, as `problem` says."""
    findings = Findings()
    file = Path(problem.filename).name if isinstance(problem.filename, str) else path.name
    findings.add(Finding(UNREADABLE, f"it can't be read: {problem.strerror or problem}", file))
    return findings


def looks_like_qrels(path: Path) -> bool:
    """Whether the first row has the four columns of qrels, or five that end in labels of two aspects."""
    row = first_row(path)
    labels = all(re.fullmatch(rb"[+-]?\d+", word) for word in row[3:])
    return len(row) == 4 or (len(row) == 5 and labels and row[1].upper() != b"Q0")


def first_row(path: Path) -> list[bytes]:
    """The words of the first line that is neither blank nor a comment; none where there is no such line."""
    try:
        with open_plain(path) as stream:
            begin = stream.read(HEAD)
    except (Refused, OSError):
        return []
    rows = (line.split() for line in begin.removeprefix(b"\xef\xbb\xbf").split(b"\n") if line[:1] != b"#")
    return next(filter(None, rows), [])
