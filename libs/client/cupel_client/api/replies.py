"""What the service answers, as typed values. Fields that a newer service adds are ignored."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import datetime
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")


@dataclass(frozen=True)
class Item:
    """One thing found, in a file (line and column count from 1) or in a field of a request."""

    code: str
    message: str
    remedy: str | None = None
    file: str | None = None
    line: int | None = None
    column: int | None = None
    topic: str | None = None
    field: str | None = None
    sample: str | None = None


@dataclass(frozen=True)
class Found:
    """The warnings about an accepted file; `totals` counts also those not listed."""

    warnings: tuple[Item, ...] = ()
    totals: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Caller:
    """Whom the token acts for."""

    team: str
    scope: str
    prefix: str


@dataclass(frozen=True)
class Token:
    """A token; `token` is its text, which only the answer to making it holds."""

    prefix: str
    team: str
    scope: str
    label: str
    created_at: datetime
    expires_at: datetime | None = None
    used_at: datetime | None = None
    revoked_at: datetime | None = None
    token: str | None = None


@dataclass(frozen=True)
class Track:
    """A shared task. `current` is the number of its current qrels version."""

    name: str
    title: str
    team: str
    aspects: dict[str, Any]
    profile: str
    measures: tuple[str, ...]
    depth: int
    created_at: datetime
    label_sets: dict[str, Any] | None = None
    current: int | None = None
    publishing: int | None = None
    closed_at: datetime | None = None


@dataclass(frozen=True)
class Progress:
    """Submissions to score under a qrels version, scored, and given up."""

    total: int
    scored: int
    dead: int


@dataclass(frozen=True)
class Version:
    """A qrels version; state is draft, publishing, current or superseded."""

    track: str
    number: int
    digest: str
    state: str
    counts: dict[str, Any]
    progress: Progress
    findings: Found
    created_at: datetime
    published_at: datetime | None = None
    current_since: datetime | None = None


@dataclass(frozen=True)
class Moved:
    """A submission under two qrels versions; None where it is not scored."""

    submission: str
    team: str
    name: str
    tag: str
    old_score: float | None
    new_score: float | None
    old_rank: int | None
    new_rank: int | None


@dataclass(frozen=True)
class Diff:
    """What moved from qrels version `base` to `number`."""

    track: str
    measure: str
    base: int
    number: int
    rows: tuple[Moved, ...]


@dataclass(frozen=True)
class Job:
    """Queued work; state is queued, running, done or dead."""

    id: str
    kind: str
    queue: str
    state: str
    attempts: int
    created_at: datetime
    error: str | None = None
    submission: str | None = None
    claimed_at: datetime | None = None
    finished_at: datetime | None = None


@dataclass(frozen=True)
class Run:
    """A run; digest is of its ranking, raw_digest of the file as sent."""

    id: str
    team: str
    tag: str
    digest: str
    raw_digest: str
    topics: int
    documents: int
    bytes: int
    metadata: dict[str, Any] | None = None


@dataclass(frozen=True)
class Submission:
    """Who handed in which run; state is queued, scored, partly, dead or withdrawn."""

    id: str
    track: str
    team: str
    run: Run
    name: str
    received_at: datetime
    completed_at: datetime
    state: str
    findings: Found
    jobs: tuple[Job, ...]
    links: dict[str, str]
    withdrawn_at: datetime | None = None


@dataclass(frozen=True)
class Scale:
    """What may be done with the values of a measure; warning: where its aggregate asks for more."""

    type: str
    operations: tuple[str, ...]
    aggregate: str
    warning: str | None = None


@dataclass(frozen=True)
class Score:
    """A measure's value for a submission under a qrels version, over all topics.

    exact: what it is rounded from, in digits (`p/q` where it is not whole); None where that is not known.
    """

    measure: str
    value: float | None
    qrels: int
    qrels_digest: str
    run_digest: str
    profile: str
    scoring_version: int
    topics: int
    missing_topics: int
    scored_at: datetime
    exact: str | None = None
    scale: Scale | None = None


@dataclass(frozen=True)
class TopicScore:
    """A measure's value on one topic."""

    topic: str
    value: float


@dataclass(frozen=True)
class TopicScores:
    """A score and the values behind it."""

    submission: str
    score: Score
    topics: tuple[TopicScore, ...]


@dataclass(frozen=True)
class ExplanationsWanted:
    """Explanations that are being computed: canonical texts of measures, and a job for each."""

    submission: str
    qrels: int
    measures: tuple[str, ...]
    jobs: tuple[Job, ...]


@dataclass(frozen=True)
class Explanation:
    """What is told about a measure's score: by part, None where there is nothing."""

    measure: str
    told: dict[str, Any]


@dataclass(frozen=True)
class Explanations:
    """Explanations of a submission's scores, and what they depend on; topics: the order of lists by topic."""

    submission: str
    qrels: int | None
    qrels_digest: str | None
    run_digest: str
    profile: str
    depth: int
    scoring_version: int
    topics: tuple[str, ...]
    explanations: tuple[Explanation, ...]


@dataclass(frozen=True)
class Row:
    """A line of a leaderboard; exact: what score is rounded from, by which systems are ordered.

    What its place is worth is there when the board's analysis is. interval: of the score; rank_interval: of
    the rank, which is in it. groups: two rows share one exactly where the analysis's test does not tell them
    apart. tied_for_first: whether it does not tell this one apart from the first one.
    """

    rank: int
    submission: str
    team: str
    name: str
    tag: str
    score: float
    received_at: datetime
    missing_topics: int
    exact: str | None = None
    interval: tuple[float, ...] | None = None
    rank_interval: tuple[int, ...] | None = None
    groups: tuple[str, ...] = ()
    tied_for_first: bool | None = None


@dataclass(frozen=True)
class Unscored:
    """A submission that is not ranked, and why."""

    submission: str
    team: str
    reason: str


@dataclass(frozen=True)
class Analysis:
    """What the order of a board is worth; undefined: why nothing is told apart. None: not known yet."""

    state: str
    undefined: str | None
    method: str
    submissions: int
    tied_for_first: int | None
    separable: int | None
    neighbours: int | None
    smallest_difference: float | None
    topics: int | None
    alpha: float | None
    replicates: int | None
    seed: int | None
    warnings: tuple[str, ...]
    computed_at: datetime | None


@dataclass(frozen=True)
class Board:
    """A leaderboard: submissions of a track by a measure under a qrels version."""

    track: str
    measure: str
    qrels: int | None
    qrels_digest: str | None
    profile: str
    scoring_version: int
    rows: tuple[Row, ...]
    unscored: tuple[Unscored, ...]
    next: str | None = None
    scale: Scale | None = None
    analysis: Analysis | None = None


def read(kind: type[T], value: Any) -> T:
    """The JSON `value` as a `kind`: one of the classes above, or what their fields are made of."""
    return _read(kind, value)  # type: ignore[no-any-return]


def _read(kind: Any, value: Any) -> Any:
    if isinstance(kind, type) and is_dataclass(kind):
        return kind(
            **{name: _read(hint, value[name]) for name, hint in _hints(kind).items() if name in value}
        )
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        inner = [one for one in arguments if one is not NoneType]
        return None if value is None else _read(inner[0], value)
    if origin is tuple:
        return tuple(_read(arguments[0], one) for one in value)
    return datetime.fromisoformat(value) if kind is datetime else value


@cache
def _hints(kind: type) -> Mapping[str, Any]:
    hints = get_type_hints(kind)
    return {one.name: hints[one.name] for one in fields(kind)}
