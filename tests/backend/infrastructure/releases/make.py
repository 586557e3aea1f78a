"""Script that writes the release file of the latest migration (see README.md).

    python tests/backend/infrastructure/releases/make.py

The script creates the data with the public functions of the backend. Comments explain the few exceptions.
"""

import gzip
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sqlalchemy import update

sys.path.insert(0, str(Path(__file__).parents[3]))  # the folder tests, which pytest adds by itself

import cupel_backend
from backend.infrastructure.releases.contents import Release, dump, fetch, finish, revisions, show
from cupel_backend import access, jobs, qrels_versions, submissions, tracks
from cupel_backend.access import Principal
from cupel_backend.audits import audit_alerts, audit_parts, audit_requests, audit_schedules
from cupel_backend.infrastructure.database import writing
from cupel_backend.infrastructure.settings import Settings
from cupel_backend.infrastructure.system import System, open_system
from cupel_backend.infrastructure.tables import scores
from cupel_backend.jobs import Claim
from cupel_backend.scores import evaluations, rescoring, score_explanations
from support.backend_cast import (
    ADMIN,
    ALICE,
    BOB,
    COLLECTION,
    CORRECTED,
    CREDIBILITY,
    ORGANISER,
    POOR,
    RELEVANCE,
    STRANGER,
    Clock,
    make_track,
    publish_qrels,
    run_file,
    submit,
    upload_qrels,
    work_off,
)

CAROL = Principal("carol", "participant")

HOUR, DAY, YEARS = 3600, 24 * 3600, timedelta(days=3650)

LABEL_SETS = {
    "possible": {"aspects": ["relevance", "credibility"], "tuples": [[0, "low"], [1, "low"], [2, "high"]]}
}

ODD = (
    "# ir_metadata.start\n"
    '# method: "\\0 \\e[31m é 😀"\n'
    "# parts: [first, {version: 1.10}]\n"
    "# ir_metadata.end\n"
    "t1 Q0 ü 1 9.0000000001 läuft🏃\n"
    "t1 Q0 b\x01 2 9 läuft🏃\n"
    "t1 Q0 b 3 0.5 läuft🏃\n"
    "t9\x7f\u202e😀 Q0 a 1 1 läuft🏃\n"
).encode()
"""A run with unusual characters in all stored fields, whose order depends on the profile."""


def main() -> None:
    with TemporaryDirectory() as folder:
        clock = Clock()
        system = replace(open_system(Settings(data=Path(folder))), now=clock)
        system.migrate()
        tokens = make_tokens(system, clock)
        make_quiet_tracks(system, clock)
        make_busy_track(system, clock)
        rows = dump(system.engine)
        now = clock.now.isoformat()
        blobs = fetch(system, rows)
        shown = show(system, tokens)
        finished = finish(system, clock)
        path = Release(
            revision=revisions()[-1],
            now=now,
            tokens=tokens,
            rows=rows,
            blobs=blobs,
            shown=shown,
            finished=finished,
        ).write()
        system.close()
    code = Path(cupel_backend.__file__).parent
    print(f"wrote {path.name}, {path.stat().st_size:,} bytes, with the code in {code}")


def make_tokens(system: System, clock: Clock) -> dict[str, str]:
    """Issue a token of each kind; return name -> text of the token."""

    def issue(team: str, scope: str, **options: Any) -> str:
        return access.issue(system, access.OPERATOR, team=team, scope=scope, **options)[0]

    tokens = {
        "admin": issue("house", "admin"),
        "organiser": issue("organisers", "organiser", label="für die Läufe 🔑"),
        "participant": issue("alice", "participant", expires_at=clock.now + YEARS),
        "never used": issue("bob", "participant"),
        "expired": issue("bob", "participant", expires_at=clock.now + timedelta(seconds=DAY)),
        "revoked": issue("carol", "participant"),
    }
    for name in tokens.keys() - {"never used"}:
        access.authenticate(system, tokens[name])
    clock.forward(HOUR)
    access.revoke(system, ADMIN, access.authenticate(system, tokens["revoked"]).prefix)
    clock.forward(2 * DAY)
    return tokens


def make_quiet_tracks(system: System, clock: Clock) -> None:
    """Create a closed track with all optional declarations, and a track without judgments."""
    tracks.create(
        system,
        STRANGER,
        name="closed.2029",
        title="Jugées – 評価 🧪",
        aspects={"relevance": {"labels": [0, 1, 2]}, "credibility": {"labels": ["low", "high"]}},
        label_sets=LABEL_SETS,
        measures=["TOMA(of=nDCG,label_set=possible)", "P(cutoff=1,aspect=relevance)"],
        profile="trec_eval-10",
        depth=2,
    )
    files = {"relevance.txt": RELEVANCE, "credibility.txt": CREDIBILITY}
    version = qrels_versions.upload(system, STRANGER, "closed.2029", collection=COLLECTION, files=files)
    qrels_versions.publish(system, STRANGER, "closed.2029", version.number)
    submit(system, BOB, track="closed.2029")
    work_off(system, analysing=True)
    clock.forward(HOUR)
    tracks.change(system, STRANGER, "closed.2029", changes={"closed": True})

    make_track(system, "waiting", measures=["nDCG@10", "CAM(of=nDCG@10)"])
    upload_qrels(system, "waiting")
    submit(system, ALICE, run_file(POOR), track="waiting", name="")


