"""Create the first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

# A copy of the first tables, because later changes of tables.py must not change this migration.
metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)

sa.Table(
    "tokens",
    metadata,
    sa.Column("prefix", sa.Text, primary_key=True),
    sa.Column("digest", sa.Text, nullable=False),
    sa.Column("team", sa.Text, nullable=False, index=True),
    sa.Column("scope", sa.Text, nullable=False),
    sa.Column("label", sa.Text, nullable=False),
    sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
    sa.Column("expires_at", sa.DateTime(timezone=True)),
    sa.Column("used_at", sa.DateTime(timezone=True)),
    sa.Column("revoked_at", sa.DateTime(timezone=True)),
)

sa.Table(
    "tracks",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.Text, nullable=False, unique=True),
    sa.Column("title", sa.Text, nullable=False),
    sa.Column("team", sa.Text, nullable=False),
    sa.Column("aspects", sa.JSON(none_as_null=True), nullable=False),
    sa.Column("label_sets", sa.JSON(none_as_null=True)),
    sa.Column("profile", sa.Text, nullable=False),
    sa.Column("measures", sa.JSON, nullable=False),
    sa.Column("depth", sa.Integer, nullable=False),
    sa.Column("current", sa.Integer),
    sa.Column("revision", sa.BigInteger, nullable=False),
    sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
    sa.Column("closed_at", sa.DateTime(timezone=True)),
)

sa.Table(
    "qrels",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("track_id", sa.ForeignKey("tracks.id"), nullable=False),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("digest", sa.Text, nullable=False),
    sa.Column("blob", sa.Text, nullable=False),
    sa.Column("topics", sa.JSON, nullable=False),
    sa.Column("counts", sa.JSON, nullable=False),
    sa.Column("findings", sa.JSON, nullable=False),
    sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
    sa.Column("published_at", sa.DateTime(timezone=True)),
    sa.Column("current_since", sa.DateTime(timezone=True)),
    sa.UniqueConstraint("track_id", "number"),
)

sa.Table(
    "runs",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("team", sa.Text, nullable=False),
    sa.Column("tag", sa.Text, nullable=False),
    sa.Column("digest", sa.Text, nullable=False),
    sa.Column("raw_digest", sa.Text, nullable=False),
    sa.Column("raw_blob", sa.Text, nullable=False),
    sa.Column("ranking_blob", sa.Text, nullable=False),
    sa.Column("topics", sa.Integer, nullable=False),
    sa.Column("documents", sa.Integer, nullable=False),
    sa.Column("bytes", sa.BigInteger, nullable=False),
    sa.Column("metadata", sa.JSON(none_as_null=True)),
    sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
    sa.UniqueConstraint("team", "raw_digest"),
)

sa.Table(
    "submissions",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("track_id", sa.ForeignKey("tracks.id"), nullable=False),
    sa.Column("run_id", sa.ForeignKey("runs.id"), nullable=False, index=True),
    sa.Column("team", sa.Text, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("received_at", sa.DateTime(timezone=True), nullable=False),
    sa.Column("completed_at", sa.DateTime(timezone=True), nullable=False),
    sa.Column("withdrawn_at", sa.DateTime(timezone=True)),
    sa.Column("findings", sa.JSON, nullable=False),
    sa.Column("profile_effects", sa.JSON, nullable=False),
    sa.Index("ix_submissions_track_id_team_id", "track_id", "team", "id"),
)

sa.Table(
    "keys",
    metadata,
    sa.Column("team", sa.Text, primary_key=True),
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("request", sa.Text, nullable=False),
    sa.Column("submission_id", sa.ForeignKey("submissions.id"), nullable=False),
    sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
)

sa.Table(
    "scores",
    metadata,
    sa.Column("submission_id", sa.ForeignKey("submissions.id"), primary_key=True),
    sa.Column("qrels_id", sa.ForeignKey("qrels.id"), primary_key=True),
    sa.Column("measure", sa.Text, primary_key=True),
    sa.Column("profile", sa.Text, primary_key=True),
    sa.Column("scoring_version", sa.Integer, primary_key=True),
    sa.Column("value", sa.Float(53)),
    sa.Column("vector", sa.LargeBinary, nullable=False),
    sa.Column("missing_topics", sa.Integer, nullable=False),
    sa.Column("scored_at", sa.DateTime(timezone=True), nullable=False),
    sa.Index("ix_scores_board", "qrels_id", "measure", "profile", "scoring_version", "value"),
)

OPEN = sa.text("finished_at IS NULL AND dead_at IS NULL")

sa.Table(
    "jobs",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("key", sa.Text, nullable=False, unique=True),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("queue", sa.Text, nullable=False),
    sa.Column("tenant", sa.Text, nullable=False),
    sa.Column("track_id", sa.ForeignKey("tracks.id")),
    sa.Column("submission_id", sa.ForeignKey("submissions.id"), index=True),
    sa.Column("qrels_id", sa.ForeignKey("qrels.id")),
    sa.Column("payload", sa.JSON, nullable=False),
    sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
    sa.Column("ready_at", sa.DateTime(timezone=True), nullable=False),
    sa.Column("token", sa.Integer, nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("claimed_at", sa.DateTime(timezone=True)),
    sa.Column("lease_until", sa.DateTime(timezone=True)),
    sa.Column("finished_at", sa.DateTime(timezone=True)),
    sa.Column("dead_at", sa.DateTime(timezone=True)),
    sa.Column("error", sa.Text),
    sa.Index("ix_jobs_open", "queue", "tenant", "id", sqlite_where=OPEN, postgresql_where=OPEN),
    sa.Index("ix_jobs_qrels_open", "qrels_id", sqlite_where=OPEN, postgresql_where=OPEN),
    sa.Index("ix_jobs_qrels_id", "qrels_id"),
    sa.Index("ix_jobs_dead_at", "dead_at"),
)

sa.Table(
    "turns",
    metadata,
    sa.Column("queue", sa.Text, primary_key=True),
    sa.Column("tenant", sa.Text, primary_key=True),
    sa.Column("served_at", sa.DateTime(timezone=True), nullable=False),
)


def upgrade() -> None:
    metadata.create_all(op.get_bind())


def downgrade() -> None:
    metadata.drop_all(op.get_bind())
