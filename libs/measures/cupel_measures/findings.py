"""Findings of the readers: errors and warnings about a file.

Each finding has a stable code.

A file with an *error* is refused; a file with *warnings* only is accepted. The table KINDS contains each code
once; the command line, the API and the reference pages use it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

Severity = Literal["error", "warning"]

LISTED_PER_CODE = 100
"""Largest number of findings of one code that are listed; further findings are only counted."""


@dataclass(frozen=True, kw_only=True)
class FindingKind:
    """Declaration of a finding: code, severity, meaning, and how to correct the file.

    is_note: whether the finding is a warning that can be ignored, which is printed as a note.
    """

    code: str
    severity: Severity
    meaning: str
    remedy: str
    is_note: bool = False

    @property
    def label(self) -> str:
        """Return the word for the finding in printed lines: error, warning or note."""
        return "note" if self.is_note else self.severity


KINDS: dict[str, FindingKind] = {}


def declare(code: str, severity: Severity, meaning: str, remedy: str, *, is_note: bool = False) -> str:
    """Declare a kind of finding and return its code."""
    KINDS[code] = FindingKind(code=code, severity=severity, meaning=meaning, remedy=remedy, is_note=is_note)
    return code


@dataclass(frozen=True, kw_only=True)
class Finding:
    """An error or warning, with its position in a file.

    Lines and columns count from 1.
    """

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
    def label(self) -> str:
        return KINDS[self.code].label

    @property
    def remedy(self) -> str:
        return KINDS[self.code].remedy

    def __str__(self) -> str:
        places = (self.file, self.line, self.column)
        where = ":".join(str(place) for place in places if place is not None)
        return f"{where + ': ' if where else ''}{self.label} {self.code}: {self.message}"


@dataclass
class Findings:
    """The findings of one file.

    All are counted, and the first LISTED_PER_CODE of each code are listed.
    """

    listed: list[Finding] = field(default_factory=list)
    totals: dict[str, int] = field(default_factory=dict)

    def add(self, finding: Finding, times: int = 1) -> None:
        """Count `finding` as `times` findings.

        List it if fewer than LISTED_PER_CODE of its code were counted.
        """
        seen = self.totals.get(finding.code, 0)
        self.totals[finding.code] = seen + times
        if seen < LISTED_PER_CODE:
            self.listed.append(finding)

    def room(self, code: str) -> int:
        """Return how many more findings of `code` can be listed.

        Pass all further ones to `count`.
        """
        return max(LISTED_PER_CODE - self.totals.get(code, 0), 0)

    def count(self, code: str, times: int = 1) -> None:
        """Count findings without listing them."""
        if times:
            self.totals[code] = self.totals.get(code, 0) + times

    def extend(self, other: "Findings") -> None:
        """Add all findings of `other`, including the unlisted ones."""
        listed: dict[str, int] = {}
        for finding in other.listed:
            self.add(finding)
            listed[finding.code] = listed.get(finding.code, 0) + 1
        for code, total in other.totals.items():
            self.totals[code] = self.totals.get(code, 0) + total - listed.get(code, 0)

    def in_file(self, name: str | None) -> "Findings":
        """Return the findings with another name of the file, or with None."""
        return Findings([replace(finding, file=name) for finding in self.listed], dict(self.totals))

    @property
    def errors(self) -> list[Finding]:
        return [finding for finding in self.listed if finding.severity == "error"]

    @property
    def warnings(self) -> list[Finding]:
        return [finding for finding in self.listed if finding.severity == "warning"]

    @property
    def refused(self) -> bool:
        """Return whether any finding is an error."""
        return any(KINDS[code].severity == "error" for code in self.totals)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.listed)

    def __len__(self) -> int:
        return len(self.listed)


class Refused(ValueError):
    """Refusal of a file or collection; `findings` lists all its errors."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        total = sum(n for code, n in findings.totals.items() if KINDS[code].severity == "error")
        first = "; ".join(str(finding) for finding in findings.errors[:3])
        super().__init__(f"{total} error{'s' * (total != 1)}: {first}")
