"""Output of the online commands.

It consists of lines, fields, progress bars, and rows as JSON, JSON Lines or CSV.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Protocol

import click

from cupel_client import output
from cupel_client.output import console, printable, write_csv, write_json, write_jsonl


class ProgressBar(Protocol):
    """A progress bar.

    `set` updates the finished and the total amount of work, and optionally the label.
    """

    def set(self, done: float, total: float, text: str | None = None) -> None: ...


def print_line(text: str, *, err: bool = False, dim: bool = False) -> None:
    """Print one line.

    Control characters are escaped, because the text may come from other users.
    """
    click.echo(click.style(printable(text), dim=True) if dim else printable(text), err=err)


def print_rows(form: str, columns: Sequence[str], values: Sequence[Mapping[str, Any]]) -> None:
    """Print rows as `form`: "json", "jsonl" or "csv".

    `columns` are the columns of the CSV.
    """
    if form == "json":
        write_json(list(values))
    elif form == "jsonl":
        write_jsonl(values)
    else:
        write_csv(columns, values)


def print_fields(values: Mapping[str, str]) -> None:
    """Print one line per field, with the values aligned."""
    width = max(map(len, values))
    for name, value in values.items():
        click.echo(f"{click.style(name.ljust(width), bold=True)}  {printable(value)}")


def json_value(value: Any) -> Any:
    """Return `value` as JSON types: times as RFC 3339 text, tuples as lists."""
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, Mapping):
        return {name: json_value(item) for name, item in value.items()}
    if isinstance(value, tuple | list):
        return [json_value(item) for item in value]
    return value


def format_time(time: datetime) -> str:
    """Return a time as date, hours and minutes, in UTC like all times of the service."""
    return f"{time:%Y-%m-%d %H:%M}"


def format_number(value: float | None) -> str:
    """Return a value with four decimals, or "-" for None."""
    return "-" if value is None else output.decimal(value)


def format_change(old: float | None, new: float | None) -> str:
    """Return the signed difference of two values, or "" if one is missing."""
    return "" if old is None or new is None else output.decimal(new - old, "+")


@contextmanager
def progress_bar(text: str) -> Iterator[ProgressBar]:
    """Show a progress bar on standard error if that is a terminal."""
    # Import rich late: the formats for programs do not need it, and its import is slow.
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn())
    screen = console(stderr=True)
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as bars:
        task = bars.add_task(printable(text), total=None)

        class RichBar:
            def set(self, done: float, total: float, text: str | None = None) -> None:
                label = None if text is None else printable(text)
                bars.update(task, completed=done, total=total, description=label)

        yield RichBar()
