"""Base class and reports of audits that leave runs out of the pool.

The runs are divided into groups: single runs or teams. Each trial leaves out one group and returns a
LeftOutTrial.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import ClassVar, NotRequired, TypedDict

from cupel_audits.analysis.left_out_tables import (
    CONTRIBUTIONS,
    LEFT_OUT,
    POINTS,
    RANKS,
    STAGES,
    SUMMARY,
    TAUS,
    UNJUDGED,
    ContributionRow,
    FairnessRow,
    LeftOutOrder,
    LeftOutRun,
    StageRank,
    UnjudgedShare,
    advise,
    draw_plots,
)
from cupel_audits.analysis.named_extremes import name_tied
from cupel_audits.analysis.pool_contributions import Contributions, deepest, pool_depth, unjudged
from cupel_audits.analysis.pools import Depth, Depths, mean_of
from cupel_audits.analysis.run_orders import STRONG, STRONG_IN_PAIRS, ranks
from cupel_audits.declarations import Audit, setting
from cupel_audits.report import AuditReport
from cupel_audits.subject import AuditSubject, SubjectSummary
from cupel_measures.comparing.rank_correlation import tau_b
from cupel_measures.scoring.pool import Mask

FAIR = 0.05
"""Reports call a collection fair if no run loses more than this share of the ranks (or one rank)."""
UNEXPLAINED = 0.1
"""Reports do not judge fairness if more than this share of the judged documents is outside the pool."""


class LeftOutTrial(TypedDict):
    """The result of leaving out one group of runs; JSON-serialisable.

    depth: depth of the pool. runs: indices of the runs in the group. brought: for each pool depth, the depth
    and the numbers of judged and of relevant documents that only the group contributes to this pool. lost:
    number of documents that lose their judgment. tau: by measure, tau-b over all runs between the scores with
    the group in the pool and with the group left out. scores, ranks: by measure, two lists with a value for
    each run of the group: first with the group in the pool, then with the group left out. unjudged: for each
    depth, the depth and two such lists, of the unjudged share of the first `depth` documents. unexplained:
    number of judged documents that are not among the first `depth` of any run. Results of earlier releases do
    not contain `unexplained`.
    """

    depth: int
    runs: list[int]
    brought: list[tuple[int, int, int]]
    lost: int
    tau: dict[str, float | None]
    scores: dict[str, list[list[float]]]
    ranks: dict[str, list[list[int]]]
    unjudged: list[tuple[int, list[float | None], list[float | None]]]
    unexplained: NotRequired[int]


LeftOut = Sequence[tuple[str, LeftOutTrial]]
"""The name of each group that was left out, and the result of its trial."""


@dataclass(frozen=True, kw_only=True)
class LeaveOut(Audit):
    """Base class of the kinds that leave groups of runs out of the pool.

    Subclasses define `groups`.
    """

    removes_judgments: ClassVar[bool] = True

    depths: Depths = setting((10, 20, 50, 100), "depths at which unique and unjudged documents are counted")  # noqa: RUF009
    depth: Depth | None = setting(None, "depth of the judged pool (default: estimated from the judgments)")  # noqa: RUF009

    def groups(self, subject: AuditSubject) -> list[int]:
        """Return the group of each run, numbered from 0."""
        raise NotImplementedError

    def trials(self, subject: AuditSubject) -> int:
        """Return the number of groups."""
        return len(set(self.groups(subject)))

    def run_trials(self, subject: AuditSubject, seed: int, trials: Sequence[int]) -> Iterator[LeftOutTrial]:
        groups = self.groups(subject)
        contributions, most = Contributions.of(subject, groups), max(*self.depths, self.depth or 1)
        depth = self.depth or pool_depth(subject, most)
        depths = {depth, *(min(cutoff, deepest(subject)) for cutoff in self.depths)}
        owners = {cutoff: contributions.owner(cutoff) for cutoff in sorted(depths)}
        for trial in trials:
            members = [run for run, group in enumerate(groups) if group == trial]
            alone = {cutoff: owner == trial for cutoff, owner in owners.items()}
            yield _trial(subject, contributions, members, alone, depth)


def _trial(
    subject: AuditSubject,
    contributions: Contributions,
    members: list[int],
    alone: Mapping[int, Mask],
    depth: int,
) -> LeftOutTrial:
    """Leave the runs `members` out of the pool, and return the result.

    alone: for each pool depth, the documents that only these runs contribute, bool[D].
    """
    lost = alone[depth] & contributions.judged
    full, means = subject.means, subject.means
    if lost.any():
        means = subject.means_under(subject.evaluator.restricted_to(~lost))
    sides = (full, means)
    judged, relevant = contributions.judged, contributions.relevant
    return {
        "depth": depth,
        "runs": members,
        "brought": [
            (at, int((mine & judged).sum()), int((mine & relevant).sum())) for at, mine in alone.items()
        ],
        "lost": int(lost.sum()),
        "tau": {text: tau_b(full[text], scores).value for text, scores in means.items()},
        "scores": {text: [side[text][members].tolist() for side in sides] for text in full},
        "ranks": {text: [[ranks(side[text])[run] for run in members] for side in sides] for text in full},
        "unjudged": [(at, *_unjudged_shares(subject, lost, members, at)) for at in alone],
        "unexplained": contributions.unexplained(depth),
    }


def _unjudged_shares(
    subject: AuditSubject, lost: Mask, members: list[int], depth: int
) -> tuple[list[float | None], list[float | None]]:
    """Return the mean unjudged share of each member over topics.

    The first list has the shares before the member is left out, the second those after it is left out.
    """
    before, after = (
        [mean_of(unjudged(subject, run, judged, depth)) for run in members]
        for judged in (subject.judged, subject.judged & ~lost)
    )
    return before, after


def report(
    about: SubjectSummary,
    names: Sequence[str],
    results: Mapping[int, LeftOutTrial],
    depth: int | None,
    *,
    group: str,
) -> AuditReport:
    """Return the report on the groups left out so far.

    names: the names of all groups. depth: the requested depth of the pool, None if it was estimated. group:
    "run" or "team".
    """
    left_out = [(names[trial], result) for trial, result in results.items()]
    unexplained = _unexplained_share(about, left_out)
    is_explained = unexplained is not None and unexplained <= UNEXPLAINED
    is_tested = any(trial["lost"] for _, trial in left_out)
    explanation = _explanation(about, left_out, unexplained, group)
    points = list(_points(about, left_out))
    summary = [_summary_row(measure, points, left_out) for measure in about.measures]
    contributions, missing = list(_contributions(left_out)), list(_unjudged_rows(about, left_out))
    return AuditReport(
        verdict=(
            *(_answer(about, summary, unexplained, group) if is_tested else _untested(group)),
            *(() if is_explained else (explanation,)),
            *(
                _fairness_sentence(about, row, group, has_verdict=is_explained and is_tested)
                for row in summary
            ),
            *((explanation,) if is_explained else ()),
            _loss_sentence(left_out, depth, group),
            *_unjudged_sentence(missing, group),
        ),
        numbers=_numbers(summary, contributions, missing, left_out) | {"unexplained": unexplained},
        tables=(
            POINTS.table(points),
            SUMMARY.table(summary),
            TAUS.table(_orders(about, left_out)),
            CONTRIBUTIONS.table(contributions),
            UNJUDGED.table(missing),
            RANKS.table(_stage_ranks(points)),
        ),
        plots=draw_plots(about, summary, contributions, group),
        reading=READING,
        undefined=tuple(
            f"tau of {row.measure}: all runs have the same score" for row in summary if row.tau is None
        ),
        warnings=about.cautions,
        actions=tuple(advise(summary, contributions, group, is_explained=is_explained, is_tested=is_tested)),
    )


def _untested(group: str) -> Iterator[str]:
    yield f"No verdict on fairness: leaving out any {group} removes no judgment, so nothing was tested."


def _answer(
    about: SubjectSummary, summary: Sequence[FairnessRow], unexplained: float | None, group: str
) -> Iterator[str]:
    """Yield the answer to the question of the kind, in one sentence over all measures."""
    defined = [row for row in summary if row.tau is not None]
    if not defined:
        return
    worst = max(defined, key=lambda row: row.worst)
    if worst.worst <= 0:
        loss = f"{LEFT_OUT[group]} of the pool loses no rank by any measure"
    else:
        by_loss = sorted(defined, key=lambda row: -(row.places or 0))
        ends = [by_loss[0], *([by_loss[-1]] if len(by_loss) > 1 else [])]
        loss = (
            f"{LEFT_OUT[group]} of the pool loses at most {worst.worst} of {len(about.runs)} ranks "
            f"({worst.run} by {worst.measure}); on average "
            + " and ".join(f"{row.places:.2f} by {row.measure}" for row in ends)
        )
    if unexplained is None or unexplained <= UNEXPLAINED:
        yield f"{loss}."
        return
    yield (
        f"{loss}. This is not a verdict on fairness, because {unexplained:.0%} of the judged documents are "
        "from outside the pool of these runs."
    )


def _unexplained_share(about: SubjectSummary, left_out: LeftOut) -> float | None:
    """Return the share of judged documents outside the pool of the runs.

    The share is None if it was not stored.
    """
    number = left_out[0][1].get("unexplained")
    return None if number is None else number / max(about.judged, 1)


def _points(about: SubjectSummary, left_out: LeftOut) -> Iterator[LeftOutRun]:
    for measure in about.measures:
        for name, trial in left_out:
            (scores, scores_left), (ranks_in, ranks_out) = trial["scores"][measure], trial["ranks"][measure]
            for run, before, after, rank, outside in zip(
                trial["runs"], scores, scores_left, ranks_in, ranks_out, strict=True
            ):
                yield LeftOutRun(
                    measure=measure,
                    left=name,
                    run=about.runs[run],
                    before=before,
                    after=after,
                    change=after - before,
                    rank=rank,
                    outside=outside,
                    places=outside - rank,
                )


def _summary_row(measure: str, points: Sequence[LeftOutRun], left_out: LeftOut) -> FairnessRow:
    runs = [point for point in points if point.measure == measure]
    taus = [tau for _, trial in left_out if (tau := trial["tau"][measure]) is not None]
    by_loss = sorted(runs, key=lambda point: (-point.places, point.change))
    worst = by_loss[0]
    return FairnessRow(
        measure=measure,
        tau=mean(taus),
        least=min(taus, default=None),
        places=mean([point.places for point in runs]),
        worst=worst.places,
        run=name_tied([point.run for point in by_loss if point.places == worst.places]),
        change=mean([point.change for point in runs]),
        greatest=max(-point.change for point in runs),
    )


def mean(values: Sequence[float]) -> float | None:
    """Return the mean, or None if there are no values."""
    return math.fsum(values) / len(values) if values else None


def _orders(about: SubjectSummary, left_out: LeftOut) -> Iterator[LeftOutOrder]:
    for name, trial in left_out:
        for measure in about.measures:
            yield LeftOutOrder(left=name, measure=measure, tau=trial["tau"][measure], lost=trial["lost"])


def _contributions(left_out: LeftOut) -> Iterator[ContributionRow]:
    for name, trial in left_out:
        for depth, judged, relevant in trial["brought"]:
            yield ContributionRow(name, depth, judged, relevant)


def _unjudged_rows(about: SubjectSummary, left_out: LeftOut) -> Iterator[UnjudgedShare]:
    for _, trial in left_out:
        for depth, before, after in trial["unjudged"]:
            for run, *shares in zip(trial["runs"], before, after, strict=True):
                yield UnjudgedShare(about.runs[run], depth, *shares)


def _stage_ranks(points: Sequence[LeftOutRun]) -> Iterator[StageRank]:
    for point in points:
        for stage, rank in zip(STAGES, (point.rank, point.outside), strict=True):
            yield StageRank(point.measure, point.run, stage, rank)


def _numbers(
    summary: Sequence[FairnessRow],
    contributions: Sequence[ContributionRow],
    missing: Sequence[UnjudgedShare],
    left_out: LeftOut,
) -> dict[str, float | int | None]:
    """Return the numbers of the report by name.

    They are the taus and losses by measure, and the contributions and unjudged shares by depth.
    """
    numbers: dict[str, float | int | None] = {"pool_depth": left_out[0][1]["depth"]}
    for row in summary:
        numbers |= {f"tau({row.measure})": row.tau, f"least_tau({row.measure})": row.least}
        numbers |= {f"rank_loss({row.measure})": row.places, f"worst_rank_loss({row.measure})": row.worst}
        numbers |= {f"score_loss({row.measure})": -float(row.change or 0)}
        numbers |= {f"worst_score_loss({row.measure})": row.greatest}
    for depth in dict.fromkeys(row.depth for row in contributions):
        rows = [row for row in contributions if row.depth == depth]
        numbers |= {f"unique@{depth}": mean([row.judged for row in rows])}
        numbers |= {f"unique_relevant@{depth}": mean([row.relevant for row in rows])}
        shares = [row.after for row in missing if row.depth == depth and row.after is not None]
        numbers |= {f"unjudged_outside@{depth}": mean(shares)}
        numbers |= {f"worst(unjudged_outside@{depth})": max(shares, default=None)}
    return numbers


def _explanation(about: SubjectSummary, left_out: LeftOut, unexplained: float | None, group: str) -> str:
    """Return a sentence on judgments from outside the pool.

    Such judgments may prevent a verdict on fairness.
    """
    if unexplained is None:
        return (
            "No verdict on fairness: an earlier release computed the result, and did not store how many "
            "judged documents are outside the pool of the audited runs. Run the audit again."
        )
    number, depth = left_out[0][1]["unexplained"], left_out[0][1]["depth"]
    share = f"{number} of {about.judged} judged documents ({unexplained:.1%})"
    if unexplained <= UNEXPLAINED:
        return f"{share} are not in the top {depth} of any audited run."
    return (
        f"No verdict on fairness: {share} are not in the top {depth} of any audited run, so other runs "
        "or methods contributed to the pool. They may also have contributed documents that only one audited "
        f"{group} retrieves. Then the contributions and losses below are overestimated."
    )


def _loss_sentence(left_out: LeftOut, depth: int | None, group: str) -> str:
    """Return a sentence on the judgments that are lost, and on the depth of the pool."""
    lost = sorted(trial["lost"] for _, trial in left_out)
    used = left_out[0][1]["depth"]
    none = f"; in {lost.count(0)} of {len(lost)} cases it removes none" if lost[0] == 0 else ""
    origin = "as given" if depth else "estimated from the judgments"
    return (
        f"Pool depth {used} ({origin}). Leaving out one of {len(lost)} {group}s removes a median of "
        f"{median(lost):g} judgments and at most {lost[-1]}{none}."
    )


def _fairness_sentence(about: SubjectSummary, row: FairnessRow, group: str, *, has_verdict: bool) -> str:
    """Return a sentence on the effect on runs from outside the pool, by one measure."""
    if row.tau is None:
        return f"{row.measure}: undefined because all runs have the same score."
    limit = max(1.0, FAIR * len(about.runs))
    verdict = (
        f"{_fairness(len(about.runs), row)} to {group}s from outside the pool that resemble the given ones, "
        f"by the convention of Cupel (fair: at most {limit:g} {'rank' if limit == 1 else 'ranks'} lost and "
        f"tau at least {STRONG} whichever {group} is left out; untested). "
        if has_verdict
        else ""
    )
    return (
        f"{row.measure}: {verdict}{LEFT_OUT[group]} loses {row.places:.2f} of {len(about.runs)} ranks on "
        f"average and at most {row.worst} ({row.run}). Its score changes by {row.change:+.4f} on "
        f"average. Tau with the original order is {row.tau:.3f} on average and at least {row.least:.3f}."
    )


def _fairness(runs: int, row: FairnessRow) -> str:
    tolerable = max(1.0, FAIR * runs)
    if row.worst <= tolerable and (row.least or 0) >= STRONG:
        return "fair"
    mostly = (row.places or 0) <= tolerable / 2 and (row.tau or 0) >= STRONG
    return "mostly fair" if mostly else "unfair"


def _unjudged_sentence(missing: Sequence[UnjudgedShare], group: str) -> Iterator[str]:
    """Yield a sentence on the unjudged share at the smallest depth.

    Rows without a defined share are ignored. If no other rows remain, nothing is yielded.
    """
    depth = min((row.depth for row in missing), default=None)
    rows = [row for row in missing if row.depth == depth and row.after is not None]
    if rows:
        highest = f"{max(row.after or 0 for row in rows):.1%}"
        tied = [row.run for row in rows if f"{row.after:.1%}" == highest]
        yield (
            f"Unjudged share of the top {depth}: {mean([row.after or 0 for row in rows]):.1%} on "
            f"average and at most {highest} ({name_tied(tied)}) for {LEFT_OUT[group].lower()}, "
            f"{mean([row.before or 0 for row in rows]):.1%} on average for a run in the pool."
        )


READING = (
    f"The verdict is fair if no run loses more than {FAIR:.0%} of the ranks (or one rank) and tau is always "
    f"at least {STRONG}. It is mostly fair if the mean loss is at most half of this limit and the mean tau "
    f"is at least {STRONG}. These terms are a convention of Cupel; rely on the numbers. {STRONG_IN_PAIRS}.",
    "A run that is left out resembles the other runs in the pool. A new kind of system may retrieve relevant "
    "documents that no run in the pool retrieves, and lose more. So the bias against it may be larger.",
    "A score can rise when judgments are lost, because recall bases and ideal rankings shrink too.",
    f"There is no verdict on fairness if more than {UNEXPLAINED:.0%} of the judged documents are not among "
    "the first documents of any audited run, down to the depth of the pool. Other runs or methods then "
    "contributed to the pool, and may have contributed documents that only one audited run retrieves.",
)
