"""Reports of audits that remove judgments step by step and compare the order of runs with the original one.

A trial is one repeat: a list with a SampleStep for each step, in the order of the steps.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Annotated, NotRequired, TypedDict

from cupel_audits.analysis.run_orders import (
    MONTE_CARLO,
    STRONG,
    STRONG_IN_PAIRS,
    TAU,
    ComparedOrder,
    RepeatSummary,
    summarise_repeats,
)
from cupel_audits.report import AuditReport, Column, Heading, MeasureCell, Plot, RunCell, TableSchema
from cupel_audits.subject import SubjectSummary


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

    column: the table column that contains the steps. words: a format string that describes a step, such as
    "{:g} per cent". falling: True if the steps decrease from all judgments, False if they increase.
    """

    column: Column
    words: str
    falling: bool


@dataclass(frozen=True, kw_only=True)
class CurvePoint:
    """The correlation of the order of runs by one measure with the original order at one step."""

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
) -> AuditReport:
    """Return the report on the repeats, with the steps sorted in the direction of the axis.

    steps: the steps in the order in which each trial lists them. tau: a description of tau, for captions.
    pooled: whether the kind leaves documents in the pool when their judgment is removed. If so, the report
    warns about stored trials that removed such documents from the pool.
    """
    points = points_of(about, axis, steps, trials)
    return AuditReport(
        verdict=(
            *(_verdict(axis, points, measure) for measure in about.measures),
            *([f"{STRONG_IN_PAIRS}."] if any(point.tau.mean is not None for point in points) else ()),
        ),
        numbers=_numbers(points),
        tables=(
            points_schema(axis, trials).table(points),
            RANKS.with_columns("step", axis.column).table(_ranks(about, axis, steps, trials)),
        ),
        plots=_plots(axis, tau, len(trials)),
        reading=(
            f"{tau}. {STRONG_IN_PAIRS} if no scores are tied. Voorhees (IP&M 2000) calls orders with a "
            "greater tau similar; this is a convention, not a test.",
            *reading,
        ),
        undefined=tuple(
            f"tau of {point.measure} with {axis.words.format(point.step)}: all runs have the same score "
            "under these judgments or under all judgments"
            for point in points
            if point.tau.mean is None
        ),
        warnings=(*about.cautions, *(_warn_of_smaller_pools(about, trials) if pooled else ())),
    )


def _warn_of_smaller_pools(about: SubjectSummary, trials: Sequence[SampleTrial]) -> Iterator[str]:
    """Yield a warning if stored trials removed documents from the pool and a measure depends on the pool."""
    smaller = sum(1 for trial in trials if not all(step.get("pooled") for step in trial))
    estimated = [measure for measure in about.measures if "infAP" in measure]
    if smaller and estimated:
        yield (
            f"{', '.join(estimated)}: {smaller} of {len(trials)} repeats were computed by an earlier "
            "release, which removed documents from the pool together with their judgments. The measure is "
            "therefore underestimated; run the audit again"
        )


def points_schema(axis: Axis, trials: Sequence[SampleTrial]) -> TableSchema[CurvePoint]:
    """Return the schema of the points, with the column of the axis, and with tau AP if it was computed."""
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
    """Return the numbers tau(MEASURE)@STEP, and kept@STEP: the share of judged documents that remain."""
    numbers: dict[str, float | int | None] = {}
    for point in points:
        numbers[f"tau({point.measure})@{point.step:g}"] = point.tau.mean
        numbers[f"kept@{point.step:g}"] = point.kept
    return numbers


def _verdict(axis: Axis, points: Sequence[CurvePoint], measure: str) -> str:
    """Return a sentence on the last step at which tau of a measure is at least STRONG."""
    of_measure = [point for point in points if point.measure == measure]
    defined = [(point.step, point.tau.mean) for point in of_measure if point.tau.mean is not None]
    if not defined:
        return f"{measure}: tau is undefined because all runs have the same score."
    last, final = defined[-1]
    ending = f"with {axis.words.format(last)} tau is {final:.2f}"
    fallen = next((step for step, tau in defined if tau < STRONG), None)
    if fallen is None:
        return f"{measure}: tau is at least {STRONG} at every step; {ending}."
    before = [step for step, tau in defined if tau >= STRONG and (step > fallen) == axis.falling]
    if not before:
        return f"{measure}: tau is below {STRONG} from the first step on; {ending}."
    if all(point.kept == 1 for point in of_measure if point.step in before):
        return f"{measure}: tau is at least {STRONG} only with all judgments; {ending}."
    way = "down" if axis.falling else "up"
    return f"{measure}: tau is at least {STRONG} {way} to {axis.words.format(before[-1])}; {ending}."


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


def _plots(axis: Axis, tau: str, repeats: int) -> tuple[Plot, ...]:
    mean = f"{tau}: mean over the repeats and its 95 per cent interval. {MONTE_CARLO}"
    return (
        Plot.curve(
            POINTS.with_columns("step", axis.column),
            "tau",
            title="Agreement with the order under all judgments",
            caption=f"{mean if repeats > 1 else tau}.",
            x=axis.column.name,
            y="mean",
            series="measure",
            low="low",
            high="high",
            reference=STRONG,
        ),
        Plot.changes(
            RANKS.with_columns("step", axis.column),
            "ranks",
            title="Changes of rank",
            caption="Median rank of each run at each step; lines cross where two runs exchange ranks.",
            x=axis.column.name,
            y="rank",
            series="run",
            facet="measure",
        ),
    )
