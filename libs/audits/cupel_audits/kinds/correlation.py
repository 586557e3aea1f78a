"""`correlation`: how alike measures, and aspects, order the runs (Ferrante et al. 2019, 5.2; spec 4.3)."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from cupel_audits.analysis.run_orders import STRONG
from cupel_audits.analysis.sample_curves import MEASURE
from cupel_audits.analysis.score_matrices import Compared, OverTopics, compared
from cupel_audits.declarations import audit, setting
from cupel_audits.report import AuditReport, Cell, Column, Plot, ReportTable
from cupel_audits.subject import AuditSubject, SubjectSummary
from cupel_measures.catalogue.parser import parse
from cupel_measures.comparing.compared_measures import Under, asked_for
from cupel_measures.comparing.correlation import levels, tau_ap, tau_b, tau_b_by_topic
from cupel_measures.grammar.parameters import OneFlag

Pair = tuple[str, str, tuple[str, str, str] | None]
"""The texts of two measures; and where they are one under two aspects, it without these, and the two."""
MOVERS = 5
"""How many runs are told that change places most, for each pair."""

READING = (
    "tau-b is 1 where two measures order all runs alike, 0 where their orders have nothing to do with each "
    "other, -1 where one is the other reversed. Ties are seen as ties. Overall: between the means over "
    "topics. Topic by topic: on each topic, then the mean over the topics where it is defined.",
    f"Above {STRONG} two orders are usually taken to say the same. A low tau between measures of different "
    "things is no fault: they were made to see different things. Measures of one thing that disagree topic "
    "by topic and agree overall differ by noise that the mean evens out.",
    "Ferrante et al. (2019, Tables 1 and 2) found 0.38 to 0.99 topic by topic and 0.70 to 0.98 overall "
    "between measures that look at ranks and the rank-based order RBTO, and 1 where theory says 1. Maistro "
    "et al. (CIKM 2021, Table 4) print far lower values between measures of several aspects, which do not "
    "fit tau on scores (register of readings, row 7): expect higher ones. Palotti et al. (CIKM 2018) found "
    "0.90 between RBP and uRBP on CLEF eHealth 2015, 0.84 between RBP and H, and 0.48 between relevance and "
    "understandability alone.",
)


@audit(
    "correlation",
    title="Correlation of measures and aspects",
    answers="Which measures, and which aspects, put the runs in the same order, and which runs move?",
    source="Ferrante, Ferro, Losiouk 2019, section 5.2 (spec 4.3); Yilmaz et al., SIGIR 2008 for tau AP",
)
class CorrelationAudit(OverTopics):
    """Correlates the orders of runs under every two measures, and of one measure under every two aspects.

    tau-b = (P - Q) / sqrt((P + Q + T) (P + Q + U)) with P concordant and Q discordant pairs of runs, T tied
    in the first alone and U in the second alone. Overall it is taken between means over topics, topic by
    topic between the scores on each topic, and then averaged over the topics where neither measure is
    constant. Where a measure has exact values, ties and orders are those of exact numbers; other scores are
    tied where they are equal to 12 decimals. Under aspects, a measure of one aspect is taken under each, and
    one that combines aspects is replaced by what it combines.
    """

    aspects: OneFlag = setting(True, "compare the orders under each two aspects too")
    tau_ap: OneFlag = setting(
        False, "tell tau AP too, which weighs swaps at the top of the second order more"
    )

    def problems(self, subject: AuditSubject) -> Iterator[str]:
        yield from super().problems(subject)
        if subject.about.measures and not _pairs(subject, self.aspects):
            more = "" if self.aspects else ", or aspects=true"
            yield f"one measure of one aspect can't be correlated with itself: give two measures{more}"

    def trials(self, subject: AuditSubject) -> int:
        return len(_pairs(subject, self.aspects))

    def run_trials(self, subject: AuditSubject, seed: int, trials: Sequence[int]) -> Iterator[Any]:
        pairs, scores = _pairs(subject, self.aspects), dict[str, Compared]()
        for trial in trials:
            *texts, under = pairs[trial]
            for text in texts:
                if text not in scores:
                    scores[text] = compared(subject, parse(text).bound(subject.qrels.aspects))
            yield {"under": under, **self._trial(*(scores[text] for text in texts))}

    def _trial(self, first: Compared, second: Compared) -> dict[str, Any]:
        overall = tau_b(first.means, second.means)
        by_topic = tau_b_by_topic(first.orders, second.orders)
        top = {"tau_ap": tau_ap(first.means, second.means).value} if self.tau_ap else {}
        return {
            "first": first.measure,
            "second": second.measure,
            "overall": overall.value,
            "undefined": overall.undefined,
            "by_topic": by_topic.value,
            "topics": list(by_topic.topics),
            "ranks": [_mid_ranks(one) for one in (first, second)],
            **top,
        }

    def report(self, about: SubjectSummary, found: Mapping[int, Any]) -> AuditReport:
        done = list(found.values())
        between = [one for one in done if one["under"] is None]
        under = [one for one in done if one["under"] is not None]
        top = (Column("tau_ap", "tau AP", "the first order being the truth"),) if self.tau_ap else ()
        tables = (
            _orders("pairs", "Measures", between, top),
            *([_orders("aspects", "One measure under two aspects", under, top)] if self.aspects else []),
            _square(about, between),
            _ranks(about, between),
            _movers(about, done),
            _by_topic(about, done),
        )
        return AuditReport(
            verdict=tuple(_verdict(about, between, under)),
            numbers=_numbers(done),
            tables=tables,
            plots=tuple(_plots(about, between, under)),
            reading=READING,
            undefined=tuple(_undefined(done)),
        )


def _pairs(subject: AuditSubject, aspects: bool) -> list[Pair]:
    """Every two measures; then every two aspects under which a measure is told, each pair once."""
    found: list[Pair] = [(*pair, None) for pair in combinations(dict.fromkeys(subject.about.measures), 2)]
    if not aspects:
        return found
    under: dict[str, dict[Under, None]] = {}
    for measure in subject.measures:
        for told in asked_for(measure, subject.qrels).under:
            under.setdefault(told.whole, {})[told] = None
    return found + [
        (one.measure, other.measure, (whole, one.aspect, other.aspect))
        for whole, each in under.items()
        for one, other in combinations(each, 2)
    ]


def _mid_ranks(scores: Compared) -> list[float]:
    """The rank of each run from 1 for the best; equal runs share the middle of theirs."""
    level = levels(scores.means)
    above = (level[:, None] < level[None, :]).sum(axis=1)
    ties = (level[:, None] == level[None, :]).sum(axis=1)
    ranks: list[float] = (above + (ties + 1) / 2).tolist()
    return ranks


def _moves(one: Mapping[str, Any]) -> list[float]:
    """By how many places each run stands lower under the second measure."""
    first, second = one["ranks"]
    return [b - a for a, b in zip(first, second, strict=True)]


def _furthest(moves: Sequence[float]) -> list[int]:
    """The runs that move most, in the order of runs where they move alike."""
    return sorted(range(len(moves)), key=lambda run: -abs(moves[run]))[:MOVERS]


WHICH = ("first", "second")
FIRST, SECOND = Column("first", "first measure"), Column("second", "second measure")


def _orders(name: str, title: str, done: Sequence[Mapping[str, Any]], top: tuple[Column, ...]) -> ReportTable:
    whole = Column("whole", "measure", "without its aspect"), Column("aspects", "aspects")
    columns = (
        *(whole if name == "aspects" else ()),
        FIRST,
        SECOND,
        Column("overall", "tau, overall", "tau-b between means over topics"),
        Column("by_topic", "tau, topic by topic", "mean of tau-b over the topics where it is defined"),
        Column("undefined_topics", "topics without tau", "all runs score the same under one of the two"),
        *top,
        Column(
            "greatest_move", "greatest move", "places that a run moves by; ties share the middle of theirs"
        ),
    )
    return ReportTable(name, title, columns, tuple(_row(one, columns) for one in done))


def _row(one: Mapping[str, Any], columns: Sequence[Column]) -> tuple[Cell, ...]:
    whole, *aspects = one["under"] or (None,)
    known = {
        **one,
        "whole": whole,
        "aspects": " and ".join(aspects),
        "undefined_topics": sum(tau is None for tau in one["topics"]),
        "greatest_move": max(map(abs, _moves(one)), default=None),
    }
    return tuple(known[column.name] for column in columns)


def _square(about: SubjectSummary, between: Sequence[Mapping[str, Any]]) -> ReportTable:
    """Both halves of the matrix, and its diagonal, for the heat maps."""
    known = {(one["first"], one["second"]): one for one in between}
    known |= {(second, first): one for (first, second), one in known.items()}
    measures = tuple(dict.fromkeys(about.measures))
    rows = []
    for first in measures:
        for second in measures:
            one = known.get((first, second), {})
            same = 1.0 if first == second else None
            rows.append((first, second, one.get("overall", same), one.get("by_topic", same)))
    columns = FIRST, SECOND, Column("overall", "tau, overall"), Column("by_topic", "tau, topic by topic")
    return ReportTable("matrix", "Every measure with every other", columns, tuple(rows))


def _ranks(about: SubjectSummary, between: Sequence[Mapping[str, Any]]) -> ReportTable:
    """Where each run stands by each measure."""
    by_measure = {one[which]: one["ranks"][place] for one in between for place, which in enumerate(WHICH)}
    rows = [
        (measure, run, rank)
        for measure in _in_order(about, between)
        for run, rank in zip(about.runs, by_measure[measure], strict=True)
    ]
    columns = (
        MEASURE,
        Column("run", "run"),
        Column("rank", "rank", "by the mean over topics; ties share the middle of their ranks"),
    )
    return ReportTable("ranks", "Ranks of the runs", columns, tuple(rows))


def _in_order(about: SubjectSummary, between: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """The measures that were compared."""
    seen = {one[which] for one in between for which in WHICH}
    return tuple(measure for measure in dict.fromkeys(about.measures) if measure in seen)


def _movers(about: SubjectSummary, done: Sequence[Mapping[str, Any]]) -> ReportTable:
    rows = []
    for one in done:
        moves = _moves(one)
        for run in _furthest(moves):
            ranks = (of[run] for of in one["ranks"])
            if moves[run]:
                rows.append((one["first"], one["second"], about.runs[run], *ranks, moves[run]))
    columns = (
        FIRST,
        SECOND,
        Column("run", "run"),
        Column("first_rank", "rank by the first", "ties share the middle of their ranks"),
        Column("second_rank", "rank by the second"),
        Column("move", "places down", "from the first to the second; up where it is below 0"),
    )
    return ReportTable("movers", "Runs that change places most", columns, tuple(rows))


def _by_topic(about: SubjectSummary, done: Sequence[Mapping[str, Any]]) -> ReportTable:
    rows = [
        (one["first"], one["second"], topic, tau)
        for one in done
        for topic, tau in zip(about.topics, one["topics"], strict=True)
    ]
    columns = FIRST, SECOND, Column("topic", "topic"), Column("tau", "tau-b")
    return ReportTable("topics", "Topic by topic", columns, tuple(rows))


def _verdict(
    about: SubjectSummary, between: Sequence[Mapping[str, Any]], under: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    for done, what in ((between, "measures"), (under, "aspects")):
        known = sorted((one for one in done if one["overall"] is not None), key=lambda one: one["overall"])
        if known and known[0]["overall"] == 1:
            yield f"All {what} that order the runs do so alike (tau 1.00)."
        elif known:
            yield f"The order of runs differs {'most ' * (len(known) > 1)}between {_said(about, known[0])}."
        elif done:
            yield f"Undefined: no two {what} order the runs."
        if len(known) > 1 and known[0]["overall"] < 1:
            alike = sum(one["overall"] >= STRONG for one in known)
            yield (
                f"It is most alike between {_said(about, known[-1])}. Of {len(known)} pairs of {what} "
                f"{alike} have a tau of {STRONG} or more."
            )


def _said(about: SubjectSummary, one: Mapping[str, Any]) -> str:
    """The two measures, their tau, and who moves most."""
    topics = "" if one["by_topic"] is None else f", {one['by_topic']:.2f} topic by topic"
    run = _furthest(_moves(one))[0]
    first, second = (f"{of[run]:g}" for of in one["ranks"])
    move = f"; {about.runs[run]} moves most, from rank {first} to {second}" if first != second else ""
    return f"{one['first']} and {one['second']} (tau {one['overall']:.2f} overall{topics}{move})"


def _numbers(done: Sequence[Mapping[str, Any]]) -> dict[str, float | int | None]:
    """tau(FIRST,SECOND), tau_by_topic(FIRST,SECOND) and tau_ap(FIRST,SECOND)."""
    found: dict[str, float | int | None] = {}
    for one in done:
        pair = f"({one['first']},{one['second']})"
        found[f"tau{pair}"] = one["overall"]
        found[f"tau_by_topic{pair}"] = one["by_topic"]
        if "tau_ap" in one:
            found[f"tau_ap{pair}"] = one["tau_ap"]
    return found


def _undefined(done: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for one in done:
        if one["overall"] is None:
            yield f"tau of {one['first']} and {one['second']}: {one['undefined']}"
        if one["by_topic"] is None:
            pair = f"{one['first']} and {one['second']}"
            yield f"tau topic by topic of {pair}: no topic tells runs apart under both"


def _plots(
    about: SubjectSummary, between: Sequence[Mapping[str, Any]], under: Sequence[Mapping[str, Any]]
) -> Iterator[Plot]:
    squares = (("overall", "Overall"), ("by_topic", "Topic by topic")) if between else ()
    for name, title in squares:
        yield Plot(
            name,
            f"{title}: how alike measures order the runs",
            "tau-b: 1 the same order, 0 unrelated, -1 reversed.",
            "heatmap",
            "matrix",
            "first",
            "second",
            value=name,
            domain=(-1, 1),
        )
    if between:
        yield Plot(
            "ranks",
            "How runs change places from measure to measure",
            "Lines that cross are runs that change places.",
            "changes",
            "ranks",
            "measure",
            "rank",
            series="run",
            x_order=_in_order(about, between),
        )
    if under:
        yield Plot(
            "aspects",
            "How alike one measure orders the runs under two aspects",
            "tau-b between means over topics.",
            "heatmap",
            "aspects",
            "aspects",
            "whole",
            value="overall",
            domain=(-1, 1),
        )
