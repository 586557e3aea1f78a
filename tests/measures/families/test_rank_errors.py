"""Tests of NLRE, NGRE, NWCS, WHAM and credibility: examples, enumerated bounds, laws, and the A66 data."""

import itertools
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cupel_measures.scoring.dense
from cupel_measures.catalogue.parser import parse, parse_many
from cupel_measures.families.multiaspect import wham_of_means
from cupel_measures.families.rank_errors import Errors, greatest_local, greatest_overall, with_positions
from cupel_measures.grammar.syntax import MeasureError
from cupel_measures.model import UNJUDGED, Aspect, Ints, Joined, Qrels
from cupel_measures.scoring.evaluator import aggregate, evaluate
from support.data.small_collections import Scored, joined_of, qrels_of, ranked, score_of, scores_of

CLOSE = 6e-7  # values are printed to 6 decimals
R, C = Aspect(name="relevance", labels=range(5)), Aspect(name="credibility", labels=range(5))
HALVES = (0.5, 0.5)


def ranking_with_labels(**labels: Sequence[int]) -> tuple[Scored, Qrels]:
    """Return a ranking of documents a, b, c, ... and its qrels.

    labels: the labels by aspect, in the order of the ranking.
    """
    aspects = {name: Aspect(name=name, labels=range(5)) for name in labels}
    documents = "abcdefghijkl"[: len(next(iter(labels.values())))]
    judged = {
        aspects[name]: {"1": dict(zip(documents, column, strict=True))} for name, column in labels.items()
    }
    return {"1": ranked(*documents)}, qrels_of(judged)


def losses(positions: Sequence[Sequence[int]], weights: tuple[float, ...]) -> tuple[float, float]:
    """Return LRE and GRE of one ranking from the ideal positions of its documents."""
    n = len(positions[0])
    rows, ranks = np.zeros(n, dtype=np.int64), np.arange(1, n + 1)
    errors = Errors.from_positions([np.array(row) for row in positions], rows, ranks, 1)
    return float(errors.local(weights)[0]), float(errors.overall(weights)[0])


class TestRankErrorExample:
    """The example of Lioma et al., eq. 1-9, on Zr = (3,1,4,2), Zc = (1,4,2,2)."""

    positions = ([2, 4, 1, 3], [4, 1, 2, 3])
    run, qrels = ranking_with_labels(relevance=[3, 1, 4, 2], credibility=[1, 4, 2, 2])

    def test_errors_equal_the_worked_values(self) -> None:
        errors = Errors.from_positions(
            [np.array(row) for row in self.positions], np.zeros(4, dtype=np.int64), np.arange(1, 5), 1
        )
        assert errors.rank.tolist() == [1, 2]
        assert [size.tolist() for size in errors.sizes] == [[0, 3], [3, 0]]

    @pytest.mark.parametrize(
        ("weights", "lre", "c_lre", "gre", "c_gre"),
        [
            ((0.5, 0.5), 2.446395, 13.0, 3.865987, 6.5625),
            ((0.9, 0.1), 2.889279, 13.0, 2.514563, 4.6025),
        ],
    )
    def test_losses_and_upper_bounds_equal_the_worked_values(
        self, weights: tuple[float, float], lre: float, c_lre: float, gre: float, c_gre: float
    ) -> None:
        assert losses(self.positions, weights) == pytest.approx((lre, gre), abs=CLOSE)
        constants = greatest_local(4, weights), greatest_overall(4, weights)
        assert constants == pytest.approx((c_lre, c_gre), abs=CLOSE)

    @pytest.mark.parametrize(
        ("weights", "expected"),
        [
            ("", (0.811816, 0.811816, 0.410897)),
            ("weights={relevance:0.9,credibility:0.1}", (0.777748, 0.845884, 0.453653)),
        ],
    )
    def test_scores_equal_the_worked_values(self, weights: str, expected: tuple[float, ...]) -> None:
        comma = "," if weights else ""
        texts = [
            f"NLRE({weights})" if weights else "NLRE",
            f"NLRE(swap=True{comma}{weights})",
            f"NGRE({weights})" if weights else "NGRE",
        ]
        got = [score_of(text, self.run, self.qrels) for text in texts]
        assert got == pytest.approx(expected, abs=CLOSE)

    def test_worst_positions_score_0(self) -> None:
        assert with_positions([[4, 1, 3, 2]] * 2) == (0.0, 0.0)

    def test_upper_bounds_for_equal_weights_equal_the_worked_values(self) -> None:
        local = [greatest_local(n, HALVES) for n in range(2, 7)]
        overall = [greatest_overall(n, HALVES) for n in range(2, 7)]
        assert local == pytest.approx([2, 6, 13, 23, 36.773706], abs=CLOSE)
        assert overall == pytest.approx([1.25, 3, 6.5625, 11.25, 18.744038], abs=CLOSE)


