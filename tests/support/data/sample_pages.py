"""Made-up results of audits with every form of plot, for tests of pages."""

import math
from collections.abc import Sequence
from typing import Any

from cupel_audits.execution import Result
from cupel_audits.report import AuditReport, Cell, Column, Plot, ReportTable
from cupel_audits.subject import SubjectSummary

RUNS = ("aster", "birch")

HOSTILE = (
    "<script>alert(1)</script>",
    "</script></style></svg><img src=x onerror=alert(1)>",
    '"quo\'ted" & <b>bold</b>',
    "long" * 50,
    "\u05e9\u05dc\u05d5\u05dd \u202eback to front",
    "`tick` {{ 7 * 7 }}",
    "control\x00\x1b\ud800",
    "https://elsewhere.example/pixel.gif",
)
"""Names of runs that would break a page without escaping."""


def summary_of(runs: Sequence[str], measures: Sequence[str] = ("AP",), **more: Any) -> SubjectSummary:
    facts: dict[str, Any] = {
        "runs": tuple(runs),
        "teams": None,
        "topics": ("1", "2", "3"),
        "aspects": ("relevance",),
        "measures": tuple(measures),
        "profile": "cupel",
        "depth": None,
        "qrels": "a track",
        "judged": 120,
        "relevant": 30,
    }
    return SubjectSummary(**(facts | more))


def result(report: AuditReport | None, runs: Sequence[str] = RUNS, **more: Any) -> dict[str, Any]:
    """Return the data of a result with this report, and a provenance."""
    measures = more.pop("measures", ("AP",))
    facts: dict[str, Any] = {
        "kind": "downsampling",
        "parameters": {"ratios": [90.0, 50.0], "repeats": 30, "method": "stratified", "aspect": None},
        "seed": 7,
        "trials": 30,
        "done": 30 if report else 0,
    }
    made = Result(about=summary_of(runs, measures), report=report, **(facts | more))
    return made.as_data() | {"provenance": {"host": "a machine", "seconds": 1.5}}


def report_of(*tables: ReportTable, plots: Sequence[Plot] = (), **numbers: float | None) -> AuditReport:
    """Return a report without a verdict, with these tables, plots and numbers."""
    return AuditReport(verdict=(), numbers=numbers, tables=tables, plots=tuple(plots))


def table(name: str, columns: str, rows: Sequence[Sequence[Cell]]) -> ReportTable:
    """Return a table; columns: their names, separated by spaces."""
    described = tuple(
        Column(column, f"the {column}", f"description of {column}") for column in columns.split()
    )
    return ReportTable(name, f"Table of {name}", described, tuple(map(tuple, rows)))


def plot(form: Any, table_name: str, x: str, y: str, **more: Any) -> Plot:
    return Plot(
        name=f"{form}-{table_name}",
        title=f"Plot of {table_name}",
        caption=f"Values of `{table_name}`.",
        form=form,
        table=table_name,
        x=x,
        y=y,
        **more,
    )


def wave(place: int) -> float:
    """Return a number between 0 and 1."""
    return round(0.5 + 0.5 * math.sin(place), 6)


def forms(names: Sequence[str] = HOSTILE) -> AuditReport:
    """Return a report on runs with these names: plots of every form, with corner cases of each."""
    n, numbered = len(names), tuple(enumerate(names))
    curves = [
        (step, name, wave(step + i), wave(step + i) - 0.1, wave(step + i) + 0.1)
        for i, name in numbered
        for step in (90, 50, 10)
    ]
    pairs = [(a, b, None if i == j + 1 else wave(i * j)) for i, a in numbered for j, b in numbered]
    ranks = [(name, stage, (i + 3 * s) % n + 1) for i, name in numbered for s, stage in enumerate("abc")]
    signed = [(a, b, 2 * wave(ord(a) * ord(b)) - 1) for a in "ABC" for b in "ABC"]
    means = [(name, (n + 1) / 2 + i / 8, "a" if i < 2 else "b", 1.5) for i, name in numbered]
    topics = [(word, wave(i), f"topic {i}") for i in range(3) for word in ("low", "high")]
    tables = (
        table("curves", "step run tau from to", curves),
        table("pairs", "run other tau", pairs),
        table("signed", "run other tau", signed),
        table("changes", "run stage rank", ranks),
        table("documents", "run unique from to", [(name, i, i - 0.5, i + 0.5) for i, name in numbered]),
        table("depths", "depth part share", [(d, part, wave(d)) for d in (5, 10) for part in ("new", "old")]),
        table("places", "run one two", [(name, wave(i), wave(2 * i)) for i, name in numbered]),
        table("one", "step tau", [(50, 0.5)]),
        table("none", "step tau", []),
        table("undefined", "step tau", [(50, None)]),
        table("topics", "word tau topic", topics),
        table("means", "run rank letters width", means),
    )
    return AuditReport(
        verdict=(f"The order of {names[0]} holds.", f"That of {names[1]} does not."),
        numbers={"tau(AP)@50": 0.93, "tiny": 1e-9, "many": 1234567, "nothing": None, "below": -0.25},
        tables=tables,
        plots=(
            plot("curve", "curves", "step", "tau", series="run", low="from", high="to", reference=0.9),
            plot("heatmap", "pairs", "run", "other", value="tau", domain=(0.0, 1.0)),
            plot("heatmap", "signed", "run", "other", value="tau"),
            plot("changes", "changes", "stage", "rank", series="run", x_order=("c", "b", "a")),
            plot("bars", "documents", "run", "unique", low="from", high="to", reference=2.0),
            plot("bars", "depths", "depth", "share", series="part", domain=(0.0, 1.0)),
            plot("points", "places", "one", "two", label="run"),
            plot("curve", "one", "step", "tau"),
            plot("curve", "none", "step", "tau"),
            plot("curve", "undefined", "step", "tau"),
            plot("curve", "topics", "word", "tau", facet="topic", x_order=("low", "high")),
            plot("critical_difference", "means", "rank", "run", groups="letters", difference="width"),
        ),
        reading=(f"Read `tau` of {names[1]}.",),
        undefined=tuple(f"tau of {name}: no other" for name in names),
        warnings=(f"Only 3 topics under {names[0]}.",),
    )


def large(runs: int = 100, measures: int = 10) -> AuditReport:
    """Return a report like one of `downsampling` with many runs and measures."""
    names, texts, steps = (
        [f"run-{i}" for i in range(runs)],
        [f"M{i}@10" for i in range(measures)],
        (90, 70, 50, 30, 10),
    )
    rows = [
        (text, step, name, (i * (1 + place * (m + 2)) + m) % runs + 1)
        for m, text in enumerate(texts) for place, step in enumerate(steps) for i, name in enumerate(names)
    ]  # fmt: skip
    points = [(text, step, wave(m + step)) for m, text in enumerate(texts) for step in steps]
    return AuditReport(
        verdict=tuple(f"{text}: the order holds down to 50 per cent." for text in texts),
        numbers={},
        tables=(table("points", "measure step tau", points), table("ranks", "measure step run rank", rows)),
        plots=(
            plot("curve", "points", "step", "tau", series="measure"),
            plot("changes", "ranks", "step", "rank", series="run", facet="measure"),
        ),
    )
