"""`cupel scores` and `cupel leaderboard`.

They print the scores of a submission and the leaderboard of a track.
"""

import time
from collections.abc import Iterator, Sequence
from itertools import groupby

import click

from cupel_client.api.client import Client
from cupel_client.best_sets import outside_sentence
from cupel_client.offline.presentation.column_blocks import show_blocks
from cupel_client.online.connection import with_client
from cupel_client.online.online_output import format_number, format_time, json_value, print_line, print_rows
from cupel_client.output import format_option, scale_notes_option
from cupel_contract.leaderboard_resources import (
    LeaderboardAnalysis,
    LeaderboardResource,
    LeaderboardRowResource,
)
from cupel_contract.score_resources import ScoreResource, TopicScoresResource
from cupel_measures.comparing.outcomes import is_scale_note
from cupel_measures.comparing.topic_sets.detectable_differences import is_undetectable, range_of_means

SCORE_COLUMNS = ("run", "measure", "topic", "value")
BOARD_COLUMNS = tuple(LeaderboardRowResource.model_fields)

POLL_SECONDS = 0.5


@click.command()
@click.argument("submission")
@click.option(
    "-m",
    "--measures",
    multiple=True,
    help="Measures, separated by spaces or commas (default: the measures of the track).",
)
@click.option(
    "--qrels", type=click.IntRange(1), help="Number of the qrels version (default: the current one)."
)
@click.option("--per-topic", is_flag=True, help="Print the value of each topic as well.")
@format_option()
@with_client
def scores(
    client: Client, submission: str, measures: tuple[str, ...], qrels: int | None, per_topic: bool, form: str
) -> None:
    """Print the scores of a SUBMISSION (sub_...).

    \b
    Example:
      cupel scores sub_0192f0c5 --per-topic -m nDCG@10 --format csv
    """
    listed = client.scores(submission, measures=measures, qrels=qrels)
    per_measure = {
        score.measure: _values_by_topic(client.topic_scores(submission, score.measure, qrels=qrels))
        for score in (listed if per_topic else [])
    }
    if form == "table":
        _print_scores(listed, per_measure)
        return
    name = client.submission(submission).name or submission
    rows = [
        {"run": name, "measure": score.measure, "topic": topic, "value": value}
        for score in listed
        for topic, value in {**per_measure.get(score.measure, {}), "all": score.value}.items()
    ]
    print_rows(form, SCORE_COLUMNS, rows)


def _values_by_topic(scores: TopicScoresResource) -> dict[str, float | None]:
    """Return the value of each topic of the collection, topics in byte order.

    The value is None for a topic without judgments.
    """
    values: dict[str, float | None] = dict.fromkeys(scores.unjudged_topics)
    return dict(sorted((values | {item.topic: item.value for item in scores.topics}).items()))


def _print_scores(scores: list[ScoreResource], per_measure: dict[str, dict[str, float | None]]) -> None:
    """Print a column per measure.

    per_measure: the values by measure and topic, possibly empty.
    """
    if not scores:
        print_line("There are no scores yet.", err=True)
        return
    topics = list(next(iter(per_measure.values()), {}))
    columns = [
        (
            score.measure,
            [format_number(per_measure[score.measure][topic]) for topic in topics]
            + [format_number(score.value)],
        )
        for score in scores
    ]
    first = scores[0]
    missing = f", {first.missing_topics} missing from the run" if first.missing_topics else ""
    version = f"qrels {first.qrels} ({first.qrels_digest[:12]})"
    caption = f"{version}, {first.topics} topics{missing}, profile {first.profile}"
    keys = [[topic] for topic in [*topics, "all"]]
    show_blocks(["topic"], keys, columns, caption=caption, last_apart=bool(topics))


@click.command()
@click.argument("track")
@click.option(
    "-m", "--measure", help="Measure that orders the leaderboard (default: the first measure of the track)."
)
@click.option(
    "--qrels", type=click.IntRange(1), help="Number of the qrels version (default: the current one)."
)
@click.option("--wait", is_flag=True, help="Wait for the significance analysis.")
@scale_notes_option
@format_option()
@with_client
def leaderboard(
    client: Client,
    track: str,
    measure: str | None,
    qrels: int | None,
    wait: bool,
    scale_notes: bool,
    form: str,
) -> None:
    """Print the leaderboard of TRACK with its significance analysis.

    Equal scores share a rank.

    Submissions that share a letter are not significantly different (step-down max-T test at alpha 0.05).
    "best set" marks submissions that are not significantly worse than the best (multiple comparisons with
    the best). Rank intervals are simultaneous confidence intervals of the ranks.

    \b
    Example:
      cupel leaderboard health-2026 -m "TOMA(of=nDCG@10)"
    """
    board = client.leaderboard(track, measure=measure, qrels=qrels)
    while wait and board.analysis is not None and board.analysis.state == "pending":
        time.sleep(POLL_SECONDS)
        board = client.leaderboard(track, measure=measure, qrels=qrels)
    if form == "table":
        _print_board(board, shows_scale_notes=scale_notes)
    elif form == "json":
        print_rows(form, BOARD_COLUMNS, [json_value(board.model_dump())])
    else:
        print_rows(form, BOARD_COLUMNS, [json_value(row.model_dump()) for row in board.rows])


