"""Reports of audits that remove judgments step by step.

At each step, the order of runs is compared with the original one.

A trial is one repeat: a list with a SampleStep for each step, in the order of the steps.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from statistics import median
from typing import Annotated, NotRequired, TypedDict

from cupel_audits.analysis.run_orders import (
    MONTE_CARLO,
    STRONG,
    STRONG_IN_PAIRS,
    STRONG_LABEL,
    TAU,
    ComparedOrder,
    RepeatSummary,
    summarise_repeats,
)
from cupel_audits.report import (
    AuditReport,
    Column,
    Heading,
    MeasureCell,
    Plot,
    RunCell,
    TableSchema,
    name_some,
)
from cupel_audits.subject import SubjectSummary

MOST_CLAUSES = 3
"""The most clauses of a title."""


class SampleStep(TypedDict):
    """The result of one step of a repeat; JSON-serialisable.

    kept: number of judged documents that remain. orders: by measure, the order of runs compared with the
    order under all judgments. tau_ap: tau AP by measure, if the audit computes it. pooled: whether documents
    whose judgment is removed stay in the pool as unjudged documents. Earlier releases did not store `pooled`,
    and removed these documents from the pool.
    """

    kept: int
    orders: dict[str, ComparedOrder]
    tau_ap: NotRequired[dict[str, float | None]]
    pooled: NotRequired[bool]


SampleTrial = Sequence[SampleStep]


@dataclass(frozen=True)
class Axis:
    """The quantity that changes from step to step.

    column: the table column that contains the steps. describe: returns a description of a step, such as
    "a pool of depth 5", from the step and the share of the judgments left. falling: True if the steps
    decrease from all judgments, False if they increase. compared: "runs", or "removed runs" if tau is
    computed over these only.
    """

    column: Column
    describe: Callable[[float, float], str]
    falling: bool
    compared: str = "runs"


@dataclass(frozen=True, kw_only=True)
class CurvePoint:
    """The correlation of the order of runs at one step with the original order.

    Both orders are by one measure.
    """

    measure: MeasureCell
    step: Annotated[float, Heading("step")]
    kept: Annotated[float, Heading("judgments left", "share of the judged documents, mean over the repeats")]
    tau: RepeatSummary
    score: Annotated[float, Heading("mean score", "of all runs, mean over the repeats")]
    tau_ap: Annotated[float | None, Heading("tau AP", "mean over the repeats")] = None


@dataclass(frozen=True, kw_only=True)
class RanksOfRun:
    """The ranks of one run by one measure at one step, over all repeats."""

    measure: MeasureCell
    step: Annotated[float, Heading("step")]
    run: RunCell
    rank: Annotated[float, Heading("rank", "median over the repeats; equal scores share the best rank")]
    best: Annotated[int, Heading("best rank", "over the repeats")]
    worst: Annotated[int, Heading("worst rank", "over the repeats")]


POINTS = TableSchema.of("points", "Orders with fewer judgments", CurvePoint)
RANKS = TableSchema.of("ranks", "Ranks of the runs", RanksOfRun)


def report(
    about: SubjectSummary,
    axis: Axis,
    steps: Sequence[float],
    trials: Sequence[SampleTrial],
    reading: Sequence[str],
    *,
    tau: str = TAU,
    pooled: bool = False,
    actions: Sequence[str] = (),
) -> AuditReport:
    """Return the report on the repeats.

    The steps are sorted in the direction of the axis.

    steps: the steps in the order in which each trial lists them. tau: a description of tau, for captions.
    pooled: whether the kind leaves documents in the pool when their judgment is removed. If so, the report
    warns about stored trials that removed such documents from the pool. actions: what to do.
    """
    points = points_of(about, axis, steps, trials)
    ranks = _ranks(about, axis, steps, trials)
    return AuditReport(
        verdict=(
            *(_verdict(axis, points, measure, len(trials)) for measure in about.measures),
            *([f"{STRONG_IN_PAIRS}."] if any(point.tau.mean is not None for point in points) else ()),
        ),
        numbers=_numbers(points),
        tables=(
            points_schema(axis, trials).table(points),
            RANKS.with_columns("step", axis.column).table(ranks),
        ),
        plots=_plots(axis, tau, len(trials), points, ranks),
        reading=(
            f"{tau}. {STRONG_IN_PAIRS}. Voorhees (IP&M 2000) calls orders with a "
            "greater tau similar; this is a convention, not a test.",
            *reading,
        ),
        undefined=tuple(
            f"tau of {point.measure} at step {point.step:g} ({axis.describe(point.step, point.kept)}): all "
            "runs have the same score under these judgments or under all judgments"
            for point in points
            if point.tau.mean is None
        ),
        warnings=(*about.cautions, *(_warn_of_smaller_pools(about, trials) if pooled else ())),
        actions=tuple(actions),
    )


def _warn_of_smaller_pools(about: SubjectSummary, trials: Sequence[SampleTrial]) -> Iterator[str]:
    """Yield a warning on stored trials that removed documents from the pool.

    Nothing is yielded if no measure depends on the pool.
    """
    smaller = sum(1 for trial in trials if not all(step.get("pooled") for step in trial))
    estimated = [measure for measure in about.measures if "infAP" in measure]
    if smaller and estimated:
        yield (
            f"{', '.join(estimated)}: {smaller} of {len(trials)} repeats were computed by an earlier "
            "release, which removed documents from the pool together with their judgments. The measure is "
            "therefore underestimated; run the audit again"
        )


def points_schema(axis: Axis, trials: Sequence[SampleTrial]) -> TableSchema[CurvePoint]:
    """Return the schema of the points.

    It has the column of the axis, and tau AP if it was computed.
    """
    schema = POINTS.with_columns("step", axis.column)
    return schema if "tau_ap" in trials[0][0] else schema.with_columns("tau_ap")


def points_of(
    about: SubjectSummary, axis: Axis, steps: Sequence[float], trials: Sequence[SampleTrial]
) -> list[CurvePoint]:
    """Return the points of each measure, in the direction of the axis."""
    return [
        _point(about, measure, steps[index], [trial[index] for trial in trials])
        for measure in about.measures
        for index in _step_order(axis, steps)
    ]


def _step_order(axis: Axis, steps: Sequence[float]) -> list[int]:
    """Return the indices of the steps, sorted in the direction of the axis."""
    return sorted(range(len(steps)), key=lambda index: steps[index], reverse=axis.falling)


def _point(about: SubjectSummary, measure: str, step: float, repeats: Sequence[SampleStep]) -> CurvePoint:
    orders = [repeat["orders"][measure] for repeat in repeats]
    weighted = [repeat["tau_ap"][measure] for repeat in repeats if "tau_ap" in repeat]
    return CurvePoint(
        measure=measure,
        step=step,
        kept=math.fsum(repeat["kept"] for repeat in repeats) / len(repeats) / max(about.judged, 1),
        tau=summarise_repeats([order["tau"] for order in orders]),
        score=math.fsum(order["mean"] for order in orders) / len(orders),
        tau_ap=summarise_repeats(weighted).mean,
    )


def _numbers(points: Sequence[CurvePoint]) -> Mapping[str, float | int | None]:
    """Return the numbers tau(MEASURE)@STEP and kept@STEP.

    kept@STEP is the share of judged documents that remain.
    """
    numbers: dict[str, float | int | None] = {}
    for point in points:
        numbers[f"tau({point.measure})@{point.step:g}"] = point.tau.mean
        numbers[f"kept@{point.step:g}"] = point.kept
    return numbers


@dataclass(frozen=True)
class Reach:
    """How far tau of one measure is at least STRONG.

    points: all steps of the measure. defined: those with a defined tau. strong: those before the first step
    at which tau is undefined or below STRONG. repeats: the number of repeats.
    """

    points: Sequence[CurvePoint]
    defined: Sequence[CurvePoint]
    strong: Sequence[CurvePoint]
    repeats: int

    @classmethod
    def of(cls, points: Sequence[CurvePoint], measure: str, repeats: int) -> "Reach":
        """Find the steps of a measure; points are in the direction of the axis."""
        same = [point for point in points if point.measure == measure]
        defined = [point for point in same if point.tau.mean is not None]
        return cls(same, defined, list(takewhile(_is_strong, same)), repeats)

    @property
    def is_untested(self) -> bool:
        """Return whether no step removed a judgment."""
        return all(point.kept == 1 for point in self.points)

    @property
    def falls_below(self) -> bool:
        """Return whether tau is at least STRONG at first, and smaller later."""
        return bool(self.strong) and not all(map(_is_strong, self.defined))

    @property
    def is_low_at_first(self) -> bool:
        """Return whether tau is defined at the first step and below STRONG."""
        return self.points[:1] == self.defined[:1] and not self.strong

    def describe(self, axis: Axis) -> str:
        """Return a clause on the last step before tau first falls below STRONG."""
        if not self.defined:
            return "tau is undefined"
        if self.is_untested:
            return "no judgment was removed at any step, so nothing was tested"
        tau = self._name_tau()
        if all(map(_is_strong, self.defined)):
            return f"{tau} is at least {STRONG} at every step{self._count_defined()}{_note(self.defined)}"
        if not self.strong:
            if self.is_low_at_first:
                return f"{tau} is below {STRONG} at the first step"
            return f"{tau} is undefined at the first step, and below {STRONG} at a later one"
        return f"{tau} is at least {STRONG} {self._describe_last(axis)}{_note(self.strong)}"

    def _count_defined(self) -> str:
        number, steps = len(self.defined), len(self.points)
        return "" if number == steps else f" where it is defined ({number} of {steps})"

    def _describe_last(self, axis: Axis) -> str:
        if all(point.kept == 1 for point in self.strong):
            return "with all judgments, but not at the next step"
        last = self.strong[-1]
        return f"{'down' if axis.falling else 'up'} to {axis.describe(last.step, last.kept)}"

    def _name_tau(self) -> str:
        if self.repeats == 1:
            return "tau"
        most = max(point.tau.n for point in self.defined)
        is_same = all(point.tau.n == self.repeats for point in self.defined)
        return f"mean tau over {'' if is_same else 'up to '}{most} repeat{'s' * (most > 1)}"

    def describe_end(self, axis: Axis) -> str:
        """Return a clause on tau at the last step where it is defined.

        Repeats with an undefined tau are not in the mean, so they are counted.
        """
        last = self.defined[-1]
        tau = f"with {axis.describe(last.step, last.kept)} it is {last.tau.mean:.2f}"
        if last.tau.n == self.repeats:
            return tau
        others = f"in the others all {axis.compared} have the same score"
        return f"{tau} ({last.tau.n} of {self.repeats} repeats; {others})"


def _is_strong(point: CurvePoint) -> bool:
    return point.tau.mean is not None and point.tau.mean >= STRONG


def _note(points: Sequence[CurvePoint]) -> str:
    """Return the least tau of a repeat if it is below STRONG."""
    least = min(point.tau.least or 0.0 for point in points)
    return f" (least {least:.4f})" if least < STRONG else ""


def _verdict(axis: Axis, points: Sequence[CurvePoint], measure: str, repeats: int) -> str:
    """Return a sentence on the last step before tau of a measure falls below STRONG."""
    reach = Reach.of(points, measure, repeats)
    if not reach.defined:
        few = "" if axis.compared == "runs" else f"there are too few {axis.compared}, or "
        return (
            f"{measure}: tau is undefined at every step: {few}all {axis.compared} have the same score under "
            "the remaining or under all judgments."
        )
    if reach.is_untested:
        return f"{measure}: {reach.describe(axis)}."
    return f"{measure}: {reach.describe(axis)}; {reach.describe_end(axis)}."


def _tau_title(axis: Axis, points: Sequence[CurvePoint], repeats: int) -> str:
    """Return the finding of the plot of tau, by measure.

    The finding is how far tau is at least STRONG.
    """
    measures: dict[str, list[str]] = {}
    for measure in dict.fromkeys(point.measure for point in points):
        measures.setdefault(Reach.of(points, measure, repeats).describe(axis), []).append(measure)
    clauses = [f"{name_some(names, 'measures')}: {reach}" for reach, names in measures.items()]
    return "; ".join(clauses[:MOST_CLAUSES]) + ("; …" if len(clauses) > MOST_CLAUSES else "")


def _ranks_title(ranks: Sequence[RanksOfRun], rank_name: str) -> str:
    """Return the finding of the plot of ranks: the run whose rank changes most."""
    by_run: dict[tuple[str, str], list[RanksOfRun]] = {}
    for row in ranks:
        by_run.setdefault((row.run, row.measure), []).append(row)
    (run, measure), rows = max(by_run.items(), key=lambda item: _spread(item[1]))
    largest = _spread(rows)
    if not largest:
        return f"No run changes its {rank_name}"
    is_tied = sum(_spread(others) == largest for others in by_run.values()) > 1
    changes = f"No run changes its {rank_name} more than {run}"
    if not is_tied:
        changes = f"{run} changes its {rank_name} most"
    low, high = min(row.rank for row in rows), max(row.rank for row in rows)
    return f"{changes}: between {low:g} and {high:g} by {measure}"


def _spread(rows: Sequence[RanksOfRun]) -> float:
    return max(row.rank for row in rows) - min(row.rank for row in rows)


def _ranks(
    about: SubjectSummary, axis: Axis, steps: Sequence[float], trials: Sequence[SampleTrial]
) -> list[RanksOfRun]:
    rows = []
    for measure in about.measures:
        for index in _step_order(axis, steps):
            by_run = zip(*(trial[index]["orders"][measure]["ranks"] for trial in trials), strict=True)
            for run, ranks in zip(about.runs, by_run, strict=True):
                rows.append(
                    RanksOfRun(
                        measure=measure,
                        step=steps[index],
                        run=run,
                        rank=median(ranks),
                        best=min(ranks),
                        worst=max(ranks),
                    )
                )
    return rows


def _plots(
    axis: Axis, tau: str, repeats: int, points: Sequence[CurvePoint], ranks: Sequence[RanksOfRun]
) -> tuple[Plot, ...]:
    rank_name = "median rank" if repeats > 1 else "rank"
    mean = f"{tau}: mean over the repeats and its 95 per cent interval. {MONTE_CARLO}"
    return (
        Plot.curve(
            POINTS.with_columns("step", axis.column),
            "tau",
            title=_tau_title(axis, points, repeats),
            caption=f"{mean if repeats > 1 else tau}.",
            x=axis.column.name,
            y="mean",
            series="measure",
            low="low",
            high="high",
            reference=STRONG,
            reference_label=STRONG_LABEL,
        ),
        Plot.changes(
            RANKS.with_columns("step", axis.column),
            "ranks",
            title=_ranks_title(ranks, rank_name),
            caption=f"{rank_name.capitalize()} of each run at each step; lines cross where two runs exchange "
            "ranks.",
            x=axis.column.name,
            y="rank",
            series="run",
            facet="measure",
        ),
    )