class TestWeightedExample:
    """Examples of Lioma et al., eq. 10-13."""

    run, qrels = TestRankErrorExample.run, TestRankErrorExample.qrels

    def test_nwcs_equals_the_worked_values(self) -> None:
        weights = "weights={relevance:0.8,credibility:0.2}"
        got = [score_of(text, self.run, self.qrels) for text in ("NWCS", f"NWCS({weights})")]
        assert got == pytest.approx([0.922344, 0.904949], abs=CLOSE)
        wcs = sum(z / math.log2(1 + i) for i, z in enumerate([2, 2.5, 3, 2], 1))
        assert wcs == pytest.approx(5.938678, abs=CLOSE)

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("CAM(of={relevance:P@10,credibility:P@5})", 0.65),
            ("WHAM(of={relevance:P@10,credibility:P@5})", 0.553846),
            ("WHAM(of={relevance:P@10,credibility:P@5},weights={relevance:0.2,credibility:0.8})", 0.45),
        ],
    )
    def test_cam_and_wham_of_0_9_and_0_4_equal_the_worked_values(self, text: str, expected: float) -> None:
        relevance = dict.fromkeys("abcdefghi", 1)
        qrels = qrels_of({R: {"1": relevance}, C: {"1": {"a": 1, "b": 1}}})
        assert score_of(text, {"1": ranked(*"abcdefghij")}, qrels) == pytest.approx(expected, abs=CLOSE)

    def test_wham_is_0_if_any_score_is_0(self) -> None:
        run, qrels = ranking_with_labels(relevance=[1, 1], credibility=[0, 0])
        weights = "weights={relevance:1,credibility:0}"
        assert score_of(f"MM(of=P@2,{weights})", run, qrels) == 1.0
        assert score_of(f"WHAM(of=P@2,{weights})", run, qrels) == 0.0

    def test_wham_of_means_combines_averages(self) -> None:
        assert wham_of_means([0.9, 0.4], [0.5, 0.5]) == pytest.approx(0.553846, abs=CLOSE)
        assert wham_of_means([0.9, 0.0], [1, 0]) == 0.0


