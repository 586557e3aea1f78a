"""Compatibility and Q-measure, accuracy, inferred AP and utility, worked out by hand."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cupel_measures.grammar.syntax import MeasureError
from cupel_measures.model import ABSENT, UNJUDGED, Aspect
from cupel_measures.model.profiles import PROFILES
from support.data.small_collections import qrels_of, ranked, score_of, scores_of

JUDGED = {"a": 2, "b": 1, "c": 1, "z": 0}


def of(text: str, order: str, judged: dict[str, int] = JUDGED) -> float:
    qrels = qrels_of({Aspect("relevance", range(4)): {"1": judged}})
    return score_of(text, {"1": ranked(*order)}, qrels)


class TestCompat:
    def test_it_is_the_overlap_with_the_ideal_depth_by_depth(self) -> None:
        # ideal a c b (c is retrieved, b is not); the run x a c: overlaps 0, 1, 2 of 1, 2, 3
        score = (0 + 0.5 * 1 / 2 + 0.25 * 2 / 3) / (1 + 0.5 + 0.25)
        assert of("Compat(p=0.5,normalize=False)", "xac") == pytest.approx(score, abs=1e-15)
        assert of("Compat(p=0.5)", "xac") == pytest.approx(score, abs=1e-15)  # the ideal is as long
        assert of("Compat(p=0.5)", "xacyw") > of("Compat(p=0.5,normalize=False)", "xacyw")

    def test_equal_gains_are_ideal_in_the_runs_order(self) -> None:
        assert of("Compat", "abc") == of("Compat", "acb") == of("Compat", "abcxyz") == 1.0
        assert of("Compat", "bac") < 1

    @given(st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 3)), st.permutations("abcdefghij"))
    def test_it_follows_from_its_definition(self, judged: dict[str, int], order: list[str]) -> None:
        run = order[:7]
        places = {document: place for place, document in enumerate(run)}
        relevant = [document for document, grade in judged.items() if grade > 0]
        ideal = sorted(relevant, key=lambda document: (-judged[document], places.get(document, 99)))
        for normalize in (True, False):
            depth = max(len(run), len(ideal))
            best = _rbo(ideal, ideal, depth) if normalize and ideal else 1.0
            value = of(f"Compat(p=0.8,normalize={normalize})", "".join(run), judged)
            assert value == pytest.approx(_rbo(run, ideal, depth) / best, abs=1e-12)


def _rbo(one: list[str], two: list[str], depth: int) -> float:
    terms = [0.8 ** (i - 1) * len(set(one[:i]) & set(two[:i])) / i for i in range(1, depth + 1)]
    return math.fsum(terms) / math.fsum(0.8 ** (i - 1) for i in range(1, depth + 1))


class TestQ:
    def test_it_blends_precision_and_gain(self) -> None:
        # ideal gains 2 1 1; run x b a: cumulative 0 1 3 against 2 3 4
        assert of("Q", "xba") == pytest.approx(((1 + 1) / (2 + 3) + (2 + 3) / (3 + 4)) / 3, abs=1e-15)
        assert of("Q(beta=10)", "xba") == pytest.approx(((1 + 10) / 32 + (2 + 30) / 43) / 3, abs=1e-15)
        assert of("Q(gains={2:5})", "xa") == pytest.approx((1 + 5) / (2 + 6) / 3, abs=1e-15)

    def test_ranks_below_the_ideal_are_measured_against_all_of_it(self) -> None:
        assert of("Q", "uvwya") == pytest.approx((1 + 2) / (5 + 4) / 3, abs=1e-15)

    def test_without_gains_it_is_average_precision(self) -> None:
        for order in ("abc", "xbzca", "cz", ""):
            assert of("Q(beta=0)", order) == of("AP", order)

    def test_a_cutoff_divides_by_what_fits_as_ntcireval_and_ap_by_all(self) -> None:
        assert of("Q@2", "ab") == 1.0
        assert of("AP@2", "ab") == 2 / 3

    def test_the_ideal_ranking_scores_1(self) -> None:
        assert of("Q", "abc") == of("Q(beta=100)", "acbz") == of("Q@1", "abc") == 1.0


class TestAccuracy:
    def test_it_counts_pairs_in_the_right_order(self) -> None:
        # of a x b y: (a, x) (a, y) (b, y) are right, (b, x) is wrong
        assert of("Accuracy", "axby") == 3 / 4
        assert of("Accuracy@3", "axby") == 1 / 2
        assert of("Accuracy(rel=2)", "xaby") == 1 - 1 / 3

    def test_without_pairs_all_or_nothing_is_right(self) -> None:
        assert of("Accuracy", "ab") == 1.0
        assert of("Accuracy", "xz") == of("Accuracy", "") == 0.0


class TestInferredAP:
    def test_pooled_documents_without_judgment_are_taken_as_their_neighbours(self) -> None:
        qrels = qrels_of({"1": {"a": 1, "b": 1, "n": 0, "p": 0}})
        places = {qrels.documents[i]: i for i in range(4)}
        qrels.labels[0, places["p"]] = UNJUDGED
        # b at rank 5: above it a, n judged, p pooled, u unknown: 1/5 + 4/5 * 3/4 * 1/2
        e = 1e-5
        second = 1 / 5 + 4 / 5 * (3 / 4) * ((1 + e) / (2 + 2 * e))
        run = {"1": ranked(*"anpub")}
        assert score_of("infAP", run, qrels) == pytest.approx((1 + second) / 2, abs=1e-15)
        qrels.labels[0, places["p"]] = ABSENT
        fewer = qrels_of({"1": {"a": 1, "b": 1, "n": 0}})
        assert score_of("infAP", run, qrels) == score_of("infAP", run, fewer)

    def test_a_negative_grade_is_pooled_and_not_judged_under_every_profile(self) -> None:
        qrels = qrels_of({"1": {"n": -1, "a": 1}})
        values = {score_of("infAP", {"1": ranked("n", "a")}, qrels, profile=one) for one in PROFILES.values()}
        assert values == {1 / 2 + 1 / 2 * 1 * (1e-5 / 2e-5)}

    def test_on_complete_judgments_it_is_nearly_average_precision(self) -> None:
        assert of("infAP", "azbc") == pytest.approx(of("AP", "azbc"), abs=1e-4)
        assert of("infAP", "azbc") != of("AP", "azbc")


class TestUtility:
    def test_each_kind_of_document_has_its_worth(self) -> None:
        # retrieved: 2 relevant, 1 other; not retrieved: 1 relevant, and 6 others of 10
        assert of("Utility", "abx") == 2 - 1
        assert of("Utility(a=2,b=-0.5,c=-1)", "abx") == 4 - 0.5 - 1
        assert of("Utility(d=0.25,documents=10)", "abx") == 2 - 1 + 6 * 0.25
        assert of("Utility(rel=2)", "abx") == 1 - 2

    def test_what_was_not_retrieved_counts_only_in_a_collection_of_known_size(self) -> None:
        with pytest.raises(MeasureError, match="d needs the number of documents in the collection"):
            of("Utility(d=1)", "a")

    def test_a_missing_topic_has_the_utility_of_retrieving_nothing(self) -> None:
        qrels = qrels_of({"1": {"a": 1}, "2": {"a": 1}})
        found = scores_of(["Utility", "Utility(c=-1)"], {"1": ranked("a")}, qrels)
        assert found == {"Utility": [1, 0], "Utility(c=-1)": [1, -1]}


def test_relative_precision_is_of_what_there_could_be() -> None:
    assert of("RelP@2", "axbc") == 1 / 2
    assert of("RelP@10", "axbc") == 1.0
    assert of("P@10", "axbc") == 3 / 10
    assert of("RelP@10", "axbc", {"z": 0}) == 0.0


def test_gm_bpref_is_floored_bpref() -> None:
    assert of("GMBpref", "z") == 1e-5
    assert of("GMBpref", "abc") == of("Bpref", "abc") == 1.0


def test_the_eleven_points_may_be_others() -> None:
    points = [of(f"IPrec@{level}", "xazbyc") for level in (0.2, 0.5, 0.8)]
    assert of("AP11(levels=[0.2,0.5,0.8])", "xazbyc") == pytest.approx(sum(points) / 3, abs=1e-15)
