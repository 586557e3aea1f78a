"""Tests of labels from external scores, by shares of documents or by thresholds.

The labels follow Maistro et al., CIKM 2021, section 4.1.
"""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cupel_measures.findings import KINDS, Finding, Refused
from cupel_measures.model import Qrels
from cupel_measures.reading.collection_files import parse_collection
from cupel_measures.reading.declarations.aspect_declarations import aspects_from
from support.data.small_collections import ranked, score_of

SCALE = {"labels": [0, 1, 2]}
SHARES = {"file": "scores", "layout": "scores", "aspect": "made", "shares": [0.05, 0.15]}
THRESHOLDS = {"file": "scores", "layout": "scores", "aspect": "made", "thresholds": [80, 90]}
QRELS = {"file": "qrels", "aspect": "relevance"}


def collection(*listed: Mapping[str, Any], scale: Mapping[str, Any] = SCALE) -> str:
    return json.dumps({"aspects": {"relevance": {"labels": [0, 1]}, "made": scale}, "qrels": list(listed)})


def labelled(
    entry: Mapping[str, Any], scores: Mapping[str, object], also: Sequence[str] = (), **scale: Any
) -> dict[str, int]:
    """Return the label of each judged document.

    also: judged documents without a score.
    """
    judged = "".join(f"1 0 {d} 1\n" for d in [*scores, *also])
    lines = "".join(f"{d} {score}\n" for d, score in scores.items())
    files = {"qrels": judged.encode(), "scores": lines.encode()}
    return labels_made(parse_collection(collection(QRELS, entry, **scale), files).qrels)


def labels_made(qrels: Qrels) -> dict[str, int]:
    return {qrels.documents[i]: int(label) for i, label in enumerate(qrels.labels[1])}


class TestScoreLabels:
    """Labels by shares of 20 documents, and by thresholds on percentiles."""

    def test_shares_label_the_best_documents(self) -> None:
        labels = labelled(SHARES, {f"d{i:02}": i / 20 for i in range(20)})
        assert {d: label for d, label in labels.items() if label} == {"d19": 2, "d18": 1, "d17": 1}
        assert len(labels) == 20

    def test_thresholds_label_percentiles(self) -> None:
        percentiles = (0, 79, 80, 89, 90, 99)
        labels = labelled(THRESHOLDS, {f"p{p:02}": p for p in percentiles})
        assert list(labels.values()) == [0, 0, 1, 1, 2, 2]

    def test_tied_scores_share_the_best_position(self) -> None:
        scores = {f"d{i:02}": max(i, 2) for i in range(20)}
        scores |= {"d19": 18, "d18": 18}  # positions 1, 1, 3, 4, ...
        found = labelled(SHARES, scores)
        assert {d: label for d, label in found.items() if label} == {"d19": 2, "d18": 2, "d17": 1}
        assert set(labelled(SHARES, dict.fromkeys("abc", 7)).values()) == {0}  # 1 > 0.15 of 3

    def test_document_without_a_score_has_the_lowest_label(self) -> None:
        assert labelled(THRESHOLDS, {"a": 95}, ["b"]) == {"a": 2, "b": 0}

    def test_shares_count_the_documents_of_the_score_file(self) -> None:
        text = collection(QRELS, SHARES)
        scores = "".join(f"d{i:02} {-i}\n" for i in range(20)).encode()
        parsed = parse_collection(text, {"qrels": b"1 0 d00 1\n2 0 d02 1\n2 0 d03 0\n", "scores": scores})
        assert labels_made(parsed.qrels) == {"d00": 2, "d02": 1, "d03": 0}


