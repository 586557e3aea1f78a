"""`cupel evaluate --explain`: explanations of scores as tables and JSON."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from cupel_client.main import cli
from cupel_measures.catalogue.parser import parse_many
from cupel_measures.explaining.explained_parts import ABOUT
from cupel_measures.explaining.explanations import explain
from cupel_measures.reading.collection_files import read_collection
from cupel_measures.reading.run_files import read_run
from cupel_standalone.serve_commands import EXAMPLE

QRELS = "1 0 a 2\n1 0 b 1\n1 0 c 0\n2 0 a 1\n2 0 d 0\n3 0 e 0\n"
TIED = "1 Q0 a 1 9 tied\n1 Q0 b 2 9 tied\n1 Q0 x 3 1 tied\n2 Q0 a 1 1 tied\n2 Q0 d 2 1 tied\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder with qrels of two aspects and a run."""
    (tmp_path / "qrels.txt").write_text(QRELS)
    (tmp_path / "quality.txt").write_text("1 0 a 0\n1 0 b 3\n2 0 a 1\n")
    (tmp_path / "tied.txt").write_text(TIED)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def cupel(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["evaluate", *arguments], catch_exceptions=False)


def explanations_of(*arguments: str) -> dict[str, Any]:
    """Return the explanations of the only run, from the JSON output."""
    result = cupel(*arguments, "--format", "json")
    assert result.exit_code == 0, result.output
    [run] = json.loads(result.stdout)["runs"]
    explanations: dict[str, Any] = run["explanations"]
    return explanations


ASPECTS = ("--aspect", "relevance=qrels.txt", "--aspect", "quality=quality.txt")


@pytest.mark.usefixtures("folder")
def test_json_has_the_requested_explanations_by_measure() -> None:
    explanations = explanations_of(
        "qrels.txt", "tied.txt", "-m", "RR P@3", "--explain", "ties", "--explain", "judgments"
    )
    assert list(explanations) == ["RR", "P@3"]
    assert list(explanations["RR"]) == ["ties", "judgments"]
    ties = explanations["RR"]["ties"]
    assert (ties["least"], ties["greatest"], ties["topics"]) == (pytest.approx(0.5), pytest.approx(2 / 3), 1)
    assert "by_topic" not in ties
    assert explanations["P@3"]["judgments"]["unjudged"] == {"relevance": pytest.approx(1 / 9)}


@pytest.mark.usefixtures("folder")
def test_json_with_per_topic_has_values_by_topic() -> None:
    measures = ("-m", "RR CAM(of=RR) TOMA(of=RR)", "--per-topic", "--explain", "all")
    explanations = explanations_of(*ASPECTS, "tied.txt", *measures)
    assert all(list(explanation) == list(ABOUT) for explanation in explanations.values())
    assert explanations["RR"]["ties"]["by_topic"]["least"] == {"1": 1.0, "2": 0.5, "3": 0.0}
    assert explanations["RR"]["ties"]["by_topic"]["standard_error"] is None
    relevance, _ = explanations["CAM(of=RR)"]["parts"]["aspects"]
    assert list(relevance["by_topic"]["contribution"]) == ["1", "2", "3"]
    assert explanations["TOMA(of=RR)"]["parts"]["unjudged"]["by_topic"] == {"1": [1], "2": [0], "3": [0]}


@pytest.mark.usefixtures("folder")
def test_table_has_a_block_for_each_run_and_measure(folder: Path) -> None:
    shutil.copy(folder / "tied.txt", folder / "twin.txt")
    measures = ("-m", "RR MM(of=RR) TOMA(of=RR)", "--explain", "all")
    stdout = cupel(*ASPECTS, "tied.txt", "twin.txt", *measures).stdout
    lines = [" ".join(line.split()) for line in stdout.splitlines()]
    for line in (
        "tied.txt RR",
        "twin.txt TOMA(of=RR)",
        "ties 0.5000 to 0.6667, depending on the order of equal scores in 1 topic",
        "0.5833 expected (closed form)",
        "judgments 11.1% (relevance) of all documents are unjudged",
        "RR: a mean over topics requires an interval scale, but its scale is neither interval nor ordinal",
        "parts the measure does not combine aspects",
        "profiles trec_eval-9: no change",
        "labels distance weight 1-3",
    ):
        assert line in lines, stdout
    assert any("% of the sum of weight / value" in line for line in lines)


