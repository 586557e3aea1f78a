"""The result of `cupel compare`, and what it is as json, jsonl and csv."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import click

from cupel_client import __version__
from cupel_client.offline.presentation import finding_lines
from cupel_client.offline.presentation.evaluation_report import EvaluationReport
from cupel_client.output import printable, write_csv, write_json, write_jsonl
from cupel_measures.comparing.comparison import NO_CORRECTION, Difference, MeasureComparison
from cupel_measures.comparing.comparison import ComparisonReport as Compared
from cupel_measures.comparing.corrections import letters
from cupel_measures.comparing.resampling import Interval
from cupel_measures.reading.qrels_files import qrels_digest
from cupel_measures.scoring.evaluator import SCORING_VERSION

SHORT = 3
"""So many of a kind are named, then how many more there are."""
CORRECTED = {"holm": "Holm's correction", "benjamini-hochberg": "Benjamini and Hochberg's correction"}
TITLES = {
    "randomisation": "randomisation test",
    "t": "paired t-test",
    "wilcoxon": "Wilcoxon's signed-rank test",
    "sign": "sign test",
}


@dataclass(frozen=True, eq=False)
class ComparisonResult:
    """What was scored, and the comparison of it."""

    scored: EvaluationReport
    found: Compared

    @property
    def confidence(self) -> str:
        return f"{100 * self.found.choices.confidence:g}% interval"

    def pair(self, first: int, second: int) -> tuple[str, str]:
        """The names of two runs."""
        return self.found.systems[first], self.found.systems[second]

    def correction(self) -> str:
        """How p was corrected, as the end of a sentence; empty where there was nothing to correct."""
        tests, choice = self.found.tests, self.found.choices.correction
        if tests == 1:
            return ""
        if choice == NO_CORRECTION:
            return f", without correction for {tests} tests"
        return f" after {CORRECTED[choice]} over {tests} tests"

    def warnings(self) -> Iterator[str]:
        """What a reader of the numbers should know."""
        yield from self.found.warnings
        of_measures = [(one.measure.text, one.warnings) for one in self.found.measures]
        for warning in dict.fromkeys(text for _, warnings in of_measures for text in warnings):
            yield f"{', '.join(name for name, warnings in of_measures if warning in warnings)}: {warning}"
        yield from self._uneven()

    def _uneven(self) -> Iterator[str]:
        uneven = self.found.unjudged_gaps
        for one in uneven[:SHORT]:
            shares = self.found.unjudged[one.unjudged]
            more, less = sorted((one.first, one.second), key=lambda place: -shares[place])
            yield (
                f"{one.unjudged} is {percent(shares[more])} for {self.found.systems[more]} and "
                f"{percent(shares[less])} for {self.found.systems[less]}: they are not judged alike, and "
                "the first may score lower for that alone"
            )
        if len(uneven) > SHORT:
            yield f"{len(uneven) - SHORT} more pairs of runs are not judged alike"


def percent(share: float) -> str:
    return f"{100 * share:.1f}%"


def print_json(one: ComparisonResult) -> None:
    found, choices, job = one.found, one.found.choices, one.scored.job
    write_json(
        {
            "cupel": __version__,
            "scoring_version": SCORING_VERSION,
            "profile": job.profile,
            "depth": job.depth,
            "qrels": {"digest": qrels_digest(job.qrels), "topics": len(found.topics)},
            "runs": list(found.systems),
            "baseline": None if choices.all_pairs else found.systems[0],
            "test": choices.test,
            "correction": choices.correction,
            "tests": found.tests,
            "alpha": choices.alpha,
            "confidence": choices.confidence,
            "seed": choices.seed,
            "measures": [_measure_data(one, of_measure) for of_measure in found.measures],
            "by_aspect": list(_aspect_rows(one)),
            "unjudged": {
                text: dict(zip(found.systems, shares, strict=True)) for text, shares in found.unjudged.items()
            },
            "orders": [
                {
                    "measures": [it.first, it.second],
                    "tau_b": it.overall.value,
                    "tau_b_by_topic": it.by_topic.value,
                    "undefined_topics": it.by_topic.undefined_topics,
                    "undefined": it.overall.undefined,
                }
                for it in found.orders
            ],
            "warnings": list(one.warnings()),
            "refused": [
                {"run": name, "errors": [finding_lines.as_data(error) for error in refused.findings.errors]}
                for name, refused in one.scored.refused.items()
            ],
        }
    )


def _measure_data(one: ComparisonResult, of_measure: MeasureComparison) -> dict[str, Any]:
    measure = of_measure.measure
    groups = of_measure.groups or [None] * len(one.found.systems)
    return {
        "measure": measure.text,
        "scale": measure.scale,
        "unjudged": measure.unjudged,
        "detectable": of_measure.detectable,
        "means": [
            {
                "run": name,
                **_interval_data("mean", _as_scored(of_measure, place)),
                "groups": None if group is None else list(map(letters, group)),
            }
            for place, (name, group) in enumerate(zip(one.found.systems, groups, strict=True))
        ],
        "groups_undefined": of_measure.groups_undefined,
        "differences": [
            {
                **_difference_data(one, of_measure, pair),
                "swings": [
                    {"topic": it.topic, "difference": it.difference} for it in pair.largest_differences
                ],
            }
            for pair in of_measure.differences
        ],
        "warnings": list(of_measure.warnings),
    }


def _interval_data(name: str, interval: Interval) -> dict[str, Any]:
    return {
        name: interval.value,
        "low": interval.low,
        "high": interval.high,
        "undefined": interval.undefined,
    }


def _as_scored(of_measure: MeasureComparison, system: int) -> Interval:
    """The mean in the measure's own unit: the geometric one where those of logarithms are compared."""
    mean = of_measure.means[system]
    if not of_measure.measure.uses_logarithms:
        return mean
    value, low, high = (None if one is None else math.exp(one) for one in (mean.value, mean.low, mean.high))
    return Interval(value, low, high, mean.undefined)


