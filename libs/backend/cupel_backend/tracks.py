"""Tracks: shared tasks with their aspects, plan of measures and boards. The team that made one owns it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Row, select, update

from cupel_backend.access import CONTROL, NAME, Principal
from cupel_backend.infrastructure.database import ListPage, insert_new, page, reading, writing
from cupel_backend.infrastructure.errors import found, refusal
from cupel_backend.infrastructure.object_store import Blobs
from cupel_backend.infrastructure.tables import qrels as qrels_rows
from cupel_backend.infrastructure.tables import touch, tracks
from cupel_backend.scores import rescoring
from cupel_contract.states import TokenScope
from cupel_measures.catalogue.parser import Measure, parse, parse_many
from cupel_measures.grammar.syntax import MeasureError
from cupel_measures.model import Aspect, Qrels, profiles
from cupel_measures.model.findings import Finding, Refused
from cupel_measures.reading.collection_files import aspects_from, label_sets_from
from cupel_measures.reading.declarations.aspect_declarations import LABELS
from cupel_measures.reading.qrels_files import unpack_qrels
from cupel_measures.scoring.evaluator import check, impossible

if TYPE_CHECKING:
    from cupel_backend.infrastructure.system import System

TRACK_UNKNOWN = refusal("track-unknown")
TRACK_EXISTS = refusal("track-exists")
TRACK_FORBIDDEN = refusal("track-forbidden")
TRACK_INVALID = refusal("track-invalid")
ASPECTS_INVALID = refusal("aspects-invalid")
MEASURE_INVALID = refusal("measure-invalid")
PROFILE_UNKNOWN = refusal("profile-unknown")
TRACK_CHANGED = refusal("track-changed")

MOST_MEASURES = 200
LONGEST_MEASURE = 1000
"""Bytes of a canonical text: it is part of a key, and PostgreSQL's have at most 2,704."""
DEEPEST = 100_000
LONGEST_SCALE = 10_000
LARGEST_LABEL = 2**31 - 1


@dataclass(frozen=True)
class Track:
    """A track as people see it. `etag` names this state of it."""

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
    system: "System",
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
    """Make a track, owned by the caller's team; organisers and admins only.

    aspects, label_sets: as in a collection file. measures: the plan, at least one text (each may hold
    several). Raises Invalid with everything that is wrong, Conflict if the name is taken.
    """
    if not principal.at_least(TokenScope.ORGANISER):
        raise TRACK_FORBIDDEN("making a track needs the scope organiser")
    _check_basics(name, title, profile, depth)
    declared = _declared(aspects, label_sets or {})
    row = {
        "name": name,
        "title": title,
        "team": principal.team,
        "aspects": dict(aspects),
        "label_sets": None if label_sets is None else dict(label_sets),
        "profile": profile,
        "measures": list(plan(measures, declared, label_sets or {})),
        "depth": depth,
        "revision": 0,
        "created_at": system.now(),
    }
    with writing(system.engine) as connection:
        if not insert_new(connection, tracks, [row]):
            raise TRACK_EXISTS(f"there is a track {name!r} already")
        return _view(connection, find(connection, name))


def get(system: "System", principal: Principal, name: str) -> Track:
    """The track called `name`."""
    with reading(system.engine) as connection:
        return _view(connection, find(connection, name))


def list_(
    system: "System", principal: Principal, *, limit: int = 50, cursor: str | None = None
) -> ListPage[Track]:
    """All tracks, newest first."""
    with reading(system.engine) as connection:
        rows = page(connection, select(tracks), tracks.c.id, lambda row: row, limit=limit, cursor=cursor)
        return ListPage(_views(connection, rows.items), rows.next)


def change(
    system: "System",
    principal: Principal,
    name: str,
    *,
    changes: Mapping[str, object],
    expected: frozenset[str] | None = None,
) -> Track:
    """Change `title`, `measures` or `closed` (true or false); what is absent stays as it is.

    A longer plan queues what is missing; the scores of a measure taken out are kept, and shown on demand.
    Raises Stale if `expected` is given and the track's etag is not among it, Invalid where a new measure
    can't be had, by the track's scales or by its published judgments.
    """
    now = system.now()
    if "measures" in changes:
        _look_ahead(system, principal, name, changes, now)
    with writing(system.engine) as connection:
        row = owned(connection, principal, name)
        if expected is not None and _view(connection, row).etag not in expected:
            raise TRACK_CHANGED(f"the track {name!r} is not as it was when you read it")
        values = _changed(row, changes, now)
        if values:
            connection.execute(update(tracks).where(tracks.c.id == row.id).values(values))
        if values.get("measures", row.measures) != row.measures:  # nothing else of it shows on a board
            touch(connection, [row.id])
        added = _added(row, values)
        queued = 0
        if added:
            versions = rescoring.versions_to_score(connection, row)
            _require_judged(system, connection, versions, added)
            queued = rescoring.request(
                connection,
                now=now,
                track_id=row.id,
                tenant=f"track {row.name}",
                qrels_ids=versions,
                submission_ids=rescoring.eligible(connection, row.id),
                measures=added,
            )
        track = _view(connection, find(connection, name))
    if queued:
        system.bell.ring(rescoring.QUEUE, times=queued)
    return track


