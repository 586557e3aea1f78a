"""Document texts as term counts, and the texts that a run ranks."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cupel_measures.model.arrays import Ids, Ints


@dataclass(frozen=True, eq=False)
class Texts:
    """The texts of documents as counts of terms.

    documents: D different ids, in the order of their file. vocabulary: V terms, ascending by bytes.
    offsets: int64[D + 1]; document d has the terms offsets[d]:offsets[d + 1]. term: int32[n], index into the
    vocabulary, ascending within a document. count: int32[n], how often it stands there, from 1.
    """

    documents: Ids
    vocabulary: Ids
    offsets: Ints
    term: NDArray[np.int32]
    count: NDArray[np.int32]
    cache: dict[Any, Any] = field(default_factory=dict, repr=False)
    """Derived tables, keyed by who made them."""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "cache": {}}

    @classmethod
    def empty(cls) -> "Texts":
        """No texts."""
        nothing = np.zeros(0, dtype=np.int32)
        return cls(Ids.of([]), Ids.of([]), np.zeros(1, dtype=np.int64), nothing, nothing)

    def places(self, ids: Ids) -> Ints:
        """int64[n]: the place of each of `ids` among the documents, -1 where there is no text of it."""
        if "places" not in self.cache:
            self.cache["places"] = {one: place for place, one in enumerate(self.documents.to_list())}
        place = self.cache["places"].get
        return np.fromiter((place(one, -1) for one in ids.to_list()), dtype=np.int64, count=len(ids))


@dataclass(frozen=True, eq=False)
class Content:
    """The texts that a run ranks: a row per topic of the qrels, as in `Joined`, with every document of it.

    offsets: int64[rows + 1] into document. document: int64[n], by rank, the place of each document's text
    among `texts`, -1 where there is none.
    """

    texts: Texts
    offsets: Ints
    document: Ints
    cache: dict[Any, Any] = field(default_factory=dict, repr=False)
    """What measures derived from these rows, keyed by who made it."""

    @classmethod
    def empty(cls, topics: int) -> "Content":
        """A run without documents, and no texts."""
        return cls(Texts.empty(), np.zeros(topics + 1, dtype=np.int64), np.zeros(0, dtype=np.int64))

    def part(self, begin: int, end: int) -> "Content":
        """Rows begin..end - 1."""
        first, last = self.offsets[begin], self.offsets[end]
        return Content(self.texts, self.offsets[begin : end + 1] - first, self.document[first:last])

    @classmethod
    def stack(cls, parts: Sequence["Content"]) -> "Content":
        """The rows of several runs, one after another. ValueError where their texts differ."""
        if len({id(part.texts) for part in parts}) != 1:
            raise ValueError("only runs over the same texts can be stacked")
        lengths = np.concatenate([np.diff(part.offsets) for part in parts])
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        return cls(parts[0].texts, offsets, np.concatenate([part.document for part in parts]))
