"""What a release file holds: every row and blob of a small service, and what its release said about them.

A file is gzipped JSON and portable between databases: instants are ISO text, binary is base64.
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
from cupel_backend.scores import evaluations, leaderboards, score_explanations
from cupel_backend.scores.board_analyses import RankInformation
from support.backend_cast import ADMIN, Clock, work_off

Row = dict[str, Any]
Rows = Mapping[str, list[Row]]


@dataclass(frozen=True)
class Release:
    """A service as a release left it.

    now: the time of its clock. tokens: their texts, by what they are. shown: what that release showed of
    it all. finished: its boards, once that release had also done the work that was left.
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
    """The revisions that there is a file of."""
    return sorted(path.name.removesuffix(".json.gz") for path in path_of("").parent.glob("*.json.gz"))


# Migrations


def revisions() -> list[str]:
    """Every revision there is, oldest first."""
    script = ScriptDirectory.from_config(_alembic())
    return [script_.revision for script_ in script.walk_revisions()][::-1]


def upgrade(engine: sa.Engine, revision: str) -> None:
    """Bring the tables to `revision`: `database.migrate` goes to the last one."""
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
    """The tables as they are, whatever the code says, in an order in which rows can be inserted."""
    found = sa.MetaData()
    found.reflect(connection)
    return [table for table in found.sorted_tables if table.name != "alembic_version"]


def dump(engine: sa.Engine) -> dict[str, list[Row]]:
    """All rows of all tables."""
    with engine.connect() as connection:
        return {
            table.name: [
                {name: _portable(value) for name, value in row.items()}
                for row in connection.execute(sa.select(table).order_by(*table.primary_key)).mappings()
            ]
            for table in tables_in(connection)
        }


def load(engine: sa.Engine, rows: Rows) -> None:
    """Insert what `dump` gave into empty tables of the same revision; raises ValueError if they differ."""
    with writing(engine) as connection:
        tables = tables_in(connection)
        there = {table.name: set(table.c.keys()) for table in tables}
        if there != {name: set(of_table[0]) for name, of_table in rows.items()}:
            raise ValueError("these are not the tables that were released: was an old migration changed?")
        for table in tables:
            for row in rows[table.name]:
                values = {name: _native(value, table.c[name].type) for name, value in row.items()}
                connection.execute(table.insert().values(values))
            if connection.dialect.name == "postgresql":
                _count_on(connection, table)


def _count_on(connection: sa.Connection, table: sa.Table) -> None:
    """Have new ids follow those that are there, as in a database that gave them out, or was restored."""
    for column in table.primary_key:
        if isinstance(column.type, sa.Integer):
            sequence = sa.func.pg_get_serial_sequence(table.name, column.name)
            connection.execute(sa.select(sa.func.setval(sequence, sa.func.max(column))))


def _portable(value: Any) -> Any:
    if isinstance(value, datetime):  # SQLite knows no zones: all are UTC
        return value.replace(tzinfo=value.tzinfo or UTC).astimezone(UTC).isoformat()
    return b64encode(value).decode() if isinstance(value, bytes) else value


def _native(value: Any, kind: sa.types.TypeEngine[Any]) -> Any:
    if value is None:
        return sa.null()  # a JSON column would take None for JSON's null
    if isinstance(kind, sa.DateTime):
        return datetime.fromisoformat(value)
    return b64decode(value) if isinstance(kind, sa.LargeBinary) else value


def fetch(system: System, rows: Rows) -> dict[str, str]:
    """The content of every blob that a row names, by key."""
    named = [(name, value) for table in rows.values() for row in table for name, value in row.items()]
    keys = sorted({value for name, value in named if name.endswith("blob") and value})
    return {key: b64encode(system.blobs.get(key)).decode() for key in keys}


