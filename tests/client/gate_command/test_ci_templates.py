"""Tests that run the CI templates of `deploy/ci` as a CI system does, without its installation step."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from cupel_client import __version__
from support.data.gated_runs import (
    Change,
    demote_relevant,
    put_unjudged_first,
    swap_neighbours,
    topic_names,
    write_qrels,
    write_runs,
)
from support.patience import seconds

TEMPLATES = Path(__file__).resolve().parents[3] / "deploy" / "ci"
PINNED = f"pip install cupel-client=={__version__}"
CASES = [(swap_neighbours, 0, "notice"), (demote_relevant, 1, "error"), (put_unjudged_first, 3, "warning")]


def checkout(folder: Path, change: Change) -> None:
    """Make the repository of a search engine, with judgments, a baseline and the template's gates."""
    write_qrels(folder / "qrels.txt", topic_names(50))
    write_runs(folder, topic_names(50), change)
    (folder / "base.txt").rename(folder / "baseline.txt")
    (folder / "run.txt").rename(folder / "results.txt")
    (folder / "make-run").write_text("#!/bin/sh\ncat results.txt\n")
    (folder / "make-run").chmod(0o755)
    shutil.copy(TEMPLATES / "cupel-gates.yaml", folder)


def template(name: str) -> dict[str, Any]:
    return dict(yaml.safe_load((TEMPLATES / name).read_text()))


def run_step(script: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a step as a CI system does: with bash, in the checkout."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", script],
        cwd=folder,
        env={"PATH": path, "HOME": str(folder), "CI": "true", **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=seconds(60),
    )


def steps_of(job: dict[str, Any]) -> Iterator[str]:
    """Yield the scripts of a job of GitHub Actions, except for the installation."""
    scripts = [step["run"] for step in job["steps"] if "run" in step]
    assert scripts[0] == PINNED
    yield from scripts[1:]


@pytest.mark.parametrize(("change", "exit_code", "level"), CASES)
def test_github_actions_template(folder: Path, change: Change, exit_code: int, level: str) -> None:
    checkout(folder, change)
    job = template("github-actions.yml")["jobs"]["gate"]
    summary = folder / "summary.md"
    for script in steps_of(job):
        done = run_step(script, folder, GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY=str(summary))
        if done.returncode:
            break
    assert done.returncode == exit_code, done.stdout + done.stderr
    assert f"::{level} title=cupel gate%3A nDCG@10" in done.stderr
    assert summary.read_text().startswith("## run.txt vs. baseline.txt: ")
    artifact = job["steps"][-1]
    assert artifact["if"] == "always()"
    assert len(list(ElementTree.parse(folder / artifact["with"]["path"]).iter("testcase"))) == 4


def test_closed_pipe_keeps_the_exit_code(folder: Path) -> None:
    checkout(folder, put_unjudged_first)
    command = "set +e; cupel gate --gates cupel-gates.yaml results.txt | true; exit ${PIPESTATUS[0]}"
    done = run_step(command, folder)
    assert done.returncode == 3, done.stderr


@pytest.mark.parametrize(("change", "exit_code", "level"), CASES)
def test_gitlab_template(folder: Path, change: Change, exit_code: int, level: str) -> None:
    checkout(folder, change)
    job = template("gitlab-ci.yml")["retrieval gate"]
    assert job["before_script"] == [PINNED]
    done = run_step("\n".join(job["script"]), folder)
    assert done.returncode == exit_code, done.stdout + done.stderr
    assert "::" not in done.stderr
    assert job["allow_failure"]["exit_codes"] == 3
    report = folder / job["artifacts"]["reports"]["junit"]
    assert ElementTree.parse(report).getroot().attrib["tests"] == "4"
