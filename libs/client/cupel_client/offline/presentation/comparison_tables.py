"""Tables of a comparison of runs, for people."""

from collections.abc import Iterator, Sequence

import click

from cupel_client.best_sets import outside_sentence
from cupel_client.offline.closeness.margin_output import print_margins
from cupel_client.offline.presentation.column_blocks import Column, show_blocks
from cupel_client.output import printable
from cupel_measures.comparing.comparison import (
    AspectDifferences,
    Difference,
    FriedmanTest,
    MeasureComparison,
)
from cupel_measures.comparing.corrections import letters
from cupel_measures.comparing.differences.comparison_choices import HSD, MAX_T, NO_CORRECTION, Choices
from cupel_measures.comparing.differences.topic_differences import TopicDifference
from cupel_measures.comparing.resampling import EXACT, REPLICATES, Interval
from cupel_measures.comparing.simultaneous.blocked_ranks import ALIGNED_RANKS, CONOVER, NEMENYI
from cupel_measures.comparing.topic_sets.detectable_differences import is_undetectable
from cupel_measures.evaluation.comparison_result import SHORT, ComparisonResult, percent
from cupel_measures.evaluation.test_titles import TITLES

UNDEFINED = "undefined"
MOST_NAMES = 10
"""Largest number of runs of the best set that a sentence names; the table marks all."""
BEST_TEST = "multiple comparisons with the best"
EQUAL_SPREADS = " It assumes that all systems have equal spreads"
ASSUMPTIONS = {
    HSD: " It assumes that all differences have equal spreads.",
    NEMENYI: f"{EQUAL_SPREADS}.",
    ALIGNED_RANKS: f"{EQUAL_SPREADS}.",
    CONOVER: f"{EQUAL_SPREADS}; it rejects too often where some ranks vary less than others.",
}


def print_tables(result: ComparisonResult) -> None:
    """Print all tables of a comparison.

    They show each measure, differences by aspect, agreement of measures, method and notes.
    """
    for comparison in result.compared.measures:
        _print_means(result, comparison)
        if result.shows_pairs:
            _print_differences(result, comparison)
            _print_largest_differences(result, comparison)
        else:
            for line in _difference_notes(result, comparison):
                click.echo(printable(line))
        click.echo()
    aspects = result.compared.aspects if result.shows_pairs else ()
    for title in dict.fromkeys(part.variant.base for part in aspects):
        parts = [part for part in result.compared.aspects if part.variant.base == title]
        _print_aspects(result, title, parts)
        click.echo()
    print_margins(result.margins, result.compared.systems, result.compared.pairs)
    _print_orders(result)
    warnings = result.printed_warnings(intervals=result.shows_intervals)
    for line in (*_method(result), *(f"note: {warning}" for warning in warnings)):
        click.echo(printable(line))


def _print_means(result: ComparisonResult, comparison: MeasureComparison) -> None:
    """Print means and groups of the runs, best first."""
    compared, unjudged = result.compared, comparison.measure.unjudged
    means = [interval.value for interval in comparison.means]
    order = sorted(range(len(means)), key=lambda place: (-(means[place] or 0.0), compared.systems[place]))
    columns: list[Column] = [
        ("mean", [_format_number(means[place]) for place in order]),
        (result.confidence, [_format_interval(comparison.means[place]) for place in order]),
    ]
    if comparison.groups:
        columns.append(("groups", [_format_letters(comparison.groups[place]) for place in order]))
        in_best_set = ["yes" if place in comparison.best_set else "" for place in order]
        columns.append(("best set", in_best_set))
    if comparison.friedman is not None:
        ranks = comparison.friedman.mean_ranks
        columns.append(("mean rank", [f"{ranks[place]:.2f}" for place in order]))
    if unjudged is not None:
        shares = compared.unjudged[unjudged]
        columns.append((unjudged, [percent(shares[place]) for place in order]))
    keys = [[compared.systems[place]] for place in order]
    caption = "\n".join(_mean_notes(result, comparison))
    show_blocks(["run"], keys, columns, title=comparison.measure.text, caption=caption or None)


def _mean_notes(result: ComparisonResult, comparison: MeasureComparison) -> Iterator[str]:
    if comparison.friedman is not None:
        yield _friedman_sentence(comparison.friedman, result.compared.choices)
    if comparison.groups:
        yield _best_set_sentence(result, comparison)
        yield from _outside_best_set(result, comparison)
    if comparison.groups_undefined is not None:
        yield f"groups are undefined: {comparison.groups_undefined}"
    yield from _reasons(
        "the interval of the mean is",
        [
            (name, mean.undefined)
            for name, mean in zip(result.compared.systems, comparison.means, strict=True)
        ],
    )


