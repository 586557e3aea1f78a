"""Tests of the audit kind `scales`."""

import pytest

from cupel_audits.subject import AuditSubject
from support.data.audit_subjects import audited, board, problems, reported, subject_of, trials_of
from support.data.small_collections import qrels_of, ranked

# The number of relevant documents among the first 20. Rows are topics and columns are runs.
EXAMPLE = [[6, 7, 12], [2, 4, 9], [11, 10, 16], [4, 6, 6], [8, 9, 15], [1, 5, 8]]
BINARY = "P@30 SBTO@30 RBP(p=1/2)@30 RBP(p=0.2)@30 RBTO@30 AP@30"
RBP = "RBP(p=0.5)@30"
PAPER = {"rank_test": "kw", "mean_test": "anova"}
"""The tests of Ferrante et al. (2019)."""


def example() -> AuditSubject:
    topics = [str(number) for number in range(6)]
    documents = [f"d{number:02}" for number in range(40)]
    qrels = qrels_of({topic: {name: int(name < "d20") for name in documents} for topic in topics})
    runs = {
        f"run{run}": {
            topic: ranked(*documents[: row[run]], *documents[20 : 40 - row[run]])
            for topic, row in zip(topics, EXAMPLE, strict=True)
        }
        for run in range(3)
    }
    return subject_of(qrels, runs, "P@20")


def long(measures: str = BINARY, highest: int = 1) -> AuditSubject:
    """Return a subject of eight runs of 80 documents. Floats cannot represent their RBP with p = 1/5."""
    qrels, runs = board(runs=8, topics=8)
    if highest == 1:
        aspect, labels, offsets = qrels.aspects[0], qrels.labels[0], qrels.offsets
        assert aspect.name == "relevance"
        judged = {
            topic: {
                qrels.documents[place]: min(int(labels[place]), 1)
                for place in range(offsets[number], offsets[number + 1])
            }
            for number, topic in enumerate(qrels.topics)
        }
        qrels = qrels_of(judged)
    return subject_of(qrels, runs, measures)


class TestThreeRunsOnSixTopics:
    """H and the one-way F are from scipy 1.17.1, and the two-way F is from statsmodels 0.15.0."""

    def test_two_way_anova_equals_statsmodels(self) -> None:
        report = audited("scales", example(), PAPER)
        assert report.numbers == {
            "kw(P@20)": 0,
            "kw_percent(P@20)": 0.0,
            "anova(P@20)": 2,
            "anova_percent(P@20)": pytest.approx(200 / 3),
            "ratio(P@20)": None,
            "pairs": 3,
        }
        table = report.table("measures")
        assert table.column("by_mean_percent") == [66.67]
        statistics = [
            table.column(name)[0] for name in ("rank_statistic", "rank_p", "mean_statistic", "mean_p")
        ]
        assert statistics == pytest.approx([5.513514, 0.063497, 26.005587, 0.000109], abs=1e-4)

    def test_one_way_anova_equals_scipy(self) -> None:
        report = audited("scales", example(), PAPER | {"design": "one_way"})
        assert report.numbers["anova(P@20)"] == 1
        table = report.table("measures")
        assert [table.column(name)[0] for name in ("mean_statistic", "mean_p")] == pytest.approx(
            [4.354537, 0.032272], abs=1e-4
        )


class TestIdentities:
    """Theorems that hold on any data with exact scores."""

    def test_precision_equals_set_based_order_by_both_tests(self) -> None:
        self.assert_same("P@30", "SBTO@30", "kw", "anova")

    def test_rbp_with_p_one_half_equals_rank_based_order_by_both_tests(self) -> None:
        self.assert_same(RBP, "RBTO@30", "kw", "anova")

    def test_rbp_with_p_one_fifth_equals_rank_based_order_by_kruskal_wallis(self) -> None:
        self.assert_same("RBP(p=0.2)@30", "RBTO@30", "kw")

    def test_graded_rbp_equals_rank_based_order_by_both_tests(self) -> None:
        subject = long("gRBP(p=1/3)@30 RBTO@30", highest=2)
        self.assert_same("gRBP@30", "RBTO@30", "kw", "anova", subject=subject)

    def assert_same(self, measure: str, other: str, *tests: str, subject: AuditSubject | None = None) -> None:
        trials = trials_of("scales", subject or long(), PAPER)
        results = {trial["measure"]: trial for trial in trials.values()}
        for test in tests:
            first, second = dict(results[measure][test]), dict(results[other][test])
            assert first.pop("statistic") == pytest.approx(second.pop("statistic"), rel=1e-12)
            assert first.pop("p") == pytest.approx(second.pop("p"), rel=1e-9)
            assert first == second
            assert first["pairs"]


