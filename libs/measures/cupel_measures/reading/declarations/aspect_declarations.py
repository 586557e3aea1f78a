"""Declarations of aspects and of sets of label tuples in a collection file."""

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
"""Label sets that every collection has (TOMA, CIKM 2021, 3.2)."""
LONGEST_SCALE = 1_000_001
LONGEST_WITHOUT = 20
"""Number of labels up to which the default threshold, the second label, causes no warning."""

NAME = declare(
    "aspect-name",
    "error",
    "the name of an aspect cannot be used in measures and columns",
    "use letters, digits, `_`, `-` and `.`, starting with a letter",
)
LABELS = declare(
    "aspect-labels",
    "error",
    "the labels of an aspect are not a scale",
    "list at least two labels, lowest first, such as labels: [0, 1, 2] or labels: {range: [0, 100]}",
)
LABEL_TWICE = declare(
    "aspect-label-twice",
    "error",
    "a label occurs twice in one aspect",
    "list the label once, under one of the keys `labels`, `lowest` and `unjudged`",
)
THRESHOLD = declare(
    "aspect-threshold",
    "error",
    "the threshold is not a label above the lowest one",
    "name the smallest label that counts as relevant",
)
GAINS = declare(
    "aspect-gains",
    "error",
    "gains must be one number per label, each at least 0, non-decreasing from the worst to the best label",
    "write the gain of each label, such as gains: {0: 0, 1: 1, 2: 3}",
)
EMBEDDING = declare(
    "aspect-embedding",
    "error",
    "an embedding must be one number per label, non-decreasing from the worst to the best label",
    "write one number per label, such as embedding: [0, 1, 2]",
)
LOW_THRESHOLD = declare(
    "aspect-low-threshold",
    "warning",
    "the second label of an aspect, which counts as relevant by default, is 0 or below",
    "declare threshold: 1, or move negative labels to the key `lowest` or `unjudged`",
)
LONG_SCALE = declare(
    "aspect-default-threshold",
    "warning",
    "without a threshold, every label of a long scale except the lowest counts as relevant",
    "declare the smallest relevant label, such as threshold: 60; if small numbers are good, declare the "
    "worst label first, such as labels: {range: [100, 0]}",
)
LABEL_SET = declare(
    "label-set",
    "error",
    "the declaration of a label set is not a list of aspects with tuples of their labels",
    "write {aspects: [a, b], tuples: [[0, x], [1, y]]}",
)

_KEYS = ("lowest", "unjudged", "threshold", "gains", "embedding")


def aspects_from(declared: Mapping[str, Any]) -> tuple[Aspect, ...]:
    """Return the aspects in a mapping such as `aspects` in a collection file.

    declared: JSON data, {name: {labels, ...}}; the first is the default aspect. Raise Refused, with all
    errors, if it is invalid.
    """
    top = yaml_documents.of_data({"aspects": declared}, "aspects").top
    aspects = read_aspects(top.mapping("aspects")["aspects"])
    if top.document.findings.refused:
        raise Refused(top.document.findings)
    return aspects


def label_sets_from(declared: Mapping[str, Any], aspects: Sequence[Aspect]) -> dict[str, LabelSet]:
    """Return the sets of label tuples in a mapping.

    An example is `label_sets` in a collection file.

    declared: {name: {aspects, tuples}}. Raise Refused, with all errors, if it is invalid.
    """
    top = yaml_documents.of_data({"label_sets": declared}, "label_sets").top
    label_sets = read_label_sets(top.mapping("label sets")["label_sets"], aspects)
    if top.document.findings.refused:
        raise Refused(top.document.findings)
    return label_sets


def read_aspects(place: Place) -> tuple[Aspect, ...]:
    """Return the valid aspects in the mapping at `place`. Report errors in the others."""
    places = place.mapping("aspects by name, such as {relevance: {labels: [0, 1, 2]}}")
    if place.value == {}:
        place.wrong(LABELS, "expected at least one aspect, such as {relevance: {labels: [0, 1, 2]}}")
    aspects = [_aspect(name, value) for name, value in places.items()]
    return tuple(aspect for aspect in aspects if aspect is not None)


