"""Drop-in replacement for pytrec_eval: change one import line.

    from cupel_measures.interop import pytrec_eval

Values are those of trec_eval 9.
"""

import warnings
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import log
from typing import Any

import numpy as np

from cupel_measures.grammar.measure import Measure
from cupel_measures.inputs.table_runs import has_scores, join_table
from cupel_measures.interop import gain_based
from cupel_measures.interop.judged_tables import qrels_of
from cupel_measures.interop.requested_columns import (
    NICKNAMES,
    NO_VALUE,
    ORDER,
    columns_of,
    ignored,
    parameters_of,
)
from cupel_measures.model import NEGATIVE, Floats, Joined, Qrels
from cupel_measures.model.profiles import PROFILES
from cupel_measures.scoring.evaluator import evaluate

__all__ = [
    "RelevanceEvaluator",
    "compute_aggregated_measure",
    "parse_qrel",
    "parse_run",
    "supported_measures",
    "supported_nicknames",
]

supported_measures: set[str] = set(ORDER)
supported_nicknames: dict[str, set[str]] = {name: set(of.split()) for name, of in NICKNAMES.items()}

__version__ = "0.5.11"
"""Version of pytrec_eval-terrier whose interface and values this module has."""
PROFILE = PROFILES["trec_eval-9"]
NEEDS_ARGUMENTS = "Expected object_relevance_per_qid dictionary and measures set."
NEEDS_SCORES = "Unable to extract query/object scores."


def parse_run(f_run: Iterable[str]) -> dict[str, dict[str, float]]:
    """Return the scores of a run in TREC format by topic and document.

    f_run: lines. Raise AssertionError if a document is given twice for a topic, and ValueError if a line has
    not six columns or its score is no number.
    """
    run: dict[str, dict[str, float]] = defaultdict(dict)
    for line in f_run:
        topic, _, document, _, score, _ = line.split()
        _check_new(document, run[topic], topic)
        run[topic][document] = float(score)
    return run


def parse_qrel(f_qrel: Iterable[str]) -> dict[str, dict[str, int]]:
    """Return the judgments of qrels in TREC format by topic and document.

    f_qrel: lines. Raise AssertionError if a document is given twice for a topic, and ValueError if a line has
    not four columns or its grade is no integer.
    """
    qrel: dict[str, dict[str, int]] = defaultdict(dict)
    for line in f_qrel:
        topic, _, document, grade = line.split()
        _check_new(document, qrel[topic], topic)
        qrel[topic][document] = int(grade)
    return qrel


def _check_new(document: str, known: Mapping[str, float], topic: str) -> None:
    if document in known:
        raise AssertionError(f"document {document!r} is given twice for topic {topic!r}")


def compute_aggregated_measure(measure: str, values: list[float]) -> float:
    """Return the aggregate of the values of a measure over topics.

    For names that begin with num_, it is the sum. For names that begin with gm_, the values are logarithms,
    and it is the geometric mean. For other names, it is the mean.
    """
    if measure.startswith("num_"):
        return float(np.sum(values))
    if measure.startswith("gm_"):
        return float(np.exp(np.sum(values) / len(values)))
    return float(np.mean(values))


