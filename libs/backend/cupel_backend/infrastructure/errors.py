"""What the backend refuses, as one short tree. Each code is declared once, beside the noun that raises it.

Problem
├── Unauthenticated   who are you?
├── Forbidden         you may not
├── NotFound          there is no such thing
├── Conflict          not in this state
├── Stale             changed since you read it
├── Invalid           the content is wrong; findings say what, where, and what would be right
├── TooLarge          beyond a limit of size
├── TooMany           beyond a limit of number; try again later
└── Unavailable       our fault, and passing
"""

from collections.abc import Iterable
from dataclasses import dataclass

from cupel_measures.findings import Finding, Findings


class Problem(Exception):
    """A refusal for a person: a declared code, one sentence, and all findings where a file is wrong."""

    def __init__(
        self,
        declared: "Code",
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
        """Seconds after which the same request may succeed, where waiting helps."""

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


@dataclass(frozen=True)
class Code:
    """A declared problem. Calling it makes the exception: `raise TRACK_UNKNOWN("there is no ...")`."""

    code: str
    kind: type[Problem]
    meaning: str
    remedy: str

    def __call__(
        self, detail: str, *, findings: Findings | None = None, retry_after: float | None = None
    ) -> Problem:
        return self.kind(self, detail, findings=findings, retry_after=retry_after)


CODES: dict[str, Code] = {}


def declare(code: str, kind: type[Problem], meaning: str, remedy: str) -> Code:
    """Declare a problem and return what raises it. The API's list of errors reads `CODES`."""
    CODES[code] = Code(code, kind, meaning, remedy)
    return CODES[code]


def collect_findings(findings: Iterable[Finding]) -> Findings:
    """`findings` as one report."""
    report = Findings()
    for finding in findings:
        report.add(finding)
    return report
