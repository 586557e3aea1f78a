"""Figures of a page: each panel as a static SVG and as a Vega-Lite specification."""

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
class DrawnPanel:
    """A drawn panel of a plot.

    It has a title, a text alternative, the picture, and the specification as JSON.
    """

    title: str | None
    label: str
    svg: Markup
    spec: Markup


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A plot with its drawn panels.

    keys: the series with a colour. series: the number of all series. legend: the heading of the
    series; without series, that of the values of a heat map; "" if there are neither. facet: the heading of
    the titles of panels. ends: the scale limits as text. signed: whether the scale starts below 0. hidden:
    the number of panels that are not drawn. titles: the headings of the drawn columns, as JSON.
    """

    plot: Plot
    keys: tuple[Key, ...]
    series: int
    legend: str
    facet: str
    ends: tuple[str, str]
    signed: bool
    panels: tuple[DrawnPanel, ...]
    hidden: int
    titles: Markup

    @property
    def coloured_series(self) -> str:
        """Return a phrase that says which series have a colour.

        It is for plots with more series than colours.
        """
        return "those with the largest changes" if self.plot.form == "changes" else "the first"


def figures(report: AuditReport) -> list[Figure]:
    """Draw the plots of a report."""
    return [
        _figure(f"p{place}", picture) for place, picture in enumerate(pictures(report.plots, report.tables))
    ]


def _figure(name: str, picture: Picture) -> Figure:
    return Figure(
        plot=picture.plot,
        keys=picture.keys,
        series=len(picture.series),
        legend=next((picture.title(name) for name in ("series", "value") if getattr(picture.plot, name)), ""),
        facet=picture.title("facet") if picture.plot.facet else "",
        ends=(rounded(picture.extent[0]), rounded(picture.extent[1])),
        signed=picture.extent[0] < 0,
        panels=tuple(_panels(name, picture)),
        hidden=picture.hidden,
        titles=_json(_titles(picture)),
    )


def _panels(name: str, picture: Picture) -> Iterator[DrawnPanel]:
    for place, panel in enumerate(picture.panels):
        label = picture.plot.title if panel.title is None else f"{picture.plot.title}: {panel.title}"
        text = f"{picture.plot.caption} The table “{picture.table.title}” contains the plotted numbers."
        spec = specification(picture, panel)
        still = Markup(svg(spec, f"{name}-{place}", label, text))
        yield DrawnPanel(panel.title, label, still, _json(spec))


def _titles(picture: Picture) -> list[tuple[str, str]]:
    """Return the key and the heading of each column, in the order of the tooltip.

    The key is that of the column in the rows.
    """
    order = ("series", "label", "x", "y", "observed", "value", "low", "high", "groups")
    return [
        (CHANNELS[long], picture.title(long)) for long in order if getattr(picture.plot, long) is not None
    ]


def _json(data: Any) -> Markup:
    """Return JSON without "<", so that no text in it can end the script element."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c"))
