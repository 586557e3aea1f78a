"""Tests that ir_measures 0.4.3 calculates with Cupel what it calculates with pytrec_eval."""

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import cupel_measures as cupel

ir_measures = pytest.importorskip("ir_measures")
pytest.importorskip("pytrec_eval")

from cupel_measures.interop.ir_measures import CupelProvider, register  # noqa: E402

Qrel, ScoredDoc = ir_measures.Qrel, ir_measures.ScoredDoc

WITH_LEVEL = [
    *("P(rel={})@3", "P(rel={},judged_only=True)@3", "RR(rel={})", "RR(rel={},judged_only=True)"),
    *("Rprec(rel={})", "Rprec(rel={},judged_only=True)", "AP(rel={})", "AP(rel={})@4", "R(rel={})@5"),
    *("AP(rel={},judged_only=True)@4", "R(rel={},judged_only=True)@5", "Bpref(rel={})", "NumRet(rel={})"),
    *("SetAP(rel={})", "SetAP(rel={},judged_only=True)", "SetF(rel={})", "SetF(rel={},beta=2.0)"),
    *("SetF(rel={},judged_only=True)", "SetP(rel={})", "SetP(rel={},judged_only=True)", "infAP(rel={})"),
    *(
        "SetP(rel={},relative=True)",
        "SetR(rel={})",
        "Success(rel={})@1",
        "Success(rel={},judged_only=True)@2",
    ),
]
WITHOUT_LEVEL = [
    *("nDCG", "nDCG@5", "nDCG(judged_only=True)@5", "nDCG(judged_only=True)", "nDCG(gains={1:3,2:9})@4"),
    *("NumRet", "NumQ", "NumRel", "IPrec@0.3", "IPrec@0.1", "IPrec(judged_only=True)@0.2"),
]
TEXTS = [*(text.format(level) for level in (1, 2) for text in WITH_LEVEL), *WITHOUT_LEVEL]

Judged = dict[str, dict[str, int]]
Scored = dict[str, dict[str, float]]


@pytest.fixture(scope="module")
def collections() -> list[tuple[Judged, Scored]]:
    """Return judgments and runs with ties, unjudged documents, and topics that one of both lacks."""
    made = []
    for seed in range(4):
        chosen = random.Random(seed)
        documents = [f"d{i}" for i in range(25)]
        judged = {
            str(topic): {
                "d1": 1,
                **{d: chosen.choice([-1, 0, 0, 1, 2]) for d in chosen.sample(documents, 15)},
            }
            for topic in range(4)
        }
        run = {
            str(topic): {d: chosen.choice([chosen.random(), 0.5, 0.1]) for d in chosen.sample(documents, 18)}
            for topic in range(1, 6)
        }
        made.append((judged, run))
    return made


@pytest.mark.parametrize("text", TEXTS)
def test_values_are_those_of_pytrec_eval(text: str, collections: list[tuple[Judged, Scored]]) -> None:
    measure = ir_measures.parse_measure(text)
    assert ir_measures.pytrec_eval.supports(measure)
    for judged, run in collections:
        theirs, ours = (p.calc([measure], judged, run) for p in (ir_measures.pytrec_eval, CupelProvider()))
        assert ours.aggregated == pytest.approx(theirs.aggregated, rel=1e-12)
        assert by_topic(ours.per_query) == pytest.approx(by_topic(theirs.per_query), rel=1e-12)


def by_topic(metrics: list[Any]) -> dict[tuple[str, str], float]:
    found = {(metric.query_id, str(metric.measure)): metric.value for metric in metrics}
    assert len(found) == len(metrics)
    return found


def test_tested_measures_are_all_that_pytrec_eval_provides() -> None:
    tested = {type(ir_measures.parse_measure(text)) for text in TEXTS}
    provided = {type(measure) for measure in ir_measures.pytrec_eval.SUPPORTED_MEASURES}
    assert tested == provided


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[CupelProvider]:
    pipeline = ir_measures.DefaultPipeline
    monkeypatch.setattr(pipeline, "providers", [*pipeline.providers])
    monkeypatch.setattr(ir_measures.providers.base, "registry", dict(ir_measures.providers.registry))
    yield register()
    ir_measures.providers.registry.pop("cupel", None)


def test_functions_of_ir_measures_use_the_registered_provider(
    registered: CupelProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ir_measures.pytrec_eval, "_evaluator", None)  # calling it would fail
    assert register() is not registered
    assert [provider.NAME for provider in ir_measures.DefaultPipeline.providers].count("cupel") == 1
    measures = [ir_measures.nDCG @ 10, ir_measures.RBP(p=0.5), ir_measures.ERR @ 5]
    judged, run = {"1": {"a": 2, "b": 0}, "2": {"a": 1}}, {"1": {"b": 2.0, "a": 1.0}}
    means = ir_measures.calc_aggregate(measures, judged, run)
    assert means[measures[0]] == pytest.approx((1 / np.log2(3)) / 2)
    assert {metric.query_id for metric in ir_measures.iter_calc(measures, judged, run)} == {"1", "2"}
    assert measures[0].calc_aggregate(judged, run) == means[measures[0]]


