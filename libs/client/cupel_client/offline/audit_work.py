"""Execution of an audit.

It reads the runs, computes the parts and saves finished parts.
"""

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

from cupel_audits import Audit
from cupel_audits.execution import parts, run_trials
from cupel_audits.subject import AuditSubject
from cupel_audits.subject_files import RunView, view_of
from cupel_client import __version__
from cupel_client.offline.parallel import map_in_parallel
from cupel_measures.evaluation.run_scoring import Scored, ScoringTask, unknown_topics
from cupel_measures.findings import Refused
from cupel_measures.inputs.run_inputs import FileRun
from cupel_measures.model import Qrels, Texts, profiles
from cupel_measures.reading.qrels_blobs import qrels_digest
from cupel_measures.reading.run_files import check_against
from cupel_measures.reading.text_files import join_texts
from cupel_measures.scoring.evaluator import SCORING_VERSION


@dataclass(frozen=True, eq=False, kw_only=True)
class AuditedRun(Scored):
    """A run that was read for an audit.

    view: the run joined with the judgments; None if the run is refused. values: None if the run is refused,
    otherwise empty, because an audit scores all runs together.
    """

    view: RunView | None = None


def read_runs(
    paths: Sequence[Path], job: ScoringTask, audit: Audit, other: Qrels | None, jobs: int | None
) -> list[AuditedRun | None]:
    """Read the runs in the form that `audit` needs.

    A run is None if its process was killed.
    """
    read = partial(_read_one, job=job, top=audit.ranking_depth(), other=other)
    runs = map_in_parallel(read, paths, doing="reading", jobs=jobs)
    return [run and _with_texts(run, job.texts) for run in runs]


def _read_one(path: Path, job: ScoringTask, top: int, other: Qrels | None) -> AuditedRun:
    try:
        if top or job.texts is not None:
            return _read_with_rankings(path, job, top, other)
        rules: Any = {"profile": profiles.find(job.profile), "depth": job.depth}
        run = FileRun(path)
        joined = run.join(job.qrels, **rules)
        view = RunView(joined, other=None if other is None else run.join(other, **rules))
    except Refused as refused:
        return AuditedRun(source=path.name, findings=refused.findings)
    return AuditedRun(
        source=path.name,
        findings=unknown_topics(joined, path.name),
        values=(),
        missing=_missing(view),
        view=view,
    )


def _read_with_rankings(path: Path, job: ScoringTask, top: int, other: Qrels | None) -> AuditedRun:
    """Read a run line by line, for audits that need unjudged documents or texts."""
    run = FileRun(path).read(job.depth)
    run.findings.extend(check_against(run, job.qrels.listed_topics, file=path.name))
    if run.findings.refused:
        return AuditedRun(source=path.name, findings=run.findings)
    rules: Any = {"profile": profiles.find(job.profile), "depth": job.depth}
    content = None if job.texts is None else join_texts(run.ranking, job.qrels, job.texts, **rules)
    bare = content and replace(content, texts=Texts.empty())  # texts are not sent between processes
    view = view_of(run.ranking, job.qrels, top=top, content=bare, other=other, **rules)
    return AuditedRun(source=path.name, findings=run.findings, values=(), missing=_missing(view), view=view)


def _missing(view: RunView) -> int:
    """Return the number of topics of the qrels that the run lacks."""
    return int(np.count_nonzero(view.joined.retrieved == 0))


def _with_texts(run: AuditedRun, texts: Texts | None) -> AuditedRun:
    if run.view is None or run.view.content is None or texts is None:
        return run
    return replace(run, view=replace(run.view, content=replace(run.view.content, texts=texts)))


def request_of(audit: Audit, subject: AuditSubject, seed: int, runs: Mapping[str, RunView]) -> dict[str, Any]:
    """Return everything that a result depends on, as JSON data.

    Equal requests have equal results.
    """
    about, content = subject.about, subject.content
    return {
        "kind": audit.name,
        "parameters": audit.values,
        "seed": seed,
        "measures": list(about.measures),
        "profile": about.profile,
        "depth": about.depth,
        "teams": about.teams and list(about.teams),
        "qrels": qrels_digest(subject.qrels),
        "other": subject.other_subject and qrels_digest(subject.other_subject.qrels),
        "names": [about.qrels, about.other],
        "texts": content and _digest(_text_arrays(content.texts)),
        "runs": {name: _digest(_run_arrays(view)) for name, view in runs.items()},
        # None if every topic is judged, so that the request equals one of a release without this field
        "unjudged_topics": list(subject.qrels.unjudged_topics) or None,
        "cupel": __version__,
        "scoring_version": SCORING_VERSION,
    }


