"""Simulated runs whose documents are relevant and understandable at random.

Palotti, Zuccon and Hanbury, CIKM 2018, section 4 and Table 1: the scores by RBP, uRBP, RBP_u and H of systems
with a given probability of relevance and a given mean of understandability labels.
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
    """The settings of a simulation; each topicality is combined with each mu. Raises ValueError.

    topicality: probabilities that a document is relevant. mu: means of the understandability labels, from 0
    (very easy) to 100 (very hard). sigma: standard deviation of the labels. threshold: hardest label that is
    understandable; `strict` excludes it. forcing: how labels outside 0 to 100 are replaced. runs: number of
    runs per combination. depth: documents per run. rho: persistence of RBP. See readings 14 to 16 in
    `libs/measures/READINGS.md` for threshold, sigma and forcing.
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
        if not self.topicality or not all(0 <= probability <= 1 for probability in self.topicality):
            raise ValueError("topicality: expected probabilities from 0 to 1")
        if not self.mu or not all(EASIEST <= mean <= HARDEST for mean in self.mu):
            raise ValueError("mu: expected mean labels from 0 to 100")
        if not 0 < self.sigma <= 1000:
            raise ValueError("sigma: expected a number above 0, up to 1,000")
        if not EASIEST <= self.threshold <= HARDEST:
            raise ValueError("threshold: expected a label from 0 to 100")
        if not 0 < self.rho < 1:
            raise ValueError("rho: expected a number between 0 and 1, both excluded")
        if self.runs < 1 or self.depth < 1 or self.runs * self.depth > MOST_DOCUMENTS:
            raise ValueError(f"runs, depth: expected at least 1, and up to {MOST_DOCUMENTS:,} documents")


MOST_DOCUMENTS = 10_000_000


@dataclass(frozen=True, kw_only=True)
class SimulatedScore:
    """The mean and standard deviation of one measure over the runs of one combination.

    expected: the expected mean in closed form; None if there is none.
    """

    topicality: float
    mu: float
    measure: str
    mean: float
    deviation: float
    expected: float | None


def simulate(settings: SimulationSettings, seed: int) -> list[SimulatedScore]:
    """Return the scores by topicality, mu and measure, in the order of the settings and NAMES.

    Each combination has its own random generator, seeded by `seed` and its position in the settings.
    """
    combinations = product(enumerate(settings.topicality), enumerate(settings.mu))
    return [
        score
        for (i, topicality), (j, mu) in combinations
        for score in _scores(settings, topicality, mu, np.random.default_rng([seed, i, j]))
    ]


def _scores(
    settings: SimulationSettings, topicality: float, mu: float, rng: np.random.Generator
) -> list[SimulatedScore]:
    shape = settings.runs, settings.depth
    relevant = rng.random(shape) <= topicality
    understood = _is_understood(settings, _labels(settings, mu, rng))
    topical, both, easy = (_rbp(settings, gains) for gains in (relevant, relevant & understood, understood))
    scores = (topical, both, easy, harmonic(np.stack([topical, easy]), (1.0, 1.0)))
    expected = (*expectations(settings, topicality, mu), None)
    simulated = []
    for name, values, expectation in zip(NAMES, scores, expected, strict=True):
        mean, deviation = _mean_and_deviation(values.tolist())
        simulated.append(
            SimulatedScore(
                topicality=topicality,
                mu=mu,
                measure=name,
                mean=mean,
                deviation=deviation,
                expected=expectation,
            )
        )
    return simulated


def _labels(settings: SimulationSettings, mu: float, rng: np.random.Generator) -> Floats:
    """Return labels from Normal(mu, sigma), brought into 0 to 100, float64[runs, depth]."""
    labels = rng.normal(mu, settings.sigma, (settings.runs, settings.depth))
    if settings.forcing == "clip":
        return np.clip(labels, EASIEST, HARDEST)
    while (outside := (labels < EASIEST) | (labels > HARDEST)).any():
        labels[outside] = rng.normal(mu, settings.sigma, int(outside.sum()))
    return labels


def _is_understood(settings: SimulationSettings, labels: Floats) -> NDArray[np.bool_]:
    return labels < settings.threshold if settings.strict else labels <= settings.threshold


def _rbp(settings: SimulationSettings, gains: NDArray[np.bool_]) -> Floats:
    """Return RBP of binary gains, added rank after rank, float64[runs]."""
    weights = power(settings.rho, np.arange(1, settings.depth + 1))
    total: Floats = np.cumsum(gains * weights, axis=1)[:, -1]
    return (1.0 - settings.rho) * total


def _mean_and_deviation(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean and the population standard deviation (divided by n)."""
    mean = math.fsum(values) / len(values)
    return mean, math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values))


def expectations(settings: SimulationSettings, topicality: float, mu: float) -> tuple[float, float, float]:
    """Return the expected RBP, uRBP and RBP_u: T c, T u c and u c.

    T is the topicality, c = 1 - rho^depth, and u the probability that a document is understandable.
    """
    reach = 1.0 - math.pow(settings.rho, settings.depth)
    easy = _understood_probability(settings, mu)
    return topicality * reach, topicality * easy * reach, easy * reach


def _understood_probability(settings: SimulationSettings, mu: float) -> float:
    """Return the probability that a document is understandable."""
    below, least, most = (
        0.5 * math.erfc((mu - label) / (settings.sigma * math.sqrt(2.0)))
        for label in (settings.threshold, EASIEST, HARDEST)
    )
    if settings.forcing == "resample":
        return (below - least) / (most - least)
    if settings.threshold == (EASIEST if settings.strict else HARDEST):  # clipped labels lie on it
        return float(not settings.strict)
    return below
