"""`cupel measures`: list of all measures, and the reference page of one."""

import math
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from cupel_client.offline.evaluate_command import read_judgments
from cupel_client.offline.input_files import InputFile
from cupel_client.offline.presentation import measure_reference
from cupel_client.offline.presentation.class_output import write_classes
from cupel_client.output import console, format_option, printable, write_csv, write_json, write_jsonl
from cupel_measures.catalogue.parser import parse, parse_many
from cupel_measures.catalogue.reference import INDENT, MeasureFamily, ReferencePage, families, family_of
from cupel_measures.catalogue.worked_examples import Example
from cupel_measures.explaining.class_lists import list_classes
from cupel_measures.grammar.registry import NAMES, REQUIRED, Declaration, Parameter
from cupel_measures.grammar.syntax import MeasureError

COLUMNS = (
    "name",
    "family",
    "aliases",
    "parameters",
    "at",
    "bounds",
    "aggregate",
    "scale",
    "exact",
    "exempt",
    "source",
    "summary",
)
EACH_DISTANCE = "TOMA(of=nDCG) TOMA(of=nDCG,distance=manhattan) TOMA(of=nDCG,distance=chebyshev)"
"""The measures that TOMA without parameters means for --classes."""
WIDEST = 100
"""Greatest width of a page on a terminal, in columns."""


@click.command()
@click.argument("name", required=False)
@click.option(
    "--family",
    "of_family",
    type=click.Choice([family.name for family in families()]),
    help="List the measures of one family.",
)
@click.option(
    "--example",
    "folder",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="Write the worked example of NAME to a new folder, ready to score.",
)
@click.option(
    "--classes",
    "collection",
    metavar="COLLECTION",
    type=InputFile(),
    help="List the classes into which the measure NAME, such as TOMA, divides the label tuples of a "
    "collection, with their weights.",
)
@format_option("markdown")
def measures(
    name: str | None, of_family: str | None, folder: Path | None, collection: Path | None, form: str
) -> None:
    """List all measures, or show the reference page of one.

    NAME is the name or an alias of a measure, optionally with parameters. With --classes, it can also be
    several measures; TOMA without parameters means its three distances with nDCG.

    \b
    Examples:
      cupel measures
      cupel measures --family diversity
      cupel measures nDCG
      cupel measures "TOMA(of=nDCG@10)"
      cupel measures nDCG --example ndcg-example
      cupel measures TOMA --classes collection.yaml
    """
    if collection is not None:
        _list_classes(name, collection, form)
    elif folder is not None:
        _write_example(name, folder)
    elif name is None:
        _list([family for family in families() if of_family in (None, family.name)], form)
    elif of_family is not None:
        raise click.UsageError("--family applies to the list of measures; omit NAME")
    else:
        _explain(ReferencePage(_declaration(name)), name, form)


def _declaration(text: str) -> Declaration:
    """Return the declaration of the measure that `text` names."""
    if text in NAMES:
        return NAMES[text][0]
    try:
        return parse(text).declaration
    except MeasureError as problem:
        raise click.UsageError(str(problem)) from None


def _list(listed: Sequence[MeasureFamily], form: str) -> None:
    if form == "markdown":
        click.echo(measure_reference.document(listed), nl=False)
    elif form == "table":
        _print_list(listed)
    else:
        data = [_data(page, family) for family in listed for page in family.pages]
        data.sort(key=lambda row: row["name"].lower())
        _write(data, form)


def _explain(page: ReferencePage, text: str, form: str) -> None:
    family = family_of(page.declaration)
    if form == "json":
        write_json({**_data(page, family), **_page_data(page)})
    elif form == "markdown":
        click.echo(measure_reference.page(page), nl=False)
    elif form == "table":
        _print_page(page, family, text)
    else:
        _write([_data(page, family)], form)


def _write(data: list[dict[str, Any]], form: str) -> None:
    if form == "json":
        write_json(data)
    elif form == "jsonl":
        write_jsonl(data)
    else:
        write_csv(COLUMNS, data)


def _data(page: ReferencePage, family: MeasureFamily) -> dict[str, Any]:
    declaration = page.declaration
    return {
        "name": declaration.name,
        "family": family.name,
        "aliases": list(declaration.aliases),
        "parameters": [_parameter(parameter) for parameter in declaration.parameters.values()],
        "at": declaration.at,
        "bounds": [None if math.isinf(bound) else bound for bound in declaration.bounds],
        "aggregate": declaration.aggregate,
        "scale": declaration.scale,
        "exact": declaration.exact is not None,
        "exempt": dict(declaration.exempt),
        "source": declaration.source,
        "summary": declaration.summary,
    }


