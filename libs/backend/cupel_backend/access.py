"""Who may do what: a token acts for a team with one scope. Only a token's digest is kept."""

import hmac
import re
import secrets
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from sqlalchemy import Row, select, update

from cupel_backend.infrastructure.database import ListPage, fetch_page, reading, writing
from cupel_backend.infrastructure.errors import Unavailable, refusal
from cupel_backend.infrastructure.tables import tokens
from cupel_contract.states import TokenScope

if TYPE_CHECKING:
    from cupel_backend.infrastructure.system import System

SCOPES = tuple(TokenScope)
"""Each scope includes the ones before it."""

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
TOKEN = re.compile(r"cupel_([A-Za-z0-9]{8})_([A-Za-z0-9_-]{20,100})")

CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
"""Characters that steer terminals, or that a database refuses: in no name that people give."""

USE_NOTED_EVERY = timedelta(minutes=1)  # so that reading does not mean writing

TOKEN_REFUSED = refusal("token-refused")
TOKEN_UNKNOWN = refusal("token-unknown")
TOKEN_FORBIDDEN = refusal("token-forbidden")
TEAM_INVALID = refusal("team-invalid")
SCOPE_INVALID = refusal("scope-invalid")
EXPIRY_INVALID = refusal("expiry-invalid")
LABEL_INVALID = refusal("label-invalid")


@dataclass(frozen=True)
class Principal:
    """Who is asking: the team and scope of the token, its prefix, and when it ends, if it does."""

    team: str
    scope: TokenScope
    prefix: str = ""
    expires_at: datetime | None = None

    def has_scope(self, scope: TokenScope) -> bool:
        return SCOPES.index(self.scope) >= SCOPES.index(scope)

    def may_grant(self, team: str, scope: TokenScope) -> bool:
        """Whether the caller may issue and revoke tokens of `scope` for `team`."""
        return self.scope == TokenScope.ADMIN or (team == self.team and self.has_scope(scope))


@dataclass(frozen=True)
class Token:
    """A token as it may be shown: everything but its secret."""

    prefix: str
    team: str
    scope: TokenScope
    label: str
    created_at: datetime
    expires_at: datetime | None
    used_at: datetime | None
    revoked_at: datetime | None


OPERATOR = Principal("cupel", TokenScope.ADMIN)
"""Whoever has a shell on the machine of the service."""


def authenticate(system: "System", text: str) -> Principal:
    """The principal of the token `text`; raises Unauthenticated if it isn't in force."""
    now = system.now()
    match = TOKEN.fullmatch(text)
    if match is None:
        raise TOKEN_REFUSED("a token looks like cupel_XXXXXXXX_...")
    with reading(system.engine) as connection:
        row = connection.execute(select(tokens).where(tokens.c.prefix == match[1])).first()
    if row is None or not hmac.compare_digest(row.digest, _digest(text)):
        raise TOKEN_REFUSED("this token is not known here")
    if row.revoked_at is not None:
        raise TOKEN_REFUSED("this token was revoked")
    if row.expires_at is not None and row.expires_at <= now:
        raise TOKEN_REFUSED(f"this token expired at {row.expires_at:%Y-%m-%d %H:%M:%S} UTC")
    if row.used_at is None or now - row.used_at > USE_NOTED_EVERY:
        _note_use(system, row.prefix, now)
    return Principal(row.team, row.scope, row.prefix, row.expires_at)


def _note_use(system: "System", prefix: str, now: datetime) -> None:
    """Note it if no writer is in the way: reading waits for nobody."""
    with suppress(Unavailable), writing(system.engine, wait=False) as connection:
        connection.execute(update(tokens).where(tokens.c.prefix == prefix).values(used_at=now))


def issue(
    system: "System",
    principal: Principal,
    *,
    team: str,
    scope: str,
    label: str = "",
    expires_at: datetime | None = None,
) -> tuple[str, Token]:
    """Make a token; its text is returned here and never again.

    Admins may issue any; others for their own team, with at most their own scope. A token ends no later
    than the one that issued it, also if no expiry is given.
    """
    now = system.now()
    wanted = _checked_scope(scope)
    if not NAME.fullmatch(team):
        raise TEAM_INVALID(f"{team!r} can't be the name of a team")
    if CONTROL.search(label):
        raise LABEL_INVALID(f"{label[:200]!r} holds a control character")
    if not principal.may_grant(team, wanted):
        raise TOKEN_FORBIDDEN(
            f"a token of {principal.team} with scope {principal.scope} may not issue this one"
        )
    expires_at = _checked_expiry(principal, expires_at, now)
    prefix = secrets.token_hex(4)
    text = f"cupel_{prefix}_{secrets.token_urlsafe(32)}"
    token = Token(prefix, team, wanted, label[:200], now, expires_at, None, None)
    with writing(system.engine) as connection:
        connection.execute(tokens.insert().values(vars(token) | {"digest": _digest(text)}))
    return text, token


def list_(
    system: "System", principal: Principal, *, limit: int = 50, cursor: str | None = None
) -> ListPage[Token]:
    """Tokens: all to an admin, their own team's to others."""
    with reading(system.engine) as connection:
        return fetch_page(
            connection, _seen_by(principal), tokens.c.prefix, _token, limit=limit, cursor=cursor
        )


def revoke(system: "System", principal: Principal, prefix: str) -> None:
    """End a token, for good; revoking it again changes nothing. Who may revoke is who may issue."""
    with writing(system.engine) as connection:
        row = connection.execute(_seen_by(principal).where(tokens.c.prefix == prefix)).first()
        if row is None:
            raise TOKEN_UNKNOWN(f"there is no token {prefix!r} that you may see")
        if not principal.may_grant(row.team, row.scope):
            raise TOKEN_FORBIDDEN(f"a token with scope {principal.scope} may not revoke one with {row.scope}")
        in_force = update(tokens).where(tokens.c.prefix == prefix, tokens.c.revoked_at.is_(None))
        connection.execute(in_force.values(revoked_at=system.now()))


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def _checked_scope(scope: str) -> TokenScope:
    for known in SCOPES:
        if scope == known:
            return known
    raise SCOPE_INVALID(f"there is no scope {scope!r}")


def _checked_expiry(principal: Principal, wanted: datetime | None, now: datetime) -> datetime | None:
    if wanted is None:
        return principal.expires_at
    try:
        instant = wanted.astimezone(UTC)
    except OverflowError:
        raise EXPIRY_INVALID(f"{wanted.isoformat()} is no instant that UTC can name") from None
    if instant <= now:
        raise EXPIRY_INVALID(f"{wanted.isoformat()} has passed")
    if principal.expires_at is not None and instant > principal.expires_at:
        raise EXPIRY_INVALID(f"your own token expires before, at {principal.expires_at.isoformat()}")
    return instant


def _seen_by(principal: Principal) -> Any:
    query = select(tokens)
    return query if principal.scope == "admin" else query.where(tokens.c.team == principal.team)


def _token(row: Row[Any]) -> Token:
    return Token(**{name: getattr(row, name) for name in Token.__dataclass_fields__})
