"""Release files: all rows and blobs of a small service, and the views that the release returned.

A release file is gzipped JSON that can be loaded into any database: timestamps are ISO 8601 text, binary
values are base64.
"""

import gzip
import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory

from cupel_backend import access, jobs, qrels_versions, submissions, tracks
from cupel_backend.audits import audit_alerts, audit_parts, audit_requests, audit_schedules
from cupel_backend.infrastructure.database import writing
from cupel_backend.infrastructure.errors import Problem
from cupel_backend.infrastructure.system import System
from cupel_backend.scores import board_analyses, evaluations, leaderboards, score_explanations
from cupel_backend.scores.board_analyses import RankInformation
from support.backend_cast import ADMIN, Clock, work_off

Row = dict[str, Any]
Rows = Mapping[str, list[Row]]


@dataclass(frozen=True, kw_only=True)
class Release:
    """The state of a service that a release wrote.

    now: the time of the clock. tokens: name -> text of the token. shown: all views that the release returned.
    finished: the leaderboards after the release ran the remaining jobs.
    """

    revision: str
    now: str
    tokens: dict[str, str]
    rows: dict[str, list[Row]]
    blobs: dict[str, str]
    shown: dict[str, Any]
    finished: dict[str, Any]

    @classmethod
    def read(cls, revision: str) -> "Release":
        return cls(**json.loads(gzip.decompress(path_of(revision).read_bytes())))

    def write(self) -> Path:
        path = path_of(self.revision)
        path.write_bytes(gzip.compress(json.dumps(asdict(self), allow_nan=False).encode(), mtime=0))
        return path


def path_of(revision: str) -> Path:
    return Path(__file__).with_name(f"{revision}.json.gz")


def released() -> list[str]:
    """Return the revisions that have a release file."""
    return sorted(path.name.removesuffix(".json.gz") for path in path_of("").parent.glob("*.json.gz"))


# Migrations


def revisions() -> list[str]:
    """Return all revisions, oldest first."""
    scripts = ScriptDirectory.from_config(_alembic())
    return [script.revision for script in scripts.walk_revisions()][::-1]


def upgrade(engine: sa.Engine, revision: str) -> None:
    """Migrate the tables to `revision` (`database.migrate` always migrates to the latest one)."""
    config = _alembic()
    with writing(engine) as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)


def _alembic() -> Config:
    config = Config()
    config.set_main_option("script_location", "cupel_backend:infrastructure/migrations")
    return config


# Rows and blobs


def tables_in(connection: sa.Connection) -> list[sa.Table]:
    """Return the tables as the database defines them, in an order that satisfies foreign keys."""
    reflected = sa.MetaData()
    reflected.reflect(connection)
    return [table for table in reflected.sorted_tables if table.name != "alembic_version"]


def dump(engine: sa.Engine) -> dict[str, list[Row]]:
    """Return table name -> rows, for all tables."""
    with engine.connect() as connection:
        return {
            table.name: [
                {name: _portable(value) for name, value in row.items()}
                for row in connection.execute(sa.select(table).order_by(*table.primary_key)).mappings()
            ]
            for table in tables_in(connection)
        }


def load(engine: sa.Engine, rows: Rows) -> None:
    """Insert the rows of `dump` into empty tables; raise ValueError if the tables have other columns."""
    with writing(engine) as connection:
        tables = tables_in(connection)
        columns = {table.name: set(table.c.keys()) for table in tables}
        if columns != {name: set(of_table[0]) for name, of_table in rows.items()}:
            raise ValueError("the tables differ from the released ones: was an old migration changed?")
        for table in tables:
            for row in rows[table.name]:
                values = {name: _native(value, table.c[name].type) for name, value in row.items()}
                connection.execute(table.insert().values(values))
            if connection.dialect.name == "postgresql":
                _advance_sequences(connection, table)


def _advance_sequences(connection: sa.Connection, table: sa.Table) -> None:
    """Set the id sequences to the largest ids, so that new rows get unused ids."""
    for column in table.primary_key:
        if isinstance(column.type, sa.Integer):
            sequence = sa.func.pg_get_serial_sequence(table.name, column.name)
            connection.execute(sa.select(sa.func.setval(sequence, sa.func.max(column))))


def _portable(value: Any) -> Any:
    if isinstance(value, datetime):  # SQLite stores no time zones: all timestamps are UTC
        return value.replace(tzinfo=value.tzinfo or UTC).astimezone(UTC).isoformat()
    return b64encode(value).decode() if isinstance(value, bytes) else value


def _native(value: Any, kind: sa.types.TypeEngine[Any]) -> Any:
    if value is None:
        return sa.null()  # a JSON column would store None as JSON null, not as SQL NULL
    if isinstance(kind, sa.DateTime):
        return datetime.fromisoformat(value)
    return b64decode(value) if isinstance(kind, sa.LargeBinary) else value


def fetch(system: System, rows: Rows) -> dict[str, str]:
    """Return key -> content (base64) of every blob that a row names."""
    named = [(name, value) for table in rows.values() for row in table for name, value in row.items()]
    keys = sorted({value for name, value in named if name.endswith("blob") and value})
    return {key: b64encode(system.blobs.get(key)).decode() for key in keys}


