"""Provider of ir_measures: its functions calculate with Cupel.

    from cupel_measures.interop.ir_measures import register
    register()
    ir_measures.calc_aggregate([nDCG @ 10], qrels, run)

It needs ir_measures.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import ir_measures
from ir_measures import Metric, providers
from ir_measures.util import QrelsConverter, RunConverter

from cupel_measures.catalogue.parser import Measure, MeasureError, parse
from cupel_measures.inputs.table_runs import has_scores, join_table
from cupel_measures.inputs.topic_tables import is_number_type, nested_table
from cupel_measures.interop.judged_tables import Row, qrels_of
from cupel_measures.model import Qrels
from cupel_measures.model.profiles import Profile, find
from cupel_measures.scoring.evaluator import check, evaluate

LEVEL = 1
"""Smallest grade of relevant documents where a measure has no parameter `rel`."""


class CupelProvider(providers.Provider):
    """Provider of all measures of ir_measures that Cupel has."""

    NAME = "cupel"

    def __init__(self, profile: str = "trec_eval-9") -> None:
        """Take the name of the conventions for ties and parsing.

        The default gives the values of pytrec_eval.
        """
        super().__init__()  # type: ignore[no-untyped-call]
        self.profile = find(profile)

    def supports(self, measure: Any) -> bool:
        """Return whether Cupel has the measure with its parameters."""
        measure.validate_params()
        if hasattr(measure, "runtime_impl"):  # created by ir_measures.define
            return False
        try:
            return not parse(str(measure)).declaration.texts
        except MeasureError:
            return False

    def _evaluator(self, measures: Iterable[Any], qrels: Any) -> "CupelEvaluator":
        return CupelEvaluator(measures, qrels, self.profile)


class CupelEvaluator(providers.Evaluator):
    """Evaluator of runs against fixed judgments."""

    def __init__(self, measures: Iterable[Any], qrels: Any, profile: Profile) -> None:
        """Take measures and judgments of ir_measures.

        Raise ValueError if a grade is no whole number, and MeasureError if the judgments do not support a
        measure.
        """
        self._parsed: dict[Any, Measure] = {measure: parse(str(measure)) for measure in measures}
        self._profile = profile
        by_subtopic = any(measure.declaration.subtopics for measure in self._parsed.values())
        self._qrels = _read_qrels(qrels, by_subtopic=by_subtopic)
        check(self._qrels, [*self._parsed.values()])
        super().__init__([*self._parsed], {*self._qrels.topics})

    def _iter_calc(self, run: Any) -> Iterator[Metric]:
        """Yield the value of each topic of the run and measure.

        The base class adds the other topics.
        """
        table = nested_table(RunConverter(run).as_dict_of_dict(), "run")
        _check_scores(table)
        joined = join_table(table, self._qrels, profile=self._profile)
        scores = evaluate(self._qrels, joined, [*self._parsed.values()]).values
        for measure, parsed in self._parsed.items():
            for topic, value in zip(self._qrels.topics, scores[parsed].tolist(), strict=True):
                if topic in table:
                    yield Metric(query_id=topic, measure=measure, value=value)


def register(profile: str = "trec_eval-9") -> CupelProvider:
    """Make Cupel the first provider of ir_measures, and return the provider.

    Then `ir_measures.calc_aggregate`, `iter_calc`, `calc` and `evaluator` use it for all measures that it
    supports. profile: name of the conventions for ties and parsing. Registering again replaces the provider.
    """
    provider: CupelProvider = providers.register(CupelProvider(profile))
    pipeline = ir_measures.DefaultPipeline
    pipeline.providers = [provider, *(other for other in pipeline.providers if other.NAME != provider.NAME)]
    return provider


def _read_qrels(qrels: Any, *, by_subtopic: bool) -> Qrels:
    """Return judgments.

    by_subtopic: keep those of all subtopics, which ir_measures calls iterations.
    """
    if not by_subtopic:
        given = QrelsConverter(qrels).as_dict_of_dict()
        table = nested_table({topic: of for topic, of in given.items() if of}, "qrels")
        return qrels_of(_whole_grades(table), LEVEL)
    rows: list[Row] = [
        (str(topic), str(document), str(subtopic), _whole(grade))
        for topic, document, grade, subtopic in QrelsConverter(qrels).as_namedtuple_iter()
    ]
    judged: dict[str, dict[str, int]] = {}
    for topic, document, _, grade in rows:
        judged.setdefault(topic, {})[document] = grade
    return qrels_of(judged, LEVEL, rows)


def _whole_grades(table: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    return {
        topic: {document: _whole(grade) for document, grade in grades.items()}
        for topic, grades in table.items()
    }


def _whole(grade: Any) -> int:
    if not is_number_type(type(grade)) or grade != int(grade):
        raise ValueError(f"a relevance grade is {grade!r}; expected a whole number")
    return int(grade)


def _check_scores(table: Mapping[str, Mapping[str, float]]) -> None:
    """Raise ValueError if a score is NaN or no number."""
    for topic, scores in table.items():
        for document, score in {} if has_scores(scores) else scores.items():
            if not is_number_type(type(score)) or score != score:
                raise ValueError(f"the score of document {document!r} of topic {topic!r} is {score!r}")
