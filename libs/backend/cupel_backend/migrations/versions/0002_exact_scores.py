"""Exact scores.

Scores that are there keep none: what they were computed from is not in the database. A board with one of them
goes by floats, as it did, until its next qrels version.
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


def downgrade() -> None:
    op.drop_column("scores", "exact_key")
    op.drop_column("scores", "exact")
