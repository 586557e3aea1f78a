"""Infrastructure: settings, database, object store, queue, metrics, check processes."""
