"""Formatting of values for readers; files hold values in full precision."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

UNDEFINED = "–"
MINUS = "−"
LONG = 10_000
"""From this number on, thousands are separated by commas."""

_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def printable(data: Any) -> Any:
    """Return the same JSON data with all invalid characters replaced.

    These are the characters that are invalid in HTML, XML or UTF-8.
    """
    match data:
        case str():
            return _UNPRINTABLE.sub("\ufffd", data)
        case Mapping():
            return {printable(name): printable(value) for name, value in data.items()}
        case list() | tuple():
            return [printable(item) for item in data]
        case _:
            return data


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def decimals(values: Sequence[Any]) -> int:
    """Return the number of decimals to show for these numbers in one column."""
    numbers = [float(value) for value in values if is_number(value) and math.isfinite(value)]
    greatest = max(map(abs, numbers), default=0.0)
    limit = next((count for below, count in ((1.0001, 4), (10, 3), (100, 2)) if greatest < below), 1)
    exact = (count for count in range(limit) if numbers == [round(number, count) for number in numbers])
    return next(exact, limit)


def shown(value: Any, places: int | None = None) -> str:
    """Return a value as text.

    places: decimals of a number (default: as many as it needs).
    """
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
            return ", ".join(f"{name}: {shown(item)}" for name, item in value.items()) or UNDEFINED
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
    """Return a number with three significant digits."""
    return f"{number:.3g}".replace("-", MINUS)


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, such as "1 run" or "12,000 runs"."""
    return f"{shown(count)} {noun}{'' if count == 1 else 's'}"
