"""How far two versions of judgments agree, aspect by aspect, and what was added, removed and changed."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from cupel_audits.report import AuditReport, Cell, Column, Plot, ReportTable
from cupel_audits.subject import SubjectSummary
from cupel_measures.comparing.agreement import Agreement, agreement_in, judged
from cupel_measures.model import Aspect, Qrels

MOST_LABELS = 1000
"""Of a scale whose labels are held against each other."""
SUBTOPICS = "subtopics"
"""What the agreement by subtopic is called; its labels are relevant or not."""
Labels = Mapping[Any, int]
READING = (
    "kappa (Cohen's, with linear weights) and alpha (Krippendorff's, ordinal) are 1 for full agreement and 0 "
    "for that of chance; below 0.67 alpha is usually taken to be too little to draw conclusions from. They "
    "look at documents that both versions judge.",
    "Of two assessors neither is the truth, and of people and an automatic judge only the people's order of "
    "runs is what one wants: look at runs that change places more than at labels.",
)


def judgments(first: Qrels, second: Qrels, common: Collection[str]) -> dict[str, Any]:
    """What each shared aspect says over the common topics; and which aspects can't be compared, and why."""
    theirs = {aspect.name: aspect for aspect in second.aspects}
    found, lacking = [], []
    for aspect in first.aspects:
        if aspect.name not in theirs:
            lacking.append(f"{aspect.name}: the other judgments have no such aspect")
        elif (labels := _scale(aspect, theirs[aspect.name])) is None:
            lacking.append(f"{aspect.name}: the two versions have other labels for it")
        elif len(labels) > MOST_LABELS:
            lacking.append(f"{aspect.name}: it has more than {MOST_LABELS} labels")
        else:
            sides = judged(first, aspect.name), judged(second, aspect.name)
            mine, other = ({at: one for at, one in of.items() if at[0] in common} for of in sides)
            if mine or other:
                found.append(_compared(aspect.name, labels, mine, other))
    if first.subtopics is not None and second.subtopics is not None:
        found.append(_compared(SUBTOPICS, ["no", "yes"], *_by_subtopic(first, second, common)))
    return {"aspects": found, "lacking": lacking}


def _scale(mine: Aspect, theirs: Aspect) -> Sequence[Any] | None:
    """The labels of both; the longer scale where both are read off their qrels (0 to the highest grade)."""
    if list(mine.labels) == list(theirs.labels):
        return mine.labels
    if mine.inferred and theirs.inferred:
        return max(mine.labels, theirs.labels, key=len)
    return None


def _by_subtopic(first: Qrels, second: Qrels, common: Collection[str]) -> tuple[Labels, Labels]:
    """1 or 0 by topic, document and subtopic: every subtopic that either gives the topic, for each document
    that has a judgment of some subtopic."""
    sides = [list(_rows(qrels, common)) for qrels in (first, second)]
    names: dict[str, set[str]] = {}
    for topic, _, subtopic, _ in (row for rows in sides for row in rows):
        names.setdefault(topic, set()).add(subtopic)
    found = []
    for rows in sides:
        relevant = {(topic, document, name) for topic, document, name, judgment in rows if judgment > 0}
        documents = {(topic, document) for topic, document, *_ in rows}
        pairs = ((topic, document, name) for topic, document in documents for name in names[topic])
        found.append({pair: int(pair in relevant) for pair in pairs})
    return found[0], found[1]


def _rows(qrels: Qrels, common: Collection[str]) -> Iterator[tuple[str, bytes, str, int]]:
    said = qrels.subtopics
    if said is None:
        return
    documents, topics = qrels.documents.to_list(), qrels.topic_of.tolist()
    columns = (one.tolist() for one in (said.document, said.subtopic, said.judgment))
    for document, subtopic, judgment in zip(*columns, strict=True):
        topic = qrels.topics[topics[document]]
        if topic in common:
            yield topic, documents[document], said.names[subtopic], judgment


def _compared(name: str, labels: Sequence[Any], mine: Labels, theirs: Labels) -> dict[str, Any]:
    """cells: [label of the first, of the second, pairs]. topics: topic -> [same, changed, removed, added]."""
    cells = Counter((mine[at], theirs[at]) for at in mine.keys() & theirs.keys())
    topics: dict[str, list[int]] = {}
    for at in mine.keys() | theirs.keys():
        one, other = mine.get(at), theirs.get(at)
        place = 2 if other is None else 3 if one is None else int(one != other)
        topics.setdefault(at[0], [0, 0, 0, 0])[place] += 1
    return {
        "aspect": name,
        "labels": [str(label) for label in labels],
        "cells": [[*pair, number] for pair, number in sorted(cells.items())],
        "topics": dict(sorted(topics.items())),
    }


