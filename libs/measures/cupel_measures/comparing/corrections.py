"""Corrections of p for multiple tests, and groups of systems that do not differ significantly."""

from collections.abc import Iterable, Sequence

import numpy as np

from cupel_measures.model import Floats


def holm(p: Sequence[float] | Floats) -> Floats:
    """Return p corrected by Holm's method (1979), float64[n].

    Rejecting where the result is at most alpha bounds the probability of any false positive by alpha. Raises
    ValueError if a p lies outside 0 to 1.
    """
    values = _check_probabilities(p)
    order = np.argsort(values, kind="stable")
    steps = np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1))
    return _restore_order(order, np.minimum(steps, 1.0))


def benjamini_hochberg(p: Sequence[float] | Floats) -> Floats:
    """Return p corrected by the method of Benjamini and Hochberg (1995), float64[n].

    Rejecting where the result is at most alpha bounds the false discovery rate by alpha. Raises ValueError if
    a p lies outside 0 to 1.
    """
    values = _check_probabilities(p)
    order = np.argsort(values, kind="stable")[::-1]
    steps = np.minimum.accumulate(values[order] * len(values) / np.arange(len(values), 0, -1))
    return _restore_order(order, np.minimum(steps, 1.0))


CORRECTIONS = {"holm": holm, "benjamini-hochberg": benjamini_hochberg}
"""Corrections by name; the first is the default."""


def _check_probabilities(p: Sequence[float] | Floats) -> Floats:
    values = np.asarray(p, dtype=np.float64)
    if values.ndim != 1:
        raise ValueError(f"expected p as a vector, got an array of shape {values.shape}")
    wrong = np.flatnonzero(~((values >= 0) & (values <= 1)))
    if len(wrong):
        raise ValueError(f"p must be between 0 and 1, got {values[wrong[0]]} (at index {wrong[0]})")
    return values


def _restore_order(order: Iterable[int], values: Floats) -> Floats:
    restored = np.empty_like(values)
    restored[np.asarray(order, dtype=np.int64)] = values
    return restored


def groups(systems: int, different: Iterable[tuple[int, int]]) -> tuple[tuple[int, ...], ...]:
    """Return the groups of each system; two systems share a group unless they differ significantly.

    Systems and groups are numbered from the best one, starting at 0 (letters a, b, ...). different: the
    pairs that differ significantly. The method is insert and absorb (Piepho 2004). It starts with one group
    of all systems. Each significant pair splits the groups that contain both into two, each without one of
    the two systems. Groups that are subsets of others are removed. Raises ValueError if a pair is not two of
    the systems.
    """
    members: list[frozenset[int]] = [frozenset(range(systems))]
    for first, second in different:
        if first == second or not (0 <= first < systems and 0 <= second < systems):
            raise ValueError(f"expected pairs of systems from 0 to {systems - 1}, got ({first}, {second})")
        pair = {first, second}
        kept = [group for group in members if not pair <= group]
        halves = [group - {system} for group in members if pair <= group for system in pair]
        members = _absorb(kept, halves)
    members.sort(key=sorted)
    return tuple(
        tuple(number for number, group in enumerate(members) if system in group) for system in range(systems)
    )


def _absorb(kept: list[frozenset[int]], new: list[frozenset[int]]) -> list[frozenset[int]]:
    """Return `kept` and those groups of `new` that are not a subset of another group."""
    for group in sorted(set(new), key=len, reverse=True):
        if group and not any(group <= other for other in kept):
            kept.append(group)
    return kept


def letters(number: int) -> str:
    """Return the name of a group: a, b, ..., z, aa, ab, ..."""
    name = ""
    number += 1
    while number:
        number, rest = divmod(number - 1, 26)
        name = chr(ord("a") + rest) + name
    return name
