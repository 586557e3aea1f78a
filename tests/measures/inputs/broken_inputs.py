"""Kinds of broken runs and judgments, as text, as a dictionary and as a data frame.

Each kind has the code of its finding by door. A door that cannot express a kind is left out: a dictionary has
no columns that could be missing.
"""

import gzip
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

QRELS = {"1": {"a": 1, "b": 0}, "2": {"c": 1}}
NAN = float("nan")


@dataclass(frozen=True, kw_only=True)
class BrokenInput:
    """A kind of broken input.

    text: the bytes of a file. table: a dictionary, or None. frame: columns, or None. code: of the finding;
    codes: that of a door, if it differs.
    """

    kind: str
    code: str
    text: bytes | None = None
    table: Any = None
    frame: Mapping[str, list[Any]] | None = None
    codes: Mapping[str, str] = field(default_factory=dict)

    def code_by(self, door: str) -> str:
        return self.codes.get(door, self.code)


def frame_of(columns: Mapping[str, list[Any]]) -> Any:
    """Return a data frame, or skip the test if pandas is not installed."""
    return pytest.importorskip("pandas").DataFrame(dict(columns))


def run_frame(*rows: tuple[Any, Any, Any]) -> dict[str, list[Any]]:
    """Return the columns of a run. rows: topic, document and score."""
    topics, documents, scores = (list(column) for column in zip(*rows, strict=True))
    return {"query_id": topics, "doc_id": documents, "score": scores}


def grade_frame(*rows: tuple[Any, Any, Any]) -> dict[str, list[Any]]:
    columns = run_frame(*rows)
    return {"query_id": columns["query_id"], "doc_id": columns["doc_id"], "relevance": columns["score"]}


PAGE = b"<!DOCTYPE html>\n<html><head><title>404</title></head>\n<body>Not found</body></html>\n"
XML = b"<topics>\n<topic number='1'><query>cabbage</query></topic>\n</topics>\n"
GOOD_RUN = b"1 Q0 a 1 9.5 tag\n1 Q0 b 2 8.5 tag\n2 Q0 c 1 1 tag\n"
LONG_RUN = "".join(f"1 Q0 d{number} {number} {-number} tag\n" for number in range(999)).encode()
GOOD_QRELS = b"1 0 a 1\n1 0 b 0\n2 0 c 1\n"

