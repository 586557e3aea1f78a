"""The result of `cupel compare` as a LaTeX table (booktabs)."""

from collections.abc import Iterator

import click

from cupel_client.offline.presentation.comparison_output import CORRECTED, TITLES, ComparisonResult, tell
from cupel_client.output import printable
from cupel_measures.comparing.comparison import MeasureComparison
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
    **{one: f"\\{one}" for one in "&%$#_"},
}
"""What LaTeX reads as commands ([ and * after the end of a row), or prints as something else."""


def print_latex(one: ComparisonResult) -> None:
    """A row per run, a column per measure; marks say which means differ significantly."""
    for line in _lines(one):
        click.echo(line)
    tell(one)


def _lines(one: ComparisonResult) -> Iterator[str]:
    found = one.found
    yield "% needs \\usepackage{booktabs} and, for other letters than ASCII, \\usepackage[T1]{fontenc}"
    yield r"\begin{table}"
    yield r"\centering"
    yield rf"\caption{{{_caption(one)}}}"
    yield rf"\begin{{tabular}}{{l{'r' * len(found.measures)}}}"
    yield r"\toprule"
    yield _row("run", *(escaped(it.measure.text) for it in found.measures))
    yield r"\midrule"
    for place, name in enumerate(found.systems):
        label = f"({letters(place)}) " if found.choices.all_pairs else ""
        yield _row(label + escaped(name), *(_cell(one, it, place) for it in found.measures))
    yield r"\bottomrule"
    yield r"\end{tabular}"
    yield r"\end{table}"


def _row(*cells: str) -> str:
    return f"{' & '.join(cells)} \\\\"


def _cell(one: ComparisonResult, of_measure: MeasureComparison, place: int) -> str:
    mean = of_measure.means[place].value
    if mean is None:
        return "undefined"
    marks = _marks(one, of_measure, place)
    return f"${_plain(mean)}{f'^{{{marks}}}' if marks else ''}$"


def _plain(value: float) -> str:
    if abs(value) < 10_000:
        return f"{value:.4f}"
    mantissa, _, exponent = f"{value:.4e}".partition("e")
    return rf"{{{mantissa} \cdot 10^{{{int(exponent)}}}}}"  # in braces: marks may follow


def _marks(one: ComparisonResult, of_measure: MeasureComparison, place: int) -> str:
    """+ or - against the baseline; with all pairs the letters of the runs that score lower."""
    pairs = [pair for pair in of_measure.differences if pair.significant]
    if not one.found.choices.all_pairs:
        return "".join(
            "+" if (pair.test.estimate or 0.0) > 0 else "-" for pair in pairs if pair.second == place
        )
    beaten = [
        pair.first if pair.second == place else pair.second
        for pair in pairs
        if place == (pair.second if (pair.test.estimate or 0.0) > 0 else pair.first)
    ]
    return ",".join(rf"\mathrm{{{letters(other)}}}" for other in sorted(beaten))


def _caption(one: ComparisonResult) -> str:
    choices, topics = one.found.choices, len(one.found.topics)
    meant = f"differ significantly from {escaped(one.found.systems[0])}, above ($+$) or below ($-$) it"
    if choices.all_pairs:
        meant = "are significantly above the runs whose letters they bear"
    corrected = one.correction() if choices.correction in CORRECTED else ""
    logarithms = [escaped(it.measure.text) for it in one.found.measures if it.measure.uses_logarithms]
    of_logarithms = f" (of {' and '.join(logarithms)}: of logarithms)" if logarithms else ""
    return (
        f"Means over {topics} topic{'s' * (topics != 1)}{of_logarithms}. Marked ones {meant} "
        f"({TITLES[choices.test]}, $p \\leq {choices.alpha:g}${corrected})."
    )


def escaped(text: str) -> str:
    """`text` as LaTeX prints it, wherever it stands."""
    return "".join(SPECIAL.get(one, one) for one in printable(text)).replace("--", "-{}-")