def _difference_data(
    one: ComparisonResult, of_measure: MeasureComparison, pair: Difference
) -> dict[str, Any]:
    first, second = one.pair(pair.first, pair.second)
    higher, same, lower = pair.topics or (None, None, None)
    effect_low, effect_high = pair.effect.interval or (None, None)
    return {
        "run": second,
        "baseline": first,
        "run_mean": _as_scored(of_measure, pair.second).value,
        "baseline_mean": _as_scored(of_measure, pair.first).value,
        **_interval_data("difference", pair.difference),
        "statistic": pair.test.statistic,
        "p": pair.test.p,
        "corrected_p": pair.corrected_p,
        "significant": pair.significant,
        "p_undefined": pair.test.undefined,
        "effect_size": pair.effect.value,
        "effect_low": effect_low,
        "effect_high": effect_high,
        "effect_undefined": pair.effect.undefined,
        "higher": higher,
        "same": same,
        "lower": lower,
    }


def _aspect_rows(one: ComparisonResult) -> Iterator[dict[str, Any]]:
    for part in one.found.aspects:
        for pair, difference in zip(one.found.pairs, part.differences, strict=True):
            first, second = one.pair(*pair)
            yield {
                "measure": part.variant.measure,
                "aspect": part.variant.aspect,
                "run": second,
                "baseline": first,
                **_interval_data("difference", difference),
            }


def _rows(one: ComparisonResult) -> Iterator[dict[str, Any]]:
    """The long form: a row per measure and pair; then, with an aspect and without a test, per aspect."""
    for of_measure in one.found.measures:
        for pair in of_measure.differences:
            data = _difference_data(one, of_measure, pair)
            yield {"measure": of_measure.measure.text, "aspect": None, **data}
    yield from _aspect_rows(one)


def print_jsonl(one: ComparisonResult) -> None:
    write_jsonl(_rows(one))
    tell(one)


def print_csv(one: ComparisonResult) -> None:
    rows = list(_rows(one))
    write_csv(list(rows[0]), rows)
    tell(one)


def tell(one: ComparisonResult) -> None:
    """Warnings on standard error, where the format has no place for them."""
    for warning in one.warnings():
        click.echo(printable(warning), err=True)


PRINTERS: dict[str, Callable[[ComparisonResult], None]] = {
    "json": print_json,
    "jsonl": print_jsonl,
    "csv": print_csv,
}
