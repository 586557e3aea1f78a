"""Tests of agreement with pytrec_eval-terrier 0.5.11 (trec_eval 9) on random collections, per topic.

Two conventions differ and have separate tests: pytrec_eval omits topics that the run lacks, and returns
gm_map and gm_bpref per topic as logarithms.
"""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cupel_measures.catalogue.parser import parse, parse_many
from cupel_measures.grammar import trec_names
from cupel_measures.model.profiles import PROFILES
from cupel_measures.scoring.evaluator import evaluate
from support.data.small_collections import Scored, joined_of, qrels_of, ranked, scores_of

pytrec_eval = pytest.importorskip("pytrec_eval")

NAMES = [
    "num_q num_ret num_rel num_rel_ret num_nonrel_judged_ret map gm_map Rprec bpref recip_rank ndcg 11pt_avg",
    "infAP gm_bpref utility",
    "set_P set_relative_P set_recall set_map set_F",
    *(
        f"P_{k} recall_{k} ndcg_cut_{k} map_cut_{k} success_{k} relative_P_{k}"
        for k in (1, 2, 3, 5, 10, 1000)
    ),
    *(f"iprec_at_recall_{level:.2f}" for level in (0.0, 0.1, 0.25, 0.5, 0.8, 1.0)),
    *(f"Rprec_mult_{multiple:.2f}" for multiple in (0.2, 1.0, 1.4, 2.0)),
]
BOTH = " ".join(NAMES).split()
MEASURES = {
    name: parse(name if name in trec_names.OURS else (trec_names.translate(name) or [""])[0]) for name in BOTH
}

documents = st.sampled_from([f"d{i}" for i in range(12)])
topics = st.sampled_from(["1", "10", "2", "é"])
judgments = st.dictionaries(
    topics, st.dictionaries(documents, st.integers(-2, 4), min_size=1, max_size=12), min_size=1
)
scores = st.sampled_from([0.0, 1.0, -1.0, 0.5, 1e-305, 0.1, 0.100000001, 3.25e7, 2.0])
runs = st.dictionaries(topics, st.dictionaries(documents, scores, min_size=1, max_size=12), min_size=1)


@given(judgments, runs, st.integers(1, 3))
@settings(max_examples=150, deadline=None)
def test_common_measures_agree_per_topic(judged: dict[str, dict[str, int]], run: Scored, level: int) -> None:
    judged = {t: of for t, of in judged.items() if any(grade >= 0 for grade in of.values())}
    if not judged:
        return
    names = set(BOTH) if level == 1 else {name for name in BOTH if "ndcg" not in name}
    evaluator = pytrec_eval.RelevanceEvaluator(judged, _requested(names), relevance_level=level)
    theirs = evaluator.evaluate({t: dict(of) for t, of in run.items()})
    qrels = qrels_of(judged)
    texts = {name: str(_at_level(name, level)) for name in names}
    ours = scores_of(list(texts.values()), run, qrels, profile=PROFILES["trec_eval-9"])
    for place, topic in enumerate(qrels.topics):
        for name, value in theirs.get(topic, {}).items():
            mine = ours[texts[name]][place]
            mine = math.log(mine) if name.startswith("gm_") else mine
            assert mine == pytest.approx(value, abs=1e-9), (topic, name)


def _requested(names: set[str]) -> set[str]:
    """Return the names as pytrec_eval expects them: one per measure, with all cutoffs after a dot."""
    grouped: dict[str, list[str]] = {}
    for name in names:
        base = max((base for base in trec_names.NAMES if name.startswith(base)), key=len)
        grouped.setdefault(base, []).append(name[len(base) + 1 :])
    return {f"{base}.{','.join(values)}" if any(values) else base for base, values in grouped.items()}


def _at_level(name: str, level: int) -> object:
    measure = MEASURES[name]
    return (
        measure.having(rel=level)
        if "rel" in measure.declaration.parameters and name != "num_ret"
        else measure
    )


def test_topic_missing_from_the_run_scores_0_and_is_omitted_by_pytrec_eval() -> None:
    judged, run = {"1": {"d1": 1}, "2": {"d1": 1}}, {"1": {"d1": 1.0}}
    theirs = pytrec_eval.RelevanceEvaluator(judged, {"map"}).evaluate(run)
    assert {topic: of["map"] for topic, of in theirs.items()} == {"1": 1.0}
    qrels = qrels_of(judged)
    assert scores_of("AP", run, qrels) == {"AP": [1.0, 0.0]}
    joined, [measure] = joined_of(run, qrels), parse_many("AP")
    scores = evaluate(qrels, joined, [measure])
    assert scores.aggregates() == {measure: 0.5}
    assert scores.aggregates(over=joined.has_documents) == {measure: theirs["1"]["map"]}


