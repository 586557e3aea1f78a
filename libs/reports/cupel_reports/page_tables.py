"""Tables as a page shows them."""

from dataclasses import dataclass
from urllib.parse import quote

from cupel_audits.report import Column, ReportTable
from cupel_reports.number_formats import decimals, is_number, shown

SHORT = 25
"""Tables of more rows are folded."""
MOST = 2000
"""Rows that a page shows; the file has all."""


@dataclass(frozen=True)
class Sheet:
    """A table in words. numeric: whether a column holds numbers. link: all of it as CSV, a data: address."""

    name: str
    title: str
    columns: tuple[Column, ...]
    numeric: tuple[bool, ...]
    rows: tuple[tuple[str, ...], ...]
    total: int
    link: str

    @property
    def folded(self) -> bool:
        return self.total > SHORT

    @property
    def explained(self) -> tuple[Column, ...]:
        """The columns that have something said about them."""
        return tuple(column for column in self.columns if column.about)


def sheet(table: ReportTable, *, alike: bool = True) -> Sheet:
    """A table with its numbers in as many digits as their column needs, or each where they aren't alike."""
    columns = list(zip(*table.rows, strict=True)) or [()] * len(table.columns)
    numeric = tuple(
        all(value is None or is_number(value) for value in column)
        and any(value is not None for value in column)
        for column in columns
    )
    places = [
        decimals(column) if number and alike else None
        for column, number in zip(columns, numeric, strict=True)
    ]
    rows = tuple(tuple(map(shown, row, places)) for row in table.rows[:MOST])
    link = "data:text/csv;charset=utf-8," + quote(table.as_csv(), safe="/,:;=()@+ *!$?[]~".replace(" ", ""))
    return Sheet(table.name, table.title, table.columns, numeric, rows, len(table.rows), link)
