"""Scores, orders and groups of the runs under two versions of the judgments.

The groups are significance groups.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, NotRequired, TypedDict, final

import numpy as np
from numpy.typing import NDArray

from cupel_audits.analysis.run_orders import STRONG, ranks
from cupel_audits.analysis.score_matrices import collect_warnings
from cupel_audits.report import AuditReport, Heading, MeasureCell, Plot, RunCell, TableSchema, name_some
from cupel_audits.subject import SubjectSummary
from cupel_measures.comparing.board_analysis import METHOD, board_order
from cupel_measures.comparing.corrections import groups, letters
from cupel_measures.comparing.rank_correlation import tau_ap, tau_b
from cupel_measures.comparing.simultaneous.max_t import MaxT, max_t
from cupel_measures.model import Floats

HSD_METHOD = "hsd"
"""The method of results that name none: earlier releases compared pairs by randomised Tukey HSD."""
TITLES = {
    METHOD: "step-down max-T test",
    "max-t/1": "step-down max-T test",
    HSD_METHOD: "randomised Tukey HSD",
}
READING = (
    "Runs that share a letter are not significantly different; the best run has the letter a. Both versions "
    "are tested with the same replicates, so differences between the versions are not due to the random "
    "replicates.",
    "A run is regrouped if one of its significant differences appears, disappears or changes its "
    "direction. The letters of many runs may change although only one pair of runs changes.",
)


@final
class OrderResult(TypedDict):
    """The order of runs by one measure under both versions; JSON-serialisable.

    A tuple of two has a value for each version. means: the mean score of each run. undefined: the reason why
    the significance test could not be run, or None. If it is not None, all fields after it are missing.
    groups: the letters of each run. apart: number of pairs that differ significantly. regrouped: for each
    run, whether the significance of any of its pairs changes. alone: number of pairs that differ
    significantly under one version only. opposite: number of pairs that differ significantly in opposite
    directions. warnings: warnings about the test. method: name and version of the test.
    """

    measure: str
    means: tuple[list[float], list[float]]
    undefined: str | None
    groups: NotRequired[tuple[list[str], list[str]]]
    apart: NotRequired[tuple[int, int]]
    regrouped: NotRequired[list[bool]]
    alone: NotRequired[int]
    opposite: NotRequired[int]
    warnings: NotRequired[list[str]]
    method: NotRequired[str]


@dataclass(frozen=True, kw_only=True)
class MeasureChangesRow:
    """The changes of order by one measure."""

    measure: MeasureCell
    tau: Annotated[float | None, Heading("tau", "tau-b between the runs' scores under the two versions")]
    tau_ap: Annotated[
        float | None,
        Heading("tau AP", "with the first order as the reference; swaps near the top have more weight"),
    ]
    moved: Annotated[int, Heading("moved", "number of runs whose rank changes")]
    farthest: Annotated[int, Heading("largest move", "in ranks")]
    regrouped: Annotated[
        int | None, Heading("regrouped", "number of runs in pairs whose significance changes")
    ]
    alone: Annotated[
        int | None, Heading("pairs under one only", "that differ significantly under one version only")
    ]
    opposite: Annotated[
        int | None, Heading("pairs reversed", "that differ significantly in opposite directions")
    ]
    apart_first: Annotated[
        int | None, Heading("pairs in the first", "that differ significantly under the first version")
    ]
    apart_second: Annotated[
        int | None, Heading("pairs in the second", "that differ significantly under the second version")
    ]


@dataclass(frozen=True, kw_only=True)
class RunChangesRow:
    """A run by one measure under both versions."""

    measure: MeasureCell
    run: RunCell
    score_first: Annotated[float, Heading("score in the first")]
    score_second: Annotated[float, Heading("score in the second")]
    rank_first: Annotated[int, Heading("rank in the first", "equal scores share the best rank")]
    rank_second: Annotated[int, Heading("rank in the second", "equal scores share the best rank")]
    rise: Annotated[int, Heading("ranks gained", "below 0: ranks lost")]
    group_first: Annotated[str | None, Heading("groups in the first")]
    group_second: Annotated[str | None, Heading("groups in the second")]
    regrouped: Annotated[
        bool | None,
        Heading(
            "regrouped", "whether a significant difference to another run appears, disappears or reverses"
        ),
    ]


@dataclass(frozen=True, kw_only=True)
class VersionRankRow:
    """The rank of a run by one measure under one version."""

    measure: MeasureCell
    run: RunCell
    version: Annotated[str, Heading("version")]
    rank: Annotated[int, Heading("rank")]


MEASURES = TableSchema.of("measures", "Orders under both versions", MeasureChangesRow)
RUNS = TableSchema.of("runs", "Runs under both versions", RunChangesRow)
RANKS = TableSchema.of("ranks", "Ranks under both versions", VersionRankRow)


def compare_orders_of_versions(
    measure: str,
    means: tuple[Floats, Floats],
    scores: tuple[Floats, Floats],
    *,
    alpha: float,
    replicates: int,
    seed: int,
) -> OrderResult:
    """Compare the orders of runs by one measure under both versions.

    means: float64[runs] for each version. scores: float64[topics, runs] for each version, over the same
    topics. alpha, replicates, seed: parameters of the significance test.
    """
    first, second = (
        max_t(values, alpha=alpha, replicates=replicates, seed=seed, with_p=False) for values in scores
    )
    undefined = first.undefined if first.undefined is not None else second.undefined
    result = OrderResult(measure=measure, means=(means[0].tolist(), means[1].tolist()), undefined=undefined)
    if undefined is not None:
        return result
    first_signs, second_signs = (np.sign(test.difference) * test.differs for test in (first, second))
    result.update(
        {
            "groups": (_group_letters(scores[0], first), _group_letters(scores[1], second)),
            "apart": (int(np.count_nonzero(first_signs)), int(np.count_nonzero(second_signs))),
            "regrouped": _runs_of_pairs(first, first_signs != second_signs),
            "alone": int(np.count_nonzero((first_signs == 0) != (second_signs == 0))),
            "opposite": int(np.count_nonzero(first_signs * second_signs < 0)),
            "warnings": list(first.warnings),
            "method": METHOD,
        }
    )
    return result


def _runs_of_pairs(test: MaxT, selected: NDArray[np.bool_]) -> list[bool]:
    """Return for each run whether it is in a selected pair. selected: bool[pairs]."""
    involved = {*test.first[selected].tolist(), *test.second[selected].tolist()}
    return [run in involved for run in range(int(test.second.max(initial=0)) + 1)]


def _group_letters(scores: Floats, test: MaxT) -> list[str]:
    """Return the letters of the groups of each run."""
    by_place, differing = board_order(scores, test)
    by_run = [""] * len(by_place)
    for run, numbers in zip(by_place, groups(len(by_place), sorted(differing)), strict=True):
        by_run[run] = "".join(map(letters, numbers))
    return by_run


def report(about: SubjectSummary, results: Sequence[OrderResult], *, alpha: float) -> AuditReport:
    """Return the report on tau, changes of rank and changes of groups by measure.

    alpha: significance level of the test in the trials.
    """
    versions = _version_names(about)
    runs = {result["measure"]: list(_run_rows(about, result)) for result in results}
    measures = [_measure_row(result, runs[result["measure"]]) for result in results]
    all_runs = [row for rows in runs.values() for row in rows]
    return AuditReport(
        verdict=tuple(
            _sentence(row, runs[row.measure], f"{TITLES[result.get('method', HSD_METHOD)]}, alpha {alpha:g}")
            for row, result in zip(measures, results, strict=True)
        ),
        numbers=_numbers(measures),
        tables=(
            MEASURES.table(measures),
            RUNS.table(all_runs),
            RANKS.table(rank for row in all_runs for rank in _rank_rows(row, versions)),
        ),
        plots=(replace(_plot(versions), title=_title(all_runs)),),
        actions=tuple(_advice(measures)),
        reading=READING,
        undefined=(
            *(
                f"tau of {row.measure}: all runs have the same score under one version"
                for row in measures
                if row.tau is None
            ),
            *(
                f"groups of {result['measure']}: {result['undefined']}"
                for result in results
                if result["undefined"]
            ),
        ),
        warnings=collect_warnings(
            [{"measure": result["measure"], "notes": result.get("warnings", [])} for result in results]
        ),
    )


def _version_names(about: SubjectSummary) -> tuple[str, str]:
    other = about.other or "other"
    return about.qrels, other if other != about.qrels else f"{other} (2)"


def _run_rows(about: SubjectSummary, result: OrderResult) -> Iterator[RunChangesRow]:
    first_means, second_means = result["means"]
    first_ranks, second_ranks = (ranks(np.array(means)) for means in result["means"])
    unknown = [None] * len(about.runs)
    first_groups, second_groups = result.get("groups", (unknown, unknown))
    regrouped = result.get("regrouped", unknown)
    for place, run in enumerate(about.runs):
        yield RunChangesRow(
            measure=result["measure"],
            run=run,
            score_first=first_means[place],
            score_second=second_means[place],
            rank_first=first_ranks[place],
            rank_second=second_ranks[place],
            rise=first_ranks[place] - second_ranks[place],
            group_first=first_groups[place],
            group_second=second_groups[place],
            regrouped=regrouped[place],
        )


def _rank_rows(row: RunChangesRow, versions: tuple[str, str]) -> Iterator[VersionRankRow]:
    for version, rank in zip(versions, (row.rank_first, row.rank_second), strict=True):
        yield VersionRankRow(measure=row.measure, run=row.run, version=version, rank=rank)


def _measure_row(result: OrderResult, runs: Sequence[RunChangesRow]) -> MeasureChangesRow:
    first, second = result["means"]
    apart_first, apart_second = result.get("apart", (None, None))
    return MeasureChangesRow(
        measure=result["measure"],
        tau=tau_b(first, second).value,
        tau_ap=tau_ap(first, second).value,
        moved=sum(row.rise != 0 for row in runs),
        farthest=max(abs(row.rise) for row in runs),
        regrouped=sum(result["regrouped"]) if "regrouped" in result else None,
        alone=result.get("alone"),
        opposite=result.get("opposite"),
        apart_first=apart_first,
        apart_second=apart_second,
    )


def _numbers(rows: Sequence[MeasureChangesRow]) -> dict[str, float | int | None]:
    """Return each cell of each row, named by its column and the measure.

    An example of a name is tau(AP).
    """
    names = [column.name for column in MEASURES.columns if column.name != "measure"]
    return {f"{name}({row.measure})": getattr(row, name) for row in rows for name in names}


def _sentence(row: MeasureChangesRow, runs: Sequence[RunChangesRow], test: str) -> str:
    order = "tau is undefined" if row.tau is None else f"tau between the two orders is {row.tau:.2f}"
    moves = f"{row.moved} of {len(runs)} runs change rank"
    if row.moved:
        mover, others = _farthest(runs)
        most = f"none more than {mover.run}" if others else f"{mover.run} most"
        moves += f", {most} (from {mover.rank_first} to {mover.rank_second})"
    sentence = f"{row.measure}: {order}; {moves}; {_describe_best(runs)}."
    if row.regrouped is None:
        return sentence
    pairs = len(runs) * (len(runs) - 1) // 2
    opposite = f", and {row.opposite} in opposite directions" if row.opposite else ""
    return (
        f"{sentence} {row.regrouped} {'run is' if row.regrouped == 1 else 'runs are'} in pairs whose "
        f"significance changes; {row.alone} of {pairs} pairs of runs differ significantly under one version "
        f"only{opposite} ({test})."
    )


def _describe_best(runs: Sequence[RunChangesRow]) -> str:
    """Return a clause on the runs that have rank 1 under each version."""
    first = [row.run for row in runs if row.rank_first == 1]
    second = [row.run for row in runs if row.rank_second == 1]
    if first == second:
        return f"{_name_runs(first, len(runs))} {'keeps' if len(first) == 1 else 'keep'} rank 1"
    verb = "has" if len(second) == 1 else "have"
    return f"{_name_runs(second, len(runs))} {verb} rank 1 instead of {_name_runs(first, len(runs))}"


def _farthest(runs: Sequence[RunChangesRow]) -> tuple[RunChangesRow, int]:
    """Return a row with the largest change of rank, and the number of tied rows."""
    mover = max(runs, key=lambda run: abs(run.rise))
    return mover, sum(abs(run.rise) == abs(mover.rise) for run in runs) - 1


def _name_runs(best: Sequence[str], runs: int) -> str:
    if len(best) == 1:
        return best[0]
    return (
        f"all {runs} runs with equal scores"
        if len(best) == runs
        else f"{best[0]} and {len(best) - 1} more with equal scores"
    )


def _plot(versions: tuple[str, str]) -> Plot:
    return Plot.changes(
        RANKS,
        "ranks",
        title="Ranks under both versions",
        caption="Rank of each run under both versions. Lines cross where two runs exchange ranks.",
        x="version",
        y="rank",
        series="run",
        x_order=versions,
        facet="measure",
    )


def _title(runs: Sequence[RunChangesRow]) -> str:
    """Return a title on the run whose rank changes most by any measure."""
    mover, others = _farthest(runs)
    if not mover.rise:
        return "No run changes its rank"
    moves = f"No run moves more than {mover.run}" if others else f"{mover.run} moves most"
    return f"{moves}: from rank {mover.rank_first} to {mover.rank_second} by {mover.measure}"


def _advice(measures: Sequence[MeasureChangesRow]) -> Iterator[str]:
    """Yield what to do if the versions order the runs differently."""
    changed = [row.measure for row in measures if row.tau is None or row.tau < STRONG]
    if changed:
        yield (
            "Name the version of the judgments with every result, and never compare scores across versions; "
            f"tau is below {STRONG} or undefined by {name_some(changed, 'measures')}."
        )
    else:
        yield "Use one version for all runs that you compare, although the orders are similar."
