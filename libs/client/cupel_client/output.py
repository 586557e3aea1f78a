"""What the command prints: tables for people, and json, jsonl and csv for programs."""

import csv
import io
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from rich.console import Console

FORMATS = ("table", "json", "jsonl", "csv")
WIDTH_IN_FILES = 160
"""Columns of a table that is written to a file or a pipe."""

_Command = TypeVar("_Command", bound=Callable[..., Any])


def format_option(*more: str) -> Callable[[_Command], _Command]:
    """The option --format, with FORMATS and `more`."""
    return click.option(
        "--format",
        "form",
        type=click.Choice((*FORMATS, *more)),
        default="table",
        show_default=True,
        help="How to print the result.",
    )


def console(*, stderr: bool = False) -> "Console":
    """A rich console that neither wraps at 80 columns in a file nor guesses at markup and numbers."""
    from rich.console import Console  # late: programs' formats do without it

    file = sys.stderr if stderr else sys.stdout
    width = None if file.isatty() else WIDTH_IN_FILES
    return Console(file=file, width=width, highlight=False, markup=False, emoji=False)


def prepare() -> None:
    """Make printing never fail for a character: what the encoding lacks is written as an escape."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if sys.stdout is None:  # closed by who called: there is nobody to print for
        raise click.ClickException("standard output is closed")


def printable(text: str) -> str:
    """`text` of a file or a service as people may see it: what could control their terminal as escapes."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


LARGE = 1e11
"""From here on four decimals are more digits than a float is sure of."""


def decimal(value: float, sign: str = "") -> str:
    """A value for people, with four decimals; a huge one by its exponent, with no digit that is not known.

    sign: "+" for a difference.
    """
    return f"{value:{sign}.4f}" if abs(value) < LARGE else f"{value:{sign}.14e}"


def give_up() -> None:
    """Print nothing more: what is still to be written goes nowhere, and so can't fail at the end."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def write_json(value: Any) -> None:
    """One indented JSON value."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def write_jsonl(rows: Iterable[Mapping[str, Any]]) -> None:
    """One JSON object a line; numbers have every digit."""
    for row in rows:
        click.echo(json.dumps(row, ensure_ascii=False))


def write_csv(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """A header and a line per row; numbers have every digit, lists and mappings are JSON."""
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
