"""Explanations of scores as lines of text.

The input is the plain values of `Explanation.as_data`.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import click

from cupel_client.offline.presentation.column_blocks import show_blocks
from cupel_client.output import decimal, printable
from cupel_measures.catalogue.parser import Measure, parse
from cupel_measures.scoring.evaluator import has_exact_values

Data = Mapping[str, Any]

LISTED = 10
"""Number of changed topics that are named."""
MISSING_PARTS = {"parts": "the measure does not combine aspects"}
"""Lines for parts that a measure does not have."""
LISTED_TUPLES = 4
"""Number of label tuples of a class that are shown."""


def show_explanations(run: str, measure: str, explanation: Data) -> None:
    """Print the explanation of the score of a run by one measure.

    explanation: data by part, or None.
    """
    click.echo(click.style(printable(f"{run}  {measure}"), bold=True))
    for name, data in explanation.items():
        for index, line in enumerate(_part_lines(name, data)):
            click.echo(f"  {'' if index else name:<10} {printable(line)}".rstrip())
        if name == "parts" and data is not None and data["combination"] == "classes":
            _show_classes(data)
    if explanation.keys() & {"ties", "judgments", "profiles"} and _may_differ_exactly(parse(measure)):
        click.echo("  computed in floating point (about 15 digits); exact values may differ in later digits")
    click.echo()


def _part_lines(name: str, data: Any) -> Iterator[str]:
    if data is None:
        yield MISSING_PARTS.get(name, "not available for a measure that reads texts")
    else:
        yield from _LINES[name](data)


def _may_differ_exactly(measure: Measure) -> bool:
    """Return whether exact values may differ although their floats are equal.

    This is possible for huge values and for powers of p.
    """
    declared = measure.declaration
    return has_exact_values(measure) and ("p" in declared.parameters or math.isinf(declared.bounds[1]))


def _ties(data: Data) -> Iterator[str]:
    if not data["topics"] and data["range_by"] == "exact":
        yield "no topic's value depends on the order of documents with equal scores"
        return
    method = {
        "exact": "",
        "bounds": " (bounds)",
        "sampled": f" (in {data['shuffles'] or 0:,} shuffles of each topic)",
    }
    extremes = f"{decimal(data['least'])} to {decimal(data['greatest'])}{method[data['range_by']]}"
    yield f"{extremes}, depending on the order of equal scores in {_topics(data['topics'])}"
    error = f", standard error {data['standard_error']:.1g}" if data["standard_error"] is not None else ""
    yield f"{decimal(data['expected'])} expected ({data['expected_by']}{error})"


def _judgments(data: Data) -> Iterator[str]:
    match data["cutoff"]:
        case None:
            where = "of all documents"
        case 1:
            where = "of the documents at rank 1"
        case cutoff:
            where = f"of the first {cutoff} documents"
    shares = ", ".join(f"{share:.1%} ({name})" for name, share in data["unjudged"].items())
    yield f"{shares} {where} are unjudged"
    if data["as_highest"] is None:
        yield f"the value with the highest label for unjudged documents cannot be computed: {data['refused']}"
        return
    as_lowest, as_highest = decimal(data["as_lowest"]), decimal(data["as_highest"])
    yield f"{as_lowest} with the present judgments, {as_highest} if unjudged documents had the highest label"
    if data["least"] is not None:
        yield f"{decimal(data['least'])} to {decimal(data['greatest'])} for any labels of unjudged documents"


def _scale(data: Data) -> Iterator[str]:
    kind = {"neither": "neither interval nor ordinal"}.get(data["type"], data["type"])
    yield f"{kind}; allows {', '.join(data['operations'])}"
    if data["warning"] is not None:
        yield data["warning"]


def _parts(data: Data) -> Iterator[str]:
    if data["combination"] == "classes":
        yield f"documents by class of {', '.join(data['aspects'])}, best first:"
        return
    for aspect in data["aspects"]:
        share = (
            f"contributes {decimal(aspect['contribution'])}"
            if data["combination"] == "mean"
            else f"{aspect['limits']:.0%} of the sum of weight / value over the aspects"
        )
        value = f"{aspect['measure']} {decimal(aspect['value'])}"
        yield f"{aspect['aspect']}: {value}, weight {aspect['weight']:.4g}, {share}"


def _profiles(data: Data) -> Iterator[str]:
    for other in data["others"]:
        if not other["changed"]:
            yield f"{other['profile']}: no change"
            continue
        names = ", ".join(list(other["topics"])[:LISTED]) + (", ..." if other["changed"] > LISTED else "")
        rules = f" by {' and '.join(other['because'])}" if other["because"] else ""
        change = f"{decimal(other['value'])} ({decimal(other['difference'], '+')})"
        yield f"{other['profile']}: {change}, {_topics(other['changed'])} changed{rules}: {names}"


def _topics(number: int) -> str:
    return f"{number:,} topic{'s' * (number != 1)}"


_LINES: Mapping[str, Callable[[Any], Iterator[str]]] = {
    "ties": _ties,
    "judgments": _judgments,
    "scale": _scale,
    "parts": _parts,
    "profiles": _profiles,
}


def _show_classes(data: Data) -> None:
    """Print the number of documents in each band of ranks.

    The numbers are for each class and for unjudged documents.
    """
    rows = [[*_class_cells(item), *item["documents"]] for item in data["classes"] if any(item["documents"])]
    rows.append(["unjudged", "", "", *data["unjudged"]["documents"]])
    keys = [row[:1] for row in rows]
    headings = ["distance", "weight", *(f"{first}-{last}" for first, last in data["ranks"])]
    columns = [(heading, [str(row[place]) for row in rows]) for place, heading in enumerate(headings, 1)]
    show_blocks(["labels"], keys, columns)


def _class_cells(data: Data) -> tuple[str, str, str]:
    """Return the labels, the distance and the weight of a class."""
    tuples = [",".join(map(str, labels)) for labels in data["labels"]]
    more = " ..." if len(tuples) > LISTED_TUPLES else ""
    return "  ".join(tuples[:LISTED_TUPLES]) + more, f"{data['distance']:.4g}", str(data["weight"])
