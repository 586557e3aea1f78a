"""A sender of wake-ups that records wake-ups instead of sending them."""

from dataclasses import replace

from cupel_backend.infrastructure.system import System
from cupel_backend.infrastructure.wake_ups import WakeUps


class SentWakeUps(WakeUps):
    """A sender that appends (queue, times) of each call to `sent`, and sends nothing."""

    sent: list[tuple[str, int]]

    def send(self, queue: str, *, times: int = 1) -> None:
        self.sent.append((queue, times))

    def close(self) -> None:
        """Nothing to close."""


def record_wake_ups(system: System) -> tuple[System, list[tuple[str, int]]]:
    """Return the system without a broker, and the list that records its wake-ups."""
    wake_ups = SentWakeUps.__new__(SentWakeUps)
    wake_ups.sent = []
    return replace(system, wake_ups=wake_ups), wake_ups.sent
