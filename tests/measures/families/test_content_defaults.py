"""Evidence for the defaults of LMD: its order of systems when judgments become few.

Two real collections with texts: short Turkish descriptions with subtopics (odp-tr30) and English abstracts
(cranfield), where relevance is the only subtopic. A lexical ranker and degraded variants of it are the
systems. Each measure is correlated (tau-b) with alpha_nDCG@20 under all judgments, and with itself.
"""

import random
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest

from cupel_measures.catalogue.parser import parse
from cupel_measures.comparing.correlation import tau_b
from cupel_measures.model import Content, Joined, Qrels, Subtopics
from cupel_measures.scoring.evaluator import evaluate
from support.data.lexical_systems import Collection, cranfield, odp, runs_over, texts_in
from support.data.small_collections import content_of, diverse, joined_of

REPEATS = 5
CLASSIC, PLAIN, STOP, TERMS = "alpha_nDCG@20", "LMD", "LMD(stop=50)", "LMD(terms=100)"
SMOOTHED, WEIGHTED = "LMD(smoothing=0.2)", "LMD(weights=documents)"
SOFT, SOFT_STOP = "soft_alpha_nDCG@20", "soft_alpha_nDCG(stop=50)@20"
SHARES = (100, 30, 10)
SEED = 7


def sampled(qrels: Qrels, share: int, draw: random.Random) -> Qrels:
    """Of each topic `share` percent of the relevant documents, at least 1, and of the others, at least 10."""
    judged = qrels.subtopics
    assert judged is not None
    relevant = set(judged.document[judged.judgment > 0].tolist())
    strata: dict[tuple[int, bool], list[int]] = defaultdict(list)
    for document in sorted(set(judged.document.tolist())):
        strata[int(qrels.topic_of[document]), document in relevant].append(document)
    kept: set[int] = set()
    for (_, good), documents in strata.items():
        number = max(1 if good else 10, share * len(documents) // 100)
        kept.update(draw.sample(documents, len(documents))[:number])
    rows = np.array([document in kept for document in judged.document.tolist()])
    columns = (one[rows] for one in (judged.document, judged.subtopic, judged.judgment))
    return replace(qrels, subtopics=Subtopics(judged.names, *columns), cache={})


Curves = dict[tuple[str, int], tuple[float, float]]
"""(measure, percent) -> mean tau-b against alpha_nDCG@20 under all judgments, and against itself."""


def curves(collection: Collection) -> Curves:
    draw = random.Random(SEED)
    runs = list(runs_over(collection, draw).values())
    texts, qrels = texts_in(collection), diverse(collection.judged)
    joined = Joined.stack([joined_of(run, qrels) for run in runs])
    content = Content.stack([content_of(run, qrels, texts) for run in runs])

    def means(judged: Qrels, *others: str) -> dict[str, np.ndarray]:
        measures = [parse(text) for text in (CLASSIC, PLAIN, STOP, TERMS, *others)]
        scores = evaluate(judged, joined, measures, content=content)
        each = [scores.of_run(place).aggregates() for place in range(len(runs))]
        return {str(measure): np.array([one[measure] for one in each]) for measure in measures}

    full = means(qrels, SMOOTHED, WEIGHTED, SOFT, SOFT_STOP)
    few = {share: [means(sampled(qrels, share, draw)) for _ in range(REPEATS)] for share in SHARES[1:]}
    return {
        (name, share): tuple(fmean(_tau(one[name], of) for one in some) for of in (full[CLASSIC], full[name]))
        for share, some in {100: [full], **few}.items()
        for name in some[0]
    }


def _tau(x: np.ndarray, y: np.ndarray) -> float:
    tau = tau_b(x, y).value
    assert tau is not None
    return tau


@pytest.fixture(scope="module", params=[odp, cranfield])
def found(request: pytest.FixtureRequest, shared: Path) -> Curves:
    """The curves of a collection; printed with -s."""
    make: Callable[[Path], Collection] = request.param
    values = curves(make(shared / "data"))
    for name, share in values:
        print(
            f"{make.__name__} {name:<28} {share:>3}%  " + "  ".join(f"{v:.3f}" for v in values[name, share])
        )
    return values


@pytest.mark.sampled(every=2)
def test_lmd_keeps_its_order_of_systems_better_than_alpha_ndcg_as_judgments_become_few(found: Curves) -> None:
    for share in SHARES[1:]:
        assert found[PLAIN, share][1] > found[CLASSIC, share][1] + 0.03
        assert found[PLAIN, share][1] > 0.75


def test_lmd_agrees_with_alpha_ndcg_in_part_and_loses_little_of_it(found: Curves) -> None:
    for share in SHARES:
        assert 0.45 < found[PLAIN, share][0] < 0.9
    assert found[PLAIN, 100][0] - found[PLAIN, 10][0] < found[CLASSIC, 100][0] - found[CLASSIC, 10][0] - 0.03


def test_removing_stop_words_brings_lmd_closer_to_alpha_ndcg(found: Curves) -> None:
    assert fmean(found[STOP, share][0] - found[PLAIN, share][0] for share in SHARES) > 0.005
    assert found[STOP, 10][1] > found[PLAIN, 10][1] - 0.05


def test_keeping_few_terms_lowers_agreement_with_alpha_ndcg(found: Curves) -> None:
    assert found[TERMS, 100][0] < found[PLAIN, 100][0] - 0.05
    assert found[TERMS, 30][0] < found[PLAIN, 30][0] - 0.05


def test_smoothing_and_weights_do_not_raise_agreement(found: Curves) -> None:
    assert found[SMOOTHED, 100][0] < found[PLAIN, 100][0] - 0.02
    assert found[WEIGHTED, 100][0] <= found[PLAIN, 100][0]


def test_stop_words_matter_more_where_labels_are_soft(found: Curves) -> None:
    assert found[SOFT_STOP, 100][0] - found[SOFT, 100][0] > found[STOP, 100][0] - found[PLAIN, 100][0] + 0.02
