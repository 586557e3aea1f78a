"""The expected tables of audit reports, computed in plain Python without the audit library."""

import math
from collections.abc import Mapping, Sequence
from hashlib import sha256
from statistics import mean, median, stdev
from typing import Any

import numpy as np

from cupel_audits.report import AuditReport
from support.data.audit_subjects import SEED

Row = tuple[Any, ...]
QUANTILES = {1: 12.706204736174698, 2: 4.302652729749464}
"""The 0.975 quantiles of Student's t distribution, by degrees of freedom."""


def generator_of(kind: str, trial: int) -> np.random.Generator:
    """Return the random generator of a trial: PCG64, seeded with the audit's seed, kind and trial number."""
    kind_number = int.from_bytes(sha256(kind.encode()).digest()[:8], "big")
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([SEED, kind_number, trial])))


def shuffle_groups(rng: np.random.Generator, groups: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Shuffle the documents of each group, by one random number for each document of all groups.

    The numbers are drawn for all documents in alphabetical order.
    """
    documents = sorted(document for group in groups.values() for document in group)
    drawn = dict(zip(documents, rng.random(len(documents)).tolist(), strict=True))
    return {name: sorted(group, key=drawn.__getitem__) for name, group in groups.items()}


def rank_scores(scores: Sequence[float]) -> list[int]:
    """Return the rank of each score: 1 + the number of larger scores."""
    return [1 + sum(other > score + 1e-9 for other in scores) for score in scores]


def kendall_tau_b(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Return tau-b = sum of sign products / sqrt(pairs untied in x * pairs untied in y)."""

    def sign(difference: float) -> int:
        return 0 if abs(difference) < 1e-9 else 1 if difference > 0 else -1

    pairs = [(sign(x[i] - x[j]), sign(y[i] - y[j])) for i in range(len(x)) for j in range(i)]
    untied = math.sqrt(sum(a * a for a, _ in pairs) * sum(b * b for _, b in pairs))
    return sum(a * b for a, b in pairs) / untied if untied else None


def spread_cells(values: Sequence[float | None]) -> Row:
    """Return mean, 95% t-interval clipped to [-1, 1], smallest, largest, and number of values."""
    defined = [value for value in values if value is not None]
    if not defined:
        return (None, None, None, None, None, 0)
    centre, n = mean(defined), len(defined)
    if n == 1:
        return (centre, None, None, centre, centre, 1)
    half = QUANTILES[n - 1] * stdev(defined) / math.sqrt(n)
    return (centre, max(-1, centre - half), min(1, centre + half), min(defined), max(defined), n)


Scores = Sequence[float]
"""The mean score of each run."""


def curve_rows(
    measure: str,
    runs: Sequence[str],
    full: Scores,
    repeats: Sequence[Sequence[tuple[float, Scores]]],
    steps: Sequence[float],
) -> tuple[list[Row], list[Row]]:
    """Return the rows of the tables `points` and `ranks`.

    full: the scores under all judgments. repeats: for each repeat and each step, the share of judgments that
    are kept and the scores.
    """
    points: list[Row] = []
    ranks: list[Row] = []
    for place, step in enumerate(steps):
        shares = [repeat[place][0] for repeat in repeats]
        scores = [repeat[place][1] for repeat in repeats]
        taus = [kendall_tau_b(full, of_runs) for of_runs in scores]
        points.append((measure, step, mean(shares), *spread_cells(taus), mean(map(mean, scores))))
        by_run = zip(*(rank_scores(of_runs) for of_runs in scores), strict=True)
        ranks += [
            (measure, step, run, median(of_run), min(of_run), max(of_run))
            for run, of_run in zip(runs, by_run, strict=True)
        ]
    return points, ranks


Model = Mapping[str, float]
"""The probability of each word; the word of documents without text is the empty string."""


def score_lmd(
    ranking: Sequence[str], texts: Mapping[str, str], subtopics: Mapping[str, Sequence[str]]
) -> float:
    """Return LMD of a ranking on one topic, with its default settings.

    texts: document -> words. subtopics: subtopic -> documents judged relevant to it.
    """

    def model_of(document: str) -> Model:
        words = texts.get(document, "").split() or [""]
        return {word: words.count(word) / len(words) for word in set(words)}

    def mixture(models: Sequence[Model], weights: Sequence[float]) -> Model:
        words = {word for model in models for word in model}
        return {word: sum(w * m.get(word, 0) for m, w in zip(models, weights, strict=True)) for word in words}

    def similarity(first: Model, second: Model) -> float:
        return 1 - divergence_of([first, second], mixture([first, second], [0.5, 0.5]))

    def divergence_of(models: Sequence[Model], middle: Model) -> float:
        return mean([sum(p * math.log2(p / middle[w]) for w, p in model.items() if p) for model in models])

    thetas = [
        mixture([model_of(document) for document in documents], [1 / len(documents)] * len(documents))
        for documents in subtopics.values()
        if documents
    ]
    if not thetas or not ranking:
        return 0.0
    discounts = [1 / math.log2(1 + rank) for rank in range(1, 21)]
    padded = [*ranking, *[""] * 20][:20]
    run = mixture([model_of(document) for document in padded], [d / sum(discounts) for d in discounts])
    ideal = mixture(thetas, [1 / len(thetas)] * len(thetas))
    raw, best = (mean([similarity(model, theta) for theta in thetas]) for model in (run, ideal))
    return min(1.0, raw / best)


def assert_table(report: AuditReport, name: str, columns: str, rows: Sequence[Row]) -> None:
    """Assert that a table has exactly these columns (names separated by spaces) and rows."""
    table = report.table(name)
    assert [column.name for column in table.columns] == columns.split()
    assert len(table.rows) == len(rows), table.rows
    for cells, expected in zip(table.rows, rows, strict=True):
        assert_cells(cells, expected)


def assert_numbers(report: AuditReport, expected: Mapping[str, float | None]) -> None:
    """Assert that the report has exactly these numbers."""
    assert set(report.numbers) == set(expected)
    assert_cells([report.numbers[name] for name in expected], list(expected.values()))


def assert_cells(cells: Sequence[Any], expected: Sequence[Any]) -> None:
    """Assert that cells are equal. Numbers may differ by 1e-9."""
    assert len(cells) == len(expected)
    for cell, value in zip(cells, expected, strict=True):
        if isinstance(value, float):
            assert cell is not None, (cells, expected)
            assert math.isclose(cell, value, abs_tol=1e-9), (cells, expected)
        else:
            assert cell == value, (cells, expected)
