"""`leave_one_run_out`: how a run from outside the pool would be scored (Zobel, SIGIR 1998)."""

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
    """Removes the judgments that only one run contributed, for each run in turn, and ranks all runs again.

    Only one run contributed a judged document if it is among the first `depth` of this run and of no other
    run. Without the run the document would not have been judged, so it becomes unjudged. Reports how
    many documents each run alone contributes to pools of several depths, how many of them are judged and
    relevant, the change of the run's score and rank, tau over all runs, and the share of its first documents
    that is unjudged.

    If a team has several similar runs, they contribute the same documents, and leaving out one of them
    removes few judgments: see `leave_one_team_out`.
    """

    def groups(self, subject: AuditSubject) -> list[int]:
        return list(range(len(subject.about.runs)))

    def report(self, about: SubjectSummary, results: Mapping[int, LeftOutTrial]) -> AuditReport:
        return report(about, about.runs, results, self.depth)
