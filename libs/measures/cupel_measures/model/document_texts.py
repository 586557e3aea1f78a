"""Document texts as term counts, and the texts that a run ranks."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cupel_measures.model.arrays import Ids, Ints


@dataclass(frozen=True, eq=False, kw_only=True)
class Texts:
    """Document texts as term counts.

    documents: D distinct ids, in the order of their file. vocabulary: V terms, ascending by bytes.
    offsets: int64[D + 1]; document d has the terms offsets[d]:offsets[d + 1]. term: int32[n], index into the
    vocabulary, ascending within a document. count: int32[n], occurrences in the document, at least 1.
    """

    documents: Ids
    vocabulary: Ids
    offsets: Ints
    term: NDArray[np.int32]
    count: NDArray[np.int32]
    cache: dict[Any, Any] = field(default_factory=dict, repr=False)
    """Cache of derived tables; the modules that compute the tables choose the keys."""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "cache": {}}

    @classmethod
    def empty(cls) -> "Texts":
        """Return texts of no documents."""
        nothing = np.zeros(0, dtype=np.int32)
        return cls(
            documents=Ids.of([]),
            vocabulary=Ids.of([]),
            offsets=np.zeros(1, dtype=np.int64),
            term=nothing,
            count=nothing,
        )

    def places(self, ids: Ids) -> Ints:
        """Return the index of each id among the documents: int64[n].

        It is -1 for a document without text.
        """
        if "places" not in self.cache:
            self.cache["places"] = {id_: place for place, id_ in enumerate(self.documents.to_list())}
        place = self.cache["places"].get
        return np.fromiter((place(id_, -1) for id_ in ids.to_list()), dtype=np.int64, count=len(ids))


@dataclass(frozen=True, eq=False)
class Content:
    """The texts of all documents of a run, with one row per topic of the qrels.

    offsets: int64[rows + 1] into document. document: int64[n], ordered by rank; the index of each document in
    `texts`, or -1 if it has no text. The rows correspond to those of `Joined`.
    """

    texts: Texts
    offsets: Ints
    document: Ints
    cache: dict[Any, Any] = field(default_factory=dict, repr=False)
    """Cache of tables derived from these rows; the modules that compute the tables choose the keys."""

    @classmethod
    def empty(cls, topics: int) -> "Content":
        """Return the content of a run without documents."""
        return cls(Texts.empty(), np.zeros(topics + 1, dtype=np.int64), np.zeros(0, dtype=np.int64))

    def part(self, begin: int, end: int) -> "Content":
        """Return rows `begin` to `end - 1`."""
        first, last = self.offsets[begin], self.offsets[end]
        return Content(self.texts, self.offsets[begin : end + 1] - first, self.document[first:last])

    @classmethod
    def stack(cls, parts: Sequence["Content"]) -> "Content":
        """Concatenate the rows of several runs. Raise ValueError if their texts differ."""
        if len({id(part.texts) for part in parts}) != 1:
            raise ValueError(
                "the runs have different texts; only runs over the same texts can be concatenated"
            )
        lengths = np.concatenate([np.diff(part.offsets) for part in parts])
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        return cls(parts[0].texts, offsets, np.concatenate([part.document for part in parts]))
