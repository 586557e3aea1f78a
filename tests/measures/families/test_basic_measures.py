"""Tests of measures on small examples with hand-computed values.

They cover the behaviour that neither the laws nor the comparisons with other tools determine.
"""

import math

import pytest

from cupel_measures.grammar.syntax import MeasureError
from cupel_measures.model import UNJUDGED, Aspect, Qrels
from cupel_measures.model.profiles import PROFILES
from support.data.small_collections import qrels_of, ranked, score_of

TREC = PROFILES["trec_eval-10"]


def score_topic(text: str, order: str, judged: dict[str, int], aspect: Aspect | None = None) -> float:
    """Return the score of a ranking of one topic, with one letter per document."""
    qrels = qrels_of({aspect or Aspect(name="relevance", labels=range(4)): {"1": judged}})
    return score_of(text, {"1": ranked(*order)}, qrels)


class TestJudgedOnly:
    """Documents b and d are relevant, a is non-relevant, n has a negative grade, u and v are unjudged."""

    judged = {"a": 0, "b": 1, "d": 1, "n": -1}  # noqa: RUF012
    order = "uanvbd"

    @pytest.mark.parametrize(
        ("text", "cupel", "trec_eval"),
        [
            ("P(judged_only=True)@3", 1 / 3, 2 / 3),  # the ranking is a n b d, or a b d in trec_eval profiles
            ("RR(judged_only=True)", 1 / 3, 1 / 2),
            ("AP(judged_only=True)", (1 / 3 + 2 / 4) / 2, (1 / 2 + 2 / 3) / 2),
            ("SetP(judged_only=True)", 2 / 4, 2 / 3),
            ("P@3", 0, 0),
            ("RR", 1 / 5, 1 / 5),
            ("SetP", 2 / 6, 2 / 6),
        ],
    )
    def test_judged_only_ranks_judged_documents_only(self, text: str, cupel: float, trec_eval: float) -> None:
        qrels = qrels_of({"1": self.judged})
        run = {"1": ranked(*self.order)}
        assert score_of(text, run, qrels) == pytest.approx(cupel, abs=1e-15)
        assert score_of(text, run, qrels, profile=TREC) == pytest.approx(trec_eval, abs=1e-15)

    def test_toma_document_is_judged_if_it_is_judged_for_all_aspects(self) -> None:
        aspects = {
            Aspect(name="x", labels=range(2)): {"1": {"a": 1, "b": 1}},
            Aspect(name="y", labels=range(2)): {"1": {"b": 1}},
        }
        qrels, run = qrels_of(aspects), {"1": ranked("a", "b")}
        # By the Manhattan distance, b is in the best class (2) and a in the middle one (1). Only b is judged
        # for both aspects.
        assert score_of("TOMA(of=RR(rel=2,judged_only=True))", run, qrels) == 0.0  # top_half: weights 1, 1, 0
        assert score_of("TOMA(of=RR(rel=2),weighting=step1)", run, qrels) == 0.5
        assert score_of("TOMA(of=RR(rel=2,judged_only=True),weighting=step1)", run, qrels) == 1.0


class TestJudgmentCounts:
    """Of the first 4 documents, a is judged, n is negative, x is pooled but unjudged, u is not pooled."""

    def values(self, text: str) -> tuple[float, float]:
        qrels = qrels_of({"1": {"a": 0, "n": -1, "x": 2}})
        place = [qrels.documents[i] for i in range(3)].index("x")
        qrels.labels[0, place] = UNJUDGED
        run = {"1": ranked(*"anxu")}
        return score_of(text, run, qrels), score_of(text, run, qrels, profile=TREC)

    def test_judged_counts_negative_grades_except_in_trec_eval_profiles(self) -> None:
        assert self.values("Judged@4") == (2 / 4, 1 / 4)
        assert self.values("Judged@100") == (2 / 4, 1 / 4)  # divided by the number of retrieved documents
        assert self.values("Judged@1") == (1.0, 1.0)

    def test_unjudged_counts_negative_grades_in_every_profile(self) -> None:
        assert self.values("Unjudged@4") == (3 / 4, 3 / 4)
        assert self.values("Unjudged@10") == (3 / 10, 3 / 10)  # divided by k, as trec_eval does
        assert self.values("Unjudged") == (3 / 4, 3 / 4)

    def test_pooled_unjudged_document_has_no_gain(self) -> None:
        assert self.values("AP") == self.values("nDCG") == self.values("NumRel") == (0.0, 0.0)


