"""Tables of topics, documents and numbers from columns of equal length."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from cupel_measures.findings import Finding, Findings, Refused
from cupel_measures.inputs.topic_tables import NOT_AN_ID, Table, is_number_type
from cupel_measures.reading.column_names import Content
from cupel_measures.reading.lines.rank_checks import DUPLICATE
from cupel_measures.reading.lines.run_lines import RANK
from cupel_measures.reading.qrels_files import TWICE


def table_of_columns(
    topics: Sequence[Any],
    documents: Sequence[Any],
    values: Sequence[Any],
    content: Content,
    name: str,
    *,
    by_rank: bool = False,
) -> Table:
    """Return the table of rows that are given as columns.

    values: scores or grades; with `by_rank`, ranks from 1, which become descending scores. The rows of a
    topic need not be together. name: shown in findings. Raise Refused if an id is invalid, if a document
    occurs twice for a topic, or if a rank is no number. Scores and grades are not checked.
    """
    findings = Findings()
    topic_ids = _ids(topics, "topic", name, findings)
    document_ids = _ids(documents, "document", name, findings)
    if by_rank:
        values = _scores_of_ranks(values, name, findings)
    if findings.refused:
        raise Refused(findings)
    table = _grouped(topic_ids, document_ids, values)
    if sum(map(len, table.values())) < len(topic_ids):
        raise Refused(_repeated(topic_ids, document_ids, content, name))
    return table


def _ids(ids: Sequence[Any], what: str, name: str, findings: Findings) -> list[str]:
    """Return ids as strings. Report ids that are neither strings nor whole numbers."""
    kinds = set(map(type, ids))
    if kinds <= {str}:
        return list(ids)
    if any(kind is bool or not issubclass(kind, str | int | np.integer) for kind in kinds):
        for row, id_ in enumerate(ids, 1):
            if isinstance(id_, bool) or not isinstance(id_, str | int | np.integer):
                message = f"row {row}: the {what} id {id_!r} is a {type(id_).__name__}"
                findings.add(Finding(code=NOT_AN_ID, message=message, file=name, sample=str(id_)[:80]))
    return list(map(str, ids))


def _scores_of_ranks(ranks: Sequence[Any], name: str, findings: Findings) -> list[Any]:
    scores: list[Any] = []
    for row, rank in enumerate(ranks, 1):
        if is_number_type(type(rank)) and abs(rank) < np.inf:
            scores.append(-rank)
        else:
            message = f"row {row}: the rank {rank!r} is not a number"
            findings.add(Finding(code=RANK, message=message, file=name, sample=str(rank)[:80]))
    return scores


def _grouped(topics: list[str], documents: list[str], values: Sequence[Any]) -> dict[str, dict[str, Any]]:
    if not topics:
        return {}
    column = np.array(topics, dtype=object)
    bounds = [0, *(np.flatnonzero(column[1:] != column[:-1]) + 1).tolist(), len(topics)]
    heads = [topics[begin] for begin in bounds[:-1]]
    if len(set(heads)) < len(heads):  # the rows of a topic are not together
        table: dict[str, dict[str, Any]] = {topic: {} for topic in heads}
        for topic, document, value in zip(topics, documents, values, strict=True):
            table[topic][document] = value
        return table
    return {
        head: dict(zip(documents[begin:end], values[begin:end], strict=True))
        for head, (begin, end) in zip(heads, pairwise(bounds), strict=True)
    }


def _repeated(topics: list[str], documents: list[str], content: Content, name: str) -> Findings:
    """Return an error for each row that repeats topic and document of an earlier row."""
    findings, rows = Findings(), dict[tuple[str, str], int]()
    code = DUPLICATE if content == "score" else TWICE
    for row, pair in enumerate(zip(topics, documents, strict=True), 1):
        first = rows.setdefault(pair, row)
        if first < row:
            message = f"document {pair[1]!r} of topic {pair[0]!r} is in rows {first} and {row}"
            findings.add(Finding(code=code, message=message, file=name, topic=pair[0], sample=pair[1][:80]))
    return findings
