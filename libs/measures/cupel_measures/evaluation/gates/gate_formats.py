"""Formats of reports of gates: text, Markdown, HTML, JUnit XML, annotations."""

import re
from collections.abc import Iterator, Sequence
from html import escape
from typing import Protocol
from xml.etree import ElementTree

from cupel_measures.evaluation.gates.gate_outcomes import GateOutcome
from cupel_measures.evaluation.gates.gate_rules import GateVerdict

MARKS: dict[GateVerdict, str] = {
    "better": "✅ better",
    "no worse": "✅ no worse",
    "worse": "❌ worse",
    "undecided": "❔ undecided",
}
LEVELS: dict[GateVerdict, str] = {
    "better": "notice",
    "no worse": "notice",
    "worse": "error",
    "undecided": "warning",
}
"""Level of the annotation of each verdict."""
NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
UNDEFINED = "undefined"


class GatedRun(Protocol):
    """The parts of a report of gates that formats show."""

    @property
    def run(self) -> str: ...
    @property
    def baselines(self) -> tuple[str, ...]: ...
    @property
    def outcomes(self) -> tuple[GateOutcome, ...]: ...
    @property
    def title(self) -> str: ...
    def note(self) -> str | None: ...


def cells_of(report: GatedRun) -> tuple[list[str], list[list[str]]]:
    """Return the headings and a row of cells per gate."""
    several = len(set(report.baselines)) > 1
    levels = {outcome.confidence for outcome in report.outcomes}
    interval = f"{100 * levels.pop():g}% interval" if len(levels) == 1 else "interval (1 - 2 alpha)"
    head = ["gate", *["baseline run"] * several, "topics", "baseline", "run", "difference", interval]
    rows = [
        [
            outcome.title,
            *[baseline] * several,
            str(outcome.topics),
            _format_mean(outcome.baseline_mean),
            _format_mean(outcome.run_mean),
            UNDEFINED if outcome.difference is None else f"{outcome.difference:+.4f}",
            _format_interval(outcome),
            f"{outcome.rule.max_drop:g}",
            outcome.verdict,
        ]
        for baseline, outcome in zip(report.baselines, report.outcomes, strict=True)
    ]
    return [*head, "max drop", "verdict"], rows


def reasons_of(outcome: GateOutcome) -> list[str]:
    """Return the reasons of a gate and then its notes, each as a line."""
    return [*outcome.reasons, *(f"note: {note}" for note in outcome.notes)]


def explanations_of(report: GatedRun) -> Iterator[str]:
    """Yield the verdict of each gate, with its reasons as indented lines.

    The last line is the note on several gates.
    """
    for outcome in report.outcomes:
        yield f"{outcome.title}: {outcome.verdict}"
        yield from (f"  {line}" for line in reasons_of(outcome))
    if note := report.note():
        yield note


def format_gates_text(report: GatedRun) -> str:
    """Return the report as aligned text."""
    head, rows = cells_of(report)
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = [_line(cells, widths) for cells in (head, *rows)]
    return "\n".join([report.title, "", *lines, "", *explanations_of(report)])


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True)]
    return "  ".join([cells[0].ljust(widths[0]), *padded])


def format_gates_markdown(report: GatedRun) -> str:
    """Return a heading, a table and the reasons in Markdown."""
    head, rows = cells_of(report)
    marked = [
        [*cells[:-1], MARKS[outcome.verdict]] for cells, outcome in zip(rows, report.outcomes, strict=True)
    ]
    rule = ["---", *["---:"] * (len(head) - 2), "---"]
    table = [_row(map(in_markdown, cells)) for cells in (head, *marked)]
    lines = [f"## {in_markdown(report.title)}", "", table[0], _row(rule), *table[1:], ""]
    for outcome in report.outcomes:
        lines.append(f"- **{in_markdown(outcome.title)}: {outcome.verdict}**")
        lines += [f"  - {in_markdown(line)}" for line in reasons_of(outcome)]
    note = report.note()
    return "\n".join([*lines, "", *([] if note is None else [note, ""])])


def _row(cells: Iterator[str] | Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def in_markdown(text: str) -> str:
    """Return text of a file as plain text in Markdown."""
    flat = " ".join(text.split())
    return re.sub(r"([\\`*_{}\[\]<>|~#])", r"\\\1", flat)


def format_gates_html(report: GatedRun) -> str:
    """Return a table and the reasons in HTML."""
    head, rows = cells_of(report)
    heading = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>" for cells in rows)
    reasons = "".join(f"<p>{escape(line)}</p>" for line in explanations_of(report))
    table = f"<caption>{escape(report.title)}</caption><thead><tr>{heading}</tr></thead><tbody>{body}</tbody>"
    return f"<table>{table}</table>{reasons}"


def format_junit(report: GatedRun) -> str:
    """Return JUnit XML: a test case per gate."""
    counts = dict.fromkeys(MARKS, 0)
    for outcome in report.outcomes:
        counts[outcome.verdict] += 1
    totals = {
        "tests": str(len(report.outcomes)),
        "failures": str(counts["worse"]),
        "errors": str(counts["undecided"]),
        "skipped": "0",
    }
    root = ElementTree.Element("testsuites", {"name": "cupel gate", **totals})
    suite = ElementTree.SubElement(root, "testsuite", {"name": _in_xml(f"cupel gate {report.run}"), **totals})
    for baseline, outcome in zip(report.baselines, report.outcomes, strict=True):
        _add_case(suite, baseline, outcome)
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _add_case(suite: ElementTree.Element, baseline: str, outcome: GateOutcome) -> None:
    name = _in_xml(f"{outcome.title} vs. {baseline}")
    case = ElementTree.SubElement(suite, "testcase", {"classname": "cupel.gate", "name": name, "time": "0"})
    reasons, notes = _in_xml("; ".join(outcome.reasons)), _in_xml("\n".join(outcome.notes))
    if not outcome.passed:
        tag = "failure" if outcome.verdict == "worse" else "error"
        problem = ElementTree.SubElement(case, tag, {"type": outcome.verdict, "message": reasons})
        problem.text = notes or reasons
    output = ElementTree.SubElement(case, "system-out")
    output.text = "\n".join(filter(None, [f"{outcome.verdict}: {reasons}", notes]))


def _in_xml(text: str) -> str:
    return NOT_IN_XML.sub("\ufffd", text)


def annotations_of(report: GatedRun) -> Iterator[str]:
    """Yield a workflow command of GitHub Actions per gate.

    It is an error, a warning or a notice.
    """
    for outcome in report.outcomes:
        title = _in_command(f"cupel gate: {outcome.title}: {outcome.verdict}", also=":,")
        text = _in_command("; ".join([*outcome.reasons, *outcome.notes]))
        yield f"::{LEVELS[outcome.verdict]} title={title}::{text}"


def _in_command(text: str, also: str = "") -> str:
    return "".join(f"%{ord(sign):02X}" if sign in f"%\r\n{also}" else sign for sign in text)


def _format_mean(value: float | None) -> str:
    return UNDEFINED if value is None else f"{value:.4f}"


def _format_interval(outcome: GateOutcome) -> str:
    if outcome.interval is None:
        return UNDEFINED
    low, high = outcome.interval
    return f"[{low:+.4f}, {high:+.4f}]"
