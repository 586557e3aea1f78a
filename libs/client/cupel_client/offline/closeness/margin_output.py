"""Verdicts of comparisons with a margin, as a table and as data."""

from collections.abc import Iterator, Mapping, Sequence

import click

from cupel_client.offline.presentation.column_blocks import Column, show_blocks
from cupel_client.output import decimal, printable
from cupel_measures.comparing.closeness.margins import MarginOutcome, MarginVerdict
from cupel_measures.comparing.differences.comparison_choices import Pair
from cupel_measures.comparing.resampling import EXACT, FLIPS
from cupel_measures.evaluation.margin_comparison import MarginResult, finite_bounds

UNDEFINED = "undefined"
TESTS = {"t": "one-sided t-tests", "sign-flip": "one-sided sign-flip tests"}
MEANINGS: Mapping[MarginVerdict, str] = {
    "equal within": "equal within M: the difference is significantly above -M and below M",
    "better": "better: the difference is significantly above 0",
    "no worse": "no worse: the difference is significantly above -M",
    "worse": "worse: the difference is significantly below 0",
    "undecided": "undecided: no other verdict is established",
}


def print_margins(result: MarginResult | None, systems: Sequence[str], pairs: Sequence[Pair]) -> None:
    """Print a table of all verdicts: a row per measure and pair."""
    if result is None:
        return
    outcomes = result.all_outcomes
    keys = [[text, systems[second], systems[first]] for text in result.outcomes for first, second in pairs]
    columns: list[Column] = [
        ("difference", [_format_difference(outcome) for outcome in outcomes]),
        (f"{100 * result.confidence:g}% interval", [_format_interval(outcome) for outcome in outcomes]),
        ("margin M", [f"{outcome.margin:g}" for outcome in outcomes]),
        ("verdict", [format_verdict(outcome) for outcome in outcomes]),
    ]
    if result.bayes:
        columns += [
            ("P(below -M)", [_format_probability(outcome, "below") for outcome in outcomes]),
            ("P(within)", [_format_probability(outcome, "within") for outcome in outcomes]),
            ("P(above M)", [_format_probability(outcome, "above") for outcome in outcomes]),
        ]
    show_blocks(
        ["measure", "run", "vs."],
        keys,
        columns,
        title="comparison with a margin",
        caption="\n".join(printable(line) for line in _notes(result, keys)),
    )
    click.echo()


def format_verdict(outcome: MarginOutcome) -> str:
    """Return the verdict as text.

    For `equal within`, add the margin and a significant direction.
    """
    if outcome.verdict != "equal within":
        return outcome.verdict
    direction = "" if outcome.significant_direction is None else f", {outcome.significant_direction}"
    return f"equal within {outcome.margin:g}{direction}"


def _notes(result: MarginResult, keys: Sequence[Sequence[str]]) -> Iterator[str]:
    outcomes = result.all_outcomes
    verdicts = {outcome.verdict for outcome in outcomes}
    yield f"{'; '.join(MEANINGS[verdict] for verdict in MEANINGS if verdict in verdicts)}."
    if any(outcome.verdict == "equal within" and outcome.significant_direction for outcome in outcomes):
        yield "higher, lower: the difference is significantly above or below 0, but smaller than the margin."
    yield _method(result, outcomes)
    yield from _describe_directions(result, outcomes)
    if result.bayes:
        yield (
            "P: posterior probability that the mean difference is in the range of the column, assuming "
            "normal differences and the reference prior (Student's t with "
            f"{outcomes[0].n - 1} degrees of freedom)."
        )
    for measure in result.logarithms:
        if measure in result.outcomes:
            yield f"{measure}: the margin applies to the difference of mean logarithms."
    notes: dict[str, list[str]] = {}
    for (measure, run, _), outcome in zip(keys, outcomes, strict=True):
        for note in (outcome.undefined, *outcome.warnings):
            if note is not None:
                notes.setdefault(note, []).append(f"{measure} of {run}")
    for note, cases in notes.items():
        more = f" and {len(cases) - 3} more" if len(cases) > 3 else ""
        yield f"{', '.join(cases[:3])}{more}: {note}"


def _method(result: MarginResult, outcomes: Sequence[MarginOutcome]) -> str:
    sampling = ""
    if result.test == "sign-flip":
        topics = outcomes[0].n
        sampling = (
            f" ({f'all {2**topics:,}' if topics <= EXACT else f'{FLIPS:,} random'} assignments of signs)"
        )
    corrected = "" if len(outcomes) == 1 else f", without correction for {len(outcomes)} verdicts"
    return f"Verdicts: {TESTS[result.test]}{sampling} at {result.alpha:g}{corrected}."


def _describe_directions(result: MarginResult, outcomes: Sequence[MarginOutcome]) -> Iterator[str]:
    """Yield the level of both directions together if a verdict has one."""
    directions = {
        "better and worse": any(outcome.verdict in ("better", "worse") for outcome in outcomes),
        "higher and lower": any(
            outcome.verdict == "equal within" and outcome.significant_direction for outcome in outcomes
        ),
    }
    if any(directions.values()):
        names = ", or ".join(name for name, is_given in directions.items() if is_given)
        yield (
            f"With no direction fixed beforehand, {names} together have level {2 * result.alpha:g} (2 "
            "alpha). They may differ from the two-sided verdicts above, which may be corrected."
        )


def _format_difference(outcome: MarginOutcome) -> str:
    return UNDEFINED if outcome.estimate is None else decimal(outcome.estimate, "+")


def _format_interval(outcome: MarginOutcome) -> str:
    low, high = finite_bounds(outcome)
    if low is None or high is None:
        return UNDEFINED if outcome.posterior is None else "unbounded"
    return f"[{decimal(low, '+')}, {decimal(high, '+')}]"


def _format_probability(outcome: MarginOutcome, region: str) -> str:
    return UNDEFINED if outcome.posterior is None else f"{getattr(outcome.posterior, region):.3f}"
