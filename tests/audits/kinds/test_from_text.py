"""Tests of audit parameters from the command line."""

from typing import Any

import pytest

from cupel_audits import AuditError, parse_audit, read_audit

VALID = [
    ("ratios", "90,50,10", [90, 50, 10]),
    ("ratios", "[90,50]", [90, 50]),
    ("ratios", "90", [90]),
    ("ratios", " 7.5 , 2 ", [7.5, 2]),
    ("repeats", "3", 3),
    ("nested", "True", True),
    ("aspect", "quality", "quality"),
    ("aspect", "two words", "two words"),
    ("aspect", "0.5", "0.5"),
    ("aspect", "None", None),
]
INVALID = [
    ("ratios", "0", "got 0"),
    ("ratios", "10,90", "got [10,90]"),
    ("ratios", "100/3", "got '100/3'"),
    ("ratios", "nDCG@10", "got 'nDCG@10'"),
    ("ratios", "", "got []"),
    ("ratios", "90;50", "got '90;50'"),
    ("repeats", "1e3", "got 1000.0"),
    ("repeats", "9" * 40, "got '999"),
    ("nested", "maybe", "got maybe"),
    ("method", "stratifed", "did you mean stratified?"),
    ("ratio", "5", "downsampling has no parameter 'ratio'; did you mean ratios?"),
]


@pytest.mark.parametrize(("name", "text", "value"), VALID)
def test_parsed_text_equals_json_value(name: str, text: str, value: Any) -> None:
    assert parse_audit("downsampling", {name: text}) == read_audit("downsampling", {name: value})


@pytest.mark.parametrize(("name", "text", "sentence"), INVALID)
def test_invalid_text_is_reported(name: str, text: str, sentence: str) -> None:
    with pytest.raises(AuditError) as problem:
        parse_audit("downsampling", {name: text})
    assert sentence in str(problem.value)


def test_all_problems_are_reported_together() -> None:
    with pytest.raises(AuditError) as problem:
        parse_audit("downsampling", {"ratios": "0", "repeats": "0", "colour": "red"})
    assert [sentence.partition(" ")[0] for sentence in problem.value.sentences] == [
        "ratios:",
        "repeats:",
        "downsampling",
    ]
