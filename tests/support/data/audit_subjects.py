"""Audit subjects from small collections, and functions that run audits on them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from cupel_audits import read_audit
from cupel_audits.declarations import check_audit
from cupel_audits.execution import result, run_trials
from cupel_audits.report import AuditReport
from cupel_audits.subject import AuditSubject
from cupel_audits.subject_files import NamedQrels, assemble_subject, view_of
from cupel_measures.catalogue.parser import parse_many
from cupel_measures.model import Qrels, Texts
from support.data.small_collections import Scored, content_of, qrels_of, ranked, ranking_of

SEED = 7


def subject_of(
    qrels: Qrels,
    runs: Mapping[str, Scored],
    measures: str,
    *,
    teams: Sequence[str] | None = None,
    top: int = 0,
    other: Qrels | None = None,
    texts: Texts | None = None,
) -> AuditSubject:
    """Return the subject of an audit: named runs under `qrels`, and under `other` if given."""
    content = {name: None if texts is None else content_of(run, qrels, texts) for name, run in runs.items()}
    views = [
        (name, view_of(ranking_of(run), qrels, top=top, content=content[name], other=other))
        for name, run in runs.items()
    ]
    other_qrels = None if other is None else NamedQrels("other", other)
    return assemble_subject(
        NamedQrels("qrels", qrels), views, parse_many(measures), teams=teams, top=top, other=other_qrels
    )


def board(
    runs: int = 6, topics: int = 5, documents: int = 80, judged: int = 60, seed: int = 1
) -> tuple[Qrels, dict[str, Scored]]:
    """Return random judgments of grades 0 to 2, and runs whose quality decreases with their number."""
    rng = np.random.default_rng(seed)
    names = [f"d{number:03}" for number in range(documents)]
    grades = {f"{topic}": _grades(rng, names[:judged]) for topic in range(topics)}
    noise = np.linspace(0.4, 3, runs)
    return qrels_of(grades), {
        f"run{run}": {
            topic: {name: labels.get(name, 0) + noise[run] * rng.standard_normal() for name in names}
            for topic, labels in grades.items()
        }
        for run in range(runs)
    }


def _grades(rng: np.random.Generator, names: Sequence[str]) -> dict[str, int]:
    return dict(zip(names, rng.choice(3, len(names), p=[0.75, 0.15, 0.1]).tolist(), strict=True))


def lists(rankings: Mapping[str, Mapping[str, Sequence[str]]]) -> dict[str, Scored]:
    """Return runs from their ranked documents by run and topic, best first."""
    return {
        run: {topic: ranked(*ids) for topic, ids in lists_by_topic.items()}
        for run, lists_by_topic in rankings.items()
    }


def trials_of(
    kind: str,
    subject: AuditSubject,
    parameters: Mapping[str, Any] | None = None,
    *,
    seed: int = SEED,
    only: Iterable[int] | None = None,
) -> dict[int, Any]:
    """Return the results of trials after a round trip through JSON.

    only: the numbers of the trials (default: all).
    """
    audit = read_audit(kind, parameters)
    check_audit(audit, subject)
    chosen = list(range(audit.trials(subject)) if only is None else only)
    return {
        number: json.loads(json.dumps(trial)) for number, trial in run_trials(audit, subject, seed, chosen)
    }


def audited(kind: str, subject: AuditSubject, parameters: Mapping[str, Any] | None = None) -> AuditReport:
    """Return the report on all trials."""
    report = reported(kind, subject, parameters, trials_of(kind, subject, parameters))
    assert AuditReport.of(json.loads(json.dumps(report.as_data()))) == report
    return report


def reported(
    kind: str, subject: AuditSubject, parameters: Mapping[str, Any] | None, results: Mapping[int, Any]
) -> AuditReport:
    """Return the report on these results by trial."""
    audit = read_audit(kind, parameters)
    report = result(audit, subject.about, SEED, audit.trials(subject), results).report
    assert report is not None
    return report


def problems(kind: str, subject: AuditSubject, parameters: Mapping[str, Any] | None = None) -> list[str]:
    """Return the reasons why the audit cannot run."""
    return list(read_audit(kind, parameters).problems(subject))
