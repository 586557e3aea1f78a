"""`cupel scores | leaderboard`: read scores."""

import time

import click

from cupel_client.api.client import Client
from cupel_client.offline.presentation.column_blocks import show_blocks
from cupel_client.online.connection import service
from cupel_client.online.online_output import decimal, plain, rows, say, when
from cupel_client.output import format_option
from cupel_contract.leaderboard_resources import (
    LeaderboardAnalysis,
    LeaderboardResource,
    LeaderboardRowResource,
)
from cupel_contract.score_resources import ScoreResource

LONG = ("run", "measure", "topic", "value")
ROW = (
    *("rank", "submission", "team", "name", "tag", "score", "received_at", "missing_topics", "exact"),
    *("interval", "rank_interval", "groups", "tied_for_first"),
)

LOOK_SECONDS = 0.5


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


def _print_scores(found: list[ScoreResource], by_topic: dict[str, dict[str, float]]) -> None:
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
@click.option("--wait", is_flag=True, help="Wait until it is known what the order is worth.")
@format_option()
@service
def leaderboard(
    client: Client, track: str, measure: str | None, qrels: int | None, wait: bool, form: str
) -> None:
    """Print the leaderboard of TRACK, and what its order is worth. Equal scores share a rank.

    Two submissions share a group (a, b, ...) exactly where they are not told apart by this test
    (randomised Tukey HSD at 0.05), which does not show that they are equal; those that share one with the
    first are tied for first. "ranks" are those a submission may have on other topics.

    \b
    Example:
      cupel leaderboard health-2026 -m "TOMA(of=nDCG@10)"
    """
    board = client.leaderboard(track, measure=measure, qrels=qrels)
    while wait and board.analysis is not None and board.analysis.state == "pending":
        time.sleep(LOOK_SECONDS)
        board = client.leaderboard(track, measure=measure, qrels=qrels)
    if form == "table":
        _print_board(board)
    elif form == "json":
        rows(form, ROW, [plain(board.model_dump())])
    else:
        rows(form, ROW, [plain(row.model_dump()) for row in board.rows])


def _print_board(board: LeaderboardResource) -> None:
    if board.rows:
        _print_ranks(board)
    else:
        why = "nothing is scored yet" if board.qrels else "no judgments are published yet"
        if board.qrels and board.unscored:
            why = f"nothing is scored by {board.measure} yet; a track scores the measures of its plan"
        say(f"The leaderboard of {board.track} is empty: {why}.", err=True)
    if board.rows and board.analysis is not None:
        say(_worth(board.analysis))
    warned = board.scale.warning if board.rows and board.scale is not None else None
    for warning in ([warned] if warned else []) + list(board.analysis.warnings if board.analysis else ()):
        say(warning, err=True)
    for one in board.unscored:
        say(f"not ranked: {one.submission} of {one.team}: {one.reason}", err=True)


def _print_ranks(board: LeaderboardResource) -> None:
    keys = [[str(row.rank), row.team, row.name or row.tag] for row in board.rows]
    columns = [
        (board.measure, [decimal(row.score) for row in board.rows]),
        *_standings(board),
        ("missing topics", [str(row.missing_topics or "") for row in board.rows]),
        ("received (UTC)", [when(row.received_at) for row in board.rows]),
    ]
    shown = [(name, cells) for name, cells in columns if any(cells)]
    version = f"qrels {board.qrels} ({(board.qrels_digest or '')[:12]})"
    caption = f"{version}, profile {board.profile}, scoring version {board.scoring_version}"
    show_blocks(["", "team", "run"], keys, shown, title=f"{board.track} by {board.measure}", caption=caption)


def _standings(board: LeaderboardResource) -> list[tuple[str, list[str]]]:
    """The columns that say what a place is worth."""
    alpha = board.analysis.alpha if board.analysis else None
    return [
        (f"{1 - (alpha or 0):.0%} interval", [_between(row.interval, ".4f") for row in board.rows]),
        ("ranks", [_between(row.rank_interval, "g") for row in board.rows]),
        ("groups", [_groups(row) for row in board.rows]),
        ("for first", ["tied" if row.tied_for_first else "" for row in board.rows]),
    ]


def _between(interval: tuple[float, ...] | None, form: str) -> str:
    return "" if interval is None else " to ".join(format(end, form) for end in interval)


def _groups(row: LeaderboardRowResource) -> str:
    """Those between the first and the last one are all its groups, too."""
    return " ".join(row.groups) if len(row.groups) < 3 else f"{row.groups[0]}-{row.groups[-1]}"


def _worth(analysis: LeaderboardAnalysis) -> str:
    """What the order of a board is worth, in words."""
    if analysis.state == "pending":
        return "What this order is worth is being worked out: ask again in a moment, or with --wait."
    if analysis.submissions == 1:
        return "One submission: nothing to compare with."
    if analysis.state == "undefined":
        return f"What this order is worth is undefined: {analysis.undefined}."
    said = [
        f"{analysis.tied_for_first} of {analysis.submissions} submissions are tied for first"
        if analysis.tied_for_first != 1
        else f"the first of {analysis.submissions} submissions is told apart from all others",
        f"{analysis.separable} of {analysis.neighbours} neighbours are told apart",
    ]
    if analysis.smallest_difference is not None:
        smallest = f"{analysis.smallest_difference:.3g}"
        said.append(
            f"differences below {smallest} are easily missed on {analysis.topics} topics, even where two "
            "submissions alone are compared"
        )
    return f"{'; '.join(said)}."
