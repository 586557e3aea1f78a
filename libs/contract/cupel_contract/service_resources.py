"""The service itself and the caller of a request."""

from typing import Literal

from pydantic import Field

from cupel_contract.resource_base import Resource
from cupel_contract.states import TokenScope


class ServiceResource(Resource):
    """Version, profiles and limits of the service."""

    name: Literal["cupel"] = Field("cupel", description="name of the software")
    version: str = Field(description="version of the software")
    scoring_version: int = Field(description="increases whenever the same input may get another score")
    profiles: dict[str, str] = Field(description="meaning of each profile by its name")
    limits: dict[str, int] = Field(
        description="maximum sizes of an uploaded file as sent and decompressed, in bytes, and the "
        "maximum number of unscored submissions of a team to a track"
    )
    links: dict[str, str] = Field(
        description="addresses of tracks, measures, error codes and the OpenAPI description"
    )

    EXAMPLE = {
        "name": "cupel",
        "version": "0.1.0",
        "scoring_version": 1,
        "profiles": {"cupel": "scores in double precision; equal scores in the order of document ids"},
        "limits": {"upload_bytes": 536870912, "expanded_bytes": 2147483648, "open_submissions": 50},
        "links": {
            "tracks": "/v1/tracks",
            "measures": "/v1/measures",
            "errors": "/v1/errors",
            "openapi": "/openapi.json",
        },
    }


class CallerResource(Resource):
    """The team and the scope of the token of the request."""

    team: str = Field(description="team that the token acts for")
    scope: TokenScope = Field(description="scope of the token")
    prefix: str = Field(description="the part of the token that identifies it")

    EXAMPLE = {"team": "aster", "scope": "participant", "prefix": "4QK7ZP2M"}
