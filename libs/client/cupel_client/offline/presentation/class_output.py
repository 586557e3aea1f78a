"""Output of `cupel measures TOMA --classes COLLECTION`.

It lists the classes of label tuples.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import click

from cupel_client.output import console, decimal, printable, write_csv, write_json, write_jsonl
from cupel_measures.explaining.class_lists import ClassList, ListedClass

COLUMNS = ("measure", "class", "distance", "weight", "documents", "labels")
PRINTED_TUPLES = 12
"""Maximum number of tuples of a class in a printed table; the other formats have all of them."""


def write_classes(lists: Sequence[ClassList], form: str) -> None:
    """Write the classes: a table or JSON object per measure, or a line per class."""
    if form == "json":
        write_json([_data(listed) for listed in lists])
    elif form == "jsonl":
        write_jsonl(row for listed in lists for row in _rows(listed))
    elif form == "csv":
        write_csv(COLUMNS, (row for listed in lists for row in _rows(listed)))
    else:
        for listed in lists:
            _print(listed)


def _data(listed: ClassList) -> dict[str, Any]:
    classes = [{name: row[name] for name in COLUMNS[1:]} for row in _rows(listed)]
    return {
        "measure": str(listed.measure),
        "aspects": list(listed.aspects),
        "total": listed.total,
        "all_tuples": listed.all_tuples,
        "classes": classes,
    }


def _rows(listed: ClassList) -> Iterator[dict[str, Any]]:
    for label_class in listed.classes:
        yield {
            "measure": str(listed.measure),
            "class": label_class.number,
            "distance": label_class.distance,
            "weight": label_class.weight,
            "documents": label_class.documents,
            "labels": [list(labels) for labels in label_class.labels],
        }


def _print(listed: ClassList) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    click.echo(printable(f"{listed.measure}: {listed.total} classes of ({', '.join(listed.aspects)})"))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("class", "distance", "weight", "judged documents"):
        table.add_column(heading, justify="right")
    table.add_column("labels", overflow="fold")
    for label_class in listed.classes:
        numbers = (
            label_class.number,
            decimal(label_class.distance),
            label_class.weight,
            label_class.documents,
        )
        table.add_row(*map(str, numbers), Text(_shown(label_class)))
    console().print(table)
    if not listed.all_tuples:
        click.echo("Only labels of judged documents are listed, because too many combinations are possible.")


def _shown(label_class: ListedClass) -> str:
    tuples = [f"({', '.join(map(str, labels))})" for labels in label_class.labels[:PRINTED_TUPLES]]
    more = len(label_class.labels) - len(tuples)
    return printable(" ".join(tuples) + (f" and {more} more" if more else ""))
