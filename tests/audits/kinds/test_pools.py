"""Pools, and the audits `incomplete`, `pool_depth` and `unlabelled_systems` (Hui, PIKM 2014, section 3)."""

import math

import numpy as np
import pytest

from cupel_audits.analysis import pool_contributions
from cupel_audits.analysis.judgment_samples import stratified
from cupel_audits.analysis.pool_contributions import Contributions, pool_depth
from cupel_audits.analysis.pools import Pools, find_last_rank, unjudged
from cupel_audits.analysis.run_orders import summarise_repeats
from cupel_audits.declarations import AuditError, read_audit
from cupel_audits.kinds.incomplete import two_strata
from cupel_audits.kinds.unlabelled_systems import count_removed
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
"""x and y are unjudged. The third run has no documents for topic 2."""


def test_pool_masks_hold_the_documents_within_a_depth() -> None:
    subject = subject_of(QRELS, RUNS, "AP", top=3)
    pools = Pools.of(subject)
    ids = [
        (pools.tops.topic[i] + 1, document.decode())
        for i, document in enumerate(pools.tops.documents.to_list())
    ]
    named = lambda mask: {ids[i] for i in np.flatnonzero(mask)}  # noqa: E731
    assert named(pools.pooled(1)) == {(1, "a"), (1, "x"), (2, "e"), (2, "f")}
    assert named(pools.pooled(3)) == {(1, d) for d in "abcdx"} | {(2, d) for d in "efy"}
    assert named(pools.judged) == {(1, d) for d in "abcd"} | {(2, d) for d in "ef"}
    assert named(pools.relevant) == {(1, d) for d in "acd"} | {(2, "e")}
    assert find_last_rank(pools.tops) == 3


@pytest.mark.parametrize(
    ("groups", "alone"),
    [([0, 1, 2], [{"e"}, {"c", "f"}, {"d"}]), ([0, 1, 0], [{"d", "e"}, {"c", "f"}])],
)
def test_contributions_are_the_documents_of_a_single_group(groups: list[int], alone: list[set[str]]) -> None:
    subject = subject_of(QRELS, RUNS, "AP")
    contributions, ids = Contributions.of(subject, groups), subject.qrels.documents.to_list()
    owner = contributions.owner(2)
    assert [{ids[i].decode() for i in np.flatnonzero(owner == group)} for group in range(len(alone))] == alone


def test_unjudged_shares_divide_by_the_retrieved_documents() -> None:
    subject = subject_of(QRELS, RUNS, "AP", top=3)
    assert subject.tops is not None
    shares = unjudged(subject.tops.ranked, Pools.of(subject).judged, 2)
    assert shares[:2].tolist() == [[0.5, 0.5], [0, 0]]
    assert shares[2, 0] == 0.5
    assert math.isnan(shares[2, 1])
    joined = [pool_contributions.unjudged(subject, run, subject.judged, 2) for run in range(3)]
    np.testing.assert_array_equal(np.stack(joined), shares)


def test_pool_depth_is_estimated_from_the_judged_documents() -> None:
    names = [f"d{number:02}" for number in range(40)]
    rng = np.random.default_rng(5)
    runs = {f"r{i}": {f"{t}": rng.permutation(names).tolist() for t in range(20)} for i in range(5)}
    judged = {
        f"{t}": {
            document: int(document < "d05") for run in list(runs.values())[:4] for document in run[f"{t}"][:6]
        }
        for t in range(20)
    }
    assert pool_depth(subject_of(qrels_of(judged), lists(runs), "AP"), 20) == 6
    assert pool_depth(subject_of(qrels_of({"9": {"a": 1}}), lists(runs), "AP"), 20) == 1


def test_pool_without_an_edge_is_as_deep_as_half_of_its_documents_are_judged() -> None:
    """At the ranks 1 to 13 of 20 runs, 20, 19, ..., 8 documents are judged: half of them at rank 11."""
    runs = {f"r{i}": {"1": [f"r{i}d{rank}" for rank in range(1, 14)]} for i in range(20)}
    judged = {"1": {f"r{i}d{rank}": 1 for rank in range(1, 14) for i in range(21 - rank)}}
    assert pool_depth(subject_of(qrels_of(judged), lists(runs), "AP"), 20) == 11


def test_incomplete_samples_have_the_hand_worked_sizes() -> None:
    """Of 7 relevant and 30 other documents, keep 7 and 30 (100%), 5 and 24 (80%), 3 and 15 (50%), ..."""
    by_subtopic = {f"d{n:02}": {"x": int(n < 4), "y": int(3 <= n < 7)} for n in range(37)}
    judged = two_strata(subject_of(diverse({"1": by_subtopic}), lists({"r": {"1": []}}), "alpha_nDCG@20"))
    rng = np.random.Generator(np.random.PCG64(1))
    percents = (100.0, 80.0, 50.0, 20.0, 15.0, 10.0, 5.0)
    sizes = [(int(mask[:7].sum()), int(mask[7:].sum())) for mask in stratified(rng, judged, percents)]
    assert sizes == [(7, 30), (5, 24), (3, 15), (1, 10), (1, 10), (1, 10), (1, 10)]


