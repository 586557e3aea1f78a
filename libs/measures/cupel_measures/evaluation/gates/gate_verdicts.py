"""The verdict of a gate about the scores of a run and its baseline.

d is the mean difference over topics, run - baseline, and m the smallest drop that must be ruled out.
One-sided tests are made at level alpha. The verdict is the first that applies:

1. "better": the test rejects d <= 0.
2. "no worse": the test rejects d <= -m.
3. "worse": the test rejects d >= 0. A loss is established, and a loss of m or more is not ruled out.
4. "undecided": none of the tests rejects.

They correspond to one interval of confidence 1 - 2 alpha: above 0, above -m, or below 0. Each verdict except
"undecided" requires a rejection at level alpha, so it is wrong with a probability of at most alpha. The tests
are those of `comparing.closeness.margins`.

The verdict is also "undecided" if the tests would not be trustworthy: with fewer than `min_topics` topics, if
the baseline lacks too many topics of the run, and if the verdict depends on unjudged documents. The last two
rules only replace a verdict by a weaker one, so they make no verdict wrong more often.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cupel_measures.comparing.closeness.margins import MarginOutcome, compare_with_margin
from cupel_measures.evaluation.gates.gate_rules import PASSING, GateRule, GateVerdict
from cupel_measures.model import Floats
from cupel_measures.scoring.pool import Mask

POWER = 0.8
"""Power of the reported number of topics."""


def margin_outcome(run: Floats, baseline: Floats, rule: GateRule) -> MarginOutcome:
    """Return the one-sided tests of a run against its baseline.

    run, baseline: scores, float64[topics].
    """
    return compare_with_margin(
        run[:, None], baseline[:, None], margin=rule.max_drop, alpha=rule.alpha, test=rule.test
    )[0]


def verdict_of(outcome: MarginOutcome) -> GateVerdict:
    """Return the verdict of the tests (see the module)."""
    tests = outcome.tests
    if tests is None:
        return "undecided"
    if tests.p_better <= outcome.alpha:
        return "better"
    if tests.p_no_worse <= outcome.alpha:
        return "no worse"
    return "worse" if tests.p_worse <= outcome.alpha else "undecided"


def common_verdict(verdicts: Sequence[GateVerdict]) -> GateVerdict:
    """Return the verdict that is true if any of several verdicts is true.

    If all pass, but not all are "better", it is "no worse". Otherwise different verdicts give "undecided".
    """
    if len(set(verdicts)) == 1:
        return verdicts[0]
    return "no worse" if set(verdicts) <= PASSING else "undecided"


@dataclass(frozen=True)
class ComparedTopics:
    """The topics over which a gate compares two runs.

    A topic is compared if it is judged and the baseline has documents for it. For these topics, a topic that
    the run lacks counts as an empty ranking.

    mask: bool[T]. only_run: judged topics that only the run has. only_baseline: judged topics that only the
    baseline has.
    """

    mask: Mask
    only_run: int
    only_baseline: int

    @property
    def number(self) -> int:
        return int(np.count_nonzero(self.mask))

    @property
    def both(self) -> int:
        return self.number - self.only_baseline

    @property
    def share_of_others(self) -> float:
        """Return the share of the topics of the run that the baseline lacks."""
        return self.only_run / max(1, self.only_run + self.both)


def topics_needed(differences: Floats, rule: GateRule) -> int | None:
    """Return the number of topics with which an equally good run would probably pass.

    It is the number for which the test rejects d <= -m with probability POWER if the true d is 0 and the
    variance of the differences is that of these topics (normal approximation). It is None if the number is
    undefined, or not greater than the present number.
    """
    from scipy.special import ndtri  # imported late, because the import takes a quarter of a second

    if len(differences) < 2:
        return None
    spread = float(np.std(differences, ddof=1)) / rule.max_drop
    number = (float(ndtri(1 - rule.alpha)) + float(ndtri(POWER))) ** 2 * spread**2
    return math.ceil(number) if math.isfinite(number) and number > len(differences) else None


MEANINGS: Mapping[GateVerdict, str] = {
    "better": "the difference is significantly above 0",
    "no worse": "a drop of the maximum or more is ruled out",
    "worse": "the difference is significantly below 0, and a drop of the maximum or more is not ruled out",
    "undecided": "no other verdict is established",
}
