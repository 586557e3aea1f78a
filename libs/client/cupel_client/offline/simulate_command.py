"""`cupel simulate`: measures of understandability on simulated runs."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, get_args

import click

from cupel_client.output import console, format_option, write_csv, write_json, write_jsonl
from cupel_measures.simulation import Cell, Forcing, SimulationSettings
from cupel_measures.simulation import simulate as simulated

COLUMNS = ("topicality", "mu", "measure", "mean", "deviation", "expected")
DEFAULTS = SimulationSettings()


@click.command()
@click.option(
    "--topicality",
    type=float,
    multiple=True,
    default=DEFAULTS.topicality,
    show_default=True,
    help="Probability that a document is relevant; may be given several times.",
)
@click.option(
    "--mu",
    type=float,
    multiple=True,
    default=DEFAULTS.mu,
    show_default=True,
    help="Mean label of understandability, from 0 (very easy) to 100; may be given several times.",
)
@click.option(
    "--sigma",
    default=DEFAULTS.sigma,
    show_default=True,
    help="Standard deviation of the labels (the paper calls it variance).",
)
@click.option(
    "--runs",
    default=DEFAULTS.runs,
    show_default=True,
    help="Number of runs per combination of topicality and mu.",
)
@click.option("--depth", default=DEFAULTS.depth, show_default=True, help="Number of documents per run.")
@click.option("--rho", default=DEFAULTS.rho, show_default=True, help="Persistence of the user model.")
@click.option(
    "--threshold",
    default=DEFAULTS.threshold,
    show_default=True,
    help="Highest label that counts as understandable.",
)
@click.option("--strict", is_flag=True, help="Count labels at the threshold as not understandable.")
@click.option(
    "--forcing",
    type=click.Choice(get_args(Forcing)),
    default=DEFAULTS.forcing,
    show_default=True,
    help="Treatment of labels outside 0 to 100: clip them, or draw them again.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Random seed.")
@format_option()
def simulate(form: str, seed: int, **given: Any) -> None:
    """Score simulated runs by RBP, uRBP, RBP_u and H.

    Relevance and understandability of each document are drawn independently, as in section 4 of Palotti,
    Zuccon and Hanbury, CIKM 2018. The table shows mean and standard deviation over the runs, and the expected
    mean if it has a closed form.

    \b
    Examples:
      cupel simulate
      cupel simulate --topicality 0.3 --topicality 0.6 --mu 40 --seed 7 --format csv
    """
    try:
        cells = simulated(SimulationSettings(**given), seed)
    except ValueError as problem:
        raise click.UsageError(str(problem)) from None
    rows = [asdict(cell) for cell in cells]
    if form == "json":
        write_json({"settings": {**asdict(SimulationSettings(**given)), "seed": seed}, "cells": rows})
    elif form == "jsonl":
        write_jsonl(rows)
    elif form == "csv":
        write_csv(COLUMNS, rows)
    else:
        _print(cells)


def _print(cells: Sequence[Cell]) -> None:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in COLUMNS:
        table.add_column(heading, justify="left" if heading == "measure" else "right")
    for cell in cells:
        expected = "" if cell.expected is None else f"{cell.expected:.4f}"
        numbers = (f"{cell.mean:.4f}", f"{cell.deviation:.4f}", expected)
        table.add_row(f"{cell.topicality:g}", f"{cell.mu:g}", cell.measure, *numbers)
    console().print(table)
