"""Tests of the novelty and diversity measures: worked examples, edge cases, and laws."""

import math
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cupel_measures.catalogue.parser import parse
from cupel_measures.families.diversity import OVER_GREEDY, above_ideal
from cupel_measures.findings import Refused
from cupel_measures.grammar.registry import DECLARATIONS
from cupel_measures.grammar.syntax import MeasureError
from cupel_measures.model import Aspect, Qrels
from cupel_measures.model.profiles import PROFILES
from cupel_measures.reading.collection_files import read_collection
from cupel_measures.scoring.evaluator import check, evaluate
from cupel_measures.scoring.subtopics import SubtopicPool
from support.data.small_collections import diverse, joined_of, qrels_of, ranked, score_of, scores_of

CLOSE = 6e-7  # values are printed to 6 decimals
NAMES = [name for name, declared in DECLARATIONS.items() if declared.subtopics and not declared.texts]
JUDGED = {"a": {"1": 1, "2": 1}, "b": {"1": 1}, "c": {"2": 1, "3": 1}, "d": {"1": 0}, "e": {"3": 1}}


def score_topic(text: str, order: str, judged: dict[str, dict[str, int]]) -> float:
    """Return the score of a ranking of one topic, with one letter per document."""
    return score_of(text, {"1": ranked(*order)}, diverse({"1": judged}))


class TestDiversityExample:
    """An example for Hui, PIKM 2014, eq. 1-3. The run is b a x c d e, and the ideal ranking c a e b d."""

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("alpha_DCG(normalise=False)", 2.770513),
            ("alpha_nDCG@20", 0.812054),
            ("alpha_nDCG@3", 0.608934),
            ("ERR_IA(normalise=False)", 0.368056),
            ("ERR_IA@20", 0.530992),
            ("alpha_DCG@20", 0.599853),
            ("NRBP", 0.488281),
            ("NRBP(literal=True)", 0.244141),
            ("NRBP(beta=0.8)", 0.626368),
        ],
    )
    def test_scores_equal_the_worked_values(self, text: str, expected: float) -> None:
        assert score_topic(text, "baxcde", JUDGED) == pytest.approx(expected, abs=CLOSE)

    def test_novelty_gains_equal_the_worked_values(self) -> None:
        sums = [score_topic(f"alpha_DCG(normalise=False)@{k}", "baxcde", JUDGED) for k in range(1, 7)]
        gains = [
            (b - a) * math.log2(1 + k) for k, (a, b) in enumerate(zip([0, *sums], sums, strict=False), 1)
        ]
        assert gains == pytest.approx([1, 1.5, 0, 1.5, 0, 0.5], abs=1e-12)

    def test_ideal_ranking_equals_the_worked_ranking(self) -> None:
        qrels = diverse({"1": JUDGED})
        ideal = SubtopicPool.of(qrels, negatives_judged=True).ideal(None, 0.5, None).hits
        assert [qrels.documents[i] for i in ideal.document] == [*"caeb"]  # d has no gain, so it is omitted
        assert ideal.rank.tolist() == [1, 2, 3, 4]
        assert [score_topic(name, "caebd", JUDGED) for name in ("alpha_nDCG", "nERR_IA", "nNRBP")] == [
            1,
            1,
            1,
        ]

    def test_err_ia_normalisation_is_a_constant_factor(self) -> None:
        factor = 2 / math.fsum(2 ** (1 - r) / r for r in range(1, 21))
        for order in ("baxcde", "caebd", "xxe", "d"):
            plain = score_topic("ERR_IA(normalise=False)@20", order, JUDGED)
            assert score_topic("ERR_IA@20", order, JUDGED) == pytest.approx(factor * plain, abs=1e-15)

    def test_literal_nrbp_is_1_minus_alpha_times_nrbp(self) -> None:
        for alpha in (0, 0.3, 1):
            literal, plain = (
                score_topic(f"NRBP(alpha={alpha}{option})", "baxcde", JUDGED)
                for option in (",literal=True", "")
            )
            assert literal == pytest.approx((1 - alpha) * plain, abs=1e-15)


