"""The work of an audit: runs are looked at, parts of the audit are done, and what is done is kept."""

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
from cupel_client.offline.input_files import unreadable
from cupel_client.offline.parallel import each
from cupel_client.offline.run_scoring import Scored, ScoringTask, strangers
from cupel_measures.findings import Refused
from cupel_measures.model import Qrels, Texts, profiles
from cupel_measures.reading.qrels_blobs import qrels_digest
from cupel_measures.reading.run_files import check_against, join_run, read_run
from cupel_measures.reading.text_files import join_texts
from cupel_measures.scoring.evaluator import SCORING_VERSION

# ---------------------------------------------------------------------------------------------- runs


@dataclass(frozen=True, eq=False)
class Looked(Scored):
    """A run that was read for an audit, or refused: then `seen` and `values` are None.

    `values` is empty otherwise: an audit scores all runs together. Its texts are left to who knows them.
    """

    seen: RunView | None = None


def look_at(
    paths: Sequence[Path], job: ScoringTask, audit: Audit, other: Qrels | None, jobs: int | None
) -> list[Looked | None]:
    """The runs as `audit` needs them, in their order; None for one that was lost with its process."""
    look = partial(_look, job=job, top=audit.ranking_depth(), other=other)
    found = each(look, paths, doing="reading", jobs=jobs)
    return [one and _with_texts(one, job.texts) for one in found]


def _look(path: Path, job: ScoringTask, top: int, other: Qrels | None) -> Looked:
    try:
        if top or job.texts is not None:
            return _look_close(path, job, top, other)
        rules: Any = {"profile": profiles.find(job.profile), "depth": job.depth}
        joined = join_run(path, job.qrels, **rules)
        seen = RunView(joined, other=None if other is None else join_run(path, other, **rules))
    except Refused as refused:
        return Looked(path, refused.findings)
    except OSError as problem:
        return Looked(path, unreadable(problem, path))
    return Looked(path, strangers(joined, path), values=(), missing=_missing(seen), seen=seen)


def _look_close(path: Path, job: ScoringTask, top: int, other: Qrels | None) -> Looked:
    """With documents that are not judged, and with texts, which takes longer."""
    run = read_run(path, depth=job.depth)
    run.findings.extend(check_against(run, job.qrels.topics, file=path.name))
    if run.findings.refused:
        return Looked(path, run.findings)
    rules: Any = {"profile": profiles.find(job.profile), "depth": job.depth}
    content = None if job.texts is None else join_texts(run.ranking, job.qrels, job.texts, **rules)
    bare = content and replace(content, texts=Texts.empty())  # they are not sent from process to process
    seen = view_of(run.ranking, job.qrels, top=top, content=bare, other=other, **rules)
    return Looked(path, run.findings, values=(), missing=_missing(seen), seen=seen)


def _missing(seen: RunView) -> int:
    """Topics of the qrels that the run lacks."""
    return int(np.count_nonzero(seen.joined.retrieved == 0))


def _with_texts(one: Looked, texts: Texts | None) -> Looked:
    if one.seen is None or one.seen.content is None or texts is None:
        return one
    return replace(one, seen=replace(one.seen, content=replace(one.seen.content, texts=texts)))


# ------------------------------------------------------------------------------------ what is asked


def request_of(audit: Audit, subject: AuditSubject, seed: int, runs: Mapping[str, RunView]) -> dict[str, Any]:
    """All that a result depends on, as JSON holds it: equal requests have equal results."""
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
        "texts": content and _digest(_of_texts(content.texts)),
        "runs": {name: _digest(_of_run(seen)) for name, seen in runs.items()},
        "cupel": __version__,
        "scoring_version": SCORING_VERSION,
    }


def _of_run(seen: RunView) -> list[Any]:
    """What an audit sees of a run."""
    found: list[Any] = []
    for joined in filter(None, (seen.joined, seen.other)):
        found += [joined.retrieved, joined.offsets, joined.document, joined.rank, joined.first, joined.last]
    if seen.top is not None:
        found += [seen.top.offsets, seen.top.documents.blob, seen.top.documents.starts, seen.top.scores]
    if seen.content is not None:
        found += [seen.content.offsets, seen.content.document]
    return found


