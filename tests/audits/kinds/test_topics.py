"""`topics`: how much hangs on which topics, and on how many."""

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


def of_shares(rows: dict[str, list[float]], measure: str = "P@10") -> AuditSubject:
    """Runs a, b, ... whose P@10 on each topic are these numbers."""
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


def small(measures: str = "AP nDCG@10") -> AuditSubject:
    return subject_of(*board(runs=5, topics=9), measures)


def scores(subject: AuditSubject, measure: str) -> Floats:
    return subject.scores[measure]


class TestSwaps:
    def test_two_topics_that_contradict_each_other_swap_every_time(self) -> None:
        """Whichever topic is drawn first, a and b differ by 0.5 on it, and by -0.5 on the other."""
        report = audited("topics", of_shares({"1": [0.7, 0.2], "2": [0.2, 0.7]}), FEW)
        [row] = report.table("swaps").rows
        assert row == ("P@10", 0.2, 1, 8, 8, 1.0, None)  # the last bin, from 0.2 on; one size has no curve
        assert report.numbers["lasting(P@10)"] is None

    def test_a_better_run_everywhere_is_never_swapped(self) -> None:
        """a is better than b by 0.1 on each of eight topics, so by 0.1 on every set of them."""
        report = audited("topics", of_shares({str(n): [n / 10 + 0.1, n / 10] for n in range(8)}), FEW)
        rows = report.table("swaps").rows
        assert {row[1:4] for row in rows} == {(0.1, size, 8) for size in (1, 2, 3, 4)} | {(0.1, 8, None)}
        assert {row[4] for row in rows} == {0, None}
        assert {row[6] for row in rows} == {0.0}
        assert report.numbers["lasting(P@10)"] == 0.1
        assert "a difference of means of 0.1 or more is turned round" in report.verdict[0]

    def test_sizes_can_be_given(self) -> None:
        found = trials_of("topics", small("AP"), {"sizes": [2, 4], **FEW})
        assert [entry["size"] for entry in found[0]["draw"]["AP"]] == [2, 4]

    def test_every_pair_is_compared_that_the_first_set_orders(self) -> None:
        found = trials_of("topics", small("AP"), FEW)
        assert {sum(entry["compared"]) for entry in found[3]["draw"]["AP"]} == {10}

    def test_bins_are_a_hundredth_of_measures_up_to_about_1(self) -> None:
        judged = {str(t): {f"d{n}": {"s": int((n + t) % 3 == 0)} for n in range(9)} for t in range(4)}
        runs = {name: {str(t): ranked(*(f"d{n}" for n in order)) for t in range(4)} for name, order in ORDERS}
        subject = subject_of(diverse(judged), runs, "alpha_nDCG@20")
        [entry, *_] = trials_of("topics", subject, FEW, only=[0])[0]["draw"]["alpha_nDCG@20"]
        assert entry["width"] == 0.01

    def test_bins_of_measures_on_another_scale_are_a_twentieth_of_the_range_of_means(self) -> None:
        subject = small("DCG@10")
        [entry, *_] = trials_of("topics", subject, FEW, only=[0])[0]["draw"]["DCG@10"]
        assert entry["width"] == pytest.approx(np.ptp(scores(subject, "DCG@10").mean(axis=0)) / 20)


class TestSubsets:
    def test_are_those_that_the_library_selects(self) -> None:
        subject = small()
        report = audited("topics", subject, {"subset": 6, **FEW})
        for measure in subject.about.measures:
            values = scores(subject, measure)
            expected = select_topics(subject.about.topics, values, values, 6)
            rows = [row for row in report.table("subsets").rows if row[:2] == (measure, "chosen")]
            assert tuple(row[3] for row in rows) == expected.topics
            assert tuple(row[4] for row in rows) == expected.taus
            assert report.numbers[f"greedy({measure})@5"] == expected.taus[4]

    def test_the_example_of_the_spec_of_choosing(self) -> None:
        """Spec 7.5's reference scores, times 0.1. Means over all: 0.4/3, 0.6/3, 1/3, so tau of t1 alone is 1;
        with t2 (1.5, 2, 2.5) it stays 1, and with t3 (1, 2, 3.5) too: the smaller id is chosen.
        """
        report = audited(
            "topics", of_shares({"t1": [0.1, 0.2, 0.3], "t2": [0.2, 0.2, 0.3], "t3": [0.1, 0.2, 0.4]}), FEW
        )
        rows = [row[3:5] for row in report.table("subsets").rows if row[1] == "chosen"]
        assert rows == [("t1", 1.0), ("t2", 1.0), ("t3", 1.0)]
        assert report.numbers["enough(P@10)"] == 1

    def test_a_topic_that_orders_as_all_do_is_enough_at_once(self) -> None:
        report = audited("topics", of_shares({str(n): [0.3, 0.2, 0.1] for n in range(4)}), FEW)
        assert {row[4] for row in report.table("subsets").rows} == {1.0}
        assert any("1 topic, if well chosen, has the order of all 4" in one for one in report.verdict)


