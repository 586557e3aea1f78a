"""The text of measures, read into a tree: `NAME(param=value, ...)@k`, literals only, nothing is evaluated."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

TOKEN = re.compile(
    r"(?P<space>\s+)"
    r"|(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))"
    r"|(?P<word>[^\W\d](?:[\w.\-]*\w)?)"
    r"|(?P<string>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
    r"|(?P<mark>[()\[\]{}@=,:/])"
)
CONSTANTS = {"True": True, "False": False, "None": None}
DEEPEST = 20


class MeasureError(ValueError):
    """A text that is no measure, or a measure that a collection can't have: one clear sentence."""


@dataclass(frozen=True)
class Call:
    """A measure as written: its name, arguments in order, and what stands after `@`."""

    name: str
    arguments: tuple[tuple[str, Any], ...] = ()
    at: Any = None

    def __str__(self) -> str:
        inside = ",".join(f"{key}={shown(value)}" for key, value in self.arguments)
        return self.name + (f"({inside})" if inside else "") + (f"@{self.at}" if self.at is not None else "")


class Pairs(tuple[tuple[Any, Any], ...]):
    """A dict as a hashable value: pairs sorted by key."""

    __slots__ = ()


def shown(value: Any) -> str:
    """A parsed value in the grammar's own text."""
    if isinstance(value, Call):
        return str(value)
    if isinstance(value, Pairs | dict):
        pairs = value.items() if isinstance(value, dict) else value
        return "{" + ",".join(f"{shown(k)}:{shown(v)}" for k, v in pairs) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(shown, value)) + "]"
    if isinstance(value, str):
        return value if _bare(value) else repr(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return (
        str(value)
        if isinstance(value, Fraction)
        else repr(value)
        if not hasattr(value, "text")
        else value.text
    )


def _bare(word: str) -> bool:
    return word.replace("-", "_").replace(".", "_").isidentifier() and word not in ("True", "False", "None")


def read(text: str) -> Call:
    """The tree of one measure's text; MeasureError says what is wrong and where."""
    return _Reader(text).whole()


def split(text: str) -> list[str]:
    """Measures of a list, split at spaces outside brackets and quotes."""
    pieces, depth = [""], 0
    for token in re.findall(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|\s+|.", text, re.DOTALL):
        depth += (token in "([{") - (token in ")]}") if len(token) == 1 else 0
        if token.isspace() and depth <= 0:
            pieces.append("")
        else:
            pieces[-1] += token
    return [piece for piece in pieces if piece]


class _Reader:
    """A recursive descent over the tokens of one text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = list(self._tokens())
        self.next = 0
        self.depth = 0

    def _tokens(self) -> Iterator[tuple[str, str, int]]:
        place = 0
        while place < len(self.text):
            match = TOKEN.match(self.text, place)
            if match is None:
                raise self._problem(place, f"unexpected {self.text[place]!r}")
            if match.lastgroup != "space":
                yield str(match.lastgroup), match.group(), place
            place = match.end()
        yield "end", "", len(self.text)

    def _problem(self, place: int, what: str) -> MeasureError:
        return MeasureError(f"{self.text!r}, column {place + 1}: {what}")

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

    def whole(self) -> Call:
        call = self._call(self._word("the name of a measure"))
        if self.tokens[self.next][0] != "end":
            raise self._expected("'(', '@' or the end" if not call.arguments else "'@' or the end")
        return call

    def _call(self, name: str) -> Call:
        arguments: list[tuple[str, Any]] = []
        if self._take("("):
            while not self._take(")"):
                key = self._word("the name of a parameter")
                self._need("=")
                if key in dict(arguments):
                    raise self._problem(self.tokens[self.next][2], f"{key} is given twice")
                arguments.append((key, self._value()))
                if not self._take(","):
                    self._need(")")
                    break
        return Call(name, tuple(arguments), self._value() if self._take("@") else None)

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
        return str(ast.literal_eval(token)) if kind == "string" else self._name(token)

    def _name(self, word: str) -> Any:
        if self.tokens[self.next][1] in ("(", "@") and self.tokens[self.next][0] == "mark":
            return self._call(word)
        return CONSTANTS.get(word, word)

    def _number(self, token: str) -> int | float | Fraction:
        number = _literal(token)
        if not self._take("/"):
            return number
        kind, below, place = self.tokens[self.next]
        if kind != "number" or not isinstance(number, int) or not below.isdigit() or int(below) == 0:
            raise self._problem(place, "expected a rational of whole numbers, such as 1/3")
        self.next += 1
        return Fraction(number, int(below))

    def _items(self, end: str) -> list[Any]:
        items = []
        while not self._take(end):
            items.append(self._value())
            if not self._take(","):
                self._need(end)
                break
        return items

    def _pairs(self) -> Iterator[tuple[Any, Any]]:
        seen: list[Any] = []
        while not self._take("}"):
            place = self.tokens[self.next][2]
            key = self._value()
            if isinstance(key, list | dict | Call) or key in seen:
                raise self._problem(place, "expected another key")
            seen.append(key)
            self._need(":")
            yield key, self._value()
            if not self._take(","):
                self._need("}")
                break


def _literal(token: str) -> int | float:
    """An int where the text is one of at most 18 digits, else a float."""
    return int(token) if token.lstrip("+-").isdigit() and len(token) < 19 else float(token)
