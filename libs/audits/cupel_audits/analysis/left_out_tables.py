"""Tables, plots and advice of audits that leave runs out of the pool."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from cupel_audits.analysis.named_extremes import name_tied
from cupel_audits.analysis.run_orders import TAU
from cupel_audits.report import Heading, MeasureCell, Plot, RunCell, TableSchema
from cupel_audits.subject import SubjectSummary

LeftOutCell = Annotated[str, Heading("left out")]


@dataclass(frozen=True, kw_only=True)
class LeftOutRun:
    """The score and rank of a run by one measure, when it is pooled and when left out."""

    measure: MeasureCell
    left: LeftOutCell
    run: RunCell
    before: Annotated[float, Heading("score in the pool")]
    after: Annotated[float, Heading("score left out")]
    change: Annotated[float, Heading("change of score")]
    rank: Annotated[int, Heading("rank in the pool")]
    outside: Annotated[int, Heading("rank left out")]
    places: Annotated[int, Heading("ranks lost", "below 0: ranks gained")]


@dataclass(frozen=True, kw_only=True)
class FairnessRow:
    """The losses of rank and score by one measure, over all runs that were left out."""

    measure: MeasureCell
    tau: Annotated[float | None, Heading("tau", f"{TAU}, mean")]
    least: Annotated[float | None, Heading("least tau")]
    places: Annotated[float | None, Heading("ranks lost", "mean over the runs, each when it is left out")]
    worst: Annotated[int, Heading("most ranks lost")]
    run: Annotated[str, Heading("by")]
    change: Annotated[float | None, Heading("change of score", "mean over the runs")]
    greatest: Annotated[float, Heading("greatest loss of score")]


@dataclass(frozen=True, kw_only=True)
class LeftOutOrder:
    """The order of all runs by one measure, with one group left out."""

    left: LeftOutCell
    measure: MeasureCell
    tau: Annotated[float | None, Heading("tau", TAU)]
    lost: Annotated[int, Heading("judgments lost")]


@dataclass(frozen=True)
class ContributionRow:
    """The documents that one group alone contributes to a pool."""

    left: LeftOutCell
    depth: Annotated[int, Heading("pool depth")]
    judged: Annotated[
        int, Heading("judged", "judged documents that no other run or team contributes to the pool")
    ]
    relevant: Annotated[int, Heading("relevant", "relevant documents among them")]


@dataclass(frozen=True)
class UnjudgedShare:
    """The unjudged share of a run's first documents, when pooled and when left out."""

    run: RunCell
    depth: Annotated[int, Heading("depth")]
    before: Annotated[
        float | None, Heading("unjudged in the pool", "share of its first documents, mean over topics")
    ]
    after: Annotated[
        float | None, Heading("unjudged left out", "share of its first documents, mean over topics")
    ]


@dataclass(frozen=True)
class StageRank:
    """The rank of a run by one measure, when it is in the pool or when it is left out."""

    measure: MeasureCell
    run: RunCell
    stage: Annotated[str, Heading("stage")]
    rank: Annotated[int, Heading("rank")]


LEFT_OUT = {"run": "A run that is left out", "team": "A run whose team is left out"}
OUTSIDE = {"run": "that did not contribute to", "team": "of a team that did not contribute to"}
STAGES = ("in the pool", "left out")
POINTS = TableSchema.of("points", "Runs in the pool and left out of it", LeftOutRun)
SUMMARY = TableSchema.of("summary", "Fairness to runs from outside the pool", FairnessRow)
TAUS = TableSchema.of("taus", "Order of all runs when one run or team is left out", LeftOutOrder)
CONTRIBUTIONS = TableSchema.of(
    "contributions", "Documents that only one run or team contributes", ContributionRow
)
UNJUDGED = TableSchema.of("unjudged", "Unjudged share of the first documents", UnjudgedShare)
RANKS = TableSchema.of("stages", "Rank of each run, in the pool and left out of it", StageRank)


