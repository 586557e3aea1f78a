"""The page of an audit result, as one HTML file.

It has the request, the findings, plots and tables.
"""

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from cupel_audits import KINDS
from cupel_audits.report import AuditReport, Column, ReportTable
from cupel_audits.subject import SubjectSummary
from cupel_reports.content_security import directives
from cupel_reports.number_formats import UNDEFINED, counted, printable, shown
from cupel_reports.page_tables import Sheet, sheet
from cupel_reports.short_names import ShortNames

if TYPE_CHECKING:  # imported when a page is made, because it is slow
    from jinja2 import Template
    from markupsafe import Markup

COLUMNS = 24
"""Maximum number of columns of a table for which the style sheet has alignment rules."""

FIGURE_PACKAGES = {"altair": "altair", "vl_convert": "vl-convert-python"}
"""The packages that draw the figures, by the name of their module. An installation may lack them."""


def missing_packages() -> list[str]:
    """Return the names of the packages that `page` needs and that are not installed."""
    return [package for module, package in FIGURE_PACKAGES.items() if find_spec(module) is None]


def page(data: Mapping[str, Any]) -> str:
    """Return the page of `Result.as_data()`.

    data: may also have the key `provenance` (a mapping).

    The page loads nothing from the network. Plots are SVG, and interactive where scripts may run; tables can
    be downloaded as CSV. `policy` returns the header to serve it with. The same data gives the same page,
    byte by byte.
    """
    return rendered(data, eyebrow="Audit of", settings=[*_settings(data)], **_kind(data["kind"]))


def rendered(data: Mapping[str, Any], **texts: Any) -> str:
    """Return the page of a report.

    data: the data of `page`; kind names the files of the tables. texts: eyebrow, the words before the name of
    the judgments; title, question, source, and method, a list of paragraphs; settings, a list of mappings
    with name, value and about.
    """
    from cupel_reports.figures import figures, script

    result, texts = printable(data), printable(texts)
    about = SubjectSummary.of(result["about"])
    names = ShortNames.of(about)
    stored = AuditReport.of(result["report"]) if result["report"] else None
    report = names.report(stored) if stored else None
    drawn = figures(report) if report else []
    scripts = [script()] if any(figure.panels for figure in drawn) else []
    return _template().render(
        result=result,
        about=about,
        report=report,
        figures=drawn,
        sheets=_sheets(report, stored) if report and stored else [],
        facts=[*_facts(about)],
        request=[*_request(result, about, names)],
        lists=_lists(about, names),
        provenance=[(name, shown(value)) for name, value in (result.get("provenance") or {}).items()],
        style=_style(),
        scripts=scripts,
        policy=directives(scripts, [_style()]),
        undefined=UNDEFINED,
        **texts,
    )


def _kind(name: str) -> dict[str, Any]:
    """Return the texts of a kind.

    If this release does not have the kind, the title is `name` and the other texts are empty.
    """
    kind = KINDS.get(name)
    if kind is None:
        return {"title": name, "question": "", "source": "", "method": []}
    method = inspect.cleandoc(kind.__doc__ or "").split("\n\n")
    return {"title": kind.title, "question": kind.answers, "source": kind.source, "method": method}


def _sheets(report: AuditReport, stored: AuditReport) -> list[Sheet]:
    """Return the tables of the report, and a table of its numbers.

    stored: the report with the full names, which the CSV files contain.
    """
    columns = (Column("name", "name"), Column("value", "value"))
    numbers = ReportTable(
        "numbers", "Numbers by name, for alerts and histories", columns, (*report.numbers.items(),)
    )
    sheets = [sheet(table, link_to=full) for table, full in zip(report.tables, stored.tables, strict=True)]
    return [*sheets, *([sheet(numbers, uniform=False)] if report.numbers else [])]


def _facts(about: SubjectSummary) -> Iterator[str]:
    yield counted(len(about.runs), "run")
    if about.teams:
        yield counted(len(set(about.teams)), "team")
    yield counted(len(about.measures), "measure")
    yield counted(len(about.topics), "topic")
    yield counted(len(about.aspects), "aspect")
    yield f"{counted(about.judged, 'judged document')}, {shown(about.relevant)} of them relevant"


def _settings(result: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """Yield each parameter with its value and its description."""
    known = KINDS[result["kind"]].settings if result["kind"] in KINDS else {}
    for name, value in result["parameters"].items():
        yield {
            "name": name,
            "value": "not given" if value is None else shown(value),
            "about": known[name].about if name in known else "",
        }


def _request(
    result: Mapping[str, Any], about: SubjectSummary, names: ShortNames
) -> Iterator[tuple[str, str]]:
    if result["seed"] is not None:
        yield "seed", str(result["seed"])
    if result["trials"]:
        yield "trials", f"{shown(result['done'])} of {shown(result['trials'])} done"
    yield "measures", ", ".join(map(names.text, about.measures))
    for full, short in names.measures.items():
        yield f"{short} in full", full
    yield "judgments", about.qrels
    if about.other is not None:
        yield "compared with", about.other
    yield "aspects", ", ".join(about.aspects)
    yield "profile", about.profile
    yield "rankings", "complete" if about.depth is None else f"truncated to {about.depth} documents"


def _lists(about: SubjectSummary, names: ShortNames) -> list[dict[str, Any]]:
    """Return the lists of runs and of topics.

    Runs have their teams, and their full names in brackets.
    """
    teams: Sequence[str] = about.teams or [""] * len(about.runs)
    runs = [f"{short} ({run})" if (short := names.runs.get(run)) else run for run in about.runs]
    return [
        {"title": "Runs", "names": [*zip(runs, teams, strict=True)]},
        {"title": "Topics", "names": [(topic, "") for topic in about.topics]},
    ]


def _prose(sentence: str) -> "Markup":
    """Return a sentence as HTML, with names in backquotes as code."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(sentence))))


@cache
def _style() -> str:
    right = "".join(
        f".n{n} :is(th, td):nth-child({n}) {{ text-align: right; }}\n"
        f".n{n} td:nth-child({n}) {{ white-space: nowrap; }}\n"
        for n in range(1, COLUMNS + 1)
    )
    return (files("cupel_reports") / "templates" / "page.css").read_text() + right


@cache
def _template() -> "Template":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("cupel_reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"prose": _prose, "shown": shown, "counted": counted}
    return made.get_template("page.html")
