"""The whole report of `reliability` on three runs and four topics, derived by hand.

P@4 times 4: a 4, 3, 4, 1 (mean 3); b 3, 2, 2, 1 (mean 2); c 1, 2, 1, 0 (mean 1). The topic means are 8/3,
7/3, 7/3 and 2/3, and the grand mean is 2. Sums of squares, in squares of a count:

    runs      4 * ((3-2)^2 + 0 + (1-2)^2) = 8                               mean square 8/2 = 4
    topics    3 * ((2/3)^2 + (1/3)^2 + (1/3)^2 + (4/3)^2) = 22/3            mean square (22/3)/3 = 22/9
    total     (4+1+4+1) + (1+0+0+1) + (1+0+1+4) = 18
    residual  18 - 8 - 22/3 = 8/3                                           mean square (8/3)/6 = 4/9
"""

import pytest
from scipy.stats import chi2, f

from support.data.audit_subjects import audited, subject_of
from support.data.expected_reports import assert_report
from support.data.small_collections import qrels_of, ranked

COUNTS = {"a": (4, 3, 4, 1), "b": (3, 2, 2, 1), "c": (1, 2, 1, 0)}
RELEVANT, OTHER = ("r1", "r2", "r3", "r4"), ("n1", "n2", "n3", "n4")
QRELS = qrels_of({topic: dict.fromkeys(RELEVANT, 1) | dict.fromkeys(OTHER, 0) for topic in "1234"})
RUNS = {
    run: {
        topic: ranked(*RELEVANT[:count], *OTHER[: 4 - count])
        for topic, count in zip("1234", counts, strict=True)
    }
    for run, counts in COUNTS.items()
}
RUN, TOPIC, RESIDUAL = 4 / 16, 22 / 9 / 16, 4 / 9 / 16
"""Mean squares of P@4."""
RUN_VARIANCE = (4 - 4 / 9) / 4 / 16  # 8/9 in squares of a count
TOPIC_VARIANCE = (22 / 9 - 4 / 9) / 3 / 16  # 2/3
Interval = tuple[float, float]


def bounds_of_relative() -> Interval:
    """Return the bounds of (run variance / residual variance), by Feldt (1965), with F = 4 / (4/9) = 9."""
    upper, lower = (9 / f.ppf(tail, 2, 6) for tail in (0.025, 0.975))
    return max(0, (lower - 1) / 4), (upper - 1) / 4


def bounds_of_absolute() -> Interval:
    """Return the bounds of run variance / (topic variance + residual variance) (Arteaga et al. 1982)."""
    bounds = []
    for tail in (0.975, 0.025):
        free, residual, topic = chi2.ppf(tail, 2) / 2, f.ppf(tail, 2, 6), f.ppf(tail, 2, 3)
        signal = RUN**2 - free * RUN * RESIDUAL + (free - residual) * residual * RESIDUAL**2
        noise = 2 * free * RUN * RESIDUAL + topic * RUN * TOPIC
        bounds.append(max(0, 3 / 4 * signal / noise))
    return bounds[0], bounds[1]


def coefficient(ratio: float, topics: int) -> float:
    return topics * ratio / (1 + topics * ratio)


def test_report_equals_the_hand_worked_report() -> None:
    """On 4 topics, E rho^2 is 8/9 / (8/9 + 1/9) = 8/9, and Phi is 8/9 / (8/9 + 5/18) = 16/21.

    A coefficient of 0.95 needs 19 * error variance / run variance topics: 19 * 1/2 = 9.5 and 19 * 5/4 =
    23.75.
    """
    relative, absolute = (2.0, *bounds_of_relative()), (4 / 5, *bounds_of_absolute())
    assert coefficient(2, 4) == 8 / 9
    assert coefficient(4 / 5, 4) == pytest.approx(16 / 21)
    report = audited("reliability", subject_of(QRELS, RUNS, "P@4"), {"sizes": [2, 8]})
    total = RUN_VARIANCE + TOPIC_VARIANCE + RESIDUAL  # 8/9 + 6/9 + 4/9 = 2
    assert total == pytest.approx(2 / 16)
    low, high = (coefficient(ratio, 4) for ratio in relative[1:])
    phi_low, phi_high = (coefficient(ratio, 4) for ratio in absolute[1:])
    assert 0 < low < 8 / 9 < high
    assert 0 < phi_low < 16 / 21 < phi_high
    most, least = (int(19 / ratio) + 1 for ratio in relative[1:])
    phi_most, phi_least = (int(19 / ratio) + 1 for ratio in absolute[1:])
    assert_report(
        report,
        verdict=[
            f"P@4: with 4 topics, E rho^2 is 0.889 ({low:.3f} to {high:.3f}) and Phi is 0.762 "
            f"({phi_low:.3f} to {phi_high:.3f}) (95% intervals). By the estimate, differences between "
            f"runs reach a reliability of 0.95 with 10 topics ({least} to {most}), scores with 24 topics "
            f"({phi_least} to {phi_most}).",
            "P@4: of the variance of a score, 44.4% is between runs, 33.3% between topics, 22.2% residual.",
        ],
        numbers={"erho2(P@4)": 8 / 9, "topics_erho2(P@4)": 10, "phi(P@4)": 16 / 21, "topics_phi(P@4)": 24},
        tables={
            "measures": (
                "measure coefficient topics value low high needed needed_low needed_high",
                [
                    ("P@4", "E rho^2", 4, 8 / 9, low, high, 10, least, most),
                    ("P@4", "Phi", 4, 16 / 21, phi_low, phi_high, 24, phi_least, phi_most),
                ],
            ),
            "components": (
                "measure component variance percent",
                [
                    ("P@4", "runs", RUN_VARIANCE, 400 / 9),
                    ("P@4", "topics", TOPIC_VARIANCE, 300 / 9),
                    ("P@4", "residual", RESIDUAL, 200 / 9),
                ],
            ),
            "curve": (
                "measure coefficient topics value low high",
                [
                    ("P@4", name, topics, *(coefficient(ratio, topics) for ratio in ratios))
                    for name, ratios in (("E rho^2", relative), ("Phi", absolute))
                    for topics in (2, 4, 8)
                ],
            ),
        },
        titles=[
            "With 4 topics, E rho^2 is 0.89 and Phi is 0.76",
            "Share of the variance of a score that is between runs: 44.4% by P@4",
        ],
    )
    assert [plot.title for plot in report.plots] == [
        "With 4 topics, E rho^2 is 0.89 and Phi is 0.76",
        "Share of the variance of a score that is between runs: 44.4% by P@4",
    ]


