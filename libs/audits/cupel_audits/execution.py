"""Execution of audits: trials are grouped into parts, and a report is made from the finished ones."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from cupel_audits.declarations import Audit
from cupel_audits.report import AuditReport, digest
from cupel_audits.subject import AuditSubject, SubjectSummary

DOCUMENTS_PER_PART = 3e8
"""Approximate number of judged documents that a part scores, which takes some seconds."""
MOST_PARTS = 1000
FEWEST_PARTS = 8
"""Minimum number of parts, given as many trials, to report progress and to share work between processes."""


def parts(audit: Audit, subject: AuditSubject, *, most: int | None = None) -> tuple[range, ...]:
    """Return the trials of each part, in order; `most` limits the trials in a part."""
    trials = audit.trials(subject)
    cost = max(1.0, audit.steps(subject) * len(subject.measures) * max(int(subject.joined.offsets[-1]), 1))
    needed = max(FEWEST_PARTS, trials * cost / DOCUMENTS_PER_PART, math.ceil(trials / (most or trials)))
    number = min(needed, MOST_PARTS, trials)
    ends = [round(trials * part / int(number)) for part in range(int(number) + 1)]
    return tuple(range(begin, end) for begin, end in pairwise(ends))


def run_trials(
    audit: Audit, subject: AuditSubject, seed: int, trials: Sequence[int]
) -> Iterator[tuple[int, Any]]:
    """Yield each trial with its result as soon as it is finished, so that the caller can stop in between."""
    return zip(trials, audit.run_trials(subject, seed, trials), strict=True)


@dataclass(frozen=True, kw_only=True)
class Result:
    """The result of an audit: the same request on the same data gives the same digest.

    trials, done: the number of all trials, and of the finished ones. report: None while no trial is finished.
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
    """Return the result of an audit from its finished trials (number -> result), in any order.

    trials: the number of all trials.
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
