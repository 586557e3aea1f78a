"""`leave_one_team_out`: what a team from outside the pool would suffer (Buckley et al., 2007)."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from cupel_audits.analysis.left_out_runs import LeaveOut, report
from cupel_audits.declarations import audit
from cupel_audits.report import AuditReport
from cupel_audits.subject import AuditSubject, SubjectSummary


@audit(
    "leave_one_team_out",
    title="Leave one team out",
    answers="How far would the runs of a team be misjudged that did not take part in the pool?",
    source="Buckley, Dimmick, Soboroff and Voorhees, Information Retrieval 2007; Voorhees, CIKM 2018",
)
class LeaveOneTeamOut(LeaveOut):
    """Takes from each team in turn the judgments that are there for its sake alone, and ranks all runs again.

    As `leave_one_run_out`, with all runs of a team at once: a document loses its judgment if it is among the
    first `depth` of some run of the team and of no run of another. Runs of one team are alike and protect
    each other, so that this is the harder and the fairer test of how a newcomer would be judged.
    """

    def problems(self, subject: AuditSubject) -> Iterator[str]:
        yield from super().problems(subject)
        teams = subject.about.teams
        if teams is None:
            yield (
                "the teams of the runs are unknown: say which team each run is of, or leave out single runs "
                "by leave_one_run_out"
            )
        elif len(subject.about.runs) > 1 and len(set(teams)) == 1:
            yield f"all runs are of one team, {teams[0]}: it takes runs of two teams or more"

    def groups(self, subject: AuditSubject) -> list[int]:
        names = _names(subject.about)
        return [names.index(team) for team in subject.about.teams or ()]

    def report(self, about: SubjectSummary, found: Mapping[int, Any]) -> AuditReport:
        names = _names(about)
        told = report(about, names, found, self.depth)
        if len(names) < len(about.runs):
            return told
        return replace(told, warnings=(*told.warnings, ALONE))


ALONE = "Every team has one run here: the result is that of leave_one_run_out."


def _names(about: SubjectSummary) -> tuple[str, ...]:
    """The teams, by name."""
    return tuple(sorted(set(about.teams or ())))
