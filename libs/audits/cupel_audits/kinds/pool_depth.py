"""`pool_depth`: the pool of fewer first documents of each run (Hui, PIKM 2014; spec 7.2)."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any

from cupel_audits.analysis import sample_curves
from cupel_audits.analysis.pools import Depth, Pools, held, tops_of
from cupel_audits.analysis.run_orders import STRONG, compare_orders
from cupel_audits.declarations import Audit, audit, setting
from cupel_audits.report import AuditReport, Column, Plot, ReportTable
from cupel_audits.subject import AuditSubject, SubjectSummary
from cupel_measures.model import Ints

DEPTH = Column("depth", "pool depth", "how many first documents of each run")
AXIS = sample_curves.Axis(DEPTH, "a pool of depth {:g}", falling=True)
READING = (
    "The pool is that of the runs audited here. Judged documents that none of them has among its first ones, "
    "such as those of runs that are not here, lose their judgments at every depth.",
    "A shallow pool has judgments where they tell most, so that its curve falls later than that of "
    "`downsampling` with as many judgments.",
)


@audit(
    "pool_depth",
    title="Pool depth",
    answers="How deep does the pool have to be judged for the order of runs to stay?",
    source="Hui, PIKM 2014, section 3.2 (spec 7.2)",
)
class PoolDepth(Audit):
    """Keeps only the judgments that a shallower pool would have had, and ranks the runs again.

    The pool of depth k is the union of the first k documents of all runs of a topic. Told for each k: the
    mean over topics of |pool_k| / |pool_K|, K being the deepest; the same of relevant documents, over topics
    that have one in pool_K; and tau between the runs' scores under the judged documents of pool_k and under
    all judgments. Relevant is what is relevant to some subtopic, else for the first aspect.
    """

    deepest: Depth = setting(20, "the depth K that shares are of; all from 1 up to it are tried")

    def problems(self, subject: AuditSubject) -> Iterator[str]:
        yield from super().problems(subject)
        if not subject.about.relevant:
            yield "no document is judged relevant: there is nothing to lose that would matter"

    def ranking_depth(self) -> int:
        return self.deepest

    def trials(self, subject: AuditSubject) -> int:
        """One for each depth, from 1, as far as some run goes."""
        return min(self.deepest, held(tops_of(subject)))

    def run_trials(self, subject: AuditSubject, seed: int, trials: Sequence[int]) -> Iterator[Any]:
        pools = Pools.of(subject)
        for trial in trials:
            yield self._trial(subject, pools, trial + 1)

    def _trial(self, subject: AuditSubject, pools: Pools, depth: int) -> dict[str, Any]:
        deepest = self.trials(subject)
        pool, whole = pools.pooled(depth), pools.pooled(deepest)
        kept = pools.mask(pool & pools.judged)
        means = subject.means_under(subject.evaluator.keeping(kept))
        return {
            "deepest": deepest,
            "kept": int(kept.sum()),
            "documents": int(pool.sum()),
            "share": _share(pools.by_topic(pool), pools.by_topic(whole)),
            "relevant": _share(*(pools.by_topic(one & pools.relevant) for one in (pool, whole))),
            "orders": compare_orders(subject.means, means),
        }

    def report(self, about: SubjectSummary, found: Mapping[int, Any]) -> AuditReport:
        depths = [trial + 1 for trial in found]
        report = sample_curves.report(about, AXIS, depths, [list(found.values())], READING)
        pools = _pools(depths, list(found.values()))
        deepest = next(iter(found.values()))["deepest"]
        return replace(
            report,
            verdict=(*report.verdict, *_cost(report, pools, deepest)),
            numbers={**report.numbers, **_numbers(pools)},
            tables=(*report.tables, pools),
            plots=(*report.plots, *PLOTS),
            warnings=(*report.warnings, *_outside(about, found.get(deepest - 1), deepest)),
        )


def _share(part: Ints, whole: Ints) -> float | None:
    """The mean over topics with a whole of its part; None where no topic has one."""
    shares = [a / b for a, b in zip(part.tolist(), whole.tolist(), strict=True) if b]
    return math.fsum(shares) / len(shares) if shares else None


def _pools(depths: Sequence[int], found: Sequence[Any]) -> ReportTable:
    columns = (
        DEPTH,
        Column("documents", "documents", "of the pool, in all topics, judged or not"),
        Column("judged", "judged", "of them"),
        Column("share", "share of the deepest pool", "mean over topics"),
        Column("relevant", "share of its relevant documents", "mean over topics that have some"),
    )
    rows = [
        (depth, one["documents"], one["kept"], one["share"], one["relevant"])
        for depth, one in zip(depths, found, strict=True)
    ]
    return ReportTable("pools", "What a shallower pool holds", columns, tuple(rows))


PLOTS = (
    Plot(
        "relevant",
        "Relevant documents for the effort",
        "Share of the deepest pool to judge, and share of its relevant documents in it; a point a depth.",
        "points",
        "pools",
        "share",
        "relevant",
        label="depth",
        domain=(0.0, 1.0),
    ),
)  # fmt: skip


def _numbers(pools: ReportTable) -> dict[str, Any]:
    """pool@DEPTH and relevant@DEPTH, shares of those of the deepest."""
    found: dict[str, Any] = {}
    for depth, _, _, share, relevant in pools.rows:
        found |= {f"pool@{depth}": share, f"relevant@{depth}": relevant}
    return found


def _cost(report: AuditReport, pools: ReportTable, deepest: int) -> Iterator[str]:
    """What the least depth takes and finds down to which every measure keeps the order."""
    taus: dict[Any, list[Any]] = {}
    for row in report.table("points").rows:  # the deepest first
        taus.setdefault(row[1], []).append(row[3])
    holding = list(takewhile(lambda depth: all(t is not None and t >= STRONG for t in taus[depth]), taus))
    for depth, _, _, share, relevant in pools.rows:
        if depth == min(holding, default=None) and share is not None and relevant is not None:
            yield (
                f"Depth {depth}, the least down to which every order holds, is {share:.0%} of the documents "
                f"of depth {deepest}, and finds {relevant:.0%} of their relevant ones."
            )


def _outside(about: SubjectSummary, last: Any, deepest: int) -> Iterator[str]:
    missing = about.judged - last["kept"] if last else 0
    if missing:
        yield (
            f"{missing} of {about.judged} judged documents are among the first {deepest} of no run here: "
            f"they have no judgment at any depth, so that tau may be below 1 at depth {deepest} too."
        )
