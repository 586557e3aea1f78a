"""Refusals of the backend: exceptions that carry an error code of the contract.

Problem
├── Unauthenticated   no valid token
├── Forbidden         not permitted for this caller
├── NotFound          no such resource
├── Conflict          not possible in this state
├── Stale             changed since it was read
├── Invalid           invalid content; findings name the places and the remedies
├── TooLarge          beyond a limit on size
├── TooMany           beyond a limit on number; try again later
└── Unavailable       a temporary failure of the service
"""

from collections.abc import Iterable
from dataclasses import dataclass

from cupel_contract.error_codes import ERROR_CODES, ErrorCode, ProblemKind
from cupel_measures.findings import Finding, Findings


class Problem(Exception):
    """A refused request: an error code and a sentence.

    It also has the findings if a file is wrong. `retry_after` is the number of seconds after which the same
    request may succeed, or None.
    """

    def __init__(
        self,
        declared: ErrorCode,
        detail: str,
        *,
        findings: Findings | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(detail)
        self.declared = declared
        self.detail = detail
        self.findings = findings or Findings()
        self.retry_after = retry_after

    @property
    def code(self) -> str:
        return self.declared.code


class Unauthenticated(Problem): ...


class Forbidden(Problem): ...


class NotFound(Problem): ...


class Conflict(Problem): ...


class Stale(Problem): ...


class Invalid(Problem): ...


class TooLarge(Problem): ...


class TooMany(Problem): ...


class Unavailable(Problem): ...


EXCEPTIONS: dict[ProblemKind, type[Problem]] = {
    ProblemKind.UNAUTHENTICATED: Unauthenticated,
    ProblemKind.FORBIDDEN: Forbidden,
    ProblemKind.NOT_FOUND: NotFound,
    ProblemKind.CONFLICT: Conflict,
    ProblemKind.STALE: Stale,
    ProblemKind.INVALID: Invalid,
    ProblemKind.TOO_LARGE: TooLarge,
    ProblemKind.TOO_MANY: TooMany,
    ProblemKind.UNAVAILABLE: Unavailable,
}
"""Exception class of each kind of problem that callers catch separately. Other kinds are plain `Problem`s."""


@dataclass(frozen=True)
class Refusal:
    """A factory of exceptions with one error code.

    It is used as in `raise TRACK_UNKNOWN("no track 'x'")`.
    """

    declared: ErrorCode

    @property
    def code(self) -> str:
        return self.declared.code

    def __call__(
        self, detail: str, *, findings: Findings | None = None, retry_after: float | None = None
    ) -> Problem:
        exception = EXCEPTIONS.get(self.declared.kind, Problem)
        return exception(self.declared, detail, findings=findings, retry_after=retry_after)


def refusal(code: str) -> Refusal:
    """Return the refusal for an error code of the contract.

    Raises KeyError if the code is unknown.
    """
    return Refusal(ERROR_CODES[code])


def collect_findings(findings: Iterable[Finding]) -> Findings:
    """Collect findings into one report."""
    report = Findings()
    for finding in findings:
        report.add(finding)
    return report
