"""Tables of scores as text, Markdown, HTML and LaTeX."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

DECIMALS = 4
ESCAPED_IN_LATEX = str.maketrans(
    {
        **{character: "\\" + character for character in "&%$#_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
    }
)


@dataclass(frozen=True, kw_only=True)
class ScoreTable:
    """Scores of runs, one row per run.

    columns: measures. rows: name and values of each run, best first. notes: on the interpretation.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[float, ...]], ...]
    caption: str
    notes: tuple[str, ...] = ()

    def cells(self) -> list[list[str]]:
        """Return the names and the values with four decimals."""
        return [[name, *(f"{value:.{DECIMALS}f}" for value in values)] for name, values in self.rows]

    def best(self) -> list[set[int]]:
        """Return the rows with the highest value of each column."""
        columns = zip(*(values for _, values in self.rows), strict=True)
        return [{i for i, value in enumerate(column) if value == max(column)} for column in columns]


def format_text(table: ScoreTable) -> str:
    """Return the table as aligned text, with caption and notes."""
    lines = [["run", *table.columns], *table.cells()]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    shown = [_line(cells, widths) for cells in lines]
    return "\n".join([*shown, "", table.caption, *(f"note: {note}" for note in table.notes)])


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [cell.rjust(width) for cell, width in zip(cells, widths, strict=True)]
    return "  ".join([cells[0].ljust(widths[0]), *padded[1:]])


def format_markdown(table: ScoreTable) -> str:
    """Return the table in Markdown, with the best values in bold."""
    head = ["run", *map(_in_markdown, table.columns)]
    rows = [[_in_markdown(name), *cells] for name, *cells in _marked(table, "**{}**")]
    rule = ["---", *["---:"] * len(table.columns)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, rule, *rows)) + "\n"


def _in_markdown(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*").replace("_", "\\_")


def format_html(table: ScoreTable) -> str:
    """Return the table in HTML, with the best values in bold, caption and notes."""
    head = "".join(f"<th>{escape(text)}</th>" for text in ("run", *table.columns))
    rows = []
    for name, *cells in _marked(table, "<b>{}</b>"):
        values = "".join(f'<td style="text-align:right">{cell}</td>' for cell in cells)
        rows.append(f'<tr><th style="text-align:left">{escape(name)}</th>{values}</tr>')
    notes = "".join(f"<p>{escape(note)}</p>" for note in table.notes)
    body = f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody>"
    return f"<table><caption>{escape(table.caption)}</caption>{body}</table>{notes}"


def format_latex(table: ScoreTable) -> str:
    r"""Return a LaTeX table (package booktabs), with the best values in \textbf."""
    rows = _marked(table, r"\textbf{{{}}}")
    lines = [
        r"\begin{tabular}{l" + "r" * len(table.columns) + "}",
        r"\toprule",
        _latex_row(map(_in_latex, ("run", *table.columns))),
        r"\midrule",
        *(_latex_row([_in_latex(name), *cells]) for name, *cells in rows),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def _latex_row(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"


def _in_latex(text: str) -> str:
    return text.translate(ESCAPED_IN_LATEX)


def _marked(table: ScoreTable, mark: str) -> list[list[str]]:
    """Return the cells with the best value of each column marked.

    A table of one run has no marks.
    """
    best = table.best() if len(table.rows) > 1 else [set()] * len(table.columns)
    return [
        [name, *(mark.format(cell) if row in best[i] else cell for i, cell in enumerate(cells))]
        for row, (name, *cells) in enumerate(table.cells())
    ]