class TestExactArithmetic:
    def test_share_is_an_exact_decimal(self) -> None:
        # In floats 0.29 * 100 is below 29.
        entry = {**SHARES, "shares": ["0.29"]}
        labels = labelled(entry, {f"d{i:03}": i for i in range(100)}, scale={"labels": [0, 1]})
        assert sum(labels.values()) == 29 > 0.29 * 100

    def test_scores_beyond_float_precision_are_distinguished(self) -> None:
        scores = {"a": "89.99999999999999999999", "b": "90.0", "c": "9e1", "d": "1e9999", "e": "-1e-9999"}
        assert float(scores["a"]) == 90.0
        assert labelled(THRESHOLDS, scores) == {"a": 1, "b": 2, "c": 2, "d": 2, "e": 0}

    def test_thresholds_may_be_negative_rationals(self) -> None:
        entry = {**THRESHOLDS, "thresholds": ["-1/3", "1/3"]}
        scores = {"a": "-0.34", "b": "-0.33", "c": "0.3333333333", "d": ".3333333334"}
        assert labelled(entry, scores) == {"a": 0, "b": 1, "c": 1, "d": 2}

    @given(st.lists(st.integers(0, 6), min_size=1, max_size=40))
    def test_labels_by_shares_equal_the_definition(self, scores: list[int]) -> None:
        labels = labelled(SHARES, {f"d{i:02}": score for i, score in enumerate(scores)})
        for i, score in enumerate(scores):
            position, n = 1 + sum(other > score for other in scores), len(scores)
            expected = 2 if 100 * position <= 5 * n else 1 if 100 * position <= 15 * n else 0
            assert labels[f"d{i:02}"] == expected


def test_score_labels_are_used_by_measures() -> None:
    files = {"qrels": b"1 0 a 0\n1 0 b 1\n", "scores": b"# pagerank\n\na\t93\r\nb 81\nz 99\n"}
    qrels = parse_collection(collection(QRELS, THRESHOLDS), files).qrels
    assert score_of("P(aspect=made,rel=2)@1", {"1": ranked(*"ab")}, qrels) == 1.0
    assert score_of("nDCG(aspect=made)", {"1": ranked(*"ab")}, qrels) == 1.0
    assert score_of("Judged@2", {"1": ranked(*"az")}, qrels) == 0.5


def test_score_labels_may_be_words() -> None:
    words = {"labels": ["spam", "fine"]}
    assert labelled({**THRESHOLDS, "thresholds": [70]}, {"a": 70, "b": 69}, scale=words) == {"a": 1, "b": 0}


def errors_of(text: str, scores: bytes = b"a 1\n", qrels: bytes = b"1 0 a 1\n") -> list[Finding]:
    """Return the errors of a collection with these files."""
    with pytest.raises(Refused) as problem:
        parse_collection(text, {"qrels": qrels, "scores": scores}, name="c.yaml")
    return problem.value.findings.errors


class TestErrors:
    def test_errors_of_all_lines_are_reported_together(self) -> None:
        scores = b"a 1\nb x\nc\na 2\nd 1 2\ne 1_0\nf inf\ng nan\nh 1e99999\n\xff 1\n"
        errors = errors_of(collection(QRELS, SHARES), scores, qrels=b"1 0 a 7\n")
        assert [(error.file, error.line, error.code) for error in errors] == [
            ("qrels", 1, "qrels-label-above-scale"),
            ("scores", 10, "qrels-not-text"),
            ("scores", 2, "scores-number"),
            ("scores", 3, "qrels-columns"),
            ("scores", 4, "scores-twice"),
            ("scores", 5, "qrels-columns"),
            *(("scores", line, "scores-number") for line in (6, 7, 8, 9)),
        ]
        assert errors[2].message == "the score 'x' of b is not a number"
        assert errors[3].message == "1 column, expected 2 (document made)"
        assert errors[3].topic is None
        assert errors[4].message == "document a already has a score on line 1"

    def test_errors_beyond_the_listed_ones_are_counted(self) -> None:
        scores = b"".join(b"d%d x\n" % i for i in range(500))
        with pytest.raises(Refused) as problem:
            parse_collection(collection(QRELS, SHARES), {"qrels": b"1 0 a 1\n", "scores": scores})
        assert problem.value.findings.totals == {"scores-number": 500}
        assert len(problem.value.findings.errors) == 100

    def test_empty_score_file_is_rejected(self) -> None:
        assert [error.code for error in errors_of(collection(QRELS, SHARES), b"# nothing\n")] == [
            "qrels-empty"
        ]

    @pytest.mark.parametrize(
        ("entry", "code", "message"),
        [
            ({"shares": [0.1]}, "scores-steps", "made has 3 labels, so expected 2 shares, got 1"),
            ({"shares": [0.15, 0.05]}, "scores-steps", "expected ascending shares, got 0.15, 0.05"),
            ({"shares": [0.1, 0.1]}, "scores-steps", "expected ascending shares"),
            ({"shares": [0, 0.5]}, "scores-steps", "expected shares above 0 and below 1, got 0, 0.5"),
            ({"shares": [0.5, 1]}, "scores-steps", "expected shares above 0 and below 1"),
            ({"shares": [0.5, "x"]}, "document-other-kind", "expected a number, got 'x'"),
            ({"shares": 0.5}, "document-other-kind", "expected a list of numbers such as [0.05, 0.15]"),
            ({"shares": [0.1, 0.2], "thresholds": [1, 2]}, "scores-steps", "either shares"),
            ({}, "scores-steps", "either shares: [0.05, 0.15] or thresholds: [80, 90]"),
            ({"aspect": "mde", "shares": [0.1, 0.2]}, "collection-columns", "did you mean made?"),
            ({"shares": [0.1, 0.2], "columns": ["document"]}, "collection-columns", "document and score"),
            ({"layout": "score", "aspect": None}, "collection-columns", "did you mean scores?"),
            ({"aspect": None, "shares": [0.1, 0.2]}, "collection-columns", "declare aspect: NAME"),
            ({"layout": None, "shares": [0.1, 0.2]}, "collection-columns", "shares require layout: scores"),
            (
                {"aspect": "relevance", "shares": [0.1]},
                "scores-alone",
                "another file already judges relevance",
            ),
        ],
    )
    def test_invalid_score_entry_is_rejected(self, entry: Mapping[str, Any], code: str, message: str) -> None:
        base = {"file": "scores", "layout": "scores", "aspect": "made"}
        complete = {key: value for key, value in {**base, **entry}.items() if value is not None}
        [error] = errors_of(collection(QRELS, complete))
        assert (error.code, error.file, error.line) == (code, "c.yaml", 1)
        assert message in error.message
        assert error.message.startswith("qrels[2]")
        assert KINDS[code].remedy

    def test_scores_without_judgments_are_rejected(self) -> None:
        [error] = errors_of(collection(SHARES))
        assert error.code == "scores-alone"
        assert error.message == (
            "qrels: no file judges the documents that have scores; "
            "add a file such as {file: qrels.txt, aspect: relevance}"
        )


