"""The result of `cupel evaluate` in every format."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import click
import numpy as np

from cupel_client import __version__
from cupel_client.offline import verdicts
from cupel_client.offline.scoring import Job, Scored
from cupel_client.offline.tables import show_blocks
from cupel_client.output import write_csv, write_json, write_jsonl
from cupel_measures.diversity import OVER_GREEDY, above_ideal
from cupel_measures.evaluating import SCORING_VERSION
from cupel_measures.exact import to_text
from cupel_measures.grammar import Measure
from cupel_measures.model import Aspect
from cupel_measures.reading.collections import Collection
from cupel_measures.reading.qrels import qrels_digest
from cupel_measures.scale_types import scale_type
from cupel_measures.trec_names import trec_name

ALL = "all"
ONLY_OVER_ALL = ("NumQ", "GMAP", "GMBpref")
"""Measures that trec_eval prints for all topics only."""


@dataclass(frozen=True, eq=False)
class Report:
    """Runs by name, as scored or refused by `job`."""

    collection: Collection
    job: Job
    runs: Mapping[str, Scored]
    per_topic: bool
    official: bool = False
    """Whether trec_eval's `official` was asked for, which names the run."""

    @cached_property
    def scored(self) -> dict[str, Scored]:
        return {name: one for name, one in self.runs.items() if one.values is not None}

    @cached_property
    def refused(self) -> dict[str, Scored]:
        return {name: one for name, one in self.runs.items() if one.values is None}

    @property
    def measures(self) -> tuple[Measure, ...]:
        return self.job.parsed

    @property
    def topics(self) -> tuple[str, ...]:
        return self.job.qrels.topics

    def best_first(self) -> list[tuple[int, str, Scored]]:
        """(rank, name, run) by the first measure, exactly where that is known; equal scores share a rank."""
        first = self.measures[0]
        exact = all(first in one.exact for one in self.scored.values())
        scores = {name: one.exact[first] if exact else one.means[0] for name, one in self.scored.items()}
        order = sorted(self.scored, key=lambda name: (-scores[name], name))
        ranked = [scores[name] for name in order]
        return [(ranked.index(scores[name]) + 1, name, self.scored[name]) for name in order]

    def without_relevant(self, aspect: int = 0) -> int:
        """How many topics have no relevant document for an aspect."""
        qrels = self.job.qrels
        relevant = qrels.topic_of[qrels.labels[aspect] >= qrels.aspects[aspect].threshold]
        return len(qrels.topics) - len(np.unique(relevant))

    def remarks(self) -> Iterator[str]:
        """What readers of the scores should know."""
        lacking = [one.missing for one in self.scored.values() if one.missing]
        if lacking:
            runs = f"{len(lacking)} run{'s' * (len(lacking) != 1)}"
            most = f"up to {max(lacking)} of {len(self.topics)}"
            yield f"{runs} without topics of the qrels ({most}), which count as empty rankings."
        inferred = [aspect.name for aspect in self.collection.aspects if aspect.inferred]
        scaled = [str(measure) for measure in self.measures if _depends_on_scale(measure)]
        if inferred and scaled:
            aspects = ", ".join(inferred)
            yield f"{', '.join(scaled)}: values depend on the scale, which is inferred for {aspects}."
        for measure, number in self._above_ideal().items():
            values = f"{number} value{'s' * (number != 1)} above 1"
            yield f"{measure}: {values}, as the greedy ideal is not always the best; cap=True makes them 1."

    def _above_ideal(self) -> dict[Measure, int]:
        """How many values are above their greedy ideal's, by measure, where there are any."""
        found = Counter(
            {
                measure: sum(
                    int(above_ideal(one.values[place]).sum()) for one in self.scored.values() if one.values
                )
                for place, measure in enumerate(self.measures)
                if measure.declaration.bounds == OVER_GREEDY
            }
        )
        return dict(+found)


def _depends_on_scale(measure: Measure) -> bool:
    """Whether labels that nobody was given may change the measure's value."""
    arguments = measure.arguments
    inner = arguments.get("of")
    by_scale = measure.declaration.by_scale or arguments.get("max_gain") == "scale"
    return by_scale or (inner is not None and _depends_on_scale(inner))


def _long(report: Report) -> Iterator[dict[str, Any]]:
    """The long form: a row per run, measure and topic, the value over all topics last."""
    for name, one in report.scored.items():
        for measure, values, mean in zip(report.measures, one.values or (), one.means, strict=True):
            if report.per_topic:
                for topic, value in zip(report.topics, values.tolist(), strict=True):
                    yield {"run": name, "measure": str(measure), "topic": topic, "value": value}
            yield {"run": name, "measure": str(measure), "topic": ALL, "value": mean}


def _print_jsonl(report: Report) -> None:
    write_jsonl(_long(report))


def _print_csv(report: Report) -> None:
    write_csv(("run", "measure", "topic", "value"), _long(report))


def _print_json(report: Report) -> None:
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


def _qrels_story(report: Report) -> dict[str, Any]:
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
    declaration = measure.declaration
    return {
        "measure": str(measure),
        "aggregate": declaration.aggregate,
        "scale": scale_type(measure, aspects),
    }


