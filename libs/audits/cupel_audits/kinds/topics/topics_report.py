"""The report of the audit kind `topics`."""

from collections.abc import Iterator, Mapping, Sequence

from cupel_audits.analysis.run_orders import STRONG, STRONG_IN_PAIRS, summarise_repeats
from cupel_audits.kinds.topics.topics_findings import TopicsFindings, name_first, sufficient, zero_topics
from cupel_audits.kinds.topics.topics_tables import (
    RATES,
    SIZES,
    SUBSETS,
    SWAP_CURVES,
    SWAPS,
    TOPICS,
    MeasureTopics,
    SizeRow,
    SubsetRow,
    SwapDraw,
    SwapRow,
    TopicRow,
)
from cupel_audits.report import AuditReport
from cupel_audits.subject import SubjectSummary
from cupel_measures.comparing.swap_rates import fit_decline
from cupel_measures.comparing.topic_sets.detectable_differences import (
    is_undetectable,
    range_of_means,
    warn_of_undetectable,
)

READING = (
    "The swap rate is the share of differences of a given size that another set of as many topics reverses. "
    "Rates for more than half of the topics are extrapolated by an exponential and are only a guide. Runs of "
    "the same team resemble each other, so rates for runs of different teams may be higher.",
    "Voorhees and Buckley (SIGIR 2002) found swap rates on TREC that were larger than expected. Topic set "
    "sizes by a t-test refer to a true difference. The observed difference may be larger or smaller by "
    "chance.",
    "Topics are selected with all scores known, so they order these runs well and may order other runs worse "
    "(Guiver et al., TOIS 2009). The result shows how few topics order these runs nearly as all do. It does "
    f"not show which topics to create. {STRONG_IN_PAIRS}.",
    "A topic on which all runs score 0 has no relevant document, or no run retrieves one that scores by this "
    "measure. It lowers the means of all runs alike. A topic with a low tau orders the runs differently from "
    "all topics.",
)

ONE_TEST = "(a single test, at the spread pooled over all pairs of these runs)"
"""The condition of numbers of topics and differences by the t-test."""
NO_SPREAD = "the differences between runs have no variance"


Draws = Sequence[Mapping[str, Sequence[SwapDraw]]]


def report(
    about: SubjectSummary,
    draws: Draws,
    measures: Sequence[MeasureTopics],
    *,
    error: float,
    difference: float,
    alpha: float,
    warnings: tuple[str, ...],
) -> AuditReport:
    """Return the report on the draws and measures that are done."""
    defined = {result["measure"]: result for result in measures if result["undefined"] is None}
    rates = [row for measure in about.measures for row in _swap_rows(about, measure, draws)]
    subsets = [row for measure in about.measures for row in _subset_rows(measure, draws, defined)]
    lasting = {
        measure: _lasting_difference(rates, measure, error) for measure in (about.measures if draws else ())
    }
    findings = TopicsFindings(
        about=about, error=error, rates=rates, lasting=lasting, subsets=subsets, measures=[*defined.values()]
    )
    return AuditReport(
        verdict=tuple(
            sentence
            for measure in about.measures
            for sentence in (
                *_swap_sentences(about, measure, lasting.get(measure), _bin_width(draws, measure), error),
                *_subset_sentences(about, measure, subsets, defined.get(measure)),
                *_topic_sentences(about, defined.get(measure), difference, alpha),
            )
        ),
        numbers=_numbers(about, lasting, measures),
        tables=(
            SWAPS.table(rates),
            SUBSETS.table(subsets),
            TOPICS.table(row for result in defined.values() for row in _topic_rows(about, result)),
            SIZES.table(map(_size_row, defined.values())),
            RATES.table(findings.rates_by_difference),
            SWAP_CURVES.table(findings.swap_curves),
        ),
        plots=findings.plots,
        reading=READING,
        undefined=tuple(_undefined(draws, lasting, measures, error)),
        warnings=(
            *warnings,
            *(
                f"{result['measure']}: {warning}"
                for result in defined.values()
                for warning in warn_of_undetectable(
                    range_of_means(result["measure"]), result["detectable"], alpha
                )
            ),
        ),
        actions=tuple(findings.advice(difference, alpha)),
    )


