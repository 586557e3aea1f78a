"""Audit kind `downsampling`: random samples of judgments.

Source: Ferrante, Ferro, Pontarollo, TKDE 2019, section 5.4.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, ClassVar

import numpy as np

from cupel_audits.analysis import judgment_samples, sample_curves
from cupel_audits.analysis.judgment_samples import Judged
from cupel_audits.analysis.run_orders import STRONG, compare_orders, tau_ap_by_measure
from cupel_audits.analysis.sample_curves import Reach, SampleStep, SampleTrial
from cupel_audits.declarations import Audit, audit, setting, whole_number
from cupel_audits.report import AuditReport, Column
from cupel_audits.subject import AuditSubject, SubjectSummary
from cupel_measures.catalogue.parser import parse
from cupel_measures.grammar.parameters import AspectName, Number, Numbers, OneFlag, Word
from cupel_measures.scoring.evaluator import Evaluator
from cupel_measures.scoring.pool import Mask

Percents = Annotated[
    tuple[float, ...],
    Numbers(
        "decreasing percentages above 0, up to 100, such as [90,50,10]",
        Number("", 0, 100, (0,)),
        rising=False,
    ),
]
KEPT = sample_curves.Axis(
    Column("percent", "judgments kept, in per cent", "of each stratum, before the minimum is applied"),
    lambda percent, kept: f"{kept:.1%} of the judgments",
    falling=True,
)
READING = (
    "Judgments are removed at random, as if fewer documents had been judged. The documents stay in the pool, "
    "unjudged. In a shallower pool, judgments are missing systematically: see `pool_depth`.",
    "The order of runs under all judgments is the reference, but these judgments are a sample themselves. So "
    "tau shows how stable the order is, not how correct it is.",
)
ACTIONS = (
    "Run `cupel audit pool_depth` to see what a shallower pool would change, because judgments are rarely "
    "missing at random.",
)
REPORT_FALL = "If fewer documents are judged, report how far it falls."
Repeats = Annotated[int, whole_number()]
Method = Annotated[str, Word("stratified or uniform", ("stratified", "uniform"))]


@audit(
    "downsampling",
    title="Pool downsampling",
    answers="How much does the order of runs change if only some of the judgments are available?",
    source="Ferrante, Ferro, Pontarollo, TKDE 2019, section 5.4",
)
class Downsampling(Audit):
    """Removes judgments at random and ranks the runs again.

    A document whose judgment is removed stays in the pool as an unjudged document. A stratified sample keeps
    max(f, floor(P n / 100)) of the n documents of each topic and grade, at most n, where f is 10 for the
    lowest grade and 1 for higher grades. A uniform sample keeps max(1, floor(P n / 100)) of the n judged
    documents of a topic, and is redrawn until it contains a relevant document. Recall bases and ideal
    rankings come from the sample.
    """

    removes_judgments: ClassVar[bool] = True

    ratios: Percents = setting((90.0, 70.0, 50.0, 30.0, 10.0, 5.0), "percentages of judgments to keep")
    repeats: Repeats = setting(30, "number of random samples")
    method: Method = setting(
        "stratified", "sampling method: stratified by grade, or uniform over the judged documents of a topic"
    )
    nested: OneFlag = setting(False, "nest uniform samples; stratified samples are always nested")
    aspect: AspectName | None = setting(
        None, "aspect whose judgments are removed (default: all aspects and subtopics)"
    )
    tau_ap: OneFlag = setting(
        False, "also report tau AP, which gives swaps near the top of the order more weight"
    )

    def problems(self, subject: AuditSubject) -> Iterator[str]:
        yield from super().problems(subject)
        if self.aspect is not None and self.aspect not in subject.about.aspects:
            yield f"aspect: unknown aspect {self.aspect!r}; use one of {', '.join(subject.about.aspects)}"

    def trials(self, subject: AuditSubject) -> int:
        return self.repeats

    def steps(self, subject: AuditSubject) -> float:
        return len(self.ratios)

    def run_trials(
        self, subject: AuditSubject, seed: int, trials: Sequence[int]
    ) -> Iterator[list[SampleStep]]:
        judged = Judged.of(subject, self.aspect)
        for trial in trials:
            samples = self._samples(judged, self.generator(seed, trial))
            evaluators = self._evaluators(subject.evaluator, samples)
            yield [
                self._step(subject, kept, evaluator)
                for kept, evaluator in zip(samples, evaluators, strict=True)
            ]

    def _samples(self, judged: Judged, rng: np.random.Generator) -> list[Mask]:
        """Draw a sample of the judged documents for each ratio."""
        if self.method == "stratified":
            return list(judgment_samples.stratified(rng, judged, self.ratios))
        return list(judgment_samples.uniform(rng, judged, self.ratios, nested=self.nested))

    def _evaluators(self, evaluator: Evaluator, samples: Sequence[Mask]) -> Iterator[Evaluator]:
        """Yield an evaluator for each sample.

        Nested samples are scored together, which is faster.
        """
        if self.nested or self.method == "stratified":
            yield from evaluator.nested_samples(samples, self.aspect, pooled=True)
        else:
            for kept in samples:
                yield evaluator.restricted_to(kept, self.aspect, pooled=True)

    def _step(self, subject: AuditSubject, kept: Mask, evaluator: Evaluator) -> SampleStep:
        means = subject.means_under(evaluator)
        step: SampleStep = {
            "kept": int(kept.sum()),
            "orders": compare_orders(subject.means, means),
            "pooled": True,
        }
        if self.tau_ap:
            step["tau_ap"] = tau_ap_by_measure(subject.means, means)
        return step

    def report(self, about: SubjectSummary, results: Mapping[int, Sequence[SampleStep]]) -> AuditReport:
        trials = list(results.values())
        actions = (*advise_share(about, self.ratios, trials), *ACTIONS)
        report = sample_curves.report(about, KEPT, self.ratios, trials, READING, pooled=True, actions=actions)
        if self.aspect is None:
            return report
        unaffected = [text for text in about.measures if self.aspect not in _aspects_of(text, about.aspects)]
        warning = (
            f"{', '.join(unaffected)}: does not score by {self.aspect}, the only aspect whose judgments are "
            "removed, so the order cannot change"
        )
        return replace(report, warnings=(*report.warnings, warning)) if unaffected else report


def advise_share(
    about: SubjectSummary, percents: Sequence[float], trials: Sequence[SampleTrial]
) -> Iterator[str]:
    """Yield the smallest shares of the judgments with a high mean tau.

    The mean tau is at least STRONG down to these shares. Measures whose mean tau is high or undefined at
    every step are left out, and so are steps with all judgments.
    """
    points = [point for point in sample_curves.points_of(about, KEPT, percents, trials) if point.kept < 1]
    reaches = {measure: Reach.of(points, measure, len(trials)) for measure in about.measures}
    shares = [
        f"{reach.strong[-1].kept:.1%} for {measure}"
        for measure, reach in reaches.items()
        if reach.falls_below
    ]
    low = [measure for measure, reach in reaches.items() if reach.defined and not reach.strong]
    if not shares and not low:
        return
    is_defined = all(reaches[measure].is_low_at_first for measure in low)
    tau = "In random samples of these judgments, mean tau with the order of these runs"
    at_first = (
        f"below {STRONG}{'' if is_defined else ' or undefined'} already at the largest share tried "
        f"({points[0].kept:.1%}) for {', '.join(low)}"
    )
    if not shares:
        yield f"{tau} is {at_first}. {REPORT_FALL}"
        return
    below = f" It is {at_first}." if low else ""
    yield f"{tau} stays at {STRONG} or more down to: {', '.join(shares)}.{below} {REPORT_FALL}"


def _aspects_of(text: str, aspects: Sequence[str]) -> set[str]:
    """Return the aspects by which a bound measure scores."""
    measure = parse(text)
    arguments = measure.arguments
    if measure.declaration.subtopics:
        return set()
    named = {*(arguments.get("aspects") or ()), *(arguments.get("understandability") or ())}
    uses_one_aspect = not measure.declaration.combines or "understandability" in arguments
    return named | ({arguments.get("aspect") or aspects[0]} if uses_one_aspect else set())
