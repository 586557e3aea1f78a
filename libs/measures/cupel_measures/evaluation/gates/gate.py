"""Gates from any source: a run passes or fails against a baseline."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cupel_measures.catalogue.parser import parse
from cupel_measures.comparing.closeness.margins import MarginTest
from cupel_measures.evaluation.gates.gate_decision import decide
from cupel_measures.evaluation.gates.gate_files import PlannedGate, read_gates
from cupel_measures.evaluation.gates.gate_reports import GateReport
from cupel_measures.evaluation.gates.gate_rules import MAX_UNJUDGED, MIN_TOPICS, GateRule
from cupel_measures.evaluation.gates.gate_runs import GatedRuns
from cupel_measures.evaluation.gates.gated_scores import GatedScores
from cupel_measures.evaluation.measure_names import MeasureRequest, measures_of
from cupel_measures.evaluation.scoring_plan import plan_scoring
from cupel_measures.findings import Refused
from cupel_measures.grammar.syntax import MeasureError
from cupel_measures.inputs.judgment_sources import qrels as read_qrels
from cupel_measures.inputs.run_inputs import RunInput
from cupel_measures.inputs.run_sources import Runs
from cupel_measures.inputs.run_sources import runs as read_runs
from cupel_measures.model.profiles import find


def gate(
    qrels: Any,
    baseline: Any,
    run: Any,
    measures: MeasureRequest,
    *,
    max_drop: float,
    alpha: float = 0.05,
    test: MarginTest = "t",
    min_topics: int = MIN_TOPICS,
    max_unjudged: float = MAX_UNJUDGED,
    profile: str | None = None,
    depth: int | None = None,
) -> GateReport:
    """Test whether a run is worse than a baseline.

    qrels, baseline, run: any source that the functions `qrels` and `runs` take. measures: each one is a gate.
    max_drop: the smallest loss of the mean that must be ruled out, in the unit of the measure. The one-sided
    tests are made at level `alpha`; test: "t" or "sign-flip". min_topics: with fewer topics, the verdict is
    "undecided". max_unjudged: if more than this share of the first ten documents of one run is unjudged and
    not among the first ten of the other, the verdict must hold for the lowest and the highest labels of these
    documents, or it is "undecided". profile, depth: as in `evaluate`.

    Raise Refused if a file is invalid, MeasureError if a measure is unknown or cannot be computed from the
    judgments, and ValueError if a number is out of range.
    """
    collection = read_qrels(qrels, profile=profile)
    [(baseline_name, baseline_run)] = _single(baseline, "baseline").items()
    [(run_name, run_input)] = _single(run, "run").items()
    other_name = baseline_name if baseline_name != run_name else f"{baseline_name} (baseline)"
    planned = [
        PlannedGate(
            collection=collection,
            baseline=baseline_run,
            baseline_name=other_name,
            rule=GateRule(
                measure=str(measure),
                max_drop=max_drop,
                alpha=alpha,
                test=test,
                min_topics=min_topics,
                max_unjudged=max_unjudged,
            ),
        )
        for measure in measures_of(measures)
    ]
    if not planned:
        raise MeasureError("a gate needs a measure, such as nDCG@10")
    return judge(planned, run_input, depth=depth, name=run_name)


def gates(file: str | Path, run: Any, *, profile: str | None = None, depth: int | None = None) -> GateReport:
    """Apply all gates of a file to a run.

    file: path of a file of gates, such as cupel-gates.yaml. run, profile, depth: as in `gate`. Raise Refused,
    with all errors, if the file of gates, a file that it names, or the run is invalid.
    """
    planned = read_gates(file)
    if profile is not None:
        rules = find(profile)
        planned = tuple(replace(item, collection=replace(item.collection, profile=rules)) for item in planned)
    [(run_name, run_input)] = _single(run, "run").items()
    return judge(planned, run_input, depth=depth, name=run_name)


def judge(planned: Sequence[PlannedGate], run: RunInput, *, depth: int | None, name: str) -> GateReport:
    """Apply gates to a run with this name.

    Raise Refused, with all errors, if the run or a baseline is invalid.
    """
    reader = GatedRuns(depth)
    reader.read(run, name)
    for item in planned:
        reader.read(item.baseline, item.baseline_name)
        reader.check(run, item.collection, is_baseline=False)
        reader.check(item.baseline, item.collection, is_baseline=True)
    if reader.errors.refused:
        raise Refused(reader.errors)
    scores: dict[tuple[int, int], GatedScores] = {}
    outcomes = []
    for item in planned:
        key = (id(item.collection), id(item.baseline))
        if key not in scores:
            measures = [
                parse(other.rule.measure)
                for other in planned
                if (id(other.collection), id(other.baseline)) == key
            ]
            task = plan_scoring(item.collection, tuple(dict.fromkeys(measures)), depth=depth)
            scores[key] = GatedScores(task, (reader.ranking(run), reader.ranking(item.baseline)))
        outcomes.append(decide(scores[key], parse(item.rule.measure), item.rule))
    return GateReport(
        run=name,
        baselines=tuple(item.baseline_name for item in planned),
        outcomes=tuple(outcomes),
        findings=reader.warnings,
    )


def _single(source: Any, role: str) -> Runs:
    """Return a single run with its name. Raise ValueError if there are several."""
    found = read_runs(source, name=role)
    if len(found) != 1:
        raise ValueError(f"expected one {role}, got {len(found)} runs; give one path or one table")
    return found
