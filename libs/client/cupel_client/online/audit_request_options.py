"""Command-line options that describe an audit request.

They set its settings, measures, seed and judgments.
"""

from collections.abc import Callable
from typing import Any

import click

from cupel_measures.grammar import syntax
from cupel_measures.grammar.syntax import MeasureError


def _parse_settings(
    _context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]
) -> dict[str, Any]:
    """Return the settings by name; values follow the grammar of measure parameters."""
    settings: dict[str, Any] = {}
    for text in values:
        try:
            settings |= dict(syntax.read(f"audit({text})").arguments)
        except MeasureError:
            raise click.BadParameter(f"{text!r} is not a setting; write NAME=VALUE") from None
    return settings


def audit_request_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that describe an audit request to a command."""
    options = (
        click.option(
            "--set",
            "parameters",
            multiple=True,
            metavar="NAME=VALUE",
            callback=_parse_settings,
            help="Set a parameter of the kind; repeatable. `cupel audits kinds KIND` lists the parameters.",
        ),
        click.option(
            "-m",
            "--measures",
            multiple=True,
            help="Measures, separated by spaces or commas (default: the measures of the track).",
        ),
        click.option(
            "--seed", type=click.IntRange(0), help="Random seed (default: derived from the judgments)."
        ),
        click.option(
            "--qrels", type=click.IntRange(1), help="Number of the qrels version (default: the current one)."
        ),
        click.option(
            "--other",
            type=click.IntRange(1),
            help="Number of the qrels version to compare with (default, for kinds that compare versions: "
            "the previous one).",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command
