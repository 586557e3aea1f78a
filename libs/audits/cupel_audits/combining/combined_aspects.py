"""The audit `aspects` over several collections.

Source: Maistro et al., CIKM 2021, Tables 5 and 6, Figure 2.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from cupel_audits.declarations import Audit
from cupel_audits.kinds.aspects import score_bounds, top_documents
from cupel_audits.kinds.aspects.aspects_kind import BOUNDS, DOCUMENTS, Aspects
from cupel_audits.report import AuditReport, merged
from cupel_audits.subject import SubjectSummary

Counts = Mapping[str, tuple[str, str, Sequence[Sequence[int]]]]
READING = (
    "Numbers of documents and of topics are summed over the collections, so a collection with many topics "
    "has a large weight. The orders of runs are not combined, because each collection has other runs."
)


def report(
    audit: Audit, about: SubjectSummary, by_collection: Mapping[str, Mapping[int, Any]]
) -> AuditReport:
    """Return the report on all collections.

    It is about the documents of the best runs, and about the bounds.
    """
    assert isinstance(audit, Aspects)
    documents = [trials[DOCUMENTS] for trials in by_collection.values()]
    summed = top_documents.DocumentsResult(
        zero=_sums([result["zero"] for result in documents]),
        quality=_sums([result["quality"] for result in documents]),
        uncut=list(dict.fromkeys(text for result in documents for text in result["uncut"])),
    )
    reports = [top_documents.report(summed, audit.rules)]
    if bounds := _bounds([trials[BOUNDS] for trials in by_collection.values()]):
        reports.insert(0, score_bounds.report(about, bounds))
    whole = merged(reports)
    return replace(whole, reading=(*whole.reading, READING))


def _sums(counts: Sequence[Counts]) -> dict[str, Any]:
    """Return the sum of the numbers at each rank.

    Only measures that every collection has are included.
    """
    sums = {}
    for text, (component, kind, first) in counts[0].items():
        if all(text in other for other in counts):
            rows = [[list(row) for row in other[text][2]] for other in counts]
            total = [tuple(map(sum, zip(*at_rank, strict=True))) for at_rank in zip(*rows, strict=True)]
            assert len(total) == len(first)
            sums[text] = (component, kind, total)
    return sums


def _bounds(results: Sequence[Any]) -> score_bounds.BoundsResult | None:
    """Return the bounds on all topics, for the measures that every collection has.

    If collections have different aspects, their rankings have different names. Rankings at the same position
    are then combined, and their names are joined by "or". Return None if no measure has the same number of
    rankings on every collection.
    """
    measures = {}
    for text, bounds in results[0]["measures"].items():
        same = [result["measures"].get(text) for result in results]
        if all(other and len(other["strategies"]) == len(bounds["strategies"]) for other in same):
            names = [
                " or ".join(dict.fromkeys(n)) for n in zip(*(o["strategies"] for o in same), strict=True)
            ]
            topics = [scores for other in same for scores in other["topics"]]
            measures[text] = score_bounds.MeasureBounds(strategies=names, topics=topics)
    if not measures:
        return None
    lacking = [number for result in results for number in result["lacking"]]
    return score_bounds.BoundsResult(measures=measures, beyond=[], lacking=lacking)
