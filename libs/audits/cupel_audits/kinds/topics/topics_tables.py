"""Trial results and tables of the audit kind `topics`."""

from dataclasses import dataclass
from typing import Annotated, NotRequired, TypedDict

from cupel_audits.report import Heading, MeasureCell, TableSchema


class SwapDraw(TypedDict):
    """Two disjoint topic sets of one size.

    width: the width of a bin of differences. compared, swapped: numbers of pairs of runs by bin. tau: tau-b
    between the means over the first set and over all topics.
    """

    size: int
    width: float
    compared: list[int]
    swapped: list[int]
    tau: float | None


TopicChoice = tuple[str, float | None]
"""A selected topic, and tau between the means over the topics selected so far and over all topics."""


class TopicStatistics(TypedDict):
    """The scores of the runs on one topic.

    zero: number of runs that score 0. spread: standard deviation.
    """

    mean: float
    median: float
    least: float
    greatest: float
    zero: int
    spread: float
    tau: float | None


class MeasureTopics(TypedDict):
    """Statistics of the topics by one measure; JSON-serialisable.

    undefined: the reason why there is no result, or None. If it is not None, `chosen` and all fields after it
    are missing. notes: warnings. chosen: the greedy selection. topics: the statistics of each topic, in the
    order of the subject. variance: the variance of differences between two runs, pooled over pairs.
    detectable: the true difference that the t-test detects. usual: whether the measure has a range of about 0
    to 1, for which the parameter `difference` is meant. needed: the number of topics needed to detect this
    difference.
    """

    measure: str
    undefined: str | None
    notes: list[str]
    chosen: NotRequired[list[TopicChoice]]
    topics: NotRequired[list[TopicStatistics]]
    variance: NotRequired[float]
    detectable: NotRequired[float | None]
    usual: NotRequired[bool]
    needed: NotRequired[int | None]


class TopicsResult(TypedDict):
    """The result of a trial: either a draw, or one MeasureTopics.

    A draw gives the SwapDraws of each size by measure.
    """

    draw: NotRequired[dict[str, list[SwapDraw]]]
    measure: NotRequired[MeasureTopics]


TopicCell = Annotated[str, Heading("topic")]


@dataclass(frozen=True, kw_only=True)
class SwapRow:
    """The swap rate of one bin of differences for one size of topic sets."""

    measure: MeasureCell
    difference: Annotated[
        float, Heading("difference from", "smallest difference of means of the bin, on the first set")
    ]
    topics: Annotated[int, Heading("topics", "in each set")]
    compared: Annotated[int | None, Heading("pairs compared", "over all draws; empty if extrapolated")]
    swapped: Annotated[int | None, Heading("pairs swapped", "over all draws; empty if extrapolated")]
    rate: Annotated[float | None, Heading("swap rate")]
    fitted: Annotated[
        float | None, Heading("fitted rate", "a exp(-b topics), fitted to the rates of the bin")
    ]

    @property
    def is_extrapolated(self) -> bool:
        return self.compared is None


@dataclass(frozen=True, kw_only=True)
class RateRow:
    """The swap rate of one bin of differences.

    The rate is observed on the largest sets or extrapolated to all topics.
    """

    measure: MeasureCell
    which: Annotated[str, Heading("topics", "whether the rate is observed or extrapolated")]
    difference: Annotated[
        float, Heading("difference from", "smallest difference of means of the bin, on the first set")
    ]
    rate: Annotated[float | None, Heading("swap rate")]


@dataclass(frozen=True, kw_only=True)
class SubsetRow:
    """The correlation between the orders of runs on some topics and on all topics."""

    measure: MeasureCell
    how: Annotated[str, Heading("selection", "chosen: greedy; drawn: random")]
    number: Annotated[int, Heading("topics")]
    topic: Annotated[str | None, Heading("added topic")]
    tau: Annotated[
        float | None,
        Heading(
            "tau",
            "tau-b between means over these topics and over all topics; for random topics, its mean over "
            "the draws",
        ),
    ]
    low: Annotated[float | None, Heading("from", "95 per cent interval of the mean over the draws")] = None
    high: Annotated[float | None, Heading("to", "95 per cent interval of the mean over the draws")] = None


@dataclass(frozen=True, kw_only=True)
class TopicRow:
    """The scores of the runs on one topic by one measure."""

    measure: MeasureCell
    topic: TopicCell
    median: Annotated[float, Heading("median score", "over runs")]
    mean: Annotated[float, Heading("mean score", "over runs")]
    least: Annotated[float, Heading("lowest score")]
    greatest: Annotated[float, Heading("highest score")]
    zero: Annotated[int, Heading("runs with score 0")]
    spread: Annotated[float, Heading("standard deviation", "of the runs")]
    tau: Annotated[
        float | None, Heading("tau", "tau-b between the order of runs on the topic and on all topics")
    ]


@dataclass(frozen=True, kw_only=True)
class SizeRow:
    """Topic set sizes by one measure."""

    measure: MeasureCell
    deviation: Annotated[
        float, Heading("standard deviation", "of differences between two runs, pooled over pairs")
    ]
    detectable: Annotated[
        float | None,
        Heading("detectable difference", "by a paired t-test on these topics, with power 0.8"),
    ]
    needed: Annotated[
        int | None, Heading("topics needed", "for the given difference; empty if more than a million")
    ]


SWAPS = TableSchema.of("swaps", "Swap rates by number of topics and difference", SwapRow)
RATES = TableSchema.of("rates", "Swap rates by difference, observed and extrapolated", RateRow)
SWAP_CURVES = TableSchema.of("swap_curves", "Swap rates of some differences", SwapRow)
SUBSETS = TableSchema.of("subsets", "Orders of runs by subsets of the topics", SubsetRow)
TOPICS = TableSchema.of("topics", "Scores by topic", TopicRow)
SIZES = TableSchema.of("sizes", "Topic set sizes", SizeRow)
