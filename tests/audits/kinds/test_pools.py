"""Pools as runs make them, and the audits that make them shallower or leave runs out (spec 7.2 to 7.4)."""

import math

import numpy as np
import pytest

from cupel_audits.analysis import pool_contributions
from cupel_audits.analysis.judgment_samples import stratified
from cupel_audits.analysis.pool_contributions import Contributions, pool_depth
from cupel_audits.analysis.pools import Pools, held, unjudged
from cupel_audits.analysis.run_orders import spread
from cupel_audits.declarations import AuditError, read_audit
from cupel_audits.kinds.incomplete import halves
from cupel_audits.kinds.unlabelled_systems import removed
from cupel_measures.catalogue.parser import parse
from cupel_measures.scoring.evaluator import evaluate
from support.data.audit_subjects import audited, board, lists, problems, subject_of, trials_of
from support.data.small_collections import diverse, joined_of, qrels_of

QRELS = qrels_of({"1": {"a": 1, "b": 0, "c": 2, "d": 1}, "2": {"e": 1, "f": 0}})
RUNS = lists(
    {
        "one": {"1": ["a", "x", "b"], "2": ["e", "y"]},
        "two": {"1": ["a", "c"], "2": ["f"]},
        "three": {"1": ["x", "d", "a", "b"]},
    }
)
"""x and y are unjudged; topic 2 is missing from the third run."""


def test_pools_and_what_each_run_alone_brings() -> None:
    subject = subject_of(QRELS, RUNS, "AP", top=3)
    pools = Pools.of(subject)
    ids = [(pools.tops.topic[i] + 1, one.decode()) for i, one in enumerate(pools.tops.documents.to_list())]
    named = lambda mask: {ids[i] for i in np.flatnonzero(mask)}  # noqa: E731
    assert named(pools.pooled(1)) == {(1, "a"), (1, "x"), (2, "e"), (2, "f")}
    assert named(pools.pooled(3)) == {(1, d) for d in "abcdx"} | {(2, d) for d in "efy"}
    assert named(pools.judged) == {(1, d) for d in "abcd"} | {(2, d) for d in "ef"}
    assert named(pools.relevant) == {(1, d) for d in "acd"} | {(2, "e")}
    assert held(pools.tops) == 3


@pytest.mark.parametrize(
    ("groups", "alone"),
    [([0, 1, 2], [{"e"}, {"c", "f"}, {"d"}]), ([0, 1, 0], [{"d", "e"}, {"c", "f"}])],
)
def test_what_each_run_or_team_alone_brings(groups: list[int], alone: list[set[str]]) -> None:
    subject = subject_of(QRELS, RUNS, "AP")
    brought, ids = Contributions.of(subject, groups), subject.qrels.documents.to_list()
    owner = brought.owner(2)
    assert [{ids[i].decode() for i in np.flatnonzero(owner == group)} for group in range(len(alone))] == alone


def test_unjudged_shares_are_of_what_was_retrieved() -> None:
    subject = subject_of(QRELS, RUNS, "AP", top=3)
    assert subject.tops is not None
    found = unjudged(subject.tops.ranked, Pools.of(subject).judged, 2)
    assert found[:2].tolist() == [[0.5, 0.5], [0, 0]]
    assert found[2, 0] == 0.5
    assert math.isnan(found[2, 1])
    joined = [pool_contributions.unjudged(subject, run, subject.judged, 2) for run in range(3)]
    np.testing.assert_array_equal(np.stack(joined), found)


def test_the_depth_of_a_pool_shows_in_what_is_judged() -> None:
    names = [f"d{number:02}" for number in range(40)]
    chance = np.random.default_rng(5)
    runs = {f"r{i}": {f"{t}": chance.permutation(names).tolist() for t in range(20)} for i in range(5)}
    judged = {
        f"{t}": {one: int(one < "d05") for run in list(runs.values())[:4] for one in run[f"{t}"][:6]}
        for t in range(20)
    }
    assert pool_depth(subject_of(qrels_of(judged), lists(runs), "AP"), 20) == 6
    assert pool_depth(subject_of(qrels_of({"9": {"a": 1}}), lists(runs), "AP"), 20) == 1


def test_the_sizes_of_the_specification_for_incomplete_judgments() -> None:
    """7 relevant, 30 not: p = 100: 7, 30; 80: 5, 24; 50: 3, 15; 20 and below: 1, 10 (spec 7.3)."""
    by_subtopic = {f"d{n:02}": {"x": int(n < 4), "y": int(3 <= n < 7)} for n in range(37)}
    judged = halves(subject_of(diverse({"1": by_subtopic}), lists({"r": {"1": []}}), "alpha_nDCG@20"))
    chance = np.random.Generator(np.random.PCG64(1))
    percents = (100.0, 80.0, 50.0, 20.0, 15.0, 10.0, 5.0)
    sizes = [(int(mask[:7].sum()), int(mask[7:].sum())) for mask in stratified(chance, judged, percents)]
    assert sizes == [(7, 30), (5, 24), (3, 15), (1, 10), (1, 10), (1, 10), (1, 10)]


