"""Tests of agreement with ir_measures 0.4.3 (and cwl_eval 1.0.12, which it calls) on random collections.

Values are compared by topic. The scores of a run are positive and different, so that both tools order
documents in the same way. Deliberate differences have separate tests at the end, each with both values.
"""

import itertools

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cupel_measures.catalogue.parser import parse
from cupel_measures.model import Aspect
from support.data.small_collections import Scored, diverse, qrels_of, ranked, score_of, scores_of

ir_measures = pytest.importorskip("ir_measures")
cwl = pytest.importorskip("cwl.ruler.cwl_ruler")

CWL = [
    *(f"INST(T={t},max_rel=3)" for t in (0.5, 1.0, 2.5)),
    *(f"INSQ(T={t},max_rel=3)" for t in (0.25, 1.0, 3.0)),
    *(f"NERR11(T={t},max_rel=3)" for t in (0.25, 1.0, 3.0)),
    *(f"BPM(T={t},max_rel=3)@{k}" for t in (0.5, 1.0, 2.9) for k in (1, 5, 2000)),
    *(f"{name}(max_rel=3)@{k}" for name in ("SDCG", "NERR8", "NERR9") for k in (1, 2, 10, 2000)),
    *(f"NERR10(p={p},max_rel=3)" for p in (0.1, 0.9, 0.99)),
    "INST(min_rel=1,max_rel=2)",
    "INSQ(min_rel=1,max_rel=3)",
    "SDCG(min_rel=1,max_rel=4)@5",
    "NERR10(min_rel=1,max_rel=4)",
    "INST(max_rel=5)",
    "RBP(rel=1)",
    "RBP(p=0.5,rel=2)",
]
PROVIDED = {
    "compat": ["Compat", "Compat(p=0.5)", "Compat(normalize=False)", "Compat(p=0.8,normalize=False)"],
    "accuracy": ["Accuracy", "Accuracy(rel=2)"],
    "pytrec_eval": ["infAP", "infAP(rel=2)"],
    "judged": ["Judged@1", "Judged@5", "Judged@20"],
    "msmarco": ["RR@1", "RR@5", "RR(rel=2)@20"],
    "cwl_eval": CWL,
}

documents = st.sampled_from([f"d{i}" for i in range(12)])
topics = st.sampled_from(["1", "10", "2"])
judgments = st.dictionaries(
    topics, st.dictionaries(documents, st.integers(-1, 3), min_size=1, max_size=12), min_size=1
)
rankings = st.lists(documents, unique=True, min_size=1, max_size=12)
runs = st.dictionaries(topics, rankings, min_size=1)


def positive(order: list[str]) -> dict[str, float]:
    """Return positive scores that rank the documents in this order."""
    return {document: float(len(order) - place) for place, document in enumerate(order)}


def theirs(provider: str, texts: list[str], judged: object, run: object) -> dict[tuple[str, str], float]:
    """Return (measure text, topic) -> value by a provider of ir_measures."""
    text_of = {ir_measures.parse_measure(text): text for text in texts}
    evaluator = ir_measures.providers.registry[provider].evaluator(list(text_of), judged)
    return {(text_of[m.measure], m.query_id): float(m.value) for m in evaluator.iter_calc(run)}


@pytest.mark.parametrize("provider", PROVIDED)
@given(judged=judgments, order=runs)
@settings(max_examples=80, deadline=None)
def test_common_measures_agree_per_topic(
    provider: str, judged: dict[str, dict[str, int]], order: dict[str, list[str]]
) -> None:
    if provider == "pytrec_eval":  # trec_eval requires a non-negative grade per topic
        judged = {topic: {**of, "d0": max(of.get("d0", 0), 0)} for topic, of in judged.items()}
    run = {topic: positive(of) for topic, of in order.items()}
    texts = PROVIDED[provider]
    expected = theirs(provider, texts, judged, _with_others(provider, judged, run))
    qrels = qrels_of({Aspect(name="relevance", labels=range(4)): judged})
    ours = scores_of([parse(text).text for text in texts], _with_others(provider, judged, run), qrels)
    for (text, topic), value in expected.items():
        if topic in judged:
            actual = ours[parse(text).text][qrels.topics.index(topic)]
            assert actual == pytest.approx(value, abs=1e-9), (text, topic)


