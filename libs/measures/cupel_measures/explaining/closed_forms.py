"""Expected values over all orders of tied documents, by closed forms.

The reference is McSherry and Najork, ECIR 2008.

A group of n tied documents contains r relevant ones. Each of its ranks has a relevant document with
probability r/n. Given a relevant document at one rank, the other r - 1 relevant documents are distributed
uniformly over the other n - 1 ranks.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cupel_measures.explaining.tie_orders import DEEPEST
from cupel_measures.families.multiaspect import inner, weighed, weighted, within
from cupel_measures.families.ranked import gain_table
from cupel_measures.grammar.measure import Measure
from cupel_measures.model import Floats, Ints, Joined
from cupel_measures.scoring import discounts
from cupel_measures.scoring import gains as label_gains
from cupel_measures.scoring.pool import Mask, Pool
from cupel_measures.scoring.rows import Rows, divided
from cupel_measures.scoring.view import AspectView


@dataclass(frozen=True, eq=False)
class TiedHits:
    """Retrieved documents of the pool, with the ranks that their tie groups occupy.

    rows: the rows of the joined run, with the hits. first, last: int64[n], the first and last rank of each
    hit's tie group. depth: deepest rank that counts.
    """

    rows: Rows
    first: Ints
    last: Ints
    depth: int

    @classmethod
    def of(cls, joined: Joined, pool: Pool, depth: int | None) -> "TiedHits":
        first, last = joined.first.astype(np.int64), joined.last.astype(np.int64)
        return cls(Rows.of(joined, pool), first, last, depth or DEEPEST)

    @property
    def condensed(self) -> "TiedHits":
        """The hits and tie groups after removing all unjudged documents.

        The result is valid only if no tie group extends below `depth`.
        """
        hits = self.rows.hits
        kept = self.rows.pool.judged[hits.document] & (self.first <= self.depth)
        judged = hits.only(kept).condensed
        group = _numbers(judged.row, self.first[kept])
        size = np.bincount(group)
        first = judged.rank[np.cumsum(size) - size][group].astype(np.int64)
        rows = Rows(pool=self.rows.pool, profile=self.rows.profile, retrieved=judged.number, hits=judged)
        return TiedHits(rows, first, first + size[group] - 1, DEEPEST)

    def groups(self, credited: Mask, gain: Floats, cutoff: int | None) -> "TieGroups":
        """Return the tie groups with hits in `credited`, and the total gains of the hits.

        credited: bool[n].
        """
        limit = min(self.depth, cutoff or DEEPEST)
        kept = credited & (self.first <= limit)
        row, first, last = self.rows.hits.row[kept], self.first[kept], self.last[kept]
        group = _numbers(row, first)
        opens = np.flatnonzero(np.diff(group, prepend=-1))
        total = np.bincount(group, weights=gain[kept], minlength=len(opens))
        return TieGroups(
            rows=self.rows.number,
            row=row[opens],
            first=first[opens],
            size=last[opens] - first[opens] + 1,
            members=np.bincount(group, minlength=len(opens)),
            gain=total.astype(np.float64),
            seen=np.minimum(last[opens], limit) - first[opens] + 1,
        )


def _numbers(row: Ints, first: Ints) -> Ints:
    """Return the number of each hit's tie group, from 0, int64[n]."""
    changed = np.ones(len(row), dtype=bool)
    changed[1:] = (row[1:] != row[:-1]) | (first[1:] != first[:-1])
    return np.cumsum(changed) - 1


@dataclass(frozen=True, eq=False, kw_only=True)
class TieGroups:
    """Tie groups with credited documents, ordered by row and rank.

    rows: number of rows. row, first, size: int64[G], row, first rank and number of ranks. members: int64[G],
    number of credited documents. gain: float64[G], their total gain. seen: int64[G], number of ranks of the
    group down to the cutoff.
    """

    rows: int
    row: Ints
    first: Ints
    size: Ints
    members: Ints
    gain: Floats
    seen: Ints

    def places(self) -> tuple[Ints, Ints]:
        """Return the group of each rank down to the cutoff, and the rank's place in it.

        The place is the position in the group, from 0.
        """
        group = np.repeat(np.arange(len(self.row)), self.seen)
        return group, np.arange(len(group)) - np.repeat(np.cumsum(self.seen) - self.seen, self.seen)

    def sum(self, values: Floats, group: Ints) -> Floats:
        """Return the sum of `values` per row, float64[rows].

        values, group: one entry per seen rank.
        """
        return np.bincount(self.row[group], weights=values, minlength=self.rows).astype(np.float64)

    def linear(self, weight: Callable[[Ints], Floats]) -> Floats:
        """Return the expected sum of gain * weight(rank), float64[rows]."""
        group, place = self.places()
        return self.sum((self.gain / self.size)[group] * weight(self.first[group] + place), group)

    @property
    def number(self) -> Floats:
        """Expected number of credited documents down to the cutoff, float64[rows]."""
        return self.linear(lambda rank: np.ones(len(rank)))


def _relevant(hits: TiedHits, rel: int | None, cutoff: int | None) -> TieGroups:
    relevant = hits.rows.pool.relevant(rel)[hits.rows.hits.document]
    return hits.groups(relevant, np.ones(len(relevant)), cutoff)


def _precision(hits: TiedHits, *, cutoff: int, rel: int | None) -> Floats:
    return _relevant(hits, rel, cutoff).number / cutoff


def _recall(hits: TiedHits, *, cutoff: int, rel: int | None) -> Floats:
    return divided(_relevant(hits, rel, cutoff).number, hits.rows.recall_base(rel))


