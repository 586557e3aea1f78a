"""Checks of the desiderata D1 to D8 on short random lists.

Source: Lioma, Simonsen, Larsen, ICTIR 2017, section 3. Each check draws an instance, which is a few ranked
lists with labels of two aspects, and decides from their scores whether the desideratum holds.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

Labels = tuple[int, ...]

LABELS = 10
"""Number of labels of each aspect, numbered from 0."""
CLOSE = 1e-12
"""Scores that differ by no more than this are equal."""
HEAVY, LIGHT = 0.8, 0.2


@dataclass(frozen=True, kw_only=True)
class LabelledList:
    """A ranked list of documents, given by their labels for both aspects.

    labels: for each aspect, the labels from rank 1 on. factors: for each aspect, the number by which the
    gains and the embedding of its labels are multiplied. weights: the weights of the two aspects, or None for
    the weights of the measure.
    """

    description: str
    labels: tuple[Labels, Labels]
    factors: tuple[int, int] = (1, 1)
    weights: tuple[float, float] | None = None


Instance = tuple[LabelledList, ...]
Draw = Callable[[np.random.Generator, int], Instance]
Holds = Callable[[Instance, Sequence[float]], bool]


@dataclass(frozen=True, kw_only=True)
class Check:
    """A desideratum that can be tested on random instances.

    statement: the desideratum in words. draw: draws an instance from a generator, with lists of at most the
    given number of documents. holds: decides from an instance and the scores of its lists. needs_weights:
    whether only measures with the parameter `weights` can be checked.
    """

    name: str
    statement: str
    draw: Draw
    holds: Holds
    needs_weights: bool = False


CHECKS: dict[str, Check] = {}


def check(name: str, statement: str, holds: Holds, *, needs_weights: bool = False) -> Callable[[Draw], Draw]:
    """Register a check; the decorated function draws its instances."""

    def register(draw: Draw) -> Draw:
        CHECKS[name] = Check(
            name=name, statement=statement, draw=draw, holds=holds, needs_weights=needs_weights
        )
        return draw

    return register


def _second_is_lower(_: Instance, scores: Sequence[float]) -> bool:
    return scores[0] - scores[1] > CLOSE


def _first_loss_is_greater(_: Instance, scores: Sequence[float]) -> bool:
    """Return whether list 2 scores further below list 1 than list 4 below list 3."""
    return (scores[0] - scores[1]) - (scores[2] - scores[3]) > CLOSE


def _scores_are_equal(_: Instance, scores: Sequence[float]) -> bool:
    return abs(scores[0] - scores[1]) <= CLOSE * max(1.0, abs(scores[0]))


def _first_is_in_range_and_no_lower(_: Instance, scores: Sequence[float]) -> bool:
    """Return whether list 1 has a score in [0, 1] that is not below that of list 2.

    The result is False for a NaN score.
    """
    return 0 <= scores[0] <= 1 and scores[0] >= scores[1] - CLOSE


def _is_one_only_if_sorted(instance: Instance, scores: Sequence[float]) -> bool:
    is_sorted = all(list(labels) == sorted(labels, reverse=True) for labels in instance[0].labels)
    return math.isclose(scores[0], 1, abs_tol=CLOSE) == is_sorted


def _balance_depends_on_weights(_: Instance, scores: Sequence[float]) -> bool:
    """Return whether the score difference between two errors changes with the weights.

    There is one error in each of the two aspects.
    """
    return abs((scores[0] - scores[1]) - (scores[2] - scores[3])) > CLOSE


@check("D1", "a larger error at the same rank scores lower", _second_is_lower)
def _draw_error_sizes(rng: np.random.Generator, longest: int) -> Instance:
    labels = _decreasing_labels(rng, _integer(rng, 2, longest))
    rank = _integer(rng, 0, len(labels) - 2)
    size = _integer(rng, 0, len(labels) - 2 - rank)
    side, other = _integer(rng, 0, 1), _integer(rng, 1, LABELS - 1)
    return tuple(
        _one_sided_list(
            f"{_describe_error(places)} at rank {rank + 1}", side, _with_error(labels, rank, places), other
        )
        for places in (size, size + 1)
    )


@check("D2", "the same error one rank higher scores lower", _second_is_lower)
def _draw_error_ranks(rng: np.random.Generator, longest: int) -> Instance:
    number = _integer(rng, 3, longest)
    step = _integer(rng, 1, (LABELS - 1) // (number - 1))
    least = _integer(rng, 0, LABELS - 1 - step * (number - 1))
    labels = tuple(least + step * place for place in reversed(range(number)))
    size = _integer(rng, 1, number - 2)
    rank = _integer(rng, 1, number - 1 - size)
    side, other = _integer(rng, 0, 1), _integer(rng, 1, LABELS - 1)
    return tuple(
        _one_sided_list(
            f"{_describe_error(size)} at rank {place + 1}", side, _with_error(labels, place, size), other
        )
        for place in (rank, rank - 1)
    )


@check("D3", "a larger difference in an error scores lower", _second_is_lower)
def _draw_error_differences(rng: np.random.Generator, longest: int) -> Instance:
    labels = _decreasing_labels(rng, _integer(rng, 3, longest), least=1)
    rank = _integer(rng, 0, len(labels) - 3)
    size = _integer(rng, 1, len(labels) - 2 - rank)
    lower = [label for label in range(labels[rank + size + 1]) if label not in labels]
    wrong = _with_error(labels, rank, size)
    worse = (*wrong[:rank], lower[_integer(rng, 0, len(lower) - 1)], *wrong[rank + 1 :])
    side, other = _integer(rng, 0, 1), _integer(rng, 1, LABELS - 1)
    return tuple(
        _one_sided_list(f"label {ranked[rank]} at rank {rank + 1}", side, ranked, other)
        for ranked in (wrong, worse)
    )


@check("D4", "an error costs more if the other aspect has an error at the same rank", _first_loss_is_greater)
def _draw_joint_errors(rng: np.random.Generator, longest: int) -> Instance:
    labels, wrong, rank, side = _labels_with_error(rng, longest)
    low = _integer(rng, 0, LABELS - 2)
    equal = (low,) * len(labels)
    lifted = (*equal[: rank + 1], _integer(rng, low + 1, LABELS - 1), *equal[rank + 2 :])
    return tuple(
        LabelledList(description=description, labels=_by_aspect(side, ranked, other))
        for other, where in ((lifted, "beside an error"), (equal, "beside none"))
        for ranked, description in ((labels, f"no error {where}"), (wrong, f"error {where}"))
    )


@check(
    "D4_literal",
    "an error costs more where all labels of the other aspect are higher",
    _first_loss_is_greater,
)
def _draw_errors_among_higher_labels(rng: np.random.Generator, longest: int) -> Instance:
    labels, wrong, _, side = _labels_with_error(rng, longest)
    low = _integer(rng, 0, LABELS - 2)
    high = _integer(rng, low + 1, LABELS - 1)
    return tuple(
        _one_sided_list(description, side, ranked, other)
        for other, where in ((high, "high labels"), (low, "low labels"))
        for ranked, description in ((labels, f"no error, {where}"), (wrong, f"error, {where}"))
    )


@check(
    "D5",
    "a list of equal labels scores from 0 to 1, and no less than one of decreasing labels",
    _first_is_in_range_and_no_lower,
)
def _draw_equal_labels(rng: np.random.Generator, longest: int) -> Instance:
    number = _integer(rng, 1, longest)
    first, second = (_integer(rng, 0, LABELS - 1) for _ in range(2))
    lower = [tuple(max(0, label - place) for place in range(number)) for label in (first, second)]
    return (
        LabelledList(description="equal labels", labels=((first,) * number, (second,) * number)),
        LabelledList(description="labels in order", labels=(lower[0], lower[1])),
    )


@check("D6", "multiplying all labels by a number changes nothing", _scores_are_equal)
def _draw_scaled_labels(rng: np.random.Generator, longest: int) -> Instance:
    original, factor = _any_list(rng, longest), _integer(rng, 2, 5)
    return original, replace(original, description="multiplied labels", factors=(factor, factor))


@check("D6_one_scale", "multiplying the labels of one aspect by a number changes nothing", _scores_are_equal)
def _draw_scaled_labels_of_one_aspect(rng: np.random.Generator, longest: int) -> Instance:
    original, factor = _any_list(rng, longest), _integer(rng, 2, 5)
    factors = (factor, 1) if _integer(rng, 0, 1) == 0 else (1, factor)
    return original, replace(original, description="multiplied labels", factors=factors)


@check(
    "D7",
    "with equal labels in one aspect, the score is 1 exactly if the other aspect is in order",
    _is_one_only_if_sorted,
)
def _draw_sorted_or_shuffled_labels(rng: np.random.Generator, longest: int) -> Instance:
    number = _integer(rng, 2, longest)
    labels = [_integer(rng, 0, 3) for _ in range(number - 1)] + [_integer(rng, 1, 3)]
    is_sorted = _integer(rng, 0, 1) == 1
    labels = sorted(labels, reverse=True) if is_sorted else rng.permutation(labels).tolist()
    side, other = _integer(rng, 0, 1), _integer(rng, 1, LABELS - 1)
    return (_one_sided_list("one aspect equal", side, tuple(labels), other),)


@check(
    "D8",
    "weights change what an error in one aspect costs relative to the same error in the other",
    _balance_depends_on_weights,
    needs_weights=True,
)
def _draw_weights(rng: np.random.Generator, longest: int) -> Instance:
    _, wrong, _, _ = _labels_with_error(rng, longest)
    other = _integer(rng, 1, LABELS - 1)
    return tuple(
        replace(
            _one_sided_list(f"error in the {('first', 'second')[side]} aspect", side, wrong, other),
            weights=weights,
        )
        for weights in ((HEAVY, LIGHT), (LIGHT, HEAVY))
        for side in (0, 1)
    )


def _integer(rng: np.random.Generator, low: int, high: int) -> int:
    """Draw an integer from `low` to `high`, both included."""
    return int(rng.integers(low, high + 1))


def _decreasing_labels(rng: np.random.Generator, number: int, *, least: int = 0) -> Labels:
    """Draw `number` different labels of at least `least`, highest first."""
    chosen = rng.permutation(np.arange(least, LABELS))[:number]
    return tuple(sorted(chosen.tolist(), reverse=True))


def _with_error(labels: Labels, rank: int, size: int) -> Labels:
    """Return `labels` with one error.

    The label `size` positions below index `rank` moves up to `rank`.
    """
    return (*labels[:rank], labels[rank + size], *labels[rank : rank + size], *labels[rank + size + 1 :])


def _labels_with_error(rng: np.random.Generator, longest: int) -> tuple[Labels, Labels, int, int]:
    """Draw sorted labels, and make a copy with an error.

    Return the labels, the copy, and the error's rank and aspect, both counted from 0.
    """
    labels = _decreasing_labels(rng, _integer(rng, 2, longest))
    rank = _integer(rng, 0, len(labels) - 2)
    size = _integer(rng, 1, len(labels) - 1 - rank)
    return labels, _with_error(labels, rank, size), rank, _integer(rng, 0, 1)


def _any_list(rng: np.random.Generator, longest: int) -> LabelledList:
    number = _integer(rng, 2, longest)
    first, second = (tuple(_integer(rng, 0, LABELS - 1) for _ in range(number)) for _ in range(2))
    return LabelledList(description="unchanged", labels=(first, second))


def _by_aspect(side: int, labels: Labels, other: Labels) -> tuple[Labels, Labels]:
    return (labels, other) if side == 0 else (other, labels)


def _one_sided_list(description: str, side: int, labels: Labels, other: int) -> LabelledList:
    """Return a list with `labels` in the aspect `side`.

    In the other aspect, the list has only the label `other`.
    """
    return LabelledList(description=description, labels=_by_aspect(side, labels, (other,) * len(labels)))


def _describe_error(places: int) -> str:
    return f"error of {places}" if places else "no error"
