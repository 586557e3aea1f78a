"""Tests of C/W/L measures and of RBP as in trec_eval, against hand computations and definitions."""

import itertools
import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cupel_measures.grammar.syntax import MeasureError
from cupel_measures.model import Aspect
from cupel_measures.model.profiles import PROFILES
from support.data.small_collections import qrels_of, ranked, score_of, scores_of

JUDGED = {"a": 2, "b": 1, "z": 0}
ORDER = "axb"  # gains 1, 0, 1/2 on a scale of 0..2


def score_topic(text: str, order: str = ORDER, judged: dict[str, int] = JUDGED, highest: int = 2) -> float:
    """Return the score of a ranking of one topic, with one letter per document."""
    qrels = qrels_of({Aspect(name="relevance", labels=range(highest + 1)): {"1": judged}})
    return score_of(text, {"1": ranked(*order)}, qrels)


def expected_score(gains: list[float], continuation: Callable[[int, float], float]) -> float:
    """Return the sum of W(i) * gain(i) over 1,000 ranks, from the continuation probability C(i).

    continuation: C(i) as a function of the rank i and of the gain so far.
    """
    reach, gained, above, below = 1.0, 0.0, 0.0, 0.0
    for rank, gain in enumerate(itertools.islice(itertools.chain(gains, itertools.repeat(0.0)), 1000), 1):
        above, below, gained = above + reach * gain, below + reach, gained + gain
        reach *= continuation(rank, gained)
    return above / below


class TestUserModels:
    def test_inst_continuation_depends_on_the_gain_so_far(self) -> None:
        def continuation(rank: int, gained: float) -> float:
            return ((rank + 2 - gained - 1) / (rank + 2 - gained)) ** 2

        assert score_topic("INST") == pytest.approx(expected_score([1, 0, 0.5], continuation), abs=1e-12)
        # W(1) is 1 over the sum of the probabilities to reach each rank: (1/2)^2 for rank 2, and
        # (1/2)^2 (2/3)^2 = 1/9 for rank 3.
        value = expected_score([1], continuation)
        assert score_topic("INST", "a") == pytest.approx(value, abs=1e-12)

    def test_insq_weights_are_inverse_squares(self) -> None:
        weights = [(2 / (1 + rank)) ** 2 for rank in range(1, 1001)]
        assert score_topic("INSQ") == pytest.approx(
            (weights[0] + weights[2] / 2) / math.fsum(weights), abs=1e-12
        )

    def test_sdcg_is_normalised_by_k_perfect_documents(self) -> None:
        ideal = 1 + 1 / math.log2(3) + 1 / 2
        assert score_topic("SDCG@3") == pytest.approx((1 + 0.5 / 2) / ideal, abs=1e-15)
        assert score_topic("SDCG@2") == pytest.approx(1 / (1 + 1 / math.log2(3)), abs=1e-15)
        assert score_topic("SDCG@3", "a") < score_topic("nDCG@3", "a") < 1

    def test_bpm_stops_at_the_target_gain_or_the_cutoff(self) -> None:
        assert score_topic("BPM@3") == 1.0  # T = 1 is reached at rank 1
        assert score_topic("BPM(T=1.5)@10") == 1.5 / 3
        assert score_topic("BPM(T=9)@2") == 1 / 2
        assert score_topic("BPM(T=9)@10") == 1.5 / 10
        assert score_topic("BPM(T=9)@5000") == 1.5 / 1000

    def test_nerr_variants_equal_hand_computed_values(self) -> None:
        # The user stops at rank 1 with probability 1. If b is first, the probabilities are 1/2 at rank 1 and
        # 1 at rank 2.
        assert score_topic("NERR8@10") == 1.0
        assert score_topic("NERR8@10", "ba") == (0.5 + 0.5 * 1) / (1 + 0.5)
        assert score_topic("NERR8@10", "xb") == pytest.approx((1 * 0.5) / (1 + 1 + 8 * 0.5), abs=1e-15)
        assert score_topic("NERR9@3", "xb") == pytest.approx(
            (1 / 2 * 0.5) / (1 + 1 / 2 + 1 / 3 * 0.5), abs=1e-15
        )
        assert score_topic("NERR10(p=0.5)", "ba") == (0.5 + 0.5 * 0.5 * 1) / (1 + 0.5 * 0.5)
        assert score_topic("NERR11", "ba") == pytest.approx(
            (0.5 + 4 / 9 * 0.5) / (1 + 4 / 9 * 0.5), abs=1e-15
        )

    @given(st.lists(st.sampled_from([0, 1, 2, 3]), max_size=30), st.sampled_from([0.5, 1, 2.5]))
    def test_measures_equal_their_definitions(self, grades: list[int], target: float) -> None:
        documents = {f"d{i}": grade for i, grade in enumerate(grades)}
        gains = [grade / 3 for grade in grades]
        at = lambda rank: gains[rank - 1] if rank <= len(gains) else 0.0  # noqa: E731
        square = lambda rank, more: ((rank + more - 1) / (rank + more)) ** 2  # noqa: E731
        definitions: dict[str, Callable[[int, float], float]] = {
            f"INST(T={target})": lambda i, gained: square(i, 2 * target - gained),
            f"INSQ(T={target})": lambda i, _: square(i, 2 * target),
            f"BPM(T={target})@7": lambda i, gained: float(i < 7 and gained < target - 1e-9),
            "SDCG@7": lambda i, _: math.log2(i + 1) / math.log2(i + 2) if i < 7 else 0.0,
            "NERR8@7": lambda i, _: 1 - at(i) if i < 7 else 0.0,
            "NERR9@7": lambda i, _: i / (i + 1) * (1 - at(i)) if i < 7 else 0.0,
            "NERR10(p=0.7)": lambda i, _: 0.7 * (1 - at(i)),
            f"NERR11(T={target})": lambda i, _: square(i, 2 * target) * (1 - at(i)),
        }
        qrels = qrels_of({Aspect(name="relevance", labels=range(4)): {"1": documents}})
        scores = scores_of(list(definitions), {"1": ranked(*documents)}, qrels)
        for [value], continuation in zip(scores.values(), definitions.values(), strict=True):
            assert value == pytest.approx(expected_score(gains, continuation), abs=1e-12)


