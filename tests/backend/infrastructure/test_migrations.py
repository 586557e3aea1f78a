"""Tests of migrations on both databases, from an empty database and from the data of each release."""

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
    load,
    released,
    revisions,
    show,
    store,
    tables_in,
    upgrade,
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
    """Yield a function that opens a new, empty database."""
    opened: list[sa.Engine] = []

    def open_() -> sa.Engine:
        settings = Settings(**{"data": tmp_path_factory.mktemp("data"), **new_place()})
        opened.append(connect(settings.database_url))
        return opened[-1]

    yield open_
    for engine in opened:
        engine.dispose()


def table_definitions(engine: sa.Engine) -> dict[str, Any]:
    """Return the definitions of all tables, including the parts that Alembic does not compare."""
    inspector = sa.inspect(engine)
    readers: dict[str, Any] = {
        "columns": inspector.get_columns,
        "unique": inspector.get_unique_constraints,
        "foreign keys": inspector.get_foreign_keys,
        "indexes": inspector.get_indexes,
    }
    return {
        table: {kind: {item["name"]: _plain(item) for item in read(table)} for kind, read in readers.items()}
        | {"primary key": inspector.get_pk_constraint(table)}
        for table in inspector.get_table_names()
        if table != "alembic_version"
    }


def _plain(value: Any) -> Any:
    """Return `value` with SQLAlchemy objects as text, because these objects are never equal."""
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    return value if isinstance(value, (list, bool, int, type(None))) else str(value)


def assert_tables_of_the_code(engine: sa.Engine, fresh: sa.Engine) -> None:
    """Assert that the database has exactly the tables that the code declares.

    fresh: an empty database, in which the declared tables are created for the comparison.
    """
    assert is_migrated(engine)
    with reading(engine) as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    with writing(fresh) as connection:
        metadata.create_all(connection)
    assert table_definitions(engine) == table_definitions(fresh)


# From nothing


def test_the_migrations_make_exactly_the_tables_of_the_code_step_by_step(
    open_engine: Callable[[], sa.Engine],
) -> None:
    engine = open_engine()
    assert not is_migrated(engine)
    for revision in revisions():
        upgrade(engine, revision)
        with reading(engine) as connection:
            assert MigrationContext.configure(connection).get_current_heads() == (revision,)
    assert_tables_of_the_code(engine, open_engine())


def test_indexes_and_unique_rules_are_there(open_engine: Callable[[], sa.Engine]) -> None:
    engine = open_engine()
    migrate(engine)
    tables = table_definitions(engine)
    where = f"{engine.dialect.name}_where"
    for name in ("ix_jobs_open", "ix_jobs_qrels_open"):
        condition = tables["jobs"]["indexes"][name]["dialect_options"][where]
        assert "finished_at IS NULL" in condition
        assert "dead_at IS NULL" in condition
    unique = {
        (name, *one["column_names"]) for name, table in tables.items() for one in table["unique"].values()
    }
    assert unique >= {
        ("jobs", "key"),
        ("qrels", "track_id", "number"),
        ("runs", "team", "raw_digest"),
        ("tracks", "name"),
    }


def test_keys_of_exact_scores_are_ordered_by_bytes_in_any_language(
    open_engine: Callable[[], sa.Engine],
) -> None:
    engine = open_engine()
    migrate(engine)
    key: Any
    (key,) = (one for one in sa.inspect(engine).get_columns("scores") if one["name"] == "exact_key")
    assert key["type"].collation == {"postgresql": "C", "sqlite": None}[engine.dialect.name]


# From what a release left


def test_every_migration_has_a_release_file() -> None:
    assert released() == sorted(revisions()), (
        "tests/backend/infrastructure/releases/README.md says how to make one"
    )


def test_the_newest_release_file_holds_something_of_everything() -> None:
    release = Release.read(revisions()[-1])
    for column in (column for table in metadata.sorted_tables for column in table.c):
        values = [row[column.name] for row in release.rows[column.table.name]]
        assert any(value is not None for value in values), f"{column} has a value in no row"
        assert None in values or not column.nullable, f"{column} is NULL in no row"
    sent = [one for name, told in release.shown.items() if name.startswith("submissions") for one in told]
    assert {one["state"] for one in sent} == set(SubmissionState)
    assert {one["state"] for one in release.shown["jobs"]} == set(JobState)
    versions = [one for name, told in release.shown.items() if name.startswith("qrels") for one in told]
    assert {one["state"] for one in versions} == set(QrelsState)


@pytest.fixture(params=released())
def release(request: pytest.FixtureRequest) -> Release:
    return Release.read(request.param)


@pytest.fixture
def upgraded(release: Release, at: dict[str, Any], clock: Clock) -> Iterator[System]:
    """Return a system with the data of a release after all migrations, at the time of the release."""
    clock.now = datetime.fromisoformat(release.now)
    with closing(replace(open_lasting(Settings(**at)), now=clock)) as system:
        upgrade(system.engine, release.revision)
        load(system.engine, release.rows)
        store(system, release.blobs)
        system.migrate()
        yield system