def test_verdict_names_measures_with_the_same_pairs() -> None:
    report = audited("scales", long())
    for test in ("Nemenyi's test", "max-T"):
        assert (
            f"By {test}, the same pairs of runs differ significantly under P@30, SBTO@30." in report.verdict
        )
    assert {row["measure"]: row["scale"] for row in report.table("measures").records()} == {
        "P@30": "interval",
        "SBTO@30": "interval",
        RBP: "interval",
        "RBP(p=0.2)@30": "ordinal",
        "RBTO@30": "interval",
        "AP@30": "neither",
    }
    assert report.warnings == (
        "RBP(p=0.2)@30: the max-T test needs an interval scale, but the measure has an ordinal scale "
        "(disputed: Sakai 2020; Moffat 2022)",
        "AP@30: the max-T test needs an interval scale, but the measure has neither an interval nor an "
        "ordinal scale (disputed: Sakai 2020; Moffat 2022)",
    )
    sentences = {sentence.partition(":")[0]: sentence for sentence in report.verdict}
    assert sentences["RBP(p=0.2)@30"].endswith(
        "The scale of the measure is ordinal. If the scale is taken seriously, the test of means is not "
        "meaningful (disputed); Nemenyi's test uses only the order of the scores."
    )
    assert sentences["AP@30"].endswith(
        "If the scale is taken seriously, neither a test of means nor a test of ranks is meaningful "
        "(disputed)."
    )
    assert report.actions[:2] == (
        "Say that a test of means treats the scores of RBP(p=0.2)@30 as interval-scaled, or report the test "
        "of ranks, which may have less power.",
        "Say that the test treats the scores of AP@30 as interval-scaled (means) or ordinal (ranks).",
    )


def test_scores_with_overflowing_squares_are_scaled_down() -> None:
    """RBTO@400 of three labels is at most 3^400, about 7e190; gRBP(p=1/3) is RBTO / 3^400."""
    found = trials_of("scales", long("RBTO@400 gRBP(p=1/3)@400", highest=2))
    assert found[0]["max_t"]["pairs"] == found[1]["max_t"]["pairs"] > 0
    assert found[0]["max_t"]["same"] == found[1]["max_t"]["same"]


def test_trial_does_not_depend_on_other_trials() -> None:
    subject = long()
    together = trials_of("scales", subject)
    for trial in (5, 0, 3):
        assert trials_of("scales", subject, only=[trial])[trial] == together[trial]


def test_partial_report_covers_the_finished_measures() -> None:
    subject = long()
    report = reported("scales", subject, None, trials_of("scales", subject, only=[5]))
    assert report.table("measures").column("measure") == ["AP@30"]


def test_equal_runs_do_not_differ_and_have_no_ratio() -> None:
    qrels, runs = board()
    report = audited("scales", subject_of(qrels, {"a": runs["run0"], "b": runs["run0"]}, "AP"))
    assert (report.numbers["nemenyi(AP)"], report.numbers["max_t(AP)"], report.numbers["ratio(AP)"]) == (
        0,
        0,
        None,
    )


def test_one_run_or_one_topic_is_refused() -> None:
    qrels, runs = board(topics=1)
    [one_run, one_topic] = problems("scales", subject_of(qrels, {"a": runs["run0"]}, "AP"))
    assert "only one is given" in one_run
    assert "only one topic" in one_topic


def test_conover_finds_at_least_the_pairs_of_nemenyi() -> None:
    nemenyi, conover = (
        audited("scales", long("P@30"), {"rank_test": test}).numbers for test in ("nemenyi", "conover")
    )
    assert conover["conover(P@30)"] >= nemenyi["nemenyi(P@30)"] > 0  # type: ignore[operator]
    assert conover["max_t(P@30)"] == nemenyi["max_t(P@30)"]
