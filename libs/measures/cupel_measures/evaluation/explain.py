"""Explanations of the scores of one run from any source."""

from collections.abc import Sequence
from typing import Any

from cupel_measures.evaluation.measure_names import MeasureRequest, measures_of
from cupel_measures.evaluation.scoring_plan import plan_scoring
from cupel_measures.explaining.explained_parts import ABOUT
from cupel_measures.explaining.explanations import Explanation
from cupel_measures.explaining.explanations import explain as explain_ranking
from cupel_measures.inputs.judgment_sources import qrels as read_qrels
from cupel_measures.inputs.run_sources import runs as read_runs


def explain(
    qrels: Any,
    run: Any,
    measures: MeasureRequest = (),
    *,
    about: Sequence[str] = tuple(ABOUT),
    profile: str | None = None,
    depth: int | None = None,
) -> dict[str, Explanation]:
    """Explain the scores of one run.

    qrels, run: any source that the functions `qrels` and `runs` take. The other parameters are those of
    `evaluate`. about: the parts to explain: ties, judgments, scale, parts, profiles. Return the explanation
    by the text of the measure; `as_data()` of an explanation returns its numbers.

    Raise ValueError for several runs or an unknown part, and Refused and MeasureError as `evaluate` does.
    """
    collection = read_qrels(qrels, profile=profile)
    task = plan_scoring(collection, measures_of(measures), depth=depth)
    sources = list(read_runs(run).values())
    if len(sources) != 1:
        raise ValueError(f"explain takes one run, got {len(sources)}; select one of them")
    ranking = sources[0].read(depth).ranking
    explanations = explain_ranking(
        collection.qrels, ranking, task.parsed, profile=collection.profile, depth=depth, about=about
    )
    return {str(measure): explanation for measure, explanation in explanations.items()}
