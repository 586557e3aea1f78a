"""Selection of documents to label, and of topics to use.

Hui, Towards robust and reusable evaluation for novelty and diversity (PIKM 2014), sections 5.2 and 5.4.
"""

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np

from cupel_measures.comparing.rank_correlation import tau_b
from cupel_measures.model import Floats, Ids, Ints, Texts
from cupel_measures.scoring.language_models import DECIMALS, Corpus, Targets

DEEPEST = 20
"""Depth of the last pool. The number of labels is reported as a share of the size of this pool."""


@dataclass(frozen=True)
class SelectedDocuments:
    """The documents of one topic that were labelled.

    documents: their ids in the order of labelling. depth: depth of the last pool. missed: subtopics without a
    relevant labelled document. pool: number of documents in the pool of depth 20.
    """

    documents: tuple[str, ...]
    depth: int
    missed: frozenset[str]
    pool: int


def select_documents(
    rankings: Sequence[Sequence[str]],
    texts: Texts,
    label: Callable[[str], Collection[str]],
    subtopics: Collection[str],
    *,
    depth: int = 3,
    batch: int = 5,
) -> SelectedDocuments:
    """Select documents of one topic for labelling (section 5.2).

    1. Sort the pool of the first `depth` documents of all rankings by decreasing centrality.
    2. Label them in this order, `batch` at a time, until each of the known `subtopics` has a relevant
       document. `label` returns the subtopics to which a document is relevant.
    3. When the pool is exhausted, continue with the pool of the next depth, down to 20.
    """
    labelled: dict[str, Collection[str]] = {}
    missed = set(subtopics)
    while missed:
        pool = _pool(rankings, depth)
        left = central([document for document in pool if document not in labelled], texts, pool)
        while left and missed:
            labels = {document: label(document) for document in left[:batch]}
            labelled |= labels
            missed.difference_update(*labels.values())
            left = left[batch:]
        if not missed or depth >= DEEPEST:
            break
        depth += 1
    return SelectedDocuments(tuple(labelled), depth, frozenset(missed), len(_pool(rankings, DEEPEST)))


def _pool(rankings: Sequence[Sequence[str]], depth: int) -> list[str]:
    """Return the first `depth` documents of all rankings, sorted by id."""
    return sorted({document for ranking in rankings for document in ranking[:depth]})


def central(documents: Sequence[str], texts: Texts, pool: Sequence[str] | None = None) -> list[str]:
    """Sort the documents by decreasing `centrality`.

    Documents with equal values (to 12 decimals) are sorted by document id.
    """
    values = np.round(centrality(documents, texts, pool), DECIMALS)
    order = sorted(range(len(documents)), key=lambda place: (-values[place], documents[place]))
    return [documents[place] for place in order]


def centrality(documents: Sequence[str], texts: Texts, pool: Sequence[str] | None = None) -> Floats:
    """Return the mean of 1 - JSD of each document to the other documents of the pool.

    The result is float64[n].

    JSD is the Jensen-Shannon divergence of the language models of two documents. pool: the ids of the
    documents in the pool, including all of `documents` (default: `documents`). The centrality is 0 if the
    pool has only one document.
    """
    among = documents if pool is None else pool
    corpus = Corpus.of(texts)
    models = {
        document: corpus.mean(np.array([at]))
        for document, at in zip(among, _places(among, texts), strict=True)
    }
    if len(models) < 2 or not documents:
        return np.zeros(len(documents))
    targets = Targets(corpus=corpus, models=list(models.values()))
    place = {document: at for at, document in enumerate(models)}
    closeness = np.array([targets.closeness(models[document]) for document in documents])
    closeness[np.arange(len(documents)), [place[document] for document in documents]] = 0.0
    sums: Floats = np.cumsum(closeness, axis=1)[:, -1]
    return sums / (len(models) - 1)


@dataclass(frozen=True)
class SelectedTopics:
    """The selected topics in order, and tau-b after each selection.

    Tau-b is None where it is undefined.
    """

    topics: tuple[str, ...]
    taus: tuple[float | None, ...]


def select_topics(topics: Sequence[str], novel: Floats, reference: Floats, number: int) -> SelectedTopics:
    """Select topics where a cheaper measure orders systems like a reference measure.

    Source: Hui, PIKM 2014, section 5.4.

    novel, reference: float64[T, S], the scores of S systems on T topics by the cheaper measure, such as LMD,
    and by the reference, such as alpha_nDCG under all judgments.

    Each step adds the topic that maximises tau-b between the mean novel scores over the selected topics and
    the mean reference scores over all topics. If several topics have the same tau-b to 12 decimals, it adds
    the one with the smallest id. The selection uses the reference, so a selection without the reference
    cannot be expected to achieve the same tau-b.
    """
    target = _means(reference)
    left = sorted(range(len(topics)), key=topics.__getitem__)
    chosen: list[int] = []
    taus: list[float | None] = []
    while left and len(chosen) < number:
        candidates = [tau_b(_means(novel[[*chosen, topic]]), target).value for topic in left]
        ordered = [-math.inf if tau is None else round(tau, DECIMALS) for tau in candidates]
        best = ordered.index(max(ordered))
        taus.append(candidates[best])
        chosen.append(left.pop(best))
    return SelectedTopics(tuple(topics[topic] for topic in chosen), tuple(taus))


def taus_along(order: Sequence[int], novel: Floats, reference: Floats) -> list[float | None]:
    """Return tau-b after each topic of `order`.

    It is computed against the mean reference scores over all topics.

    order: indices of topics. novel, reference: float64[T, S]. A value is None where tau-b is undefined.
    """
    target = _means(reference)
    return [tau_b(_means(novel[list(order[: end + 1])]), target).value for end in range(len(order))]


def _means(scores: Floats) -> Floats:
    """Return the mean of each system, correctly rounded.

    The means are float64[S]. Because of the rounding, equal scores give equal means.
    """
    return np.array([math.fsum(column) / len(scores) for column in scores.T.tolist()])


def _places(documents: Sequence[str], texts: Texts) -> Ints:
    return texts.places(Ids.of([document.encode() for document in documents]))
