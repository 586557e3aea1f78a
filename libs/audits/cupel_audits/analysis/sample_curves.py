"""The report of audits that take judgments away step by step and ask what is left of the order of runs.

A trial is a list with an entry for each step: {"kept": judged documents that are left, "orders":
`orders.against` all judgments, "tau_ap": `orders.weighed` or nothing}.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from cupel_audits.analysis.run_orders import SPREAD, STRONG, TAU, spread
from cupel_audits.report import AuditReport, Cell, Column, Plot, ReportTable
from cupel_audits.subject import About

Trial = Sequence[Mapping[str, Any]]

MEASURE = Column("measure", "measure")


@dataclass(frozen=True)
class Axis:
    """What grows or falls: a column, a step in words, such as "{:g} per cent", and which way it goes."""

    column: Column
    words: str
    falling: bool


def report(
    about: About,
    axis: Axis,
    steps: Sequence[float],
    trials: Sequence[Trial],
    reading: Sequence[str],
    *,
    tau: str = TAU,
) -> AuditReport:
    """The report on `trials` over `steps`, which go the way of the axis or are sorted so that they do.

    tau: what it is, in words.
    """
    order = sorted(range(len(steps)), key=lambda place: steps[place], reverse=axis.falling)
    points = ReportTable("points", "Orders with fewer judgments", _columns(axis, trials), tuple(
        _point(about, measure, steps[place], [trial[place] for trial in trials])
        for measure in about.measures
        for place in order
    ))  # fmt: skip
    return AuditReport(
        verdict=tuple(_verdict(axis, points, measure) for measure in about.measures),
        numbers=_numbers(points),
        tables=(points, _ranks(about, axis, steps, order, trials)),
        plots=_plots(axis, tau),
        reading=(
            f"{tau}. Above {STRONG} two orders are usually taken to say the same.",
            *reading,
        ),
        undefined=tuple(_undefined(axis, points)),
        warnings=about.cautions,
    )


def _columns(axis: Axis, trials: Sequence[Trial]) -> tuple[Column, ...]:
    weighed = (Column("tau_ap", "tau AP", "mean over the repeats"),) if "tau_ap" in trials[0][0] else ()
    return (
        MEASURE,
        axis.column,
        Column("kept", "judgments left", "share of the judged documents, mean over the repeats"),
        *SPREAD,
        Column("score", "mean score", "of all runs, mean over the repeats"),
        *weighed,
    )


def _point(about: About, measure: str, step: float, entries: Trial) -> tuple[Cell, ...]:
    found = [entry["orders"][measure] for entry in entries]
    kept = math.fsum(entry["kept"] for entry in entries) / len(entries) / max(about.judged, 1)
    taus = spread([one["tau"] for one in found])
    score = math.fsum(one["mean"] for one in found) / len(found)
    weighed = [spread([entry["tau_ap"][measure] for entry in entries]).mean] if "tau_ap" in entries[0] else []
    return measure, step, kept, *taus.cells, score, *weighed


def _numbers(points: ReportTable) -> dict[str, float | int | None]:
    """tau(MEASURE)@STEP and kept@STEP."""
    found: dict[str, Any] = {}
    for measure, step, kept, mean, *_ in points.rows:
        found[f"tau({measure})@{step:g}"] = mean
        found[f"kept@{step:g}"] = kept
    return found


def _verdict(axis: Axis, points: ReportTable, measure: str) -> str:
    """How far the order holds, in one sentence."""
    taus = [(float(row[1] or 0), row[3]) for row in points.rows if row[0] == measure]
    defined = [(step, float(tau)) for step, tau in taus if tau is not None]
    if not defined:
        return f"{measure}: undefined, for the runs can't be told apart."
    last, final = defined[-1]
    ending = f"with {axis.words.format(last)} tau is {final:.2f}"
    held = [step for step, tau in defined if tau >= STRONG]
    fallen = next((step for step, tau in defined if tau < STRONG), None)
    if fallen is None:
        return f"{measure}: the order holds throughout; {ending}."
    before = [step for step in held if (step > fallen) == axis.falling]
    if not before:
        return f"{measure}: the order does not hold anywhere (tau below {STRONG}); {ending}."
    if all(row[2] == 1 for row in points.rows if row[0] == measure and row[1] in before):
        return f"{measure}: the order holds (tau at least {STRONG}) only with all judgments; {ending}."
    least = axis.words.format(before[-1])
    way = "down" if axis.falling else "up"
    return f"{measure}: the order holds (tau at least {STRONG}) {way} to {least}; {ending}."


def _ranks(
    about: About, axis: Axis, steps: Sequence[float], order: Sequence[int], trials: Sequence[Trial]
) -> ReportTable:
    """Where each run stands: the middle of its ranks, and the range of nearly all of them."""
    rows = []
    for measure in about.measures:
        for place in order:
            by_run = zip(*(trial[place]["orders"][measure]["ranks"] for trial in trials), strict=True)
            for run, ranks in zip(about.runs, by_run, strict=True):
                rows.append((measure, steps[place], run, median(ranks), min(ranks), max(ranks)))
    columns = (
        MEASURE,
        axis.column,
        Column("run", "run"),
        Column("rank", "rank", "median over the repeats; equal scores share the best rank"),
        Column("best", "best rank", "over the repeats"),
        Column("worst", "worst rank", "over the repeats"),
    )
    return ReportTable("ranks", "Ranks of the runs", columns, tuple(rows))


def _plots(axis: Axis, tau: str) -> tuple[Plot, ...]:
    x = axis.column.name
    return (
        Plot(
            "tau",
            "What is left of the order",
            f"{tau}: mean over the repeats and its 95 per cent interval.",
            "curve",
            "points",
            x,
            "mean",
            series="measure",
            low="low",
            high="high",
            reference=STRONG,
        ),
        Plot(
            "ranks",
            "How ranks change",
            "Median rank of each run at each step; lines that cross are runs that change places.",
            "changes",
            "ranks",
            x,
            "rank",
            series="run",
            facet="measure",
        ),
    )


def _undefined(axis: Axis, points: ReportTable) -> list[str]:
    return [
        f"tau of {row[0]} with {axis.words.format(row[1])}: all runs score the same, there or with all"
        for row in points.rows
        if row[3] is None
    ]