def _with_others(provider: str, judged: dict[str, dict[str, int]], run: Scored) -> Scored:
    """Append a non-relevant document for accuracy, because ir_measures divides by zero without one."""
    if provider != "accuracy":
        return run
    return {topic: {**of, "unjudged": 0.5} for topic, of in run.items()}


@given(st.lists(st.sampled_from([0.0, 1 / 3, 2 / 3, 1.0]), max_size=40), st.sampled_from([0.5, 1.0, 4.0]))
@settings(max_examples=60, deadline=None)
def test_cwl_eval_agrees(gains: list[float], target: float) -> None:
    # The tools differ on sums that rounding leaves just below the target; see
    # test_sum_of_gains_reaches_the_target_exactly.
    assume(all(total == target or abs(total - target) > 1e-9 for total in itertools.accumulate(gains)))
    metrics = {
        f"INST(T={target})": cwl.INSTCWLMetric(target),
        f"INSQ(T={target})": cwl.INSQCWLMetric(target),
        f"BPM(T={target})@6": cwl.BPMCWLMetric(target, 6),
        "SDCG@6": cwl.NDCGCWLMetric(6),
        "NERR8@6": cwl.NERReq8CWLMetric(6),
        "NERR9@6": cwl.NERReq9CWLMetric(6),
        "NERR10(p=0.6)": cwl.NERReq10CWLMetric(0.6),
        f"NERR11(T={target})": cwl.NERReq11CWLMetric(target),
    }
    judged = {f"d{i}": round(gain * 3) for i, gain in enumerate(gains)}
    qrels = qrels_of({Aspect(name="relevance", labels=range(4)): {"1": judged}})
    values = scores_of(list(metrics), {"1": ranked(*judged)}, qrels)
    for [value], metric in zip(values.values(), metrics.values(), strict=True):
        ranking = cwl.Ranking("1", gains, [1.0] * len(gains))
        assert value == pytest.approx(metric.measure(ranking), abs=1e-9), metric.name()


def both(provider: str, text: str, judged: dict[str, int], run: dict[str, float]) -> tuple[float, float]:
    """Return the values of ir_measures and of Cupel."""
    qrels = qrels_of({Aspect(name="relevance", labels=range(4)): {"1": judged}})
    there = theirs(provider, [text], {"1": judged}, {"1": run})
    return there[text, "1"], score_of(text, {"1": run}, qrels)