def store(system: System, blobs: Mapping[str, str]) -> None:
    """Store what `fetch` gave."""
    system.blobs.prepare()
    for key, content in blobs.items():
        path = system.settings.incoming / "blob"
        path.write_bytes(b64decode(content))
        assert system.blobs.put_file(path, sha256(path.read_bytes()).hexdigest()) == key


# What a service shows


def show(system: System, tokens: Mapping[str, str]) -> dict[str, Any]:
    """All there is, as the public functions tell it, in JSON's types."""
    shown: dict[str, Any] = {
        "tokens": _all(system, access.list_),
        "tracks": _all(system, tracks.list_),
        "jobs": _all(system, jobs.list_),
        **show_boards(system),
        "callers": {name: _caller(system, text) for name, text in tokens.items()},  # notes their use: last
    }
    for track in shown["tracks"]:
        name = track["name"]
        shown[f"qrels of {name}"] = _all(system, qrels_versions.list_, name)
        shown[f"submissions to {name}"] = _all(system, submissions.list_, name)
        for noun, list_ in {"schedules": audit_schedules.list_, "alerts": audit_alerts.list_}.items():
            if found := _all(system, list_, name):
                shown[f"{noun} of {name}"] = found
        for audit in _all(system, audit_requests.list_, name):
            shown[f"audit {audit['id']}"] = audit
            if audit["state"] == "done":
                report = audit_parts.read_report(system, ADMIN, audit["id"])[0].as_data()
                shown[f"report of {audit['id']}"] = json.loads(json.dumps(report))
    return shown


def show_boards(system: System) -> dict[str, Any]:
    """Boards and scores of every track by every measure of its plan under every published version."""
    shown: dict[str, Any] = {}
    for track in _all(system, tracks.list_):
        name = track["name"]
        numbers = [
            version["number"]
            for version in _all(system, qrels_versions.list_, name)
            if version["published_at"]
        ]
        sent = [submission["id"] for submission in _all(system, submissions.list_, name)]
        for number in numbers:
            for id in sent:
                explained = score_explanations.read_explanations(system, ADMIN, id, qrels=number)
                if explained.explanations:
                    shown[f"explanations of {id} under {number}"] = _plain(explained)
                scored = evaluations.read_scores(system, ADMIN, id, qrels=number)
                shown[f"scores of {id} under {number}"] = _plain(scored)
                for score in scored:
                    topics = evaluations.read_topic_scores(
                        system, ADMIN, id, measure=score.measure, qrels=number
                    )
                    shown[f"topics of {id} under {number} by {score.measure}"] = _plain(topics)
            for measure in track["measures"]:
                board = leaderboards.read_board(system, ADMIN, name, measure=measure, qrels=number)
                shown[f"board of {name} under {number} by {measure}"] = _plain(board)
    return shown


def finish(system: System, clock: Clock) -> dict[str, Any]:
    """Do all the work that is left, also what a worker took and did not finish; the boards then.

    Of analyses the state alone: they are computed anew, and their last digits are of scipy's version.
    """
    clock.forward(3600)
    jobs.sweep(system)
    work_off(system, analysing=True)
    return {
        name: _without_worth(board) if name.startswith("board ") else board
        for name, board in show_boards(system).items()
    }


def _without_worth(board: Row) -> Row:
    worth = {field.name for field in fields(RankInformation)}
    rows = [{name: value for name, value in row.items() if name not in worth} for row in board["rows"]]
    return board | {"rows": rows, "analysis": board["analysis"]["state"]}


def _all(system: System, list_: Callable[..., Any], *arguments: Any) -> list[Any]:
    """Every item of a list that has pages."""
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
    """A view, or several, in JSON's types. Etags are left out: they may change with any release."""

    def without_etag(pairs: list[tuple[str, Any]]) -> Row:
        return {name: value for name, value in pairs if name != "etag"}

    if isinstance(view, tuple):
        return [_plain(item) for item in view]
    return json.loads(json.dumps(asdict(view, dict_factory=without_etag), default=datetime.isoformat))
