"""The report of the kind `topics`."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cupel_audits.analysis.run_orders import STRONG, spread
from cupel_audits.analysis.sample_curves import MEASURE
from cupel_audits.report import AuditReport, Column, Plot, ReportTable
from cupel_audits.subject import SubjectSummary
from cupel_measures.comparing.swap_rates import decline

Draws = Sequence[Mapping[str, Any]]
"""By measure, for each size of topic sets: see `topics.Topics._draw`."""
Measures = Sequence[Mapping[str, Any]]

NAMED = 3
"""How many topics a sentence names."""

READING = (
    "A rate of swaps is how often another set of as many topics would turn a difference of that size round. "
    "Those for more than half of all topics are extrapolated from an exponential, and no more than a guide. "
    "Runs of one team are alike, so rates look better than they are for runs of strangers.",
    "Voorhees and Buckley (SIGIR 2002) found rates on TREC that were larger than anticipated. Sizes by a "
    "t-test ask for a true difference; an observed one may be larger or smaller by chance.",
    "Chosen topics are chosen with the scores of all topics in hand, and order these runs well; other runs "
    "they may order worse (Guiver et al., TOIS 2009). They tell what could be saved, not what to make.",
    "A topic on which all runs score 0 has no relevant document, or none that any run found; it costs every "
    "run the same. Topics with a low tau order the runs otherwise than all topics do.",
)

NO_SPREAD = "differences between runs have no spread"


def report(
    about: SubjectSummary,
    draws: Draws,
    measures: Measures,
    error: float,
    difference: float,
    warnings: tuple[str, ...],
) -> AuditReport:
    """The report on draws of topics and on measures, as far as they are done."""
    defined = [one for one in measures if one["undefined"] is None]
    rates = [row for measure in about.measures for row in _rates(about, measure, draws)]
    subsets = [row for measure in about.measures for row in _subsets(measure, draws, defined)]
    lasting = {measure: _lasting(rates, measure, error) for measure in about.measures} if draws else {}
    tables = (_rate_table(rates), _subset_table(subsets), _topic_table(about, defined), _sizes_table(defined))
    return AuditReport(
        verdict=tuple(
            sentence
            for measure in about.measures
            for sentence in (
                *_swapping(about, measure, lasting.get(measure), error),
                *_choosing(about, measure, subsets, defined),
                *_looking(about, measure, defined, difference),
            )
        ),
        numbers=_numbers(about, lasting, measures),
        tables=tables,
        plots=_plots(error),
        reading=READING,
        undefined=tuple(_undefined(about, draws, lasting, measures, error)),
        warnings=warnings,
    )


Rate = tuple[str, float, int, int | None, int | None, float | None, float | None]
"""Measure, least difference of the bin, topics, pairs compared, swapped, rate, rate by the exponential."""


def _rates(about: SubjectSummary, measure: str, draws: Draws) -> Iterator[Rate]:
    """By bin and size; and by the exponential for all topics."""
    entries = [entry for draw in draws for entry in draw[measure]]
    if not entries:
        return
    sizes, width = sorted({entry["size"] for entry in entries}), entries[0]["width"]
    for place in range(len(entries[0]["compared"])):
        counts = {size: _counts(entries, size, place) for size in sizes}
        seen = {size: swapped / compared for size, (compared, swapped) in counts.items() if compared}
        fitted = decline([*seen], [*seen.values()], [float(counts[size][0]) for size in seen])
        for size, rate in seen.items():
            laid = None if fitted is None else fitted.at(size)
            yield measure, round(place * width, 9), size, *counts[size], rate, laid
        if fitted is not None and len(about.topics) not in seen:
            whole = len(about.topics)
            yield measure, round(place * width, 9), whole, None, None, None, fitted.at(whole)


def _counts(entries: Sequence[Mapping[str, Any]], size: int, place: int) -> tuple[int, int]:
    """Pairs compared and swapped, over all draws."""
    here = [entry for entry in entries if entry["size"] == size]
    compared, swapped = (sum(entry[name][place] for entry in here) for name in ("compared", "swapped"))
    return compared, swapped


def _lasting(rates: Sequence[Rate], measure: str, error: float) -> float | None:
    """The least difference from which on no bin has a greater rate with all topics; None: there is none."""
    whole = [(row[1], row[6]) for row in rates if row[0] == measure and row[3] is None]
    found = None
    for least, rate in sorted(whole, reverse=True):
        if rate is None or rate > error:
            break
        found = least
    return found


Subset = tuple[str, str, int, str | None, float | None, float | None, float | None]
"""Measure, chosen or drawn, how many topics, the one that is added, tau and its interval."""


def _subsets(measure: str, draws: Draws, defined: Measures) -> Iterator[Subset]:
    """How well chosen topics, and drawn ones, order the runs."""
    for one in defined:
        if one["measure"] == measure:
            for number, (topic, tau) in enumerate(one["chosen"], 1):
                yield measure, "chosen", number, topic, tau, None, None
    entries = [entry for draw in draws for entry in draw[measure]]
    for size in sorted({entry["size"] for entry in entries}):
        taus = spread([entry["tau"] for entry in entries if entry["size"] == size])
        yield measure, "drawn", size, None, taus.mean, taus.low, taus.high


def _enough(one: Mapping[str, Any]) -> int | None:
    """The least number of chosen topics that order the runs as all do."""
    taus = [tau for _, tau in one["chosen"]]
    return next((number for number, tau in enumerate(taus, 1) if tau is not None and tau >= STRONG), None)


def _swapping(about: SubjectSummary, measure: str, least: float | None, error: float) -> Iterator[str]:
    if least is not None:
        size = f"a difference of means of {least:g} or more" if least else "any difference of means"
        yield (
            f"{measure}: with {len(about.topics)} topics, {size} is turned round by other topics at most "
            f"{100 * error:g} times of 100 (extrapolated)."
        )


def _choosing(
    about: SubjectSummary, measure: str, subsets: Sequence[Subset], defined: Measures
) -> Iterator[str]:
    """How many topics would do, chosen or drawn."""
    alike = f"the order of all {len(about.topics)} (tau at least {STRONG})"
    for one in defined:
        if one["measure"] == measure and (enough := _enough(one)) is not None:
            topics = "1 topic" if enough == 1 else f"{enough} topics"
            yield f"{measure}: {topics}, if well chosen, {'has' if enough == 1 else 'have'} {alike}."
        elif one["measure"] == measure and (last := one["chosen"][-1][1]) is not None:
            chosen = f"{len(one['chosen'])} chosen topics"
            yield f"{measure}: {chosen} do not have {alike} yet; theirs is {last:.3f}."
    drawn = [(row[2], row[4]) for row in subsets if row[0] == measure and row[1] == "drawn"]
    if any(tau is not None for _, tau in drawn):
        enough = next((number for number, tau in drawn if tau is not None and tau >= STRONG), None)
        many = f"more than {drawn[-1][0]}" if enough is None else enough
        yield f"{measure}: of topics drawn at random, {many} have a tau of {STRONG} with all on average."


def _looking(about: SubjectSummary, measure: str, defined: Measures, difference: float) -> Iterator[str]:
    """What is found on so many topics, and which are hard."""
    for one in defined:
        if one["measure"] != measure:
            continue
        if one["detectable"] is not None:
            needed = "more than a million" if one["needed"] is None else one["needed"]
            wished = f"; one of {difference:g} takes {needed} topics" if one["usual"] else ""
            yield (
                f"{measure}: a true difference of {one['detectable']:.3g} is found on {len(about.topics)} "
                f"topics four times of five{wished}."
            )
        yield f"{measure}: {_hardest(about, one)}."


def _hardest(about: SubjectSummary, one: Mapping[str, Any]) -> str:
    if not any(of["spread"] for of in one["topics"]):
        return "no topic tells any runs apart"
    zero = _nobodys(about, one)
    hard = _named(about, one, lambda of: (of["median"], of["mean"]))
    telling = _named(about, one, lambda of: (-of["spread"],))
    nobody = f"; on {_count(zero)} all runs score 0" if zero else ""
    return f"the hardest topics are {hard} by their median score{nobody}; {telling} tell runs apart most"


def _nobodys(about: SubjectSummary, one: Mapping[str, Any]) -> list[str]:
    """The topics on which all runs score 0."""
    topics = zip(about.topics, one["topics"], strict=True)
    return [topic for topic, of in topics if of["zero"] == len(about.runs)]


def _named(about: SubjectSummary, one: Mapping[str, Any], key: Any) -> str:
    order = sorted(range(len(about.topics)), key=lambda place: (*key(one["topics"][place]), place))
    return ", ".join(about.topics[place] for place in order[:NAMED])


def _count(topics: Sequence[str]) -> str:
    return f"topic {topics[0]}" if len(topics) == 1 else f"{len(topics)} topics"


def _numbers(
    about: SubjectSummary, lasting: Mapping[str, float | None], measures: Measures
) -> dict[str, float | int | None]:
    """lasting(MEASURE), greedy(MEASURE)@N for every fifth N, and enough, needed, smallest, zero_topics."""
    found: dict[str, float | int | None] = {f"lasting({name})": least for name, least in lasting.items()}
    for one in measures:
        measure, none = one["measure"], one["undefined"] is not None
        chosen = [] if none else one["chosen"]
        for number in range(5, len(chosen) + 1, 5):
            found[f"greedy({measure})@{number}"] = chosen[number - 1][1]
        found[f"enough({measure})"] = None if none else _enough(one)
        found[f"needed({measure})"] = one.get("needed")
        found[f"smallest({measure})"] = one.get("detectable")
        found[f"zero_topics({measure})"] = None if none else len(_nobodys(about, one))
    return found


def _undefined(
    about: SubjectSummary, draws: Draws, lasting: Mapping[str, float | None], measures: Measures, error: float
) -> Iterator[str]:
    for measure, least in lasting.items():
        if least is None and any(draw[measure] for draw in draws):
            yield (
                f"lasting({measure}): no difference that was seen is extrapolated to a rate of {error:g} or "
                "less, or there are too few sizes"
            )
    for one in measures:
        if one["undefined"] is not None:
            yield f"{one['measure']}: {one['undefined']}"
        elif one["detectable"] is None:
            why = "no difference is found at so small an alpha" if one["variance"] else NO_SPREAD
            yield f"smallest({one['measure']}): {why}"
        elif not one["usual"]:
            yield f"needed({one['measure']}): the wished difference is of measures from 0 to 1, not of this"


def _rate_table(rates: Sequence[Rate]) -> ReportTable:
    columns = (
        MEASURE,
        Column("difference", "difference from", "of means on the first set; to that of the next bin"),
        Column("topics", "topics", "of each set"),
        Column("compared", "pairs compared", "over all draws; none where it is extrapolated"),
        Column("swapped", "swapped", "of them, by the second set"),
        Column("rate", "rate of swaps"),
        Column("fitted", "by the exponential", "a exp(-b topics) through the rates of the bin"),
    )
    return ReportTable("swaps", "Swaps by number of topics and difference", columns, tuple(rates))


def _subset_table(rows: Sequence[Subset]) -> ReportTable:
    columns = (
        MEASURE,
        Column("how", "how", "chosen one after another, or drawn at random"),
        Column("number", "topics"),
        Column("topic", "topic", "that is added"),
        Column("tau", "tau", "tau-b between means over these topics and over all; mean over the draws"),
        Column("low", "from", "95 per cent interval of the mean"),
        Column("high", "to", "95 per cent interval of the mean"),
    )
    return ReportTable("subsets", "How well some topics order the runs", columns, tuple(rows))


def _topic_table(about: SubjectSummary, defined: Measures) -> ReportTable:
    columns = (
        MEASURE,
        Column("topic", "topic"),
        Column("median", "median score", "over runs"),
        Column("mean", "mean score", "over runs"),
        Column("least", "least"),
        Column("greatest", "greatest"),
        Column("zero", "runs at 0"),
        Column("spread", "standard deviation", "of the runs"),
        Column("tau", "tau", "tau-b between the order of runs on the topic and that on all"),
    )
    rows = [
        (one["measure"], topic, *(of[column.name] for column in columns[2:]))
        for one in defined
        for topic, of in zip(about.topics, one["topics"], strict=True)
    ]
    return ReportTable("topics", "Each topic", columns, tuple(rows))


def _sizes_table(defined: Measures) -> ReportTable:
    columns = (
        MEASURE,
        Column("deviation", "deviation", "of differences between two runs over topics, pooled over pairs"),
        Column(
            "detectable", "difference that is found", "by a paired t-test on these topics, with chance 0.8"
        ),
        Column("needed", "topics needed", "for the wished difference; none where it is more than a million"),
    )
    rows = [(one["measure"], one["variance"] ** 0.5, one["detectable"], one["needed"]) for one in defined]
    return ReportTable("sizes", "How many topics a difference takes", columns, tuple(rows))


def _plots(error: float) -> tuple[Plot, ...]:
    return (
        Plot(
            "swaps",
            "How often other topics turn a difference round",
            "The rate of swaps by number of topics, a line for each bin of differences (its lower bound); "
            "the last points, with all topics, are extrapolated.",
            "curve",
            "swaps",
            "topics",
            "fitted",
            series="difference",
            domain=(0, 0.5),
            reference=error,
            facet="measure",
        ),
        Plot(
            "subsets",
            "How well some topics order the runs",
            "tau-b with the order of all topics: of topics chosen greedily, and of drawn ones with the 95 "
            "per cent interval of their mean.",
            "curve",
            "subsets",
            "number",
            "tau",
            series="how",
            low="low",
            high="high",
            reference=STRONG,
            facet="measure",
        ),
        Plot(
            "topics",
            "Hard topics, and topics that tell runs apart",
            "Median score over runs, and how far runs lie apart.",
            "points",
            "topics",
            "median",
            "spread",
            label="topic",
            facet="measure",
        ),
    )
