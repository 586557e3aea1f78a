"""Tests of the audit kind `correlation`."""

import numpy as np
import pytest

from cupel_audits.subject import AuditSubject
from cupel_measures.comparing.rank_correlation import overlap, tau_ap, tau_b, tau_b_by_topic
from cupel_measures.model import Aspect, Qrels
from support.data.audit_subjects import audited, board, problems, reported, subject_of, trials_of
from support.data.small_collections import Scored, qrels_of, ranked

# Rows are topics and columns are runs. M1 counts the relevant documents among the first 10, and M2 the
# documents of good quality.
M1 = [[1, 2, 3, 4], [5, 5, 2, 1], [3, 3, 3, 3]]
M2 = [[1, 3, 2, 4], [6, 3, 3, 3], [1, 2, 3, 4]]
RELEVANCE, QUALITY = Aspect(name="relevance", labels=range(2)), Aspect(name="quality", labels=range(2))


def example() -> AuditSubject:
    """Return four runs on three topics with judgments of relevance and quality.

    The first two digits of a document id are its relevance and its quality.
    """
    kinds = {"11": 10, "10": 10, "01": 10, "00": 10}
    documents = [f"{kind}{number}" for kind, many in kinds.items() for number in range(many)]
    judged = {
        aspect: {topic: {name: int(name[place]) for name in documents} for topic in "012"}
        for place, aspect in enumerate((RELEVANCE, QUALITY))
    }
    runs = {f"run{run}": {str(t): rank_ten(M1[t][run], M2[t][run]) for t in range(3)} for run in range(4)}
    return subject_of(qrels_of(judged), runs, "P@10")


def rank_ten(relevant: int, good: int) -> dict[str, float]:
    both = max(0, relevant + good - 10)
    kinds = {"11": both, "10": relevant - both, "01": good - both}
    kinds["00"] = 10 - sum(kinds.values())
    return ranked(*(f"{kind}{number}" for kind, many in kinds.items() for number in range(many)))


def two_aspects() -> tuple[Qrels, dict[str, Scored]]:
    """Return independent random judgments of relevance and quality."""
    qrels, runs = board()
    other = np.random.default_rng(5).integers(3, size=qrels.labels.shape).astype(np.int32)
    aspects = (*qrels.aspects, Aspect(name="quality", labels=range(3)))
    both = Qrels(
        aspects=aspects,
        topics=qrels.topics,
        offsets=qrels.offsets,
        documents=qrels.documents,
        labels=np.concatenate([qrels.labels, other]),
    )
    return both, runs


def small_subject(measures: str = "AP nDCG@10 P@5") -> AuditSubject:
    return subject_of(*board(), measures)


def test_tau_of_one_measure_under_two_aspects() -> None:
    """By topic: 4/6, 2/sqrt(5 * 3), undefined (constant relevance). Overall: -2/sqrt(5 * 3)."""
    report = audited("correlation", example())
    pair = "(P@10,P(aspect=quality)@10)"
    assert report.numbers[f"tau{pair}"] == pytest.approx(-0.516398, abs=1e-6)
    assert report.numbers[f"tau_by_topic{pair}"] == pytest.approx(0.591532, abs=1e-6)
    assert report.table("topics").column("tau") == [
        pytest.approx(0.666667, abs=1e-6),
        pytest.approx(0.516398, abs=1e-6),
        None,
    ]
    assert report.table("aspects").column("base") == ["P@10"]
    assert report.table("aspects").column("undefined_topics") == [1]


def test_correlations_equal_library_results() -> None:
    subject = small_subject()
    report = audited("correlation", subject, {"tau_ap": True, "rbo": True, "rbo_p": 0.8})
    for row in report.table("pairs").records():
        first, second = str(row["first"]), str(row["second"])
        x, y = subject.means[first], subject.means[second]
        assert report.numbers[f"tau({first},{second})"] == tau_b(x, y).value
        assert report.numbers[f"tau_ap({first},{second})"] == tau_ap(x, y).value
        assert report.numbers[f"rbo({first},{second})"] == row["rbo"] == overlap(x, y, p=0.8).value
        mean_tau = tau_b_by_topic(subject.scores[first], subject.scores[second])
        assert report.numbers[f"tau_by_topic({first},{second})"] == pytest.approx(mean_tau.value)
    assert len(report.table("pairs").rows) == 3


class TestIdentities:
    """Identities that hold on any data with exact scores. Rounding to floats would add and remove ties."""

    @pytest.mark.parametrize(
        ("first", "second", "by_topic", "overall"),
        [
            ("gRBP(p=1/3)@60", "RBTO@60", 1.0, 1.0),
            ("gRBP(p=0.2)@60", "RBTO@60", 1.0, None),
            ("gP@60", "gR@60", 1.0, None),
            ("RBTO(gains={0:0,1:2,2:4})@60", "RBTO@60", 1.0, 1.0),
        ],
    )
    def test_measures_with_the_same_order_of_runs_have_tau_1(
        self, first: str, second: str, by_topic: float, overall: float | None
    ) -> None:
        subject = small_subject(f"{first} {second}")
        [results] = trials_of("correlation", subject).values()
        assert results["by_topic"] == pytest.approx(by_topic, abs=1e-12)
        assert overall is None or results["overall"] == pytest.approx(overall, abs=1e-12)


