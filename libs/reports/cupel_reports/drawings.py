"""Single plots as SVG, for notebooks and papers."""

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from cupel_audits.report import Plot, ReportTable
from cupel_reports.chart_specifications import specification
from cupel_reports.plot_panels import Picture
from cupel_reports.vega_rendering import svg


@dataclass(frozen=True)
class Drawing:
    """A plot as SVG; notebooks show it."""

    title: str
    svg: str

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | Path) -> None:
        """Write the SVG to a file."""
        Path(path).write_text(self.svg, encoding="utf-8")


def draw(plot: Plot, table: ReportTable) -> Drawing:
    """Draw a plot without facets, in the colours of light pages.

    Raise ValueError if all its values are undefined.
    """
    picture = Picture(plot, table)
    if not picture.panels:
        raise ValueError("there is nothing to draw: all values are undefined")
    spec = specification(picture, picture.panels[0])
    drawn = svg(spec, plot.name, plot.title, plot.caption)
    return Drawing(plot.title, re.sub(r"var\(--(\w+)\)", lambda match: _colours()[match[1]], drawn))


@cache
def _colours() -> dict[str, str]:
    """Return the colours of the light scheme by their names in the style sheet."""
    sheet = (files("cupel_reports") / "templates" / "page.css").read_text()
    return dict(re.findall(r"--(\w+): (#\w+);", sheet[: sheet.index("}")]))
