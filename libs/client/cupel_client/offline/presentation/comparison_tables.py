"""The result of `cupel compare` as tables that people can read."""

from collections.abc import Iterator, Sequence

import click

from cupel_client.offline.presentation.column_blocks import Column, show_blocks
from cupel_client.offline.presentation.comparison_output import SHORT, TITLES, ComparisonResult, percent
from cupel_client.output import printable
from cupel_measures.comparing.comparison import (
    NO_CORRECTION,
    AspectDifferences,
    Difference,
    MeasureComparison,
    TopicDifference,
)
from cupel_measures.comparing.corrections import letters
from cupel_measures.comparing.resampling import EXACT, FLIPS, REPLICATES, Interval

UNDEFINED = "undefined"


def print_tables(one: ComparisonResult) -> None:
    """A part for each measure and each measure by aspect, then what holds for all."""
    for of_measure in one.found.measures:
        _print_means(one, of_measure)
        _print_differences(one, of_measure)
        _print_swings(one, of_measure)
        click.echo()
    for whole in dict.fromkeys(part.variant.base for part in one.found.aspects):
        _print_aspects(one, whole, [part for part in one.found.aspects if part.variant.base == whole])
        click.echo()
    _print_orders(one)
    for line in (*_method(one), *(f"note: {warning}" for warning in one.warnings())):
        click.echo(printable(line))


def _print_means(one: ComparisonResult, of_measure: MeasureComparison) -> None:
    """Runs, best first."""
    found, unjudged = one.found, of_measure.measure.unjudged
    means = [interval.value for interval in of_measure.means]
    order = sorted(range(len(means)), key=lambda place: (-(means[place] or 0.0), found.systems[place]))
    columns: list[Column] = [
        ("mean", [_number(means[place]) for place in order]),
        (one.confidence, [_bounds(of_measure.means[place]) for place in order]),
    ]
    if of_measure.groups:
        columns.append(("groups", [_letters(of_measure.groups[place]) for place in order]))
    if unjudged is not None:
        shares = found.unjudged[unjudged]
        columns.append((unjudged, [percent(shares[place]) for place in order]))
    keys = [[found.systems[place]] for place in order]
    caption = "\n".join(_of_means(one, of_measure))
    show_blocks(["run"], keys, columns, title=of_measure.measure.text, caption=caption or None)


def _of_means(one: ComparisonResult, of_measure: MeasureComparison) -> Iterator[str]:
    if of_measure.groups:
        alpha = one.found.choices.alpha
        yield f"Randomised Tukey HSD over all runs (at {alpha:g}) tells none apart that share a group."
    if of_measure.groups_undefined is not None:
        yield f"groups are undefined: {of_measure.groups_undefined}"
    yield from _reasons(
        "the interval of the mean is",
        [(name, mean.undefined) for name, mean in zip(one.found.systems, of_measure.means, strict=True)],
    )


def _print_differences(one: ComparisonResult, of_measure: MeasureComparison) -> None:
    names, keys = _keys(one)
    every = of_measure.differences
    columns: list[Column] = [
        ("difference", [_signed(pair.difference.value) for pair in every]),
        (one.confidence, [_bounds(pair.difference, "+") for pair in every]),
        ("p", [_chance(pair.test.p) for pair in every]),
    ]
    if one.found.choices.correction != NO_CORRECTION and one.found.tests > 1:
        columns.append(("corrected p", [_chance(pair.corrected_p) for pair in every]))
    columns += [
        ("effect size", [_effect(pair) for pair in every]),
        ("higher/same/lower", [_topics(pair) for pair in every]),
        ("verdict", [_verdict(pair) for pair in every]),
    ]
    if of_measure.detectable is not None and not all(pair.significant for pair in every):
        least = _number(of_measure.detectable)
        columns.append(("detectable", ["" if pair.significant else least for pair in every]))
    show_blocks(names, keys, columns, caption="\n".join(_of_differences(one, of_measure)))


def _keys(one: ComparisonResult) -> tuple[list[str], list[list[str]]]:
    """The left columns of a table of pairs. The baseline is named in the heading."""
    pairs = [one.pair(*pair) for pair in one.found.pairs]
    if not one.found.choices.all_pairs:
        return [f"less {printable(pairs[0][0])}"], [[second] for _, second in pairs]
    return ["run", "less"], [[second, first] for first, second in pairs]


def _of_differences(one: ComparisonResult, of_measure: MeasureComparison) -> Iterator[str]:
    found, alpha = one.found, one.found.choices.alpha
    significant = sum(pair.significant for pair in of_measure.differences)
    at = f"significant at {alpha:g}{one.correction()}"
    if len(of_measure.differences) == 1:
        if of_measure.differences[0].test.p is not None:
            yield f"The difference is {'' if significant else 'not '}{at}."
    else:
        yield f"{significant} of {len(of_measure.differences)} differences are {at}."
    if of_measure.detectable is not None and significant < len(of_measure.differences):
        yield (
            f"{_counted(len(found.topics), 'topic')} show a true difference of "
            f"{_number(of_measure.detectable)} four times of five, smaller ones less often (paired t-test at "
            f"{alpha:g}, one test alone)."
        )
    names = [_against(one, pair) for pair in of_measure.differences]
    for what, reasons in (
        ("the interval of the difference is", [pair.difference.undefined for pair in of_measure.differences]),
        ("p is", [pair.test.undefined for pair in of_measure.differences]),
        ("the effect size is", [pair.effect.undefined for pair in of_measure.differences]),
    ):
        yield from _reasons(what, list(zip(names, reasons, strict=True)))


