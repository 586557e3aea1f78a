"""Tests of Compat, Q, Accuracy, infAP, Utility and others on hand-computed examples."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cupel_measures.grammar.syntax import MeasureError
from cupel_measures.model import ABSENT, UNJUDGED, Aspect
from cupel_measures.model.profiles import PROFILES
from support.data.small_collections import qrels_of, ranked, score_of, scores_of

JUDGED = {"a": 2, "b": 1, "c": 1, "z": 0}


def score_topic(text: str, order: str, judged: dict[str, int] = JUDGED) -> float:
    """Return the score of a ranking of one topic, with one letter per document."""
    qrels = qrels_of({Aspect(name="relevance", labels=range(4)): {"1": judged}})
    return score_of(text, {"1": ranked(*order)}, qrels)


class TestCompat:
    def test_compat_is_rank_biased_overlap_with_the_ideal(self) -> None:
        # The run is x a c. The ideal is a c b, because c is retrieved and b is not. The overlaps at depths 1,
        # 2 and 3 are 0, 1 and 2.
        score = (0 + 0.5 * 1 / 2 + 0.25 * 2 / 3) / (1 + 0.5 + 0.25)
        assert score_topic("Compat(p=0.5,normalize=False)", "xac") == pytest.approx(score, abs=1e-15)
        # The ideal has the same length, so normalisation changes nothing.
        assert score_topic("Compat(p=0.5)", "xac") == pytest.approx(score, abs=1e-15)
        assert score_topic("Compat(p=0.5)", "xacyw") > score_topic("Compat(p=0.5,normalize=False)", "xacyw")

    def test_compat_ideal_keeps_the_order_of_the_run_for_equal_gains(self) -> None:
        assert (
            score_topic("Compat", "abc")
            == score_topic("Compat", "acb")
            == score_topic("Compat", "abcxyz")
            == 1.0
        )
        assert score_topic("Compat", "bac") < 1

    @given(st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 3)), st.permutations("abcdefghij"))
    def test_compat_equals_its_definition(self, judged: dict[str, int], order: list[str]) -> None:
        run = order[:7]
        places = {document: place for place, document in enumerate(run)}
        relevant = [document for document, grade in judged.items() if grade > 0]
        ideal = sorted(relevant, key=lambda document: (-judged[document], places.get(document, 99)))
        for normalize in (True, False):
            depth = max(len(run), len(ideal))
            best = _rbo(ideal, ideal, depth) if normalize and ideal else 1.0
            value = score_topic(f"Compat(p=0.8,normalize={normalize})", "".join(run), judged)
            assert value == pytest.approx(_rbo(run, ideal, depth) / best, abs=1e-12)


def _rbo(first: list[str], second: list[str], depth: int) -> float:
    terms = [0.8 ** (i - 1) * len(set(first[:i]) & set(second[:i])) / i for i in range(1, depth + 1)]
    return math.fsum(terms) / math.fsum(0.8 ** (i - 1) for i in range(1, depth + 1))


class TestQMeasure:
    def test_q_combines_precision_and_cumulative_gain(self) -> None:
        # The ideal gains are 2 1 1. The cumulative gains are 0 1 3 for x b a, and 2 3 4 for the ideal.
        assert score_topic("Q", "xba") == pytest.approx(
            ((1 + 1) / (2 + 3) + (2 + 3) / (3 + 4)) / 3, abs=1e-15
        )
        assert score_topic("Q(beta=10)", "xba") == pytest.approx(
            ((1 + 10) / 32 + (2 + 30) / 43) / 3, abs=1e-15
        )
        assert score_topic("Q(gains={2:5})", "xa") == pytest.approx((1 + 5) / (2 + 6) / 3, abs=1e-15)

    def test_q_below_the_ideal_divides_by_its_total_gain(self) -> None:
        assert score_topic("Q", "uvwya") == pytest.approx((1 + 2) / (5 + 4) / 3, abs=1e-15)

    def test_q_with_beta_0_is_average_precision(self) -> None:
        for order in ("abc", "xbzca", "cz", ""):
            assert score_topic("Q(beta=0)", order) == score_topic("AP", order)

    def test_q_with_cutoff_divides_by_at_most_k_like_ntcireval(self) -> None:
        assert score_topic("Q@2", "ab") == 1.0
        assert score_topic("AP@2", "ab") == 2 / 3

    def test_q_of_the_ideal_ranking_is_1(self) -> None:
        assert (
            score_topic("Q", "abc") == score_topic("Q(beta=100)", "acbz") == score_topic("Q@1", "abc") == 1.0
        )


class TestAccuracy:
    def test_accuracy_is_the_share_of_correct_pairs(self) -> None:
        # In a x b y, the pairs (a, x), (a, y) and (b, y) are correct, and (b, x) is wrong.
        assert score_topic("Accuracy", "axby") == 3 / 4
        assert score_topic("Accuracy@3", "axby") == 1 / 2
        assert score_topic("Accuracy(rel=2)", "xaby") == 1 - 1 / 3

    def test_accuracy_without_pairs_is_1_or_0(self) -> None:
        assert score_topic("Accuracy", "ab") == 1.0
        assert score_topic("Accuracy", "xz") == score_topic("Accuracy", "") == 0.0


class TestInferredAP:
    def test_infap_estimates_unjudged_pooled_documents(self) -> None:
        qrels = qrels_of({"1": {"a": 1, "b": 1, "n": 0, "p": 0}})
        places = {qrels.documents[i]: i for i in range(4)}
        qrels.labels[0, places["p"]] = UNJUDGED
        # Above b, at rank 5, a and n are judged, p is only pooled, and u is not pooled. So the precision at b
        # is 1/5 + 4/5 * 3/4 * 1/2, without smoothing.
        e = 1e-5
        second = 1 / 5 + 4 / 5 * (3 / 4) * ((1 + e) / (2 + 2 * e))
        run = {"1": ranked(*"anpub")}
        assert score_of("infAP", run, qrels) == pytest.approx((1 + second) / 2, abs=1e-15)
        qrels.labels[0, places["p"]] = ABSENT
        fewer = qrels_of({"1": {"a": 1, "b": 1, "n": 0}})
        assert score_of("infAP", run, qrels) == score_of("infAP", run, fewer)

    def test_infap_negative_grade_is_pooled_but_unjudged_in_every_profile(self) -> None:
        qrels = qrels_of({"1": {"n": -1, "a": 1}})
        values = {
            score_of("infAP", {"1": ranked("n", "a")}, qrels, profile=profile)
            for profile in PROFILES.values()
        }
        assert values == {1 / 2 + 1 / 2 * 1 * (1e-5 / 2e-5)}

    def test_infap_of_complete_judgments_is_close_to_average_precision(self) -> None:
        assert score_topic("infAP", "azbc") == pytest.approx(score_topic("AP", "azbc"), abs=1e-4)
        assert score_topic("infAP", "azbc") != score_topic("AP", "azbc")


class TestUtility:
    def test_utility_weights_each_kind_of_document(self) -> None:
        # The run retrieves 2 relevant documents and 1 other. It misses 1 relevant document and 6 others of
        # the 10.
        assert score_topic("Utility", "abx") == 2 - 1
        assert score_topic("Utility(a=2,b=-0.5,c=-1)", "abx") == 4 - 0.5 - 1
        assert score_topic("Utility(d=0.25,documents=10)", "abx") == 2 - 1 + 6 * 0.25
        assert score_topic("Utility(rel=2)", "abx") == 1 - 2

    def test_utility_with_d_requires_the_collection_size(self) -> None:
        with pytest.raises(
            MeasureError, match=r"d needs documents=.*, the number of documents in the collection"
        ):
            score_topic("Utility(d=1)", "a")

    def test_utility_of_a_missing_topic_equals_an_empty_ranking(self) -> None:
        qrels = qrels_of({"1": {"a": 1}, "2": {"a": 1}})
        scores = scores_of(["Utility", "Utility(c=-1)"], {"1": ranked("a")}, qrels)
        assert scores == {"Utility": [1, 0], "Utility(c=-1)": [1, -1]}


def test_relative_precision_divides_by_the_possible_maximum() -> None:
    assert score_topic("RelP@2", "axbc") == 1 / 2
    assert score_topic("RelP@10", "axbc") == 1.0
    assert score_topic("P@10", "axbc") == 3 / 10
    assert score_topic("RelP@10", "axbc", {"z": 0}) == 0.0


def test_gm_bpref_of_a_topic_has_a_lower_bound() -> None:
    assert score_topic("GMBpref", "z") == 1e-5
    assert score_topic("GMBpref", "abc") == score_topic("Bpref", "abc") == 1.0


def test_ap11_levels_replace_the_eleven_points() -> None:
    points = [score_topic(f"IPrec@{level}", "xazbyc") for level in (0.2, 0.5, 0.8)]
    assert score_topic("AP11(levels=[0.2,0.5,0.8])", "xazbyc") == pytest.approx(sum(points) / 3, abs=1e-15)
