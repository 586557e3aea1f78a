"""What the API answers with, as typed models. Each is read off the backend's view of the same name."""

from datetime import datetime
from typing import Annotated, Any, Generic, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from cupel_backend import access, jobs, qrels_versions, submissions
from cupel_backend.infrastructure.errors import Code
from cupel_backend.scores import evaluations, leaderboards, score_explanations
from cupel_gateway.problem_responses import ErrorItem, described, status_of_kind
from cupel_measures.catalogue.parser import Measure as ParsedMeasure
from cupel_measures.explaining import ABOUT
from cupel_measures.findings import FindingKind, Findings
from cupel_measures.grammar.registry import REQUIRED, Declaration
from cupel_measures.grammar.syntax import shown

T = TypeVar("T")


class View(BaseModel):
    """A model read off attributes of the same names; nothing is ever written through it."""

    model_config = ConfigDict(from_attributes=True, frozen=True)


class Problems(View):
    """The warnings about an accepted file: at most 100 of a code; `totals` counts all."""

    warnings: list[ErrorItem]
    totals: dict[str, int]

    @classmethod
    def of(cls, findings: Findings) -> Self:
        return cls(warnings=[described(one) for one in findings.warnings], totals=findings.totals)


class Service(View):
    """What this service is."""

    name: Literal["cupel"] = "cupel"
    version: str
    scoring_version: int
    profiles: dict[str, str]
    limits: dict[str, int]
    links: dict[str, str]


class Caller(View):
    """Whom the token acts for."""

    team: str
    scope: access.Scope
    prefix: str


class Token(View):
    """A token as it may be shown."""

    prefix: str
    team: str
    scope: access.Scope
    label: str
    created_at: datetime
    expires_at: datetime | None
    used_at: datetime | None
    revoked_at: datetime | None


class NewToken(Token):
    """A token just made: `token` is shown this once."""

    token: str


class Track(View):
    """A shared task: aspects, measures, profile, and its current qrels version."""

    name: str
    title: str
    team: str
    aspects: dict[str, Any]
    label_sets: dict[str, Any] | None
    profile: str
    measures: list[str]
    depth: int
    current: int | None = Field(description="number of the current qrels version")
    publishing: int | None = Field(description="number of the qrels version that is being published")
    created_at: datetime
    closed_at: datetime | None


class Progress(View):
    """How far publishing has come: submissions to score, scored, and given up."""

    total: int
    scored: int
    dead: int


class Version(View):
    """A qrels version: all judgments of a track."""

    track: str
    number: int
    digest: str
    state: Literal["draft", "publishing", "current", "superseded"]
    counts: dict[str, Any]
    progress: Progress
    findings: Problems
    created_at: datetime
    published_at: datetime | None
    current_since: datetime | None

    @classmethod
    def of(cls, view: qrels_versions.QrelsVersion) -> Self:
        return cls.model_validate(attributes(cls, view) | {"findings": Problems.of(view.findings)})


class Moved(View):
    """A submission under two qrels versions; null where it is not scored."""

    submission: str
    team: str
    name: str
    tag: str
    old_score: float | None
    new_score: float | None
    old_rank: int | None
    new_rank: int | None


class Diff(View):
    """What moved from qrels version `base` to `number`."""

    track: str
    measure: str
    base: int
    number: int
    rows: list[Moved]


class Job(View):
    """Queued work."""

    id: str
    kind: str
    queue: str
    state: jobs.State
    attempts: int
    error: str | None
    submission: str | None
    created_at: datetime
    claimed_at: datetime | None
    finished_at: datetime | None


class Run(View):
    """A ranked list per topic by one system; immutable, named by digest."""

    id: str
    team: str
    tag: str
    digest: str
    raw_digest: str
    topics: int
    documents: int
    bytes: int
    metadata: dict[str, Any] | None


class Effect(View):
    """Topics of a run that would be ordered otherwise: how many, and the first of them."""

    count: int
    topics: list[str]


