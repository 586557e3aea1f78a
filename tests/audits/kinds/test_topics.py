"""Tests of the audit kind `topics`."""

from typing import Any

import numpy as np
import pytest

from cupel_audits.analysis.lmd_selection import select_topics
from cupel_audits.subject import AuditSubject
from cupel_measures.comparing.topic_set_sizes import pooled_variance, smallest_difference, topics_needed
from cupel_measures.model import Floats
from support.data.audit_subjects import audited, board, problems, reported, subject_of, trials_of
from support.data.small_collections import diverse, qrels_of, ranked

FEW = {"draws": 8}
ORDERS = (("up", range(9)), ("down", range(8, -1, -1)))


def subject_with_precisions(rows: dict[str, list[float]], measure: str = "P@10") -> AuditSubject:
    """Return a subject of runs a, b, ... with the given P@10. rows: topic -> P@10 of each run."""
    documents = [f"d{number:02}" for number in range(20)]
    qrels = qrels_of({topic: {name: int(name < "d10") for name in documents} for topic in rows})
    runs = {
        name: {
            topic: ranked(
                *documents[: round(10 * shares[run])], *documents[10 : 20 - round(10 * shares[run])]
            )
            for topic, shares in rows.items()
        }
        for run, name in enumerate("abcdefgh"[: len(next(iter(rows.values())))])
    }
    return subject_of(qrels, runs, measure)


def small_subject(measures: str = "AP nDCG@10") -> AuditSubject:
    return subject_of(*board(runs=5, topics=9), measures)


def scores(subject: AuditSubject, measure: str) -> Floats:
    return subject.scores[measure]


def test_sufficient_number_of_random_topics_is_stated() -> None:
    """Each topic alone gives the order of all topics, so one random topic suffices."""
    report = audited("topics", subject_with_precisions({str(n): [0.5, 0.3, 0.1] for n in range(4)}), FEW)
    assert any(sentence.startswith("P@10: with 1 random topic,") for sentence in report.verdict)


class TestSwaps:
    def test_two_contradicting_topics_always_swap(self) -> None:
        """One topic prefers run a by 0.5, and the other prefers run b, so every draw swaps them."""
        report = audited("topics", subject_with_precisions({"1": [0.7, 0.2], "2": [0.2, 0.7]}), FEW)
        [row] = report.table("swaps").rows
        # 0.2 is the last bin, with all larger differences. One size gives no fitted curve.
        assert row == ("P@10", 0.2, 1, 8, 8, 1.0, None)
        assert report.numbers["lasting(P@10)"] is None

    def test_run_that_is_better_on_each_topic_is_never_swapped(self) -> None:
        """Run a is better than run b by 0.1 on each of eight topics, and so on every set of topics."""
        report = audited(
            "topics", subject_with_precisions({str(n): [n / 10 + 0.1, n / 10] for n in range(8)}), FEW
        )
        assert report.table("swaps").rows == (
            *(("P@10", 0.1, size, 8, 0, 0.0, 0.0) for size in (1, 2, 3, 4)),
            ("P@10", 0.1, 8, None, None, None, 0.0),
        )
        assert report.numbers["lasting(P@10)"] == 0.1
        assert report.verdict[0] == (
            "P@10: with 8 topics, among these runs, pairs in each bin of observed differences from 0.1 up "
            "are estimated to be reversed by at most 5% of other sets of 8 topics (mean of the bin, "
            "extrapolated)."
        )
        # No rate is too high below 0.1, where there are no differences.
        assert report.actions[0] == "Test every difference with a paired test."

    def test_smallest_bin_is_named_if_no_difference_is_often_reversed(self) -> None:
        """All differences are 0.1; here their counts are moved to the first bin."""
        subject = subject_with_precisions({str(n): [n / 10 + 0.1, n / 10] for n in range(8)})
        trials = trials_of("topics", subject, FEW)
        for trial in trials.values():
            for entry in trial.get("draw", {}).get("P@10", []):
                entry["compared"].insert(0, entry["compared"].pop(10))
        report = reported("topics", subject, FEW, trials)
        assert (
            "pairs in every bin of observed differences, the smallest (0 to 0.01) included, are estimated to "
            "be reversed by at most 5% of other sets of 8 topics" in report.verdict[0]
        )
        assert report.plots[0].title == (
            "With 8 topics, all bins of differences by P@10 have a mean extrapolated swap rate of at most 5%"
        )
        assert report.actions[0] == "Test every difference with a paired test."

    def test_given_sizes_are_used(self) -> None:
        results = trials_of("topics", small_subject("AP"), {"sizes": [2, 4], **FEW})
        assert [entry["size"] for entry in results[0]["draw"]["AP"]] == [2, 4]

    def test_every_pair_that_the_first_set_orders_is_compared(self) -> None:
        results = trials_of("topics", small_subject("AP"), FEW)
        assert {sum(entry["compared"]) for entry in results[3]["draw"]["AP"]} == {10}

    def test_bin_width_is_one_hundredth_for_measures_up_to_about_1(self) -> None:
        judged = {str(t): {f"d{n}": {"s": int((n + t) % 3 == 0)} for n in range(9)} for t in range(4)}
        runs = {name: {str(t): ranked(*(f"d{n}" for n in order)) for t in range(4)} for name, order in ORDERS}
        subject = subject_of(diverse(judged), runs, "alpha_nDCG@20")
        [entry, *_] = trials_of("topics", subject, FEW, only=[0])[0]["draw"]["alpha_nDCG@20"]
        assert entry["width"] == 0.01

    def test_bin_width_is_a_twentieth_of_the_range_for_other_measures(self) -> None:
        subject = small_subject("DCG@10")
        [entry, *_] = trials_of("topics", subject, FEW, only=[0])[0]["draw"]["DCG@10"]
        assert entry["width"] == pytest.approx(np.ptp(scores(subject, "DCG@10").mean(axis=0)) / 20)