class RelevanceEvaluator:
    """Evaluator of runs against fixed judgments."""

    def __init__(
        self,
        query_relevance: Mapping[str, Mapping[str, int]],
        measures: Iterable[str],
        relevance_level: int = 1,
        judged_docs_only_flag: bool = False,
    ) -> None:
        """Take judgments and names of measures.

        query_relevance: grade by topic and document. measures: such as ndcg_cut.10,20 or P_5, or nicknames
        such as official. relevance_level: smallest grade of relevant documents. judged_docs_only_flag: remove
        documents without a judgment from runs.

        Raise ValueError for an unknown measure, and TypeError for judgments or a level of another kind.
        """
        parameters = parameters_of(measures)
        for name, values in ignored(parameters).items():
            message = f"{name} takes no parameters; as in pytrec_eval, {','.join(values)} is ignored"
            warnings.warn(message, stacklevel=2)
        self._columns = columns_of(parameters)
        judged = {topic: grades for topic, grades in query_relevance.items() if len(grades) > 0}
        self._judged_only = bool(_whole_number(judged_docs_only_flag))
        level = _positive(relevance_level)
        _check_judgments(judged)
        self._qrels = qrels_of(judged, level)
        self._places = {topic: place for place, topic in enumerate(self._qrels.topics)}

    def evaluate(self, scores: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
        """Return the values by topic and measure.

        scores: score by topic and document. The result has the topics that have judgments, in the order of
        `scores`. Raise TypeError if `scores` is no dictionary of this kind, and ValueError if a score is NaN.
        """
        if not scores:
            return {}
        _check_run(scores)
        topics = [topic for topic in scores if topic in self._places]
        if not topics:
            return {}
        joined = join_table(scores, self._qrels, profile=PROFILE)
        if self._judged_only:
            joined = _without_unjudged(joined, self._qrels)
        keys = [column.key for column in self._columns]
        rows = self._values(joined).T.tolist()
        return {topic: dict(zip(keys, rows[self._places[topic]], strict=True)) for topic in topics}

    def _values(self, joined: Joined) -> Floats:
        """Return the value of each column and topic: float64[columns, topics]."""
        measures = [column.measure for column in self._columns if not isinstance(column.measure, str)]
        computed = evaluate(self._qrels, joined, measures).values
        gains = gain_based.MEASURES.keys() & {column.measure for column in self._columns}
        ranked = gain_based.rankings(joined, self._qrels) if gains else []
        values = np.zeros((len(self._columns), len(self._places)))
        for row, column in zip(values, self._columns, strict=True):
            if not isinstance(column.measure, str):
                row[:] = _as_in_trec_eval(column.measure, computed[column.measure], joined, self._qrels)
            elif column.measure not in NO_VALUE:
                row[:] = gain_based.score(column.measure, ranked)
        return values


def _as_in_trec_eval(measure: Measure, values: Floats, joined: Joined, qrels: Qrels) -> Floats:
    """Return values as trec_eval has them.

    Values of geometric means are logarithms. The interpolated precision of an empty ranking is NaN at a
    recall level that needs no document.
    """
    name, given = measure.declaration.name, measure.arguments
    if measure.declaration.aggregate == "geometric mean":
        return np.array([log(value) for value in values.tolist()])
    if name not in ("IPrec", "AP11"):
        return values
    level = given["recall"] if name == "IPrec" else min(given["levels"] or [0])
    is_relevant = qrels.labels[0] >= qrels.aspects[0].threshold
    relevant = np.bincount(qrels.topic_of[is_relevant], minlength=len(values))
    needed = np.floor(float(level) * relevant + 0.9)
    return np.where((joined.retrieved == 0) & (needed == 0), np.nan, values)


def _without_unjudged(joined: Joined, qrels: Qrels) -> Joined:
    """Return the rows without documents that have no judgment. Ties are forgotten."""
    kept = qrels.labels[0][joined.document] > NEGATIVE
    rows = len(joined.retrieved)
    row = np.repeat(np.arange(rows), np.diff(joined.offsets))[kept]
    number = np.bincount(row, minlength=rows)
    offsets = np.append(0, np.cumsum(number))
    rank = (np.arange(len(row)) - offsets[row] + 1).astype(np.int32)
    document = joined.document[kept]
    return replace(
        joined, retrieved=number, offsets=offsets, document=document, rank=rank, first=rank, last=rank
    )


def _check_judgments(judged: Mapping[str, Mapping[str, int]]) -> None:
    for topic, grades in judged.items():
        _require(isinstance(topic, str), "Expected string as key.")
        _require(isinstance(grades, dict), "Expected dictionary as value.")
        if {*map(type, grades)} == {str} and {*map(type, grades.values())} == {int}:
            continue
        for document, grade in grades.items():
            expected = "Expected mapping of document id to query relevance or matching score."
            _require(isinstance(document, str), expected)
            _require(isinstance(grade, int), "Expected relevance to be integer.")


def _check_run(scores: Any) -> None:
    """Raise TypeError for ids or scores of another type, and ValueError for NaN."""
    _require(isinstance(scores, dict), "Argument object scores should be of type dictionary.")
    for topic, of in scores.items():
        _require(isinstance(topic, str) and isinstance(of, dict), NEEDS_SCORES)
        if has_scores(of):
            continue
        for document, score in of.items():
            _require(isinstance(document, str) and isinstance(score, float | int), NEEDS_SCORES)
            if score != score:
                raise ValueError(f"the score of document {document!r} of topic {topic!r} is NaN")


def _require(right: bool, message: str) -> None:
    if not right:
        raise TypeError(message)


def _positive(level: Any) -> int:
    number = _whole_number(level)
    _require(number > 0, "Argument relevance_level should be positive.")
    return number


def _whole_number(value: Any) -> int:
    _require(hasattr(value, "__index__"), NEEDS_ARGUMENTS)
    return int(value)
