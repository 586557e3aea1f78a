"""Tests of C/W/L measures and graded RBP, computed by hand."""

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


def of(text: str, order: str = ORDER, judged: dict[str, int] = JUDGED, highest: int = 2) -> float:
    qrels = qrels_of({Aspect("relevance", range(highest + 1)): {"1": judged}})
    return score_of(text, {"1": ranked(*order)}, qrels)


def expected(gains: list[float], goes_on: Callable[[int, float], float]) -> float:
    """The definition: sum of W(i) * gain(i) over 1,000 ranks, C(i) from i and the gain so far."""
    reach, gained, above, below = 1.0, 0.0, 0.0, 0.0
    for rank, gain in enumerate(itertools.islice(itertools.chain(gains, itertools.repeat(0.0)), 1000), 1):
        above, below, gained = above + reach * gain, below + reach, gained + gain
        reach *= goes_on(rank, gained)
    return above / below


class TestByHand:
    def test_inst_stops_earlier_with_more_gain(self) -> None:
        def goes_on(rank: int, gained: float) -> float:
            return ((rank + 2 - gained - 1) / (rank + 2 - gained)) ** 2

        assert of("INST") == pytest.approx(expected([1, 0, 0.5], goes_on), abs=1e-12)
        # W(1): 1 over the sum of reach; reach of rank 2 is (1/2)^2, of rank 3 (1/2)^2 (2/3)^2 = 1/9
        seen = expected([1], goes_on)
        assert of("INST", "a") == pytest.approx(seen, abs=1e-12)

    def test_insq_is_reached_by_inverse_squares(self) -> None:
        weights = [(2 / (1 + rank)) ** 2 for rank in range(1, 1001)]
        assert of("INSQ") == pytest.approx((weights[0] + weights[2] / 2) / math.fsum(weights), abs=1e-12)

    def test_sdcg_supposes_k_perfect_documents(self) -> None:
        ideal = 1 + 1 / math.log2(3) + 1 / 2
        assert of("SDCG@3") == pytest.approx((1 + 0.5 / 2) / ideal, abs=1e-15)
        assert of("SDCG@2") == pytest.approx(1 / (1 + 1 / math.log2(3)), abs=1e-15)
        assert of("SDCG@3", "a") < of("nDCG@3", "a") < 1

    def test_bpm_stops_with_enough_or_at_the_cutoff(self) -> None:
        assert of("BPM@3") == 1.0  # T = 1 is reached at rank 1
        assert of("BPM(T=1.5)@10") == 1.5 / 3
        assert of("BPM(T=9)@2") == 1 / 2
        assert of("BPM(T=9)@10") == 1.5 / 10
        assert of("BPM(T=9)@5000") == 1.5 / 1000

    def test_nerr_variants(self) -> None:
        # what stops: 1 at rank 1; then, with b first, 1/2 at rank 1 and 1 at rank 2
        assert of("NERR8@10") == 1.0
        assert of("NERR8@10", "ba") == (0.5 + 0.5 * 1) / (1 + 0.5)
        assert of("NERR8@10", "xb") == pytest.approx((1 * 0.5) / (1 + 1 + 8 * 0.5), abs=1e-15)
        assert of("NERR9@3", "xb") == pytest.approx((1 / 2 * 0.5) / (1 + 1 / 2 + 1 / 3 * 0.5), abs=1e-15)
        assert of("NERR10(p=0.5)", "ba") == (0.5 + 0.5 * 0.5 * 1) / (1 + 0.5 * 0.5)
        assert of("NERR11", "ba") == pytest.approx((0.5 + 4 / 9 * 0.5) / (1 + 4 / 9 * 0.5), abs=1e-15)

    @given(st.lists(st.sampled_from([0, 1, 2, 3]), max_size=30), st.sampled_from([0.5, 1, 2.5]))
    def test_all_follow_from_their_definitions(self, grades: list[int], target: float) -> None:
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
        qrels = qrels_of({Aspect("relevance", range(4)): {"1": documents}})
        found = scores_of(list(definitions), {"1": ranked(*documents)}, qrels)
        for [value], goes_on in zip(found.values(), definitions.values(), strict=True):
            assert value == pytest.approx(expected(gains, goes_on), abs=1e-12)


