"""An audit of 180 parts while everything is killed: each part counts once, and the result is that offline."""

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
from support.service.invariants import assert_audits_fit
from support.service.service_processes import Serve, Service

HURRIED = {
    "lease_seconds": 2,
    "renew_seconds": 0.5,
    "sweep_seconds": 0.5,
    "retry_seconds": 0.2,
    "attempts": 9,
}
"""Settings that make a lost job known in two seconds."""

PARTS = 180
SETTINGS = {"repeats": PARTS, "ratios": [70, 30]}
MEASURES = ["nDCG@10", "AP"]


@pytest.fixture
def load() -> Load:
    whole = example()
    return Load(whole.track, whole.aspects, whole.files, whole.runs[::6], MEASURES)


@pytest.mark.parametrize("size", ["embedded"], indirect=True)
def test_an_audit_survives_the_death_of_its_workers_and_of_the_service(serve: Serve, load: Load) -> None:
    service = serve(**HURRIED)
    with service.client() as client:
        hand_in(client, load)
        audit = client.request_audit(load.track, "downsampling", parameters=SETTINGS, seed=3, part_trials=1)
        for share in (0.1, 0.3):
            until(lambda least=share * PARTS: done(client, audit) > least)
            kill(service.pool())
        until(lambda: done(client, audit) > 0.5 * PARTS)
        assert done(client, audit) < PARTS, "all was done before the last disaster: nothing was shown"
    service.kill()
    service = serve(**HURRIED)
    with service.client() as client:
        *_, last = client.watch_audit(audit.id)
        assert (last.state, last.failures) == ("done", ())
        assert (last.progress.parts, last.progress.parts_done, last.progress.trials_done) == (PARTS,) * 3
        told = client.audit_report(audit.id)
        assert reporting.digest(told.report) == offline(load, client.audit(audit.id))
        cancel_on_the_way(client, load)
    assert_sound(service)


def hand_in(client: Client, load: Load) -> None:
    """A published track with all runs scored."""
    number = load.upload(client)
    sent = [client.submit(load.track, path).id for path in load.runs]
    client.publish_qrels(load.track, number)
    *_, version = client.watch_qrels(load.track, number)
    assert version.progress.scored == len(sent)


def done(client: Client, audit: AuditResource) -> int:
    return client.audit(audit.id).progress.trials_done


def kill(pool: list[psutil.Process]) -> None:
    for process in pool:
        process.kill()


def offline(load: Load, audit: AuditDetailResource) -> str:
    """The digest of the library's report on the same files."""
    qrels = load.collection.qrels
    runs = [
        (path.name.removesuffix(".gz"), view_of(read_run(path).ranking, qrels, depth=DEPTH))
        for path in load.runs
    ]
    teams = [one.team for one in audit.runs]
    measures = [parse(text) for text in MEASURES]
    subject = assemble_subject(NamedQrels("mine", qrels), sorted(runs), measures, teams=teams, depth=DEPTH)
    kind = read_audit(audit.kind, SETTINGS)
    found = dict(execution.run_trials(kind, subject, audit.seed, range(PARTS)))
    report = execution.result(kind, subject.about, audit.seed, PARTS, found).report
    assert report is not None
    return reporting.digest(report.as_data())


def cancel_on_the_way(client: Client, load: Load) -> None:
    """A cancelled audit stops within a part: nothing more is done of it."""
    long = {"repeats": 20_000, "ratios": [70, 30]}
    audit = client.request_audit(load.track, "downsampling", parameters=long)
    until(lambda: client.audit(audit.id).state == "running" and client.audit(audit.id).progress.parts)
    client.cancel_audit(audit.id)
    until(lambda: not [job for job in client.jobs(state="running") if job.kind.startswith("audit")])
    last = client.audit(audit.id)
    assert last.state == "cancelled"
    assert last.progress.trials_done < 20_000


def assert_sound(service: Service) -> None:
    path: Path = service.data / "cupel.sqlite"
    with sqlite3.connect(path) as database:
        assert_audits_fit(lambda text: database.execute(text).fetchall())