def _of_texts(texts: Texts) -> list[Any]:
    ids = [part for one in (texts.documents, texts.vocabulary) for part in (one.blob, one.starts)]
    return [*ids, texts.offsets, texts.term, texts.count]


def _digest(pieces: Sequence[Any]) -> str:
    """SHA-256 of arrays and bytes, each with its length before it."""
    found = hashlib.sha256()
    for piece in pieces:
        data = memoryview(piece).cast("B") if len(piece) else b""
        found.update(len(data).to_bytes(8, "little"))
        found.update(data)
    return found.hexdigest()


# ------------------------------------------------------------------------------------- what is kept


@dataclass(frozen=True)
class Shelf:
    """A folder that keeps the finished parts of one request, a file each."""

    folder: Path

    def put(self, part: range, found: str) -> None:
        """Keep what a part found; whole or not at all, whatever happens meanwhile."""
        whole = self.folder / f"{part.start:06}.json"
        begun = whole.with_suffix(f".{os.getpid()}")  # another command may be doing the same part
        begun.write_text(found)
        os.replace(begun, whole)

    def trials(self) -> dict[int, Any]:
        """All that finished trials found, by their numbers."""
        found: dict[int, Any] = {}
        for path in sorted(self.folder.glob("[0-9]*.json")):
            with contextlib.suppress(ValueError):  # damaged, by a power cut say: it is done again
                found |= trials_of(path.read_text())
        return found


def trials_of(text: str) -> dict[int, Any]:
    """What a part found, by the number of the trial. ValueError where that is not what `text` holds."""
    return {int(trial): one for trial, one in _object(text).items()}


def _object(text: str) -> dict[str, Any]:
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError("no JSON object")
    return found


def shelf_for(out: Path, request: Mapping[str, Any], *, restart: bool) -> Shelf:
    """The shelf of `out`, a folder that is made; ends the command where it is of another request."""
    folder, label = out / "parts", out / "parts" / "request.json"
    if label.is_file():
        if restart:
            shutil.rmtree(folder)
        else:
            _compare(out, label, request)
    elif out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise click.UsageError(f"{out} is no folder of an audit: name a new one")
    folder.mkdir(parents=True, exist_ok=True)
    label.write_text(json.dumps(request, indent=2))
    return Shelf(folder)


def _compare(out: Path, label: Path, request: Mapping[str, Any]) -> None:
    try:
        kept = _object(label.read_text())
    except ValueError:
        kept = {}
    asked = json.loads(json.dumps(request))
    if other := [name for name in asked if kept.get(name) != asked[name]]:
        raise click.UsageError(
            f"{out} holds another audit (with other {', '.join(other)}): name a new folder, or give "
            "--restart to do away with what is there"
        )


# ---------------------------------------------------------------------------------------------- work


@dataclass(frozen=True, eq=False)
class Worker:
    """Does parts of an audit; processes get it once, at their start."""

    audit: Audit
    subject: AuditSubject
    seed: int
    shelf: Shelf | None

    def __call__(self, part: range) -> str:
        """What the trials of `part` found, as JSON; nothing where it is kept, and so need not be sent."""
        found = dict(run_trials(self.audit, self.subject, self.seed, part))
        text = json.dumps(found, separators=(",", ":"), allow_nan=False)
        if self.shelf is None:
            return text
        self.shelf.put(part, text)
        return "{}"


def work_all(worker: Worker, jobs: int | None) -> dict[int, Any]:
    """What every trial found that is kept or could be done; those are missing that a killed process did."""
    found = worker.shelf.trials() if worker.shelf else {}
    every = parts(worker.audit, worker.subject)
    left = [part for part in every if not all(trial in found for trial in part)]
    if len(left) < len(every):
        click.echo(f"{len(every) - len(left)} of {len(every)} parts are done already", err=True)
    for text in each(worker, left, doing="auditing", jobs=jobs):
        found |= {} if text is None else trials_of(text)
    return worker.shelf.trials() if worker.shelf else found
