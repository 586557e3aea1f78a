"""`unlabelled_systems`: runs that did not take part in the pool (Hui, PIKM 2014; spec 7.4)."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

import numpy as np

from cupel_audits.analysis import sample_curves
from cupel_audits.analysis.judgment_samples import shares
from cupel_audits.analysis.pools import Depth, Pools
from cupel_audits.analysis.run_orders import compare_orders
from cupel_audits.declarations import Audit, audit, setting
from cupel_audits.kinds.downsampling import Repeats
from cupel_audits.report import AuditReport, Column, Plot, ReportTable
from cupel_audits.subject import AuditSubject, SubjectSummary
from cupel_measures.comparing.correlation import tau_b
from cupel_measures.grammar.parameters import Number, Numbers, Word
from cupel_measures.model import Ints

Percents = Annotated[
    tuple[float, ...],
    Numbers("rising percentages between 0 and 100, such as [10,50,90]", Number("", 0, 100, (0, 100))),
]
Systems = Annotated[str, Word("all or removed", ("all", "removed"))]
STEPS = (*(float(percent) for percent in range(5, 100, 5)), 99.0)
AXIS = sample_curves.Axis(
    Column("percent", "runs left out of the pool, in per cent", "drawn at random"),
    "{:g} per cent of the runs unlabelled",
    falling=False,
)
READING = (
    "A document loses its judgment only if no run that is left has it among its first ones: runs that are "
    "alike protect each other. `leave_one_team_out` takes whole teams away.",
    "The bias is what an unlabelled run loses in score beyond what a labelled one does. A collection may "
    "have a high tau and still be unfair to whoever was not in the pool.",
)


@audit(
    "unlabelled_systems",
    title="Unlabelled systems",
    answers="How fair is the collection to runs that did not take part in the pool?",
    source="Hui, PIKM 2014, section 3.4 (spec 7.4)",
)
class UnlabelledSystems(Audit):
    """Leaves a part of the runs out of the pool, at random, and ranks all of them.

    Of S runs max(1, min(S - 1, floor(p S / 100))) are left out. Judged documents keep their judgments where
    at least one run that is left has them among its first `depth`. A repeat draws one order of the runs and
    leaves out the first ones of it, so that who is left out at a percentage is so at larger ones.
    """

    percents: Percents = setting(STEPS, "percentages of the runs that are left out")
    repeats: Repeats = setting(30, "how often runs are drawn anew")
    depth: Depth = setting(20, "how deep the pool is")
    systems: Systems = setting("all", "tau is of all runs, or of the removed ones only")

    def problems(self, subject: AuditSubject) -> Iterator[str]:
        yield from super().problems(subject)
        if not subject.about.relevant:
            yield "no document is judged relevant: there is nothing to lose that would matter"
        if self.systems == "removed" and len(subject.about.runs) == 2:
            yield "systems=removed orders the removed runs, and of two only one can be: give three or more"

    def ranking_depth(self) -> int:
        return self.depth

    def trials(self, subject: AuditSubject) -> int:
        return self.repeats

    def steps(self, subject: AuditSubject) -> float:
        return len(self.percents)

    def run_trials(self, subject: AuditSubject, seed: int, trials: Sequence[int]) -> Iterator[Any]:
        pools = Pools.of(subject)
        number = removed(len(subject.about.runs), self.percents)
        for trial in trials:
            order = self.generator(seed, trial).permutation(len(subject.about.runs))
            yield self._trial(subject, pools, order, number)

    def _trial(self, subject: AuditSubject, pools: Pools, order: Ints, number: Sequence[int]) -> list[Any]:
        full, found = subject.means, []
        brought = pools.best <= self.depth
        pool = int((pools.judged & brought.any(axis=0)).sum())
        samples = [pools.mask(pools.judged & brought[order[gone:]].any(axis=0)) for gone in number]
        evaluators = subject.evaluator.nested_samples(samples)
        for gone, kept, evaluator in zip(number, samples, evaluators, strict=True):
            means = subject.means_under(evaluator)
            orders, out = compare_orders(full, means), np.sort(order[:gone])
            if self.systems == "removed":
                for text, one in orders.items():
                    one["tau"] = tau_b(full[text][out], means[text][out]).value
            lost = {text: _lost(full[text] - means[text], order, gone) for text in means}
            found.append({"kept": int(kept.sum()), "pool": pool, "orders": orders, "lost": lost})
        return found

    def report(self, about: SubjectSummary, found: Mapping[int, Any]) -> AuditReport:
        trials = list(found.values())
        report = sample_curves.report(about, AXIS, self.percents, trials, READING)
        bias = _bias(about, self.percents, trials)
        numbers: dict[str, Any] = {f"bias({row[0]})@{row[1]:g}": row[4] for row in bias.rows}
        few = "too few of the removed runs can be told apart"
        undefined = [one.split(":")[0] + f": {few}" for one in report.undefined]
        return replace(
            report,
            verdict=(*report.verdict, *_unfair(about, bias)),
            numbers={**report.numbers, **numbers},
            tables=(*report.tables, bias),
            plots=(*report.plots, PLOT),
            undefined=tuple(undefined) if self.systems == "removed" else report.undefined,
            warnings=(*report.warnings, *_outside(about, self.depth, trials[0][0].get("pool", about.judged))),
        )


def _outside(about: SubjectSummary, depth: int, pool: int) -> Iterator[str]:
    """That some judgments are gone whoever is left out; `pool`: judged documents of all runs' first ones."""
    if pool < about.judged:
        yield (
            f"{about.judged - pool} of {about.judged} judged documents are among the first {depth} of no run "
            "here: they lose their judgments at every percentage; a larger depth keeps them."
        )


