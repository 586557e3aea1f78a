"""`correlation`: how alike measures and aspects order the runs."""

import numpy as np
import pytest

from cupel_audits.subject import AuditSubject
from cupel_measures.comparing.correlation import tau_ap, tau_b, tau_b_by_topic
from cupel_measures.model import Aspect, Qrels
from support.data.audit_subjects import audited, board, problems, reported, subject_of, trials_of
from support.data.small_collections import Scored, qrels_of, ranked

# Example of spec 4.3, times 10: rows are topics, columns are runs. P@10 counts relevant documents, and
# P(aspect=quality)@10 those of quality.
M1 = [[1, 2, 3, 4], [5, 5, 2, 1], [3, 3, 3, 3]]
M2 = [[1, 3, 2, 4], [6, 3, 3, 3], [1, 2, 3, 4]]
RELEVANCE, QUALITY = Aspect("relevance", range(2)), Aspect("quality", range(2))


def example() -> AuditSubject:
    """Document <r><q><n> is relevant where r is 1, of quality where q is 1; a run takes 10 as it needs."""
    kinds = {"11": 10, "10": 10, "01": 10, "00": 10}
    documents = [f"{kind}{number}" for kind, many in kinds.items() for number in range(many)]
    judged = {
        aspect: {topic: {name: int(name[place]) for name in documents} for topic in "012"}
        for place, aspect in enumerate((RELEVANCE, QUALITY))
    }
    runs = {f"run{run}": {str(t): _ten(M1[t][run], M2[t][run]) for t in range(3)} for run in range(4)}
    return subject_of(qrels_of(judged), runs, "P@10")


def _ten(relevant: int, good: int) -> dict[str, float]:
    both = max(0, relevant + good - 10)
    kinds = {"11": both, "10": relevant - both, "01": good - both}
    kinds["00"] = 10 - sum(kinds.values())
    return ranked(*(f"{kind}{number}" for kind, many in kinds.items() for number in range(many)))


def two_aspects() -> tuple[Qrels, dict[str, Scored]]:
    """Judgments of relevance and of quality, which have nothing to do with each other."""
    qrels, runs = board()
    other = np.random.default_rng(5).integers(3, size=qrels.labels.shape).astype(np.int32)
    aspects = (*qrels.aspects, Aspect("quality", range(3)))
    both = Qrels(aspects, qrels.topics, qrels.offsets, qrels.documents, np.concatenate([qrels.labels, other]))
    return both, runs


def small(measures: str = "AP nDCG@10 P@5") -> AuditSubject:
    return subject_of(*board(), measures)


def test_the_example_of_the_spec_under_two_aspects() -> None:
    """Spec 4.3: per topic 0.666667, 0.516398 and undefined, mean 0.591532; overall -0.516398."""
    report = audited("correlation", example())
    pair = "(P@10,P(aspect=quality)@10)"
    assert report.numbers[f"tau{pair}"] == pytest.approx(-0.516398, abs=1e-6)
    assert report.numbers[f"tau_by_topic{pair}"] == pytest.approx(0.591532, abs=1e-6)
    assert report.table("topics").column("tau") == [
        pytest.approx(0.666667, abs=1e-6),
        pytest.approx(0.516398, abs=1e-6),
        None,
    ]
    [row] = report.table("aspects").rows
    assert row[0] == "P@10"
    assert report.table("aspects").column("undefined_topics") == [1]


def test_it_is_what_the_library_says_of_each_pair() -> None:
    subject = small()
    report = audited("correlation", subject, {"tau_ap": True})
    for row in report.table("pairs").rows:
        first, second = str(row[0]), str(row[1])
        x, y = subject.means[first], subject.means[second]
        assert report.numbers[f"tau({first},{second})"] == tau_b(x, y).value
        assert report.numbers[f"tau_ap({first},{second})"] == tau_ap(x, y).value
        by_topic = tau_b_by_topic(subject.scores[first], subject.scores[second])
        assert report.numbers[f"tau_by_topic({first},{second})"] == pytest.approx(by_topic.value)
    assert len(report.table("pairs").rows) == 3


class TestIdentities:
    """Spec 10.4: what holds on any data with exact scores; floats would invent and lose ties."""

    @pytest.mark.parametrize(
        ("first", "second", "by_topic", "overall"),
        [
            ("gRBP(p=1/3)@60", "RBTO@60", 1.0, 1.0),
            ("gRBP(p=0.2)@60", "RBTO@60", 1.0, None),
            ("gP@60", "gR@60", 1.0, None),
            ("RBTO(gains={0:0,1:2,2:4})@60", "RBTO@60", 1.0, 1.0),
        ],
    )
    def test_of_graded_judgments(
        self, first: str, second: str, by_topic: float, overall: float | None
    ) -> None:
        subject = small(f"{first} {second}")
        [found] = trials_of("correlation", subject).values()
        assert found["by_topic"] == pytest.approx(by_topic, abs=1e-12)
        assert overall is None or found["overall"] == pytest.approx(overall, abs=1e-12)


