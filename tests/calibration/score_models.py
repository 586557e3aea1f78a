"""Random scores of systems whose true means are known.

All noise has mean 0, and a standard deviation near 1 unless the model says otherwise. There is no topic
effect, because every method uses only differences of systems on the same topic.
"""

import math
import zlib
from collections.abc import Callable, Mapping

import numpy as np

from cupel_measures.model import Floats

Rng = np.random.Generator
Noise = Callable[[Rng, int, int], Floats]
"""Return float64[topics, systems] for a generator and the numbers of topics and systems."""


def make_rng(seed: int, *case: object) -> Rng:
    """Return the generator of a case. It does not depend on the other cases."""
    return np.random.default_rng([seed, zlib.crc32(repr(case).encode())])


def normal(rng: Rng, topics: int, systems: int) -> Floats:
    return rng.normal(size=(topics, systems))


def exponential(rng: Rng, topics: int, systems: int) -> Floats:
    return rng.exponential(size=(topics, systems)) - 1


def unequal(rng: Rng, topics: int, systems: int) -> Floats:
    noise = rng.normal(size=(topics, systems))
    noise[:, :2] *= 5
    return noise


def two_exponential(rng: Rng, topics: int, systems: int) -> Floats:
    noise = rng.normal(size=(topics, systems))
    noise[:, :2] = 3 * rng.exponential(size=(topics, 2)) - 3
    return noise


def one_lognormal(rng: Rng, topics: int, systems: int) -> Floats:
    noise = rng.normal(size=(topics, systems))
    noise[:, 0] = 2 * (np.exp(rng.normal(size=topics)) - math.exp(0.5))
    return noise


def coarse(rng: Rng, topics: int, systems: int) -> Floats:
    return np.clip(np.round(rng.normal(size=(topics, systems))), -2, 2)


def sparse(rng: Rng, topics: int, systems: int) -> Floats:
    is_changed = rng.random((topics, systems)) < 0.2
    return np.where(is_changed, rng.normal(size=(topics, systems)), 0.0)


NOISE: Mapping[str, tuple[Noise, str]] = {
    "normal": (normal, "normal, standard deviation 1"),
    "unequal": (unequal, "normal, with standard deviation 5 for two systems and 1 for the others"),
    "exponential": (exponential, "exponential for all systems, so that differences are symmetric"),
    "coarse": (coarse, "normal, rounded to the five values -2 to 2"),
    "sparse": (sparse, "normal on a random fifth of the topics, 0 on the others"),
    "two skewed": (
        two_exponential,
        "exponential with standard deviation 3 for two systems (skewness 2), else normal",
    ),
    "one lognormal": (one_lognormal, "lognormal for one system (skewness 6.2), else normal"),
}
"""Models of noise by name, with their descriptions."""


def equal_means(systems: int) -> Floats:
    return np.zeros(systems)


def partly_equal_means(systems: int) -> Floats:
    return 3.0 * np.maximum(np.arange(systems) - systems // 2 + 1, 0)


def partly_equal_means_between(systems: int) -> Floats:
    places = np.arange(systems) - (systems - 1) / 2
    return np.asarray(np.sign(places) * np.maximum(np.abs(places) - systems / 4, 0))


def nearly_equal_means(systems: int) -> Floats:
    means = partly_equal_means(systems)
    half = means == 0
    means[half] = 0.02 * np.arange(np.count_nonzero(half))
    return means


def close_means(systems: int) -> Floats:
    return np.linspace(0, 0.6, systems)


def spread_means(systems: int) -> Floats:
    return np.linspace(0, 6, systems)


MEANS: Mapping[str, tuple[Callable[[int], Floats], str]] = {
    "equal": (equal_means, "all equal"),
    "partial": (partly_equal_means, "equal for half of the systems, with steps of 3 between the others"),
    "partial, both sides": (
        partly_equal_means_between,
        "equal for about half of the systems, with steps of 1 between the others on both sides",
    ),
    "near": (nearly_equal_means, "as partial, but with steps of 0.02 between the systems of the equal half"),
    "close": (close_means, "evenly spaced from 0 to 0.6"),
    "spread": (spread_means, "evenly spaced from 0 to 6"),
}
"""True means by name, with their descriptions."""
