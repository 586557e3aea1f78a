"""Runs: immutable files of teams.

Identical bytes submitted twice by a team are one run.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

from sqlalchemy import Connection, Row, or_, select

from cupel_backend.access import Principal
from cupel_backend.infrastructure.database import reading
from cupel_backend.infrastructure.errors import refusal
from cupel_backend.infrastructure.system import System
from cupel_backend.infrastructure.tables import runs, submissions, tracks
from cupel_contract.states import TokenScope

RUN_UNKNOWN = refusal("run-unknown")


@dataclass(frozen=True, kw_only=True)
class SubmittedRun:
    """A run as shown to users.

    digest: SHA-256 (hex) of the ranking. raw_digest: SHA-256 (hex) of the file as sent.
    """

    id: str
    team: str
    tag: str
    digest: str
    raw_digest: str
    topics: int
    documents: int
    bytes: int
    metadata: Mapping[str, Any] | None


def get(system: System, principal: Principal, id: str) -> SubmittedRun:
    """Return the run `id`.

    It is visible to its team, organisers of tracks that it was submitted to, and admins.
    """
    with reading(system.engine) as connection:
        return build_view(_find_visible(connection, principal, id))


def open_file(system: System, principal: Principal, id: str) -> BinaryIO:
    """Open the run's file as it was sent; the caller closes the stream."""
    with reading(system.engine) as connection:
        row = _find_visible(connection, principal, id)
    return system.blobs.open(row.raw_blob)


def build_view(row: Row[Any]) -> SubmittedRun:
    """Build a run from a row of `runs`."""
    return SubmittedRun(**{name: getattr(row, name) for name in SubmittedRun.__dataclass_fields__})


def _find_visible(connection: Connection, principal: Principal, id: str) -> Row[Any]:
    query = select(runs).where(runs.c.id == id)
    if not principal.has_scope(TokenScope.ADMIN):
        team_tracks = select(tracks.c.id).where(tracks.c.team == principal.team)
        submitted_to_team = select(submissions.c.run_id).where(submissions.c.track_id.in_(team_tracks))
        submitted = (
            runs.c.id.in_(submitted_to_team)
            if principal.has_scope(TokenScope.ORGANISER)
            else runs.c.id.in_([])
        )
        query = query.where(or_(runs.c.team == principal.team, submitted))
    row = connection.execute(query).first()
    if row is None:
        raise RUN_UNKNOWN(f"run {id!r} not found, or not visible to you")
    return row
