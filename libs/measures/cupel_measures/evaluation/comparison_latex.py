"""LaTeX table of a comparison of runs (package booktabs)."""

from collections.abc import Iterator

from cupel_measures.comparing.comparison import ComparisonReport, MeasureComparison
from cupel_measures.evaluation.difference_marks import caption_of, labels_of, marks_of
from cupel_measures.evaluation.score_formats import highest, in_latex, latex_row


def comparison_latex(compared: ComparisonReport, correction: str) -> Iterator[str]:
    """Yield the lines of a table with a row per run and a column per measure.

    Marks show significant differences. The highest means are bold. correction: how p-values were corrected,
    as the end of a sentence.
    """
    yield "% Requires \\usepackage{booktabs} and, for letters other than ASCII, \\usepackage[T1]{fontenc}."
    yield r"\begin{table}"
    yield r"\centering"
    yield rf"\caption{{{_caption(compared, correction)}}}"
    yield rf"\begin{{tabular}}{{l{'r' * len(compared.measures)}}}"
    yield r"\toprule"
    yield latex_row(["run", *(in_latex(item.measure.text) for item in compared.measures)])
    yield r"\midrule"
    best = highest([mean.value for mean in item.means] for item in compared.measures)
    for place, label in enumerate(labels_of(compared)):
        cells = (
            _cell(compared, item, place, is_best=(place, column) in best)
            for column, item in enumerate(compared.measures)
        )
        yield latex_row([in_latex(label), *cells])
    yield r"\bottomrule"
    yield r"\end{tabular}"
    yield r"\end{table}"


def _cell(compared: ComparisonReport, comparison: MeasureComparison, place: int, *, is_best: bool) -> str:
    mean = comparison.means[place].value
    if mean is None:
        return "undefined"
    letters = [
        rf"\mathrm{{{mark}}}" if mark.isalpha() else mark for mark in marks_of(compared, comparison, place)
    ]
    marks = ",".join(letters)
    number = rf"\mathbf{{{_plain(mean)}}}" if is_best else _plain(mean)
    return f"${number}{f'^{{{marks}}}' if marks else ''}$"


def _plain(value: float) -> str:
    if abs(value) < 10_000:
        return f"{value:.4f}"
    mantissa, _, exponent = f"{value:.4e}".partition("e")
    return rf"{{{mantissa} \cdot 10^{{{int(exponent)}}}}}"  # braces, because marks may follow


def _caption(compared: ComparisonReport, correction: str) -> str:
    text = in_latex(caption_of(compared, correction))
    if compared.choices.all_pairs:
        text = text.replace("Letters after a mean", "Superscript letters")
    return text.replace("+ and -:", "$+$ and $-$:").replace(r"p \textless{}=", r"$p \leq$")
