"""What two versions of judgments make of the runs: their scores, their order, and their groups."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cupel_audits.analysis.run_orders import ranks
from cupel_audits.analysis.score_matrices import warned
from cupel_audits.report import AuditReport, Cell, Column, Plot, ReportTable
from cupel_audits.subject import SubjectSummary
from cupel_measures.comparing.all_pairs import AllPairs, randomised_hsds
from cupel_measures.comparing.board_analysis import board
from cupel_measures.comparing.corrections import groups, letters
from cupel_measures.comparing.correlation import tau_ap, tau_b
from cupel_measures.grammar.registry import ScaleType
from cupel_measures.model import Floats

READING = (
    "Runs share a group where randomised Tukey HSD does not tell them apart; a is the group of the best run. "
    "Both versions are tested with the same replicates, so that chance makes no difference between them.",
    "A run changes its group where another one joins or leaves those that it is not told apart from, or goes "
    "to the other side. Letters alone may change for many runs where a single pair does.",
)


def order(
    means: Sequence[Floats], scores: Sequence[Floats], scale: ScaleType, **drawn: Any
) -> dict[str, Any]:
    """Of one measure: the mean scores of the runs (float64[runs]) under both versions, their groups, and
    pairs of runs that one version alone tells apart, or both in opposite directions.

    scores: float64[topics, runs], of the same topics. drawn: alpha, replicates and seed of the test.
    """
    tests = randomised_hsds(scores, scales=[scale, scale], **drawn)
    why = next((test.undefined for test in tests if test.undefined is not None), None)
    found: dict[str, Any] = {"means": [one.tolist() for one in means], "undefined": why}
    if why is not None:
        return found
    first, second = (np.sign(test.difference) * test.differs for test in tests)
    return found | {
        "groups": [_groups(values, test) for values, test in zip(scores, tests, strict=True)],
        "apart": [int(np.count_nonzero(one)) for one in (first, second)],
        "regrouped": _regrouped(tests[0], first != second),
        "alone": int(np.count_nonzero((first == 0) != (second == 0))),
        "opposite": int(np.count_nonzero(first * second < 0)),
        "warnings": list(tests[0].warnings),
    }


def _regrouped(test: AllPairs, changed: NDArray[np.bool_]) -> list[bool]:
    """Whether a run is in some pair that is told apart otherwise, bool[pairs]."""
    involved = {*test.first[changed].tolist(), *test.second[changed].tolist()}
    return [run in involved for run in range(int(test.second.max(initial=0)) + 1)]


def _groups(values: Floats, test: AllPairs) -> list[str]:
    """The letters of each run."""
    by_place, apart = board(values, test)
    found = [""] * len(by_place)
    for system, of_system in zip(by_place, groups(len(by_place), sorted(apart)), strict=True):
        found[system] = "".join(letters(one) for one in of_system)
    return found


def report(about: SubjectSummary, found: Mapping[str, Mapping[str, Any]]) -> AuditReport:
    """By measure: tau, changed ranks, changed groups."""
    stages = _stages(about)
    rows = {text: _runs(about, text, one) for text, one in found.items()}
    measures = tuple(_measure(text, one, rows[text]) for text, one in found.items())
    columns = [column.name for column in _MEASURES]
    places = tuple(
        (row[0], row[1], stage, rank)
        for of in rows.values()
        for row in of
        for stage, rank in zip(stages, row[4:6], strict=True)
    )
    undefined = [
        f"tau of {row[0]}: by one version all runs score the same" for row in measures if row[1] is None
    ]
    undefined += [f"groups of {text}: {one['undefined']}" for text, one in found.items() if one["undefined"]]
    numbers: dict[str, Any] = {
        f"{name}({row[0]})": cell for row in measures for name, cell in zip(columns[1:], row[1:], strict=True)
    }
    return AuditReport(
        verdict=tuple(_sentence(about, row, rows[str(row[0])]) for row in measures),
        numbers=numbers,
        tables=(
            ReportTable("measures", "Orders under both versions", _MEASURES, measures),
            ReportTable(
                "runs", "Runs under both versions", _RUNS, tuple(row for of in rows.values() for row in of)
            ),
            ReportTable("ranks", "Ranks under both versions", _RANKS, places),
        ),
        plots=(_plot(stages),),
        reading=READING,
        undefined=tuple(undefined),
        warnings=warned([{"measure": text, "notes": one.get("warnings", ())} for text, one in found.items()]),
    )


def _stages(about: SubjectSummary) -> tuple[str, str]:
    other = about.other or "other"
    return about.qrels, other if other != about.qrels else f"{other} (2)"


def _runs(about: SubjectSummary, text: str, one: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    first, second = (np.array(values) for values in one["means"])
    nothing = [None] * len(about.runs)
    groups = *one.get("groups", (nothing, nothing)), one.get("regrouped", nothing)
    columns = about.runs, first.tolist(), second.tolist(), ranks(first), ranks(second), *groups
    return [
        (text, run, old, new, before, after, before - after, *others)
        for run, old, new, before, after, *others in zip(*columns, strict=True)
    ]


def _measure(text: str, one: Mapping[str, Any], runs: Sequence[tuple[Any, ...]]) -> tuple[Cell, ...]:
    first, second = one["means"]
    tested = one["undefined"] is None
    return (
        text,
        tau_b(first, second).value,
        tau_ap(first, second).value,
        sum(row[6] != 0 for row in runs),
        max(abs(row[6]) for row in runs),
        sum(row[9] for row in runs) if tested else None,
        one["alone"] if tested else None,
        one["opposite"] if tested else None,
        *(one["apart"] if tested else (None, None)),
    )


def _sentence(about: SubjectSummary, row: Sequence[Any], runs: Sequence[tuple[Any, ...]]) -> str:
    text, tau, _, moved, _, regrouped, alone, opposite, *_ = row
    order = "tau is undefined" if tau is None else f"tau between the two orders is {tau:.2f}"
    mover = max(runs, key=lambda one: abs(one[6]))
    moves = f"{moved} of {len(runs)} runs change rank"
    if moved:
        moves += f", most of all {mover[1]} (from {mover[4]} to {mover[5]})"
    top = _top(runs)
    if regrouped is None:
        return f"{text}: {order}; {moves}; {top}."
    reversed_ = f", {opposite} the other way round" if opposite else ""
    return (
        f"{text}: {order}; {moves}; {top}. {regrouped} runs change their group, and one version alone tells "
        f"{alone} of {len(runs) * (len(runs) - 1) // 2} pairs apart{reversed_}."
    )


def _top(runs: Sequence[tuple[Any, ...]]) -> str:
    """Which runs are best; where some share the first rank it is they who do."""
    best, other = ([row[1] for row in runs if row[at] == 1] for at in (4, 5))
    if best == other:
        return f"{_named(best, len(runs))} {'stays' if len(best) == 1 else 'stay'} best"
    verb = "is" if len(other) == 1 else "are"
    return f"{_named(other, len(runs))} {verb} best instead of {_named(best, len(runs))}"


def _named(best: Sequence[str], runs: int) -> str:
    if len(best) == 1:
        return best[0]
    return f"all {runs} runs alike" if len(best) == runs else f"{best[0]} and {len(best) - 1} more that tie"


def _plot(stages: tuple[str, str]) -> Plot:
    return Plot(
        "ranks",
        "How ranks change",
        "Rank of each run under both versions; lines that cross are runs that change places.",
        "changes",
        "ranks",
        "version",
        "rank",
        series="run",
        x_order=stages,
        facet="measure",
    )


_MEASURE, _RUN = Column("measure", "measure"), Column("run", "run")
_MEASURES = (
    _MEASURE,
    Column("tau", "tau", "tau-b between the runs' scores under the two versions"),
    Column("tau_ap", "tau AP", "of the second order against the first: swaps at the top weigh more"),
    Column("moved", "runs that move", "runs of another rank"),
    Column("farthest", "farthest move", "in ranks"),
    Column("regrouped", "other group", "runs whose significance group changes"),
    Column("alone", "pairs apart in one", "pairs of runs that one version alone tells apart"),
    Column("opposite", "pairs reversed", "pairs that both tell apart, in opposite directions"),
    Column("apart_first", "pairs apart in the first"),
    Column("apart_second", "pairs apart in the second"),
)
_RUNS = (
    _MEASURE,
    _RUN,
    Column("score_first", "score in the first"),
    Column("score_second", "score in the second"),
    Column("rank_first", "rank in the first", "equal scores share the best rank"),
    Column("rank_second", "rank in the second", "equal scores share the best rank"),
    Column("rise", "rise", "ranks gained"),
    Column("group_first", "groups in the first"),
    Column("group_second", "groups in the second"),
    Column("regrouped", "other group", "another run joins or leaves those it is not told apart from"),
)
_RANKS = (_MEASURE, _RUN, Column("version", "version"), Column("rank", "rank"))
