"""Audit kind `pool_depth`: judgments of shallower pools.

Source: Hui, PIKM 2014, section 3.2.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Annotated, ClassVar

from cupel_audits.analysis import sample_curves
from cupel_audits.analysis.pools import Depth, Pools, find_last_rank, tops_of
from cupel_audits.analysis.run_orders import STRONG, compare_orders
from cupel_audits.analysis.sample_curves import Axis, CurvePoint, SampleStep
from cupel_audits.declarations import Audit, audit, setting
from cupel_audits.report import AuditReport, Column, Heading, Plot, TableSchema
from cupel_audits.subject import AuditSubject, SubjectSummary
from cupel_measures.model import Ints

DEPTH = Column("depth", "pool depth", "number of top-ranked documents taken from each run")
AXIS = Axis(DEPTH, lambda depth, kept: f"a pool of depth {depth:g}", falling=True)
READING = (
    "The pools are built from the audited runs only. Judged documents that none of these runs ranks within "
    "the deepest depth, such as documents from other runs, lose their judgments at every depth.",
    "A shallow pool keeps the judgments of top-ranked documents, which affect the order of runs most. So "
    "tau is usually higher than in `downsampling` with the same number of judgments.",
)


class PoolDepthTrial(SampleStep):
    """The result at one depth; JSON-serialisable.

    kept: number of judged documents in the pool. documents: number of documents in the pool. share: size of
    the pool as a share of the deepest pool, mean over topics. relevant: the same share for relevant
    documents. deepest: depth of the deepest pool.
    """

    deepest: int
    documents: int
    share: float | None
    relevant: float | None


@audit(
    "pool_depth",
    title="Pool depth",
    answers="How deep must the pool be judged to preserve the order of runs?",
    source="Hui, PIKM 2014, section 3.2",
)
class PoolDepth(Audit):
    """Keeps only the judgments that a shallower pool would have, and ranks runs again.

    The pool of depth k is the union of the first k documents of all runs of a topic. For each k, the report
    gives the mean over topics of |pool_k| / |pool_K|, where K is the deepest depth. It gives the same share
    for relevant documents, over topics with a relevant document in pool_K. It also gives tau-b between the
    runs' scores under the judged documents of pool_k and under all judgments. A document is relevant if it is
    relevant to some subtopic. If the collection has no judgments by subtopic, a document is relevant if it is
    relevant for the first aspect.
    """

    removes_judgments: ClassVar[bool] = True

    deepest: Depth = setting(20, "deepest depth K; all depths from 1 to K are evaluated")

    def ranking_depth(self) -> int:
        return self.deepest

    def trials(self, subject: AuditSubject) -> int:
        """Return the number of depths.

        The depths are all from 1 to the deepest rank of any run, at most `deepest`.
        """
        return min(self.deepest, find_last_rank(tops_of(subject)))

    def run_trials(self, subject: AuditSubject, seed: int, trials: Sequence[int]) -> Iterator[PoolDepthTrial]:
        pools = Pools.of(subject)
        for trial in trials:
            yield self._trial(subject, pools, trial + 1)

    def _trial(self, subject: AuditSubject, pools: Pools, depth: int) -> PoolDepthTrial:
        deepest = self.trials(subject)
        pool, full_pool = pools.pooled(depth), pools.pooled(deepest)
        kept = pools.mask(pool & pools.judged)
        means = subject.means_under(subject.evaluator.restricted_to(kept))
        return {
            "deepest": deepest,
            "kept": int(kept.sum()),
            "documents": int(pool.sum()),
            "share": _mean_share(pools.count_by_topic(pool), pools.count_by_topic(full_pool)),
            "relevant": _mean_share(
                *(pools.count_by_topic(some & pools.relevant) for some in (pool, full_pool))
            ),
            "orders": compare_orders(subject.means, means),
        }

    def report(self, about: SubjectSummary, results: Mapping[int, PoolDepthTrial]) -> AuditReport:
        trials = list(results.values())
        depths, deepest = [trial + 1 for trial in results], trials[0]["deepest"]
        report = sample_curves.report(about, AXIS, depths, [trials], READING)
        points = sample_curves.points_of(about, AXIS, depths, [trials])
        pools = [_pool_row(depth, trial) for depth, trial in zip(depths, trials, strict=True)]
        return replace(
            report,
            verdict=(*report.verdict, *_describe_cost(points, pools, deepest)),
            numbers={**report.numbers, **_numbers(pools)},
            tables=(*report.tables, POOLS.table(pools)),
            plots=(*report.plots, _plot(pools, deepest)),
            actions=(*report.actions, _advice(points, deepest)),
            warnings=(*report.warnings, *_judged_outside(about, results, deepest)),
        )


def _mean_share(part: Ints, total: Ints) -> float | None:
    """Return the mean of part / total over the topics whose total is not 0.

    The result is None if all totals are 0.
    """
    shares = [a / b for a, b in zip(part.tolist(), total.tolist(), strict=True) if b]
    return math.fsum(shares) / len(shares) if shares else None


@dataclass(frozen=True, kw_only=True)
class PoolRow:
    """The size of the pool of one depth."""

    depth: Annotated[int, Heading("pool depth", "number of top-ranked documents taken from each run")]
    documents: Annotated[int, Heading("documents", "in the pool over all topics, judged or not")]
    judged: Annotated[int, Heading("judged", "judged documents of the pool")]
    share: Annotated[float | None, Heading("share of the deepest pool", "mean over topics")]
    relevant: Annotated[
        float | None,
        Heading(
            "share of its relevant documents",
            "of the deepest pool; mean over topics with a relevant document in that pool",
        ),
    ]


POOLS = TableSchema.of("pools", "Size of shallower pools", PoolRow)
MOST_RELEVANT = 0.9
"""The title of the plot names the shallowest pool that contains this share of the relevant documents."""


def _plot(pools: Sequence[PoolRow], deepest: int) -> Plot:
    return Plot.points(
        POOLS,
        "relevant",
        title=_title(pools, deepest),
        caption="Share of the deepest pool to judge (x) and share of its relevant documents (y), by depth. "
        "Above the diagonal, shallow pools find relevant documents with less effort than deep ones.",
        x="share",
        y="relevant",
        label="depth",
        domain=(0.0, 1.0),
    )


def _title(pools: Sequence[PoolRow], deepest: int) -> str:
    for row in sorted(pools, key=lambda row: row.depth):
        if row.share is not None and row.relevant is not None and row.relevant >= MOST_RELEVANT:
            return (
                f"On average, a pool of depth {row.depth} contains {row.relevant:.0%} of the relevant "
                f"documents of a pool of depth {deepest}, in {row.share:.0%} of its size"
            )
    return f"No pool contains {MOST_RELEVANT:.0%} of the relevant documents of a pool of depth {deepest}"


def _advice(points: Sequence[CurvePoint], deepest: int) -> str:
    """Return advice on the depth to judge."""
    shallowest = _shallowest_strong(points)
    if shallowest is None or shallowest == deepest > 1:
        weak = deepest if shallowest is None else deepest - 1
        how = f"deeper than {deepest}" if shallowest is None else f"to depth {deepest} or deeper"
        return (
            f"Judge {how}: at depth {weak}, tau of some measure is below {STRONG} or "
            "undefined. Set `deepest` to a greater depth to see whether the order is stable there."
        )
    return (
        f"If the effort is limited, judge to depth {shallowest:g}, where tau of every measure is at least "
        f"{STRONG}. Run `cupel audit leave_one_team_out` to see whether such a pool is fair to new runs."
    )


def _pool_row(depth: int, trial: PoolDepthTrial) -> PoolRow:
    return PoolRow(
        depth=depth,
        documents=trial["documents"],
        judged=trial["kept"],
        share=trial["share"],
        relevant=trial["relevant"],
    )


def _numbers(pools: Sequence[PoolRow]) -> dict[str, float | int | None]:
    """Return pool@DEPTH and relevant@DEPTH, the shares of the deepest pool."""
    numbers: dict[str, float | int | None] = {}
    for row in pools:
        numbers |= {f"pool@{row.depth}": row.share, f"relevant@{row.depth}": row.relevant}
    return numbers


def _shallowest_strong(points: Sequence[CurvePoint]) -> float | None:
    """Return the depth down to which tau of every measure is at least STRONG.

    The result is None if no depth fulfils this.
    """
    taus: dict[float, list[float | None]] = {}
    for point in points:  # points are sorted by depth, deepest first
        taus.setdefault(point.step, []).append(point.tau.mean)
    strong = takewhile(lambda depth: all(tau is not None and tau >= STRONG for tau in taus[depth]), taus)
    return min(strong, default=None)


def _describe_cost(points: Sequence[CurvePoint], pools: Sequence[PoolRow], deepest: int) -> Iterator[str]:
    """Yield a sentence on the shallowest pool with a high tau of every measure.

    It is the pool down to which tau of every measure is at least STRONG.
    """
    shallowest = _shallowest_strong(points)
    for row in pools:
        if row.depth == shallowest and row.share is not None and row.relevant is not None:
            yield (
                f"Down to depth {row.depth}, tau of every measure is at least {STRONG}. The pool of this "
                f"depth has on average {row.share:.0%} of the documents of a topic's pool of depth "
                f"{deepest}, and {row.relevant:.0%} of its relevant documents."
            )


def _judged_outside(
    about: SubjectSummary, results: Mapping[int, PoolDepthTrial], deepest: int
) -> Iterator[str]:
    """Yield a warning if some judged documents are not in the deepest pool.

    The warning needs the result for the deepest pool.
    """
    last = results.get(deepest - 1)
    outside = 0 if last is None else about.judged - last["kept"]
    if outside:
        yield (
            f"{outside} of {about.judged} judged documents are not in the top {deepest} of any audited "
            f"run. They have no judgment at any depth, so tau can be below 1 at depth {deepest} too."
        )
