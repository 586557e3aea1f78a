"""Audit kind `leave_one_run_out`: runs from outside the pool (Zobel, SIGIR 1998)."""

from collections.abc import Mapping

from cupel_audits.analysis.left_out_runs import LeaveOut, LeftOutTrial, report
from cupel_audits.declarations import audit
from cupel_audits.report import AuditReport
from cupel_audits.subject import AuditSubject, SubjectSummary


@audit(
    "leave_one_run_out",
    title="Leave one run out",
    answers="How much would the score and the rank of a run change if it had not contributed to the pool?",
    source="Zobel, SIGIR 1998; Buckley, Dimmick, Soboroff and Voorhees, Information Retrieval 2007",
)
class LeaveOneRunOut(LeaveOut):
    """Removes the judgments that only one run contributed, and ranks all runs again.

    This is done for each run in turn.

    A run is the only contributor of a judged document if the document is among the first `depth` of this run
    and of no other run. Without the run, the document would not have been judged, so its judgment is removed.
    The report gives for each run the numbers of judged and of relevant documents that it alone contributes
    to pools of several depths (its unique documents), the change of its score and rank, the unjudged share
    of its first documents, and tau over all runs.

    If the judgments include many documents that no run has among its first `depth`, other runs or methods
    contributed to the pool. Contributions are then overestimated, and there is no verdict on fairness.

    If a team has several similar runs, they contribute the same documents, and leaving out one of them
    removes few judgments: see `leave_one_team_out`.
    """

    def groups(self, subject: AuditSubject) -> list[int]:
        return list(range(len(subject.about.runs)))

    def report(self, about: SubjectSummary, results: Mapping[int, LeftOutTrial]) -> AuditReport:
        return report(about, about.runs, results, self.depth, group="run")
