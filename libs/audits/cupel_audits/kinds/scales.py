"""Audit kind `scales`: significant differences by tests of ranks and of means."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Annotated, Any, NotRequired, TypedDict

import numpy as np

from cupel_audits.analysis.named_extremes import name_ends
from cupel_audits.analysis.scale_cautions import advise_on_scales, caution_on_scale
from cupel_audits.analysis.score_matrices import OverTopics, RunScores, collect_warnings, score_runs
from cupel_audits.declarations import audit, setting
from cupel_audits.report import (
    AuditReport,
    Heading,
    MeasureCell,
    Plot,
    RunCell,
    TableSchema,
    digest,
)
from cupel_audits.subject import AuditSubject, SubjectSummary
from cupel_measures.comparing.all_pairs import AllPairs, anova, kruskal_wallis
from cupel_measures.comparing.corrections import groups, letters
from cupel_measures.comparing.rank_correlation import levels
from cupel_measures.comparing.simultaneous.blocked_ranks import BlockedRanks, rank_test
from cupel_measures.comparing.simultaneous.max_t import MaxT, max_t
from cupel_measures.grammar.parameters import Number, Word
from cupel_measures.model import Floats
from cupel_measures.scoring.exact import floats

Alpha = Annotated[float, Number("a number between 0 and 1, both excluded", 0, 1, (0, 1))]
Design = Annotated[str, Word("two_way or one_way", ("two_way", "one_way"))]

QUANTILE_COST = 3e7
"""Approximate number of documents that can be scored in the time that the quantiles of a test take."""
RANK_TESTS = {"nemenyi": "Nemenyi's test", "conover": "Conover's test", "kw": "Kruskal-Wallis"}
MEAN_TESTS = {"max_t": "max-T", "anova": "ANOVA"}
TESTS = RANK_TESTS | MEAN_TESTS
PAPER = ("kw", "anova")
"""The tests of Ferrante et al. (2019), and of results that name none, which earlier releases stored."""
RankTest = Annotated[str, Word("nemenyi, conover or kw (Kruskal-Wallis)", tuple(RANK_TESTS))]
MeanTest = Annotated[str, Word("max_t or anova", tuple(MEAN_TESTS))]

READING = (
    "A rank test uses only the order of the scores of the runs on each topic, so an ordinal scale is enough. "
    "A test of means is meaningful only on an interval scale, where equal differences of scores have the "
    "same meaning everywhere. Whether a test needs such a scale is disputed (Sakai 2020; Moffat 2022).",
    "Each test is meant to limit the probability of any false positive among all pairs to alpha; "
    "Conover's test does so only if no runs differ. Nemenyi's and Conover's tests assume that all runs have "
    "equal spreads, and mean ranks of two runs depend on the other runs. Conover's test finds too many "
    "differences where the ranks of some runs vary less than those of others.",
    "The ratio compares the two tests; it measures no error. Fewer pairs may only mean less power.",
)
PAPER_READING = (
    "Kruskal-Wallis uses only the order of scores, so an ordinal scale is enough. It ranks the scores "
    "of all topics together and so ignores that runs share topics: use it only to reproduce the paper. ANOVA "
    "uses means and squares, which are meaningful only on an interval scale, where equal differences of "
    "scores have the same meaning everywhere.",
    "Both tests are meant to keep the probability of any false positive at alpha, by Tukey's criterion.",
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
    tests. tests: the keys of the rank test and of the test of means; PAPER if missing. mean_ranks, groups:
    the mean rank and the group letters of each run; missing unless the rank test has topics as blocks and is
    defined. critical_difference: the critical difference of mean ranks, or None.
    """

    measure: str
    scale: str
    exact: bool
    pairs: int
    kw: NotRequired[PairTest]
    anova: NotRequired[PairTest]
    nemenyi: NotRequired[PairTest]
    conover: NotRequired[PairTest]
    max_t: NotRequired[PairTest]
    both: int
    notes: list[str]
    tests: NotRequired[list[str]]
    mean_ranks: NotRequired[list[float]]
    groups: NotRequired[list[str]]
    critical_difference: NotRequired[float | None]


