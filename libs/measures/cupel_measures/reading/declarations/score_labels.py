"""Scores from elsewhere turned into labels of an aspect: PageRank into popularity, say (spec 3.11).

A file of scores has a line `document score` per document; blank lines, and lines whose first byte is `#`, are
skipped. It labels every document that the other files of its collection judge; one without a score has the
lowest label.
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
    "what divides scores into labels is not one rising number between two labels",
    "three labels take shares: [0.05, 0.15] of the documents, best label first, or thresholds: [80, 90]",
)
OTHERS = declare(
    "scores-alone",
    "error",
    "a file of scores does not go with the other files of its collection",
    "scores label what other files judge, for an aspect that no other file judges",
)
NUMBER = declare(
    "scores-number",
    "error",
    "a score is no number",
    "write it as 12, 0.034 or 3.4e-2",
)
TWICE = declare("scores-twice", "error", "a document has two scores", "keep one of the lines")

SCORE = re.compile(rb"[+-]?(?:[0-9]{1,400}(?:\.[0-9]{1,400})?|\.[0-9]{1,400})(?:[eE][+-]?[0-9]{1,4})?")

Scores = Mapping[bytes, Decimal]
"""Score by document, exactly as typed."""


@dataclass(frozen=True)
class Steps:
    """What divides scores into labels: a number between any two neighbours, rising.

    shares: of n documents given, those whose position is at most the first share of n have the best label,
    and so on; a position is 1 + the number of documents with a larger score, so that ties share the best
    one. Else they are thresholds: a score that reaches the last one has the best label, and so on.
    """

    numbers: tuple[Fraction, ...]
    shares: bool

    def labels(self, scores: Scores) -> dict[bytes, int]:
        """The label index of each document: 0 where it is on no step."""
        if not self.shares:
            return {d: sum(score >= one for one in self.numbers) for d, score in scores.items()}
        positions = _positions(scores.values())
        last = [int(share * len(scores)) for share in self.numbers]
        return {d: sum(positions[score] <= one for one in last) for d, score in scores.items()}


def _positions(scores: Iterable[Decimal]) -> dict[Decimal, int]:
    """Position of each score: 1 + how many are strictly larger."""
    found: dict[Decimal, int] = {}
    for place, score in enumerate(sorted(scores, reverse=True), 1):
        found.setdefault(score, place)
    return found


def read_steps(place: Place, parts: Mapping[str, Place], aspect: Aspect) -> Steps | None:
    """The `shares` or `thresholds` of a file of scores; what is wrong is reported, and gives None."""
    ways = [key for key in ("shares", "thresholds") if key in parts]
    if len(ways) != 1:
        place.wrong(STEPS, "scores take either shares: [0.05, 0.15] or thresholds: [80, 90]")
        return None
    [way] = ways
    found = [read_number(one) for one in parts[way].items("a list of numbers, as [0.05, 0.15]")]
    numbers = tuple(exact(one) for one in found if one is not None)
    if not found or len(numbers) < len(found):
        return None
    if problem := _problem(way, numbers, aspect):
        parts[way].wrong(STEPS, problem)
        return None
    return Steps(numbers, way == "shares")


def _problem(way: str, numbers: Sequence[Fraction], aspect: Aspect) -> str | None:
    """What is wrong with limits."""
    shown = ", ".join(f"{float(one):g}" for one in numbers[:10])
    if len(numbers) != len(aspect.labels) - 1:
        labels = len(aspect.labels)
        return f"{aspect.name} has {labels:,} labels, which {labels - 1:,} {way} divide; got {len(numbers)}"
    if any(later <= earlier for earlier, later in pairwise(numbers)):
        return f"{way} rise from each to the next, got {shown}"
    if way == "shares" and not 0 < numbers[0] <= numbers[-1] < 1:
        return f"shares are above 0 and below 1, got {shown}"
    return None


def scores_in(rows: Iterable[tuple[int, list[bytes]]], name: str, findings: Findings) -> Scores:
    """The scores of a file, from line number and words of each row; what is wrong with one is reported."""
    scores: dict[bytes, Decimal] = {}
    first: dict[bytes, int] = {}
    for number, (document, score) in rows:
        wrong = not SCORE.fullmatch(score)
        if not wrong and document not in first:
            scores[document], first[document] = Decimal(score.decode()), number
            continue
        code = NUMBER if wrong else TWICE
        if not findings.room(code):
            findings.count(code)
            continue
        shown = document.decode()
        said = f"the score {score.decode()[:80]!r} of {shown} is no number"
        said = said if wrong else f"document {shown} has a score already, in line {first[document]}"
        findings.add(Finding(code, said, name, number, sample=score.decode()[:80]))
    return scores