class TestRelevanceLevels:
    def test_rel_is_a_label_of_an_integer_scale(self) -> None:
        aspect = Aspect(name="grade", labels=(1, 2, 3, 4))
        judged = {"a": 0, "b": 1, "c": 2, "d": 3}  # indices of 1, 2, 3, 4
        assert [score_topic(f"P(rel={rel})@4", "abcd", judged, aspect) for rel in (1, 2, 3, 4, 5)] == [
            1,
            3 / 4,
            1 / 2,
            1 / 4,
            0,
        ]
        assert (
            score_topic("P@4", "abcd", judged, aspect) == 3 / 4
        )  # the default threshold is the second label

    def test_rel_on_a_descending_scale_includes_lower_numbers(self) -> None:
        aspect = Aspect(name="difficulty", labels=range(3, -1, -1), threshold=2)
        judged = {"a": 0, "b": 1, "c": 2, "d": 3}  # indices of 3, 2, 1, 0
        assert [score_topic(f"P(rel={rel})@4", "abcd", judged, aspect) for rel in (2, 1, 0)] == [
            3 / 4,
            1 / 2,
            1 / 4,
        ]
        assert score_topic("P@4", "abcd", judged, aspect) == 1 / 2

    def test_rel_is_an_index_on_a_scale_of_words(self) -> None:
        aspect = Aspect(name="trust", labels=("no", "some", "full"))
        judged = {"a": 0, "b": 1, "c": 2}
        assert [score_topic(f"P(rel={rel})@4", "abc", judged, aspect) for rel in (1, 2, 3)] == [
            1 / 2,
            1 / 4,
            0,
        ]


class TestGains:
    judged = {"a": 1, "b": 2}  # noqa: RUF012
    discount = math.log2(3)

    def test_integer_label_is_its_own_gain(self) -> None:
        expected = (1 + 2 / self.discount) / (2 + 1 / self.discount)
        assert score_topic("nDCG", "ab", self.judged) == pytest.approx(expected, abs=1e-15)

    def test_gains_parameter_overrides_single_labels(self) -> None:
        expected = (1 + 9 / self.discount) / (9 + 1 / self.discount)
        assert score_topic("nDCG(gains={2:9})", "ab", self.judged) == pytest.approx(expected, abs=1e-15)

    def test_exp_log2_gain_is_a_power_of_two_minus_one(self) -> None:
        expected = (1 + 3 / self.discount) / (3 + 1 / self.discount)
        assert score_topic("nDCG(dcg=exp-log2)", "ab", self.judged) == pytest.approx(expected, abs=1e-15)

    def test_gain_on_a_descending_scale_is_the_index(self) -> None:
        aspect = Aspect(name="difficulty", labels=range(2, -1, -1))  # the gains of 2, 1, 0 are 0, 1, 2
        expected = (1 + 2 / self.discount) / (2 + 1 / self.discount)
        assert score_topic("nDCG", "ab", self.judged, aspect) == pytest.approx(expected, abs=1e-15)

    def test_negative_grade_has_the_gain_of_the_lowest_label(self) -> None:
        aspect = Aspect(name="relevance", labels=range(3), declared_gains=(1, 2, 3))
        qrels = qrels_of({aspect: {"1": {"a": 0, "n": -1}}})
        assert score_of("nDCG", {"1": ranked("u", "n", "a")}, qrels) == pytest.approx(
            (1 / math.log2(3) + 1 / math.log2(4)) / (1 + 1 / math.log2(3)), abs=1e-15
        )
        assert score_of("nDCG", {"1": ranked("n", "a")}, qrels, profile=TREC) == 1 / math.log2(3)