def _friedman_sentence(test: FriedmanTest, choices: Choices) -> str:
    """Return the result of Friedman's test, and the critical difference of mean ranks."""
    name = "aligned ranks" if choices.test_name == ALIGNED_RANKS else "ranks within topics"
    verdict = "differ significantly" if test.p <= choices.alpha else "do not differ significantly"
    critical = ""
    if test.critical_difference is not None:
        critical = f"; the critical difference of mean ranks is {test.critical_difference:.2f}"
    return (
        f"By Friedman's test of {name}, the runs {verdict} (chi-squared {test.statistic:.2f}, {test.df:g} "
        f"degrees of freedom, p {_format_p(test.p)}, alpha {choices.alpha:g}{critical})."
    )


def _best_set_sentence(result: ComparisonResult, comparison: MeasureComparison) -> str:
    names = [result.compared.systems[place] for place in comparison.best_set]
    confidence = f"with {100 * (1 - result.compared.choices.alpha):.10g}% confidence"
    if len(names) == 1:
        return (
            f"{names[0]} has the highest true mean by {comparison.measure.text} of these "
            f"{len(result.compared.systems)} runs, {confidence} (multiple comparisons with the best, this "
            "measure alone)."
        )
    return (
        f"{len(names)} of {len(result.compared.systems)} runs are not significantly worse than the best; "
        f"{confidence}, the best is one of them: {_listed(names)}."
    )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return f"{', '.join(names[:MOST_NAMES])}{more}"


def _outside_best_set(result: ComparisonResult, comparison: MeasureComparison) -> Iterator[str]:
    """Yield a sentence on runs that only the best set excludes."""
    means = [interval.value or 0.0 for interval in comparison.means]
    groups = [set(numbers) for numbers in comparison.groups]
    names = [
        name
        for place, name in enumerate(result.compared.systems)
        if place not in comparison.best_set
        and all(groups[place] & groups[other] for other, mean in enumerate(means) if mean > means[place])
    ]
    if names:
        yield outside_sentence(_listed(names), len(names), "run", result.compared.choices.alpha)


def _print_differences(result: ComparisonResult, comparison: MeasureComparison) -> None:
    names, keys = _keys(result)
    differences = comparison.differences
    columns: list[Column] = [("difference", [_format_signed(pair.difference.value) for pair in differences])]
    if result.shows_intervals:
        bounds = [_format_interval(pair.difference, "+") for pair in differences]
        columns.append((result.difference_heading, bounds))
    choices = result.compared.choices
    if not choices.is_simultaneous:
        columns.append(("p", [_format_p(pair.test.p) for pair in differences]))
    if choices.correction_name != NO_CORRECTION and (result.compared.tests > 1 or choices.is_simultaneous):
        columns.append(("corrected p", [_format_p(pair.corrected_p) for pair in differences]))
    columns += [
        ("effect size", [_format_effect(pair, result.shows_intervals) for pair in differences]),
        ("higher/same/lower", [_format_counts(pair) for pair in differences]),
        ("verdict", [_format_verdict(pair) for pair in differences]),
    ]
    if _shows_detectable(comparison):
        least = _format_detectable(comparison)
        columns.append(("detectable", ["" if pair.significant else least for pair in differences]))
    show_blocks(names, keys, columns, caption="\n".join(_difference_notes(result, comparison)))


def _keys(result: ComparisonResult) -> tuple[list[str], list[list[str]]]:
    """Return headings and cells of the key columns of a table of pairs.

    The heading contains the name of the baseline, if there is one.
    """
    pairs = [result.pair(*pair) for pair in result.compared.pairs]
    if not result.compared.choices.all_pairs:
        return [f"vs. {printable(pairs[0][0])}"], [[second] for _, second in pairs]
    return ["run", "vs."], [[second, first] for first, second in pairs]


def _difference_notes(result: ComparisonResult, comparison: MeasureComparison) -> Iterator[str]:
    alpha = result.compared.choices.alpha
    significant = sum(pair.significant for pair in comparison.differences)
    at = f"significant at {alpha:g}{result.correction()}"
    if len(comparison.differences) == 1:
        if comparison.differences[0].test.p is not None:
            yield f"The difference is {'' if significant else 'not '}{at}."
    else:
        yield f"{significant} of {len(comparison.differences)} differences are {at}."
    if not result.shows_pairs and _shows_detectable(comparison):
        yield f"Detectable difference: {_format_detectable(comparison)}."
    names = [_pair_name(result, pair) for pair in comparison.differences]
    for subject, reasons in _undefined_values(result, comparison).items():
        yield from _reasons(subject, list(zip(names, reasons, strict=True)))


def _shows_detectable(comparison: MeasureComparison) -> bool:
    return comparison.detectable is not None and not all(pair.significant for pair in comparison.differences)


