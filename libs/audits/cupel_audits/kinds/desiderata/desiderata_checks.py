"""The desiderata D1 to D8 of measures of two aspects, as checks on short lists (spec 6.6).

Each check draws an instance, some ranked lists with labels of both aspects, and says of their scores whether
they are as is wished.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

Labels = tuple[int, ...]

LABELS = 10
"""How many labels each aspect has, from 0."""
CLOSE = 1e-12
"""Scores that differ by less are equal."""
HEAVY, LIGHT = 0.8, 0.2


@dataclass(frozen=True)
class Listed:
    """A ranked list: the labels of both aspects from the first rank on, and what it is, in words.

    factors: what gains and places of each aspect's labels are multiplied by. weights: of the aspects, where
    the measure gets others than its own.
    """

    what: str
    labels: tuple[Labels, Labels]
    factors: tuple[int, int] = (1, 1)
    weights: tuple[float, float] | None = None


Instance = tuple[Listed, ...]
Draw = Callable[[np.random.Generator, int], Instance]
Holds = Callable[[Instance, Sequence[float]], bool]


@dataclass(frozen=True)
class Check:
    """A wish. draw: an instance with lists of at most so many documents. holds: of its scores."""

    name: str
    says: str
    draw: Draw
    holds: Holds
    weighs: bool = False


CHECKS: dict[str, Check] = {}


def check(name: str, says: str, holds: Holds, *, weighs: bool = False) -> Callable[[Draw], Draw]:
    """Declare the decorated function as what draws the instances of a check."""

    def declared(draw: Draw) -> Draw:
        CHECKS[name] = Check(name, says, draw, holds, weighs)
        return draw

    return declared


def _falls(_: Instance, scores: Sequence[float]) -> bool:
    """Whether the second list scores strictly lower."""
    return scores[0] - scores[1] > CLOSE


def _costs_more(_: Instance, scores: Sequence[float]) -> bool:
    """Whether the second list loses more against the first than the fourth against the third."""
    return (scores[0] - scores[1]) - (scores[2] - scores[3]) > CLOSE


def _same(_: Instance, scores: Sequence[float]) -> bool:
    return abs(scores[0] - scores[1]) <= CLOSE * max(1.0, abs(scores[0]))


def _loses_nothing(_: Instance, scores: Sequence[float]) -> bool:
    """Whether the first list scores in [0, 1], and no less than the second; no number does neither."""
    return 0 <= scores[0] <= 1 and scores[0] >= scores[1] - CLOSE


def _is_one_where_sorted(instance: Instance, scores: Sequence[float]) -> bool:
    ordered = all(list(labels) == sorted(labels, reverse=True) for labels in instance[0].labels)
    return math.isclose(scores[0], 1, abs_tol=CLOSE) == ordered


def _weighs_otherwise(_: Instance, scores: Sequence[float]) -> bool:
    """Whether the balance between an error in one aspect and in the other changes with the weights."""
    return abs((scores[0] - scores[1]) - (scores[2] - scores[3])) > CLOSE


@check("D1", "a larger error at the same rank scores lower", _falls)
def _larger(chance: np.random.Generator, longest: int) -> Instance:
    labels = _falling(chance, _between(chance, 2, longest))
    rank = _between(chance, 0, len(labels) - 2)
    size = _between(chance, 0, len(labels) - 2 - rank)
    side, other = _between(chance, 0, 1), _between(chance, 1, LABELS - 1)
    return tuple(
        _one_sided(f"{_sized(places)} at rank {rank + 1}", side, _moved(labels, rank, places), other)
        for places in (size, size + 1)
    )


@check("D2", "the same error one rank higher scores lower", _falls)
def _higher(chance: np.random.Generator, longest: int) -> Instance:
    number = _between(chance, 3, longest)
    step = _between(chance, 1, (LABELS - 1) // (number - 1))
    least = _between(chance, 0, LABELS - 1 - step * (number - 1))
    labels = tuple(least + step * place for place in reversed(range(number)))
    size = _between(chance, 1, number - 2)
    rank = _between(chance, 1, number - 1 - size)
    side, other = _between(chance, 0, 1), _between(chance, 1, LABELS - 1)
    return tuple(
        _one_sided(f"{_sized(size)} at rank {at + 1}", side, _moved(labels, at, size), other)
        for at in (rank, rank - 1)
    )


@check("D3", "a larger difference in an error scores lower", _falls)
def _wider(chance: np.random.Generator, longest: int) -> Instance:
    labels = _falling(chance, _between(chance, 3, longest), least=1)
    rank = _between(chance, 0, len(labels) - 3)
    size = _between(chance, 1, len(labels) - 2 - rank)
    below = [one for one in range(labels[rank + size + 1]) if one not in labels]
    wrong = _moved(labels, rank, size)
    worse = (*wrong[:rank], below[_between(chance, 0, len(below) - 1)], *wrong[rank + 1 :])
    side, other = _between(chance, 0, 1), _between(chance, 1, LABELS - 1)
    return tuple(_one_sided(f"label {of[rank]} at rank {rank + 1}", side, of, other) for of in (wrong, worse))


@check("D4", "an error costs more beside an error of the other aspect at the same rank", _costs_more)
def _beside(chance: np.random.Generator, longest: int) -> Instance:
    labels, wrong, rank, side = _error(chance, longest)
    low = _between(chance, 0, LABELS - 2)
    equal = (low,) * len(labels)
    lifted = (*equal[: rank + 1], _between(chance, low + 1, LABELS - 1), *equal[rank + 2 :])
    return tuple(
        Listed(what, _pair(side, of, beside))
        for beside, where in ((lifted, "beside an error"), (equal, "beside none"))
        for of, what in ((labels, f"no error {where}"), (wrong, f"error {where}"))
    )


@check("D4_literal", "an error costs more where all labels of the other aspect are higher", _costs_more)
def _among_better(chance: np.random.Generator, longest: int) -> Instance:
    labels, wrong, _, side = _error(chance, longest)
    low = _between(chance, 0, LABELS - 2)
    high = _between(chance, low + 1, LABELS - 1)
    return tuple(
        Listed(what, _pair(side, of, (other,) * len(labels)))
        for other, where in ((high, "high labels"), (low, "low labels"))
        for of, what in ((labels, f"no error, {where}"), (wrong, f"error, {where}"))
    )


@check("D5", "equal labels score from 0 to 1, and no less than lower ones in order", _loses_nothing)
def _equal(chance: np.random.Generator, longest: int) -> Instance:
    number = _between(chance, 1, longest)
    one, other = (_between(chance, 0, LABELS - 1) for _ in range(2))
    falling = [tuple(max(0, label - place) for place in range(number)) for label in (one, other)]
    equal = Listed("equal labels", ((one,) * number, (other,) * number))
    return equal, Listed("labels in order", (falling[0], falling[1]))


@check("D6", "multiplying all labels by a number changes nothing", _same)
def _scaled(chance: np.random.Generator, longest: int) -> Instance:
    listed, factor = _any_list(chance, longest), _between(chance, 2, 5)
    return listed, replace(listed, what="multiplied", factors=(factor, factor))


@check("D6_one_scale", "multiplying the labels of one aspect by a number changes nothing", _same)
def _scaled_apart(chance: np.random.Generator, longest: int) -> Instance:
    listed, factor = _any_list(chance, longest), _between(chance, 2, 5)
    factors = (factor, 1) if _between(chance, 0, 1) == 0 else (1, factor)
    return listed, replace(listed, what="multiplied", factors=factors)


@check("D7", "with one aspect equal, the score is 1 exactly if the other is in order", _is_one_where_sorted)
def _ordered(chance: np.random.Generator, longest: int) -> Instance:
    number = _between(chance, 2, longest)
    labels = [_between(chance, 0, 3) for _ in range(number - 1)] + [_between(chance, 1, 3)]
    ordered = _between(chance, 0, 1) == 1
    labels = sorted(labels, reverse=True) if ordered else chance.permutation(labels).tolist()
    side, other = _between(chance, 0, 1), _between(chance, 1, LABELS - 1)
    return (_one_sided("one aspect equal", side, tuple(labels), other),)


@check(
    "D8", "weights change what an error of one aspect costs beside the other", _weighs_otherwise, weighs=True
)
def _weighed(chance: np.random.Generator, longest: int) -> Instance:
    _, wrong, _, _ = _error(chance, longest)
    other = _between(chance, 1, LABELS - 1)
    return tuple(
        replace(
            _one_sided(f"error in the {('first', 'second')[side]} aspect", side, wrong, other),
            weights=weights,
        )
        for weights in ((HEAVY, LIGHT), (LIGHT, HEAVY))
        for side in (0, 1)
    )


def _between(chance: np.random.Generator, low: int, high: int) -> int:
    """A whole number from `low` to `high`, both included."""
    return int(chance.integers(low, high + 1))


def _falling(chance: np.random.Generator, number: int, *, least: int = 0) -> Labels:
    """So many different labels, best first."""
    chosen = chance.permutation(np.arange(least, LABELS))[:number]
    return tuple(sorted(chosen.tolist(), reverse=True))


def _moved(labels: Labels, rank: int, size: int) -> Labels:
    """With the label that is `size` places below moved up to `rank`: one error, of that size."""
    return (*labels[:rank], labels[rank + size], *labels[rank : rank + size], *labels[rank + size + 1 :])


def _error(chance: np.random.Generator, longest: int) -> tuple[Labels, Labels, int, int]:
    """Labels in order, the same with an error, its rank, and which aspect they are of."""
    labels = _falling(chance, _between(chance, 2, longest))
    rank = _between(chance, 0, len(labels) - 2)
    size = _between(chance, 1, len(labels) - 1 - rank)
    return labels, _moved(labels, rank, size), rank, _between(chance, 0, 1)


def _any_list(chance: np.random.Generator, longest: int) -> Listed:
    number = _between(chance, 2, longest)
    one, other = (tuple(_between(chance, 0, LABELS - 1) for _ in range(number)) for _ in range(2))
    return Listed("as it is", (one, other))


def _pair(side: int, labels: Labels, other: Labels) -> tuple[Labels, Labels]:
    return (labels, other) if side == 0 else (other, labels)


def _one_sided(what: str, side: int, labels: Labels, other: int) -> Listed:
    """Labels of one aspect, the other one being equal throughout."""
    return Listed(what, _pair(side, labels, (other,) * len(labels)))


def _sized(places: int) -> str:
    return "no error" if not places else f"error of {places}"