def _swap_rows(about: SubjectSummary, measure: str, draws: Draws) -> Iterator[SwapRow]:
    """Yield the rates by bin and size, and the rate extrapolated to all topics."""
    by_draw = [entry for draw in draws for entry in draw[measure]]
    if not by_draw:
        return
    topics = len(about.topics)
    for place in range(len(by_draw[0]["compared"])):
        least = round(place * by_draw[0]["width"], 9)
        counts = _count_pairs(by_draw, place)
        rates = {size: swapped / compared for size, (compared, swapped) in counts.items()}
        weights = [float(compared) for compared, _ in counts.values()]
        curve = fit_decline([*rates], [*rates.values()], weights)
        for size, (compared, swapped) in counts.items():
            yield SwapRow(
                measure=measure,
                difference=least,
                topics=size,
                compared=compared,
                swapped=swapped,
                rate=rates[size],
                fitted=None if curve is None else curve.at(size),
            )
        if curve is not None and topics not in rates:
            yield SwapRow(
                measure=measure,
                difference=least,
                topics=topics,
                compared=None,
                swapped=None,
                rate=None,
                fitted=curve.at(topics),
            )


def _count_pairs(draws: Sequence[SwapDraw], place: int) -> dict[int, tuple[int, int]]:
    """Return the numbers of compared and of swapped pairs in one bin, for each size.

    The numbers are sums over all draws.
    """
    counts = {}
    for size in sorted({draw["size"] for draw in draws}):
        same = [draw for draw in draws if draw["size"] == size]
        if compared := sum(draw["compared"][place] for draw in same):
            counts[size] = compared, sum(draw["swapped"][place] for draw in same)
    return counts


def _bin_width(draws: Draws, measure: str) -> float:
    """Return the width of a bin of differences, 0 if no sets were drawn."""
    return next((entry["width"] for draw in draws for entry in draw[measure]), 0.0)


def _lasting_difference(rates: Sequence[SwapRow], measure: str, error: float) -> float | None:
    """Return the difference from which on extrapolated swap rates are acceptable.

    The rates are extrapolated to all topics. The difference is the lower bound of a bin. The rates of this
    bin and of all bins of larger differences are at most `error`.
    """
    lasting = None
    rows = [row for row in rates if row.measure == measure and row.is_extrapolated]
    for row in sorted(rows, key=lambda row: row.difference, reverse=True):
        if row.fitted is None or row.fitted > error:
            break
        lasting = row.difference
    return lasting


def _subset_rows(measure: str, draws: Draws, defined: Mapping[str, MeasureTopics]) -> Iterator[SubsetRow]:
    selected = defined[measure]["chosen"] if measure in defined else []
    for number, (topic, tau) in enumerate(selected, 1):
        yield SubsetRow(measure=measure, how="chosen", number=number, topic=topic, tau=tau)
    by_draw = [entry for draw in draws for entry in draw[measure]]
    for size in sorted({entry["size"] for entry in by_draw}):
        taus = summarise_repeats([entry["tau"] for entry in by_draw if entry["size"] == size])
        yield SubsetRow(
            measure=measure,
            how="drawn",
            number=size,
            topic=None,
            tau=taus.mean,
            low=taus.low,
            high=taus.high,
        )


def _topic_rows(about: SubjectSummary, result: MeasureTopics) -> Iterator[TopicRow]:
    for topic, scores in zip(about.topics, result["topics"], strict=True):
        yield TopicRow(measure=result["measure"], topic=topic, **scores)


def _size_row(result: MeasureTopics) -> SizeRow:
    return SizeRow(
        measure=result["measure"],
        deviation=result["variance"] ** 0.5,
        detectable=result["detectable"],
        needed=result["needed"],
    )


def _swap_sentences(
    about: SubjectSummary, measure: str, least: float | None, width: float, error: float
) -> Iterator[str]:
    """Yield a sentence on the bins of differences that are rarely reversed.

    width: the width of a bin.
    """
    if least is not None:
        topics = len(about.topics)
        bins = (
            f"each bin of observed differences from {least:g} up"
            if least
            else f"every bin of observed differences, the smallest (0 to {width:g}) included,"
        )
        yield (
            f"{measure}: with {topics} topics, among these runs, pairs in {bins} are estimated to be "
            f"reversed by at most {100 * error:g}% of other sets of {topics} topics (mean of the bin, "
            "extrapolated)."
        )


