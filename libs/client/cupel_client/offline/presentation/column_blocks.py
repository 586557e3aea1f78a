"""Tables split into blocks of columns that fit the width of the terminal.

Each block repeats the keys.
"""

from collections.abc import Sequence

from cupel_client.output import console, printable
from cupel_measures.evaluation.score_formats import fitting_names

BETWEEN = 3
"""Spaces between two columns."""
LONGEST_KEY = 16
"""Keys with at most this many characters are never shortened."""

Column = tuple[str, Sequence[str]]
"""A heading, possibly of several lines, and one cell per row."""


def show_blocks(
    key_names: Sequence[str],
    keys: Sequence[Sequence[str]],
    columns: Sequence[Column],
    *,
    title: str | None = None,
    caption: str | None = None,
    last_apart: bool = False,
) -> None:
    """Print rows in as many blocks of columns as needed.

    Keys are left-aligned, and columns are right-aligned.

    last_apart: whether to draw a line above the last row, for example a row of means.
    """
    keys = [list(map(printable, key)) for key in keys]
    columns = [(_lines(heading), list(map(printable, cells))) for heading, cells in columns]
    screen = console()
    columns = _with_short_headings(columns, screen.width)
    key_names, keys = _with_short_keys(key_names, keys, columns, screen.width)
    width = screen.width - _width_of_keys(key_names, keys)
    if title is not None:
        screen.print(_lines(title), style="bold", soft_wrap=True)
    for block in _blocks(columns, width):
        _print_block(key_names, keys, block, last_apart)
    if caption is not None:
        screen.print(_lines(caption), style="dim", soft_wrap=True)


def _with_short_headings(columns: Sequence[Column], width: int) -> list[Column]:
    """Shorten headings that are wider than half of the screen, such as names of runs."""
    short = fitting_names([heading for heading, _ in columns if "\n" not in heading], width // 2)
    return [(short.get(heading, heading), cells) for heading, cells in columns]


def _with_short_keys(
    key_names: Sequence[str], keys: Sequence[Sequence[str]], columns: Sequence[Column], width: int
) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """Shorten keys that leave no room for the widest column.

    Such keys are names with 160 characters. The keys then take half of the screen. Short keys, such as
    ranks, are kept.
    """
    widest = max((_width(*column) for column in columns), default=0)
    if _width_of_keys(key_names, keys) + widest <= width:
        return key_names, keys
    by_column = [[name, *(key[i] for key in keys)] for i, name in enumerate(key_names)]
    wide = sum(max(map(len, texts)) > LONGEST_KEY for texts in by_column)
    most = max(LONGEST_KEY, width // 2 // max(wide, 1))
    short = [fitting_names(texts, most) for texts in by_column]
    names = [texts[name] for texts, name in zip(short, key_names, strict=True)]
    return names, [[texts[text] for texts, text in zip(short, key, strict=True)] for key in keys]


def _width_of_keys(key_names: Sequence[str], keys: Sequence[Sequence[str]]) -> int:
    return sum(_width(name, [key[i] for key in keys]) for i, name in enumerate(key_names))


def _lines(heading: str) -> str:
    return "\n".join(map(printable, heading.split("\n")))


def _width(heading: str, cells: Sequence[str]) -> int:
    from rich.cells import cell_len

    return max(map(cell_len, [*heading.split("\n"), *cells]), default=0) + BETWEEN


def _blocks(columns: Sequence[Column], width: int) -> list[list[Column]]:
    """Split the columns into blocks that fit the width, with at least one column each."""
    blocks: list[list[Column]] = [[]]
    left = width
    for column in columns:
        needed = _width(*column)
        if blocks[-1] and needed > left:
            blocks.append([])
            left = width
        blocks[-1].append(column)
        left -= needed
    return blocks


def _print_block(
    key_names: Sequence[str], keys: Sequence[Sequence[str]], columns: Sequence[Column], last_apart: bool
) -> None:
    # Import rich late: the formats for programs do not need it, and its import is slow.
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in key_names:
        table.add_column(Text(name), overflow="fold", vertical="bottom")
    for heading, _ in columns:
        table.add_column(Text(heading), justify="right", no_wrap=True)
    for index, key in enumerate(keys):
        apart = last_apart and index == len(keys) - 2
        cells = [Text(cell) for cell in (*key, *(cells[index] for _, cells in columns))]
        table.add_row(*cells, end_section=apart)
    console().print(table)
