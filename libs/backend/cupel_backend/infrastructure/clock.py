"""One time for all machines: leases and deadlines are judged by several, whose clocks may differ."""

import logging
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from time import monotonic

from cupel_backend.infrastructure.errors import Unavailable

log = logging.getLogger(__name__)

MEASURED_EVERY = 60.0
"""Seconds in which no clock drifts enough to matter to a lease."""

TRIED_EVERY = 2.0
"""Seconds until somebody who did not answer is asked again."""

WORTH_TELLING = timedelta(seconds=2)


def utc_now() -> datetime:
    return datetime.now(UTC)


class SharedClock:
    """This machine's clock, put right by a difference to another one that is measured now and then.

    While the other one does not answer, the last difference holds. Safe to use from several threads: one
    of them measures, the others do not wait for it.
    """

    def __init__(self, ask: Callable[[], datetime], local: Callable[[], datetime] = utc_now) -> None:
        """ask: what the other clock says now; raises Unavailable."""
        self._ask = ask
        self._local = local
        self._ahead = timedelta()
        self._due = 0.0
        self._measuring = threading.Lock()

    def __call__(self) -> datetime:
        if monotonic() >= self._due and self._measuring.acquire(blocking=False):
            try:
                self._measure()
            finally:
                self._measuring.release()
        return self._local() + self._ahead

    def _measure(self) -> None:
        before = self._local()
        try:
            there = self._ask()
        except Unavailable:
            self._due = monotonic() + TRIED_EVERY
            return
        ahead = there - (before + (self._local() - before) / 2)
        if abs(ahead - self._ahead) > WORTH_TELLING:
            log.warning("the database's clock is %.1f s ahead of this machine's", ahead.total_seconds())
        self._ahead, self._due = ahead, monotonic() + MEASURED_EVERY
