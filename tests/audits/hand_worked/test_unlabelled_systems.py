"""The report of `unlabelled_systems` on four runs, derived with an independent sampler in a few lines.

Relevant: 1a, 1c, 2e, 2f, 2h and 1z (which no run has). Pools have depth 2, so even a pooled run can lose the
judgment of its document at rank 3. At 25, 50, 75 and 99 per cent, 1, 2, 3 and 3 of 4 runs are left out.
"""

import pytest

from support.data.audit_subjects import audited, lists, subject_of
from support.data.expected_audits import (
    Row,
    assert_numbers,
    assert_table,
    curve_rows,
    generator_of,
    kendall_tau_b,
    spread_cells,
)
from support.data.small_collections import qrels_of

GRADES = {"1": {"1a": 1, "1b": 0, "1c": 1, "1z": 1}, "2": {"2e": 1, "2f": 1, "2g": 0, "2h": 1}}
RANKINGS = {
    "best": {"1": ["1a", "1c", "1b"], "2": ["2f", "2h", "2e"]},
    "good": {"1": ["1a", "1b", "1c"], "2": ["2e", "2f", "2g"]},
    "fair": {"1": ["1c", "1x"], "2": ["2e", "2g"]},
    "poor": {"1": ["1x", "1b", "1a"], "2": ["2g", "2x"]},
}
FULL = [(2 / 3 + 3 / 3) / 2, (2 / 3 + 2 / 3) / 2, (1 / 3 + 1 / 3) / 2, (1 / 3 + 0) / 2]
REMOVED = {25: 1, 50: 2, 75: 3, 99: 3}
REPEATS = 3


def judgments_of(runs: list[int]) -> set[str]:
    """Return the judged documents in the pool of depth 2 of some runs."""
    rankings = list(RANKINGS.values())
    pooled = {document for run in runs for top in rankings[run].values() for document in top[:2]}
    return pooled & {document for grades in GRADES.values() for document in grades}


def precision_at_3(judged: set[str]) -> list[float]:
    """Return the mean P@3 of each run if only the given documents are judged."""
    relevant = {
        document for grades in GRADES.values() for document, grade in grades.items() if grade
    } & judged
    return [sum(len(relevant & set(top[:3])) / 3 for top in run.values()) / 2 for run in RANKINGS.values()]


def mean_of(values: list[float]) -> float:
    return sum(values) / len(values)


Losses = dict[int, list[tuple[float, float]]]
"""By percentage, the mean losses of the removed and of the other runs in each repeat."""


def simulate_removals(
    systems: str,
) -> tuple[list[list[tuple[float, list[float]]]], Losses, dict[int, list[float | None]]]:
    """Return the steps of each repeat, and the losses and the taus by percentage."""
    orders = [generator_of("unlabelled_systems", trial).permutation(4).tolist() for trial in range(REPEATS)]
    repeats: list[list[tuple[float, list[float]]]] = []
    losses: Losses = {percent: [] for percent in REMOVED}
    taus: dict[int, list[float | None]] = {percent: [] for percent in REMOVED}
    for order in orders:
        steps: list[tuple[float, list[float]]] = []
        for percent, count in REMOVED.items():
            removed, others = sorted(order[:count]), order[count:]
            kept = judgments_of(others)
            scores = precision_at_3(kept)
            steps.append((len(kept) / 8, scores))
            loss = [before - after for before, after in zip(FULL, scores, strict=True)]
            losses[percent].append(
                (mean_of([loss[run] for run in removed]), mean_of([loss[run] for run in others]))
            )
            compared = range(4) if systems == "all" else removed
            taus[percent].append(
                kendall_tau_b([FULL[run] for run in compared], [scores[run] for run in compared])
            )
        repeats.append(steps)
    return repeats, losses, taus


def bias_rows(losses: Losses) -> list[Row]:
    """Return the rows of the table `bias`."""
    bias: list[Row] = []
    for percent in REMOVED:
        out = mean_of([loss for loss, _ in losses[percent]])
        left = mean_of([loss for _, loss in losses[percent]])
        bias.append(("P@3", percent, out, left, out - left))
    return bias


@pytest.mark.parametrize("systems", ["all", "removed"])
def test_report_equals_an_independent_sampler(systems: str) -> None:
    repeats, losses, taus = simulate_removals(systems)
    assert precision_at_3(judgments_of([0, 1, 2, 3])) == pytest.approx(FULL)
    points, ranks = curve_rows("P@3", list(RANKINGS), FULL, repeats, list(REMOVED))
    points = [
        (*point[:3], *spread_cells(taus[percent]), point[-1])
        for point, percent in zip(points, REMOVED, strict=True)
    ]
    bias = bias_rows(losses)

    subject = subject_of(qrels_of(GRADES), lists(RANKINGS), "P@3", top=3)
    parameters = {"percents": list(REMOVED), "repeats": REPEATS, "depth": 2, "systems": systems}
    report = audited("unlabelled_systems", subject, parameters)
    assert_table(report, "points", "measure percent kept mean low high least greatest n score", points)
    assert_table(report, "ranks", "measure percent run rank best worst", ranks)
    assert_table(report, "bias", "measure percent out left bias", bias)
    assert [table.name for table in report.tables] == ["points", "ranks", "bias"]
    assert_numbers(
        report,
        {f"tau(P@3)@{point[1]}": point[3] for point in points}
        | {f"kept@{point[1]}": point[2] for point in points}
        | {f"bias(P@3)@{row[1]}": row[4] for row in bias},
    )
    [half] = [row for row in bias if row[1] == 50]
    assert report.verdict[1:] == (
        "If no scores are tied, a tau of 0.9 means that 1 in 20 pairs of runs is swapped.",
        f"P@3: with 2 of 4 runs left out, the mean score of these runs changes by "
        f"{0 - half[2]:+.4f}, and that of the other runs by {0 - half[3]:+.4f}. The bias against "
        f"the runs left out is {half[4]:.4f} (mean over 3 repeats, no interval).",
    )
    most = max(bias, key=lambda row: row[4])
    assert (report.plots[-1].title, report.plots[-1].reference) == (
        f"Runs left out of the pool lose on average up to {most[4]:.4f} more than the other runs (by P@3, "
        f"with {REMOVED[int(most[1])]} of 4 runs left out)",
        0.0,
    )
    assert half[4] > 0
    assert half[3] > 0
    assert report.warnings == (
        "1 of 8 judged documents are not in the top 2 of any audited run: they lose their judgments at "
        "every percentage; set a larger depth to keep them.",
    )
    reason = "the removed runs are too few, or all of them have the same score"
    assert report.undefined == tuple(
        f"tau of P@3 at step {percent} ({count} of 4 runs left out): {reason}"
        for percent, count in REMOVED.items()
        if set(taus[percent]) == {None}
    )
    assert ("(1 of 4 runs" in " ".join(report.undefined)) == (systems == "removed")
