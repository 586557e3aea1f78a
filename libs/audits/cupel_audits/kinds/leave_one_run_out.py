"""`leave_one_run_out`: what a run from outside the pool would suffer (Zobel, SIGIR 1998)."""

from collections.abc import Mapping
from typing import Any

from cupel_audits.analysis.left_out_runs import LeaveOut, report
from cupel_audits.declarations import audit
from cupel_audits.report import AuditReport
from cupel_audits.subject import About, AuditSubject


@audit(
    "leave_one_run_out",
    title="Leave one run out",
    answers="How far would a run be misjudged that did not take part in the pool?",
    source="Zobel, SIGIR 1998; Buckley, Dimmick, Soboroff and Voorhees, Information Retrieval 2007",
)
class LeaveOneRunOut(LeaveOut):
    """Takes from each run in turn the judgments that are there for its sake alone, and ranks all runs again.

    A document is there for a run's sake alone if it is judged, and among the first `depth` of this run and of
    no other: had the run not taken part, nobody would have judged it. It becomes unjudged. Told are how many
    documents each run alone brings to pools of several depths, how many of these are judged and relevant, the
    change of the run's score and rank, tau of all runs, and how much of its first documents is unjudged then.

    Where a team has several runs, these protect each other: see `leave_one_team_out`.
    """

    def groups(self, subject: AuditSubject) -> list[int]:
        return list(range(len(subject.about.runs)))

    def report(self, about: About, found: Mapping[int, Any]) -> AuditReport:
        return report(about, about.runs, found, self.depth)
