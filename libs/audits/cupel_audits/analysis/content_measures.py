"""What audits of measures of texts have in common: what they need, and what they are held against."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from cupel_audits.subject import AuditSubject, by_topic, means
from cupel_measures.catalogue.parser import parse
from cupel_measures.grammar.measure import Measure
from cupel_measures.grammar.parameters import ParameterError, ParameterKind
from cupel_measures.grammar.syntax import MeasureError
from cupel_measures.model import Content, Floats
from cupel_measures.scoring.evaluator import Evaluator, list_unsupported

CLASSIC = "alpha_nDCG@20"
"""What measures of texts are held against, unless an audit is told otherwise (spec 7.5)."""


@dataclass(frozen=True)
class OneMeasure(ParameterKind):
    """A measure by its text, which is made canonical."""

    expects: str = "a measure, such as alpha_nDCG@20"

    def read(self, value: Any) -> str:
        if not isinstance(value, str):
            raise self.refuse(value)
        try:
            return str(parse(value))
        except MeasureError as problem:
            raise ParameterError(str(problem)) from None


MeasureText = Annotated[str, OneMeasure()]


def problems(subject: AuditSubject, reference: str) -> Iterator[str]:
    """Why measures of texts can't be held against `reference` here."""
    if subject.content is None:
        yield (
            "it needs the texts of the documents, and there are none: a collection file names them as "
            "texts: docs.jsonl.gz"
        )
    if subject.qrels.subtopics is None:
        yield "it needs judgments by subtopic, and there are none"
    elif not (subject.qrels.subtopics.judgment > 0).any():
        yield "no document is judged relevant to a subtopic: there is nothing that a text could be like"
    elif parse(reference).declaration.texts:
        yield f"{reference} looks at texts itself: hold it against one that looks at judgments alone"
    elif why := list_unsupported(subject.qrels, [parse(reference)]):
        yield f"reference: {why[0]}"


def content_of(subject: AuditSubject) -> Content:
    """The texts; ValueError where there are none."""
    if subject.content is None:
        raise ValueError("the texts of the documents are needed")
    return subject.content


def bound(subject: AuditSubject, texts: Sequence[str]) -> list[Measure]:
    """The different measures of `texts`, of the subject's aspects."""
    found = [parse(text).bound(subject.qrels.aspects) for text in texts]
    return list({str(one): one for one in found}.values())


def means_of(evaluator: Evaluator, measures: Sequence[Measure]) -> dict[str, Floats]:
    """float64[runs] by measure: the score of each run."""
    return means(by_topic(evaluator.evaluate(measures), measures), measures)
