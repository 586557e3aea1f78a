"""A joined run with its judgments per aspect and by subtopic.

It gives combining measures the scores and labels that they combine.
"""

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


@dataclass(frozen=True, eq=False, kw_only=True)
class AspectView:
    """A joined run with qrels, and optionally the texts of the same rows.

    unrestricted: the view with the qrels of which `qrels` is a restriction, or None.
    """

    qrels: Qrels
    joined: Joined
    content: Content | None = None
    unrestricted: "AspectView | None" = None
    rows: dict[int, Rows] = field(default_factory=dict, repr=False)
    memory: dict[int, Block] = field(default_factory=dict, repr=False)
    scores: dict[tuple[Measure, int], Floats] = field(default_factory=dict, repr=False)

    def under(self, qrels: Qrels) -> "AspectView":
        """Return a view of the same rows with other qrels.

        qrels: created by `Qrels.restricted_to`.
        """
        return AspectView(qrels=qrels, joined=self.joined, content=self.content, unrestricted=self)

    def score(self, measure: Measure, aspect: str | None = None) -> Floats:
        """Return float64[rows]: the values of a measure.

        The aspect is `aspect`; if it is None, the aspect of the measure; if this is None too, the first
        aspect.
        """
        if measure.declaration.combines:
            return measure.declaration.compute(self, **measure.arguments)
        if measure.declaration.texts:
            return measure.declaration.compute(self.by_content, **measure.arguments)
        if measure.declaration.subtopics:
            return _computed(measure, self.by_subtopic, measure.arguments)
        return self.score_in(measure, self._pool_of(measure, aspect))

    def score_in(self, measure: Measure, pool: Pool) -> Floats:
        """Return the values of a single-aspect measure with the labels of `pool`.

        float64[rows].

        The result is cached, because several combining measures can use the same one.
        """
        key = measure, id(pool)  # the rows keep `pool` alive, so its id is unique
        if key not in self.scores:
            rows, arguments = self._arguments_for(measure, pool)
            self.scores[key] = measure.declaration.compute(rows, **arguments)
        return self.scores[key]

    def exact(self, measure: Measure) -> Sequence[Exact]:
        """Return the exact value of a measure for each row.

        Raises MeasureError if the measure has no exact values.
        """
        if not measure.declaration.combines:
            return self.exact_in(measure, self._pool_of(measure))
        return _exactly(measure)(self, **measure.arguments)

    def exact_in(self, measure: Measure, pool: Pool) -> Sequence[Exact]:
        """Return the exact values of a single-aspect measure with the labels of `pool`."""
        rows, arguments = self._arguments_for(measure, pool)
        return _exactly(measure)(rows, **arguments)

    def _pool_of(self, measure: Measure, aspect: str | None = None) -> Pool:
        return self.pool(aspect or measure.arguments["aspect"] or self.qrels.aspects[0].name)

    def _arguments_for(self, measure: Measure, pool: Pool) -> tuple[Rows, dict[str, Any]]:
        """Return the arguments of the function of a single-aspect measure."""
        arguments = measure.arguments
        arguments.pop("aspect")
        rows = self.rows_in(pool)
        return rows.condensed if arguments.pop("judged_only", False) else rows, arguments

    @cached_property
    def by_subtopic(self) -> SubtopicRows:
        """Return the rows with the judgments by subtopic.

        Raises MeasureError if the qrels have none.
        """
        return SubtopicRows.of(self.joined, self._subtopics)

    @cached_property
    def by_content(self) -> ContentRows:
        """Return the texts of the rows.

        Raises MeasureError without texts or without judgments by subtopic.
        """
        if self.content is None:
            raise MeasureError(
                "it needs the texts of the documents, and this collection has none; "
                "add them to the collection file, as in texts: docs.jsonl.gz"
            )
        return ContentRows(self.qrels, self._subtopics, self.content)

    @property
    def _subtopics(self) -> SubtopicPool:
        return SubtopicPool.of(self.qrels, negatives_judged=self.joined.profile.negatives_judged)

    def pool(self, aspect: str) -> Pool:
        """Return the judgments of one aspect.

        The profile determines whether negative grades are judgments.
        """
        return Pool.of(self.qrels, aspect, negatives_judged=self.joined.profile.negatives_judged)

    def derived(self, key: str, make: Callable[["AspectView"], Pool]) -> Pool:
        """Return the pool that `make` derives from a view.

        It is created once per qrels and `key`.
        """
        if key not in self.qrels.cache:
            pool = make(self)
            self.qrels.cache[key] = (
                pool.part_of(self.unrestricted.derived(key, make)) if self.unrestricted else pool
            )
        cached: Pool = self.qrels.cache[key]
        return cached

    @cached_property
    def hits(self) -> Hits:
        """Return the hits of all rows.

        Hits are the retrieved documents that are in the pool of their topic.
        """
        return self.rows_in(self.pool(self.qrels.aspects[0].name)).hits

    def dense(self) -> Iterator[Block]:
        """Yield all rows with a label at every rank, in blocks of bounded size.

        The last block is cached. The rows of a single run usually fit into one block, which all measures
        share.
        """
        for block in blocks(self.qrels, self.joined):
            if block.begin not in self.memory:
                self.memory.clear()
                self.memory[block.begin] = block
            yield self.memory[block.begin]

    def rows_in(self, pool: Pool) -> Rows:
        """Return the rows with the labels of `pool`."""
        if id(pool) not in self.rows:
            unrestricted = (
                self.unrestricted and pool.unrestricted and self.unrestricted.rows_in(pool.unrestricted)
            )
            self.rows[id(pool)] = unrestricted.under(pool) if unrestricted else Rows.of(self.joined, pool)
        return self.rows[id(pool)]


def _computed(measure: Measure, rows: SubtopicRows, arguments: dict[str, Any]) -> Floats:
    """Compute the measure.

    If `arguments` have judged_only=True, unjudged documents are removed first.
    """
    selected = rows.condensed if arguments.pop("judged_only", False) else rows
    return measure.declaration.compute(selected, **arguments)


def _exactly(measure: Measure) -> Callable[..., Sequence[Exact]]:
    if measure.declaration.exact is None:
        raise MeasureError(f"{measure.declaration.name} has no exact values, only floats")
    return measure.declaration.exact
