"""What online verbs print: the same values as tables for people and as json, jsonl and csv for programs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Protocol

import click

from cupel_client import output
from cupel_client.output import console, printable, write_csv, write_json, write_jsonl


class Bar(Protocol):
    """A bar of progress; `set` says how much is done, of how much."""

    def set(self, done: float, total: float, text: str | None = None) -> None: ...


def say(text: str, *, err: bool = False, dim: bool = False) -> None:
    """Print one line that may hold text of strangers."""
    click.echo(click.style(printable(text), dim=True) if dim else printable(text), err=err)


def rows(form: str, columns: Sequence[str], values: Sequence[Mapping[str, Any]]) -> None:
    """Print `values` as json, jsonl or csv."""
    if form == "json":
        write_json(list(values))
    elif form == "jsonl":
        write_jsonl(values)
    else:
        write_csv(columns, values)


def fields(values: Mapping[str, str]) -> None:
    """One line per field, names aligned."""
    width = max(map(len, values))
    for name, value in values.items():
        click.echo(f"{click.style(name.ljust(width), bold=True)}  {printable(value)}")


def plain(value: Any) -> Any:
    """`value` as JSON has it: instants as RFC 3339 text, tuples as lists."""
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, Mapping):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, tuple | list):
        return [plain(one) for one in value]
    return value


def when(instant: datetime) -> str:
    """An instant for people, in UTC as everything here."""
    return f"{instant:%Y-%m-%d %H:%M}"


def decimal(value: float | None) -> str:
    return "-" if value is None else output.decimal(value)


def change(old: float | None, new: float | None) -> str:
    """The signed difference, where there is one."""
    return "" if old is None or new is None else output.decimal(new - old, "+")


def each(values: Iterable[object]) -> list[str]:
    return [str(value) for value in values]


@contextmanager
def progress(text: str) -> Iterator[Bar]:
    """A bar on standard error while something lasts; nothing where that is no terminal."""
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn())
    screen = console(stderr=True)
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as bars:
        task = bars.add_task(printable(text), total=None)

        class Shown:
            def set(self, done: float, total: float, text: str | None = None) -> None:
                bars.update(
                    task, completed=done, total=total, description=None if text is None else printable(text)
                )

        yield Shown()