def test_verdict_orders_measures_by_the_reliability_of_differences() -> None:
    """P@4 differs by 1/4 between runs on every topic, so E rho^2 is 1; Phi is lower because topics differ.

    By topic, P@1 of run a is 1, 1, 1, 1, that of b is 1, 0, 1, 0, and that of c is 0. The mean squares of P@1
    are 1 for runs and 1/9 for topics and for the residual. So both ratios are ((1 - 1/9) / 4) / (1/9) = 2.
    Phi of P@4 has the ratio 1 / (11/12).
    """
    counts = {"a": (4, 3, 4, 2), "b": (3, 2, 3, 1), "c": (2, 1, 2, 0)}
    firsts = {"a": (1, 1, 1, 1), "b": (1, 0, 1, 0), "c": (0, 0, 0, 0)}
    runs = {
        run: {
            topic: ranked(*OTHER[: 1 - first], *RELEVANT[:count], *OTHER[1 - first : 4 - count])
            for topic, count, first in zip("1234", counts[run], firsts[run], strict=True)
        }
        for run in counts
    }
    report = audited("reliability", subject_of(QRELS, runs, "P@1 P@4"))
    assert report.numbers["erho2(P@4)"] == 1
    assert report.numbers["erho2(P@1)"] == report.numbers["phi(P@1)"] == pytest.approx(8 / 9)
    assert report.numbers["phi(P@4)"] == pytest.approx(48 / 59)
    assert [sentence[:3] for sentence in report.verdict] == ["P@4", "P@4", "P@1", "P@1"]


def test_interval_of_the_topics_needed_can_be_open() -> None:
    """For two runs that differ on one of four topics, the interval of the run variance includes 0."""
    runs = {"a": RUNS["a"], "b": {**RUNS["a"], "1": ranked(*OTHER)}}
    report = audited("reliability", subject_of(QRELS, runs, "P@4"))
    row = report.table("measures").records()[1]
    assert row["low"] == 0
    assert row["needed_high"] is None


def test_reliability_of_equal_runs_is_undefined() -> None:
    report = audited("reliability", subject_of(QRELS, {"a": RUNS["a"], "again": RUNS["a"]}, "P@4"))
    assert report.verdict == ("Reliability is undefined for every measure.",)
    assert report.undefined == ("reliability of P@4: all runs have the same scores",)
    assert report.numbers == dict.fromkeys(("erho2(P@4)", "topics_erho2(P@4)", "phi(P@4)", "topics_phi(P@4)"))


def test_runs_without_variance_between_them_reach_no_target() -> None:
    """On two topics, run a scores 1 and run b 0. On two other topics, run a scores 0 and run b 1."""
    first, second = {"1", "2"}, {"3", "4"}
    runs = {
        name: {topic: ranked(*(RELEVANT if topic in topics else OTHER)) for topic in "1234"}
        for name, topics in (("a", first), ("b", second))
    }
    report = audited("reliability", subject_of(QRELS, runs, "P@4"))
    assert report.numbers["erho2(P@4)"] == report.numbers["phi(P@4)"] == 0
    none = (
        "no number of topics (variance between runs estimated as 0 or less, set to 0; interval: no number of "
        "topics)"
    )
    assert (
        f"By the estimate, differences between runs reach a reliability of 0.95 with {none}, scores with "
        f"{none}." in report.verdict[0]
    )
    assert report.undefined[0] == (
        "topics for E rho^2 of P@4: the variance between runs is estimated as 0 or less and set to 0, so by "
        "the estimate no number of topics reaches 0.95 (interval: no number of topics)"
    )


def test_interval_is_given_if_the_estimated_variance_between_runs_is_0() -> None:
    """Run a scores 1 on three topics and run b on two, so the mean square of runs is below the residual."""
    topics = {"a": "123", "b": "45"}
    runs = {
        name: {topic: ranked(*(RELEVANT if topic in best else OTHER)) for topic in "12345"}
        for name, best in topics.items()
    }
    grades = {topic: dict.fromkeys(RELEVANT, 1) for topic in "12345"}
    report = audited("reliability", subject_of(qrels_of(grades), runs, "P@4"))
    relative, absolute = (row["needed_low"] for row in report.table("measures").records())
    none = "no number of topics (variance between runs estimated as 0 or less, set to 0; interval:"
    assert isinstance(relative, int)
    assert isinstance(absolute, int)
    assert f"with {none} {relative} or more), scores with {none} {absolute} or more)." in report.verdict[0]
