"""Tests of the migrations on both databases, from empty tables and from the data of each release."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from copy import deepcopy
from dataclasses import fields, replace
from datetime import datetime
from functools import partial
from itertools import zip_longest
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy.exc import IntegrityError

from backend.infrastructure.releases.contents import (
    Release,
    dump,
    finish,
    is_board,
    load,
    released,
    revisions,
    show,
    store,
    tables_in,
    upgrade,
    without_analysis,
)
from cupel_audits.report import digest
from cupel_backend import jobs, submissions, submitted_runs, tracks
from cupel_backend.access import Principal
from cupel_backend.infrastructure.database import connect, is_migrated, migrate, reading, writing
from cupel_backend.infrastructure.errors import Invalid
from cupel_backend.infrastructure.settings import Settings
from cupel_backend.infrastructure.system import System
from cupel_backend.infrastructure.tables import metadata
from cupel_backend.jobs import Claim
from cupel_backend.scores import evaluations
from cupel_contract.states import JobState, QrelsState, SubmissionState
from support.backend_cast import ADMIN, RELEVANCE, Clock, make_track, publish_qrels, submit, work_off
from support.service.service_sizes import Places
from support.service.shared_checkers import open_lasting


@pytest.fixture
def open_engine(
    new_place: Places, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[], sa.Engine]]:
    """Return a function that opens a new, empty database at each call."""
    opened: list[sa.Engine] = []

    def open_() -> sa.Engine:
        settings = Settings(**{"data": tmp_path_factory.mktemp("data"), **new_place()})
        opened.append(connect(settings.database_url))
        return opened[-1]

    yield open_
    for engine in opened:
        engine.dispose()


def read_schema(engine: sa.Engine) -> dict[str, Any]:
    """Return the tables as the database reports them, including details that Alembic does not compare."""
    inspector = sa.inspect(engine)
    readers: dict[str, Any] = {
        "columns": inspector.get_columns,
        "unique": inspector.get_unique_constraints,
        "foreign keys": inspector.get_foreign_keys,
        "indexes": inspector.get_indexes,
    }
    return {
        table: {kind: {part["name"]: _plain(part) for part in read(table)} for kind, read in readers.items()}
        | {"primary key": inspector.get_pk_constraint(table)}
        for table in inspector.get_table_names()
        if table != "alembic_version"
    }


def _plain(value: Any) -> Any:
    """Return `value` with SQLAlchemy objects as text, because the objects are never equal."""
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    return value if isinstance(value, (list, bool, int, type(None))) else str(value)


def assert_schema_matches_code(engine: sa.Engine, fresh: sa.Engine) -> None:
    """Assert that the tables are those that the code declares. fresh: an empty database to create them in."""
    assert is_migrated(engine)
    with reading(engine) as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    with writing(fresh) as connection:
        metadata.create_all(connection)
    assert read_schema(engine) == read_schema(fresh)


# Migrations of an empty database


def test_migrations_create_the_tables_that_the_code_declares(
    open_engine: Callable[[], sa.Engine],
) -> None:
    engine = open_engine()
    assert not is_migrated(engine)
    for revision in revisions():
        upgrade(engine, revision)
        with reading(engine) as connection:
            assert MigrationContext.configure(connection).get_current_heads() == (revision,)
        assert is_migrated(engine) == (revision == revisions()[-1])
    assert_schema_matches_code(engine, open_engine())


def test_migrations_create_indexes_and_unique_constraints(open_engine: Callable[[], sa.Engine]) -> None:
    engine = open_engine()
    migrate(engine)
    tables = read_schema(engine)
    where = f"{engine.dialect.name}_where"
    for name in ("ix_jobs_open", "ix_jobs_qrels_open"):
        condition = tables["jobs"]["indexes"][name]["dialect_options"][where]
        assert "finished_at IS NULL" in condition
        assert "dead_at IS NULL" in condition
    unique = {
        (name, *constraint["column_names"])
        for name, table in tables.items()
        for constraint in table["unique"].values()
    }
    assert unique >= {
        ("jobs", "key"),
        ("qrels", "track_id", "number"),
        ("runs", "team", "raw_digest"),
        ("tracks", "name"),
    }


def test_exact_score_keys_are_ordered_by_bytes_in_any_locale(
    open_engine: Callable[[], sa.Engine],
) -> None:
    engine = open_engine()
    migrate(engine)
    key: Any
    (key,) = (column for column in sa.inspect(engine).get_columns("scores") if column["name"] == "exact_key")
    assert key["type"].collation == {"postgresql": "C", "sqlite": None}[engine.dialect.name]


# Upgrades of the data of a release


def test_every_migration_has_a_release_file() -> None:
    assert released() == sorted(revisions()), (
        "create the file as tests/backend/infrastructure/releases/README.md says"
    )


def test_newest_release_file_covers_every_column_and_state() -> None:
    release = Release.read(revisions()[-1])
    for column in (column for table in metadata.sorted_tables for column in table.c):
        values = [row[column.name] for row in release.rows[column.table.name]]
        assert any(value is not None for value in values), f"{column} has no value in any row"
        assert None in values or not column.nullable, f"{column} is not NULL in any row"
    sent = [
        submission
        for name, listed in release.shown.items()
        if name.startswith("submissions")
        for submission in listed
    ]
    assert {submission["state"] for submission in sent} == set(SubmissionState)
    assert {job["state"] for job in release.shown["jobs"]} == set(JobState)
    versions = [
        version for name, listed in release.shown.items() if name.startswith("qrels") for version in listed
    ]
    assert {version["state"] for version in versions} == set(QrelsState)


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.sampled(every=3)) for name in released()])
def release(request: pytest.FixtureRequest) -> Release:
    """Return each release. `make test` runs a third of the pairs of release and service size."""
    return Release.read(request.param)


@pytest.fixture
def upgraded(release: Release, at: dict[str, Any], clock: Clock) -> Iterator[System]:
    """Yield a system with the data of a release after all later migrations, at the release's time."""
    clock.now = datetime.fromisoformat(release.now)
    with closing(replace(open_lasting(Settings(**at)), now=clock)) as system:
        upgrade(system.engine, release.revision)
        load(system.engine, release.rows)
        store(system, release.blobs)
        system.migrate()
        yield system


