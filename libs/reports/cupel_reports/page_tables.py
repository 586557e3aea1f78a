"""Tables of a page: formatted cells, and the CSV file to download."""

from dataclasses import dataclass
from urllib.parse import quote

from cupel_audits.report import Column, ReportTable
from cupel_reports.number_formats import decimals, is_number, shown

SHORT = 25
"""Tables with more than this number of rows are collapsed."""
MOST = 2000
"""Maximum number of rows that a page shows; the CSV file contains all rows."""


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """A formatted table.

    numeric: whether each column contains numbers. total: the number of all rows. link: a data: URL of the
    whole table as CSV.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    numeric: tuple[bool, ...]
    rows: tuple[tuple[str, ...], ...]
    total: int
    link: str

    @property
    def is_collapsed(self) -> bool:
        return self.total > SHORT

    @property
    def explained(self) -> tuple[Column, ...]:
        """Return the columns that have an explanation."""
        return tuple(column for column in self.columns if column.about)


def sheet(table: ReportTable, *, uniform: bool = True, link_to: ReportTable | None = None) -> Sheet:
    """Format a table.

    uniform: whether all numbers of a column get the same number of decimals; if False, each number gets as
    many decimals as it needs.
    link_to: the table in the CSV file (default: `table`), for example with full names.
    """
    columns = [table.column(name) for name in table.names]
    numeric = tuple(
        all(value is None or is_number(value) for value in column)
        and any(value is not None for value in column)
        for column in columns
    )
    places = [
        decimals(column) if is_numeric and uniform else None
        for column, is_numeric in zip(columns, numeric, strict=True)
    ]
    rows = tuple(tuple(map(shown, row, places)) for row in table.rows[:MOST])
    link = "data:text/csv;charset=utf-8," + quote(
        (link_to or table).as_csv(), safe="/,:;=()@+ *!$?[]~".replace(" ", "")
    )
    return Sheet(
        name=table.name,
        title=table.title,
        columns=table.columns,
        numeric=numeric,
        rows=rows,
        total=len(table.rows),
        link=link,
    )
