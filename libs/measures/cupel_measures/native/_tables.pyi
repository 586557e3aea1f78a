def has_scores(table: object) -> bool:
    """Return whether all ids of a dictionary are strings, and all scores floats or ints other than NaN."""

def hits(table: dict[str, float], pool: dict[str, int], single: bool) -> bytes | None:
    """Rank the documents of a table, and return those of the pool, by ascending rank.

    table: score by document. pool: index by document. single: compare scores as 32-bit floats. The result is
    int32[4, hits]: the index, the rank, and the first and last rank of the documents with an equal score.
    Return None if `has_scores(table)` is false, or if an index is invalid.
    """
