"""Agreement with pytrec_eval-terrier 0.5.11 (trec_eval 9) on random collections, per topic.

Both conventions that differ are arranged away, and shown in tests of their own: it leaves out topics
that the run lacks, and it gives gm_map and gm_bpref per topic as logarithms.
"""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cupel_measures import trec_names
from cupel_measures.grammar import parse
from cupel_measures.profiles import PROFILES
from making import Scored, qrels_of, scores_of

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
    name: parse(name if name in trec_names.OURS else (trec_names.meant_by(name) or [""])[0]) for name in BOTH
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
def test_every_measure_that_both_have_agrees_per_topic(
    judged: dict[str, dict[str, int]], run: Scored, level: int
) -> None:
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
    """pytrec_eval's spelling: cutoffs after a full stop, all of a measure's in one name."""
    grouped: dict[str, list[str]] = {}
    for name in names:
        base = max((one for one in trec_names.NAMES if name.startswith(one)), key=len)
        grouped.setdefault(base, []).append(name[len(base) + 1 :])
    return {f"{base}.{','.join(values)}" if any(values) else base for base, values in grouped.items()}


def _at_level(name: str, level: int) -> object:
    measure = MEASURES[name]
    return (
        measure.having(rel=level)
        if "rel" in measure.declaration.parameters and name != "num_ret"
        else measure
    )


def test_a_topic_that_the_run_lacks_is_left_out_there_and_counts_here() -> None:
    judged, run = {"1": {"d1": 1}, "2": {"d1": 1}}, {"1": {"d1": 1.0}}
    theirs = pytrec_eval.RelevanceEvaluator(judged, {"map"}).evaluate(run)
    assert {topic: of["map"] for topic, of in theirs.items()} == {"1": 1.0}
    assert scores_of("AP", run, qrels_of(judged)) == {"AP": [1.0, 0.0]}


def test_scores_that_tie_in_single_precision_tie_under_trec_eval_9_only() -> None:
    judged = {"1": {"a": 1, "b": 0}}
    run = {"1": {"a": 0.100000001, "b": 0.1}}
    theirs = pytrec_eval.RelevanceEvaluator(judged, {"recip_rank"}).evaluate(run)["1"]["recip_rank"]
    by_profile = {
        name: scores_of("RR", run, qrels_of(judged), profile=profile)["RR"]
        for name, profile in PROFILES.items()
    }
    assert theirs == 0.5
    assert by_profile == {"cupel": [1.0], "trec_eval-9": [0.5], "trec_eval-10": [1.0]}