def test_collection_file_of_the_readme_is_valid(root: Path) -> None:
    [text] = re.findall(r"```yaml\n(.*?)```", (root / "libs/measures/README.md").read_text(), re.S)
    files = {
        "qrels.txt": b"1 0 a 2 20\n1 0 b -1 60\n2 0 c 1 0\n",
        "pagerank.txt": b"a 0.9\nb 0.1\n",
        "waterloo.txt": b"a 85\nb 99\n",
        "diversity.txt": b"1 s a 1\n",
        "topics.txt": b"1 first\n2 second\n",
    }
    parsed = parse_collection(text, files)
    assert parsed.qrels.labels.tolist() == [[2, -2, 1], [80, 40, 100], [0, 0, 0], [1, 2, 0]]
    assert parsed.measures == ("nDCG@10", "TOMA(of=nDCG@10)")


class TestDefaultThreshold:
    """The default threshold of long scales.

    It is 40 on the scale of difficulty from 0 to 100 (READINGS.md, reading 14).
    """

    def warnings(self, labels: object, **more: object) -> list[str]:
        text = {"aspects": {"u": {"labels": labels, **more}}, "qrels": [{"file": "q", "aspect": "u"}]}
        findings = parse_collection(json.dumps(text), {"q": b"1 0 a 100\n1 0 b 0\n"}).findings
        return [warning.message for warning in findings.warnings]

    def test_default_threshold_of_the_difficulty_scale_is_40(self) -> None:
        [hard] = aspects_from({"u": {"labels": {"range": [100, 0]}}})
        assert hard.labels[hard.threshold] == 40
        [declared] = aspects_from({"u": {"labels": {"range": [100, 0]}, "threshold": 99}})
        assert declared.labels[declared.threshold] == 99
        assert self.warnings({"range": [100, 0]}) == []

    def test_default_threshold_of_other_long_scales_gives_a_warning(self) -> None:
        [easy] = aspects_from({"u": {"labels": {"range": [0, 100]}}})
        assert easy.labels[easy.threshold] == 1
        assert self.warnings({"range": [0, 100]}) == [
            "aspects.u: labels from 1 to 100 count as relevant by default"
        ]
        assert self.warnings({"range": [0, 100]}, threshold=60) == []