class TestGains:
    def test_gains_are_mapped_from_min_rel_to_max_rel(self) -> None:
        assert of("SDCG@1") == 1.0
        assert of("SDCG(max_rel=4)@1") == 0.5
        assert of("SDCG(max_rel=1)@1", "b") == 1.0  # clipped
        assert of("SDCG(min_rel=1)@1", "b") == 0.0
        assert of("SDCG(min_rel=-2)@1", "b") == 3 / 4
        assert of("SDCG(min_rel=-2)@1", "z") == 2 / 4  # judged non-relevant
        assert of("SDCG(min_rel=-2)@1", "u") == 0.0  # unjudged

    def test_an_empty_range_is_refused(self) -> None:
        with pytest.raises(MeasureError, match=r"min_rel=2 is not below max_rel=1"):
            of("INST(min_rel=2,max_rel=1)")
        with pytest.raises(MeasureError, match=r"min_rel=5 is not below 2, the greatest gain of the scale"):
            of("NERR10(min_rel=5)")

    def test_ten_gains_of_a_tenth_reach_the_target_of_one(self) -> None:
        documents = {f"d{i}": 1 for i in range(12)}
        qrels = qrels_of({Aspect("relevance", range(11)): {"1": documents}})
        # added up as floats, ten times 0.1 stays below 1, and the user would read on
        assert math.fsum([0.1] * 10) == 1 > sum([0.1] * 10)
        judged = ranked(*list(documents)[:10], "u", *list(documents)[10:])
        assert score_of("BPM@11", {"1": judged}, qrels) == pytest.approx(1 / 10, abs=1e-15)

    def test_combined_scale_has_its_own_range(self) -> None:
        aspects = Aspect("x", range(2)), Aspect("y", range(2))
        qrels = qrels_of({aspects[0]: {"1": {"a": 1, "b": 1}}, aspects[1]: {"1": {"a": 1, "b": 0}}})
        # manhattan: three classes of weight 2, 1, 0; a is best, b in the middle
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
    def test_unjudged_documents_are_left_out(self) -> None:
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
            assert of(f"{name}(judged_only=True){at}{cutoff}", "xyaub") == of(text, "ab"), text


class TestTrecEvalsRBP:
    def test_gains_above_one_are_scaled_by_the_topics_greatest(self) -> None:
        qrels = qrels_of({Aspect("relevance", range(4)): {"1": {"a": 2, "b": 1}, "2": {"a": 1}}})
        run = {"1": ranked(*"ba"), "2": ranked("a")}
        assert scores_of("RBP_trec(p=0.5)", run, qrels)["RBP_trec(p=0.5)"] == [0.5 * (0.5 + 0.5), 0.5]

    def test_the_residual_is_all_that_is_not_judged(self) -> None:
        # ranks 1 and 3 of 3 are judged: 1/2 + 1/8 is known
        assert of("RBPResidual(p=0.5)", "aub") == 1 - (0.5 + 0.125)
        assert of("RBPResidual(p=0.5)", "aub") == 0.5**3 + 0.5 * 0.5
        assert of("RBPResidual(p=0.5)", "") == 0.0

    def test_residual_includes_ranks_below_a_judged_run(self) -> None:
        trec_eval = 0.0  # it adds p^n only where a retrieved document is unjudged
        assert trec_eval < of("RBPResidual(p=0.5)", "ab") == 0.25

    def test_a_negative_grade_is_a_judgment_unless_the_profile_is_trec_evals(self) -> None:
        qrels, run = qrels_of({"1": {"n": -1}}), {"1": ranked("n")}
        values = [score_of("RBPResidual(p=0.5)", run, qrels, profile=PROFILES[name]) for name in PROFILES]
        assert dict(zip(PROFILES, values, strict=True)) == {
            "cupel": 0.5,
            "trec_eval-9": 1.0,
            "trec_eval-10": 1.0,
        }


def test_two_variants_in_one_call_are_the_two_calls() -> None:
    qrels = qrels_of({Aspect("relevance", range(3)): {"1": JUDGED, "2": {"b": 2, "c": 1}}})
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