def _format_detectable(comparison: MeasureComparison) -> str:
    if is_undetectable(comparison.measure.bounds, comparison.detectable):
        return "none possible"
    return _format_number(comparison.detectable)


def _undefined_values(result: ComparisonResult, comparison: MeasureComparison) -> dict[str, list[str | None]]:
    """Return the reasons why values of pairs are undefined, by kind of value.

    Each list has an item for every pair. A summary shows no intervals, so it needs no reasons for them.
    """
    differences = comparison.differences
    p = {"p is": [pair.test.undefined for pair in differences]}
    if not result.shows_pairs:
        return p
    values = p | {"the effect size is": [_effect_reason(pair, has_value=False) for pair in differences]}
    if not result.shows_intervals:
        return values
    return {
        "the interval of the difference is": [pair.difference.undefined for pair in differences],
        **values,
        "the interval of the effect size is": [_effect_reason(pair, has_value=True) for pair in differences],
    }


def _effect_reason(pair: Difference, *, has_value: bool) -> str | None:
    """Return why the effect size of a pair is undefined.

    With has_value, return why only its interval is undefined.
    """
    return pair.effect.undefined if (pair.effect.value is not None) is has_value else None


def _pair_name(result: ComparisonResult, pair: Difference) -> str:
    first, second = result.pair(pair.first, pair.second)
    return f"{second} vs. {first}"


def _reasons(subject: str, cases: Sequence[tuple[str, str | None]]) -> Iterator[str]:
    """Yield a sentence for each reason why some cases are undefined.

    subject: start of the sentence.
    """
    for reason in dict.fromkeys(item for _, item in cases if item is not None):
        names = [name for name, item in cases if item == reason]
        more = f" and {len(names) - SHORT} more" if len(names) > SHORT else ""
        listed = "" if len(names) == len(cases) else f" ({', '.join(names[:SHORT])}{more})"
        yield f"{subject} {UNDEFINED}{listed}: {reason}"


def _print_largest_differences(result: ComparisonResult, comparison: MeasureComparison) -> None:
    """Print the topics with the largest differences of each pair."""
    n_columns = max((len(pair.largest_differences) for pair in comparison.differences), default=0)
    if not n_columns:
        return
    names, keys = _keys(result)
    columns = [
        (
            "largest differences" if place == 0 else "",
            [_format_topic(pair.largest_differences[place : place + 1]) for pair in comparison.differences],
        )
        for place in range(n_columns)
    ]
    show_blocks(names, keys, columns)


def _format_topic(differences: Sequence[TopicDifference]) -> str:
    """Return the topic and the difference of the only item, or "" if there is no item."""
    return "".join(f"{item.topic} {_format_signed(item.difference)}" for item in differences)


def _print_aspects(result: ComparisonResult, title: str, parts: Sequence[AspectDifferences]) -> None:
    names, keys = _keys(result)
    columns = [
        (
            part.variant.aspect,
            [f"{_format_signed(item.value)} {_format_interval(item, '+')}" for item in part.differences],
        )
        for part in parts
    ]
    caption = f"Differences with {result.confidence}s; no significance test."
    show_blocks(names, keys, columns, title=f"{title} by aspect", caption=caption)


def _print_orders(result: ComparisonResult) -> None:
    """Print how well each pair of measures agrees on the order of the runs."""
    orders = result.compared.orders
    if not orders:
        return
    columns: list[Column] = [
        ("by means", [_format_number(order.overall.value) for order in orders]),
        ("topic by topic", [_format_number(order.by_topic.value) for order in orders]),
        ("RBO by means", [_format_number(order.overlap.value) for order in orders]),
    ]
    names = [f"{order.first} and {order.second}" for order in orders]
    overall = [order.overall.undefined for order in orders]
    undefined = [order.by_topic.undefined for order in orders]
    lines = [
        *_reasons("by means", list(zip(names, overall, strict=True))),
        *_reasons("topic by topic", list(zip(names, undefined, strict=True))),
    ]
    show_blocks(
        ["measure", "vs."],
        [[order.first, order.second] for order in orders],
        columns,
        title="agreement of measures on the order of the runs (Kendall's tau-b; RBO with p = 0.9)",
        caption="\n".join(lines) or None,
    )


