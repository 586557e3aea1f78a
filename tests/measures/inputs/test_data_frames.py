"""Tests of runs and judgments in data frames and other named columns."""

from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import pytest

import cupel_measures as cupel

QRELS = {"1": {"a": 2, "b": 0}, "2": {"c": 1}}
RUN = {"1": {"b": 9.5, "a": 8.5}, "2": {"c": 1.0}}
ROWS = [(topic, document, score) for topic, scores in RUN.items() for document, score in scores.items()]
GRADES = [(topic, document, grade) for topic, grades in QRELS.items() for document, grade in grades.items()]
TOPICS, DOCUMENTS, SCORES = (list(column) for column in zip(*ROWS, strict=True))
AP = (1 / 2 + 1) / 2

pd: Any = pytest.importorskip("pandas")


def ap(qrels: Any, run: Any) -> float:
    return float(cupel.evaluate(qrels, run, "AP")["run"]["AP"])


@pytest.mark.parametrize(
    ("names", "grades"),
    [
        (("query_id", "doc_id", "score"), ("query_id", "doc_id", "relevance")),
        (("qid", "docno", "score"), ("qid", "docno", "label")),
        (("topic", "document", "score"), ("topic", "document", "relevance")),
        (("query-id", "corpus-id", "score"), ("query-id", "corpus-id", "score")),
        (("Query_ID", " DOC_ID ", "Score"), ("QID", "docid", "Grade")),
    ],
)
def test_columns_of_every_convention_are_recognised(
    names: tuple[str, str, str], grades: tuple[str, str, str]
) -> None:
    assert ap(pd.DataFrame(GRADES, columns=[*grades]), pd.DataFrame(ROWS, columns=[*names])) == AP


def test_values_are_chosen_by_content() -> None:
    both = pd.DataFrame(ROWS, columns=["query_id", "doc_id", "score"]).assign(
        relevance=[0, 2, 1], rank=[1, 2, 1]
    )
    assert ap(both, both) == AP


def test_document_numbers_of_pyterrier_are_not_ids() -> None:
    frame = pd.DataFrame(ROWS, columns=["qid", "docno", "score"]).assign(docid=[5, 6, 7], query="red cabbage")
    assert ap(QRELS, frame) == AP


def test_several_candidates_are_listed() -> None:
    frame = pd.DataFrame(ROWS, columns=["qid", "docno", "score"]).assign(doc_id=["x", "y", "z"])
    with pytest.raises(cupel.Refused, match="several columns can contain the document ids: docno, doc_id"):
        cupel.runs(frame)
    with pytest.raises(cupel.Refused, match=r"no column of grades .* the columns are qid, docno, score"):
        cupel.qrels(pd.DataFrame(ROWS, columns=["qid", "docno", "score"]))


def test_single_column_suggests_another_separator() -> None:
    with pytest.raises(cupel.Refused, match="read the file with another separator"):
        cupel.runs(pd.DataFrame({"query_id;doc_id;score": ["1;a;9.5"]}))


def test_ranks_replace_missing_scores() -> None:
    frame = pd.DataFrame({"qid": TOPICS, "docno": DOCUMENTS, "rank": [1, 2, 1]})
    assert ap(QRELS, frame) == AP
    with pytest.raises(cupel.Refused, match="run-rank: row 2: the rank"):
        cupel.runs(frame.assign(rank=[1, np.nan, 1]))


class TestTypes:
    def test_integer_ids_equal_strings(self) -> None:
        run = pd.DataFrame({"query_id": [1, 1, 2], "doc_id": [10, 11, 12], "score": [2.0, 1.0, 1.0]})
        qrels = {1: {11: 1}, "2": {12: 1}}
        assert ap(qrels, run) == AP
        assert ap(qrels, run.astype({"query_id": str, "doc_id": str})) == AP

    def test_float_ids_are_refused(self) -> None:
        run = pd.DataFrame({"query_id": [1.0, 2.0], "doc_id": ["a", "c"], "score": [1.0, 2.0]})
        with pytest.raises(cupel.Refused, match=r"id-type: row 1: the topic id 1.0 is a float") as refused:
            cupel.runs(run)
        assert refused.value.findings.totals == {"id-type": 2}

    def test_missing_scores_are_named(self) -> None:
        run = pd.DataFrame({"query_id": TOPICS, "doc_id": DOCUMENTS, "score": [9.5, None, np.nan]})
        with pytest.raises(cupel.Refused, match="document 'a' of topic '1' is nan") as refused:
            cupel.evaluate(QRELS, run, "AP")
        assert refused.value.findings.totals == {"run-score": 2}

    def test_repeated_rows_are_named(self) -> None:
        run = pd.DataFrame([*ROWS, ROWS[0]], columns=["query_id", "doc_id", "score"])
        with pytest.raises(cupel.Refused, match="document 'b' of topic '1' is in rows 1 and 4"):
            cupel.runs(run)

    def test_categories_and_nullable_types(self) -> None:
        run = pd.DataFrame({"query_id": TOPICS, "doc_id": DOCUMENTS, "score": SCORES})
        categories = run.astype({"query_id": "category", "doc_id": "category"})
        nullable = run.astype({"score": "Float64", "query_id": "Int64"})
        assert ap(QRELS, categories) == ap(QRELS, nullable) == AP

    def test_rows_of_a_topic_need_not_be_together(self) -> None:
        run = pd.DataFrame(ROWS, columns=["query_id", "doc_id", "score"]).iloc[[0, 2, 1]]
        assert ap(QRELS, run) == AP

    def test_million_rows_equal_the_dictionary(self) -> None:
        topics, documents = np.repeat(np.arange(1000), 1000), np.tile(np.arange(1000), 1000)
        scores = np.random.default_rng(1).random(1_000_000)
        frame = pd.DataFrame({"qid": topics, "docno": documents, "score": scores})
        (run,) = cupel.runs(frame).values()
        table = run.table  # type: ignore[attr-defined]
        assert [*table] == [*map(str, range(1000))]
        assert [*table["999"].values()] == scores[-1000:].tolist()
        assert sum(map(len, table.values())) == 1_000_000


