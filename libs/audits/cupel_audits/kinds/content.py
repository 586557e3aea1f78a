"""`content`: measures of texts beside classic ones as judgments become few (Hui, PIKM 2014, 5; spec 7.5)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar

from cupel_audits.analysis import content_measures, judgment_samples, sample_curves
from cupel_audits.analysis.content_measures import CLASSIC, MeasureText
from cupel_audits.analysis.judgment_samples import Judged
from cupel_audits.analysis.pools import Depth, Pools
from cupel_audits.analysis.run_orders import SPREAD, compare_orders, spread
from cupel_audits.declarations import Audit, audit, setting
from cupel_audits.kinds import pool_depth
from cupel_audits.kinds.downsampling import KEPT, Percents, Repeats
from cupel_audits.kinds.incomplete import halves
from cupel_audits.report import AuditReport, Plot, ReportTable, merged
from cupel_audits.subject import AuditSubject, SubjectSummary
from cupel_measures.catalogue.parser import parse
from cupel_measures.comparing.correlation import tau_b
from cupel_measures.grammar.measure import Measure
from cupel_measures.grammar.parameters import Word
from cupel_measures.model import Floats
from cupel_measures.scoring.pool import Mask

Curve = Annotated[
    str,
    Word("incomplete, downsampling or pool_depth", ("incomplete", "downsampling", "pool_depth")),
]
READING = (
    "All measures are held against one order, that of a classic measure under all judgments: a measure that "
    "keeps its own order but orders runs by something else does not gain by that.",
    "A measure of texts scores unjudged documents by what they say. Where all judgments are at hand the "
    "classic measure has tau 1 by definition; what counts is how it falls.",
)


@audit(
    "content",
    title="Measures of texts",
    answers="With few judgments, do measures of texts order runs better than classic ones?",
    source="Hui, PIKM 2014, section 5 (spec 7.5)",
)
class ContentRobustness(Audit):
    """Takes judgments away and ranks the runs by measures of texts and by classic ones.

    Judgments go as `curve` says: at random as in `incomplete` (7.3) or, stratified by grade, as in
    `downsampling`; or those that a shallower pool lacks, as in `pool_depth` (7.2). At each step tau-b is
    between the runs' scores by a measure under the judgments that are left, and those by the classic
    measure `reference` under all of them; beside it stands tau with the measure's own order under all.

    LMD joins the measures where none of them looks at texts, and so does the reference.
    """

    needs_texts: ClassVar[bool] = True

    curve: Curve = setting("incomplete", "how judgments become fewer")
    reference: MeasureText = setting(CLASSIC, "the classic measure that all are held against")
    percents: Percents = setting(
        (100.0, 70.0, 50.0, 40.0, 30.0, 20.0, 10.0, 5.0), "percentages that are kept; not for pool_depth"
    )
    deepest: Depth = setting(20, "the deepest pool; for pool_depth only")
    repeats: Repeats = setting(30, "how often judgments are drawn anew; not for pool_depth")

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

    def _asked(self, measures: Sequence[str]) -> list[str]:
        """Those of the audit, with a measure of texts and the reference among them."""
        own = [] if any(parse(text).declaration.texts for text in measures) else ["LMD"]
        return [*measures, *own, self.reference]

    def run_trials(self, subject: AuditSubject, seed: int, trials: Sequence[int]) -> Iterator[Any]:
        measures = content_measures.bound(subject, self._asked(subject.about.measures))
        full = content_measures.means_of(subject.evaluator, measures)
        [reference] = content_measures.bound(subject, [self.reference])
        for trial in trials:
            samples = self._samples(subject, seed, trial)
            steps = [_step(subject, kept, measures, full, str(reference)) for kept in samples]
            yield {"reference": str(reference), "steps": steps}

    def _samples(self, subject: AuditSubject, seed: int, trial: int) -> Iterator[Mask]:
        if self.curve == "pool_depth":
            pools = Pools.of(subject)
            return (pools.mask(pools.pooled(int(depth)) & pools.judged) for depth in self._steps)
        judged = halves(subject) if self.curve == "incomplete" else Judged.of(subject, None)
        return judgment_samples.stratified(self.generator(seed, trial), judged, self.percents)

    def report(self, about: SubjectSummary, found: Mapping[int, Any]) -> AuditReport:
        axis = pool_depth.AXIS if self.curve == "pool_depth" else KEPT
        trials = [one["steps"] for one in found.values()]
        reference = next(iter(found.values()))["reference"]
        measures = tuple(trials[0][0]["orders"])
        tau = (
            f"tau-b between the runs' scores under these judgments and those by {reference} under all of them"
        )
        held = replace(about, measures=measures)
        report = sample_curves.report(held, axis, self._steps, trials, READING, tau=tau)
        verdict = _verdicts(axis, report.table("points"), reference)
        return replace(merged([report, _own(axis, self._steps, measures, trials)]), verdict=tuple(verdict))


class ContentStep(sample_curves.SampleStep):
    """One step of a repeat. own: by measure, tau-b with the measure's own order under all judgments."""

    own: dict[str, float | None]


