"""Tests that `cupel evaluate` prints the official values of real collections."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from support.evaluated_files import cupel, values


def test_official_output_equals_trec_eval_byte_for_byte(shared: Path) -> None:
    folder = shared / "data/trec-eval-tests"
    runs = [str(folder / name) for name in ("qrels.test", "results.test")]
    result = cupel(*runs, "-m", "official", "--format", "trec_eval", "--profile", "trec_eval-10")
    assert result.stdout == (folder / "out.test").read_text()


def test_per_topic_output_equals_trec_eval_line_by_line(shared: Path) -> None:
    folder = shared / "data/trec-eval-tests"
    for run, more, expected in (
        ("results.test", [], "out.test.aq"),
        ("results.trunc", [], "out.test.aqc"),
        ("results.trunc", ["--depth", "100"], "out.test.aqcM"),
    ):
        options = ["-m", "all_trec", "--per-topic", "--format", "trec_eval", "--profile", "trec_eval-10"]
        result = cupel(str(folder / "qrels.test"), str(folder / run), *options, *more)
        ours = [line for line in result.stdout.splitlines() if not line.startswith("runid")]
        theirs = (folder / expected).read_text().splitlines()
        assert len(ours) > 250
        assert not set(ours) - set(theirs)


@pytest.fixture
def official(shared: Path) -> Callable[[str], dict[tuple[str, str], str]]:
    """Return a function that reads the official means as (run, measure) -> printed text."""

    def read(collection: str) -> dict[tuple[str, str], str]:
        with (shared / "data" / collection / "official/means.csv").open() as file:
            return {
                (row["run_file"], row["measure"]): row["value"]
                for row in csv.DictReader(file)
                if row["topic"] == "all" and row["produced_by"].startswith("trec_eval")
            }

    return read


def test_means_equal_the_official_means_of_clef_2014(
    shared: Path, official: Callable[[str], dict[tuple[str, str], str]]
) -> None:
    folder = shared / "data/clef-ehealth-2014-task3"
    runs = sorted(map(str, (folder / "runs").iterdir()))
    options = ["-m", "map P_10 bpref recip_rank Rprec", "--profile", "trec_eval-9", "--depth", "1000"]
    qrels = str(folder / "qrels/qrels.clef2014.test.bin.txt.gz")
    names = {"AP": "map", "P@10": "P_10", "Bpref": "bpref", "RR": "recip_rank", "Rprec": "Rprec"}
    expected = official("clef-ehealth-2014-task3")
    results = values(cupel(qrels, *runs, *options, "--format", "jsonl"))
    assert len(results) == 150
    different = {
        (run, measure): value
        for (run, measure, _), value in results.items()
        if f"{value:.4f}" != expected[run, names[measure]]
    }
    assert not different


def test_touche_runs_are_scored_by_toma_and_cam(shared: Path, tmp_path: Path) -> None:
    folder = shared / "data/touche22-task2"
    names = {aspect: f"touche-task2-2022-{aspect}.qrels" for aspect in ("relevance", "quality")}
    for name in names.values():
        (tmp_path / name).write_bytes((folder / "qrels" / name).read_bytes())
    files = [{"file": name, "aspect": aspect} for aspect, name in names.items()]
    aspects = {aspect: {"labels": [0, 1, 2]} for aspect in names}
    (tmp_path / "touche.json").write_text(json.dumps({"aspects": aspects, "qrels": files}))
    runs = sorted(map(str, folder.glob("runs/*/output/*.gz")))
    measures = ("-m", "TOMA(of=nDCG@5) CAM(of=nDCG@5) nDCG@5 nDCG(aspect=quality)@5")
    results = values(cupel(str(tmp_path / "touche.json"), *runs, *measures, "--format", "jsonl"))
    assert len({run for run, _, _ in results}) == len(runs) == 21
    for (run, measure, _), value in results.items():
        if measure.startswith("CAM"):
            parts = [results[run, part, "all"] for part in ("nDCG@5", "nDCG(aspect=quality)@5")]
            assert value == pytest.approx(sum(parts) / 2, abs=1e-12)
    board = cupel(str(tmp_path / "touche.json"), *runs, *measures).stdout
    assert "Captain-Levi/output/run5.txt" in board
