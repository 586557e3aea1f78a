"""`cupel evaluate` with measures of document content, on a collection with document texts."""

import gzip
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cupel_client.main import cli

COLLECTION = """
aspects: {relevance: {labels: [0, 1]}}
qrels: [{file: diversity.txt, layout: subtopics}]
texts: docs.jsonl.gz
"""
TEXTS = {
    "a": "apple fruit tree apple",
    "b": "apple pie fruit",
    "c": "mac computer apple",
    "d": "rain weather",
    "e": "computer keyboard",
}
MEASURES = "LMD(depth=3) soft_alpha_nDCG@20 alpha_nDCG@20"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder with a collection of five documents with texts and two runs."""
    (tmp_path / "collection.yaml").write_text(COLLECTION)
    (tmp_path / "diversity.txt").write_text("1 1 a 1\n1 1 b 1\n1 2 c 1\n1 1 d 0\n")
    lines = [json.dumps({"id": document, "text": text}) + "\n" for document, text in TEXTS.items()]
    (tmp_path / "docs.jsonl.gz").write_bytes(gzip.compress("".join(lines).encode()))
    (tmp_path / "ac.txt").write_text("1 Q0 a 1 2 ac\n1 Q0 c 2 1 ac\n")
    (tmp_path / "ea.txt").write_text("1 Q0 e 1 2 ea\n1 Q0 a 2 1 ea\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def cupel(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["evaluate", "collection.yaml", *arguments], catch_exceptions=False)


def scores(result: Result) -> dict[str, list[float]]:
    """Return the values of each run in the order of the measures, from JSONL output."""
    assert result.exit_code == 0, result.stderr
    results: dict[str, list[float]] = {}
    for row in map(json.loads, result.stdout.splitlines()):
        results.setdefault(row["run"], []).append(row["value"])
    return results


@pytest.mark.usefixtures("folder")
def test_scores_equal_hand_computed_values() -> None:
    results = scores(cupel("ac.txt", "ea.txt", "-m", MEASURES, "--format", "jsonl"))
    assert results["ac.txt"][:2] == pytest.approx([0.831340, 0.869963], abs=6e-7)
    assert results["ea.txt"][:2] == pytest.approx([0.592850, 0.531524], abs=6e-7)
    assert results["ac.txt"][2] == pytest.approx(
        1.630930 / 1.880930, abs=1e-6
    )  # the ideal ranking is c, b, a


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("form", ["table", "json", "csv", "trec_eval"])
def test_every_format_prints_the_scores(form: str) -> None:
    result = cupel("ac.txt", "ea.txt", "-m", MEASURES, "--format", form)
    assert result.exit_code == 0
    assert "0.83" in result.stdout
    assert "0.59" in result.stdout


def test_depth_truncates_the_ranking_before_scoring(folder: Path) -> None:
    (folder / "a.txt").write_text("1 Q0 a 1 2 a\n")
    cut = scores(cupel("ac.txt", "-m", MEASURES, "--depth", "1", "--format", "jsonl"))
    assert cut["ac.txt"] == scores(cupel("a.txt", "-m", MEASURES, "--format", "jsonl"))["a.txt"]


def test_profile_decides_the_order_of_tied_documents(folder: Path) -> None:
    (folder / "near.txt").write_text("1 Q0 a 1 1.00000001 n\n1 Q0 c 2 1 n\n")  # equal in single precision
    (folder / "ca.txt").write_text("1 Q0 c 1 2 ca\n1 Q0 a 2 1 ca\n")
    plain = scores(cupel("near.txt", "ac.txt", "ca.txt", "-m", MEASURES, "--format", "jsonl"))
    assert plain["near.txt"] == plain["ac.txt"] != plain["ca.txt"]
    single_precision = scores(
        cupel("near.txt", "ca.txt", "-m", MEASURES, "--profile", "trec_eval-9", "--format", "jsonl")
    )
    assert single_precision["near.txt"] == single_precision["ca.txt"] == plain["ca.txt"]


@pytest.mark.usefixtures("folder")
def test_scores_do_not_depend_on_the_number_of_processes() -> None:
    arguments = ("ac.txt", "ea.txt", "-m", MEASURES, "--format", "jsonl", "--jobs")
    assert scores(cupel(*arguments, "2")) == scores(cupel(*arguments, "1"))


class TestTextsFile:
    def test_texts_are_read_only_if_a_measure_needs_them(self, folder: Path) -> None:
        (folder / "docs.jsonl.gz").write_bytes(b"no archive")
        assert cupel("ac.txt", "-m", "alpha_nDCG@20").exit_code == 0
        assert cupel("ac.txt", "-m", "LMD").exit_code == 1

    def test_all_errors_in_the_texts_are_reported(self, folder: Path) -> None:
        (folder / "docs.jsonl.gz").write_text('{"id": "a"}\n{"id": "b", "text": "x"}\noops\n')
        result = cupel("ac.txt", "-m", "LMD")
        assert (result.exit_code, result.stdout) == (1, "")
        assert "docs.jsonl.gz:1" in result.stderr
        assert "texts-text" in result.stderr
        assert "docs.jsonl.gz:3" in result.stderr
        assert "texts-not-json" in result.stderr

    def test_relevant_document_without_text_is_a_warning(self, folder: Path) -> None:
        (folder / "docs.jsonl.gz").write_text('{"id": "a", "text": "apple"}\n')
        result = cupel("ac.txt", "-m", "LMD")
        assert result.exit_code == 0
        assert "2 of 3 relevant documents, such as b, have no text" in result.stderr

    def test_measure_without_texts_is_a_usage_error(self, folder: Path) -> None:
        (folder / "collection.yaml").write_text(COLLECTION.replace("texts: docs.jsonl.gz", ""))
        result = cupel("ac.txt", "-m", "LMD")
        assert result.exit_code == 2
        assert "LMD: it needs the texts of the documents, and this collection has none" in result.stderr
