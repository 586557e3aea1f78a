"""Warnings about topics of qrels.

They are about topics that are ignored, have no judgments, or have no relevant documents.
"""

from collections.abc import Sequence

import numpy as np

from cupel_measures.findings import Finding, Findings, declare
from cupel_measures.model import Qrels

EMPTY = declare("qrels-empty", "error", "the qrels file has no judgments", "check that it is the right file")
TOPIC_LEFT_OUT = declare(
    "qrels-topic-left-out",
    "warning",
    "topics that the topics file does not list are ignored",
    "list these topics in the topics file if they belong to the collection",
)
NO_JUDGMENTS = declare(
    "qrels-topic-without-judgments",
    "warning",
    "some topics of the collection have no judgments, so they are shown but never enter a mean",
    "no action needed if this is intended; many tracks judge only some of their topics",
)
NO_RELEVANT = declare(
    "qrels-topic-without-relevant",
    "warning",
    "some topics have no document that is relevant for an aspect, so every run has an AP of 0 on them",
    "no action needed if this is intended",
)


def report_topics(qrels: Qrels, names: set[str], findings: Findings) -> None:
    """Report topics without judgments, and judged topics missing in the topics file.

    names: topics of the qrels files.
    """
    ignored = sorted(names.difference(qrels.listed_topics))
    for code, difference, topics in (
        (TOPIC_LEFT_OUT, "judged but not in the topics file, so ignored", ignored),
        (NO_JUDGMENTS, "without judgments, so not in any mean", qrels.unjudged_topics),
    ):
        if topics:
            message = f"{_counted(len(topics), 'topic')} {difference}: {_some(topics)}"
            findings.add(Finding(code=code, message=message, sample=topics[0]), len(topics))
    if qrels.unjudged_topics and not qrels.topics:
        findings.add(Finding(code=EMPTY, message="no topic of the collection has a judgment"))


def count_topics_without_relevant(qrels: Qrels, findings: Findings) -> None:
    """Warn of topics without a relevant document, by aspect."""
    if qrels.only_by_subtopic:
        return
    sizes = np.diff(qrels.offsets)
    for aspect, labels in zip(qrels.aspects, qrels.labels, strict=True):
        relevant = np.bincount(qrels.topic_of[labels >= aspect.threshold], minlength=len(qrels.topics))
        names = [qrels.topics[t] for t in np.flatnonzero((relevant == 0) & (sizes > 0))]
        if names:
            topics = _counted(len(names), "topic")
            message = f"{topics} without a document relevant for {aspect.name}: {_some(names)}"
            findings.add(Finding(code=NO_RELEVANT, message=message, sample=names[0]), len(names))


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