def test_scores_equal_in_single_precision_are_tied_only_in_trec_eval_9() -> None:
    judged = {"1": {"a": 1, "b": 0}}
    run = {"1": {"a": 0.100000001, "b": 0.1}}
    theirs = pytrec_eval.RelevanceEvaluator(judged, {"recip_rank"}).evaluate(run)["1"]["recip_rank"]
    by_profile = {
        name: scores_of("RR", run, qrels_of(judged), profile=profile)["RR"]
        for name, profile in PROFILES.items()
    }
    assert theirs == 0.5
    assert by_profile == {"cupel": [1.0], "trec_eval-9": [0.5], "trec_eval-10": [1.0]}


class TestDeliberateDifferences:
    """Deliberate differences from trec_eval 9, unless its profile is used; each test shows both values."""

    def both(
        self, name: str, text: str, judged: dict[str, int], order: str
    ) -> tuple[float, dict[str, float]]:
        """Return the value of trec_eval, and that of Cupel by profile."""
        run = {"1": ranked(*order)}
        theirs = pytrec_eval.RelevanceEvaluator({"1": judged}, {name}).evaluate(run)["1"]
        ours = {
            profile: scores_of(text, run, qrels_of({"1": judged}), profile=rules)[str(parse(text))][0]
            for profile, rules in PROFILES.items()
        }
        return next(iter(theirs.values())), ours

    def test_recall_level_is_rounded_half_away_from_zero(self) -> None:
        # 0.4 * 3 relevant documents = 1.2: trec_eval takes int(1.2 + 0.9) = 2 documents, Cupel takes 1
        judged = {"a": 1, "b": 1, "c": 1}
        theirs, ours = self.both("iprec_at_recall.0.40", "IPrec@0.4", judged, "axb")
        assert theirs == pytest.approx(2 / 3)
        assert ours == pytest.approx({"cupel": 1.0, "trec_eval-9": 2 / 3, "trec_eval-10": 1.0})

    def test_negative_grade_is_a_judgment_except_in_trec_eval_profiles(self) -> None:
        judged, run = {"1": {"n": -1, "a": 1}}, {"1": ranked(*"nua")}
        evaluator = pytrec_eval.RelevanceEvaluator(judged, {"recip_rank"}, judged_docs_only_flag=True)
        assert evaluator.evaluate(run)["1"]["recip_rank"] == 1.0  # trec_eval omits n and u as unjudged
        text = "RR(judged_only=True)"
        ours = {
            name: scores_of(text, run, qrels_of(judged), profile=profile)[text]
            for name, profile in PROFILES.items()
        }
        assert ours == {"cupel": [0.5], "trec_eval-9": [1.0], "trec_eval-10": [1.0]}

    def test_geometric_mean_is_reported_instead_of_its_logarithm(self) -> None:
        judged = {"a": 1, "b": 0}
        theirs, ours = self.both("gm_map", "GMAP", judged, "b")
        assert theirs == pytest.approx(math.log(1e-5))
        assert set(ours.values()) == {1e-5}

    def test_relevance_level_0_is_supported(self) -> None:
        with pytest.raises(TypeError, match="relevance_level should be positive"):
            pytrec_eval.RelevanceEvaluator({"1": {"a": 0}}, {"map"}, relevance_level=0)
        assert scores_of("AP(rel=0)", {"1": ranked("a")}, qrels_of({"1": {"a": 0}})) == {"AP(rel=0)": [1.0]}

    def test_dcg_equals_ndcg_of_pytrec_eval_times_the_ideal(self) -> None:
        """The measure dcg exists only in trec_eval 10.0, so derive it from measures of trec_eval 9."""
        judged = {"a": 2, "b": 1, "c": 3}
        theirs, ours = self.both("ndcg", "DCG", judged, "axb")
        ideal = 3 + 2 / math.log2(3) + 1 / math.log2(4)
        assert ours == pytest.approx(dict.fromkeys(PROFILES, theirs * ideal))
        with_base = scores_of("DCG(base=2)", {"1": ranked(*"axb")}, qrels_of({"1": judged}))["DCG(base=2)"]
        assert with_base == pytest.approx([2 + 1 / math.log2(3)])  # ranks 1 and 2 are not discounted
        assert with_base[0] != pytest.approx(ours["cupel"])


@pytest.mark.parametrize("beta", [0.5, 2.0])
def test_beta_of_f_is_linear_as_in_pytrec_eval(beta: float) -> None:
    judged, run = {"1": {"a": 1, "b": 1, "c": 1}}, {"1": ranked(*"ax")}
    theirs = pytrec_eval.RelevanceEvaluator(judged, {f"set_F.{beta}"}).evaluate(run)["1"]
    precision, recall = 1 / 2, 1 / 3
    linear = (beta + 1) * precision * recall / (recall + beta * precision)
    squared = (beta**2 + 1) * precision * recall / (recall + beta**2 * precision)
    [[ours]] = scores_of(f"SetF(beta={beta})", run, qrels_of(judged)).values()
    assert next(iter(theirs.values())) == pytest.approx(ours) == pytest.approx(linear)
    assert ours != pytest.approx(squared)
