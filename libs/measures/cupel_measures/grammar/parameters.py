"""Kinds of measure parameters: the values that they accept and the error messages.

Each keyword-only parameter of a measure is annotated with one of the aliases at the end of this file. The
parser, the reference pages and the error messages use the kind in this annotation.
"""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import takewhile
from typing import Annotated, Any

from cupel_measures.grammar.syntax import ArgumentPairs, short, shown

MOST = 1e100
"""Greatest gain, weight or coordinate. Sums of many such numbers do not overflow."""
MOST_NUMBERS = 1000
"""Greatest length of a list of numbers."""
LONGEST_WORD = 100
"""Length of the longest word that is compared with known names."""


class ParameterError(ValueError):
    """Invalid value of a parameter; the message describes valid values."""


def closest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word most similar to `word`, or None if no word is similar.

    If several words are equally similar, return the one that begins most like `word`, because spelling
    mistakes are rare at the beginning of a word.
    """
    names = list(known)
    similar = difflib.get_close_matches(word, names, len(names) or 1, 0.6)

    def similarity(name: str) -> tuple[float, int]:
        equal = takewhile(lambda letters: letters[0] == letters[1], zip(name, word, strict=False))
        return difflib.SequenceMatcher(None, name, word).ratio(), sum(1 for _ in equal)

    return max(similar, key=similarity, default=None)


def nearest(word: str, known: Sequence[str]) -> str:
    """Return "; did you mean X?" for the known word X closest to `word`.

    Upper and lower case are equivalent. Return "" if no word is close.
    """
    lower = {name.lower(): name for name in known}
    close = closest(word.lower()[:LONGEST_WORD], lower)
    return "" if close is None else f"; did you mean {lower[close]}?"


@dataclass(frozen=True)
class ParameterKind:
    """A kind of parameter.

    `expects` describes its values, `read` checks and normalises one.
    """

    expects: str

    def read(self, value: Any) -> Any:
        """Return the normalised value.

        Raise ParameterError if the parameter does not accept it.
        """
        raise NotImplementedError

    def refuse(self, value: Any) -> ParameterError:
        """Return the error for a value that the parameter does not accept."""
        got = repr(value) if isinstance(value, float) else shown(value)
        return ParameterError(f"expected {self.expects}, got {short(got)}")


@dataclass(frozen=True)
class Whole(ParameterKind):
    """An integer from `least` to `most`."""

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
    """A number from `low` to `high`, except the numbers in `without`.

    A rational is kept exact.
    """

    expects: str = "a number"
    low: float = -MOST
    high: float = MOST
    without: tuple[float, ...] = ()

    def read(self, value: Any) -> float | Fraction:
        if isinstance(value, bool) or not isinstance(value, int | float | Fraction):
            raise self.refuse(value)
        if float(value) > self.high == MOST or float(value) < self.low == -MOST:
            raise ParameterError(f"expected a number of at most {MOST:g}, got {short(repr(value))}")
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
    """A string. If `choices` is not empty, it must be one of them."""

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
    """A list of distinct names."""

    expects: str = "a list of different names, such as [relevance,credibility]"

    def read(self, value: Any) -> tuple[str, ...]:
        if not isinstance(value, list | tuple) or not value or not all(isinstance(v, str) for v in value):
            raise self.refuse(value)
        if len(set(value)) < len(value):
            raise self.refuse(value)
        return tuple(value)


@dataclass(frozen=True)
class Either(ParameterKind):
    """A value that one of `kinds` accepts; the kinds are tried in order."""

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
    """A non-empty sorted list of numbers.

    It is ascending if `rising`, else descending. Numbers may be equal.
    """

    expects: str = "a list of numbers"
    each: ParameterKind = Number()
    rising: bool = True
    longest: int = MOST_NUMBERS

    def read(self, value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple) or not value:
            raise self.refuse(value)
        if len(value) > self.longest:
            raise ParameterError(f"expected a list of at most {self.longest:,} numbers, got {len(value):,}")
        try:
            numbers = tuple(self.each.read(number) for number in value)
        except ParameterError:
            raise self.refuse(value) from None
        if list(numbers) != sorted(numbers, reverse=not self.rising):
            raise self.refuse(value)
        return numbers


@dataclass(frozen=True)
class GainTableParameter(ParameterKind):
    """A dict from `key` to `value`, stored as a hashable tuple of pairs.

    The pairs are sorted by key.

    With `optional`, an empty dict means no value.
    """

    expects: str = "a dict"
    key: ParameterKind = Word()
    value: ParameterKind = Number()
    optional: bool = False

    def read(self, value: Any) -> ArgumentPairs | None:
        if isinstance(value, ArgumentPairs):  # already normalised
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
    """Weights of aspects; each is at least 0, and they sum to 1."""

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
    """Weights of aspects.

    Each is at least 0, not all are 0, and they need not sum to 1.
    """

    expects: str = "weights of 0 to 1,000, not all 0, such as {relevance:2,understandability:1}"
    value: ParameterKind = Number("", 0, 1000)

    def read(self, value: Any) -> ArgumentPairs | None:
        weights = super().read(value)
        if not any(weight for _, weight in weights or ()):
            raise self.refuse(value)
        return weights


@dataclass(frozen=True)
class NameOrNames(Words):
    """A name or a list of distinct names, stored as a list."""

    expects: str = "a name, or a list of different names"

    def read(self, value: Any) -> tuple[str, ...]:
        return super().read([value] if isinstance(value, str) else value)


@dataclass(frozen=True)
class Inner(ParameterKind):
    """A single-aspect measure.

    The module `measure` parses it, because it knows all declared measures.

    With `by_aspect`, the value can also be a dict from aspects to measures.
    """

    expects: str = "a measure of one aspect that is averaged over topics, such as nDCG@10"
    by_aspect: bool = False


def exact(value: int | float | Fraction) -> Fraction:
    """Return the exact number as typed: 0.1 is one tenth."""
    return Fraction(repr(value)) if isinstance(value, float) else Fraction(value)


def settled(value: int | float | Fraction) -> float | Fraction:
    """Return `value` as a float if the repr of that float denotes exactly `value`.

    Otherwise return it as a Fraction.
    """
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
"""How measures that distinguish pooled from judged documents treat a negative grade."""
AspectName = Annotated[str, Word("the name of an aspect")]
AspectNames = Annotated[
    tuple[str, ...], Words("a list of different aspects, such as [relevance,credibility]")
]
AspectWeights = Annotated[ArgumentPairs, Weighting()]
AspectBalance = Annotated[ArgumentPairs, Balance()]
