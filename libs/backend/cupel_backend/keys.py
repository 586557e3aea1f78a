"""Idempotency-Keys: a request repeated with its key is answered once.

A key is reserved before the work, and gets its submission in the transaction that makes it. The same
request again then gets that submission; another request with the key is refused.
"""

from datetime import timedelta
from typing import TYPE_CHECKING

from sqlalchemy import Connection, and_, delete, select, update

from cupel_backend.database import insert_new, writing
from cupel_backend.errors import Conflict, Invalid, declare
from cupel_backend.tables import keys

if TYPE_CHECKING:
    from cupel_backend.system import System

LONGEST = 255

KEY_REUSED = declare(
    "key-reused",
    Invalid,
    "the Idempotency-Key was used for another request",
    "use a new key for each new request",
)
KEY_IN_FLIGHT = declare(
    "key-in-flight",
    Conflict,
    "the first request with this Idempotency-Key is still being answered",
    "repeat it later",
)
KEY_INVALID = declare(
    "key-invalid",
    Invalid,
    "the Idempotency-Key can't be used",
    f"use 1 to {LONGEST} printable characters",
)


def reserve(system: "System", team: str, key: str, request: str) -> str | None:
    """Reserve `key` for a request, named by a digest; the submission that it made earlier, if it did.

    A reservation older than any request may take belongs to one that died with its process.
    """
    if not 1 <= len(key) <= LONGEST or not key.isprintable():
        raise KEY_INVALID(f"{key[:LONGEST]!r} can't be a key")
    now = system.now()
    dead_before = now - timedelta(seconds=2 * system.settings.checker_seconds)
    here = and_(keys.c.team == team, keys.c.key == key)
    row = {"team": team, "key": key, "request": request, "created_at": now}
    with writing(system.engine) as connection:
        dead = and_(here, keys.c.submission_id.is_(None), keys.c.created_at < dead_before)
        connection.execute(delete(keys).where(dead))
        if insert_new(connection, keys, [row]):
            return None
        found = connection.execute(select(keys).where(here)).one()
    if found.request != request:
        raise KEY_REUSED(f"the key {key!r} was used for another file, name or track")
    if found.submission_id is None:
        raise KEY_IN_FLIGHT(f"the first request with the key {key!r} is not answered yet", retry_after=1)
    return str(found.submission_id)


def answered(connection: Connection, team: str, key: str) -> bool:
    """Whether a request with `key` made a submission."""
    made = and_(keys.c.team == team, keys.c.key == key, keys.c.submission_id.is_not(None))
    return connection.execute(select(keys.c.key).where(made)).first() is not None


def keep(connection: Connection, team: str, key: str, submission_id: str) -> None:
    """Note what the request made, in the transaction that makes it."""
    here = and_(keys.c.team == team, keys.c.key == key)
    connection.execute(update(keys).where(here).values(submission_id=submission_id))


def release(system: "System", team: str, key: str) -> None:
    """Give back the key of a request that made nothing."""
    with writing(system.engine) as connection:
        unused = and_(keys.c.team == team, keys.c.key == key, keys.c.submission_id.is_(None))
        connection.execute(delete(keys).where(unused))


def forget(system: "System") -> int:
    """Forget keys that are older than `key_hours`; returns how many."""
    before = system.now() - timedelta(hours=system.settings.key_hours)
    with writing(system.engine) as connection:
        return connection.execute(delete(keys).where(keys.c.created_at < before)).rowcount
