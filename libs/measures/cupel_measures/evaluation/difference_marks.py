"""Marks of significant differences between runs, for tables of means."""

from cupel_measures.comparing.comparison import ComparisonReport, Difference, MeasureComparison
from cupel_measures.comparing.corrections import letters
from cupel_measures.evaluation.test_titles import CORRECTED, TITLES


def marks_of(compared: ComparisonReport, comparison: MeasureComparison, place: int) -> list[str]:
    """Return the marks of the significant differences of one run by one measure.

    The mark is + or - for the difference from the baseline. With all pairs, the marks are the letters of the
    runs that are significantly worse, by mean ranks if the test compares them, otherwise by means.
    """
    pairs = [pair for pair in comparison.differences if pair.significant]
    if not compared.choices.all_pairs:
        return ["+" if is_higher(compared, pair) else "-" for pair in pairs if pair.second == place]
    lower = [
        pair.first if pair.second == place else pair.second
        for pair in pairs
        if place == (pair.second if is_higher(compared, pair) else pair.first)
    ]
    return [letters(other) for other in sorted(lower)]


def is_higher(compared: ComparisonReport, pair: Difference) -> bool:
    """Return whether the second run is better.

    Mean ranks decide if the test compares them.
    """
    test = pair.test
    return ((test.statistic if compared.choices.is_rank_test else test.estimate) or 0.0) > 0


def labels_of(compared: ComparisonReport) -> list[str]:
    """Return the name of each run.

    With all pairs, the letter of the run comes before the name.
    """
    if not compared.choices.all_pairs:
        return list(compared.systems)
    return [f"({letters(place)}) {name}" for place, name in enumerate(compared.systems)]


def caption_of(compared: ComparisonReport, correction: str) -> str:
    """Return the caption of a table of means with marks.

    correction: how p-values were corrected, as the end of a sentence.
    """
    choices, topics = compared.choices, len(compared.topics)
    marks = f"+ and -: significantly higher or lower than {compared.systems[0]}"
    if choices.all_pairs:
        marks = "Letters after a mean name the runs whose mean is significantly lower"
    corrected = correction if choices.correction_name in CORRECTED else ""
    logarithms = [item.measure.text for item in compared.measures if item.measure.uses_logarithms]
    note = f" (for {' and '.join(logarithms)}, of logarithms)" if logarithms else ""
    test = f"({TITLES[choices.test_name]}, p <= {choices.alpha:g}{corrected})"
    return f"Means over {topics} topic{'s' * (topics != 1)}{note}. {marks} {test}."