def test_the_interval_of_the_specification() -> None:
    found = spread([0.80, 0.82, 0.79, 0.85, 0.81])
    assert found.mean == pytest.approx(0.814)
    assert found.low == pytest.approx(0.814 - 0.028585, abs=1e-6)
    assert found.high == pytest.approx(0.814 + 0.028585, abs=1e-6)
    assert (found.least, found.greatest, found.n) == (0.79, 0.85, 5)


def test_incomplete_judgments_by_subtopic_share_a_shuffle_across_percentages() -> None:
    chance = np.random.default_rng(3)
    names = [f"d{number:02}" for number in range(50)]
    judged = {
        f"{t}": {d: {f"{s}": int(chance.random() < 0.15) for s in range(3)} for d in names} for t in range(4)
    }
    runs = lists({f"r{i}": {f"{t}": chance.permutation(names).tolist() for t in range(4)} for i in range(6)})
    subject = subject_of(diverse(judged), runs, "alpha_nDCG@20 ERR_IA@20")
    found = trials_of("incomplete", subject, {"repeats": 4, "percents": [100, 60, 60, 5]})
    for trial in found.values():
        assert trial[1] == trial[2]
        assert trial[0]["orders"]["alpha_nDCG@20"]["tau"] == 1
        assert trial[0]["kept"] > trial[1]["kept"] > trial[3]["kept"]
    report = audited("incomplete", subject, {"repeats": 4, "percents": [100, 60, 5]})
    assert report.numbers["tau(ERR_IA@20)@100"] == 1
    row = report.table("points").rows[2]
    taus = [trial[3]["orders"]["alpha_nDCG@20"]["tau"] for trial in found.values()]
    assert row[3] == pytest.approx(math.fsum(taus) / 4)
    assert (row[6], row[7]) == (min(taus), max(taus))


def test_a_collection_with_relevant_documents_alone_samples_these() -> None:
    qrels = diverse({"1": {f"d{n:02}": {"x": 1} for n in range(20)}})
    subject = subject_of(qrels, RUNS, "alpha_nDCG@20")
    [trial] = trials_of("incomplete", subject, {"repeats": 1, "percents": [50, 1]}).values()
    assert [step["kept"] for step in trial] == [10, 1]


def test_a_pool_that_holds_every_judged_document_gives_tau_1() -> None:
    qrels, runs = board(documents=40, judged=40)
    report = audited("pool_depth", subject_of(qrels, runs, "AP nDCG@10", top=40), {"deepest": 40})
    assert report.numbers["tau(AP)@40"] == report.numbers["tau(nDCG@10)@40"] == 1
    assert report.numbers["pool@40"] == report.numbers["relevant@40"] == 1
    assert report.numbers["kept@40"] == 1
    assert report.warnings == ()


def test_pools_of_each_depth_by_hand() -> None:
    """Topic 1: a, x at depth 1 of a, b, c, d, x at 3; topic 2: e, f of e, f, y. Relevant: a of a, c, d; e."""
    subject = subject_of(QRELS, RUNS, "AP", top=3)
    report = audited("pool_depth", subject, {"deepest": 3})
    numbers = report.numbers
    assert numbers["pool@1"] == pytest.approx((2 / 5 + 2 / 3) / 2)
    assert numbers["relevant@1"] == pytest.approx((1 / 3 + 1) / 2)
    assert report.table("pools").rows[-1][:3] == (3, 8, 6)
    under = qrels_of({"1": {"a": 1}, "2": {"e": 1, "f": 0}})
    trial = trials_of("pool_depth", subject, {"deepest": 3})[0]
    scores = [evaluate(under, joined_of(run, under), [parse("AP")]) for run in RUNS.values()]
    means = [of.aggregates()[parse("AP")] for of in scores]
    assert trial["orders"]["AP"]["mean"] == pytest.approx(math.fsum(means) / 3)
    assert trial["kept"] == 3


def test_depths_end_where_the_runs_do() -> None:
    subject = subject_of(QRELS, RUNS, "AP", top=100_000)
    report = audited("pool_depth", subject, {"deepest": 100_000})
    assert [row[0] for row in report.table("pools").rows] == [1, 2, 3, 4]
    assert report.numbers["pool@4"] == 1


def test_judged_documents_of_no_run_are_told() -> None:
    qrels, runs = board()
    report = audited("pool_depth", subject_of(qrels, runs, "AP", top=5), {"deepest": 5})
    assert "among the first 5 of no run here" in report.warnings[0]
    assert report.numbers["kept@5"] is not None
    assert report.numbers["kept@5"] < 1


def test_judgments_that_are_gone_whoever_is_left_out_are_told() -> None:
    qrels, runs = board()
    report = audited("unlabelled_systems", subject_of(qrels, runs, "AP", top=5), {"depth": 5, "repeats": 2})
    assert "among the first 5 of no run here: they lose their judgments" in report.warnings[0]
    whole = audited("unlabelled_systems", subject_of(QRELS, RUNS, "AP", top=9), {"depth": 9, "repeats": 2})
    assert not any("of no run" in one for one in whole.warnings)


