"""Tests of the example collection: its generator and its documented properties."""

import gzip
import subprocess
from pathlib import Path

import pytest

from cupel_measures.catalogue.parser import parse
from cupel_measures.findings import Refused
from cupel_measures.reading.collection_files import Collection, read_collection
from cupel_measures.reading.run_files import join_run, read_run
from cupel_measures.scoring.evaluator import evaluate
from cupel_standalone import example_generator
from cupel_standalone.serve_commands import EXAMPLE
from support.service.service_processes import CUPEL

RUNS = sorted((EXAMPLE / "runs").glob("*.gz"))


@pytest.fixture(scope="module")
def collection() -> Collection:
    return read_collection(EXAMPLE / "collection.yaml")


@pytest.fixture(scope="module")
def corrected() -> Collection:
    return read_collection(EXAMPLE / "collection-corrected.yaml")


def rank_runs(collection: Collection, measure: str) -> list[str]:
    """Return the names of the runs, best first."""
    parsed = parse(measure).bound(collection.aspects)
    values = {
        path.stem: evaluate(collection.qrels, join_run(path, collection.qrels), [parsed])
        .values[parsed]
        .mean()
        for path in RUNS
    }
    return sorted(values, key=lambda name: values[name], reverse=True)


def test_generator_writes_the_shipped_files(tmp_path: Path) -> None:
    example_generator.write_example(tmp_path)
    assert read_contents(tmp_path) == read_contents(EXAMPLE)


def read_contents(folder: Path) -> dict[str, bytes]:
    """Return file name -> uncompressed bytes, because compressed bytes differ between versions of zlib."""
    return {
        str(path.relative_to(folder)): gzip.decompress(path.read_bytes())
        if path.suffix == ".gz"
        else path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_example_command_copies_but_never_overwrites(tmp_path: Path) -> None:
    command = [CUPEL, "example", str(tmp_path / "mine")]
    assert subprocess.run(command, capture_output=True).returncode == 0
    assert read_contents(tmp_path / "mine") == read_contents(EXAMPLE)
    again = subprocess.run(command, capture_output=True, text=True)
    assert again.returncode == 2
    assert "already exists" in again.stderr


def test_example_is_smaller_than_2_megabytes() -> None:
    assert sum(path.stat().st_size for path in EXAMPLE.rglob("*") if path.is_file()) < 2_000_000


def test_example_has_50_topics_and_aspects_with_different_scales(collection: Collection) -> None:
    assert len(collection.qrels.topics) == 50
    assert [len(aspect.labels) for aspect in collection.aspects] == [4, 3, 101]


def test_example_has_30_runs_of_10_teams(collection: Collection) -> None:
    assert len(RUNS) == 30
    assert len({path.stem.split("-")[0] for path in RUNS}) == 10


def test_example_runs_are_valid_but_have_ties_odd_ranks_and_missing_topics() -> None:
    runs = [read_run(path, name=path.stem) for path in RUNS]
    codes = {code for run in runs for code in run.findings.totals}
    assert any("tie" in code for code in codes), codes
    assert any("rank" in code for code in codes), codes
    assert any(len(run.ranking.topics) < 50 for run in runs)


def test_many_documents_of_an_example_run_are_unjudged(collection: Collection) -> None:
    evaluation = evaluate(collection.qrels, join_run(RUNS[0], collection.qrels), [parse("Judged@100")])
    assert 0.2 < evaluation.values[parse("Judged@100")].mean() < 0.95


@pytest.mark.parametrize("measure", ["nDCG@10", "TOMA(of=nDCG@10,aspects=[relevance,credibility])"])
def test_correction_changes_the_leaderboard(
    collection: Collection, corrected: Collection, measure: str
) -> None:
    before, after = rank_runs(collection, measure), rank_runs(corrected, measure)
    assert sum(old != new for old, new in zip(before, after, strict=True)) >= 5


def test_correction_changes_the_best_run(collection: Collection, corrected: Collection) -> None:
    assert rank_runs(collection, "nDCG@10")[0] != rank_runs(corrected, "nDCG@10")[0]


def test_malformed_run_is_refused_with_all_errors() -> None:
    with pytest.raises(Refused) as refused:
        read_run(EXAMPLE / "aster-merged.txt")
    findings = refused.value.findings
    assert len({finding.code for finding in findings.errors}) >= 4
    assert {finding.line for finding in findings.errors} >= {7, 41, 153, 302, 478}