class Submission(View):
    """Who handed in which run to which track, when, and what became of it."""

    id: str
    track: str
    team: str
    run: Run
    name: str
    received_at: datetime
    completed_at: datetime
    withdrawn_at: datetime | None
    state: Literal["waiting", "queued", "scored", "partly", "dead", "withdrawn"]
    findings: Problems
    profile_effects: dict[str, Effect] = Field(
        description="what another profile would change: by `single_precision`, by `rank_column`"
    )
    jobs: list[Job]
    links: dict[str, str]

    @classmethod
    def of(cls, view: submissions.Submission) -> Self:
        here = f"/v1/submissions/{view.id}"
        links = {
            "self": here,
            "scores": f"{here}/scores",
            "events": f"{here}/events",
            "run": f"/v1/runs/{view.run.id}",
            "file": f"/v1/runs/{view.run.id}/file",
            "leaderboard": f"/v1/tracks/{view.track}/leaderboard",
        }
        return cls.model_validate(
            attributes(cls, view) | {"findings": Problems.of(view.findings), "links": links}
        )


Exact = Annotated[
    str | None,
    Field(
        description="what the score is rounded from, in digits (`p/q` where it is not whole): systems are "
        "ordered by this; null where the measure has no exact values, or they were not kept"
    ),
]


class Scale(View):
    """What may be done with the values of a measure; it holds for the labels of the track's aspects."""

    type: str = Field(description="interval, ordinal, neither or count")
    operations: list[str] = Field(description="what it allows")
    aggregate: str = Field(description="what is done to make one number of all topics")
    warning: str | None = Field(description="where the aggregate asks for more than the scale gives")


class Score(View):
    """A measure's value for a submission under a qrels version, over all topics."""

    measure: str
    value: float | None
    exact: Exact
    scale: Scale
    qrels: int
    qrels_digest: str
    run_digest: str
    profile: str
    scoring_version: int
    topics: int
    missing_topics: int
    scored_at: datetime


class Scores(View):
    """Scores of one submission."""

    submission: str
    scores: list[Score]


class TopicScore(View):
    """A measure's value on one topic."""

    topic: str
    value: float


class TopicScores(View):
    """A score and the values on each topic behind it."""

    submission: str
    score: Score
    topics: list[TopicScore]

    @classmethod
    def of(cls, submission: str, view: evaluations.TopicScores) -> Self:
        pairs = zip(view.topics, view.values, strict=True)
        values = [TopicScore(topic=topic, value=value) for topic, value in pairs]
        return cls(submission=submission, score=Score.model_validate(view.score), topics=values)


class Explanation(View):
    """What is told about a measure's score on a submission."""

    measure: str
    told: dict[str, dict[str, Any] | None] = Field(
        description="a part by its name, as far as it was asked for; null where there is nothing to tell. "
        + "; ".join(f"{name}: {about}" for name, about in ABOUT.items())
    )


class Explanations(View):
    """Explanations of a submission's scores, and all that they depend on."""

    submission: str
    qrels: int | None
    qrels_digest: str | None
    run_digest: str
    profile: str
    depth: int = Field(description="rankings are cut here")
    scoring_version: int
    topics: list[str] = Field(description="the order of every list of values by topic")
    explanations: list[Explanation]


class ExplanationsWanted(View):
    """Explanations that are being computed: a job for each measure."""

    submission: str
    qrels: int
    measures: list[str] = Field(description="their canonical texts")
    jobs: list[Job]
    links: dict[str, str]

    @classmethod
    def of(cls, view: score_explanations.RequestedExplanations) -> Self:
        here = f"/v1/submissions/{view.submission}/explanations?qrels={view.qrels}"
        return cls.model_validate(attributes(cls, view) | {"links": {"explanations": here}})


Bounds = Annotated[list[float] | None, Field(min_length=2, max_length=2)]
"""Low and high end of an interval."""

Ranks = Annotated[list[int] | None, Field(min_length=2, max_length=2)]
"""Best and worst of a range of ranks."""


class Row(View):
    """A line of a leaderboard; equal scores share a rank. What it is worth is there when `analysis` is."""

    rank: int
    submission: str
    team: str
    name: str
    tag: str
    score: float
    exact: Exact
    received_at: datetime
    missing_topics: int
    interval: Bounds = Field(description="low and high end of the score's interval over topics")
    rank_interval: Ranks = Field(
        description="where it would rank on other topics, in whole ranks; `rank` is one of them"
    )
    groups: list[str] = Field(
        description="two submissions share a group exactly where they are not told apart by this test"
    )
    tied_for_first: bool | None = Field(description="whether it is not told apart from the first one")


class Unscored(View):
    """A submission that is not ranked, and why."""

    submission: str
    team: str
    reason: str