def _against(one: ComparisonResult, pair: Difference) -> str:
    first, second = one.pair(pair.first, pair.second)
    return f"{second} against {first}"


def _reasons(what: str, cases: Sequence[tuple[str, str | None]]) -> Iterator[str]:
    """Why something is undefined, and of which."""
    for reason in dict.fromkeys(why for _, why in cases if why is not None):
        names = [name for name, why in cases if why == reason]
        more = f" and {len(names) - SHORT} more" if len(names) > SHORT else ""
        of = "" if len(names) == len(cases) else f" ({', '.join(names[:SHORT])}{more})"
        yield f"{what} {UNDEFINED}{of}: {reason}"


def _print_swings(one: ComparisonResult, of_measure: MeasureComparison) -> None:
    """The topics on which each pair differs most."""
    most = max((len(pair.largest_differences) for pair in of_measure.differences), default=0)
    if not most:
        return
    names, keys = _keys(one)
    columns = [
        (
            "largest differences" if place == 0 else "",
            [
                _topic_difference(pair.largest_differences[place])
                if place < len(pair.largest_differences)
                else ""
                for pair in of_measure.differences
            ],
        )
        for place in range(most)
    ]
    show_blocks(names, keys, columns)


def _topic_difference(on_topic: TopicDifference) -> str:
    return f"{on_topic.topic} {_signed(on_topic.difference)}"


def _print_aspects(one: ComparisonResult, whole: str, parts: Sequence[AspectDifferences]) -> None:
    names, keys = _keys(one)
    columns = [
        (part.variant.aspect, [f"{_signed(it.value)} {_bounds(it, '+')}" for it in part.differences])
        for part in parts
    ]
    caption = f"Differences with their {one.confidence}s; they are not tested."
    show_blocks(names, keys, columns, title=f"{whole} by aspect", caption=caption)


def _print_orders(one: ComparisonResult) -> None:
    orders = one.found.orders
    if not orders:
        return
    columns: list[Column] = [
        ("by means", [_number(it.overall.value) for it in orders]),
        ("topic by topic", [_number(it.by_topic.value) for it in orders]),
    ]
    pairs = [(f"{it.first} and {it.second}", it) for it in orders]
    lines = [
        *_reasons("by means", [(name, it.overall.undefined) for name, it in pairs]),
        *_reasons("topic by topic", [(name, it.by_topic.undefined) for name, it in pairs]),
    ]
    show_blocks(
        ["measure", "and"],
        [[it.first, it.second] for it in orders],
        columns,
        title="how alike measures order the runs: Kendall's tau-b",
        caption="\n".join(lines) or None,
    )


def _method(one: ComparisonResult) -> Iterator[str]:
    """How the numbers were made."""
    found, choices = one.found, one.found.choices
    topics = len(found.topics)
    yield (
        f"{_counted(topics, 'topic')}, profile {one.scored.job.profile}. Intervals: bias-corrected "
        f"accelerated bootstrap over topics, {REPLICATES:,} replicates, seed {choices.seed}."
    )
    how = ""
    if choices.test == "randomisation":
        how = f", {FLIPS:,} random assignments of signs, seed {choices.seed}"
        if topics <= EXACT:
            how = f", exact: all {2**topics:,} assignments of signs"
    pairs = _counted(len(found.pairs), "pair")
    yield (
        f"p: {TITLES[choices.test]}, two-sided{how}; {_counted(found.tests, 'test')} ({pairs} by "
        f"{_counted(len(found.measures), 'measure')})."
    )


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"


def _number(value: float | None) -> str:
    if value is None:
        return UNDEFINED
    return f"{value:.4f}" if abs(value) < 10_000 else f"{value:.6g}"


def _signed(value: float | None) -> str:
    """Of what is rounded to zero the sign is no news."""
    shown = _number(value)
    return shown if value is None or shown.startswith("-") or not float(shown) else f"+{shown}"


def _bounds(interval: Interval, sign: str = "") -> str:
    if interval.low is None or interval.high is None:
        return UNDEFINED
    shown = _signed if sign else _number
    return f"[{shown(interval.low)}, {shown(interval.high)}]"


def _chance(p: float | None) -> str:
    if p is None:
        return UNDEFINED
    return "<0.0001" if p < 0.0001 else f"{p:.4f}"


def _letters(of_system: Sequence[int]) -> str:
    return " ".join(map(letters, of_system))


def _effect(pair: Difference) -> str:
    if pair.effect.value is None or pair.effect.interval is None:
        return UNDEFINED
    low, high = pair.effect.interval
    return f"{pair.effect.value:+.2f} [{low:+.2f}, {high:+.2f}]"


def _topics(pair: Difference) -> str:
    return UNDEFINED if pair.topics is None else "/".join(map(str, pair.topics))


def _verdict(pair: Difference) -> str:
    if pair.test.p is None:
        return UNDEFINED
    return "significant" if pair.significant else "not significant"
