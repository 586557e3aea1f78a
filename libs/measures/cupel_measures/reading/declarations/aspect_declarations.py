"""Aspects and label sets as a collection file declares them (design.md 6)."""

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from cupel_measures.findings import Refused, declare
from cupel_measures.grammar.parameters import MOST, settled
from cupel_measures.model import Aspect, Label, LabelSet
from cupel_measures.reading.declarations import yaml_documents
from cupel_measures.reading.declarations.yaml_documents import OTHER_KIND, Place, nearest

RESERVED = ("topic", "subtopic", "document", "judgment", "_")
BUILT_IN = ("cartesian", "observed")
"""Label sets that every collection has (spec 3.2)."""
LONGEST_SCALE = 1_000_001
LONGEST_WITHOUT = 20
"""Labels of a scale that needs no threshold of its own: the second label may well be meant."""

NAME = declare(
    "aspect-name",
    "error",
    "an aspect has a name that can't be used in measures and columns",
    "use letters, digits, `_`, `-` and `.`, beginning with a letter",
)
LABELS = declare(
    "aspect-labels",
    "error",
    "the labels of an aspect are no scale",
    "list at least two labels, the lowest first, as labels: [0, 1, 2], or labels: {range: [0, 100]}",
)
LABEL_TWICE = declare(
    "aspect-label-twice",
    "error",
    "a label stands twice in one aspect",
    "keep it in one place: labels, lowest or unjudged",
)
THRESHOLD = declare(
    "aspect-threshold",
    "error",
    "the threshold is no label above the lowest one",
    "name the smallest label that counts as relevant",
)
GAINS = declare(
    "aspect-gains",
    "error",
    "gains are not one number of at least 0 per label that never decreases from worst to best label",
    "give each label its gain, as gains: {0: 0, 1: 1, 2: 3}",
)
EMBEDDING = declare(
    "aspect-embedding",
    "error",
    "an embedding is not one number per label that never decreases from worst to best label",
    "give as many numbers as labels, as embedding: [0, 1, 2]",
)
LOW_THRESHOLD = declare(
    "aspect-low-threshold",
    "warning",
    "by default a label of 0 or below counts as relevant",
    "declare the threshold, as threshold: 1, or move negative labels to lowest or unjudged",
)
LONG_SCALE = declare(
    "aspect-default-threshold",
    "warning",
    "every label of a long scale but the lowest counts as relevant, as no threshold is declared",
    "declare the smallest label that counts, as threshold: 60; and where small numbers are good, the scale "
    "with its worst label first, as {range: [100, 0]}",
)
LABEL_SET = declare(
    "label-set",
    "error",
    "a label set does not list tuples of labels of its aspects",
    "write it as {aspects: [a, b], tuples: [[0, x], [1, y]]}",
)

_KEYS = ("lowest", "unjudged", "threshold", "gains", "embedding")


def aspects_from(declared: Mapping[str, Any]) -> tuple[Aspect, ...]:
    """The aspects that a mapping declares, as the one under `aspects` in a collection file.

    declared: data as from JSON, {name: {labels, ...}}; the first is the default aspect. Raises
    Refused with everything that is wrong with it.
    """
    top = yaml_documents.of_data({"aspects": declared}, "aspects").top
    aspects = read_aspects(top.mapping("aspects")["aspects"])
    if top.document.findings.refused:
        raise Refused(top.document.findings)
    return aspects


def label_sets_from(declared: Mapping[str, Any], aspects: Sequence[Aspect]) -> dict[str, LabelSet]:
    """The label sets that a mapping declares, as the one under `label_sets` in a collection file.

    declared: {name: {aspects, tuples}}. Raises Refused with everything that is wrong with it.
    """
    top = yaml_documents.of_data({"label_sets": declared}, "label_sets").top
    label_sets = read_label_sets(top.mapping("label sets")["label_sets"], aspects)
    if top.document.findings.refused:
        raise Refused(top.document.findings)
    return label_sets


def read_aspects(place: Place) -> tuple[Aspect, ...]:
    """The aspects declared here that could be read; what is wrong is reported."""
    places = place.mapping("aspects by name, as {relevance: {labels: [0, 1, 2]}}")
    if place.value == {}:
        place.wrong(LABELS, "at least one aspect is needed, as {relevance: {labels: [0, 1, 2]}}")
    found = [_aspect(name, one) for name, one in places.items()]
    return tuple(aspect for aspect in found if aspect is not None)


