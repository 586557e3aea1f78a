"""Tests of tokens: issuing, authentication, expiry, revocation and listing."""

from datetime import datetime, timedelta

import pytest
from sqlalchemy import select

from cupel_backend import access
from cupel_backend.access import Principal
from cupel_backend.infrastructure.database import writing
from cupel_backend.infrastructure.errors import Forbidden, Invalid, NotFound, Unauthenticated
from cupel_backend.infrastructure.system import System
from cupel_backend.infrastructure.tables import tokens
from support.backend_cast import ADMIN, ALICE, BOB, ORGANISER, Clock


def test_token_authenticates_with_team_and_scope(system: System) -> None:
    text, token = access.issue(system, ADMIN, team="alice", scope="participant", label="laptop")
    assert access.authenticate(system, text) == Principal("alice", "participant", token.prefix)
    assert text.startswith(f"cupel_{token.prefix}_")


def test_token_secret_is_not_stored(system: System) -> None:
    text, _ = access.issue(system, ADMIN, team="alice", scope="participant")
    secret = text.split("_", 2)[2].encode()
    files = [path for path in system.settings.data.rglob("*") if path.is_file()]
    assert files
    assert not any(secret in path.read_bytes() for path in files)


@pytest.mark.parametrize("text", ["", "cupel_", "cupel_00000000_" + "a" * 43, "x" * 5000, "cupel_é_1"])
def test_malformed_token_is_refused(system: System, text: str) -> None:
    with pytest.raises(Unauthenticated):
        access.authenticate(system, text)


def test_wrong_secret_with_a_valid_prefix_is_refused(system: System) -> None:
    text, _ = access.issue(system, ADMIN, team="alice", scope="participant")
    with pytest.raises(Unauthenticated):
        access.authenticate(system, text[:-1] + ("a" if text[-1] != "a" else "b"))


def test_expired_token_is_refused(system: System, clock: Clock) -> None:
    expiry = clock() + timedelta(hours=1)
    text, _ = access.issue(system, ADMIN, team="alice", scope="participant", expires_at=expiry)
    access.authenticate(system, text)
    clock.forward(3600)
    with pytest.raises(Unauthenticated, match="expired"):
        access.authenticate(system, text)


def test_token_with_a_past_expiry_is_not_issued(system: System, clock: Clock) -> None:
    with pytest.raises(Invalid, match="in the past"):
        access.issue(system, ADMIN, team="alice", scope="participant", expires_at=clock())


def test_revoked_token_is_refused(system: System) -> None:
    text, token = access.issue(system, ADMIN, team="alice", scope="participant")
    for _ in range(2):
        access.revoke(system, ALICE, token.prefix)
    with pytest.raises(Unauthenticated, match="revoked"):
        access.authenticate(system, text)


def test_last_use_is_recorded(system: System, clock: Clock) -> None:
    text, _ = access.issue(system, ADMIN, team="alice", scope="participant")
    assert [token.used_at for token in access.list_(system, ALICE).items] == [None]
    access.authenticate(system, text)
    assert [token.used_at for token in access.list_(system, ALICE).items] == [clock()]


def test_teams_list_and_revoke_their_own_tokens_only(system: System) -> None:
    _, token = access.issue(system, ADMIN, team="alice", scope="participant")
    assert access.list_(system, BOB).items == ()
    with pytest.raises(NotFound):
        access.revoke(system, BOB, token.prefix)
    assert [token.prefix for token in access.list_(system, ADMIN).items] == [token.prefix]


@pytest.mark.parametrize(
    ("principal", "team", "scope"),
    [
        (ALICE, "bob", "participant"),
        (ALICE, "alice", "organiser"),
        (ORGANISER, "organisers", "admin"),
        (ORGANISER, "alice", "participant"),
    ],
)
def test_issuing_beyond_team_or_scope_is_forbidden(
    system: System, principal: Principal, team: str, scope: str
) -> None:
    with pytest.raises(Forbidden):
        access.issue(system, principal, team=team, scope=scope)


def test_team_issues_tokens_for_itself(system: System) -> None:
    text, _ = access.issue(system, ORGANISER, team="organisers", scope="participant")
    assert access.authenticate(system, text).scope == "participant"


@pytest.mark.parametrize("principal", [ALICE, Principal("organisers", "participant"), ORGANISER])
def test_token_cannot_be_revoked_with_a_lesser_scope(system: System, principal: Principal) -> None:
    text, token = access.issue(system, ADMIN, team=principal.team, scope="admin")
    with pytest.raises(Forbidden):
        access.revoke(system, principal, token.prefix)
    assert access.authenticate(system, text).scope == "admin"
    access.revoke(system, ADMIN, token.prefix)


def test_token_expires_no_later_than_its_issuer(system: System, clock: Clock) -> None:
    end = clock() + timedelta(hours=1)
    text, _ = access.issue(system, ADMIN, team="alice", scope="participant", expires_at=end)
    parent = access.authenticate(system, text)
    _, child = access.issue(system, parent, team="alice", scope="participant")
    assert child.expires_at == end
    later = end + timedelta(seconds=1)
    with pytest.raises(Invalid, match="expires earlier"):
        access.issue(system, parent, team="alice", scope="participant", expires_at=later)


@pytest.mark.parametrize("instant", ["9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59"])
def test_expiry_outside_the_supported_range_is_refused(system: System, instant: str) -> None:
    with pytest.raises(Invalid):
        access.issue(system, ADMIN, team="a", scope="participant", expires_at=datetime.fromisoformat(instant))


def test_token_is_valid_while_its_row_is_locked(system: System, clock: Clock) -> None:
    text, token = access.issue(system, ADMIN, team="alice", scope="participant")
    with writing(system.engine) as connection:  # SQLite allows one writer; PostgreSQL locks rows.
        connection.execute(select(tokens.c.prefix).with_for_update())
        assert access.authenticate(system, text).prefix == token.prefix
    assert access.list_(system, ALICE).items[0].used_at is None
    access.authenticate(system, text)
    assert access.list_(system, ALICE).items[0].used_at == clock()


@pytest.mark.parametrize("character", ["\0", "\x1b", "\n", "\x7f", "\x9b"])
def test_label_with_a_control_character_is_refused(system: System, character: str) -> None:
    with pytest.raises(Invalid) as refusal:
        access.issue(system, ADMIN, team="alice", scope="participant", label=f"a{character}b")
    assert refusal.value.code == "label-invalid"


@pytest.mark.parametrize("team", ["", "a b", "-x", "x" * 65, "é"])
def test_invalid_team_name_is_refused(system: System, team: str) -> None:
    with pytest.raises(Invalid):
        access.issue(system, ADMIN, team=team, scope="participant")


def test_tokens_are_listed_in_pages(system: System) -> None:
    for _ in range(5):
        access.issue(system, ADMIN, team="alice", scope="participant")
    first = access.list_(system, ALICE, limit=3)
    rest = access.list_(system, ALICE, limit=3, cursor=first.next)
    assert (len(first.items), len(rest.items), rest.next) == (3, 2, None)
    assert not {token.prefix for token in first.items} & {token.prefix for token in rest.items}
