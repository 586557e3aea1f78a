"""Runs: what teams made, immutable. The same bytes handed in twice by a team are one run."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

from sqlalchemy import Connection, Row, or_, select

from cupel_backend.access import Principal
from cupel_backend.infrastructure.database import reading
from cupel_backend.infrastructure.errors import refusal
from cupel_backend.infrastructure.tables import runs, submissions, tracks
from cupel_contract.states import TokenScope

if TYPE_CHECKING:
    from cupel_backend.infrastructure.system import System

RUN_UNKNOWN = refusal("run-unknown")


@dataclass(frozen=True)
class SubmittedRun:
    """A run as people see it. digest: of the ranking; raw_digest: of the file as sent (both SHA-256, hex)."""

    id: str
    team: str
    tag: str
    digest: str
    raw_digest: str
    topics: int
    documents: int
    bytes: int
    metadata: Mapping[str, Any] | None


def get(system: "System", principal: Principal, id: str) -> SubmittedRun:
    """The run `id`, to its team, to organisers of tracks it was submitted to, and to admins."""
    with reading(system.engine) as connection:
        return view(_visible(connection, principal, id))


def open_file(system: "System", principal: Principal, id: str) -> BinaryIO:
    """The run's file as sent, compressed if it was; the caller closes the stream."""
    with reading(system.engine) as connection:
        row = _visible(connection, principal, id)
    return system.blobs.open(row.raw_blob)


def view(row: Row[Any]) -> SubmittedRun:
    """The run in a row of `runs`."""
    return SubmittedRun(**{name: getattr(row, name) for name in SubmittedRun.__dataclass_fields__})


def _visible(connection: Connection, principal: Principal, id: str) -> Row[Any]:
    query = select(runs).where(runs.c.id == id)
    if principal.scope != "admin":
        own_tracks = select(tracks.c.id).where(tracks.c.team == principal.team)
        handed_in = select(submissions.c.run_id).where(submissions.c.track_id.in_(own_tracks))
        organised = (
            runs.c.id.in_(handed_in) if principal.at_least(TokenScope.ORGANISER) else runs.c.id.in_([])
        )
        query = query.where(or_(runs.c.team == principal.team, organised))
    row = connection.execute(query).first()
    if row is None:
        raise RUN_UNKNOWN(f"there is no run {id!r} that you may see")
    return row