def test_frames_and_named_tuples_are_read() -> None:
    judged = [Qrel("1", "a", 1), Qrel("1", "b", 0)]
    run = [ScoredDoc("1", "b", 2.0), ScoredDoc("1", "a", 1.0)]
    pandas = pytest.importorskip("pandas")
    frames = pandas.DataFrame(judged), pandas.DataFrame(run).astype({"score": "float32"})
    for qrels, scored in ((iter(judged), iter(run)), frames):
        assert CupelProvider().calc_aggregate([ir_measures.RR], qrels, scored) == {ir_measures.RR: 0.5}


def test_subtopics_are_the_iterations_of_qrels() -> None:
    pytest.importorskip("pyndeval")
    measures = [ir_measures.alpha_nDCG @ 5, ir_measures.ERR_IA @ 5, ir_measures.StRecall @ 1]
    judged = [Qrel("1", "a", 1, "x"), Qrel("1", "b", 1, "x"), Qrel("1", "b", 1, "y"), Qrel("2", "c", 1, "x")]
    run = {"1": {"a": 3.0, "u": 2.5, "b": 2.0}, "2": {"u": 1.0, "c": 0.5}}
    for measure in measures:
        theirs = ir_measures.pyndeval.calc([measure], judged, run)
        ours = CupelProvider().calc([measure], judged, run)
        assert by_topic(ours.per_query) == pytest.approx(by_topic(theirs.per_query), abs=1e-6)


def test_variants_in_one_call_keep_their_values() -> None:
    """ir_measures passes both measures to pytrec_eval as one."""
    measures = [ir_measures.nDCG @ 10, ir_measures.nDCG(gains={1: 5}) @ 10]
    judged, run = {"1": {"a": 1, "b": 2}}, {"1": {"a": 2.0, "b": 1.0}}
    together = CupelProvider().calc_aggregate(measures, judged, run)
    alone = {m: ir_measures.pytrec_eval.calc_aggregate([m], judged, run)[m] for m in measures}
    assert together == pytest.approx(alone)
    assert len({*together.values()}) == 2


def test_provider_can_have_another_profile() -> None:
    judged, run = {"1": {"a": 1, "b": 0}}, {"1": {"a": 0.100000001, "b": 0.1}}  # equal in single precision
    values = [CupelProvider(profile).calc_aggregate([ir_measures.RR], judged, run) for profile in PROFILES]
    assert [value[ir_measures.RR] for value in values] == [0.5, 1.0]
    with pytest.raises(ValueError, match="unknown profile 'trec_eval'; use one of cupel, "):
        CupelProvider("trec_eval")


PROFILES = ["trec_eval-9", "cupel"]


@pytest.mark.parametrize(
    ("judged", "run", "message"),
    [
        ({"1": {"a": 0.5}}, {"1": {"a": 1.0}}, "a relevance grade is 0.5; expected a whole number"),
        ({"1": {"a": 1}}, {"1": {"a": float("nan")}}, "the score of document 'a' of topic '1' is nan"),
        ({"1": {"a": 1}}, {"1": {"a": "1"}}, "the score of document 'a' of topic '1' is '1'"),
    ],
)
def test_values_that_are_no_numbers_are_refused(judged: Any, run: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CupelProvider().calc_aggregate([ir_measures.RR], judged, run)


def test_measures_defined_by_callers_are_left_to_ir_measures() -> None:
    mine = ir_measures.define_byquery(lambda qrels, run: 1.0, name="AP")
    assert not CupelProvider().supports(mine)


def test_all_measures_are_accepted_as_objects_and_texts() -> None:
    registry = ir_measures.measures.registry
    assert len(registry) == 51
    judged, run = {"1": {"a": 2, "b": 0}}, {"1": {"b": 2.0, "a": 1.0}}
    for name in registry:
        needed = {k for k, p in registry[name].SUPPORTED_PARAMS.items() if p.required}
        values = {"cutoff": 5, "recall": 0.5, "max_rel": 2, "p": 0.5, "T": 1.5}
        cutoff = {"cutoff"} & registry[name].SUPPORTED_PARAMS.keys()
        measure = registry[name](**{key: values[key] for key in needed | cutoff})
        assert CupelProvider().supports(measure), name
        if measure.NAME in BY_SUBTOPIC:
            continue
        by_object, by_text = (cupel.evaluate(judged, run, asked)["run"] for asked in (measure, str(measure)))
        assert by_object[measure] == by_text[str(measure)] == by_object[str(measure)]
        assert dict(cupel.evaluate(judged, run, [measure, "AP"])["run"]).keys() >= {*by_object}


BY_SUBTOPIC = {
    *("alpha_DCG", "alpha_nDCG", "ERR_IA", "nERR_IA", "NRBP", "nNRBP", "AP_IA", "P_IA", "StRecall"),
}