class TestCredibilityExample:
    """The example of Lioma et al., section 6.1: credibility labels 1 to 4, credible from 3."""

    aspect = Aspect(name="credibility", labels=(1, 2, 3, 4), threshold=2)

    @pytest.mark.parametrize(
        ("more_judged", "expected"),
        [
            ({}, (0.4, 1, 0.571429, 0.632456)),
            ({"x": 3, "y": 2}, (0.4, 0.5, 0.444444, 0.447214)),
        ],
    )
    def test_set_measures_equal_the_worked_values(
        self, more_judged: dict[str, int], expected: tuple[float, ...]
    ) -> None:
        judged = {"a": 3, "b": 0, "c": 2, "d": 1, "e": 0}
        qrels = qrels_of({R: {"1": {"a": 1}}, self.aspect: {"1": {**judged, **more_judged}}})
        texts = [f"{name}(aspect=credibility)" for name in ("SetP", "SetR", "SetF", "SetG")]
        got = [score_of(text, {"1": ranked(*"abcde")}, qrels) for text in texts]
        assert got == pytest.approx(expected, abs=CLOSE)

    def test_set_g_of_0_divided_by_0_is_0(self) -> None:
        qrels = qrels_of({self.aspect: {"1": {"a": 0}}})
        assert score_of("SetG", {}, qrels) == score_of("SetG", {"1": ranked("a")}, qrels) == 0.0

    def test_bpref_and_mrr_equal_the_worked_values(self) -> None:
        qrels = qrels_of({"1": {"a": 1, "b": 0, "c": 1, "d": 0, "e": 1, "f": 0}})
        got = [score_of("Bpref", {"1": ranked(*run)}, qrels) for run in ("baudcfe", "abc")]
        assert got == pytest.approx([0.333333, 0.555556], abs=CLOSE)
        assert score_of("MRR", {"1": ranked(*"bua")}, qrels) == pytest.approx(0.333333, abs=CLOSE)


def error_vectors(n: int) -> np.ndarray:
    """Return the distinct error vectors eps of all permutations of n ideal positions.

    The result is int64[vectors, n - 1].
    """
    positions = np.array(list(itertools.permutations(range(1, n + 1))))
    return np.unique(np.maximum(positions[:, :-1] - positions[:, 1:], 0), axis=0)


def undominated(vectors: np.ndarray) -> np.ndarray:
    """Return the vectors that no other vector dominates.

    A loss that never decreases with eps is greatest at one of these vectors.
    """
    left = vectors[np.argsort(-vectors.sum(axis=1), kind="stable")]
    kept: list[np.ndarray] = []
    while len(left):
        kept.append(left[0].copy())  # a copy, because a view would keep all of `left` in memory
        left = left[(left > left[0]).any(axis=1)]
    return np.array(kept)


def greatest_losses(vectors: np.ndarray, weights: tuple[float, ...]) -> tuple[float, float]:
    """Return the largest LRE and the largest GRE (eq. 4 and 7) over all combinations of error vectors."""
    discount = np.array([math.log2(1 + i) for i in range(1, vectors.shape[1] + 1)])
    rest = np.indices((len(vectors),) * (len(weights) - 1)).reshape(len(weights) - 1, -1)
    local, overall = 0.0, 0.0
    for first in vectors:
        eps = [first, *(vectors[chosen] for chosen in rest)]
        product = math.prod(w + e for w, e in zip(weights, eps, strict=True)) - math.prod(weights)
        local = max(local, float((product / discount).sum(axis=1).max()))
        sums = [1 + w * (e / discount).sum(axis=-1) for w, e in zip(weights, eps, strict=True)]
        overall = max(overall, float(np.max(math.prod(sums) - 1)))
    return local, overall


