"""Language models of documents and of mixtures of them, and how close two are (spec 7.5).

A model shares out a probability of 1 among the terms of a collection and NULL, a reserved term that stands
in no document: a document without words, or without a known text, is NULL alone.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cupel_measures.model import Floats, Ints, Texts
from cupel_measures.scoring.pool import Mask

DECIMALS = 12
"""Computed values that are equal when rounded to so many decimals are tied (spec 1.2.7)."""


@dataclass(frozen=True, eq=False)
class Model:
    """A mixture of documents, before smoothing.

    terms: int64[n], ascending. p: float64[n], the relative frequency of each in the documents, mixed.
    text, null: the weights of the documents with words, and of all else; they sum to 1.
    """

    terms: Ints
    p: Floats
    text: float
    null: float

    def at(self, terms: Ints) -> Floats:
        """float64[m]: p of each of `terms`."""
        place = np.minimum(np.searchsorted(self.terms, terms), max(len(self.terms) - 1, 0))
        if not len(self.terms):
            return np.zeros(len(terms))
        return np.where(self.terms[place] == terms, self.p[place], 0.0)


@dataclass(frozen=True, eq=False)
class Corpus:
    """Relative frequencies in texts. Document d has the terms term[offsets[d]:offsets[d + 1]].

    share: float64[n], of each term in its document. background: float64[V], p(w|C), of each term in all
    texts together; 0 for a stop word.
    """

    offsets: Ints
    term: Ints
    share: Floats
    background: Floats

    @classmethod
    def of(cls, texts: Texts, stop: int = 0) -> "Corpus":
        """That of `texts` without the `stop` most frequent terms (ties alphabetical), made once."""
        key = ("corpus", stop)
        if key not in texts.cache:
            texts.cache[key] = cls._of(texts, stop)
        found: Corpus = texts.cache[key]
        return found

    @classmethod
    def _of(cls, texts: Texts, stop: int) -> "Corpus":
        documents, terms = len(texts.documents), len(texts.vocabulary)
        total = np.bincount(texts.term, weights=texts.count, minlength=terms)
        total[np.argsort(-total, kind="stable")[:stop]] = 0.0
        kept = total[texts.term] > 0
        document = np.repeat(np.arange(documents), np.diff(texts.offsets))[kept]
        term, count = texts.term[kept].astype(np.int64), texts.count[kept]
        length = np.bincount(document, weights=count, minlength=documents)
        offsets = np.concatenate([[0], np.cumsum(np.bincount(document, minlength=documents))])
        return cls(offsets, term, count / length[document], total / max(total.sum(), 1.0))

    def with_words(self, documents: Ints) -> Mask:
        """bool[n]: which of `documents` (-1 is an unknown one) have a word."""
        return (documents >= 0) & (self.offsets[documents + 1] > self.offsets[documents])

    def mixture(self, documents: Ints, weights: Floats) -> Model:
        """The documents mixed by weights that sum to 1; -1 is an unknown document."""
        known = self.with_words(documents)
        begin = self.offsets[documents[known]]
        number = self.offsets[documents[known] + 1] - begin
        entries = np.arange(number.sum()) + np.repeat(begin - (np.cumsum(number) - number), number)
        masses = np.repeat(weights[known], number) * self.share[entries]
        text, null = (math.fsum(weights[mask].tolist()) for mask in (known, ~known))
        return Model(*_gathered(self.term[entries], masses), text, null)

    def mean(self, documents: Ints) -> Model:
        """The arithmetic mean of the models of `documents`."""
        return self.mixture(documents, np.full(len(documents), 1.0 / len(documents)))


def mixed(models: Sequence[Model], weights: Floats) -> Model:
    """Models mixed by weights that sum to 1."""
    terms = np.concatenate([model.terms for model in models])
    masses = np.concatenate([weight * model.p for model, weight in zip(models, weights, strict=True)])
    text = math.fsum(weight * model.text for model, weight in zip(models, weights, strict=True))
    null = math.fsum(weight * model.null for model, weight in zip(models, weights, strict=True))
    return Model(*_gathered(terms, masses), text, null)


def _gathered(terms: Ints, masses: Floats) -> tuple[Ints, Floats]:
    """Different terms, ascending, and the sum of the masses of each, one after another."""
    different, place = np.unique(terms, return_inverse=True)
    sums = np.bincount(place.reshape(-1), weights=masses, minlength=len(different))
    return different, np.asarray(sums, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Targets:
    """Models that others are held against.

    smoothing: the share of p(w|C) in every model that has text. divergence: jsd or kl. kept: the terms that
    all models are cut down to, and then shared out anew; None keeps all.
    """

    corpus: Corpus
    models: Sequence[Model]
    smoothing: float = 0.0
    divergence: str = "jsd"
    kept: Ints | None = None

    def closeness(self, model: Model) -> Floats:
        """float64[S]: how close `model` is to each, from 0 to 1.

        jsd: 1 - the Jensen-Shannon divergence to base 2. kl: exp(-KL(target || model)) in nats.
        """
        flat = self._flat
        alike = _kullback_leibler if self.divergence == "kl" else _jensen_shannon
        chances = self.chances(model, flat.terms)
        logs = logarithms(chances)
        sums = flat.sum(alike(chances[flat.place], logs[flat.place], flat.chance, flat.log))
        if self.smoothing and self.kept is None:
            own, every = self._beyond(model)
            sums += _sum(alike(own, logarithms(own), every, logarithms(every)))
        if self.divergence == "kl":
            return np.array([math.exp(min(0.0, bits * math.log(2.0))) for bits in sums.tolist()])
        return np.clip(sums, 0.0, 1.0)

    @cached_property
    def _flat(self) -> "_Flat":
        own = [model.terms for model in self.models]
        terms = np.unique(np.concatenate(own)) if self.kept is None else self.kept
        return _Flat.of([self.chances(model, terms) for model in self.models], terms)

    def chances(self, model: Model, terms: Ints) -> Floats:
        """float64[n + 1]: the smoothed probabilities of `terms` and of NULL; of these alone where terms are
        kept, which then share out all."""
        chances = np.append((1.0 - self.smoothing) * model.at(terms), model.null)
        if self.smoothing:
            chances[:-1] += self.smoothing * model.text * self.corpus.background[terms]
        if self.kept is None:
            return chances
        total = _sum(chances)
        return chances / total if total else np.append(np.zeros(len(terms)), 1.0)

    def _beyond(self, model: Model) -> tuple[Floats, Floats]:
        """Chances of the model, and of any target, at terms that the targets have from p(w|C) alone.

        Of these the model may have the one or other itself. All others are one term here: the divergences add
        up over terms and are homogeneous.
        """
        known, background = self._flat.terms, self.corpus.background
        own = np.setdiff1d(model.terms, known, assume_unique=True)
        rest = 1.0 - _sum(background[known]) - _sum(background[own])
        shares = self.smoothing * np.append(background[own], max(rest, 0.0))
        return model.text * shares + (1.0 - self.smoothing) * np.append(model.at(own), 0.0), shares


@dataclass(frozen=True, eq=False)
class _Flat:
    """The chances of targets at `terms` and NULL, those above 0 only, target by target.

    target: int64[n], of `number`. place: int64[n], among the terms, then NULL. chance, log: float64[n].
    """

    terms: Ints
    number: int
    target: Ints
    place: Ints
    chance: Floats
    log: Floats

    @classmethod
    def of(cls, table: Sequence[Floats], terms: Ints) -> "_Flat":
        target, place = np.nonzero(table)
        chance = np.array(table)[target, place]
        return cls(terms, len(table), target, place, chance, logarithms(chance))

    def sum(self, values: Floats) -> Floats:
        """float64[number]: the sum of `values` of each target, one after another."""
        sums = np.bincount(self.target, weights=values, minlength=self.number)
        return np.asarray(sums, dtype=np.float64)


def _jensen_shannon(a: Floats, log_a: Floats, b: Floats, log_b: Floats) -> Floats:
    """What each term adds to 1 - JSD, in bits: only a term that both have adds anything."""
    both = (a > 0) & (b > 0)
    values = np.zeros(len(a))
    together = a[both] + b[both]
    apart = a[both] * log_a[both] + b[both] * log_b[both]
    values[both] = 0.5 * (together * logarithms(together) - apart)
    return values


def _kullback_leibler(a: Floats, log_a: Floats, b: Floats, log_b: Floats) -> Floats:
    """What each term adds to -KL(b || a), in bits: minus infinity where only b has it."""
    return np.where((b > 0) & (a == 0), -math.inf, b * (log_a - log_b))


def salient(models: Sequence[Model], corpus: Corpus, number: int, smoothing: float = 0.0) -> Ints:
    """int64[m]: the `number` terms that tell most about `models`, best first (spec 7.5, term selection).

    By the mean over models of p(w) log2(p(w) / p(w|C)), largest first, ties alphabetical.
    """
    background = corpus.background
    value = background * (smoothing * math.log2(smoothing) if smoothing else 0.0)
    own = np.unique(np.concatenate([model.terms for model in models]))
    targets = Targets(corpus, models, smoothing)
    means = np.zeros(len(own))
    for model in models:
        chance = targets.chances(model, own)[:-1]
        there = chance > 0
        means[there] += chance[there] * logarithms(chance[there] / background[own][there])
    value[own] = means / len(models)
    candidates = np.flatnonzero(background)
    best: Ints = candidates[np.argsort(-np.round(value[candidates], DECIMALS), kind="stable")]
    return best[:number]


def logarithms(values: Floats) -> Floats:
    """float64[n]: log2 of each value by Python's `math` (numpy's differs between processors); 0 of 0."""
    logs = np.zeros(len(values))
    positive = values > 0
    logs[positive] = list(map(math.log2, values[positive].tolist()))
    return logs


def _sum(values: Floats) -> float:
    """One value after another."""
    return float(np.cumsum(values)[-1]) if len(values) else 0.0
