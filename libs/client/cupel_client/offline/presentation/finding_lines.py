"""Findings as lines of text, for standard error or a report."""

from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any

import click

from cupel_client.output import printable
from cupel_measures.findings import KINDS, LISTED_PER_CODE, Finding, Findings

LISTED = 10
"""Default number of listed findings of one code."""
LABELS = ("error", "warning", "note")
"""Words for findings in printed lines, in their order."""


def lines_of(findings: Findings, *, file: str, at_most: int | None = None) -> Iterable[str]:
    """Yield a line per finding: errors, warnings, then notes.

    at_most: number of findings of a code to list; further findings are only counted. file: name of the file
    on the command line; a line about another file contains the name of that file.
    """
    for label in LABELS:
        for code in [code for code in findings.totals if KINDS[code].label == label]:
            listed = [finding for finding in findings if finding.code == code]
            for finding in listed[:at_most]:
                yield line_of(finding, file)
            # One finding may count several times in the total of its code, for example once per topic.
            full = len(listed) >= LISTED_PER_CODE
            more = (findings.totals[code] if full else len(listed)) - len(listed[:at_most])
            if more > 0:
                yield f"{printable(file or 'qrels')}: {label} {code}: and {more:,} more"


def line_of(finding: Finding, file: str) -> str:
    """Return `FILE:LINE:COLUMN: label code: message`."""
    name = file if finding.file in (None, PurePath(file).name) else finding.file
    places = (name or None, finding.line, finding.column)
    where = ":".join(str(place) for place in places if place is not None)
    return printable(f"{where}: {finding.label} {finding.code}: {finding.message}".removeprefix(": "))


def is_warning(code: str) -> bool:
    """Return whether the code is a warning, not an error."""
    return KINDS[code].severity == "warning"


def remedies(findings: Findings) -> Iterable[str]:
    """Yield the remedy of each code once."""
    for code in findings.totals:
        yield f"{code}: {KINDS[code].remedy}"


def as_data(finding: Finding) -> dict[str, Any]:
    """Return a finding with the fields of the API."""
    keys = ("line", "column", "topic", "code", "message", "sample", "file")
    return {"severity": finding.label, **{key: getattr(finding, key) for key in keys}}


def coloured_lines_of(findings: Findings, *, file: str, at_most: int | None = None) -> Iterable[str]:
    """Yield the findings and then the remedies, in colour."""
    yield from map(coloured, lines_of(findings, file=file, at_most=at_most))
    for line in remedies(findings):
        yield click.style(f"-> {line}", dim=True)


def coloured(line: str) -> str:
    """Return a line with its severity in colour.

    click removes colours if there is no terminal.
    """
    for word, colour in zip(LABELS, ("red", "yellow", "cyan"), strict=True):
        head, separator, rest = line.partition(f"{word} ")
        if separator and (not head or head.endswith(": ")):
            return f"{head}{click.style(word, fg=colour, bold=True)} {rest}"
    return line


def summary(warnings: Mapping[str, Findings]) -> Iterable[str]:
    """Yield a line per warning code.

    It says how many runs have the warning, and what it means.
    """
    runs_by_code: dict[str, list[str]] = {}
    for name, findings in warnings.items():
        for code in findings.totals:
            if is_warning(code):
                runs_by_code.setdefault(code, []).append(name)
    for code, names in runs_by_code.items():
        runs = names[0] if len(names) == 1 else f"{len(names)} runs"
        yield f"{printable(runs)}: {KINDS[code].label} {code}: {KINDS[code].meaning}"