@pytest.mark.usefixtures("folder")
def test_profile_effect_is_described(folder: Path) -> None:
    """In single precision, a and c tie and c ranks first; one of three topics falls by 1/2."""
    (folder / "close.txt").write_text("1 Q0 a 1 1.000000000001 close\n1 Q0 c 2 1 close\n")
    stdout = cupel("qrels.txt", "close.txt", "-m", "RR", "--explain", "profiles").stdout
    assert "trec_eval-9: 0.1667 (-0.1667), 1 topic changed by single_precision: 1" in stdout
    assert "trec_eval-10: no change" in stdout


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("form", ["jsonl", "csv", "trec_eval"])
def test_explain_is_a_usage_error_with_line_formats(form: str) -> None:
    result = cupel("qrels.txt", "tied.txt", "--explain", "ties", "--format", form)
    assert result.exit_code == 2
    assert f"--explain requires --format table or json, not {form}" in result.output


@pytest.mark.usefixtures("folder")
def test_output_without_explain_has_no_explanations() -> None:
    assert "explanations" not in cupel("qrels.txt", "tied.txt", "--format", "json").stdout
    assert "expected" not in cupel("qrels.txt", "tied.txt").stdout


def test_help_lists_the_kinds_of_explanations() -> None:
    help_text = " ".join(cupel("--help").stdout.split())
    assert all(f"{name} {sentence}" in help_text for name, sentence in ABOUT.items())


@pytest.mark.usefixtures("folder")
def test_refused_run_is_not_explained(folder: Path) -> None:
    (folder / "bad.txt").write_text("1 Q0 a x\n")
    result = cupel("qrels.txt", "bad.txt", "tied.txt", "-m", "RR", "--explain", "all")
    assert result.exit_code == 1
    assert "bad.txt is refused" in result.stderr
    assert "tied.txt  RR" in result.stdout


def test_explanations_from_several_processes_equal_the_library() -> None:
    runs = sorted((EXAMPLE / "runs").glob("*.gz"))[:4]
    collection, text = EXAMPLE / "collection.yaml", "nDCG@10 MM(of=nDCG@10) TOMA(of=AP)"
    options = ("--explain", "all", "--jobs", "2", "--format", "json", "--depth", "50", "--per-topic")
    result = cupel(str(collection), *map(str, runs), "-m", text, *options)
    qrels = read_collection(collection).qrels
    for run, run_output in zip(runs, json.loads(result.stdout)["runs"], strict=True):
        results = explain(qrels, read_run(run).ranking, parse_many(text), depth=50)
        for measure, expected in results.items():
            ties, expected_ties = run_output["explanations"][str(measure)]["ties"], expected.as_data()["ties"]
            assert list(ties["by_topic"]["expected"].values()) == expected_ties["by_topic"]["expected"]
            assert ties["expected"] == expected_ties["expected"]
            assert ties["value"] == run_output["scores"][str(measure)]


CLEF = "data/clef-ehealth-2015-task2"
TOUCHE = "data/touche22-task2"


@pytest.mark.parametrize(
    ("files", "folder", "measures"),
    [
        (
            {
                "relevance": f"{CLEF}/qrels/qrels.eng.clef2015.qtest.graded.txt.gz",
                "readability": f"{CLEF}/qrels/qread.eng.clef2015.qtest.graded.txt.gz",
            },
            f"{CLEF}/runs",
            "nDCG@10 AP RBP CAM(of=nDCG@10) MM(of=nDCG@10) TOMA(of=nDCG@10) uRBP",
        ),
        (
            {
                "relevance": f"{TOUCHE}/qrels/touche-task2-2022-relevance.qrels",
                "quality": f"{TOUCHE}/qrels/touche-task2-2022-quality.qrels",
            },
            f"{TOUCHE}/runs",
            "nDCG@5 GMAP CAM(of=nDCG@5) WHAM(of=P@5) TOMA(of=nDCG@5) NLRE",
        ),
    ],
    ids=["CLEF eHealth 2015", "Touche 2022"],
)
def test_explanations_of_real_runs_are_consistent(
    shared: Path, files: dict[str, str], folder: str, measures: str
) -> None:
    named = [word for name, file in files.items() for word in ("--aspect", f"{name}={shared / file}")]
    runs = [path for path in sorted((shared / folder).rglob("*")) if path.is_file()][:3]
    result = cupel(*named, *map(str, runs), "-m", measures, "--explain", "all", "--format", "json")
    results = json.loads(result.stdout)["runs"]
    assert results
    for run in results:
        for text, explanations in run["explanations"].items():
            ties = explanations["ties"]
            assert ties["least"] <= ties["value"] == run["scores"][text] <= ties["greatest"]
            assert ties["least"] <= ties["expected"] <= ties["greatest"]
            assert all(0 <= share <= 1 for share in explanations["judgments"]["unjudged"].values())
