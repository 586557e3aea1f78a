"""`topics`: how much hangs on which topics, and on how many (Voorhees and Buckley 2002; spec 7.5, 12)."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Annotated, Any

import numpy as np

from cupel_audits.analysis.lmd_selection import select_topics
from cupel_audits.analysis.score_matrices import Compared, OverTopics, compared, warned
from cupel_audits.declarations import audit, setting, whole_number
from cupel_audits.kinds.topics.topics_report import report
from cupel_audits.report import AuditReport
from cupel_audits.subject import DECIMALS, AuditSubject, SubjectSummary
from cupel_measures.comparing.correlation import tau_b
from cupel_measures.comparing.outcomes import asks_too_much, mean
from cupel_measures.comparing.swap_rates import swaps
from cupel_measures.comparing.topic_set_sizes import pooled_variance, smallest_difference, topics_needed
from cupel_measures.grammar.measure import Measure
from cupel_measures.grammar.parameters import Number, Numbers, Whole
from cupel_measures.model import Floats

Chance = Annotated[float, Number("a chance between 0 and 1, both excluded", 0, 1, (0, 1))]
Draws = Annotated[int, whole_number()]
Wished = Annotated[float, Number("a difference above 0", 0, without=(0,))]
Sizes = Annotated[tuple[int, ...], Numbers("rising whole numbers from 1, such as [5,10,25]", Whole())]

BINS = 21
"""Of differences; the last has all greater ones."""
USUAL = 0.01
"""Width of a bin for measures from 0 to about 1; for others a twentieth of the range of means."""
STEPS = 12
"""At how many sizes of topic sets swaps are counted, where no sizes are given."""


@audit(
    "topics",
    title="Topics: how many, and which",
    answers="How large must a difference be to last on other topics, and how many topics, and which, tell?",
    source="Voorhees, Buckley, SIGIR 2002; Guiver et al., TOIS 2009; Sakai 2016 (spec 7.5, 12)",
)
class Topics(OverTopics):
    """Draws sets of topics that share none, chooses topics that stand for all, and looks at each topic.

    Swaps: two disjoint sets of n topics are drawn; pairs of runs fall into bins by how far their means differ
    on the first; a pair is swapped where the second set orders it the other way. Rates of swaps by n and bin
    are over all draws. a exp(-b n) is laid through the rates of a bin by least squares, weighted by the pairs
    compared, and extended to all topics, which can't be halved.

    Subsets: always the topic is added that makes tau-b largest between means over those chosen and over all
    topics (ties: the smallest id). Beside it: the tau of topics that were drawn.

    Each topic: mean and median score over runs, how many runs score 0, the standard deviation of the runs,
    and tau-b between the topic's order and that of all topics.

    Sizes: with the variance of differences between two runs, pooled over all pairs, the least true difference
    that a paired t-test finds on these topics with a chance of 0.8, and how many topics a wished one takes.
    """

    draws: Draws = setting(50, "how often two sets of topics are drawn for each size")
    sizes: Sizes | None = setting(None, "topics of a drawn set (default: up to half of all, about 12 sizes)")
    error: Chance = setting(0.05, "the rate of swaps that is put up with")
    subset: Draws = setting(20, "how many topics are chosen at most")
    difference: Wished = setting(0.05, "the true difference of means that is wished to be found")
    alpha: Chance = setting(0.05, "the level of the t-test that is to find it")

    def problems(self, subject: AuditSubject) -> Iterator[str]:
        yield from super().problems(subject)
        half = len(subject.about.topics) // 2
        if self.sizes and half and max(self.sizes) > half:
            yield f"sizes: two sets of {max(self.sizes)} topics can't be disjoint; there are at most {half}"

    def trials(self, subject: AuditSubject) -> int:
        return self.draws + len(subject.measures)

    def run_trials(self, subject: AuditSubject, seed: int, trials: Sequence[int]) -> Iterator[Any]:
        scores = [compared(subject, one) for one in subject.measures]
        for trial in trials:
            if trial < self.draws:
                yield {"draw": self._draw(subject, scores, self.generator(seed, trial))}
            else:
                place = trial - self.draws
                yield {"measure": self._measure(subject, scores[place], _usual(subject.measures[place]))}

    def _draw(
        self, subject: AuditSubject, scores: Sequence[Compared], chance: np.random.Generator
    ) -> dict[str, list[Any]]:
        """By measure, for each size: pairs compared and swapped by bin, and tau of the first set with all."""
        topics = len(subject.about.topics)
        found: dict[str, list[Any]] = {one.measure: [] for one in scores}
        widths = [_width(one, measure) for one, measure in zip(scores, subject.measures, strict=True)]
        for size in self.sizes or _sizes(topics):
            order = chance.permutation(topics)
            sets = np.sort(order[:size]), np.sort(order[size : 2 * size])
            for one, width in zip(scores, widths, strict=True):
                if one.undefined is None:
                    found[one.measure].append(
                        {"size": size, "width": width, **_compare(one.values, sets, width)}
                    )
        return found

    def _measure(self, subject: AuditSubject, scores: Compared, usual: bool) -> dict[str, Any]:
        """What a measure's scores on all topics say. usual: whether the wished difference is one of it."""
        said: dict[str, Any] = {
            "measure": scores.measure,
            "undefined": scores.undefined,
            "notes": [*asks_too_much(scores.scale, "a mean"), *scores.notes],
        }
        if scores.undefined is not None:
            return said
        chosen = select_topics(subject.about.topics, scores.values, scores.values, self.subset)
        variance = pooled_variance(scores.values) or 0.0
        number = len(scores.values)
        return said | {
            "chosen": list(zip(chosen.topics, chosen.taus, strict=True)),
            "topics": [_of_topic(row, order, scores) for row, order in _rows(scores)],
            "variance": variance,
            "detectable": smallest_difference(variance, number, alpha=self.alpha) if variance else None,
            "usual": usual,
            "needed": topics_needed(self.difference, variance, alpha=self.alpha)
            if usual and variance
            else None,
        }

    def report(self, about: SubjectSummary, found: Mapping[int, Any]) -> AuditReport:
        done = list(found.values())
        measures = [one["measure"] for one in done if "measure" in one]
        draws = [one["draw"] for one in done if "draw" in one]
        return report(about, draws, measures, self.error, self.difference, warned(measures))


