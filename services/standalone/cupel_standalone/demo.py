"""What `make demo` shows: an organiser, ten teams and a correction, against the real service.

python -m cupel_standalone.demo [--once]
python -m cupel_standalone.demo --url URL --token-file FILE  # on a service that runs already
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
SHOWN = 10
RUNS = sorted((EXAMPLE / "runs").glob("*.gz"))


@click.command()
@click.option("--once", is_flag=True, help="End when everything was shown.")
@click.option("--url", help="Show it on the service that runs here already, and end.")
@click.option(
    "--token-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="With --url: a file with an administrator's token.",
)
def main(once: bool, url: str | None, token_file: Path | None) -> None:
    """Show Cupel from a run file to a leaderboard, and what a correction of the judgments moves."""
    if (url is None) != (token_file is None):
        raise click.UsageError("--url and --token-file belong together")
    console = Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else 110)
    began = time.monotonic()
    console.print("\nCupel, from a run file to a leaderboard", style="bold")
    with tempfile.TemporaryDirectory(prefix="cupel-demo-") as folder, ExitStack() as stack:
        if url is not None and token_file is not None:
            organiser = stack.enter_context(visited(url, token_file))
            say(console, "A service", f"It runs at {url}.")
        else:
            organiser = stack.enter_context(own(Path(folder)))
            parts = "a gateway, a worker with two processes, a scheduler"
            say(console, "A service", f"It runs at {organiser.url}: {parts}.")
        show(console, organiser, stack)
        seconds = time.monotonic() - began
        if once or url is not None:
            console.print(f"\nAll of this took {seconds:.0f} seconds.\n")
        else:
            stay(console, organiser.url, Path(folder), seconds)


@contextmanager
def visited(url: str, token_file: Path) -> Iterator[Client]:
    """The organiser's client of a service that is not ours."""
    try:
        with Client(url, token_file.read_text().strip()) as organiser:
            yield organiser
    except ServiceError as error:
        raise click.ClickException(str(error)) from error


@contextmanager
def own(folder: Path) -> Iterator[Client]:
    """The organiser's client of a service of our own."""
    with service(folder) as url, Client(url, first_token(folder).read_text().strip()) as organiser:
        yield organiser


def show(console: Console, organiser: Client, stack: ExitStack) -> None:
    """Everything, in order."""
    track, version = create_track(organiser)
    tell_track(console, track, version)
    submissions = submit_all(console, organiser, stack)
    compare_offline(console, organiser, submissions)
    for measure in MEASURES:
        show_board(console, organiser.leaderboard(TRACK, measure=measure))
    show_malformed(console, organiser)
    corrected = publish(organiser, EXAMPLE / "collection-corrected.yaml")
    tell_correction(console, corrected)
    for measure in MEASURES:
        diff = organiser.qrels_diff(TRACK, corrected.number, base=version.number, measure=measure)
        show_moves(console, diff)


@contextmanager
def service(folder: Path) -> Iterator[str]:
    """The URL of a service of our own, which ends with us. Its log is service.log in its folder."""
    command = [str(Path(sys.executable).parent / "cupel"), "serve", "--data", str(folder), "--port", "0"]
    with (folder / "service.log").open("w") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            process_group=0,  # Ctrl-C is for us: we then stop the service
            preexec_fn=die_with_parent(),
        )
        try:
            yield url_from(process, folder / "service.log")
        except ServiceError as error:
            raise click.ClickException(
                f"{error}\n\nThe service said:\n{end_of(folder / 'service.log')}"
            ) from error
        finally:
            process.terminate()
            process.communicate()


def url_from(process: subprocess.Popen[str], log: Path) -> str:
    assert process.stdout is not None
    for line in process.stdout:
        if match := re.search(r"ready at (\S+)", line):
            return match.group(1)
    raise click.ClickException(f"the service did not start:\n{end_of(log)}")


def end_of(log: Path) -> str:
    return "\n".join(log.read_text().splitlines()[-40:])


def say(console: Console, title: str, text: str) -> None:
    console.print(f"\n{title}", style="bold cyan")
    console.print(text)


def create_track(organiser: Client) -> tuple[TrackResource, QrelsResource]:
    """The example track with its first judgments in force."""
    declared = yaml.safe_load((EXAMPLE / "collection.yaml").read_text())
    track = organiser.create_track(
        TRACK, title="Health questions", aspects=declared["aspects"], measures=declared["measures"]
    )
    return track, publish(organiser, EXAMPLE / "collection.yaml")


def publish(organiser: Client, collection: Path) -> QrelsResource:
    """Upload the judgments that a collection file describes, publish them, wait until they are current."""
    text = collection.read_text()
    declared = yaml.safe_load(text)
    names = [*(entry["file"] for entry in declared["qrels"]), declared["topics"]]
    files = {name: (EXAMPLE / name).read_bytes() for name in names}
    number = organiser.upload_qrels(TRACK, text.encode(), files).number
    organiser.publish_qrels(TRACK, number)
    *_, last = organiser.watch_qrels(TRACK, number)
    return last


def tell_track(console: Console, track: TrackResource, version: QrelsResource) -> None:
    measures = ", ".join(track.measures)
    say(
        console,
        "A track",
        f"“{track.title}” with 50 topics, judged for {', '.join(track.aspects)}.\n"
        f"Its judgments are version {version.number}, {version.digest[:12]}. It scores by {measures}.",
    )


