"""Trade-offs between aspects, and disagreement between aggregates, in the order of runs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Annotated, TypedDict

import numpy as np

from cupel_audits.kinds.aspects.aspect_measures import AspectFamily, aggregate_name, without_default_aspects
from cupel_audits.report import AuditReport, Column, Heading, Plot, RunCell, TableSchema, merged
from cupel_audits.subject import DECIMALS, AuditSubject, SubjectSummary, by_topic, means
from cupel_measures.catalogue.parser import parse
from cupel_measures.comparing.correlation import tau_b, tau_b_by_topic
from cupel_measures.families.multiaspect import inner
from cupel_measures.grammar.measure import Measure
from cupel_measures.grammar.syntax import ArgumentPairs
from cupel_measures.model import Floats

READING = (
    "A run is dominated if another run scores at least as high on every aspect and higher on at least one. "
    "Runs that are not dominated form the Pareto front. Which of them is best depends on how important each "
    "aspect is.",
    "Two aggregates disagree on a pair of runs if they put it in opposite orders. A tie under one of them is "
    "not a disagreement.",
)


class AggregatePair(TypedDict):
    """Two aggregates, and the mean of tau-b between them over the topics where it is defined."""

    first: str
    second: str
    topic_tau: float | None


class FamilyScores(TypedDict):
    """Mean scores of the runs, by aspect and by aggregate, for one component measure; JSON-serialisable."""

    component: str
    by_aspect: dict[str, list[float]]
    by_aggregate: dict[str, list[float]]
    pairs: list[AggregatePair]


class OrdersResult(TypedDict):
    """The result of the third trial. missing: sentences on aggregates that cannot be computed."""

    families: list[FamilyScores]
    missing: list[str]


ComponentCell = Annotated[str, Heading("component", "measure of one aspect that is combined")]


@dataclass(frozen=True, kw_only=True)
class TradeOffRow:
    """A run under one component measure. scores: mean scores by aspect, None where it is not scored."""

    component: ComponentCell
    run: RunCell
    on_front: Annotated[bool, Heading("on the Pareto front", "no other run dominates it")]
    dominated_by: Annotated[str | None, Heading("dominated by", "the first run that dominates it")]
    scores: tuple[float | None, ...]


@dataclass(frozen=True, kw_only=True)
class AspectTauRow:
    """The correlation of the orders of runs by two aspects."""

    component: ComponentCell
    first: Annotated[str, Heading("first aspect")]
    second: Annotated[str, Heading("second aspect")]
    tau: Annotated[float | None, Heading("tau", "tau-b between mean scores by the two aspects")]


@dataclass(frozen=True, kw_only=True)
class DisagreementRow:
    """Pairs of runs on which two aggregates disagree."""

    component: ComponentCell
    first: Annotated[str, Heading("first aggregate")]
    second: Annotated[str, Heading("second aggregate")]
    opposite: Annotated[int, Heading("opposite", "pairs of runs in opposite orders")]
    tied: Annotated[int, Heading("tied under one", "pairs of runs that are tied under one aggregate only")]
    share: Annotated[float, Heading("share opposite", "of all pairs of runs")]
    tau: Annotated[float | None, Heading("tau", "tau-b between mean scores")]
    topics: Annotated[
        float | None, Heading("tau by topic", "mean of tau-b over the topics where it is defined")
    ]
    first_kind: Annotated[str, Heading("first, short")]
    second_kind: Annotated[str, Heading("second, short")]


_TRADE_OFF = TableSchema.of("trade_off", "Scores of the runs by aspect", TradeOffRow)
ASPECT_TAU = TableSchema.of("aspect_tau", "Correlation of aspects", AspectTauRow)
DISAGREEMENT = TableSchema.of("disagreement", "Pairs of runs on which aggregates disagree", DisagreementRow)


def score_families(subject: AuditSubject, families: Sequence[AspectFamily]) -> list[FamilyScores]:
    """Return the mean scores of the runs by aspect and by aggregate for each family."""
    return [_score_family(subject, family) for family in families]


def _score_family(subject: AuditSubject, family: AspectFamily) -> FamilyScores:
    is_by_aspect = isinstance(family.component, ArgumentPairs)
    names = [name for name, _ in family.component] if is_by_aspect else subject.about.aspects
    single = {name: inner(family.component, name).having(aspect=name) for name in names}
    scores = _rounded_scores(subject, [*single.values(), *family.aggregates])
    mean = means(scores, [*single.values(), *family.aggregates])
    texts = {
        str(aggregate): str(without_default_aspects(aggregate, subject.about.aspects))
        for aggregate in family.aggregates
    }
    return FamilyScores(
        component=family.text,
        by_aspect={name: mean[str(measure)].tolist() for name, measure in single.items()},
        by_aggregate={short: mean[text].tolist() for text, short in texts.items()},
        pairs=[
            AggregatePair(
                first=texts[first],
                second=texts[second],
                topic_tau=tau_b_by_topic(scores[first], scores[second]).value,
            )
            for first, second in combinations(texts, 2)
        ],
    )


def _rounded_scores(subject: AuditSubject, measures: Sequence[Measure]) -> dict[str, Floats]:
    scores = by_topic(subject.evaluator.evaluate(measures), measures)
    return {text: np.round(values, DECIMALS) for text, values in scores.items()}


def report(about: SubjectSummary, result: OrdersResult) -> AuditReport:
    """Return the report on disagreement between aggregates and on trade-offs between aspects."""
    missing = AuditReport(verdict=(), numbers={}, tables=(), undefined=tuple(result["missing"]))
    return merged([_report_disagreement(about, result), _report_trade_off(about, result), missing])


def _report_trade_off(about: SubjectSummary, result: OrdersResult) -> AuditReport:
    rows = [row for family in result["families"] for row in _trade_off_rows(about, family)]
    taus = [row for family in result["families"] for row in _tau_rows(family)]
    schema = _TRADE_OFF.with_columns(
        "scores", *(Column(f"score_{name}", name, "mean score") for name in about.aspects)
    )
    front = {
        family["component"]: sum(row.on_front for row in rows if row.component == family["component"])
        for family in result["families"]
    }
    numbers: dict[str, float | int | None] = {f"front({name})": size for name, size in front.items()}
    numbers |= {f"dominated({name})": 1 - size / len(about.runs) for name, size in front.items()}
    return AuditReport(
        verdict=tuple(_front_sentence(about, name, size, taus) for name, size in front.items()),
        numbers=numbers | {f"tau({row.component},{row.first},{row.second})": row.tau for row in taus},
        tables=(schema.table(rows), ASPECT_TAU.table(taus)),
        plots=tuple(_trade_off_plots(about, schema)),
        reading=READING[:1],
        undefined=tuple(
            f"tau of {row.component} between {row.first} and {row.second}: all runs have the same score on "
            "one of the aspects"
            for row in taus
            if row.tau is None
        ),
    )


def _trade_off_rows(about: SubjectSummary, family: FamilyScores) -> Iterator[TradeOffRow]:
    dominators = find_dominators(np.array(list(family["by_aspect"].values())))
    for place, (run, dominator) in enumerate(zip(about.runs, dominators, strict=True)):
        yield TradeOffRow(
            component=family["component"],
            run=run,
            on_front=dominator is None,
            dominated_by=None if dominator is None else about.runs[dominator],
            scores=tuple(
                family["by_aspect"][name][place] if name in family["by_aspect"] else None
                for name in about.aspects
            ),
        )


def _tau_rows(family: FamilyScores) -> Iterator[AspectTauRow]:
    for first, second in combinations(family["by_aspect"], 2):
        tau = tau_b(family["by_aspect"][first], family["by_aspect"][second]).value
        yield AspectTauRow(component=family["component"], first=first, second=second, tau=tau)


def find_dominators(scores: Floats) -> list[int | None]:
    """Return for each run (column of float64[aspects, runs]) the first run that dominates it, if any."""
    dominators: list[int | None] = []
    for run in scores.T:
        dominates = (scores >= run[:, None]).all(axis=0) & (scores > run[:, None]).any(axis=0)
        dominators.append(int(np.argmax(dominates)) if dominates.any() else None)
    return dominators


def _front_sentence(about: SubjectSummary, component: str, front: int, taus: Sequence[AspectTauRow]) -> str:
    verb = "is" if front == 1 else "are"
    sentence = f"{component}: {front} of {len(about.runs)} runs {verb} on the Pareto front of the aspects"
    defined = [(row.tau, row) for row in taus if row.component == component and row.tau is not None]
    if not defined:
        return f"{sentence}."
    tau, row = min(defined, key=lambda pair: pair[0])
    which = "tau" if len(defined) == 1 else "the lowest tau between two aspects"
    return f"{sentence}; {which} is {tau:.2f}, between the orders by {row.first} and by {row.second}."


def _report_disagreement(about: SubjectSummary, result: OrdersResult) -> AuditReport:
    families = [family for family in result["families"] if len(family["by_aggregate"]) > 1]
    rows = {family["component"]: list(_disagreement_rows(family)) for family in families}
    disputed = {family["component"]: _count_disputed(family["by_aggregate"]) for family in families}
    run_pairs = len(about.runs) * (len(about.runs) - 1) // 2
    all_rows = [row for by_family in rows.values() for row in by_family]
    numbers: dict[str, float | int | None] = {
        f"disagree({name})": count / run_pairs for name, count in disputed.items()
    }
    return AuditReport(
        verdict=tuple(_disagreement_sentence(name, disputed[name], run_pairs, rows[name]) for name in rows),
        numbers=numbers | {f"tau({row.first},{row.second})": row.tau for row in all_rows},
        # The heat map needs both halves of the matrix.
        tables=(DISAGREEMENT.table(half for row in all_rows for half in (row, _mirrored(row))),),
        plots=(DISAGREEMENT_PLOT,) if all_rows else (),
        reading=READING[1:],
        undefined=tuple(
            f"tau of {row.first} and {row.second}: all runs have the same score under one of them"
            for row in all_rows
            if row.tau is None
        ),
    )


def _count_disputed(aggregates: Mapping[str, Sequence[float]]) -> int:
    """Return the number of pairs of runs that any two aggregates put in opposite orders."""
    signs = np.stack([_pair_signs(scores) for scores in aggregates.values()])
    return int(np.count_nonzero((signs > 0).any(axis=0) & (signs < 0).any(axis=0)))


def _disagreement_rows(family: FamilyScores) -> Iterator[DisagreementRow]:
    signs = {name: _pair_signs(scores) for name, scores in family["by_aggregate"].items()}
    short = _short_names([*signs])
    for pair in family["pairs"]:
        first, second = signs[pair["first"]], signs[pair["second"]]
        opposite = int(np.count_nonzero(first * second < 0))
        yield DisagreementRow(
            component=family["component"],
            first=pair["first"],
            second=pair["second"],
            opposite=opposite,
            tied=int(np.count_nonzero((first == 0) != (second == 0))),
            share=opposite / len(first),
            tau=tau_b(family["by_aggregate"][pair["first"]], family["by_aggregate"][pair["second"]]).value,
            topics=pair["topic_tau"],
            first_kind=short[pair["first"]],
            second_kind=short[pair["second"]],
        )


def _mirrored(row: DisagreementRow) -> DisagreementRow:
    """Return the row with the two aggregates exchanged."""
    return replace(
        row, first=row.second, second=row.first, first_kind=row.second_kind, second_kind=row.first_kind
    )


def _short_names(aggregates: Sequence[str]) -> dict[str, str]:
    """Return names for a plot of one family: aggregations without component, or texts if not unique."""
    names = {text: aggregate_name(parse(text)) for text in aggregates}
    is_unique = len({*names.values()}) == len(aggregates)
    return names if is_unique else dict(zip(aggregates, aggregates, strict=True))


def _pair_signs(scores: Sequence[float]) -> Floats:
    """Return float64[pairs]: 1 where the first run of a pair scores higher, -1 lower, 0 for a tie."""
    values = np.array(scores)
    first, second = np.triu_indices(len(values), 1)
    signs: Floats = np.sign(values[first] - values[second])
    return signs


def _disagreement_sentence(
    component: str, disputed: int, run_pairs: int, rows: Sequence[DisagreementRow]
) -> str:
    sentence = (
        f"{component}: its aggregates disagree on the order of {disputed} of {run_pairs} pairs of runs "
        f"({100 * disputed / run_pairs:.1f}%)"
    )
    most, fewest = max(rows, key=lambda row: row.opposite), min(rows, key=lambda row: row.opposite)
    if most.opposite == fewest.opposite:
        return f"{sentence}."
    return (
        f"{sentence}; {most.first} and {most.second} disagree on the most pairs ({most.opposite}), "
        f"{fewest.first} and {fewest.second} on the fewest ({fewest.opposite})."
    )


def _trade_off_plots(about: SubjectSummary, schema: TableSchema[TradeOffRow]) -> Iterator[Plot]:
    for first, second in combinations(about.aspects, 2):
        yield Plot.points(
            schema,
            f"trade_off_{first}_{second}",
            title=f"{first} against {second}",
            caption="Mean scores of the runs by two aspects. The colour shows the Pareto front.",
            x=f"score_{first}",
            y=f"score_{second}",
            series="on_front",
            label="run",
            facet="component",
        )


DISAGREEMENT_PLOT = Plot.heatmap(
    DISAGREEMENT,
    "disagreement",
    title="Disagreement between aggregates",
    caption="Share of the pairs of runs that two aggregates put in opposite orders.",
    x="first_kind",
    y="second_kind",
    value="share",
    facet="component",
)