@dataclass(frozen=True, kw_only=True)
class ScaleTestRow:
    """The numbers of pairs of runs that differ by one measure."""

    measure: MeasureCell
    scale: Annotated[str, Heading("scale type", "interval, ordinal, neither, or count")]
    pairs: Annotated[int, Heading("pairs", "S (S - 1) / 2 for S runs")]
    rank_test: Annotated[str, Heading("test of ranks")]
    by_rank: Annotated[int | None, Heading("pairs by ranks", "pairs that differ significantly")]
    by_rank_percent: Annotated[float | None, Heading("by ranks, percent", "of all pairs")]
    mean_test: Annotated[str, Heading("test of means")]
    by_mean: Annotated[int | None, Heading("pairs by means", "pairs that differ significantly")]
    by_mean_percent: Annotated[float | None, Heading("by means, percent", "of all pairs")]
    ratio: Annotated[float | None, Heading("ratio", "pairs by means over pairs by ranks")]
    both: Annotated[int, Heading("both tests", "pairs that differ significantly")]
    rank_statistic: Annotated[float | None, Heading("statistic of ranks", "Friedman's chi-squared, or H")]
    rank_p: Annotated[float | None, Heading("p of ranks", "of the hypothesis that no runs differ")]
    mean_statistic: Annotated[
        float | None, Heading("statistic of means", "the largest |t|, or F; empty if infinite")
    ]
    mean_p: Annotated[float | None, Heading("p of F", "empty for max-T")]
    exact: Annotated[bool, Heading("exact", "whether exact scores were ranked")]


@dataclass(frozen=True, kw_only=True)
class MeanRankRow:
    """The mean rank of a run by one measure."""

    measure: MeasureCell
    run: RunCell
    mean_rank: Annotated[float, Heading("mean rank", "over topics; 1 is best")]
    groups: Annotated[str, Heading("groups", "runs that share a letter are not significantly different")]
    critical_difference: Annotated[float | None, Heading("critical difference", "of mean ranks")]


MEASURES = TableSchema.of("measures", "Pairs of runs that differ significantly", ScaleTestRow)
RANKS = TableSchema.of("ranks", "Mean ranks", MeanRankRow)
PLOTS = tuple(
    Plot.bars(
        MEASURES,
        column,
        title=f"Pairs of runs that differ significantly by {name}",
        caption="In percent of all pairs. The colour of a measure shows its scale type.",
        x="measure",
        y=f"{column}_percent",
        series="scale",
        domain=(0, 100),
    )
    for column, name in (("by_rank", "ranks"), ("by_mean", "means"))
)


