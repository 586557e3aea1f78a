"""Tables of results as text, Markdown, HTML and LaTeX."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

LONGEST_NAME = 60
"""Largest number of characters of a name in text; longer names are shortened in the middle."""
SPECIAL_IN_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "[": "{[}",
    "*": "{*}",
    **{character: f"\\{character}" for character in "&%$#_"},
}
"""Characters that LaTeX reads as commands ([ and * only after the end of a row) or prints differently."""


@dataclass(frozen=True, kw_only=True)
class ResultTable:
    """A table with a name and numbers in each row.

    columns: headings, beginning with that of the names. rows: cells. best: row and column (from 0, without
    the names) of the cells to mark. notes: on the interpretation.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    best: frozenset[tuple[int, int]] = frozenset()
    caption: str = ""
    notes: tuple[str, ...] = ()

    def marked(self, mark: str) -> list[list[str]]:
        """Return the numbers of each row, with `mark` applied to the best cells."""
        return [
            [mark.format(cell) if (i, j) in self.best else cell for j, cell in enumerate(numbers)]
            for i, (_, *numbers) in enumerate(self.rows)
        ]


def fitting_names(names: Iterable[str], most: int) -> dict[str, str]:
    """Return each name, shortened in the middle if it has more than `most` characters.

    Names are shortened less, or not at all, if two names would otherwise look alike.
    """
    distinct = dict.fromkeys(names)
    for size in range(most, max(map(len, distinct), default=0)):
        short = {name: _shortened(name, size) for name in distinct}
        if len(set(short.values())) == len(distinct):
            return short
    return {name: name for name in distinct}


def _shortened(name: str, most: int) -> str:
    if len(name) <= most:
        return name
    ending = (most - 1) // 2
    return f"{name[: most - 1 - ending]}…{name[len(name) - ending :]}"


def highest(columns: Iterable[Sequence[float | None]]) -> frozenset[tuple[int, int]]:
    """Return row and column of the highest values of each column.

    A column with fewer than two values has none.
    """
    return frozenset(
        (row, place)
        for place, column in enumerate(columns)
        if len(values := [value for value in column if value is not None]) > 1
        for row, value in enumerate(column)
        if value == max(values)
    )


def format_text(table: ResultTable) -> str:
    """Return the table as aligned text, with caption and notes.

    Long names are shortened.
    """
    names = fitting_names([name for name, *_ in table.rows], LONGEST_NAME)
    lines = [table.columns, *((names[name], *cells) for name, *cells in table.rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    shown = [_line(cells, widths) for cells in lines]
    return "\n".join([*shown, "", table.caption, *(f"note: {note}" for note in table.notes)])


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [cell.rjust(width) for cell, width in zip(cells, widths, strict=True)]
    return "  ".join([cells[0].ljust(widths[0]), *padded[1:]])


def format_markdown(table: ResultTable) -> str:
    """Return the table in Markdown, with the best values in bold."""
    numbers = table.marked("**{}**")
    rows = [[_in_markdown(name), *cells] for (name, *_), cells in zip(table.rows, numbers, strict=True)]
    rule = ["---", *["---:"] * (len(table.columns) - 1)]
    lines = [map(_in_markdown, table.columns), rule, *rows]
    return "".join("| " + " | ".join(cells) + " |\n" for cells in lines)


def _in_markdown(text: str) -> str:
    return "".join("\\" + character if character in "\\|*_`<>" else character for character in text)


def format_html(table: ResultTable) -> str:
    """Return the table in HTML, with the best values in bold, caption and notes."""
    head = "".join(f"<th>{escape(text)}</th>" for text in table.columns)
    body = []
    for (name, *_), cells in zip(table.rows, table.marked("<b>{}</b>"), strict=True):
        values = "".join(f'<td style="text-align:right">{cell}</td>' for cell in cells)
        body.append(f'<tr><th style="text-align:left">{escape(name)}</th>{values}</tr>')
    notes = "".join(f"<p>{escape(note)}</p>" for note in table.notes)
    rows = f"<thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody>"
    return f"<table><caption>{escape(table.caption)}</caption>{rows}</table>{notes}"


def format_latex(table: ResultTable) -> str:
    r"""Return a LaTeX table (package booktabs), with the best values in \textbf."""
    numbers = table.marked(r"\textbf{{{}}}")
    rows = [[in_latex(name), *cells] for (name, *_), cells in zip(table.rows, numbers, strict=True)]
    lines = [
        r"\begin{tabular}{l" + "r" * (len(table.columns) - 1) + "}",
        r"\toprule",
        latex_row(map(in_latex, table.columns)),
        r"\midrule",
        *map(latex_row, rows),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def latex_row(cells: Iterable[str]) -> str:
    """Return a row of a LaTeX table. cells: LaTeX."""
    return " & ".join(cells) + r" \\"


def in_latex(text: str) -> str:
    """Return `text` with escapes for LaTeX, correct at any position.

    Characters that cannot be printed become escape sequences.
    """
    printable = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return "".join(SPECIAL_IN_LATEX.get(c, c) for c in printable).replace("--", "-{}-")
