"""Execution of queued jobs by workers.

A worker claims a job, renews its lease, calls its handler, and records the outcome.
"""

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

Handler = Callable[[System, Claim], None]
"""A function that runs a job. It stores the results and calls `jobs.finish` in one transaction."""


def _do_nothing() -> None: ...


def run_jobs(
    system: System,
    queue: str,
    handlers: Mapping[str, Handler],
    *,
    on_renewal: Callable[[], None] = _do_nothing,
) -> bool:
    """Run jobs of `queue` for `turn_seconds` at most.

    Returns False if no job is ready, else True, because jobs may still be waiting. The function also returns
    when an urgent job waits, unless `queue` is the urgent one. An exception of a handler is stored as the
    error of its job. on_renewal: called after each renewal of a lease.
    """
    end = monotonic() + system.settings.turn_seconds
    while monotonic() < end:
        claim = claim_next(system, queue)
        if claim is None:
            return False
        _attempt(system, claim, handlers[claim.kind], on_renewal)
        if queue != URGENT and has_urgent_work(system):
            break
    return True


def _attempt(system: System, claim: Claim, handler: Handler, on_renewal: Callable[[], None]) -> None:
    started = monotonic()
    outcome = "done"
    try:
        with _renewed_lease(system, claim, on_renewal):
            handler(system, claim)
    except LeaseLost:
        outcome = "lost"
        log.warning(
            "the lease of %s expired before this worker finished the job, so another worker may have "
            "claimed it",
            claim.id,
        )
    except JobPostponed:
        outcome = "postponed"
    except Unavailable as error:
        outcome = "postponed" if error.retry_after else "failed"
        log.warning("%s %s, attempt %d: %s", claim.id, outcome, claim.attempts, error)
        fail(system, claim, str(error), charged=not error.retry_after)
    except Exception as error:  # An error of a handler must not end the worker.
        outcome = "failed"
        log.exception("%s failed, attempt %d", claim.id, claim.attempts)
        fail(system, claim, f"{type(error).__name__}: {error}")
    seconds = monotonic() - started
    log.info("%s %s in %.3f s, attempt %d", claim.id, outcome, seconds, claim.attempts)
    system.metrics.count_attempt(queue=claim.queue, outcome=outcome, seconds=seconds)


@contextmanager
def _renewed_lease(system: System, claim: Claim, on_renewal: Callable[[], None]) -> Iterator[None]:
    """Renew the lease of `claim` from a thread while the block runs.

    It is renewed for `job_seconds` at most.
    """
    is_over = threading.Event()
    end = monotonic() + system.settings.job_seconds

    def renew_until_over() -> None:
        while not is_over.wait(system.settings.renew_seconds) and monotonic() < end:
            try:
                if not renew(system, claim):
                    return
                on_renewal()
            except Exception as problem:  # The database may be back before the lease ends.
                log.warning("could not renew the lease of %s: %s", claim.id, problem)

    thread = threading.Thread(target=renew_until_over, name=f"lease of {claim.id}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
