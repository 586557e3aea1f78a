"""JSON output of scores, with the judgments, measures and findings they depend on."""

from collections.abc import Mapping, Sequence
from typing import Any

from cupel_client import __version__
from cupel_client.offline.presentation import finding_lines
from cupel_client.output import write_json
from cupel_measures.catalogue.parser import Measure
from cupel_measures.evaluation.evaluation_report import EvaluationReport
from cupel_measures.evaluation.run_scoring import Scored
from cupel_measures.grammar.scale_types import scale_type, warning
from cupel_measures.model import Aspect
from cupel_measures.reading.qrels_files import qrels_digest
from cupel_measures.scoring.evaluator import SCORING_VERSION
from cupel_measures.scoring.exact import to_text


def print_json(report: EvaluationReport) -> None:
    """Print the whole report as one JSON object."""
    write_json(
        {
            "cupel": __version__,
            "scoring_version": SCORING_VERSION,
            "profile": report.job.profile,
            "depth": report.job.depth,
            "average_over": "run" if report.job.over_run else "judged",
            "qrels": _qrels_data(report),
            "measures": [_measure_data(measure, report.collection.aspects) for measure in report.measures],
            "runs": [_run_data(report, name, run) for name, run in report.scored.items()],
            "refused": [_refusal_data(name, run) for name, run in report.refused.items()],
        }
    )


def _qrels_data(report: EvaluationReport) -> dict[str, Any]:
    qrels = report.job.qrels
    return {
        "digest": qrels_digest(qrels),
        "topics": len(qrels.topics),
        "unjudged_topics": list(qrels.unjudged_topics),
        "documents": len(qrels.documents),
        "aspects": [
            _aspect_data(aspect) | {"topics_without_relevant": report.without_relevant(index)}
            for index, aspect in enumerate(qrels.aspects)
        ],
        "warnings": _warnings(report.collection.findings.totals),
    }


def _aspect_data(aspect: Aspect) -> dict[str, Any]:
    labels = aspect.labels
    shown = {"range": [labels[0], labels[-1]]} if isinstance(labels, range) else list(labels)
    return {"name": aspect.name, "labels": shown, "scale": "inferred" if aspect.inferred else "declared"}


def _measure_data(measure: Measure, aspects: Sequence[Aspect]) -> dict[str, Any]:
    text = warning(measure, aspects)
    return {
        "measure": str(measure),
        "aggregate": measure.declaration.aggregate,
        "scale": scale_type(measure, aspects),
        "warnings": [] if text is None else [text],
    }


def _run_data(report: EvaluationReport, name: str, run: Scored) -> dict[str, Any]:
    texts = [str(measure) for measure in report.measures]
    data: dict[str, Any] = {
        "run": name,
        "tag": run.tag,
        "digest": run.digest,
        "topics": {"scored": len(report.topics) - run.missing, "missing": run.missing},
        "unjudged_at_10": run.unjudged,
        "warnings": _warnings(run.findings.totals),
        "scores": dict(zip(texts, run.means, strict=True)),
        "exact": {measure: to_text(value) for measure, value in run.exact.items()},
    }
    if report.shows_topics:
        data["topic_scores"] = {
            text: report.by_topic(run, values) for text, values in zip(texts, run.values or (), strict=True)
        }
    if run.explanations:
        convert = _with_topic_names if report.shows_topics else _without_topics
        data["explanations"] = {
            text: convert(explanation, report.topics)
            for text, explanation in zip(texts, run.explanations, strict=True)
        }
    return data


def _without_topics(data: Any, topics: Sequence[str]) -> Any:
    """Return an explanation without its lists by topic."""
    if isinstance(data, list):
        return [_without_topics(item, topics) for item in data]
    if not isinstance(data, Mapping):
        return data
    return {name: _without_topics(value, topics) for name, value in data.items() if name != "by_topic"}


def _with_topic_names(data: Any, topics: Sequence[str]) -> Any:
    """Return an explanation whose lists by topic are mappings from topic to value."""
    if isinstance(data, list):
        return [_with_topic_names(item, topics) for item in data]
    if not isinstance(data, Mapping):
        return data
    return {
        name: _name_topics(value, topics) if name == "by_topic" else _with_topic_names(value, topics)
        for name, value in data.items()
    }


def _name_topics(values: Any, topics: Sequence[str]) -> Any:
    if isinstance(values, list):
        return dict(zip(topics, values, strict=True))
    return {name: _name_topics(item, topics) for name, item in values.items()} if values else values


def _warnings(totals: Mapping[str, int]) -> dict[str, int]:
    return {code: total for code, total in totals.items() if finding_lines.is_warning(code)}


def _refusal_data(name: str, run: Scored) -> dict[str, Any]:
    errors = [finding_lines.as_data(finding) for finding in run.findings.errors]
    return {"run": name, "errors": errors, "totals": dict(run.findings.totals)}