def test_alpha_of_err_ia_is_the_probability_of_satisfaction() -> None:
    # ERR of the ranking b a is 0.3 + 0.3 * 0.7 / 2 for subtopic 1, 0.3 / 2 for 2, and 0 for 3.
    expected = (0.3 + 0.3 * 0.7 / 2 + 0.3 / 2) / 3
    assert score_topic("ERR_IA(alpha=0.3,normalise=False)", "ba", JUDGED) == pytest.approx(
        expected, abs=1e-15
    )


def test_intent_aware_measures_are_means_over_subtopics() -> None:
    # Each subtopic has 2 relevant documents. Their ranks are 1 and 2 for subtopic 1, 2 and 4 for 2, 4 and 6
    # for 3.
    ap = ((1 + 1) / 2 + (1 / 2 + 2 / 4) / 2 + (1 / 4 + 2 / 6) / 2) / 3
    assert score_topic("AP_IA", "baxcde", JUDGED) == pytest.approx(ap, abs=1e-15)
    assert score_topic("P_IA@4", "baxcde", JUDGED) == pytest.approx(5 / 12, abs=1e-15)
    assert score_topic("P_IA@100", "baxcde", JUDGED) == pytest.approx(6 / 300, abs=1e-15)
    assert [score_topic(f"StRecall@{k}", "baxcde", JUDGED) for k in (1, 2, 3, 4, 99)] == [
        1 / 3,
        2 / 3,
        2 / 3,
        1,
        1,
    ]
    assert score_topic("StRecall", "baxcde", JUDGED) == 1


class TestScoresAboveTheIdeal:
    """Each document alone has a gain of 3, so the greedy ideal starts with z, which is not optimal."""

    judged = {  # noqa: RUF012
        "b": dict.fromkeys("123", 1),
        "c": dict.fromkeys("456", 1),
        "z": dict.fromkeys("124", 1),
    }

    def test_scores_above_1_are_unchanged(self) -> None:
        expected = (3 + 3 / math.log2(3)) / (3 + 2.5 / math.log2(3))
        assert score_topic("alpha_nDCG@2", "bc", self.judged) == pytest.approx(expected, abs=1e-15)
        assert score_topic("nERR_IA@2", "bc", self.judged) == pytest.approx(
            (3 + 3 / 2) / (3 + 2.5 / 2), abs=1e-15
        )
        assert score_topic("nNRBP", "bcz", self.judged) == pytest.approx(
            (3 + 3 / 2 + 1.5 / 4) / (3 + 2.5 / 2 + 2 / 4), abs=1e-15
        )

    def test_cap_limits_scores_to_1(self) -> None:
        for text in ("alpha_nDCG(cap=True)@2", "nERR_IA(cap=True)@2", "nNRBP(cap=True)"):
            assert score_topic(text, "bcz", self.judged) == 1.0
            assert 0 < score_topic(text, "xb", self.judged) < 1

    def test_scores_above_the_ideal_are_detected(self) -> None:
        qrels = diverse({"1": self.judged, "2": self.judged})
        run = {"1": ranked(*"bc"), "2": ranked(*"zc")}
        (values,) = evaluate(qrels, joined_of(run, qrels), [parse("alpha_nDCG@2")]).values.values()
        assert above_ideal(values).tolist() == [True, False]


