"""Tests of the division of an audit's trials into parts."""

import pytest

from cupel_audits import read_audit
from cupel_audits.execution import FEWEST_PARTS, MOST_PARTS, parts
from support.data.audit_subjects import board, subject_of

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