def _aspect(name: str, place: Place) -> Aspect | None:
    if not _bare(name) or name in RESERVED:
        place.wrong(NAME, f"{name!r} can't be the name of an aspect")
    parts = place.keys("{labels: [0, 1, 2]}", needed=["labels"], also=_KEYS)
    labels = _scale(parts["labels"]) if "labels" in parts else None
    lowest, unjudged = (_labels(parts[key]) if key in parts else () for key in ("lowest", "unjudged"))
    if labels is None or lowest is None or unjudged is None:
        return None
    for key, also, known in (("lowest", lowest, labels), ("unjudged", unjudged, (*labels, *lowest))):
        for label in [label for label in also if label in known]:
            parts[key].wrong(LABEL_TWICE, f"label {label} is declared already")
    threshold = _threshold(parts["threshold"], labels) if "threshold" in parts else _usual(labels)
    gains = _gains(parts["gains"], labels) if "gains" in parts else None
    embedding = _numbers(parts["embedding"], labels, EMBEDDING) if "embedding" in parts else None
    aspect = Aspect(name, labels, lowest, unjudged, threshold, gains, embedding)
    if "threshold" not in parts:
        _doubt_threshold(place, aspect)
    return aspect


def _usual(labels: Sequence[Label]) -> int:
    """Index of the threshold where none is declared: the second label.

    But on the scale of understandability from 100 (very hard) to 0 (very easy) it is 40 (spec 5).
    """
    return labels.index(40) if labels == range(100, -1, -1) else 1


def _doubt_threshold(place: Place, aspect: Aspect) -> None:
    """Warn of a threshold that is hardly meant, where none is declared."""
    labels, second = aspect.labels, aspect.labels[1]
    if aspect.threshold > 1:
        return
    if aspect.integer and aspect.ascending and int(second) <= 0:
        place.wrong(LOW_THRESHOLD, f"label {second} counts as relevant, as the second label does by default")
    elif len(labels) > LONGEST_WITHOUT:
        place.wrong(LONG_SCALE, f"labels from {second} to {labels[-1]} count as relevant by default")


def _bare(name: str) -> bool:
    """Whether a name needs no quotes in a measure."""
    return name.replace("-", "_").replace(".", "_").isidentifier() and name not in ("True", "False", "None")


def _scale(place: Place) -> Sequence[Label] | None:
    """Ordered labels; neighbouring integers are a range, so that one scale has one form."""
    labels = _range(place) if isinstance(place.value, dict) else _labels(place)
    if labels is None:
        return None
    if len(labels) < 2:
        place.wrong(LABELS, f"a scale has at least two labels, got {len(labels)}")
        return None
    if isinstance(labels, range) or not all(isinstance(label, int) for label in labels):
        return labels
    numbers = [int(label) for label in labels]
    if numbers not in (sorted(numbers), sorted(numbers, reverse=True)):
        shown = ", ".join(map(str, numbers[:10]))
        place.wrong(
            LABELS, f"integer labels rise, or fall, from the lowest label to the highest, got {shown}"
        )
        return None
    step = 1 if numbers[0] < numbers[-1] else -1
    neighbours = range(numbers[0], numbers[-1] + step, step)
    return neighbours if numbers == list(neighbours) else tuple(numbers)


def _range(place: Place) -> range | None:
    parts = place.keys("{range: [0, 100]}", needed=["range"], also=[])
    if "range" not in parts:
        return None
    ends = [_label(one) for one in parts["range"].items("two integers, as [0, 100]")]
    if len(ends) != 2 or not all(isinstance(end, int) for end in ends):
        parts["range"].wrong(LABELS, "expected two integers, worst and best label, as [0, 100] or [100, 0]")
        return None
    first, last = (int(end) for end in ends if end is not None)
    if abs(last - first) >= LONGEST_SCALE:
        parts["range"].wrong(LABELS, f"a scale has at most {LONGEST_SCALE:,} labels")
        return None
    step = 1 if first <= last else -1
    return range(first, last + step, step)


def _labels(place: Place) -> tuple[Label, ...] | None:
    """Different labels; None where one of them is none."""
    items = place.items("a list of labels, as [0, 1, 2]")
    labels = [_label(item) for item in items]
    for item, label in zip(items, labels, strict=True):
        if label is not None and label in labels[: int(item.path[-1])]:
            item.wrong(LABEL_TWICE, f"label {label} is in the list already")
    found = tuple(label for label in labels if label is not None)
    return found if isinstance(place.value, list) and len(found) == len(labels) else None


def _label(place: Place) -> Label | None:
    """A word that looks like an integer is one; no label has a blank in it."""
    word = place.word("a label: an integer or a word")
    if word is None:
        return None
    if re.search(r"\s", word):
        place.wrong(LABELS, f"{word!r} has a blank in it, so no qrels file could hold it")
        return None
    return int(word) if re.fullmatch(r"[+-]?[0-9]{1,18}", word) else word


def _threshold(place: Place, labels: Sequence[Label]) -> int:
    label = _label(place)
    if label in labels and label != labels[0]:
        return labels.index(label)
    if label is not None:
        which = f"{label} is the lowest label" if label == labels[0] else f"{label} is no label"
        place.wrong(THRESHOLD, f"{which}; labels that can be the threshold are {_shown(labels[1:])}")
    return 1


