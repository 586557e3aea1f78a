"""Audit kind `content`: text-based measures with few judgments.

Source: Hui, PIKM 2014, section 5.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, TypedDict

from cupel_audits.analysis import content_measures, judgment_samples, sample_curves
from cupel_audits.analysis.content_measures import CLASSIC, MeasureText
from cupel_audits.analysis.judgment_samples import Judged
from cupel_audits.analysis.pools import Depth, Pools
from cupel_audits.analysis.run_orders import MONTE_CARLO, RepeatSummary, compare_orders, summarise_repeats
from cupel_audits.analysis.sample_curves import CurvePoint, SampleStep
from cupel_audits.declarations import Audit, audit, setting
from cupel_audits.kinds import pool_depth
from cupel_audits.kinds.downsampling import KEPT, Percents, Repeats
from cupel_audits.kinds.incomplete import two_strata
from cupel_audits.report import (
    AuditReport,
    Column,
    Heading,
    MeasureCell,
    Plot,
    TableSchema,
    merged,
    name_some,
)
from cupel_audits.subject import AuditSubject, SubjectSummary
from cupel_measures.catalogue.parser import parse
from cupel_measures.comparing.rank_correlation import tau_b
from cupel_measures.grammar.measure import Measure
from cupel_measures.grammar.parameters import Word
from cupel_measures.model import Floats
from cupel_measures.scoring.pool import Mask

Curve = Annotated[
    str,
    Word("incomplete, downsampling or pool_depth", ("incomplete", "downsampling", "pool_depth")),
]
READING = (
    "All measures are compared with the reference, the order of runs by the classic measure under all "
    "judgments. A measure can preserve its own order and still have a low tau, if the two orders differ.",
    "A text-based measure scores unjudged documents by their text. Under all judgments, the classic measure "
    "has tau 1 by definition, so compare how fast the curves fall.",
)


class ContentStep(SampleStep):
    """The result of one step of a repeat.

    The orders are compared with the order by the reference under all judgments. own: for each measure, tau-b
    between its scores at this step and its scores under all judgments; None where it is undefined.
    """

    own: dict[str, float | None]


class ContentTrial(TypedDict):
    """The result of one repeat; JSON-serialisable."""

    reference: str
    steps: list[ContentStep]


@audit(
    "content",
    title="Text-based measures",
    answers="With few judgments, do text-based measures order runs better than classic measures?",
    source="Hui, PIKM 2014, section 5",
)
class ContentRobustness(Audit):
    """Removes judgments, and ranks the runs by text-based and by classic measures.

    `curve` selects how judgments are removed: at random as in `incomplete`; at random and stratified by grade
    as in `downsampling`; or outside a shallower pool as in `pool_depth`. Documents that lose their judgment
    leave the pool with `pool_depth`, and stay in it with the other methods. At each step, the runs are scored
    by each measure under the remaining judgments. The report gives tau-b between these scores and those of
    the classic measure `reference` under all judgments. It also gives tau-b between these scores and those of
    the same measure under all judgments.

    The reference is always added to the measures. LMD is added if none of the measures is text-based.
    """

    needs_texts: ClassVar[bool] = True

    curve: Curve = setting("incomplete", "method of removing judgments")
    reference: MeasureText = setting(CLASSIC, "classic measure that all measures are compared with")
    percents: Percents = setting(
        (100.0, 70.0, 50.0, 40.0, 30.0, 20.0, 10.0, 5.0),
        "percentages of the judgments to keep (ignored by pool_depth)",
    )
    deepest: Depth = setting(20, "depth of the deepest pool (used by pool_depth only)")
    repeats: Repeats = setting(30, "number of random samples at each percentage (ignored by pool_depth)")

    def problems(self, subject: AuditSubject) -> Iterator[str]:
        yield from super().problems(subject)
        yield from content_measures.problems(subject, self.reference)

    def ranking_depth(self) -> int:
        return self.deepest if self.curve == "pool_depth" else 0

    def trials(self, subject: AuditSubject) -> int:
        return 1 if self.curve == "pool_depth" else self.repeats

    def steps(self, subject: AuditSubject) -> float:
        return 20.0 * len(self._steps)

    @property
    def _steps(self) -> tuple[float, ...]:
        return tuple(range(self.deepest, 0, -1)) if self.curve == "pool_depth" else self.percents

    def _compared(self, measures: Sequence[str]) -> list[str]:
        """Return `measures` and the reference, with at least one text-based measure.

        LMD is added if none of `measures` is text-based.
        """
        added = [] if any(parse(text).declaration.texts for text in measures) else ["LMD"]
        return [*measures, *added, self.reference]

    def run_trials(self, subject: AuditSubject, seed: int, trials: Sequence[int]) -> Iterator[ContentTrial]:
        measures = content_measures.bound(subject, self._compared(subject.about.measures))
        full = content_measures.means_of(subject.evaluator, measures)
        [reference] = content_measures.bound(subject, [self.reference])
        for trial in trials:
            samples = self._samples(subject, seed, trial)
            steps = [self._step(subject, kept, measures, full, str(reference)) for kept in samples]
            yield {"reference": str(reference), "steps": steps}

    def _samples(self, subject: AuditSubject, seed: int, trial: int) -> Iterator[Mask]:
        """Yield for each step the documents that keep their judgments, bool[D]."""
        if self.curve == "pool_depth":
            pools = Pools.of(subject)
            return (pools.mask(pools.pooled(int(depth)) & pools.judged) for depth in self._steps)
        judged = two_strata(subject) if self.curve == "incomplete" else Judged.of(subject, None)
        return judgment_samples.stratified(self.generator(seed, trial), judged, self.percents)

    @property
    def _keeps_pool(self) -> bool:
        """Return whether documents stay in the pool when their judgment is removed.

        They then stay as unjudged documents.
        """
        return self.curve != "pool_depth"

    def _step(
        self,
        subject: AuditSubject,
        kept: Mask,
        measures: Sequence[Measure],
        full: Mapping[str, Floats],
        reference: str,
    ) -> ContentStep:
        evaluator = subject.evaluator.restricted_to(kept, pooled=self._keeps_pool)
        means = content_measures.means_of(evaluator, measures)
        return {
            "kept": int(kept.sum()),
            "orders": compare_orders(dict.fromkeys(means, full[reference]), means),
            "own": {text: tau_b(full[text], scores).value for text, scores in means.items()},
            "pooled": self._keeps_pool,
        }

    def report(self, about: SubjectSummary, results: Mapping[int, ContentTrial]) -> AuditReport:
        axis = pool_depth.AXIS if self.curve == "pool_depth" else KEPT
        trials = [trial["steps"] for trial in results.values()]
        reference = next(iter(results.values()))["reference"]
        compared = replace(about, measures=tuple(trials[0][0]["orders"]))
        tau = (
            f"tau-b between the runs' scores under these judgments and their scores by {reference} under all "
            "judgments"
        )
        curves = sample_curves.report(
            compared, axis, self._steps, trials, READING, tau=tau, pooled=self._keeps_pool
        )
        points = sample_curves.points_of(compared, axis, self._steps, trials)
        steps = {point.step: axis.describe(point.step, point.kept) for point in points}
        own_orders = _report_own_orders(compared, axis.column, steps, self._steps, trials)
        return replace(
            merged([curves, own_orders]),
            verdict=tuple(_verdicts(steps, points, reference)),
            actions=tuple(_advice(points, reference)),
        )


def _advice(points: Sequence[CurvePoint], reference: str) -> Iterator[str]:
    """Yield how to use the findings on the text-based measures."""
    taus = {(point.measure, point.step): point.tau.mean for point in points}
    for text in dict.fromkeys(point.measure for point in points if parse(point.measure).declaration.texts):
        steps = [(tau, taus[reference, step]) for (measure, step), tau in taus.items() if measure == text]
        pairs = [(tau, other) for tau, other in steps if tau is not None and other is not None]
        if any(tau > other for tau, other in pairs):
            yield (
                f"Do not infer from a higher tau alone that {text} orders runs better than {reference} at "
                "that step: the difference of the two taus is not tested."
            )
        elif pairs:
            yield (
                f"At every step where both are defined, tau of {reference} is at least as high as tau of "
                f"{text} (untested). Both are compared with the order by {reference} under all judgments."
            )
    yield "Judge more documents if you can: a text-based measure with few judgments is a substitute for them."


@dataclass(frozen=True, kw_only=True)
class OwnOrderRow:
    """The correlation of a measure's order at one step with its own original order.

    The correlation is summarised over all repeats.
    """

    measure: MeasureCell
    step: Annotated[float, Heading("step")]
    tau: RepeatSummary


OWN_ORDERS = TableSchema.of(
    "own", "Correlation with the measure's own order under all judgments", OwnOrderRow
)


def _report_own_orders(
    about: SubjectSummary,
    column: Column,
    descriptions: Mapping[float, str],
    steps: Sequence[float],
    trials: Sequence[Sequence[ContentStep]],
) -> AuditReport:
    """Return the report on each measure's correlation with its own original order.

    It has a table, a plot and numbers. descriptions: a description of each step.
    """
    schema = OWN_ORDERS.with_columns("step", column)
    rows = [
        OwnOrderRow(
            measure=text, step=step, tau=summarise_repeats([trial[place]["own"][text] for trial in trials])
        )
        for text in about.measures
        for place, step in enumerate(steps)
    ]
    plot = Plot.curve(
        schema,
        "own",
        title=_own_title(rows),
        caption="Stability of each measure's own order: tau-b between the runs' scores by the measure under "
        "these judgments and under all of them. "
        f"{MONTE_CARLO}.",
        x=column.name,
        y="mean",
        series="measure",
        low="low",
        high="high",
    )
    return AuditReport(
        verdict=(),
        numbers={f"own({row.measure})@{row.step:g}": row.tau.mean for row in rows},
        tables=(schema.table(rows),),
        plots=(plot,),
        undefined=tuple(
            f"own tau of {row.measure} with {descriptions[row.step]}: all runs have the same score "
            "under these judgments or under all judgments"
            for row in rows
            if row.tau.mean is None
        ),
    )


def _own_title(rows: Sequence[OwnOrderRow]) -> str:
    """Return the measures with the highest and the lowest tau at the last step."""
    at_last = (row for row in rows if row.step == rows[-1].step)
    last = {row.measure: row.tau.mean for row in at_last if row.tau.mean is not None}
    if not last:
        return "At the last step, no tau with the own order is defined"
    most, least = max(last.values()), min(last.values())
    highest, lowest = (
        name_some([text for text, tau in last.items() if tau == end], "measures") for end in (most, least)
    )
    if most == least:
        return f"At the last step, tau with the own order is {most:.2f} by {highest}"
    return (
        f"At the last step, tau with the own order is highest by {highest} ({most:.2f}), lowest by {lowest} "
        f"({least:.2f})"
    )


def _verdicts(steps: Mapping[float, str], points: Sequence[CurvePoint], reference: str) -> Iterator[str]:
    """Yield a sentence for each text-based measure.

    It compares the curve of the measure with that of the reference. steps: a description of each step.
    """
    curves: dict[str, dict[float, float | None]] = {}
    for point in points:
        curves.setdefault(point.measure, {})[point.step] = point.tau.mean
    for text, curve in curves.items():
        if parse(text).declaration.texts:
            yield _verdict(steps, text, reference, curve, curves[reference])


def _verdict(
    descriptions: Mapping[float, str],
    text: str,
    reference: str,
    curve: Mapping[float, float | None],
    reference_curve: Mapping[float, float | None],
) -> str:
    both = {
        step: (tau, other)
        for step, tau in curve.items()
        if tau is not None and (other := reference_curve[step]) is not None
    }
    if not both:
        return f"{text}: undefined because tau of {text} or of {reference} is undefined at every step."
    steps = list(both)
    first, last = steps[0], steps[-1]
    higher = [step for step, (tau, other) in both.items() if tau > other]
    since = f", first with {descriptions[higher[0]]}" if higher else ""
    return (
        f"{text}: tau with the order of {reference} under all judgments is {both[first][0]:.2f} with "
        f"{descriptions[first]}, and {both[last][0]:.2f} with {descriptions[last]}. "
        f"With {descriptions[last]}, tau of {reference} itself is {both[last][1]:.2f}. "
        f"{text} has the higher tau at {len(higher)} of {len(steps)} steps{since}."
    )
