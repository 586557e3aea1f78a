"""Add audits, schedules that create audits, and alerts on their results."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

Instant = sa.DateTime(timezone=True)


def upgrade() -> None:
    _create_schedules()
    _create_audits()
    _create_alerts()


def _create_schedules() -> None:
    op.create_table(
        "schedules",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("track_id", sa.Integer, sa.ForeignKey("tracks.id"), nullable=False),
        sa.Column("team", sa.Text, nullable=False),
        sa.Column("request", sa.JSON, nullable=False),
        sa.Column("cron", sa.Text),
        sa.Column("zone", sa.Text),
        sa.Column("every_runs", sa.Integer),
        sa.Column("due_at", Instant),
        sa.Column("seen", sa.Integer, nullable=False),
        sa.Column("problem", sa.Text),
        sa.Column("created_at", Instant, nullable=False),
        sa.Column("paused_at", Instant),
        sa.Column("removed_at", Instant),
    )
    op.create_index("ix_schedules_track_id", "schedules", ["track_id"])
    op.create_index("ix_schedules_due_at", "schedules", ["due_at"])


def _create_audits() -> None:
    op.create_table(
        "audits",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("track_id", sa.Integer, sa.ForeignKey("tracks.id"), nullable=False),
        sa.Column("qrels_id", sa.Integer, sa.ForeignKey("qrels.id"), nullable=False),
        sa.Column("other_id", sa.Integer, sa.ForeignKey("qrels.id")),
        sa.Column("team", sa.Text, nullable=False),
        sa.Column("schedule_id", sa.Text, sa.ForeignKey("schedules.id")),
        sa.Column("slot", sa.Text),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("parameters", sa.JSON, nullable=False),
        sa.Column("measures", sa.JSON, nullable=False),
        sa.Column("seed", sa.BigInteger, nullable=False),
        sa.Column("runs", sa.JSON, nullable=False),
        sa.Column("part_trials", sa.Integer),
        sa.Column("job_id", sa.Text, sa.ForeignKey("jobs.id"), nullable=False),
        sa.Column("about", sa.JSON(none_as_null=True)),
        sa.Column("subject_blob", sa.Text),
        sa.Column("trials", sa.Integer),
        sa.Column("refused", sa.JSON(none_as_null=True)),
        sa.Column("digest", sa.Text),
        sa.Column("verdict", sa.JSON(none_as_null=True)),
        sa.Column("numbers", sa.JSON(none_as_null=True)),
        sa.Column("created_at", Instant, nullable=False),
        sa.Column("cancelled_at", Instant),
        sa.Column("concluded_at", Instant),
        sa.UniqueConstraint("schedule_id", "slot"),
    )
    op.create_index("ix_audits_track_id_kind_id", "audits", ["track_id", "kind", "id"])
    op.create_table(
        "audit_parts",
        sa.Column("audit_id", sa.Text, sa.ForeignKey("audits.id"), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("first", sa.Integer, nullable=False),
        sa.Column("trials", sa.Integer, nullable=False),
        sa.Column("job_id", sa.Text, sa.ForeignKey("jobs.id"), nullable=False),
        sa.Column("done", sa.Integer, nullable=False),
        sa.Column("results", sa.LargeBinary),
    )


def _create_alerts() -> None:
    op.create_table(
        "alerts",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("track_id", sa.Integer, sa.ForeignKey("tracks.id"), nullable=False),
        sa.Column("team", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("number", sa.Text, nullable=False),
        sa.Column("below", sa.Float(53)),
        sa.Column("above", sa.Float(53)),
        sa.Column("created_at", Instant, nullable=False),
        sa.Column("removed_at", Instant),
    )
    op.create_index("ix_alerts_track_id", "alerts", ["track_id"])
    op.create_table(
        "alarms",
        sa.Column("alert_id", sa.Text, sa.ForeignKey("alerts.id"), primary_key=True),
        sa.Column("audit_id", sa.Text, sa.ForeignKey("audits.id"), primary_key=True),
        sa.Column("value", sa.Float(53)),
        sa.Column("raised", sa.Boolean, nullable=False),
        sa.Column("judged_at", Instant, nullable=False),
    )


def downgrade() -> None:
    for table in ("alarms", "alerts", "audit_parts", "audits", "schedules"):
        op.drop_table(table)
