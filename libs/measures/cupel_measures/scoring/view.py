"""A joined run seen aspect by aspect, or by subtopic: what combining measures ask for scores and labels."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from cupel_measures.grammar.measure import Measure
from cupel_measures.grammar.syntax import MeasureError
from cupel_measures.model import Content, Exact, Floats, Joined, Qrels
from cupel_measures.scoring.dense import Block, blocks
from cupel_measures.scoring.ground_truth import ContentRows
from cupel_measures.scoring.pool import Pool
from cupel_measures.scoring.rows import Hits, Rows
from cupel_measures.scoring.subtopics import SubtopicPool, SubtopicRows


@dataclass(frozen=True, eq=False)
class AspectView:
    """`joined` under `qrels`, and the texts of the same rows where there are any.

    whole: the view under those qrels of which these are a part, if any.
    """

    qrels: Qrels
    joined: Joined
    content: Content | None = None
    whole: "AspectView | None" = None
    rows: dict[int, Rows] = field(default_factory=dict, repr=False)
    memory: dict[int, Block] = field(default_factory=dict, repr=False)
    scores: dict[tuple[Measure, int], Floats] = field(default_factory=dict, repr=False)

    def under(self, qrels: Qrels) -> "AspectView":
        """The same rows under a part of the judgments, made of these qrels by `keeping`."""
        return AspectView(qrels, self.joined, self.content, self)

    def score(self, measure: Measure, aspect: str | None = None) -> Floats:
        """float64[rows]: a measure per row; a single-aspect one under `aspect`, or its own, or the first."""
        if measure.declaration.combines:
            return measure.declaration.compute(self, **measure.arguments)
        if measure.declaration.texts:
            return measure.declaration.compute(self.by_content, **measure.arguments)
        if measure.declaration.subtopics:
            return _computed(measure, self.by_subtopic, measure.arguments)
        return self.score_in(measure, self._pool_of(measure, aspect))

    def score_in(self, measure: Measure, pool: Pool) -> Floats:
        """float64[rows]: a single-aspect measure under the labels of `pool`.

        Kept: several combining measures ask for it, and somebody for it alone.
        """
        key = measure, id(pool)  # `pool` is kept by the rows
        if key not in self.scores:
            rows, arguments = self._seen_by(measure, pool)
            self.scores[key] = measure.declaration.compute(rows, **arguments)
        return self.scores[key]

    def exact(self, measure: Measure) -> Sequence[Exact]:
        """A measure per row as exact numbers; MeasureError where it has none."""
        if not measure.declaration.combines:
            return self.exact_in(measure, self._pool_of(measure))
        return _exactly(measure)(self, **measure.arguments)

    def exact_in(self, measure: Measure, pool: Pool) -> Sequence[Exact]:
        """The exact numbers of a single-aspect measure under the labels of `pool`."""
        rows, arguments = self._seen_by(measure, pool)
        return _exactly(measure)(rows, **arguments)

    def _pool_of(self, measure: Measure, aspect: str | None = None) -> Pool:
        return self.pool(aspect or measure.arguments["aspect"] or self.qrels.aspects[0].name)

    def _seen_by(self, measure: Measure, pool: Pool) -> tuple[Rows, dict[str, Any]]:
        """What the function of a single-aspect measure takes."""
        arguments = measure.arguments
        arguments.pop("aspect")
        rows = self.rows_in(pool)
        return rows.condensed if arguments.pop("judged_only", False) else rows, arguments

    @cached_property
    def by_subtopic(self) -> SubtopicRows:
        """The rows under the judgments by subtopic; MeasureError where the qrels have none."""
        return SubtopicRows.of(self.joined, self._subtopics)

    @cached_property
    def by_content(self) -> ContentRows:
        """The texts of the rows; MeasureError where there are none, or no judgments by subtopic."""
        if self.content is None:
            raise MeasureError(
                "it needs the texts of the documents, and this collection has none; "
                "a collection file names them as texts: docs.jsonl.gz"
            )
        return ContentRows(self.qrels, self._subtopics, self.content)

    @property
    def _subtopics(self) -> SubtopicPool:
        return SubtopicPool.of(self.qrels, negatives_judged=self.joined.profile.negatives_judged)

    def pool(self, aspect: str) -> Pool:
        """The judgments of one aspect, negative grades taken as the profile says."""
        return Pool.of(self.qrels, aspect, negatives_judged=self.joined.profile.negatives_judged)

    def derived(self, key: str, make: Callable[["AspectView"], Pool]) -> Pool:
        """The pool that `make` derives from the qrels of a view, made once for each `key`."""
        if key not in self.qrels.cache:
            made = make(self)
            self.qrels.cache[key] = made.part_of(self.whole.derived(key, make)) if self.whole else made
        pool: Pool = self.qrels.cache[key]
        return pool

    @cached_property
    def hits(self) -> Hits:
        """The retrieved documents of the pool, whatever aspects they are judged for."""
        return self.rows_in(self.pool(self.qrels.aspects[0].name)).hits

    def dense(self) -> Iterator[Block]:
        """All rows with a label at every rank, in blocks of bounded memory.

        The last block is kept: a single run is one block, made once for all measures that ask.
        """
        for block in blocks(self.qrels, self.joined):
            if block.begin not in self.memory:
                self.memory.clear()
                self.memory[block.begin] = block
            yield self.memory[block.begin]

    def rows_in(self, pool: Pool) -> Rows:
        """The rows under the labels of `pool`."""
        if id(pool) not in self.rows:
            known = self.whole and pool.whole and self.whole.rows_in(pool.whole)
            self.rows[id(pool)] = known.under(pool) if known else Rows.of(self.joined, pool)
        return self.rows[id(pool)]


def _computed(measure: Measure, rows: SubtopicRows, arguments: dict[str, Any]) -> Floats:
    """The measure's function, over judged documents only where that is among its `arguments`."""
    seen = rows.condensed if arguments.pop("judged_only", False) else rows
    return measure.declaration.compute(seen, **arguments)


def _exactly(measure: Measure) -> Callable[..., Sequence[Exact]]:
    if measure.declaration.exact is None:
        raise MeasureError(f"{measure.declaration.name} has no exact values, only floats")
    return measure.declaration.exact
