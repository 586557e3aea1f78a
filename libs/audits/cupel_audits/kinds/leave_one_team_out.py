"""Audit kind `leave_one_team_out`: teams from outside the pool.

Each team is scored as if it had not contributed to the pool. Source: Buckley et al., 2007.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from cupel_audits.analysis.left_out_runs import LeaveOut, LeftOutTrial, report
from cupel_audits.declarations import audit
from cupel_audits.report import AuditReport
from cupel_audits.subject import AuditSubject, SubjectSummary


@audit(
    "leave_one_team_out",
    title="Leave one team out",
    answers="How much would the scores and ranks of a team change if it had not contributed to the pool?",
    source="Buckley, Dimmick, Soboroff and Voorhees, Information Retrieval 2007; Voorhees, CIKM 2018",
)
class LeaveOneTeamOut(LeaveOut):
    """Removes the judgments that only one team contributed, and ranks all runs again.

    This is done for each team in turn.

    It works like `leave_one_run_out`, but leaves out all runs of a team together. A document loses its
    judgment if it is among the first `depth` of some run of the team and of no run of another team. Runs of
    one team are often similar. If only one of them is left out, the others may still contribute its
    documents. Leaving out the whole team is therefore the stricter and more realistic test of how a new team
    would be judged.
    """

    def problems(self, subject: AuditSubject) -> Iterator[str]:
        yield from super().problems(subject)
        teams = subject.about.teams
        if teams is None:
            yield (
                "the teams of the runs are unknown: give the team of each run, or leave out single runs with "
                "leave_one_run_out"
            )
        elif len(subject.about.runs) > 1 and len(set(teams)) == 1:
            yield f"all runs belong to one team, {teams[0]}: give runs of two or more teams"

    def groups(self, subject: AuditSubject) -> list[int]:
        names = _team_names(subject.about)
        return [names.index(team) for team in subject.about.teams or ()]

    def report(self, about: SubjectSummary, results: Mapping[int, LeftOutTrial]) -> AuditReport:
        names = _team_names(about)
        team_report = report(about, names, results, self.depth, group="team")
        if len(names) < len(about.runs):
            return team_report
        return replace(team_report, warnings=(*team_report.warnings, SINGLE_RUNS))


SINGLE_RUNS = "Every team has a single run, so the results equal those of leave_one_run_out."


def _team_names(about: SubjectSummary) -> tuple[str, ...]:
    """Return the names of the teams in alphabetical order."""
    return tuple(sorted(set(about.teams or ())))
