"""Audit kind `unlabelled_systems`: runs that were not pooled.

It follows Hui (PIKM 2014, section 3.4).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, NamedTuple

import numpy as np

from cupel_audits.analysis import sample_curves
from cupel_audits.analysis.judgment_samples import shares
from cupel_audits.analysis.pools import Depth, Pools
from cupel_audits.analysis.run_orders import compare_orders
from cupel_audits.analysis.sample_curves import Axis, SampleStep
from cupel_audits.declarations import Audit, audit, setting
from cupel_audits.kinds.downsampling import Repeats
from cupel_audits.report import AuditReport, Column, Heading, MeasureCell, Plot, TableSchema
from cupel_audits.subject import AuditSubject, SubjectSummary
from cupel_measures.comparing.rank_correlation import tau_b
from cupel_measures.grammar.parameters import Number, Numbers, Word
from cupel_measures.model import Floats, Ints

Percents = Annotated[
    tuple[float, ...],
    Numbers("increasing percentages between 0 and 100, such as [10,50,90]", Number("", 0, 100, (0, 100))),
]
Systems = Annotated[str, Word("all or removed", ("all", "removed"))]
STEPS = (*(float(percent) for percent in range(5, 100, 5)), 99.0)
READING = (
    "A document loses its judgment only if no remaining run has it within the pool depth. So a run that is "
    "left out loses little if a similar run remains. `leave_one_team_out` leaves out all runs of a team "
    "together.",
    "The bias is the mean score loss of the runs left out minus that of the other runs. A collection can "
    "have a high tau and still be biased against runs that were not pooled. It is a mean over the repeats "
    "without an interval.",
)


class MeanLosses(NamedTuple):
    """The mean score losses of the runs left out of the pool and of the other runs.

    It is serialised to JSON as a list.
    """

    out: float
    left: float


class UnlabelledStep(SampleStep):
    """The result of one step of a repeat.

    pool: number of judged documents among the first `depth` of any run. lost: mean score losses by measure.
    """

    pool: int
    lost: dict[str, MeanLosses]


@audit(
    "unlabelled_systems",
    title="Unlabelled systems",
    answers="How much does the collection disadvantage runs that did not contribute to the pool?",
    source="Hui, PIKM 2014, section 3.4",
)
class UnlabelledSystems(Audit):
    """Leaves random runs out of the pool, and ranks all runs again.

    The runs that are left out are called unlabelled systems. At p per cent, max(1, min(S - 1, floor(p S /
    100))) of S runs are left out. Judged documents keep their judgments if at least one remaining run has
    them among its first `depth`. A repeat draws one random order of the runs and leaves out the first runs of
    this order, so a run left out at one percentage is left out at all larger percentages.
    """

    removes_judgments: ClassVar[bool] = True

    percents: Percents = setting(STEPS, "percentages of the runs to leave out")
    repeats: Repeats = setting(30, "number of random orders of the runs")
    depth: Depth = setting(20, "depth of the pool")
    systems: Systems = setting("all", "runs that tau is computed over: all runs, or only the removed ones")

    def problems(self, subject: AuditSubject) -> Iterator[str]:
        yield from super().problems(subject)
        if self.systems == "removed" and len(subject.about.runs) == 2:
            yield "systems=removed needs two removed runs, and one run has to remain: give three or more runs"

    def ranking_depth(self) -> int:
        return self.depth

    def trials(self, subject: AuditSubject) -> int:
        return self.repeats

    def steps(self, subject: AuditSubject) -> float:
        return len(self.percents)

    def run_trials(
        self, subject: AuditSubject, seed: int, trials: Sequence[int]
    ) -> Iterator[list[UnlabelledStep]]:
        pools = Pools.of(subject)
        for trial in trials:
            order = self.generator(seed, trial).permutation(len(subject.about.runs))
            yield list(self._steps(subject, pools, order))

    def _steps(self, subject: AuditSubject, pools: Pools, order: Ints) -> Iterator[UnlabelledStep]:
        """Yield the result at each percentage; the first runs in `order` are left out."""
        full, is_pooled = subject.means, pools.best <= self.depth
        counts = count_removed(len(order), self.percents)
        samples = [pools.mask(pools.judged & is_pooled[order[count:]].any(axis=0)) for count in counts]
        evaluators = subject.evaluator.nested_samples(samples)
        for count, kept, evaluator in zip(counts, samples, evaluators, strict=True):
            means = subject.means_under(evaluator)
            orders, removed = compare_orders(full, means), np.sort(order[:count])
            if self.systems == "removed":
                for text, compared in orders.items():
                    compared["tau"] = tau_b(full[text][removed], means[text][removed]).value
            yield {
                "kept": int(kept.sum()),
                "pool": int((pools.judged & is_pooled.any(axis=0)).sum()),
                "orders": orders,
                "lost": {text: _mean_losses(full[text] - means[text], order, count) for text in means},
            }

    def report(self, about: SubjectSummary, results: Mapping[int, Sequence[UnlabelledStep]]) -> AuditReport:
        trials = list(results.values())
        report = sample_curves.report(about, _axis(about, self.systems), self.percents, trials, READING)
        bias = _bias_rows(about, self.percents, trials)
        reason = "the removed runs are too few, or all of them have the same score"
        undefined = [f"{sentence.split(':')[0]}: {reason}" for sentence in report.undefined]
        return replace(
            report,
            verdict=(*report.verdict, *_describe_bias(about, bias, len(trials))),
            numbers={**report.numbers, **{f"bias({row.measure})@{row.percent:g}": row.bias for row in bias}},
            tables=(*report.tables, BIAS.table(bias)),
            plots=(*report.plots, _plot(about, bias)),
            actions=(*report.actions, *_advice(bias)),
            undefined=tuple(undefined) if self.systems == "removed" else report.undefined,
            warnings=(
                *report.warnings,
                *_judged_outside(about, self.depth, trials[0][0].get("pool", about.judged)),
            ),
        )


def _axis(about: SubjectSummary, systems: str) -> Axis:
    column = Column("percent", "runs left out of the pool, in per cent", "drawn at random")
    compared = "removed runs" if systems == "removed" else "runs"
    return Axis(
        column, lambda percent, kept: _describe_step(about, percent), falling=False, compared=compared
    )


def _describe_step(about: SubjectSummary, percent: float) -> str:
    """Return the number of runs left out as text, such as "10 of 21 runs left out"."""
    [removed] = count_removed(len(about.runs), [percent])
    return f"{removed} of {len(about.runs)} runs left out"


def _judged_outside(about: SubjectSummary, depth: int, pool: int) -> Iterator[str]:
    """Yield a warning if some judgments are lost at every percentage.

    pool: number of judged documents among the first `depth` of any run.
    """
    if pool < about.judged:
        yield (
            f"{about.judged - pool} of {about.judged} judged documents are not in the top {depth} of "
            "any audited run: they lose their judgments at every percentage; set a larger depth to keep them."
        )


def count_removed(n_runs: int, percents: Sequence[float]) -> list[int]:
    """Return the number of runs to leave out at each percentage.

    For example, 2 of 48 runs are left out at 5%.
    """
    return [max(1, min(n_runs - 1, int(shares(percent, np.array([n_runs]))[0]))) for percent in percents]


def _mean_losses(losses: Floats, order: Ints, n_removed: int) -> MeanLosses:
    """Return the mean loss of score of the runs left out, and of the others."""
    parts = (np.sort(order[:n_removed]), np.sort(order[n_removed:]))
    return MeanLosses(*(math.fsum(losses[part].tolist()) / len(part) for part in parts))


@dataclass(frozen=True, kw_only=True)
class BiasRow:
    """The mean score loss of runs left out and of the other runs, by one measure.

    The first mean is over the runs left out of the pool.
    """

    measure: MeasureCell
    percent: Annotated[float, Heading("runs left out of the pool, in per cent", "drawn at random")]
    out: Annotated[float, Heading("loss of the runs left out", "of mean score, mean over runs and repeats")]
    left: Annotated[float, Heading("loss of the other runs", "of mean score, mean over runs and repeats")]
    bias: Annotated[float, Heading("bias", "loss of the runs left out minus loss of the other runs")]


BIAS = TableSchema.of("bias", "Bias against runs left out of the pool", BiasRow)


def _plot(about: SubjectSummary, bias: Sequence[BiasRow]) -> Plot:
    return Plot.curve(
        BIAS,
        "bias",
        title=_title(about, bias),
        caption="Mean score loss of the runs left out of the pool minus that of the other runs, mean over "
        "the repeats.",
        x="percent",
        y="bias",
        series="measure",
        reference=0.0,
        reference_label="0: no bias",
    )


def _title(about: SubjectSummary, bias: Sequence[BiasRow]) -> str:
    most = max(bias, key=lambda row: row.bias)
    if most.bias <= 0:
        return "At no step do the runs left out of the pool lose more on average than the other runs"
    return (
        f"Runs left out of the pool lose on average up to {most.bias:.4f} more than the other runs (by "
        f"{most.measure}, with {_describe_step(about, most.percent)})"
    )


def _advice(bias: Sequence[BiasRow]) -> Iterator[str]:
    """Yield what to do about a bias against runs that were not pooled."""
    if max(row.bias for row in bias) > 0:
        yield (
            "Judge the first documents of a new run before you compare it with pooled runs, or report its "
            "unjudged share beside its score. `cupel audit unjudged` lists the documents that matter most."
        )
    yield (
        "Run `cupel audit leave_one_team_out` for the loss of each team. Here runs are drawn at random, so a "
        "similar run of the same team often remains in the pool."
    )


def _bias_rows(
    about: SubjectSummary, percents: Sequence[float], trials: Sequence[Sequence[UnlabelledStep]]
) -> list[BiasRow]:
    rows = []
    for measure in about.measures:
        for place, percent in enumerate(percents):
            losses = [MeanLosses(*steps[place]["lost"][measure]) for steps in trials]
            out = math.fsum(loss.out for loss in losses) / len(trials)
            left = math.fsum(loss.left for loss in losses) / len(trials)
            rows.append(BiasRow(measure=measure, percent=percent, out=out, left=left, bias=out - left))
    return rows


def _describe_bias(about: SubjectSummary, bias: Sequence[BiasRow], repeats: int) -> Iterator[str]:
    """Yield one sentence per measure on the bias at the percentage nearest to 50."""
    middle = min((row.percent for row in bias), key=lambda percent: abs(percent - 50))
    for row in bias:
        if row.percent == middle:
            yield (
                f"{row.measure}: with {_describe_step(about, row.percent)}, the mean score of these "
                f"runs changes by {0 - row.out:+.4f}, and that of the other runs by "
                f"{0 - row.left:+.4f}. The bias against the runs left out is {row.bias:.4f} "
                f"({f'mean over {repeats} repeats' if repeats > 1 else '1 repeat'}, no interval)."
            )
