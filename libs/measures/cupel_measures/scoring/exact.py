"""Exact scores: integers and rationals of any size, and operations on them.

A float has a precision of 53 bits; RBTO@250 with three degrees needs 397. Scores of systems can differ by
less than the precision of floats, and checks of scale types need exact differences. Therefore such scores are
compared, averaged and sorted as exact numbers.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, overload

import numpy as np

from cupel_measures.model import Exact, Floats, Ints
from cupel_measures.scoring.rows import Hits


@dataclass(frozen=True)
class Shares(Sequence[Fraction]):
    """Rationals with a common denominator. Each is reduced only on access.

    Reducing all of them would take far longer than adding them.
    """

    numerators: Sequence[int]
    unit: int

    def __len__(self) -> int:
        return len(self.numerators)

    @overload
    def __getitem__(self, place: int) -> Fraction: ...
    @overload
    def __getitem__(self, place: slice) -> "Shares": ...
    def __getitem__(self, place: int | slice) -> "Fraction | Shares":
        if isinstance(place, slice):
            return Shares(self.numerators[place], self.unit)
        return Fraction(self.numerators[place], self.unit)


def floats(values: Iterable[Exact]) -> Floats:
    """Return each value as a correctly rounded float64.

    Raises OverflowError beyond the range of floats.
    """
    return np.array([float(value) for value in values], dtype=np.float64)


def mean(values: Sequence[Exact]) -> Fraction:
    """Return the exact mean; 0 for no values."""
    return total(values) / max(len(values), 1)


def total(values: Sequence[Exact]) -> Fraction:
    """Return the exact sum."""
    numerators, unit = over_common_denominator(values)
    return Fraction(sum(numerators), unit)


def over_common_denominator(values: Sequence[Exact]) -> tuple[list[int], int]:
    """Return the numerators of `values` and their common denominator.

    It is the least common denominator, except for `Shares`.
    """
    if isinstance(values, Shares):
        return list(values.numerators), values.unit
    unit = math.lcm(*{value.denominator for value in values})
    return [value.numerator * (unit // value.denominator) for value in values], unit


def quotients(numerators: Ints, denominators: Ints | int) -> list[Fraction]:
    """Return numerator / denominator, or 0 if the denominator is 0."""
    below = np.broadcast_to(np.asarray(denominators), np.shape(numerators)).tolist()
    return [Fraction(a, b) if b else Fraction(0) for a, b in zip(numerators.tolist(), below, strict=True)]


def by_row(hits: Hits, *columns: Sequence[Any]) -> Iterator[tuple[Sequence[Any], ...]]:
    """Yield a tuple per row: the entries of the row in each column.

    A column has one entry per hit.
    """
    ends = np.cumsum(hits.number).tolist()
    for begin, end in pairwise([0, *ends]):
        yield tuple(column[begin:end] for column in columns)


def sums(hits: Hits, values: Sequence[Exact]) -> list[Fraction]:
    """Return the sum of `values`, one per hit, along each row."""
    return [total(row_values) for (row_values,) in by_row(hits, values)]


def rank_biased(hits: Hits, credit: Sequence[Exact], p: Fraction, best: Exact = 1) -> Shares:
    """Return the exact rank-biased sum of credits of each row.

    It is (1 - p) / best * sum of p^(rank - 1) * credit, by Horner's rule from the deepest hit.
    """
    numerators, unit = over_common_denominator(credit)
    rows = by_row(hits, hits.rank.tolist(), numerators)
    sums = [_discounted(ranks, numbers, p) for ranks, numbers in rows]
    deepest = max((depth for _, depth in sums), default=0)
    factor = (1 - p) / best / unit
    values = [above * factor.numerator * p.denominator ** (deepest - depth) for above, depth in sums]
    return Shares(values, factor.denominator * p.denominator**deepest)


def _discounted(ranks: Sequence[int], credit: Sequence[int], p: Fraction) -> tuple[int, int]:
    """Return the sum of p^(rank - 1) * credit as a numerator and an exponent.

    The denominator of the sum is the denominator of p, raised to this exponent.
    """
    above, below = 0, 1
    for shallower, rank, number in reversed(list(zip([1, *ranks], ranks, credit, strict=False))):
        gap = rank - shallower
        above = (above + number * below) * p.numerator**gap
        below *= p.denominator**gap
    return above, ranks[-1] - 1 if ranks else 0


def positional(hits: Hits, credit: Sequence[int], base: int, digits: int) -> list[int]:
    """Return the sum of credit * base^(digits - rank) of each row.

    This is the number with the digits `credit`.
    """
    values = []
    for ranks, row_digits in by_row(hits, hits.rank.tolist(), credit):
        value, place = 0, 0
        for rank, digit in zip(ranks, row_digits, strict=True):
            value, place = value * base ** (rank - place) + digit, rank
        values.append(value * base ** (digits - place))
    return values


CHUNK = 4000
"""Number of decimal digits that are converted at a time, because Python limits the length of conversions."""


def to_text(value: Exact) -> str:
    """Return the number in decimal digits of any length.

    A number that is not an integer is written as `p/q`.
    """
    above = ("-" if value < 0 else "") + _digits(abs(value.numerator))
    return above if value.denominator == 1 else f"{above}/{_digits(value.denominator)}"


def _digits(number: int) -> str:
    more, last = divmod(number, 10**CHUNK)
    return f"{_digits(more)}{last:0{CHUNK}d}" if more else str(last)


def sort_key(value: Exact) -> str:
    """Return ASCII text whose byte order is the order of the numbers.

    Equal numbers have equal text.

    The text is the continued fraction of the number, term by term, which is unique. Every second term is
    inverted (each hexadecimal digit is subtracted from 15), because a number decreases as that term
    increases. The end is encoded as an infinite term. With this key, a database can sort a leaderboard by
    exact scores of any size.
    """
    return "0" + _inverted(_terms(-value)) if value < 0 else "1" + _terms(value)


def _terms(value: Exact) -> str:
    above, below = value.numerator, value.denominator
    terms: list[int | None] = []
    while below:
        term, rest = divmod(above, below)
        terms.append(term)
        above, below = below, rest
    written = (_term(term) for term in [*terms, None])
    return "".join(_inverted(text) if place % 2 else text for place, text in enumerate(written))


def _term(number: int | None) -> str:
    """Return hexadecimal digits after their count, so that longer numbers sort last.

    None is infinity.
    """
    digits = "" if number is None else f"{number:x}"
    if number is None or len(digits) >= LONG:
        return f"{LONG:x}{LONGEST if number is None else len(digits):06x}{digits}"
    return f"{len(digits):x}{digits}"


LONG, LONGEST = 15, 16**6 - 1


def _inverted(text: str) -> str:
    """Return hexadecimal text with every digit subtracted from 15.

    This reverses the order.
    """
    return text.translate(INVERTED)


INVERTED = str.maketrans("0123456789abcdef", "fedcba9876543210")
