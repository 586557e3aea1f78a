"""Evaluation of runs from any source."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from cupel_measures.evaluation.evaluation_report import EvaluationReport
from cupel_measures.evaluation.measure_names import MeasureRequest, measures_of
from cupel_measures.evaluation.run_scoring import score
from cupel_measures.evaluation.scoring_plan import plan_scoring
from cupel_measures.findings import Findings, Refused
from cupel_measures.inputs.judgment_sources import qrels as read_qrels
from cupel_measures.inputs.run_sources import runs as read_runs


def evaluate(
    qrels: Any,
    runs: Any,
    measures: MeasureRequest = (),
    *,
    profile: str | None = None,
    depth: int | None = None,
    average_over: Literal["judged", "run"] = "judged",
) -> EvaluationReport:
    """Score runs against judgments.

    qrels, runs: any source that the functions `qrels` and `runs` take. measures: text such as "nDCG@10 AP",
    measures, or a list of them (default: those of the collection, or a default set). profile: name of the
    conventions for ties and parsing (default: those of the collection, or cupel). depth: cut rankings at this
    many documents. average_over: the topics in the means: all judged topics, as trec_eval -c, or only those
    of the run, as trec_eval without -c. A topic that is missing from a run scores as an empty ranking.

    Raise Refused, with all findings, if the judgments or a run are invalid, and MeasureError if a measure is
    unknown or cannot be computed from the judgments.
    """
    collection = read_qrels(qrels, profile=profile)
    task = plan_scoring(collection, measures_of(measures), depth=depth)
    task = replace(task, over_run=average_over == "run", exact=1)
    sources = read_runs(runs)
    scored = {name: score(run, task) for name, run in sources.items()}
    name = Path(qrels).name if isinstance(qrels, str | Path) else "judgments"
    report = EvaluationReport(collection=collection, job=task, runs=scored, sources=sources, name=name)
    if report.refused:
        findings = Findings()
        for run in report.refused.values():
            findings.extend(run.findings)
        raise Refused(findings)
    return report