@audit(
    "scales",
    title="Multiple comparisons and scale types",
    answers="How many pairs of runs differ significantly by a test of means, and by a test of ranks?",
    source="Ferrante, Ferro, Losiouk, TKDE 2019, section 5.3; Demšar, JMLR 2006; Romano and Wolf 2005",
)
class Scales(OverTopics):
    """Tests all pairs of runs by ranks and by means.

    The report gives the scale type of each measure.

    By ranks: Nemenyi's or Conover's test of mean ranks with topics as blocks, after Friedman's test. By
    means: the studentised step-down max-T test.

    The paper compares Kruskal-Wallis with ANOVA; `rank_test=kw` and `mean_test=anova` reproduce it.
    Kruskal-Wallis uses mid-ranks over the scores of all runs and topics. Two runs differ if their mean ranks
    differ by more than (q / sqrt 2) sqrt(2 V / T), where q is the upper alpha quantile of the studentised
    range with infinite degrees of freedom. ANOVA: two runs differ if their means differ by more than q
    sqrt(MSE / T), with the degrees of freedom of the error. The design `two_way` has effects of topics and
    runs; `one_way` has effects of runs only.

    If a measure has exact scores, the rank test ranks the exact scores. So the same pairs differ by RBP with
    p = 1/5 and by RBTO, as theory predicts, although floats cannot represent all differences of their scores.
    The test of means uses floats, which are scaled down if their squares would overflow. No result depends on
    the unit of the scores.
    """

    alpha: Alpha = setting(0.05, "significance level for all pairs")
    rank_test: RankTest = setting("nemenyi", "test of ranks; kw only to reproduce the paper")
    mean_test: MeanTest = setting("max_t", "test of means; anova only to reproduce the paper")
    design: Design = setting("two_way", "effects of the ANOVA: two_way (topics and runs) or one_way (runs)")

    def trials(self, subject: AuditSubject) -> int:
        return len(subject.measures)

    def steps(self, subject: AuditSubject) -> float:
        documents = max(1, int(subject.joined.offsets[-1]))
        return 1 + QUANTILE_COST / documents / max(1, len(subject.measures))

    def run_trials(self, subject: AuditSubject, seed: int, trials: Sequence[int]) -> Iterator[ScalesResult]:
        for trial in trials:
            yield self._test(score_runs(subject, subject.measures[trial]), seed)

    def _test(self, scores: RunScores, seed: int) -> ScalesResult:
        """Test all pairs of runs by one measure."""
        by_rank = self._test_ranks(scores)
        by_mean = self._test_means(scores, seed)
        result = ScalesResult(
            measure=scores.measure,
            scale=scores.scale,
            exact=scores.exact,
            pairs=len(by_rank.first),
            both=int(np.count_nonzero(by_rank.differs & by_mean.differs)),
            notes=[*by_mean.warnings, *scores.notes],
        )
        tests = {self.rank_test: _summarise(by_rank), self.mean_test: _summarise(by_mean)}
        result.update(tests)  # type: ignore[typeddict-item]
        if (self.rank_test, self.mean_test) != PAPER:
            result["tests"] = [self.rank_test, self.mean_test]
        if isinstance(by_rank, BlockedRanks) and by_rank.undefined is None:
            result["mean_ranks"] = by_rank.mean_ranks.tolist()
            result["groups"] = _group_letters(by_rank)
            result["critical_difference"] = by_rank.width
        return result

    def _test_ranks(self, scores: RunScores) -> AllPairs:
        values = _score_levels(scores)
        if self.rank_test == "kw":
            return kruskal_wallis(values, alpha=self.alpha)
        return rank_test(self.rank_test, values, alpha=self.alpha)

    def _test_means(self, scores: RunScores, seed: int) -> AllPairs | MaxT:
        values = _squarable(scores)
        if self.mean_test == "anova":
            return anova(values, design=self.design, alpha=self.alpha, scale=scores.scale)  # type: ignore[arg-type]
        return max_t(values, alpha=self.alpha, seed=seed, scale=scores.scale, with_p=False)

    def report(self, about: SubjectSummary, by_trial: Mapping[int, ScalesResult]) -> AuditReport:
        results = list(by_trial.values())
        rows = list(map(_row, results))
        ranks = [row for result in results for row in _mean_rank_rows(about, result)]
        return AuditReport(
            verdict=(
                *(_measure_sentence(*pair, self.alpha) for pair in zip(rows, results, strict=True)),
                *_same_pairs_sentences(results),
            ),
            numbers=_numbers(results),
            tables=(MEASURES.table(rows), *((RANKS.table(ranks),) if ranks else ())),
            plots=(
                *(_with_finding(plot, rows) for plot in PLOTS),
                *_rank_plots(ranks, self.rank_test, self.alpha),
            ),
            actions=tuple(_advice(rows)),
            reading=PAPER_READING if {_tests(result) for result in results} == {PAPER} else READING,
            undefined=tuple(_undefined(results)),
            warnings=collect_warnings(results),
        )


def _score_levels(scores: RunScores) -> Floats:
    """Return numbers with the order and ties of the scores, float64[topics, runs]."""
    if not scores.exact and scores.undefined is not None:
        return scores.values  # the test rejects these values and gives the reason
    return levels(_flatten(scores)).astype(np.float64).reshape(scores.values.shape)


def _squarable(scores: RunScores) -> Floats:
    """Return the scores, scaled down if their squares would overflow.

    The scores are float64[topics, runs]. Exact scores are then divided by the largest absolute value.
    """
    if scores.undefined is None or not scores.exact:
        return scores.values
    flat = [int(value) for value in _flatten(scores)]
    greatest = max(1, *map(abs, flat))
    return floats(Fraction(value, greatest) for value in flat).reshape(scores.values.shape)


def _flatten(scores: RunScores) -> list[Any]:
    return [value for row in scores.orders for value in row]


def _summarise(test: AllPairs | MaxT) -> PairTest:
    differing = np.flatnonzero(test.differs).tolist()
    statistic, p = (float(np.abs(test.t).max()), None) if isinstance(test, MaxT) else (test.statistic, test.p)
    is_defined = test.undefined is None
    return PairTest(
        undefined=test.undefined,
        pairs=len(differing) if is_defined else None,
        percent=test.percent if is_defined else None,
        statistic=statistic if is_defined and statistic is not None and np.isfinite(statistic) else None,
        p=p,
        same=digest(differing),
    )