def _f(hits: TiedHits, *, cutoff: int, rel: int | None) -> Floats:
    return divided(2 * _relevant(hits, rel, cutoff).number, cutoff + hits.rows.recall_base(rel))


def _average_precision(hits: TiedHits, *, cutoff: int | None, rel: int | None) -> Floats:
    """Return expected AP.

    Let c relevant documents precede the tie group. A relevant document at position j of the group is then
    preceded by c + (j - 1)(r - 1)/(n - 1) relevant documents on average.
    """
    groups = _relevant(hits, rel, cutoff)
    above = np.cumsum(groups.members) - groups.members
    start = np.searchsorted(groups.row, groups.row)
    earlier = above - above[start]
    beside = divided(groups.members - 1, groups.size - 1)
    group, place = groups.places()
    precision = (1 + earlier[group] + place * beside[group]) / (groups.first[group] + place)
    terms = (groups.members / groups.size)[group] * precision
    return divided(groups.sum(terms, group), hits.rows.recall_base(rel))


def _reciprocal_rank(hits: TiedHits, *, cutoff: int | None, rel: int | None) -> Floats:
    """Return expected RR.

    The first relevant document is in the first group that contains relevant documents. It has position j in
    this group with probability C(n-j, r-1)/C(n, r).
    """
    groups, values = _relevant(hits, rel, cutoff), np.zeros(hits.rows.number)
    _, leaders = np.unique(groups.row, return_index=True)
    for leader in leaders.tolist():
        size, members = int(groups.size[leader]), int(groups.members[leader])
        place = np.arange(min(int(groups.seen[leader]), size - members + 1))
        missed = np.cumprod((size - members - place[:-1]) / (size - place[:-1]))
        probability = np.concatenate([[1.0], missed]) * members / (size - place)
        values[groups.row[leader]] = np.cumsum(probability / (groups.first[leader] + place))[-1]
    return values


def _gained(hits: TiedHits, table: Floats, cutoff: int | None) -> TieGroups:
    gain = hits.rows.pool.gains(table)[hits.rows.hits.document]
    return hits.groups(gain > 0, gain, cutoff)


def _dcg(hits: TiedHits, *, base: Any, gains: Any, cutoff: int | None) -> Floats:
    groups = _gained(hits, label_gains.table(hits.rows.pool.aspect, gains), cutoff)
    if base is None:
        return groups.linear(lambda rank: 1.0 / discounts.log2(rank))
    return groups.linear(lambda rank: 1.0 / discounts.log(float(base), rank))


def _ndcg(hits: TiedHits, *, cutoff: int | None, dcg: str, gains: Any) -> Floats:
    table = gain_table(hits.rows, gains, exponential=dcg == "exp-log2")
    dcg_values = _gained(hits, table, cutoff).linear(lambda rank: 1.0 / discounts.log2(rank))
    return divided(dcg_values, hits.rows.pool.ideal_dcg(table, cutoff)[hits.rows.topic])


FORMS: Mapping[str, Callable[..., Floats]] = {
    "P": _precision,
    "R": _recall,
    "F": _f,
    "AP": _average_precision,
    "RR": _reciprocal_rank,
    "DCG": _dcg,
    "nDCG": _ndcg,
}
"""Measure name -> function that computes expected values, float64[rows], from the hits and the parameters."""


def has_closed_form(measure: Measure) -> bool:
    """Return whether `expected` supports the measure.

    A supported measure is one of FORMS, or a combination of such measures.

    A combination is supported if it is an arithmetic mean over aspects, or if it scores label classes.
    """
    of, combination = measure.arguments.get("of"), measure.declaration.combination
    if combination is None:
        return measure.declaration.name in FORMS
    if combination == "harmonic mean":
        return False
    return all(has_closed_form(inner(of, name)) for name in measure.arguments["aspects"])


def cuts_by_run_rank(measure: Measure) -> bool:
    """Return whether the cutoff counts all documents of the run, as `depth` does.

    The cutoff of a judged-only measure counts judged documents only.
    """
    of = measure.arguments.get("of")
    if of is None:
        return not measure.arguments.get("judged_only")
    return all(cuts_by_run_rank(inner(of, name)) for name in measure.arguments["aspects"])


def expected(
    view: AspectView, joined: Joined, depth: int | None, measure: Measure, aspect: str | None = None
) -> Floats:
    """Return the mean over all orders of tied documents, float64[T].

    view: the judgments. joined: the run without a cut; this function cuts it at `depth`. measure: a bound
    measure for which `has_closed_form` is true.
    """
    arguments, combination = measure.arguments, measure.declaration.combination
    of: Any = arguments.get("of")
    if combination == "mean":
        parts = weighted(view, arguments["aspects"], arguments["weights"])
        terms = [share * expected(view, joined, depth, inner(of, name), name) for name, share in parts]
        return within(of, np.cumsum(terms, axis=0)[-1])
    if combination == "classes":
        return _in_pool(of, TiedHits.of(joined, weighed(view, **arguments), depth))
    pool = view.pool(aspect or arguments["aspect"] or view.qrels.aspects[0].name)
    return _in_pool(measure, TiedHits.of(joined, pool, depth))


def _in_pool(measure: Measure, hits: TiedHits) -> Floats:
    arguments = measure.arguments
    arguments.pop("aspect")
    hits = hits.condensed if arguments.pop("judged_only") else hits
    return FORMS[measure.declaration.name](hits, **arguments)
