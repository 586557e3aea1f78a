"""What readers find wrong or noteworthy in a file: every finding at once, each with a stable code.

A finding is an *error* (the file is refused) or a *warning* (it is accepted). Codes are declared
here, once; the command line, the API and the reference pages read this table.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

Severity = Literal["error", "warning"]

LISTED_PER_CODE = 100
"""How many findings of one code are listed; the rest are only counted."""


@dataclass(frozen=True)
class FindingKind:
    """A declared kind of finding: its code, how bad it is, what it means and what would be right."""

    code: str
    severity: Severity
    meaning: str
    remedy: str


KINDS: dict[str, FindingKind] = {}


def declare(code: str, severity: Severity, meaning: str, remedy: str) -> str:
    """Declare a kind of finding and return its code, the name by which code refers to it."""
    KINDS[code] = FindingKind(code, severity, meaning, remedy)
    return code


@dataclass(frozen=True)
class Finding:
    """One thing found: where (line and column count from 1), in which topic, and the text it is about."""

    code: str
    message: str
    file: str | None = None
    line: int | None = None
    column: int | None = None
    topic: str | None = None
    sample: str | None = None

    @property
    def severity(self) -> Severity:
        return KINDS[self.code].severity

    @property
    def remedy(self) -> str:
        return KINDS[self.code].remedy

    def __str__(self) -> str:
        places = (self.file, self.line, self.column)
        where = ":".join(str(place) for place in places if place is not None)
        return f"{where + ': ' if where else ''}{self.severity} {self.code}: {self.message}"


@dataclass
class Findings:
    """Everything found in one file: at most `LISTED_PER_CODE` of a code are listed, all are counted."""

    listed: list[Finding] = field(default_factory=list)
    totals: dict[str, int] = field(default_factory=dict)

    def add(self, finding: Finding, times: int = 1) -> None:
        """Count `finding` `times` times; list it unless its code has been listed often enough."""
        seen = self.totals.get(finding.code, 0)
        self.totals[finding.code] = seen + times
        if seen < LISTED_PER_CODE:
            self.listed.append(finding)

    def room(self, code: str) -> int:
        """How many more findings of `code` would be listed: others need not be made, `count` is enough."""
        return max(LISTED_PER_CODE - self.totals.get(code, 0), 0)

    def count(self, code: str, times: int = 1) -> None:
        """Count findings that are not listed."""
        if times:
            self.totals[code] = self.totals.get(code, 0) + times

    def extend(self, other: "Findings") -> None:
        """Add all of `other`, its unlisted counts included."""
        listed: dict[str, int] = {}
        for finding in other.listed:
            self.add(finding)
            listed[finding.code] = listed.get(finding.code, 0) + 1
        for code, total in other.totals.items():
            self.totals[code] = self.totals.get(code, 0) + total - listed.get(code, 0)

    @property
    def errors(self) -> list[Finding]:
        return [finding for finding in self.listed if finding.severity == "error"]

    @property
    def warnings(self) -> list[Finding]:
        return [finding for finding in self.listed if finding.severity == "warning"]

    @property
    def refused(self) -> bool:
        """Whether any finding is an error."""
        return any(KINDS[code].severity == "error" for code in self.totals)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.listed)

    def __len__(self) -> int:
        return len(self.listed)


class Refused(ValueError):
    """A file or collection that can't be used; `findings` says everything that is wrong with it."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        total = sum(n for code, n in findings.totals.items() if KINDS[code].severity == "error")
        first = "; ".join(str(finding) for finding in findings.errors[:3])
        super().__init__(f"{total} error{'s' * (total != 1)}: {first}")