class TestEdgeCases:
    """Edge cases of diversity measures."""

    @pytest.mark.parametrize("name", NAMES)
    def test_topic_without_relevant_documents_or_run_scores_0(self, name: str) -> None:
        judged = {"1": JUDGED, "2": {"a": {"1": 0, "2": -2}}, "3": JUDGED}
        [values] = scores_of(_with_cutoff(name), {"2": ranked(*"ab"), "3": {}}, diverse(judged)).values()
        assert values == [0, 0, 0]

    @pytest.mark.parametrize("name", NAMES)
    def test_unjudged_and_negative_documents_are_not_relevant(self, name: str) -> None:
        judged = JUDGED | {"n": {"1": -2, "9": -1}}
        text = _with_cutoff(name)
        assert (
            score_topic(text, "nbxa", judged)
            == score_topic(text, "xbna", judged)
            == score_topic(text, "ybda", JUDGED)
        )

    @pytest.mark.parametrize("name", NAMES)
    def test_subtopic_without_relevant_documents_is_ignored(self, name: str) -> None:
        more = JUDGED | {"d": {"1": 0, "8": 0, "9": -1}}
        assert score_topic(_with_cutoff(name), "bade", more) == score_topic(
            _with_cutoff(name), "bade", JUDGED
        )

    @pytest.mark.parametrize("name", NAMES)
    def test_document_relevant_to_all_subtopics_scores_1_or_its_weight(self, name: str) -> None:
        value = score_topic(_with_cutoff(name), "a", {"a": {"1": 1, "2": 3}})
        assert value == pytest.approx({"P_IA": 1 / 20, "NRBP": 1 - 0.5 * 0.5}.get(name, value), abs=1e-15)
        if name in ("alpha_nDCG", "nERR_IA", "nNRBP", "AP_IA", "StRecall"):
            assert value == 1.0

    def test_topic_missing_from_the_judgments_is_ignored(self) -> None:
        run = {"1": ranked(*"ba"), "7": ranked(*"abc")}
        assert score_of("NRBP", run, diverse({"1": JUDGED})) == score_topic("NRBP", "ba", JUDGED)

    def test_equal_subtopic_ids_of_two_topics_are_distinct(self) -> None:
        both = diverse({"1": {"a": {"1": 1}}, "2": {"a": {"1": 1}, "b": {"2": 1}}})
        assert scores_of("StRecall@1", {"1": ranked("a"), "2": ranked("a")}, both)["StRecall@1"] == [1, 0.5]

    def test_run_without_pooled_documents_and_empty_qrels_are_accepted(self) -> None:
        for name in NAMES:
            assert score_topic(_with_cutoff(name), "xyz", JUDGED) == 0
            assert scores_of(_with_cutoff(name), {}, diverse({})) == {str(parse(_with_cutoff(name))): []}


def _with_cutoff(name: str) -> str:
    return f"{name}@20" if "cutoff" in DECLARATIONS[name].parameters else name


class TestParameters:
    def test_rel_is_the_lowest_relevant_judgment(self) -> None:
        judged = {"a": {"1": 1, "2": 2}, "b": {"1": 2}, "c": {"3": 1, "2": 0}, "n": {"1": -3}}
        assert (
            score_topic("StRecall@1", "a", judged) == score_topic("StRecall(rel=1)@1", "a", judged) == 2 / 3
        )
        assert score_topic("StRecall(rel=2)@1", "a", judged) == 1 / 2
        assert score_topic("StRecall(rel=3)@1", "a", judged) == 0
        assert score_topic("P_IA(rel=0)@1", "c", judged) == 2 / 3  # a judgment of 0 is relevant
        assert score_topic("P_IA(rel=-9)@1", "n", judged) == 0  # a negative judgment is never relevant

    def test_judged_only_removes_documents_without_a_subtopic_judgment(self) -> None:
        judged = JUDGED | {"n": {"1": -1}}
        run = {"1": ranked(*"xnvb")}
        qrels = qrels_of(
            {Aspect(name="relevance", labels=range(2)): {"1": {"v": 1}}}, subtopics={"1": judged}
        )
        trec = PROFILES["trec_eval-10"]
        for name in NAMES:
            start, at, after = _with_cutoff(name).partition("@")
            text = f"{start}(judged_only=True){at}{after}"
            plain = _with_cutoff(name)
            assert score_of(text, run, qrels) == score_of(plain, {"1": ranked(*"nb")}, qrels)
            assert score_of(text, run, qrels, profile=trec) == score_of(plain, {"1": ranked("b")}, qrels)

    def test_measure_texts_equal_ir_measures(self) -> None:
        for text in (
            "alpha_nDCG(rel=2,alpha=0.3)@10",
            "alpha_DCG(judged_only=True)@5",
            "NRBP(alpha=0.1,beta=0.9)",
            "nNRBP(rel=1)",
            "StRecall@5",
            "ERR_IA@20",
            "nERR_IA@20",
            "P_IA(rel=3)@10",
        ):
            assert str(parse(text)) == text
        assert str(parse("MAP_IA(rel=2)")) == "AP_IA(rel=2)"
        assert [str(parse(f"α_{name}@10")) for name in ("nDCG", "DCG")] == ["alpha_nDCG@10", "alpha_DCG@10"]
        assert str(parse("alpha_nDCG(alpha=1/2,cap=False)@10")) == "alpha_nDCG@10"

    @pytest.mark.parametrize(
        "text", ["NRBP(beta=1)", "alpha_nDCG(alpha=1.1)@5", "ERR_IA(aspect=x)@5", "P_IA"]
    )
    def test_invalid_parameters_are_rejected(self, text: str) -> None:
        with pytest.raises(MeasureError):
            parse(text)

    @pytest.mark.parametrize("name", ["alpha_DCG", "ERR_IA"])
    def test_normalised_measure_needs_a_cutoff(self, name: str) -> None:
        for text in (name, f"{name}@{10**15}"):
            with pytest.raises(
                MeasureError, match=r"needs a cutoff of at most 1,000,000, such as @20; with norm"
            ):
                check(diverse({}), [parse(text)])
        check(diverse({}), [parse(f"{name}(normalise=False)"), parse(f"{name}@1000000")])

    def test_cam_of_a_diversity_measure_is_rejected(self) -> None:
        with pytest.raises(MeasureError, match="expected a measure of one aspect"):
            parse("CAM(of=alpha_nDCG@10)")


