"""Access tokens. A token acts for one team with one scope.

Only the digests of tokens are stored.
"""

import hmac
import re
import secrets
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

from sqlalchemy import Row, select, update

from cupel_backend.infrastructure.database import ListPage, fetch_page, reading, writing
from cupel_backend.infrastructure.errors import Unavailable, refusal
from cupel_backend.infrastructure.system import System
from cupel_backend.infrastructure.tables import tokens
from cupel_contract.states import TokenScope

SCOPES = tuple(TokenScope)
"""Scopes in ascending order of rights. A scope includes the rights of all earlier scopes."""

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
TOKEN = re.compile(r"cupel_([A-Za-z0-9]{8})_([A-Za-z0-9_-]{20,100})")

CONTROL_CHARACTERS = re.compile(r"[\x00-\x1f\x7f-\x9f]")
"""Characters that names must not contain: they control terminals, and databases refuse some of them."""

USE_INTERVAL = timedelta(minutes=1)
"""Minimum time between two updates of `used_at`, because not every request should write to the database."""

TOKEN_REFUSED = refusal("token-refused")
TOKEN_UNKNOWN = refusal("token-unknown")
TOKEN_FORBIDDEN = refusal("token-forbidden")
TEAM_INVALID = refusal("team-invalid")
SCOPE_INVALID = refusal("scope-invalid")
EXPIRY_INVALID = refusal("expiry-invalid")
LABEL_INVALID = refusal("label-invalid")


@dataclass(frozen=True)
class Principal:
    """The caller of a request: the team, scope, prefix and expiry of its token."""

    team: str
    scope: TokenScope
    prefix: str = ""
    expires_at: datetime | None = None

    def has_scope(self, scope: TokenScope) -> bool:
        return SCOPES.index(self.scope) >= SCOPES.index(scope)

    def may_grant(self, team: str, scope: TokenScope) -> bool:
        """Return whether the caller may issue and revoke tokens of `scope` for `team`."""
        return self.has_scope(TokenScope.ADMIN) or (team == self.team and self.has_scope(scope))


@dataclass(frozen=True, kw_only=True)
class Token:
    """A token as the API shows it: everything except its secret."""

    prefix: str
    team: str
    scope: TokenScope
    label: str
    created_at: datetime
    expires_at: datetime | None
    used_at: datetime | None
    revoked_at: datetime | None


OPERATOR = Principal("cupel", TokenScope.ADMIN)
"""The local operator, who has shell access to the machine of the service."""


def authenticate(system: System, text: str) -> Principal:
    """Return the principal of the token `text`.

    Raises Unauthenticated if the token is invalid.
    """
    now = system.now()
    match = TOKEN.fullmatch(text)
    if match is None:
        raise TOKEN_REFUSED("this is not a token; a token has the form cupel_XXXXXXXX_...")
    with reading(system.engine) as connection:
        row = connection.execute(select(tokens).where(tokens.c.prefix == match[1])).first()
    if row is None or not hmac.compare_digest(row.digest, _digest(text)):
        raise TOKEN_REFUSED("unknown token")
    if row.revoked_at is not None:
        raise TOKEN_REFUSED("this token was revoked")
    if row.expires_at is not None and row.expires_at <= now:
        raise TOKEN_REFUSED(f"this token expired at {row.expires_at:%Y-%m-%d %H:%M:%S} UTC")
    if row.used_at is None or now - row.used_at > USE_INTERVAL:
        _record_use(system, row.prefix, now)
    return Principal(row.team, row.scope, row.prefix, row.expires_at)


def _record_use(system: System, prefix: str, now: datetime) -> None:
    """Store the time of use of a token, unless another writer locks the database.

    Requests that only read must not wait for a lock.
    """
    with suppress(Unavailable), writing(system.engine, wait=False) as connection:
        connection.execute(update(tokens).where(tokens.c.prefix == prefix).values(used_at=now))


def issue(
    system: System,
    principal: Principal,
    *,
    team: str,
    scope: str,
    label: str = "",
    expires_at: datetime | None = None,
) -> tuple[str, Token]:
    """Create a token; return its secret text and a description of the token.

    Only a digest of the text is stored. Admins may issue any token. Other callers may issue tokens for their
    own team, with at most their own scope. expires_at: expiry of the token, which cannot be later than the
    expiry of the caller's token (default: the expiry of the caller's token).
    """
    now = system.now()
    granted = _check_scope(scope)
    if not NAME.fullmatch(team):
        raise TEAM_INVALID(f"{team!r} is not a valid team name")
    if CONTROL_CHARACTERS.search(label):
        raise LABEL_INVALID(f"{label[:200]!r} contains a control character")
    if not principal.may_grant(team, granted):
        raise TOKEN_FORBIDDEN(
            f"a token of team {principal.team} with scope {principal.scope} may not issue a token "
            f"for team {team} with scope {granted}"
        )
    expires_at = _check_expiry(principal, expires_at, now)
    prefix = secrets.token_hex(4)
    text = f"cupel_{prefix}_{secrets.token_urlsafe(32)}"
    token = Token(
        prefix=prefix,
        team=team,
        scope=granted,
        label=label[:200],
        created_at=now,
        expires_at=expires_at,
        used_at=None,
        revoked_at=None,
    )
    with writing(system.engine) as connection:
        connection.execute(tokens.insert().values(vars(token) | {"digest": _digest(text)}))
    return text, token


def list_(
    system: System, principal: Principal, *, limit: int = 50, cursor: str | None = None
) -> ListPage[Token]:
    """List tokens, newest first.

    Admins see all tokens. Other callers see those of their team.
    """
    with reading(system.engine) as connection:
        return fetch_page(
            connection, _select_visible(principal), tokens.c.prefix, _build_token, limit=limit, cursor=cursor
        )


def revoke(system: System, principal: Principal, prefix: str) -> None:
    """Revoke a token; repeating this has no effect.

    The caller must have the right to issue a token of the same team and scope (see `issue`).
    """
    with writing(system.engine) as connection:
        row = connection.execute(_select_visible(principal).where(tokens.c.prefix == prefix)).first()
        if row is None:
            raise TOKEN_UNKNOWN(f"no token {prefix!r} is visible to you")
        if not principal.may_grant(row.team, row.scope):
            raise TOKEN_FORBIDDEN(
                f"a token with scope {principal.scope} may not revoke a token with scope {row.scope}"
            )
        in_force = update(tokens).where(tokens.c.prefix == prefix, tokens.c.revoked_at.is_(None))
        connection.execute(in_force.values(revoked_at=system.now()))


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def _check_scope(scope: str) -> TokenScope:
    for known in SCOPES:
        if scope == known:
            return known
    raise SCOPE_INVALID(f"unknown scope {scope!r}")


def _check_expiry(principal: Principal, requested: datetime | None, now: datetime) -> datetime | None:
    if requested is None:
        return principal.expires_at
    try:
        instant = requested.astimezone(UTC)
    except OverflowError:
        raise EXPIRY_INVALID(f"{requested.isoformat()} is outside the range of UTC times") from None
    if instant <= now:
        raise EXPIRY_INVALID(f"{requested.isoformat()} is in the past")
    if principal.expires_at is not None and instant > principal.expires_at:
        raise EXPIRY_INVALID(f"your own token expires earlier, at {principal.expires_at.isoformat()}")
    return instant


def _select_visible(principal: Principal) -> Any:
    query = select(tokens)
    return query if principal.has_scope(TokenScope.ADMIN) else query.where(tokens.c.team == principal.team)


def _build_token(row: Row[Any]) -> Token:
    return Token(**{name: getattr(row, name) for name in Token.__dataclass_fields__})