def make_busy_track(system: System, clock: Clock) -> None:
    """Create a track with versions, submissions and jobs in every state."""
    impatient = replace(system, settings=system.settings.model_copy(update={"attempts": 1}))

    def claimed(submission: str) -> Claim:
        """Claim the next job and check that it belongs to this submission."""
        clock.forward(1.000001)  # timestamps keep their microseconds
        claim = jobs.claim_next(system, rescoring.QUEUE)
        assert claim is not None
        assert claim.payload["submission"] == submission
        return claim

    make_track(system, "busy", title="Geschäftig 🐝", measures=["nDCG@2", "AP", "TOMA(of=nDCG@2)", "P@1"])
    publish_qrels(system, "busy")
    first = submit(system, ALICE, track="busy", name="Läufe 🏃.txt", key="Schlüssel 🔑").id
    gone = submit(system, BOB, run_file(POOR), track="busy", key="a key").id
    work_off(system, analysing=True)
    score_explanations.request(system, ALICE, first, measures=["nDCG@2", "TOMA(of=nDCG@2)"])
    work_off(system, analysing=True)
    make_audits(system, clock)
    clock.forward(HOUR)
    submissions.withdraw(system, BOB, gone)

    publish_qrels(system, "busy", CORRECTED)  # replaced before it becomes current
    publish_qrels(system, "busy", RELEVANCE.replace(b"c 0", b"c 2"))
    again = submit(system, ALICE, track="busy", name="again.txt").id  # the same run
    odd = submit(system, CAROL, gzip.compress(ODD, mtime=0), track="busy", name="odd\x1b[31m 😀.gz").id
    work_off(system, analysing=True)

    longer = [*tracks.get(system, ORGANISER, "busy").measures, "RR(aspect=credibility)"]
    tracks.change(system, ORGANISER, "busy", changes={"measures": longer})
    evaluations.evaluate(system, claimed(first))
    dead = submit(system, BOB, run_file([("t2", "ba"), ("t1", "c")]), track="busy", name="dead.txt").id
    jobs.fail(impatient, claimed(dead), "ValueError: 💥 \x1b[31m‽ " + "…" * 3000)

    publish_qrels(system, "busy", RELEVANCE.replace(b"t2 0 a 0", b"t2 0 a 1"))
    evaluations.evaluate(system, claimed(again))
    unlucky = claimed(odd)
    jobs.fail(impatient, claimed(first), "dead under the version that is being published")
    claimed(again)  # a worker is running this job
    jobs.fail(system, unlucky, "it will be tried again")
    submit(system, ALICE, run_file([("t1", "bac"), ("t2", "bca")], tag="new"), track="busy", name="new.txt")
    files = {"relevance.txt": RELEVANCE, "credibility.txt": CREDIBILITY, "überzählig\t😀.txt": b""}
    qrels_versions.upload(
        system, ORGANISER, "busy", collection=COLLECTION, files=files
    )  # a draft with findings

    with writing(system.engine) as connection:
        # Every current measure has a defined aggregate, but the tables allow an undefined one.
        undefined = (scores.c.submission_id == odd, scores.c.measure.startswith("P"))
        connection.execute(update(scores).where(*undefined).values(value=None))
        # Every job now has a track and one of two queues, but the tables allow others.
        lonely = jobs.JobRequest(key="note/1", kind="note", queue="notify", tenant="", payload={})
        jobs.enqueue(connection, [lonely], now=clock.now)


def make_audits(system: System, clock: Clock) -> None:
    """Create audits in every state, requested by users and by schedules, with alerts on their numbers."""
    small = {"kind": "downsampling", "parameters": {"repeats": 3, "ratios": [50, 10]}}
    for number, bounds in {"tau(AP)@50": {"below": 2}, "τ": {"above": 0}, "tau(AP)@10": {"above": 9}}.items():
        audit_alerts.add(system, ORGANISER, "busy", kind="downsampling", number=number, **bounds)
    audit_alerts.remove(system, ORGANISER, audit_alerts.list_(system, ORGANISER, "busy").items[0].id)
    audit_schedules.add(system, ORGANISER, "busy", request=small, cron="0 3 * * 1", zone="Europe/Berlin")
    audit_schedules.add(system, ADMIN, "busy", request=small, runs=10)
    paused = audit_schedules.add(system, ORGANISER, "busy", request=small)
    audit_schedules.change(system, ORGANISER, paused.id, paused=True)
    often = [
        audit_schedules.add(system, ORGANISER, name, request=small, cron="* * * * *")
        for name in ("busy", "waiting")
    ]
    clock.forward(60)
    audit_schedules.request_due_audits(system)  # fails for the second track, which has no judgments
    for schedule in often:
        audit_schedules.remove(system, ORGANISER, schedule.id)
    audit_requests.request(system, ORGANISER, "busy", **small, part_trials=2, other=1)
    odd = {"kind": "downsampling", "parameters": {"aspect": "Schönheit"}}
    audit_requests.request(system, ADMIN, "busy", **odd, seed=2**62)
    work_off(system, analysing=True)
    for is_prepared in (True, False):
        cancelled = audit_requests.request(system, ORGANISER, "busy", kind="downsampling")
        claim = jobs.claim_next(system, audit_requests.QUEUE) if is_prepared else None
        if claim is not None:
            audit_parts.prepare_audit(system, claim)
        audit_requests.cancel(system, ORGANISER, cancelled.id)


if __name__ == "__main__":
    main()