class TestGreatestLosses:
    """The upper bounds of Lioma et al., eq. 6 and 9, compared with enumeration.

    The pruned enumeration is exact, because losses never decrease with eps.
    """

    @pytest.mark.parametrize("weights", [(0.5, 0.5), (0.9, 0.1), (3, 0.2), (1, 0)])
    @pytest.mark.parametrize("n", [2, 3, 4, 5])
    def test_bounds_for_two_aspects_equal_enumeration(self, n: int, weights: tuple[float, float]) -> None:
        self.assert_bounds(n, weights, error_vectors(n))

    @pytest.mark.sampled(every=3)
    @pytest.mark.parametrize("weights", [(0.5, 0.5), (0.9, 0.1)])
    @pytest.mark.parametrize("n", [6, 7, 8])
    def test_bounds_for_two_aspects_and_longer_lists_equal_enumeration(
        self, n: int, weights: tuple[float, float]
    ) -> None:
        self.assert_bounds(n, weights, undominated(error_vectors(n)))

    @pytest.mark.parametrize("weights", [(0.5, 0.5, 0.5), (0.9, 0.1, 0.4), (2, 0, 1)])
    @pytest.mark.parametrize("n", [2, 3, 4])
    def test_bounds_for_three_aspects_equal_enumeration(
        self, n: int, weights: tuple[float, float, float]
    ) -> None:
        self.assert_bounds(n, weights, error_vectors(n))

    @pytest.mark.parametrize("n", [5, 6])
    def test_bounds_for_three_aspects_and_longer_lists_equal_enumeration(self, n: int) -> None:
        self.assert_bounds(n, (0.5, 0.5, 0.5), undominated(error_vectors(n)))

    def assert_bounds(self, n: int, weights: tuple[float, ...], vectors: np.ndarray) -> None:
        constants = greatest_local(n, weights), greatest_overall(n, weights)
        assert greatest_losses(vectors, weights) == pytest.approx(constants, rel=1e-12)

    @pytest.mark.parametrize("n", range(2, 9))
    def test_worst_ranking_of_the_paper_scores_0(self, n: int) -> None:
        worst = [n - i // 2 if i % 2 == 0 else i // 2 + 1 for i in range(n)]
        assert with_positions([worst, worst]) == pytest.approx((0, 0), abs=1e-12)

    def test_pruned_enumeration_has_the_same_maximum(self) -> None:
        for n in range(2, 6):
            pruned = greatest_losses(undominated(error_vectors(n)), (0.9, 0.1))
            assert pruned == greatest_losses(error_vectors(n), (0.9, 0.1))


labels = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=12)


def with_two_aspects(pairs: Sequence[tuple[int, int]]) -> tuple[Scored, Qrels]:
    """Return a ranking with these labels of relevance and credibility, and its qrels."""
    return ranking_with_labels(relevance=[r for r, _ in pairs], credibility=[c for _, c in pairs])


class TestRankErrorLaws:
    @given(labels)
    def test_score_is_1_if_and_only_if_no_adjacent_pair_is_an_error(
        self, pairs: list[tuple[int, int]]
    ) -> None:
        """With `ties=stable`, documents with equal labels keep their order in the ideal ranking.

        So an adjacent pair of documents is an error if the lower document has the better label.
        """
        run, qrels = with_two_aspects(pairs)
        error = any(lower[a] > upper[a] for upper, lower in itertools.pairwise(pairs) for a in (0, 1))
        for text in ("NLRE", "NGRE", "NLRE(weights={relevance:0.001,credibility:1000})"):
            assert (score_of(text, run, qrels) == 1.0) == (not error)

    @given(labels)
    def test_ties_min_and_stable_agree_on_a_score_of_1(self, pairs: list[tuple[int, int]]) -> None:
        run, qrels = with_two_aspects(pairs)
        for name in ("NLRE", "NGRE"):
            stable, shared = (score_of(f"{name}(ties={ties})", run, qrels) for ties in ("stable", "min"))
            assert (stable == 1.0) == (shared == 1.0)

    @given(st.integers(2, 9), st.integers(0, 4))
    def test_equal_labels_score_1_unless_ties_are_reversed(self, n: int, label: int) -> None:
        run, qrels = with_two_aspects([(label, label)] * n)
        for name in ("NLRE", "NGRE"):
            assert score_of(name, run, qrels) == score_of(f"{name}(ties=min)", run, qrels) == 1.0
            assert score_of(f"{name}(ties=reverse)", run, qrels) < 1.0

    @given(labels, st.sampled_from([0.0, 0.2, 0.5, 1.0]))
    def test_combined_scores_are_ordered(self, pairs: list[tuple[int, int]], share: float) -> None:
        """min <= MM <= CAM <= max. H with the same weights, and WHAM with equal weights, equal MM."""
        run, qrels = with_two_aspects(pairs)
        weights = f"weights={{relevance:{share},credibility:{1 - share}}}"
        texts = [f"{name}(of=nDCG,{weights})" for name in ("CAM", "MM", "H")]
        cam, mm, h = (score_of(text, run, qrels) for text in texts)
        parts = [score_of(f"nDCG(aspect={name})", run, qrels) for name in ("relevance", "credibility")]
        counted = [s for s, w in zip(parts, (share, 1 - share), strict=True) if w > 0]
        assert min(counted) - 1e-12 <= mm <= cam + 1e-12
        assert cam <= max(counted) + 1e-12
        assert h == mm
        assert cam == pytest.approx(share * parts[0] + (1 - share) * parts[1], abs=1e-12)
        assert score_of("WHAM(of=nDCG)", run, qrels) == score_of("MM(of=nDCG)", run, qrels)

    @given(labels)
    def test_scores_equal_the_definition(self, pairs: list[tuple[int, int]]) -> None:
        run, qrels = with_two_aspects(pairs)
        for ties in ("stable", "min", "reverse"):
            positions = [slow_positions([pair[a] for pair in pairs], ties) for a in (0, 1)]
            got = [score_of(f"{name}(ties={ties})", run, qrels) for name in ("NLRE", "NGRE")]
            assert tuple(got) == with_positions(positions)


