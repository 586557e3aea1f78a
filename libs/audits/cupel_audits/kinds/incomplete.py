"""`incomplete`: judgments missing at random, step by step (Hui, PIKM 2014; spec 7.3)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cupel_audits.analysis import judgment_samples, sample_curves
from cupel_audits.analysis.judgment_samples import Judged
from cupel_audits.analysis.pools import relevant
from cupel_audits.analysis.run_orders import compare_orders
from cupel_audits.declarations import Audit, audit, setting
from cupel_audits.kinds.downsampling import KEPT, READING, Percents, Repeats
from cupel_audits.report import AuditReport
from cupel_audits.subject import AuditSubject, SubjectSummary

STEPS = tuple(float(percent) for percent in range(100, 0, -5))


@audit(
    "incomplete",
    title="Incomplete judgments",
    answers="How many judgments, missing at random, can a collection do without?",
    source="Hui, PIKM 2014, section 3.3 (spec 7.3)",
)
class Incomplete(Audit):
    """Takes relevant and non-relevant judgments away at random, in small steps, and ranks the runs again.

    Of a topic's relevant documents max(1, floor(p n / 100)) keep all their judgments, of its judged
    non-relevant ones max(10, floor(p n / 100)), at most n. Relevant is what is relevant to some subtopic;
    without judgments by subtopic, what is for the first aspect. A repeat shuffles once, for all percentages.

    Beside `downsampling`: two strata rather than one for each grade, more steps, and subtopics. A topic that
    has no non-relevant judgments, as where only relevant documents were noted, samples the relevant ones.
    """

    percents: Percents = setting(STEPS, "percentages that are kept")
    repeats: Repeats = setting(30, "how often judgments are drawn anew")

    def problems(self, subject: AuditSubject) -> Iterator[str]:
        yield from super().problems(subject)
        if not subject.about.relevant:
            yield "no document is judged relevant: there is nothing to take away that would matter"

    def trials(self, subject: AuditSubject) -> int:
        return self.repeats

    def steps(self, subject: AuditSubject) -> float:
        return len(self.percents)

    def run_trials(self, subject: AuditSubject, seed: int, trials: Sequence[int]) -> Iterator[Any]:
        judged = halves(subject)
        for trial in trials:
            samples = list(judgment_samples.stratified(self.generator(seed, trial), judged, self.percents))
            found = []
            for kept, evaluator in zip(samples, subject.evaluator.nested_samples(samples), strict=True):
                means = subject.means_under(evaluator)
                found.append({"kept": int(kept.sum()), "orders": compare_orders(subject.means, means)})
            yield found

    def report(self, about: SubjectSummary, found: Mapping[int, Any]) -> AuditReport:
        return sample_curves.report(about, KEPT, self.percents, list(found.values()), READING)


def halves(subject: AuditSubject) -> Judged:
    """All judged documents; those of degree 1 are relevant, as in `pools.relevant`."""
    judged = Judged.of(subject, None)
    found = relevant(subject)[judged.document]
    return replace(judged, degree=found.astype(np.int64), relevant=found)