@pytest.mark.parametrize(
    "kind", ["downsampling", "incomplete", "pool_depth", "unlabelled_systems", "unjudged"]
)
def test_one_topic_is_warned_of(kind: str) -> None:
    one = qrels_of({"1": {"a": 1, "b": 0, "c": 2, "d": 1}})
    report = audited(kind, subject_of(one, RUNS, "AP", top=5))
    assert report.warnings[0].startswith("There is one topic only")


def test_a_part_of_the_depths_makes_a_partial_report() -> None:
    qrels, runs = board()
    subject = subject_of(qrels, runs, "AP", top=20)
    audit, found = read_audit("pool_depth"), trials_of("pool_depth", subject, only=[7, 2])
    report = audit.report(subject.about, dict(sorted(found.items())))
    assert [row[1] for row in report.table("points").rows] == [8, 3]


def test_how_many_systems_are_removed() -> None:
    """S = 48: p = 5, 10, 50, 90, 99 remove 2, 4, 24, 43, 47 (spec 7.4)."""
    assert removed(48, [5, 10, 50, 90, 99]) == [2, 4, 24, 43, 47]
    assert removed(2, [5, 99]) == [1, 1]


def test_documents_of_runs_that_are_left_keep_their_judgments() -> None:
    subject = subject_of(QRELS, RUNS, "AP", top=3)
    parameters = {"percents": [34, 67], "repeats": 20, "depth": 2}
    pools, audit = Pools.of(subject), read_audit("unlabelled_systems", parameters)
    kept = {}
    for gone in ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2)):
        left = [run for run in range(3) if run not in gone]
        kept[frozenset(gone)] = int((pools.judged & (pools.best[left] <= 2).any(axis=0)).sum())
    assert kept[frozenset({0})] == 4  # a, c, d and f
    seen = set()
    for number, trial in trials_of("unlabelled_systems", subject, parameters).items():
        order = audit.generator(7, number).permutation(3).tolist()
        for step, gone in zip(trial, (order[:1], order[:2]), strict=True):
            assert step["kept"] == kept[frozenset(gone)]
            seen.add(frozenset(gone))
    assert len(seen) == 6


def test_who_is_not_in_the_pool_loses_more() -> None:
    """Runs with documents of their own: what each finds alone is lost with it."""
    names = [f"d{number:03}" for number in range(200)]
    grades = {f"{t}": {name: int(name[-1] in "05") for name in names} for t in range(6)}
    chance = np.random.default_rng(9)
    runs = lists(
        {f"r{i}": {t: chance.choice(names, 20, replace=False).tolist() for t in grades} for i in range(10)}
    )
    subject = subject_of(qrels_of(grades), runs, "P@10", top=20)
    report = audited("unlabelled_systems", subject, {"percents": [20, 50, 90], "repeats": 5})
    bias = [report.numbers[f"bias(P@10)@{p}"] for p in (20, 50, 90)]
    assert all(one is not None and one > 0.01 for one in bias)
    assert "of the runs unlabelled, the mean score of these changes by -0." in report.verdict[-1]


def test_tau_of_the_removed_systems_alone() -> None:
    qrels, runs = board(runs=5)
    subject = subject_of(qrels, runs, "AP", top=20)
    parameters = {"percents": [20, 60], "repeats": 3, "systems": "removed"}
    report = audited("unlabelled_systems", subject, parameters)
    assert report.numbers["tau(AP)@20"] is None  # one run has no order
    assert report.numbers["tau(AP)@60"] is not None
    assert "too few of the removed runs" in report.undefined[0]


@pytest.mark.parametrize("kind", ["incomplete", "pool_depth", "unlabelled_systems"])
def test_nonsense_is_told_in_sentences(kind: str) -> None:
    one = subject_of(QRELS, {"one": RUNS["one"]}, "AP", top=20)
    assert any("only one: give two or more" in sentence for sentence in problems(kind, one))
    nothing = subject_of(qrels_of({"1": {"a": 0}}), RUNS, "AP", top=20)
    assert any("no document is judged relevant" in sentence for sentence in problems(kind, nothing))


def test_parameters_out_of_range_are_refused() -> None:
    for kind, parameters in (
        ("incomplete", {"percents": [0]}),
        ("incomplete", {"percents": [10, 20]}),
        ("pool_depth", {"deepest": 0}),
        ("unlabelled_systems", {"percents": [50, 100]}),
        ("unlabelled_systems", {"systems": "some"}),
    ):
        with pytest.raises(AuditError, match="expected"):
            read_audit(kind, parameters)
    two = subject_of(QRELS, dict(list(RUNS.items())[:2]), "AP", top=20)
    assert problems("unlabelled_systems", two, {"systems": "removed"})