def _step(
    subject: AuditSubject,
    kept: Mask,
    measures: Sequence[Measure],
    full: Mapping[str, Floats],
    reference: str,
) -> ContentStep:
    found = content_measures.means_of(subject.evaluator.keeping(kept), measures)
    return {
        "kept": int(kept.sum()),
        "orders": compare_orders(dict.fromkeys(found, full[reference]), found),
        "own": {text: tau_b(full[text], scores).value for text, scores in found.items()},
    }


def _own(
    axis: sample_curves.Axis,
    steps: Sequence[float],
    measures: Sequence[str],
    trials: Sequence[Sequence[ContentStep]],
) -> AuditReport:
    """How far each measure keeps its own order."""
    rows = tuple(
        (text, step, *spread([trial[place]["own"][text] for trial in trials]).cells)
        for text in measures
        for place, step in enumerate(steps)
    )
    table = ReportTable(
        "own", "Orders beside the measure's own", (sample_curves.MEASURE, axis.column, *SPREAD), rows
    )
    numbers: dict[str, Any] = {f"own({text})@{step:g}": mean for text, step, mean, *_ in rows}
    caption = "tau-b between the runs' scores by the measure under these judgments and under all."
    plot = Plot(
        "own", "What is left of each measure's own order", caption, "curve", "own", axis.column.name, "mean",
        series="measure", low="low", high="high",
    )  # fmt: skip
    undefined = tuple(
        f"own tau of {text} with {axis.words.format(step)}: all runs score the same, there or with all"
        for text, step, mean, *_ in rows
        if mean is None
    )
    return AuditReport((), numbers, (table,), (plot,), undefined=undefined)


def _verdicts(axis: sample_curves.Axis, points: ReportTable, reference: str) -> Iterator[str]:
    """Where each measure of texts is nearer to the reference's full order than the reference itself."""
    taus: dict[str, dict[float, Any]] = {}
    for text, step, _, tau, *_ in points.rows:
        taus.setdefault(str(text), {})[float(step or 0)] = tau
    for text, of in taus.items():
        if parse(text).declaration.texts:
            yield _sentence(axis, text, reference, of, taus[reference])


def _sentence(
    axis: sample_curves.Axis, text: str, reference: str, of: Mapping[float, Any], classic: Mapping[float, Any]
) -> str:
    told = [step for step in of if of[step] is not None and classic[step] is not None]
    if not told:
        return f"{text}: undefined, for the runs can't be told apart."
    first, last = told[0], told[-1]
    ahead = [step for step in told if of[step] > classic[step]]
    since = f", first with {axis.words.format(ahead[0])}" if ahead else ""
    return (
        f"{text}: with {axis.words.format(last)} its order has tau {of[last]:.2f} with that of {reference} "
        f"under all, and {reference} itself has {classic[last]:.2f}; with {axis.words.format(first)} {text} "
        f"has {of[first]:.2f}. It is the nearer one at {len(ahead)} of {len(told)} steps{since}."
    )
