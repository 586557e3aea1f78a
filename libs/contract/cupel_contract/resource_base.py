"""Base classes of the JSON objects that the service sends and receives."""

import json
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

T = TypeVar("T")

LARGEST_INTEGER = 2**31 - 1
"""Largest number of a version, a part or a count in a request: every database stores it as an integer."""


class Resource(BaseModel):
    """Base class of the JSON objects that the service sends.

    The gateway reads a resource from a backend view with the same attributes. The client reads it from
    JSON. It ignores unknown fields, because a newer service may add fields. `EXAMPLE` is an instance as JSON.
    """

    model_config = ConfigDict(
        from_attributes=True, frozen=True, json_schema_serialization_defaults_required=True
    )

    EXAMPLE: ClassVar[dict[str, Any]]


class RequestBody(BaseModel):
    """A JSON body that the service receives.

    It refuses unknown fields and text that UTF-8 cannot encode.
    """

    model_config = ConfigDict(extra="forbid")

    EXAMPLE: ClassVar[dict[str, Any]]

    @model_validator(mode="before")
    @classmethod
    def _require_encodable(cls, body: Any) -> Any:
        try:
            if isinstance(body, dict):
                json.dumps(body, ensure_ascii=False, default=str).encode()
        except UnicodeEncodeError:
            raise ValueError(
                "the text contains half of a surrogate pair, which UTF-8 cannot encode"
            ) from None
        return body


class ResourceList(Resource, Generic[T]):
    """A page of a list."""

    items: tuple[T, ...] = Field(description="items of this page")
    next: str | None = Field(None, description="address of the following page; null on the last page")
