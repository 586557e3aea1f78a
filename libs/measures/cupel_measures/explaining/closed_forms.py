"""Expected values over all orders of tied documents, by closed forms (McSherry and Najork, ECIR 2008).

Of a group of n tied documents r are relevant: each of its places holds a relevant one with chance r/n, and
the r - 1 others are then spread evenly over the n - 1 other places.
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
class Seats:
    """Retrieved documents of the pool and the ranks they could have.

    rows: as measured, each hit at some rank. first, last: int64[n], of each hit's tie group. depth: int, no
    rank below it is seen.
    """

    rows: Rows
    first: Ints
    last: Ints
    depth: int

    @classmethod
    def of(cls, joined: Joined, pool: Pool, depth: int | None) -> "Seats":
        first, last = joined.first.astype(np.int64), joined.last.astype(np.int64)
        return cls(Rows.of(joined, pool), first, last, depth or DEEPEST)

    @property
    def condensed(self) -> "Seats":
        """The same after removing every document that is not judged. No tie group may be cut by depth."""
        hits = self.rows.hits
        kept = self.rows.pool.judged[hits.document] & (self.first <= self.depth)
        judged = hits.only(kept).condensed
        group = _numbers(judged.row, self.first[kept])
        size = np.bincount(group)
        first = judged.rank[np.cumsum(size) - size][group].astype(np.int64)
        rows = Rows(pool=self.rows.pool, profile=self.rows.profile, retrieved=judged.number, hits=judged)
        return Seats(rows, first, first + size[group] - 1, DEEPEST)

    def groups(self, credited: Mask, gain: Floats, cutoff: int | None) -> "TieGroups":
        """The tie groups that hold some of the `credited` hits, with what they gain in all."""
        limit = min(self.depth, cutoff or DEEPEST)
        kept = credited & (self.first <= limit)
        row, first, last = self.rows.hits.row[kept], self.first[kept], self.last[kept]
        group = _numbers(row, first)
        opens = np.flatnonzero(np.diff(group, prepend=-1))
        total = np.bincount(group, weights=gain[kept], minlength=len(opens))
        return TieGroups(
            self.rows.number,
            row[opens],
            first[opens],
            last[opens] - first[opens] + 1,
            np.bincount(group, minlength=len(opens)),
            total.astype(np.float64),
            np.minimum(last[opens], limit) - first[opens] + 1,
        )


def _numbers(row: Ints, first: Ints) -> Ints:
    """int64[n]: the tie group of each hit, counted from 0."""
    changed = np.ones(len(row), dtype=bool)
    changed[1:] = (row[1:] != row[:-1]) | (first[1:] != first[:-1])
    return np.cumsum(changed) - 1


@dataclass(frozen=True, eq=False)
class TieGroups:
    """Tie groups with credited documents, by row, then rank.

    row, first, size: int64[G]. members: int64[G], credited documents. gain: float64[G], of all of them.
    seen: int64[G], how many places of the group are above the cutoff. rows: how many rows there are.
    """

    rows: int
    row: Ints
    first: Ints
    size: Ints
    members: Ints
    gain: Floats
    seen: Ints

    def places(self) -> tuple[Ints, Ints]:
        """For each place seen, one after another: its group, and where it stands there, from 0."""
        group = np.repeat(np.arange(len(self.row)), self.seen)
        return group, np.arange(len(group)) - np.repeat(np.cumsum(self.seen) - self.seen, self.seen)

    def sum(self, values: Floats, group: Ints) -> Floats:
        """float64[rows]: the sum of one value per place, one after another."""
        return np.bincount(self.row[group], weights=values, minlength=self.rows).astype(np.float64)

    def linear(self, weight: Callable[[Ints], Floats]) -> Floats:
        """float64[rows]: the expected sum of gain * weight(rank)."""
        group, place = self.places()
        return self.sum((self.gain / self.size)[group] * weight(self.first[group] + place), group)

    @property
    def number(self) -> Floats:
        """float64[rows]: how many credited documents are expected above the cutoff."""
        return self.linear(lambda rank: np.ones(len(rank)))


def _relevant(seats: Seats, rel: int | None, cutoff: int | None) -> TieGroups:
    relevant = seats.rows.pool.relevant(rel)[seats.rows.hits.document]
    return seats.groups(relevant, np.ones(len(relevant)), cutoff)


def _precision(seats: Seats, *, cutoff: int, rel: int | None) -> Floats:
    return _relevant(seats, rel, cutoff).number / cutoff


def _recall(seats: Seats, *, cutoff: int, rel: int | None) -> Floats:
    return divided(_relevant(seats, rel, cutoff).number, seats.rows.recall_base(rel))


def _f(seats: Seats, *, cutoff: int, rel: int | None) -> Floats:
    return divided(2 * _relevant(seats, rel, cutoff).number, cutoff + seats.rows.recall_base(rel))


def _average_precision(seats: Seats, *, cutoff: int | None, rel: int | None) -> Floats:
    """A relevant document at place j of its group has c + (j - 1)(r - 1)/(n - 1) relevant ones above it."""
    groups = _relevant(seats, rel, cutoff)
    above = np.cumsum(groups.members) - groups.members
    start = np.searchsorted(groups.row, groups.row)
    earlier = above - above[start]
    beside = divided(groups.members - 1, groups.size - 1)
    group, place = groups.places()
    precision = (1 + earlier[group] + place * beside[group]) / (groups.first[group] + place)
    terms = (groups.members / groups.size)[group] * precision
    return divided(groups.sum(terms, group), seats.rows.recall_base(rel))


def _reciprocal_rank(seats: Seats, *, cutoff: int | None, rel: int | None) -> Floats:
    """The first relevant one is in the first group with any, at place j with chance C(n-j, r-1)/C(n, r)."""
    groups, found = _relevant(seats, rel, cutoff), np.zeros(seats.rows.number)
    _, leaders = np.unique(groups.row, return_index=True)
    for leader in leaders.tolist():
        size, members = int(groups.size[leader]), int(groups.members[leader])
        place = np.arange(min(int(groups.seen[leader]), size - members + 1))
        missed = np.cumprod((size - members - place[:-1]) / (size - place[:-1]))
        chance = np.concatenate([[1.0], missed]) * members / (size - place)
        found[groups.row[leader]] = np.cumsum(chance / (groups.first[leader] + place))[-1]
    return found


def _gained(seats: Seats, table: Floats, cutoff: int | None) -> TieGroups:
    gain = seats.rows.pool.gains(table)[seats.rows.hits.document]
    return seats.groups(gain > 0, gain, cutoff)


def _dcg(seats: Seats, *, base: Any, gains: Any, cutoff: int | None) -> Floats:
    groups = _gained(seats, label_gains.table(seats.rows.pool.aspect, gains), cutoff)
    if base is None:
        return groups.linear(lambda rank: 1.0 / discounts.log2(rank))
    return groups.linear(lambda rank: 1.0 / discounts.log(float(base), rank))


def _ndcg(seats: Seats, *, cutoff: int | None, dcg: str, gains: Any) -> Floats:
    table = gain_table(seats.rows, gains, exponential=dcg == "exp-log2")
    found = _gained(seats, table, cutoff).linear(lambda rank: 1.0 / discounts.log2(rank))
    return divided(found, seats.rows.pool.ideal_dcg(table, cutoff)[seats.rows.topic])


FORMS: Mapping[str, Callable[..., Floats]] = {
    "P": _precision,
    "R": _recall,
    "F": _f,
    "AP": _average_precision,
    "RR": _reciprocal_rank,
    "DCG": _dcg,
    "nDCG": _ndcg,
}
"""By the name of the measure: a function of seats and the measure's parameters to float64[rows]."""