def test_spread_has_the_t_interval_of_the_mean() -> None:
    values = summarise_repeats([0.80, 0.82, 0.79, 0.85, 0.81])
    assert values.mean == pytest.approx(0.814)
    assert values.low == pytest.approx(0.814 - 0.028585, abs=1e-6)
    assert values.high == pytest.approx(0.814 + 0.028585, abs=1e-6)
    assert (values.least, values.greatest, values.n) == (0.79, 0.85, 5)


def test_incomplete_samples_share_one_shuffle_across_percentages() -> None:
    rng = np.random.default_rng(3)
    names = [f"d{number:02}" for number in range(50)]
    judged = {
        f"{t}": {d: {f"{s}": int(rng.random() < 0.15) for s in range(3)} for d in names} for t in range(4)
    }
    runs = lists({f"r{i}": {f"{t}": rng.permutation(names).tolist() for t in range(4)} for i in range(6)})
    subject = subject_of(diverse(judged), runs, "alpha_nDCG@20 ERR_IA@20")
    results = trials_of("incomplete", subject, {"repeats": 4, "percents": [100, 60, 60, 5]})
    for trial in results.values():
        assert trial[1] == trial[2]
        assert trial[0]["orders"]["alpha_nDCG@20"]["tau"] == 1
        assert trial[0]["kept"] > trial[1]["kept"] > trial[3]["kept"]
    report = audited("incomplete", subject, {"repeats": 4, "percents": [100, 60, 5]})
    assert report.numbers["tau(ERR_IA@20)@100"] == 1
    row = report.table("points").records()[2]
    taus = [trial[3]["orders"]["alpha_nDCG@20"]["tau"] for trial in results.values()]
    assert row["mean"] == pytest.approx(math.fsum(taus) / 4)
    assert (row["least"], row["greatest"]) == (min(taus), max(taus))


def test_incomplete_samples_relevant_documents_if_there_are_no_others() -> None:
    qrels = diverse({"1": {f"d{n:02}": {"x": 1} for n in range(20)}})
    subject = subject_of(qrels, RUNS, "alpha_nDCG@20")
    [trial] = trials_of("incomplete", subject, {"repeats": 1, "percents": [50, 1]}).values()
    assert [step["kept"] for step in trial] == [10, 1]


def test_pool_depth_gives_tau_1_if_the_pool_has_every_judged_document() -> None:
    qrels, runs = board(documents=40, judged=40)
    report = audited("pool_depth", subject_of(qrels, runs, "AP nDCG@10", top=40), {"deepest": 40})
    assert report.numbers["tau(AP)@40"] == report.numbers["tau(nDCG@10)@40"] == 1
    assert report.numbers["pool@40"] == report.numbers["relevant@40"] == 1
    assert report.numbers["kept@40"] == 1
    assert report.warnings == ()


def test_pool_depth_scores_equal_rescoring_with_fewer_judgments() -> None:
    """The pools of depth 1 are a, x (of a, b, c, d, x) and e, f (of e, f, y). a, c, d, e are relevant."""
    subject = subject_of(QRELS, RUNS, "AP", top=3)
    report = audited("pool_depth", subject, {"deepest": 3})
    numbers = report.numbers
    assert numbers["pool@1"] == pytest.approx((2 / 5 + 2 / 3) / 2)
    assert numbers["relevant@1"] == pytest.approx((1 / 3 + 1) / 2)
    assert [report.table("pools").column(name)[-1] for name in ("depth", "documents", "judged")] == [3, 8, 6]
    under = qrels_of({"1": {"a": 1}, "2": {"e": 1, "f": 0}})
    trial = trials_of("pool_depth", subject, {"deepest": 3})[0]
    scores = [evaluate(under, joined_of(run, under), [parse("AP")]) for run in RUNS.values()]
    means = [score.aggregates()[parse("AP")] for score in scores]
    assert trial["orders"]["AP"]["mean"] == pytest.approx(math.fsum(means) / 3)
    assert trial["kept"] == 3


def test_pool_depth_stops_at_the_deepest_rank_of_any_run() -> None:
    subject = subject_of(QRELS, RUNS, "AP", top=100_000)
    report = audited("pool_depth", subject, {"deepest": 100_000})
    assert report.table("pools").column("depth") == [1, 2, 3, 4]
    assert report.numbers["pool@4"] == 1


def test_pool_depth_warns_of_judged_documents_outside_the_pool() -> None:
    qrels, runs = board()
    report = audited("pool_depth", subject_of(qrels, runs, "AP", top=5), {"deepest": 5})
    assert "are not in the top 5 of any audited run" in report.warnings[0]
    assert report.numbers["kept@5"] is not None
    assert report.numbers["kept@5"] < 1