class TestDeliberateDifferences:
    def test_ties_are_ordered_by_the_profile(self) -> None:
        tied = {"a": 1.0, "b": 1.0}  # Cupel ranks b first, like trec_eval
        assert both("cwl_eval", "SDCG(max_rel=1)@1", {"a": 1}, tied) == (1.0, 0.0)
        # Cupel ranks a second. The overlap of the run and the ideal is 0 at depth 1 and 1/2 at depth 2; that
        # of the ideal with itself is 1 and 1/2.
        expected = (0.95 / 2) / (1 + 0.95 / 2)
        assert both("compat", "Compat", {"a": 1}, tied) == (1.0, pytest.approx(expected, abs=1e-12))

    def test_accuracy_includes_topics_without_retrieved_relevant_documents(self) -> None:
        assert theirs("accuracy", ["Accuracy"], {"1": {"a": 1}}, {"1": {"x": 1.0}}) == {}
        assert score_of("Accuracy", {"1": {"x": 1.0}}, qrels_of({"1": {"a": 1}})) == 0.0

    def test_accuracy_of_relevant_documents_only_is_1(self) -> None:
        with pytest.raises(ZeroDivisionError):
            theirs("accuracy", ["Accuracy"], {"1": {"a": 1}}, {"1": {"a": 1.0}})
        assert score_of("Accuracy", {"1": {"a": 1.0}}, qrels_of({"1": {"a": 1}})) == 1.0

    def test_retrieved_documents_with_negative_scores_precede_others_in_the_ideal(self) -> None:
        # The gains are equal, r is retrieved and u is not. ir_measures gives u the score 0.0, so u precedes r
        # in its ideal.
        peer_score, ours = both("compat", "Compat(p=0.5)", {"u": 1, "r": 1}, {"r": -1.0})
        # At depths 1 and 2, the overlap is r, from the place of r in the ideal.
        assert peer_score == pytest.approx((0.5 / 2) / (1 + 0.5), abs=1e-12)
        assert ours == pytest.approx((1 + 0.5 / 2) / (1 + 0.5), abs=1e-12)

    def test_target_that_gives_probabilities_above_1_is_refused(self) -> None:
        metric = cwl.INSTCWLMetric(0.1)
        assert metric.c_vector(cwl.Ranking("1", [1.0], [1.0]))[0] == pytest.approx(16.0)
        with pytest.raises(ValueError, match=r"a number from 0\.5, got 0\.1"):
            parse("INST(T=0.1,max_rel=1)")

    def test_sum_of_gains_reaches_the_target_exactly(self) -> None:
        judged = {f"d{i}": 1 for i in range(10)}
        run = positive([*judged, "unjudged"])
        qrels = qrels_of({Aspect(name="relevance", labels=range(11)): {"1": judged}})
        there = theirs("cwl_eval", ["BPM(max_rel=10)@11"], {"1": judged}, {"1": run})
        assert there["BPM(max_rel=10)@11", "1"] == pytest.approx(1 / 11)
        assert score_of("BPM(max_rel=10)@11", {"1": run}, qrels) == pytest.approx(1 / 10)

    def test_largest_gain_defaults_to_the_largest_gain_of_the_scale(self) -> None:
        with pytest.raises(TypeError, match="not supported between instances"):
            theirs("cwl_eval", ["INST"], {"1": {"a": 3}}, {"1": {"a": 1.0}})
        peer_score, ours = both("cwl_eval", "INST(max_rel=3)", {"a": 3}, {"a": 1.0})
        assert score_of("INST", {"1": {"a": 1.0}}, qrels_of({"1": {"a": 3}})) == ours
        assert ours == pytest.approx(peer_score)

    def test_negative_grade_is_pooled_as_in_trec_eval(self) -> None:
        peer_score, ours = both("pytrec_eval", "infAP", {"n": -1, "a": 1}, {"n": 2.0, "a": 1.0})
        assert ours == pytest.approx(peer_score) == pytest.approx(0.75)

    def test_rr_with_and_without_cutoff_order_ties_alike(self) -> None:
        tied = {"a": 1.0, "b": 1.0}  # Cupel ranks b first, under every name
        peer_score, ours = both("pytrec_eval", "RR", {"a": 1}, tied)
        peer_cut, ours_cut = both("msmarco", "RR@10", {"a": 1}, tied)
        assert (peer_score, peer_cut) == (0.5, 1.0)
        assert ours == ours_cut == 0.5

    def test_relevance_level_defaults_to_the_threshold_of_the_aspect(self) -> None:
        judged, run = {"a": 1, "b": 2}, {"1": {"a": 2.0, "b": 1.0}}
        there = theirs("pytrec_eval", ["RR"], {"1": judged}, run)["RR", "1"]
        strict = qrels_of({Aspect(name="relevance", labels=range(3), threshold=2): {"1": judged}})
        assert there == 1.0
        assert [score_of(text, run, strict) for text in ("RR", "RR(rel=1)", "RR(rel=2)")] == [0.5, 1.0, 0.5]

    def test_err_can_use_the_largest_gain_of_the_scale(self) -> None:
        """ir_measures calls the Perl script gdeval, whose ERR always divides by 2^4."""
        gdeval = (2**2 - 1) / 2**4
        qrels = qrels_of({Aspect(name="relevance", labels=range(3)): {"1": {"a": 2}}})
        values = [score_of(text, {"1": {"a": 1.0}}, qrels) for text in ("ERR@20", "ERR(max_gain=scale)@20")]
        assert values == [gdeval, 3 / 4]

    def test_rbp_needs_no_level_and_can_have_a_cutoff(self) -> None:
        for text in ("RBP", "RBP@10"):
            with pytest.raises(ValueError, match="Unsupported measures"):
                ir_measures.evaluator([ir_measures.parse_measure(text)], {"1": {"a": 1}})
            assert score_of(text, {"1": {"a": 1.0}}, qrels_of({"1": {"a": 1}})) == pytest.approx(0.2)

    def test_order_of_parameters_does_not_matter(self) -> None:
        texts = ("RBP(p=0.9,rel=2)", "RBP(rel=2,p=0.9)")
        first, second = (ir_measures.parse_measure(text) for text in texts)
        assert first != second
        assert parse(texts[0]) == parse(texts[1])

    def test_integer_is_accepted_as_a_float_parameter(self) -> None:
        with pytest.raises(AssertionError, match="invalid param beta=2"):
            ir_measures.evaluator([ir_measures.parse_measure("SetF(beta=2)")], {"1": {"a": 1}})
        assert parse("SetF(beta=2)") == parse("SetF(beta=2.0)")

    def test_text_keeps_identity_gains(self) -> None:
        text = "nDCG(gains={0:0,1:1})@10"
        assert str(ir_measures.parse_measure(text)) == "nDCG(gains={})@10"
        assert str(parse(text)) == text
        assert parse("nDCG(gains={})@10") == parse("nDCG@10")

    def test_variants_of_a_diversity_measure_in_one_call_are_correct(self) -> None:
        """ir_measures iterates over a generator twice, so its value for one of two variants is 0."""
        texts = ["alpha_nDCG(alpha=0.1)@10", "alpha_nDCG(alpha=0.9)@10"]
        judged = {"1": {"a": {"s": 1}, "b": {"s": 1, "t": 1}}}
        rows = [ir_measures.Qrel("1", d, g, s) for d, of in judged["1"].items() for s, g in of.items()]
        run = {"1": {"a": 2.0, "b": 1.0}}
        together = theirs("pyndeval", texts, rows, run)
        alone = {text: theirs("pyndeval", [text], rows, run)[text, "1"] for text in texts}
        assert sorted(together[text, "1"] == alone[text] for text in texts) == [False, True]
        assert 0.0 in together.values()
        ours = scores_of(texts, run, diverse(judged))
        assert {text: of for text, [of] in ours.items()} == pytest.approx(alone)

    def test_diversity_measures_support_judged_only(self) -> None:
        text = "alpha_nDCG(judged_only=True)@10"
        rows = [ir_measures.Qrel("1", "a", 1, "s")]
        with pytest.raises(TypeError):
            theirs("pyndeval", [text], rows, {"1": {"u": 2.0, "a": 1.0}})
        [[ours]] = scores_of(text, {"1": {"u": 2.0, "a": 1.0}}, diverse({"1": {"a": {"s": 1}}})).values()
        assert ours == 1.0

    def test_measures_with_different_gains_in_one_call_are_correct(self) -> None:
        """ir_measures passes two measures to pytrec_eval as one; the hash seed decides which one."""
        texts = ["nDCG@10", "nDCG(gains={1:5})@10"]
        judged, run = {"a": 1, "b": 2}, {"1": {"a": 2.0, "b": 1.0}}
        together = theirs("pytrec_eval", texts, {"1": judged}, run)
        alone = {text: theirs("pytrec_eval", [text], {"1": judged}, run)[text, "1"] for text in texts}
        ours = {text: of for text, [of] in scores_of(texts, run, qrels_of({"1": judged})).items()}
        assert ours == pytest.approx(alone)
        assert len(set(alone.values())) == 2
        assert all(
            value in (0.0, *(pytest.approx(expected) for expected in alone.values()))
            for value in together.values()
        )