def without_new_fields(then: Any, now: Any) -> Any:
    """Return `now` without the fields that `then` lacks."""
    if isinstance(then, dict) and isinstance(now, dict):
        return {name: without_new_fields(value, now[name]) for name, value in then.items() if name in now}
    if isinstance(then, list) and isinstance(now, list):
        return [without_new_fields(item, other) for item, other in zip_longest(then, now)]
    return now


RENAMED_FIELDS = {"told": "parts"}
"""Field of views of earlier releases -> its name today (CHANGELOG.md)."""

SENTENCE_FIELDS = {
    ("scale", "warning"),
    ("analysis", "undefined"),
    ("unscored", "reason"),
    ("report", "verdict"),
    ("report", "reading"),
    ("tables", "title"),
    ("columns", "title"),
    ("columns", "about"),
    ("plots", "title"),
    ("plots", "caption"),
}
"""Fields with sentences that the current code writes, each with the field that it is in.

A release may reword them. Sentences that the database stores, such as findings, are not among them.
"""


def without_wording(view: Any, parent: str = "", name: str = "") -> Any:
    """Return `view` with a placeholder for each sentence, and without the digests of reports.

    A list of sentences has one placeholder, because releases may also split or add sentences.
    A report's digest covers its sentences, so it is replaced by whether it matches the report.
    """
    if isinstance(view, dict):
        plain = {
            RENAMED_FIELDS.get(field, field): without_wording(value, name, field)
            for field, value in view.items()
        }
        if {"report", "digest"} <= view.keys():
            rest = {field: value for field, value in view.items() if field != "digest"}
            plain["digest"] = digest(rest) == view["digest"]
        return plain
    if isinstance(view, list):
        items = [without_wording(item, parent, name) for item in view]
        return items[:1] if set(map(str, items)) == {"(sentence)"} else items
    return "(sentence)" if isinstance(view, str) and view and (parent, name) in SENTENCE_FIELDS else view


def assert_same_but_for_wording(now: Mapping[str, Any], then: Mapping[str, Any]) -> None:
    """Assert that `now` has the fields and values of `then`. Sentences may differ."""
    assert now.keys() == then.keys()
    for name, view in then.items():
        earlier = without_wording(view)
        assert without_new_fields(earlier, without_wording(now[name])) == earlier, name


@pytest.mark.parametrize("field", ["score", "reason", "submission"])
@pytest.mark.parametrize("value", [None, "", 0.5])
def test_comparison_detects_a_value_lost_by_an_upgrade(field: str, value: Any) -> None:
    then: dict[str, Any] = {
        "board": {"rows": [{"score": 0.25}], "unscored": [{"reason": "it failed", "submission": "sub_1"}]}
    }
    reworded = deepcopy(then)
    reworded["board"]["unscored"][0]["reason"] = "the evaluation failed"
    assert_same_but_for_wording(reworded, then)
    for row in (*reworded["board"]["rows"], *reworded["board"]["unscored"]):
        if field in row:
            row[field] = value
    with pytest.raises(AssertionError):
        assert_same_but_for_wording(reworded, then)


