"""Runs that are tables of scores in memory: topic, document and score."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, pairwise, repeat
from math import isfinite

import numpy as np

from cupel_measures.findings import Finding, Findings, Refused, declare
from cupel_measures.model import Floats, Ints, Joined, Qrels, Run
from cupel_measures.model.profiles import Profile
from cupel_measures.reading.joins import DEEPEST
from cupel_measures.reading.lines.run_lines import EMPTY, SCORE
from cupel_measures.reading.lines.topic_checks import EXTRA, check_topics
from cupel_measures.reading.run_files import read_run
from cupel_measures.scoring.pool import Mask

Table = Mapping[str, Mapping[str, float]]
"""Topic -> document -> score."""

BLANK = declare(
    "id-blank",
    "error",
    "a topic or document id is empty or contains white space",
    "use ids without spaces, tabs and line ends; files in TREC format separate columns by them",
)
NUMBERS = (int, float, np.integer, np.floating)


@dataclass(frozen=True, eq=False)
class TableRun:
    """A run as a table of scores.

    name: shown in findings, and the tag of the run. table: all ids are strings.
    """

    name: str
    table: Table

    @cached_property
    def findings(self) -> Findings:
        """Return the errors: no documents, invalid ids, and scores that are not finite numbers."""
        findings = Findings()
        if not any(self.table.values()):
            findings.add(Finding(code=EMPTY, message="the run has no documents", file=self.name))
        for topic, scores in self.table.items():
            _check_ids([topic, *scores], topic, self.name, findings)
            _check_scores(scores, topic, self.name, findings)
        return findings

    def read(self, depth: int | None = None) -> Run:
        """Return the whole run."""
        if self.findings.refused:
            raise Refused(self.findings)
        lines = (
            f"{topic} Q0 {document} {rank} {float(scores[document])!r} {self.name}\n"
            for topic, scores in self.table.items()
            for rank, document in enumerate(sorted(scores, key=scores.__getitem__, reverse=True), 1)
        )
        run = read_run("".join(lines).encode(), name=self.name, depth=depth)
        listed = [replace(finding, line=None, column=None) for finding in run.findings.listed]
        return replace(run, findings=Findings(listed, run.findings.totals))

    def join(self, qrels: Qrels, *, profile: Profile, depth: int | None = None) -> Joined:
        """Join the table with `qrels`, without writing it as text."""
        if self.findings.refused:
            raise Refused(self.findings)
        listed = check_topics([*self.table], qrels.listed_topics, file=self.name)
        if listed.refused:
            raise Refused(listed)
        pools = pools_of(qrels)
        topics = [topic for topic in qrels.topics if topic in self.table]
        chosen = [self.table[topic] for topic in topics]
        found = (map(pools[topic].get, self.table[topic], repeat(-1)) for topic in topics)
        counts = np.zeros(len(qrels.topics), np.int64)
        counts[[row for row, topic in enumerate(qrels.topics) if topic in self.table]] = [*map(len, chosen)]
        columns = ScoredDocuments(
            counts=counts,
            scores=np.fromiter(chain.from_iterable(scores.values() for scores in chosen), np.float64),
            document=np.fromiter(chain.from_iterable(found), np.int64),
        )
        joined = columns.joined(lambda: [*chain.from_iterable(chosen)], profile, depth)
        return replace(joined, unknown_topics=listed.totals.get(EXTRA, 0))


@dataclass(frozen=True, eq=False)
class ScoredDocuments:
    """The documents of a run, grouped by topic of the qrels.

    counts: int64[T], number of documents of each topic. scores: float64[n]. document: int64[n], index into
    `Qrels.documents`, or -1 for a document outside the pool.
    """

    counts: Ints
    scores: Floats
    document: Ints

    def joined(self, ids: Callable[[], Sequence[str]], profile: Profile, depth: int | None) -> Joined:
        """Order the documents of each topic by score and id, and return the hits.

        ids: returns the id of each document. It is called only if documents have equal scores.
        """
        depth = DEEPEST if depth is None else min(depth, DEEPEST)
        begins = np.concatenate([[0], np.cumsum(self.counts)])
        topic = np.repeat(np.arange(len(self.counts)), self.counts)
        order, opens = self._order(topic, profile)
        bounds = np.append(np.flatnonzero(opens), len(order))
        if len(bounds) <= len(order):
            order = _by_id_within_ties(order, bounds, self.document, ids())
        group = np.cumsum(opens) - 1
        hits = np.flatnonzero(self.document[order] >= 0)
        row = topic[order[hits]]
        first, last = bounds[group[hits]] - begins[row] + 1, bounds[group[hits] + 1] - begins[row]
        rank = hits - begins[row] + 1
        kept = rank <= depth
        offsets = np.concatenate([[0], np.cumsum(np.bincount(row[kept], minlength=len(self.counts)))])
        columns = (self.document[order[hits]], rank, first, np.minimum(last, depth))
        document, rank, first, last = (column[kept].astype(np.int32) for column in columns)
        return Joined(
            retrieved=np.minimum(self.counts, depth),
            offsets=offsets.astype(np.int64),
            document=document,
            rank=rank,
            first=first,
            last=last,
            profile=profile,
        )

    def _order(self, topic: Ints, profile: Profile) -> tuple[Ints, Mask]:
        """Return the order by topic and score, and which of the ordered documents open a group of ties."""
        scores = self.scores
        if profile.single_precision:
            with np.errstate(over="ignore", under="ignore"):
                scores = scores.astype(np.float32).astype(np.float64)
        same_topic = topic[1:] == topic[:-1]
        order = np.arange(len(scores))
        if ((scores[1:] > scores[:-1]) & same_topic).any():
            order = np.lexsort((-scores, topic))
            scores = scores[order]
        opens = np.ones(len(scores), bool)
        opens[1:] = ~(same_topic & (scores[1:] == scores[:-1]))
        return order, opens


def _by_id_within_ties(order: Ints, bounds: Ints, document: Ints, ids: Sequence[str]) -> Ints:
    """Return the order with the documents of each group of ties by descending id.

    Groups without a document of the pool are left as they are.
    """
    order = order.copy()
    pooled = np.add.reduceat(document[order] >= 0, bounds[:-1])
    for group in np.flatnonzero((np.diff(bounds) > 1) & (pooled > 0)).tolist():
        tied = slice(bounds[group], bounds[group + 1])
        # The order of code points is that of the bytes in UTF-8.
        order[tied] = sorted(order[tied].tolist(), key=ids.__getitem__, reverse=True)
    return order


def pools_of(qrels: Qrels) -> Mapping[str, Mapping[str, int]]:
    """Return the index of each document by topic and id, computed once per qrels."""
    if "inputs.pools" not in qrels.cache:
        ids = [id_.decode() for id_ in qrels.documents.to_list()]
        qrels.cache["inputs.pools"] = {
            topic: dict(zip(ids[begin:end], range(begin, end), strict=True))
            for topic, (begin, end) in zip(qrels.topics, pairwise(qrels.offsets.tolist()), strict=True)
        }
    pools: Mapping[str, Mapping[str, int]] = qrels.cache["inputs.pools"]
    return pools


def _check_ids(ids: Sequence[str], topic: str, name: str, findings: Findings) -> None:
    if len("\n".join(ids).split()) == len(ids):
        return
    for id_ in ids:
        if len(id_.split()) != 1:
            where = "topic id" if id_ is topic else f"document id of topic {topic!r}"
            message = f"the {where} {id_!r} is empty or contains white space"
            findings.add(Finding(code=BLANK, message=message, file=name, topic=topic, sample=id_))


def _check_scores(scores: Mapping[str, float], topic: str, name: str, findings: Findings) -> None:
    kinds = set(map(type, scores.values()))
    are_numbers = all(issubclass(kind, NUMBERS) and kind is not bool for kind in kinds)
    if are_numbers and isfinite(sum(scores.values())):
        return
    for document, score in scores.items():
        if isinstance(score, bool) or not isinstance(score, NUMBERS) or not isfinite(score):
            message = (
                f"the score {score!r} of document {document!r} of topic {topic!r} is not a finite number"
            )
            findings.add(Finding(code=SCORE, message=message, file=name, topic=topic, sample=str(score)))