def report(about: SubjectSummary, found: Mapping[str, Any]) -> AuditReport:
    """Agreement by aspect, confusion of labels, and changes by topic."""
    each = [(one, _agreement(one)) for one in found["aspects"]]
    numbers: dict[str, Any] = {}
    for one, of in each:
        _, changed, removed, added = _changes(one)
        numbers |= {f"kappa({of.aspect})": of.kappa, f"alpha({of.aspect})": of.alpha}
        numbers |= {f"same({of.aspect})": of.same, f"changed({of.aspect})": changed}
        numbers |= {f"removed({of.aspect})": removed, f"added({of.aspect})": added}
    undefined = [f"agreement by {of.aspect}: {of.undefined}" for _, of in each if of.undefined is not None]
    return AuditReport(
        verdict=tuple(_sentence(about, one, of) for one, of in each),
        numbers=numbers,
        tables=(
            ReportTable("agreement", "Agreement", _AGREEMENT, tuple(_row(one, of) for one, of in each)),
            ReportTable(
                "confusion", "Labels in both versions", _CONFUSION, tuple(_confusion(found["aspects"]))
            ),
            ReportTable("topics", "Changes by topic", _TOPICS, tuple(_by_topic(found["aspects"]))),
        ),
        plots=_PLOTS,
        reading=READING,
        undefined=(*undefined, *found["lacking"]),
    )


def _agreement(one: Mapping[str, Any]) -> Agreement:
    table = np.zeros((len(one["labels"]), len(one["labels"])))
    for first, second, number in one["cells"]:
        table[first, second] = number
    return agreement_in(table, name=one["aspect"])


def _changes(one: Mapping[str, Any]) -> list[int]:
    """Documents that have the same label, another one, none any more, and a new one."""
    return [sum(of[place] for of in one["topics"].values()) for place in range(4)]


def _row(one: Mapping[str, Any], of: Agreement) -> tuple[Cell, ...]:
    return of.aspect, of.pairs, of.same, of.kappa, of.alpha, *_changes(one)[1:]


def _sentence(about: SubjectSummary, one: Mapping[str, Any], of: Agreement) -> str:
    _, changed, removed, added = _changes(one)
    moves = f"{removed} judgments of {about.qrels} are not in {about.other}, and {added} are new there"
    if of.same is None:
        return f"{of.aspect}: no document is judged in both versions; {moves}."
    beyond = "" if of.kappa is None else f" (kappa {of.kappa:.2f}, alpha {of.alpha:.2f})"
    return (
        f"{of.aspect}: {100 * of.same:.1f} per cent of the {of.pairs} documents judged in both have the same "
        f"label{beyond}, {changed} another; {moves}."
    )


def _confusion(aspects: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Cell, ...]]:
    for one in aspects:
        whole = sum(number for *_, number in one["cells"])
        for first, second, number in one["cells"]:
            yield one["aspect"], one["labels"][first], one["labels"][second], number, number / whole


def _by_topic(aspects: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Cell, ...]]:
    for one in aspects:
        for topic, changes in one["topics"].items():
            yield one["aspect"], topic, *changes


_ASPECT = Column("aspect", "aspect")
_CHANGES = (
    Column("changed", "changed", "documents with another label"),
    Column("removed", "removed", "documents that the second version does not judge"),
    Column("added", "added", "documents that the first version does not judge"),
)
_AGREEMENT = (
    _ASPECT,
    Column("pairs", "judged in both", "pairs of a topic and a document"),
    Column("same", "same label", "share of them"),
    Column("kappa", "kappa", "Cohen's, with linear weights"),
    Column("alpha", "alpha", "Krippendorff's, ordinal"),
    *_CHANGES,
)
_CONFUSION = (
    _ASPECT,
    Column("first", "label in the first"),
    Column("second", "label in the second"),
    Column("pairs", "documents"),
    Column("share", "share", "of the documents judged in both"),
)
_TOPICS = (
    _ASPECT,
    Column("topic", "topic"),
    Column("same", "same", "documents with the same label"),
    *_CHANGES,
)
_PLOTS = (
    Plot(
        "confusion",
        "Labels in both versions",
        "Documents by their label in the first version and in the second; those off the diagonal changed.",
        "heatmap",
        "confusion",
        "second",
        "first",
        value="share",
        facet="aspect",
    ),
)
