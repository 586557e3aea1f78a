"""Plots and advice of the audit kind `topics`."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from cupel_audits.analysis.run_orders import STRONG, STRONG_LABEL
from cupel_audits.kinds.topics.topics_tables import (
    RATES,
    SUBSETS,
    SWAP_CURVES,
    TOPICS,
    MeasureTopics,
    RateRow,
    SubsetRow,
    SwapRow,
    TopicChoice,
    TopicStatistics,
)
from cupel_audits.report import Plot
from cupel_audits.subject import SubjectSummary

NAMED_TOPICS = 3
"""Number of topics that a sentence names."""
DRAWN_BINS = 5
"""Number of bins of differences in the plot of swap rates by number of topics."""
MOST_CLAUSES = 2
"""The most measures that a title describes."""


@dataclass(frozen=True, kw_only=True)
class TopicsFindings:
    """The findings on all measures, with the plots that show them.

    error: acceptable swap rate. rates: swap rates of all measures. lasting: by measure, the smallest
    difference from which on the extrapolated swap rates are acceptable. measures: the defined results.
    """

    about: SubjectSummary
    error: float
    rates: Sequence[SwapRow]
    lasting: Mapping[str, float | None]
    subsets: Sequence[SubsetRow]
    measures: Sequence[MeasureTopics]

    @cached_property
    def rates_by_difference(self) -> list[RateRow]:
        """Return the rates observed on the largest drawn sets, and the extrapolated rates.

        Rates are extrapolated to all topics.
        """
        rows: list[RateRow] = []
        for measure in self.about.measures:
            of_measure = [row for row in self.rates if row.measure == measure]
            largest = max((row.topics for row in of_measure if not row.is_extrapolated), default=0)
            for row in of_measure:
                if row.is_extrapolated:
                    rows.append(self._rate(row, f"extrapolated to {row.topics} topics", row.fitted))
                elif row.topics == largest:
                    rows.append(self._rate(row, f"observed on {row.topics} topics", row.rate))
        return sorted(rows, key=lambda row: (self.about.measures.index(row.measure), row.which[0] == "e"))

    @staticmethod
    def _rate(row: SwapRow, which: str, rate: float | None) -> RateRow:
        return RateRow(measure=row.measure, which=which, difference=row.difference, rate=rate)

    @cached_property
    def swap_curves(self) -> list[SwapRow]:
        """Return the rates of some bins of each measure, for the plots.

        About DRAWN_BINS bins are chosen, up to the difference in `lasting`, if there is one.
        """
        rows: list[SwapRow] = []
        for measure in self.about.measures:
            of_measure = [row for row in self.rates if row.measure == measure]
            bins = list(dict.fromkeys(row.difference for row in of_measure if row.is_extrapolated))
            least = self.lasting.get(measure)
            last = bins.index(least) if least in bins else len(bins) - 1
            places = {round(last * step / (DRAWN_BINS - 1)) for step in range(DRAWN_BINS)}
            drawn = {bins[place] for place in places if 0 <= place < len(bins)}
            rows.extend(row for row in of_measure if row.difference in drawn)
        return rows

    @property
    def plots(self) -> tuple[Plot, ...]:
        acceptable = {"reference": self.error, "reference_label": f"acceptable: {100 * self.error:g}%"}
        return (
            Plot.curve(
                RATES,
                "rates",
                title=self._rates_title(),
                caption="Swap rate by difference of means: observed on the largest drawn sets of topics, and "
                "extrapolated to all topics. The verdict uses the extrapolated rates.",
                x="difference",
                y="rate",
                series="which",
                domain=(0, 0.5),
                facet="measure",
                **acceptable,  # type: ignore[arg-type]
            ),
            Plot.curve(
                SWAP_CURVES,
                "swaps",
                title=self._curves_title(),
                caption="Points are observed swap rates; lines are fitted to them by an exponential. Each "
                "line is a bin of differences, named by its lower bound. The end of a line, without a point, "
                "is extrapolated to all topics.",
                x="topics",
                y="fitted",
                observed="rate",
                series="difference",
                domain=(0, 0.5),
                facet="measure",
                **acceptable,  # type: ignore[arg-type]
            ),
            Plot.curve(
                SUBSETS,
                "subsets",
                title=self._subsets_title(),
                caption="tau-b with the order on all topics, for greedily selected topics and for random "
                "topics. The 95 per cent interval of the mean over the draws covers only the random error of "
                "drawing from these topics; it narrows with more draws.",
                x="number",
                y="tau",
                series="how",
                low="low",
                high="high",
                reference=STRONG,
                reference_label=STRONG_LABEL,
                facet="measure",
            ),
            Plot.points(
                TOPICS,
                "topics",
                title=self._topics_title(),
                caption="Median score and standard deviation over the runs, by topic.",
                x="median",
                y="spread",
                label="topic",
                facet="measure",
            ),
        )

    def _rates_title(self) -> str:
        clauses = [
            f"all bins of differences{f' from {least:g} up' if least else ''} by {measure}"
            for measure, least in self.lasting.items()
            if least is not None
        ]
        limit = f"a mean extrapolated swap rate of at most {100 * self.error:g}%"
        if not clauses:
            return "No lasting difference was found"
        return f"With {len(self.about.topics)} topics, {_join(clauses, ' and ')} have {limit}"

    def _curves_title(self) -> str:
        """Return a title on how far the rates of the smallest plotted differences fall."""
        if not self.swap_curves:
            return "No swap rate could be fitted"
        first = self.swap_curves[0]
        same = [
            row
            for row in self.swap_curves
            if (row.measure, row.difference) == (first.measure, first.difference) and row.fitted is not None
        ]
        if not same:
            return "No swap rate could be fitted"
        return (
            f"The fitted swap rate of the smallest differences by {first.measure} is {same[0].fitted:.0%} "
            f"with {same[0].topics} topic{'s' * (same[0].topics != 1)}, and {same[-1].fitted:.0%} with "
            f"{same[-1].topics}{' (extrapolated)' * same[-1].is_extrapolated}"
        )

    def _subsets_title(self) -> str:
        clauses = []
        for result in self.measures:
            chosen = sufficient(result["chosen"])
            drawn = next(
                (
                    row.number
                    for row in self.subsets
                    if (row.measure, row.how) == (result["measure"], "drawn") and (row.tau or 0) >= STRONG
                ),
                None,
            )
            most = max((row.number for row in self.subsets if row.how == "drawn"), default=0)
            random = f"more than {most}" if drawn is None else f"{drawn}"
            selected = f"more than {len(result['chosen'])}" if chosen is None else f"{chosen}"
            clauses.append(
                f"{selected} selected for these runs or {random} random (mean tau) by {result['measure']}"
            )
        if not clauses:
            return "No measure has a defined order"
        return f"Topics that reach a tau of {STRONG}: {_join(clauses)}"

    def _topics_title(self) -> str:
        if not self.measures:
            return "No measure has a defined order"
        result = self.measures[0]
        hard = name_first(self.about, result, lambda scores: (scores["median"], scores["mean"]))
        return f"Topics {hard} have the lowest median scores by {result['measure']}"

    def advice(self, difference: float, alpha: float) -> Iterator[str]:
        """Yield what to do.

        difference: the true difference that the t-test is to detect. alpha: its significance level.
        """
        if self.lasting:
            yield f"Test every difference with a paired test{self._describe_unsettled()}."
        topics = len(self.about.topics)
        scarce = [
            f"{result['needed']} topics in total by {result['measure']}"
            for result in self.measures
            if (result.get("needed") or 0) > topics
        ]
        if scarce:
            yield (
                f"To detect a true difference of {difference:g} by a single paired t-test at alpha {alpha:g} "
                "with power 0.8, at the spread pooled over all pairs of these runs, use "
                f"{_join(scarce, ', and ')}; there are {topics}."
            )
        zero = [
            (topic, result["measure"])
            for result in self.measures
            for topic in zero_topics(self.about, result)
        ]
        if zero:
            yield (
                f"Check topic {zero[0][0]}, on which all runs score 0 by {zero[0][1]}: it may lack relevant "
                "judgments, and it lowers all means."
            )
        yield (
            "Do not leave topics out because a selection of them orders these runs well: a selection with "
            "all scores known may order other runs worse."
        )

    def _describe_unsettled(self) -> str:
        """Return a clause on differences below which some swap rate is too high."""
        unsettled = [
            f"{least:g} ({measure})"
            for measure, least in self.lasting.items()
            if least and any(self._is_high(row) for row in self.rates if row.measure == measure)
        ]
        if not unsettled:
            return ""
        below = _join(unsettled, " and ")
        return f"; below {below}, the extrapolated swap rate of some exceeds {100 * self.error:g}%"

    def _is_high(self, row: SwapRow) -> bool:
        return row.is_extrapolated and row.fitted is not None and row.fitted > self.error


def _join(clauses: Sequence[str], comma: str = "; ") -> str:
    return comma.join(clauses[:MOST_CLAUSES]) + ("; …" if len(clauses) > MOST_CLAUSES else "")


def sufficient(selected: Sequence[TopicChoice]) -> int | None:
    """Return the smallest number of selected topics that gives a strong tau.

    Tau is between the orders on the selected topics and on all topics. It is strong if it is at least STRONG.
    """
    taus = [tau for _, tau in selected]
    return next((number for number, tau in enumerate(taus, 1) if tau is not None and tau >= STRONG), None)


def zero_topics(about: SubjectSummary, result: MeasureTopics) -> list[str]:
    """Return the topics on which all runs score 0."""
    topics = zip(about.topics, result["topics"], strict=True)
    return [topic for topic, scores in topics if scores["zero"] == len(about.runs)]


def name_first(
    about: SubjectSummary, result: MeasureTopics, key: Callable[[TopicStatistics], tuple[float, ...]]
) -> str:
    """Return the ids of the first topics when sorted by `key`.

    Topics with equal keys keep their order. Others that are tied with the last one are counted.
    """
    keys = [key(scores) for scores in result["topics"]]
    order = sorted(range(len(keys)), key=keys.__getitem__)
    named, more = order[:NAMED_TOPICS], order[NAMED_TOPICS:]
    tied = sum(keys[place] == keys[named[-1]] for place in more)
    others = f" and {tied} other{'s' * (tied > 1)}" if tied else ""
    return ", ".join(about.topics[place] for place in named) + others
