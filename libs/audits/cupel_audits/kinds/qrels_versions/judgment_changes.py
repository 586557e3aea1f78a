"""Agreement of two versions of judgments by aspect, and their differences.

A difference is a judgment that was added, removed or changed.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

import numpy as np

from cupel_audits.report import AuditReport, Heading, Plot, TableSchema
from cupel_audits.subject import SubjectSummary
from cupel_measures.comparing.agreement import Agreement, judged_labels, table_agreement
from cupel_measures.model import Aspect, Qrels

MOST_LABELS = 1000
"""Scales with more labels are not compared, because the confusion matrix would be too large."""
SUBTOPICS = "subtopics"
"""Aspect name of judgments by subtopic, which are compared with the labels relevant and not relevant."""
UNITS = "pairs of a topic and a document; for subtopics, also of a subtopic"
Labels = Mapping[Any, int]
READING = (
    "kappa (Cohen's, with linear weights) and alpha (Krippendorff's, ordinal) are 1 for full agreement and 0 "
    "for the agreement expected by chance. An alpha below 0.67 is usually considered too low to draw "
    "conclusions. Both use only judgments that both versions have.",
    "Neither of two assessors is the ground truth. To validate an automatic judge against human judgments, "
    "the order of runs matters more than single labels.",
)


CHANGES = ("same", "changed", "removed", "added")
"""Kinds of documents: equal labels, different labels, judged in the first or in the second version only."""


class AspectChanges(TypedDict):
    """The comparison of one aspect.

    labels: the labels of both versions, lowest first. cells: index of the label in the first version, index
    of the label in the second version, and number of documents with these labels. topics: for each topic, the
    number of documents of each kind in CHANGES.
    """

    aspect: str
    labels: list[str]
    cells: list[tuple[int, int, int]]
    topics: dict[str, tuple[int, int, int, int]]


class JudgmentsResult(TypedDict):
    """The comparison of the judgments.

    lacking: sentences on aspects that are not compared.
    """

    aspects: list[AspectChanges]
    lacking: list[str]


AspectCell = Annotated[str, Heading("aspect")]
ChangedCell = Annotated[int, Heading("changed", "judgments with different labels")]
RemovedCell = Annotated[int, Heading("removed", "judgments in the first version only")]
AddedCell = Annotated[int, Heading("added", "judgments in the second version only")]


@dataclass(frozen=True, kw_only=True)
class AgreementByAspectRow:
    """The agreement of the two versions on one aspect."""

    aspect: AspectCell
    pairs: Annotated[int, Heading("judged in both", UNITS)]
    same: Annotated[float | None, Heading("same label", "share of those judged in both")]
    kappa: Annotated[float | None, Heading("kappa", "Cohen's, with linear weights")]
    alpha: Annotated[float | None, Heading("alpha", "Krippendorff's, ordinal")]
    changed: ChangedCell
    removed: RemovedCell
    added: AddedCell


@dataclass(frozen=True, kw_only=True)
class ConfusionRow:
    """One cell of the confusion matrix of one aspect."""

    aspect: AspectCell
    first: Annotated[str, Heading("label in the first version")]
    second: Annotated[str, Heading("label in the second version")]
    pairs: Annotated[int, Heading("judgments", UNITS)]
    share: Annotated[float, Heading("share", "of the judgments that both versions have")]


@dataclass(frozen=True, kw_only=True)
class TopicChangesRow:
    """The changes of one aspect on one topic."""

    aspect: AspectCell
    topic: Annotated[str, Heading("topic")]
    same: Annotated[int, Heading("same", "judgments with the same label")]
    changed: ChangedCell
    removed: RemovedCell
    added: AddedCell


AGREEMENT = TableSchema.of("agreement", "Agreement", AgreementByAspectRow)
CONFUSION = TableSchema.of("confusion", "Labels in both versions", ConfusionRow)
TOPICS = TableSchema.of("topics", "Changes by topic", TopicChangesRow)


def compare_judgments(first: Qrels, second: Qrels, topics: Collection[str]) -> JudgmentsResult:
    """Compare the judgments by each shared aspect over `topics`.

    Judgments by subtopic are also compared if both versions have them.
    """
    second_aspects = {aspect.name: aspect for aspect in second.aspects}
    result = JudgmentsResult(aspects=[], lacking=[])
    for aspect in first.aspects:
        if aspect.name not in second_aspects:
            result["lacking"].append(f"{aspect.name}: the second version has no such aspect")
        elif (labels := _shared_labels(aspect, second_aspects[aspect.name])) is None:
            result["lacking"].append(f"{aspect.name}: the two versions have different labels")
        elif len(labels) > MOST_LABELS:
            result["lacking"].append(f"{aspect.name}: it has more than {MOST_LABELS} labels")
        else:
            sides = [_select(judged_labels(qrels, aspect.name), topics) for qrels in (first, second)]
            if any(sides):
                result["aspects"].append(_compare_labels(aspect.name, labels, *sides))
    if first.subtopics is not None and second.subtopics is not None:
        by_subtopic = _label_by_subtopic(first, second, topics)
        result["aspects"].append(_compare_labels(SUBTOPICS, ["no", "yes"], *by_subtopic))
    return result


def _select(labels: Labels, topics: Collection[str]) -> Labels:
    return {(topic, document): label for (topic, document), label in labels.items() if topic in topics}


def _shared_labels(first: Aspect, second: Aspect) -> Sequence[Any] | None:
    """Return the labels of an aspect if both versions have the same labels, else None.

    Inferred labels range from 0 to the highest grade of the qrels. If the labels of both versions are
    inferred, return the longer list.
    """
    if list(first.labels) == list(second.labels):
        return first.labels
    if first.inferred and second.inferred:
        return max(first.labels, second.labels, key=len)
    return None


def _label_by_subtopic(first: Qrels, second: Qrels, topics: Collection[str]) -> list[Labels]:
    """Return the labels of each version by topic, document and subtopic.

    A label is 1 (relevant) or 0.

    A document that is judged for some subtopic has a label for each subtopic of its topic. The subtopics of a
    topic are those that occur in either version.
    """
    sides = [list(_subtopic_judgments(qrels, topics)) for qrels in (first, second)]
    names: dict[str, set[str]] = {}
    for topic, _, subtopic, _ in (row for rows in sides for row in rows):
        names.setdefault(topic, set()).add(subtopic)
    labels: list[Labels] = []
    for rows in sides:
        relevant = {(topic, document, name) for topic, document, name, judgment in rows if judgment > 0}
        documents = {(topic, document) for topic, document, *_ in rows}
        keys = ((topic, document, name) for topic, document in documents for name in names[topic])
        labels.append({key: int(key in relevant) for key in keys})
    return labels


def _subtopic_judgments(qrels: Qrels, selected: Collection[str]) -> Iterator[tuple[str, bytes, str, int]]:
    """Yield topic, document, subtopic and judgment for the selected topics."""
    by_subtopic = qrels.subtopics
    if by_subtopic is None:
        return
    documents, topics = qrels.documents.to_list(), qrels.topic_of.tolist()
    columns = (
        column.tolist() for column in (by_subtopic.document, by_subtopic.subtopic, by_subtopic.judgment)
    )
    for document, subtopic, judgment in zip(*columns, strict=True):
        topic = qrels.topics[topics[document]]
        if topic in selected:
            yield topic, documents[document], by_subtopic.names[subtopic], judgment


def _compare_labels(name: str, labels: Sequence[Any], first: Labels, second: Labels) -> AspectChanges:
    """Compare the label indices that two versions have for the same keys.

    A key identifies a judged document, or a document and a subtopic; its first item is the topic.
    """
    cells = Counter((first[key], second[key]) for key in first.keys() & second.keys())
    topics: dict[str, Counter[str]] = {}
    for key in first.keys() | second.keys():
        topics.setdefault(key[0], Counter())[_classify(first.get(key), second.get(key))] += 1
    return AspectChanges(
        aspect=name,
        labels=[str(label) for label in labels],
        cells=[(*labels_, documents) for labels_, documents in sorted(cells.items())],
        topics={
            topic: (counts["same"], counts["changed"], counts["removed"], counts["added"])
            for topic, counts in sorted(topics.items())
        },
    )


def _classify(first: int | None, second: int | None) -> str:
    """Return the kind of change between two labels, one of CHANGES.

    A label of None means no judgment.
    """
    if second is None:
        return "removed"
    if first is None:
        return "added"
    return "same" if first == second else "changed"


def report(about: SubjectSummary, result: JudgmentsResult) -> AuditReport:
    """Return the report on the comparison of the judgments.

    It has the agreement by aspect, the confusion of labels, and changes by topic.
    """
    agreements = [(changes, _agreement(changes)) for changes in result["aspects"]]
    topics = [row for changes in result["aspects"] for row in _topic_rows(changes)]
    rows = [_agreement_row(agreement, topics) for _, agreement in agreements]
    undefined = [
        f"agreement on {agreement.aspect}: {agreement.undefined}"
        for _, agreement in agreements
        if agreement.undefined is not None
    ]
    return AuditReport(
        verdict=tuple(_sentence(about, row) for row in rows),
        numbers=_numbers(rows),
        tables=(
            AGREEMENT.table(rows),
            CONFUSION.table(row for changes in result["aspects"] for row in _confusion_rows(changes)),
            TOPICS.table(topics),
        ),
        plots=(_plot(rows),),
        actions=tuple(_advice(about, rows)),
        reading=READING,
        undefined=(*undefined, *result["lacking"]),
    )


def _agreement(changes: AspectChanges) -> Agreement:
    matrix = np.zeros((len(changes["labels"]), len(changes["labels"])))
    for first, second, documents in changes["cells"]:
        matrix[first, second] = documents
    return table_agreement(matrix, name=changes["aspect"])


def _topic_rows(changes: AspectChanges) -> Iterator[TopicChangesRow]:
    for topic, (same, changed, removed, added) in changes["topics"].items():
        yield TopicChangesRow(
            aspect=changes["aspect"], topic=topic, same=same, changed=changed, removed=removed, added=added
        )


def _agreement_row(agreement: Agreement, topics: Sequence[TopicChangesRow]) -> AgreementByAspectRow:
    aspect_rows = [row for row in topics if row.aspect == agreement.aspect]
    return AgreementByAspectRow(
        aspect=agreement.aspect,
        pairs=agreement.pairs,
        same=agreement.same,
        kappa=agreement.kappa,
        alpha=agreement.alpha,
        changed=sum(row.changed for row in aspect_rows),
        removed=sum(row.removed for row in aspect_rows),
        added=sum(row.added for row in aspect_rows),
    )


def _numbers(rows: Sequence[AgreementByAspectRow]) -> dict[str, float | int | None]:
    """Return kappa(ASPECT), alpha, same, changed, removed and added."""
    numbers: dict[str, float | int | None] = {}
    for row in rows:
        numbers |= {f"kappa({row.aspect})": row.kappa, f"alpha({row.aspect})": row.alpha}
        numbers |= {f"same({row.aspect})": row.same, f"changed({row.aspect})": row.changed}
        numbers |= {f"removed({row.aspect})": row.removed, f"added({row.aspect})": row.added}
    return numbers


def _sentence(about: SubjectSummary, row: AgreementByAspectRow) -> str:
    only = f"judgments in {about.qrels} only: {row.removed}, in {about.other} only: {row.added}"
    if row.same is None:
        return f"{row.aspect}: {_none_in_both(row.aspect)}; {only}."
    beyond_chance = "" if row.kappa is None else f" (kappa {row.kappa:.2f}, alpha {row.alpha:.2f})"
    return (
        f"{row.aspect}: {100 * row.same:.1f}% of the {row.pairs} {_unit(row.aspect)} have the same "
        f"label{beyond_chance}; {row.changed} have different labels; {only}."
    )


def _unit(aspect: str) -> str:
    """Return the plural of a judgment that both versions have."""
    if aspect == SUBTOPICS:
        return "judgments of a document for a subtopic in both versions"
    return "topic-document pairs judged in both versions"


def _none_in_both(aspect: str) -> str:
    if aspect == SUBTOPICS:
        return "no document is judged for the same subtopic in both versions"
    return "no document is judged in both versions"


def _confusion_rows(changes: AspectChanges) -> Iterator[ConfusionRow]:
    total = sum(documents for *_, documents in changes["cells"])
    for first, second, documents in changes["cells"]:
        yield ConfusionRow(
            aspect=changes["aspect"],
            first=changes["labels"][first],
            second=changes["labels"][second],
            pairs=documents,
            share=documents / total,
        )


def _plot(rows: Sequence[AgreementByAspectRow]) -> Plot:
    return Plot.heatmap(
        CONFUSION,
        "confusion",
        title=_title(rows),
        caption="Judgments that both versions have, by their label in each version. Those off the diagonal "
        "have different labels.",
        x="second",
        y="first",
        value="share",
        facet="aspect",
    )


def _title(rows: Sequence[AgreementByAspectRow]) -> str:
    defined = [(row.same, row.aspect) for row in rows if row.same is not None]
    if not defined:
        return "No judgments of both versions can be compared"
    same, aspect = min(defined)
    return f"{100 * same:.1f}% of the {_unit(aspect)} have the same label ({aspect})"


def _advice(about: SubjectSummary, rows: Sequence[AgreementByAspectRow]) -> Iterator[str]:
    """Yield what to do about labels that differ."""
    aspects = [row for row in rows if row.aspect != SUBTOPICS]
    subtopics = [row for row in rows if row.aspect == SUBTOPICS]
    most = max(aspects, key=lambda row: row.changed, default=None)
    for row in (most, *subtopics):
        if row is not None and row.changed:
            judgments = "judgment" if row.changed == 1 else f"{row.changed} judgments"
            yield (
                f"Look at the {judgments} whose {row.aspect} label differs, starting with the topics that "
                "have most of them."
            )
    if any(row.removed or row.added for row in rows):
        yield (
            f"Judge the documents that only one of {about.qrels} and {about.other} contains in the other "
            "version, or leave them out of both, before you attribute a changed order to the assessors."
        )