def kept(then: Any, now: Any) -> Any:
    """Return `now` without the fields that `then` does not have."""
    if isinstance(then, dict) and isinstance(now, dict):
        return {name: kept(value, now[name]) for name, value in then.items() if name in now}
    if isinstance(then, list) and isinstance(now, list):
        return [kept(one, other) for one, other in zip_longest(then, now)]
    return now


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

    A report's digest covers its sentences, so it is replaced by whether it matches the rest of the report.
    """
    if isinstance(view, dict):
        plain = {field: without_wording(value, name, field) for field, value in view.items()}
        if {"report", "digest"} <= view.keys():
            rest = {field: value for field, value in view.items() if field != "digest"}
            plain["digest"] = digest(rest) == view["digest"]
        return plain
    if isinstance(view, list):
        return [without_wording(item, parent, name) for item in view]
    return "(sentence)" if isinstance(view, str) and view and (parent, name) in SENTENCE_FIELDS else view


def assert_same_but_for_wording(now: Mapping[str, Any], then: Mapping[str, Any]) -> None:
    """Assert that `now` has all fields and values of `then`; the wording of sentences may differ."""
    assert now.keys() == then.keys()
    for name, view in then.items():
        assert without_wording(kept(view, now[name])) == without_wording(view), name


@pytest.mark.parametrize("field", ["score", "reason", "submission"])
@pytest.mark.parametrize("value", [None, "", 0.5])
def test_a_value_lost_by_an_upgrade_is_noticed(field: str, value: Any) -> None:
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


def test_an_upgrade_ends_with_the_tables_of_the_code(
    upgraded: System, open_engine: Callable[[], sa.Engine]
) -> None:
    assert_tables_of_the_code(upgraded.engine, open_engine())


def test_an_upgrade_keeps_every_row(upgraded: System, release: Release) -> None:
    there = dump(upgraded.engine)
    assert {name: len(rows) for name, rows in there.items() if name in release.rows} == {
        name: len(rows) for name, rows in release.rows.items()
    }


def test_after_an_upgrade_all_is_shown_as_before(upgraded: System, release: Release) -> None:
    assert_same_but_for_wording(show(upgraded, release.tokens), release.shown)


def test_after_an_upgrade_a_request_with_its_key_is_answered_as_before(
    upgraded: System, release: Release
) -> None:
    for row in release.rows["keys"]:
        caller = Principal(row["team"], "participant")
        earlier = submissions.get(upgraded, caller, row["submission_id"])
        with submitted_runs.open_file(upgraded, caller, earlier.run.id) as file:
            content = file.read()
        again = partial(submit, upgraded, caller, track=earlier.track, name=earlier.name, key=row["key"])
        assert again(content=content) == earlier
        with pytest.raises(Invalid, match="used for another"):
            again(content=content + b"\n")


def test_after_an_upgrade_the_work_that_was_left_gives_the_same_scores(
    upgraded: System, release: Release, clock: Clock
) -> None:
    assert_same_but_for_wording(finish(upgraded, clock), release.finished)
    assert tracks.get(upgraded, ADMIN, "busy").current == 4  # which was being published


def test_a_worker_that_was_at_work_during_an_upgrade_may_finish(upgraded: System, release: Release) -> None:
    running = [job for job in release.shown["jobs"] if job["state"] == "running"]
    assert running
    for job in running:
        evaluations.evaluate(upgraded, claim_of(release, job["id"]))
        assert jobs.get(upgraded, ADMIN, job["id"]).state == "done"


def claim_of(release: Release, id: str) -> Claim:
    """Return the claim of a job that a worker of the release was running."""
    (row,) = (row for row in release.rows["jobs"] if row["id"] == id)
    values = {one.name: row[one.name] for one in fields(Claim)}
    return Claim(**values | {"created_at": datetime.fromisoformat(row["created_at"])})


def test_after_an_upgrade_a_dead_job_can_be_revived_and_done(
    upgraded: System, release: Release, clock: Clock
) -> None:
    finish(upgraded, clock)
    dead = [job["id"] for job in release.shown["jobs"] if job["state"] == "dead"]
    assert dead
    for id in dead:
        jobs.revive(upgraded, ADMIN, id)
    work_off(upgraded, analysing=True)
    assert {jobs.get(upgraded, ADMIN, id).state for id in dead} == {"done"}


def test_after_an_upgrade_new_things_get_ids_of_their_own(upgraded: System, release: Release) -> None:
    make_track(upgraded, "new")
    publish_qrels(upgraded, "new")
    publish_qrels(upgraded, "busy", RELEVANCE)
    new = submit(upgraded, track="new")
    work_off(upgraded, analysing=True)
    assert submissions.get(upgraded, ADMIN, new.id).state == "scored"
    there = dump(upgraded.engine)
    for table, more in {"tracks": 1, "qrels": 2, "submissions": 1}.items():
        earlier = {row["id"] for row in release.rows[table]}
        now = {row["id"] for row in there[table]}
        assert earlier < now, table
        assert len(now - earlier) == more, table


def test_after_an_upgrade_references_hold(upgraded: System) -> None:
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
