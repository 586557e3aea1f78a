"""Many tests at once: corrected p, and groups of systems that are not told apart by a test."""

from collections.abc import Iterable, Sequence

import numpy as np

from cupel_measures.model import Floats


def holm(p: Sequence[float] | Floats) -> Floats:
    """float64[n]: p corrected so that the chance of any false finding stays below alpha (Holm 1979).

    ValueError where a p is none.
    """
    values = _chances(p)
    order = np.argsort(values, kind="stable")
    steps = np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1))
    return _placed(order, np.minimum(steps, 1.0))


def benjamini_hochberg(p: Sequence[float] | Floats) -> Floats:
    """float64[n]: p corrected so that the expected share of false findings stays below alpha (1995).

    ValueError where a p is none.
    """
    values = _chances(p)
    order = np.argsort(values, kind="stable")[::-1]
    steps = np.minimum.accumulate(values[order] * len(values) / np.arange(len(values), 0, -1))
    return _placed(order, np.minimum(steps, 1.0))


CORRECTIONS = {"holm": holm, "benjamini-hochberg": benjamini_hochberg}
"""By name; the first is the usual one."""


def _chances(p: Sequence[float] | Floats) -> Floats:
    values = np.asarray(p, dtype=np.float64)
    if values.ndim != 1:
        raise ValueError(f"expected p as a vector, got an array of shape {values.shape}")
    wrong = np.flatnonzero(~((values >= 0) & (values <= 1)))
    if len(wrong):
        raise ValueError(f"p is between 0 and 1, not {values[wrong[0]]} (at {wrong[0]})")
    return values


def _placed(order: Iterable[int], values: Floats) -> Floats:
    found = np.empty_like(values)
    found[np.asarray(order, dtype=np.int64)] = values
    return found


def groups(systems: int, different: Iterable[tuple[int, int]]) -> tuple[tuple[int, ...], ...]:
    """For each system the groups it is in: two share one exactly where they are not told apart.

    Systems are numbered from the best on, and so are the groups, from 0 (the letters a, b, ...). `different`:
    the pairs that a test separates. Insert and absorb (Piepho 2004): starting from one group of all, each
    separated pair that shares a group splits it into one without either, and groups inside others vanish.
    ValueError where a pair is not of two of the systems.
    """
    found: list[frozenset[int]] = [frozenset(range(systems))]
    for one, other in different:
        if one == other or not (0 <= one < systems and 0 <= other < systems):
            raise ValueError(f"expected pairs of systems from 0 to {systems - 1}, got ({one}, {other})")
        whole = [group for group in found if not {one, other} <= group]
        halves = [group - {apart} for group in found if {one, other} <= group for apart in (one, other)]
        found = _absorbed(whole, halves)
    found.sort(key=sorted)
    return tuple(
        tuple(number for number, group in enumerate(found) if system in group) for system in range(systems)
    )


def _absorbed(kept: list[frozenset[int]], new: list[frozenset[int]]) -> list[frozenset[int]]:
    """`kept`, and those of `new` that are in no other group."""
    for group in sorted(set(new), key=len, reverse=True):
        if group and not any(group <= other for other in kept):
            kept.append(group)
    return kept


def letters(number: int) -> str:
    """The name of a group: a, b, ..., z, aa, ab, ..."""
    name = ""
    number += 1
    while number:
        number, rest = divmod(number - 1, 26)
        name = chr(ord("a") + rest) + name
    return name
