"""Idempotency keys, by which repeated requests are recognised.

A repeated request with the same key returns the first submission. A key is stored in the transaction that
creates the submission, so a request that fails does not use its key. If two identical requests arrive at the
same time, the run file of each is checked, and the second request returns the submission of the first. A
different request with the same key is refused.
"""

from datetime import datetime, timedelta

from sqlalchemy import Connection, delete, select

from cupel_backend.infrastructure.database import insert_new, writing
from cupel_backend.infrastructure.errors import refusal
from cupel_backend.infrastructure.system import System
from cupel_backend.infrastructure.tables import keys

MAX_LENGTH = 255

KEY_REUSED = refusal("key-reused")
KEY_INVALID = refusal("key-invalid")


def require_valid(key: str) -> None:
    """Raise Invalid unless `key` has 1 to 255 printable characters."""
    if not 1 <= len(key) <= MAX_LENGTH or not key.isprintable():
        raise KEY_INVALID(f"{key[:MAX_LENGTH]!r} is not a valid key")


def is_used(connection: Connection, team: str, key: str) -> bool:
    """Return whether a request of the team with `key` created a submission."""
    used = select(keys.c.key).where(keys.c.team == team, keys.c.key == key)
    return connection.execute(used).first() is not None


def find_submission(connection: Connection, team: str, key: str, request: str) -> str | None:
    """Return the id of the submission that the same request created earlier, or None.

    request: digest of the request. Raises Invalid (key-reused) if another request used the key.
    """
    row = connection.execute(select(keys).where(keys.c.team == team, keys.c.key == key)).first()
    if row is None:
        return None
    if row.request != request:
        raise KEY_REUSED(f"the key {key!r} was used for another file, name or track")
    return str(row.submission_id)


def record_use(
    connection: Connection, team: str, key: str, *, request: str, submission_id: str, now: datetime
) -> None:
    """Store the key in the transaction that creates the submission.

    Raises Invalid (key-reused) if another request has just used the key; the transaction must roll back.
    """
    row = {"team": team, "key": key, "request": request, "submission_id": submission_id, "created_at": now}
    if not insert_new(connection, keys, [row]):
        raise KEY_REUSED(f"the key {key!r} was used for another file, name or track")


def remove_expired(system: System) -> int:
    """Remove keys older than `key_hours`; return their number."""
    before = system.now() - timedelta(hours=system.settings.key_hours)
    with writing(system.engine) as connection:
        return connection.execute(delete(keys).where(keys.c.created_at < before)).rowcount
