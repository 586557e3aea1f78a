"""The whole report of `topics` on four runs, with independent draws of topics, swaps and curves.

`TENTHS` has P@10, in tenths, of runs a to d (columns) on topics 1 to 5 (rows).
"""

from itertools import combinations
from math import exp, sqrt
from statistics import mean, median, pstdev, stdev, variance
from typing import Any

from scipy.optimize import brentq
from scipy.stats import nct, t

from support.data.audit_subjects import audited, subject_of
from support.data.expected_audits import generator_of
from support.data.expected_reports import ExpectedTable, assert_report
from support.data.small_collections import qrels_of, ranked

TENTHS = {"1": (6, 4, 3, 1), "2": (5, 5, 1, 2), "3": (2, 4, 3, 0), "4": (7, 6, 6, 2), "5": (0, 0, 0, 0)}
TOPICS, SUMS = tuple(TENTHS), (20, 19, 13, 5)
DRAWS = 6
RELEVANT, OTHER = tuple(f"r{n}" for n in range(10)), tuple(f"s{n}" for n in range(10))
QRELS = qrels_of({topic: dict.fromkeys(RELEVANT, 1) | dict.fromkeys(OTHER, 0) for topic in TOPICS})
RUNS = {
    run: {
        topic: ranked(*RELEVANT[: counts[place]], *OTHER[: 10 - counts[place]])
        for topic, counts in TENTHS.items()
    }
    for place, run in enumerate("abcd")
}
PAIRS = list(combinations(range(4), 2))


def sign(number: float) -> int:
    return (number > 0) - (number < 0)


def sum_over(topics: list[str]) -> list[int]:
    return [sum(TENTHS[topic][run] for topic in topics) for run in range(4)]


def tau_b(x: list[int], y: list[int]) -> float | None:
    signs = [(sign(x[i] - x[j]), sign(y[i] - y[j])) for i, j in PAIRS]
    untied = sum(a * a for a, _ in signs) * sum(b * b for _, b in signs)
    return sum(a * b for a, b in signs) / sqrt(untied) if untied else None


