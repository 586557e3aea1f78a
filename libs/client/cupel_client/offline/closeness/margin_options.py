"""Options of `cupel compare` for comparisons with a margin, and their computation."""

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, get_args

import click

from cupel_measures.catalogue.parser import parse
from cupel_measures.comparing.closeness.margins import MarginTest
from cupel_measures.evaluation.margin_comparison import MarginChoices
from cupel_measures.grammar.syntax import MeasureError

_Command = TypeVar("_Command", bound=Callable[..., Any])


class MarginParameter(click.ParamType[tuple[str | None, float]]):
    """Type of the option value NUMBER or MEASURE=NUMBER.

    The result is the canonical text of the measure, or None without MEASURE, and the number.
    """

    name = "[MEASURE=]NUMBER"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str | None, float]:
        text, separator, number = value.rpartition("=")
        try:
            margin = float(number)
        except ValueError:
            self.fail(f"expected a number such as 0.01, or MEASURE=NUMBER, got {value!r}", param, ctx)
        if not 0 < margin < math.inf:
            self.fail(f"the margin must be a positive number, got {number}", param, ctx)
        try:
            return (str(parse(text)) if separator else None), margin
        except MeasureError as problem:
            self.fail(str(problem), param, ctx)


def margin_options(command: _Command) -> _Command:
    """Add --margin, --margin-test and --bayes to a command.

    They become the arguments margins, margin_test and bayes.
    """
    for option in (
        click.option(
            "--bayes",
            is_flag=True,
            help="Also report posterior probabilities that a difference is below -M, from -M to M, and "
            "above M (--margin M).",
        ),
        click.option(
            "--margin-test",
            type=click.Choice(get_args(MarginTest)),
            default="t",
            show_default=True,
            help="One-sided test for the verdicts of --margin.",
        ),
        click.option(
            "--margin",
            "margins",
            multiple=True,
            type=MarginParameter(),
            help="Largest difference M that does not matter, in the unit of the measure. Adds a verdict such "
            "as 'no worse' to each pair. May be given several times.",
        ),
    ):
        command = option(command)
    return command


def check_margins(choices: MarginChoices, measures: Sequence[str], alpha: float, form: str) -> None:
    """Raise click.UsageError if the options contradict each other or the measures."""
    if not choices.margins:
        if choices.bayes:
            raise click.UsageError("--bayes requires --margin")
        return
    texts = [text for text, _ in choices.margins]
    if repeated := [text or "all measures" for text in texts if texts.count(text) > 1]:
        raise click.UsageError(f"--margin is given twice for {repeated[0]}")
    if unknown := [text for text in texts if text is not None and text not in measures]:
        raise click.UsageError(f"--margin names {unknown[0]}, which is not compared; add it to -m")
    if alpha >= 0.5:
        raise click.UsageError(f"--margin requires an --alpha below 0.5, got {alpha:g}")
    if form in ("latex", "markdown", "html"):
        raise click.UsageError(f"--margin requires --format table, json, jsonl or csv, not {form}")
