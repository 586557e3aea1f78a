"""Comparisons of runs with a margin: choices and outcomes."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cupel_measures.comparing.closeness.margins import MarginOutcome, MarginTest, compare_with_margin
from cupel_measures.comparing.compared_measures import ComparedMeasure
from cupel_measures.comparing.comparison import compared_values
from cupel_measures.comparing.differences.comparison_choices import Pair
from cupel_measures.model import Floats


@dataclass(frozen=True, kw_only=True)
class MarginChoices:
    """Options of comparisons with a margin.

    margins: pairs of a measure and its margin; the measure None means all measures that have no margin of
    their own. test: the one-sided test. bayes: whether to report posterior probabilities.
    """

    margins: tuple[tuple[str | None, float], ...] = ()
    test: MarginTest = "t"
    bayes: bool = False

    def of(self, measure: str) -> float | None:
        """Return the margin of a measure, or the margin for all measures.

        Return None if neither is given.
        """
        margins = dict(self.margins)
        return margins.get(measure, margins.get(None))


@dataclass(frozen=True, eq=False, kw_only=True)
class MarginResult:
    """Outcomes of comparisons with a margin.

    outcomes: an outcome per compared pair, by the text of the measure. bayes: whether to report posterior
    probabilities. logarithms: texts of the measures whose margins apply to logarithms of scores.
    """

    outcomes: Mapping[str, tuple[MarginOutcome, ...]]
    test: MarginTest
    alpha: float
    bayes: bool
    logarithms: tuple[str, ...] = ()

    @property
    def all_outcomes(self) -> list[MarginOutcome]:
        return [outcome for outcomes in self.outcomes.values() for outcome in outcomes]

    def as_data(self) -> dict[str, Any]:
        """Return the method, as JSON-serialisable data."""
        return {
            "test": self.test,
            "alpha": self.alpha,
            "confidence": self.confidence,
            "margins": {text: outcomes[0].margin for text, outcomes in self.outcomes.items()},
        }

    @property
    def confidence(self) -> float:
        """Return the confidence level 1 - 2 alpha.

        At this level, intervals agree with the one-sided tests.
        """
        return round(1 - 2 * self.alpha, 12)


def compare_margins(
    choices: MarginChoices,
    measures: Sequence[ComparedMeasure],
    scores: Mapping[str, Floats],
    pairs: Sequence[Pair],
    *,
    alpha: float,
    seed: int,
) -> MarginResult | None:
    """Compare each pair by each measure that has a margin.

    Return None if no measure has one.
    """
    if not choices.margins:
        return None
    first, second = ([pair[place] for pair in pairs] for place in range(2))
    outcomes = {}
    for measure in measures:
        if (margin := choices.of(measure.text)) is not None:
            values = compared_values(scores[measure.text], measure)
            outcomes[measure.text] = compare_with_margin(
                values[:, second],
                values[:, first],
                margin=margin,
                alpha=alpha,
                test=choices.test,
                seed=seed,
            )
    return MarginResult(
        outcomes=outcomes,
        test=choices.test,
        alpha=alpha,
        bayes=choices.bayes,
        logarithms=tuple(measure.text for measure in measures if measure.uses_logarithms),
    )


def margin_data(result: MarginResult | None, measure: str, pair: int) -> dict[str, Any]:
    """Return the JSON fields of one measure and pair.

    Without margins, there are no fields. If the measure has no margin, all fields are None.
    """
    if result is None:
        return {}
    outcome = result.outcomes[measure][pair] if measure in result.outcomes else None
    tests = None if outcome is None else outcome.tests
    low, high = finite_bounds(outcome)
    data = {
        "margin": None if outcome is None else outcome.margin,
        "margin_verdict": None if outcome is None else outcome.verdict,
        "margin_acceptable": None if outcome is None else outcome.is_acceptable,
        "margin_test": None if outcome is None else outcome.test,
        "margin_low": low,
        "margin_high": high,
        "p_better": None if tests is None else tests.p_better,
        "p_no_worse": None if tests is None else tests.p_no_worse,
        "p_no_better": None if tests is None else tests.p_no_better,
        "p_worse": None if tests is None else tests.p_worse,
        "margin_undefined": None if outcome is None else outcome.undefined,
    }
    return data | (_posterior_data(outcome) if result.bayes else {})


def finite_bounds(outcome: MarginOutcome | None) -> tuple[float | None, float | None]:
    """Return the finite bounds of the interval; without variance, there are none."""
    if outcome is None or outcome.tests is None or outcome.posterior is None:
        return None, None
    low, high = outcome.tests.interval
    return low if math.isfinite(low) else None, high if math.isfinite(high) else None


def _posterior_data(outcome: MarginOutcome | None) -> dict[str, float | None]:
    posterior = None if outcome is None else outcome.posterior
    return {
        f"probability_{name}": None if posterior is None else getattr(posterior, name)
        for name in ("below", "within", "above")
    }
