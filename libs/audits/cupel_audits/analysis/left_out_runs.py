"""How fair a collection is to runs from outside its pool: groups of runs are left out of it in turn.

A trial is a group, and its result: {"depth": of the pool, "runs": those of the group, "brought": by depth
the judged and the relevant documents that the group alone brings, "lost": documents that lose their
judgment, "tau": by measure, "scores", "ranks": by measure those of the group's runs, before and after,
"unjudged": by depth the shares of the group's runs, before and after}.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from cupel_audits.analysis.pool_contributions import Contributions, deepest, pool_depth, unjudged
from cupel_audits.analysis.pools import Depth, Depths, mean_of
from cupel_audits.analysis.run_orders import STRONG, TAU, ranks
from cupel_audits.analysis.sample_curves import MEASURE
from cupel_audits.declarations import Audit, setting
from cupel_audits.report import AuditReport, Cell, Column, Plot, ReportTable
from cupel_audits.subject import About, AuditSubject
from cupel_measures.comparing.correlation import tau_b
from cupel_measures.scoring.pool import Mask

Left = Sequence[tuple[str, Any]]
"""Who was left out, by name, and the result of that trial."""
FAIR = 0.05
"""A worst loss of this share of the places of the board (at least one place) is called fair."""


@dataclass(frozen=True, kw_only=True)
class LeaveOut(Audit):
    """What the two kinds share; `groups` says which runs are left out together."""

    depths: Depths = setting((10, 20, 50, 100), "depths to which unique documents are counted")  # noqa: RUF009
    depth: Depth | None = setting(None, "how deep the pool was judged (default: read off it)")  # noqa: RUF009

    def groups(self, subject: AuditSubject) -> list[int]:
        """The group of each run, from 0."""
        raise NotImplementedError

    def problems(self, subject: AuditSubject) -> Iterator[str]:
        yield from super().problems(subject)
        if not subject.about.relevant:
            yield "no document is judged relevant: there is nothing to lose that would matter"

    def trials(self, subject: AuditSubject) -> int:
        """One for each group."""
        return len(set(self.groups(subject)))

    def work(self, subject: AuditSubject, seed: int, trials: Sequence[int]) -> Iterator[Any]:
        groups = self.groups(subject)
        brought, most = Contributions.of(subject, groups), max(*self.depths, self.depth or 1)
        depth = self.depth or pool_depth(subject, most)
        depths = {depth, *(min(one, deepest(subject)) for one in self.depths)}
        owners = {one: brought.owner(one) for one in sorted(depths)}
        for group in trials:
            members = [run for run, of in enumerate(groups) if of == group]
            alone = {one: owner == group for one, owner in owners.items()}
            yield {"depth": depth, "runs": members, **_trial(subject, brought, members, alone, depth)}


def _trial(
    subject: AuditSubject, brought: Contributions, members: list[int], alone: Mapping[int, Mask], depth: int
) -> dict[str, Any]:
    """alone: by depth bool[D], what these runs alone bring to the pool."""
    lost = alone[depth] & brought.judged
    full, means = subject.means, subject.means
    if lost.any():
        means = subject.means_under(subject.evaluator.keeping(~lost))
    sides = (full, means)
    return {
        "brought": [
            [one, *(int((mine & of).sum()) for of in (brought.judged, brought.relevant))]
            for one, mine in alone.items()
        ],
        "lost": int(lost.sum()),
        "tau": {text: tau_b(full[text], scores).value for text, scores in means.items()},
        "scores": {text: [side[text][members].tolist() for side in sides] for text in full},
        "ranks": {text: [[ranks(side[text])[run] for run in members] for side in sides] for text in full},
        "unjudged": [[one, *_unjudged(subject, lost, members, one)] for one in alone],
    }


def _unjudged(subject: AuditSubject, lost: Mask, members: list[int], depth: int) -> list[list[float | None]]:
    """By run the mean over topics of the unjudged share, before and after."""
    sides = (subject.judged, subject.judged & ~lost)
    return [[mean_of(unjudged(subject, run, judged, depth)) for run in members] for judged in sides]


def report(about: About, names: Sequence[str], found: Mapping[int, Any], depth: int | None) -> AuditReport:
    """The report on the groups that were left out so far, by name. depth: the pool's, where it was given."""
    left = [(names[trial], one) for trial, one in found.items()]
    points, brought, missing = _points(about, left), _contributions(left), _missing(about, left)
    summary = _summary(about, points, left)
    return AuditReport(
        verdict=(
            _losses(left, depth),
            *(_fairness(about, dict(zip(_NAMES, row, strict=True))) for row in summary.rows),
            *_strangers(missing),
        ),
        numbers=_numbers(summary, brought, missing, left),
        tables=(points, summary, _taus(about, left), brought, missing, _stages(points)),
        plots=PLOTS,
        reading=READING,
        undefined=tuple(
            f"tau of {row[0]}: all runs score the same" for row in summary.rows if row[1] is None
        ),
        warnings=about.cautions,
    )


