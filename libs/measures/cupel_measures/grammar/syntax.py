"""Parser of measure texts such as `NAME(param=value, ...)@k`.

Values are literals; they are never evaluated.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

# Possessive quantifiers (`++`, `*+`) prevent backtracking, so no text takes exponential time.
STRING = r"'(?:[^'\\\x00-\x1f\ud800-\udfff]|\\[\\'\"])*+'|\"(?:[^\"\\\x00-\x1f\ud800-\udfff]|\\[\\'\"])*+\""
WORD = r"[^\W\d](?:[.\-]*+\w++)*+"
TOKEN = re.compile(
    r"(?P<space>\s++)"
    r"|(?P<number>[+-]?(?:[0-9]++(?:\.[0-9]*+)?+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?+(?![\w.]))"
    rf"|(?P<word>{WORD})"
    rf"|(?P<string>{STRING})"
    r"|(?P<mark>[()\[\]{}@=,:/])"
)
FURTHER_VALUE = r",(?:\w++=)?+[+-]?[0-9.]++(?=[\s,]|$)"
"""A comma and a value of a trec_eval name, such as `,10` in `P.5,10`."""
CONSTANTS = {"True": True, "False": False, "None": None}
DEEPEST = 20
"""Deepest nesting of values."""
LONGEST = 4000
"""Longest text of a measure, in characters."""
LONGEST_SHOWN = 100
"""Longest excerpt of a text in an error message, in characters."""
MOST_DIGITS = 18
"""Greatest number of digits of an integer."""


class MeasureError(ValueError):
    """Invalid measure text, or a measure that cannot be computed from a collection.

    The message is one sentence with the reason.
    """


@dataclass(frozen=True)
class Call:
    """A measure as written: name, arguments in order, and the value after `@`."""

    name: str
    arguments: tuple[tuple[str, Any], ...] = ()
    at: Any = None

    def __str__(self) -> str:
        inside = ",".join(f"{key}={shown(value)}" for key, value in self.arguments)
        return self.name + (f"({inside})" if inside else "") + (f"@{self.at}" if self.at is not None else "")


class ArgumentPairs(tuple[tuple[Any, Any], ...]):
    """A dict as a hashable tuple of pairs, sorted by key."""

    __slots__ = ()


def shown(value: Any) -> str:
    """Return a parsed value as text that parses to the same value."""
    if isinstance(value, Call):
        return str(value)
    if isinstance(value, ArgumentPairs | dict):
        pairs = value.items() if isinstance(value, dict) else value
        return "{" + ",".join(f"{shown(k)}:{shown(v)}" for k, v in pairs) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(shown, value)) + "]"
    if isinstance(value, str):
        return value if _bare(value) else "'" + re.sub(r"([\\'])", r"\\\1", value) + "'"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return repr(value) if isinstance(value, float) else str(value)


def short(text: str) -> str:
    """Return `text`, truncated for an error message."""
    return text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "..."


def _bare(word: str) -> bool:
    return re.fullmatch(WORD, word) is not None and word not in CONSTANTS


def read(text: str) -> Call:
    """Parse the text of one measure.

    Raise MeasureError, with the column of the error, if it is invalid.
    """
    return _Reader(text).measure()


def literal(text: str) -> Any:
    """Parse the text of one parameter value: a number, word, list or dict.

    Raise MeasureError if it is invalid.
    """
    return _Reader(text).literal()


def split(text: str) -> list[str]:
    """Split a list of measures at the spaces and commas outside brackets and quotes.

    A comma before a value of a trec_eval name, as in `P.5,10` and `ndcg_1=3,2=9`, does not separate
    measures. Raise MeasureError if the text has separators only.
    """
    pieces, depth = [""], 0
    for token in re.findall(rf"{STRING}|\s++|{FURTHER_VALUE}|.", text, re.DOTALL):
        depth += (token in "([{") - (token in ")]}") if len(token) == 1 else 0
        if (token.isspace() or token == ",") and depth <= 0:
            pieces.append("")
        else:
            pieces[-1] += token
    if "," in text and not any(pieces):
        raise MeasureError(f"{short(text)!r} names no measure; write a list such as 'nDCG@10, AP'")
    return [piece for piece in pieces if piece]


def _quote_hint(character: str) -> str:
    """Return a hint if `character` is a quote, else "".

    The quote then starts an unterminated string.
    """
    return ": a string ends with the same quote on the same line" if character in "'\"" else ""


class _Reader:
    """Recursive-descent parser over the tokens of one text."""

    def __init__(self, text: str) -> None:
        self.text = text
        if len(text) > LONGEST:
            raise self._problem(LONGEST, f"expected a measure of at most {LONGEST:,} characters")
        self.tokens = list(self._tokens())
        self.next = 0
        self.depth = 0

    def _tokens(self) -> Iterator[tuple[str, str, int]]:
        place = 0
        while place < len(self.text):
            match = TOKEN.match(self.text, place)
            if match is None:
                raise self._problem(place, f"unexpected {self.text[place]!r}{_quote_hint(self.text[place])}")
            if match.lastgroup != "space":
                yield str(match.lastgroup), match.group(), place
            place = match.end()
        yield "end", "", len(self.text)

    def _problem(self, place: int, message: str) -> MeasureError:
        return MeasureError(f"{short(self.text)!r}, column {place + 1}: {message}")

    def _expected(self, what: str) -> MeasureError:
        kind, token, place = self.tokens[self.next]
        return self._problem(place, f"expected {what}, found {'the end' if kind == 'end' else repr(token)}")

    def _take(self, token: str) -> bool:
        if self.tokens[self.next][1] != token or self.tokens[self.next][0] != "mark":
            return False
        self.next += 1
        return True

    def _need(self, token: str) -> None:
        if not self._take(token):
            raise self._expected(repr(token))

    def _word(self, what: str) -> str:
        kind, token, _ = self.tokens[self.next]
        if kind != "word":
            raise self._expected(what)
        self.next += 1
        return token

    def measure(self) -> Call:
        call = self._call(self._word("the name of a measure"))
        if self.tokens[self.next][0] != "end":
            raise self._expected("'(', '@' or the end" if not call.arguments else "'@' or the end")
        return call

    def literal(self) -> Any:
        value = self._value()
        if self.tokens[self.next][0] != "end":
            raise self._expected("the end")
        return value

    def _call(self, name: str) -> Call:
        arguments: dict[str, Any] = {}
        if self._take("("):
            while not self._take(")"):
                key = self._word("the name of a parameter")
                self._need("=")
                if key in arguments:
                    raise self._problem(self.tokens[self.next][2], f"{key} is given twice")
                arguments[key] = self._value()
                if not self._take(","):
                    self._need(")")
                    break
        return Call(name, tuple(arguments.items()), self._value() if self._take("@") else None)

    def _value(self) -> Any:
        self.depth += 1
        if self.depth > DEEPEST:
            raise self._expected("fewer nested values")
        value = self._nested()
        self.depth -= 1
        return value

    def _nested(self) -> Any:
        kind, token, _ = self.tokens[self.next]
        if self._take("["):
            return self._items("]")
        if self._take("("):
            return tuple(self._items(")"))
        if self._take("{"):
            return dict(self._pairs())
        if kind not in ("number", "string", "word"):
            raise self._expected("a value")
        self.next += 1
        if kind == "number":
            return self._number(token)
        return re.sub(r"\\(.)", r"\1", token[1:-1]) if kind == "string" else self._name(token)

    def _name(self, word: str) -> Any:
        if self.tokens[self.next][1] in ("(", "@") and self.tokens[self.next][0] == "mark":
            return self._call(word)
        return CONSTANTS.get(word, word)

    def _number(self, token: str) -> int | float | Fraction:
        number = self._literal(token)
        if not self._take("/"):
            return number
        kind, below, place = self.tokens[self.next]
        if kind != "number" or not isinstance(number, int) or not below.isdigit() or not below.strip("0"):
            raise self._problem(place, "expected a fraction of whole numbers, such as 1/3")
        self.next += 1
        return Fraction(number, self._integer(below))

    def _literal(self, token: str) -> int | float:
        if token.lstrip("+-").isdigit():
            return self._integer(token)
        number = float(token)
        if math.isinf(number):
            raise self._problem(self.tokens[self.next - 1][2], "the number is out of range")
        return number

    def _integer(self, token: str) -> int:
        if len(token.lstrip("+-0")) > MOST_DIGITS:
            place = self.tokens[self.next - 1][2]
            raise self._problem(place, f"expected a whole number of at most {MOST_DIGITS} digits")
        return int(token)

    def _items(self, end: str) -> list[Any]:
        items = []
        while not self._take(end):
            items.append(self._value())
            if not self._take(","):
                self._need(end)
                break
        return items

    def _pairs(self) -> Iterator[tuple[Any, Any]]:
        seen: set[Any] = set()
        while not self._take("}"):
            place = self.tokens[self.next][2]
            key = self._value()
            if not isinstance(key, str | int | float | Fraction) or key in seen:
                raise self._problem(place, "expected a key that is a word or a number and not given twice")
            seen.add(key)
            self._need(":")
            yield key, self._value()
            if not self._take(","):
                self._need("}")
                break
