"""Output of the command: tables for people; json, jsonl and csv for programs."""

import csv
import io
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cupel_client.environment import colour_system

if TYPE_CHECKING:
    from rich.console import Console

FORMATS = ("table", "json", "jsonl", "csv")
WIDTH_IN_FILES = 160
"""Width, in columns, of tables in files and pipes."""

LINES_AT_ONCE = 1000
"""Number of lines that are written together, because the terminal checks of `click.echo` are slow."""

_Command = TypeVar("_Command", bound=Callable[..., Any])


def format_option(*more: str, notes: str = "") -> Callable[[_Command], _Command]:
    """Return the option --format, with FORMATS and `more`.

    notes: on the formats, for the help.
    """
    return click.option(
        "--format",
        "form",
        type=click.Choice((*FORMATS, *more)),
        default="table",
        show_default=True,
        help=f"Output format.{notes}",
    )


scale_notes_option = click.option(
    "--scale-notes",
    is_flag=True,
    help="Also print notes on means of measures without an interval scale. JSON always has them.",
)


def console(*, stderr: bool = False) -> "Console":
    """Return a rich console that highlights nothing.

    Output to a file or pipe is WIDTH_IN_FILES columns wide, instead of rich's default of 80.
    """
    from rich.console import Console  # imported late, because formats for programs do not need it

    file = sys.stderr if stderr else sys.stdout
    width = None if file.isatty() else WIDTH_IN_FILES
    return Console(
        file=file, width=width, color_system=colour_system(), highlight=False, markup=False, emoji=False
    )


def prepare() -> None:
    """Make printing robust: write characters that the encoding lacks as escapes."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if sys.stdout is None:  # the caller closed it
        raise click.ClickException("standard output is closed")


def printable(text: str) -> str:
    """Return text of a file or service, made safe for a terminal.

    Control characters become escapes.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


LARGE = 1e11
"""Smallest absolute value at which floats no longer determine four decimals."""


def decimal(value: float, sign: str = "") -> str:
    """Return a value with four decimals, or with an exponent if it is huge.

    sign: "+" for a difference.
    """
    return f"{value:{sign}.4f}" if abs(value) < LARGE else f"{value:{sign}.14e}"


def discard_output() -> None:
    """Redirect standard output to the null device.

    Flushing at exit then cannot fail.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def write_json(value: Any) -> None:
    """Write one indented JSON value."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def write_jsonl(rows: Iterable[Mapping[str, Any]]) -> None:
    """Write one JSON object per line, with numbers in full precision."""
    encode = json.JSONEncoder(ensure_ascii=False).encode
    write_lines(encode(row) + "\n" for row in rows)


def write_lines(lines: Iterable[str]) -> None:
    """Write lines, which end with a newline, in blocks."""
    lines = iter(lines)
    while block := "".join(islice(lines, LINES_AT_ONCE)):
        sys.stdout.write(block)
    sys.stdout.flush()


def write_csv(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Write a header and a line per row.

    Numbers are in full precision, lists and mappings are JSON.
    """
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_cell(row.get(column)) for column in columns])


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False)
    return "" if value is None else printable(str(value))
