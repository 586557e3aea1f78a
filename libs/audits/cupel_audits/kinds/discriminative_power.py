"""`discriminative_power`: how many pairs of runs a measure tells apart (Sakai 2006; spec 3.8)."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Annotated, Any

import numpy as np

from cupel_audits.analysis.sample_curves import MEASURE
from cupel_audits.analysis.score_matrices import Compared, OverTopics, compared, warned
from cupel_audits.declarations import audit, setting, whole_number
from cupel_audits.report import AuditReport, Cell, Column, Plot, ReportTable
from cupel_audits.subject import AuditSubject, SubjectSummary
from cupel_measures.comparing.outcomes import mean
from cupel_measures.comparing.resampling import Power, discriminative_power
from cupel_measures.comparing.topic_set_sizes import pooled_variance, smallest_difference
from cupel_measures.grammar.parameters import Number

Alpha = Annotated[float, Number("a chance between 0 and 1, both excluded", 0, 1, (0, 1))]
Replicates = Annotated[int, whole_number()]

LEVELS = (0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
"""Other levels that the power is told at."""
A_DOCUMENT = 4
"""Resampled scores that cost about as much as scoring a document."""

READING = (
    "A pair of runs is told apart where few of the resampled sets of topics (fewer than alpha) show a "
    "difference as extreme as the observed one although the runs are alike. All pairs and measures see the "
    "same resampled topics, so their powers can be compared.",
    "A measure that tells more pairs apart is more consistent over topics; that does not make it right. A "
    "count of pairs is not corrected for their number: of alike runs about alpha are told apart by chance.",
    "With this test, 10,000 replicates and alpha 0.01, Maistro et al. (CIKM 2021, Table 4) found 57 to 86 "
    "per cent on TREC's Web tracks (30 to 71 runs) for CAM and for TOMA by Euclidean and Manhattan distance, "
    "of which Manhattan was most often the best; 47 to 81 for MM; and 6 to 77 for Chebyshev distance, most "
    "often the least. On tracks of 6 and 9 runs they found anything from 0 to 75.",
)


@audit(
    "discriminative_power",
    title="Discriminative power",
    answers="How many pairs of runs does each measure tell apart, and from which difference on?",
    source="Sakai, SIGIR 2006; Maistro et al., CIKM 2021, section 4.3.2 (spec 3.8)",
)
class DiscriminativePower(OverTopics):
    """Tests all pairs of runs by every measure, with a paired bootstrap over topics.

    For each pair z = x - y by topic, and t(z) = mean / (s / sqrt(n)). Of B samples w* that are drawn with
    replacement from z - mean, ASL is the share with |t(w*)| >= |t(z)|; the pair is told apart where ASL <
    alpha. The power is the share of the S (S - 1) / 2 pairs that are. The samples are the same for all pairs
    and measures, whatever part of them is computed where.
    """

    replicates: Replicates = setting(10_000, "how often topics are drawn anew")
    alpha: Alpha = setting(0.01, "the level: pairs below it are told apart")

    def problems(self, subject: AuditSubject) -> Iterator[str]:
        yield from super().problems(subject)
        if self.replicates * self.alpha < 1:
            least = f"{np.ceil(1 / self.alpha):.15g}"
            yield f"{self.replicates} replicates can't tell alpha {self.alpha:g}: give {least} or more"

    def trials(self, subject: AuditSubject) -> int:
        return len(subject.measures)

    def steps(self, subject: AuditSubject) -> float:
        runs, topics = len(subject.about.runs), len(subject.about.topics)
        drawn = self.replicates * topics * runs * (runs - 1) / 2
        scored = max(1, int(subject.joined.offsets[-1])) * max(1, len(subject.measures))
        return 1 + drawn / A_DOCUMENT / scored

    def run_trials(self, subject: AuditSubject, seed: int, trials: Sequence[int]) -> Iterator[Any]:
        for trial in trials:
            yield self._trial(compared(subject, subject.measures[trial]), seed)

    def _trial(self, scores: Compared, seed: int) -> dict[str, Any]:
        """What a measure tells apart. The seed is the audit's: all measures share the replicates."""
        found = discriminative_power(
            scores.values, alpha=self.alpha, replicates=self.replicates, seed=seed, scale=scores.scale
        )
        said = {"measure": scores.measure, "notes": [*found.warnings, *scores.notes]}
        if found.undefined is not None:
            return {**said, "undefined": found.undefined}
        means = mean(scores.values)
        apart = means[found.first] - means[found.second]
        told = found.asl < self.alpha
        return {
            **said,
            "undefined": None,
            "pairs": len(told),
            "told": found.discriminated,
            "percent": found.percent,
            "smallest": min(np.abs(apart[told]).tolist(), default=None),
            "greatest": max(np.abs(apart[~told]).tolist(), default=None),
            "detectable": _detectable(scores, self.alpha),
            "levels": [_below(found, level) for level in LEVELS],
            "signs": "".join(_sign(one) for one in np.where(told, np.sign(apart), 0).tolist()),
        }

    def report(self, about: SubjectSummary, found: Mapping[int, Any]) -> AuditReport:
        done = list(found.values())
        defined = [one for one in done if one["undefined"] is None]
        return AuditReport(
            verdict=tuple(_verdict(defined, self.alpha)),
            numbers=_numbers(done),
            tables=(_measures(done), _levels(defined), _agreement(defined)),
            plots=PLOTS,
            reading=READING,
            undefined=tuple(_undefined(done)),
            warnings=warned(done),
        )


