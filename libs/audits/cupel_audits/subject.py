"""What an audit looks at: judgments, and runs joined with them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cupel_measures.catalogue.parser import parse
from cupel_measures.grammar.measure import Measure
from cupel_measures.model import NEGATIVE, Content, Floats, Ids, Joined, Qrels
from cupel_measures.scoring.evaluator import Evaluator, Scores, aggregates

ONE_TOPIC = "There is one topic only: how runs fare on it says little about the collection."

DECIMALS = 12
"""Mean scores that are equal when rounded so are tied: floats would invent differences (spec 1.2.7)."""


@dataclass(frozen=True, kw_only=True)
class SubjectSummary:
    """What a report needs to know of its subject; JSON holds it.

    runs: their names, in the order of all that goes by run. teams: the team of each run, or None where teams
    are not known. topics, aspects: of the qrels. measures: canonical texts. qrels, other: names of the
    judgments, and of those that they are compared with. judged: documents with a judgment of some aspect, or
    by subtopic. relevant: of them, those that count as relevant for the first aspect or for some subtopic.
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
        """What to be warned of whatever is asked."""
        return (ONE_TOPIC,) if len(self.topics) == 1 else ()

    def as_data(self) -> dict[str, Any]:
        """As JSON holds it."""
        return asdict(self)

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> "SubjectSummary":
        """From what JSON held."""
        fields: dict[str, Any] = {
            name: tuple(one) if isinstance(one, list) else one for name, one in data.items()
        }
        return cls(**fields)


@dataclass(frozen=True, eq=False)
class Tops:
    """The first documents of every run, judged or not.

    documents: U different ids of each topic, topic after topic; topic: int32[U], the topic of each. pooled:
    int32[U], the document's index in `Qrels.documents`, -1 where no aspect's pool has it. ranked:
    int32[runs, topics, depth], the document at each rank, as an index into these; -1 below the run's last.
    """

    documents: Ids
    topic: NDArray[np.int32]
    pooled: NDArray[np.int32]
    ranked: NDArray[np.int32]

    @property
    def depth(self) -> int:
        return int(self.ranked.shape[2])


@dataclass(frozen=True, eq=False)
class AuditSubject:
    """Judgments and the runs that are audited under them.

    joined: all runs, in the order of `about.runs`, a row per run and topic. tops: where the audit asks for
    it, at least so deep as it does, or as the runs go. content: the texts of the same rows, where there are
    any. other: the judgments that these are compared with, of the same topics, and the same runs joined with
    them, by the measures that can be had of them without texts.
    """

    about: SubjectSummary
    qrels: Qrels
    joined: Joined
    tops: Tops | None = None
    content: Content | None = None
    other_subject: "AuditSubject | None" = None

    @cached_property
    def measures(self) -> tuple[Measure, ...]:
        """Those of `about`, of these aspects."""
        return tuple(parse(text).bound(self.qrels.aspects) for text in self.about.measures)

    @cached_property
    def evaluator(self) -> Evaluator:
        """Of all runs under all judgments."""
        return Evaluator(self.qrels, self.joined, content=self.content)

    @cached_property
    def scores(self) -> dict[str, Floats]:
        """`by_topic` under all judgments."""
        return self.by_topic(self.evaluator)

    @cached_property
    def means(self) -> dict[str, Floats]:
        """`means_under` all judgments."""
        return means(self.scores, self.measures)

    @cached_property
    def judged(self) -> NDArray[np.bool_]:
        """bool[D]: documents with a label of some aspect, a negative one too, or judged by subtopic."""
        judged: NDArray[np.bool_] = np.asarray((self.qrels.labels >= NEGATIVE).any(axis=0))
        if self.qrels.subtopics is not None:
            judged[self.qrels.subtopics.document] = True
        return judged

    def by_topic(self, evaluator: Evaluator) -> dict[str, Floats]:
        """float64[topics, runs] for each measure's text, under the judgments of `evaluator`."""
        return by_topic(evaluator.evaluate(self.measures), self.measures)

    def means_under(self, evaluator: Evaluator) -> dict[str, Floats]:
        """float64[runs] for each measure's text: the score of each run, rounded to DECIMALS."""
        return means(self.by_topic(evaluator), self.measures)


def by_topic(scores: Scores, measures: Sequence[Measure]) -> dict[str, Floats]:
    """float64[topics, runs] for each measure's text."""
    return {str(one): scores.values[one].reshape(-1, scores.topics).T for one in measures}


def means(values: Mapping[str, Floats], measures: Sequence[Measure]) -> dict[str, Floats]:
    """float64[runs] for each measure's text, rounded to DECIMALS: equal scores are tied."""
    return {str(one): np.round(aggregates(one, values[str(one)].T), DECIMALS) for one in measures}