def has_closed_form(measure: Measure) -> bool:
    """Whether `expected` takes the measure: one of FORMS, or a mean over aspects or the classes of such."""
    of, combination = measure.arguments.get("of"), measure.declaration.combination
    if combination is None:
        return measure.declaration.name in FORMS
    if combination == "harmonic mean":
        return False
    return all(has_closed_form(inner(of, name)) for name in measure.arguments["aspects"])


def cut_as_by_cutoff(measure: Measure) -> bool:
    """Whether a cutoff is a rank of the run, as `depth` is: not where judged documents are ranked anew."""
    of = measure.arguments.get("of")
    if of is None:
        return not measure.arguments.get("judged_only")
    return all(cut_as_by_cutoff(inner(of, name)) for name in measure.arguments["aspects"])


def expected(
    view: AspectView, joined: Joined, depth: int | None, measure: Measure, aspect: str | None = None
) -> Floats:
    """float64[T]: the mean over all orders of tied documents of `joined`, which is whole, cut at `depth`.

    measure: bound, with `has_closed_form`. view: what tells the judgments.
    """
    arguments, combination = measure.arguments, measure.declaration.combination
    of: Any = arguments.get("of")
    if combination == "mean":
        parts = weighted(view, arguments["aspects"], arguments["weights"])
        terms = [share * expected(view, joined, depth, inner(of, name), name) for name, share in parts]
        return within(of, np.cumsum(terms, axis=0)[-1])
    if combination == "classes":
        return _in_pool(of, Seats.of(joined, weighed(view, **arguments), depth))
    pool = view.pool(aspect or arguments["aspect"] or view.qrels.aspects[0].name)
    return _in_pool(measure, Seats.of(joined, pool, depth))


def _in_pool(measure: Measure, seats: Seats) -> Floats:
    arguments = measure.arguments
    arguments.pop("aspect")
    seats = seats.condensed if arguments.pop("judged_only") else seats
    return FORMS[measure.declaration.name](seats, **arguments)
