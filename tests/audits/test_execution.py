"""Tests of the division of an audit's trials into parts, and of the result of finished trials."""

import json
from typing import Any

import pytest

from cupel_audits import execution, read_audit
from cupel_audits.execution import FEWEST_PARTS, MOST_PARTS, parts, result
from cupel_audits.report import AuditReport
from support.data.audit_subjects import SEED, board, lists, subject_of, trials_of
from support.data.small_collections import qrels_of

SUBJECT = subject_of(*board(runs=2, topics=2), "AP")


def sizes(repeats: int, *, most: int | None = None) -> list[int]:
    audit = read_audit("downsampling", {"repeats": repeats, "ratios": [50]})
    return [len(part) for part in parts(audit, SUBJECT, most=most)]


@pytest.mark.parametrize(
    ("repeats", "expected"), [(1, 1), (FEWEST_PARTS - 1, FEWEST_PARTS - 1), (100, FEWEST_PARTS)]
)
def test_cheap_trials_make_few_parts(repeats: int, expected: int) -> None:
    assert len(sizes(repeats)) == expected


def test_parts_have_at_most_the_given_number_of_trials() -> None:
    assert max(sizes(1000, most=10)) == 10
    assert len(sizes(1000, most=10)) == 100


def test_number_of_parts_is_limited() -> None:
    assert len(sizes(5000, most=1)) == MOST_PARTS


def test_expensive_trials_make_more_parts() -> None:
    audit = read_audit("scales", {})
    few, many = (subject_of(*board(runs=2, topics=2, documents=n, judged=n), "AP") for n in (20, 200))
    assert audit.steps(few) > audit.steps(many) > 1


def test_number_of_parts_is_the_cost_divided_by_the_cost_of_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    # A trial scores 3 judged documents at 2 ratios by 2 measures, so 40 trials cost 40 * 12 = 480.
    monkeypatch.setattr(execution, "DOCUMENTS_PER_PART", 48)
    subject = subject_of(
        qrels_of({"1": {"a": 1, "b": 0}}), lists({"one": {"1": "ab"}, "two": {"1": "b"}}), "AP P@5"
    )
    audit = read_audit("downsampling", {"repeats": 40, "ratios": [50, 25]})
    assert parts(audit, subject) == tuple(range(begin, begin + 4) for begin in range(0, 40, 4))


@pytest.mark.parametrize(
    ("kind", "parameters", "steps"),
    [
        ("aspects", {}, 10),
        ("content", {"percents": [50, 25]}, 20 * 2),
        ("content", {"curve": "pool_depth", "deepest": 3}, 20 * 3),
        ("correlation", {}, 1),
        # 3 pairs of runs on 2 topics; 4 resampled scores cost as much as one of 360 documents
        ("discriminative_power", {"replicates": 960}, 1 + 960 * 2 * 3 / 4 / 360),
        ("downsampling", {"ratios": [50, 25]}, 2),
        ("incomplete", {"percents": [50, 25]}, 2),
        ("label_selection", {}, 200),
        ("qrels_versions", {}, 50),
        ("scales", {}, 1 + 3e7 / 360),
        ("unjudged", {"tried": 5}, 5 / 2),  # 5 documents on one of two topics
        ("unlabelled_systems", {"percents": [25, 50]}, 2),
    ],
)
def test_estimated_cost_of_a_trial(kind: str, parameters: dict[str, Any], steps: float) -> None:
    """Three runs have 60 judged documents on each of two topics."""
    subject = subject_of(*board(runs=3, topics=2), "AP")
    assert read_audit(kind, parameters).steps(subject) == pytest.approx(steps)


def test_result_is_complete_if_all_trials_are_finished() -> None:
    audit, trials = (
        read_audit("downsampling", {"repeats": 2}),
        trials_of("downsampling", SUBJECT, only=[0, 1]),
    )
    none, some, whole = (
        result(audit, SUBJECT.about, SEED, 2, {trial: trials[trial] for trial in range(done)})
        for done in range(3)
    )
    assert [each.complete for each in (none, some, whole)] == [False, False, True]
    assert none.as_data()["report"] is None
    assert AuditReport.of(json.loads(json.dumps(whole.as_data()))["report"]) == whole.report
