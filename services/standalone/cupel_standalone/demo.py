"""The demonstration of `make demo`, on a real service.

It has an organiser, ten teams and corrected judgments.

python -m cupel_standalone.demo [--once]
python -m cupel_standalone.demo --url URL --token-file FILE  # against a running service
"""

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import click
import yaml
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from cupel_client.api.client import Client, ServiceError
from cupel_client.environment import colour_system
from cupel_contract.leaderboard_resources import LeaderboardResource
from cupel_contract.qrels_resources import QrelsDiffResource, QrelsResource
from cupel_contract.submission_resources import SubmissionResource
from cupel_contract.track_resources import TrackResource
from cupel_measures.catalogue.parser import parse
from cupel_measures.reading.collection_files import read_collection
from cupel_measures.reading.run_files import join_run
from cupel_measures.scoring.evaluator import aggregate, evaluate
from cupel_standalone.embedded_service import token_file as first_token
from cupel_standalone.serve_commands import EXAMPLE
from cupel_standalone.supervisor import die_with_parent

TRACK = "health"
MEASURES = ("nDCG@10", "TOMA(of=nDCG@10,aspects=[relevance,credibility])")
N_ROWS = 10
"""Maximum number of displayed rows of a leaderboard or a comparison."""

RUNS = sorted((EXAMPLE / "runs").glob("*.gz"))


@click.command()
@click.option("--once", is_flag=True, help="Exit at the end instead of keeping the service running.")
@click.option("--url", help="URL of a running service to use instead of a new one; implies --once.")
@click.option(
    "--token-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File with an administrator's token of the service at --url.",
)
def main(once: bool, url: str | None, token_file: Path | None) -> None:
    """Demonstrate Cupel on a service.

    Submit runs, show leaderboards, correct the judgments, show the changed ranks.
    """
    if (url is None) != (token_file is None):
        raise click.UsageError("--url and --token-file must be given together")
    width = None if sys.stdout.isatty() else 110
    console = Console(highlight=False, markup=False, width=width, color_system=colour_system())
    started = time.monotonic()
    console.print("\nCupel: from run files to a leaderboard", style="bold")
    with tempfile.TemporaryDirectory(prefix="cupel-demo-") as folder, ExitStack() as stack:
        if url is not None and token_file is not None:
            organiser = stack.enter_context(connect(url, token_file))
            print_section(console, "Service", f"Running at {url}.")
        else:
            organiser = stack.enter_context(start_and_connect(Path(folder)))
            parts = "a gateway, a worker with two processes, a scheduler"
            print_section(console, "Service", f"Running at {organiser.url}: {parts}.")
        run_demo(console, organiser, stack)
        seconds = time.monotonic() - started
        if once or url is not None:
            console.print(f"\nThe demonstration took {seconds:.0f} seconds.\n")
        else:
            wait_for_interrupt(console, organiser.url, Path(folder), seconds)


@contextmanager
def connect(url: str, token_file: Path) -> Iterator[Client]:
    """Yield the organiser's client of a running service."""
    try:
        with Client(url, token_file.read_text().strip()) as organiser:
            yield organiser
    except ServiceError as error:
        raise click.ClickException(str(error)) from error


@contextmanager
def start_and_connect(folder: Path) -> Iterator[Client]:
    """Start a service with its data in `folder`; yield the organiser's client."""
    with start_service(folder) as url, Client(url, first_token(folder).read_text().strip()) as organiser:
        yield organiser


def run_demo(console: Console, organiser: Client, stack: ExitStack) -> None:
    """Run all steps of the demonstration and print their results."""
    track, version = create_track(organiser)
    print_track(console, track, version)
    submissions = submit_all(console, organiser, stack)
    compare_offline(console, organiser, submissions)
    for measure in MEASURES:
        print_leaderboard(console, organiser.leaderboard(TRACK, measure=measure))
    print_refusal(console, organiser)
    corrected = publish(organiser, EXAMPLE / "collection-corrected.yaml")
    print_correction(console, corrected)
    for measure in MEASURES:
        diff = organiser.qrels_diff(TRACK, corrected.number, base=version.number, measure=measure)
        print_rank_changes(console, diff)