def _parameter(parameter: Parameter) -> dict[str, Any]:
    required = parameter.default is REQUIRED
    default = None if required or parameter.default is None else str(parameter.default)
    return {
        "name": parameter.name,
        "expects": parameter.kind.expects,
        "needed": required,
        "default": default,
    }


def _page_data(page: ReferencePage) -> dict[str, Any]:
    """Return the fields of the reference page that `_data` does not return."""
    return {
        "documentation": page.declaration.documentation,
        "formulas": page.formulas,
        "scale_rule": page.scale,
        "caveats": page.caveats,
        "examples": [_example(example) for example in page.examples],
    }


def _example(example: Example) -> dict[str, Any]:
    runs = [
        {
            "documents": run.text,
            "values": [
                {"measure": value.measure, "value": float(value.printed), "derivation": value.derivation}
                for value in run.values
            ],
        }
        for run in example.runs
    ]
    return {"judgments": "; ".join(example.judgments), "runs": runs}


def _print_list(listed: Iterable[MeasureFamily]) -> None:
    """Print a line per measure, grouped by family.

    A line has the text, the other names and the summary of the measure.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("measure", no_wrap=True)
    table.add_column("also called")
    table.add_column("summary")
    for family in listed:
        table.add_row(Text(family.name, style="bold"), "", Text(family.title, style="bold"))
        for page in family.pages:
            table.add_row(*map(Text, (page.written, ", ".join(page.aliases), page.declaration.summary)))
        table.add_section()
    console().print(table)
    click.echo(
        "`cupel measures NAME` shows its page. Write parameters in parentheses: "
        '"AP(rel=2,aspect=quality)@100".'
    )


def _print_page(page: ReferencePage, family: MeasureFamily, text: str) -> None:
    """Print the documentation of a measure, its examples, parameters and properties."""
    click.echo(click.style(page.written, bold=True) + "\n")
    width = min(WIDEST, console().width)
    for paragraph in page.paragraphs:
        click.echo(_wrapped(paragraph, width) + "\n")
    for caveat in page.caveats:
        heading = click.style("Caveat:", bold=True)
        click.echo(f"{heading} {_wrapped('Caveat: ' + caveat, width).removeprefix('Caveat: ')}\n")
    if family.introduction:
        click.echo(click.style(family.title, bold=True) + "\n")
        for paragraph in family.introduction:
            click.echo(_wrapped(paragraph, width) + "\n")
    for example in page.examples:
        click.echo(click.style("Example", bold=True) + "\n")
        for line in example.lines():
            click.echo(_filled(line, width, "  ", " " * 8))
        click.echo()
    facts = [("canonical text", str(parse(text)))] if text not in NAMES else []
    _print_table("Parameters", page.parameters, width)
    _print_table("Properties", [*facts, *page.facts], width)


def _wrapped(paragraph: str, width: int) -> str:
    if paragraph.startswith(INDENT):  # formulas are not wrapped
        return paragraph
    return _filled(" ".join(paragraph.split()), width)


def _filled(text: str, width: int, first: str = "", further: str = "") -> str:
    return textwrap.fill(
        text,
        width,
        initial_indent=first,
        subsequent_indent=further,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _print_table(heading: str, rows: Sequence[tuple[str, str]], width: int) -> None:
    """Print names and texts in two columns."""
    click.echo(click.style(heading, bold=True) + "\n")
    left = 4 + max((len(name) for name, _ in rows), default=0)
    for name, text in rows:
        first = f"  {name}".ljust(left)
        click.echo(_filled(text, width, first, " " * left))
    click.echo()


def _list_classes(text: str | None, path: Path, form: str) -> None:
    """List the classes of label tuples of the collection in `path`.

    The classes are those under the measures that `text` names.
    """
    if text is None or form == "markdown":
        raise click.UsageError("--classes requires the NAME of a measure, and a --format other than markdown")
    qrels = read_judgments(path, ()).qrels
    try:
        lists = [
            list_classes(qrels, measure) for measure in parse_many(EACH_DISTANCE if text == "TOMA" else text)
        ]
    except MeasureError as problem:
        raise click.UsageError(printable(str(problem))) from None
    write_classes(lists, form)


def _write_example(name: str | None, folder: Path) -> None:
    """Write the first worked example of a measure.

    Print the commands that score it.
    """
    if name is None:
        raise click.UsageError("--example requires the NAME of a measure")
    example = ReferencePage(_declaration(name)).examples[0]
    try:
        folder.mkdir(parents=True)
        qrels, runs = example.write(folder)
    except OSError as problem:
        raise click.UsageError(f"cannot write {folder}: {problem.strerror}") from None
    for path, run in zip(runs, example.runs, strict=True):
        texts = " ".join(value.measure for value in run.values)
        click.echo(f'cupel evaluate {qrels} {path} -m "{texts}"')