def _print_board(board: LeaderboardResource, *, shows_scale_notes: bool) -> None:
    """Print the ranks and the analysis.

    Warnings and unscored submissions go to standard error.
    """
    if board.rows:
        _print_ranks(board)
        _print_analysis(board)
    else:
        print_line(f"The leaderboard of {board.track} is empty: {_reason_for_no_rows(board)}.", err=True)
    for warning in _warnings(board, shows_scale_notes=shows_scale_notes):
        print_line(warning, err=True)
    for item in board.unscored:
        print_line(f"not ranked: {item.submission} of {item.team}: {item.reason}", err=True)


def _warnings(board: LeaderboardResource, *, shows_scale_notes: bool) -> Iterator[str]:
    if shows_scale_notes and board.rows and board.scale is not None and board.scale.warning:
        yield board.scale.warning
    for warning in board.analysis.warnings if board.analysis else ():
        if shows_scale_notes or not is_scale_note(warning):
            yield warning


def _reason_for_no_rows(board: LeaderboardResource) -> str:
    if not board.qrels:
        return "no judgments are published yet"
    if not board.unscored:
        return "no submission is scored yet"
    return f"no submission is scored by {board.measure}; only the measures of the track are scored"


def _print_ranks(board: LeaderboardResource) -> None:
    keys = [[str(row.rank), row.team, row.name or row.tag] for row in board.rows]
    columns = [
        (board.measure, [format_number(row.score) for row in board.rows]),
        *_analysis_columns(board),
        ("missing topics", [str(row.missing_topics or "") for row in board.rows]),
        ("received (UTC)", [format_time(row.received_at) for row in board.rows]),
    ]
    nonempty = [(heading, cells) for heading, cells in columns if any(cells)]
    version = f"qrels {board.qrels} ({(board.qrels_digest or '')[:12]})"
    caption = f"{version}, profile {board.profile}, scoring version {board.scoring_version}"
    title = f"{board.track} by {board.measure}"
    show_blocks(["rank", "team", "run"], keys, nonempty, title=title, caption=caption)


def _analysis_columns(board: LeaderboardResource) -> list[tuple[str, list[str]]]:
    """Return the columns of the significance analysis.

    They are empty while it is pending.
    """
    alpha = board.analysis.alpha if board.analysis else None
    return [
        (f"{1 - (alpha or 0):.0%} interval", [_format_interval(row.interval, ".4f") for row in board.rows]),
        ("rank interval", [_format_interval(row.rank_interval, "g") for row in board.rows]),
        ("groups", [_format_groups(row) for row in board.rows]),
        ("best set", ["yes" if row.in_best_set else "" for row in board.rows]),
    ]


def _format_interval(interval: tuple[float, ...] | None, form: str) -> str:
    return "" if interval is None else " to ".join(format(bound, form) for bound in interval)


def _format_groups(row: LeaderboardRowResource) -> str:
    """Return letters such as "a b", "a-d" for four consecutive groups, or "a c-f"."""
    return " ".join(_shorten(row.groups))


def _shorten(names: Sequence[str]) -> Iterator[str]:
    """Yield names of groups; three or more consecutive names become a range."""
    for _, run in groupby(enumerate(map(_group_number, names)), lambda entry: entry[1] - entry[0]):
        places = [place for place, _ in run]
        if len(places) < 3:
            yield from (names[place] for place in places)
        else:
            yield f"{names[places[0]]}-{names[places[-1]]}"


def _group_number(name: str) -> int:
    """Return 1 for a, 26 for z, 27 for aa."""
    number = 0
    for letter in name:
        number = 26 * number + ord(letter) - ord("a") + 1
    return number


def _print_analysis(board: LeaderboardResource) -> None:
    if board.analysis is not None:
        print_line(_summarise(board.analysis, board.measure))
        for sentence in _outside_best_set(board.rows, board.analysis.alpha or 0):
            print_line(sentence)


def _outside_best_set(rows: Sequence[LeaderboardRowResource], alpha: float) -> Iterator[str]:
    """Yield a sentence on submissions that only the best set excludes."""
    names = [
        row.name or row.tag
        for row in rows
        if row.in_best_set is False and row.rank_interval is not None and row.rank_interval[0] == 1
    ]
    if names:
        yield outside_sentence(", ".join(names), len(names), "submission", alpha)


def _summarise(analysis: LeaderboardAnalysis, measure: str) -> str:
    """Return the result of a significance analysis in one or two sentences."""
    if analysis.state == "pending":
        return "The significance analysis is still running; try again in a moment, or add --wait."
    if analysis.submissions == 1:
        return "There is only one submission, so there is nothing to compare."
    if analysis.state == "undefined":
        return f"The significance analysis is undefined: {analysis.undefined}."
    confidence = f"{100 * (1 - (analysis.alpha or 0)):.10g}%"
    best_set = (
        f"{analysis.in_best_set} of {analysis.submissions} submissions are not significantly worse than the "
        f"best; with {confidence} confidence, the best is one of them"
        if analysis.in_best_set != 1
        else f"the first of {analysis.submissions} submissions has the highest true mean with "
        f"{confidence} confidence (multiple comparisons with the best)"
    )
    summary = (
        f"By max-T tests at alpha {analysis.alpha}, {best_set}; {analysis.separable} of "
        f"{analysis.neighbours} pairs of adjacent submissions differ significantly."
    )
    if analysis.smallest_difference is None:
        return summary
    test = (
        f"{summary} With {analysis.topics} topics, a paired t-test at alpha {analysis.alpha} (a single "
        "test) detects, at the spread pooled over all pairs,"
    )
    if is_undetectable(range_of_means(measure), analysis.smallest_difference):
        return f"{test} no possible true difference with power 0.8."
    return (
        f"{test} a true difference of {analysis.smallest_difference:.3g} with power 0.8, and smaller ones "
        "less often."
    )
