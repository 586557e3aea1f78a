"""Test `cupel audits` against a gateway process and a worker."""

import csv
import io
import json
from itertools import count
from pathlib import Path

import pytest

from cupel_audits import KINDS

names = (f"audited-{number}" for number in count(1))

SMALL = ("--set", "repeats=3", "--set", "ratios=[50,10]", "--part-trials", "1")


@pytest.fixture
def judged(organiser, folder: Path, worker: None) -> str:
    """Return the name of a track with three scored runs."""
    name = next(names)
    assert organiser("track", "create", name, folder / "collection.yaml", "--title", "Steps").exit_code == 0
    assert organiser("qrels", "upload", name, folder / "collection.yaml", "--publish").exit_code == 0
    assert organiser("submit", name, *sorted(folder.glob("step*.run")), "--wait").exit_code == 0
    return name


def test_audit_is_requested_watched_and_reported(organiser, judged: str, tmp_path: Path) -> None:
    done = organiser(
        "audits", "request", judged, "downsampling", *SMALL, "-m", "AP P@5", "--seed", 7, "--watch"
    )
    assert done.exit_code == 0, done.output
    assert "done" in done.stdout
    assert "3/3" in done.stdout
    assert "tau(AP)@50" in done.stdout
    audit_id = done.stdout.splitlines()[0]
    (listed,) = json.loads(organiser("audits", "list", judged, "--format", "json").stdout)
    assert (listed["id"], listed["measures"], listed["seed"]) == (audit_id, ["AP", "P@5"], 7)
    assert audit_id in organiser("audits", "list", judged).stdout
    report = json.loads(organiser("audits", "report", audit_id).stdout)
    assert report["report"]["verdict"] == listed["verdict"]
    (shown,) = json.loads(organiser("audits", "show", audit_id, "--format", "json").stdout)
    assert shown["digest"] == report["digest"]
    table = list(
        csv.DictReader(io.StringIO(organiser("audits", "report", audit_id, "--format", "csv").stdout))
    )
    assert len(table) == len(report["report"]["tables"][0]["rows"])
    written = tmp_path / "report.json"
    assert organiser("audits", "report", audit_id, "--out", written).exit_code == 0
    assert json.loads(written.read_text()) == report
    history = organiser("audits", "history", judged, "downsampling", "tau(AP)@50", "--format", "jsonl").stdout
    assert json.loads(history)["value"] == report["report"]["numbers"]["tau(AP)@50"]


def test_kinds_are_listed_and_described(organiser) -> None:
    listed = organiser("audits", "kinds").stdout
    assert all(name in listed for name in KINDS)
    described = organiser("audits", "kinds", "downsampling").stdout
    assert "repeats" in described
    assert "Removes judgments at random" in described
    assert organiser("audits", "kinds", "nonsense").exit_code == 2


def test_invalid_audit_requests_are_explained(organiser, judged: str) -> None:
    wrong = organiser("audits", "request", judged, "downsampling", "--set", "ratios=[0]", "--set", "repeat=2")
    assert wrong.exit_code == 2
    assert wrong.stderr.count("audit-wrong: ") == 2
    assert organiser("audits", "request", judged, "downsampling", "--set", "ratios").exit_code == 2
    failed = organiser("audits", "request", judged, "downsampling", "--set", "aspect=beauty", "--watch")
    assert failed.exit_code == 3
    assert "unknown aspect 'beauty'; use one of relevance, quality" in failed.stdout


def test_audit_is_cancelled(organiser, judged: str) -> None:
    audit_id = organiser("audits", "request", judged, "downsampling", "--set", "repeats=20000").stdout.strip()
    done = organiser("audits", "cancel", audit_id)
    assert done.exit_code == 0, done.output
    assert "cancelled" in done.stdout
    assert organiser("audits", "watch", audit_id).exit_code == 3
    assert organiser("audits", "rerun", audit_id, 0).exit_code == 2


def test_only_organisers_request_audits(server, cupel, organiser, judged: str) -> None:
    alice = {"CUPEL_URL": server.url, "CUPEL_TOKEN": server.token("alice")}
    refused = cupel("audits", "request", judged, "downsampling", **alice)
    assert (refused.exit_code, "audit-forbidden" in refused.stderr) == (2, True)
    assert cupel("audits", "list", judged, **alice).exit_code == 0


def test_schedules_and_alerts_are_added_listed_and_removed(organiser, judged: str) -> None:
    weekly = ("--cron", "0 3 * * 1", "--zone", "Europe/Berlin", "--set", "repeats=3")
    made = organiser("audits", "schedule", "add", judged, "downsampling", *weekly)
    assert made.exit_code == 0, made.output
    assert "0 3 * * 1 (Europe/Berlin), next at " in made.stdout
    schedule_id = made.stdout.partition(":")[0]
    (listed,) = json.loads(organiser("audits", "schedule", "list", judged, "--format", "json").stdout)
    assert (listed["id"], listed["request"]["parameters"]) == (schedule_id, {"repeats": 3})
    assert organiser("audits", "schedule", "pause", schedule_id).exit_code == 0
    assert "paused" in organiser("audits", "schedule", "list", judged).stdout
    assert organiser("audits", "schedule", "pause", schedule_id, "--resume").exit_code == 0
    assert organiser("audits", "schedule", "remove", schedule_id).exit_code == 0
    bad = organiser("audits", "schedule", "add", judged, "downsampling", "--cron", "never")
    assert (bad.exit_code, "cron: invalid expression 'never'" in bad.stderr) == (2, True)
    low = organiser("audits", "alert", "add", judged, "downsampling", "tau(AP)@50", "--below", 2)
    assert low.stdout.endswith("no audit yet\n")
    done = organiser("audits", "request", judged, "downsampling", *SMALL, "--watch")
    assert "alert: tau(AP)@50 is " in done.stderr
    assert "raised" in organiser("audits", "alert", "list", judged).stdout
    missing = organiser("audits", "alert", "add", judged, "downsampling", "tau(AP)@51", "--below", 2)
    assert missing.stdout.endswith("number missing or undefined\n")
    assert organiser("audits", "alert", "remove", low.stdout.partition(":")[0]).exit_code == 0
