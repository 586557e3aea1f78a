"""The rules of a gate, and the verdicts."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from cupel_measures.catalogue.parser import parse
from cupel_measures.comparing.closeness.margins import MarginTest
from cupel_measures.grammar.syntax import MeasureError

GateVerdict = Literal["worse", "undecided", "no worse", "better"]
"""Verdicts, the least favourable one first."""
VERDICTS: tuple[GateVerdict, ...] = get_args(GateVerdict)
PASSING: frozenset[GateVerdict] = frozenset({"better", "no worse"})
EXIT_CODES: Mapping[GateVerdict, int] = {"better": 0, "no worse": 0, "worse": 1, "undecided": 3}
"""Exit code of `cupel gate` by verdict. Exit code 2 means wrong usage, or an invalid file."""

TOP = 10
"""Number of first documents per topic among which unjudged documents are counted."""
MIN_TOPICS = 10
"""Default of the least number of topics for a verdict."""
MAX_UNJUDGED = 0.1
"""Default of the greatest share of unjudged documents that cannot make a verdict undecided."""
MAX_OTHER_TOPICS = 0.1
"""Greatest share of the run's topics that the baseline may lack."""

NO_QUALITY = frozenset({"Judged", "NumNonrelRet", "NumQ", "NumRel", "NumRet", "RBPResidual", "Unjudged"})
"""Measures of which a greater value is not better, so that they have no drop."""

_RANGES: Mapping[str, tuple[str, float, float]] = {
    "max_drop": ("a positive number in the unit of the measure, such as 0.01", 0, math.inf),
    "alpha": ("a number between 0 and 0.5, such as 0.05", 0, 0.5),
}
_NUMBERS = {
    "min_topics": "a whole number of at least 2",
    "max_unjudged": "a share from 0 to 1, such as 0.1",
}


def number_problem(name: str, value: float) -> str | None:
    """Return what is wrong with a number of a rule, or None.

    name: max_drop, alpha, min_topics or max_unjudged.
    """
    if name in _RANGES:
        expected, low, high = _RANGES[name]
        is_valid = low < value < high
    else:
        expected = _NUMBERS[name]
        is_valid = 0 <= value <= 1 if name == "max_unjudged" else value >= 2 and value == int(value)
    return None if is_valid else f"expected {expected}, got {float(value):g}"


def measure_problem(text: str) -> str | None:
    """Return why a gate cannot use a measure, or None."""
    try:
        measure = parse(text)
    except MeasureError as problem:
        return str(problem)
    if measure.declaration.name in NO_QUALITY:
        return f"a greater {measure.declaration.name} is not better; use a measure of quality such as nDCG@10"
    return None


@dataclass(frozen=True, kw_only=True)
class GateRule:
    """The rule of a gate for one measure.

    measure: canonical text. max_drop: the smallest loss of the mean, against the baseline, that must be ruled
    out. alpha: level of the one-sided tests. test: "t" or "sign-flip". min_topics: with fewer topics, the
    verdict is "undecided". max_unjudged: unjudged documents that only one run has among its first
    ten can change the verdict if their share of the ten is larger than this. name: name of the gate in a file
    of gates, or None.
    """

    measure: str
    max_drop: float
    alpha: float = 0.05
    test: MarginTest = "t"
    min_topics: int = MIN_TOPICS
    max_unjudged: float = MAX_UNJUDGED
    name: str | None = None

    def __post_init__(self) -> None:
        """Raise ValueError if a number is out of range.

        Raise MeasureError if a gate cannot use the measure.
        """
        for name in (*_RANGES, *_NUMBERS):
            if problem := number_problem(name, getattr(self, name)):
                raise ValueError(f"{name}: {problem}")
        if self.test not in get_args(MarginTest):
            raise ValueError(f"test: expected one of {', '.join(get_args(MarginTest))}, got {self.test!r}")
        if problem := measure_problem(self.measure):
            raise MeasureError(problem)
