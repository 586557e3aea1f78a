"""Combination of finished audits of one kind over several collections.

The collections are, for example, the tracks of a paper.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cupel_audits.combining import combined_aspects, combined_power
from cupel_audits.declarations import Audit, AuditError, read_audit
from cupel_audits.execution import Result
from cupel_audits.report import AuditReport
from cupel_audits.subject import SubjectSummary

COMBINERS = {"aspects": combined_aspects.report, "discriminative_power": combined_power.report}
"""For each kind that can be combined, the function that returns the report on all collections.

Other kinds describe the order of the runs of one collection, which has no sum over collections.
"""


@dataclass(frozen=True, kw_only=True)
class FinishedAudit:
    """A finished audit of one collection.

    data: the content of its report.json. trials: results by number.
    """

    name: str
    data: Mapping[str, Any]
    trials: Mapping[int, Any]

    @property
    def about(self) -> SubjectSummary:
        return SubjectSummary.of(self.data["about"])

    @property
    def conditions(self) -> dict[str, Any]:
        """Values by name that audits must have in common to be combined."""
        return {
            "kind": self.data["kind"],
            "parameters": self.data["parameters"],
            "scoring profile": self.about.profile,
            "depth": self.about.depth,
        }


def combine(audits: Sequence[FinishedAudit]) -> Result:
    """Return the result over all collections.

    Raises AuditError if the audits cannot be combined.
    """
    if reasons := list(_reasons(audits)):
        raise AuditError(reasons)
    first = audits[0].data
    audit = read_audit(first["kind"], first["parameters"])
    about = combined_summary([audit.name for audit in audits], [audit.about for audit in audits])
    trials = sum(len(audit.trials) for audit in audits)
    return Result(
        kind=first["kind"],
        parameters=first["parameters"],
        seed=first["seed"],
        about=about,
        trials=trials,
        done=trials,
        report=_report(audit, about, audits),
    )


def _report(audit: Audit, about: SubjectSummary, audits: Sequence[FinishedAudit]) -> AuditReport:
    trials = {finished.name: finished.trials for finished in audits}
    return COMBINERS[audit.name](audit, about, trials)


def _reasons(audits: Sequence[FinishedAudit]) -> list[str]:
    """Return the reasons why the audits cannot be combined."""
    if len(audits) < 2 or len({audit.name for audit in audits}) < len(audits):
        return ["give the folders of two or more audits, each with another name"]
    first = audits[0]
    if first.data["kind"] not in COMBINERS:
        return [f"audits of kind {first.data['kind']} cannot be combined: use {' or '.join(COMBINERS)}"]
    reasons = [
        f"{audit.name} differs from {first.name} in {name}: repeat it with the same {name}"
        for audit in audits[1:]
        for name, value in audit.conditions.items()
        if value != first.conditions[name]
    ]
    unfinished = [audit.name for audit in audits if len(audit.trials) < audit.data["trials"]]
    return reasons + [f"{name} is not finished: repeat its command" for name in unfinished]


def combined_summary(names: Sequence[str], summaries: Sequence[SubjectSummary]) -> SubjectSummary:
    """Return the facts about all collections.

    Runs and topics are named COLLECTION/NAME.
    """
    named = list(zip(names, summaries, strict=True))
    return SubjectSummary(
        runs=tuple(f"{name}/{run}" for name, about in named for run in about.runs),
        teams=None,
        topics=tuple(f"{name}/{topic}" for name, about in named for topic in about.topics),
        aspects=tuple(dict.fromkeys(aspect for about in summaries for aspect in about.aspects)),
        measures=tuple(dict.fromkeys(text for about in summaries for text in about.measures)),
        profile=summaries[0].profile,
        depth=summaries[0].depth,
        qrels=", ".join(names),
        judged=sum(about.judged for about in summaries),
        relevant=sum(about.relevant for about in summaries),
    )