def slow_positions(labels: Sequence[int], ties: str) -> list[int]:
    """Return the positions in the ideal ranking, by eq. 1."""
    if ties == "min":
        return [1 + sum(other > label for other in labels) for label in labels]
    direction = -1 if ties == "reverse" else 1
    order = sorted(range(len(labels)), key=lambda i: (-labels[i], direction * i))
    return [order.index(i) + 1 for i in range(len(labels))]


def test_better_swap_can_lower_nlre() -> None:
    before, after = [(0, 0), (1, 0), (4, 0), (2, 0)], [(0, 0), (4, 0), (1, 0), (2, 0)]
    scores = [
        [score_of(name, *with_two_aspects(pairs)) for name in ("NLRE", "NGRE")] for pairs in (before, after)
    ]
    assert all(later < earlier for earlier, later in zip(*scores, strict=True))


class TestRankErrorEdgeCases:
    """Edge cases of rank-error measures."""

    def test_single_document_scores_1_and_empty_ranking_0(self) -> None:
        run, qrels = with_two_aspects([(0, 3)])
        scores = scores_of(["NLRE", "NGRE", "NWCS"], run, qrels)
        assert [score for [score] in scores.values()] == [1, 1, 1]
        assert [score for [score] in scores_of(["NLRE", "NGRE", "NWCS"], {}, qrels).values()] == [0, 0, 0]

    def test_nwcs_is_0_if_all_labels_are_the_lowest(self) -> None:
        assert score_of("NWCS", *with_two_aspects([(0, 0), (0, 0)])) == 0.0

    def test_unjudged_documents_and_negative_grades_have_the_lowest_label(self) -> None:
        judged = {"a": 2, "b": 1}
        qrels = qrels_of({R: {"1": {**judged, "n": -1, "z": 0}}, C: {"1": {**judged, "z": 0}}})
        for text in ("NLRE", "NGRE", "NLRE(ties=reverse)"):
            expected = score_of(text, {"1": ranked("z", "b", "a")}, qrels)
            assert expected < 1
            for low in ("n", "u"):
                assert score_of(text, {"1": ranked(low, "b", "a")}, qrels) == expected

    def test_unjudged_documents_at_the_end_change_the_score(self) -> None:
        run, qrels = ranking_with_labels(relevance=[1, 2], credibility=[1, 2])
        longer = {"1": ranked("a", "b", "x", "y", "z")}
        assert score_of("NLRE", run, qrels) == 0.0
        # One adjacent pair has an error of 1 in both aspects, so LRE is ((.5+1)^2 - .25)/1 = 2. C_LRE(5) is
        # 23.
        assert score_of("NLRE", longer, qrels) == pytest.approx(1 - 2 / 23, abs=1e-15)

    def test_missing_label_of_one_aspect_is_its_lowest(self) -> None:
        run, qrels = with_two_aspects([(1, 1), (1, 3)])
        qrels.labels[1, 1] = UNJUDGED
        assert score_of("NLRE", run, qrels) == 1.0

    def test_single_aspect_is_rejected(self) -> None:
        qrels = qrels_of({R: {"1": {"a": 1}}})
        for name in ("NLRE", "NGRE", "NWCS"):
            with pytest.raises(MeasureError, match=f"{name}: it needs two aspects or more"):
                score_of(name, {}, qrels)

    def test_swap_of_three_aspects_is_rejected(self) -> None:
        run, qrels = ranking_with_labels(a=[1, 2], b=[1, 2], c=[2, 1])
        with pytest.raises(MeasureError, match="weights of two aspects, but the measure has 3"):
            score_of("NLRE(swap=True)", run, qrels)

    def test_scores_of_three_aspects_equal_the_definition(self) -> None:
        run, qrels = ranking_with_labels(a=[3, 1, 4, 2], b=[1, 4, 2, 2], c=[4, 3, 2, 1])
        positions = [[2, 4, 1, 3], [4, 1, 2, 3], [1, 2, 3, 4]]
        got = [score_of(name, run, qrels) for name in ("NLRE", "NGRE")]
        assert tuple(got) == with_positions(positions)
        # The errors eps of aspect c are 0, so c contributes the factor 0.5 (its weight) to LRE and 1 to GRE.
        lre, gre = losses(positions, (0.5,) * 3)
        assert (lre, gre) == pytest.approx((2.446395 / 2, 3.865987), abs=CLOSE)

    @pytest.mark.parametrize("text", ["NLRE(weights={a:0,b:0})", "NLRE(weights={a:-1,b:2})"])
    def test_weights_of_0_or_below_are_rejected(self, text: str) -> None:
        with pytest.raises(MeasureError, match="weights of 0 to 1,000, not all 0"):
            parse(text)

    def test_wham_needs_a_measure_for_each_aspect(self) -> None:
        with pytest.raises(MeasureError, match="name a measure for each aspect"):
            parse("WHAM(of={a:AP,b:AP},weights={a:1})").bound(
                (Aspect(name="a", labels=range(2)), Aspect(name="b", labels=range(2)))
            )
        with pytest.raises(MeasureError, match="the collection has no aspect 'c'"):
            parse("WHAM(of={a:AP,c:AP})").bound((Aspect(name="a", labels=range(2)),))
        for text in ("WHAM(of={a:AP(aspect=b)})", "WHAM(of={a:5})", "WHAM(of={})", "WHAM(of={1:AP})"):
            with pytest.raises(MeasureError):
                parse(text)
        with pytest.raises(MeasureError, match="WHAM takes no value after @"):
            parse("WHAM(of={a:AP})@10")


