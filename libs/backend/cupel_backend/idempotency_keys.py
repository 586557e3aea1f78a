"""Idempotency-Keys: a request repeated with its key is answered once.

A key is noted in the transaction that makes its submission, and not before: a request that dies on the
way holds nothing. Of two at the same time, both are checked, and the later one gets the other's
submission. Another request with the key is refused.
"""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from sqlalchemy import Connection, delete, select

from cupel_backend.infrastructure.database import insert_new, writing
from cupel_backend.infrastructure.errors import refusal
from cupel_backend.infrastructure.tables import keys

if TYPE_CHECKING:
    from cupel_backend.infrastructure.system import System

LONGEST = 255

KEY_REUSED = refusal("key-reused")
KEY_INVALID = refusal("key-invalid")


def require_valid(key: str) -> None:
    """Raise Invalid for what can't be a key."""
    if not 1 <= len(key) <= LONGEST or not key.isprintable():
        raise KEY_INVALID(f"{key[:LONGEST]!r} can't be a key")


def is_used(connection: Connection, team: str, key: str) -> bool:
    """Whether a request with `key` made a submission."""
    used = select(keys.c.key).where(keys.c.team == team, keys.c.key == key)
    return connection.execute(used).first() is not None


def find_submission(connection: Connection, team: str, key: str, request: str) -> str | None:
    """The submission that the request, named by a digest, made earlier, if it did.

    Raises Invalid (key-reused) where another request did.
    """
    found = connection.execute(select(keys).where(keys.c.team == team, keys.c.key == key)).first()
    if found is None:
        return None
    if found.request != request:
        raise KEY_REUSED(f"the key {key!r} was used for another file, name or track")
    return str(found.submission_id)


def record_use(
    connection: Connection, team: str, key: str, *, request: str, submission_id: str, now: datetime
) -> None:
    """Note what the request makes, in the transaction that makes it.

    Raises Invalid (key-reused) where another request has just used the key; nothing is made then.
    """
    row = {"team": team, "key": key, "request": request, "submission_id": submission_id, "created_at": now}
    if not insert_new(connection, keys, [row]):
        raise KEY_REUSED(f"the key {key!r} was used for another file, name or track")


def remove_expired(system: "System") -> int:
    """Forget keys that are older than `key_hours`; returns how many."""
    before = system.now() - timedelta(hours=system.settings.key_hours)
    with writing(system.engine) as connection:
        return connection.execute(delete(keys).where(keys.c.created_at < before)).rowcount