class TestSubsets:
    def test_selection_equals_library_result(self) -> None:
        subject = small_subject()
        report = audited("topics", subject, {"subset": 6, **FEW})
        for measure in subject.about.measures:
            values = scores(subject, measure)
            expected = select_topics(subject.about.topics, values, values, 6)
            records = report.table("subsets").records()
            rows = [row for row in records if (row["measure"], row["how"]) == (measure, "chosen")]
            assert tuple(row["topic"] for row in rows) == expected.topics
            assert tuple(row["tau"] for row in rows) == expected.taus
            assert report.numbers[f"greedy({measure})@5"] == expected.taus[4]

    def test_ties_in_the_selection_go_to_the_smallest_id(self) -> None:
        """Means over all topics are 0.4/3, 0.6/3 and 1/3, so tau of t1 is 1.

        It stays 1 with t2 (means 0.15, 0.2, 0.3) and with t3 (0.1, 0.2, 0.35), so t2 is chosen.
        """
        report = audited(
            "topics",
            subject_with_precisions({"t1": [0.1, 0.2, 0.3], "t2": [0.2, 0.2, 0.3], "t3": [0.1, 0.2, 0.4]}),
            FEW,
        )
        chosen = [row for row in report.table("subsets").records() if row["how"] == "chosen"]
        assert [(row["topic"], row["tau"]) for row in chosen] == [("t1", 1.0), ("t2", 1.0), ("t3", 1.0)]
        assert report.numbers["enough(P@10)"] == 1

    def test_one_topic_with_the_order_of_all_is_enough(self) -> None:
        report = audited("topics", subject_with_precisions({str(n): [0.3, 0.2, 0.1] for n in range(4)}), FEW)
        assert set(report.table("subsets").column("tau")) == {1.0}
        sentence = "P@10: tau of 1 topic, selected for these runs, with the order by all 4 is 1.000."
        assert sentence in report.verdict


