"""Audit kind `scales`: significant differences by tests that need an interval scale, and by others."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Annotated, Any, Literal, TypedDict

import numpy as np

from cupel_audits.analysis.score_matrices import OverTopics, RunScores, collect_warnings, score_runs
from cupel_audits.declarations import audit, setting
from cupel_audits.report import AuditReport, Heading, MeasureCell, Plot, TableSchema, digest, name_some
from cupel_audits.subject import AuditSubject, SubjectSummary
from cupel_measures.comparing.all_pairs import AllPairs, anova, kruskal_wallis
from cupel_measures.comparing.rank_correlation import levels
from cupel_measures.grammar.parameters import Number, Word
from cupel_measures.model import Floats
from cupel_measures.scoring.exact import floats

Alpha = Annotated[float, Number("a number between 0 and 1, both excluded", 0, 1, (0, 1))]
Design = Annotated[str, Word("two_way or one_way", ("two_way", "one_way"))]

QUANTILE_COST = 3e7
"""Approximate number of documents that can be scored in the time that the quantiles of a test take."""
PairTestName = Literal["kw", "anova"]
TESTS: dict[PairTestName, str] = {"kw": "Kruskal-Wallis", "anova": "ANOVA"}

READING = (
    "Kruskal-Wallis uses only the order of scores, so it can be used with any measure. ANOVA uses means and "
    "squares, which are meaningful only on an interval scale, where equal differences of scores have the "
    "same meaning everywhere. Do not rely on the result of ANOVA for a measure on another scale.",
    "Both tests limit the probability of any false positive among all pairs to alpha, by Tukey's criterion.",
    "Ferrante et al. (2019, Tables 3 and 4) report 1.3 to 3 times as many pairs for ANOVA as for "
    "Kruskal-Wallis. That is consistent with a two-way design, which removes the differences between topics; "
    "Kruskal-Wallis pools the topics. With a one-way ANOVA, the numbers of pairs are about equal. So the "
    "ratio compares the two tests; it does not measure the error of either.",
)


class PairTest(TypedDict):
    """The result of one test of all pairs of runs; JSON-serialisable.

    pairs: number of pairs that differ, None if the test is undefined. statistic: None if it is infinite or
    undefined. same: digest of the pairs that differ, which is equal for tests that find the same pairs.
    """

    undefined: str | None
    pairs: int | None
    percent: float | None
    statistic: float | None
    p: float | None
    same: str


class ScalesResult(TypedDict):
    """The result for one measure; JSON-serialisable.

    scale: the scale type. exact: whether exact scores were ranked. both: number of pairs that differ by both
    tests.
    """

    measure: str
    scale: str
    exact: bool
    pairs: int
    kw: PairTest
    anova: PairTest
    both: int
    notes: list[str]


@dataclass(frozen=True, kw_only=True)
class ScaleTestRow:
    """The numbers of pairs of runs that differ by one measure."""

    measure: MeasureCell
    scale: Annotated[str, Heading("scale type", "interval, ordinal, neither, or count")]
    pairs: Annotated[int, Heading("pairs", "S (S - 1) / 2 for S runs")]
    kw: Annotated[int | None, Heading("Kruskal-Wallis", "pairs that differ")]
    kw_percent: Annotated[float | None, Heading("Kruskal-Wallis, percent", "of all pairs")]
    anova: Annotated[int | None, Heading("ANOVA", "pairs that differ")]
    anova_percent: Annotated[float | None, Heading("ANOVA, percent", "of all pairs")]
    ratio: Annotated[float | None, Heading("ratio", "pairs by ANOVA divided by pairs by Kruskal-Wallis")]
    both: Annotated[int, Heading("both tests", "pairs that differ")]
    h: Annotated[float | None, Heading("H", "statistic of Kruskal-Wallis")]
    h_p: Annotated[float | None, Heading("p of H")]
    f: Annotated[float | None, Heading("F", "statistic of ANOVA; empty if infinite")]
    f_p: Annotated[float | None, Heading("p of F")]
    exact: Annotated[bool, Heading("exact", "whether exact scores were ranked")]


MEASURES = TableSchema.of("measures", "Pairs of runs that differ", ScaleTestRow)
PLOTS = tuple(
    Plot.bars(
        MEASURES,
        test,
        title=f"Pairs of runs that differ by {name}",
        caption="In percent of all pairs. The colour of a measure shows its scale type.",
        x="measure",
        y=f"{test}_percent",
        series="scale",
        domain=(0, 100),
    )
    for test, name in TESTS.items()
)


@audit(
    "scales",
    title="Multiple comparisons and scale types",
    answers="How many pairs of runs differ by a test that needs an interval scale, and by one that does not?",
    source="Ferrante, Ferro, Losiouk, TKDE 2019, section 5.3",
)
class Scales(OverTopics):
    """Tests all pairs of runs by ranks and by means, and reports the scale type of each measure.

    Kruskal-Wallis uses mid-ranks over the scores of all runs and topics. Two runs differ if their mean ranks
    differ by more than (q / sqrt 2) sqrt(2 V / T), where q is the upper alpha quantile of the studentised
    range with infinite degrees of freedom. ANOVA: two runs differ if their means differ by more than q
    sqrt(MSE / T), with the degrees of freedom of the error. The design `two_way` has effects of topics and
    runs; `one_way` has effects of runs only.

    If a measure has exact scores, Kruskal-Wallis ranks the exact scores. So the same pairs differ by RBP with
    p = 1/5 and by RBTO, as theory predicts, although floats cannot represent all differences of their scores.
    ANOVA uses floats, which are scaled down if their squares would overflow. No result depends on the unit of
    the scores.
    """

    alpha: Alpha = setting(0.05, "probability of any false positive among all pairs")
    design: Design = setting("two_way", "effects of the ANOVA: two_way (topics and runs) or one_way (runs)")

    def trials(self, subject: AuditSubject) -> int:
        return len(subject.measures)

    def steps(self, subject: AuditSubject) -> float:
        documents = max(1, int(subject.joined.offsets[-1]))
        return 1 + QUANTILE_COST / documents / max(1, len(subject.measures))

    def run_trials(self, subject: AuditSubject, seed: int, trials: Sequence[int]) -> Iterator[ScalesResult]:
        for trial in trials:
            yield self._test(score_runs(subject, subject.measures[trial]))

    def _test(self, scores: RunScores) -> ScalesResult:
        """Test all pairs of runs by one measure."""
        by_rank = kruskal_wallis(_score_levels(scores), alpha=self.alpha)
        by_mean = anova(_squarable(scores), design=self.design, alpha=self.alpha, scale=scores.scale)  # type: ignore[arg-type]
        return ScalesResult(
            measure=scores.measure,
            scale=scores.scale,
            exact=scores.exact,
            pairs=len(by_rank.first),
            kw=_summarise(by_rank),
            anova=_summarise(by_mean),
            both=int(np.count_nonzero(by_rank.differs & by_mean.differs)),
            notes=[*by_mean.warnings, *scores.notes],
        )

    def report(self, about: SubjectSummary, by_trial: Mapping[int, ScalesResult]) -> AuditReport:
        results = list(by_trial.values())
        rows = list(map(_row, results))
        return AuditReport(
            verdict=(*map(_measure_sentence, rows, results), *_same_pairs_sentences(results)),
            numbers=_numbers(results),
            tables=(MEASURES.table(rows),),
            plots=tuple(_with_finding(plot, rows) for plot in PLOTS),
            actions=tuple(_advice(rows)),
            reading=READING,
            undefined=tuple(_undefined(results)),
            warnings=collect_warnings(results),
        )


def _score_levels(scores: RunScores) -> Floats:
    """Replace the scores by numbers with the same order and the same ties, float64[topics, runs]."""
    if not scores.exact and scores.undefined is not None:
        return scores.values  # the test rejects these values and gives the reason
    return levels(_flatten(scores)).astype(np.float64).reshape(scores.values.shape)


def _squarable(scores: RunScores) -> Floats:
    """Return the scores, float64[topics, runs], scaled down if their squares would overflow.

    Exact scores are then divided by the largest absolute value.
    """
    if scores.undefined is None or not scores.exact:
        return scores.values
    flat = [int(value) for value in _flatten(scores)]
    greatest = max(1, *map(abs, flat))
    return floats(Fraction(value, greatest) for value in flat).reshape(scores.values.shape)


def _flatten(scores: RunScores) -> list[Any]:
    return [value for row in scores.orders for value in row]


def _summarise(test: AllPairs) -> PairTest:
    differing = np.flatnonzero(test.differs).tolist()
    is_finite = test.statistic is not None and np.isfinite(test.statistic)
    return PairTest(
        undefined=test.undefined,
        pairs=None if test.undefined is not None else len(differing),
        percent=None if test.undefined is not None else test.percent,
        statistic=test.statistic if is_finite else None,
        p=test.p,
        same=digest(differing),
    )


def _undefined(results: Sequence[ScalesResult]) -> Iterator[str]:
    for result in results:
        for test, name in TESTS.items():
            if result[test]["undefined"] is not None:
                yield f"{name} of {result['measure']}: {result[test]['undefined']}"
        if result["kw"]["pairs"] == 0:
            yield f"ratio({result['measure']}): no pair of runs differs by Kruskal-Wallis"


def _ratio(result: ScalesResult) -> float | None:
    """Return the number of pairs that differ by ANOVA as a multiple of the number by Kruskal-Wallis."""
    by_rank, by_mean = result["kw"]["pairs"], result["anova"]["pairs"]
    return by_mean / by_rank if by_rank and by_mean is not None else None


def _measure_sentence(row: ScaleTestRow, result: ScalesResult) -> str:
    by_rank, by_mean = result["kw"], result["anova"]
    if by_rank["pairs"] is None or by_mean["pairs"] is None:
        return f"{row.measure}: undefined."
    ratio = "" if row.ratio is None else f", {row.ratio:.2f} times as many"
    caution = "" if row.scale in ("interval", "count") else f" {_caution(row.scale)}"
    return (
        f"{row.measure}: of {row.pairs} pairs of runs, {row.kw} differ by Kruskal-Wallis "
        f"({by_rank['percent']:.2f}%) and {row.anova} by ANOVA ({by_mean['percent']:.2f}%{ratio}).{caution}"
    )


def _caution(scale: str) -> str:
    kind = "ordinal" if scale == "ordinal" else "neither interval nor ordinal"
    return f"The scale of the measure is {kind}: use the result of Kruskal-Wallis."


def _same_pairs_sentences(results: Sequence[ScalesResult]) -> Iterator[str]:
    """Yield a sentence for each group of measures by which the same pairs differ."""
    for test, name in TESTS.items():
        measures_by_digest: dict[str, list[str]] = {}
        for result in results:
            if result[test]["pairs"]:
                measures_by_digest.setdefault(result[test]["same"], []).append(result["measure"])
        for measures in measures_by_digest.values():
            if len(measures) > 1:
                yield f"By {name}, the same pairs differ under {', '.join(measures)}."


def _numbers(results: Sequence[ScalesResult]) -> dict[str, float | int | None]:
    """Return TEST(MEASURE), the number of pairs that differ; TEST_percent(MEASURE); ratio(MEASURE); pairs."""
    numbers: dict[str, float | int | None] = {}
    for result in results:
        measure = result["measure"]
        for test in TESTS:
            numbers[f"{test}({measure})"] = result[test]["pairs"]
            numbers[f"{test}_percent({measure})"] = result[test]["percent"]
        numbers[f"ratio({measure})"] = _ratio(result)
        numbers["pairs"] = result["pairs"]
    return numbers


def _row(result: ScalesResult) -> ScaleTestRow:
    by_rank, by_mean = result["kw"], result["anova"]
    return ScaleTestRow(
        measure=result["measure"],
        scale=result["scale"],
        pairs=result["pairs"],
        kw=by_rank["pairs"],
        kw_percent=_rounded(by_rank["percent"]),
        anova=by_mean["pairs"],
        anova_percent=_rounded(by_mean["percent"]),
        ratio=_ratio(result),
        both=result["both"],
        h=by_rank["statistic"],
        h_p=by_rank["p"],
        f=by_mean["statistic"],
        f_p=by_mean["p"],
        exact=result["exact"],
    )


def _rounded(percent: float | None) -> float | None:
    """Round to 2 decimals, as in the tables of Ferrante et al. (2019)."""
    return None if percent is None else round(percent, 2)


def _with_finding(plot: Plot, rows: Sequence[ScaleTestRow]) -> Plot:
    """Return the plot with the highest and the lowest percentage in its title."""
    percents = [(getattr(row, plot.y), row.measure) for row in rows]
    defined = sorted((pair for pair in percents if pair[0] is not None), reverse=True)
    if not defined:
        return plot
    (high, most), (low, fewest) = defined[0], defined[-1]
    lowest = "" if len(defined) == 1 else f", {low:.1f}% by {fewest}"
    return replace(plot, title=f"{plot.title}: {high:.1f}% by {most}{lowest}")


def _advice(rows: Sequence[ScaleTestRow]) -> Iterator[str]:
    """Yield which test to report."""
    not_interval = [row.measure for row in rows if row.scale not in ("interval", "count")]
    if not_interval:
        yield (
            f"Report the test of ranks for {name_some(not_interval, 'measures')}, which have no interval "
            "scale, or say that a test of means treats their scores as interval-scaled."
        )
    yield "State alpha, the test and the number of all pairs with every count of pairs that differ."
