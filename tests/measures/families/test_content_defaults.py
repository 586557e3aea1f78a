"""Evidence for the default parameters of LMD: how it orders systems under incomplete judgments.

The tests use two real collections with texts. odp-tr30 has short Turkish descriptions and subtopics.
cranfield has English abstracts, with relevance as the only subtopic. The systems are a lexical ranker and
degraded variants of it. For each sample of the judgments, tau-b is computed between the measure and two
references: alpha_nDCG@20 under all judgments, and the measure itself under all judgments.
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
from cupel_measures.comparing.rank_correlation import tau_b
from cupel_measures.model import Content, Joined, Qrels, Subtopics
from cupel_measures.scoring.evaluator import evaluate
from support.data.lexical_systems import Collection, cranfield, odp, runs_over, texts_in
from support.data.small_collections import content_of, diverse, joined_of

pytestmark = pytest.mark.experiment

REPEATS = 5
CLASSIC, PLAIN, STOP, TERMS = "alpha_nDCG@20", "LMD", "LMD(stop=50)", "LMD(terms=100)"
SMOOTHED, WEIGHTED = "LMD(smoothing=0.2)", "LMD(weights=documents)"
SOFT, SOFT_STOP = "soft_alpha_nDCG@20", "soft_alpha_nDCG(stop=50)@20"
SHARES = (100, 30, 10)
SEED = 7


def sample_judgments(qrels: Qrels, share: int, rng: random.Random) -> Qrels:
    """Return a sample of `share` percent of the judged documents of each topic.

    The sample keeps at least 1 relevant and 10 other documents of a topic.
    """
    judged = qrels.subtopics
    assert judged is not None
    relevant = set(judged.document[judged.judgment > 0].tolist())
    strata: dict[tuple[int, bool], list[int]] = defaultdict(list)
    for document in sorted(set(judged.document.tolist())):
        strata[int(qrels.topic_of[document]), document in relevant].append(document)
    kept: set[int] = set()
    for (_, is_relevant), documents in strata.items():
        number = max(1 if is_relevant else 10, share * len(documents) // 100)
        kept.update(rng.sample(documents, len(documents))[:number])
    rows = np.array([document in kept for document in judged.document.tolist()])
    columns = (column[rows] for column in (judged.document, judged.subtopic, judged.judgment))
    return replace(qrels, subtopics=Subtopics(judged.names, *columns), cache={})


Curves = dict[tuple[str, int], tuple[float, float]]
"""(measure, percent) -> mean tau-b with alpha_nDCG@20 under all judgments, and with the measure itself."""


def correlation_curves(collection: Collection) -> Curves:
    """Return (measure, share of the judgments) -> mean tau with each of the two references."""
    rng = random.Random(SEED)
    runs = list(runs_over(collection, rng).values())
    texts, qrels = texts_in(collection), diverse(collection.judged)
    joined = Joined.stack([joined_of(run, qrels) for run in runs])
    content = Content.stack([content_of(run, qrels, texts) for run in runs])

    def means(judged: Qrels, *others: str) -> dict[str, np.ndarray]:
        measures = [parse(text) for text in (CLASSIC, PLAIN, STOP, TERMS, *others)]
        scores = evaluate(judged, joined, measures, content=content)
        per_run = [scores.of_run(place).aggregates() for place in range(len(runs))]
        return {str(measure): np.array([values[measure] for values in per_run]) for measure in measures}

    full = means(qrels, SMOOTHED, WEIGHTED, SOFT, SOFT_STOP)
    sampled_means = {
        share: [means(sample_judgments(qrels, share, rng)) for _ in range(REPEATS)] for share in SHARES[1:]
    }
    return {
        (name, share): tuple(
            fmean(_tau(values[name], reference) for values in repeats)
            for reference in (full[CLASSIC], full[name])
        )
        for share, repeats in {100: [full], **sampled_means}.items()
        for name in repeats[0]
    }


def _tau(x: np.ndarray, y: np.ndarray) -> float:
    tau = tau_b(x, y).value
    assert tau is not None
    return tau


@pytest.fixture(scope="module", params=[odp, cranfield])
def taus(request: pytest.FixtureRequest, shared: Path) -> Curves:
    """Return the correlations of one collection, and print them (visible with -s)."""
    make: Callable[[Path], Collection] = request.param
    values = correlation_curves(make(shared / "data"))
    for name, share in values:
        print(
            f"{make.__name__} {name:<28} {share:>3}%  " + "  ".join(f"{v:.3f}" for v in values[name, share])
        )
    return values


def test_lmd_keeps_its_order_of_systems_better_than_alpha_ndcg(taus: Curves) -> None:
    for share in SHARES[1:]:
        assert taus[PLAIN, share][1] > taus[CLASSIC, share][1] + 0.03
        assert taus[PLAIN, share][1] > 0.75


def test_lmd_agreement_with_alpha_ndcg_is_stable(taus: Curves) -> None:
    for share in SHARES:
        assert 0.45 < taus[PLAIN, share][0] < 0.9
    assert taus[PLAIN, 100][0] - taus[PLAIN, 10][0] < taus[CLASSIC, 100][0] - taus[CLASSIC, 10][0] - 0.03


def test_removing_stop_words_raises_agreement_with_alpha_ndcg(taus: Curves) -> None:
    assert fmean(taus[STOP, share][0] - taus[PLAIN, share][0] for share in SHARES) > 0.005
    assert taus[STOP, 10][1] > taus[PLAIN, 10][1] - 0.05


def test_keeping_few_terms_lowers_agreement_with_alpha_ndcg(taus: Curves) -> None:
    assert taus[TERMS, 100][0] < taus[PLAIN, 100][0] - 0.05
    assert taus[TERMS, 30][0] < taus[PLAIN, 30][0] - 0.05


def test_smoothing_and_weights_do_not_raise_agreement(taus: Curves) -> None:
    assert taus[SMOOTHED, 100][0] < taus[PLAIN, 100][0] - 0.02
    assert taus[WEIGHTED, 100][0] <= taus[PLAIN, 100][0]


def test_stop_words_have_a_larger_effect_on_soft_alpha_ndcg(taus: Curves) -> None:
    assert taus[SOFT_STOP, 100][0] - taus[SOFT, 100][0] > taus[STOP, 100][0] - taus[PLAIN, 100][0] + 0.02
