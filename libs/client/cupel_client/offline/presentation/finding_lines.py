"""Findings as they are told to people, on standard error or in a report."""

from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any

import click

from cupel_client.output import printable
from cupel_measures.findings import KINDS, LISTED_PER_CODE, Finding, Findings

LISTED = 10
"""Findings of a kind that people are told without asking for all."""


def lines_of(findings: Findings, *, file: str, at_most: int | None = None) -> Iterable[str]:
    """Errors, then warnings, one a line; those of a code beyond `at_most`, or unlisted, are only counted.

    file: how the file was named on the command line; findings about other files name them.
    """
    for severity in ("error", "warning"):
        for code in [code for code in findings.totals if KINDS[code].severity == severity]:
            listed = [finding for finding in findings if finding.code == code]
            for finding in listed[:at_most]:
                yield line_of(finding, file)
            # one finding may be about several things (12 topics, say), which its code's total counts
            full = len(listed) >= LISTED_PER_CODE
            more = (findings.totals[code] if full else len(listed)) - len(listed[:at_most])
            if more > 0:
                yield f"{printable(file or 'qrels')}: {severity} {code}: and {more:,} more like these"


def line_of(finding: Finding, file: str) -> str:
    """`FILE:LINE:COLUMN: severity code: message`, the file as the user named it."""
    named = file if finding.file in (None, PurePath(file).name) else finding.file
    places = (named or None, finding.line, finding.column)
    where = ":".join(str(place) for place in places if place is not None)
    return printable(f"{where}: {finding.severity} {finding.code}: {finding.message}".removeprefix(": "))


def is_warning(code: str) -> bool:
    return KINDS[code].severity == "warning"


def remedies(findings: Findings) -> Iterable[str]:
    """What would be right, once per kind of finding."""
    for code in findings.totals:
        yield f"{code}: {KINDS[code].remedy}"


def as_data(finding: Finding) -> dict[str, Any]:
    """A finding as in the API's problems."""
    keys = ("line", "column", "topic", "code", "message", "sample", "file")
    return {"severity": finding.severity, **{key: getattr(finding, key) for key in keys}}


def told(findings: Findings, *, file: str, at_most: int | None = None) -> Iterable[str]:
    """Findings, then what would be right, in colour."""
    yield from map(coloured, lines_of(findings, file=file, at_most=at_most))
    for line in remedies(findings):
        yield click.style(f"-> {line}", dim=True)


def coloured(line: str) -> str:
    """A line of `lines_of` with its severity in colour, which click leaves out where no terminal is."""
    for word, colour in (("error", "red"), ("warning", "yellow")):
        head, found, rest = line.partition(f"{word} ")
        if found and (not head or head.endswith(": ")):
            return f"{head}{click.style(word, fg=colour, bold=True)} {rest}"
    return line


def summary(warnings: Mapping[str, Findings]) -> Iterable[str]:
    """One line per kind of warning over several runs: how many runs have it, and what it means."""
    having: dict[str, list[str]] = {}
    for name, findings in warnings.items():
        for code in findings.totals:
            if is_warning(code):
                having.setdefault(code, []).append(name)
    for code, names in having.items():
        runs = names[0] if len(names) == 1 else f"{len(names)} runs"
        yield f"{printable(runs)}: warning {code}: {KINDS[code].meaning}"
