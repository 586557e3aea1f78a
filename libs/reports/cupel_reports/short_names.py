"""Short names of runs and measures for readers; files keep the full names."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from cupel_audits.report import PROSE, AuditReport, Plot, ReportTable
from cupel_audits.subject import SubjectSummary
from cupel_measures.catalogue.parser import parse
from cupel_measures.grammar.measure import Measure
from cupel_measures.grammar.syntax import MeasureError
from cupel_measures.model import Aspect

LONGEST = 28
"""Names of runs with more characters are shortened in the middle."""
BEGINNING, ENDING = 14, 13
"""The numbers of characters that remain of the beginning and of the ending of a long name."""
FILE_ENDING = re.compile(
    r"(?<=.)(\.(dat|txt|run|runs|res|results|out|trec|eval|csv|tsv|json|jsonl|gz|bz2|xz|zst))+$", re.I
)


@dataclass(frozen=True)
class ShortNames:
    """The short names of runs and measures, by the full name.

    Only names that can be shortened are included.
    """

    runs: Mapping[str, str]
    measures: Mapping[str, str]

    @classmethod
    def of(cls, about: SubjectSummary) -> "ShortNames":
        """Return the short names for a subject; no two runs or measures share one."""
        measures = {text: typed_text(text, about.aspects) for text in about.measures}
        runs = {run: shortened(FILE_ENDING.sub("", run)) for run in about.runs}
        return cls(_distinct(runs), _distinct(measures))

    @cached_property
    def _by_name(self) -> dict[str, str]:
        return {**self.runs, **self.measures}

    @cached_property
    def _pattern(self) -> re.Pattern[str] | None:
        """Return the pattern that finds the full names in a text, the longest first.

        It is None without names.
        """
        names = sorted(self._by_name, key=len, reverse=True)
        return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, names))})(?!\w)") if names else None

    def text(self, text: str) -> str:
        """Return the text with short names."""
        if self._pattern is None:
            return text
        return self._pattern.sub(lambda match: self._by_name[match[0]], text)

    def report(self, report: AuditReport) -> AuditReport:
        """Return the report with short names in sentences, tables and plots.

        `numbers` keeps its keys.
        """
        prose: dict[str, Any] = {name: tuple(map(self.text, getattr(report, name))) for name in PROSE}
        tables = tuple(map(self._table, report.tables))
        return replace(report, **prose, tables=tables, plots=tuple(map(self._plot, report.plots)))

    def _table(self, table: ReportTable) -> ReportTable:
        rows = (
            tuple(self.text(cell) if isinstance(cell, str) else cell for cell in row) for row in table.rows
        )
        return replace(table, rows=tuple(rows))

    def _plot(self, plot: Plot) -> Plot:
        order = None if plot.x_order is None else tuple(map(self.text, plot.x_order))
        return replace(plot, title=self.text(plot.title), caption=self.text(plot.caption), x_order=order)


def shortened(name: str) -> str:
    """Return the name, shortened in the middle if it has more than LONGEST characters."""
    return name if len(name) <= LONGEST else f"{name[:BEGINNING]}…{name[-ENDING:]}"


def typed_text(text: str, aspects: Iterable[str]) -> str:
    """Return the text of a measure as users type it.

    Aspects that the measure has by default are left out.

    text: the text with all aspects, as scores are stored. aspects: the aspects of the collection.
    """
    try:
        measure = parse(text)
        declared = [Aspect(name=name, labels=range(2)) for name in aspects]
        return _without_defaults(measure, declared)
    except MeasureError:  # a measure of an earlier release
        return text


def _without_defaults(measure: Measure, aspects: list[Aspect]) -> str:
    shortest = measure
    for name in ("aspects", "understandability", "aspect"):
        if measure.arguments.get(name) is not None:
            shorter = shortest.having(**{name: None})
            if str(shorter.bound(aspects)) == str(measure):
                shortest = shorter
    return str(shortest)


def _distinct(names: Mapping[str, str]) -> dict[str, str]:
    """Return the short names that differ from all other names.

    They also differ from their full names.
    """
    counts = Counter(names.values())
    return {
        full: short
        for full, short in names.items()
        if short != full and counts[short] == 1 and short not in names
    }
