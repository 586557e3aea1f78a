"""Tracks: shared tasks with their aspects, planned measures and leaderboards.

A team owns each track.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import lru_cache
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection, Row, select, update

from cupel_backend.access import CONTROL_CHARACTERS, NAME, Principal
from cupel_backend.infrastructure.database import ListPage, fetch_page, insert_new, reading, writing
from cupel_backend.infrastructure.errors import (
    collect_findings,
    refusal,
)
from cupel_backend.infrastructure.object_store import Blobs
from cupel_backend.infrastructure.system import System
from cupel_backend.infrastructure.tables import bump_revision, tracks
from cupel_backend.infrastructure.tables import qrels as qrels_rows
from cupel_backend.scores import rescoring
from cupel_contract.states import TokenScope
from cupel_measures.catalogue.parser import Measure, parse, parse_many
from cupel_measures.findings import Finding, Refused
from cupel_measures.grammar.syntax import MeasureError
from cupel_measures.model import Aspect, Qrels, profiles
from cupel_measures.reading.collection_files import aspects_from, label_sets_from
from cupel_measures.reading.declarations.aspect_declarations import LABELS
from cupel_measures.reading.qrels_files import unpack_qrels
from cupel_measures.scoring.evaluator import check, list_unsupported

TRACK_UNKNOWN = refusal("track-unknown")
TRACK_EXISTS = refusal("track-exists")
TRACK_FORBIDDEN = refusal("track-forbidden")
TRACK_INVALID = refusal("track-invalid")
ASPECTS_INVALID = refusal("aspects-invalid")
MEASURE_INVALID = refusal("measure-invalid")
PROFILE_UNKNOWN = refusal("profile-unknown")
TRACK_CHANGED = refusal("track-changed")

MAX_MEASURES = 200
MAX_MEASURE_BYTES = 1000
"""Maximum number of bytes of a canonical text. It is part of an index key; PostgreSQL allows 2,704 bytes."""
MAX_DEPTH = 100_000
MAX_LABELS = 10_000
MAX_LABEL = 2**31 - 1


@dataclass(frozen=True, kw_only=True)
class Track:
    """A track as shown to users. `etag` changes with every field."""

    name: str
    title: str
    team: str
    aspects: Mapping[str, Any]
    label_sets: Mapping[str, Any] | None
    profile: str
    measures: tuple[str, ...]
    depth: int
    current: int | None
    publishing: int | None
    created_at: datetime
    closed_at: datetime | None

    @property
    def etag(self) -> str:
        return sha256(json.dumps(asdict(self), default=str).encode()).hexdigest()[:24]


def create(
    system: System,
    principal: Principal,
    *,
    name: str,
    title: str,
    aspects: Mapping[str, Any],
    measures: Sequence[str],
    label_sets: Mapping[str, Any] | None = None,
    profile: str = profiles.DEFAULT.name,
    depth: int = 1000,
) -> Track:
    """Create a track that the caller's team owns. Organisers and admins only.

    aspects, label_sets: declared as in a collection file. measures: the plan, at least one text (each may
    name several measures). Raises Invalid with every problem, Conflict if the name is taken.
    """
    if not principal.has_scope(TokenScope.ORGANISER):
        raise TRACK_FORBIDDEN("creating a track requires the scope organiser")
    _require_valid_settings(name, title, profile, depth)
    parsed_aspects = _parse_declarations(aspects, label_sets or {})
    row = {
        "name": name,
        "title": title,
        "team": principal.team,
        "aspects": dict(aspects),
        "label_sets": None if label_sets is None else dict(label_sets),
        "profile": profile,
        "measures": list(parse_plan(measures, parsed_aspects, label_sets or {})),
        "depth": depth,
        "revision": 0,
        "created_at": system.now(),
    }
    with writing(system.engine) as connection:
        if not insert_new(connection, tracks, [row]):
            raise TRACK_EXISTS(f"a track named {name!r} already exists")
        return _build_view(connection, find(connection, name))


def get(system: System, principal: Principal, name: str) -> Track:
    """Return the track called `name`; raises NotFound."""
    with reading(system.engine) as connection:
        return _build_view(connection, find(connection, name))


def list_(
    system: System, principal: Principal, *, limit: int = 50, cursor: str | None = None
) -> ListPage[Track]:
    """List all tracks, newest first."""
    with reading(system.engine) as connection:
        rows = fetch_page(
            connection, select(tracks), tracks.c.id, lambda row: row, limit=limit, cursor=cursor
        )
        return ListPage(_build_views(connection, rows.items), rows.next)


def change(
    system: System,
    principal: Principal,
    name: str,
    *,
    changes: Mapping[str, object],
    expected: frozenset[str] | None = None,
) -> Track:
    """Change `title`, `measures` or `closed` (true or false) of a track.

    Absent fields keep their values.

    Adding a measure queues its evaluations. Scores of a removed measure are kept and shown on request.
    Raises Stale if `expected` is given and does not contain the track's etag. Raises Invalid if the track's
    scales do not support a new measure, or if it cannot be computed from the published judgments.
    """
    now = system.now()
    if "measures" in changes:
        _preload_checks(system, principal, name, changes, now)
    with writing(system.engine) as connection:
        row = find_for_organiser(connection, principal, name)
        if expected is not None and _build_view(connection, row).etag not in expected:
            raise TRACK_CHANGED(f"the track {name!r} has changed since you read it")
        values = _parse_changes(row, changes, now)
        if values:
            connection.execute(update(tracks).where(tracks.c.id == row.id).values(values))
        # Leaderboards show neither the title nor whether the track is closed.
        if values.get("measures", row.measures) != row.measures:
            bump_revision(connection, [row.id])
        added = _added_measures(row, values)
        queued = 0
        if added:
            versions = rescoring.read_versions_to_score(connection, row)
            _require_computable(system, connection, versions, added)
            queued = rescoring.request(
                connection,
                now=now,
                track_id=row.id,
                tenant=f"track {row.name}",
                qrels_ids=versions,
                submission_ids=rescoring.read_eligible_submissions(connection, row.id),
                measures=added,
            )
        track = _build_view(connection, find(connection, name))
    if queued:
        system.wake_ups.send(rescoring.QUEUE, times=queued)
    return track


# For other modules of the backend


def find(connection: Connection, name: str, *, lock: bool = False) -> Row[Any]:
    """Return the row of the track called `name`; raises NotFound.

    lock: whether to lock the row against concurrent publishing.
    """
    query = select(tracks).where(tracks.c.name == name)
    row = connection.execute(query.with_for_update() if lock else query).first()
    if row is None:
        raise TRACK_UNKNOWN(f"track {name!r} not found")
    return row


def find_for_organiser(
    connection: Connection, principal: Principal, name: str, *, lock: bool = True
) -> Row[Any]:
    """Return the row of a track that the caller may manage.

    Raises NotFound or Forbidden.
    """
    row = find(connection, name, lock=lock)
    if not is_organiser(principal, row):
        raise TRACK_FORBIDDEN(f"the track {name!r} belongs to team {row.team}")
    return row


def is_organiser(principal: Principal, track: Row[Any]) -> bool:
    """Return whether the caller is an organiser of the track.

    These are all admins, and the callers with the scope `organiser` who belong to the track's team.
    Organisers may see and change everything in the track.
    """
    return principal.has_scope(TokenScope.ADMIN) or (
        principal.has_scope(TokenScope.ORGANISER) and principal.team == track.team
    )


def parse_aspects(track: Row[Any]) -> tuple[Aspect, ...]:
    """Return the track's aspects, as declared when it was created."""
    return _parse_stored_aspects(json.dumps(track.aspects))