def submit_all(console: Console, organiser: Client, stack: ExitStack) -> dict[str, SubmissionResource]:
    """Hand in every run with a token of its team, and wait until all are scored: run name -> submission."""
    say(console, "Thirty runs of ten teams", "Each team hands in three runs with a token of its own.")
    began = time.monotonic()
    teams = {path.stem.split("-")[0] for path in RUNS}
    doors = {team: stack.enter_context(Client(organiser.url, token_of(organiser, team))) for team in teams}
    columns = (TextColumn("{task.description:<10}"), BarColumn(40), MofNCompleteColumn())
    with Progress(*columns, console=console) as progress:
        accepting = progress.add_task("accepted", total=len(RUNS))
        scoring = progress.add_task("scored", total=len(RUNS))
        handed_in = {}
        for path in RUNS:
            handed_in[path.stem] = doors[path.stem.split("-")[0]].submit(TRACK, path)
            progress.advance(accepting)
        for name, submission in handed_in.items():
            *_, handed_in[name] = organiser.watch_submission(submission.id)
            progress.advance(scoring)
    console.print(f"All were scored {time.monotonic() - began:.1f} seconds after the first was sent.")
    return handed_in


def token_of(organiser: Client, team: str) -> str:
    text = organiser.issue_token(team, "participant", label="demo").token
    assert text is not None
    return text


def compare_offline(console: Console, organiser: Client, submissions: dict[str, SubmissionResource]) -> None:
    """Score every run here as well, without the service, and count the equal scores."""
    collection = read_collection(EXAMPLE / "collection.yaml")
    measures = [parse(text).bound(collection.aspects) for text in MEASURES]
    equal = total = 0
    for path in RUNS:
        scores = {
            one.measure: one.value for one in organiser.scores(submissions[path.stem].id, measures=MEASURES)
        }
        own = evaluate(collection.qrels, join_run(path, collection.qrels), measures)
        for measure in measures:
            total += 1
            equal += scores[str(measure)] == aggregate(measure, own.values[measure])
    console.print(f"Scored again by the library alone: {equal} of {total} scores are equal to the last bit.")


def show_board(console: Console, board: LeaderboardResource) -> None:
    console.print(f"\nLeaderboard by {board.measure}, judgments version {board.qrels}", style="bold")
    table = listing("rank>", "team", "run", "score>", "")
    for row in board.rows[:SHOWN]:
        missing = f"{row.missing_topics} topics missing" if row.missing_topics else ""
        table.add_row(str(row.rank), row.team, row.tag, f"{row.score:.4f}", missing)
    console.print(table)
    console.print(f"and {len(board.rows) - SHOWN} more", style="dim")


def listing(*columns: str) -> Table:
    """A table without lines; columns whose name ends in `>` are aligned to the right."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in columns:
        table.add_column(
            name.rstrip(">"), justify="right" if name.endswith(">") else "left", header_style="dim"
        )
    return table


def show_malformed(console: Console, organiser: Client) -> None:
    """Hand in a file that was merged by hand; show the verdict."""
    path = EXAMPLE / "aster-merged.txt"
    say(console, "A malformed run", f"Somebody edited {path.name} by hand, and hands it in:")
    try:
        organiser.submit(TRACK, path)
    except ServiceError as refusal:
        console.print(f"refused: {refusal}", style="red")
        for error in sorted(refusal.errors, key=lambda error: error.line or 0):
            console.print(f"  line {error.line}: {error.message}")
            console.print(f"    {error.remedy}", style="dim")
        held = len(list(organiser.submissions(TRACK)))
        console.print(f"Nothing was stored: the track has {held} submissions, as before.")
    else:
        raise click.ClickException(f"{path.name} should have been refused")


def tell_correction(console: Console, version: QrelsResource) -> None:
    say(
        console,
        "A correction",
        "One assessor was careless. Nine topics were judged again, and the organiser publishes the\n"
        f"judgments as version {version.number}: all {version.progress.scored} runs were scored again, "
        "then the board switched at once.",
    )


def show_moves(console: Console, diff: QrelsDiffResource) -> None:
    """Which runs changed places, from the top of the new board."""
    moved = [row for row in diff.rows if row.old_rank != row.new_rank]
    title = f"\nWhat moved by {diff.measure}: {len(moved)} of {len(diff.rows)} runs changed places"
    console.print(title, style="bold")
    table = listing("rank>", "before>", "", "run", "score>", "before>")
    for row in moved[:SHOWN]:
        up = (row.new_rank or 0) < (row.old_rank or 0)
        arrow = Text("▲", "green") if up else Text("▼", "red")
        table.add_row(
            str(row.new_rank), str(row.old_rank), arrow, row.tag, shown(row.new_score), shown(row.old_score)
        )
    console.print(table)
    if len(moved) > SHOWN:
        console.print(f"and {len(moved) - SHOWN} more", style="dim")


def shown(score: float | None) -> str:
    return "" if score is None else f"{score:.4f}"


def stay(console: Console, url: str, folder: Path, seconds: float) -> None:
    """Leave the service up until Ctrl-C."""
    cupel = Path(sys.executable).parent / "cupel"
    say(
        console,
        "Your turn",
        f"All of this took {seconds:.0f} seconds. The service stays up until Ctrl-C. Try:",
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