def _aspect(name: str, place: Place) -> Aspect | None:
    if not _is_bare(name) or name in RESERVED:
        place.wrong(NAME, f"{name!r} is not a valid name of an aspect")
    parts = place.keys("{labels: [0, 1, 2]}", needed=["labels"], also=_KEYS)
    labels = _scale(parts["labels"]) if "labels" in parts else None
    lowest, unjudged = (_labels(parts[key]) if key in parts else () for key in ("lowest", "unjudged"))
    if labels is None or lowest is None or unjudged is None:
        return None
    for key, also, known in (("lowest", lowest, labels), ("unjudged", unjudged, (*labels, *lowest))):
        for label in [label for label in also if label in known]:
            parts[key].wrong(LABEL_TWICE, f"label {label} is already declared")
    threshold = _threshold(parts["threshold"], labels) if "threshold" in parts else _default_threshold(labels)
    gains = _gains(parts["gains"], labels) if "gains" in parts else None
    embedding = _numbers(parts["embedding"], labels, EMBEDDING) if "embedding" in parts else None
    aspect = Aspect(
        name=name,
        labels=labels,
        lowest=lowest,
        unjudged=unjudged,
        threshold=threshold,
        declared_gains=gains,
        declared_embedding=embedding,
    )
    if "threshold" not in parts:
        _check_default_threshold(place, aspect)
    return aspect


def _default_threshold(labels: Sequence[Label]) -> int:
    """Return the index of the default threshold: the second label.

    On the scale of understandability from 100 (very hard) to 0 (very easy), the default is the label 40
    (libs/measures/READINGS.md, reading 14).
    """
    return labels.index(40) if labels == range(100, -1, -1) else 1


def _check_default_threshold(place: Place, aspect: Aspect) -> None:
    """Warn about a default threshold that is unlikely to be intended."""
    labels, second = aspect.labels, aspect.labels[1]
    if aspect.threshold > 1:
        return
    if aspect.integer and aspect.ascending and int(second) <= 0:
        place.wrong(LOW_THRESHOLD, f"label {second}, the second one, counts as relevant by default")
    elif len(labels) > LONGEST_WITHOUT:
        place.wrong(LONG_SCALE, f"labels from {second} to {labels[-1]} count as relevant by default")


def _is_bare(name: str) -> bool:
    """Return whether a name needs no quotes in a measure."""
    return name.replace("-", "_").replace(".", "_").isidentifier() and name not in ("True", "False", "None")


def _scale(place: Place) -> Sequence[Label] | None:
    """Return the ordered labels.

    Consecutive integers become a range, so that equal scales compare equal.
    """
    labels = _range(place) if isinstance(place.value, dict) else _labels(place)
    if labels is None:
        return None
    if len(labels) < 2:
        place.wrong(LABELS, f"expected at least two labels, got {len(labels)}")
        return None
    if isinstance(labels, range) or not all(isinstance(label, int) for label in labels):
        return labels
    numbers = [int(label) for label in labels]
    if numbers not in (sorted(numbers), sorted(numbers, reverse=True)):
        shown = ", ".join(map(str, numbers[:10]))
        place.wrong(LABELS, f"expected integer labels in ascending or descending order, got {shown}")
        return None
    step = 1 if numbers[0] < numbers[-1] else -1
    neighbours = range(numbers[0], numbers[-1] + step, step)
    return neighbours if numbers == list(neighbours) else tuple(numbers)


def _range(place: Place) -> range | None:
    parts = place.keys("{range: [0, 100]}", needed=["range"], also=[])
    if "range" not in parts:
        return None
    ends = [_label(end) for end in parts["range"].items("two integers such as [0, 100]")]
    if len(ends) != 2 or not all(isinstance(end, int) for end in ends):
        parts["range"].wrong(
            LABELS, "expected two integers, worst and best label, such as [0, 100] or [100, 0]"
        )
        return None
    first, last = (int(end) for end in ends if end is not None)
    if abs(last - first) >= LONGEST_SCALE:
        parts["range"].wrong(LABELS, f"expected at most {LONGEST_SCALE:,} labels")
        return None
    step = 1 if first <= last else -1
    return range(first, last + step, step)


def _labels(place: Place) -> tuple[Label, ...] | None:
    """Return the distinct labels, or None if one is invalid."""
    items = place.items("a list of labels such as [0, 1, 2]")
    labels = [_label(item) for item in items]
    for item, label in zip(items, labels, strict=True):
        if label is not None and label in labels[: int(item.path[-1])]:
            item.wrong(LABEL_TWICE, f"label {label} is listed twice")
    valid = tuple(label for label in labels if label is not None)
    return valid if isinstance(place.value, list) and len(valid) == len(labels) else None


def _label(place: Place) -> Label | None:
    """Read a label.

    Spaces are not allowed. A word in the syntax of an integer becomes an integer.
    """
    word = place.word("a label: an integer or a word")
    if word is None:
        return None
    if re.search(r"\s", word):
        place.wrong(LABELS, f"{word!r} contains a space, which separates columns in a qrels file")
        return None
    return int(word) if re.fullmatch(r"[+-]?[0-9]{1,18}", word) else word


def _threshold(place: Place, labels: Sequence[Label]) -> int:
    label = _label(place)
    if label in labels and label != labels[0]:
        return labels.index(label)
    if label is not None:
        problem = f"{label} is the lowest label" if label == labels[0] else f"{label} is not a label"
        place.wrong(THRESHOLD, f"{problem}; use one of {_shown(labels[1:])}")
    return 1


