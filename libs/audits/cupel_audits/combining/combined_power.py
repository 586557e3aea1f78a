"""Discriminative power over several collections.

The pairs of runs of all collections are taken together.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Annotated, Any

import numpy as np

from cupel_audits.analysis.power_tables import NOT_BY_POWER_ALONE, describe_test, power_title
from cupel_audits.declarations import Audit, AuditError
from cupel_audits.kinds.discriminative_power import DiscriminativePower
from cupel_audits.report import AuditReport, Heading, MeasureCell, Plot, TableSchema, name_some
from cupel_audits.subject import SubjectSummary
from cupel_measures.comparing.topic_sets.power_estimates import PowerDifference, power_difference

READING = (
    "Pairs of runs of the same collection are counted; runs of different collections are never compared. A "
    "collection with many runs has many pairs, and so a large weight in the sum.",
    "The interval of a difference of powers covers the sampling error of the topics of these collections. It "
    "does not cover the choice of the collections. It holds for two measures chosen beforehand: it is not "
    "corrected for the number of pairs of measures.",
)


@dataclass(frozen=True, kw_only=True)
class CombinedPowerRow:
    """The discriminative power of one measure over all collections."""

    measure: MeasureCell
    percent: Annotated[float, Heading("power in percent", "of the pairs of all collections")]
    significant: Annotated[int, Heading("significant", "number of pairs that differ significantly")]
    pairs: Annotated[int, Heading("pairs", "number of pairs of runs of the same collection")]
    highest: Annotated[int, Heading("highest", "collections on which no measure has a higher power")]
    lowest: Annotated[int, Heading("lowest", "collections on which no measure has a lower power")]


@dataclass(frozen=True, kw_only=True)
class CollectionPowerRow:
    """The discriminative power of one measure on one collection."""

    measure: MeasureCell
    collection: Annotated[str, Heading("collection")]
    percent: Annotated[float, Heading("power in percent")]
    significant: Annotated[int, Heading("significant")]
    pairs: Annotated[int, Heading("pairs")]


@dataclass(frozen=True, kw_only=True)
class CombinedDifferenceRow:
    """The difference of the powers of two measures over all collections."""

    first: Annotated[str, Heading("first measure")]
    second: Annotated[str, Heading("second measure")]
    difference: Annotated[float, Heading("difference of power", "first minus second, in percentage points")]
    low: Annotated[float, Heading("from", "95 per cent interval: sampling error of the topics")]
    high: Annotated[float, Heading("to", "95 per cent interval: sampling error of the topics")]


MEASURES = TableSchema.of("measures", "Discriminative power over all collections", CombinedPowerRow)
COLLECTIONS = TableSchema.of("collections", "Discriminative power on each collection", CollectionPowerRow)
DIFFERENCES = TableSchema.of(
    "differences", "Differences of power over all collections", CombinedDifferenceRow
)
PLOT = Plot.bars(
    COLLECTIONS,
    "collections",
    title="Discriminative power on each collection",
    caption="Pairs of runs that differ significantly by each measure, in percent of the pairs.",
    x="measure",
    y="percent",
    series="collection",
    domain=(0, 100),
)

Powers = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""Measure -> collection -> result of `discriminative_power`, for measures defined on every collection."""


def report(
    audit: Audit, about: SubjectSummary, by_collection: Mapping[str, Mapping[int, Any]]
) -> AuditReport:
    """Return the report on all collections.

    by_collection: the results of the trials of each collection. Raises AuditError if an earlier release
    computed some of them without bootstrap samples.
    """
    assert isinstance(audit, DiscriminativePower)
    if reasons := list(_missing_samples(by_collection)):
        raise AuditError(reasons)
    found: dict[str, dict[str, Any]] = {}
    for name, trials in by_collection.items():
        for result in trials.values():
            if result["undefined"] is None:
                found.setdefault(result["measure"], {})[name] = result
    powers = {text: results for text, results in found.items() if len(results) == len(by_collection)}
    rows = [_row(text, powers) for text in powers]
    differences = [_difference_row(*pair, powers) for pair in combinations(powers, 2)]
    return AuditReport(
        verdict=tuple(_verdict(rows, differences, len(by_collection), audit.alpha)),
        numbers={f"power({row.measure})": row.percent for row in rows},
        tables=(
            MEASURES.table(rows),
            COLLECTIONS.table(_collection_rows(powers)),
            DIFFERENCES.table(differences),
        ),
        plots=(replace(PLOT, title=_title(rows, len(by_collection), audit.alpha)),),
        reading=READING,
        undefined=tuple(
            f"power of {text}: it is undefined on a collection"
            for text in about.measures
            if text not in powers
        ),
        actions=(NOT_BY_POWER_ALONE,) if any(row.low <= 0 <= row.high for row in differences) else (),
    )


def _missing_samples(by_collection: Mapping[str, Mapping[int, Any]]) -> Iterator[str]:
    for name, trials in by_collection.items():
        if any(result["undefined"] is None and "by_sample" not in result for result in trials.values()):
            yield (
                f"{name}: an earlier release of Cupel made this audit, without the bootstrap samples that "
                "intervals need: repeat its command with --restart"
            )