BROKEN_RUNS = [
    BrokenInput(
        kind="too few columns",
        code="run-columns",
        text=b"1 Q0 a 1 9.5\n2 Q0 c 1 9.5\n",
        frame={"query_id": ["1"], "doc_id": ["a"]},
        codes={"frame": "columns-missing"},
    ),
    BrokenInput(
        kind="HTML",
        code="file-format",
        text=PAGE,
        frame={"<!DOCTYPE html>": ["<html>"]},
        codes={"frame": "columns-missing"},
    ),
    BrokenInput(kind="XML", code="file-format", text=XML),
    BrokenInput(kind="PDF", code="file-format", text=b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n"),
    BrokenInput(
        kind="CSV without header",
        code="file-format",
        text=b"1,a,9.5\n1,b,8.5\n2,c,1\n",
        frame={"1,a,9.5": ["1,b,8.5", "2,c,1"]},
        codes={"frame": "columns-missing"},
    ),
    BrokenInput(
        kind="CSV with missing fields",
        code="table-fields",
        text=b"query_id,doc_id,score\n1,a\n2,c,1\n",
        frame=run_frame(("1", "a", None), ("2", "c", 1.0)),
        codes={"frame": "run-score"},
    ),
    BrokenInput(
        kind="unclear columns",
        code="columns-unclear",
        text=b"query_id\ttopic\tdoc_id\tscore\n1\t1\ta\t1\n",
        frame={"query_id": ["1"], "topic": ["1"], "doc_id": ["a"], "score": [1.0]},
    ),
    BrokenInput(
        kind="grades instead of scores",
        code="columns-missing",
        text=b"query_id,doc_id,relevance\n1,a,1\n",
        frame=grade_frame(("1", "a", 1)),
    ),
    BrokenInput(
        kind="qrels instead of a run",
        code="file-kind",
        text=GOOD_QRELS,
    ),
    BrokenInput(
        kind="decimal comma",
        code="run-score",
        text=b"1 Q0 a 1 9,5 tag\n2 Q0 c 1 1,5 tag\n",
        table={"1": {"a": "9,5"}},
        frame=run_frame(("1", "a", "9,5")),
    ),
    BrokenInput(
        kind="decimal comma in CSV",
        code="run-score",
        text=b"query_id;doc_id;score\n1;a;9,5\n",
    ),
    BrokenInput(
        kind="NaN",
        code="run-score",
        text=b"1 Q0 a 1 nan tag\n1 Q0 b 2 8 tag\n",
        table={"1": {"a": NAN, "b": 8.0}},
        frame=run_frame(("1", "a", NAN), ("1", "b", 8.0)),
    ),
    BrokenInput(
        kind="infinity",
        code="run-score",
        text=b"1 Q0 a 1 1e999 tag\n",
        table={"1": {"a": float("inf")}},
        frame=run_frame(("1", "a", float("inf"))),
    ),
    BrokenInput(
        kind="duplicates",
        code="run-duplicate",
        text=b"1 Q0 a 1 9.5 tag\n1 Q0 a 2 8.5 tag\n",
        table={"1": {7: 1.0, "7": 2.0}},
        frame=run_frame(("1", "a", 9.5), ("1", "a", 9.5)),
        codes={"dict": "id-twice"},
    ),
    BrokenInput(
        kind="empty",
        code="run-empty",
        text=b"",
        table={},
        frame={"query_id": [], "doc_id": [], "score": []},
    ),
    BrokenInput(kind="UTF-16", code="run-not-text", text=GOOD_RUN.decode().encode("utf-16")),
    BrokenInput(kind="NUL bytes", code="run-not-text", text=b"1 Q0 a\0 1 9.5 tag\n"),
    BrokenInput(kind="cut gzip", code="file-corrupt", text=gzip.compress(LONG_RUN, mtime=0)[:-12]),
    BrokenInput(
        kind="wrong topics",
        code="run-topics-none",
        text=b"701 Q0 a 1 9.5 tag\n702 Q0 c 1 8 tag\n",
        table={"701": {"a": 9.5}},
        frame=run_frame(("701", "a", 9.5)),
    ),
    BrokenInput(
        kind="blanks in ids",
        code="run-rank",
        text=b"1 Q0 my page 1 9.5 tag\n",
        table={"1": {"my page": 9.5}},
        frame=run_frame(("1", "my page", 9.5)),
        codes={"dict": "id-blank", "frame": "id-blank"},
    ),
    BrokenInput(
        kind="missing ids",
        code="id-type",
        table={None: {"a": 1.0}},
        frame=run_frame((1.0, "a", 9.5), (NAN, "b", 8.5)),
    ),
    BrokenInput(
        kind="words as scores",
        code="run-score",
        text=b"1 Q0 a 1 high tag\n",
        table={"1": {"a": "high"}},
        frame=run_frame(("1", "a", "high")),
    ),
    BrokenInput(
        kind="three columns that are no ranks",
        code="columns-unclear",
        text=b"1 a 9.5\n1 b 8.5\n2 c 1\n",
        frame={"0": ["1"], "1": ["a"], "2": [9.5]},
        codes={"frame": "columns-missing"},
    ),
    BrokenInput(kind="cut JSON", code="json-syntax", text=b'{"1": {"a": 9.5, "b": 8.'),
    BrokenInput(
        kind="JSON of several runs",
        code="json-shape",
        text=b'{"bm25": {"1": {"a": 9.5}}, "x": {"1": {"a": 1}}}',
    ),
    BrokenInput(kind="repeated JSON keys", code="id-twice", text=b'{"1": {"a": 9.5, "a": 8.5}}'),
]

BROKEN_QRELS = [
    BrokenInput(
        kind="too few columns",
        code="qrels-columns",
        text=b"1 0\n2 0\n",
        frame={"query_id": ["1"], "relevance": [1]},
        codes={"frame": "columns-missing"},
    ),
    BrokenInput(
        kind="three columns",
        code="file-format",
        text=b"1 a 1\n1 b 0\n",
        frame={"0": ["1"], "1": ["a"], "2": [1]},
        codes={"frame": "columns-missing"},
    ),
    BrokenInput(kind="HTML", code="file-format", text=PAGE),
    BrokenInput(kind="XML", code="file-format", text=XML),
    BrokenInput(kind="PDF", code="file-format", text=b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n"),
    BrokenInput(
        kind="CSV without header",
        code="file-format",
        text=b"1,0,a,1\n1,0,b,0\n",
        frame={"1,0,a,1": ["1,0,b,0"]},
        codes={"frame": "columns-missing"},
    ),
    BrokenInput(
        kind="scores instead of grades",
        code="columns-missing",
        text=b"query_id,doc_id,score\n1,a,9.5\n",
        frame=run_frame(("1", "a", 9.5)),
    ),
    BrokenInput(kind="a run instead of qrels", code="file-kind", text=GOOD_RUN),
    BrokenInput(
        kind="decimal comma",
        code="qrels-grade-not-integer",
        text=b"1 0 a 1,0\n",
        table={"1": {"a": "1,0"}},
        frame=grade_frame(("1", "a", "1,0")),
    ),
    BrokenInput(
        kind="fractions",
        code="qrels-grade-not-integer",
        text=b"1 0 a 0.5\n",
        table={"1": {"a": 0.5}},
        frame=grade_frame(("1", "a", 0.5)),
    ),
    BrokenInput(
        kind="NaN",
        code="qrels-grade-not-integer",
        text=b"1 0 a nan\n",
        table={"1": {"a": NAN}},
        frame=grade_frame(("1", "a", NAN)),
    ),
    BrokenInput(
        kind="words as labels",
        code="qrels-grade-not-integer",
        text=b"1 0 a relevant\n",
        table={"1": {"a": "relevant"}},
        frame=grade_frame(("1", "a", "relevant")),
    ),
    BrokenInput(
        kind="truth values as labels",
        code="qrels-grade-not-integer",
        text=b"query_id,doc_id,relevance\n1,a,True\n",
        table={"1": {"a": True}},
        frame=grade_frame(("1", "a", True)),
    ),
    BrokenInput(
        kind="contradictions",
        code="qrels-judged-twice",
        text=b"1 0 a 1\n1 0 a 0\n",
        table={"1": {7: 1, "7": 0}},
        frame=grade_frame(("1", "a", 1), ("1", "a", 0)),
        codes={"dict": "id-twice"},
    ),
    BrokenInput(
        kind="empty",
        code="qrels-empty",
        text=b"",
        table={},
        frame={"query_id": [], "doc_id": [], "relevance": []},
    ),
    BrokenInput(kind="UTF-16", code="qrels-not-text", text=GOOD_QRELS.decode().encode("utf-16")),
    BrokenInput(kind="cut gzip", code="file-corrupt", text=gzip.compress(GOOD_QRELS * 50, mtime=0)[:-12]),
    BrokenInput(
        kind="blanks in ids",
        code="qrels-columns",
        text=b"1 0 my page 1\n",
        table={"1": {"my page": 1}},
        frame=grade_frame(("1", "my page", 1)),
        codes={"dict": "id-blank", "frame": "id-blank"},
    ),
    BrokenInput(
        kind="topics that begin a comment",
        code="id-comment",
        table={"#1": {"a": 1}, "2": {"c": 1}},
        frame=grade_frame(("#1", "a", 1), ("2", "c", 1)),
    ),
    BrokenInput(
        kind="missing ids",
        code="id-type",
        table={"1": {None: 1}},
        frame=grade_frame((1.0, "a", 1), (NAN, "b", 0)),
    ),
    BrokenInput(kind="cut JSON", code="json-syntax", text=b'{"1": {"a": 1, "b": '),
    BrokenInput(kind="rankings in JSON", code="json-shape", text=b'{"1": "a", "2": "c"}'),
]