def store(system: System, blobs: Mapping[str, str]) -> None:
    """Store the blobs that `fetch` returned."""
    system.blobs.prepare()
    for key, content in blobs.items():
        path = system.settings.incoming / "blob"
        path.write_bytes(b64decode(content))
        assert system.blobs.put_file(path, sha256(path.read_bytes()).hexdigest()) == key


# Views of a service


def show(system: System, tokens: Mapping[str, str]) -> dict[str, Any]:
    """Return all views that the public functions return, as JSON values."""
    views: dict[str, Any] = {
        "tokens": _all(system, access.list_),
        "tracks": _all(system, tracks.list_),
        "jobs": _all(system, jobs.list_),
        **show_boards(system),
        # After the list of tokens, because authentication records the last use.
        "callers": {name: _caller(system, text) for name, text in tokens.items()},
    }
    for track in views["tracks"]:
        name = track["name"]
        views[f"qrels of {name}"] = _all(system, qrels_versions.list_, name)
        views[f"submissions to {name}"] = _all(system, submissions.list_, name)
        for noun, list_ in {"schedules": audit_schedules.list_, "alerts": audit_alerts.list_}.items():
            if found := _all(system, list_, name):
                views[f"{noun} of {name}"] = found
        for audit in _all(system, audit_requests.list_, name):
            views[f"audit {audit['id']}"] = audit
            if audit["state"] == "done":
                report = audit_parts.read_report(system, ADMIN, audit["id"])[0].as_data()
                views[f"report of {audit['id']}"] = json.loads(json.dumps(report))
    return views


def show_boards(system: System) -> dict[str, Any]:
    """Return leaderboards and scores of all tracks by all measures under all published versions."""
    views: dict[str, Any] = {}
    for track in _all(system, tracks.list_):
        name = track["name"]
        versions = _all(system, qrels_versions.list_, name)
        numbers = [version["number"] for version in versions if version["published_at"]]
        ids = [submission["id"] for submission in _all(system, submissions.list_, name)]
        for number in numbers:
            for id in ids:
                explained = score_explanations.read_explanations(system, ADMIN, id, qrels=number)
                if explained.explanations:
                    views[f"explanations of {id} under {number}"] = _plain(explained)
                scored = evaluations.read_scores(system, ADMIN, id, qrels=number)
                views[f"scores of {id} under {number}"] = _plain(scored)
                for score in scored:
                    topics = evaluations.read_topic_scores(
                        system, ADMIN, id, measure=score.measure, qrels=number
                    )
                    views[f"topics of {id} under {number} by {score.measure}"] = _plain(topics)
            for measure in track["measures"]:
                board = leaderboards.read_board(system, ADMIN, name, measure=measure, qrels=number)
                views[f"board of {name} under {number} by {measure}"] = _plain(board)
    return views


def finish(system: System, clock: Clock) -> dict[str, Any]:
    """Run all remaining jobs, including interrupted ones, and return the leaderboards.

    Of each analysis, only the state is returned, because its last digits depend on the version of scipy.
    """
    clock.forward(3600)
    jobs.sweep(system)
    board_analyses.request_all(system)  # the scheduler recomputes analyses by earlier methods
    work_off(system, analysing=True)
    return {
        name: without_analysis(view) | {"analysis": view["analysis"]["state"]} if is_board(name) else view
        for name, view in show_boards(system).items()
    }


def is_board(name: str) -> bool:
    """Return whether the view with this name is a leaderboard."""
    return name.startswith("board ")


def without_analysis(board: Row) -> Row:
    """Return a board without its analysis and what the analysis adds to the rows."""
    earlier = {"tied_for_first"}  # a field of releases up to revision 0004
    rank_fields = earlier | {field.name for field in fields(RankInformation)}
    rows = [{name: value for name, value in row.items() if name not in rank_fields} for row in board["rows"]]
    return {name: value for name, value in board.items() if name != "analysis"} | {"rows": rows}


def _all(system: System, list_: Callable[..., Any], *arguments: Any) -> list[Any]:
    """Return the items of all pages of a list."""
    return [_plain(item) for page in _pages(system, list_, *arguments) for item in page.items]


def _pages(system: System, list_: Callable[..., Any], *arguments: Any) -> Iterator[Any]:
    page = list_(system, ADMIN, *arguments, limit=3)
    yield page
    while page.next is not None:
        page = list_(system, ADMIN, *arguments, limit=3, cursor=page.next)
        yield page


def _caller(system: System, token: str) -> Any:
    try:
        return _plain(access.authenticate(system, token))
    except Problem as problem:
        return {"refused": str(problem)}


def _plain(view: Any) -> Any:
    """Return a view or a tuple of views as JSON values. Omit ETags, because any release may change them."""

    def without_etag(pairs: list[tuple[str, Any]]) -> Row:
        return {name: value for name, value in pairs if name != "etag"}

    if isinstance(view, tuple):
        return [_plain(item) for item in view]
    return json.loads(json.dumps(asdict(view, dict_factory=without_etag), default=datetime.isoformat))
