"""Alembic environment, which uses the connection and the transaction of `migrate`."""

from alembic import context

from cupel_backend.infrastructure.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,  # SQLite can change most columns only by copying the table.
)
with context.begin_transaction():
    context.run_migrations()