class TestOtherColumns:
    def test_dictionary_of_lists_or_arrays(self) -> None:
        lists = {"query_id": TOPICS, "doc_id": DOCUMENTS, "score": SCORES}
        assert ap(QRELS, lists) == ap(QRELS, {key: np.array(part) for key, part in lists.items()}) == AP
        assert cupel.evaluate(QRELS, {"x": lists, "y": lists}, "AP")["y"]["AP"] == AP

    def test_structured_array(self) -> None:
        records = np.array(ROWS, dtype=[("query_id", "U5"), ("doc_id", "U5"), ("score", float)])
        assert ap(QRELS, records) == AP

    def test_frames_by_name_and_by_aspect(self) -> None:
        frame = pd.DataFrame(ROWS, columns=["query_id", "doc_id", "score"])
        grades = pd.DataFrame(GRADES, columns=["query_id", "doc_id", "relevance"])
        scores = cupel.evaluate({"relevance": grades, "quality": QRELS}, {"x": frame, "y": RUN}, "AP")
        assert scores["x"]["AP"] == scores["y"]["AP"] == AP
        assert [aspect.name for aspect in scores.collection.aspects] == ["relevance", "quality"]

    if find_spec("polars"):  # not installed for tests, because it is large

        def test_polars_frame(self) -> None:
            polars = import_module("polars")
            frame = polars.DataFrame({"query_id": TOPICS, "doc_id": DOCUMENTS, "score": SCORES})
            assert ap(QRELS, frame) == ap(QRELS, frame.lazy()) == AP


class Named(NamedTuple):
    query_id: str
    doc_id: str
    score: float


@dataclass
class Judged:
    query_id: str
    doc_id: str
    relevance: int
    iteration: str = "0"


class Found:
    def __init__(self, qid: int, docno: str, score: float) -> None:
        self.qid, self.docno, self.score = qid, docno, score


class TestRecords:
    def test_records_of_every_kind(self) -> None:
        judged = [Judged(*grade) for grade in GRADES]
        for records in (
            [Named(*row) for row in ROWS],
            [dict(zip(("qid", "docno", "score"), row, strict=True)) for row in ROWS],
            [Found(int(topic), document, score) for topic, document, score in ROWS],
            ROWS,
            [list(row) for row in ROWS],
        ):
            assert ap(judged, records) == ap(iter(judged), iter(records)) == AP

    def test_records_of_ir_measures(self) -> None:
        ir_measures = pytest.importorskip("ir_measures")
        run = [ir_measures.ScoredDoc(*row) for row in ROWS]
        assert ap([ir_measures.Qrel(*grade) for grade in GRADES], run) == AP

    def test_invalid_records_are_named(self) -> None:
        with pytest.raises(cupel.Refused, match=r"columns-missing: record 2 is \('2', 'c'\)"):
            cupel.runs([("1", "a", 1.0), ("2", "c")])
        with pytest.raises(cupel.Refused, match="columns-missing: record 2 has no doc_id"):
            cupel.runs([{"query_id": "1", "doc_id": "a", "score": 1.0}, {"query_id": "1", "score": 2.0}])
        with pytest.raises(TypeError, match="a record is a int; expected a named tuple"):
            cupel.runs([1, 2])

    def test_frame_with_records_only(self) -> None:
        class Rows:
            def to_dict(self, orient: str) -> list[dict[str, Any]]:
                assert orient == "records"
                return [dict(zip(("qid", "docno", "score"), row, strict=True)) for row in ROWS]

        assert ap(QRELS, Rows()) == AP
