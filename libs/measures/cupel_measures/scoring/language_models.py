"""Language models of documents and of mixtures, and the closeness of two models.

A model distributes a probability of 1 over the terms of a collection and NULL, a reserved term that occurs in
no document. For a document without words or with unknown text, the probability of NULL is 1. The reference
page of LMD defines each step.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cupel_measures.model import Floats, Ints, Texts
from cupel_measures.scoring.pool import Mask

DECIMALS = 12
"""Number of decimals to which computed values are rounded before they are compared."""


@dataclass(frozen=True, eq=False)
class Model:
    """A mixture of documents, before smoothing.

    terms: int64[n], ascending. p: float64[n], the relative frequency of each term in the mixture. text, null:
    the total weights of the documents with words and without words; they sum to 1.
    """

    terms: Ints
    p: Floats
    text: float
    null: float

    def at(self, terms: Ints) -> Floats:
        """Return float64[m]: p of each of `terms`."""
        place = np.minimum(np.searchsorted(self.terms, terms), max(len(self.terms) - 1, 0))
        if not len(self.terms):
            return np.zeros(len(terms))
        return np.where(self.terms[place] == terms, self.p[place], 0.0)


@dataclass(frozen=True, eq=False)
class Corpus:
    """Relative frequencies of terms in texts.

    Document d has the terms term[offsets[d]:offsets[d + 1]]. share: float64[n], the relative frequency of
    each term in its document. background: float64[V], p(w|C), the relative frequency of each term in all
    texts together; 0 for a stop word.
    """

    offsets: Ints
    term: Ints
    share: Floats
    background: Floats

    @classmethod
    def of(cls, texts: Texts, stop: int = 0) -> "Corpus":
        """Return the corpus of `texts` without the `stop` most frequent terms.

        Equally frequent terms are in alphabetical order. The corpus is cached.
        """
        key = ("corpus", stop)
        if key not in texts.cache:
            texts.cache[key] = cls._build(texts, stop)
        corpus: Corpus = texts.cache[key]
        return corpus

    @classmethod
    def _build(cls, texts: Texts, stop: int) -> "Corpus":
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
        """Return bool[n]: which of `documents` have a word; -1 is an unknown document."""
        return (documents >= 0) & (self.offsets[documents + 1] > self.offsets[documents])

    def mixture(self, documents: Ints, weights: Floats) -> Model:
        """Return the mixture of documents by weights that sum to 1.

        documents: -1 is an unknown document.
        """
        known = self.with_words(documents)
        begin = self.offsets[documents[known]]
        number = self.offsets[documents[known] + 1] - begin
        entries = np.arange(number.sum()) + np.repeat(begin - (np.cumsum(number) - number), number)
        masses = np.repeat(weights[known], number) * self.share[entries]
        text, null = (math.fsum(weights[mask].tolist()) for mask in (known, ~known))
        return Model(*_sum_by_term(self.term[entries], masses), text, null)

    def mean(self, documents: Ints) -> Model:
        """Return the arithmetic mean of the models of `documents`."""
        return self.mixture(documents, np.full(len(documents), 1.0 / len(documents)))


def mixed(models: Sequence[Model], weights: Floats) -> Model:
    """Return the mixture of models by weights that sum to 1."""
    terms = np.concatenate([model.terms for model in models])
    masses = np.concatenate([weight * model.p for model, weight in zip(models, weights, strict=True)])
    text = math.fsum(weight * model.text for model, weight in zip(models, weights, strict=True))
    null = math.fsum(weight * model.null for model, weight in zip(models, weights, strict=True))
    return Model(*_sum_by_term(terms, masses), text, null)


def _sum_by_term(terms: Ints, masses: Floats) -> tuple[Ints, Floats]:
    """Return the distinct terms, ascending, and the sum of the masses of each.

    The masses of a term are added in order.
    """
    distinct_terms, place = np.unique(terms, return_inverse=True)
    sums = np.bincount(place.reshape(-1), weights=masses, minlength=len(distinct_terms))
    return distinct_terms, np.asarray(sums, dtype=np.float64)


@dataclass(frozen=True, eq=False, kw_only=True)
class Targets:
    """Target models with which other models are compared.

    smoothing: the share of p(w|C) in every model with text. divergence: jsd or kl. kept: the terms to which
    all models are restricted and renormalised; None keeps all. A target without any of these terms has
    probability 0 for all terms and NULL, so its closeness to every model is 0.
    """

    corpus: Corpus
    models: Sequence[Model]
    smoothing: float = 0.0
    divergence: str = "jsd"
    kept: Ints | None = None

    def closeness(self, model: Model) -> Floats:
        """Return float64[S]: the closeness of `model` to each target, from 0 to 1.

        jsd: 1 - the Jensen-Shannon divergence to base 2. kl: exp(-KL(target || model)) in nats.
        """
        flat = self._flat
        similarity = _kullback_leibler if self.divergence == "kl" else _jensen_shannon
        p = self.probabilities(model, flat.terms)
        logs = logarithms(p)
        sums = flat.sum(similarity(p[flat.place], logs[flat.place], flat.p, flat.log))
        if self.smoothing and self.kept is None:
            of_model, of_target = self._other_terms(model)
            sums += _sum(similarity(of_model, logarithms(of_model), of_target, logarithms(of_target)))
        if self.divergence == "kl":
            closeness = np.array([math.exp(min(0.0, bits * math.log(2.0))) for bits in sums.tolist()])
        else:
            closeness = np.clip(sums, 0.0, 1.0)
        return np.where(flat.is_empty, 0.0, closeness)

    @cached_property
    def _flat(self) -> "_Flat":
        target_terms = [model.terms for model in self.models]
        terms = np.unique(np.concatenate(target_terms)) if self.kept is None else self.kept
        return _Flat.of([self._target(model, terms) for model in self.models], terms)

    def _target(self, model: Model, terms: Ints) -> Floats:
        """Return the probabilities of a target, float64[n + 1].

        If only some terms are kept and the target contains none of them, all its probabilities are 0.
        """
        p = self.probabilities(model, terms)
        return p if self.kept is None or p[:-1].any() else np.zeros(len(p))

    def probabilities(self, model: Model, terms: Ints) -> Floats:
        """Return float64[n + 1]: the smoothed probabilities of `terms` and of NULL.

        If only some terms are kept, these probabilities sum to 1.
        """
        p = np.append((1.0 - self.smoothing) * model.at(terms), model.null)
        if self.smoothing:
            p[:-1] += self.smoothing * model.text * self.corpus.background[terms]
        if self.kept is None:
            return p
        total = _sum(p)
        return p / total if total else np.append(np.zeros(len(terms)), 1.0)

    def _other_terms(self, model: Model) -> tuple[Floats, Floats]:
        """Return the probabilities of terms outside all targets.

        The first array has their probabilities in `model`, the second their probabilities in a target.

        By smoothing, all targets give such a term the same probability, a share of p(w|C). Terms of the model
        have an entry each. All other terms together have one entry, because divergences are homogeneous sums
        over terms.
        """
        known, background = self._flat.terms, self.corpus.background
        others = np.setdiff1d(model.terms, known, assume_unique=True)
        rest = 1.0 - _sum(background[known]) - _sum(background[others])
        shares = self.smoothing * np.append(background[others], max(rest, 0.0))
        return model.text * shares + (1.0 - self.smoothing) * np.append(model.at(others), 0.0), shares


@dataclass(frozen=True, eq=False, kw_only=True)
class _Flat:
    """The positive probabilities of targets at `terms` and NULL, target by target.

    target: int64[n], index of the target, below `number`. place: int64[n], index of the term, or the number
    of terms for NULL. p, log: float64[n], the probability and its logarithm.
    """

    terms: Ints
    number: int
    target: Ints
    place: Ints
    p: Floats
    log: Floats

    @classmethod
    def of(cls, table: Sequence[Floats], terms: Ints) -> "_Flat":
        target, place = np.nonzero(table)
        p = np.array(table)[target, place]
        return cls(terms=terms, number=len(table), target=target, place=place, p=p, log=logarithms(p))

    @property
    def is_empty(self) -> Mask:
        """Return bool[number]: which targets have no probability at all."""
        return np.isin(np.arange(self.number), self.target, invert=True)

    def sum(self, values: Floats) -> Floats:
        """Return float64[number]: the sum of `values` of each target, added in order."""
        sums = np.bincount(self.target, weights=values, minlength=self.number)
        return np.asarray(sums, dtype=np.float64)


def _jensen_shannon(a: Floats, log_a: Floats, b: Floats, log_b: Floats) -> Floats:
    """Return the contribution of each term to 1 - JSD, in bits.

    It is 0 for a term that only one model has.
    """
    both = (a > 0) & (b > 0)
    values = np.zeros(len(a))
    total = a[both] + b[both]
    separate = a[both] * log_a[both] + b[both] * log_b[both]
    values[both] = 0.5 * (total * logarithms(total) - separate)
    return values


def _kullback_leibler(a: Floats, log_a: Floats, b: Floats, log_b: Floats) -> Floats:
    """Return the contribution of each term to -KL(b || a), in bits.

    It is minus infinity if only b has the term.
    """
    return np.where((b > 0) & (a == 0), -math.inf, b * (log_a - log_b))


def salient(models: Sequence[Model], corpus: Corpus, number: int, smoothing: float = 0.0) -> Ints:
    """Return the `number` terms that distinguish `models` best, best first.

    int64[m]. These are the `terms` of LMD.

    The order is by the mean over models of p(w) log2(p(w) / p(w|C)), largest first, ties alphabetical.
    """
    background = corpus.background
    value = background * (smoothing * math.log2(smoothing) if smoothing else 0.0)
    terms = np.unique(np.concatenate([model.terms for model in models]))
    targets = Targets(corpus=corpus, models=models, smoothing=smoothing)
    means = np.zeros(len(terms))
    for model in models:
        p = targets.probabilities(model, terms)[:-1]
        occurs = p > 0
        means[occurs] += p[occurs] * logarithms(p[occurs] / background[terms][occurs])
    value[terms] = means / len(models)
    candidates = np.flatnonzero(background)
    best: Ints = candidates[np.argsort(-np.round(value[candidates], DECIMALS), kind="stable")]
    return best[:number]


def logarithms(values: Floats) -> Floats:
    """Return log2 of each value, and 0 for 0, as float64[n].

    Computed by `math`, because the results of numpy depend on the processor.
    """
    logs = np.zeros(len(values))
    positive = values > 0
    logs[positive] = list(map(math.log2, values[positive].tolist()))
    return logs


def _sum(values: Floats) -> float:
    """Return the sum of `values`, added in order."""
    return float(np.cumsum(values)[-1]) if len(values) else 0.0
