"""The options by which verbs say what is to be audited, and how."""

from collections.abc import Callable
from typing import Any

import click

from cupel_measures.grammar import syntax
from cupel_measures.grammar.syntax import MeasureError


def _settings(_context: click.Context, _parameter: click.Parameter, given: tuple[str, ...]) -> dict[str, Any]:
    """The settings, name by name, in the grammar of measures' parameters."""
    settings: dict[str, Any] = {}
    for one in given:
        try:
            settings |= dict(syntax.read(f"audit({one})").arguments)
        except MeasureError:
            raise click.BadParameter(f"{one!r} is no setting: write NAME=VALUE") from None
    return settings


def asked_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options that say what is to be audited, and how."""
    options = (
        click.option(
            "--set",
            "parameters",
            multiple=True,
            metavar="NAME=VALUE",
            callback=_settings,
            help="A parameter of the kind, once for each: see `cupel audits kinds KIND`.",
        ),
        click.option("-m", "--measures", multiple=True, help="Measures, one or more [default: the plan]."),
        click.option(
            "--seed", type=click.IntRange(0), help="Of all that is drawn [default: the judgments']."
        ),
        click.option("--qrels", type=click.IntRange(1), help="The qrels version [default: the current one]."),
        click.option(
            "--other",
            type=click.IntRange(1),
            help="A version to compare it with (default, for kinds that compare: the one before).",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command
