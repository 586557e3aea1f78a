"""`make demo` shows what it promises."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.patience import seconds


@pytest.fixture(scope="module")
def shown() -> str:
    """What the demonstration prints."""
    done = subprocess.run(
        [sys.executable, "-m", "cupel_standalone.demo", "--once"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=seconds(300),
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_make_demo_is_this_demonstration(root: Path) -> None:
    recipe = subprocess.run(
        ["make", "--no-print-directory", "--dry-run", "--assume-old=.venv/.ready", "demo", "ONCE=1"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    assert recipe.stdout.rstrip().endswith("-m cupel_standalone.demo --once")


def test_all_runs_are_scored_as_they_are_offline(shown: str) -> None:
    assert "60 of 60 scores are equal to the last bit" in shown


def test_two_leaderboards_are_shown_and_one_has_several_aspects(shown: str) -> None:
    assert re.findall(r"Leaderboard by (\S+),", shown) == [
        "nDCG@10",
        "TOMA(of=nDCG@10,aspects=[relevance,credibility])",
    ]
    assert len(re.findall(r"^ +\d+ +[a-z]+ +[a-z]+-\w+ +0\.\d{4}", shown, re.M)) == 20


def test_a_malformed_run_is_refused_with_every_mistake_and_nothing_is_stored(shown: str) -> None:
    assert re.findall(r"^  line (\d+): ", shown, re.M) == ["7", "41", "153", "302", "478"]
    assert "the track has 30 submissions, as before" in shown


def test_the_correction_moves_runs_on_both_boards(shown: str) -> None:
    moved = [int(count) for count in re.findall(r"(\d+) of 30 runs changed places", shown)]
    assert len(moved) == 2
    assert min(moved) > 0
