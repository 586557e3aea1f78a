"""Agreement with ir_measures 0.4.3 (and cwl_eval 1.0.12, which it calls) on random collections, per topic.

Scores of a run are positive and differ, so that both order documents alike; what differs on purpose is in
tests of its own at the end, each with both values.
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
    """Scores above 0 that put documents in this order."""
    return {document: float(len(order) - place) for place, document in enumerate(order)}


def theirs(provider: str, texts: list[str], judged: object, run: object) -> dict[tuple[str, str], float]:
    """Text and topic -> the value that one of ir_measures' providers gives."""
    names = {ir_measures.parse_measure(text): text for text in texts}
    evaluator = ir_measures.providers.registry[provider].evaluator(list(names), judged)
    return {(names[value.measure], value.query_id): float(value.value) for value in evaluator.iter_calc(run)}


@pytest.mark.parametrize("provider", PROVIDED)
@given(judged=judgments, order=runs)
@settings(max_examples=80, deadline=None)
def test_every_measure_that_both_have_agrees_per_topic(
    provider: str, judged: dict[str, dict[str, int]], order: dict[str, list[str]]
) -> None:
    if provider == "pytrec_eval":  # trec_eval wants a judgment that is not negative
        judged = {topic: {**of, "d0": max(of.get("d0", 0), 0)} for topic, of in judged.items()}
    run = {topic: positive(of) for topic, of in order.items()}
    texts = PROVIDED[provider]
    found = theirs(provider, texts, judged, _with_others(provider, judged, run))
    qrels = qrels_of({Aspect(name="relevance", labels=range(4)): judged})
    ours = scores_of([parse(text).text for text in texts], _with_others(provider, judged, run), qrels)
    for (text, topic), value in found.items():
        if topic in judged:
            mine = ours[parse(text).text][qrels.topics.index(topic)]
            assert mine == pytest.approx(value, abs=1e-9), (text, topic)


def _with_others(provider: str, judged: dict[str, dict[str, int]], run: Scored) -> Scored:
    """For accuracy a last document that is not relevant: without one ir_measures divides by zero."""
    if provider != "accuracy":
        return run
    return {topic: {**of, "unjudged": 0.5} for topic, of in run.items()}


@given(st.lists(st.sampled_from([0.0, 1 / 3, 2 / 3, 1.0]), max_size=40), st.sampled_from([0.5, 1.0, 4.0]))
@settings(max_examples=60, deadline=None)
def test_cwl_eval_itself_gives_the_same(gains: list[float], target: float) -> None:
    # a sum of thirds that rounding leaves just below the target is a difference of its own, shown below
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
    found = scores_of(list(metrics), {"1": ranked(*judged)}, qrels)
    for [value], metric in zip(found.values(), metrics.values(), strict=True):
        ranking = cwl.Ranking("1", gains, [1.0] * len(gains))
        assert value == pytest.approx(metric.measure(ranking), abs=1e-9), metric.name()


def both(provider: str, text: str, judged: dict[str, int], run: dict[str, float]) -> tuple[float, float]:
    """A measure's value there and here."""
    qrels = qrels_of({Aspect(name="relevance", labels=range(4)): {"1": judged}})
    there = theirs(provider, [text], {"1": judged}, {"1": run})
    return there[text, "1"], score_of(text, {"1": run}, qrels)