class TestBlocks:
    """Scores do not depend on the division of rows into blocks."""

    measures = parse_many("NLRE NLRE(ties=reverse) NLRE(ties=min) NGRE")

    def scores(self, qrels: Qrels, joined: Joined) -> bytes:
        scores = evaluate(qrels, joined, self.measures).values
        return b"".join(scores[measure].tobytes() for measure in self.measures)

    def test_scores_do_not_depend_on_the_block_size(self, monkeypatch: pytest.MonkeyPatch) -> None:
        rng = np.random.default_rng(3)
        topics = {str(t): {f"d{i}": int(rng.integers(5)) for i in range(30)} for t in range(5)}
        qrels = qrels_of({R: topics, C: topics})
        run = {t: {f"d{i}": float(rng.random()) for i in range(int(rng.integers(0, 60)))} for t in "01234"}
        joined = joined_of(run, qrels)
        several = Joined.stack([joined, Joined.empty(5), joined])
        expected = self.scores(qrels, several)
        for size in (1, 7, 64):
            monkeypatch.setattr(cupel_measures.scoring.dense, "BLOCK", size)
            assert self.scores(qrels, several) == expected

    def test_each_row_is_in_one_block(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(cupel_measures.scoring.dense, "BLOCK", 3)
        qrels = qrels_of({R: {"1": {"a": 1}, "2": {"b": 2}, "3": {"c": 3}}})
        run = {"1": ranked("x", "a"), "2": ranked(*"vwxyzb"), "3": ranked("c")}
        labels_of_blocks: list[list[int]] = []
        ranks: list[Ints] = []
        for block in cupel_measures.scoring.dense.blocks(qrels, joined_of(run, qrels)):
            labels_of_blocks.append(block.labels("relevance").tolist())
            ranks.append(block.rank)
        assert labels_of_blocks == [[0, 1], [0, 0, 0, 0, 0, 2], [3]]
        assert np.concatenate(ranks).tolist() == [1, 2, 1, 2, 3, 4, 5, 6, 1]


@pytest.fixture(scope="module")
def a66(shared: Path) -> tuple[Scored, Qrels]:
    """Return the A66 run and qrels, with a topic per assessor and query.

    Documents are identified by their rank, because one list has a URL twice.
    """
    file = shared / "data" / "a66" / "data"
    if not file.is_file():
        pytest.skip(f"the data set is missing: {file}")
    rows = [line.split(",", 6) for line in file.read_text().splitlines()]
    relevance, credibility = (
        Aspect(name=name, labels=(1, 2, 3, 4), threshold=2) for name in ("relevance", "credibility")
    )
    judged: dict[Aspect, dict[str, dict[str, int]]] = {relevance: {}, credibility: {}}
    run: dict[str, dict[str, float]] = {}
    for assessor, query, rank, _, *grades in rows:
        topic = f"{assessor}-{query}"
        run.setdefault(topic, {})[rank] = -float(rank)
        for aspect, grade in zip(judged, grades, strict=False):
            judged[aspect].setdefault(topic, {})[rank] = int(grade) - 1
    return run, qrels_of(judged)


PAIRS = ("nDCG,credibility:SetF", "nDCG,credibility:SetG", "AP,credibility:SetF", "AP,credibility:SetG")
A66 = {
    "nDCG": 0.970982,
    "AP": 0.891958,
    "SetF(aspect=credibility)": 0.480238,
    "SetG(aspect=credibility)": 0.526368,
    "NLRE": 0.933397,
    "NGRE": 0.850272,
    "NWCS": 0.962545,
    **{
        f"{name}(of={{relevance:{pair}}})": value
        for name, values in {
            "CAM": (0.725610, 0.748675, 0.686098, 0.709163),
            "WHAM": (0.570439, 0.612345, 0.533203, 0.572000),
        }.items()
        for pair, value in zip(PAIRS, values, strict=True)
    },
}
"""Means over the 100 lists of A66, from an independent implementation."""


def test_means_on_a66_equal_recorded_values(a66: tuple[Scored, Qrels]) -> None:
    run, qrels = a66
    assert len(qrels.topics) == 100
    measures = [parse(text) for text in A66]
    values = evaluate(qrels, joined_of(run, qrels), measures).values
    got = [aggregate(measure, values[measure]) for measure in measures]
    assert got == pytest.approx(list(A66.values()), abs=CLOSE)


def test_reversed_lists_of_a66_equal_the_published_means(a66: tuple[Scored, Qrels]) -> None:
    run, qrels = a66
    reversed_run = {topic: {d: -score for d, score in scores.items()} for topic, scores in run.items()}
    per_topic = scores_of(["nDCG", "AP"], reversed_run, qrels)
    means = [math.fsum(scores) / len(scores) for scores in per_topic.values()]
    assert means == pytest.approx([0.929463, 0.780736], abs=CLOSE)
