"""Conversion of the words of a qrels file to label indices.

Scales are declared or inferred.
"""

import re
from dataclasses import replace

from cupel_measures.findings import declare
from cupel_measures.model import ABSENT, NEGATIVE, UNJUDGED, Aspect, Label
from cupel_measures.reading.lines.decimal_columns import decimal_comma

HIGHEST_INFERRED = 1_000_000
"""Highest grade of an inferred scale; a longer scale must be declared."""

NOT_INTEGER = declare(
    "qrels-grade-not-integer",
    "error",
    "a grade is not an integer, and no scale is declared",
    "use integers, or declare the labels of the aspect in a collection file",
)
NOT_DECLARED = declare(
    "qrels-label-not-declared",
    "error",
    "a label is not on the declared scale of its aspect",
    "correct the label, or declare it under one of the keys `labels`, `lowest` and `unjudged`",
)
ABOVE_SCALE = declare(
    "qrels-label-above-scale",
    "error",
    "a label is above the highest declared label of its aspect",
    "correct the label, or declare a longer scale",
)
SCALE_TOO_LONG = declare(
    "qrels-scale-too-long",
    "error",
    f"a grade is above {HIGHEST_INFERRED:,}, and no scale is declared",
    "correct the grade, or declare the scale in a collection file: labels: {range: [0, HIGHEST]}",
)


INTEGER = re.compile(rb"[+-]?[0-9]{1,1000}")
"""Syntax of an integer grade."""
WRONG = ABSENT - 1
"""Values up to this one are not label indices. Each stands for a kind of error (ERRORS)."""
ERRORS = {WRONG: NOT_INTEGER, WRONG - 1: NOT_DECLARED, WRONG - 2: ABOVE_SCALE, WRONG - 3: SCALE_TOO_LONG}
_CODES = {code: label for label, code in ERRORS.items()}


def unscaled(name: str) -> Aspect:
    """Return an aspect whose scale is to be inferred.

    The scale will be from 0 to the highest grade, and at least to 1.
    """
    return Aspect(name=name, labels=range(0), inferred=True)


class LabelScale(dict[bytes, int]):
    """Dict from the words of a file to label indices of an aspect.

    Entries are computed on first use.
    """

    def __init__(self, aspect: Aspect) -> None:
        self.aspect = aspect
        self.highest = 0
        self._special = {label: self._lowest(label) for label in aspect.lowest}
        self._special.update(dict.fromkeys(aspect.unjudged, UNJUDGED))

    def __missing__(self, word: bytes) -> int:
        label = self[word] = self._inferred(word) if self.aspect.inferred else self._declared(word)
        return label

    @staticmethod
    def _lowest(label: Label) -> int:
        """Return NEGATIVE for a negative grade, else 0.

        Bpref and infAP treat negative grades differently.
        """
        return NEGATIVE if isinstance(label, int) and label < 0 else 0

    def _inferred(self, word: bytes) -> int:
        if not INTEGER.fullmatch(word):
            return _CODES[NOT_INTEGER]
        grade = int(word)
        if grade > HIGHEST_INFERRED:
            return _CODES[SCALE_TOO_LONG]
        self.highest = max(self.highest, grade)
        return max(grade, NEGATIVE)

    def _declared(self, word: bytes) -> int:
        label: Label = int(word) if INTEGER.fullmatch(word) else word.decode()
        if label in self._special:
            return self._special[label]
        labels, integer = self.aspect.labels, self.aspect.integer
        if (isinstance(label, int) or not integer) and label in labels:
            return labels.index(label)
        above = integer and isinstance(label, int) and self.aspect.ascending and label > int(labels[-1])
        return _CODES[ABOVE_SCALE if above else NOT_DECLARED]

    def settled(self) -> Aspect:
        """Return the aspect with its scale.

        An inferred scale covers all words that were looked up so far.
        """
        labels = range(max(self.highest, 1) + 1) if self.aspect.inferred else self.aspect.labels
        return replace(self.aspect, labels=labels)

    def complaint(self, word: bytes) -> str:
        """Return an error message for a word that is not a label."""
        name, aspect = word.decode()[:80], self.aspect
        if aspect.inferred and self[word] == _CODES[SCALE_TOO_LONG]:
            return f"{name} is above {HIGHEST_INFERRED:,}; declare the scale in a collection file"
        if aspect.inferred:
            if comma := decimal_comma(name):
                return f"{name!r} is not an integer{comma}"
            return f"{name!r} is not an integer; declare other labels in a collection file"
        labels = aspect.labels
        scale = ", ".join(map(str, labels)) if len(labels) <= 10 else f"{labels[0]} to {labels[-1]}"
        more = "".join(
            f"; {key}: {', '.join(map(str, words))}"
            for key, words in (("lowest", aspect.lowest), ("unjudged", aspect.unjudged))
            if words
        )
        problem = "above the scale" if self[word] == _CODES[ABOVE_SCALE] else "not a label"
        return f"{name} is {problem} of {aspect.name} (labels: {scale}{more})"
