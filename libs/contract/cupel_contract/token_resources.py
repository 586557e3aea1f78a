"""Tokens: which team a caller acts for, and with which scope."""

from datetime import datetime

from pydantic import AwareDatetime, Field

from cupel_contract.resource_base import RequestBody, Resource
from cupel_contract.states import TokenScope


class TokenResource(Resource):
    """A token without its secret."""

    prefix: str = Field(description="the part of the token that identifies it")
    team: str = Field(description="team that the token acts for")
    scope: TokenScope = Field(description="scope of the token")
    label: str = Field(description="free-text note about the token")
    created_at: datetime = Field(description="time at which the token was issued")
    expires_at: datetime | None = Field(None, description="time of expiry; null: the token does not expire")
    used_at: datetime | None = Field(None, description="time of the last use")
    revoked_at: datetime | None = Field(
        None, description="time of the revocation; null if the token was not revoked"
    )

    EXAMPLE = {
        "prefix": "4QK7ZP2M",
        "team": "aster",
        "scope": "participant",
        "label": "continuous integration",
        "created_at": "2026-03-02T09:30:00Z",
        "expires_at": None,
        "used_at": "2026-03-09T17:05:12Z",
        "revoked_at": None,
    }


class IssuedTokenResource(TokenResource):
    """A new token with its secret, which no later response repeats."""

    token: str = Field(description="the secret, to be sent as `Authorization: Bearer ...`")

    EXAMPLE = TokenResource.EXAMPLE | {"used_at": None, "token": "cupel_4QK7ZP2M_..."}


class TokenCreate(RequestBody):
    """A token to issue."""

    team: str = Field(max_length=200, description="team that the token acts for")
    scope: str = Field(
        max_length=200,
        json_schema_extra={"enum": [str(scope) for scope in TokenScope]},
        description="scope of the token",
    )
    label: str = Field("", max_length=200, description="free-text note about the token")
    expires_at: AwareDatetime | None = Field(
        None, description="time of expiry with its UTC offset; default: the token does not expire"
    )

    EXAMPLE = {"team": "aster", "scope": "participant", "label": "continuous integration"}