LEFT, RUN = Column("left", "left out"), Column("run", "run")
STAGES = ("in the pool", "left out")


def _points(about: About, left: Left) -> ReportTable:
    """Each run in and out of the pool, by each measure."""
    columns = (
        MEASURE,
        LEFT,
        RUN,
        Column("before", "score in the pool"),
        Column("after", "score left out"),
        Column("change", "change of score"),
        Column("rank", "rank in the pool"),
        Column("outside", "rank left out"),
        Column("places", "places lost", "a gain is below 0"),
    )
    rows = []
    for measure in about.measures:
        for name, one in left:
            sides = (*one["scores"][measure], *one["ranks"][measure])
            for run, before, after, rank, outside in zip(one["runs"], *sides, strict=True):
                score = (before, after, after - before)
                rows.append((measure, name, about.runs[run], *score, rank, outside, outside - rank))
    return ReportTable("points", "Runs in and out of the pool", columns, tuple(rows))


_NAMES = ("measure", "tau", "least", "places", "worst", "run", "change", "greatest")


def _summary(about: About, points: ReportTable, left: Left) -> ReportTable:
    columns = (
        MEASURE,
        Column("tau", "tau", f"{TAU}, mean"),
        Column("least", "least tau"),
        Column("places", "places lost", "mean over the runs, each left out"),
        Column("worst", "most places lost"),
        Column("run", "by"),
        Column("change", "change of score", "mean over the runs"),
        Column("greatest", "greatest loss of score"),
    )
    rows = tuple(_row(measure, points, left) for measure in about.measures)
    return ReportTable("summary", "How fair the board is to newcomers", columns, rows)


def _row(measure: str, points: ReportTable, left: Left) -> tuple[Cell, ...]:
    here: list[Any] = [row for row in points.rows if row[0] == measure]
    taus = [one["tau"][measure] for _, one in left if one["tau"][measure] is not None]
    worst = max(here, key=lambda row: (row[8], -row[5]))
    return (
        measure,
        mean(taus),
        min(taus, default=None),
        mean([row[8] for row in here]),
        worst[8],
        worst[2],
        mean([row[5] for row in here]),
        max(-row[5] for row in here),
    )


def mean(values: Sequence[float]) -> float | None:
    """None of none."""
    return math.fsum(values) / len(values) if values else None


def _taus(about: About, left: Left) -> ReportTable:
    columns = (LEFT, MEASURE, Column("tau", "tau", TAU), Column("lost", "judgments lost"))
    rows = [
        (name, measure, one["tau"][measure], one["lost"]) for name, one in left for measure in about.measures
    ]
    return ReportTable("taus", "The order of all runs, with one left out of the pool", columns, tuple(rows))


def _contributions(left: Left) -> ReportTable:
    columns = (
        LEFT,
        Column("depth", "pool depth"),
        Column("judged", "judged", "documents that it alone brings to the pool"),
        Column("relevant", "relevant", "of them"),
    )
    rows = [(name, *of) for name, one in left for of in one["brought"]]
    return ReportTable("contributions", "What each alone brings to the pool", columns, tuple(rows))


def _missing(about: About, left: Left) -> ReportTable:
    columns = (
        RUN,
        Column("depth", "depth"),
        Column("before", "unjudged in the pool", "share of its first documents, mean over topics"),
        Column("after", "unjudged left out", "likewise"),
    )
    rows = [
        (about.runs[run], depth, *shares)
        for _, one in left
        for depth, *sides in one["unjudged"]
        for run, *shares in zip(one["runs"], *sides, strict=True)
    ]
    return ReportTable("unjudged", "Unjudged documents among the first ones", columns, tuple(rows))


def _stages(points: ReportTable) -> ReportTable:
    columns = (MEASURE, RUN, Column("stage", "stage"), Column("rank", "rank"))
    rows = [
        (row[0], row[2], stage, rank)
        for row in points.rows
        for stage, rank in zip(STAGES, row[6:8], strict=True)
    ]
    return ReportTable("stages", "Rank of each run, in the pool and left out of it", columns, tuple(rows))


