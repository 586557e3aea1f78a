"""Add exact scores and explanations.

Existing scores get no exact value, because the database lacks the data to compute it. A leaderboard with such
a score is sorted by floats, as before, until its next qrels version.
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

Bytewise = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.add_column("scores", sa.Column("exact", sa.Text))
    op.add_column("scores", sa.Column("exact_key", Bytewise))
    op.create_table(
        "explanations",
        sa.Column("submission_id", sa.Text, sa.ForeignKey("submissions.id"), primary_key=True),
        sa.Column("qrels_id", sa.Integer, sa.ForeignKey("qrels.id"), primary_key=True),
        sa.Column("measure", sa.Text, primary_key=True),
        sa.Column("profile", sa.Text, primary_key=True),
        sa.Column("scoring_version", sa.Integer, primary_key=True),
        sa.Column("about", sa.Text, primary_key=True),
        sa.Column("data", sa.JSON(none_as_null=True)),
        sa.Column("explained_at", sa.DateTime(timezone=True), nullable=False),
    )


def downgrade() -> None:
    op.drop_table("explanations")
    op.drop_column("scores", "exact_key")
    op.drop_column("scores", "exact")
