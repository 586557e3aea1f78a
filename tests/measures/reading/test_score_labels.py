"""Labels made of scores that were computed elsewhere (spec 3.11)."""

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
    """Label of each judged document: of those with scores, and `also` others."""
    judged = "".join(f"1 0 {d} 1\n" for d in [*scores, *also])
    lines = "".join(f"{d} {score}\n" for d, score in scores.items())
    files = {"qrels": judged.encode(), "scores": lines.encode()}
    return made(parse_collection(collection(QRELS, entry, **scale), files).qrels)


def made(qrels: Qrels) -> dict[str, int]:
    return {qrels.documents[i]: int(label) for i, label in enumerate(qrels.labels[1])}


class TestSection311:
    """Spec 3.11: 20 different scores; percentiles 0, 79, 80, 89, 90, 99."""

    def test_of_twenty_documents_one_is_popular_and_two_nearly_are(self) -> None:
        found = labelled(SHARES, {f"d{i:02}": i / 20 for i in range(20)})
        assert {d: label for d, label in found.items() if label} == {"d19": 2, "d18": 1, "d17": 1}
        assert len(found) == 20

    def test_percentiles_have_the_labels_that_are_printed(self) -> None:
        percentiles = (0, 79, 80, 89, 90, 99)
        found = labelled(THRESHOLDS, {f"p{p:02}": p for p in percentiles})
        assert list(found.values()) == [0, 0, 1, 1, 2, 2]

    def test_ties_share_the_best_position(self) -> None:
        scores = {f"d{i:02}": max(i, 2) for i in range(20)}
        scores |= {"d19": 18, "d18": 18}  # positions 1, 1, 3, 4, ...
        found = labelled(SHARES, scores)
        assert {d: label for d, label in found.items() if label} == {"d19": 2, "d18": 2, "d17": 1}
        assert set(labelled(SHARES, dict.fromkeys("abc", 7)).values()) == {0}  # 1 > 0.15 of 3

    def test_an_unknown_score_is_the_lowest_label(self) -> None:
        assert labelled(THRESHOLDS, {"a": 95}, ["b"]) == {"a": 2, "b": 0}

    def test_the_number_of_documents_is_that_of_the_file(self) -> None:
        text = collection(QRELS, SHARES)
        scores = "".join(f"d{i:02} {-i}\n" for i in range(20)).encode()
        found = parse_collection(text, {"qrels": b"1 0 d00 1\n2 0 d02 1\n2 0 d03 0\n", "scores": scores})
        assert made(found.qrels) == {"d00": 2, "d02": 1, "d03": 0}


class TestExactly:
    def test_a_share_is_the_decimal_that_was_typed(self) -> None:
        # 0.1 * 30 is above 3 as a float product of 0.1's double; 0.29 * 100 is below 29
        entry = {**SHARES, "shares": ["0.29"]}
        found = labelled(entry, {f"d{i:03}": i for i in range(100)}, scale={"labels": [0, 1]})
        assert sum(found.values()) == 29 > 0.29 * 100

    def test_scores_that_one_float_would_hold_are_told_apart(self) -> None:
        scores = {"a": "89.99999999999999999999", "b": "90.0", "c": "9e1", "d": "1e9999", "e": "-1e-9999"}
        assert float(scores["a"]) == 90.0
        assert labelled(THRESHOLDS, scores) == {"a": 1, "b": 2, "c": 2, "d": 2, "e": 0}

    def test_thresholds_may_be_rationals_and_negative(self) -> None:
        entry = {**THRESHOLDS, "thresholds": ["-1/3", "1/3"]}
        scores = {"a": "-0.34", "b": "-0.33", "c": "0.3333333333", "d": ".3333333334"}
        assert labelled(entry, scores) == {"a": 0, "b": 1, "c": 1, "d": 2}

    @given(st.lists(st.integers(0, 6), min_size=1, max_size=40))
    def test_positions_are_counted_as_defined(self, scores: list[int]) -> None:
        found = labelled(SHARES, {f"d{i:02}": score for i, score in enumerate(scores)})
        for i, score in enumerate(scores):
            position, n = 1 + sum(other > score for other in scores), len(scores)
            expected = 2 if 100 * position <= 5 * n else 1 if 100 * position <= 15 * n else 0
            assert found[f"d{i:02}"] == expected


def test_labels_of_scores_are_judgments_like_others() -> None:
    files = {"qrels": b"1 0 a 0\n1 0 b 1\n", "scores": b"# pagerank\n\na\t93\r\nb 81\nz 99\n"}
    qrels = parse_collection(collection(QRELS, THRESHOLDS), files).qrels
    assert score_of("P(aspect=made,rel=2)@1", {"1": ranked(*"ab")}, qrels) == 1.0
    assert score_of("nDCG(aspect=made)", {"1": ranked(*"ab")}, qrels) == 1.0
    assert score_of("Judged@2", {"1": ranked(*"az")}, qrels) == 0.5


def test_any_labels_are_those_of_the_aspect() -> None:
    words = {"labels": ["spam", "fine"]}
    assert labelled({**THRESHOLDS, "thresholds": [70]}, {"a": 70, "b": 69}, scale=words) == {"a": 1, "b": 0}