def _group_letters(test: BlockedRanks) -> list[str]:
    """Return the letters of each run's groups; a is the group of the best mean rank."""
    order = np.argsort(test.mean_ranks, kind="stable")
    place = np.argsort(order)
    first, second = place[test.first[test.differs]], place[test.second[test.differs]]
    differing = zip(np.minimum(first, second).tolist(), np.maximum(first, second).tolist(), strict=True)
    by_place = groups(len(order), sorted(differing))
    return [" ".join(map(letters, by_place[position])) for position in place.tolist()]


def _tests(result: ScalesResult) -> tuple[str, str]:
    """Return the keys of the rank test and of the test of means."""
    rank, mean = result.get("tests", PAPER)
    return rank, mean


def _outcomes(result: ScalesResult) -> tuple[PairTest, PairTest]:
    """Return the results of the rank test and of the test of means."""
    by_rank, by_mean = (result[test] for test in _tests(result))  # type: ignore[literal-required]
    return by_rank, by_mean


def _undefined(results: Sequence[ScalesResult]) -> Iterator[str]:
    for result in results:
        for test, outcome in zip(_tests(result), _outcomes(result), strict=True):
            if outcome["undefined"] is not None:
                yield f"{TESTS[test]} of {result['measure']}: {outcome['undefined']}"
        if _outcomes(result)[0]["pairs"] == 0:
            yield f"ratio({result['measure']}): no pair differs significantly by {TESTS[_tests(result)[0]]}"


def _ratio(result: ScalesResult) -> float | None:
    """Return the number of significant pairs by means as a multiple of that by ranks."""
    by_rank, by_mean = (outcome["pairs"] for outcome in _outcomes(result))
    return by_mean / by_rank if by_rank and by_mean is not None else None


def _measure_sentence(row: ScaleTestRow, result: ScalesResult, alpha: float) -> str:
    by_rank, by_mean = _outcomes(result)
    if by_rank["pairs"] is None or by_mean["pairs"] is None:
        return f"{row.measure}: undefined."
    ratio = "" if row.ratio is None else f", {row.ratio:.2f} times as many"
    caution = "" if row.scale in ("interval", "count") else f" {caution_on_scale(row.scale, row.rank_test)}"
    return (
        f"{row.measure}: of {row.pairs} pairs of runs, {row.by_rank} differ significantly by {row.rank_test} "
        f"({by_rank['percent']:.2f}%) and {row.by_mean} by {row.mean_test} ({by_mean['percent']:.2f}%{ratio}"
        f"; alpha {alpha:g}).{caution}"
    )


def _same_pairs_sentences(results: Sequence[ScalesResult]) -> Iterator[str]:
    """Yield a sentence for each group of measures that find the same pairs.

    Only groups that find at least one pair have a sentence.
    """
    measures_by_pairs: dict[tuple[str, str], list[str]] = {}
    for side in (0, 1):
        for result in results:
            test, outcome = _tests(result)[side], _outcomes(result)[side]
            if outcome["pairs"]:
                measures_by_pairs.setdefault((test, outcome["same"]), []).append(result["measure"])
    for (test, _), measures in measures_by_pairs.items():
        if len(measures) > 1:
            yield (
                f"By {TESTS[test]}, the same pairs of runs differ significantly under {', '.join(measures)}."
            )


def _numbers(results: Sequence[ScalesResult]) -> dict[str, float | int | None]:
    """Return the numbers of the report by name.

    `TEST(MEASURE)` is the number of pairs that differ significantly by a test, and `TEST_percent(MEASURE)` is
    their percentage. `ratio(MEASURE)` is the number by the test of means divided by the number by the rank
    test. `pairs` is the number of all pairs.
    """
    numbers: dict[str, float | int | None] = {}
    for result in results:
        measure = result["measure"]
        for test, outcome in zip(_tests(result), _outcomes(result), strict=True):
            numbers[f"{test}({measure})"] = outcome["pairs"]
            numbers[f"{test}_percent({measure})"] = outcome["percent"]
        numbers[f"ratio({measure})"] = _ratio(result)
        numbers["pairs"] = result["pairs"]
    return numbers


