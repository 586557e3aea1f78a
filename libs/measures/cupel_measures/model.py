"""The nouns of evaluation: aspects and their scales, qrels, rankings, runs, and a run joined with qrels.

All are immutable values over flat numpy arrays. Topics are sorted by the bytes of their ids (for
UTF-8 text that is Python's own order of strings); a pool is sorted by document id within its topic.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cupel_measures.findings import Findings
from cupel_measures.profiles import DEFAULT, Profile

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Exact = int | Fraction
Label = int | str

# States of a (document, aspect) pair that carry no label of the scale. A label index is >= 0.
NEGATIVE = (
    -1
)  # a negative grade: lowest label, judged (spec 1.2) - yet "pooled, not judged" to Bpref and infAP
UNJUDGED = -2  # in the pool of this aspect with a label that says "not judged"
ABSENT = -3  # not in the pool of this aspect


@dataclass(frozen=True)
class Aspect:
    """One judged dimension and its ordered scale.

    `labels` run from worst to best; `lowest` are further labels read as the worst one, `unjudged`
    those that say "not judged". `threshold` is the index of the smallest label that counts as
    relevant. `gains` and `embedding` have one number per label, non-decreasing. `inferred` says
    that the scale was read off a plain qrels file (0 to its highest grade).
    """

    name: str
    labels: Sequence[Label]
    lowest: tuple[Label, ...] = ()
    unjudged: tuple[Label, ...] = ()
    threshold: int = 1
    declared_gains: tuple[float, ...] | None = None
    declared_embedding: tuple[float | Fraction, ...] | None = None
    inferred: bool = False

    @property
    def integer(self) -> bool:
        """Whether all labels are integers, so that gains and `rel` are the labels themselves."""
        return isinstance(self.labels, range) or all(isinstance(label, int) for label in self.labels)

    @cached_property
    def gains(self) -> Floats:
        """Gain per label index: declared, else the label itself (negatives 0), else its index."""
        if self.declared_gains is not None:
            return np.array(self.declared_gains, dtype=np.float64)
        if self.integer and self.ascending:
            return np.maximum(np.array(self.labels, dtype=np.float64), 0.0)
        return np.arange(len(self.labels), dtype=np.float64)

    @property
    def ascending(self) -> bool:
        """Whether integer labels grow with quality (a range may descend: `{range: [100, 0]}`)."""
        return len(self.labels) < 2 or self.labels[0] < self.labels[-1]  # type: ignore[operator]

    def index_from(self, rel: int) -> int:
        """Index of the smallest label that reaches `rel`: a label where they are integers, else an index.

        At least 0, and the number of labels where none reaches it.
        """
        if not self.integer:
            return max(rel, 0)
        sign = 1 if self.ascending else -1
        reaching = (i for i, label in enumerate(self.labels) if int(label) * sign >= rel * sign)
        return next(reaching, len(self.labels))

    @cached_property
    def embedding(self) -> tuple[float | Fraction, ...]:
        """Place of each label for distances (spec 3.1): declared, else 0, 1, 2, ..."""
        return self.declared_embedding or tuple(range(len(self.labels)))


@dataclass(frozen=True)
class LabelSet:
    """Label tuples that can occur: `tuples` of label indices, in the order of `aspects` (spec 3.2)."""

    aspects: tuple[str, ...]
    tuples: frozenset[tuple[int, ...]]


@dataclass(frozen=True, eq=False)
class Ids:
    """Many short byte strings in one: id `i` is `blob[starts[i]:starts[i + 1]]`, UTF-8."""

    blob: bytes
    starts: Ints

    @classmethod
    def of(cls, ids: Sequence[bytes]) -> "Ids":
        """Pack `ids` in their order."""
        starts = np.zeros(len(ids) + 1, dtype=np.int64)
        np.cumsum([len(one) for one in ids], out=starts[1:])
        return cls(b"".join(ids), starts)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, i: int) -> str:
        return self.blob[self.starts[i] : self.starts[i + 1]].decode()

    def bytes_at(self, i: int) -> bytes:
        return self.blob[self.starts[i] : self.starts[i + 1]]

    def to_list(self) -> list[bytes]:
        """Every id, in order."""
        starts = self.starts.tolist()
        return [self.blob[a:b] for a, b in itertools.pairwise(starts)]


@dataclass(frozen=True, eq=False)
class Subtopics:
    """Judgments by subtopic: row i says that document[i] got judgment[i] for subtopic names[subtopic[i]].

    names: different ids, in byte order; the same id in two topics is two subtopics. document (index into
    `Qrels.documents`), subtopic, judgment: int32[n], sorted by document, then subtopic.
    """

    names: tuple[str, ...]
    document: NDArray[np.int32]
    subtopic: NDArray[np.int32]
    judgment: NDArray[np.int32]

    def only(self, mask: NDArray[np.bool_]) -> "Subtopics":
        """The rows in `mask`, bool[n]."""
        return replace(
            self, document=self.document[mask], subtopic=self.subtopic[mask], judgment=self.judgment[mask]
        )


@dataclass(frozen=True, eq=False)
class Qrels:
    """All judgments of a collection, of all aspects.

    topics: T ids in byte order. offsets: int64[T + 1]; topic t's pool is documents
    offsets[t]:offsets[t + 1]. documents: D ids, ascending by bytes within a topic. labels:
    int32[A, D], the label index on its aspect's scale, or NEGATIVE, UNJUDGED, ABSENT. label_sets: those
    the collection declares, by name.
    """

    aspects: tuple[Aspect, ...]
    topics: tuple[str, ...]
    offsets: Ints
    documents: Ids
    labels: NDArray[np.int32]
    label_sets: Mapping[str, LabelSet] = field(default_factory=dict)
    subtopics: Subtopics | None = None
    cache: dict[Any, Any] = field(default_factory=dict, repr=False)
    """Derived tables (lookup tables of readers, ideal gains of measures), keyed by who made them."""
    whole: "Qrels | None" = field(default=None, repr=False)
    """Those of which these are a part, by `keeping`."""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "cache": {}}  # another process makes its own tables

    @classmethod
    def empty(
        cls, aspects: tuple[Aspect, ...], label_sets: Mapping[str, LabelSet], *, subtopics: bool = True
    ) -> "Qrels":
        """Qrels without topics, which may get judgments by subtopic unless `subtopics` is false."""
        none = np.zeros((len(aspects), 0), dtype=np.int32)
        by_subtopic = Subtopics((), *np.zeros((3, 0), dtype=np.int32)) if subtopics else None
        return cls(aspects, (), np.zeros(1, dtype=np.int64), Ids.of([]), none, label_sets, by_subtopic)

    def keeping(self, kept: NDArray[np.bool_], aspect: str | None = None) -> "Qrels":
        """These qrels without the judgments of other documents than `kept`, bool[D].

        A document without judgments keeps its place in `documents`: what was joined stays joined. With
        `aspect` only its labels are taken away; without, all labels and judgments by subtopic.
        """
        where = slice(None) if aspect is None else self.aspect_index(aspect)
        labels = self.labels.copy()
        labels[where, ...] = np.where(kept, self.labels[where], ABSENT)
        subtopics = self.subtopics
        if subtopics is not None and aspect is None:
            subtopics = subtopics.only(kept[subtopics.document])
        return replace(self, labels=labels, subtopics=subtopics, cache={}, whole=self)

    def aspect_index(self, name: str) -> int:
        """Index of the aspect called `name`; KeyError if there is none."""
        for index, aspect in enumerate(self.aspects):
            if aspect.name == name:
                return index
        raise KeyError(name)

    @cached_property
    def only_by_subtopic(self) -> bool:
        """Whether there are judgments by subtopic, and of no aspect any; a part is as the whole."""
        if self.whole is not None:
            return self.whole.only_by_subtopic
        return self.subtopics is not None and bool(self.labels.size) and bool((self.labels == ABSENT).all())

    @cached_property
    def topic_of(self) -> Ints:
        """int64[D]: the index of each pooled document's topic."""
        return np.repeat(np.arange(len(self.topics)), np.diff(self.offsets))