def _numbers(summary: ReportTable, brought: ReportTable, missing: ReportTable, left: Left) -> dict[str, Any]:
    """(worst_)rank_loss, (worst_)score_loss and (least_)tau by measure; the others by depth."""
    found: dict[str, Any] = {"pool_depth": left[0][1]["depth"]}
    for measure, tau, least, places, worst, _, change, greatest in summary.rows:
        found |= {f"tau({measure})": tau, f"least_tau({measure})": least}
        found |= {f"rank_loss({measure})": places, f"worst_rank_loss({measure})": worst}
        found |= {f"score_loss({measure})": -float(change or 0), f"worst_score_loss({measure})": greatest}
    for depth in dict.fromkeys(brought.column("depth")):
        rows: list[Any] = [row for row in brought.rows if row[1] == depth]
        found |= {f"unique@{depth}": mean([row[2] for row in rows])}
        found |= {f"unique_relevant@{depth}": mean([row[3] for row in rows])}
        shares: list[Any] = [row[3] for row in missing.rows if row[1] == depth and row[3] is not None]
        found |= {f"unjudged_outside@{depth}": mean(shares)}
        found |= {f"worst(unjudged_outside@{depth})": max(shares, default=None)}
    return found


def _losses(left: Left, depth: int | None) -> str:
    """What is lost, and by which depth of the pool."""
    lost = sorted(one["lost"] for _, one in left)
    used = left[0][1]["depth"]
    how = "as given" if depth else "read off the judgments, which get rarer there"
    return (
        f"Left out of the pool of depth {used} ({how}), each of {len(lost)} loses {median(lost):g} "
        f"judgments in the middle and {lost[-1]} at most; none lost: {lost.count(0)}."
    )


def _fairness(about: About, row: Mapping[str, Any]) -> str:
    """How far newcomers would be misjudged by one measure."""
    if row["tau"] is None:
        return f"{row['measure']}: undefined, for the runs can't be told apart."
    return (
        f"{row['measure']}: {_word(len(about.runs), row)} to runs from outside the pool. Of "
        f"{len(about.runs)} places they would lose {row['places']:.2f} on average and {row['worst']} at "
        f"worst ({row['run']}), their score would change by {row['change']:+.4f}; tau with the order as it "
        f"is would be {row['tau']:.3f} on average, {row['least']:.3f} at the least."
    )


def _word(runs: int, row: Mapping[str, Any]) -> str:
    tolerable = max(1.0, FAIR * runs)
    if row["worst"] <= tolerable and row["least"] >= STRONG:
        return "fair"
    as_a_rule = row["places"] <= tolerable / 2 and row["tau"] >= STRONG
    return "fair as a rule, with exceptions," if as_a_rule else "unfair"


def _strangers(missing: ReportTable) -> Iterator[str]:
    """What they would have unjudged at the least depth."""
    depth = min((row[1] for row in missing.rows), key=lambda one: int(one or 0), default=None)
    rows: list[Any] = [row for row in missing.rows if row[1] == depth and row[3] is not None]
    if rows:
        worst = max(rows, key=lambda row: row[3])
        yield (
            f"Of its first {depth} documents a run from outside would have "
            f"{mean([row[3] for row in rows]):.1%} unjudged, and {worst[3]:.1%} at worst ({worst[0]}); in "
            f"the pool it is {mean([row[2] for row in rows]):.1%}."
        )


PLOTS = (
    Plot(
        "stages",
        "Ranks in and out of the pool",
        "Rank of each run when it is in the pool and when it is left out of it.",
        "changes",
        "stages",
        "stage",
        "rank",
        series="run",
        facet="measure",
        x_order=STAGES,
    ),
    Plot(
        "taus",
        "The order of all runs, with one left out of the pool",
        f"{TAU}.",
        "heatmap",
        "taus",
        "measure",
        "left",
        value="tau",
        domain=(0.0, 1.0),
    ),
    Plot(
        "contributions",
        "What each alone brings to the pool",
        "Judged documents that nobody else has among the first ones, by depth.",
        "bars",
        "contributions",
        "left",
        "judged",
        series="depth",
    ),
)
READING = (
    f"Called fair here: nobody loses more than {FAIR:.0%} of the places (or one place), and tau stays at "
    f"least {STRONG}. Fair as a rule: the mean loss is at most half as much, and tau so high on average. "
    "The words are ours, the numbers beside them tell more.",
    "Who is left out is like those who made the pool. A new kind of system may find relevant documents that "
    "none of them did, and would suffer more: the result is a lower bound of the harm.",
    "A score can rise when judgments are lost: recall bases and ideal rankings shrink with them.",
)
