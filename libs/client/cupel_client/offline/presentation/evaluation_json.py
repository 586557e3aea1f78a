"""The result of `cupel evaluate` as JSON: scores with their story."""

from collections.abc import Mapping, Sequence
from typing import Any

from cupel_client import __version__
from cupel_client.offline.presentation import finding_lines
from cupel_client.offline.presentation.evaluation_report import EvaluationReport
from cupel_client.offline.run_scoring import Scored
from cupel_client.output import write_json
from cupel_measures.catalogue.parser import Measure
from cupel_measures.grammar.scale_types import scale_type, warning
from cupel_measures.model import Aspect
from cupel_measures.reading.qrels_files import qrels_digest
from cupel_measures.scoring.evaluator import SCORING_VERSION
from cupel_measures.scoring.exact import to_text


def print_json(report: EvaluationReport) -> None:
    write_json(
        {
            "cupel": __version__,
            "scoring_version": SCORING_VERSION,
            "profile": report.job.profile,
            "depth": report.job.depth,
            "qrels": _qrels_story(report),
            "measures": [_measure_story(measure, report.collection.aspects) for measure in report.measures],
            "runs": [_run_story(report, name, one) for name, one in report.scored.items()],
            "refused": [_refusal_story(name, one) for name, one in report.refused.items()],
        }
    )


def _qrels_story(report: EvaluationReport) -> dict[str, Any]:
    qrels = report.job.qrels
    return {
        "digest": qrels_digest(qrels),
        "topics": len(qrels.topics),
        "documents": len(qrels.documents),
        "aspects": [
            _aspect_story(aspect) | {"topics_without_relevant": report.without_relevant(index)}
            for index, aspect in enumerate(qrels.aspects)
        ],
        "warnings": _warnings(report.collection.findings.totals),
    }


def _aspect_story(aspect: Aspect) -> dict[str, Any]:
    labels = aspect.labels
    shown = {"range": [labels[0], labels[-1]]} if isinstance(labels, range) else list(labels)
    return {"name": aspect.name, "labels": shown, "scale": "inferred" if aspect.inferred else "declared"}


def _measure_story(measure: Measure, aspects: Sequence[Aspect]) -> dict[str, Any]:
    said = warning(measure, aspects)
    return {
        "measure": str(measure),
        "aggregate": measure.declaration.aggregate,
        "scale": scale_type(measure, aspects),
        "warnings": [] if said is None else [said],
    }


def _run_story(report: EvaluationReport, name: str, one: Scored) -> dict[str, Any]:
    texts = [str(measure) for measure in report.measures]
    story: dict[str, Any] = {
        "run": name,
        "tag": one.tag,
        "digest": one.digest,
        "topics": {"scored": len(report.topics) - one.missing, "missing": one.missing},
        "unjudged_at_10": one.unjudged,
        "warnings": _warnings(one.findings.totals),
        "scores": dict(zip(texts, one.means, strict=True)),
        "exact": {measure: to_text(value) for measure, value in one.exact.items()},
    }
    if report.per_topic:
        story["topic_scores"] = {
            text: dict(zip(report.topics, values.tolist(), strict=True))
            for text, values in zip(texts, one.values or (), strict=True)
        }
    if one.explanations:
        kept = _by_topic if report.per_topic else _over_topics
        story["explanations"] = {
            text: kept(told, report.topics) for text, told in zip(texts, one.explanations, strict=True)
        }
    return story


def _over_topics(told: Any, topics: Sequence[str]) -> Any:
    """What is told, without its lists by topic."""
    if isinstance(told, list):
        return [_over_topics(one, topics) for one in told]
    if not isinstance(told, Mapping):
        return told
    return {name: _over_topics(one, topics) for name, one in told.items() if name != "by_topic"}


def _by_topic(told: Any, topics: Sequence[str]) -> Any:
    """What is told, with topics named wherever there is a list by topic."""
    if isinstance(told, list):
        return [_by_topic(one, topics) for one in told]
    if not isinstance(told, Mapping):
        return told
    return {
        name: _named(one, topics) if name == "by_topic" else _by_topic(one, topics)
        for name, one in told.items()
    }


def _named(values: Any, topics: Sequence[str]) -> Any:
    if isinstance(values, list):
        return dict(zip(topics, values, strict=True))
    return {name: _named(one, topics) for name, one in values.items()} if values else values


def _warnings(totals: Mapping[str, int]) -> dict[str, int]:
    return {code: total for code, total in totals.items() if finding_lines.is_warning(code)}


def _refusal_story(name: str, one: Scored) -> dict[str, Any]:
    errors = [finding_lines.as_data(finding) for finding in one.findings.errors]
    return {"run": name, "errors": errors, "totals": dict(one.findings.totals)}