def test_upgraded_tables_match_the_code(upgraded: System, open_engine: Callable[[], sa.Engine]) -> None:
    assert_schema_matches_code(upgraded.engine, open_engine())


def test_upgrade_keeps_every_row(upgraded: System, release: Release) -> None:
    upgraded_rows = dump(upgraded.engine)
    assert {name: len(rows) for name, rows in upgraded_rows.items() if name in release.rows} == {
        name: len(rows) for name, rows in release.rows.items()
    }


def test_upgraded_service_returns_the_same_views(upgraded: System, release: Release) -> None:
    now, then = (
        {name: without_analysis(view) if is_board(name) else view for name, view in views.items()}
        for views in (show(upgraded, release.tokens), release.shown)
    )
    assert_same_but_for_wording(now, then)


def test_upgraded_service_repeats_the_response_to_a_known_idempotency_key(
    upgraded: System, release: Release
) -> None:
    for row in release.rows["keys"]:
        caller = Principal(row["team"], "participant")
        earlier = submissions.get(upgraded, caller, row["submission_id"])
        with submitted_runs.open_file(upgraded, caller, earlier.run.id) as file:
            content = file.read()
        repeat = partial(submit, upgraded, caller, track=earlier.track, name=earlier.name, key=row["key"])
        assert repeat(content=content) == earlier
        with pytest.raises(Invalid, match="used for another"):
            repeat(content=content + b"\n")


def test_jobs_left_by_a_release_give_the_same_scores_after_the_upgrade(
    upgraded: System, release: Release, clock: Clock
) -> None:
    assert_same_but_for_wording(finish(upgraded, clock), release.finished)
    assert tracks.get(upgraded, ADMIN, "busy").current == 4  # the version that was being published


def test_worker_can_finish_a_job_that_it_claimed_before_the_upgrade(
    upgraded: System, release: Release
) -> None:
    running = [job for job in release.shown["jobs"] if job["state"] == "running"]
    assert running
    for job in running:
        evaluations.evaluate(upgraded, claim_of(release, job["id"]))
        assert jobs.get(upgraded, ADMIN, job["id"]).state == "done"


def claim_of(release: Release, id: str) -> Claim:
    """Return the claim that a worker of the release holds in memory."""
    (row,) = (row for row in release.rows["jobs"] if row["id"] == id)
    values = {field.name: row[field.name] for field in fields(Claim)}
    return Claim(**values | {"created_at": datetime.fromisoformat(row["created_at"])})


def test_dead_job_can_be_revived_and_finished_after_the_upgrade(
    upgraded: System, release: Release, clock: Clock
) -> None:
    finish(upgraded, clock)
    dead = [job["id"] for job in release.shown["jobs"] if job["state"] == "dead"]
    assert dead
    for id in dead:
        jobs.revive(upgraded, ADMIN, id)
    work_off(upgraded, analysing=True)
    assert {jobs.get(upgraded, ADMIN, id).state for id in dead} == {"done"}


def test_new_rows_get_new_ids_after_the_upgrade(upgraded: System, release: Release) -> None:
    make_track(upgraded, "new")
    publish_qrels(upgraded, "new")
    publish_qrels(upgraded, "busy", RELEVANCE)
    new = submit(upgraded, track="new")
    work_off(upgraded, analysing=True)
    assert submissions.get(upgraded, ADMIN, new.id).state == "scored"
    upgraded_rows = dump(upgraded.engine)
    for table, added in {"tracks": 1, "qrels": 2, "submissions": 1}.items():
        earlier = {row["id"] for row in release.rows[table]}
        now = {row["id"] for row in upgraded_rows[table]}
        assert earlier < now, table
        assert len(now - earlier) == added, table


def test_foreign_keys_hold_after_the_upgrade(upgraded: System) -> None:
    with reading(upgraded.engine) as connection:
        tables = tables_in(connection)
        for key in (key for table in tables for key in table.foreign_keys):
            named = sa.select(key.column)
            lost = sa.select(sa.func.count()).where(key.parent.is_not(None), key.parent.not_in(named))
            assert connection.execute(lost).scalar() == 0, key
    (keys,) = (table for table in tables if table.name == "keys")
    row = {"team": "a", "key": "k", "request": "", "submission_id": "none", "created_at": upgraded.now()}
    with pytest.raises(IntegrityError), writing(upgraded.engine) as connection:
        connection.execute(keys.insert().values(row))