@contextmanager
def start_service(folder: Path) -> Iterator[str]:
    """Start a service with its data in `folder`; yield its URL.

    The service is stopped at the end.

    The service writes its log to service.log in the folder.
    """
    command = [str(Path(sys.executable).parent / "cupel"), "serve", "--data", str(folder), "--port", "0"]
    with (folder / "service.log").open("w") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            process_group=0,  # Ctrl-C reaches this process only, which stops the service.
            preexec_fn=die_with_parent(),
        )
        try:
            yield wait_for_url(process, folder / "service.log")
        except ServiceError as error:
            raise click.ClickException(
                f"{error}\n\nLog of the service:\n{read_log_end(folder / 'service.log')}"
            ) from error
        finally:
            process.terminate()
            process.communicate()


def wait_for_url(process: subprocess.Popen[str], log: Path) -> str:
    assert process.stdout is not None
    for line in process.stdout:
        if match := re.search(r"ready at (\S+)", line):
            return match.group(1)
    raise click.ClickException(f"the service did not start; its log:\n{read_log_end(log)}")


def read_log_end(log: Path) -> str:
    return "\n".join(log.read_text().splitlines()[-40:])


def print_section(console: Console, title: str, text: str) -> None:
    console.print(f"\n{title}", style="bold cyan")
    console.print(text)


def create_track(organiser: Client) -> tuple[TrackResource, QrelsResource]:
    """Create the example track and publish the first version of its judgments."""
    declared = yaml.safe_load((EXAMPLE / "collection.yaml").read_text())
    track = organiser.create_track(
        TRACK, title="Health questions", aspects=declared["aspects"], measures=declared["measures"]
    )
    return track, publish(organiser, EXAMPLE / "collection.yaml")


def publish(organiser: Client, collection: Path) -> QrelsResource:
    """Upload and publish the judgments of a collection file.

    Waits until they are current.
    """
    text = collection.read_text()
    declared = yaml.safe_load(text)
    names = [*(entry["file"] for entry in declared["qrels"]), declared["topics"]]
    files = {name: (EXAMPLE / name).read_bytes() for name in names}
    number = organiser.upload_qrels(TRACK, text.encode(), files).number
    organiser.publish_qrels(TRACK, number)
    *_, last = organiser.watch_qrels(TRACK, number)
    return last


def print_track(console: Console, track: TrackResource, version: QrelsResource) -> None:
    measures = ", ".join(track.measures)
    print_section(
        console,
        "Track",
        f"“{track.title}”: 50 topics with judgments of {', '.join(track.aspects)}\n"
        f"(version {version.number}, digest {version.digest[:12]}). Measures: {measures}.",
    )


def submit_all(console: Console, organiser: Client, stack: ExitStack) -> dict[str, SubmissionResource]:
    """Submit every run with a token of its team and wait until all are scored.

    Returns a mapping of run names to submissions.
    """
    print_section(console, "Submissions", "Ten teams submit three runs each, each team with its own token.")
    started = time.monotonic()
    teams = {path.stem.split("-")[0] for path in RUNS}
    clients = {
        team: stack.enter_context(Client(organiser.url, issue_token(organiser, team))) for team in teams
    }
    columns = (TextColumn("{task.description:<10}"), BarColumn(40), MofNCompleteColumn())
    with Progress(*columns, console=console) as progress:
        accepting = progress.add_task("accepted", total=len(RUNS))
        scoring = progress.add_task("scored", total=len(RUNS))
        submissions = {}
        for path in RUNS:
            submissions[path.stem] = clients[path.stem.split("-")[0]].submit(TRACK, path)
            progress.advance(accepting)
        for name, submission in submissions.items():
            *_, submissions[name] = organiser.watch_submission(submission.id)
            progress.advance(scoring)
    console.print(f"All runs were scored within {time.monotonic() - started:.1f} seconds.")
    return submissions


def issue_token(organiser: Client, team: str) -> str:
    text = organiser.issue_token(team, "participant", label="demo").token
    assert text is not None
    return text


def compare_offline(console: Console, organiser: Client, submissions: dict[str, SubmissionResource]) -> None:
    """Score every run with the library alone, and compare with the service.

    The scores that equal those of the service are counted.
    """
    collection = read_collection(EXAMPLE / "collection.yaml")
    measures = [parse(text).bound(collection.aspects) for text in MEASURES]
    equal = total = 0
    for path in RUNS:
        scores = {
            score.measure: score.value
            for score in organiser.scores(submissions[path.stem].id, measures=MEASURES)
        }
        evaluation = evaluate(collection.qrels, join_run(path, collection.qrels), measures)
        for measure in measures:
            total += 1
            equal += scores[str(measure)] == aggregate(measure, evaluation.values[measure])
    console.print(
        f"{equal} of {total} scores are bit-identical when computed by the library without the service."
    )


