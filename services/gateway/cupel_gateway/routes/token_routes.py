"""Tokens: who may act for which team."""

from datetime import datetime

from fastapi import APIRouter, Request, Response
from pydantic import AwareDatetime, Field

from cupel_backend import access
from cupel_gateway import response_models
from cupel_gateway.dependencies import Asked, Caller, ListQuery, Sys, Text
from cupel_gateway.problem_responses import JSON_BODY, refuses
from cupel_gateway.responses import paged

router = APIRouter(prefix="/v1/tokens", tags=["tokens"])


class TokenWanted(ListQuery):
    """A token to make."""

    team: str = Field(max_length=200, examples=["aster"])
    scope: str = Field(max_length=200, examples=["participant"])
    label: str = Field("", max_length=200, examples=["continuous integration"])
    expires_at: AwareDatetime | None = Field(None, description="an instant with its offset; default: never")


@router.post(
    "",
    status_code=201,
    responses=refuses(
        "token-forbidden", "team-invalid", "scope-invalid", "expiry-invalid", "label-invalid", *JSON_BODY
    ),
)
def issue_token(
    wanted: TokenWanted, response: Response, system: Sys, caller: Caller
) -> response_models.NewToken:
    """Make a token. Its text is in this answer and nowhere else."""
    expires: datetime | None = wanted.expires_at
    text, token = access.issue(
        system, caller, team=wanted.team, scope=wanted.scope, label=wanted.label, expires_at=expires
    )
    response.headers["Cache-Control"] = "no-store"
    return response_models.NewToken.model_validate(vars(token) | {"token": text})


@router.get("", responses=refuses("cursor-unknown"))
def list_tokens(
    request: Request, response: Response, system: Sys, caller: Caller, window: Asked
) -> response_models.ListOf[response_models.Token]:
    """The team's tokens; an admin sees all."""
    page = access.list_(system, caller, limit=window.limit, cursor=window.cursor)
    return paged(request, response, page, response_models.Token.model_validate)


@router.delete("/{prefix}", status_code=204, responses=refuses("token-unknown", "token-forbidden"))
def revoke_token(prefix: Text, system: Sys, caller: Caller) -> None:
    """End a token for good. Doing it again changes nothing."""
    access.revoke(system, caller, prefix)
