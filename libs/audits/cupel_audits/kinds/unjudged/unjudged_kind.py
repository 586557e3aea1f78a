"""`unjudged`: which judgments are missing most (what to judge in the next round)."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from cupel_audits.analysis.judgment_effects import if_judged
from cupel_audits.analysis.pools import Depth, Depths, in_tops, tops_of, unjudged
from cupel_audits.declarations import Audit, audit, setting, whole_number
from cupel_audits.kinds.unjudged import judging_list
from cupel_audits.report import AuditReport
from cupel_audits.subject import DECIMALS, AuditSubject, SubjectSummary
from cupel_measures.grammar.measure import Measure
from cupel_measures.model import Floats, Ints

Count = Annotated[int, whole_number()]
SHOWN = 10
"""Runs that are named with a document, best rank first."""


@audit(
    "unjudged",
    title="Unjudged documents",
    answers="Which unjudged documents matter most to the order of runs, and should be judged next?",
    source="influence of single judgments, after Carterette, Allan and Sitaraman, SIGIR 2006",
)
class Unjudged(Audit):
    """Judges each unjudged document of the first ranks at best, alone, and looks at what that would change.

    1. Of every topic, the unjudged documents that some run has among its first `depth`. Where there are more
       than `tried`, those of the largest sum of 1 / rank over runs.
    2. Each gets the highest label of every aspect (and is relevant to all subtopics of its topic), alone, and
       all runs are scored again on this topic by every measure, whether it is a sum over ranks or not.
    3. Its influence by a measure is a sum over neighbours in the order of runs: the share of the upper one's
       lead that it takes away, from 0 to 1, where they come level. Neighbours that are tied count 1 where it
       tells them apart. Its influence is the mean over measures. Beside it is told how many pairs of runs,
       neighbours or not, it would turn round.

    Influences are added as if documents did not matter to one another: this is a list for assessors, and no
    bound of what judging them all would do. A run that has a document below rank `look` is scored as if it
    had it not. Told for every run: unjudged@k, the share of unjudged documents among its first k.
    """

    depth: Depth = setting(10, "documents among the first so many of some run are looked at")
    look: Depth = setting(100, "how far down runs are searched for these documents")
    cutoffs: Depths = setting((5, 10, 20), "depths of unjudged@k")
    tried: Count = setting(50, "documents of a topic that are tried, at most")
    budget: Count = setting(10, "documents of a topic on the list, at most")
    most: Count = setting(100, "documents on the list, at most")

    def ranking_depth(self) -> int:
        return max(self.depth, self.look, *self.cutoffs)

    def trials(self, subject: AuditSubject) -> int:
        """One for each topic."""
        return len(subject.about.topics)

    def steps(self, subject: AuditSubject) -> float:
        return self.tried / max(len(subject.about.topics), 1)

    def run_trials(self, subject: AuditSubject, seed: int, trials: Sequence[int]) -> Iterator[Any]:
        tops = tops_of(subject)
        judged = in_tops(tops, subject.judged)
        for topic in trials:
            ranked = tops.ranked[:, topic : topic + 1]
            found = {k: unjudged(ranked, judged, k)[:, 0].tolist() for k in self.cutoffs}
            shares = [[k, [None if one != one else one for one in of]] for k, of in found.items()]
            missing = np.flatnonzero((tops.topic == topic) & ~judged)
            yield {"unjudged": shares, **self._topic(subject, topic, missing)}

    def _topic(self, subject: AuditSubject, topic: int, missing: Ints) -> dict[str, Any]:
        """The documents of a topic that are worth most, and what all that were tried are worth."""
        holders = {one: _holders(subject, topic, one) for one in missing.tolist()}
        seen = [one for one, of in holders.items() if min(rank for _, rank in of) <= self.depth]
        weight = {one: math.fsum(1 / rank for _, rank in holders[one]) for one in seen}
        tried = sorted(seen, key=lambda one: (-weight[one], one))[: self.tried]
        worth = _worth(subject, topic, np.array(tried, dtype=np.int64))
        told = [
            {
                "document": tops_of(subject).documents[one],
                "runs": len(holders[one]),
                "where": sorted(holders[one], key=lambda of: of[1])[:SHOWN],
                **worth[place],
            }
            for place, one in enumerate(tried)
        ]
        listed = sorted(told, key=lambda of: (-of["influence"], of["document"]))[: self.budget]
        return {
            "missing": len(seen),
            "tried": len(tried),
            "turning": sum(any(of[1] for of in one["measures"].values()) for one in told),
            "influence": math.fsum(of["influence"] for of in told),
            "documents": listed,
        }

    def report(self, about: SubjectSummary, found: Mapping[int, Any]) -> AuditReport:
        return judging_list.report(about, self.depth, self.most, found)


def _holders(subject: AuditSubject, topic: int, document: int) -> list[tuple[int, int]]:
    """The runs that have a document, each with its rank."""
    run, place = np.nonzero(tops_of(subject).ranked[:, topic] == document)
    return list(zip(run.tolist(), (place + 1).tolist(), strict=True))


def _worth(subject: AuditSubject, topic: int, documents: Ints) -> list[dict[str, Any]]:
    """Of each document its influence, and by measure what `_Order.told` says."""
    found: list[dict[str, Any]] = [{} for _ in documents]
    scores = if_judged(subject, topic, documents, subject.measures)
    for measure in subject.measures:
        if (values := scores[str(measure)]) is None:
            continue
        full = subject.means[str(measure)]
        after = shifted(measure, full, subject.scores[str(measure)][topic], values, len(subject.about.topics))
        order = _Order.of(full)
        for place, means in enumerate(after):
            found[place][str(measure)] = order.told(means)
    return [{"influence": _mean([of[0] for of in by.values()]), "measures": by} for by in found]


def shifted(measure: Measure, means: Floats, old: Floats, new: Floats, topics: int) -> Floats:
    """float64[n, runs]: the scores of runs when their values `old` on one of `topics` become `new`.

    means, old: float64[runs]; new: float64[n, runs].
    """
    kind = measure.declaration.aggregate
    if kind == "geometric mean":
        steps = [[math.log(b) - math.log(a) for a, b in zip(old, row, strict=True)] for row in new]
        factors = [[math.exp(step / topics) for step in row] for row in steps]
        after = means * np.array(factors).reshape(new.shape)
    else:
        after = means + (new - old if kind == "sum" else (new - old) / topics)
    return np.asarray(np.round(after, DECIMALS), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class _Order:
    """Runs by their scores. upper, lower: int64[runs - 1], neighbours. lead: float64[runs - 1]."""

    scores: Floats
    upper: Ints
    lower: Ints
    lead: Floats

    @classmethod
    def of(cls, scores: Floats) -> "_Order":
        order = np.argsort(-scores, kind="stable")
        upper, lower = order[:-1], order[1:]
        return cls(scores, upper, lower, scores[upper] - scores[lower])

    def told(self, after: Floats) -> list[Any]:
        """[influence, pairs turned round, [upper, lower, lead, what is left of it] of one pair, or None].

        The pair is the one of neighbours whose lead it touches most.
        """
        left = after[self.upper] - after[self.lower]
        taken = np.where(self.lead > 0, self.lead - left, np.abs(left))
        shares = np.divide(taken, self.lead, out=(taken > 0).astype(np.float64), where=self.lead > 0)
        shares = np.clip(np.round(shares, DECIMALS), 0, 1)
        if not shares.max(initial=0) > 0:
            return [0.0, 0, None]
        at = int(np.argmax(shares))
        pair = [int(self.upper[at]), int(self.lower[at]), float(self.lead[at]), float(left[at])]
        return [math.fsum(shares.tolist()), self._turned(after), pair]

    def _turned(self, after: Floats) -> int:
        """How many pairs of runs have the opposite order."""
        before = np.sign(self.scores[:, None] - self.scores)
        return int(np.count_nonzero(before * np.sign(after[:, None] - after) < 0)) // 2


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else 0.0
