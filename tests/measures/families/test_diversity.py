"""Tests of the measures of novelty and diversity: worked examples, edge cases and laws."""

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
NAMES = [name for name, one in DECLARATIONS.items() if one.subtopics and not one.texts]
JUDGED = {"a": {"1": 1, "2": 1}, "b": {"1": 1}, "c": {"2": 1, "3": 1}, "d": {"1": 0}, "e": {"3": 1}}


def of(text: str, order: str, judged: dict[str, dict[str, int]]) -> float:
    """A measure of one topic, with one document a letter."""
    return score_of(text, {"1": ranked(*order)}, diverse({"1": judged}))


class TestDiversityExample:
    """Hui, PIKM 2014, eq. 1-3: run b, a, x, c, d, e; the ideal order is c, a, e, b, d."""

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
    def test_every_value_is_as_printed(self, text: str, expected: float) -> None:
        assert of(text, "baxcde", JUDGED) == pytest.approx(expected, abs=CLOSE)

    def test_novelty_gains_are_as_printed(self) -> None:
        sums = [of(f"alpha_DCG(normalise=False)@{k}", "baxcde", JUDGED) for k in range(1, 7)]
        gains = [
            (b - a) * math.log2(1 + k) for k, (a, b) in enumerate(zip([0, *sums], sums, strict=False), 1)
        ]
        assert gains == pytest.approx([1, 1.5, 0, 1.5, 0, 0.5], abs=1e-12)

    def test_the_ideal_order_is_as_printed(self) -> None:
        qrels = diverse({"1": JUDGED})
        ideal = SubtopicPool.of(qrels, negatives_judged=True).ideal(None, 0.5, None).hits
        assert [qrels.documents[i] for i in ideal.document] == [*"caeb"]  # d, with no gain, is left out
        assert ideal.rank.tolist() == [1, 2, 3, 4]
        assert [of(name, "caebd", JUDGED) for name in ("alpha_nDCG", "nERR_IA", "nNRBP")] == [1, 1, 1]

    def test_ndevals_normalisation_orders_runs_as_the_mean_does(self) -> None:
        factor = 2 / math.fsum(2 ** (1 - r) / r for r in range(1, 21))
        for order in ("baxcde", "caebd", "xxe", "d"):
            plain = of("ERR_IA(normalise=False)@20", order, JUDGED)
            assert of("ERR_IA@20", order, JUDGED) == pytest.approx(factor * plain, abs=1e-15)

    def test_the_literal_reading_is_1_minus_alpha_times_the_other(self) -> None:
        for alpha in (0, 0.3, 1):
            literal, plain = (
                of(f"NRBP(alpha={alpha}{more})", "baxcde", JUDGED) for more in (",literal=True", "")
            )
            assert literal == pytest.approx((1 - alpha) * plain, abs=1e-15)


def test_alpha_is_the_probability_that_a_relevant_document_satisfies() -> None:
    # ERR of subtopic 1 for b, a: 0.3 + 0.3 * 0.7 / 2; of 2: 0.3 / 2; of 3: 0
    expected = (0.3 + 0.3 * 0.7 / 2 + 0.3 / 2) / 3
    assert of("ERR_IA(alpha=0.3,normalise=False)", "ba", JUDGED) == pytest.approx(expected, abs=1e-15)


def test_intent_aware_measures_are_means_over_the_subtopics() -> None:
    # R of 1, 2, 3 is 2 each; ranks of 1: 1 2; of 2: 2 4; of 3: 4 6
    ap = ((1 + 1) / 2 + (1 / 2 + 2 / 4) / 2 + (1 / 4 + 2 / 6) / 2) / 3
    assert of("AP_IA", "baxcde", JUDGED) == pytest.approx(ap, abs=1e-15)
    assert of("P_IA@4", "baxcde", JUDGED) == pytest.approx(5 / 12, abs=1e-15)
    assert of("P_IA@100", "baxcde", JUDGED) == pytest.approx(6 / 300, abs=1e-15)
    assert [of(f"StRecall@{k}", "baxcde", JUDGED) for k in (1, 2, 3, 4, 99)] == [1 / 3, 2 / 3, 2 / 3, 1, 1]
    assert of("StRecall", "baxcde", JUDGED) == 1