def test_a_combining_measure_is_told_under_its_aspects() -> None:
    report = audited("correlation", subject_of(*two_aspects(), "CAM(of=nDCG@10)"))
    [row] = report.table("aspects").rows
    assert row[:4] == ("nDCG@10", "relevance and quality", "nDCG@10", "nDCG(aspect=quality)@10")
    assert not report.table("pairs").rows
    assert [plot.name for plot in report.plots] == ["aspects"]


def test_aspects_can_be_left_out() -> None:
    report = audited("correlation", subject_of(*two_aspects(), "AP nDCG@10"), {"aspects": False})
    assert [one.name for one in report.tables] == ["pairs", "matrix", "ranks", "movers", "topics"]
    assert len(report.table("topics").rows) == 5


def test_the_heat_map_has_both_halves_and_a_diagonal_of_1() -> None:
    rows = audited("correlation", small()).table("matrix").rows
    values = {(row[0], row[1]): row[2] for row in rows}
    assert len(rows) == 9
    assert all(values[one, other] == values[other, one] for one, other in values)
    assert values["AP", "AP"] == 1.0


def test_movers_are_told_with_their_ranks() -> None:
    """P@1 and P@2 of four runs: a and b are tied first by one, and by the other a falls behind all."""
    qrels = qrels_of({"1": {"x": 1, "y": 0, "z": 1}, "2": {"x": 1, "y": 0, "z": 1}})
    orders = {"a": "xyz", "b": "xzy", "c": "yxz", "d": "yzx"}
    runs = {name: {topic: ranked(*order) for topic in "12"} for name, order in orders.items()}
    report = audited("correlation", subject_of(qrels, runs, "P@1 P@2"))
    assert {row[2]: row[3:] for row in report.table("movers").rows} == {
        "a": (1.5, 3.0, 1.5),
        "b": (1.5, 1.0, -0.5),
        "c": (3.5, 3.0, -0.5),
        "d": (3.5, 3.0, -0.5),
    }
    assert report.table("movers").rows[0][2] == "a"
    assert [row for row in report.table("ranks").rows if row[1] == "a"] == [
        ("P@1", "a", 1.5),
        ("P@2", "a", 3.0),
    ]
    assert "a moves most, from rank 1.5 to 3" in report.verdict[0]


def test_trials_are_the_same_in_any_order_and_alone() -> None:
    subject = subject_of(*two_aspects(), "AP nDCG@10 CAM(of=P@5)")
    together = trials_of("correlation", subject)
    assert len(together) == 6
    assert {one: trials_of("correlation", subject, only=[one])[one] for one in (5, 0, 3)} == {
        one: together[one] for one in (5, 0, 3)
    }


def test_a_report_on_some_trials_leaves_the_others_out() -> None:
    subject = small()
    report = reported("correlation", subject, None, trials_of("correlation", subject, only=[0]))
    assert len(report.table("pairs").rows) == 1
    assert [row[2] for row in report.table("matrix").rows].count(None) == 4


def test_orders_that_are_the_same_are_not_said_to_differ() -> None:
    report = audited("correlation", subject_of(*board(runs=2), "AP nDCG@10"))
    assert report.numbers["tau(AP,nDCG@10)"] == 1
    assert report.verdict[0] == "All measures that order the runs do so alike (tau 1.00)."


def test_runs_that_score_the_same_have_no_tau() -> None:
    qrels, runs = board()
    alike = {"a": runs["run0"], "b": runs["run0"]}
    report = audited("correlation", subject_of(qrels, alike, "AP P@5"))
    assert report.numbers == {"tau(AP,P@5)": None, "tau_by_topic(AP,P@5)": None}
    assert report.verdict == ("Undefined: no two measures order the runs.",)
    assert len(report.undefined) == 2


def test_nonsense_is_refused_with_its_reason() -> None:
    [alone] = problems("correlation", small("AP"))
    assert alone == "one measure of one aspect can't be correlated with itself: give two measures"
    [without] = problems("correlation", subject_of(*two_aspects(), "AP"), {"aspects": False})
    assert without.endswith("give two measures, or aspects=true")
    assert not problems("correlation", subject_of(*two_aspects(), "AP"))
    qrels, runs = board(topics=1)
    assert len(problems("correlation", subject_of(qrels, {"a": runs["run0"]}, "AP P@5"))) == 2