def _run_story(report: Report, name: str, one: Scored) -> dict[str, Any]:
    texts = [str(measure) for measure in report.measures]
    story: dict[str, Any] = {
        "run": name,
        "tag": one.tag,
        "digest": one.digest,
        "topics": {"scored": len(report.topics) - one.missing, "missing": one.missing},
        "unjudged_at_10": one.unjudged,
        "warnings": _warnings(one.findings.totals),
        "scores": dict(zip(texts, one.means, strict=True)),
        "exact": {str(measure): to_text(value) for measure, value in one.exact.items()},
    }
    if report.per_topic:
        story["topic_scores"] = {
            text: dict(zip(report.topics, values.tolist(), strict=True))
            for text, values in zip(texts, one.values or (), strict=True)
        }
    return story


def _warnings(totals: Mapping[str, int]) -> dict[str, int]:
    return {code: total for code, total in totals.items() if verdicts.is_warning(code)}


def _refusal_story(name: str, one: Scored) -> dict[str, Any]:
    errors = [verdicts.as_data(finding) for finding in one.findings.errors]
    return {"run": name, "errors": errors, "totals": dict(one.findings.totals)}


def _print_trec_eval(report: Report) -> None:
    """`%-22s\t%s\t%6.4f` a line, as trec_eval -q: topics, then all; counts as integers."""
    named = [(measure, trec_name(str(measure))) for measure in report.measures]
    for one in report.scored.values():
        rows = list(zip(named, one.values or (), one.means, strict=True))
        if report.per_topic:
            for index, topic in enumerate(report.topics):
                for (measure, name), values, _ in rows:
                    if measure.declaration.name not in ONLY_OVER_ALL:
                        click.echo(_trec_line(measure, name, topic, float(values[index])))
        if len(report.scored) > 1 or report.official:
            click.echo(f"{'runid':<22}\t{ALL}\t{_first_word(one.tag)}")
        for (measure, name), _, mean in rows:
            click.echo(_trec_line(measure, name, ALL, mean))


def _first_word(tag: str | None) -> str:
    """Of the tag: trec_eval ends it at a blank."""
    return next(iter((tag or "").split()), "")


def _trec_line(measure: Measure, name: str, topic: str, value: float) -> str:
    shown = f"{value:.0f}" if measure.declaration.scale == "count" else f"{value:6.4f}"
    return f"{name:<22}\t{topic}\t{shown}"


def _print_table(report: Report) -> None:
    if report.per_topic:
        _print_topics(report)
    if not report.per_topic or len(report.scored) > 1:
        _print_board(report)


def _print_board(report: Report) -> None:
    """Runs by the first measure, best first."""
    if not report.scored:
        return
    keys = [[str(rank), name] for rank, name, _ in report.best_first()]
    columns = [
        (_heading(measure), [_shown(measure, one.means[i]) for _, _, one in report.best_first()])
        for i, measure in enumerate(report.measures)
    ]
    show_blocks(["", "run"], keys, columns, caption=_caption(report))


def _print_topics(report: Report) -> None:
    """One run: a column per measure. Several: a table per measure with a column per run."""
    keys = [[topic] for topic in (*report.topics, ALL)]
    if len(report.scored) == 1:
        ((name, one),) = report.scored.items()
        columns = [
            (_heading(measure), [_shown(measure, value) for value in (*values.tolist(), mean)])
            for measure, values, mean in zip(report.measures, one.values or (), one.means, strict=True)
        ]
        show_blocks(["topic"], keys, columns, title=name, caption=_caption(report), last_apart=True)
        return
    for i, measure in enumerate(report.measures):
        columns = [
            (name, [_shown(measure, value) for value in (*(one.values or ())[i].tolist(), one.means[i])])
            for name, one in report.scored.items()
        ]
        show_blocks(["topic"], keys, columns, title=str(measure), last_apart=True)


def _shown(measure: Measure, value: float) -> str:
    return f"{value:,.0f}" if measure.declaration.scale == "count" else f"{value:.4f}"


def _heading(measure: Measure) -> str:
    """A measure's text; a long one is broken before its brackets, between parameters, and before @."""
    text = str(measure)
    if len(text) <= 16:
        return text
    head, bracket, rest = text.partition("(")
    inside, closing, after = rest.rpartition(")")
    lines, depth = [bracket], 0
    for character in inside:
        depth += (character in "([{") - (character in ")]}")
        lines[-1] += character
        if character == "," and not depth:
            lines.append("")
    lines[-1] += closing
    return "\n".join([head, *lines, *([after] if after else [])])


def _caption(report: Report) -> str:
    inferred = [aspect.name for aspect in report.collection.aspects if aspect.inferred]
    scale = f", scale of {', '.join(inferred)} inferred" if inferred else ""
    return f"{len(report.topics)} topics, profile {report.job.profile}{scale}"


PRINTERS: dict[str, Callable[[Report], None]] = {
    "table": _print_table,
    "json": _print_json,
    "jsonl": _print_jsonl,
    "csv": _print_csv,
    "trec_eval": _print_trec_eval,
}
