"""The audit `downsampling`: the order of runs under random samples of the judgments."""

import numpy as np
import pytest

from cupel_audits.declarations import AuditError, read_audit
from cupel_audits.execution import parts
from cupel_audits.report import AuditReport
from cupel_measures.catalogue.parser import parse
from cupel_measures.comparing.rank_correlation import tau_b
from cupel_measures.model import Aspect
from cupel_measures.scoring.evaluator import evaluate
from support.data.audit_subjects import audited, board, lists, problems, reported, subject_of, trials_of
from support.data.small_collections import joined_of, qrels_of

FEW = {"ratios": [100, 50, 10], "repeats": 6}


def test_samples_of_all_judgments_give_tau_1() -> None:
    qrels, runs = board()
    for parameters in (FEW, {**FEW, "method": "uniform"}, {**FEW, "method": "uniform", "nested": True}):
        report = audited("downsampling", subject_of(qrels, runs, "AP nDCG@10"), parameters)
        assert report.numbers["tau(AP)@100"] == report.numbers["tau(nDCG@10)@100"] == 1
        assert report.numbers["kept@100"] == 1
        assert report.numbers["tau(AP)@10"] is not None
        assert report.numbers["tau(AP)@10"] < 1


def test_restricted_evaluator_equals_rescoring() -> None:
    qrels, runs = board(runs=4, topics=3)
    subject = subject_of(qrels, runs, "AP")
    means = {}
    for name, kept in {"full": None, "half": np.arange(len(qrels.documents)) % 2 == 0}.items():
        under = qrels if kept is None else qrels.restricted_to(kept)
        scores = [evaluate(under, joined_of(run, under), [parse("AP")]) for run in runs.values()]
        means[name] = np.round([run_scores.aggregates()[parse("AP")] for run_scores in scores], 12)
    evaluator = subject.evaluator.restricted_to(np.arange(len(qrels.documents)) % 2 == 0)
    assert subject.means["AP"].tolist() == means["full"].tolist()
    assert subject.means_under(evaluator)["AP"].tolist() == means["half"].tolist()
    assert tau_b(means["full"], means["half"]).value is not None


@pytest.mark.parametrize("method", ["stratified", "uniform"])
def test_results_are_independent_of_the_order_of_trials(method: str) -> None:
    qrels, runs = board()
    parameters = {**FEW, "method": method}
    subject = subject_of(qrels, runs, "AP P@5")
    in_order = trials_of("downsampling", subject, parameters)
    single: dict[int, object] = {}
    for trial in (5, 0, 3, 1, 4, 2):
        fresh = subject_of(qrels, runs, "AP P@5")  # as in another process
        single |= trials_of("downsampling", fresh, parameters, only=[trial])
    assert single == in_order
    expected = reported("downsampling", subject, parameters, in_order)
    assert reported("downsampling", subject, parameters, single) == expected


def test_another_seed_gives_other_samples() -> None:
    qrels, runs = board()
    subject = subject_of(qrels, runs, "AP")
    first, second = (trials_of("downsampling", subject, FEW, seed=seed) for seed in (1, 2))
    assert first != second
    assert len({str(trial) for trial in first.values()}) > 1


def test_parts_contain_every_trial_once() -> None:
    qrels, runs = board(runs=3, topics=2)
    audit = read_audit("downsampling", {"repeats": 17})
    results = [trial for part in parts(audit, subject_of(qrels, runs, "AP")) for trial in part]
    assert results == list(range(17))


def test_only_the_given_aspect_loses_judgments() -> None:
    names = [f"d{number:02}" for number in range(40)]
    graded = {name: int(place < 8) for place, name in enumerate(names)}
    qrels = qrels_of({Aspect(name=name, labels=range(2)): {"1": graded} for name in ("one", "two")})
    rng = np.random.default_rng(2)
    runs = lists({f"r{i}": {"1": rng.permutation(names).tolist()} for i in range(6)})
    subject = subject_of(qrels, runs, "AP(aspect='one') AP(aspect='two')")
    results = trials_of("downsampling", subject, {"ratios": [50, 10], "repeats": 3, "aspect": "two"})
    first, second = (str(measure) for measure in subject.measures)
    assert all(step["orders"][first]["tau"] == 1 for trial in results.values() for step in trial)
    assert any(step["orders"][second]["tau"] < 1 for trial in results.values() for step in trial)


def test_impossible_audits_are_refused_with_a_reason() -> None:
    qrels, runs = board(runs=2)
    single = subject_of(qrels, {"run0": runs["run0"]}, "AP")
    assert problems("downsampling", single) == [
        "the audit compares runs, but only one is given: give two or more"
    ]
    nothing = subject_of(qrels_of({"1": {"a": 0, "b": 0}}), runs, "AP")
    assert any("no document is judged relevant" in problem for problem in problems("downsampling", nothing))
    with pytest.raises(AuditError, match="percentages above 0"):
        read_audit("downsampling", {"ratios": [50, 0]})


def test_equal_scores_leave_tau_undefined() -> None:
    qrels = qrels_of({"1": {"a": 1, "b": 0}})
    runs = lists({"one": {"1": ["a", "b"]}, "two": {"1": ["a"]}})
    report = audited("downsampling", subject_of(qrels, runs, "AP"), FEW)
    assert report.numbers["tau(AP)@50"] is None
    assert report.verdict == (
        "AP: tau is undefined at every step: all runs have the same score under the remaining or under all "
        "judgments.",
    )
    assert any("all runs have the same score" in sentence for sentence in report.undefined)


