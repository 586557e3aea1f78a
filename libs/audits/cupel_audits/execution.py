"""How an audit is done: in parts, of trials that are done together, and a report on those there are."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from cupel_audits.declarations import Audit
from cupel_audits.report import AuditReport, digest
from cupel_audits.subject import About, AuditSubject

AT_ONCE = 3e8
"""Judged documents that a part scores, about: some seconds of work."""
MOST_PARTS = 1000
FEWEST_PARTS = 8
"""If there are so many trials: for progress, and to share them between processes."""


def parts(audit: Audit, subject: AuditSubject, *, most: int | None = None) -> tuple[range, ...]:
    """The trials of each part, all of them in order; cheap trials are grouped. most: trials of a part."""
    trials = audit.trials(subject)
    each = max(1.0, audit.steps(subject) * len(subject.measures) * max(int(subject.joined.offsets[-1]), 1))
    wanted = max(FEWEST_PARTS, trials * each / AT_ONCE, math.ceil(trials / (most or trials)))
    number = min(wanted, MOST_PARTS, trials)
    ends = [round(trials * part / int(number)) for part in range(int(number) + 1)]
    return tuple(range(begin, end) for begin, end in pairwise(ends))


def work(audit: Audit, subject: AuditSubject, seed: int, trials: Sequence[int]) -> Iterator[tuple[int, Any]]:
    """Each of `trials` with its result, one after another: whoever asks may stop between two."""
    return zip(trials, audit.work(subject, seed, trials), strict=True)


@dataclass(frozen=True)
class Result:
    """What an audit answers with, deterministic: the same request on the same data gives the same digest.

    done: finished trials of `trials`. report: None while there is none.
    """

    kind: str
    parameters: Mapping[str, Any]
    seed: int
    about: About
    trials: int
    done: int
    report: AuditReport | None

    @property
    def complete(self) -> bool:
        return self.done == self.trials

    def as_data(self) -> dict[str, Any]:
        """As JSON holds it, with its digest."""
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


def result(audit: Audit, about: About, seed: int, trials: int, found: Mapping[int, Any]) -> Result:
    """What the finished trials (number -> result) say, in whatever order they came."""
    ordered = {trial: found[trial] for trial in sorted(found)}
    report = audit.report(about, ordered) if ordered else None
    return Result(audit.name, audit.values, seed, about, trials, len(ordered), report)