def _run_arrays(view: RunView) -> list[Any]:
    """Return the arrays of a run that an audit uses."""
    arrays: list[Any] = []
    for joined in filter(None, (view.joined, view.other)):
        arrays += [joined.retrieved, joined.offsets, joined.document, joined.rank, joined.first, joined.last]
    if view.top is not None:
        arrays += [view.top.offsets, view.top.documents.blob, view.top.documents.starts, view.top.scores]
    if view.content is not None:
        arrays += [view.content.offsets, view.content.document]
    return arrays


def _text_arrays(texts: Texts) -> list[Any]:
    ids = [part for ids_ in (texts.documents, texts.vocabulary) for part in (ids_.blob, ids_.starts)]
    return [*ids, texts.offsets, texts.term, texts.count]


def _digest(pieces: Sequence[Any]) -> str:
    """Return the SHA-256 of arrays and bytes, each preceded by its length."""
    digest = hashlib.sha256()
    for piece in pieces:
        data = memoryview(piece).cast("B") if len(piece) else b""
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


@dataclass(frozen=True)
class SavedParts:
    """A folder with the finished parts of one request, one file per part."""

    folder: Path

    def save(self, part: range, results: str) -> None:
        """Save the results of a part atomically."""
        final = self.folder / f"{part.start:06}.json"
        temporary = final.with_suffix(f".{os.getpid()}")  # another command may save the same part
        temporary.write_text(results)
        os.replace(temporary, final)

    def trials(self) -> dict[int, Any]:
        """Return the results of all saved trials, by number."""
        results: dict[int, Any] = {}
        for path in sorted(self.folder.glob("[0-9]*.json")):
            with contextlib.suppress(ValueError):  # damaged, for example by a power cut: run it again
                results |= parse_trials(path.read_text())
        return results


def parse_trials(text: str) -> dict[int, Any]:
    """Return the results of a part by trial number.

    Raise ValueError if `text` is invalid.
    """
    return {int(trial): result for trial, result in _object(text).items()}


def _object(text: str) -> dict[str, Any]:
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    return value


def open_saved_parts(out: Path, request: Mapping[str, Any], *, restart: bool) -> SavedParts:
    """Open or create the saved parts in `out`.

    Raise click.UsageError if they belong to another request.
    """
    folder, label = out / "parts", out / "parts" / "request.json"
    if label.is_file():
        if restart:
            shutil.rmtree(folder)
        else:
            _compare(out, label, request)
    elif out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise click.UsageError(f"{out} is not the folder of an audit; name a new folder")
    folder.mkdir(parents=True, exist_ok=True)
    label.write_text(json.dumps(request, indent=2))
    return SavedParts(folder)


def _compare(out: Path, label: Path, request: Mapping[str, Any]) -> None:
    try:
        saved = _object(label.read_text())
    except ValueError:
        saved = {}
    requested = json.loads(json.dumps(request))
    if other := [name for name in requested if saved.get(name) != requested[name]]:
        raise click.UsageError(
            f"{out} contains another audit, which differs in {', '.join(other)}; "
            "name a new folder, or delete its progress with --restart"
        )


@dataclass(frozen=True, eq=False)
class Worker:
    """Callable that runs parts of an audit; it is sent to each process once."""

    audit: Audit
    subject: AuditSubject
    seed: int
    saved: SavedParts | None

    def __call__(self, part: range) -> str:
        """Run the trials of `part`.

        Return their results as JSON, or "{}" after saving them.
        """
        results = dict(run_trials(self.audit, self.subject, self.seed, part))
        text = json.dumps(results, separators=(",", ":"), allow_nan=False)
        if self.saved is None:
            return text
        self.saved.save(part, text)
        return "{}"


def work_all(worker: Worker, jobs: int | None) -> dict[int, Any]:
    """Run the trials that are not saved.

    Return the results of all trials by number.

    The results of a process that was killed are missing.
    """
    results = worker.saved.trials() if worker.saved else {}
    all_parts = parts(worker.audit, worker.subject)
    left = [part for part in all_parts if not all(trial in results for trial in part)]
    if len(left) < len(all_parts):
        click.echo(f"{len(all_parts) - len(left)} of {len(all_parts)} parts are already done", err=True)
    for text in map_in_parallel(worker, left, doing="auditing", jobs=jobs):
        results |= {} if text is None else parse_trials(text)
    return worker.saved.trials() if worker.saved else results
