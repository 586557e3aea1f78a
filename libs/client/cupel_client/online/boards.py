"""`cupel scores | leaderboard`: read scores."""

from dataclasses import asdict

import click

from cupel_client.offline.tables import show_blocks
from cupel_client.online.connecting import service
from cupel_client.online.printing import decimal, plain, rows, say, when
from cupel_client.output import format_option
from cupel_client.replies import Board, Score
from cupel_client.sdk import Client

LONG = ("run", "measure", "topic", "value")
ROW = ("rank", "submission", "team", "name", "tag", "score", "received_at", "missing_topics", "exact")


@click.command()
@click.argument("submission")
@click.option("-m", "--measures", multiple=True, help="Measures, one or more [default: the plan].")
@click.option("--qrels", type=click.IntRange(1), help="The qrels version [default: the current one].")
@click.option("--per-topic", is_flag=True, help="The value on every topic too.")
@format_option()
@service
def scores(
    client: Client, submission: str, measures: tuple[str, ...], qrels: int | None, per_topic: bool, form: str
) -> None:
    """Print the scores of a SUBMISSION (sub_...).

    \b
    Example:
      cupel scores sub_0192f0c5 --per-topic -m nDCG@10 --format csv
    """
    found = client.scores(submission, measures=measures, qrels=qrels)
    by_topic = {
        one.measure: {
            on.topic: on.value for on in client.topic_scores(submission, one.measure, qrels=qrels).topics
        }
        for one in (found if per_topic else [])
    }
    if form == "table":
        _print_scores(found, by_topic)
        return
    name = client.submission(submission).name or submission
    long = []
    for one in found:
        topics = by_topic.get(one.measure, {}) | {"all": one.value}
        long += [
            {"run": name, "measure": one.measure, "topic": topic, "value": value}
            for topic, value in topics.items()
        ]
    rows(form, LONG, long)


def _print_scores(found: list[Score], by_topic: dict[str, dict[str, float]]) -> None:
    if not found:
        say("There are no scores yet.", err=True)
        return
    topics = list(next(iter(by_topic.values()), {}))
    columns = [
        (one.measure, [*(decimal(by_topic[one.measure][topic]) for topic in topics), decimal(one.value)])
        for one in found
    ]
    first = found[0]
    missing = f", {first.missing_topics} missing from the run" if first.missing_topics else ""
    version = f"qrels {first.qrels} ({first.qrels_digest[:12]})"
    caption = f"{version}, {first.topics} topics{missing}, profile {first.profile}"
    keys = [[topic] for topic in [*topics, "all"]]
    show_blocks(["topic"], keys, columns, caption=caption, last_apart=bool(topics))


@click.command()
@click.argument("track")
@click.option("-m", "--measure", help="The measure to order by [default: the first of the plan].")
@click.option("--qrels", type=click.IntRange(1), help="The qrels version [default: the current one].")
@format_option()
@service
def leaderboard(client: Client, track: str, measure: str | None, qrels: int | None, form: str) -> None:
    """Print the leaderboard of TRACK. Equal scores share a rank.

    \b
    Example:
      cupel leaderboard health-2026 -m "TOMA(of=nDCG@10)"
    """
    board = client.leaderboard(track, measure=measure, qrels=qrels)
    if form == "table":
        _print_board(board)
    elif form == "json":
        rows(form, ROW, [plain(asdict(board))])
    else:
        rows(form, ROW, [plain(asdict(row)) for row in board.rows])


def _print_board(board: Board) -> None:
    if board.rows:
        _print_ranks(board)
    else:
        why = "nothing is scored yet" if board.qrels else "no judgments are published yet"
        if board.qrels and board.unscored:
            why = f"nothing is scored by {board.measure} yet; a track scores the measures of its plan"
        say(f"The leaderboard of {board.track} is empty: {why}.", err=True)
    if board.rows and board.scale is not None and board.scale.warning is not None:
        say(board.scale.warning, err=True)
    for one in board.unscored:
        say(f"not ranked: {one.submission} of {one.team}: {one.reason}", err=True)


def _print_ranks(board: Board) -> None:
    keys = [[str(row.rank), row.team, row.name or row.tag] for row in board.rows]
    columns = [
        (board.measure, [decimal(row.score) for row in board.rows]),
        ("missing topics", [str(row.missing_topics or "") for row in board.rows]),
        ("received (UTC)", [when(row.received_at) for row in board.rows]),
    ]
    if not any(row.missing_topics for row in board.rows):
        del columns[1]
    version = f"qrels {board.qrels} ({(board.qrels_digest or '')[:12]})"
    caption = f"{version}, profile {board.profile}, scoring version {board.scoring_version}"
    show_blocks(
        ["", "team", "run"], keys, columns, title=f"{board.track} by {board.measure}", caption=caption
    )
