"""Names of columns in tables of runs and judgments, and their roles."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from cupel_measures.findings import Finding, Findings, Refused, declare

Content = Literal["score", "relevance"]
"""The numbers of a table: scores of a run, or grades."""

MISSING = declare(
    "columns-missing",
    "error",
    "a table lacks the column of topics, documents, scores or grades",
    "name the columns query_id, doc_id and score (runs) or relevance (judgments)",
)
UNCLEAR = declare(
    "columns-unclear",
    "error",
    "several columns of a table can have the same role, or the meaning of a column is unclear",
    "keep one of the columns, and name the columns query_id, doc_id and score or relevance",
)

TOPIC = ("query_id", "qid", "q_id", "topic", "topic_id")
DOCUMENT = ("doc_id", "docno", "document", "document_id", "doc", "corpus_id", "pid")
INTERNAL_DOCUMENT = ("docid",)
"""PyTerrier's internal number of a document; it is the id only if there is no other column of ids."""
GRADE = ("relevance", "label", "grade", "rel")
SCORE = ("score",)
RANK = ("rank",)
BEIR_DOCUMENT = "corpus_id"
"""In tables with this column, the column score has grades, if the table has judgments."""


@dataclass(frozen=True, kw_only=True)
class ColumnRoles:
    """Positions of the columns of a table.

    by_rank: whether the values are ranks instead of scores.
    """

    topic: int
    document: int
    value: int
    by_rank: bool = False


def is_header(names: Sequence[str]) -> bool:
    """Return whether these are names of columns, for topics and documents at least."""
    known = set(map(_normalised, names))
    return not known.isdisjoint(TOPIC) and not known.isdisjoint(DOCUMENT + INTERNAL_DOCUMENT)


def roles_of(names: Sequence[str], content: Content, name: str) -> ColumnRoles:
    """Return the roles of columns with these names.

    The names are those of ir_measures, ir_datasets, PyTerrier, BEIR and TREC, in upper or lower case. name:
    the name of the table in findings. Raise Refused if a column is missing, or if several columns are
    possible.
    """
    findings = Findings()
    topic = _position(names, (TOPIC,), "topic ids", name, findings)
    document = _position(names, (DOCUMENT, INTERNAL_DOCUMENT), "document ids", name, findings)
    if content == "score":
        value = _position(names, (SCORE, RANK), "scores", name, findings)
    else:
        by_beir = BEIR_DOCUMENT in map(_normalised, names)
        value = _position(names, (GRADE, SCORE) if by_beir else (GRADE,), "grades", name, findings)
    if findings.refused:
        raise Refused(findings)
    by_rank = _normalised(names[value]) in RANK
    return ColumnRoles(topic=topic, document=document, value=value, by_rank=by_rank)


def _position(
    names: Sequence[str], known: Sequence[Sequence[str]], what: str, name: str, findings: Findings
) -> int:
    """Return the position of the column with one of the names in `known`.

    Earlier groups of names have priority. Report a missing column, and several columns of the same group.
    """
    for group in known:
        places = [place for place, given in enumerate(names) if _normalised(given) in group]
        if len(places) > 1:
            candidates = ", ".join(names[place] for place in places)
            message = f"several columns can contain the {what}: {candidates}"
            findings.add(Finding(code=UNCLEAR, message=message, file=name, sample=candidates[:80]))
        if places:
            return places[0]
    expected = ", ".join(known[0])
    listed = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
    message = f"no column of {what} ({expected}); the columns are {listed}"
    if len(names) == 1 and any(separator in names[0] for separator in ",;\t|"):
        message = f"the only column is {names[0]!r}; read the file with another separator"
    if not any(finding.message == message for finding in findings):
        findings.add(Finding(code=MISSING, message=message, file=name, sample=listed[:80]))
    return 0


def _normalised(name: str) -> str:
    return name.strip().lower().replace("-", "_").replace(" ", "_")