class TestTopics:
    def test_topics_with_low_medians_and_large_deviations(self) -> None:
        report = audited(
            "topics",
            subject_with_precisions(
                {"1": [0.0, 0.0, 0.0], "2": [0.8, 0.2, 0.2], "3": [0.4, 0.4, 0.1], "4": [0.2, 0.5, 0.6]}
            ),
            FEW,
        )
        table = report.table("topics")
        assert table.column("median") == [0.0, 0.2, 0.4, 0.5]
        assert table.column("mean") == pytest.approx([0.0, 0.4, 0.3, 1.3 / 3])
        assert table.column("zero") == [3, 0, 0, 0]
        assert table.column("spread") == pytest.approx([0.0, 0.08**0.5, 0.02**0.5, 0.26**0.5 / 3])
        assert table.column("tau")[0] is None
        assert report.numbers["zero_topics(P@10)"] == 1
        assert report.verdict[-1] == (
            "P@10: the topics with the lowest median scores are 1, 2, 3; on topic 1 all runs score 0; the "
            "topics with the largest standard deviations are 2, 4, 3."
        )


class TestSizes:
    def test_sizes_equal_library_results(self) -> None:
        subject = small_subject("AP")
        report = audited("topics", subject, {"difference": 0.1, **FEW})
        variance = pooled_variance(scores(subject, "AP"))
        assert variance is not None
        assert report.numbers["needed(AP)"] == topics_needed(0.1, variance, alpha=0.05)
        assert report.numbers["smallest(AP)"] == smallest_difference(variance, 9, alpha=0.05)

    def test_topics_needed_is_undefined_for_measures_of_another_scale(self) -> None:
        report = audited("topics", small_subject("DCG@10"), FEW)
        assert report.numbers["needed(DCG@10)"] is None
        assert (
            report.undefined[-1]
            == "needed(DCG@10): the given difference applies only to measures from 0 to 1"
        )


def test_trial_does_not_depend_on_other_trials() -> None:
    subject = small_subject()
    together = trials_of("topics", subject, FEW)
    assert len(together) == 10
    backwards: dict[int, Any] = trials_of("topics", subject, FEW, only=[9, 8, 3, 0])
    assert backwards == {trial: together[trial] for trial in backwards}
    assert trials_of("topics", subject, FEW, only=[3])[3] == together[3]
    assert together[0] != together[1]


def test_partial_report_covers_draws_or_measures() -> None:
    subject = small_subject()
    results = trials_of("topics", subject, FEW)
    draws = reported("topics", subject, FEW, {number: results[number] for number in (0, 1)})
    assert not draws.table("topics").rows
    assert set(draws.table("swaps").column("topics")) >= {1, 2, 3, 4}
    measures = reported("topics", subject, FEW, {9: results[9]})
    assert not measures.table("swaps").rows
    assert set(measures.table("topics").column("measure")) == {"nDCG@10"}


def test_equal_runs_have_no_sizes() -> None:
    report = audited("topics", subject_with_precisions({str(n): [0.3, 0.3] for n in range(4)}), FEW)
    assert report.numbers == {
        "lasting(P@10)": None,
        "enough(P@10)": None,
        "needed(P@10)": None,
        "smallest(P@10)": None,
        "zero_topics(P@10)": 0,
    }
    assert len(report.undefined) == 2
    assert all("P@10" in sentence for sentence in report.undefined)
    assert report.verdict == ("P@10: all runs have the same score on each topic.",)


def test_alpha_too_small_for_any_difference_is_reported() -> None:
    report = audited("topics", small_subject("AP"), {**FEW, "alpha": 1e-300})
    assert "smallest(AP): alpha is too small to detect any difference" in report.undefined


def test_scores_with_overflowing_squares_are_undefined() -> None:
    report = audited("topics", small_subject("RBTO@400 AP"), FEW)
    assert report.numbers["smallest(RBTO@400)"] is None
    assert report.numbers["smallest(AP)"] is not None
    assert any("1e+150" in sentence for sentence in report.undefined)


def test_unsuitable_subjects_and_sizes_are_refused() -> None:
    [size] = problems("topics", small_subject(), {"sizes": [2, 5]})
    assert size == "sizes: two disjoint sets of 5 topics need 10 topics; give sizes of at most 4"
    qrels, runs = board(topics=1)
    [one_run, one_topic] = problems("topics", subject_of(qrels, {"a": runs["run0"]}, "AP"))
    assert "only one is given" in one_run
    assert "only one topic" in one_topic