def test_unlabelled_systems_warns_of_judged_documents_outside_the_pool() -> None:
    qrels, runs = board()
    report = audited("unlabelled_systems", subject_of(qrels, runs, "AP", top=5), {"depth": 5, "repeats": 2})
    assert "are not in the top 5 of any audited run: they lose their judgments" in report.warnings[0]
    complete = audited("unlabelled_systems", subject_of(QRELS, RUNS, "AP", top=9), {"depth": 9, "repeats": 2})
    assert not any("of any audited run" in warning for warning in complete.warnings)


@pytest.mark.parametrize(
    "kind", ["downsampling", "incomplete", "pool_depth", "unlabelled_systems", "unjudged"]
)
def test_reports_warn_of_a_single_topic(kind: str) -> None:
    single = qrels_of({"1": {"a": 1, "b": 0, "c": 2, "d": 1}})
    report = audited(kind, subject_of(single, RUNS, "AP", top=5))
    assert report.warnings[0].startswith("There is only one topic")


def test_pool_depth_reports_the_depths_that_are_done() -> None:
    qrels, runs = board()
    subject = subject_of(qrels, runs, "AP", top=20)
    audit, trials = read_audit("pool_depth"), trials_of("pool_depth", subject, only=[7, 2])
    report = audit.report(subject.about, dict(sorted(trials.items())))
    assert report.table("points").column("depth") == [8, 3]
    assert audit.report(subject.about, {2: trials[2]}).table("points").column("depth") == [3]


def test_count_removed_gives_the_hand_worked_numbers() -> None:
    """Of 48 runs, floor(0.48 p) are removed; of 2 runs, always one."""
    assert count_removed(48, [5, 10, 50, 90, 99]) == [2, 4, 24, 43, 47]
    assert count_removed(2, [5, 99]) == [1, 1]


def test_unlabelled_systems_keeps_the_judgments_of_the_remaining_runs() -> None:
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


def test_unlabelled_systems_finds_a_bias_if_runs_share_few_documents() -> None:
    """If runs are left out, many of their documents become unjudged, because few other runs have them."""
    names = [f"d{number:03}" for number in range(200)]
    grades = {f"{t}": {name: int(name[-1] in "05") for name in names} for t in range(6)}
    rng = np.random.default_rng(9)
    runs = lists(
        {f"r{i}": {t: rng.choice(names, 20, replace=False).tolist() for t in grades} for i in range(10)}
    )
    subject = subject_of(qrels_of(grades), runs, "P@10", top=20)
    report = audited("unlabelled_systems", subject, {"percents": [20, 50, 90], "repeats": 5})
    bias = [report.numbers[f"bias(P@10)@{p}"] for p in (20, 50, 90)]
    assert all(value is not None and value > 0.01 for value in bias)
    assert "with 5 of 10 runs left out, the mean score of these runs changes by -0." in report.verdict[-1]


def test_verdict_of_unlabelled_systems_is_at_the_percentage_nearest_to_50() -> None:
    subject = subject_of(QRELS, RUNS, "AP", top=9)
    report = audited("unlabelled_systems", subject, {"percents": [49, 52], "repeats": 1, "depth": 9})
    assert report.verdict[-1].startswith("AP: with 1 of 3 runs left out,")


def test_unlabelled_systems_can_compute_tau_over_the_removed_runs() -> None:
    qrels, runs = board(runs=5)
    subject = subject_of(qrels, runs, "AP", top=20)
    parameters = {"percents": [20, 60], "repeats": 3, "systems": "removed"}
    report = audited("unlabelled_systems", subject, parameters)
    assert report.numbers["tau(AP)@20"] is None  # one removed run: no pair to order
    assert report.numbers["tau(AP)@60"] is not None
    assert "the removed runs are too few" in report.undefined[0]


@pytest.mark.parametrize("kind", ["incomplete", "pool_depth", "unlabelled_systems"])
def test_impossible_audits_are_refused_with_a_reason(kind: str) -> None:
    single = subject_of(QRELS, {"one": RUNS["one"]}, "AP", top=20)
    assert any("only one is given: give two or more" in sentence for sentence in problems(kind, single))
    nothing = subject_of(qrels_of({"1": {"a": 0}}), RUNS, "AP", top=20)
    assert any("no document is judged relevant" in sentence for sentence in problems(kind, nothing))


def test_parameters_outside_their_range_are_refused() -> None:
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


def test_last_rank_counts_ranks_that_hold_the_first_document_only() -> None:
    subject = subject_of(QRELS, lists({"one": {"1": "ba"}, "two": {"1": "da"}}), "AP", top=9)
    assert subject.tops is not None
    assert subject.tops.documents.to_list()[0] == b"a"
    assert find_last_rank(subject.tops) == 2
