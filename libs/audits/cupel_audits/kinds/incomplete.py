"""Audit kind `incomplete`: judgments missing at random.

Source: Hui, PIKM 2014, section 3.3.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from cupel_audits.analysis import judgment_samples, sample_curves
from cupel_audits.analysis.judgment_samples import Judged
from cupel_audits.analysis.pools import relevant
from cupel_audits.analysis.run_orders import compare_orders
from cupel_audits.analysis.sample_curves import SampleStep, SampleTrial
from cupel_audits.declarations import Audit, audit, setting
from cupel_audits.kinds.downsampling import ACTIONS, KEPT, READING, Percents, Repeats, advise_share
from cupel_audits.report import AuditReport
from cupel_audits.subject import AuditSubject, SubjectSummary

STEPS = tuple(float(percent) for percent in range(100, 0, -5))


@audit(
    "incomplete",
    title="Incomplete judgments",
    answers="How many judgments can be missing at random before the order of runs changes?",
    source="Hui, PIKM 2014, section 3.3",
)
class Incomplete(Audit):
    """Removes judgments at random, in small steps, and ranks the runs again.

    Relevant and non-relevant judgments are removed.

    At p per cent, max(1, floor(p n / 100)) of the n relevant documents of a topic keep all their judgments.
    Of the m judged non-relevant documents, max(10, floor(p m / 100)) do, at most m. A document is relevant if
    it is relevant to some subtopic. If the collection has no judgments by subtopic, a document is relevant if
    it is relevant for the first aspect. A repeat shuffles the documents once, so its samples are nested. A
    document whose judgment is removed stays in the pool as an unjudged document.

    In contrast to `downsampling`, there are two strata instead of one for each grade, more steps, and
    judgments by subtopic are used. In topics without non-relevant judgments, only relevant documents are
    sampled.
    """

    removes_judgments: ClassVar[bool] = True

    percents: Percents = setting(STEPS, "percentages of the judgments to keep")
    repeats: Repeats = setting(30, "number of random samples at each percentage")

    def trials(self, subject: AuditSubject) -> int:
        return self.repeats

    def steps(self, subject: AuditSubject) -> float:
        return len(self.percents)

    def run_trials(
        self, subject: AuditSubject, seed: int, trials: Sequence[int]
    ) -> Iterator[list[SampleStep]]:
        judged = two_strata(subject)
        for trial in trials:
            rng = self.generator(seed, trial)
            samples = list(judgment_samples.stratified(rng, judged, self.percents))
            evaluators = subject.evaluator.nested_samples(samples, pooled=True)
            yield [
                {
                    "kept": int(kept.sum()),
                    "orders": compare_orders(subject.means, subject.means_under(evaluator)),
                    "pooled": True,
                }
                for kept, evaluator in zip(samples, evaluators, strict=True)
            ]

    def report(self, about: SubjectSummary, results: Mapping[int, SampleTrial]) -> AuditReport:
        trials = list(results.values())
        actions = (*advise_share(about, self.percents, trials), *ACTIONS)
        return sample_curves.report(about, KEPT, self.percents, trials, READING, pooled=True, actions=actions)


def two_strata(subject: AuditSubject) -> Judged:
    """Return all judged documents, with a grade of 1 if relevant and 0 otherwise.

    For the meaning of relevant see `pools.relevant`.
    """
    judged = Judged.of(subject, None)
    is_relevant = relevant(subject)[judged.document]
    return replace(judged, grade=is_relevant.astype(np.int64), relevant=is_relevant)
