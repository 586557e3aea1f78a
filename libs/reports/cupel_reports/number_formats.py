"""Values as people read them; files hold them in full."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

UNDEFINED = "–"
MINUS = "−"
LONG = 10_000
"""From here on thousands are set apart."""

_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def printable(data: Any) -> Any:
    """The same JSON, where no text holds characters that HTML, XML or UTF-8 can't."""
    match data:
        case str():
            return _UNPRINTABLE.sub("\ufffd", data)
        case Mapping():
            return {printable(name): printable(one) for name, one in data.items()}
        case list() | tuple():
            return [printable(one) for one in data]
        case _:
            return data


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def decimals(values: Sequence[Any]) -> int:
    """How many make these numbers readable in one column."""
    numbers = [float(value) for value in values if is_number(value) and math.isfinite(value)]
    greatest = max(map(abs, numbers), default=0.0)
    most = next((count for below, count in ((1.0001, 4), (10, 3), (100, 2)) if greatest < below), 1)
    exact = (count for count in range(most) if numbers == [round(number, count) for number in numbers])
    return next(exact, most)


def shown(value: Any, places: int | None = None) -> str:
    """A value in words or digits: so many decimals, or as many as it takes by itself."""
    if is_number(value):
        return _number(float(value), decimals([value]) if places is None else places)
    match value:
        case None:
            return UNDEFINED
        case bool():
            return "yes" if value else "no"
        case list() | tuple():
            return ", ".join(map(shown, value)) or UNDEFINED
        case Mapping():
            return ", ".join(f"{name}: {shown(one)}" for name, one in value.items()) or UNDEFINED
        case _:
            return str(value)


def _number(number: float, places: int) -> str:
    least = 10.0**-places
    if places and 0 < abs(number) < least / 2:
        return f"<{least:.{places}f}" if number > 0 else f">{MINUS}{least:.{places}f}"
    grouping = "," if abs(number) >= LONG else ""
    text = f"{abs(number):{grouping}.{places}f}"
    return MINUS + text if number < 0 and text.strip("0.,") else text


def rounded(number: float) -> str:
    """A number by itself, to three digits."""
    return f"{number:.3g}".replace("-", MINUS)


def counted(count: int, noun: str) -> str:
    """Such as "1 run" or "12,000 runs"."""
    return f"{shown(count)} {noun}{'' if count == 1 else 's'}"