def _subset_sentences(
    about: SubjectSummary, measure: str, subsets: Sequence[SubsetRow], result: MeasureTopics | None
) -> Iterator[str]:
    """Yield sentences on the number of topics that suffices.

    The numbers of random topics and of selected topics are given.
    """
    if result is not None:
        yield from _selection_sentence(about, result)
    drawn = [row for row in subsets if row.measure == measure and row.how == "drawn"]
    if any(row.tau is not None for row in drawn):
        tau = "the mean tau with the order by all topics"
        enough = next((row.number for row in drawn if row.tau is not None and row.tau >= STRONG), None)
        if enough is None:
            most = drawn[-1].number
            yield f"{measure}: with up to {most} random topics, {tau} is below {STRONG}."
        else:
            topics = "1 random topic" if enough == 1 else f"{enough} random topics"
            yield f"{measure}: with {topics}, {tau} is {STRONG} or more."


def _selection_sentence(about: SubjectSummary, result: MeasureTopics) -> Iterator[str]:
    measure, enough, number = result["measure"], sufficient(result["chosen"]), len(result["chosen"])
    number = number if enough is None else enough
    tau = result["chosen"][number - 1][1]
    if tau is not None:
        topics = "1 topic" if number == 1 else f"{number} topics"
        yield (
            f"{measure}: tau of {topics}, selected for these runs, with the order by all "
            f"{len(about.topics)} is {tau:.3f}."
        )


def _topic_sentences(
    about: SubjectSummary, result: MeasureTopics | None, difference: float, alpha: float
) -> Iterator[str]:
    """Yield sentences on the difference that the t-test detects, and on hard topics."""
    if result is None:
        return
    test = f"{result['measure']}: a paired t-test on {len(about.topics)} topics at alpha {alpha:g} detects"
    if is_undetectable(range_of_means(result["measure"]), result["detectable"]):
        yield f"{test} no possible true difference with power 0.8 {ONE_TEST}."
    elif result["detectable"] is not None:
        needed = "more than a million" if result["needed"] is None else result["needed"]
        given = f"; a true difference of {difference:g} needs {needed} topics" if result["usual"] else ""
        yield f"{test} a true difference of {result['detectable']:.3g} with power 0.8{given} {ONE_TEST}."
    yield f"{result['measure']}: {_describe_topics(about, result)}."


def _describe_topics(about: SubjectSummary, result: MeasureTopics) -> str:
    if not any(scores["spread"] for scores in result["topics"]):
        return "all runs have the same score on each topic"
    zero = zero_topics(about, result)
    hard = name_first(about, result, lambda scores: (scores["median"], scores["mean"]))
    wide = name_first(about, result, lambda scores: (-scores["spread"],))
    where = "on topic " + zero[0] if len(zero) == 1 else f"on {len(zero)} topics"
    all_zero = f"; {where} all runs score 0" if zero else ""
    return (
        f"the topics with the lowest median scores are {hard}{all_zero}; the topics with the largest "
        f"standard deviations are {wide}"
    )


def _numbers(
    about: SubjectSummary, lasting: Mapping[str, float | None], measures: Sequence[MeasureTopics]
) -> dict[str, float | int | None]:
    """Return the numbers of each measure, such as lasting(MEASURE).

    greedy(MEASURE)@N is included for every fifth N.
    """
    numbers: dict[str, float | int | None] = {f"lasting({name})": least for name, least in lasting.items()}
    for result in measures:
        measure, is_defined = result["measure"], result["undefined"] is None
        chosen = result.get("chosen", [])
        for number, (_, tau) in enumerate(chosen, 1):
            if number % 5 == 0:
                numbers[f"greedy({measure})@{number}"] = tau
        numbers[f"enough({measure})"] = sufficient(chosen)
        numbers[f"needed({measure})"] = result.get("needed")
        numbers[f"smallest({measure})"] = result.get("detectable")
        numbers[f"zero_topics({measure})"] = len(zero_topics(about, result)) if is_defined else None
    return numbers


def _undefined(
    draws: Draws, lasting: Mapping[str, float | None], measures: Sequence[MeasureTopics], error: float
) -> Iterator[str]:
    for measure, least in lasting.items():
        if least is None and any(draw[measure] for draw in draws):
            yield (
                f"lasting({measure}): no observed difference has an extrapolated swap rate of {error:g} or "
                "less, or there are too few sizes"
            )
    for result in measures:
        if result["undefined"] is not None:
            yield f"{result['measure']}: {result['undefined']}"
        elif result["detectable"] is None:
            why = "alpha is too small to detect any difference" if result["variance"] else NO_SPREAD
            yield f"smallest({result['measure']}): {why}"
        elif not result["usual"]:
            yield f"needed({result['measure']}): the given difference applies only to measures from 0 to 1"
