"""The result of a comparison of runs, independent of the output format."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cupel_measures.comparing.comparison import (
    ComparisonReport,
    Difference,
    MeasureComparison,
    OrderAgreement,
)
from cupel_measures.comparing.corrections import letters
from cupel_measures.comparing.differences.comparison_choices import NO_CORRECTION
from cupel_measures.comparing.outcomes import is_scale_note
from cupel_measures.comparing.resampling import Interval
from cupel_measures.evaluation.comparison_latex import comparison_latex
from cupel_measures.evaluation.difference_marks import caption_of, labels_of, marks_of
from cupel_measures.evaluation.evaluation_report import EvaluationReport
from cupel_measures.evaluation.exports.page_library import page_library
from cupel_measures.evaluation.margin_comparison import MarginResult, margin_data
from cupel_measures.evaluation.score_formats import (
    ResultTable,
    format_html,
    format_markdown,
    format_text,
    highest,
)
from cupel_measures.evaluation.test_titles import CORRECTED, TITLES
from cupel_measures.reading.qrels_files import qrels_digest
from cupel_measures.scoring.evaluator import SCORING_VERSION

if TYPE_CHECKING:  # not needed at run time, and slow to import
    from cupel_measures.evaluation.measure_names import MeasureText

SHORT = 3
"""Number of cases that a sentence names; further cases are only counted."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ComparisonResult:
    """The scored runs and their comparison.

    shows_pairs: whether tables list every pair. margins: None without --margin. shows_scale_notes: whether
    all formats have the warnings about scale types. Otherwise only JSON has them.
    """

    scored: EvaluationReport
    compared: ComparisonReport
    shows_pairs: bool = True
    margins: MarginResult | None = None
    shows_scale_notes: bool = False

    @property
    def confidence(self) -> str:
        """Return the heading of the intervals of single values, such as "95% interval"."""
        return f"{100 * self.compared.choices.level:.10g}% interval"

    @property
    def is_simultaneous(self) -> bool:
        """Return whether the intervals of the differences are simultaneous."""
        choices, tests = self.compared.choices, self.compared.tests
        return choices.is_simultaneous or (
            tests > 1 and choices.interval == "t" and choices.correction_name == "holm"
        )

    @property
    def difference_heading(self) -> str:
        """Return the heading of the intervals of the differences."""
        if not self.is_simultaneous:
            return self.confidence
        return self.confidence.replace("interval", "simultaneous interval")

    @property
    def shows_intervals(self) -> bool:
        """Return whether tables show intervals of differences of means.

        They would contradict verdicts of a test that compares ranks or signs.
        """
        return self.compared.choices.tests_means

    def pair(self, first: int, second: int) -> tuple[str, str]:
        """Return the names of two runs."""
        return self.compared.systems[first], self.compared.systems[second]

    def correction(self) -> str:
        """Return how p-values were corrected, as the end of a sentence.

        It is empty for a single test.
        """
        tests, choice = self.compared.tests, self.compared.choices.correction_name
        if tests == 1:
            return ""
        if self.compared.choices.is_simultaneous:
            return f" ({TITLES[choice]} over {tests:,} pairs)"
        if choice == NO_CORRECTION:
            return f", without correction for {tests} tests"
        return f" after {CORRECTED[choice]} over {tests} tests"

    def warnings(self, *, intervals: bool = True) -> Iterator[str]:
        """Yield notes on the interpretation of the numbers.

        intervals: whether to yield notes on the intervals of differences.
        """
        yield from self.compared.warnings
        if intervals:
            yield from self.compared.interval_warnings
        of_measures = [(item.measure.text, item.warnings) for item in self.compared.measures]
        for warning in dict.fromkeys(text for _, warnings in of_measures for text in warnings):
            yield f"{', '.join(name for name, warnings in of_measures if warning in warnings)}: {warning}"
        yield from self._uneven()

    def printed_warnings(self, *, intervals: bool = True) -> Iterator[str]:
        """Yield the warnings for formats other than JSON."""
        warnings = self.warnings(intervals=intervals)
        return (text for text in warnings if self.shows_scale_notes or not is_scale_note(text))

    def as_data(self) -> dict[str, Any]:
        """Return the whole comparison as JSON-serialisable data."""
        compared, choices, job = self.compared, self.compared.choices, self.scored.job
        return {
            "scoring_version": SCORING_VERSION,
            "profile": job.profile,
            "depth": job.depth,
            "qrels": {"digest": qrels_digest(job.qrels), "topics": len(compared.topics)},
            "runs": list(compared.systems),
            "baseline": None if choices.all_pairs else compared.systems[0],
            "test": choices.test_name,
            "correction": choices.correction_name,
            "tests": compared.tests,
            "alpha": choices.alpha,
            "confidence": choices.level,
            "interval": choices.interval,
            "simultaneous_intervals": self.is_simultaneous,
            "replicates": choices.replicates,
            "seed": choices.seed,
            **({} if self.margins is None else {"margin": self.margins.as_data()}),
            "measures": [_measure_data(self, comparison) for comparison in compared.measures],
            "by_aspect": list(_aspect_rows(self)),
            "unjudged": {
                text: dict(zip(compared.systems, shares, strict=True))
                for text, shares in compared.unjudged.items()
            },
            "orders": list(map(_order_data, compared.orders)),
            "warnings": list(self.warnings()),
        }

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield a row per measure and pair, then a row per aspect and pair.

        A row of an aspect has no test.
        """
        for comparison in self.compared.measures:
            for pair in comparison.differences:
                data = _difference_data(self, comparison, pair)
                yield {"measure": comparison.measure.text, "aspect": None, **data}
        yield from _aspect_rows(self)

    def to_pandas(self) -> Any:
        """Return the `records` as a pandas data frame."""
        import pandas  # type: ignore[import-untyped]

        return pandas.DataFrame.from_records(list(self.records()))

    def to_polars(self) -> Any:
        """Return the `records` as a polars data frame."""
        import polars  # type: ignore[import-not-found]

        return polars.DataFrame(list(self.records()), infer_schema_length=None)

    def to_latex(self) -> str:
        """Return a LaTeX table (package booktabs).

        It has a row per run and a column per measure. Marks show significant differences. The highest mean
        of each measure is in bold.
        """
        return "".join(f"{line}\n" for line in comparison_latex(self.compared, self.correction()))

    def to_markdown(self) -> str:
        """Return the table of `table` in Markdown, followed by its caption and notes."""
        table = self.table()
        return format_markdown(table) + "".join(f"\n{note}\n" for note in (table.caption, *table.notes))

    def to_html(self) -> str:
        """Return the table of `table` in HTML, as a fragment to put in a page."""
        return format_html(self.table())

    def plot(self, measure: "MeasureText | None" = None, *, run: str | None = None) -> Any:
        """Draw the differences by one measure, with their intervals.

        measure: default: the first one. run: draw the differences of this run from the baseline by topic
        instead. Notebooks show the result; `save(path)` writes it as SVG. Raise ImportError, with what to
        install, if cupel-reports is missing.
        """
        pages = page_library("comparison_pages")
        return pages.plot(self, self.scored.canonical(measure), run=run)

    def page(self, path: str | Path) -> None:
        """Write a page with means, differences, their intervals, and bars by topic.

        It is one HTML file that loads nothing from the network. ImportError: as in `plot`.
        """
        text = page_library("comparison_pages").page(self)
        Path(path).write_text(text, encoding="utf-8")

    def table(self) -> ResultTable:
        """Return the means by run and measure, with marks of significant differences."""
        compared = self.compared
        rows = tuple(
            (label, *(_marked_mean(compared, item, place) for item in compared.measures))
            for place, label in enumerate(labels_of(compared))
        )
        columns = ("run", *(item.measure.text for item in compared.measures))
        notes = tuple(self.printed_warnings(intervals=self.shows_intervals))
        return ResultTable(
            columns=columns,
            rows=rows,
            best=highest([mean.value for mean in item.means] for item in compared.measures),
            caption=caption_of(compared, self.correction()),
            notes=notes,
        )

    def __repr__(self) -> str:
        return format_text(self.table())

    def _repr_html_(self) -> str:
        return self.to_html()

    def _uneven(self) -> Iterator[str]:
        uneven = self.compared.unjudged_gaps
        for pair in uneven[:SHORT]:
            shares = self.compared.unjudged[pair.unjudged]
            name, other = self.pair(pair.first, pair.second)
            yield (
                f"{pair.unjudged} is {percent(shares[pair.first])} for {name} and "
                f"{percent(shares[pair.second])} for {other}; {name} may score lower by "
                f"{', '.join(pair.measures)} because more of its documents are unjudged"
            )
        pairs = {frozenset((pair.first, pair.second)) for pair in uneven}
        more = len(pairs - {frozenset((pair.first, pair.second)) for pair in uneven[:SHORT]})
        if more:
            yield f"this also applies to {more} more pair{'s' * (more > 1)} of runs"


def _measure_data(result: ComparisonResult, comparison: MeasureComparison) -> dict[str, Any]:
    measure, friedman = comparison.measure, comparison.friedman
    groups = comparison.groups or [None] * len(result.compared.systems)
    return {
        "measure": measure.text,
        "scale": measure.scale,
        "unjudged": measure.unjudged,
        "detectable": comparison.detectable,
        "means": [
            {
                "run": name,
                **_interval_data("mean", _as_scored(comparison, place)),
                "groups": None if group is None else list(map(letters, group)),
                "in_best_set": None if group is None else place in comparison.best_set,
                **({"mean_rank": friedman.mean_ranks[place]} if friedman else {}),
            }
            for place, (name, group) in enumerate(zip(result.compared.systems, groups, strict=True))
        ],
        "groups_undefined": comparison.groups_undefined,
        **_friedman_data(comparison),
        "differences": [
            {
                **_difference_data(result, comparison, pair),
                "swings": [
                    {"topic": item.topic, "difference": item.difference} for item in pair.largest_differences
                ],
            }
            for pair in comparison.differences
        ],
        "warnings": list(comparison.warnings),
    }


def _friedman_data(comparison: MeasureComparison) -> dict[str, Any]:
    """Return Friedman's test if the comparison uses a rank test."""
    test = comparison.friedman
    if test is None:
        return {}
    numbers = {"statistic": test.statistic, "df": test.df, "p": test.p}
    return {"friedman": numbers | {"critical_difference": test.critical_difference}}


