"""Simulated runs whose documents are relevant and understandable at random.

The simulation scores systems by RBP, uRBP, RBP_u and H. The systems differ in only two properties: the
probability that a document is relevant, and the mean of its understandability label. Source: Palotti, Zuccon,
Hanbury, CIKM 2018, section 4 and Table 1.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cupel_measures.families.multiaspect import harmonic
from cupel_measures.model import Floats
from cupel_measures.scoring.discounts import power

Forcing = Literal["clip", "resample"]
NAMES = ("RBP", "uRBP", "RBP_u", "H")
EASIEST, HARDEST = 0.0, 100.0


@dataclass(frozen=True, kw_only=True)
class SimulationSettings:
    """Parameters of the simulation.

    Each pair of a topicality and a mean label is a kind of system.

    topicality: probabilities that a document is relevant. mu: means of its understandability label, from 0
    (very easy) to 100 (very hard). sigma: the standard deviation of labels. threshold: the hardest label that
    is understandable; `strict` excludes it. forcing: method of moving labels into the range 0..100. runs:
    number of runs of each kind of system. depth: documents per run. rho: persistence of RBP. The readings 14
    to 16 of libs/measures/READINGS.md explain `threshold`, `sigma` and `forcing`.
    """

    topicality: tuple[float, ...] = (0.3, 0.4, 0.5, 0.6, 0.7)
    mu: tuple[float, ...] = (50.0, 40.0, 30.0)
    sigma: float = 40.0
    runs: int = 1000
    depth: int = 10
    rho: float = 0.8
    threshold: float = 40.0
    strict: bool = False
    forcing: Forcing = "clip"

    def __post_init__(self) -> None:
        """Raise ValueError if a setting is invalid."""
        if not self.topicality or not all(0 <= value <= 1 for value in self.topicality):
            raise ValueError("topicality: give one or more probabilities, each from 0 to 1")
        if not self.mu or not all(EASIEST <= mean <= HARDEST for mean in self.mu):
            raise ValueError("mu: give one or more means, each from 0 to 100")
        if not 0 < self.sigma <= 1000:
            raise ValueError("sigma: expected a number above 0, up to 1,000")
        if not EASIEST <= self.threshold <= HARDEST:
            raise ValueError("threshold: expected a label from 0 to 100")
        if not 0 < self.rho < 1:
            raise ValueError("rho: expected a number between 0 and 1, both excluded")
        if self.runs < 1 or self.depth < 1 or self.runs * self.depth > MOST_DOCUMENTS:
            raise ValueError(
                f"runs, depth: expected numbers from 1 up, and at most {MOST_DOCUMENTS:,} documents in all"
            )


MOST_DOCUMENTS = 10_000_000


@dataclass(frozen=True, kw_only=True)
class Cell:
    """The scores of one kind of system by one measure.

    expected: the mean in closed form, None for H.
    """

    topicality: float
    mu: float
    measure: str
    mean: float
    deviation: float
    expected: float | None


def simulate(settings: SimulationSettings, seed: int) -> list[Cell]:
    """Return a cell for each topicality, mu and measure.

    The order is that of the settings and NAMES.

    Each kind of system has its own random generator, seeded by `seed` and its index in the settings.
    """
    kinds = product(enumerate(settings.topicality), enumerate(settings.mu))
    return [
        cell
        for (i, topicality), (j, mu) in kinds
        for cell in _cells(settings, topicality, mu, np.random.default_rng([seed, i, j]))
    ]


def _cells(
    settings: SimulationSettings, topicality: float, mu: float, draw: np.random.Generator
) -> list[Cell]:
    shape = settings.runs, settings.depth
    relevant = draw.random(shape) <= topicality
    understood = _understood(settings, _labels(settings, mu, draw))
    topical, both, easy = (_rbp(settings, gains) for gains in (relevant, relevant & understood, understood))
    scores = (topical, both, easy, harmonic(np.stack([topical, easy]), (1.0, 1.0)))
    expected = (*expectations(settings, topicality, mu), None)
    cells = []
    for name, values, closed_form in zip(NAMES, scores, expected, strict=True):
        mean, deviation = _summary(values.tolist())
        cells.append(
            Cell(
                topicality=topicality,
                mu=mu,
                measure=name,
                mean=mean,
                deviation=deviation,
                expected=closed_form,
            )
        )
    return cells


def _labels(settings: SimulationSettings, mu: float, draw: np.random.Generator) -> Floats:
    """Draw float64[runs, depth]: labels from Normal(mu, sigma), forced into 0..100."""
    labels = draw.normal(mu, settings.sigma, (settings.runs, settings.depth))
    if settings.forcing == "clip":
        return np.clip(labels, EASIEST, HARDEST)
    while (outside := (labels < EASIEST) | (labels > HARDEST)).any():
        labels[outside] = draw.normal(mu, settings.sigma, int(outside.sum()))
    return labels


def _understood(settings: SimulationSettings, labels: Floats) -> NDArray[np.bool_]:
    return labels < settings.threshold if settings.strict else labels <= settings.threshold


def _rbp(settings: SimulationSettings, gains: NDArray[np.bool_]) -> Floats:
    """Return RBP of binary gains, float64[runs].

    Terms are added in the order of ranks.
    """
    weights = power(settings.rho, np.arange(1, settings.depth + 1))
    total: Floats = np.cumsum(gains * weights, axis=1)[:, -1]
    return (1.0 - settings.rho) * total


def _summary(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean and the population standard deviation (divisor n)."""
    mean = math.fsum(values) / len(values)
    return mean, math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values))


def expectations(settings: SimulationSettings, topicality: float, mu: float) -> tuple[float, float, float]:
    """Return the expected RBP, uRBP and RBP_u.

    They are T c, T u c and u c, where T is the topicality, c = 1 - rho^depth, and u is the probability that a
    document is understandable.
    """
    reach = 1.0 - math.pow(settings.rho, settings.depth)
    easy = _understandable_share(settings, mu)
    return topicality * reach, topicality * easy * reach, easy * reach


def _understandable_share(settings: SimulationSettings, mu: float) -> float:
    """Return the probability that a document is understandable."""
    below, least, most = (
        0.5 * math.erfc((mu - label) / (settings.sigma * math.sqrt(2.0)))
        for label in (settings.threshold, EASIEST, HARDEST)
    )
    if settings.forcing == "resample":
        return (below - least) / (most - least)
    if settings.threshold == (EASIEST if settings.strict else HARDEST):  # clipped labels equal the threshold
        return float(not settings.strict)
    return below
