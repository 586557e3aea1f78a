"""Labels of an aspect from external scores, such as popularity from PageRank.

A file of scores has a line `document score` per document; blank lines and lines that start with `#` are
skipped. It labels every document that the other files of the collection judge. A document without a score
gets the lowest label.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

from cupel_measures.findings import Finding, Findings, declare
from cupel_measures.grammar.parameters import exact
from cupel_measures.model import Aspect
from cupel_measures.reading.declarations.aspect_declarations import read_number
from cupel_measures.reading.declarations.yaml_documents import Place

STEPS = declare(
    "scores-steps",
    "error",
    "shares or thresholds must be ascending numbers, one fewer than there are labels",
    "for three labels, write two numbers: shares: [0.05, 0.15] (the first 5% of the documents get the best "
    "label, those up to 15% the next one) or thresholds: [80, 90] (scores from 90 get the best label, those "
    "from 80 the next one)",
)
OTHERS = declare(
    "scores-alone",
    "error",
    "a file of scores does not fit the other files of its collection",
    "add a qrels file that judges documents, and use scores for an aspect that no other file judges",
)
NUMBER = declare(
    "scores-number",
    "error",
    "a score is not a number",
    "write a number such as 12, 0.034 or 3.4e-2",
)
TWICE = declare("scores-twice", "error", "a document has two scores", "keep only one of the lines")

SCORE = re.compile(rb"[+-]?(?:[0-9]{1,400}(?:\.[0-9]{1,400})?|\.[0-9]{1,400})(?:[eE][+-]?[0-9]{1,4})?")

Scores = Mapping[bytes, Decimal]
"""Score by document, exactly as typed."""


@dataclass(frozen=True)
class Steps:
    """Division of scores into labels.

    numbers: one number for each pair of adjacent labels, ascending. shares: True if the numbers are shares,
    False if they are thresholds.

    - Shares: the position of a document is 1 + the number of larger scores, so ties share the best position.
      Of n documents, those at a position up to numbers[0] * n get the best label, those up to numbers[1] * n
      the next one, and so on.
    - Thresholds: a score of at least the last number gets the best label, another score of at least the
      number before it gets the next label, and so on.
    """

    numbers: tuple[Fraction, ...]
    shares: bool

    def labels(self, scores: Scores) -> dict[bytes, int]:
        """Return the label index of each document."""
        if not self.shares:
            return {d: sum(score >= bound for bound in self.numbers) for d, score in scores.items()}
        positions = _positions(scores.values())
        last = [int(share * len(scores)) for share in self.numbers]
        return {d: sum(positions[score] <= bound for bound in last) for d, score in scores.items()}


def _positions(scores: Iterable[Decimal]) -> dict[Decimal, int]:
    """Return the position of each score: 1 + the number of larger scores."""
    positions: dict[Decimal, int] = {}
    for place, score in enumerate(sorted(scores, reverse=True), 1):
        positions.setdefault(score, place)
    return positions


def read_steps(place: Place, parts: Mapping[str, Place], aspect: Aspect) -> Steps | None:
    """Read `shares` or `thresholds` of a file of scores.

    Report errors and return None if there are any.
    """
    ways = [key for key in ("shares", "thresholds") if key in parts]
    if len(ways) != 1:
        place.wrong(STEPS, "expected either shares: [0.05, 0.15] or thresholds: [80, 90]")
        return None
    [way] = ways
    items = [read_number(item) for item in parts[way].items("a list of numbers such as [0.05, 0.15]")]
    numbers = tuple(exact(number) for number in items if number is not None)
    if not items or len(numbers) < len(items):
        return None
    if problem := _problem(way, numbers, aspect):
        parts[way].wrong(STEPS, problem)
        return None
    return Steps(numbers, way == "shares")


def _problem(way: str, numbers: Sequence[Fraction], aspect: Aspect) -> str | None:
    """Return an error message about the numbers, or None if they are valid.

    way: shares or thresholds.
    """
    shown = ", ".join(f"{float(number):g}" for number in numbers[:10])
    if len(numbers) != len(aspect.labels) - 1:
        labels = len(aspect.labels)
        return f"{aspect.name} has {labels:,} labels, so expected {labels - 1:,} {way}, got {len(numbers)}"
    if any(later <= earlier for earlier, later in pairwise(numbers)):
        return f"expected ascending {way}, got {shown}"
    if way == "shares" and not 0 < numbers[0] <= numbers[-1] < 1:
        return f"expected shares above 0 and below 1, got {shown}"
    return None


def scores_in(rows: Iterable[tuple[int, list[bytes]]], name: str, findings: Findings) -> Scores:
    """Read the scores of a file from the line number and words of each row.

    Report invalid rows.
    """
    scores: dict[bytes, Decimal] = {}
    first: dict[bytes, int] = {}
    for number, (document, score) in rows:
        is_invalid = not SCORE.fullmatch(score)
        if not is_invalid and document not in first:
            scores[document], first[document] = Decimal(score.decode()), number
            continue
        code = NUMBER if is_invalid else TWICE
        if not findings.room(code):
            findings.count(code)
            continue
        shown = document.decode()
        message = f"the score {score.decode()[:80]!r} of {shown} is not a number"
        if not is_invalid:
            message = f"document {shown} already has a score on line {first[document]}"
        findings.add(Finding(code=code, message=message, file=name, line=number, sample=score.decode()[:80]))
    return scores
