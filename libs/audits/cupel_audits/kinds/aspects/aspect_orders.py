"""How runs stand by each aspect, and how far aggregates of aspects agree on their order."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from cupel_audits.kinds.aspects.aspect_measures import AspectFamily, kind_of, plain
from cupel_audits.report import AuditReport, Cell, Column, Plot, ReportTable, merged
from cupel_audits.subject import DECIMALS, AuditSubject, SubjectSummary, by_topic, means
from cupel_measures.catalogue.parser import parse
from cupel_measures.comparing.correlation import tau_b, tau_b_by_topic
from cupel_measures.families.multiaspect import inner
from cupel_measures.grammar.measure import Measure
from cupel_measures.grammar.syntax import ArgumentPairs
from cupel_measures.model import Floats

OF = Column("of", "measure", "that is asked of each aspect")
READING = (
    "A run is dominated where another is at least as good by every aspect, and better by one. Runs that "
    "nothing dominates are the Pareto front: which of them is best depends on what aspects are worth.",
    "Two aggregates disagree on a pair of runs where one puts the first higher, the other the second; scores "
    "that are equal are no disagreement.",
)


def orders(subject: AuditSubject, families: Sequence[AspectFamily]) -> dict[str, Any]:
    """For what is asked of each aspect: mean scores of the runs by aspect and by aggregate, and for each pair
    of aggregates the mean of tau over topics."""
    return {family.text: _of_family(subject, family) for family in families}


def _of_family(subject: AuditSubject, family: AspectFamily) -> dict[str, Any]:
    names = [name for name, _ in family.of] if isinstance(family.of, ArgumentPairs) else subject.about.aspects
    single = {name: inner(family.of, name).having(aspect=name) for name in names}
    scores = _scores(subject, [*single.values(), *family.aggregates])
    mean = means(scores, [*single.values(), *family.aggregates])
    texts = {str(one): str(plain(one, subject.about.aspects)) for one in family.aggregates}
    return {
        "aspects": {name: mean[str(one)].tolist() for name, one in single.items()},
        "aggregates": {name: mean[text].tolist() for text, name in texts.items()},
        "topics": [
            [texts[one], texts[other], tau_b_by_topic(scores[one], scores[other]).value]
            for one, other in combinations(texts, 2)
        ],
    }


def _scores(subject: AuditSubject, measures: Sequence[Measure]) -> dict[str, Floats]:
    found = by_topic(subject.evaluator.evaluate(measures), measures)
    return {text: np.round(values, DECIMALS) for text, values in found.items()}


def report(about: SubjectSummary, found: Mapping[str, Any], lacking: Sequence[str]) -> AuditReport:
    """Trade-off and disagreement of each family. lacking: why aggregates are missing."""
    found_of = _disagreement(about, found), _trade_off(about, found)
    return merged([*found_of, AuditReport((), {}, (), undefined=tuple(lacking))])


def _trade_off(about: SubjectSummary, found: Mapping[str, Any]) -> AuditReport:
    rows = [row for of, said in found.items() for row in _standing(about, of, said["aspects"])]
    taus = [row for of, said in found.items() for row in _aspect_taus(of, said["aspects"])]
    front = {of: sum(row[0] == of and row[2] is True for row in rows) for of in found}
    columns = *_TRADE, *(_of_aspect(name) for name in about.aspects)
    numbers: dict[str, Any] = {f"front({of})": number for of, number in front.items()}
    numbers |= {f"dominated({of})": 1 - number / len(about.runs) for of, number in front.items()}
    return AuditReport(
        verdict=tuple(_front_sentence(about, of, number, taus) for of, number in front.items()),
        numbers=numbers | {f"tau({of},{one},{other})": tau for of, one, other, tau in taus},
        tables=(
            ReportTable("trade_off", "Runs by aspect", columns, tuple(rows)),
            ReportTable("aspect_tau", "Orders by aspect", _TAUS, tuple(taus)),
        ),
        plots=tuple(_trade_plots(about)),
        reading=READING[:1],
        undefined=tuple(
            f"tau of {of} between {one} and {other}: by one of them all runs score the same"
            for of, one, other, tau in taus
            if tau is None
        ),
    )


def _standing(
    about: SubjectSummary, of: str, aspects: Mapping[str, Sequence[float]]
) -> list[tuple[Cell, ...]]:
    """A row per run: whether it is on the front, what dominates it, and its score by each aspect."""
    by = dominated(np.array(list(aspects.values())))
    return [
        (
            of,
            run,
            better is None,
            None if better is None else about.runs[better],
            *(aspects[name][at] if name in aspects else None for name in about.aspects),
        )
        for at, (run, better) in enumerate(zip(about.runs, by, strict=True))
    ]


def _aspect_taus(of: str, aspects: Mapping[str, Sequence[float]]) -> list[tuple[Any, ...]]:
    return [
        (of, one, other, tau_b(aspects[one], aspects[other]).value) for one, other in combinations(aspects, 2)
    ]


def dominated(scores: Floats) -> list[int | None]:
    """For each run (column of float64[aspects, runs]) the first that dominates it, None on the front."""
    found: list[int | None] = []
    for run in scores.T:
        better = (scores >= run[:, None]).all(axis=0) & (scores > run[:, None]).any(axis=0)
        found.append(int(np.argmax(better)) if better.any() else None)
    return found


def _front_sentence(about: SubjectSummary, of: str, front: int, taus: Sequence[tuple[Any, ...]]) -> str:
    runs = len(about.runs)
    sentence = f"{of}: {front} of {runs} runs are on the Pareto front of the aspects, others are dominated"
    told = [row for row in taus if row[0] == of and row[3] is not None]
    if not told:
        return f"{sentence}."
    _, one, other, tau = min(told, key=lambda row: row[3])
    return f"{sentence}; the orders by {one} and by {other} have tau {tau:.2f}."


def _disagreement(about: SubjectSummary, found: Mapping[str, Any]) -> AuditReport:
    told = {of: said for of, said in found.items() if len(said["aggregates"]) > 1}
    pairs = {of: _pairs(of, said) for of, said in told.items()}
    clashing = {of: _clashing(said["aggregates"]) for of, said in told.items()}
    whole = len(about.runs) * (len(about.runs) - 1) // 2
    every = [row for rows in pairs.values() for row in rows]
    both_ways = [
        one for row in every for one in (row, (row[0], row[2], row[1], *row[3:-2], row[-1], row[-2]))
    ]
    numbers: dict[str, Any] = {f"disagree({of})": number / whole for of, number in clashing.items()}
    return AuditReport(
        verdict=tuple(_clash_sentence(of, clashing[of], whole, rows) for of, rows in pairs.items()),
        numbers=numbers | {f"tau({row[1]},{row[2]})": row[6] for row in every},
        tables=(
            ReportTable(
                "disagreement", "Pairs of runs on which aggregates disagree", _CLASH, tuple(both_ways)
            ),
        ),
        plots=_CLASH_PLOTS if every else (),
        reading=READING[1:],
        undefined=tuple(
            f"tau of {row[1]} and {row[2]}: by one of them all runs score the same"
            for row in every
            if row[6] is None
        ),
    )


def _clashing(aggregates: Mapping[str, Sequence[float]]) -> int:
    """Pairs of runs that one aggregate puts in this order, another in the opposite one."""
    signs = np.stack([_signs(scores) for scores in aggregates.values()])
    return int(np.count_nonzero((signs > 0).any(axis=0) & (signs < 0).any(axis=0)))


def _pairs(of: str, said: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """A row per pair of aggregates: pairs of runs in opposite orders, and tied in one alone; taus; names."""
    signs = {name: _signs(scores) for name, scores in said["aggregates"].items()}
    short = _short([*signs])
    rows = []
    for one, other, topics in said["topics"]:
        product = signs[one] * signs[other]
        opposite = int(np.count_nonzero(product < 0))
        tied = int(np.count_nonzero((product == 0) & (signs[one] != signs[other])))
        tau = tau_b(said["aggregates"][one], said["aggregates"][other]).value
        share = opposite / len(product)
        rows.append((of, one, other, opposite, tied, share, tau, topics, short[one], short[other]))
    return rows


def _short(names: Sequence[str]) -> dict[str, str]:
    """How each aggregates, as one family's picture names it; its own name where that is not enough."""
    kinds = {name: kind_of(parse(name)) for name in names}
    return kinds if len({*kinds.values()}) == len(names) else dict(zip(names, names, strict=True))


