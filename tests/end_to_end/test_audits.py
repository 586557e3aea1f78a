"""A test that kills processes during an audit of 180 parts. Each part must count exactly once."""

import sqlite3
from pathlib import Path

import psutil
import pytest

from cupel_audits import execution, read_audit
from cupel_audits import report as reporting
from cupel_audits.subject_files import NamedQrels, assemble_subject, view_of
from cupel_client.api.client import Client
from cupel_contract.audit_resources import AuditDetailResource, AuditResource
from cupel_measures.catalogue.parser import parse
from cupel_measures.reading.run_files import read_run
from support.data.real_runs import DEPTH, Load, example
from support.patience import until
from support.service.invariants import assert_audits_consistent
from support.service.service_processes import Serve, Service

pytestmark = pytest.mark.drill

FAST_RECOVERY = {
    "lease_seconds": 2,
    "renew_seconds": 0.5,
    "sweep_seconds": 0.5,
    "retry_seconds": 0.2,
    "attempts": 9,
}
"""Settings that detect a lost job within two seconds."""

PARTS = 180
SETTINGS = {"repeats": PARTS, "ratios": [70, 30]}
MEASURES = ["nDCG@10", "AP"]


@pytest.fixture
def load() -> Load:
    full = example()
    return Load(
        track=full.track, aspects=full.aspects, files=full.files, runs=full.runs[::6], measures=MEASURES
    )


@pytest.mark.parametrize("size", ["embedded"], indirect=True)
def test_audit_finishes_correctly_after_processes_are_killed(serve: Serve, load: Load) -> None:
    service = serve(**FAST_RECOVERY)
    with service.client() as client:
        submit_and_score(client, load)
        audit = client.request_audit(load.track, "downsampling", parameters=SETTINGS, seed=3, part_trials=1)
        for share in (0.1, 0.3):
            until(lambda least=share * PARTS: count_done(client, audit) > least)
            kill_all(service.pool())
        until(lambda: count_done(client, audit) > 0.5 * PARTS)
        assert count_done(client, audit) < PARTS, (
            "all parts were done before the last fault, so the test shows nothing"
        )
    service.kill()
    service = serve(**FAST_RECOVERY)
    with service.client() as client:
        *_, last = client.watch_audit(audit.id)
        assert (last.state, last.failures) == ("done", ())
        assert (last.progress.parts, last.progress.parts_done, last.progress.trials_done) == (PARTS,) * 3
        response = client.audit_report(audit.id)
        assert reporting.digest(response.report) == offline_digest(load, client.audit(audit.id))
        check_cancellation(client, load)
    check_audit_rows(service)


def submit_and_score(client: Client, load: Load) -> None:
    """Publish the track, submit all runs, and wait until they are scored."""
    number = load.upload(client)
    submissions = [client.submit(load.track, path).id for path in load.runs]
    client.publish_qrels(load.track, number)
    *_, version = client.watch_qrels(load.track, number)
    assert version.progress.scored == len(submissions)


def count_done(client: Client, audit: AuditResource) -> int:
    return client.audit(audit.id).progress.trials_done


def kill_all(pool: list[psutil.Process]) -> None:
    for process in pool:
        process.kill()


def offline_digest(load: Load, audit: AuditDetailResource) -> str:
    """Return the digest of the library's report on the same files."""
    qrels = load.collection.qrels
    runs = [
        (path.name.removesuffix(".gz"), view_of(read_run(path).ranking, qrels, depth=DEPTH))
        for path in load.runs
    ]
    teams = [run.team for run in audit.runs]
    measures = [parse(text) for text in MEASURES]
    subject = assemble_subject(NamedQrels("mine", qrels), sorted(runs), measures, teams=teams, depth=DEPTH)
    kind = read_audit(audit.kind, SETTINGS)
    trials = dict(execution.run_trials(kind, subject, audit.seed, range(PARTS)))
    report = execution.result(kind, subject.about, audit.seed, PARTS, trials).report
    assert report is not None
    return reporting.digest(report.as_data())


def check_cancellation(client: Client, load: Load) -> None:
    """Check that a cancelled audit stops within a part."""
    long = {"repeats": 20_000, "ratios": [70, 30]}
    audit = client.request_audit(load.track, "downsampling", parameters=long)
    until(lambda: client.audit(audit.id).state == "running" and client.audit(audit.id).progress.parts)
    client.cancel_audit(audit.id)
    until(lambda: not [job for job in client.jobs(state="running") if job.kind.startswith("audit")])
    last = client.audit(audit.id)
    assert last.state == "cancelled"
    assert last.progress.trials_done < 20_000


def check_audit_rows(service: Service) -> None:
    path: Path = service.data / "cupel.sqlite"
    with sqlite3.connect(path) as database:
        assert_audits_consistent(lambda text: database.execute(text).fetchall())