def advise(
    summary: Sequence[FairnessRow],
    contributions: Sequence[ContributionRow],
    group: str,
    *,
    is_explained: bool,
    is_tested: bool,
) -> Iterator[str]:
    """Yield what organisers and users of the collection can do.

    group: "run" or "team". is_explained: whether the runs explain enough judgments for a verdict on fairness.
    is_tested: whether some judgment was removed.
    """
    if not is_explained:
        yield (
            "Add the other runs that contributed to the pool and run the audit again. Without them, a "
            "verdict on fairness is not possible."
        )
    if any(row.worst > 0 for row in summary):
        yield (
            f"Before you score a run {OUTSIDE[group]} the pool, judge its unjudged documents: "
            "`cupel audit unjudged` lists those that matter most."
        )
    elif not is_tested:
        yield f"Add {group}s that retrieve different documents: these {group}s test nothing."
    elif is_explained and any(row.least is not None for row in summary):
        left = {"run": "it", "team": "its team"}[group]
        yield (
            f"By these measures, no run loses a rank when {left} is left out of the pool. Report the "
            "unjudged share of the first documents of new runs."
        )
    if any(row.judged for row in contributions):
        yield (
            f"Invite {group}s that retrieve different documents. The most that a single {group} contributes, "
            f"and no other, is {_most_contributed(contributions)}."
        )


def draw_plots(
    about: SubjectSummary,
    summary: Sequence[FairnessRow],
    contributions: Sequence[ContributionRow],
    group: str,
) -> tuple[Plot, ...]:
    return (
        Plot.changes(
            RANKS,
            "stages",
            title=_ranks_title(about, summary),
            caption="Rank of each run when it is in the pool and when it is left out of it.",
            x="stage",
            y="rank",
            series="run",
            facet="measure",
            x_order=STAGES,
        ),
        Plot.heatmap(
            TAUS,
            "taus",
            title=_taus_title(summary, group),
            caption=f"Order of all runs when one {group} is left out. {TAU}.",
            x="measure",
            y="left",
            value="tau",
            domain=(0.0, 1.0),
        ),
        Plot.bars(
            CONTRIBUTIONS,
            "contributions",
            title=_contributions_title(contributions, group),
            caption=f"Judged documents that no other {group} has among its first documents, by depth.",
            x="left",
            y="judged",
            series="depth",
        ),
    )


def _ranks_title(about: SubjectSummary, summary: Sequence[FairnessRow]) -> str:
    worst = max(summary, key=lambda row: row.worst)
    if worst.worst <= 0:
        return "No run loses a rank when it is left out of the pool"
    return (
        f"When left out, a run loses up to {worst.worst} of {len(about.runs)} ranks ({worst.run} by "
        f"{worst.measure})"
    )


def _taus_title(summary: Sequence[FairnessRow], group: str) -> str:
    defined = [(row.least, row.measure) for row in summary if row.least is not None]
    if not defined:
        return "No tau is defined"
    least, measure = min(defined)
    return f"Whichever {group} is left out, tau with the original order is at least {least:.2f} ({measure})"


def _contributions_title(contributions: Sequence[ContributionRow], group: str) -> str:
    most = max(contributions, key=lambda row: row.judged, default=None)
    if most is None or not most.judged:
        return f"No {group} alone contributes a judged document"
    return f"A {group} alone contributes up to {_most_contributed(contributions)}"


def _most_contributed(contributions: Sequence[ContributionRow]) -> str:
    """Return the largest number of judged documents that one group alone contributes.

    An example is "7 judged documents (run2 and 1 other, depth 5 or 10)".
    """
    most = max(row.judged for row in contributions)
    tied = [row for row in contributions if row.judged == most]
    depths = " or ".join(str(depth) for depth in sorted({row.depth for row in tied}))
    names = name_tied([*dict.fromkeys(row.left for row in tied)])
    return f"{most} judged {'document' if most == 1 else 'documents'} ({names}, depth {depths})"
