"""`cupel submit`, `cupel watch` and `cupel runs`.

They submit runs, and follow and list submissions.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from cupel_client.api.client import Client, ServiceError
from cupel_client.main import NEGATIVE, SERVICE_FAILED
from cupel_client.offline.presentation.column_blocks import show_blocks
from cupel_client.online.connection import exit_code, findings_of, print_findings, print_problem, with_client
from cupel_client.online.online_output import (
    format_number,
    format_time,
    json_value,
    print_line,
    print_rows,
    progress_bar,
)
from cupel_client.output import format_option
from cupel_contract.states import FINAL_JOB_STATES, OPEN_SUBMISSION_STATES, SubmissionState
from cupel_contract.submission_resources import SubmissionResource

COLUMNS = ("id", "track", "team", "name", "tag", "state", "topics", "documents", "received_at", "digest")


@click.command()
@click.argument("track")
@click.argument("runs", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--wait", is_flag=True, help="Wait for the scores and print them.")
@format_option()
@with_client
def submit(client: Client, track: str, runs: Sequence[Path], wait: bool, form: str) -> None:
    """Submit one or more RUNS to TRACK, and print the errors and warnings about each.

    Large uncompressed files are compressed for the upload. The exit code is 1 if a run is refused.

    \b
    Example:
      cupel submit health-2026 bm25.run.gz splade.run.gz --wait
    """
    accepted: list[SubmissionResource] = []
    codes = []
    for path in runs:
        try:
            accepted.append(_submit(client, track, path))
        except ServiceError as problem:
            print_problem(problem, file=str(path))
            codes.append(exit_code(problem))
            if codes[-1] != NEGATIVE:
                break  # the error does not depend on the file, so the other files would fail as well
    if wait:
        accepted = [_wait_for_scores(client, submission) for submission in accepted]
        codes += [
            SERVICE_FAILED
            for submission in accepted
            if submission.state in (SubmissionState.DEAD, SubmissionState.PARTLY)
        ]
        _print_unjudged_tracks(accepted)
    if accepted or form != "table":
        _print_submissions(accepted, form)
    if wait and form == "table":
        _print_scores(client, accepted)
    click.get_current_context().exit(max(codes, default=0))


@click.command()
@click.argument("target", metavar="SUBMISSION|TRACK")
@with_client
def watch(client: Client, target: str) -> None:
    """Wait until a submission (sub_...), or every submission to a track, is scored.

    \b
    Example:
      cupel watch health-2026
    """
    if target.startswith("sub_"):
        unscored = [client.submission(target)]
    else:
        _wait_for_publication(client, target)
        unscored = [item for item in client.submissions(target) if item.state in OPEN_SUBMISSION_STATES]
    submissions = [_wait_for_scores(client, submission) for submission in unscored]
    for submission in submissions:
        print_line(f"{submission.id}  {submission.name or submission.run.tag}: {submission.state}")
    _print_unjudged_tracks(submissions)
    has_failed = any(submission.state is SubmissionState.DEAD for submission in submissions)
    click.get_current_context().exit(SERVICE_FAILED if has_failed else 0)


@click.command("runs")
@click.argument("track")
@format_option()
@with_client
def list_runs(client: Client, track: str, form: str) -> None:
    """List the submissions of your team to TRACK, newest first.

    Organisers see the submissions of all teams.

    \b
    Example:
      cupel runs health-2026 --format csv
    """
    _print_submissions(list(client.submissions(track)), form)


def _submit(client: Client, track: str, path: Path) -> SubmissionResource:
    """Upload one run with a progress bar, and print its warnings."""
    size, sent = path.stat().st_size, 0
    with progress_bar(path.name) as bar:

        def update(count: int) -> None:
            nonlocal sent
            sent += count
            bar.set(sent, size, f"checking {path.name}" if sent >= size else None)

        submission = client.submit(track, path, progress=update)
    warnings = findings_of(submission.findings.warnings, submission.findings.totals, "warning")
    print_findings(str(path), f"accepted as {submission.id}", warnings)
    return submission


def _wait_for_publication(client: Client, track: str) -> None:
    """Wait for the qrels version that is being published, if any, and print its state."""
    number = client.track(track).publishing
    if number is None:
        return
    with progress_bar(f"publishing qrels {number}") as bar:
        for version in client.watch_qrels(track, number):
            bar.set(version.progress.scored + version.progress.dead, version.progress.total)
    print_line(f"qrels {number}: {version.state}")


def _wait_for_scores(client: Client, submission: SubmissionResource) -> SubmissionResource:
    """Return the submission after its last scoring job has ended."""
    with progress_bar(f"scoring {submission.name or submission.run.tag}") as bar:
        for state in client.watch_submission(submission.id):
            ended = sum(job.state in FINAL_JOB_STATES for job in state.jobs)
            bar.set(ended, max(1, len(state.jobs)))
            submission = state
    return submission


def _print_unjudged_tracks(submissions: Sequence[SubmissionResource]) -> None:
    """Explain why submissions to a track without published judgments have no scores."""
    unjudged = [item.track for item in submissions if item.state in OPEN_SUBMISSION_STATES and not item.jobs]
    for track in dict.fromkeys(unjudged):
        reason = "has no published judgments yet; submissions are scored when judgments are published"
        print_line(f"{track} {reason}.", err=True)


def _print_submissions(submissions: Sequence[SubmissionResource], form: str) -> None:
    if form != "table":
        print_rows(form, COLUMNS, [_row(submission) for submission in submissions])
    elif not submissions:
        print_line("There are no submissions yet.", err=True)
    else:
        headings = ["submission", "team", "file", "tag", "state", "received (UTC)"]
        keys = [
            [item.id, item.team, item.name or "-", item.run.tag, item.state, format_time(item.received_at)]
            for item in submissions
        ]
        topics = [str(submission.run.topics) for submission in submissions]
        documents = [f"{submission.run.documents:,}" for submission in submissions]
        show_blocks(headings, keys, [("topics", topics), ("documents", documents)])


def _row(submission: SubmissionResource) -> dict[str, Any]:
    """Return a submission as a flat row: the CSV columns, then the other fields."""
    flat = {
        name: getattr(submission if hasattr(submission, name) else submission.run, name) for name in COLUMNS
    }
    more = {"run": submission.run.id, "findings": submission.findings.model_dump()}
    return dict(json_value(flat | more))


def _print_scores(client: Client, submissions: Sequence[SubmissionResource]) -> None:
    scored = [(item, client.scores(item.id)) for item in submissions if item.state is SubmissionState.SCORED]
    if scored and any(scores for _, scores in scored):
        measures = [score.measure for score in scored[0][1]]
        values = [{score.measure: score.value for score in scores} for _, scores in scored]
        columns = [(measure, [format_number(row.get(measure)) for row in values]) for measure in measures]
        keys = [[submission.name or submission.run.tag] for submission, _ in scored]
        show_blocks(["file"], keys, columns)
