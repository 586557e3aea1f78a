"""Parsing of decimal columns, eight digits per step.

The results are the same as those of Python's float().
"""

import re

import numpy as np
from numpy.typing import NDArray

from cupel_measures.model import Floats, Ints
from cupel_measures.reading.lines.text_columns import MASKS, Text, Words

NUMBER = re.compile(rb"[+-]?([0-9]+(\.[0-9]+)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
"""Syntax of a number: no inf, no nan, no underscores, ASCII digits only."""

_U = np.uint64
_ONES, _HIGHS, _DOTS, _ZEROS = (_U(byte * 0x0101010101010101) for byte in (0x01, 0x80, 0x2E, 0x30))
_NOT_DIGIT = _U(0x7676767676767676)
_PAIRS, _FOURS, _EIGHT = _U(0x00FF00FF00FF00FF), _U(0x0000FFFF0000FFFF), _U(0xFFFFFFFF)
_TENS = np.array([10**n for n in range(20)], dtype=np.uint64)
_FLOAT_TENS = np.array([10.0**n for n in range(20)])
_EXACT = _U(1 << 53)
_SPLITTER = 134217729.0  # 2^27 + 1 splits a double into two halves (Veltkamp)


def decimal_comma(word: str) -> str:
    """Return the end of a message about a decimal comma, empty for other words."""
    is_decimal = re.fullmatch(r"[+-]?\d+,\d+([eE][+-]?\d+)?", word)
    return f", with a decimal comma; write {word.replace(',', '.')}" if is_decimal else ""


def numbers(text: Text, start: Ints, end: Ints) -> tuple[Floats, Ints]:
    """Return the value of each field, and the rows that are not numbers.

    They are float64[n] and int64[k].

    The value of such a row is 0.
    """
    begin, words = start, text.words[start]
    sign = words & _U(0xFF)
    negative = sign == _U(ord("-"))
    signed = negative | (sign == _U(ord("+")))
    if signed.any():
        start = begin + signed
        words = text.words[start]
    length = end - start
    point = np.minimum(_first_point(words), length)
    places = np.maximum(length - point - 1, 0)
    digits, right = _eight(words, point)
    right &= (length > 0) & (length - point != 1)  # at least one digit, and at least one after a point
    if length.max(initial=0) > 8:  # otherwise the point is in the first word, and all digits fit into 64 bits
        right &= (point < 8) | (point == length)
        right &= (places <= 19) & ((point + places <= 19) | (digits == 0))
    for step in range(-(-min(int(places.max(initial=0)), 19) // 8)):
        rows: Ints | slice = slice(None) if step == 0 else np.flatnonzero(right & (places > 8 * step))
        count = np.minimum(np.maximum(places[rows] - 8 * step, 0), 8)
        at = np.minimum(start[rows] + (point[rows] + (1 + 8 * step)), len(text))
        more, also = _eight(text.words[at], count)
        digits[rows] = digits[rows] * _TENS[count] + more
        right[rows] &= also
    values = _quotients(digits, np.where(right, places, 0))
    np.negative(values, out=values, where=negative)
    wrong = _one_by_one(text, begin, end, np.flatnonzero(~right), values)
    return values, wrong


def whole_numbers(text: Text, start: Ints, end: Ints) -> Ints:
    """Return the rows whose field is not one to eight digits: int64[k].

    Nearly all ranks have one to eight digits, so the result is usually empty.
    """
    length = end - start
    words = text.words[start]
    words ^= _ZEROS
    words &= MASKS[np.minimum(length, 8)]
    right = _are_digits(words)
    right &= length <= 8
    return np.flatnonzero(~right)


def _first_point(words: Words) -> Ints:
    """Return the position of the first point in each word; 8 if there is none."""
    other = words ^ _DOTS
    points = (other - _ONES) & ~other & _HIGHS
    return (np.bitwise_count((points & (~points + _U(1))) - _U(1)) >> 3).astype(np.int64)


def _eight(word: Words, count: Ints) -> tuple[Words, NDArray[np.bool_]]:
    """Return the value of the first bytes of each word, and whether all are digits.

    count: the number of these bytes in each word, 0 to 8.

    This overwrites `word`. It shifts the digits to the end of the word, so that zeros precede them, and then
    combines adjacent numbers: digits to pairs, pairs to fours, fours to eight.
    """
    word ^= _ZEROS
    word <<= (64 - 8 * count).view(np.uint64)  # in numpy, a shift by 64 gives 0
    right = _are_digits(word)
    for step, mask in enumerate((_PAIRS, _FOURS, _EIGHT)):
        next_ = word >> _U(8 << step)
        word *= _U(10 ** (1 << step))
        word += next_
        word &= mask
    return word, right


def _are_digits(words: Words) -> NDArray[np.bool_]:
    """Return whether all bytes of each word are below 10."""
    above = words + _NOT_DIGIT
    above |= words
    above &= _HIGHS
    none: NDArray[np.bool_] = above == 0
    return none


def _quotients(digits: Words, places: Ints) -> Floats:
    """Return digits / 10^places, rounded once.

    Below 2^53, both are exact doubles, so the division rounds once. Above, a second quotient of the exact
    remainder corrects the first one. If their sum is too close to the middle of two doubles, which is rare,
    the result is computed with Python's integers.
    """
    numerator, tens = digits.astype(np.float64), _FLOAT_TENS[places]
    values: Floats = numerator / tens
    long = np.flatnonzero(digits > _EXACT)
    if not long.size:
        return values
    numerator, tens, first = numerator[long], tens[long], values[long]
    cut = (digits[long] - numerator.astype(np.uint64)).astype(np.int64).astype(np.float64)
    product, error = _product(first, tens)
    second = (((numerator - product) - error) + cut) / tens
    total = first + second
    beyond, gap = np.abs(second - (total - first)), np.spacing(total)
    doubtful = (np.abs(2 * beyond - gap) <= gap * 1e-9) | (np.abs(4 * beyond - gap) <= gap * 1e-9)
    values[long] = total
    for row in long[doubtful].tolist():
        values[row] = int(digits[row]) / 10 ** int(places[row])
    return values


def _product(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return a * b as the nearest double and the exact remainder (Dekker)."""
    product = a * b
    high_a, high_b = a * _SPLITTER, b * _SPLITTER
    high_a, high_b = high_a - (high_a - a), high_b - (high_b - b)
    low_a, low_b = a - high_a, b - high_b
    rest = ((high_a * high_b - product) + high_a * low_b + low_a * high_b) + low_a * low_b
    return product, rest


def _one_by_one(text: Text, start: Ints, end: Ints, rows: Ints, values: Floats) -> Ints:
    """Parse the fields of `rows` into `values` one at a time.

    Return the rows that are not numbers.
    """
    data, wrong = text.data, []
    for row, a, b in zip(rows.tolist(), start[rows].tolist(), end[rows].tolist(), strict=True):
        if NUMBER.fullmatch(data, a, b):
            values[row] = float(data[a:b])
        else:
            values[row] = 0.0
            wrong.append(row)
    return np.array(wrong, np.int64)