def test_verdict_says_that_tau_is_high_only_with_all_judgments() -> None:
    report = audited("incomplete", subject_of(*board(runs=12), "P@5"), {"percents": [100, 30], "repeats": 3})
    assert report.numbers["tau(P@5)@30"] < 0.9  # type: ignore[operator]
    assert (
        "mean tau over 3 repeats is at least 0.9 with all judgments, but not at the next step; with "
        in report.verdict[0]
    )


def report_of_taus(*taus: tuple[float | None, ...], kept: int = 10) -> AuditReport:
    """Return a report on repeats with the given tau of AP at 90, 50 and 10 per cent.

    kept: number of judgments that are left at each step.
    """
    subject = subject_of(*board(), "AP")
    parameters = {"ratios": [90, 50, 10], "repeats": len(taus)}
    trials = trials_of("downsampling", subject, parameters)
    for trial, values in zip(trials.values(), taus, strict=True):
        for step, tau in zip(trial, values, strict=True):
            step["orders"]["AP"]["tau"] = tau
            step["kept"] = min(kept, subject.about.judged)
    return reported("downsampling", subject, parameters, trials)


@pytest.mark.parametrize(
    ("taus", "extent"),
    [
        ((1, None, 1), "is at least 0.9 at every step where it is defined (2 of 3); with "),
        ((1, None, 0.5), "is at least 0.9 down to "),
        ((1, 1, 1), "is at least 0.9 at every step; with "),
        ((0.5, 1, 1), "is below 0.9 at the first step; with "),
        ((None, 1, 0.5), "is undefined at the first step, and below 0.9 at a later one; with "),
    ],
)
def test_verdict_counts_the_steps_at_which_tau_is_defined(
    taus: tuple[float | None, ...], extent: str
) -> None:
    report = report_of_taus(taus)
    assert report.verdict[0].startswith(f"AP: tau {extent}")
    assert report.plots[0].title.startswith(f"AP: tau {extent.partition(';')[0]}")


def test_verdict_counts_the_repeats_in_the_mean() -> None:
    report = report_of_taus((1, 1, 1), (1, 1, None), (1, 1, None))
    assert report.verdict[0].startswith(
        "AP: mean tau over up to 3 repeats is at least 0.9 at every step; with "
    )
    assert report.verdict[0].endswith(
        " it is 1.00 (1 of 3 repeats; in the others all runs have the same score)."
    )


def test_verdict_says_that_nothing_was_tested_if_no_judgment_was_removed() -> None:
    report = report_of_taus((1, 1, 1), kept=10**6)
    assert report.verdict[0] == "AP: no judgment was removed at any step, so nothing was tested."
    assert report.plots[0].title == "AP: no judgment was removed at any step, so nothing was tested"
    assert not any("random samples" in action for action in report.actions)


@pytest.mark.parametrize(
    ("taus", "advice"),
    [
        ((1, 1, 0.5), " stays at 0.9 or more down to: "),
        ((0.5, 0.5, 0.5), " is below 0.9 already at the largest share tried ("),
        ((None, 1, 0.5), " is below 0.9 or undefined already at the largest share tried ("),
    ],
)
def test_advice_names_measures_that_are_low_at_the_first_step(
    taus: tuple[float | None, ...], advice: str
) -> None:
    tau = "In random samples of these judgments, mean tau with the order of these runs"
    assert report_of_taus(taus).actions[0].startswith(tau + advice)


def test_report_warns_of_measures_that_do_not_use_the_aspect() -> None:
    quality = Aspect(name="quality", labels=range(2))
    qrels = qrels_of(
        {Aspect(name="relevance", labels=range(2)): {"1": {"a": 1}}, quality: {"1": {"a": 1, "b": 0}}}
    )
    runs = lists({"one": {"1": ["a", "b"]}, "two": {"1": ["b", "a"]}})
    measures = "AP AP(aspect=quality) CAM(of=AP)"
    report = audited("downsampling", subject_of(qrels, runs, measures), {**FEW, "aspect": "quality"})
    warning = (
        "AP: does not score by quality, the only aspect whose judgments are removed, "
        "so the order cannot change"
    )
    assert warning in report.warnings
    assert warning not in audited("downsampling", subject_of(qrels, runs, measures), FEW).warnings


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [
        ("downsampling", {"ratios": [50], "method": "stratified"}),
        ("downsampling", {"ratios": [50], "method": "uniform"}),
        ("downsampling", {"ratios": [50], "nested": True}),
        ("incomplete", {"percents": [50]}),
    ],
)
def test_removed_documents_stay_in_the_pool(kind: str, parameters: dict[str, object]) -> None:
    """A sample keeps one of the relevant documents a and b, so one run has it at rank 1 and the other at 2.

    infAP is 1 at rank 1. At rank 2 it is 1/2 + 1/2 * 1/2, because the pooled document at rank 1 counts half.
    """
    subject = subject_of(
        qrels_of({"1": {"a": 1, "b": 1}}), lists({"one": {"1": "ab"}, "two": {"1": "ba"}}), "infAP"
    )
    report = audited(kind, subject, {"repeats": 3, **parameters})
    assert report.table("points").column("score") == [pytest.approx((1 + 3 / 4) / 2, abs=1e-4)]
    assert not any("infAP" in warning for warning in report.warnings)