def removed(runs: int, percents: Sequence[float]) -> list[int]:
    """How many of so many runs are left out at each percentage: 48 at 5 per cent are 2."""
    return [max(1, min(runs - 1, int(shares(one, np.array([runs]))[0]))) for one in percents]


def _lost(change: Any, order: Ints, gone: int) -> list[float]:
    """The mean loss of score of the runs left out, and of the others."""
    parts = (np.sort(order[:gone]), np.sort(order[gone:]))
    return [math.fsum(change[part].tolist()) / len(part) for part in parts]


def _bias(about: SubjectSummary, percents: Sequence[float], trials: Sequence[Any]) -> ReportTable:
    rows = []
    for measure in about.measures:
        for place, percent in enumerate(percents):
            pairs = [trial[place]["lost"][measure] for trial in trials]
            out, left = (math.fsum(side) / len(trials) for side in zip(*pairs, strict=True))
            rows.append((measure, percent, out, left, out - left))
    columns = (
        sample_curves.MEASURE,
        AXIS.column,
        Column("out", "loss of runs left out", "of mean score, mean over them and the repeats"),
        Column("left", "loss of the others", "likewise"),
        Column("bias", "bias", "the difference: what it costs not to be in the pool"),
    )
    return ReportTable("bias", "Bias against runs left out of the pool", columns, tuple(rows))


PLOT = Plot(
    "bias",
    "Bias against runs left out of the pool",
    "How much more of its score a run loses that is not in the pool than one that is.",
    "curve",
    "bias",
    "percent",
    "bias",
    series="measure",
    reference=0.0,
)


def _unfair(about: SubjectSummary, bias: ReportTable) -> Iterator[str]:
    """The bias at the percentage next to a half, in one sentence for each measure."""
    middle = min((row[1] for row in bias.rows), key=lambda percent: abs(float(percent or 0) - 50))
    for measure, percent, out, left, bias_there in bias.rows:
        if percent == middle:
            yield (
                f"{measure}: with {percent:g} per cent of the runs unlabelled, the mean score of these "
                f"changes by {0 - float(out or 0):+.4f}, that of the others by {0 - float(left or 0):+.4f}: "
                f"a disadvantage of {bias_there:.4f}."
            )