class TestNegativeLabels:
    """Declared negative labels, which the measures of trec_eval treat as negative grades."""

    qrels = qrels_of(
        {Aspect(name="relevance", labels=(-2, 0, 1, 2)): {"1": {"a": 0, "b": 3, "c": 2, "d": 1}}}
    )

    def test_bpref_ignores_a_negative_label(self) -> None:
        for profile in PROFILES.values():
            assert score_of("Bpref", {"1": ranked("a", "b")}, self.qrels, profile=profile) > 0
        qrels = qrels_of(
            {
                Aspect(name="relevance", labels=(-2, 0, 1, 2), threshold=2): {
                    "1": {"a": 0, "b": 3, "c": 2, "d": 1}
                }
            }
        )
        assert score_of("Bpref", {"1": ranked("a", "b")}, qrels) == 0.5
        assert score_of("NumNonrelRet", {"1": ranked("a", "b")}, qrels) == 0

    def test_toma_orders_a_negative_label_below_0(self) -> None:
        assert score_of("TOMA(of=nDCG)", {"1": ranked("b", "c", "d", "a")}, self.qrels) == 1.0


def test_rbp_is_a_weighted_sum_over_relevant_ranks() -> None:
    assert score_topic("RBP(p=0.5)", "axb", {"a": 1, "b": 2}) == 0.5 * (1 + 0.25)
    assert score_topic("RBP(p=0.5)@2", "axb", {"a": 1, "b": 2}) == 0.5
    assert score_topic("RBP(p=0.5,rel=2)", "axb", {"a": 1, "b": 2}) == 0.125


def test_err_uses_the_maximal_grade_of_gdeval_by_default() -> None:
    # probabilities of stopping: (2^3 - 1) / 16 and (2^1 - 1) / 16
    assert score_topic("ERR", "axb", {"a": 3, "b": 1}) == pytest.approx(
        7 / 16 + (1 / 3) * (1 / 16) * (9 / 16), abs=1e-15
    )
    assert score_topic("ERR(max_gain=scale)@1", "axb", {"a": 3, "b": 1}) == 7 / 8


def test_err_rejects_gains_above_max_gain() -> None:
    with pytest.raises(MeasureError, match=r"ERR: max_gain=4 is below 5, .* use max_gain=scale"):
        score_topic("ERR", "a", {"a": 5}, Aspect(name="relevance", labels=range(6)))


def test_exponential_gain_beyond_floats_is_rejected() -> None:
    for text in ("nDCG(dcg=exp-log2)", "ERR(max_gain=scale)", "nDCG(dcg=exp-log2,gains={1:5000})"):
        with pytest.raises(MeasureError, match="is too large"):
            score_topic(text, "a", {"a": 1}, Aspect(name="relevance", labels=range(2001)))


def test_ndcg_of_the_largest_gains_is_finite() -> None:
    aspect = Aspect(name="relevance", labels=range(3), declared_gains=(0, 9e99, 1e100))
    assert score_topic("nDCG", "abc", {"a": 2, "b": 2, "c": 1}, aspect) == 1.0


X, Y = Aspect(name="x", labels=range(3)), Aspect(name="y", labels=range(3))


def judge_two_aspects(documents: dict[str, tuple[int, int]], x: Aspect = X, y: Aspect = Y) -> Qrels:
    return qrels_of(
        {a: {"1": {d: labels[i] for d, labels in documents.items()}} for i, a in enumerate((x, y))}
    )


