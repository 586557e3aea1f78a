"""Observed rates and the promises that they are compared with."""

import math
from dataclasses import dataclass
from typing import Literal

ALPHA = 0.05
TOLERANCE = 2
"""Number of standard errors by which a rate may miss its promise."""


@dataclass(frozen=True, kw_only=True)
class Promise:
    """A bound on the probability of an event. bound: "at most" or "at least" `probability`."""

    bound: Literal["at most", "at least"]
    probability: float

    def __str__(self) -> str:
        return f"{self.bound} {self.probability:g}"


ERROR = Promise(bound="at most", probability=ALPHA)
"""The promise of a test at ALPHA."""
COVERAGE = Promise(bound="at least", probability=1 - ALPHA)
"""The promise of an interval or a set of confidence 1 - ALPHA."""


@dataclass(frozen=True, kw_only=True)
class Rate:
    """The share of trials in which an event happened, and its promise."""

    events: int
    trials: int
    promise: Promise

    @property
    def value(self) -> float:
        return self.events / self.trials

    @property
    def error(self) -> float:
        """Standard error of the share if the probability is exactly the promised one."""
        p = self.promise.probability
        return math.sqrt(p * (1 - p) / self.trials)

    def is_kept(self, tolerance: float = TOLERANCE) -> bool:
        """Return whether the share misses its promise by at most `tolerance` standard errors."""
        excess = self.value - self.promise.probability
        return (excess if self.promise.bound == "at most" else -excess) <= tolerance * self.error


@dataclass(frozen=True, kw_only=True)
class Row:
    """One row of a table: the case, and the rate of each event that the table counts.

    cells: values of the leading columns. rates: by the heading of their column. outside: the assumption of
    the method that the case violates, so that a missed promise is a known limit; empty for none.
    """

    cells: tuple[str, ...]
    rates: dict[str, Rate]
    outside: str = ""

    @property
    def missed(self) -> tuple[str, ...]:
        """Headings of the rates that miss their promises."""
        return tuple(heading for heading, rate in self.rates.items() if not rate.is_kept())
