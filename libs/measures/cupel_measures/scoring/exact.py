"""Scores as exact numbers: whole numbers and rationals of any size, and what can be done with them.

A float holds 53 bits; RBTO@250 on three degrees has 397. Where two systems differ only below them, or where a
scale is to be shown equally spaced (spec 4), scores are compared, averaged and sorted here, never as floats.
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
    """Rationals over one denominator. Each is put into its lowest terms when it is asked for, not before:
    that takes far longer than adding them up."""

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
    """float64: each value correctly rounded; OverflowError beyond the floats, never an infinity."""
    return np.array([float(value) for value in values], dtype=np.float64)


def mean(values: Sequence[Exact]) -> Fraction:
    """The exact mean; 0 of no values."""
    return total(values) / max(len(values), 1)


def total(values: Sequence[Exact]) -> Fraction:
    """The exact sum."""
    numerators, unit = whole(values)
    return Fraction(sum(numerators), unit)


def whole(values: Sequence[Exact]) -> tuple[list[int], int]:
    """Numerators of `values` over a common denominator (but for `Shares` the least one), and that one."""
    if isinstance(values, Shares):
        return list(values.numerators), values.unit
    unit = math.lcm(*{value.denominator for value in values})
    return [value.numerator * (unit // value.denominator) for value in values], unit


def quotients(numerators: Ints, denominators: Ints | int) -> list[Fraction]:
    """numerator / denominator, and 0 where the denominator is 0 (spec 1.2)."""
    below = np.broadcast_to(np.asarray(denominators), np.shape(numerators)).tolist()
    return [Fraction(a, b) if b else Fraction(0) for a, b in zip(numerators.tolist(), below, strict=True)]


def by_row(hits: Hits, *columns: Sequence[Any]) -> Iterator[tuple[Sequence[Any], ...]]:
    """For each row, its part of every one of `columns`, which have an entry per hit."""
    ends = np.cumsum(hits.number).tolist()
    for begin, end in pairwise([0, *ends]):
        yield tuple(column[begin:end] for column in columns)


def sums(hits: Hits, values: Sequence[Exact]) -> list[Fraction]:
    """The sum of `values`, one per hit, along each row."""
    return [total(of_row) for (of_row,) in by_row(hits, values)]


def rank_biased(hits: Hits, credit: Sequence[Exact], p: Fraction, best: Exact = 1) -> Shares:
    """(1 - p) / best * sum of p^(rank - 1) * credit along each row, by Horner's rule from the deepest hit."""
    numerators, unit = whole(credit)
    rows = by_row(hits, hits.rank.tolist(), numerators)
    sums = [_discounted(ranks, of_row, p) for ranks, of_row in rows]
    deepest = max((depth for _, depth in sums), default=0)
    factor = (1 - p) / best / unit
    values = [above * factor.numerator * p.denominator ** (deepest - depth) for above, depth in sums]
    return Shares(values, factor.denominator * p.denominator**deepest)


def _discounted(ranks: Sequence[int], credit: Sequence[int], p: Fraction) -> tuple[int, int]:
    """The sum of p^(rank - 1) * credit as a numerator, and the power of p's denominator below it."""
    above, below = 0, 1
    for shallower, rank, one in reversed(list(zip([1, *ranks], ranks, credit, strict=False))):
        gap = rank - shallower
        above = (above + one * below) * p.numerator**gap
        below *= p.denominator**gap
    return above, ranks[-1] - 1 if ranks else 0


def positional(hits: Hits, credit: Sequence[int], base: int, digits: int) -> list[int]:
    """Along each row, `credit` read as digits: the sum of credit * base^(digits - rank)."""
    values = []
    for ranks, of_row in by_row(hits, hits.rank.tolist(), credit):
        value, place = 0, 0
        for rank, one in zip(ranks, of_row, strict=True):
            value, place = value * base ** (rank - place) + one, rank
        values.append(value * base ** (digits - place))
    return values


BLOCK = 4000
"""Decimal digits that Python turns into text, and back, at once."""


def to_text(value: Exact) -> str:
    """The number in decimal digits, as `p/q` where it is not whole; of any length."""
    above = ("-" if value < 0 else "") + _digits(abs(value.numerator))
    return above if value.denominator == 1 else f"{above}/{_digits(value.denominator)}"


def _digits(number: int) -> str:
    more, last = divmod(number, 10**BLOCK)
    return f"{_digits(more)}{last:0{BLOCK}d}" if more else str(last)


def from_text(text: str) -> Fraction:
    """The number that `to_text` wrote."""
    above, _, below = text.partition("/")
    sign = -1 if above.startswith("-") else 1
    return Fraction(sign * _number(above.lstrip("-")), _number(below or "1"))


def _number(digits: str) -> int:
    first = len(digits) % BLOCK
    blocks = [digits[begin : begin + BLOCK] for begin in range(first, len(digits), BLOCK)]
    number = int(digits[:first] or "0")
    for block in blocks:
        number = number * 10**BLOCK + int(block)
    return number


def sort_key(value: Exact) -> str:
    """ASCII text, the same for equal numbers, whose order by bytes is the order of the numbers.

    It is the continued fraction of the number, which no two numbers share, a term after another. Every
    second term counts downwards, so it is written with each digit taken from 15; the end stands for an
    infinite term. A database can thus order a board by exact scores without knowing numbers of this size.
    """
    return "0" + _turned(_terms(-value)) if value < 0 else "1" + _terms(value)


def _terms(value: Exact) -> str:
    above, below = value.numerator, value.denominator
    terms: list[int | None] = []
    while below:
        term, rest = divmod(above, below)
        terms.append(term)
        above, below = below, rest
    written = (_term(term) for term in [*terms, None])
    return "".join(_turned(text) if place % 2 else text for place, text in enumerate(written))


def _term(number: int | None) -> str:
    """Hexadecimal digits behind their number, so that longer is greater; None is infinity."""
    digits = "" if number is None else f"{number:x}"
    if number is None or len(digits) >= LONG:
        return f"{LONG:x}{LONGEST if number is None else len(digits):06x}{digits}"
    return f"{len(digits):x}{digits}"


LONG, LONGEST = 15, 16**6 - 1


def _turned(text: str) -> str:
    """Hexadecimal text with every digit taken from 15: the order is reversed."""
    return text.translate(TURNED)


TURNED = str.maketrans("0123456789abcdef", "fedcba9876543210")
