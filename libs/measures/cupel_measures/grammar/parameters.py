"""Kinds of measure parameters: what text may stand for them, and what would be right.

A measure's keyword-only parameters are annotated with one of the aliases at the end; parser,
documentation and error messages read the kind from there.
"""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any

from cupel_measures.grammar.syntax import ArgumentPairs, short, shown

MOST = 1e100
MOST_NUMBERS = 1000
"""Of a list."""
"""The greatest gain, weight or coordinate: sums of many stay far from overflow."""


class ParameterError(ValueError):
    """A value that a parameter can't take; the message says what was expected."""


def nearest(word: str, known: Sequence[str]) -> str:
    """A hint at the known word that looks most like `word`, if one does."""
    lower = {name.lower(): name for name in known}
    close = difflib.get_close_matches(word.lower()[:LONGEST_WORD], lower, 1, 0.6)
    return f"; did you mean {lower[close[0]]}?" if close else ""


LONGEST_WORD = 100


@dataclass(frozen=True)
class ParameterKind:
    """What a parameter takes: `expects` in words, `read` checks and normalises a parsed value."""

    expects: str

    def read(self, value: Any) -> Any:
        raise NotImplementedError

    def refuse(self, value: Any) -> ParameterError:
        got = repr(value) if isinstance(value, float) else shown(value)
        return ParameterError(f"expected {self.expects}, got {short(got)}")