def _sizes(topics: int) -> list[int]:
    """About STEPS sizes up to half of the topics."""
    half = topics // 2
    steps = min(STEPS, half)
    return sorted({max(1, round(half * step / steps)) for step in range(1, steps + 1)})


def _width(scores: Compared, measure: Measure) -> float:
    """Of a bin of differences."""
    if _usual(measure) or scores.undefined is not None:
        return USUAL
    return float(np.ptp(mean(scores.values))) / (BINS - 1) or USUAL


def _usual(measure: Measure) -> bool:
    """Whether means go from 0 to about 1: a greedy ideal may be surpassed."""
    low, high = measure.bounds
    return low >= -1 and high <= 2 and measure.declaration.aggregate == "mean"


def _compare(values: Floats, sets: tuple[Any, Any], width: float) -> dict[str, Any]:
    first, second = (mean(values[topics]) for topics in sets)
    found = swaps(first, second, width, BINS)
    whole = np.round(mean(values), DECIMALS)
    return {
        "compared": found.compared.tolist(),
        "swapped": found.swapped.tolist(),
        "tau": tau_b(np.round(first, DECIMALS), whole).value,
    }


def _rows(scores: Compared) -> Iterator[tuple[list[float], Any]]:
    return zip(scores.values.tolist(), scores.orders, strict=True)


def _of_topic(row: Sequence[float], order: Any, scores: Compared) -> dict[str, Any]:
    """A topic: how the runs score on it."""
    values = np.array(row)
    middle = float(mean(values[:, None])[0])
    spread = float(mean((values[:, None] - middle) ** 2)[0]) ** 0.5
    return {
        "mean": middle,
        "median": median(row),
        "least": min(row),
        "greatest": max(row),
        "zero": sum(value == 0 for value in order),
        "spread": spread,
        "tau": tau_b(order, scores.means).value,
    }