def parse_plan(
    texts: Sequence[str], aspects: Sequence[Aspect], label_sets: Mapping[str, Any]
) -> tuple[str, ...]:
    """Parse the plan of a track.

    Return the canonical texts of its measures in order, without duplicates.

    Each measure is checked against empty judgments. Raises Invalid if the track's scales do not support it.
    """
    try:
        measures = [
            _require_no_texts(measure).bound(aspects) for text in texts for measure in parse_many(text)
        ]
        if len(measures) <= MAX_MEASURES:
            check(Qrels.empty(tuple(aspects), label_sets_from(label_sets, aspects)), measures)
    except MeasureError as problem:
        raise MEASURE_INVALID(str(problem)) from None
    if not 1 <= len(measures) <= MAX_MEASURES:
        raise MEASURE_INVALID(f"the plan has {len(measures)} measures; give 1 to {MAX_MEASURES}")
    texts = [str(measure) for measure in measures]
    for text in texts:
        if (length := len(text.encode())) > MAX_MEASURE_BYTES:
            size = f"{length:,} bytes; the limit is {MAX_MEASURE_BYTES:,}"
            raise MEASURE_INVALID(f"{text[:60]}...: the canonical text has {size}")
    return tuple(dict.fromkeys(texts))


@lru_cache(maxsize=256)
def find_uncomputable(blobs: Blobs, key: str, texts: tuple[str, ...]) -> tuple[str, ...]:
    """Return a sentence for each measure that some qrels do not support.

    The measures are those in `texts`; the qrels are those at `key`.

    Results are cached. Call it once before a transaction, so that no file is read within the transaction.
    """
    return tuple(list_unsupported(unpack_qrels(blobs.get(key)), [parse(text) for text in texts]))