def _gains(place: Place, labels: Sequence[Label]) -> tuple[float, ...] | None:
    """Read a gain per label, from a mapping by label or a list."""
    if isinstance(place.value, list):
        return _checked(place, _numbers(place, labels, GAINS))
    given = {
        _label(Place(gain.document, gain.path, key)): gain for key, gain in place.mapping("gains").items()
    }
    unknown = [label for label in given if label is not None and label not in labels]
    missing = [label for label in labels if label not in given]
    for label in unknown:
        given[label].wrong(GAINS, f"{label} is not a label{nearest(str(label), map(str, labels[:100]))}")
    if missing and given:
        place.wrong(GAINS, f"no gain for label {_shown(missing)}")
    if unknown or missing or not given:
        return None
    return _checked(place, _ascending(place, [read_number(given[label]) for label in labels], GAINS))


def _checked(place: Place, gains: tuple[float | Fraction, ...] | None) -> tuple[float, ...] | None:
    if gains is not None and gains[0] < 0:
        place.wrong(GAINS, f"expected gains of at least 0, got {float(gains[0]):g}")
    return None if gains is None else tuple(map(float, gains))


def _numbers(place: Place, labels: Sequence[Label], code: str) -> tuple[float | Fraction, ...] | None:
    """Read a list with one number per label."""
    numbers = [read_number(item) for item in place.items("a list of numbers, one per label")]
    if len(numbers) != len(labels):
        if isinstance(place.value, list):
            place.wrong(code, f"{len(numbers)} numbers for {len(labels)} labels")
        return None
    return _ascending(place, numbers, code)


def _ascending(
    place: Place, numbers: Sequence[float | Fraction | None], code: str
) -> tuple[float | Fraction, ...] | None:
    valid = tuple(number for number in numbers if number is not None)
    if len(valid) < len(numbers):
        return None
    if list(valid) != sorted(valid):
        place.wrong(code, f"expected non-decreasing numbers, got {_shown(valid)}")
        return None
    return valid


def read_number(place: Place) -> float | Fraction | None:
    """Return the exact number at `place`.

    Report an error and return None if it is invalid or above MOST.
    """
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
    """Return the valid sets of label tuples in the mapping at `place`.

    Report errors in the others.
    """
    places = place.mapping(
        "label sets by name, such as {possible: {aspects: [a, b], tuples: [[0, x], [1, y]]}}"
    )
    label_sets = {name: _label_set(value, aspects) for name, value in places.items()}
    return {name: label_set for name, label_set in label_sets.items() if label_set is not None}


def _label_set(place: Place, aspects: Sequence[Aspect]) -> LabelSet | None:
    set_name, known = str(place.path[-1]), {aspect.name: aspect for aspect in aspects}
    if not _is_bare(set_name) or set_name in BUILT_IN:
        place.wrong(LABEL_SET, f"{set_name!r} is not a valid name of a label set")
    parts = place.keys("{aspects: [a, b], tuples: [[0, x], [1, y]]}", needed=["aspects", "tuples"], also=[])
    if len(parts) < 2:
        return None
    names = [item.word("the name of an aspect") for item in parts["aspects"].items("a list of aspects")]
    for name in names:
        if name is not None and name not in known:
            parts["aspects"].wrong(LABEL_SET, f"unknown aspect {name!r}{nearest(name, known)}")
    scales = [known[name] for name in names if name in known]
    if len(set(names)) < len(names):
        parts["aspects"].wrong(LABEL_SET, "an aspect is listed twice")
    if len(scales) < len(names) or not scales:
        return None
    tuples = [_tuple(item, scales) for item in parts["tuples"].items("a list of tuples of labels")]
    if len(set(tuples)) < 2:
        parts["tuples"].wrong(LABEL_SET, "expected at least two distinct tuples")
    return LabelSet(
        tuple(scale.name for scale in scales), frozenset(labels for labels in tuples if labels is not None)
    )


def _tuple(place: Place, scales: Sequence[Aspect]) -> tuple[int, ...] | None:
    items = place.items(f"one label each of {', '.join(scale.name for scale in scales)}")
    if len(items) != len(scales):
        if isinstance(place.value, list):
            place.wrong(LABEL_SET, f"{len(items)} labels for {len(scales)} aspects")
        return None
    labels = [_label(item) for item in items]
    for item, label, scale in zip(items, labels, scales, strict=True):
        if label is not None and label not in scale.labels:
            item.wrong(
                LABEL_SET, f"{label} is not a label of {scale.name}; use one of {_shown(scale.labels)}"
            )
    if any(label is None or label not in s.labels for label, s in zip(labels, scales, strict=True)):
        return None
    return tuple(s.labels.index(label) for label, s in zip(labels, scales, strict=True) if label is not None)
