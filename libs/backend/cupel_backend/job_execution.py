"""Execution of queued jobs: claim, keep the lease, call the handler, record the outcome."""

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from time import monotonic

from cupel_backend.infrastructure.errors import Unavailable
from cupel_backend.infrastructure.system import System
from cupel_backend.jobs import (
    URGENT,
    Claim,
    JobPostponed,
    LeaseLost,
    claim_next,
    fail,
    has_urgent_work,
    renew,
)

log = logging.getLogger(__name__)


def _nothing() -> None: ...


@contextmanager
def holding(system: System, claim: Claim, alive: Callable[[], None] = _nothing) -> Iterator[None]:
    """Keep the lease of `claim` alive from a thread while the caller works, for `job_seconds` at most.

    alive: called whenever the lease was renewed.
    """
    over = threading.Event()
    until = monotonic() + system.settings.job_seconds

    def keep() -> None:
        while not over.wait(system.settings.renew_seconds) and monotonic() < until:
            try:
                if not renew(system, claim):
                    return
                alive()
            except Exception as problem:  # the database, say, may be back before the lease ends
                log.warning("could not renew %s: %s", claim.id, problem)

    thread = threading.Thread(target=keep, name=f"lease of {claim.id}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


# Working

Handler = Callable[[System, Claim], None]


def run_jobs(
    system: System, queue: str, handlers: Mapping[str, Handler], *, alive: Callable[[], None] = _nothing
) -> bool:
    """Do jobs of `queue` until none is ready or the turn is over; returns whether there may be more.

    With what is not urgent, the turn is over as soon as something urgent waits. A handler writes its results
    and calls `finish`, both in one transaction. Whatever it raises is kept as the job's error. alive: called
    now and then while a job takes long.
    """
    end = monotonic() + system.settings.turn_seconds
    while monotonic() < end:
        taken = claim_next(system, queue)
        if taken is None:
            return False
        _attempt(system, taken, handlers[taken.kind], alive)
        if queue != URGENT and has_urgent_work(system):
            break
    return True


def _attempt(system: System, claim: Claim, handler: Handler, alive: Callable[[], None]) -> None:
    began = monotonic()
    outcome = "done"
    try:
        with holding(system, claim, alive):
            handler(system, claim)
    except LeaseLost:
        outcome = "lost"
        log.warning("%s was given to another worker before it was finished here", claim.id)
    except JobPostponed:
        outcome = "put off"
    except Unavailable as error:
        outcome = "put off" if error.retry_after else "failed"
        log.warning("%s %s, attempt %d: %s", claim.id, outcome, claim.attempts, error)
        fail(system, claim, str(error), charged=not error.retry_after)
    except Exception as error:  # whatever went wrong is the job's error, not the worker's end
        outcome = "failed"
        log.exception("%s failed, attempt %d", claim.id, claim.attempts)
        fail(system, claim, f"{type(error).__name__}: {error}")
    seconds = monotonic() - began
    log.info("%s %s in %.3f s, attempt %d", claim.id, outcome, seconds, claim.attempts)
    system.metrics.count_attempt(queue=claim.queue, outcome=outcome, seconds=seconds)
