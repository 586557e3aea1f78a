"""What subtopics are about, as language models, and the texts of runs held against them (spec 7.5)."""

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


@dataclass(frozen=True)
class Construction:
    """How models are made and compared: what the parameters of content measures say (spec 7.5)."""

    rel: int | None = None
    smoothing: float = 0.0
    divergence: str = "jsd"
    terms: int | None = None
    stop: int = 0


@dataclass(frozen=True, eq=False)
class Ground:
    """The subtopics of one topic that have a relevant document with text.

    targets: the model of each, theta_i. relevant: int64[n], places of the texts of all documents that are
    relevant to a subtopic, by document id; -1 is none. size: float64[S], how many documents with text made
    each model.
    """

    targets: Targets
    relevant: Ints
    size: Floats
    cache: dict[Any, Any] = field(default_factory=dict, repr=False)

    def close(self, model: Model, *, by_size: bool) -> float:
        """`raw(model)` as a share of that of the mean of all subtopics, at most 1."""
        weights = self._weights(by_size)
        if ("best", by_size) not in self.cache:
            self.cache["best", by_size] = self._raw(mixed(self.targets.models, weights), weights)
        best = self.cache["best", by_size]
        return min(1.0, self._raw(model, weights) / best) if best > 0 else 0.0

    def _weights(self, by_size: bool) -> Floats:
        weights = self.size if by_size else np.ones(len(self.size))
        shares: Floats = weights / weights.sum()  # whole numbers: their sum is exact
        return shares

    def _raw(self, model: Model, weights: Floats) -> float:
        """The mean closeness to the subtopics, by their weights."""
        return float(np.cumsum(weights * self.targets.closeness(model))[-1])

    def labels(self, documents: Ints) -> Floats:
        """float64[n, S]: how close the model of each document is to each subtopic."""
        known = self.cache.setdefault("labels", {})
        corpus, number = self.targets.corpus, len(self.size)
        for document in set(documents.tolist()) - known.keys():
            known[document] = self.targets.closeness(corpus.mean(np.array([document])))
        rows = [known[document] for document in documents.tolist()]
        return np.array(rows, dtype=np.float64).reshape(len(rows), number)

    def ideal(self, alpha: float, depth: int | None) -> Floats:
        """float64[n, S]: labels of the relevant documents in greedy order, down to `depth` (spec 7.5).

        Always the one of the largest gain; ties, to 12 decimals: the largest document id.
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
        found: Floats = self.cache["ideal", alpha, depth]
        return found


@dataclass(frozen=True, eq=False)
class ContentRows:
    """The texts of a run under the judgments by subtopic of `pool`."""

    qrels: Qrels
    pool: SubtopicPool
    content: Content

    @property
    def number(self) -> int:
        return len(self.content.offsets) - 1

    def held(self, construction: Construction) -> Iterator[tuple[int, Ground, Ints]]:
        """Each row that has documents and a ground: number, ground of the topic, texts by rank."""
        grounds = self._grounds(construction)
        ends = self.content.offsets.tolist()
        for row, (begin, end) in enumerate(itertools.pairwise(ends)):
            ground = grounds[row % len(grounds)]
            if ground is not None and end > begin:
                yield row, ground, self.content.document[begin:end]

    def model(self, row: int, depth: int, stop: int) -> Model:
        """The model of a row's first `depth` ranks, weighted by 1 / log2(1 + rank) (spec 7.5, step 3)."""
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

    def _grounds(self, construction: Construction) -> list[Ground | None]:
        """By topic, made once for the qrels, the texts and the construction."""
        key = ("grounds", self.content.texts, construction)
        if key not in self.qrels.cache:
            made = _Making(self.qrels, self.pool, self.content.texts, construction)
            self.qrels.cache[key] = [made.ground(topic) for topic in range(len(self.qrels.topics))]
        found: list[Ground | None] = self.qrels.cache[key]
        return found


@dataclass(frozen=True, eq=False)
class _Making:
    """Grounds as they are made."""

    qrels: Qrels
    pool: SubtopicPool
    texts: Texts
    construction: Construction

    @cached_property
    def corpus(self) -> Corpus:
        return Corpus.of(self.texts, self.construction.stop)

    @cached_property
    def places(self) -> Ints:
        """int64[D]: the text of each pooled document, -1 where there is none."""
        return self.texts.places(self.qrels.documents)

    def ground(self, topic: int) -> Ground | None:
        relevance = self.pool.relevance(self.construction.rel)
        begin, end = self.qrels.offsets[topic : topic + 2]
        pooled = np.arange(begin, end, dtype=np.int32)
        which, slot = relevance.pairs_of(pooled)
        place = self.places[pooled[which]]
        texted = self.corpus.with_words(place)
        groups = [place[texted & (slot == one)] for one in np.unique(slot[texted])]
        if not groups:
            return None
        models = [self.corpus.mean(group) for group in groups]
        relevant = self.places[pooled[np.unique(which)]]
        return Ground(self._targets(models), relevant, np.array([len(group) for group in groups], float))

    def _targets(self, models: list[Model]) -> Targets:
        said, kept = self.construction, None
        if said.terms is not None and said.terms < np.count_nonzero(self.corpus.background):
            kept = np.sort(salient(models, self.corpus, said.terms, said.smoothing))
        return Targets(self.corpus, models, said.smoothing, said.divergence, kept)