class TestWithoutSubtopics:
    plain = qrels_of({"1": {"a": 1}})

    @pytest.mark.parametrize("name", NAMES)
    def test_collection_without_subtopics_is_rejected_in_one_sentence(self, name: str) -> None:
        with pytest.raises(MeasureError) as refused:
            check(self.plain, [parse(_with_cutoff(name))])
        assert str(refused.value) == (
            f"{_with_cutoff(name)}: it needs judgments by subtopic, and this collection has none; "
            "add a qrels file with layout: subtopics"
        )

    def test_diversity_measure_without_a_subtopics_file_is_rejected(self, tmp_path: Path) -> None:
        text = (
            "aspects: {rel: {labels: [0, 1]}}\nqrels: [{file: q, aspect: rel}%s]\nmeasures: [alpha_nDCG@10]\n"
        )
        (tmp_path / "q").write_text("1 0 a 1\n")
        (tmp_path / "s").write_text("1 x a 1\n1 y b 1\n")
        (tmp_path / "c.yaml").write_text(text % "")
        with pytest.raises(Refused) as refused:
            read_collection(tmp_path / "c.yaml")
        [error] = refused.value.findings.errors
        assert "needs judgments by subtopic" in error.message
        (tmp_path / "c.yaml").write_text(text % ", {file: s, layout: subtopics}")
        collection = read_collection(tmp_path / "c.yaml")
        assert score_of(collection.measures[0], {"1": ranked("b", "a")}, collection.qrels) == 1.0

    def test_empty_qrels_are_accepted(self) -> None:
        aspects = (Aspect(name="relevance", labels=range(2)),)
        check(Qrels.empty(aspects, {}), [parse("alpha_nDCG@10")])
        with pytest.raises(MeasureError):
            check(Qrels.empty(aspects, {}, subtopics=False), [parse("alpha_nDCG@10")])


documents = st.sampled_from([f"d{i}" for i in range(12)])
rankings = st.lists(st.sampled_from([f"d{i}" for i in range(15)]), unique=True, max_size=15)
judgments = st.dictionaries(
    documents,
    st.dictionaries(st.sampled_from("12345"), st.integers(-1, 2), min_size=1, max_size=5),
    max_size=12,
)
alphas = st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.9, 1.0])


def _gains(order: list[str], judged: dict[str, dict[str, int]], alpha: float) -> list[float]:
    """Return the novelty gain of each document of a ranking, by definition."""
    seen: Counter[str] = Counter()
    gains = []
    for document in order:
        relevant = sorted(s for s, judgment in judged.get(document, {}).items() if judgment > 0)
        gains.append(sum((1 - alpha) ** seen[s] for s in relevant))
        seen.update(relevant)
    return gains


def _greedy(judged: dict[str, dict[str, int]], alpha: float) -> list[str]:
    """Return the greedy ideal ranking, computed one document at a time."""
    order: list[str] = []
    while left := judged.keys() - set(order):
        order.append(max(left, key=lambda d: (round(_gains([*order, d], judged, alpha)[-1], 12), d)))
    return order