def _row(text: str, powers: Powers) -> CombinedPowerRow:
    significant = sum(result["told"] for result in powers[text].values())
    pairs = sum(result["pairs"] for result in powers[text].values())
    on_collections = {name: [results[name]["told"] for results in powers.values()] for name in powers[text]}
    return CombinedPowerRow(
        measure=text,
        percent=100.0 * significant / pairs,
        significant=significant,
        pairs=pairs,
        highest=sum(powers[text][name]["told"] == max(numbers) for name, numbers in on_collections.items()),
        lowest=sum(powers[text][name]["told"] == min(numbers) for name, numbers in on_collections.items()),
    )


def _collection_rows(powers: Powers) -> Iterator[CollectionPowerRow]:
    for text, results in powers.items():
        for name, result in results.items():
            significant, pairs = result["told"], result["pairs"]
            yield CollectionPowerRow(
                measure=text,
                collection=name,
                percent=100.0 * significant / pairs,
                significant=significant,
                pairs=pairs,
            )


def _difference_row(first: str, second: str, powers: Powers) -> CombinedDifferenceRow:
    power = _difference(list(powers[first].values()), list(powers[second].values()))
    return CombinedDifferenceRow(
        first=first, second=second, difference=power.value, low=power.low, high=power.high
    )


def _difference(first: Sequence[Mapping[str, Any]], second: Sequence[Mapping[str, Any]]) -> PowerDifference:
    """Return the difference of powers over all collections, with its interval.

    The bootstrap samples of a collection are shuffled, the same way for both measures. Otherwise collections
    with the same number of topics would share their samples, and their errors would not be independent.
    """
    significant = (sum(result["told"] for result in first), sum(result["told"] for result in second))
    rng = np.random.default_rng(0)
    sums = np.zeros((2, len(first[0]["by_sample"])), dtype=np.int64)
    for pair in zip(first, second, strict=True):
        order = rng.permutation(sums.shape[1])
        sums += np.array([result["by_sample"] for result in pair], dtype=np.int64)[:, order]
    pairs = sum(result["pairs"] for result in first)
    return power_difference(significant, (sums[0].tolist(), sums[1].tolist()), pairs)


def _verdict(
    rows: Sequence[CombinedPowerRow],
    differences: Sequence[CombinedDifferenceRow],
    collections: int,
    alpha: float,
) -> Iterator[str]:
    if not rows:
        yield "Discriminative power is undefined for every measure on some collection."
        return
    ranked = sorted(rows, key=lambda row: -row.significant)
    most, fewest = ranked[0], ranked[-1]
    if most.significant > fewest.significant:
        yield (
            f"Of {most.pairs} pairs of runs of {collections} collections, {most.significant} "
            f"({most.percent:.2f}%) differ significantly ({describe_test(alpha)}) by "
            f"{_name_tied(rows, most)}, the highest number, and {fewest.significant} ({fewest.percent:.2f}%) "
            f"by {_name_tied(rows, fewest)}, the lowest."
            f"{_describe_intervals(differences, _tied(rows, most), _tied(rows, fewest))}"
        )
    for row_ in ranked:
        yield (
            f"{row_.measure}: {row_.significant} of {row_.pairs} pairs of runs ({row_.percent:.2f}%) differ "
            f"significantly by the paired bootstrap test at alpha {alpha:g}, "
            f"uncorrected. On {row_.highest} of {collections} collections, no measure has a higher power."
        )


def _title(rows: Sequence[CombinedPowerRow], collections: int, alpha: float) -> str:
    """Return a title with the highest and the lowest power over all collections."""
    if not rows:
        return "The power is undefined for every measure on some collection"
    powers = [(row.percent, row.measure) for row in rows]
    return f"Over {collections} collections, {power_title(powers, alpha)}"


def _name_tied(rows: Sequence[CombinedPowerRow], row: CombinedPowerRow) -> str:
    """Return the measures of the rows with as many significant pairs as `row`."""
    return name_some(_tied(rows, row), "measures")


def _tied(rows: Sequence[CombinedPowerRow], row: CombinedPowerRow) -> list[str]:
    return [other.measure for other in rows if other.significant == row.significant]


def _describe_intervals(
    differences: Sequence[CombinedDifferenceRow], most: Sequence[str], fewest: Sequence[str]
) -> str:
    """Return a sentence on the difference of the highest and the lowest power.

    If measures are tied, no pair of them is singled out.
    """
    if len(most) == len(fewest) == 1:
        return _describe_interval(differences, most[0], fewest[0])
    return f" Intervals of the differences are in the table `{DIFFERENCES.name}`."


def _describe_interval(differences: Sequence[CombinedDifferenceRow], most: str, fewest: str) -> str:
    """Return a sentence on the interval of the difference between two measures."""
    [row] = [row for row in differences if {row.first, row.second} == {most, fewest}]
    low, high = (row.low, row.high) if row.first == most else (-row.high, -row.low)
    chosen = " It holds only for measures chosen beforehand." if len(differences) > 1 else ""
    zero = ", and includes 0" if low <= 0 <= high else ""
    return (
        f" The difference of {most} and {fewest} is {abs(row.difference):.2f} percentage points; its 95 per "
        f"cent interval over samples of topics is {low:.2f} to {high:.2f}{zero}.{chosen}"
    )