def _method(result: ComparisonResult) -> Iterator[str]:
    """Yield sentences about intervals and tests."""
    compared, choices = result.compared, result.compared.choices
    topics, test = len(compared.topics), choices.test_name
    yield (
        f"{_counted(topics, 'topic')}, profile {result.scored.job.profile}. "
        f"Intervals: {_interval_method(result)}."
    )
    sampling = ""
    if test in (MAX_T, HSD):
        drawn = "permutations" if test == HSD else "assignments of signs"
        sampling = f", {choices.replicates:,} random {drawn}, seed {choices.seed}"
    elif test == "randomisation":
        sampling = f", {choices.replicates:,} random assignments of signs, seed {choices.seed}"
        if topics <= EXACT:
            sampling = f", exact: all {2**topics:,} assignments of signs"
    assumption = ASSUMPTIONS.get(test, "")
    pairs, measures = _counted(len(compared.pairs), "pair"), _counted(len(compared.measures), "measure")
    family = f"{_counted(compared.tests, 'test')} ({pairs}, {measures})"
    if choices.is_simultaneous:
        family = f"corrected over {pairs} for each measure"
    yield f"p: {TITLES[test]}, two-sided{sampling}; {family}.{assumption}"
    if not result.shows_intervals and result.shows_pairs:
        yield (
            f"{_capitalised(choices.test_in_words)} compares {choices.compared_values}, so intervals of "
            "differences of means are not shown. Add --test max-t or --test t for them."
        )
    if any(_shows_detectable(comparison) for comparison in compared.measures):
        yield _detectable_sentence(result)
    if any(comparison.groups for comparison in compared.measures):
        yield from _group_methods(choices)


def _detectable_sentence(result: ComparisonResult) -> str:
    compared = result.compared
    systems = len(compared.systems)
    spread = f", at the spread pooled over all {systems * (systems - 1) // 2:,} pairs" if systems > 2 else ""
    return (
        f"Detectable: with {_counted(len(compared.topics), 'topic')}, a paired t-test at "
        f"{compared.choices.alpha:g} (a single test) detects this true difference with power 0.8{spread}, "
        "and smaller ones less often."
    )


def _group_methods(choices: Choices) -> Iterator[str]:
    """Yield how groups and best sets are determined."""
    test = TITLES[choices.test_name if choices.is_simultaneous else MAX_T]
    yield f"Runs that share a letter are not significantly different ({test}, alpha {choices.alpha:g})."
    replicates = f"{choices.group_replicates:,} random assignments of signs, seed {choices.seed}"
    inferred = "Best set" if choices.is_simultaneous else "Groups and best set"
    sampling = "" if choices.test_name == MAX_T else f" from the {TITLES[MAX_T]}, {replicates}"
    yield f"{inferred}: {BEST_TEST} (alpha {choices.alpha:g}){sampling}."


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]


def _interval_method(result: ComparisonResult) -> str:
    choices = result.compared.choices
    if choices.interval == "bca" and not choices.is_simultaneous:
        replicates = f"{REPLICATES:,} replicates, seed {choices.seed}"
        return f"bias-corrected accelerated bootstrap over topics, {replicates}"
    single = "Student's t" if choices.interval == "t" else "bias-corrected accelerated bootstrap of the means"
    if not result.shows_intervals:
        return single
    if choices.is_simultaneous and not choices.is_rank_test:
        quantile = "Tukey's" if choices.test_name == HSD else "max-T"
        return f"{single}; simultaneous for differences ({quantile} quantile)"
    if result.is_simultaneous:
        return f"{single}; simultaneous for differences (Bonferroni)"
    return single


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _format_number(value: float | None) -> str:
    if value is None:
        return UNDEFINED
    return f"{value:.4f}" if abs(value) < 10_000 else f"{value:.6g}"


def _format_signed(value: float | None) -> str:
    """Return a number with its sign, but without a plus sign if it is rounded to zero."""
    shown = _format_number(value)
    return shown if value is None or shown.startswith("-") or not float(shown) else f"+{shown}"


def _format_interval(interval: Interval, sign: str = "") -> str:
    if interval.low is None or interval.high is None:
        return UNDEFINED
    format_bound = _format_signed if sign else _format_number
    return f"[{format_bound(interval.low)}, {format_bound(interval.high)}]"


def _format_p(p: float | None) -> str:
    if p is None:
        return UNDEFINED
    return "<0.0001" if p < 0.0001 else f"{p:.4f}"


def _format_letters(groups: Sequence[int]) -> str:
    return " ".join(map(letters, groups))


def _format_effect(pair: Difference, shows_interval: bool) -> str:
    if pair.effect.value is None:
        return UNDEFINED
    if pair.effect.interval is None or not shows_interval:
        return f"{pair.effect.value:+.2f}"
    low, high = pair.effect.interval
    return f"{pair.effect.value:+.2f} [{low:+.2f}, {high:+.2f}]"


def _format_counts(pair: Difference) -> str:
    return UNDEFINED if pair.topics is None else "/".join(map(str, pair.topics))


def _format_verdict(pair: Difference) -> str:
    if pair.test.p is None:
        return UNDEFINED
    return "significant" if pair.significant else "not significant"
