"""Tests of the output of `make demo`."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.patience import seconds


@pytest.fixture(scope="module")
def output() -> str:
    """Return the output of the demonstration."""
    completed = subprocess.run(
        [sys.executable, "-m", "cupel_standalone.demo", "--once"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=seconds(300),
    )
    assert completed.returncode == 0, completed.stderr
    return completed.stdout


def test_make_demo_runs_the_demonstration(root: Path) -> None:
    recipe = subprocess.run(
        ["make", "--no-print-directory", "--dry-run", "--assume-old=.venv/.ready", "demo", "ONCE=1"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    assert recipe.stdout.rstrip().endswith("-m cupel_standalone.demo --once")


def test_demo_scores_equal_offline_scores(output: str) -> None:
    assert "60 of 60 scores are bit-identical" in output


def test_demo_prints_one_leaderboard_per_measure(output: str) -> None:
    assert re.findall(r"Leaderboard by (\S+),", output) == [
        "nDCG@10",
        "TOMA(of=nDCG@10,aspects=[relevance,credibility])",
    ]
    assert len(re.findall(r"^ +\d+ +[a-z]+ +[a-z]+-\w+ +0\.\d{4}", output, re.M)) == 20


def test_demo_prints_every_error_of_the_malformed_run_and_stores_nothing(output: str) -> None:
    assert re.findall(r"^  line (\d+): ", output, re.M) == ["7", "41", "153", "302", "478"]
    assert "the track still has 30 submissions" in output


def test_demo_correction_changes_ranks_on_both_leaderboards(output: str) -> None:
    counts = [int(count) for count in re.findall(r"(\d+) of 30 runs changed ranks", output)]
    assert len(counts) == 2
    assert min(counts) > 0
