"""`cupel submit | watch | runs`: hand in runs and follow them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from cupel_client.api.client import Client, ServiceError
from cupel_client.main import NEGATIVE, SERVICE_FAILED
from cupel_client.offline.presentation.column_blocks import show_blocks
from cupel_client.online.connection import exit_code, findings, service, tell, verdict
from cupel_client.online.online_output import decimal, each, plain, progress, rows, say, when
from cupel_client.output import format_option
from cupel_contract.submission_resources import SubmissionResource

COLUMNS = ("id", "track", "team", "name", "tag", "state", "topics", "documents", "received_at", "digest")
UNSCORED = ("waiting", "queued", "partly")


@click.command()
@click.argument("track")
@click.argument("runs", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--wait", is_flag=True, help="Wait for the scores, and print them.")
@format_option()
@service
def submit(client: Client, track: str, runs: Sequence[Path], wait: bool, form: str) -> None:
    """Hand in one or more RUNS to TRACK, and say what is wrong with them or worth knowing.

    Large plain files are compressed on the way. The exit code is 1 where a run is refused.

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
            tell(problem, file=str(path))
            codes.append(exit_code(problem))
            if codes[-1] != NEGATIVE:
                break  # what is wrong is not this file: the others would meet the same
    if wait:
        accepted = [_followed(client, one) for one in accepted]
        codes += [SERVICE_FAILED for one in accepted if one.state in ("dead", "partly")]
        _tell_unjudged(accepted)
    if accepted or form != "table":
        _print(accepted, form)
    if wait and form == "table":
        _print_scores(client, accepted)
    click.get_current_context().exit(max(codes, default=0))


@click.command()
@click.argument("what")
@service
def watch(client: Client, what: str) -> None:
    """Follow a submission (sub_...), or everything that TRACK has to score, until it is done.

    \b
    Example:
      cupel watch health-2026
    """
    if what.startswith("sub_"):
        found = [_followed(client, client.submission(what))]
    else:
        publishing = client.track(what).publishing
        if publishing is not None:
            with progress(f"publishing qrels {publishing}") as bar:
                for version in client.watch_qrels(what, publishing):
                    bar.set(version.progress.scored + version.progress.dead, version.progress.total)
            say(f"qrels {publishing}: {version.state}")
        found = [_followed(client, one) for one in client.submissions(what) if one.state in UNSCORED]
    for one in found:
        say(f"{one.id}  {one.name or one.run.tag}: {one.state}")
    _tell_unjudged(found)
    click.get_current_context().exit(SERVICE_FAILED if any(one.state == "dead" for one in found) else 0)


@click.command("runs")
@click.argument("track")
@format_option()
@service
def list_runs(client: Client, track: str, form: str) -> None:
    """List what your team handed in to TRACK, newest first; its organisers see everything.

    \b
    Example:
      cupel runs health-2026 --format csv
    """
    _print(list(client.submissions(track)), form)


def _submit(client: Client, track: str, path: Path) -> SubmissionResource:
    size, read = path.stat().st_size, 0
    with progress(path.name) as bar:

        def report(count: int) -> None:
            nonlocal read
            read += count
            bar.set(read, size, f"{path.name}: being checked" if read >= size else None)

        made = client.submit(track, path, progress=report)
    warnings = findings(made.findings.warnings, made.findings.totals, "warning")
    verdict(str(path), f"accepted as {made.id}", warnings)
    return made


def _followed(client: Client, submission: SubmissionResource) -> SubmissionResource:
    """The submission once nothing is left to score."""
    with progress(f"scoring {submission.name or submission.run.tag}") as bar:
        for state in client.watch_submission(submission.id):
            ended = sum(job.state in ("done", "dead") for job in state.jobs)
            bar.set(ended, max(1, len(state.jobs)))
            submission = state
    return submission


def _tell_unjudged(followed: Sequence[SubmissionResource]) -> None:
    """Say why there is nothing to wait for."""
    for track in dict.fromkeys(one.track for one in followed if one.state in UNSCORED and not one.jobs):
        why = "no published judgments yet: what was handed in is kept, and scored once there are some"
        say(f"{track} has {why}.", err=True)


def _print(found: Sequence[SubmissionResource], form: str) -> None:
    if form != "table":
        rows(form, COLUMNS, [_data(one) for one in found])
    elif not found:
        say("There are no submissions yet.", err=True)
    else:
        keys = [
            [one.id, one.team, one.name or "-", one.run.tag, one.state, when(one.received_at)]
            for one in found
        ]
        documents = ("documents", [f"{one.run.documents:,}" for one in found])
        topics = ("topics", each(one.run.topics for one in found))
        show_blocks(
            ["submission", "team", "file", "tag", "state", "received (UTC)"], keys, [topics, documents]
        )


def _data(one: SubmissionResource) -> dict[str, Any]:
    """A submission as a flat row, with all that is not in a column of a csv after it."""
    flat = {name: getattr(one if hasattr(one, name) else one.run, name) for name in COLUMNS}
    return dict(plain(flat | {"run": one.run.id, "findings": one.findings.model_dump()}))


def _print_scores(client: Client, submissions: Sequence[SubmissionResource]) -> None:
    scored = [(one, client.scores(one.id)) for one in submissions if one.state == "scored"]
    if scored and any(scores for _, scores in scored):
        measures = [score.measure for score in scored[0][1]]
        values = [{score.measure: score.value for score in scores} for _, scores in scored]
        columns = [(measure, [decimal(one.get(measure)) for one in values]) for measure in measures]
        show_blocks(["file"], [[one.name or one.run.tag] for one, _ in scored], columns)
