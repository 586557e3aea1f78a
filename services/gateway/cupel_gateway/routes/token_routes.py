"""Routes of tokens."""

from datetime import datetime

from fastapi import APIRouter, Request, Response

from cupel_backend import access
from cupel_contract.resource_base import ResourceList
from cupel_contract.token_resources import IssuedTokenResource, TokenCreate, TokenResource
from cupel_gateway.dependencies import Caller, PathText, Sys, Window
from cupel_gateway.problem_responses import JSON_BODY, refuses
from cupel_gateway.responses import paged

router = APIRouter(prefix="/v1/tokens", tags=["tokens"])


@router.post(
    "",
    status_code=201,
    responses=refuses(
        "token-forbidden", "team-invalid", "scope-invalid", "expiry-invalid", "label-invalid", *JSON_BODY
    ),
)
def issue_token(body: TokenCreate, response: Response, system: Sys, caller: Caller) -> IssuedTokenResource:
    """Issue a token. Only this response contains its secret."""
    expires: datetime | None = body.expires_at
    text, token = access.issue(
        system, caller, team=body.team, scope=body.scope, label=body.label, expires_at=expires
    )
    response.headers["Cache-Control"] = "no-store"
    return IssuedTokenResource.model_validate(vars(token) | {"token": text})


@router.get("", responses=refuses("cursor-unknown"))
def list_tokens(
    request: Request, response: Response, system: Sys, caller: Caller, window: Window
) -> ResourceList[TokenResource]:
    """List the tokens of the caller's team, newest first. An admin sees all tokens."""
    page = access.list_(system, caller, limit=window.limit, cursor=window.cursor)
    return paged(request, response, page, TokenResource.model_validate)


@router.delete("/{prefix}", status_code=204, responses=refuses("token-unknown", "token-forbidden"))
def revoke_token(prefix: PathText, system: Sys, caller: Caller) -> None:
    """Revoke a token permanently. Repeating the request changes nothing."""
    access.revoke(system, caller, prefix)
