"""The whole report of `scales` on four runs, derived in a few lines from the definitions of the tests.

`COUNTS` has the number of relevant documents among the first 4 of each run (columns) on three topics (rows).
P@4 has an interval scale. AP@4 has neither an interval nor an ordinal scale. Relevant documents are ranked
first, so both measures equal count / 4.
"""

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import chi2, f, rankdata, studentized_range

from support.data.audit_subjects import audited, subject_of
from support.data.expected_reports import assert_report
from support.data.small_collections import qrels_of, ranked

COUNTS = np.array([[4, 3, 1, 0], [3, 3, 0, 1], [4, 2, 1, 1]])
TOPICS = ("1", "2", "3")
RELEVANT, OTHER = ("r1", "r2", "r3", "r4"), ("n1", "n2", "n3", "n4")
QRELS = qrels_of({topic: dict.fromkeys(RELEVANT, 1) | dict.fromkeys(OTHER, 0) for topic in TOPICS})
RUNS = {
    run: {
        topic: ranked(*RELEVANT[:count], *OTHER[: 4 - count])
        for topic, count in zip(TOPICS, counts.tolist(), strict=True)
    }
    for run, counts in zip("abcd", COUNTS.T, strict=True)
}
COLUMNS = (
    "measure scale pairs rank_test by_rank by_rank_percent mean_test by_mean by_mean_percent ratio both "
    "rank_statistic rank_p mean_statistic mean_p exact"
)


def kruskal_wallis(alpha: float) -> tuple[float, float, set[tuple[int, int]]]:
    """Return H, p, and the pairs of runs whose mean ranks differ by more than q sqrt(V / T).

    H and V, the variance of the ranks, are corrected for ties. T is the number of topics.
    """
    t, s = COUNTS.shape
    n = t * s
    ranks = rankdata(COUNTS).reshape(t, s)
    ties = sum(k**3 - k for k in np.unique(COUNTS, return_counts=True)[1].tolist())
    h = (12 / (n * (n + 1)) * t * sum(ranks.mean(axis=0) ** 2) - 3 * (n + 1)) / (1 - ties / (n**3 - n))
    variance = n * (n + 1) / 12 - ties / (12 * (n - 1))
    width = studentized_range.ppf(1 - alpha, s, np.inf) * np.sqrt(variance / t)
    return h, chi2.sf(h, s - 1), pairs_beyond(ranks.mean(axis=0), width)


def anova(alpha: float, two_way: bool) -> tuple[float, float, set[tuple[int, int]]]:
    """Return F, p, and the pairs of runs whose means differ by more than q sqrt(MSE / T)."""
    t, s = COUNTS.shape
    scores = COUNTS / 4
    error = scores - scores.mean(axis=0)
    df = s * (t - 1)
    if two_way:
        error = error - scores.mean(axis=1)[:, None] + scores.mean()
        df = (t - 1) * (s - 1)
    mse = (error**2).sum() / df
    statistic = t * ((scores.mean(axis=0) - scores.mean()) ** 2).sum() / (s - 1) / mse
    width = studentized_range.ppf(1 - alpha, s, df) * np.sqrt(mse / t)
    return statistic, f.sf(statistic, s - 1, df), pairs_beyond(scores.mean(axis=0), width)


def pairs_beyond(means: np.ndarray, width: float) -> set[tuple[int, int]]:
    return {(i, j) for i, j in combinations(range(4), 2) if abs(means[i] - means[j]) > width}


@pytest.mark.parametrize(("design", "alpha"), [("two_way", 0.1), ("one_way", 0.1)])
def test_report_equals_a_computation_from_the_definitions(design: str, alpha: float) -> None:
    h, h_p, by_rank = kruskal_wallis(alpha)
    statistic, f_p, by_mean = anova(alpha, design == "two_way")
    # By hand: the sums of ranks are 32, 25, 10.5 and 10.5, so only a differs from c and d by ranks. The
    # means are 11/12, 8/12, 2/12 and 2/12: a and b differ from c and d, but not from each other.
    assert by_rank == {(0, 2), (0, 3)}
    assert by_mean == {(0, 2), (0, 3), (1, 2), (1, 3)}
    statistics = ("Kruskal-Wallis", 2, 33.33, "ANOVA", 4, 66.67, 2.0, 2, h, h_p, statistic, f_p)
    settings = {"alpha": alpha, "design": design, "rank_test": "kw", "mean_test": "anova"}
    report = audited("scales", subject_of(QRELS, RUNS, "P@4 AP@4"), settings)
    assert_report(
        report,
        verdict=[
            "P@4: of 6 pairs of runs, 2 differ significantly by Kruskal-Wallis (33.33%) and 4 by ANOVA "
            "(66.67%, 2.00 times as many; alpha 0.1).",
            "AP@4: of 6 pairs of runs, 2 differ significantly by Kruskal-Wallis (33.33%) and 4 by ANOVA "
            "(66.67%, 2.00 times as many; alpha 0.1). The scale of the measure is neither interval nor "
            "ordinal. If the scale is taken seriously, neither a test of means nor a test of ranks is "
            "meaningful (disputed).",
            "By Kruskal-Wallis, the same pairs of runs differ significantly under P@4, AP@4.",
            "By ANOVA, the same pairs of runs differ significantly under P@4, AP@4.",
        ],
        numbers={
            **{f"kw({measure})": 2 for measure in ("P@4", "AP@4")},
            **{f"kw_percent({measure})": 200 / 6 for measure in ("P@4", "AP@4")},
            **{f"anova({measure})": 4 for measure in ("P@4", "AP@4")},
            **{f"anova_percent({measure})": 400 / 6 for measure in ("P@4", "AP@4")},
            **{f"ratio({measure})": 2 for measure in ("P@4", "AP@4")},
            "pairs": 6,
        },
        tables={
            "measures": (
                COLUMNS,
                [("P@4", "interval", 6, *statistics, True), ("AP@4", "neither", 6, *statistics, True)],
            )
        },
        warnings=[
            "AP@4: ANOVA needs an interval scale, but the measure has neither an interval nor an "
            "ordinal scale (disputed: Sakai 2020; Moffat 2022)"
        ],
    )