@dataclass(frozen=True)
class Whole(ParameterKind):
    """An integer of at least `least`, and at most `most`."""

    expects: str = "a whole number from 1"
    least: int = 1
    most: int | None = None

    def read(self, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < self.least:
            raise self.refuse(value)
        if self.most is not None and value > self.most:
            raise self.refuse(value)
        return value


@dataclass(frozen=True)
class Number(ParameterKind):
    """A number of `low`..`high`, open at the ends named in `without`; a rational stays exact."""

    expects: str = "a number"
    low: float = -MOST
    high: float = MOST
    without: tuple[float, ...] = ()

    def read(self, value: Any) -> float | Fraction:
        if isinstance(value, bool) or not isinstance(value, int | float | Fraction):
            raise self.refuse(value)
        if float(value) > self.high == MOST or float(value) < self.low == -MOST:
            raise ParameterError(f"numbers here go up to {MOST:g}, got {short(repr(value))}")
        if not self.low <= float(value) <= self.high or float(value) in self.without:
            raise self.refuse(value)
        return settled(value)


@dataclass(frozen=True)
class Flag(ParameterKind):
    expects: str = "True or False"

    def read(self, value: Any) -> bool:
        if not isinstance(value, bool):
            raise self.refuse(value)
        return value


@dataclass(frozen=True)
class Word(ParameterKind):
    """A string; one of `choices` where there are any."""

    expects: str = "a name"
    choices: tuple[str, ...] = ()

    def read(self, value: Any) -> str:
        if not isinstance(value, str) or not value:
            raise self.refuse(value)
        if self.choices and value not in self.choices:
            raise ParameterError(f"{self.refuse(value)}{nearest(value, self.choices)}")
        return value


@dataclass(frozen=True)
class Words(ParameterKind):
    """A list of different names."""

    expects: str = "a list of different names, such as [relevance,credibility]"

    def read(self, value: Any) -> tuple[str, ...]:
        if not isinstance(value, list | tuple) or not value or not all(isinstance(v, str) for v in value):
            raise self.refuse(value)
        if len(set(value)) < len(value):
            raise self.refuse(value)
        return tuple(value)


@dataclass(frozen=True)
class Either(ParameterKind):
    """What any of `kinds` takes, tried in order."""

    kinds: tuple[ParameterKind, ...] = ()

    def read(self, value: Any) -> Any:
        for kind in self.kinds:
            try:
                return kind.read(value)
            except ParameterError:
                continue
        raise self.refuse(value)


@dataclass(frozen=True)
class Numbers(ParameterKind):
    """A non-empty list of numbers that goes one way: `rising` or `falling`, equal neighbours allowed."""

    expects: str = "a list of numbers"
    each: ParameterKind = Number()
    rising: bool = True
    longest: int = MOST_NUMBERS

    def read(self, value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple) or not value:
            raise self.refuse(value)
        if len(value) > self.longest:
            raise ParameterError(f"lists here have up to {self.longest:,} numbers, got {len(value):,}")
        try:
            numbers = tuple(self.each.read(one) for one in value)
        except ParameterError:
            raise self.refuse(value) from None
        if list(numbers) != sorted(numbers, reverse=not self.rising):
            raise self.refuse(value)
        return numbers


@dataclass(frozen=True)
class GainTableParameter(ParameterKind):
    """A dict from `key` to `value`, kept sorted by key. Hashable as a tuple of pairs.

    Where `optional`, an empty table is the same as none.
    """

    expects: str = "a dict"
    key: ParameterKind = Word()
    value: ParameterKind = Number()
    optional: bool = False

    def read(self, value: Any) -> ArgumentPairs | None:
        if isinstance(value, ArgumentPairs):  # read before
            return value
        if self.optional and value == {}:
            return None
        if not isinstance(value, Mapping) or not value:
            raise self.refuse(value)
        try:
            pairs = [(self.key.read(k), self.value.read(v)) for k, v in value.items()]
            return ArgumentPairs(sorted(pairs, key=lambda pair: pair[0]))
        except ParameterError:
            raise self.refuse(value) from None


@dataclass(frozen=True)
class Weighting(GainTableParameter):
    """A table of weights of aspects that are at least 0 and sum to 1."""

    expects: str = "weights of at least 0 that sum to 1, such as {relevance:0.7,credibility:0.3}"
    value: ParameterKind = Number("", 0, 1)

    def read(self, value: Any) -> ArgumentPairs | None:
        weights = super().read(value)
        total = sum((exact(weight) for _, weight in weights or ()), Fraction(0))
        if abs(float(total - 1)) > 1e-9:
            raise self.refuse(value)
        return weights


@dataclass(frozen=True)
class Balance(GainTableParameter):
    """A table of weights of aspects that are at least 0 and not all 0; they need not sum to 1."""

    expects: str = "weights of 0 to 1,000, not all 0, such as {relevance:2,understandability:1}"
    value: ParameterKind = Number("", 0, 1000)

    def read(self, value: Any) -> ArgumentPairs | None:
        weights = super().read(value)
        if not any(weight for _, weight in weights or ()):
            raise self.refuse(value)
        return weights


@dataclass(frozen=True)
class NameOrNames(Words):
    """A name, or a list of different ones; read as a list."""

    expects: str = "a name, or a list of different ones"

    def read(self, value: Any) -> tuple[str, ...]:
        return super().read([value] if isinstance(value, str) else value)


@dataclass(frozen=True)
class Inner(ParameterKind):
    """A single-aspect measure; `measure` reads it, which knows the declared ones.

    Where `by_aspect`, a dict may give each aspect a measure of its own.
    """

    expects: str = "a measure of one aspect that is averaged over topics, such as nDCG@10"
    by_aspect: bool = False


def exact(value: int | float | Fraction) -> Fraction:
    """The number that was typed, exactly: 0.1 is one tenth."""
    return Fraction(repr(value)) if isinstance(value, float) else Fraction(value)


def settled(value: int | float | Fraction) -> float | Fraction:
    """One form per number: a float where its shortest decimal text is exactly `value`, else a rational."""
    number = float(value)
    return number if exact(number) == exact(value) else Fraction(value)


Cutoff = Annotated[int, Whole("a rank cutoff: a whole number from 1")]
Rel = Annotated[int, Whole("a relevance level: a whole number", -(2**31))]
OneFlag = Annotated[bool, Flag()]
Persistence = Annotated[float, Number("a number between 0 and 1, both excluded", 0, 1, (0, 1))]
Share = Annotated[float, Number("a number from 0 to 1", 0, 1)]
Beta = Annotated[float, Number("a number from 0", 0, MOST)]
GainTable = Annotated[
    ArgumentPairs,
    GainTableParameter(
        "gains of at least 0 by label, such as {1:1,2:3}",
        Whole("a label", -(2**31)),
        Number("", 0, MOST),
        optional=True,
    ),
]
Negatives = Annotated[str, Word("pooled or judged", ("pooled", "judged"))]
"""What a negative grade is to measures that know documents in the pool without judgment."""
AspectName = Annotated[str, Word("the name of an aspect")]
AspectNames = Annotated[
    tuple[str, ...], Words("a list of different aspects, such as [relevance,credibility]")
]
AspectWeights = Annotated[ArgumentPairs, Weighting()]
AspectBalance = Annotated[ArgumentPairs, Balance()]
