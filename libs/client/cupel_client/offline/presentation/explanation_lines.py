"""What is told of a value, as lines for people; it comes as plain values (`Explanation.as_data`)."""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import click

from cupel_client.offline.presentation.column_blocks import show_blocks
from cupel_client.output import decimal, printable
from cupel_measures.catalogue.parser import Measure, parse
from cupel_measures.scoring.evaluator import has_exact_values

Told = Mapping[str, Any]

LISTED = 10
"""Topics that are named, of those that change."""
NOTHING = {"parts": "it combines no scores or labels"}
"""What is said where there is nothing to tell."""
TUPLES = 4
"""Label tuples of a class that are shown."""


def show_explanations(run: str, measure: str, told: Told) -> None:
    """Print what is told of one measure's value on a run."""
    click.echo(click.style(printable(f"{run}  {measure}"), bold=True))
    for name, data in told.items():
        lines = (
            [NOTHING.get(name, "not told of a measure that reads texts")]
            if data is None
            else _LINES[name](data)
        )
        for place, line in enumerate(lines):
            click.echo(f"  {'' if place else name:<10} {printable(line)}".rstrip())
        if name == "parts" and data is not None and data["combination"] == "classes":
            _show_classes(data)
    if told.keys() & {"ties", "judgments", "profiles"} and _finer_than_floats(parse(measure)):
        click.echo("  told by floats, of some 15 digits: exact values may differ further down")
    click.echo()


def _finer_than_floats(measure: Measure) -> bool:
    """Whether exact values may differ where floats are equal: they are huge, or weigh ranks by powers."""
    declared = measure.declaration
    return has_exact_values(measure) and ("p" in declared.parameters or math.isinf(declared.bounds[1]))


def _ties(data: Told) -> Iterator[str]:
    if not data["topics"] and data["range_by"] == "exact":
        yield "no topic's value depends on the order of documents with equal scores"
        return
    how = {
        "exact": "",
        "bounds": " at the outside",
        "sampled": f" in {data['shuffles'] or 0:,} shuffles of each topic",
    }
    extremes = f"{decimal(data['least'])} to {decimal(data['greatest'])}{how[data['range_by']]}"
    yield f"{extremes}, by the order of equal scores in {_topics(data['topics'])}"
    error = f", standard error {data['standard_error']:.1g}" if data["standard_error"] is not None else ""
    yield f"{decimal(data['expected'])} expected ({data['expected_by']}{error})"


def _judgments(data: Told) -> Iterator[str]:
    where = "of all documents" if data["cutoff"] is None else f"of the first {data['cutoff']} documents"
    shares = ", ".join(f"{share:.1%} ({name})" for name, share in data["unjudged"].items())
    yield f"{shares} {where} unjudged"
    if data["as_highest"] is None:
        yield f"they can't all have the highest label: {data['refused']}"
        return
    as_lowest, as_highest = decimal(data["as_lowest"]), decimal(data["as_highest"])
    yield f"{as_lowest} as it stands, {as_highest} if they had the highest label"
    if data["least"] is not None:
        yield f"{decimal(data['least'])} to {decimal(data['greatest'])} whatever they are"


def _scale(data: Told) -> Iterator[str]:
    kind = {"neither": "neither interval nor ordinal"}.get(data["type"], data["type"])
    yield f"{kind}; allows {', '.join(data['operations'])}"
    if data["warning"] is not None:
        yield data["warning"]


def _parts(data: Told) -> Iterator[str]:
    if data["combination"] == "classes":
        yield f"documents by class of {', '.join(data['aspects'])}, best first:"
    else:
        for one in data["aspects"]:
            share = (
                f"brings {decimal(one['contribution'])}"
                if data["combination"] == "mean"
                else f"{one['limits']:.0%} of what limits it"
            )
            value = f"{one['measure']} {decimal(one['value'])}"
            yield f"{one['aspect']}: {value}, weight {one['weight']:.4g}, {share}"


def _profiles(data: Told) -> Iterator[str]:
    for one in data["others"]:
        if not one["changed"]:
            yield f"{one['profile']}: the same"
            continue
        named = ", ".join(list(one["topics"])[:LISTED]) + (", ..." if one["changed"] > LISTED else "")
        rules = f" by {' and '.join(one['because'])}" if one["because"] else ""
        change = f"{decimal(one['value'])} ({decimal(one['difference'], '+')})"
        yield f"{one['profile']}: {change}, {_topics(one['changed'])}{rules}: {named}"


def _topics(number: int) -> str:
    return f"{number:,} topic{'s' * (number != 1)}"


_LINES: Mapping[str, Callable[[Any], Iterator[str]]] = {
    "ties": _ties,
    "judgments": _judgments,
    "scale": _scale,
    "parts": _parts,
    "profiles": _profiles,
}


def _show_classes(data: Told) -> None:
    """A row per class that has documents, and one for unjudged ones: how many stand in each band of ranks."""
    rows = [[*_class_of(one), *one["documents"]] for one in data["classes"] if any(one["documents"])]
    rows.append(["unjudged", "", "", *data["unjudged"]["documents"]])
    keys = [row[:1] for row in rows]
    headings = ["distance", "weight", *(f"{first}-{last}" for first, last in data["ranks"])]
    columns = [(heading, [str(row[place]) for row in rows]) for place, heading in enumerate(headings, 1)]
    show_blocks(["labels"], keys, columns)


def _class_of(one: Told) -> tuple[str, str, str]:
    labels = [",".join(map(str, labels)) for labels in one["labels"]]
    more = " ..." if len(labels) > TUPLES else ""
    return "  ".join(labels[:TUPLES]) + more, f"{one['distance']:.4g}", str(one["weight"])
