"""Tests of two runs of the same system; golden values are from repro_eval 0.5.0 and rbo 0.1.3."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cupel_measures.comparing.closeness.document_lists import (
    DocumentList,
    compare_lists,
    lists_by_topic,
    rank_biased_overlap,
    tau_union,
)
from cupel_measures.comparing.closeness.same_system import (
    compare_document_lists,
    compare_scores_of_same_system,
    improvements,
    root_mean_square_error,
)
from cupel_measures.comparing.rank_correlation import overlap
from cupel_measures.model import Ids, Ranking


def ranked(documents: str, scores: list[float] | None = None) -> DocumentList:
    """Return a list of one-letter documents, by default without ties."""
    values = scores or [float(-place) for place in range(len(documents))]
    return DocumentList.from_scores([letter.encode() for letter in documents], np.array(values))


class TestRankBiasedOverlap:
    @pytest.mark.parametrize(
        ("first", "second", "expected"),
        [
            # rbo 0.1.3: RankingSimilarity(first, second).rbo_ext(p=0.9)
            ("abcd", "becf", 0.46349999999999997),
            ("abcd", "efgh", 0.0),
            ("abcdef", "cabdhe", 0.743463),
            ("dcba", "adbc", 0.828),
            ("abcde", "bax", 0.6299999999999999),
            ("a", "bcad", 0.20925),
            ("bda", "abcdefg", 0.7021086428571429),
        ],
    )
    def test_values_equal_rbo(self, first: str, second: str, expected: float) -> None:
        assert rank_biased_overlap(ranked(first), ranked(second)) == pytest.approx(expected, abs=1e-12)
        assert rank_biased_overlap(ranked(second), ranked(first)) == pytest.approx(expected, abs=1e-12)

    def test_ties_equal_hand_worked_values(self) -> None:
        # S: a, then b and c tied at rank 2. L: b, a, c. p = 0.5.
        # A(1) = 0; A(2): {a, b, c} and {b, a}: 2 * 2 / 5 = 0.8; A(3) = 1.
        # (1 - p) / p * (0 * 0.5 + 0.8 * 0.25 + 1 * 0.125) + 1 * 0.125 = 0.325 + 0.125
        tied = ranked("abc", [3.0, 2.0, 2.0])
        assert rank_biased_overlap(tied, ranked("bac"), p=0.5) == pytest.approx(0.45)

    def test_ties_in_a_shorter_list_equal_hand_worked_values(self) -> None:
        # S: a and b tied at rank 1. L: a, c, b. p = 0.5; s = 2.
        # A(1): {a, b} and {a}: 2 / 3; A(2): {a, b} and {a, c}: 1 / 2;
        # A(3) = 2 * (2 + 0.5 * 1) / (3 + 3) = 5 / 6.
        # (2/3) * 0.5 + 0.5 * 0.25 + (5/6) * 0.125 + (5/6) * 0.125
        expected = 1 / 3 + 1 / 8 + 5 / 24
        assert rank_biased_overlap(ranked("ab", [1, 1]), ranked("acb"), p=0.5) == pytest.approx(expected)

    @given(
        scores=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=12),
        p=st.floats(0.05, 0.95),
    )
    def test_lists_of_the_same_documents_equal_the_overlap_of_systems(
        self, scores: list[tuple[int, int]], p: float
    ) -> None:
        lists = []
        for column in range(2):
            order = sorted(range(len(scores)), key=lambda item: -scores[item][column])
            values = np.array([float(scores[item][column]) for item in order])
            lists.append(DocumentList.from_scores([b"%d" % item for item in order], values))
        x, y = zip(*scores, strict=True)
        assert rank_biased_overlap(*lists, p=p) == pytest.approx(overlap(x, y, p=p).value, abs=1e-12)

    @given(
        first=st.permutations("abcdefgh"),
        second=st.permutations("efghijkl"),
        lengths=st.tuples(st.integers(0, 8), st.integers(0, 8)),
        p=st.floats(0.05, 0.95),
    )
    def test_value_is_symmetric_and_between_0_and_1(
        self, first: list[str], second: list[str], lengths: tuple[int, int], p: float
    ) -> None:
        x, y = ranked("".join(first[: lengths[0]])), ranked("".join(second[: lengths[1]]))
        value = rank_biased_overlap(x, y, p=p)
        assert -1e-12 <= value <= 1 + 1e-12
        assert value == pytest.approx(rank_biased_overlap(y, x, p=p))
        assert not x.documents or rank_biased_overlap(x, x, p=p) == pytest.approx(1)

    def test_p_must_be_between_0_and_1(self) -> None:
        with pytest.raises(ValueError, match="p must be between 0 and 1, got 1"):
            rank_biased_overlap(ranked("a"), ranked("a"), p=1)


class TestTau:
    @pytest.mark.parametrize(
        ("first", "second", "expected"),
        [
            # Values of repro_eval 0.5.0 (_KTU). The first list is in the order of ids, as in the paper.
            ("abcd", "becf", 0.66666666666667),
            ("abcd", "efgh", 1.0),
            ("abcdef", "cabdhe", 0.6),
        ],
    )
    def test_tau_union_equals_repro_eval(self, first: str, second: str, expected: float) -> None:
        assert compare_lists(ranked(first), ranked(second)).tau_union == pytest.approx(expected, abs=1e-12)

    def test_tau_union_does_not_depend_on_ids(self) -> None:
        # The first two of three documents are swapped: 2 pairs agree, 1 does not (repro_eval 0.5.0: -1).
        assert tau_union([b"c", b"a", b"b"], [b"a", b"c", b"b"]) == pytest.approx(1 / 3)

    def test_tau_of_shared_documents_ignores_other_documents(self) -> None:
        result = compare_lists(ranked("abcdx"), ranked("ybadc"))
        # The shared documents are ranked a b c d and b a d c: 4 pairs agree, 2 do not.
        assert (result.shared, result.union, result.tau) == (4, 6, pytest.approx(1 / 3))

    def test_two_documents_are_enough(self) -> None:
        result = compare_lists(ranked("ab"), ranked("ba"))
        assert (result.tau, result.tau_union) == pytest.approx((-1, -1))

    def test_documents_with_equal_scores_are_tied(self) -> None:
        # The orders are a > b = c and a > b > c, so tau-b = 2 / sqrt(2 * 3).
        result = compare_lists(ranked("abc", [3, 2, 2]), ranked("abc"))
        assert result.tau == pytest.approx(2 / math.sqrt(6))

    @pytest.mark.parametrize(
        ("first", "second", "reason"),
        [
            (ranked("ab"), ranked("bc"), "the runs share fewer than two documents"),
            (ranked(""), ranked(""), "neither run retrieves a document"),
            (ranked("ab", [1, 1]), ranked("ab"), "one of the runs gives all shared documents the same score"),
        ],
    )
    def test_undefined_tau_has_a_reason(self, first: DocumentList, second: DocumentList, reason: str) -> None:
        result = compare_lists(first, second)
        assert (result.tau, result.tau_undefined) == (None, reason)

    def test_empty_lists_have_no_overlap(self) -> None:
        assert compare_lists(ranked(""), ranked("")).rbo is None
        assert compare_lists(ranked(""), ranked("ab")).rbo == 0


class TestLists:
    RANKING = Ranking(
        topics=("1", "3"),
        offsets=np.array([0, 3, 4]),
        documents=Ids.of([b"a", b"b", b"c", b"d"]),
        scores=np.array([2.0, 1.0, 1.0, 5.0]),
    )

    def test_lists_follow_the_topics(self) -> None:
        result = lists_by_topic(self.RANKING, ["3", "2", "1"])
        assert [item.documents for item in result] == [[b"d"], [], [b"a", b"b", b"c"]]
        assert [item.ranks.tolist() for item in result] == [[1], [], [1, 2, 2]]

    def test_depth_cuts_each_list(self) -> None:
        [result] = lists_by_topic(self.RANKING, ["1"], depth=2)
        assert result.documents == [b"a", b"b"]

    def test_means_leave_out_undefined_topics(self) -> None:
        result = compare_document_lists(
            [ranked("abc"), ranked("ab"), ranked("")], [ranked("abc"), ranked("xy"), ranked("")]
        )
        assert (result.tau, result.rbo, result.shared) == (1.0, pytest.approx(0.5), 0.5)
        assert [topic.tau for topic in result.topics] == [1.0, None, None]


ORIGINAL, BASELINE = [0.5, 0.4, 0.9, 0.2, 0.7], [0.3, 0.35, 0.8, 0.25, 0.4]
REPRODUCED, ITS_BASELINE = [0.45, 0.5, 0.85, 0.1, 0.75], [0.3, 0.3, 0.7, 0.2, 0.45]


class TestScores:
    def test_values_equal_repro_eval(self) -> None:
        result = compare_scores_of_same_system(ORIGINAL, REPRODUCED, (BASELINE, ITS_BASELINE))
        assert result.rmse == pytest.approx(0.07416198487095664, abs=1e-15)
        assert result.test.p == pytest.approx(0.7989658591927787, abs=1e-12)
        assert result.improvements is not None
        assert result.improvements.effect_ratio == pytest.approx(1.1666666666666665, abs=1e-12)
        assert result.improvements.delta_ri == pytest.approx(-0.0732600732600735, abs=1e-12)

    def test_values_equal_hand_worked_values(self) -> None:
        result = compare_scores_of_same_system([0.2, 0.4], [0.4, 0.4], ([0.1, 0.3], [0.2, 0.2]))
        assert (result.original_mean, result.reproduced_mean) == (pytest.approx(0.3), pytest.approx(0.4))
        assert result.rmse == pytest.approx(math.sqrt(0.04 / 2))
        assert result.test.estimate == pytest.approx(0.1)
        assert result.improvements is not None
        assert result.improvements.original == pytest.approx(0.1)
        assert result.improvements.effect_ratio == pytest.approx(0.2 / 0.1)
        assert result.improvements.original_ri == pytest.approx(0.5)
        assert result.improvements.reproduced_ri == pytest.approx(1.0)
        assert result.improvements.delta_ri == pytest.approx(-0.5)

    def test_equal_scores_have_no_error_and_no_p(self) -> None:
        result = compare_scores_of_same_system(ORIGINAL, ORIGINAL, (BASELINE, BASELINE))
        assert (result.rmse, result.test.p) == (0.0, None)
        assert result.test.undefined == "the difference is the same on every topic, so its variance is zero"
        assert result.improvements is not None
        assert (result.improvements.effect_ratio, result.improvements.delta_ri) == (1.0, 0.0)

    def test_division_by_zero_is_undefined(self) -> None:
        result = improvements(([0.1, 0.3], [0.3, 0.1]), ([0.1, 0.3], [0.0, 0.0]))
        assert result is not None
        assert (result.effect_ratio, result.original_ri) == (None, 0.0)
        assert (result.reproduced_ri, result.delta_ri) == (None, None)

    def test_undefined_scores_have_a_reason(self) -> None:
        result = compare_scores_of_same_system([0.1, math.nan], [0.1, 0.2], ([0.1, 0.2], [0.1, 0.2]))
        assert (result.rmse, result.improvements) == (None, None)
        assert result.undefined == "a score is undefined or infinite"
        assert improvements(([0.1], [math.nan]), ([0.1], [0.2])) is None

    def test_root_mean_square_error_is_over_topics(self) -> None:
        assert root_mean_square_error([0.0, 0.0, 3.0], [0.0, 4.0, 0.0]) == pytest.approx(math.sqrt(25 / 3))
