"""The database tables. States that follow from timestamps are not stored."""

from collections.abc import Iterable
from datetime import UTC, datetime

import numpy as np
from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Connection,
    DateTime,
    Dialect,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    and_,
    select,
    text,
    update,
)


class Instant(TypeDecorator[datetime]):
    """An aware datetime, stored as UTC because SQLite has no time zones."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


VECTOR = np.dtype("<f8")
"""The dtype of a packed vector of scores: little-endian float64."""

Bytewise = Text().with_variant(Text(collation="C"), "postgresql")
"""Text that sorts by its bytes, as in SQLite, regardless of the locale of the database."""

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)

tokens = Table(
    "tokens",
    metadata,
    Column("prefix", Text, primary_key=True),
    Column("digest", Text, nullable=False),  # SHA-256 of the token, which is random and needs no salt
    Column("team", Text, nullable=False, index=True),
    Column("scope", Text, nullable=False),
    Column("label", Text, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("expires_at", Instant),
    Column("used_at", Instant),
    Column("revoked_at", Instant),
)

tracks = Table(
    "tracks",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("title", Text, nullable=False),
    Column("team", Text, nullable=False),
    Column("aspects", JSON(none_as_null=True), nullable=False),  # as in a collection file
    Column("label_sets", JSON(none_as_null=True)),
    Column("profile", Text, nullable=False),
    Column("measures", JSON, nullable=False),  # canonical texts of the planned measures
    Column("depth", Integer, nullable=False),
    Column("current", Integer),  # number of the current qrels version
    Column("revision", BigInteger, nullable=False),  # incremented by every change that a leaderboard may show
    Column("created_at", Instant, nullable=False),
    Column("closed_at", Instant),
    Column("analysed", BigInteger),  # the revision for which all analyses exist or are queued
)

qrels = Table(
    "qrels",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("track_id", ForeignKey("tracks.id"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("digest", Text, nullable=False),
    Column("blob", Text, nullable=False),
    Column("topics", JSON, nullable=False),
    Column("counts", JSON, nullable=False),
    Column("findings", JSON, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("published_at", Instant),
    Column("current_since", Instant),
    UniqueConstraint("track_id", "number"),
)

runs = Table(
    "runs",
    metadata,
    Column("id", Text, primary_key=True),
    Column("team", Text, nullable=False),
    Column("tag", Text, nullable=False),
    Column("digest", Text, nullable=False),  # of the ranking before the cut to the track's depth
    Column("raw_digest", Text, nullable=False),  # SHA-256 of the uploaded file
    Column("raw_blob", Text, nullable=False),
    Column("ranking_blob", Text, nullable=False),
    Column("topics", Integer, nullable=False),
    Column("documents", Integer, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("metadata", JSON(none_as_null=True)),
    Column("created_at", Instant, nullable=False),
    UniqueConstraint("team", "raw_digest"),
)

submissions = Table(
    "submissions",
    metadata,
    Column("id", Text, primary_key=True),
    Column("track_id", ForeignKey("tracks.id"), nullable=False),
    Column("run_id", ForeignKey("runs.id"), nullable=False, index=True),
    Column("team", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("received_at", Instant, nullable=False),  # start of the request, compared with deadlines
    Column("completed_at", Instant, nullable=False),
    Column("withdrawn_at", Instant),
    Column("findings", JSON, nullable=False),
    Column("profile_effects", JSON, nullable=False),  # topics whose ranking other profiles would change
    Index("ix_submissions_track_id_team_id", "track_id", "team", "id"),
)

keys = Table(
    "keys",
    metadata,
    Column("team", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("request", Text, nullable=False),  # digest of the request
    Column("submission_id", ForeignKey("submissions.id"), nullable=False),
    Column("created_at", Instant, nullable=False),
)

scores = Table(
    "scores",
    metadata,
    Column("submission_id", ForeignKey("submissions.id"), primary_key=True),
    Column("qrels_id", ForeignKey("qrels.id"), primary_key=True),
    Column("measure", Text, primary_key=True),
    Column("profile", Text, primary_key=True),
    Column("scoring_version", Integer, primary_key=True),
    Column("value", Float(53)),  # null if the aggregate is undefined
    # Leaderboards are sorted by exact values. Null if the measure has none, and in rows of old releases.
    Column("exact", Text),  # a fraction p/q
    Column("exact_key", Bytewise),  # sort key; too long for an index
    Column("vector", LargeBinary, nullable=False),  # dtype VECTOR, in the topic order of the qrels version
    Column("missing_topics", Integer, nullable=False),
    Column("scored_at", Instant, nullable=False),
    Index("ix_scores_board", "qrels_id", "measure", "profile", "scoring_version", "value"),
)

explanations = Table(
    "explanations",
    metadata,
    Column("submission_id", ForeignKey("submissions.id"), primary_key=True),
    Column("qrels_id", ForeignKey("qrels.id"), primary_key=True),
    Column("measure", Text, primary_key=True),
    Column("profile", Text, primary_key=True),
    Column("scoring_version", Integer, primary_key=True),
    Column("about", Text, primary_key=True),  # the explained part, one of `explained_parts.ABOUT`
    Column("data", JSON(none_as_null=True)),  # null if there is nothing to explain
    Column("explained_at", Instant, nullable=False),
)

analyses = Table(
    "analyses",
    metadata,
    Column("qrels_id", ForeignKey("qrels.id"), primary_key=True),
    Column("measure", Text, primary_key=True),
    Column("profile", Text, primary_key=True),
    Column("scoring_version", Integer, primary_key=True),
    Column("basis", Text, nullable=False),  # method and digest of the analysed scores
    Column("data", JSON, nullable=False),
    Column("analysed_at", Instant, nullable=False),
)

OPEN = text("finished_at IS NULL AND dead_at IS NULL")

jobs = Table(
    "jobs",
    metadata,
    Column("id", Text, primary_key=True),
    Column("key", Text, nullable=False, unique=True),  # one job per key
    Column("kind", Text, nullable=False),
    Column("queue", Text, nullable=False),
    Column("tenant", Text, nullable=False),  # the tenants of a queue take turns
    Column("track_id", ForeignKey("tracks.id")),
    Column("submission_id", ForeignKey("submissions.id"), index=True),
    Column("qrels_id", ForeignKey("qrels.id")),
    Column("payload", JSON, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("ready_at", Instant, nullable=False),  # earliest time of the next attempt
    Column("token", Integer, nullable=False),  # fencing token, incremented by every claim
    Column("attempts", Integer, nullable=False),
    Column("claimed_at", Instant),
    Column("lease_until", Instant),  # set while a worker holds the job
    Column("finished_at", Instant),
    Column("dead_at", Instant),
    Column("error", Text),
    Index("ix_jobs_open", "queue", "tenant", "id", sqlite_where=OPEN, postgresql_where=OPEN),
    Index("ix_jobs_qrels_open", "qrels_id", sqlite_where=OPEN, postgresql_where=OPEN),
    Index("ix_jobs_qrels_id", "qrels_id"),
    Index("ix_jobs_dead_at", "dead_at"),
)

JOB_STATES: dict[str, ColumnElement[bool]] = {
    "queued": and_(jobs.c.finished_at.is_(None), jobs.c.dead_at.is_(None), jobs.c.lease_until.is_(None)),
    "running": and_(jobs.c.finished_at.is_(None), jobs.c.dead_at.is_(None), jobs.c.lease_until.is_not(None)),
    "done": jobs.c.finished_at.is_not(None),
    "dead": jobs.c.dead_at.is_not(None),
}

schedules = Table(
    "schedules",
    metadata,
    Column("id", Text, primary_key=True),
    Column("track_id", ForeignKey("tracks.id"), nullable=False, index=True),
    Column("team", Text, nullable=False),  # team that added the schedule
    Column("request", JSON, nullable=False),  # arguments of the audit request
    # A cron expression or a number of new runs triggers an audit. If both are null, every new qrels version
    # triggers one.
    Column("cron", Text),
    Column("zone", Text),  # time zone of the cron expression
    Column("every_runs", Integer),
    Column("due_at", Instant, index=True),  # next time that the cron expression matches
    Column("seen", Integer, nullable=False),  # number of the version, or number of runs, at the last audit
    Column("problem", Text),  # why the last due audit could not be requested
    Column("created_at", Instant, nullable=False),
    Column("paused_at", Instant),
    Column("removed_at", Instant),
)

audits = Table(
    "audits",
    metadata,
    Column("id", Text, primary_key=True),
    Column("track_id", ForeignKey("tracks.id"), nullable=False),
    Column("qrels_id", ForeignKey("qrels.id"), nullable=False),
    Column("other_id", ForeignKey("qrels.id")),  # the version that it is compared with
    Column("team", Text, nullable=False),  # team that requested the audit
    Column("schedule_id", ForeignKey("schedules.id")),
    Column("slot", Text),  # slot of the schedule; each slot has at most one audit
    Column("kind", Text, nullable=False),
    Column("parameters", JSON, nullable=False),
    Column("measures", JSON, nullable=False),
    Column("seed", BigInteger, nullable=False),
    Column("runs", JSON, nullable=False),  # a list [submission, name, team] for each run
    Column("part_trials", Integer),  # maximum number of trials per part
    Column("job_id", ForeignKey("jobs.id"), nullable=False),  # the job that prepares the subject
    Column("about", JSON(none_as_null=True)),  # summary of the subject; null until it is prepared
    Column("subject_blob", Text),
    Column("trials", Integer),
    Column("refused", JSON(none_as_null=True)),  # sentences that say why the audit failed
    Column("digest", Text),  # digest, verdict and numbers are null until all parts are done
    Column("verdict", JSON(none_as_null=True)),
    Column("numbers", JSON(none_as_null=True)),
    Column("created_at", Instant, nullable=False),
    Column("cancelled_at", Instant),
    Column("concluded_at", Instant),
    Index("ix_audits_track_id_kind_id", "track_id", "kind", "id"),
    UniqueConstraint("schedule_id", "slot"),
)

audit_parts = Table(
    "audit_parts",
    metadata,
    Column("audit_id", ForeignKey("audits.id"), primary_key=True),
    Column("number", Integer, primary_key=True),  # counted from 1
    Column("first", Integer, nullable=False),  # number of the first trial
    Column("trials", Integer, nullable=False),
    Column("job_id", ForeignKey("jobs.id"), nullable=False),
    Column("done", Integer, nullable=False),  # number of trials in `results`
    Column("results", LargeBinary),  # compressed JSON: trial -> result
)

alerts = Table(
    "alerts",
    metadata,
    Column("id", Text, primary_key=True),
    Column("track_id", ForeignKey("tracks.id"), nullable=False, index=True),
    Column("team", Text, nullable=False),  # team that added the alert
    Column("kind", Text, nullable=False),
    Column("number", Text, nullable=False),  # name of the number in the reports
    Column("below", Float(53)),  # the alert is raised below `below` or above `above`
    Column("above", Float(53)),
    Column("created_at", Instant, nullable=False),
    Column("removed_at", Instant),
)

alarms = Table(
    "alarms",
    metadata,
    Column("alert_id", ForeignKey("alerts.id"), primary_key=True),
    Column("audit_id", ForeignKey("audits.id"), primary_key=True),
    Column("value", Float(53)),  # null if the report lacks the number
    Column("raised", Boolean, nullable=False),
    Column("judged_at", Instant, nullable=False),
)

turns = Table(
    "turns",
    metadata,
    Column("queue", Text, primary_key=True),
    Column("tenant", Text, primary_key=True),
    Column("served_at", Instant, nullable=False),
)


def bump_revision(connection: Connection, track_ids: Iterable[int | None]) -> None:
    """Increment the revision of tracks whose leaderboards may have changed.

    So cached copies of the leaderboards expire.
    """
    ids = {id for id in track_ids if id is not None}
    # Lock the rows in a fixed order, so that two transactions cannot deadlock.
    locked = select(tracks.c.id).where(tracks.c.id.in_(ids)).order_by(tracks.c.id).with_for_update()
    connection.execute(update(tracks).where(tracks.c.id.in_(locked)).values(revision=tracks.c.revision + 1))