def _require_computable(
    system: System, connection: Connection, versions: Sequence[int], added: Sequence[str]
) -> None:
    """Raise Invalid if an added measure cannot be computed under a version.

    All its jobs would fail under this version.
    """
    for key in _read_blob_keys(connection, versions):
        if sentences := find_uncomputable(system.blobs, key, tuple(added)):
            raise MEASURE_INVALID(sentences[0])


def _read_blob_keys(connection: Connection, versions: Sequence[int]) -> Sequence[str]:
    return connection.execute(select(qrels_rows.c.blob).where(qrels_rows.c.id.in_(versions))).scalars().all()


def _preload_checks(
    system: System, principal: Principal, name: str, changes: Mapping[str, object], now: datetime
) -> None:
    """Fill the cache of `find_uncomputable` for added measures.

    This happens before the transaction begins.
    """
    with reading(system.engine) as connection:
        row = find_for_organiser(connection, principal, name, lock=False)
        added = _added_measures(row, _parse_changes(row, changes, now))
        keys = _read_blob_keys(connection, rescoring.read_versions_to_score(connection, row)) if added else ()
    for key in keys:
        find_uncomputable(system.blobs, key, tuple(added))


def _added_measures(row: Row[Any], values: Mapping[str, Any]) -> list[str]:
    return [text for text in values.get("measures", ()) if text not in row.measures]


def parse_measure(text: str, track: Row[Any]) -> str:
    """Return the canonical text of one measure bound to the track's aspects.

    Raises Invalid.
    """
    try:
        return str(_require_no_texts(parse(text)).bound(parse_aspects(track)))
    except MeasureError as problem:
        raise MEASURE_INVALID(str(problem)) from None


def _require_no_texts(measure: Measure) -> Measure:
    """Return the measure if it does not need document texts.

    Raises MeasureError if it does, because the service does not keep them.
    """
    if measure.declaration.texts:
        raise MeasureError(
            f"{measure} requires the document texts, which the service does not keep; "
            "score it with `cupel evaluate` and a collection file that declares `texts`"
        )
    return measure


def _require_valid_settings(name: str, title: str, profile: str, depth: int) -> None:
    if not NAME.fullmatch(name):
        raise TRACK_INVALID(
            f"name: {name!r} is invalid; use 1 to 64 letters, digits, dots, hyphens and underscores, "
            "starting with a letter or digit"
        )
    _require_valid_title(title)
    if profile not in profiles.PROFILES:
        raise PROFILE_UNKNOWN(f"unknown profile {profile!r}")
    if not 1 <= depth <= MAX_DEPTH:
        raise TRACK_INVALID(f"depth: {depth} is out of range; use 1 to {MAX_DEPTH}")


