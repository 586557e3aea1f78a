"""Error and coverage rates of the max-T tests, and of randomised Tukey HSD for contrast."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from calibration.promises import COVERAGE, ERROR, Rate, Row
from calibration.score_models import MEANS, NOISE, make_rng
from cupel_measures.comparing.all_pairs import randomised_hsd
from cupel_measures.comparing.board_analysis import rank_bounds
from cupel_measures.comparing.simultaneous.max_t import MaxT, max_t
from cupel_measures.model import Floats

REPLICATES = 499
HSD_REPLICATES = 199
FEW_TOPICS = (3, 4, 5, 6, 8)
FALSE_FINDING, INTERVALS, RANKS, BEST = "any false finding", "intervals", "rank intervals", "best set"
PROMISES = {FALSE_FINDING: ERROR, INTERVALS: COVERAGE, RANKS: COVERAGE, BEST: COVERAGE}
ALL_MEANS = ("equal", "partial", "near", "close", "spread")
"""Names of the true means of the models that have all of them."""
SKEWED = ("two skewed", "one lognormal")
OUTSIDE_MAX_T = "the differences are strongly skewed"
OUTSIDE_HSD = "the spreads differ"


@dataclass(frozen=True, kw_only=True)
class Design:
    """A simulated comparison. noise, means: names in NOISE and MEANS. trials: number of trials."""

    noise: str
    means: str
    systems: int
    topics: int
    trials: int

    @property
    def cells(self) -> tuple[str, ...]:
        return self.noise, self.means, str(self.systems), str(self.topics)

    def scores(self, seed: int) -> Iterator[Floats]:
        """Yield float64[topics, systems] for each trial."""
        rng, shifts = make_rng(seed, self.cells), self.true_means
        for _ in range(self.trials):
            yield NOISE[self.noise][0](rng, self.topics, self.systems) + shifts

    @property
    def true_means(self) -> Floats:
        return MEANS[self.means][0](self.systems)


def designs(trials: int) -> list[Design]:
    """Return all designs of the max-T table. Those with 30 systems are slower and have half of the trials."""
    small = [
        Design(noise=noise, means=means, systems=10, topics=topics, trials=trials)
        for noise in NOISE
        for means in (ALL_MEANS if noise in ("normal", "unequal") else ("equal", "partial"))
        for topics in (10, 25, 50)
    ]
    large = [
        Design(noise=noise, means=means, systems=30, topics=topics, trials=trials // 2)
        for noise, all_means in (
            ("normal", ALL_MEANS),
            ("unequal", ("equal", "partial")),
            ("two skewed", ("equal", "partial")),
        )
        for means in all_means
        for topics in (10, 25, 50)
    ]
    few_topics = [
        Design(noise=noise, means="equal", systems=systems, topics=topics, trials=trials)
        for noise in ("normal", "unequal")
        for systems in (3, 10)
        for topics in FEW_TOPICS
    ]
    return few_topics + small + large


def hsd_designs(trials: int) -> list[Design]:
    return [
        Design(noise=noise, means="equal", systems=systems, topics=25, trials=trials)
        for noise in ("normal", "exponential", "unequal")
        for systems in (10, 30)
    ]


def max_t_row(design: Design, seed: int) -> Row:
    """Return the rates of the max-T tests and of what is derived from them."""
    counts: Counter[str] = Counter()
    for trial, scores in enumerate(design.scores(seed)):  # fresh signs, so that the trials are independent
        test = max_t(scores, replicates=REPLICATES, seed=trial, with_p=False)
        counts.update(events(test, design.true_means))
    rates = {
        name: Rate(events=counts[name], trials=design.trials, promise=promise)
        for name, promise in PROMISES.items()
    }
    return Row(cells=design.cells, rates=rates, outside=OUTSIDE_MAX_T if design.noise in SKEWED else "")


def events(test: MaxT, means: Floats) -> Iterator[str]:
    """Yield the events that happened in one trial. means: the true means of the systems."""
    true = means[test.first] - means[test.second]
    if (test.differs & (np.sign(test.difference) * true <= 0)).any():
        yield FALSE_FINDING
    low, high = test.intervals
    if ((low <= true) & (true <= high)).all():
        yield INTERVALS
    if _contains_ranks(test, means):
        yield RANKS
    if test.in_best_set[np.argmax(means)]:
        yield BEST


def _contains_ranks(test: MaxT, means: Floats) -> bool:
    """Return whether every rank interval contains all ranks that its system may have.

    Systems with equal true means may have any rank of the ranks that they occupy together.
    """
    low, high = rank_bounds(test, len(means))
    best = 1 + np.count_nonzero(means > means[:, None], axis=1)
    worst = np.count_nonzero(means >= means[:, None], axis=1)
    return bool(((low <= best) & (worst <= high)).all())


def hsd_row(design: Design, seed: int) -> Row:
    """Return the rate of any false finding of randomised Tukey HSD."""
    wrong = sum(
        bool(randomised_hsd(scores, replicates=HSD_REPLICATES, seed=trial).differs.any())
        for trial, scores in enumerate(design.scores(seed))
    )
    rate = Rate(events=wrong, trials=design.trials, promise=ERROR)
    return Row(
        cells=design.cells,
        rates={FALSE_FINDING: rate},
        outside=OUTSIDE_HSD if design.noise == "unequal" else "",
    )