def test_aggregate_is_compared_by_its_component_under_each_aspect() -> None:
    report = audited("correlation", subject_of(*two_aspects(), "CAM(of=nDCG@10)"))
    [row] = report.table("aspects").records()
    assert (row["base"], row["aspects"]) == ("nDCG@10", "relevance and quality")
    assert (row["first"], row["second"]) == ("nDCG@10", "nDCG(aspect=quality)@10")
    assert not report.table("pairs").rows
    assert [plot.name for plot in report.plots] == ["aspects"]


def test_comparison_of_aspects_can_be_disabled() -> None:
    report = audited("correlation", subject_of(*two_aspects(), "AP nDCG@10"), {"aspects": False})
    assert [table.name for table in report.tables] == ["pairs", "matrix", "ranks", "movers", "topics"]
    assert len(report.table("topics").rows) == 5


def test_matrix_is_symmetric_with_diagonal_1() -> None:
    rows = audited("correlation", small_subject()).table("matrix").records()
    values = {(row["first"], row["second"]): row["overall"] for row in rows}
    assert len(rows) == 9
    assert all(values[first, second] == values[second, first] for first, second in values)
    assert values["AP", "AP"] == 1.0


def test_movers_are_listed_with_their_ranks() -> None:
    """By P@1, a and b are tied for first; by P@2, a is tied for second with c and d."""
    qrels = qrels_of({"1": {"x": 1, "y": 0, "z": 1}, "2": {"x": 1, "y": 0, "z": 1}})
    orders = {"a": "xyz", "b": "xzy", "c": "yxz", "d": "yzx"}
    runs = {name: {topic: ranked(*order) for topic in "12"} for name, order in orders.items()}
    report = audited("correlation", subject_of(qrels, runs, "P@1 P@2"))
    assert report.table("movers").rows == (
        ("P@1", "P@2", "a", 1.5, 3.0, 1.5),
        ("P@1", "P@2", "b", 1.5, 1.0, -0.5),
        ("P@1", "P@2", "c", 3.5, 3.0, -0.5),
        ("P@1", "P@2", "d", 3.5, 3.0, -0.5),
    )
    assert [row for row in report.table("ranks").rows if "a" in row] == [
        ("P@1", "a", 1.5),
        ("P@2", "a", 3.0),
    ]
    assert "a moves most, from rank 1.5 to 3" in report.verdict[0]


def test_trial_does_not_depend_on_other_trials() -> None:
    subject = subject_of(*two_aspects(), "AP nDCG@10 CAM(of=P@5)")
    together = trials_of("correlation", subject)
    assert len(together) == 6
    for trial in (5, 0, 3):
        assert trials_of("correlation", subject, only=[trial])[trial] == together[trial]


def test_partial_report_covers_the_finished_pairs() -> None:
    subject = small_subject()
    report = reported("correlation", subject, None, trials_of("correlation", subject, only=[0]))
    assert len(report.table("pairs").rows) == 1
    assert report.table("matrix").column("overall").count(None) == 4


def test_verdict_on_equal_orders() -> None:
    report = audited("correlation", subject_of(*board(runs=2), "AP nDCG@10"))
    assert report.numbers["tau(AP,nDCG@10)"] == 1
    assert (
        report.verdict[0]
        == "By these topics, all measures with a defined tau order the runs alike (tau 1.00)."
    )


def test_tau_of_equal_runs_is_undefined() -> None:
    qrels, runs = board()
    equal = {"a": runs["run0"], "b": runs["run0"]}
    report = audited("correlation", subject_of(qrels, equal, "AP P@5"))
    assert report.numbers == {"tau(AP,P@5)": None, "tau_by_topic(AP,P@5)": None}
    assert report.verdict == ("Tau is undefined for every pair of measures.",)
    assert len(report.undefined) == 2


def test_subjects_without_a_pair_are_refused() -> None:
    [alone] = problems("correlation", small_subject("AP"))
    assert alone == "the audit correlates pairs of measures, but only one is given: give two measures"
    [without] = problems("correlation", subject_of(*two_aspects(), "AP"), {"aspects": False})
    assert without.endswith("give two measures, or set aspects=true")
    assert not problems("correlation", subject_of(*two_aspects(), "AP"))
    qrels, runs = board(topics=1)
    assert len(problems("correlation", subject_of(qrels, {"a": runs["run0"]}, "AP P@5"))) == 2


def test_two_topics_are_enough() -> None:
    assert problems("correlation", subject_of(*board(topics=2), "AP P@5")) == []
