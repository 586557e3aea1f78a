"""Problems, findings in files, and the list of error codes."""

from pydantic import BaseModel, Field

from cupel_contract.resource_base import Resource
from cupel_contract.states import ErrorCodeKind


class ErrorItem(Resource):
    """One error or warning, and its place.

    The place is a line of a file, or a field of the request.
    """

    code: str = Field(description="stable code; GET /v1/errors explains it")
    message: str = Field(description="what is wrong")
    remedy: str | None = Field(None, description="what to do; null if there is no advice")
    file: str | None = Field(None, description="name of the file; null if the item is not about a file")
    line: int | None = Field(None, description="line of the file, counted from 1")
    column: int | None = Field(None, description="column of the line, counted from 1")
    topic: str | None = Field(None, description="id of the topic; null if the item is not about a topic")
    field: str | None = Field(None, description="field of the request, for example `body.measures.0`")
    sample: str | None = Field(None, description="the text or value that is wrong")

    EXAMPLE = {
        "code": "score-invalid",
        "message": "score 'n/a' is not a number",
        "remedy": "write a decimal such as 12.5 or 1e-3",
        "file": "bm25.run",
        "line": 41,
        "column": 5,
        "topic": "101",
        "field": None,
        "sample": "n/a",
    }


class ProblemDocument(BaseModel):
    """A refused or failed request (RFC 9457).

    `code` is stable; GET /v1/errors explains every code.
    """

    type: str = Field(description="reference to the entry of the code in GET /v1/errors")
    title: str = Field(description="meaning of the code")
    status: int = Field(description="HTTP status")
    detail: str = Field(description="what is wrong with this request")
    instance: str = Field(description="path of the request")
    code: str = Field(description="stable code of the problem")
    remedy: str = Field(description="what the caller can do")
    request_id: str = Field(description="id of the request, as in X-Request-Id and in the log of the service")
    errors: list[ErrorItem] = Field([], description="at most 100 items of each code; `totals` counts all")
    totals: dict[str, int] = Field({}, description="number of findings of each code")


class FileWarnings(Resource):
    """The warnings about an accepted file."""

    warnings: tuple[ErrorItem, ...] = Field((), description="at most 100 items of each code")
    totals: dict[str, int] = Field({}, description="number of findings of each code, listed or not")

    EXAMPLE = {"warnings": [], "totals": {}}


class ErrorCodeResource(Resource):
    """A stable error code: what it means and what to do."""

    code: str = Field(description="the code")
    kind: ErrorCodeKind = Field(
        description="whether the code is for a refused request, an error in a file or a warning about a file"
    )
    status: int | None = Field(None, description="HTTP status of a problem; null for findings in a file")
    meaning: str = Field(description="what the code means")
    remedy: str = Field(description="what to do")

    EXAMPLE = {
        "code": "track-unknown",
        "kind": "problem",
        "status": 404,
        "meaning": "there is no such track",
        "remedy": "list tracks with GET /v1/tracks",
    }
