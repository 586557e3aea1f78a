"""Tests that line order changes no score, and that better labels never have lower weights."""

import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cupel_measures.catalogue.parser import parse, parse_many
from cupel_measures.model import Aspect
from cupel_measures.reading.collection_files import parse_collection
from cupel_measures.reading.run_files import join_run
from cupel_measures.scoring.evaluator import evaluate
from support.data.small_collections import qrels_of, ranked, scores_of

COLLECTION = """
aspects:
  relevance: {labels: [0, 1, 2, 3], lowest: [-2]}
  credibility: {labels: [nc, pc, c]}
qrels:
  - {file: relevance, aspect: relevance}
  - {file: both, columns: [topic, _, document, relevance, credibility]}
  - {file: subtopics, layout: subtopics}
"""
MEASURES = parse_many(
    "all_trec nDCG(dcg=exp-log2)@5 ERR@20 gP@5 gR@5 F@5 gRBP DCG(base=2) SBTO@5 RBTO@9 RBP INST INSQ BPM@3"
    " SDCG@5"
    " NERR8@5 NERR9@5 NERR10 NERR11 Compat Accuracy Q CAM(of=nDCG@5) MM(of=RBP) WHAM(of=AP) TOMA(of=nDCG)"
    " TOMA(of=AP,distance=chebyshev) NLRE NLRE(ties=reverse) NGRE NWCS SetG uRBP uRBPgr RBP_u H Judged@5"
    " alpha_nDCG@5 alpha_DCG@5 ERR_IA@5 nERR_IA NRBP nNRBP AP_IA P_IA@5 StRecall@5"
)


def random_lines(draw: random.Random) -> dict[str, list[str]]:
    """Return random lines of qrels files and of a run, with ties and negative grades.

    No pair of a topic and a document is judged twice.
    """
    topics, documents = ["1", "10", "2"], [f"d{i}" for i in range(12)]
    pairs = [(t, d) for t in topics for d in documents]
    relevance_only = set(draw.sample(pairs, 12))
    run = [(t, d) for t, d in pairs if draw.random() < 0.8] or pairs
    return {
        "relevance": [f"{t} 0 {d} {draw.choice([-2, 0, 1, 2, 3])}" for t, d in sorted(relevance_only)],
        "both": [
            f"{t} 0 {d} {draw.randrange(4)} {draw.choice(['nc', 'pc', 'c'])}"
            for t, d in pairs
            if (t, d) not in relevance_only and draw.random() < 0.7
        ],
        "subtopics": [f"{t} s{draw.randrange(3)} {d} {draw.randrange(3)}" for t, d in sorted(relevance_only)],
        "run": [f"{t} Q0 {d} {i} {draw.randrange(5)} tag" for i, (t, d) in enumerate(run, 1)],
    }


def score_bytes(lines: dict[str, list[str]]) -> list[bytes]:
    """Return the scores of the run by every measure, as bytes."""
    files = {name: "".join(f"{line}\n" for line in content).encode() for name, content in lines.items()}
    run = files.pop("run")
    qrels = parse_collection(COLLECTION, files).qrels
    values = evaluate(qrels, join_run(run, qrels), MEASURES).values
    return [values[measure].tobytes() for measure in MEASURES]


@given(st.randoms(use_true_random=False))
@settings(max_examples=25, deadline=None)
def test_scores_do_not_depend_on_line_order(draw: random.Random) -> None:
    lines = random_lines(draw)
    shuffled = {name: draw.sample(content, len(content)) for name, content in lines.items()}
    assert score_bytes(shuffled) == score_bytes(lines)


@st.composite
def scales(draw: st.DrawFn) -> list[Aspect]:
    """Draw one to four aspects, some with a declared embedding."""
    number = draw(st.integers(1, 4))
    aspects = []
    for index in range(number):
        labels = draw(st.integers(2, 4))
        embedding = draw(
            st.none() | st.lists(st.integers(0, 9), min_size=labels, max_size=labels).map(sorted)
        )
        aspects.append(
            Aspect(name=f"a{index}", labels=range(labels), declared_embedding=embedding and tuple(embedding))
        )
    return aspects


@pytest.mark.parametrize("distance", ["euclidean", "manhattan", "chebyshev"])
@given(aspects=scales(), data=st.data())
@settings(max_examples=60, deadline=None)
def test_toma_weight_never_decreases_with_better_labels(
    distance: str, aspects: list[Aspect], data: Any
) -> None:
    """Compare weights as DCG: for a run of one document, DCG is the weight of the document."""
    labels = st.tuples(*(st.integers(0, len(aspect.labels) - 1) for aspect in aspects))
    x, y = data.draw(labels), data.draw(labels)
    better = tuple(map(max, x, y))
    documents = {"x": x, "y": better}
    first = aspects[0]
    if len(set(first.embedding)) < 2:  # TOMA needs at least two classes
        aspects = [replace(first, declared_embedding=None), *aspects[1:]]
    judged = [{d: indices[i] for d, indices in documents.items()} for i in range(len(aspects))]
    qrels = qrels_of({a: {"1": column, "2": column} for a, column in zip(aspects, judged, strict=True)})
    text = str(parse(f"TOMA(of=DCG,distance={distance})"))
    worse, at_least = scores_of(text, {"1": ranked("x"), "2": ranked("y")}, qrels)[text]
    assert at_least >= worse
