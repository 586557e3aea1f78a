"""LaTeX table of a comparison of runs (package booktabs)."""

from collections.abc import Iterator

import click

from cupel_client.offline.presentation.comparison_output import (
    CORRECTED,
    TITLES,
    ComparisonResult,
    print_warnings,
)
from cupel_client.output import printable
from cupel_measures.comparing.comparison import Difference, MeasureComparison
from cupel_measures.comparing.corrections import letters

SPECIAL = {
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


def print_latex(result: ComparisonResult) -> None:
    """Print a row per run and a column per measure.

    Marks show significant differences.
    """
    for line in _lines(result):
        click.echo(line)
    print_warnings(result)


def _lines(result: ComparisonResult) -> Iterator[str]:
    compared = result.compared
    yield "% Requires \\usepackage{booktabs} and, for letters other than ASCII, \\usepackage[T1]{fontenc}."
    yield r"\begin{table}"
    yield r"\centering"
    yield rf"\caption{{{_caption(result)}}}"
    yield rf"\begin{{tabular}}{{l{'r' * len(compared.measures)}}}"
    yield r"\toprule"
    yield _row("run", *(escaped(item.measure.text) for item in compared.measures))
    yield r"\midrule"
    for place, name in enumerate(compared.systems):
        label = f"({letters(place)}) " if compared.choices.all_pairs else ""
        yield _row(label + escaped(name), *(_cell(result, item, place) for item in compared.measures))
    yield r"\bottomrule"
    yield r"\end{tabular}"
    yield r"\end{table}"


def _row(*cells: str) -> str:
    return f"{' & '.join(cells)} \\\\"


def _cell(result: ComparisonResult, comparison: MeasureComparison, place: int) -> str:
    mean = comparison.means[place].value
    if mean is None:
        return "undefined"
    marks = _marks(result, comparison, place)
    return f"${_plain(mean)}{f'^{{{marks}}}' if marks else ''}$"


def _plain(value: float) -> str:
    if abs(value) < 10_000:
        return f"{value:.4f}"
    mantissa, _, exponent = f"{value:.4e}".partition("e")
    return rf"{{{mantissa} \cdot 10^{{{int(exponent)}}}}}"  # braces, because marks may follow


def _marks(result: ComparisonResult, comparison: MeasureComparison, place: int) -> str:
    """Return the marks of the significant differences of one run.

    The mark is + or - for the difference from the baseline. With all pairs, the marks are the letters of the
    runs whose mean is significantly lower.
    """
    pairs = [pair for pair in comparison.differences if pair.significant]
    if not result.compared.choices.all_pairs:
        return "".join("+" if _is_higher(result, pair) else "-" for pair in pairs if pair.second == place)
    lower = [
        pair.first if pair.second == place else pair.second
        for pair in pairs
        if place == (pair.second if _is_higher(result, pair) else pair.first)
    ]
    return ",".join(rf"\mathrm{{{letters(other)}}}" for other in sorted(lower))


def _is_higher(result: ComparisonResult, pair: Difference) -> bool:
    """Return whether the second run is better.

    Mean ranks decide if the test compares them.
    """
    test = pair.test
    return ((test.statistic if result.compared.choices.is_rank_test else test.estimate) or 0.0) > 0


def _caption(result: ComparisonResult) -> str:
    choices, topics = result.compared.choices, len(result.compared.topics)
    marks = f"$+$ and $-$: significantly higher or lower than {escaped(result.compared.systems[0])}"
    if choices.all_pairs:
        marks = "Superscript letters name the runs whose mean is significantly lower"
    corrected = result.correction() if choices.correction_name in CORRECTED else ""
    logarithms = [
        escaped(item.measure.text) for item in result.compared.measures if item.measure.uses_logarithms
    ]
    note = f" (for {' and '.join(logarithms)}, of logarithms)" if logarithms else ""
    return (
        f"Means over {topics} topic{'s' * (topics != 1)}{note}. {marks} "
        f"({TITLES[choices.test_name]}, $p \\leq {choices.alpha:g}${corrected})."
    )


def escaped(text: str) -> str:
    """Return `text` with escapes for LaTeX, correct at any position."""
    return "".join(SPECIAL.get(character, character) for character in printable(text)).replace("--", "-{}-")
