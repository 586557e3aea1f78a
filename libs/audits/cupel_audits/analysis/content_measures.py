"""Shared functions of audits that compare text-based measures with a classic one.

They include the preconditions of such an audit.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from cupel_audits.subject import AuditSubject, means, scores_by_topic
from cupel_measures.catalogue.parser import parse
from cupel_measures.grammar.measure import Measure
from cupel_measures.grammar.parameters import ParameterError, ParameterKind
from cupel_measures.grammar.syntax import MeasureError
from cupel_measures.model import Content, Floats
from cupel_measures.scoring.evaluator import Evaluator, list_unsupported

CLASSIC = "alpha_nDCG@20"
"""Default of the classic measure that text-based measures are compared with (Hui, PIKM 2014, section 5)."""


@dataclass(frozen=True)
class OneMeasure(ParameterKind):
    """The type of a parameter that names a measure.

    The value is the normalised text of the measure.
    """

    expects: str = "a measure, such as alpha_nDCG@20"

    def read(self, value: Any) -> str:
        if not isinstance(value, str):
            raise self.refuse(value)
        try:
            return str(parse(value))
        except MeasureError as problem:
            raise ParameterError(str(problem)) from None


MeasureText = Annotated[str, OneMeasure()]


def problems(subject: AuditSubject, reference: str, compared: str | None = None) -> Iterator[str]:
    """Yield the reasons why text-based measures cannot be compared with `reference`.

    reference: names a measure as a string, such as "alpha_nDCG@20". compared: names the measure that is
    compared, if there is only one.
    """
    if subject.content is None:
        yield (
            "the audit needs the texts of the documents, but the collection has none: add them to the "
            "collection file, as in texts: docs.jsonl.gz"
        )
    if subject.qrels.subtopics is None:
        yield "the audit needs judgments by subtopic, but the collection has none"
    elif not (subject.qrels.subtopics.judgment > 0).any():
        yield "no document is judged relevant to a subtopic, so no text can be similar to a relevant one"
    elif parse(reference).declaration.texts:
        yield f"reference: {reference} uses texts itself: give a measure that uses judgments only"
    elif why := list_unsupported(subject.qrels, [parse(reference)]):
        yield f"reference: {why[0]}"
    if compared is not None and not parse(compared).declaration.texts:
        yield f"{compared} does not read texts: give a text-based measure such as LMD"


def content_of(subject: AuditSubject) -> Content:
    """Return the texts of the documents; raise ValueError if there are none."""
    if subject.content is None:
        raise ValueError("the texts of the documents are needed")
    return subject.content


def bound(subject: AuditSubject, texts: Sequence[str]) -> list[Measure]:
    """Parse the measure texts and return the distinct measures.

    The measures are bound to the aspects of the subject.
    """
    measures = [parse(text).bound(subject.qrels.aspects) for text in texts]
    return list({str(measure): measure for measure in measures}.values())


def means_of(evaluator: Evaluator, measures: Sequence[Measure]) -> dict[str, Floats]:
    """Return the mean score of each run by each measure.

    The result is a dict of float64[runs] by measure text.
    """
    return means(scores_by_topic(evaluator.evaluate(measures), measures), measures)
