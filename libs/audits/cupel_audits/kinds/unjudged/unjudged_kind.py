"""Audit kind `unjudged`: the unjudged documents that matter most, to judge next."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated

import numpy as np

from cupel_audits.analysis.pools import Depth, Depths, in_tops, tops_of, unjudged
from cupel_audits.declarations import Audit, audit, setting, whole_number
from cupel_audits.kinds.unjudged import judging_list
from cupel_audits.kinds.unjudged.document_influence import DocumentInfluence, list_influences
from cupel_audits.kinds.unjudged.judging_list import ExaminedDocument, RankInRun, TopicTrial, UnjudgedShares
from cupel_audits.report import AuditReport
from cupel_audits.subject import AuditSubject, SubjectSummary, Tops
from cupel_measures.scoring.pool import Mask

Count = Annotated[int, whole_number()]
SHOWN_RUNS = 10
"""Number of runs to list with a document, best rank first."""


@audit(
    "unjudged",
    title="Unjudged documents",
    answers="Which unjudged documents affect the order of runs most and should be judged next?",
    source="influence of single judgments, after Carterette, Allan and Sitaraman, SIGIR 2006",
)
class Unjudged(Audit):
    """Computes how a single further judgment would change the order of runs.

    The judgment would find one unjudged document to be highly relevant.

    1. Collects the unjudged documents of each topic that some run has among its first `depth`. If a topic has
       more than `tried` of them, the `tried` documents with the largest sums of 1 / rank over the runs are
       examined.
    2. Gives each document, alone, the highest label of every aspect, makes it relevant to all subtopics of
       its topic, and scores all runs on this topic again by every measure.
    3. The influence of a document by a measure is a sum over the pairs of adjacent runs in the order by this
       measure. A pair contributes the share of the upper run's lead that the judgment removes, from 0 to 1. A
       tied pair contributes 1 if the judgment breaks the tie. The influence of a document is the mean over
       measures. The report also gives the number of all pairs of runs whose order the judgment reverses.

    A sum of influences ignores interactions between documents. So it does not bound the effect of judging all
    documents. A run that ranks a document below `look` is scored as if it did not retrieve the document. For
    every run, unjudged@k is the share of unjudged documents among its first k.
    """

    depth: Depth = setting(10, "depth of the pool whose unjudged documents are examined")
    look: Depth = setting(100, "depth to which runs are searched for the examined documents")
    cutoffs: Depths = setting((5, 10, 20), "depths k of unjudged@k")
    tried: Count = setting(50, "largest number of documents to examine per topic")
    budget: Count = setting(10, "largest number of documents to list per topic")
    most: Count = setting(100, "largest number of documents to list")

    def ranking_depth(self) -> int:
        return max(self.depth, self.look, *self.cutoffs)

    def trials(self, subject: AuditSubject) -> int:
        """Return the number of topics, because each trial examines one."""
        return len(subject.about.topics)

    def steps(self, subject: AuditSubject) -> float:
        return self.tried / max(len(subject.about.topics), 1)

    def run_trials(self, subject: AuditSubject, seed: int, trials: Sequence[int]) -> Iterator[TopicTrial]:
        for topic in trials:
            yield self._examine_topic(subject, topic)

    def _examine_topic(self, subject: AuditSubject, topic: int) -> TopicTrial:
        tops = tops_of(subject)
        is_judged = in_tops(tops, subject.judged)
        missing = np.flatnonzero((tops.topic == topic) & ~is_judged).tolist()
        ranks = {document: _ranks_by_run(tops, topic, document) for document in missing}
        pooled = [
            document for document in missing if min(place.rank for place in ranks[document]) <= self.depth
        ]
        weight = {document: math.fsum(1 / place.rank for place in ranks[document]) for document in pooled}
        examined = sorted(pooled, key=lambda document: (-weight[document], document))[: self.tried]
        influences = list_influences(subject, topic, np.array(examined, dtype=np.int64))
        documents = [
            _describe_document(tops.documents[document], ranks[document], influence)
            for document, influence in zip(examined, influences, strict=True)
        ]
        return {
            "unjudged": [_unjudged_shares(tops, topic, is_judged, depth) for depth in self.cutoffs],
            "missing": len(pooled),
            "tried": len(examined),
            "turning": sum(influence.reverses_pairs for influence in influences),
            "influence": math.fsum(influence.mean for influence in influences),
            "documents": sorted(
                documents, key=lambda description: (-description["influence"], description["document"])
            )[: self.budget],
        }

    def report(self, about: SubjectSummary, results: Mapping[int, TopicTrial]) -> AuditReport:
        return judging_list.report(about, self.depth, self.most, results)


def _ranks_by_run(tops: Tops, topic: int, document: int) -> list[RankInRun]:
    """Return the runs that have a document, with its rank in each."""
    runs, places = np.nonzero(tops.ranked[:, topic] == document)
    return [RankInRun(*pair) for pair in zip(runs.tolist(), (places + 1).tolist(), strict=True)]


def _unjudged_shares(tops: Tops, topic: int, is_judged: Mask, depth: int) -> UnjudgedShares:
    shares = unjudged(tops.ranked[:, topic : topic + 1], is_judged, depth)[:, 0].tolist()
    return UnjudgedShares(depth, [None if math.isnan(share) else share for share in shares])


def _describe_document(
    name: str, ranks: Sequence[RankInRun], influence: DocumentInfluence
) -> ExaminedDocument:
    return {
        "document": name,
        "runs": len(ranks),
        "where": sorted(ranks, key=lambda place: place.rank)[:SHOWN_RUNS],
        "influence": influence.mean,
        "measures": influence.measures,
    }
