"""Corrections of p for multiple tests, and groups of similar systems.

The systems of a group do not differ significantly.
"""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from cupel_measures.model import Floats


def holm(p: Sequence[float] | Floats) -> Floats:
    """Return p corrected by Holm's method (1979), float64[n].

    If the hypotheses with a corrected p of at most alpha are rejected, the probability of any false positive
    is at most alpha. Raises ValueError if a p is not between 0 and 1.
    """
    values = _check_probabilities(p)
    order = np.argsort(values, kind="stable")
    steps = np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1))
    return _restore_order(order, np.minimum(steps, 1.0))


def benjamini_hochberg(p: Sequence[float] | Floats) -> Floats:
    """Return p corrected by the method of Benjamini and Hochberg (1995), float64[n].

    If the hypotheses with a corrected p of at most alpha are rejected, the false discovery rate is at most
    alpha for independent tests. Raises ValueError if a p is not between 0 and 1.
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
    """Return the groups of each system.

    Two systems share a group unless they differ significantly.

    systems: number of systems. different: the pairs of systems that differ significantly. Systems and groups
    are numbered from 0 for the best (letters a, b, ...). Groups are maximal: each system outside a group
    differs significantly from at least one system in the group. If all groups are ranges of adjacent systems,
    as for Tukey's HSD, the result is that of the insert-and-absorb method (Piepho 2004), which returns all
    maximal groups. In general the number of maximal groups can be exponential. Groups are therefore added
    only until all pairs that do not differ significantly share a group (Gramm et al. 2007). Raises ValueError
    unless each pair consists of two of the systems.
    """
    similar = [(1 << systems) - 1 for _ in range(systems)]  # sets of systems as bits
    for first, second in different:
        if first == second or not (0 <= first < systems and 0 <= second < systems):
            raise ValueError(
                f"expected pairs of two different systems from 0 to {systems - 1}, got ({first}, {second})"
            )
        similar[first] &= ~(1 << second)
        similar[second] &= ~(1 << first)
    members = sorted(sorted(_bits(group)) for group in _cover(similar))
    containing: list[list[int]] = [[] for _ in range(systems)]
    for number, group in enumerate(members):
        for system in group:
            containing[system].append(number)
    return tuple(map(tuple, containing))


def _cover(similar: Sequence[int]) -> Iterator[int]:
    """Yield maximal sets of similar systems.

    They cover every similar pair and every system.
    """
    uncovered = list(similar)  # each system is similar to itself
    for system in range(len(similar)):
        while uncovered[system]:
            group = 0
            farthest = uncovered[system].bit_length() - 1
            candidates = similar[system] & similar[farthest]
            for member in (system, farthest):
                group |= 1 << member
            candidates &= ~group
            while candidates:
                best = candidates & -candidates
                group |= best
                candidates &= similar[best.bit_length() - 1] & ~best
            for member in _bits(group):
                uncovered[member] &= ~group
            yield group


def _bits(group: int) -> Iterator[int]:
    while group:
        lowest = group & -group
        yield lowest.bit_length() - 1
        group ^= lowest


def letters(number: int) -> str:
    """Return the name of a group: a, b, ..., z, aa, ab, ..."""
    name = ""
    number += 1
    while number:
        number, rest = divmod(number - 1, 26)
        name = chr(ord("a") + rest) + name
    return name