class TestAboveTheIdeal:
    """All documents first gain 3. The greedy ideal takes z because of its id, and misses b and c."""

    judged = {  # noqa: RUF012
        "b": dict.fromkeys("123", 1),
        "c": dict.fromkeys("456", 1),
        "z": dict.fromkeys("124", 1),
    }

    def test_values_above_1_are_unchanged(self) -> None:
        expected = (3 + 3 / math.log2(3)) / (3 + 2.5 / math.log2(3))
        assert of("alpha_nDCG@2", "bc", self.judged) == pytest.approx(expected, abs=1e-15)
        assert of("nERR_IA@2", "bc", self.judged) == pytest.approx((3 + 3 / 2) / (3 + 2.5 / 2), abs=1e-15)
        assert of("nNRBP", "bcz", self.judged) == pytest.approx(
            (3 + 3 / 2 + 1.5 / 4) / (3 + 2.5 / 2 + 2 / 4), abs=1e-15
        )

    def test_cap_limits_values_to_1(self) -> None:
        for text in ("alpha_nDCG(cap=True)@2", "nERR_IA(cap=True)@2", "nNRBP(cap=True)"):
            assert of(text, "bcz", self.judged) == 1.0
            assert 0 < of(text, "xb", self.judged) < 1

    def test_values_above_the_ideal_are_detected(self) -> None:
        qrels = diverse({"1": self.judged, "2": self.judged})
        run = {"1": ranked(*"bc"), "2": ranked(*"zc")}
        (values,) = evaluate(qrels, joined_of(run, qrels), [parse("alpha_nDCG@2")]).values.values()
        assert above_ideal(values).tolist() == [True, False]


class TestEdgeCases:
    """Edge cases of diversity measures."""

    @pytest.mark.parametrize("name", NAMES)
    def test_nothing_relevant_an_empty_run_and_a_missing_topic_score_0(self, name: str) -> None:
        judged = {"1": JUDGED, "2": {"a": {"1": 0, "2": -2}}, "3": JUDGED}
        [values] = scores_of(_complete(name), {"2": ranked(*"ab"), "3": {}}, diverse(judged)).values()
        assert values == [0, 0, 0]

    @pytest.mark.parametrize("name", NAMES)
    def test_unjudged_and_negative_documents_are_relevant_to_nothing(self, name: str) -> None:
        judged = JUDGED | {"n": {"1": -2, "9": -1}}
        text = _complete(name)
        assert of(text, "nbxa", judged) == of(text, "xbna", judged) == of(text, "ybda", JUDGED)

    @pytest.mark.parametrize("name", NAMES)
    def test_a_subtopic_without_relevant_documents_does_not_count(self, name: str) -> None:
        more = JUDGED | {"d": {"1": 0, "8": 0, "9": -1}}
        assert of(_complete(name), "bade", more) == of(_complete(name), "bade", JUDGED)

    @pytest.mark.parametrize("name", NAMES)
    def test_document_on_all_subtopics_has_its_usual_score(self, name: str) -> None:
        value = of(_complete(name), "a", {"a": {"1": 1, "2": 3}})
        assert value == pytest.approx({"P_IA": 1 / 20, "NRBP": 1 - 0.5 * 0.5}.get(name, value), abs=1e-15)
        if name in ("alpha_nDCG", "nERR_IA", "nNRBP", "AP_IA", "StRecall"):
            assert value == 1.0

    def test_a_topic_that_only_the_run_has_is_ignored(self) -> None:
        run = {"1": ranked(*"ba"), "7": ranked(*"abc")}
        assert score_of("NRBP", run, diverse({"1": JUDGED})) == of("NRBP", "ba", JUDGED)

    def test_the_same_id_in_two_topics_is_two_subtopics(self) -> None:
        both = diverse({"1": {"a": {"1": 1}}, "2": {"a": {"1": 1}, "b": {"2": 1}}})
        assert scores_of("StRecall@1", {"1": ranked("a"), "2": ranked("a")}, both)["StRecall@1"] == [1, 0.5]

    def test_a_run_without_any_pooled_document_and_no_topics_at_all_are_fine(self) -> None:
        for name in NAMES:
            assert of(_complete(name), "xyz", JUDGED) == 0
            assert scores_of(_complete(name), {}, diverse({})) == {str(parse(_complete(name))): []}