def print_leaderboard(console: Console, board: LeaderboardResource) -> None:
    console.print(f"\nLeaderboard by {board.measure}, version {board.qrels} of the judgments", style="bold")
    table = make_table("rank>", "team", "run", "score>", "")
    for row in board.rows[:N_ROWS]:
        missing = f"{row.missing_topics} topics missing" if row.missing_topics else ""
        table.add_row(str(row.rank), row.team, row.tag, f"{row.score:.4f}", missing)
    console.print(table)
    console.print(f"and {len(board.rows) - N_ROWS} more", style="dim")


def make_table(*columns: str) -> Table:
    """Return an empty table without lines.

    Columns whose name ends in `>` are right-aligned.
    """
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in columns:
        table.add_column(
            name.rstrip(">"), justify="right" if name.endswith(">") else "left", header_style="dim"
        )
    return table


def print_refusal(console: Console, organiser: Client) -> None:
    """Submit a malformed run file and print the errors."""
    path = EXAMPLE / "aster-merged.txt"
    print_section(
        console, "Malformed run", f"A team submits {path.name}, a run file that was edited by hand."
    )
    try:
        organiser.submit(TRACK, path)
    except ServiceError as refusal:
        console.print(f"refused: {refusal}", style="red")
        for error in sorted(refusal.errors, key=lambda error: error.line or 0):
            console.print(f"  line {error.line}: {error.message}")
            console.print(f"    {error.remedy}", style="dim")
        n_submissions = len(list(organiser.submissions(TRACK)))
        console.print(f"Nothing was stored: the track still has {n_submissions} submissions.")
    else:
        raise click.ClickException(f"{path.name} should have been refused")


def print_correction(console: Console, version: QrelsResource) -> None:
    print_section(
        console,
        "Corrected judgments",
        "Nine topics of a careless assessor were judged again. The organiser publishes the corrected\n"
        f"judgments as version {version.number}. All {version.progress.scored} runs were rescored before "
        "the leaderboards switched to it.",
    )


def print_rank_changes(console: Console, diff: QrelsDiffResource) -> None:
    """Print the runs whose ranks changed, in the order of the new leaderboard."""
    moved = [row for row in diff.rows if row.old_rank != row.new_rank]
    title = f"\nRank changes by {diff.measure}: {len(moved)} of {len(diff.rows)} runs changed ranks"
    console.print(title, style="bold")
    table = make_table("rank>", "before>", "", "run", "score>", "before>")
    for row in moved[:N_ROWS]:
        up = (row.new_rank or 0) < (row.old_rank or 0)
        arrow = Text("▲", "green") if up else Text("▼", "red")
        table.add_row(
            str(row.new_rank),
            str(row.old_rank),
            arrow,
            row.tag,
            format_score(row.new_score),
            format_score(row.old_score),
        )
    console.print(table)
    if len(moved) > N_ROWS:
        console.print(f"and {len(moved) - N_ROWS} more", style="dim")


def format_score(score: float | None) -> str:
    return "" if score is None else f"{score:.4f}"


def wait_for_interrupt(console: Console, url: str, folder: Path, seconds: float) -> None:
    """Print commands to try, and keep the service running until Ctrl-C."""
    cupel = Path(sys.executable).parent / "cupel"
    print_section(
        console,
        "Try it",
        f"The demonstration took {seconds:.0f} seconds. The service runs until Ctrl-C. Commands to try:",
    )
    commands: Sequence[str] = (
        f"{cupel} login {url} --token-file {first_token(folder)}",
        f"{cupel} leaderboard {TRACK} -m 'CAM(of=nDCG@10)'",
        f"{cupel} submit {TRACK} {EXAMPLE / 'runs' / 'aster-bm25.gz'}",
    )
    for command in commands:
        console.print(f"  {command}", soft_wrap=True)
    try:
        while True:
            time.sleep(3600)
    except KeyboardInterrupt:
        console.print("\nStopping.")


if __name__ == "__main__":
    main()
