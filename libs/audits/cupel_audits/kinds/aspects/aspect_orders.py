"""Trade-offs between aspects, and disagreement between aggregates.

Both are about the order of runs.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Annotated, TypedDict, final

import numpy as np

from cupel_audits.kinds.aspects.aspect_measures import AspectFamily, aggregate_name, without_default_aspects
from cupel_audits.report import AuditReport, Column, Heading, Plot, RunCell, TableSchema, merged, name_some
from cupel_audits.subject import DECIMALS, AuditSubject, SubjectSummary, means, scores_by_topic
from cupel_measures.catalogue.parser import parse
from cupel_measures.comparing.rank_correlation import tau_b, tau_b_by_topic
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


class FamilyScores(TypedDict):
    """Scores of the runs for one component measure.

    aspects, aggregates: the mean scores of the runs by aspect and by aggregate. topics: for each pair of
    aggregates, their texts, and the mean of tau-b over the topics where it is defined.
    """

    aspects: dict[str, list[float]]
    aggregates: dict[str, list[float]]
    topics: list[tuple[str, str, float | None]]


@final
class OrdersResult(TypedDict):
    """The result of the third trial, on orders of runs; JSON-serialisable.

    families: the scores of each family, by the text of its component. lacking: sentences on aggregates that
    cannot be computed.
    """

    families: dict[str, FamilyScores]
    lacking: list[str]


NAMED_RUNS = 6
"""The most runs that a sentence names."""

ComponentCell = Annotated[str, Heading("component", "measure of one aspect that the aggregates combine")]


@dataclass(frozen=True, kw_only=True)
class TradeOffRow:
    """A run and its trade-off between aspects under one component measure.

    scores: mean scores by aspect, None for an aspect without score.
    """

    component: ComponentCell
    run: RunCell
    on_front: Annotated[bool, Heading("on the Pareto front", "no other run dominates it")]
    dominated_by: Annotated[str | None, Heading("dominated by", "the first run that dominates it")]
    scores: tuple[float | None, ...]

    def on_front_of(self, component: str) -> bool:
        """Return whether the run is on the Pareto front under this component measure."""
        return self.on_front and self.component == component


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
    first_kind: Annotated[str, Heading("first aggregate, short")]
    second_kind: Annotated[str, Heading("second aggregate, short")]


_TRADE_OFF = TableSchema.of("trade_off", "Scores of the runs by aspect", TradeOffRow)
ASPECT_TAU = TableSchema.of("aspect_tau", "Correlation of aspects", AspectTauRow)
DISAGREEMENT = TableSchema.of("disagreement", "Pairs of runs on which aggregates disagree", DisagreementRow)


def score_families(subject: AuditSubject, families: Sequence[AspectFamily]) -> dict[str, FamilyScores]:
    """Return the mean scores of the runs by aspect and by aggregate for each family."""
    return {family.text: _score_family(subject, family) for family in families}


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
        aspects={name: mean[str(measure)].tolist() for name, measure in single.items()},
        aggregates={short: mean[text].tolist() for text, short in texts.items()},
        topics=[
            (texts[first], texts[second], tau_b_by_topic(scores[first], scores[second]).value)
            for first, second in combinations(texts, 2)
        ],
    )


def _rounded_scores(subject: AuditSubject, measures: Sequence[Measure]) -> dict[str, Floats]:
    scores = scores_by_topic(subject.evaluator.evaluate(measures), measures)
    return {text: np.round(values, DECIMALS) for text, values in scores.items()}


def report(about: SubjectSummary, result: OrdersResult) -> AuditReport:
    """Return the report on disagreement of aggregates and on trade-offs of aspects."""
    missing = AuditReport(verdict=(), numbers={}, tables=(), undefined=tuple(result["lacking"]))
    disagreement, trade_off = _report_disagreement(about, result), _report_trade_off(about, result)
    return replace(
        merged([disagreement, trade_off, missing]),
        verdict=(*trade_off.verdict, *disagreement.verdict),
        plots=(*trade_off.plots, *disagreement.plots),
        actions=(*trade_off.actions, *disagreement.actions),
    )


def _report_trade_off(about: SubjectSummary, result: OrdersResult) -> AuditReport:
    families = result["families"]
    rows = [row for name, family in families.items() for row in _trade_off_rows(about, name, family)]
    taus = [row for name, family in families.items() for row in _tau_rows(name, family)]
    schema = _TRADE_OFF.with_columns(
        "scores", *(Column(f"score_{name}", name, "mean score") for name in about.aspects)
    )
    front = {name: sum(row.on_front for row in rows if row.component == name) for name in families}
    numbers: dict[str, float | int | None] = {f"front({name})": size for name, size in front.items()}
    numbers |= {f"dominated({name})": 1 - size / len(about.runs) for name, size in front.items()}
    return AuditReport(
        verdict=tuple(
            _front_sentence(about, name, [row.run for row in rows if row.on_front_of(name)], taus)
            for name in families
        ),
        numbers=numbers | {f"tau({row.component},{row.first},{row.second})": row.tau for row in taus},
        tables=(schema.table(rows), ASPECT_TAU.table(taus)),
        plots=tuple(_trade_off_plots(about, schema, rows)),
        actions=tuple(_choose_from_front(front)),
        reading=READING[:1],
        undefined=tuple(
            f"tau of {row.component} between {row.first} and {row.second}: all runs have the same score on "
            "one of the aspects"
            for row in taus
            if row.tau is None
        ),
    )


def _trade_off_rows(about: SubjectSummary, component: str, family: FamilyScores) -> Iterator[TradeOffRow]:
    dominators = find_dominators(np.array(list(family["aspects"].values())))
    for place, (run, dominator) in enumerate(zip(about.runs, dominators, strict=True)):
        yield TradeOffRow(
            component=component,
            run=run,
            on_front=dominator is None,
            dominated_by=None if dominator is None else about.runs[dominator],
            scores=tuple(
                family["aspects"][name][place] if name in family["aspects"] else None
                for name in about.aspects
            ),
        )


def _tau_rows(component: str, family: FamilyScores) -> Iterator[AspectTauRow]:
    for first, second in combinations(family["aspects"], 2):
        tau = tau_b(family["aspects"][first], family["aspects"][second]).value
        yield AspectTauRow(component=component, first=first, second=second, tau=tau)


def find_dominators(scores: Floats) -> list[int | None]:
    """Return for each run the first run that dominates it, or None.

    A run is a column of `scores`, float64[aspects, runs].
    """
    dominators: list[int | None] = []
    for run in scores.T:
        dominates = (scores >= run[:, None]).all(axis=0) & (scores > run[:, None]).any(axis=0)
        dominators.append(int(np.argmax(dominates)) if dominates.any() else None)
    return dominators


def _front_sentence(
    about: SubjectSummary, component: str, front: Sequence[str], taus: Sequence[AspectTauRow]
) -> str:
    """Return a text on the Pareto front and on the least similar aspects.

    One sentence names the runs on the front. Another names the aspects, if some tau is defined.
    """
    verb = "is" if len(front) == 1 else "are"
    sentence = (
        f"{component}: {len(front)} of {len(about.runs)} runs {verb} on the Pareto front of the aspects "
        f"(by observed means, untested): {_list_names(front)}"
    )
    defined = [(row.tau, row) for row in taus if row.component == component and row.tau is not None]
    if not defined:
        return f"{sentence}."
    tau, row = min(defined, key=lambda pair: pair[0])
    which = "Tau between the aspects" if len(defined) == 1 else "The lowest tau between two aspects"
    return f"{sentence}. {which} is {tau:.2f} (the orders by {row.first} and by {row.second})."


def _list_names(names: Sequence[str]) -> str:
    """Return the names as a list for a sentence; at most NAMED_RUNS are named."""
    if len(names) > NAMED_RUNS:
        return f"{', '.join(names[:NAMED_RUNS])} and {len(names) - NAMED_RUNS} more"
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _choose_from_front(front: Mapping[str, int]) -> Iterator[str]:
    """Yield advice on choosing among the runs that no other run dominates."""
    if any(size > 1 for size in front.values()):
        yield (
            "Decide how important each aspect is before you name a best run. If you cannot decide, report "
            "the scores by aspect and the runs on the Pareto front."
        )
    for component, size in front.items():
        if size == 1:
            yield (
                f"{component}: no run has a higher weighted mean of the aspect scores than the only run on "
                "the Pareto front, whatever the weights. Test the differences before you call it the best."
            )


def _report_disagreement(about: SubjectSummary, result: OrdersResult) -> AuditReport:
    families = {name: family for name, family in result["families"].items() if len(family["aggregates"]) > 1}
    rows = {name: list(_disagreement_rows(name, family)) for name, family in families.items()}
    disputed = {name: _count_disputed(family["aggregates"]) for name, family in families.items()}
    run_pairs = len(about.runs) * (len(about.runs) - 1) // 2
    all_rows = [row for by_family in rows.values() for row in by_family]
    numbers: dict[str, float | int | None] = {
        f"disagree({name})": count / run_pairs for name, count in disputed.items()
    }
    return AuditReport(
        verdict=tuple(_disagreement_sentences(disputed, run_pairs, all_rows)),
        numbers=numbers | {f"tau({row.first},{row.second})": row.tau for row in all_rows},
        # The heat map needs both halves of the matrix.
        tables=(DISAGREEMENT.table(half for row in all_rows for half in (row, _mirrored(row))),),
        plots=(_disagreement_plot(all_rows),) if all_rows else (),
        actions=tuple(_name_the_aggregate(disputed)),
        reading=READING[1:],
        undefined=tuple(
            f"tau of {row.first} and {row.second}: all runs have the same score under one of them"
            for row in all_rows
            if row.tau is None
        ),
    )


def _count_disputed(aggregates: Mapping[str, Sequence[float]]) -> int:
    """Return the number of pairs of runs that aggregates put in opposite orders.

    A pair counts if any two aggregates disagree on it.
    """
    signs = np.stack([_pair_signs(scores) for scores in aggregates.values()])
    return int(np.count_nonzero((signs > 0).any(axis=0) & (signs < 0).any(axis=0)))


def _disagreement_rows(component: str, family: FamilyScores) -> Iterator[DisagreementRow]:
    scores = family["aggregates"]
    signs = {name: _pair_signs(by_run) for name, by_run in scores.items()}
    short = _short_names([*signs])
    for first, second, topic_tau in family["topics"]:
        opposite = int(np.count_nonzero(signs[first] * signs[second] < 0))
        yield DisagreementRow(
            component=component,
            first=first,
            second=second,
            opposite=opposite,
            tied=int(np.count_nonzero((signs[first] == 0) != (signs[second] == 0))),
            share=opposite / len(signs[first]),
            tau=tau_b(scores[first], scores[second]).value,
            topics=topic_tau,
            first_kind=short[first],
            second_kind=short[second],
        )


def _mirrored(row: DisagreementRow) -> DisagreementRow:
    """Return the row with the two aggregates exchanged."""
    return replace(
        row, first=row.second, second=row.first, first_kind=row.second_kind, second_kind=row.first_kind
    )


def _short_names(aggregates: Sequence[str]) -> dict[str, str]:
    """Return short names of the aggregates of a family for plots.

    The names omit the component.

    If the short names are not unique, return the full texts of the aggregates.
    """
    names = {text: aggregate_name(parse(text)) for text in aggregates}
    is_unique = len({*names.values()}) == len(aggregates)
    return names if is_unique else dict(zip(aggregates, aggregates, strict=True))


def _pair_signs(scores: Sequence[float]) -> Floats:
    """Return the sign of the difference of scores of each pair of runs.

    The result is float64[pairs]: 1 if the first run of a pair scores higher, -1 if it scores lower, else 0.
    """
    values = np.array(scores)
    first, second = np.triu_indices(len(values), 1)
    signs: Floats = np.sign(values[first] - values[second])
    return signs


def _disagreement_sentences(
    disputed: Mapping[str, int], run_pairs: int, rows: Sequence[DisagreementRow]
) -> Iterator[str]:
    """Yield a sentence on all families, and one on the largest disagreement.

    The second is on the aggregates that disagree on the most pairs.
    """
    if not disputed:
        return
    counts = [
        f"{count} ({100 * count / run_pairs:.1f}%) with {component}" for component, count in disputed.items()
    ]
    yield f"Of {run_pairs} pairs of runs, aggregates disagree on the order of {_list_names(counts)}."
    most = max((row.opposite for row in rows), default=0)
    if not most:
        return
    pairs = [f"{row.first} and {row.second}" for row in rows if row.opposite == most]
    further = "1 further pair" if len(pairs) == 2 else f"{len(pairs) - 1} further pairs"
    others = f", and {further} of aggregates," if len(pairs) > 1 else ""
    yield f"{pairs[0]}{others} disagree on the most pairs ({most})."


def _name_the_aggregate(disputed: Mapping[str, int]) -> Iterator[str]:
    """Yield how to report aggregates that disagree."""
    if any(disputed.values()):
        yield (
            "Name the aggregate and its component with every result, such as `CAM(of=nDCG@10)`, because "
            "aggregates disagree on the order of runs. Choose it before you see the scores."
        )
    elif disputed:
        yield (
            "By these topics, no two aggregates with the same component put two of these runs in opposite "
            "orders."
        )


def _trade_off_plots(
    about: SubjectSummary, schema: TableSchema[TradeOffRow], rows: Sequence[TradeOffRow]
) -> Iterator[Plot]:
    for first, second in combinations(about.aspects, 2):
        yield Plot.points(
            schema,
            f"trade_off_{first}_{second}",
            title=_trade_off_title(about, rows, first, second),
            caption=f"Mean scores of the runs by {first} and by {second}. The colour shows the Pareto front "
            "of all aspects.",
            x=f"score_{first}",
            y=f"score_{second}",
            series="on_front",
            label="run",
            facet="component",
        )


def _trade_off_title(about: SubjectSummary, rows: Sequence[TradeOffRow], first: str, second: str) -> str:
    """Return a title on the runs with the highest scores by each of two aspects.

    The scores are those under the first component.
    """
    places = [about.aspects.index(name) for name in (first, second)]
    of_first = [row for row in rows if row.component == rows[0].component]
    if any(row.scores[place] is None for row in of_first for place in places):
        return f"{first} against {second}"
    best = [_name_best(of_first, place) for place in places]
    return f"Highest means by {rows[0].component}: {best[0]} on {first}, {best[1]} on {second}"


def _name_best(rows: Sequence[TradeOffRow], place: int) -> str:
    """Return the runs with the highest score by the aspect at index `place`."""
    highest = max(row.scores[place] or 0.0 for row in rows)
    return name_some([row.run for row in rows if row.scores[place] == highest], "runs")


def _disagreement_plot(rows: Sequence[DisagreementRow]) -> Plot:
    most = max(rows, key=lambda row: row.share)
    return Plot.heatmap(
        DISAGREEMENT,
        "disagreement",
        title=f"Aggregates of {most.component} disagree on up to {most.share:.1%} of the pairs of runs"
        if most.opposite
        else "No two aggregates disagree on a pair of runs",
        caption="Share of the pairs of runs that two aggregates put in opposite orders.",
        x="first_kind",
        y="second_kind",
        value="share",
        facet="component",
    )