def _complete(name: str) -> str:
    return f"{name}@20" if "cutoff" in DECLARATIONS[name].parameters else name


class TestParameters:
    def test_rel_is_the_least_judgment_that_counts(self) -> None:
        judged = {"a": {"1": 1, "2": 2}, "b": {"1": 2}, "c": {"3": 1, "2": 0}, "n": {"1": -3}}
        assert of("StRecall@1", "a", judged) == of("StRecall(rel=1)@1", "a", judged) == 2 / 3
        assert of("StRecall(rel=2)@1", "a", judged) == 1 / 2
        assert of("StRecall(rel=3)@1", "a", judged) == 0
        assert of("P_IA(rel=0)@1", "c", judged) == 2 / 3  # a judgment of 0 counts then
        assert of("P_IA(rel=-9)@1", "n", judged) == 0  # a negative one never does

    def test_judged_only_passes_over_documents_that_no_subtopic_knows(self) -> None:
        judged = JUDGED | {"n": {"1": -1}}
        run = {"1": ranked(*"xnvb")}
        qrels = qrels_of({Aspect("relevance", range(2)): {"1": {"v": 1}}}, subtopics={"1": judged})
        trec = PROFILES["trec_eval-10"]
        for name in NAMES:
            start, at, after = _complete(name).partition("@")
            text = f"{start}(judged_only=True){at}{after}"
            plain = _complete(name)
            assert score_of(text, run, qrels) == score_of(plain, {"1": ranked(*"nb")}, qrels)
            assert score_of(text, run, qrels, profile=trec) == score_of(plain, {"1": ranked("b")}, qrels)

    def test_texts_are_those_of_ir_measures(self) -> None:
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
    def test_a_normalised_value_needs_a_cutoff(self, name: str) -> None:
        for text in (name, f"{name}@{10**15}"):
            with pytest.raises(MeasureError, match=r"needs a cutoff of at most 1,000,000, such as @20; norm"):
                check(diverse({}), [parse(text)])
        check(diverse({}), [parse(f"{name}(normalise=False)"), parse(f"{name}@1000000")])

    def test_measures_of_one_aspect_are_rejected(self) -> None:
        with pytest.raises(MeasureError, match="expected a measure of one aspect"):
            parse("CAM(of=alpha_nDCG@10)")


class TestWithoutSubtopics:
    plain = qrels_of({"1": {"a": 1}})

    @pytest.mark.parametrize("name", NAMES)
    def test_a_collection_is_refused_in_one_sentence(self, name: str) -> None:
        with pytest.raises(MeasureError) as refused:
            check(self.plain, [parse(_complete(name))])
        assert str(refused.value) == (
            f"{_complete(name)}: it needs judgments by subtopic, and this collection has none; "
            "add a qrels file with layout: subtopics"
        )

    def test_a_plan_is_refused_where_no_file_is_of_subtopics(self, tmp_path: Path) -> None:
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

    def test_qrels_without_any_judgment_are_accepted(self) -> None:
        aspects = (Aspect("relevance", range(2)),)
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
    """NG of each document of a ranking, as defined."""
    seen: Counter[str] = Counter()
    gains = []
    for document in order:
        relevant = sorted(s for s, judgment in judged.get(document, {}).items() if judgment > 0)
        gains.append(sum((1 - alpha) ** seen[s] for s in relevant))
        seen.update(relevant)
    return gains


