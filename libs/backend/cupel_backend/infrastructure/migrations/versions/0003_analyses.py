"""Add analyses of leaderboards.

The migration adds no analyses for existing leaderboards. The scheduler detects missing analyses and queues
them.
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("tracks", sa.Column("analysed", sa.BigInteger))
    op.create_table(
        "analyses",
        sa.Column("qrels_id", sa.Integer, sa.ForeignKey("qrels.id"), primary_key=True),
        sa.Column("measure", sa.Text, primary_key=True),
        sa.Column("profile", sa.Text, primary_key=True),
        sa.Column("scoring_version", sa.Integer, primary_key=True),
        sa.Column("basis", sa.Text, nullable=False),
        sa.Column("data", sa.JSON, nullable=False),
        sa.Column("analysed_at", sa.DateTime(timezone=True), nullable=False),
    )


def downgrade() -> None:
    op.drop_table("analyses")
    op.drop_column("tracks", "analysed")