def count_swaps() -> tuple[dict[tuple[int, int], list[int]], dict[int, list[float | None]]]:
    """Count compared and swapped pairs of runs, and compute tau of the first topic set of each draw.

    Return (bin, size) -> [compared pairs, swapped pairs], and size -> taus. Each bin of differences of means
    has a width of 0.01. A sum of k tenths over n topics is a mean of k / (10 n).
    """
    counts: dict[tuple[int, int], list[int]] = {}
    taus: dict[int, list[float | None]] = {1: [], 2: []}
    for draw in range(DRAWS):
        rng = generator_of("topics", draw)
        for size in (1, 2):
            order = [TOPICS[place] for place in rng.permutation(5).tolist()]
            first, second = sum_over(order[:size]), sum_over(order[size : 2 * size])
            taus[size].append(tau_b(first, list(SUMS)))
            for i, j in PAIRS:
                if first[i] != first[j]:
                    place = min(abs(first[i] - first[j]) * 10 // size, 20)
                    pair = counts.setdefault((place, size), [0, 0])
                    pair[0] += 1
                    pair[1] += sign(first[i] - first[j]) * sign(second[i] - second[j]) < 0
    return counts, taus


def fit(points: list[tuple[int, float, int]], topics: int) -> float | None:
    """Return a exp(-b n) for n topics, fitted to two points by weighted least squares; 0 <= b <= 10.

    points: topic set size, swap rate and weight of each point. Return None for fewer than two points.
    """
    if len(points) < 2:
        return None
    (_, rate_1, weight_1), (_, rate_2, weight_2) = points
    ratio = 1.0 if rate_2 >= rate_1 else max(rate_2 / rate_1, exp(-10))
    at_1 = (weight_1 * rate_1 + weight_2 * rate_2 * ratio) / (weight_1 + weight_2 * ratio**2)
    return at_1 * ratio ** (topics - 1)


def swap_rows(counts: dict[tuple[int, int], list[int]]) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    for place in range(21):
        points = [
            (size, swapped / compared, compared)
            for size in (1, 2)
            for compared, swapped in [counts.get((place, size), [0, 0])]
            if compared
        ]
        for size, rate, compared in points:
            swapped = counts[place, size][1]
            rows.append(("P@10", place / 100, size, compared, swapped, rate, fit(points, size)))
        if (at_all := fit(points, 5)) is not None:
            rows.append(("P@10", place / 100, 5, None, None, None, at_all))
    return rows


def power(difference: float, spread: float, topics: int) -> float:
    """Return the power of a two-sided paired t-test at level 0.05, from the noncentral t distribution."""
    bound, shift = t.ppf(0.975, topics - 1), difference / spread * sqrt(topics)
    return float(nct.sf(bound, topics - 1, shift) + nct.cdf(-bound, topics - 1, shift))


def interval(taus: list[float | None]) -> tuple[float, float, float]:
    """Return the mean of the defined taus and the bounds of its 95% t-interval."""
    defined = [tau for tau in taus if tau is not None]
    half = t.ppf(0.975, len(defined) - 1) * stdev(defined) / sqrt(len(defined))
    return mean(defined), max(-1, mean(defined) - half), min(1, mean(defined) + half)


def topic_row(topic: str) -> tuple[Any, ...]:
    scores = [count / 10 for count in TENTHS[topic]]
    ends = (min(scores), max(scores), scores.count(0))
    tau = tau_b(list(TENTHS[topic]), list(SUMS))
    return ("P@10", topic, median(scores), mean(scores), *ends, pstdev(scores), tau)


def expected_tables(
    rates: list[tuple[Any, ...]], taus: dict[int, list[float | None]], sizes: tuple[float, float, int]
) -> dict[str, ExpectedTable]:
    """Return the tables of the report.

    sizes: deviation, detectable difference, and number of topics needed.
    """
    # Topic 1 alone orders the runs like the sums over all topics, 20 19 13 5. So do topics 1 and 2 together
    # (11 9 4 3). Topic 3 would tie a and b (13 13 7 3), so topic 4 is next (18 15 10 5). After it, topics 3
    # and 5 both keep tau at 1, so the smaller id is next.
    chosen = [("P@10", "chosen", n, topic, 1, None, None) for n, topic in enumerate("12435", 1)]
    return {
        "swaps": (
            "measure difference topics compared swapped rate fitted",
            [(*row[:6], None if row[6] is None else round(row[6], 6)) for row in rates],
        ),
        "subsets": (
            "measure how number topic tau low high",
            [*chosen, *(("P@10", "drawn", size, None, *interval(taus[size])) for size in (1, 2))],
        ),
        "topics": (
            "measure topic median mean least greatest zero spread tau",
            [topic_row(topic) for topic in TOPICS],
        ),
        "sizes": ("measure deviation detectable needed", [("P@10", *sizes)]),
        "rates": (
            "measure which difference rate",
            [
                *(("P@10", "observed on 2 topics", row[1], row[5]) for row in rates if row[2] == 2),
                *(
                    ("P@10", "extrapolated to 5 topics", row[1], round(row[6], 6))
                    for row in rates
                    if row[2] == 5
                ),
            ],
        ),
        # Only the bins of 0.1 and 0.2 have rates for all topics.
        "swap_curves": (
            "measure difference topics compared swapped rate fitted",
            [(*row[:6], round(row[6], 6)) for row in rates if row[1] in (0.1, 0.2)],
        ),
    }


def test_report_equals_independent_draws() -> None:
    counts, taus = count_swaps()
    rates = swap_rows(counts)
    # Two bins have both sizes. The extrapolated swap rate is 3/13 in the bin of 0.1, and 0.2 (5/6)^4, less
    # than 0.12, in the bin of 0.2 and more.
    assert [(row[1], round(row[6], 6)) for row in rates if row[2] == 5] == [(0.1, 0.230769), (0.2, 0.096451)]
    differences = [[(row[i] - row[j]) / 10 for row in TENTHS.values()] for i, j in PAIRS]
    deviation = sqrt(mean(variance(values) for values in differences))
    detectable = brentq(lambda size: power(size, deviation, 5) - 0.8, 0.1, 0.6, xtol=1e-13)
    needed = next(topics for topics in range(2, 500) if power(0.05, deviation, topics) >= 0.8)
    subject = subject_of(QRELS, RUNS, "P@10")
    report = audited("topics", subject, {"draws": DRAWS, "subset": 5, "error": 0.12})
    assert_report(
        report,
        verdict=[
            "P@10: with 5 topics, among these runs, pairs in each bin of observed differences from 0.2 up "
            "are estimated to be reversed by at most 12% of other sets of 5 topics (mean of the bin, "
            "extrapolated).",
            "P@10: tau of 1 topic, selected for these runs, with the order by all 5 is 1.000.",
            "P@10: with up to 2 random topics, the mean tau with the order by all topics is below 0.9.",
            f"P@10: a paired t-test on 5 topics at alpha 0.05 detects a true difference of {detectable:.3f} "
            f"with power 0.8; a true difference of 0.05 needs {needed} topics (a single test, at the "
            "spread pooled over all pairs of these runs).",
            # medians: 0 (topic 5), 0.25 (3), 0.35 (1 and 2; topic 2 has the lower mean), 0.6 (4)
            "P@10: the topics with the lowest median scores are 5, 3, 2; on topic 5 all runs score 0; the "
            "topics with the largest standard deviations are 4, 1, 2.",
        ],
        numbers={
            "lasting(P@10)": 0.2,
            "greedy(P@10)@5": 1,
            "enough(P@10)": 1,
            "needed(P@10)": needed,
            "smallest(P@10)": detectable,
            "zero_topics(P@10)": 1,
        },
        tables=expected_tables(rates, taus, (deviation, detectable, needed)),
        titles=[
            "With 5 topics, all bins of differences from 0.2 up by P@10 have a mean extrapolated swap rate "
            "of at most 12%",
            "The fitted swap rate of the smallest differences by P@10 is 23% with 1 topic, and 23% with 5 "
            "(extrapolated)",
            "Topics that reach a tau of 0.9: 1 selected for these runs or more than 2 random (mean tau) "
            "by P@10",
            "Topics 5, 3, 2 have the lowest median scores by P@10",
        ],
    )
    # The smallest drawn difference is 0.1. Its fitted rate is 3/13 for every number of topics.
    assert [plot.title for plot in report.plots] == [
        "With 5 topics, all bins of differences from 0.2 up by P@10 have a mean extrapolated swap rate of at "
        "most 12%",
        "The fitted swap rate of the smallest differences by P@10 is 23% with 1 topic, and 23% with 5 "
        "(extrapolated)",
        "Topics that reach a tau of 0.9: 1 selected for these runs or more than 2 random (mean tau) by P@10",
        "Topics 5, 3, 2 have the lowest median scores by P@10",
    ]
    assert report.actions[:2] == (
        "Test every difference with a paired test; below 0.2 (P@10), the extrapolated swap rate of some "
        "exceeds 12%.",
        "To detect a true difference of 0.05 by a single paired t-test at alpha 0.05 with power 0.8, at the "
        f"spread pooled over all pairs of these runs, use {needed} topics in total by P@10; there are 5.",
    )