def test_default_report_equals_a_computation_by_hand() -> None:
    """Ranks by topic: 1 2 3 4, 1.5 1.5 4 3 and 1 2 3.5 3.5, so the sums are 3.5, 5.5, 10.5 and 10.5.

    Differences by topic, for the test of means: a - c is 3/4 on all topics, so its t is infinite. a - d is
    4/4, 2/4 and 3/4.
    """
    report = audited("scales", subject_of(QRELS, RUNS, "P@4"), {"alpha": 0.3})
    # Friedman with ties: 3 (4^2 + 2^2 + 3^2 + 3^2) / (30 + 29.5 + 29.5 - 75).
    friedman = 3 * 38 / 14
    critical = studentized_range.ppf(0.7, 4, np.inf) * (4 * 5 / 12 / 3) ** 0.5
    assert 5 / 3 < critical < 7 / 3  # Nemenyi: only a differs from c and d
    # Max-T: t of a - d is 3 sqrt 3, of b - c and b - d 2 sqrt 3. After flips, centred differences have |t| of
    # at most 2. So a and b differ from c and d. t of a - b is sqrt 3, which flips with |t| = 2 exceed.
    statistics = ("Nemenyi's test", 2, 33.33, "max-T", 4, 66.67, 2, 2, friedman, chi2.sf(friedman, 3))
    assert_report(
        report,
        verdict=[
            "P@4: of 6 pairs of runs, 2 differ significantly by Nemenyi's test (33.33%) and 4 by max-T "
            "(66.67%, 2.00 times as many; alpha 0.3)."
        ],
        numbers={
            "nemenyi(P@4)": 2,
            "nemenyi_percent(P@4)": 200 / 6,
            "max_t(P@4)": 4,
            "max_t_percent(P@4)": 400 / 6,
            "ratio(P@4)": 2,
            "pairs": 6,
        },
        tables={
            "measures": (COLUMNS, [("P@4", "interval", 6, *statistics, None, None, True)]),
            "ranks": (
                "measure run mean_rank groups critical_difference",
                [
                    ("P@4", "a", 3.5 / 3, "a", critical),
                    ("P@4", "b", 5.5 / 3, "a b", critical),
                    ("P@4", "c", 3.5, "b", critical),
                    ("P@4", "d", 3.5, "b", critical),
                ],
            ),
        },
        titles=[
            "Pairs of runs that differ significantly by ranks (Nemenyi's test): 33.3% by P@4",
            "Pairs of runs that differ significantly by means (max-T): 66.7% by P@4",
            "Not significantly different from the best mean rank: 1 of 3 other runs by P@4",
        ],
    )
    diagram = report.plots[-1]
    assert diagram.form == "critical_difference"
    assert diagram.title == "Not significantly different from the best mean rank: 1 of 3 other runs by P@4"
    assert "not significantly different by Nemenyi's test (alpha 0.3)" in diagram.caption
    assert diagram.caption.endswith("differ by more than the critical difference.")
    assert (diagram.x, diagram.y, diagram.facet) == ("mean_rank", "run", None)


def test_title_of_diagram_counts_runs_like_the_best_by_each_measure() -> None:
    """P@1 is 1 1 1 0, 1 1 0 1 and 1 1 1 1, so the mean ranks hardly differ and no test rejects."""
    report = audited("scales", subject_of(QRELS, RUNS, "P@4 AP@4"), {"alpha": 0.3})
    title = "Not significantly different from the best mean rank: "
    assert report.plots[-1].title == f"{title}1 of 3 other runs by every measure"
    assert report.plots[-1].facet == "measure"
    report = audited("scales", subject_of(QRELS, RUNS, "P@1 P@4"), {"alpha": 0.3})
    assert report.plots[-1].title == f"{title}from 1 (P@4) to 3 (P@1) of 3 other runs"


def test_diagram_has_no_critical_difference_by_conover_and_is_missing_by_kruskal_wallis() -> None:
    subject = subject_of(QRELS, RUNS, "P@4")
    caption = audited("scales", subject, {"rank_test": "conover"}).plots[-1].caption
    assert caption.endswith("by Conover's test (alpha 0.05).")
    forms = [plot.form for plot in audited("scales", subject, {"rank_test": "kw"}).plots]
    assert forms == ["bars", "bars"]
