"""Execution of audits in parts, and the result of the finished trials.

A part is a group of trials.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from cupel_audits.declarations import Audit
from cupel_audits.report import AuditReport, digest
from cupel_audits.subject import AuditSubject, SubjectSummary

DOCUMENTS_PER_PART = 3e8
"""Approximate number of judged documents that one part scores; a part then takes a few seconds."""
MOST_PARTS = 1000
FEWEST_PARTS = 8
"""Minimum number of parts, unless there are fewer trials, so that progress is visible and work is shared."""


def parts(audit: Audit, subject: AuditSubject, *, most: int | None = None) -> tuple[range, ...]:
    """Divide the trials into parts, in order.

    most: maximum number of trials in a part, unless this would need more than MOST_PARTS parts.
    """
    trials = audit.trials(subject)
    cost = max(1.0, audit.steps(subject) * len(subject.measures) * max(int(subject.joined.offsets[-1]), 1))
    needed = max(FEWEST_PARTS, trials * cost / DOCUMENTS_PER_PART, math.ceil(trials / (most or trials)))
    number = min(needed, MOST_PARTS, trials)
    ends = [round(trials * part / int(number)) for part in range(int(number) + 1)]
    return tuple(range(begin, end) for begin, end in pairwise(ends))


def run_trials(
    audit: Audit, subject: AuditSubject, seed: int, trials: Sequence[int]
) -> Iterator[tuple[int, Any]]:
    """Run the trials; yield the number and result of each as soon as it is finished.

    The caller can stop after any trial.
    """
    return zip(trials, audit.run_trials(subject, seed, trials), strict=True)


@dataclass(frozen=True, kw_only=True)
class Result:
    """The result of an audit.

    Its digest is the same whenever the same request is run on the same data.

    trials: number of all trials. done: number of finished trials. report: None if no trial is finished.
    """

    kind: str
    parameters: Mapping[str, Any]
    seed: int
    about: SubjectSummary
    trials: int
    done: int
    report: AuditReport | None

    @property
    def complete(self) -> bool:
        return self.done == self.trials

    def as_data(self) -> dict[str, Any]:
        """Return the result as JSON data, with its digest."""
        data = {
            "kind": self.kind,
            "parameters": dict(self.parameters),
            "seed": self.seed,
            "about": self.about.as_data(),
            "trials": self.trials,
            "done": self.done,
            "report": self.report and self.report.as_data(),
        }
        return data | {"digest": digest(data)}


def result(audit: Audit, about: SubjectSummary, seed: int, trials: int, results: Mapping[int, Any]) -> Result:
    """Return the result of an audit from its finished trials.

    trials: number of all trials. results: the results of the finished trials by number, in any order.
    """
    ordered = {trial: results[trial] for trial in sorted(results)}
    return Result(
        kind=audit.name,
        parameters=audit.values,
        seed=seed,
        about=about,
        trials=trials,
        done=len(ordered),
        report=audit.report(about, ordered) if ordered else None,
    )