# For the other nouns


def find(connection: Connection, name: str, *, lock: bool = False) -> Row[Any]:
    """The row of the track called `name`, locked against concurrent publishing if `lock`; else NotFound."""
    query = select(tracks).where(tracks.c.name == name)
    row = connection.execute(query.with_for_update() if lock else query).first()
    if row is None:
        raise TRACK_UNKNOWN(f"there is no track {name!r}")
    return row


def owned(connection: Connection, principal: Principal, name: str, *, lock: bool = True) -> Row[Any]:
    """The row of a track that the caller may organise, locked or not; else NotFound or Forbidden."""
    row = find(connection, name, lock=lock)
    if not organises(principal, row):
        raise TRACK_FORBIDDEN(f"the track {name!r} belongs to the team {row.team}")
    return row


def organises(principal: Principal, track: Row[Any]) -> bool:
    """Whether the caller may see and change everything of the track."""
    return principal.scope == "admin" or (
        principal.at_least(TokenScope.ORGANISER) and principal.team == track.team
    )


def aspects(track: Row[Any]) -> tuple[Aspect, ...]:
    """The track's aspects, as declared when it was made."""
    return _parsed(json.dumps(track.aspects))


def plan(texts: Sequence[str], aspects: Sequence[Aspect], label_sets: Mapping[str, Any]) -> tuple[str, ...]:
    """The canonical texts of measures bound to a track, each once, in order; raises Invalid.

    Each is tried without judgments, so that what the track's scales can't have is refused here.
    """
    try:
        measures = [_scored_here(measure).bound(aspects) for text in texts for measure in parse_many(text)]
        if len(measures) <= MOST_MEASURES:
            check(Qrels.empty(tuple(aspects), label_sets_from(label_sets, aspects)), measures)
    except MeasureError as problem:
        raise MEASURE_INVALID(str(problem)) from None
    if not 1 <= len(measures) <= MOST_MEASURES:
        raise MEASURE_INVALID(f"{len(measures)} measures; give 1 to {MOST_MEASURES}")
    for one in measures:
        if (length := len(str(one).encode())) > LONGEST_MEASURE:
            start = str(one)[:60]
            raise MEASURE_INVALID(f"{start}... has {length:,} bytes in full; at most {LONGEST_MEASURE:,}")
    return tuple(dict.fromkeys(str(one) for one in measures))


@lru_cache(maxsize=256)
def not_to_be_had(blobs: Blobs, key: str, texts: tuple[str, ...]) -> tuple[str, ...]:
    """Why the qrels of that key can't have one or other of the measures `texts`: a sentence for each.

    What is known already needs no file: who asks before a transaction does not wait for one within it.
    """
    return tuple(impossible(unpack_qrels(blobs.get(key)), [parse(text) for text in texts]))


def _require_judged(
    system: "System", connection: Connection, versions: Sequence[int], added: Sequence[str]
) -> None:
    """Raise Invalid where a version can't have a measure that is added: its jobs could only die."""
    for key in _blobs(connection, versions):
        if sentences := not_to_be_had(system.blobs, key, tuple(added)):
            raise MEASURE_INVALID(sentences[0])


def _blobs(connection: Connection, versions: Sequence[int]) -> Sequence[str]:
    return connection.execute(select(qrels_rows.c.blob).where(qrels_rows.c.id.in_(versions))).scalars().all()


def _look_ahead(
    system: "System", principal: Principal, name: str, changes: Mapping[str, object], now: datetime
) -> None:
    """Read, while no transaction waits for it, whether a longer plan can be had."""
    with reading(system.engine) as connection:
        row = owned(connection, principal, name, lock=False)
        added = _added(row, _changed(row, changes, now))
        keys = _blobs(connection, rescoring.versions_to_score(connection, row)) if added else ()
    for key in keys:
        not_to_be_had(system.blobs, key, tuple(added))


def _added(row: Row[Any], values: Mapping[str, Any]) -> list[str]:
    return [text for text in values.get("measures", ()) if text not in row.measures]


