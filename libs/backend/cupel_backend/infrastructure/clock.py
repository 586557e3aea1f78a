"""A clock that shows the same time on all machines of a service.

Leases and deadlines are compared with the time on several machines, whose system clocks may differ.
"""

import logging
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from time import monotonic

from cupel_backend.infrastructure.errors import Unavailable

log = logging.getLogger(__name__)

MEASURE_INTERVAL = 60.0
"""Seconds between two measurements. In this time, clocks drift too little to affect leases."""

RETRY_INTERVAL = 2.0
"""Seconds after which a failed measurement is repeated."""

LOGGED_CHANGE = timedelta(seconds=2)
"""Smallest change of the measured difference that is logged."""


def utc_now() -> datetime:
    return datetime.now(UTC)


class SharedClock:
    """This machine's clock, corrected to agree with a reference clock.

    The correction is the measured difference between the clocks. If the reference clock does not answer, the
    last measured difference is used. Threads may share the clock. While one thread measures, the other
    threads do not wait.
    """

    def __init__(
        self, read_reference: Callable[[], datetime], local: Callable[[], datetime] = utc_now
    ) -> None:
        """Create a clock without a measurement; the first call measures.

        read_reference: returns the time of the reference clock; may raise Unavailable. local: returns the
        time of this machine.
        """
        self._read_reference = read_reference
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
            reference = self._read_reference()
        except Unavailable:
            self._due = monotonic() + RETRY_INTERVAL
            return
        ahead = reference - (before + (self._local() - before) / 2)
        if abs(ahead - self._ahead) > LOGGED_CHANGE:
            log.warning("the database's clock is %+.1f s ahead of this machine's", ahead.total_seconds())
        self._ahead, self._due = ahead, monotonic() + MEASURE_INTERVAL
