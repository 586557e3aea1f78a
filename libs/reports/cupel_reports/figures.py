"""Plots as a page holds them: each panel as a static picture, and as what makes it interactive."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from cupel_audits.report import AuditReport, Plot
from cupel_reports.chart_specifications import specification
from cupel_reports.number_formats import rounded
from cupel_reports.plot_panels import CHANNELS, Key, Picture, pictures
from cupel_reports.vega_rendering import script as script
from cupel_reports.vega_rendering import svg


@dataclass(frozen=True)
class Drawn:
    """A panel: what it shows in words, its picture, and its specification as JSON."""

    title: str | None
    label: str
    svg: Markup
    spec: Markup


@dataclass(frozen=True)
class Figure:
    """A plot.

    ends: of its scale, which is signed where it begins below 0. hidden: panels that are not drawn. titles: of
    what is drawn, as JSON.
    """

    plot: Plot
    keys: tuple[Key, ...]
    series: int
    ends: tuple[str, str]
    signed: bool
    panels: tuple[Drawn, ...]
    hidden: int
    titles: Markup

    @property
    def choice(self) -> str:
        """Which series have a colour, where not all do."""
        return "those that move furthest" if self.plot.form == "changes" else "the first"


def figures(report: AuditReport) -> list[Figure]:
    """The plots of a report, drawn."""
    return [_figure(f"p{place}", one) for place, one in enumerate(pictures(report.plots, report.tables))]


def _figure(name: str, picture: Picture) -> Figure:
    return Figure(
        plot=picture.plot,
        keys=picture.keys,
        series=len(picture.series),
        ends=(rounded(picture.extent[0]), rounded(picture.extent[1])),
        signed=picture.extent[0] < 0,
        panels=tuple(_panels(name, picture)),
        hidden=picture.hidden,
        titles=_json(_titles(picture)),
    )


def _panels(name: str, picture: Picture) -> Iterator[Drawn]:
    for place, panel in enumerate(picture.panels):
        label = picture.plot.title if panel.title is None else f"{picture.plot.title}: {panel.title}"
        text = f"{picture.plot.caption} The table “{picture.table.title}” has its numbers."
        spec = specification(picture, panel)
        still = Markup(svg(spec, f"{name}-{place}", label, text))
        yield Drawn(panel.title, label, still, _json(spec))


def _titles(picture: Picture) -> list[tuple[str, str]]:
    """The names in rows with the headings of their columns, in the order in which they are told."""
    order = ("series", "label", "x", "y", "value", "low", "high")
    return [
        (CHANNELS[long], picture.title(long)) for long in order if getattr(picture.plot, long) is not None
    ]


def _json(data: Any) -> Markup:
    """JSON that no text in it can end."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c"))