def measure(text: str, track: Row[Any]) -> str:
    """The canonical text of one measure bound to the track's aspects; raises Invalid."""
    try:
        return str(_scored_here(parse(text)).bound(aspects(track)))
    except MeasureError as problem:
        raise MEASURE_INVALID(str(problem)) from None


def _scored_here(measure: Measure) -> Measure:
    """The measure, where the service can score it: MeasureError where it needs texts, which are not kept."""
    if measure.declaration.texts:
        raise MeasureError(
            f"{measure}: it needs the texts of the documents, which the service does not keep; "
            "score it with `cupel evaluate` and a collection file that names texts:"
        )
    return measure


def _check_basics(name: str, title: str, profile: str, depth: int) -> None:
    if not NAME.fullmatch(name):
        raise TRACK_INVALID(
            f"the name {name!r} can't be used: 1 to 64 letters, digits, dots, dashes, underscores, "
            "a letter or digit first"
        )
    _check_title(title)
    if profile not in profiles.PROFILES:
        raise PROFILE_UNKNOWN(f"there is no profile {profile!r}")
    if not 1 <= depth <= DEEPEST:
        raise TRACK_INVALID(f"depth is {depth}; give 1 to {DEEPEST}")


def _check_title(title: object) -> str:
    if not isinstance(title, str) or not 1 <= len(title.strip()) <= 200:
        raise TRACK_INVALID("title: give a text of 1 to 200 characters")
    if CONTROL.search(title):
        raise TRACK_INVALID(f"title: {title!r} holds a control character")
    return title


def _declared(declaration: Mapping[str, Any], label_sets: Mapping[str, Any]) -> tuple[Aspect, ...]:
    findings = found(_no_labels(declaration, label_sets))
    if not findings.refused:
        try:
            aspects = aspects_from(declaration)
            label_sets_from(label_sets, aspects)
            findings = found(_long_scales(aspects))
        except Refused as problem:
            findings = problem.findings
    if findings.refused:
        raise ASPECTS_INVALID("the declared aspects can't be used", findings=findings)
    return aspects


def _no_labels(*declarations: Mapping[str, Any]) -> Iterator[Finding]:
    """What stands for a label in aspects and label sets, and could not come back from JSON as it was."""
    for declared in declarations:
        for name, one in declared.items():
            parts = one.items() if isinstance(one, Mapping) else ()
            for label in (leaf for key, part in parts if key in LABELLED for leaf in _leaves(part)):
                if not _is_label(label):
                    yield Finding(
                        LABELS,
                        f"{name}: a label is an integer within \u00b1{LARGEST_LABEL:,} or a word without "
                        "control characters",
                        sample=_quoted(label),
                    )


LABELLED = ("labels", "lowest", "unjudged", "threshold", "tuples")


def _leaves(value: object) -> Iterator[object]:
    if isinstance(value, (list, Mapping)):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from _leaves(part)
    else:
        yield value


def _is_label(value: object) -> bool:
    if isinstance(value, str):
        return not CONTROL.search(value)
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= LARGEST_LABEL


def _quoted(value: object) -> str:
    """Python refuses to write integers of thousands of digits."""
    digits = isinstance(value, int) and value.bit_length() > 1000
    return "an integer of hundreds of digits" if digits else repr(value)[:80]


def _long_scales(aspects: Sequence[Aspect]) -> Iterator[Finding]:
    for aspect in aspects:
        if len(aspect.labels) > LONGEST_SCALE:
            message = f"{aspect.name} has {len(aspect.labels):,} labels; a track takes {LONGEST_SCALE:,}"
            yield Finding(LABELS, message)


@lru_cache(maxsize=256)
def _parsed(declaration: str) -> tuple[Aspect, ...]:
    return aspects_from(json.loads(declaration))


def _changed(row: Row[Any], changes: Mapping[str, object], now: datetime) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in changes.items():
        if name == "title":
            values["title"] = _check_title(value)
        elif name == "measures" and isinstance(value, list) and all(isinstance(one, str) for one in value):
            values["measures"] = list(plan(value, aspects(row), row.label_sets or {}))
        elif name == "closed" and isinstance(value, bool):
            values["closed_at"] = (row.closed_at or now) if value else None
        else:
            raise TRACK_INVALID(
                f"{name}: can't be changed to {value!r}; title, measures and closed can be changed"
            )
    return values


def _view(connection: Connection, row: Row[Any]) -> Track:
    return _views(connection, [row])[0]


def _views(connection: Connection, rows: Sequence[Row[Any]]) -> tuple[Track, ...]:
    newest = rescoring.newest_of(connection, [row.id for row in rows])
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
