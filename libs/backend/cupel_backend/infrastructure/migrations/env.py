"""How Alembic reaches the tables: over the connection, and so in the transaction, that `migrate` hands it."""

from alembic import context

from cupel_backend.infrastructure.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,  # SQLite alters a table by copying it
)
with context.begin_transaction():
    context.run_migrations()