class TestDeliberateDifferences:
    def test_ties_follow_the_profile_here_and_the_order_of_lines_or_ascending_ids_there(self) -> None:
        tied = {"a": 1.0, "b": 1.0}  # b comes first here, as in trec_eval
        assert both("cwl_eval", "SDCG(max_rel=1)@1", {"a": 1}, tied) == (1.0, 0.0)
        # here a is second: the overlap is 0, then 1/2; the ideal's with itself is 1, then 1/2
        expected = (0.95 / 2) / (1 + 0.95 / 2)
        assert both("compat", "Compat", {"a": 1}, tied) == (1.0, pytest.approx(expected, abs=1e-12))

    def test_a_topic_without_any_relevant_document_retrieved_is_no_topic_of_their_accuracy(self) -> None:
        assert theirs("accuracy", ["Accuracy"], {"1": {"a": 1}}, {"1": {"x": 1.0}}) == {}
        assert score_of("Accuracy", {"1": {"x": 1.0}}, qrels_of({"1": {"a": 1}})) == 0.0

    def test_their_accuracy_of_a_run_of_relevant_documents_alone_divides_by_zero(self) -> None:
        with pytest.raises(ZeroDivisionError):
            theirs("accuracy", ["Accuracy"], {"1": {"a": 1}}, {"1": {"a": 1.0}})
        assert score_of("Accuracy", {"1": {"a": 1.0}}, qrels_of({"1": {"a": 1}})) == 1.0

    def test_negative_scores_do_not_put_retrieved_documents_behind_others_in_the_ideal(self) -> None:
        # equal gains: r is retrieved, u is not; there u has score 0.0 and is ideal before r
        theirs, ours = both("compat", "Compat(p=0.5)", {"u": 1, "r": 1}, {"r": -1.0})
        # depths 1 and 2; both overlap in one document from its place in the ideal on
        assert theirs == pytest.approx((0.5 / 2) / (1 + 0.5), abs=1e-12)
        assert ours == pytest.approx((1 + 0.5 / 2) / (1 + 0.5), abs=1e-12)

    def test_a_target_below_one_half_is_refused_where_chances_of_going_on_exceed_one(self) -> None:
        metric = cwl.INSTCWLMetric(0.1)
        assert metric.c_vector(cwl.Ranking("1", [1.0], [1.0]))[0] == pytest.approx(16.0)
        with pytest.raises(ValueError, match=r"a number from 0\.5, got 0\.1"):
            parse("INST(T=0.1,max_rel=1)")

    def test_ten_gains_of_a_tenth_are_enough_here_and_fall_short_there(self) -> None:
        judged = {f"d{i}": 1 for i in range(10)}
        run = positive([*judged, "unjudged"])
        qrels = qrels_of({Aspect(name="relevance", labels=range(11)): {"1": judged}})
        there = theirs("cwl_eval", ["BPM(max_rel=10)@11"], {"1": judged}, {"1": run})
        assert there["BPM(max_rel=10)@11", "1"] == pytest.approx(1 / 11)
        assert score_of("BPM(max_rel=10)@11", {"1": run}, qrels) == pytest.approx(1 / 10)

    def test_the_greatest_gain_is_the_scales_where_ir_measures_has_to_be_told(self) -> None:
        with pytest.raises(TypeError, match="not supported between instances"):
            theirs("cwl_eval", ["INST"], {"1": {"a": 3}}, {"1": {"a": 1.0}})
        peer_score, ours = both("cwl_eval", "INST(max_rel=3)", {"a": 3}, {"a": 1.0})
        assert score_of("INST", {"1": {"a": 1.0}}, qrels_of({"1": {"a": 3}})) == ours
        assert ours == pytest.approx(peer_score)

    def test_a_negative_grade_is_pooled_here_and_in_trec_eval_alike(self) -> None:
        theirs, ours = both("pytrec_eval", "infAP", {"n": -1, "a": 1}, {"n": 2.0, "a": 1.0})
        assert ours == pytest.approx(theirs) == pytest.approx(0.75)

    def test_both_names_of_the_reciprocal_rank_order_ties_alike_here(self) -> None:
        tied = {"a": 1.0, "b": 1.0}  # b is first here, under every name
        theirs, ours = both("pytrec_eval", "RR", {"a": 1}, tied)
        there_cut, here_cut = both("msmarco", "RR@10", {"a": 1}, tied)
        assert (theirs, there_cut) == (0.5, 1.0)
        assert ours == here_cut == 0.5

    def test_the_level_of_relevance_is_the_aspects_unless_it_is_given(self) -> None:
        judged, run = {"a": 1, "b": 2}, {"1": {"a": 2.0, "b": 1.0}}
        there = theirs("pytrec_eval", ["RR"], {"1": judged}, run)["RR", "1"]
        strict = qrels_of({Aspect(name="relevance", labels=range(3), threshold=2): {"1": judged}})
        assert there == 1.0
        assert [score_of(text, run, strict) for text in ("RR", "RR(rel=1)", "RR(rel=2)")] == [0.5, 1.0, 0.5]

    def test_an_error_is_of_a_constant_scale_there_and_of_the_own_one_here_if_wished(self) -> None:
        """ir_measures' ERR is gdeval's, a program in Perl: 2^4 whatever the scale."""
        gdeval = (2**2 - 1) / 2**4
        qrels = qrels_of({Aspect(name="relevance", labels=range(3)): {"1": {"a": 2}}})
        found = [score_of(text, {"1": {"a": 1.0}}, qrels) for text in ("ERR@20", "ERR(max_gain=scale)@20")]
        assert found == [gdeval, 3 / 4]

    def test_rank_biased_precision_needs_no_level_and_may_have_a_cutoff_here(self) -> None:
        for text in ("RBP", "RBP@10"):
            with pytest.raises(ValueError, match="Unsupported measures"):
                ir_measures.evaluator([ir_measures.parse_measure(text)], {"1": {"a": 1}})
            assert score_of(text, {"1": {"a": 1.0}}, qrels_of({"1": {"a": 1}})) == pytest.approx(0.2)

    def test_parameters_in_another_order_are_another_measure_there(self) -> None:
        texts = ("RBP(p=0.9,rel=2)", "RBP(rel=2,p=0.9)")
        first, second = (ir_measures.parse_measure(text) for text in texts)
        assert first != second
        assert parse(texts[0]) == parse(texts[1])

    def test_a_whole_number_is_no_float_there(self) -> None:
        with pytest.raises(AssertionError, match="invalid param beta=2"):
            ir_measures.evaluator([ir_measures.parse_measure("SetF(beta=2)")], {"1": {"a": 1}})
        assert parse("SetF(beta=2)") == parse("SetF(beta=2.0)")

    def test_gains_of_an_identity_are_dropped_from_the_text_there(self) -> None:
        text = "nDCG(gains={0:0,1:1})@10"
        assert str(ir_measures.parse_measure(text)) == "nDCG(gains={})@10"
        assert str(parse(text)) == text
        assert parse("nDCG(gains={})@10") == parse("nDCG@10")

    def test_variants_of_a_diversity_measure_in_one_call_never_lose_their_values(self) -> None:
        """ir_measures reads a generator twice: the second of two alphas is 0."""
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

    def test_judged_only_is_for_diversity_measures_too_here(self) -> None:
        text = "alpha_nDCG(judged_only=True)@10"
        rows = [ir_measures.Qrel("1", "a", 1, "s")]
        with pytest.raises(TypeError):
            theirs("pyndeval", [text], rows, {"1": {"u": 2.0, "a": 1.0}})
        [[ours]] = scores_of(text, {"1": {"u": 2.0, "a": 1.0}}, diverse({"1": {"a": {"s": 1}}})).values()
        assert ours == 1.0

    def test_two_sets_of_gains_in_one_call_have_values_of_their_own_here(self) -> None:
        """There both are one measure to pytrec_eval, and which one depends on the hash seed (2.3)."""
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