class TestTOMA:
    def test_embedding_changes_the_order_of_label_tuples(self) -> None:
        qrels, run = judge_two_aspects({"a": (2, 0), "b": (1, 1)}), {"1": ranked("a", "b")}
        # The squared distances of a and b from the best labels are 4 and 2, with y at 0, 2, 2 they are 4 and
        # 1, and with x at 0, 0, 3 they are 4 and 10.
        assert score_of("TOMA(of=nDCG)", run, qrels) < 1
        assert score_of("TOMA(of=nDCG,embedding={x:[0,0,3]})", run, qrels) == 1
        assert score_of("TOMA(of=nDCG,embedding={y:[0,2,2]})", run, qrels) < 1

    def test_rational_embeddings_give_exact_classes(self) -> None:
        thirds = "[0,1/3,2/3]"
        qrels, run = judge_two_aspects({"a": (2, 0), "b": (1, 1), "c": (0, 2)}), {"1": ranked(*"abc")}
        # By the Manhattan distance, each document is 2/3 from the best labels. The nine tuples form five
        # classes.
        text = f"TOMA(of=nDCG,distance=manhattan,embedding={{x:{thirds},y:{thirds}}},weighting=[9,5,3,1,0])"
        assert score_of(text, run, qrels) == 1.0
        decimals = text.replace("1/3", "0.1").replace("2/3", "0.2")
        assert score_of(decimals, run, qrels) == 1.0

    def test_positive_weighting_credits_all_but_the_worst_class(self) -> None:
        qrels = judge_two_aspects({"a": (0, 0), "b": (0, 1)})
        assert score_of("TOMA(of=P@1,weighting=positive)", {"1": ranked("a")}, qrels) == 0
        assert score_of("TOMA(of=P@1,weighting=positive)", {"1": ranked("b")}, qrels) == 1

    def test_observed_label_set_has_the_classes_of_judged_documents(self) -> None:
        qrels = judge_two_aspects({"a": (2, 2), "b": (1, 1), "c": (0, 1)})
        # The three observed tuples have the weights 2, 1 and 0. label_set=cartesian would give six classes.
        assert (
            score_of("TOMA(of=nDCG,label_set=observed,weighting=[2,1,0])", {"1": ranked(*"abc")}, qrels) == 1
        )
        unlabelled = judge_two_aspects({"a": (2, 2), "b": (1, 1), "c": (0, 1), "u": (0, 0)})
        place = [unlabelled.documents[i] for i in range(4)].index("u")
        unlabelled.labels[:, place] = UNJUDGED
        run = {"1": ranked(*"abc")}
        assert score_of("TOMA(of=nDCG,label_set=observed,weighting=[2,1,0])", run, unlabelled) == 1

    def test_unjudged_document_has_no_gain_if_the_worst_class_has_weight(self) -> None:
        qrels = judge_two_aspects({"a": (0, 0)})
        text = "TOMA(of=P@1,weighting=[1,1,1,1,1,1])"
        assert score_of(text, {"1": ranked("a")}, qrels) == 1
        assert score_of(text, {"1": ranked("u")}, qrels) == 0
        unjudged = judge_two_aspects({"a": (2, 2), "x": (0, 0)})
        unjudged.labels[:, 1] = UNJUDGED
        assert score_of(text, {"1": ranked("x")}, unjudged) == 0

    def test_missing_aspect_counts_as_its_lowest_label(self) -> None:
        qrels = qrels_of({X: {"1": {"a": 2, "b": 1}}, Y: {"1": {"b": 1}}})
        # The squared distances are 4 for a = (2, -) and 2 for b = (1, 1). The six classes, at squared
        # distances 8 5 4 2 1 0, have the weights 0 1 2 3 4 5.
        expected = (2 + 3 / math.log2(3)) / (3 + 2 / math.log2(3))
        assert score_of("TOMA(of=nDCG)", {"1": ranked("a", "b")}, qrels) == pytest.approx(expected, abs=1e-15)

    def test_toma_supports_scales_of_101_labels(self) -> None:
        long_scales = Aspect(name="x", labels=range(101)), Aspect(name="y", labels=range(101))
        qrels = judge_two_aspects({"a": (100, 100), "b": (99, 100), "c": (0, 0)}, *long_scales)
        assert score_of("TOMA(of=nDCG)", {"1": ranked(*"abc")}, qrels) == 1.0

    def test_toma_with_a_million_labels_requires_observed_label_set(self) -> None:
        long_scales = Aspect(name="x", labels=range(1_000_001)), Aspect(name="y", labels=range(1_000_001))
        with pytest.raises(MeasureError, match="label_set=observed"):
            score_of("TOMA(of=nDCG)", {"1": ranked("a")}, judge_two_aspects({"a": (1, 1)}, *long_scales))
        text = "TOMA(of=nDCG,label_set=observed)"
        assert (
            score_of(text, {"1": ranked(*"ab")}, judge_two_aspects({"a": (9, 9), "b": (1, 1)}, *long_scales))
            == 1.0
        )


def test_aspect_of_weight_0_is_ignored() -> None:
    qrels = judge_two_aspects({"a": (2, 0)})
    for name in ("CAM", "MM"):
        assert score_of(f"{name}(of=nDCG,weights={{x:1,y:0}})", {"1": ranked("a")}, qrels) == 1.0
        assert score_of(f"{name}(of=nDCG,weights={{x:0,y:1}})", {"1": ranked("a")}, qrels) == 0.0