class TestGains:
    def test_gains_are_scaled_from_min_rel_to_max_rel(self) -> None:
        assert score_topic("SDCG@1") == 1.0
        assert score_topic("SDCG(max_rel=4)@1") == 0.5
        assert score_topic("SDCG(max_rel=1)@1", "b") == 1.0  # clipped
        assert score_topic("SDCG(min_rel=1)@1", "b") == 0.0
        assert score_topic("SDCG(min_rel=-2)@1", "b") == 3 / 4
        assert score_topic("SDCG(min_rel=-2)@1", "z") == 2 / 4  # judged non-relevant
        assert score_topic("SDCG(min_rel=-2)@1", "u") == 0.0  # unjudged

    def test_empty_gain_range_is_rejected(self) -> None:
        with pytest.raises(MeasureError, match=r"min_rel=2 is not below max_rel=1"):
            score_topic("INST(min_rel=2,max_rel=1)")
        with pytest.raises(MeasureError, match=r"min_rel=5 is not below 2, the greatest gain of the scale"):
            score_topic("NERR10(min_rel=5)")

    def test_ten_gains_of_one_tenth_reach_a_target_of_1(self) -> None:
        documents = {f"d{i}": 1 for i in range(12)}
        qrels = qrels_of({Aspect(name="relevance", labels=range(11)): {"1": documents}})
        # The float sum of ten times 0.1 is below 1, so a user would continue after reaching the target.
        assert math.fsum([0.1] * 10) == 1 > sum([0.1] * 10)
        judged = ranked(*list(documents)[:10], "u", *list(documents)[10:])
        assert score_of("BPM@11", {"1": judged}, qrels) == pytest.approx(1 / 10, abs=1e-15)

    def test_toma_gains_are_scaled_by_the_number_of_classes(self) -> None:
        aspects = Aspect(name="x", labels=range(2)), Aspect(name="y", labels=range(2))
        qrels = qrels_of({aspects[0]: {"1": {"a": 1, "b": 1}}, aspects[1]: {"1": {"a": 1, "b": 0}}})
        # The Manhattan distance gives three classes of weights 2, 1 and 0. a is in the best class, b in the
        # middle.
        for order, value in (("ab", 1.0), ("ba", 0.5), ("u", 0.0)):
            text = "TOMA(of=SDCG@1,distance=manhattan)"
            assert score_of(text, {"1": ranked(*order)}, qrels) == value

    def test_documents_below_rank_1000_are_ignored(self) -> None:
        order = [f"u{i}" for i in range(1000)]
        qrels = qrels_of({"1": {"a": 1}})
        for text in ("INST", "INSQ", "NERR10(p=0.999)", "NERR11", "BPM@2000", "SDCG@2000", "NERR8@2000"):
            assert score_of(text, {"1": ranked(*order, "a")}, qrels) == 0, text
            assert score_of(text, {"1": ranked(*order[1:], "a")}, qrels) > 0, text


