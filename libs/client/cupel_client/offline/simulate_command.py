"""`cupel simulate`: what measures of understandability make of runs made by chance."""

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
    help="Chance that a document is relevant; repeat it for several.",
)
@click.option(
    "--mu",
    type=float,
    multiple=True,
    default=DEFAULTS.mu,
    show_default=True,
    help="Mean of the labels of understandability, from 0 (very easy) to 100; repeat it for several.",
)
@click.option(
    "--sigma",
    default=DEFAULTS.sigma,
    show_default=True,
    help="Standard deviation of the labels, which the paper calls their variance.",
)
@click.option("--runs", default=DEFAULTS.runs, show_default=True, help="Runs for each chance and mean.")
@click.option("--depth", default=DEFAULTS.depth, show_default=True, help="Documents of a run.")
@click.option("--rho", default=DEFAULTS.rho, show_default=True, help="Persistence of the reader.")
@click.option("--threshold", default=DEFAULTS.threshold, show_default=True, help="Hardest label understood.")
@click.option("--strict", is_flag=True, help="Labels at the threshold are not understood.")
@click.option(
    "--forcing",
    type=click.Choice(get_args(Forcing)),
    default=DEFAULTS.forcing,
    show_default=True,
    help="How labels outside 0 to 100 are brought in.",
)
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="The same seed, the same runs."
)
@format_option()
def simulate(form: str, seed: int, **given: Any) -> None:
    """Show what RBP, uRBP, RBP_u and H make of simulated runs.

    In each run every document is relevant by one chance and understandable by another, as in section 4 of
    Palotti, Zuccon and Hanbury, CIKM 2018. Printed are mean and standard deviation over the runs, and the
    mean that is expected where it has a closed form.

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
    for one in cells:
        expected = "" if one.expected is None else f"{one.expected:.4f}"
        numbers = (f"{one.mean:.4f}", f"{one.deviation:.4f}", expected)
        table.add_row(f"{one.topicality:g}", f"{one.mu:g}", one.measure, *numbers)
    console().print(table)