class TestTopics:
    def test_hard_and_telling_topics_by_hand(self) -> None:
        report = audited(
            "topics",
            of_shares(
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
        assert any(
            "the hardest topics are 1, 2, 3 by their median score; on topic 1 all runs score 0; 2, 4, 3 tell "
            "runs apart most" in one
            for one in report.verdict
        )


class TestSizes:
    def test_are_those_of_the_library(self) -> None:
        subject = small("AP")
        report = audited("topics", subject, {"difference": 0.1, **FEW})
        variance = pooled_variance(scores(subject, "AP"))
        assert variance is not None
        assert report.numbers["needed(AP)"] == topics_needed(0.1, variance, alpha=0.05)
        assert report.numbers["smallest(AP)"] == smallest_difference(variance, 9, alpha=0.05)

    def test_a_wished_difference_says_nothing_of_other_scales(self) -> None:
        report = audited("topics", small("DCG@10"), FEW)
        assert report.numbers["needed(DCG@10)"] is None
        assert "needed(DCG@10): the wished difference is of measures" in report.undefined[-1]


def test_trials_are_the_same_in_any_order_and_alone() -> None:
    subject = small()
    together = trials_of("topics", subject, FEW)
    assert len(together) == 10
    backwards: dict[int, Any] = trials_of("topics", subject, FEW, only=[9, 8, 3, 0])
    assert backwards == {one: together[one] for one in backwards}
    assert trials_of("topics", subject, FEW, only=[3])[3] == together[3]
    assert together[0] != together[1]


def test_a_report_on_draws_alone_or_measures_alone_says_what_they_do() -> None:
    subject = small()
    found = trials_of("topics", subject, FEW)
    draws = reported("topics", subject, FEW, {number: found[number] for number in (0, 1)})
    assert not draws.table("topics").rows
    assert {row[2] for row in draws.table("swaps").rows} >= {1, 2, 3, 4}
    measures = reported("topics", subject, FEW, {9: found[9]})
    assert not measures.table("swaps").rows
    assert {row[0] for row in measures.table("topics").rows} == {"nDCG@10"}


def test_runs_that_score_the_same_leave_nothing_to_tell() -> None:
    report = audited("topics", of_shares({str(n): [0.3, 0.3] for n in range(4)}), FEW)
    assert report.numbers == {
        "lasting(P@10)": None,
        "enough(P@10)": None,
        "needed(P@10)": None,
        "smallest(P@10)": None,
        "zero_topics(P@10)": 0,
    }
    assert len(report.undefined) == 2
    assert all("P@10" in one for one in report.undefined)
    assert report.verdict == ("P@10: no topic tells any runs apart.",)


def test_an_alpha_that_nothing_reaches_is_told_as_such() -> None:
    report = audited("topics", small("AP"), {**FEW, "alpha": 1e-300})
    assert "smallest(AP): no difference is found at so small an alpha" in report.undefined


def test_scores_that_cannot_be_squared_are_undefined() -> None:
    report = audited("topics", small("RBTO@400 AP"), FEW)
    assert report.numbers["smallest(RBTO@400)"] is None
    assert report.numbers["smallest(AP)"] is not None
    assert any("1e+150" in one for one in report.undefined)


def test_nonsense_is_refused_with_its_reason() -> None:
    [size] = problems("topics", small(), {"sizes": [2, 5]})
    assert size == "sizes: two sets of 5 topics can't be disjoint; there are at most 4"
    qrels, runs = board(topics=1)
    [one_run, one_topic] = problems("topics", subject_of(qrels, {"a": runs["run0"]}, "AP"))
    assert "there is only one" in one_run
    assert "only one topic" in one_topic