class TestJudgedOnly:
    def test_judged_only_removes_unjudged_documents(self) -> None:
        for text in (
            "INST",
            "INSQ",
            "BPM@5",
            "SDCG@5",
            "NERR8@5",
            "NERR9@5",
            "NERR10",
            "NERR11",
            "Compat",
            "Q",
        ):
            name, at, cutoff = text.partition("@")
            assert score_topic(f"{name}(judged_only=True){at}{cutoff}", "xyaub") == score_topic(text, "ab"), (
                text
            )


class TestTrecEvalRBP:
    def test_rbp_trec_divides_gains_by_the_largest_of_the_topic(self) -> None:
        qrels = qrels_of({Aspect(name="relevance", labels=range(4)): {"1": {"a": 2, "b": 1}, "2": {"a": 1}}})
        run = {"1": ranked(*"ba"), "2": ranked("a")}
        assert scores_of("RBP_trec(p=0.5)", run, qrels)["RBP_trec(p=0.5)"] == [0.5 * (0.5 + 0.5), 0.5]

    def test_residual_is_the_weight_of_all_unjudged_ranks(self) -> None:
        # Ranks 1 and 3 of 3 are judged, so the weight 1/2 + 1/8 is known.
        assert score_topic("RBPResidual(p=0.5)", "aub") == 1 - (0.5 + 0.125)
        assert score_topic("RBPResidual(p=0.5)", "aub") == 0.5**3 + 0.5 * 0.5
        assert score_topic("RBPResidual(p=0.5)", "") == 0.0

    def test_residual_includes_ranks_below_the_run(self) -> None:
        trec_eval = 0.0  # because trec_eval adds p^n only if a retrieved document is unjudged
        assert trec_eval < score_topic("RBPResidual(p=0.5)", "ab") == 0.25

    def test_negative_grade_is_unjudged_in_trec_eval_profiles_only(self) -> None:
        qrels, run = qrels_of({"1": {"n": -1}}), {"1": ranked("n")}
        values = [score_of("RBPResidual(p=0.5)", run, qrels, profile=PROFILES[name]) for name in PROFILES]
        assert dict(zip(PROFILES, values, strict=True)) == {
            "cupel": 0.5,
            "trec_eval-9": 1.0,
            "trec_eval-10": 1.0,
        }


def test_measure_variants_in_one_call_equal_separate_calls() -> None:
    qrels = qrels_of({Aspect(name="relevance", labels=range(3)): {"1": JUDGED, "2": {"b": 2, "c": 1}}})
    run = {"1": ranked(*"xbza"), "2": ranked(*"cb")}
    texts = ["INST", "INST(T=3)", "INST(max_rel=4)", "INST(min_rel=1)", "NERR8@1", "NERR8@3", "Compat"]
    texts += [
        "Compat(p=0.5)",
        "Compat(normalize=False)",
        "Q",
        "Q(beta=3)",
        "Q(gains={1:2})",
        "BPM@2",
        "BPM(T=2)@2",
    ]
    alone = [scores_of(text, run, qrels)[text] for text in texts]
    assert list(scores_of(texts, run, qrels).values()) == alone
    assert list(scores_of(texts[::-1], run, qrels).values()) == alone[::-1]
