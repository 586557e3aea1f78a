"""Rank tests of all systems with topics as blocks.

The tests are Friedman's test, and Nemenyi's and Conover's comparisons.

Scores are ranked within each topic, so only their order on each topic counts. The mean ranks of two systems
depend on the other systems, and the tests assume that all systems have equal spreads (Benavoli, Corani and
Mangili, JMLR 2016).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cupel_measures.comparing.all_pairs import AllPairs, critical_range, empty_result
from cupel_measures.comparing.corrections import holm
from cupel_measures.comparing.outcomes import CLOSE, matrix, mean
from cupel_measures.comparing.resampling import DECIMALS
from cupel_measures.model import Floats

Pairs = Iterable[tuple[int, int]]
NEMENYI, CONOVER, ALIGNED_RANKS = "nemenyi", "conover", "aligned-ranks"
RANK_TESTS = (NEMENYI, CONOVER, ALIGNED_RANKS)
"""Names of the tests of `rank_test`."""


@dataclass(frozen=True, eq=False, kw_only=True)
class BlockedRanks(AllPairs):
    """The result of a rank test with topics as blocks.

    mean_ranks: float64[systems]; the highest score has rank 1. difference: float64[pairs], the mean rank of
    the second system minus that of the first, so it is positive if the first system is better. statistic, p,
    df: of Friedman's test of all systems. width: Nemenyi's critical difference of mean ranks.
    """

    mean_ranks: Floats


def rank_test(
    name: str, scores: Sequence[Sequence[float]] | Floats, *, alpha: float, pairs: Pairs | None = None
) -> BlockedRanks:
    """Return the test of RANK_TESTS with this name.

    pairs: those over which Conover's p is corrected.

    Nemenyi's p, and that of aligned ranks, are always corrected over all pairs.
    """
    if name == CONOVER:
        return conover(scores, alpha=alpha, pairs=pairs)
    return nemenyi(scores, alpha=alpha, aligned=name == ALIGNED_RANKS)


def nemenyi(
    scores: Sequence[Sequence[float]] | Floats, *, alpha: float = 0.05, aligned: bool = False
) -> BlockedRanks:
    """Test all systems by Friedman's test, and pairs by Nemenyi's.

    The reference is Demšar, JMLR 2006, section 3.2.2.

    scores: float64[topics, systems]. Two systems differ if their mean ranks differ by more than the critical
    difference q sqrt(V / topics), where q is the upper alpha quantile of the studentised range with infinite
    degrees of freedom, and V = systems (systems + 1) / 12. Equal scores share the mean of their ranks, which
    makes the test conservative. aligned: rank all scores together after subtracting the mean of their topic
    (Hodges and Lehmann 1962; García et al., Information Sciences 2010); V is then the variance of these
    ranks within topics, and the scores need an interval scale. If all systems have equal spreads, the
    probability of any false finding is at most alpha, also if some systems differ
    (libs/measures/CALIBRATION.md).
    """
    values = matrix(scores)
    result, ranks = _friedman(values, alpha, aligned)
    if result.undefined is not None:
        return result
    topics, systems = values.shape
    variance = systems * (systems + 1) / 12
    if aligned:
        variance = _squares_within_topics(ranks) / (topics * (systems - 1))
    error = (variance / topics) ** 0.5
    return replace(
        result,
        width=critical_range(alpha, systems, float("inf")) * error,
        pair_p=_range_p(result.difference, error, systems),
    )


def conover(
    scores: Sequence[Sequence[float]] | Floats, *, alpha: float = 0.05, pairs: Pairs | None = None
) -> BlockedRanks:
    """Test all systems by Friedman's test, and pairs by Conover's.

    The reference is Conover, Practical Nonparametric Statistics, 5.8.

    scores: float64[topics, systems]. p of a pair is that of a t-test of the ranks with the error that all
    systems share, corrected by Holm's method over all pairs, or those of `pairs`. It is at least the p of
    Friedman's test, because Conover compares pairs only if that test rejects. The test finds more
    differences than Nemenyi's. The probability of any false finding is at most alpha only if all systems are
    equal. It is higher where the ranks of some systems vary less than those of others, because the systems
    with less variable ranks reduce the shared error. With half of the systems equal and the others far apart,
    the test finds a false difference in about 30% of samples of 10 systems, and in nearly half of those of 30
    (libs/measures/CALIBRATION.md).
    """
    from scipy.special import stdtr

    values = matrix(scores)
    result, ranks = _friedman(values, alpha, aligned=False, pairs=pairs)
    if result.undefined is not None:
        return result
    topics, systems = values.shape
    df = (topics - 1) * (systems - 1)
    between = topics * float(np.cumsum((result.mean_ranks - (systems + 1) / 2) ** 2)[-1])
    squares = _squares_within_topics(ranks)
    mse = (squares - between) / df if squares - between > CLOSE * squares else 0.0
    error = (2 * mse / topics) ** 0.5
    t = np.where(result.difference == 0, 0.0, np.inf)
    np.divide(np.abs(result.difference), error, out=t, where=error > 0)
    p = np.where(t < np.inf, 2 * stdtr(df, -t), 0.0)
    return replace(result, mse=mse, pair_p=np.maximum(holm(np.minimum(p, 1.0)), result.p or 0.0))


def _friedman(
    values: Floats, alpha: float, aligned: bool, pairs: Pairs | None = None
) -> tuple[BlockedRanks, Floats]:
    """Return Friedman's test without a test of pairs, and the ranks.

    The ranks are float64[topics, systems].

    The statistic is that of scipy.stats.friedmanchisquare, which needs three systems. For aligned ranks it is
    that of Hodges and Lehmann (García et al. 2010, equation 4).
    """
    from scipy.special import chdtrc

    empty = empty_result(values, alpha, ())
    if pairs is not None:
        chosen = np.array(list(pairs), dtype=np.int64).reshape(-1, 2)
        empty = replace(empty, first=chosen[:, 0], second=chosen[:, 1], difference=np.zeros(len(chosen)))
    topics, systems = values.shape
    result = BlockedRanks(**vars(empty), mean_ranks=np.full(systems, np.nan))
    if empty.undefined is not None:
        return result, values
    ranks = _aligned_ranks(values) if aligned else _ranks_by_topic(values)
    sums = np.cumsum(ranks, axis=0)[-1]  # exact, because ranks are multiples of 1/2
    mean_ranks = sums / topics
    squares = _squares_within_topics(ranks)
    between = topics**2 * float(np.cumsum((mean_ranks - ranks.mean()) ** 2)[-1])
    statistic = (systems - 1) * between / squares if squares else 0.0
    result = replace(
        result,
        difference=(sums[empty.second] - sums[empty.first]) / topics,
        mean_ranks=mean_ranks,
        statistic=statistic,
        df=float(systems - 1),
        p=float(chdtrc(systems - 1, statistic)) if squares else 1.0,
    )
    return result, ranks


def _ranks_by_topic(values: Floats) -> Floats:
    from scipy.stats import rankdata

    ranks: Floats = rankdata(-np.round(values, DECIMALS), axis=1)
    return ranks


def _aligned_ranks(values: Floats) -> Floats:
    from scipy.stats import rankdata

    aligned = np.round(values - mean(values.T)[:, None], DECIMALS)
    ranks: Floats = rankdata(-aligned).reshape(values.shape)
    return ranks


def _squares_within_topics(ranks: Floats) -> float:
    """Return the sum of squares of the ranks minus the mean of their topic."""
    return float(np.cumsum((ranks - ranks.mean(axis=1, keepdims=True)) ** 2)[-1])


def _range_p(difference: Floats, error: float, systems: int) -> Floats:
    """Return p of each difference of mean ranks.

    The distribution is the studentised range of all systems.
    """
    from scipy.stats import studentized_range

    if not error > 0:
        return np.ones(len(difference))
    distinct, places = np.unique(np.abs(difference), return_inverse=True)
    p: Floats = np.clip(studentized_range.sf(distinct / error, systems, np.inf), 0.0, 1.0)
    return p[places]