def refused(text: str, scores: bytes = b"a 1\n", qrels: bytes = b"1 0 a 1\n") -> list[Finding]:
    with pytest.raises(Refused) as problem:
        parse_collection(text, {"qrels": qrels, "scores": scores}, name="c.yaml")
    return problem.value.findings.errors


class TestMistakes:
    def test_every_wrong_line_is_told_at_once_with_its_place(self) -> None:
        scores = b"a 1\nb x\nc\na 2\nd 1 2\ne 1_0\nf inf\ng nan\nh 1e99999\n\xff 1\n"
        found = refused(collection(QRELS, SHARES), scores, qrels=b"1 0 a 7\n")
        assert [(one.file, one.line, one.code) for one in found] == [
            ("qrels", 1, "qrels-label-above-scale"),
            ("scores", 10, "qrels-not-text"),
            ("scores", 2, "scores-number"),
            ("scores", 3, "qrels-columns"),
            ("scores", 4, "scores-twice"),
            ("scores", 5, "qrels-columns"),
            *(("scores", line, "scores-number") for line in (6, 7, 8, 9)),
        ]
        assert found[2].message == "the score 'x' of b is not a number"
        assert found[3].message == "1 column, expected 2 (document made)"
        assert found[3].topic is None
        assert found[4].message == "document a already has a score on line 1"

    def test_many_wrong_lines_are_counted(self) -> None:
        scores = b"".join(b"d%d x\n" % i for i in range(500))
        with pytest.raises(Refused) as problem:
            parse_collection(collection(QRELS, SHARES), {"qrels": b"1 0 a 1\n", "scores": scores})
        assert problem.value.findings.totals == {"scores-number": 500}
        assert len(problem.value.findings.errors) == 100

    def test_an_empty_file_is_refused(self) -> None:
        assert [one.code for one in refused(collection(QRELS, SHARES), b"# nothing\n")] == ["qrels-empty"]

    @pytest.mark.parametrize(
        ("entry", "code", "said"),
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
    def test_a_description_that_can_not_be_is_refused(
        self, entry: Mapping[str, Any], code: str, said: str
    ) -> None:
        base = {"file": "scores", "layout": "scores", "aspect": "made"}
        whole = {key: value for key, value in {**base, **entry}.items() if value is not None}
        [found] = refused(collection(QRELS, whole))
        assert (found.code, found.file, found.line) == (code, "c.yaml", 1)
        assert said in found.message
        assert found.message.startswith("qrels[2]")
        assert KINDS[code].remedy

    def test_scores_alone_judge_nothing(self) -> None:
        [found] = refused(collection(SHARES))
        assert found.code == "scores-alone"
        assert found.message == (
            "qrels: scores label documents that other files judge; add a file "
            "such as {file: qrels.txt, aspect: relevance}"
        )


def test_the_collection_file_of_the_readme_can_be_read(root: Path) -> None:
    [text] = re.findall(r"```yaml\n(.*?)```", (root / "libs/measures/README.md").read_text(), re.S)
    files = {
        "qrels.txt": b"1 0 a 2 20\n1 0 b -1 60\n2 0 c 1 0\n",
        "pagerank.txt": b"a 0.9\nb 0.1\n",
        "waterloo.txt": b"a 85\nb 99\n",
        "diversity.txt": b"1 s a 1\n",
        "topics.txt": b"1 first\n2 second\n",
    }
    found = parse_collection(text, files)
    assert found.qrels.labels.tolist() == [[2, -2, 1], [80, 40, 100], [0, 0, 0], [1, 2, 0]]
    assert found.measures == ("nDCG@10", "TOMA(of=nDCG@10)")


class TestThresholds:
    """What counts on a long scale that declares no threshold (spec 5: 40 where 100 is very hard)."""

    def warnings(self, labels: object, **more: object) -> list[str]:
        text = {"aspects": {"u": {"labels": labels, **more}}, "qrels": [{"file": "q", "aspect": "u"}]}
        found = parse_collection(json.dumps(text), {"q": b"1 0 a 100\n1 0 b 0\n"}).findings
        return [one.message for one in found.warnings]

    def test_on_the_scale_of_the_paper_it_is_40(self) -> None:
        [hard] = aspects_from({"u": {"labels": {"range": [100, 0]}}})
        assert hard.labels[hard.threshold] == 40
        [declared] = aspects_from({"u": {"labels": {"range": [100, 0]}, "threshold": 99}})
        assert declared.labels[declared.threshold] == 99
        assert self.warnings({"range": [100, 0]}) == []

    def test_on_others_it_is_the_second_label_and_that_is_said(self) -> None:
        [easy] = aspects_from({"u": {"labels": {"range": [0, 100]}}})
        assert easy.labels[easy.threshold] == 1
        assert self.warnings({"range": [0, 100]}) == [
            "aspects.u: labels from 1 to 100 count as relevant by default"
        ]
        assert self.warnings({"range": [0, 100]}, threshold=60) == []