def _detectable(scores: Compared, alpha: float) -> float | None:
    variance = pooled_variance(scores.values)
    return smallest_difference(variance, len(scores.values), alpha=alpha) if variance else None


def _below(found: Power, level: float) -> float:
    return 100.0 * int(np.count_nonzero(found.asl < level)) / len(found.asl)


def _sign(sign: float) -> str:
    """Which run of a pair is the better one where they are told apart, `.` where they are not."""
    return "." if sign == 0 else "+" if sign > 0 else "-"


def _verdict(defined: Sequence[Mapping[str, Any]], alpha: float) -> Iterator[str]:
    if not defined:
        yield "Undefined: no measure has scores by which runs can be told apart."
        return
    ranked = sorted(defined, key=lambda one: -one["told"])
    most, fewest = ranked[0], ranked[-1]
    if most["told"] > fewest["told"]:
        yield (
            f"Of {most['pairs']} pairs of runs {most['measure']} tells most apart, {most['told']} "
            f"({most['percent']:.2f} per cent), and {fewest['measure']} fewest, {fewest['told']} "
            f"({fewest['percent']:.2f} per cent)."
        )
    for one in ranked:
        yield (
            f"{one['measure']}: {one['told']} of {one['pairs']} pairs are told apart at alpha {alpha:g} "
            f"({one['percent']:.2f} per cent){_differences(one)}."
        )


def _differences(one: Mapping[str, Any]) -> str:
    smallest, greatest = one["smallest"], one["greatest"]
    if not (smallest or greatest):
        return ": all runs have the same mean"
    if smallest is None:
        return f", though means differ by up to {greatest:.4g}"
    if greatest is None:
        return f", by differences from {smallest:.4g} on"
    return f"; the smallest difference told apart is {smallest:.4g}, the greatest that is not {greatest:.4g}"


def _undefined(done: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for one in done:
        if one["undefined"] is not None:
            yield f"power of {one['measure']}: {one['undefined']}"
        elif one["smallest"] is None:
            yield f"smallest({one['measure']}): no pair is told apart"


def _numbers(done: Sequence[Mapping[str, Any]]) -> dict[str, float | int | None]:
    """power(MEASURE) in per cent, smallest(MEASURE); pairs."""
    found: dict[str, float | int | None] = {}
    for one in done:
        found[f"power({one['measure']})"] = one.get("percent")
        found[f"smallest({one['measure']})"] = one.get("smallest")
        found["pairs"] = one.get("pairs", found.get("pairs"))
    return found


def _measures(done: Sequence[Mapping[str, Any]]) -> ReportTable:
    columns = (
        MEASURE,
        Column("percent", "power, in per cent", "share of the pairs of runs that are told apart"),
        Column("told", "told apart", "pairs"),
        Column("pairs", "pairs", "S (S - 1) / 2 of S runs"),
        Column("smallest", "smallest told apart", "difference of means"),
        Column("greatest", "greatest not told apart", "difference of means"),
        Column(
            "detectable",
            "difference that is found",
            "the true difference that a paired t-test at alpha finds on so many topics four times of five",
        ),
    )
    rows = [tuple(one.get(column.name) for column in columns) for one in done]
    return ReportTable("measures", "What each measure tells apart", columns, tuple(rows))


def _levels(defined: Sequence[Mapping[str, Any]]) -> ReportTable:
    columns = (
        MEASURE,
        Column("alpha", "level"),
        Column("percent", "power, in per cent", "share of the pairs with an ASL below the level"),
    )
    rows = [
        (one["measure"], level, percent)
        for one in defined
        for level, percent in zip(LEVELS, one["levels"], strict=True)
    ]
    return ReportTable("levels", "Power at other levels", columns, tuple(rows))


def _agreement(defined: Sequence[Mapping[str, Any]]) -> ReportTable:
    """How far two measures tell the same pairs apart."""
    columns = (
        Column("first", "first measure"),
        Column("second", "second measure"),
        Column("both", "both", "pairs that both tell apart, with the same run as the better one"),
        Column("only_first", "first alone", "pairs that the first alone tells apart"),
        Column("only_second", "second alone", "pairs that the second alone tells apart"),
        Column("opposite", "opposite", "pairs that both tell apart, each with the other run as the better"),
    )
    rows = [_shared(one, other) for one, other in combinations(defined, 2)]
    return ReportTable("agreement", "Whether measures tell the same pairs apart", columns, tuple(rows))


def _shared(one: Mapping[str, Any], other: Mapping[str, Any]) -> tuple[Cell, ...]:
    pairs = list(zip(one["signs"], other["signs"], strict=True))
    same = sum(a == b != "." for a, b in pairs)
    first, second = (sum(a != "." == b for a, b in of) for of in (pairs, [(b, a) for a, b in pairs]))
    opposite = sum(a != b and "." not in (a, b) for a, b in pairs)
    return one["measure"], other["measure"], same, first, second, opposite


PLOTS = (
    Plot(
        "power",
        "Pairs of runs that are told apart",
        "Discriminative power of each measure, in per cent of the pairs.",
        "bars",
        "measures",
        "measure",
        "percent",
        domain=(0, 100),
    ),
    Plot(
        "levels",
        "Power at other levels",
        "The share of pairs that would be told apart at another level.",
        "curve",
        "levels",
        "alpha",
        "percent",
        series="measure",
        domain=(0, 100),
    ),
)