def _gains(place: Place, labels: Sequence[Label]) -> tuple[float, ...] | None:
    """A gain per label, from a mapping by label or a list."""
    if isinstance(place.value, list):
        return _checked(place, _numbers(place, labels, GAINS))
    given = {_label(Place(one.document, one.path, key)): one for key, one in place.mapping("gains").items()}
    strange = [label for label in given if label is not None and label not in labels]
    missing = [label for label in labels if label not in given]
    for label in strange:
        given[label].wrong(GAINS, f"{label} is no label{nearest(str(label), map(str, labels[:100]))}")
    if missing and given:
        place.wrong(GAINS, f"no gain for label {_shown(missing)}")
    if strange or missing or not given:
        return None
    return _checked(place, _rising(place, [read_number(given[label]) for label in labels], GAINS))


def _checked(place: Place, gains: tuple[float | Fraction, ...] | None) -> tuple[float, ...] | None:
    if gains is not None and gains[0] < 0:
        place.wrong(GAINS, f"a gain is at least 0, got {float(gains[0]):g}")
    return None if gains is None else tuple(map(float, gains))


def _numbers(place: Place, labels: Sequence[Label], code: str) -> tuple[float | Fraction, ...] | None:
    """A number per label, from a list."""
    numbers = [read_number(one) for one in place.items("a list of numbers, one per label")]
    if len(numbers) != len(labels):
        if isinstance(place.value, list):
            place.wrong(code, f"{len(numbers)} numbers for {len(labels)} labels")
        return None
    return _rising(place, numbers, code)


def _rising(
    place: Place, numbers: Sequence[float | Fraction | None], code: str
) -> tuple[float | Fraction, ...] | None:
    found = tuple(number for number in numbers if number is not None)
    if len(found) < len(numbers):
        return None
    if list(found) != sorted(found):
        place.wrong(code, f"numbers never decrease from the worst to the best label, got {_shown(found)}")
        return None
    return found


def read_number(place: Place) -> float | Fraction | None:
    """The number written here, exactly, up to MOST; what is none is reported."""
    word = place.word("a number") or ""
    if re.fullmatch(
        r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?|[+-]?[0-9]+/[0-9]*[1-9][0-9]*", word
    ):
        number = Fraction(word)
        if abs(number) <= MOST:
            return settled(number)
    if word:
        place.wrong(OTHER_KIND, f"expected a number, got {word!r}")
    return None


def _shown(values: Sequence[object]) -> str:
    return ", ".join(map(str, values[:10])) + (", ..." if len(values) > 10 else "")


def read_label_sets(place: Place, aspects: Sequence[Aspect]) -> dict[str, LabelSet]:
    """The label sets declared here that could be read; what is wrong is reported."""
    places = place.mapping("label sets by name, as {possible: {aspects: [a, b], tuples: [[0, x], [1, y]]}}")
    found = {name: _label_set(one, aspects) for name, one in places.items()}
    return {name: one for name, one in found.items() if one is not None}


def _label_set(place: Place, aspects: Sequence[Aspect]) -> LabelSet | None:
    own, known = str(place.path[-1]), {aspect.name: aspect for aspect in aspects}
    if not _bare(own) or own in BUILT_IN:
        place.wrong(LABEL_SET, f"{own!r} can't be the name of a label set")
    parts = place.keys("{aspects: [a, b], tuples: [[0, x], [1, y]]}", needed=["aspects", "tuples"], also=[])
    if len(parts) < 2:
        return None
    names = [one.word("the name of an aspect") for one in parts["aspects"].items("a list of aspects")]
    for name in names:
        if name is not None and name not in known:
            parts["aspects"].wrong(LABEL_SET, f"there is no aspect {name!r}{nearest(name, known)}")
    scales = [known[name] for name in names if name in known]
    if len(set(names)) < len(names):
        parts["aspects"].wrong(LABEL_SET, "an aspect stands twice")
    if len(scales) < len(names) or not scales:
        return None
    tuples = [_tuple(one, scales) for one in parts["tuples"].items("a list of tuples of labels")]
    if len(set(tuples)) < 2:
        parts["tuples"].wrong(LABEL_SET, "a label set has at least two different tuples")
    return LabelSet(
        tuple(scale.name for scale in scales), frozenset(one for one in tuples if one is not None)
    )


def _tuple(place: Place, scales: Sequence[Aspect]) -> tuple[int, ...] | None:
    items = place.items(f"a label each of {', '.join(scale.name for scale in scales)}")
    if len(items) != len(scales):
        if isinstance(place.value, list):
            place.wrong(LABEL_SET, f"{len(items)} labels for {len(scales)} aspects")
        return None
    labels = [_label(item) for item in items]
    for item, label, scale in zip(items, labels, scales, strict=True):
        if label is not None and label not in scale.labels:
            item.wrong(LABEL_SET, f"{label} is no label of {scale.name}; labels are {_shown(scale.labels)}")
    if any(label is None or label not in s.labels for label, s in zip(labels, scales, strict=True)):
        return None
    return tuple(s.labels.index(label) for label, s in zip(labels, scales, strict=True) if label is not None)