class TestDiversityLaws:
    @given(judgments, rankings, alphas, st.sampled_from([1, 2, 5, 40]))
    @settings(max_examples=200, deadline=None)
    def test_scores_equal_the_definition_with_the_greedy_ideal(
        self, judged: dict[str, dict[str, int]], order: list[str], alpha: float, k: int
    ) -> None:
        gains, ideal = (_gains(ranking, judged, alpha) for ranking in (order, _greedy(judged, alpha)))
        m = len({s for labels in judged.values() for s, judgment in labels.items() if judgment > 0})
        discounts = {"alpha_nDCG": lambda r: 1 / math.log2(1 + r), "nERR_IA": lambda r: 1 / r}
        for name, discount in discounts.items():
            got, best = (
                math.fsum(g * discount(r) for r, g in enumerate(row[:k], 1)) for row in (gains, ideal)
            )
            value = score_of(f"{name}(alpha={alpha})@{k}", {"1": ranked(*order)}, diverse({"1": judged}))
            assert value == pytest.approx(got / best if best else 0, abs=1e-9)
        nrbp, best = (
            math.fsum(g * 0.8 ** (r - 1) for r, g in enumerate(values, 1)) for values in (gains, ideal)
        )
        run, qrels = {"1": ranked(*order)}, diverse({"1": judged})
        parameters = f"alpha={alpha},beta=0.8"
        assert score_of(f"nNRBP({parameters})", run, qrels) == pytest.approx(
            nrbp / best if best else 0, abs=1e-9
        )
        scaled = (1 - (1 - alpha) * 0.8) * nrbp / m if m else 0
        assert score_of(f"NRBP({parameters})", run, qrels) == pytest.approx(scaled, abs=1e-9)

    @given(judgments, alphas)
    @settings(max_examples=100, deadline=None)
    def test_greedy_ideal_scores_exactly_1(self, judged: dict[str, dict[str, int]], alpha: float) -> None:
        assume(any(judgment > 0 for labels in judged.values() for judgment in labels.values()))
        qrels, run = diverse({"1": judged}), {"1": ranked(*_greedy(judged, alpha))}
        texts = [f"{name}(alpha={alpha})" for name in ("alpha_nDCG", "nERR_IA", "nNRBP")]
        for text in [*texts, *(f"{text}@3" for text in texts[:2])]:
            assert score_of(text, run, qrels) == 1.0

    @given(judgments, rankings)
    @settings(max_examples=100, deadline=None)
    def test_capped_score_is_the_minimum_of_the_score_and_1(
        self, judged: dict[str, dict[str, int]], order: list[str]
    ) -> None:
        qrels, run = diverse({"1": judged}), {"1": ranked(*order)}
        for name in ("alpha_nDCG", "nERR_IA", "nNRBP"):
            plain = score_of(name, run, qrels)
            assert score_of(f"{name}(cap=True)", run, qrels) == min(plain, 1.0) <= 1
            assert plain <= OVER_GREEDY[1]

    @given(
        st.dictionaries(documents, st.integers(-1, 2), max_size=12),
        rankings,
        st.sampled_from([0.2, 0.5, 0.8]),
    )
    @settings(max_examples=100, deadline=None)
    def test_one_subtopic_and_alpha_0_give_the_binary_measures(
        self, judged: dict[str, int], order: list[str], beta: float
    ) -> None:
        """For example, alpha_nDCG is then binary nDCG, and NRBP is RBP."""
        binary = Aspect(name="relevance", labels=range(2))
        qrels = qrels_of(
            {binary: {"1": {d: min(grade, 1) for d, grade in judged.items()}}},
            subtopics={"1": {d: {"s": grade} for d, grade in judged.items()}},
        )
        run = {"1": ranked(*order)}
        for diversity_measure, plain in (
            ("alpha_nDCG(alpha=0)", "nDCG"),
            ("alpha_nDCG(alpha=0)@3", "nDCG@3"),
            (f"NRBP(alpha=0,beta={beta})", f"RBP(p={beta})"),
            ("AP_IA", "AP"),
            ("P_IA@4", "P@4"),
            ("StRecall@4", "Success@4"),
            ("ERR_IA(normalise=False)@4", "ERR(max_gain=1)@4"),
        ):
            assert score_of(diversity_measure, run, qrels) == pytest.approx(
                score_of(plain, run, qrels), abs=1e-14
            ), diversity_measure
