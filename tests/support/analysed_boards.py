"""A track whose boards are analysed, and calls on it."""

from cupel_backend import job_execution, jobs
from cupel_backend.infrastructure.system import System
from cupel_backend.job_handlers import HANDLERS
from cupel_backend.scores import board_analyses, leaderboards, rescoring
from cupel_backend.scores.leaderboards import Leaderboard
from support.backend_cast import (
    ADMIN,
    BOB,
    run_file,
)

TOPICS = 12
QRELS = "".join(
    f"t{topic} 0 {d} {'abcdef'.index(d) % 3}\n" for topic in range(TOPICS) for d in "abcdef"
).encode()
ORDERS = ("fcebda", "cfbead", "adbecf", "abcdef", "fedcba")


def run(number: int) -> bytes:
    """Return a different run for each number, from good to poor."""
    order = ORDERS[number]
    rotated = [order[topic % 2 :] + order[: topic % 2] for topic in range(TOPICS)]
    return run_file([(f"t{topic}", ranking) for topic, ranking in enumerate(rotated)], tag=f"r{number}")


def board(system: System, **query: object) -> Leaderboard:
    """Return a page of a board of the track."""
    analysis = leaderboards.read_board(system, BOB, "track", **query)  # type: ignore[arg-type]
    assert analysis is not None
    return analysis


def score(system: System) -> None:
    """Run evaluations only."""
    while job_execution.run_jobs(system, rescoring.QUEUE, HANDLERS):
        pass


def open_jobs(system: System) -> list[jobs.Job]:
    """Return the queued analyses."""
    return [
        job
        for job in jobs.list_(system, ADMIN).items
        if job.kind == board_analyses.ANALYSE and job.state == "queued"
    ]