def _row(result: ScalesResult) -> ScaleTestRow:
    rank_name, mean_name = (TESTS[test] for test in _tests(result))
    by_rank, by_mean = _outcomes(result)
    return ScaleTestRow(
        measure=result["measure"],
        scale=result["scale"],
        pairs=result["pairs"],
        rank_test=rank_name,
        by_rank=by_rank["pairs"],
        by_rank_percent=_rounded(by_rank["percent"]),
        mean_test=mean_name,
        by_mean=by_mean["pairs"],
        by_mean_percent=_rounded(by_mean["percent"]),
        ratio=_ratio(result),
        both=result["both"],
        rank_statistic=by_rank["statistic"],
        rank_p=by_rank["p"],
        mean_statistic=by_mean["statistic"],
        mean_p=by_mean["p"],
        exact=result["exact"],
    )


def _mean_rank_rows(about: SubjectSummary, result: ScalesResult) -> Iterator[MeanRankRow]:
    """Yield the mean ranks of the runs, best first; none if the rank test has none."""
    if "mean_ranks" not in result:
        return
    rows = zip(result["mean_ranks"], about.runs, result["groups"], strict=True)
    for mean_rank, run, run_groups in sorted(rows):
        yield MeanRankRow(
            measure=result["measure"],
            run=run,
            mean_rank=mean_rank,
            groups=run_groups,
            critical_difference=result["critical_difference"],
        )


def _rank_plots(ranks: Sequence[MeanRankRow], test: str, alpha: float) -> Iterator[Plot]:
    """Yield the critical-difference diagram of each measure that has mean ranks."""
    if not ranks:
        return
    caption = (
        f"Mean ranks over the topics. A bar joins runs that are not significantly different by {TESTS[test]} "
        f"(alpha {alpha:g})."
    )
    if any(row.critical_difference is not None for row in ranks):
        caption += (
            " Two runs differ significantly if their mean ranks differ by more than the critical difference."
        )
    yield Plot.critical_difference(
        RANKS,
        "ranks",
        title=_rank_title(ranks),
        caption=caption,
        x="mean_rank",
        y="run",
        groups="groups",
        difference="critical_difference",
        facet="measure" if len({row.measure for row in ranks}) > 1 else None,
    )


def _rank_title(ranks: Sequence[MeanRankRow]) -> str:
    """Return how many runs are not significantly different from the best run.

    The best run is that with the best mean rank.
    """
    groups_by_measure: dict[str, list[set[str]]] = {}
    for row in ranks:
        groups_by_measure.setdefault(row.measure, []).append(set(row.groups.split()))
    others = len(ranks) // len(groups_by_measure) - 1
    numbers = sorted(
        (sum(bool(first & groups) for groups in more), measure)
        for measure, (first, *more) in groups_by_measure.items()
    )
    (low, fewest), (high, most) = numbers[0], numbers[-1]
    if len(numbers) == 1:
        counted = f"{low} of {others} other runs by {fewest}"
    elif low == high:
        counted = f"{low} of {others} other runs by every measure"
    else:
        counted = f"from {low} ({fewest}) to {high} ({most}) of {others} other runs"
    return f"Not significantly different from the best mean rank: {counted}"


def _rounded(percent: float | None) -> float | None:
    """Round to 2 decimals, as in the tables of Ferrante et al. (2019)."""
    return None if percent is None else round(percent, 2)


def _with_finding(plot: Plot, rows: Sequence[ScaleTestRow]) -> Plot:
    """Return the plot with the test and the extreme percentages in its title."""
    test = "rank_test" if plot.name == "by_rank" else "mean_test"
    tests = " or ".join(dict.fromkeys(getattr(row, test) for row in rows))
    percents = [(getattr(row, plot.y), row.measure) for row in rows if getattr(row, plot.y) is not None]
    ends = name_ends(percents, "{:.1f}%")
    return replace(plot, title=f"{plot.title} ({tests}){'' if ends is None else f': {ends}'}")


def _advice(rows: Sequence[ScaleTestRow]) -> Iterator[str]:
    """Yield which test to report."""
    yield from advise_on_scales([(row.measure, row.scale) for row in rows])
    yield "State alpha, the test and the number of all pairs with every count of pairs that differ."