def _require_valid_title(title: object) -> str:
    if not isinstance(title, str) or not 1 <= len(title.strip()) <= 200:
        raise TRACK_INVALID("title: use 1 to 200 characters")
    if CONTROL_CHARACTERS.search(title):
        raise TRACK_INVALID(f"title: {title!r} contains a control character")
    return title


def _parse_declarations(declaration: Mapping[str, Any], label_sets: Mapping[str, Any]) -> tuple[Aspect, ...]:
    findings = collect_findings(_find_invalid_labels(declaration, label_sets))
    if not findings.refused:
        try:
            aspects = aspects_from(declaration)
            label_sets_from(label_sets, aspects)
            findings = collect_findings(_find_long_scales(aspects))
        except Refused as problem:
            findings = problem.findings
    if findings.refused:
        raise ASPECTS_INVALID("invalid aspects; see `errors`", findings=findings)
    return aspects


def _find_invalid_labels(*declarations: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield a finding for each label that would not survive a round trip through JSON."""
    for declaration in declarations:
        for name, fields in declaration.items():
            parts = fields.items() if isinstance(fields, Mapping) else ()
            for label in (leaf for key, part in parts if key in LABEL_KEYS for leaf in _iterate_leaves(part)):
                if not _is_label(label):
                    yield Finding(
                        code=LABELS,
                        message=f"{name}: a label must be an integer within \u00b1{MAX_LABEL:,} "
                        "or a word without control characters",
                        sample=_quote(label),
                    )


LABEL_KEYS = ("labels", "lowest", "unjudged", "threshold", "tuples")


def _iterate_leaves(value: object) -> Iterator[object]:
    if isinstance(value, (list, Mapping)):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from _iterate_leaves(part)
    else:
        yield value


def _is_label(value: object) -> bool:
    if isinstance(value, str):
        return not CONTROL_CHARACTERS.search(value)
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= MAX_LABEL


def _quote(value: object) -> str:
    # Python refuses to convert integers of thousands of digits to text.
    digits = isinstance(value, int) and value.bit_length() > 1000
    return "an integer of hundreds of digits" if digits else repr(value)[:80]


def _find_long_scales(aspects: Sequence[Aspect]) -> Iterator[Finding]:
    for aspect in aspects:
        if len(aspect.labels) > MAX_LABELS:
            message = f"{aspect.name} has {len(aspect.labels):,} labels; the limit is {MAX_LABELS:,}"
            yield Finding(code=LABELS, message=message)


@lru_cache(maxsize=256)
def _parse_stored_aspects(declaration: str) -> tuple[Aspect, ...]:
    return aspects_from(json.loads(declaration))


def _parse_changes(row: Row[Any], changes: Mapping[str, object], now: datetime) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in changes.items():
        if name == "title":
            values["title"] = _require_valid_title(value)
        elif name == "measures" and isinstance(value, list) and all(isinstance(text, str) for text in value):
            values["measures"] = list(parse_plan(value, parse_aspects(row), row.label_sets or {}))
        elif name == "closed" and isinstance(value, bool):
            values["closed_at"] = (row.closed_at or now) if value else None
        else:
            raise TRACK_INVALID(
                f"{name}: cannot be set to {value!r}; only title, measures and closed can be changed"
            )
    return values


def _build_view(connection: Connection, row: Row[Any]) -> Track:
    return _build_views(connection, [row])[0]


def _build_views(connection: Connection, rows: Sequence[Row[Any]]) -> tuple[Track, ...]:
    newest = rescoring.read_newest_published(connection, [row.id for row in rows])
    return tuple(
        Track(
            name=row.name,
            title=row.title,
            team=row.team,
            aspects=row.aspects,
            label_sets=row.label_sets,
            profile=row.profile,
            measures=tuple(row.measures),
            depth=row.depth,
            current=row.current,
            publishing=newest.get(row.id) if newest.get(row.id) != row.current else None,
            created_at=row.created_at,
            closed_at=row.closed_at,
        )
        for row in rows
    )
