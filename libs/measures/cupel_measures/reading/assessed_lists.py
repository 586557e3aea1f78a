"""Reader of the A66 assessments.

They are ranked lists with the relevance and credibility of each result.

The file is `dataset/data` of https://github.com/diku-irlab/A66, published with Lioma, Simonsen and Larsen,
ICTIR 2017. It is CSV without a header and without quoting. A line has seven fields: assessor, query, rank,
number of the URL, relevance, credibility, comment. Only the first six commas separate fields, because
comments contain commas. Labels are 1 (lowest) to 4. Every assessor judged the results of their own searches,
so a topic is one assessor and query.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from cupel_measures.findings import Finding, Findings, Refused, declare
from cupel_measures.reading.compression import open_plain
from cupel_measures.reading.lines.text_lines import text_lines
from cupel_measures.reading.qrels_files import NOT_TEXT

A66_LINE = declare(
    "a66-line",
    "error",
    "a line of the A66 assessments is invalid",
    "write assessor,query,rank,url,relevance,credibility,comment: six whole numbers and a comment, with "
    "labels from 1 to 4, ranks from 1, and each rank once per assessor and query",
)
NUMBERS = 6
LABELS = range(1, 5)
ASPECTS = ("relevance", "credibility")
COLLECTION = """\
aspects:
  relevance: {labels: [1, 2, 3, 4], threshold: 3}
  credibility: {labels: [1, 2, 3, 4], threshold: 3}
qrels:
  - {file: qrels.txt, columns: [topic, _, document, relevance, credibility]}
"""
"""The collection file. The paper counts labels 3 and 4 as credible (section 6.1)."""


@dataclass(frozen=True, kw_only=True)
class Assessment:
    """One result of a list.

    topic: assessor and query. document: rank and number of the URL.

    The document id contains the rank, because one list contains the same URL twice.
    """

    topic: str
    document: str
    rank: int
    labels: tuple[int, int]


def read_assessments(path: Path) -> list[Assessment]:
    """Read the A66 assessments in the order of the file.

    Raise Refused with all invalid lines, and OSError if the file cannot be read.
    """
    findings = Findings()
    with open_plain(path) as stream:
        lines = text_lines(stream.read(), path.name, NOT_TEXT, findings)
    ranks: set[tuple[str, int]] = set()
    assessments = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        assessment = _parse(line.decode())
        if assessment is None or (assessment.topic, assessment.rank) in ranks:
            text = line.decode()[:80]
            message = "expected six whole numbers and a comment, with a rank that the list does not have yet"
            findings.add(Finding(code=A66_LINE, message=message, file=path.name, line=number, sample=text))
        else:
            ranks.add((assessment.topic, assessment.rank))
            assessments.append(assessment)
    if not assessments and not findings.refused:
        findings.add(Finding(code=A66_LINE, message="the file has no assessments", file=path.name))
    if findings.refused:
        raise Refused(findings)
    return assessments


def _parse(line: str) -> Assessment | None:
    """Return the assessment of a line, or None if the line is invalid."""
    fields = line.split(",", NUMBERS)
    if len(fields) <= NUMBERS or not all(field.isascii() and field.isdigit() for field in fields[:NUMBERS]):
        return None
    assessor, query, rank, url, *labels = map(int, fields[:NUMBERS])
    if rank < 1 or not all(label in LABELS for label in labels):
        return None
    topic, document = f"{assessor}-{query}", f"{rank}-{url}"
    return Assessment(topic=topic, document=document, rank=rank, labels=(labels[0], labels[1]))


def collection_texts(assessments: list[Assessment]) -> Mapping[str, str]:
    """Return the texts of a collection file, its qrels and its run, by file name.

    The run contains the ranked lists.
    """
    return {
        "collection.yaml": COLLECTION,
        "qrels.txt": "".join(_qrels_lines(assessments)),
        "run.txt": "".join(
            f"{item.topic} Q0 {item.document} {item.rank} {-item.rank} a66\n" for item in assessments
        ),
    }


def _qrels_lines(assessments: list[Assessment]) -> Iterator[str]:
    for item in assessments:
        yield f"{item.topic} 0 {item.document} {item.labels[0]} {item.labels[1]}\n"