def _signs(scores: Sequence[float]) -> Floats:
    """float64[pairs]: 1 where the first of a pair scores higher, -1 where the second does, 0 for equal."""
    values = np.array(scores)
    first, second = np.triu_indices(len(values), 1)
    signs: Floats = np.sign(values[first] - values[second])
    return signs


def _clash_sentence(of: str, clashing: int, whole: int, rows: Sequence[tuple[Any, ...]]) -> str:
    most, least = max(rows, key=lambda row: row[3]), min(rows, key=lambda row: row[3])
    sentence = (
        f"{of}: its aggregates disagree on the order of {clashing} of {whole} pairs of runs "
        f"({100 * clashing / whole:.1f} per cent)"
    )
    if not clashing:
        return f"{sentence}."
    extremes = [f"{one} and {other} ({number})" for _, one, other, number, *_ in (most, least)]
    return f"{sentence}; most do {extremes[0]}, fewest {extremes[1]}."


def _of_aspect(name: str) -> Column:
    return Column(f"score_{name}", name, "mean score")


def _trade_plots(about: SubjectSummary) -> list[Plot]:
    return [
        Plot(
            f"trade_off_{one}_{other}",
            f"{one} against {other}",
            "Mean scores of the runs by two aspects; those on the Pareto front, of all aspects, are marked.",
            "points",
            "trade_off",
            f"score_{one}",
            f"score_{other}",
            series="front",
            label="run",
            facet="of",
        )
        for one, other in combinations(about.aspects, 2)
    ]


_TRADE = (
    OF,
    Column("run", "run"),
    Column("front", "on the front", "nothing dominates it"),
    Column("by", "dominated by", "the first that does"),
)
_TAUS = (
    OF,
    Column("first", "aspect"),
    Column("second", "and"),
    Column("tau", "tau", "tau-b between mean scores of the runs by the two"),
)
_CLASH = (
    OF,
    Column("first", "aggregate"),
    Column("second", "and"),
    Column("opposite", "opposite", "pairs of runs in opposite orders"),
    Column("tied", "tied in one", "pairs of runs that one of them alone tells apart"),
    Column("share", "share opposite", "of all pairs of runs"),
    Column("tau", "tau", "tau-b between mean scores"),
    Column("topics", "tau by topic", "mean over the topics where it is defined"),
    Column("first_kind", "the first aggregates by"),
    Column("second_kind", "the second by"),
)
_CLASH_PLOTS = (
    Plot(
        "disagreement",
        "Where aggregates disagree",
        "Share of the pairs of runs that two aggregates put in opposite orders.",
        "heatmap",
        "disagreement",
        "first_kind",
        "second_kind",
        value="share",
        facet="of",
    ),
)
