"""`cupel measures`: list the measures, or explain one."""

import math
from collections.abc import Iterable
from typing import Any

import click

from cupel_client.output import console, format_option, write_csv, write_json, write_jsonl
from cupel_measures.grammar import all_declarations, parse
from cupel_measures.registry import NAMES, REQUIRED, Declaration, Parameter
from cupel_measures.syntax import MeasureError
from cupel_measures.trec_names import trec_name

COLUMNS = ("name", "aliases", "parameters", "at", "bounds", "aggregate", "scale", "source", "summary")


@click.command()
@click.argument("name", required=False)
@format_option()
def measures(name: str | None, form: str) -> None:
    """List the measures, or explain one.

    NAME is a measure, an alias, or a whole text with parameters.

    \b
    Examples:
      cupel measures
      cupel measures nDCG
      cupel measures "TOMA(of=nDCG@10)"
    """
    found = all_declarations() if name is None else (_declaration(name),)
    data = [_data(declaration) for declaration in found]
    if form == "json":
        write_json(data if name is None else {**data[0], "documentation": found[0].documentation})
    elif form == "jsonl":
        write_jsonl(data)
    elif form == "csv":
        write_csv(COLUMNS, data)
    elif name is None:
        _print_list(found)
    else:
        _print_page(found[0], name)


def _declaration(text: str) -> Declaration:
    """The measure that a name or a whole text is about."""
    if text in NAMES:
        return NAMES[text][0]
    try:
        return parse(text).declaration
    except MeasureError as problem:
        raise click.UsageError(str(problem)) from None


def _data(declaration: Declaration) -> dict[str, Any]:
    return {
        "name": declaration.name,
        "aliases": list(declaration.aliases),
        "parameters": [_parameter(one) for one in declaration.parameters.values()],
        "at": declaration.at,
        "bounds": [None if math.isinf(bound) else bound for bound in declaration.bounds],
        "aggregate": declaration.aggregate,
        "scale": declaration.scale,
        "source": declaration.source,
        "summary": declaration.summary,
    }


def _parameter(parameter: Parameter) -> dict[str, Any]:
    needed = parameter.default is REQUIRED
    default = None if needed or parameter.default is None else str(parameter.default)
    return {
        "name": parameter.name,
        "expects": parameter.kind.expects,
        "needed": needed,
        "default": default,
    }


def _print_list(declarations: Iterable[Declaration]) -> None:
    """A line per measure: how it is written, its other names, what it is."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("measure", "also called", "what it is"):
        table.add_column(heading, overflow="fold")
    for one in declarations:
        cells = (_written(one), ", ".join(_aliases(one)), one.summary)
        table.add_row(*map(Text, cells))
    console().print(table)
    click.echo(
        '`cupel measures NAME` explains one. Parameters stand in brackets: "AP(rel=2,aspect=quality)@100".'
    )


def _written(declaration: Declaration) -> str:
    """The shortest text of a measure: with the parameters that it needs, and its cutoff if it has one."""
    parts = declaration.parameters.values()
    needed = [one.name for one in parts if one.default is REQUIRED and one.name != declaration.at]
    inside = ",".join("of=nDCG@10" if name == "of" else f"{name}=..." for name in needed)
    text = declaration.name + (f"({inside})" if inside else "")
    if declaration.at is None:
        return text
    symbol = "k" if declaration.at == "cutoff" else declaration.at
    return (
        f"{text}@{symbol}"
        if declaration.parameters[declaration.at].default is REQUIRED
        else f"{text}[@{symbol}]"
    )


def _aliases(declaration: Declaration) -> list[str]:
    """Other names: aliases, and trec_eval's name where it has another."""
    trec = trec_name(_example(declaration))
    return [*declaration.aliases, *([] if trec == _example(declaration) else [trec])]


def _example(declaration: Declaration) -> str:
    """A text of the measure that is complete."""
    if declaration.at is None or declaration.parameters[declaration.at].default is not REQUIRED:
        return _written(declaration).partition("[")[0]
    return f"{declaration.name}@{'0.1' if declaration.at == 'recall' else '10'}"


def _print_page(declaration: Declaration, asked: str) -> None:
    """A measure's documentation, its parameters, and what its values mean."""
    click.echo(f"{click.style(_written(declaration), bold=True)}\n\n{declaration.documentation}\n")
    rows = [(one.name, _expectation(one, declaration)) for one in declaration.parameters.values()]
    rows += [
        ("", ""),
        ("also called", ", ".join(_aliases(declaration)) or "-"),
        ("values", _bounds(declaration)),
        ("over topics", declaration.aggregate),
        ("scale", declaration.scale),
        ("source", declaration.source),
    ]
    if asked not in NAMES:
        rows.insert(-6, ("", ""))
        rows.insert(-6, ("canonical text", str(parse(asked))))
    width = max(len(name) for name, _ in rows)
    for name, text in rows:
        click.echo(f"  {name:<{width}}  {text}".rstrip())


def _expectation(parameter: Parameter, declaration: Declaration) -> str:
    """What a parameter takes and what it is without being given."""
    after = " (written after @)" if parameter.name == declaration.at else ""
    if parameter.default is REQUIRED:
        return f"{parameter.kind.expects}{after}; needed"
    left_out = _DEFAULTS | ({"rel": "1"} if declaration.subtopics else {})
    default = left_out.get(parameter.name, "none") if parameter.default is None else str(parameter.default)
    return f"{parameter.kind.expects}{after}; default: {default}"


_DEFAULTS = {
    "cutoff": "the whole ranking",
    "rel": "the aspect's threshold",
    "aspect": "the first of the collection",
    "aspects": "all of the collection",
    "weights": "equal",
    "understandability": "all but the first, or the topical one",
    "thresholds": "the aspects'",
    "gains": "the aspect's",
    "max_rel": "the scale's greatest gain",
    "levels": "0, 0.1, ..., 1",
    "terms": "all",
    "documents": "not known",
    "embedding": "the aspects'",
}
"""What leaving out a parameter of these names means."""


def _bounds(declaration: Declaration) -> str:
    low, high = declaration.bounds
    if math.isinf(low):
        return "any number"
    return f"from {low:g}" + ("" if math.isinf(high) else f" to {high:g}")