def _greedy(judged: dict[str, dict[str, int]], alpha: float) -> list[str]:
    """The ideal ranking, a document at a time."""
    order: list[str] = []
    while left := judged.keys() - set(order):
        order.append(max(left, key=lambda d: (round(_gains([*order, d], judged, alpha)[-1], 12), d)))
    return order


class TestLaws:
    @given(judgments, rankings, alphas, st.sampled_from([1, 2, 5, 40]))
    @settings(max_examples=200, deadline=None)
    def test_values_are_those_of_the_definition_with_its_greedy_ideal(
        self, judged: dict[str, dict[str, int]], order: list[str], alpha: float, k: int
    ) -> None:
        gains, ideal = (_gains(one, judged, alpha) for one in (order, _greedy(judged, alpha)))
        m = len({s for of in judged.values() for s, judgment in of.items() if judgment > 0})
        discounts = {"alpha_nDCG": lambda r: 1 / math.log2(1 + r), "nERR_IA": lambda r: 1 / r}
        for name, discount in discounts.items():
            got, best = (
                math.fsum(g * discount(r) for r, g in enumerate(one[:k], 1)) for one in (gains, ideal)
            )
            value = score_of(f"{name}(alpha={alpha})@{k}", {"1": ranked(*order)}, diverse({"1": judged}))
            assert value == pytest.approx(got / best if best else 0, abs=1e-9)
        nrbp, best = (math.fsum(g * 0.8 ** (r - 1) for r, g in enumerate(one, 1)) for one in (gains, ideal))
        run, qrels = {"1": ranked(*order)}, diverse({"1": judged})
        parameters = f"alpha={alpha},beta=0.8"
        assert score_of(f"nNRBP({parameters})", run, qrels) == pytest.approx(
            nrbp / best if best else 0, abs=1e-9
        )
        scaled = (1 - (1 - alpha) * 0.8) * nrbp / m if m else 0
        assert score_of(f"NRBP({parameters})", run, qrels) == pytest.approx(scaled, abs=1e-9)

    @given(judgments, alphas)
    @settings(max_examples=100, deadline=None)
    def test_the_greedy_ideal_scores_1_to_the_last_bit(
        self, judged: dict[str, dict[str, int]], alpha: float
    ) -> None:
        assume(any(judgment > 0 for of in judged.values() for judgment in of.values()))
        qrels, run = diverse({"1": judged}), {"1": ranked(*_greedy(judged, alpha))}
        texts = [f"{name}(alpha={alpha})" for name in ("alpha_nDCG", "nERR_IA", "nNRBP")]
        for text in [*texts, *(f"{one}@3" for one in texts[:2])]:
            assert score_of(text, run, qrels) == 1.0

    @given(judgments, rankings)
    @settings(max_examples=100, deadline=None)
    def test_cap_is_the_least_of_the_value_and_1(
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
    def test_with_one_subtopic_and_alpha_0_they_are_the_plain_binary_measures(
        self, judged: dict[str, int], order: list[str], beta: float
    ) -> None:
        """alpha_nDCG is then binary nDCG, NRBP is RBP, and so on."""
        binary = Aspect("relevance", range(2))
        qrels = qrels_of(
            {binary: {"1": {d: min(grade, 1) for d, grade in judged.items()}}},
            subtopics={"1": {d: {"s": grade} for d, grade in judged.items()}},
        )
        run = {"1": ranked(*order)}
        for diverse_one, plain in (
            ("alpha_nDCG(alpha=0)", "nDCG"),
            ("alpha_nDCG(alpha=0)@3", "nDCG@3"),
            (f"NRBP(alpha=0,beta={beta})", f"RBP(p={beta})"),
            ("AP_IA", "AP"),
            ("P_IA@4", "P@4"),
            ("StRecall@4", "Success@4"),
            ("ERR_IA(normalise=False)@4", "ERR(max_gain=1)@4"),
        ):
            assert score_of(diverse_one, run, qrels) == pytest.approx(
                score_of(plain, run, qrels), abs=1e-14
            ), diverse_one