@dataclass(frozen=True, eq=False)
class Ranking:
    """Every document of a run, in order: by topic (bytes), then score descending, then id descending.

    topics: T ids. offsets: int64[T + 1] into documents (n ids) and scores (float64[n]).
    """

    topics: tuple[str, ...]
    offsets: Ints
    documents: Ids
    scores: Floats


@dataclass(frozen=True, eq=False)
class Run:
    """A run as read: its tag, its ranking before any cut, its ir_metadata block and what was found.

    reordered: the topics that the rank column would order otherwise.
    """

    tag: str
    ranking: Ranking
    findings: Findings
    metadata: Mapping[str, Any] | None = None
    reordered: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Joined:
    """A run seen through qrels: a row per topic of the qrels (in their order, one run after another).

    A row keeps only the retrieved documents that the topic's pool knows, by ascending rank; an
    unjudged document matters only through the ranks of the others.

    retrieved: int64[rows], how many documents the run has for the topic (after any depth cut).
    offsets: int64[rows + 1] into the hits. document: int32[hits], index into `Qrels.documents`.
    rank: int32[hits], from 1. first, last: int32[hits], ranks of the first and last document with
    the same score as the hit (its tie group), itself included. profile: the rules it was joined by.
    strangers: how many topics of the run the qrels don't have; they are ignored.
    """

    retrieved: Ints
    offsets: Ints
    document: NDArray[np.int32]
    rank: NDArray[np.int32]
    first: NDArray[np.int32]
    last: NDArray[np.int32]
    profile: Profile = DEFAULT
    strangers: int = 0

    @classmethod
    def empty(cls, topics: int) -> "Joined":
        """A run without documents."""
        nothing = np.zeros(0, dtype=np.int32)
        rows = np.zeros(topics, dtype=np.int64), np.zeros(topics + 1, dtype=np.int64)
        return cls(*rows, nothing, nothing, nothing, nothing)

    def part(self, begin: int, end: int) -> "Joined":
        """Rows begin..end - 1; topics of the run that the qrels don't have are not counted."""
        hits = slice(self.offsets[begin], self.offsets[end])
        return Joined(
            self.retrieved[begin:end],
            self.offsets[begin : end + 1] - self.offsets[begin],
            self.document[hits],
            self.rank[hits],
            self.first[hits],
            self.last[hits],
            self.profile,
        )

    @classmethod
    def stack(cls, parts: Sequence["Joined"]) -> "Joined":
        """The rows of several runs, one after another. ValueError where their profiles differ."""
        if len({part.profile.name for part in parts}) != 1:
            raise ValueError("only runs that were joined by one profile can be stacked")
        ends = np.concatenate([[0], np.cumsum([part.offsets[-1] for part in parts])])
        offsets = [part.offsets[:-1] + end for part, end in zip(parts, ends[:-1], strict=True)]
        return cls(
            np.concatenate([part.retrieved for part in parts]),
            np.concatenate([*offsets, ends[-1:]]).astype(np.int64),
            np.concatenate([part.document for part in parts]),
            np.concatenate([part.rank for part in parts]),
            np.concatenate([part.first for part in parts]),
            np.concatenate([part.last for part in parts]),
            parts[0].profile,
            sum(part.strangers for part in parts),
        )


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
