"""Agreement of two ranked lists of documents.

The coefficients are Kendall's tau, tau of the union, and rank-biased overlap.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cupel_measures.model import Floats, Ints, Ranking

NO_DOCUMENTS = "neither run retrieves a document"
TOO_FEW_SHARED = "the runs share fewer than two documents"
ALL_TIED = "one of the runs gives all shared documents the same score"


@dataclass(frozen=True, eq=False)
class DocumentList:
    """The documents of a run for one topic, best first.

    documents: distinct document ids. ranks: int64, 1 for the best; documents with equal scores share the best
    of their ranks.
    """

    documents: Sequence[bytes]
    ranks: Ints

    @classmethod
    def from_scores(cls, documents: Sequence[bytes], scores: Floats) -> "DocumentList":
        """Create a list from documents and their scores.

        The scores must be in descending order.
        """
        is_new = np.append(True, np.diff(scores) != 0)[: len(scores)]
        ranks = np.maximum.accumulate(np.where(is_new, np.arange(1, len(scores) + 1), 0))
        return cls(documents, ranks)


@dataclass(frozen=True, kw_only=True)
class ListAgreement:
    """The agreement of two lists on one topic.

    shared: number of documents in both lists. union: number of documents in at least one list. tau: Kendall's
    tau-b of the shared documents. tau_undefined: the reason why tau is None. tau_union: see the function
    `tau_union`. rbo: see `rank_biased_overlap`; None if neither run retrieves a document.
    """

    shared: int
    union: int
    tau: float | None
    tau_union: float | None
    rbo: float | None
    tau_undefined: str | None = None


def lists_by_topic(ranking: Ranking, topics: Sequence[str], depth: int | None = None) -> list[DocumentList]:
    """Return the first `depth` documents of each topic.

    A topic missing from the run has an empty list.
    """
    place = {topic: index for index, topic in enumerate(ranking.topics)}
    return [_list_of_topic(ranking, place.get(topic), depth) for topic in topics]


def _list_of_topic(ranking: Ranking, topic: int | None, depth: int | None) -> DocumentList:
    if topic is None:
        return DocumentList.from_scores([], np.zeros(0))
    begin, end = ranking.offsets[topic : topic + 2].tolist()
    end = end if depth is None else min(end, begin + depth)
    documents = [ranking.documents.bytes_at(document) for document in range(begin, end)]
    return DocumentList.from_scores(documents, ranking.scores[begin:end])


def compare_lists(first: DocumentList, second: DocumentList, *, p: float = 0.9) -> ListAgreement:
    """Compare two lists of documents; p is the persistence of rank-biased overlap."""
    shared = set(first.documents) & set(second.documents)
    tau, reason = _tau_of_shared(first, second, shared)
    n_union = len(first.documents) + len(second.documents) - len(shared)
    return ListAgreement(
        shared=len(shared),
        union=n_union,
        tau=tau,
        tau_union=tau_union(first.documents, second.documents),
        rbo=rank_biased_overlap(first, second, p=p) if n_union else None,
        tau_undefined=reason if n_union else NO_DOCUMENTS,
    )


def _tau_of_shared(
    first: DocumentList, second: DocumentList, shared: set[bytes]
) -> tuple[float | None, str | None]:
    """Return tau-b of the shared documents, or the reason why it is undefined.

    The result is (tau-b, None) or (None, reason).
    """
    from scipy.stats import kendalltau

    if len(shared) < 2:
        return None, TOO_FEW_SHARED
    rank_of = dict(zip(second.documents, second.ranks.tolist(), strict=True))
    pairs = [
        (rank, rank_of[document])
        for document, rank in zip(first.documents, first.ranks.tolist(), strict=True)
        if document in shared
    ]
    x, y = zip(*pairs, strict=True)
    if len(set(x)) == 1 or len(set(y)) == 1:
        return None, ALL_TIED
    return float(kendalltau(x, y).statistic), None


def tau_union(first: Sequence[bytes], second: Sequence[bytes]) -> float | None:
    """Return "Kendall's tau union" of Breuer et al. (SIGIR 2020, section 3).

    The documents of the first list are numbered 1, 2, ... in their order, followed by the other documents of
    the second list in their order. Each list then is a sequence of numbers, cut at the length of the shorter
    list. The result is Kendall's tau of the two sequences; None if a list has fewer than two documents. If
    both lists contain the same documents, the result is their Kendall's tau. Otherwise it can mislead: it is
    1 for two lists without a shared document. repro_eval 0.5.0 numbers the documents in the order of their
    ids instead, which gives other values.
    """
    from scipy.stats import kendalltau

    number = {document: index for index, document in enumerate(dict.fromkeys([*first, *second]))}
    ranks = min(len(first), len(second))
    if ranks < 2:
        return None
    numbers = ([number[document] for document in documents[:ranks]] for documents in (first, second))
    return float(kendalltau(*numbers).statistic)


def rank_biased_overlap(first: DocumentList, second: DocumentList, *, p: float = 0.9) -> float:
    """Return the extrapolated rank-biased overlap of two lists, from 0 to 1 (RBO_ext).

    Webber, Moffat and Zobel, TOIS 2010. The shorter list S has s documents, and the longer list L has l. S(d)
    and L(d) are the lists to depth d, and X(d) is the number of documents in both:

        A(d) = 2 X(d) / (|S(d)| + |L(d)|)                            for d <= s
        A(d) = 2 (X(d) + A(s) (d - s)) / (d + |L(d)|)                for s < d <= l
        RBO_ext = (1 - p) / p * sum over d <= l of A(d) p^d + A(l) p^l

    Without ties this is equation 32 of the paper. Documents with equal scores share the best of their ranks,
    so S(d) and L(d) can contain more than d documents (section 4.5, equation 28). The result is 0 if a list
    is empty. Raises ValueError unless 0 < p < 1.
    """
    if not 0 < p < 1:
        raise ValueError(f"p must be between 0 and 1, got {p}")
    shorter, longer = sorted((first, second), key=lambda ranked: len(ranked.documents))
    s, deepest = len(shorter.documents), len(longer.documents)
    if not s:
        return 0.0
    rank_of = dict(zip(shorter.documents, shorter.ranks.tolist(), strict=True))
    shared = [
        max(rank, rank_of[document])
        for document, rank in zip(longer.documents, longer.ranks.tolist(), strict=True)
        if document in rank_of
    ]
    depths = np.arange(1, deepest + 1)
    common = _count_to_depth(shared, deepest)
    in_longer, in_shorter = _count_to_depth(longer.ranks, deepest), _count_to_depth(shorter.ranks, deepest)
    agreement_at_s = 2 * common[s - 1] / (in_shorter[s - 1] + in_longer[s - 1])
    extension = np.maximum(depths - s, 0)
    sizes = in_longer + in_shorter + extension
    agreement = 2 * (common + agreement_at_s * extension) / sizes
    weights = np.cumprod(np.full(deepest, p))
    total = float(np.cumsum(agreement * weights)[-1])
    return (1 - p) / p * total + float(agreement[-1] * weights[-1])


def _count_to_depth(ranks: Sequence[int] | Ints, depth: int) -> Ints:
    """Return the numbers of ranks that are at most 1, 2, ..., depth, int64[depth]."""
    return np.cumsum(np.bincount(np.asarray(ranks, dtype=np.int64), minlength=depth + 1)[1:])
