"""A joined run seen aspect by aspect: what combining measures ask for scores and labels."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from cupel_measures.dense import Block, blocks
from cupel_measures.measure import Measure
from cupel_measures.model import Floats, Joined, Qrels
from cupel_measures.pool import Pool
from cupel_measures.rows import Hits, Rows


@dataclass(frozen=True, eq=False)
class View:
    """`joined` under `qrels`."""

    qrels: Qrels
    joined: Joined
    rows: dict[int, Rows] = field(default_factory=dict, repr=False)
    memory: dict[int, Block] = field(default_factory=dict, repr=False)

    def score(self, measure: Measure, aspect: str | None = None) -> Floats:
        """float64[rows]: a measure per row; a single-aspect one under `aspect`, or its own, or the first."""
        arguments = measure.arguments
        if measure.declaration.combines:
            return measure.declaration.compute(self, **arguments)
        own = arguments["aspect"]
        return self.score_in(measure, self.pool(aspect or own or self.qrels.aspects[0].name))

    def score_in(self, measure: Measure, pool: Pool) -> Floats:
        """float64[rows]: a single-aspect measure under the labels of `pool`."""
        arguments = measure.arguments
        arguments.pop("aspect")
        rows = self.rows_in(pool)
        return measure.declaration.compute(
            rows.condensed if arguments.pop("judged_only", False) else rows, **arguments
        )

    def pool(self, aspect: str) -> Pool:
        """The judgments of one aspect, negative grades taken as the profile says."""
        return Pool.of(self.qrels, aspect, negatives_judged=self.joined.profile.negatives_judged)

    def derived(self, key: str, make: Callable[[], Pool]) -> Pool:
        """The pool that `make` derives from these qrels, made once for each `key`."""
        if key not in self.qrels.cache:
            self.qrels.cache[key] = make()
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
            self.rows[id(pool)] = Rows.of(self.joined, pool)
        return self.rows[id(pool)]