class Analysis(View):
    """What the order of the whole board is worth. It holds for the rows as they are; null: not known yet."""

    state: Literal["done", "pending", "undefined"] = Field(
        description="pending: worked out soon after all that was handed in is scored"
    )
    undefined: str | None = Field(description="why nothing is told apart")
    method: str
    submissions: int = Field(description="that are ranked")
    tied_for_first: int | None = Field(description="how many are not told apart from the first one")
    separable: int | None = Field(description="how many of the `neighbours` are told apart")
    neighbours: int | None = Field(description="pairs of submissions that follow one another")
    smallest_difference: float | None = Field(
        description="least true difference that so many topics show with chance 0.8 to a paired t-test at "
        "`alpha`; null where undefined, and for geometric means"
    )
    topics: int | None
    alpha: float | None = Field(description="level of the test; intervals are at 1 - alpha")
    replicates: int | None
    seed: int | None = Field(description="of all that is drawn; runs are taken in the order of their digests")
    warnings: list[str] = Field(description="where the analysis asks for more than the scale gives")
    computed_at: datetime | None


class Board(View):
    """Submissions of a track ordered by a measure under a qrels version."""

    track: str
    measure: str
    scale: Scale
    qrels: int | None
    qrels_digest: str | None
    profile: str
    scoring_version: int
    analysis: Analysis
    rows: list[Row]
    unscored: list[Unscored]
    next: str | None

    @classmethod
    def of(cls, view: leaderboards.Leaderboard, following: str | None) -> Self:
        return cls.model_validate(attributes(cls, view) | {"next": following})


class Parameter(View):
    """A parameter of a measure."""

    name: str
    required: bool
    default: str | None


class Measure(View):
    """A declared measure."""

    name: str
    aliases: list[str]
    parameters: list[Parameter]
    at: str | None = Field(description="the parameter that a number after @ sets")
    bounds: list[float | None] = Field(description="least and greatest value; null: without bound")
    aggregate: str
    scale: str = Field(
        description="its type of scale: interval, ordinal, neither, count; `depends`: on parameters, labels"
    )
    combines: bool = Field(description="whether it goes over several aspects: their scores, labels or ranks")
    subtopics: bool = Field(description="whether it sees judgments by subtopic rather than an aspect")
    exact: bool = Field(description="whether its values are to be had as exact numbers too")
    summary: str
    documentation: str
    source: str

    @classmethod
    def of(cls, declared: Declaration) -> Self:
        parameters = [
            Parameter(
                name=one.name,
                required=one.default is REQUIRED,
                default=None if one.default is REQUIRED or one.default is None else shown(one.default),
            )
            for one in declared.parameters.values()
        ]
        plain = {
            "aliases": list(declared.aliases),
            "parameters": parameters,
            "exact": declared.exact is not None,
        }
        return cls.model_validate(attributes(cls, declared) | plain | {"bounds": _finite(declared.bounds)})


class ReadMeasure(View):
    """A measure's text as understood: its canonical text, and the declaration behind it."""

    text: str
    declared: Measure

    @classmethod
    def of(cls, measure: ParsedMeasure) -> Self:
        return cls(text=str(measure), declared=Measure.of(measure.declaration))


def attributes(model: type[BaseModel], view: object) -> dict[str, Any]:
    return {name: getattr(view, name) for name in model.model_fields if hasattr(view, name)}


def _finite(bounds: tuple[float, float]) -> list[float | None]:
    """JSON has no infinity."""
    return [bound if abs(bound) != float("inf") else None for bound in bounds]


class ErrorKind(View):
    """What a stable code means, and what would be right."""

    code: str
    kind: Literal["problem", "error", "warning"]
    status: int | None = Field(description="of a problem; findings come inside one, or inside a verdict")
    meaning: str
    remedy: str

    @classmethod
    def of(cls, declared: Code | FindingKind) -> Self:
        if isinstance(declared, FindingKind):
            severity = declared.severity
            return cls(
                code=declared.code,
                kind=severity,
                status=None,
                meaning=declared.meaning,
                remedy=declared.remedy,
            )
        status = status_of_kind(declared.kind)
        return cls(
            code=declared.code,
            kind="problem",
            status=status,
            meaning=declared.meaning,
            remedy=declared.remedy,
        )


class ListOf(View, Generic[T]):
    """A page of a list; `next` is the address of the following page."""

    items: list[T]
    next: str | None = None
