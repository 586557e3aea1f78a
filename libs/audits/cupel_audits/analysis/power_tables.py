"""Tables, plots and advice of the audit kind `discriminative_power`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from cupel_audits.report import Heading, MeasureCell, Plot, TableSchema, name_some
from cupel_measures.comparing.topic_sets.detectable_differences import is_undetectable, range_of_means


@dataclass(frozen=True, kw_only=True)
class PowerRow:
    """The discriminative power of one measure."""

    measure: MeasureCell
    percent: Annotated[
        float | None, Heading("power in percent", "share of the pairs of runs that differ significantly")
    ]
    significant: Annotated[int | None, Heading("significant", "number of pairs that differ significantly")]
    pairs: Annotated[int | None, Heading("pairs", "number of pairs: S (S - 1) / 2 for S runs")]
    smallest: Annotated[float | None, Heading("smallest significant", "difference of means")]
    greatest: Annotated[float | None, Heading("largest not significant", "difference of means")]
    detectable: Annotated[
        float | None,
        Heading(
            "detectable difference",
            "true difference that a paired t-test at alpha detects on these topics with the given power "
            "(default: 0.8)",
        ),
    ]
    required: Annotated[
        float | None,
        Heading("required difference", "estimated difference of means that reaches an ASL below alpha"),
    ] = None


@dataclass(frozen=True, kw_only=True)
class PowerLevelRow:
    """The discriminative power of one measure at one significance level."""

    measure: MeasureCell
    alpha: Annotated[float, Heading("alpha")]
    percent: Annotated[float, Heading("power in percent", "share of the pairs with an ASL below alpha")]


@dataclass(frozen=True, kw_only=True)
class DesignRow:
    """The detectable difference of one measure for one number of topics."""

    measure: MeasureCell
    topics: Annotated[int, Heading("topics")]
    detectable: Annotated[
        float | None,
        Heading(
            "detectable difference",
            "true difference that a paired t-test at alpha detects on so many topics with the given power",
        ),
    ]


@dataclass(frozen=True, kw_only=True)
class LevelRow:
    """The achieved significance level of one pair of runs by one measure."""

    measure: MeasureCell
    rank: Annotated[
        int, Heading("rank of the pair", "1 for the largest ASL; ties are in the order of the runs")
    ]
    first: Annotated[str, Heading("first run")]
    second: Annotated[str, Heading("second run")]
    asl: Annotated[float, Heading("ASL", "achieved significance level")]


@dataclass(frozen=True, kw_only=True)
class AgreementRow:
    """The numbers of pairs of runs that differ significantly by two measures.

    The row also has the difference of the powers.
    """

    first: Annotated[str, Heading("first measure")]
    second: Annotated[str, Heading("second measure")]
    both: Annotated[int, Heading("both", "pairs that differ significantly by both, in the same direction")]
    only_first: Annotated[
        int, Heading("first only", "pairs that differ significantly by the first measure only")
    ]
    only_second: Annotated[
        int, Heading("second only", "pairs that differ significantly by the second measure only")
    ]
    opposite: Annotated[
        int, Heading("opposite", "pairs that differ significantly by both, in opposite directions")
    ]
    difference: Annotated[
        float, Heading("difference of power", "first minus second measure, in percentage points")
    ]
    low: Annotated[
        float | None, Heading("from", "95 per cent interval of the difference: sampling error of the topics")
    ]
    high: Annotated[
        float | None, Heading("to", "95 per cent interval of the difference: sampling error of the topics")
    ]


MEASURES = TableSchema.of("measures", "Discriminative power of each measure", PowerRow)
POWER_LEVELS = TableSchema.of("levels", "Power at other significance levels", PowerLevelRow)
AGREEMENT = TableSchema.of(
    "agreement", "Pairs of runs that differ significantly by two measures", AgreementRow
)
DESIGNS = TableSchema.of("designs", "Detectable difference by number of topics", DesignRow)
CURVE = TableSchema.of("asl", "Achieved significance level of each pair of runs", LevelRow)


def draw_plots(
    rows: Sequence[PowerRow],
    levels: Sequence[PowerLevelRow],
    designs: Sequence[DesignRow],
    *,
    alpha: float,
    power: float,
) -> tuple[Plot, ...]:
    """Return the plots; `alpha` and `power` are those of the detectable differences."""
    powers = [(row.percent, row.measure) for row in rows]
    return (
        Plot.bars(
            MEASURES,
            "power",
            title=power_title(powers, alpha),
            caption="Pairs of runs that differ significantly by each measure, in percent of all pairs.",
            x="measure",
            y="percent",
            domain=(0, 100),
        ),
        Plot.curve(
            POWER_LEVELS,
            "levels",
            title=_levels_title(levels),
            caption="Pairs of runs that differ significantly at each level, in percent of all pairs.",
            x="alpha",
            y="percent",
            series="measure",
            domain=(0, 100),
        ),
        Plot.curve(
            DESIGNS,
            "designs",
            title=_designs_title(designs, alpha, power),
            caption="True difference that a paired t-test at alpha detects with the given power.",
            x="topics",
            y="detectable",
            series="measure",
        ),
        Plot.curve(
            CURVE,
            "asl",
            title=power_title(powers, alpha, "of the pairs have an ASL"),
            caption="Achieved significance level (ASL) of each pair of runs, sorted.",
            x="rank",
            y="asl",
            series="measure",
            domain=(0, 1),
            reference=alpha,
            reference_label=f"alpha {alpha:g}",
        ),
    )


def power_title(powers: Sequence[tuple[float | None, str]], alpha: float, what: str = "") -> str:
    """Return a title with the highest and the lowest power.

    powers: the power of each measure in percent, with its name.

    An example is "40.0% of the pairs differ significantly by AP, 20.0% by P@10 (paired bootstrap test, alpha
    0.05, uncorrected)".
    """
    defined = sorted(((percent, name) for percent, name in powers if percent is not None), reverse=True)
    if not defined:
        return "The power is undefined for every measure"
    what = f"{what} below {alpha:g}" if what else "of the pairs differ significantly"
    high, low = defined[0][0], defined[-1][0]
    most, fewest = ([name for percent, name in defined if percent == end] for end in (high, low))
    lowest = "" if low == high else f", {low:.1f}% by {name_some(fewest, 'measures')}"
    return f"{high:.1f}% {what} by {name_some(most, 'measures')}{lowest} ({describe_test(alpha)})"


def describe_test(alpha: float) -> str:
    """Return the test that decides which pairs of runs differ significantly."""
    return f"paired bootstrap test, alpha {alpha:g}, uncorrected"


def _levels_title(levels: Sequence[PowerLevelRow]) -> str:
    """Return a title with the power of the first measure at the extreme alphas."""
    if not levels:
        return "The power is undefined for every measure"
    of_first = [row for row in levels if row.measure == levels[0].measure]
    low, high = min(of_first, key=lambda row: row.alpha), max(of_first, key=lambda row: row.alpha)
    return (
        f"By {low.measure}, {low.percent:.1f}% of the pairs differ significantly at alpha {low.alpha:g}, and "
        f"{high.percent:.1f}% at {high.alpha:g} (paired bootstrap test, uncorrected)"
    )


def _designs_title(designs: Sequence[DesignRow], alpha: float, power: float) -> str:
    """Return a title with the smallest detectable difference for the most topics."""
    defined = [row for row in designs if row.detectable is not None]
    if not defined:
        return "No detectable difference is defined"
    most = max(row.topics for row in defined)
    with_most = (row for row in defined if row.topics == most)
    possible = [row for row in with_most if not is_undetectable(range_of_means(row.measure), row.detectable)]
    best = min(possible, key=lambda row: row.detectable or 0, default=None)
    difference = (
        "no possible difference"
        if best is None
        else f"a true difference of {best.detectable:.3g} by {best.measure}"
    )
    return f"{most} topics detect {difference} (paired t-test, alpha {alpha:g}, power {power:g})"


def _describe_required(required: float, smallest: float | None, alpha: float, topics: int) -> str:
    """Return advice on which differences of means are, or may be, significant."""
    expected = (
        f"differences of means from about {required:.3f} are expected to be significant by the uncorrected "
        f"paired bootstrap test at alpha {alpha:g}, for these runs and {topics} topics"
    )
    if smallest is None or smallest >= required:
        return f"{expected}. Test the pair and report p."
    return f"{expected}; smaller ones, from {smallest:.3f} here, may be. Test the pair and report p."


NOT_BY_POWER_ALONE = (
    "Do not choose between measures by power alone. Where the interval of a difference includes 0, the "
    "difference is not established. A measure with high power may still measure the wrong thing."
)


def advise(
    rows: Sequence[PowerRow], agreement: Sequence[AgreementRow], *, alpha: float, topics: int
) -> Iterator[str]:
    """Yield what to do about differences that the topics cannot show."""
    for row in rows:
        if row.required is not None:
            yield f"{row.measure}: {_describe_required(row.required, row.smallest, alpha, topics)}"
    if any(row.detectable is not None for row in rows):
        yield (
            "Choose the number of topics of a new collection by the table of detectable differences, for a "
            "single test, if runs vary as here; several comparisons need more."
        )
    if any(row.low is not None and row.high is not None and row.low <= 0 <= row.high for row in agreement):
        yield NOT_BY_POWER_ALONE
