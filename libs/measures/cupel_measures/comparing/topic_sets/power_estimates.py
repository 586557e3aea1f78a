"""Required differences of means, and the sampling error of discriminative power.

The discriminative power of a measure is the percentage of pairs that differ significantly.

Like `resampling.discriminative_power`, the functions test all pairs of systems. All pairs and measures share
the replicates.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cupel_measures.comparing.outcomes import CLOSE, matrix, mean, undefined_reason
from cupel_measures.comparing.resampling import REPLICATES, counts, standard_deviation, studentised
from cupel_measures.grammar.parameters import exact
from cupel_measures.model import Floats, Ints

AT_ONCE = 256
"""Number of pairs whose replicates are kept in memory at the same time."""
SAMPLES = 1_000
"""Number of bootstrap samples of topics from which the sampling error of the power is estimated."""


@dataclass(frozen=True)
class PowerDifference:
    """The difference between the powers of two measures, with its interval.

    It is in percent of the pairs.
    """

    value: float
    low: float
    high: float


def required_difference(
    scores: Sequence[Sequence[float]] | Floats,
    *,
    alpha: float = 0.01,
    replicates: int = REPLICATES,
    seed: int = 0,
) -> float | None:
    """Return the estimated difference of means that makes a pair differ significantly.

    A pair is a pair of systems.

    scores: float64[topics, systems]. Sakai, SIGIR 2006, section 3: for each pair, take the bootstrap sample
    with the K-th largest |t|, where K = alpha * replicates, and the absolute difference of means in that
    sample. The result is the largest such difference over all pairs. It is None for fewer than two systems or
    topics, and for unusable scores.
    """
    values = matrix(scores)
    first, second = np.triu_indices(values.shape[1], 1)
    if undefined_reason(values) is not None or not len(first) or len(values) < 2:
        return None
    place = max(1, math.ceil(exact(alpha) * replicates))
    batches = [slice(begin, begin + AT_ONCE) for begin in range(0, len(first), AT_ONCE)]
    return max(
        _largest_required(values[:, first[batch]] - values[:, second[batch]], place, replicates, seed)
        for batch in batches
    )


def _largest_required(differences: Floats, place: int, replicates: int, seed: int) -> float:
    """Return the largest required difference of these pairs.

    differences: float64[topics, pairs].
    """
    centred, topics = differences - mean(differences), len(differences)
    squares = centred**2
    sizes, absolute_t = np.empty((2, differences.shape[1], replicates))
    begin = 0
    for sample in counts(topics, replicates, seed):
        drawn = slice(begin, begin + len(sample))
        means = sample @ centred / topics
        spread = standard_deviation(sample @ squares / topics - means**2, means)
        sizes[:, drawn] = np.abs(means).T
        absolute_t[:, drawn] = np.abs(studentised(means, spread, topics)).T
        begin += len(sample)
    bound = np.partition(absolute_t, replicates - place)[:, replicates - place, None]
    at_bound = (absolute_t >= bound * (1 - CLOSE)) & (absolute_t <= bound * (1 + CLOSE))
    return float(np.max(sizes, where=at_bound, initial=0.0))


def significant_pairs_by_sample(
    scores: Sequence[Sequence[float]] | Floats, *, alpha: float = 0.01, samples: int = SAMPLES, seed: int = 0
) -> Ints:
    """Return the number of significantly different pairs in each bootstrap sample.

    The result is int64[samples]. The samples are bootstrap samples of topics.

    scores: float64[topics, systems], with at least two topics and two systems. Pairs are tested by the
    two-sided paired t-test at level alpha. The bootstrap test is not used, because it would need bootstrap
    samples of each sample.
    """
    from scipy.special import stdtrit

    values = matrix(scores)
    topics = len(values)
    first, second = np.triu_indices(values.shape[1], 1)
    bound = float(stdtrit(topics - 1, 1 - alpha / 2)) * math.sqrt(topics / (topics - 1))
    numbers = []
    for sample in counts(topics, samples, seed):
        number = np.zeros(len(sample), dtype=np.int64)
        for begin in range(0, len(first), AT_ONCE):
            pairs = slice(begin, begin + AT_ONCE)
            differences = values[:, first[pairs]] - values[:, second[pairs]]
            means = sample @ differences / topics
            spread = standard_deviation(sample @ differences**2 / topics - means**2, means)
            number += np.count_nonzero(np.abs(studentised(means, spread, topics)) > bound, axis=1)
        numbers.append(number)
    return np.concatenate(numbers)


def power_difference(
    significant: tuple[int, int],
    by_sample: tuple[Sequence[int], Sequence[int]],
    pairs: int,
    *,
    confidence: float = 0.95,
) -> PowerDifference:
    """Return the power of the first measure minus that of the second.

    The difference has its interval over topics.

    significant: the numbers of pairs that differ significantly by each measure. by_sample: the same numbers
    for bootstrap samples of topics that the measures share (`significant_pairs_by_sample`). The interval
    estimates the expected difference on samples of the same number of topics. The power is larger on
    bootstrap samples than on the topics themselves, because the samples vary more. Therefore the deviations
    of the samples are taken from their own mean, and the quantiles of these deviations are subtracted from
    the difference. Bounds outside [-100, 100] are clipped,
    because no difference lies there.
    """
    value = 100.0 * (significant[0] - significant[1]) / pairs
    first, second = (np.asarray(numbers, dtype=np.int64) for numbers in by_sample)
    differences = 100.0 * (first - second) / pairs
    deviations = differences - mean(differences[:, None])
    below, above = np.quantile(deviations, [(1 - confidence) / 2, (1 + confidence) / 2]).tolist()
    return PowerDifference(value, max(value - above, -100.0), min(value - below, 100.0))
