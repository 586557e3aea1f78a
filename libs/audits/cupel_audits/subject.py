"""The subject of an audit: judgments, and runs joined with them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cupel_measures.catalogue.parser import parse
from cupel_measures.grammar.measure import Measure
from cupel_measures.model import Content, Floats, Ids, Joined, Qrels
from cupel_measures.scoring.evaluator import Evaluator, Scores, aggregates

ONE_TOPIC = "There is only one topic, so the results cannot be generalised to other topics."

DECIMALS = 12
"""Number of decimals to which mean scores are compared, so that rounding errors do not break ties."""


@dataclass(frozen=True, kw_only=True)
class SubjectSummary:
    """The facts about a subject that a report needs; JSON-serialisable.

    runs: names of the runs; every list by run has this order. teams: the team of each run, or None if teams
    are unknown. topics, aspects: the topics and the aspects of the qrels. measures: normalised texts of the
    measures. profile: name of the tie-breaking and parsing profile. depth: maximum number of documents per
    topic, None if there is no limit. qrels: name of the judgments. judged: number of documents with a
    judgment of some aspect or by subtopic. relevant: number of documents that are relevant for the first
    aspect or for some subtopic. other: name of the second version of the judgments, or None.
    """

    runs: tuple[str, ...]
    teams: tuple[str, ...] | None
    topics: tuple[str, ...]
    aspects: tuple[str, ...]
    measures: tuple[str, ...]
    profile: str
    depth: int | None
    qrels: str
    judged: int
    relevant: int
    other: str | None = None

    @property
    def cautions(self) -> tuple[str, ...]:
        """Return the warnings that apply to every kind of audit."""
        return (ONE_TOPIC,) if len(self.topics) == 1 else ()

    def as_data(self) -> dict[str, Any]:
        """Return the summary as JSON data."""
        return asdict(self)

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> "SubjectSummary":
        """Return the summary that has these JSON data; inverse of `as_data`."""
        fields: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in data.items()
        }
        return cls(**fields)


@dataclass(frozen=True, eq=False)
class Tops:
    """The first documents of every run, judged or not.

    documents: U ids, grouped by topic and distinct within a topic. topic: int32[U], the topic of each
    document. pooled: int32[U], the index of the document in `Qrels.documents`, or -1 if the qrels do not
    contain it. ranked: int32[runs, topics, depth], the document at each rank as an index into `documents`, or
    -1 below the last document of the run.
    """

    documents: Ids
    topic: NDArray[np.int32]
    pooled: NDArray[np.int32]
    ranked: NDArray[np.int32]


@dataclass(frozen=True, eq=False, kw_only=True)
class AuditSubject:
    """Judgments, and the runs that are audited under them.

    joined: all runs in the order of `about.runs`, a row for each run and topic. tops: the first documents of
    the runs, at least to `Audit.ranking_depth` or to the end of the runs; None if the audit does not need
    them. content: the texts of the documents in the same rows, or None. other_subject: the same runs under
    the second version of the judgments, with the measures that can be computed from it without texts; None if
    there is only one version.
    """

    about: SubjectSummary
    qrels: Qrels
    joined: Joined
    tops: Tops | None = None
    content: Content | None = None
    other_subject: "AuditSubject | None" = None

    @cached_property
    def measures(self) -> tuple[Measure, ...]:
        """Return the measures of `about`, bound to the aspects."""
        return tuple(parse(text).bound(self.qrels.aspects) for text in self.about.measures)

    @cached_property
    def evaluator(self) -> Evaluator:
        """Return the evaluator of all runs under all judgments."""
        return Evaluator(self.qrels, self.joined, content=self.content)

    @cached_property
    def scores(self) -> dict[str, Floats]:
        """Return the scores under all judgments, as float64[topics, runs] by measure text."""
        return self.scores_by_topic(self.evaluator)

    @cached_property
    def means(self) -> dict[str, Floats]:
        """Return the mean scores under all judgments, as float64[runs] by measure text."""
        return means(self.scores, self.measures)

    @cached_property
    def judged(self) -> NDArray[np.bool_]:
        """Return the documents judged by subtopic or with any label of some aspect.

        bool[D].
        """
        return self.qrels.is_judged

    def scores_by_topic(self, evaluator: Evaluator) -> dict[str, Floats]:
        """Return the scores by measure text, under the judgments of `evaluator`.

        float64[topics, runs].
        """
        return scores_by_topic(evaluator.evaluate(self.measures), self.measures)

    def means_under(self, evaluator: Evaluator) -> dict[str, Floats]:
        """Return the means by measure text, under the judgments of `evaluator`.

        float64[runs], rounded to DECIMALS.
        """
        return means(self.scores_by_topic(evaluator), self.measures)


def scores_by_topic(scores: Scores, measures: Sequence[Measure]) -> dict[str, Floats]:
    """Return the scores as float64[topics, runs] by measure text."""
    return {str(measure): scores.values[measure].reshape(-1, scores.topics).T for measure in measures}


def means(values: Mapping[str, Floats], measures: Sequence[Measure]) -> dict[str, Floats]:
    """Return rounded means by measure text.

    float64[runs]. The means are rounded to DECIMALS so that equal means are tied.
    """
    texts = {str(measure): measure for measure in measures}
    return {text: np.round(aggregates(measure, values[text].T), DECIMALS) for text, measure in texts.items()}
