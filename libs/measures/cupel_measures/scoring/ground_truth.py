"""Language models of subtopics, and their closeness to runs.

The models are made from judgments and texts.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from cupel_measures.model import Content, Floats, Ints, Qrels, Texts
from cupel_measures.scoring import discounts
from cupel_measures.scoring.language_models import DECIMALS, Corpus, Model, Targets, mixed, salient
from cupel_measures.scoring.subtopics import SubtopicPool


@dataclass(frozen=True, kw_only=True)
class Construction:
    """Parameters of content measures for building and comparing models (see LMD)."""

    rel: int | None = None
    smoothing: float = 0.0
    divergence: str = "jsd"
    terms: int | None = None
    stop: int = 0


@dataclass(frozen=True, eq=False)
class TopicModel:
    """Models of the subtopics of one topic that have a relevant document with text.

    targets: the model of each subtopic, theta_i. relevant: int64[n], text indices of all documents that are
    relevant to a subtopic, by document id; -1 for no text. size: float64[S], number of documents with text in
    each model.
    """

    targets: Targets
    relevant: Ints
    size: Floats
    cache: dict[Any, Any] = field(default_factory=dict, repr=False)

    def score(self, model: Model, *, by_size: bool) -> float:
        """Return the closeness of `model` to the topic, from 0 to 1.

        It is relative to a mixture of all subtopics.

        The closeness is divided by the closeness of the mixture. A quotient above 1 is replaced by 1.
        """
        weights = self._weights(by_size)
        if ("best", by_size) not in self.cache:
            self.cache["best", by_size] = self._raw(mixed(self.targets.models, weights), weights)
        best = self.cache["best", by_size]
        return min(1.0, self._raw(model, weights) / best) if best > 0 else 0.0

    def _weights(self, by_size: bool) -> Floats:
        weights = self.size if by_size else np.ones(len(self.size))
        shares: Floats = weights / weights.sum()  # integers, so their sum is exact
        return shares

    def _raw(self, model: Model, weights: Floats) -> float:
        """Return the raw score: the weighted mean of the closeness to each subtopic."""
        return float(np.cumsum(weights * self.targets.closeness(model))[-1])

    def labels(self, documents: Ints) -> Floats:
        """Return the closeness of the model of each document to each subtopic.

        float64[n, S].
        """
        known = self.cache.setdefault("labels", {})
        corpus, number = self.targets.corpus, len(self.size)
        for document in set(documents.tolist()) - known.keys():
            known[document] = self.targets.closeness(corpus.mean(np.array([document])))
        rows = [known[document] for document in documents.tolist()]
        return np.array(rows, dtype=np.float64).reshape(len(rows), number)

    def ideal(self, alpha: float, depth: int | None) -> Floats:
        """Return `labels` of the relevant documents in greedy order, down to `depth`.

        float64[n, S].

        At every rank, the document with the largest gain comes next. If gains are equal to 12 decimals, the
        one with the largest id comes next.
        """
        if ("ideal", alpha, depth) not in self.cache:
            left = self.labels(self.relevant)[::-1]
            seen = np.zeros(len(self.size))
            chosen: list[Floats] = []
            while len(left) and len(chosen) != depth:
                gains = np.cumsum(left * discounts.powers(1.0 - alpha, seen), axis=1)[:, -1]
                best = int(np.argmax(np.round(gains, DECIMALS)))
                chosen.append(left[best])
                seen, left = seen + left[best], np.delete(left, best, axis=0)
            self.cache["ideal", alpha, depth] = np.array(chosen).reshape(len(chosen), len(self.size))
        ideal: Floats = self.cache["ideal", alpha, depth]
        return ideal


@dataclass(frozen=True, eq=False)
class ContentRows:
    """The retrieved texts of each row of a run, and the judgments by subtopic.

    pool: the judgments.
    """

    qrels: Qrels
    pool: SubtopicPool
    content: Content

    @property
    def number(self) -> int:
        return len(self.content.offsets) - 1

    def with_models(self, construction: Construction) -> Iterator[tuple[int, TopicModel, Ints]]:
        """Yield the rows that have documents and a topic model.

        Each item is (row, topic model, text indices by rank).
        """
        topic_models = self._topic_models(construction)
        ends = self.content.offsets.tolist()
        for row, (begin, end) in enumerate(itertools.pairwise(ends)):
            topic_model = topic_models[row % len(topic_models)]
            if topic_model is not None and end > begin:
                yield row, topic_model, self.content.document[begin:end]

    def model(self, row: int, depth: int, stop: int) -> Model:
        """Return the model of a row's first `depth` ranks (LMD, step 3).

        The ranks are weighted by 1 / log2(1 + rank).
        """
        key = ("model", row, depth, stop)
        if key not in self.content.cache:
            begin, end = self.content.offsets[row : row + 2]
            documents = np.full(depth, -1, dtype=np.int64)
            ranked = self.content.document[begin:end][:depth]
            documents[: len(ranked)] = ranked
            weights = 1.0 / discounts.log2(np.arange(1, depth + 1))
            corpus = Corpus.of(self.content.texts, stop)
            self.content.cache[key] = corpus.mixture(documents, weights / np.cumsum(weights)[-1])
        model: Model = self.content.cache[key]
        return model

    def _topic_models(self, construction: Construction) -> list[TopicModel | None]:
        """Return the model of each topic, computed once per qrels, texts and construction."""
        key = ("topic models", self.content.texts, construction)
        if key not in self.qrels.cache:
            builder = _ModelBuilder(self.qrels, self.pool, self.content.texts, construction)
            self.qrels.cache[key] = [builder.build(topic) for topic in range(len(self.qrels.topics))]
        models: list[TopicModel | None] = self.qrels.cache[key]
        return models


@dataclass(frozen=True, eq=False)
class _ModelBuilder:
    """Builder of the model of each topic."""

    qrels: Qrels
    pool: SubtopicPool
    texts: Texts
    construction: Construction

    @cached_property
    def corpus(self) -> Corpus:
        return Corpus.of(self.texts, self.construction.stop)

    @cached_property
    def places(self) -> Ints:
        """Return int64[D]: the text index of each pooled document, -1 for none."""
        return self.texts.places(self.qrels.documents)

    def build(self, topic: int) -> TopicModel | None:
        relevance = self.pool.relevance(self.construction.rel)
        begin, end = self.qrels.offsets[topic : topic + 2]
        pooled = np.arange(begin, end, dtype=np.int32)
        which, slot = relevance.pairs_of(pooled)
        place = self.places[pooled[which]]
        texted = self.corpus.with_words(place)
        groups = [place[texted & (slot == subtopic)] for subtopic in np.unique(slot[texted])]
        if not groups:
            return None
        models = [self.corpus.mean(group) for group in groups]
        relevant = self.places[pooled[np.unique(which)]]
        return TopicModel(self._targets(models), relevant, np.array([len(group) for group in groups], float))

    def _targets(self, models: list[Model]) -> Targets:
        settings, kept = self.construction, None
        if settings.terms is not None and settings.terms < np.count_nonzero(self.corpus.background):
            kept = np.sort(salient(models, self.corpus, settings.terms, settings.smoothing))
        return Targets(
            corpus=self.corpus,
            models=models,
            smoothing=settings.smoothing,
            divergence=settings.divergence,
            kept=kept,
        )
