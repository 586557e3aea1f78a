"""Tests of the notation of worked examples: parsing, writing as files, and errors."""

import json
from pathlib import Path

import pytest

from cupel_measures.catalogue.worked_examples import Judgment, Value, read


def test_example_is_parsed_into_judgments_runs_and_values() -> None:
    example = read(
        "Example: a=3 b=-2 | c=1; run b a | -: P@1 0.5 = (0 + 1) / 2,\nnDCG(gains={1:1,2:3}) 0.123457."
    )
    assert example.topics == (
        (Judgment("a", ("3",), None, None), Judgment("b", ("-2",), None, None)),
        (Judgment("c", ("1",), None, None),),
    )
    [run] = example.runs
    assert run.topics == (("b", "a"), ())
    assert run.values == (
        Value("P@1", "0.5", "(0 + 1) / 2"),
        Value("nDCG(gains={1:1,2:3})", "0.123457", None),
    )


def test_value_of_six_decimals_has_a_rounding_tolerance() -> None:
    assert Value("AP", "0.805556", None).tolerance > 5e-7
    assert Value("AP", "0.5", None).tolerance < 1e-9


def test_example_of_grades_is_written_as_plain_qrels(tmp_path: Path) -> None:
    qrels, runs = read("Example: a=3 | b=0; run x a | b: AP 0.25; run - | b: AP 0").write(tmp_path)
    assert qrels.read_text() == "1 0 a 3\n2 0 b 0\n"
    assert [run.read_text() for run in runs] == [
        "1 Q0 x 1 2 run-1\n1 Q0 a 2 1 run-1\n2 Q0 b 1 1 run-1\n",
        "2 Q0 b 1 1 run-2\n",
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["qrels.txt", "run-1.txt", "run-2.txt"]


def test_example_with_aspects_is_written_as_a_collection(tmp_path: Path) -> None:
    text = "Example: effort: 100..0 (threshold 40), trust: low < high; a=(20,high) b=(-,low); run a b: AP 1"
    collection, _ = read(text).write(tmp_path)
    assert json.loads(collection.read_text()) == {
        "aspects": {
            "effort": {"labels": {"range": [100, 0]}, "unjudged": ["-"], "threshold": 40},
            "trust": {"labels": ["low", "high"], "unjudged": ["-"]},
        },
        "qrels": [{"file": "qrels.txt", "columns": ["topic", "_", "document", "effort", "trust"]}],
    }
    assert (tmp_path / "qrels.txt").read_text() == "1 0 a 20 high\n1 0 b - low\n"


def test_subtopics_and_texts_are_written_to_separate_files(tmp_path: Path) -> None:
    text = 'Example: a={1,2}"red cabbage" b={}"rain" c"snow"; run c a: StRecall@2 1'
    collection, _ = read(text).write(tmp_path)
    assert json.loads(collection.read_text())["texts"] == "texts.jsonl"
    assert (tmp_path / "subtopics.txt").read_text() == "1 1 a 1\n1 2 a 1\n1 1 b 0\n"
    texts = [json.loads(line) for line in (tmp_path / "texts.jsonl").read_text().splitlines()]
    assert texts == [
        {"id": "a", "text": "red cabbage"},
        {"id": "b", "text": "rain"},
        {"id": "c", "text": "snow"},
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Example: a=1", "run DOCUMENTS: RESULTS"),
        ("Example: run a: AP 1", "judgments"),
        ("Sample: a=1; run a: AP 1", "expected `Example:"),
        ("Example: a=1 b=(1; run a: AP 1", "expected a judgment such as a=1"),
        ("Example: relevance; a=1; run a: AP 1", "expected a scale such as"),
        ("Example: a=1; run a: AP", "expected a measure and its value"),
        ("Example: a=1; run a: AP is 1", "expected a measure and its value"),
    ],
)
def test_invalid_example_is_rejected(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        read(text)