def _interval_data(name: str, interval: Interval) -> dict[str, Any]:
    return {
        name: interval.value,
        "low": interval.low,
        "high": interval.high,
        "undefined": interval.undefined,
    }


def _as_scored(comparison: MeasureComparison, system: int) -> Interval:
    """Return the mean in the unit of the measure.

    It is the geometric mean if logarithms are compared.
    """
    mean = comparison.means[system]
    if not comparison.measure.uses_logarithms:
        return mean
    value, low, high = (None if x is None else math.exp(x) for x in (mean.value, mean.low, mean.high))
    return Interval(value, low, high, mean.undefined)


def _difference_data(
    result: ComparisonResult, comparison: MeasureComparison, pair: Difference
) -> dict[str, Any]:
    first, second = result.pair(pair.first, pair.second)
    higher, same, lower = pair.topics or (None, None, None)
    effect_low, effect_high = pair.effect.interval or (None, None)
    return {
        "run": second,
        "baseline": first,
        "run_mean": _as_scored(comparison, pair.second).value,
        "baseline_mean": _as_scored(comparison, pair.first).value,
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
        **margin_data(
            result.margins, comparison.measure.text, result.compared.pairs.index((pair.first, pair.second))
        ),
    }


def _aspect_rows(result: ComparisonResult) -> Iterator[dict[str, Any]]:
    for part in result.compared.aspects:
        for pair, difference in zip(result.compared.pairs, part.differences, strict=True):
            first, second = result.pair(*pair)
            yield {
                "measure": part.variant.measure,
                "aspect": part.variant.aspect,
                "run": second,
                "baseline": first,
                **_interval_data("difference", difference),
            }


def _marked_mean(compared: ComparisonReport, comparison: MeasureComparison, place: int) -> str:
    mean, marks = comparison.means[place].value, marks_of(compared, comparison, place)
    shown = "undefined" if mean is None else f"{mean:.4f}"
    return f"{shown} {','.join(marks)}".rstrip()


def _order_data(order: OrderAgreement) -> dict[str, Any]:
    return {
        "measures": [order.first, order.second],
        "tau_b": order.overall.value,
        "tau_b_by_topic": order.by_topic.value,
        "rbo": order.overlap.value,
        "undefined_topics": order.by_topic.undefined_topics,
        "undefined": order.overall.undefined,
    }


def percent(share: float) -> str:
    """Return a share between 0 and 1 as a percentage."""
    return f"{100 * share:.1f}%"
