"""Tests of runs and judgments in files of every format, in folders and on standard input."""

import gzip
import io
import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

import cupel_measures as cupel
from cupel_client.main import cli
from cupel_measures.inputs.formats import parquet_tables

QRELS = {"1": {"a": 2, "b": 0}, "2": {"c": 1}}
RUN = {"1": {"b": 9.5, "a": 8.5}, "2": {"c": 1.0}}
ROWS = [(topic, document, score) for topic, scores in RUN.items() for document, score in scores.items()]
GRADES = [(topic, document, grade) for topic, grades in QRELS.items() for document, grade in grades.items()]
AP = (1 / 2 + 1) / 2


def lines(rows: list[tuple[Any, ...]], separator: str, header: str = "") -> str:
    return "".join(
        line + "\n" for line in ([header] if header else []) + [separator.join(map(str, r)) for r in rows]
    )


def records(rows: list[tuple[Any, ...]], names: str) -> list[dict[str, Any]]:
    return [dict(zip(names.split(), row, strict=True)) for row in rows]


RUNS = {
    "TREC": lines([(t, "Q0", d, 1, s, "tag") for t, d, s in ROWS], " "),
    "TREC with tabs": lines([(t, "Q0", d, 1, s, "tag") for t, d, s in ROWS], "\t"),
    "BEIR": lines(ROWS, "\t", "query-id\tcorpus-id\tscore"),
    "CSV": lines(ROWS, ",", "query_id,doc_id,score"),
    "CSV with quotation marks": lines([(f'"{t}"', d, s) for t, d, s in ROWS], ",", '"qid","docno","score"'),
    "CSV with semicolons": lines(ROWS, ";", "qid;docno;score"),
    "CSV with CR LF": lines(ROWS, ",", "qid,docno,score").replace("\n", "\r\n"),
    "CSV with other columns": lines([("x", *r, 7) for r in ROWS], ",", ",qid,docno,score,docid"),
    "words with header": lines(ROWS, " ", "qid docno score"),
    "TREC with header": lines(
        [(t, "Q0", d, 1, s, "x") for t, d, s in ROWS], " ", "qid Q0 docno rank score tag"
    ),
    "JSON": json.dumps(RUN),
    "JSON with line ends": json.dumps(RUN, indent=2),
    "JSON of records": json.dumps(records(ROWS, "query_id doc_id score")),
    "JSON of columns": json.dumps(
        dict(zip(("qid", "docno", "score"), map(list, zip(*ROWS, strict=True)), strict=True))
    ),
    "JSON Lines": "".join(json.dumps(record) + "\n" for record in records(ROWS, "qid docno score")),
    "MS MARCO": lines([("1", "b", 1), ("1", "a", 2), ("2", "c", 1)], "\t"),
    "MS MARCO with header": lines([("1", "b", 1), ("1", "a", 2), ("2", "c", 1)], "\t", "qid\tpid\trank"),
}
JUDGMENTS = {
    "TREC": lines([(t, 0, d, g) for t, d, g in GRADES], " "),
    "MS MARCO": lines([(t, 0, d, g) for t, d, g in GRADES], "\t"),
    "BEIR": lines(GRADES, "\t", "query-id\tcorpus-id\tscore"),
    "CSV": lines(GRADES, ",", "query_id,doc_id,relevance"),
    "JSON": json.dumps(QRELS),
    "JSON Lines": "".join(json.dumps(record) + "\n" for record in records(GRADES, "qid docno label")),
}


@pytest.mark.parametrize("form", RUNS)
@pytest.mark.parametrize("packed", [False, True])
def test_run_of_any_format_has_the_same_scores(form: str, packed: bool, tmp_path: Path) -> None:
    data = b"\xef\xbb\xbf" * packed + RUNS[form].encode()
    (tmp_path / "run").write_bytes(gzip.compress(data, mtime=0) if packed else data)
    scores = cupel.evaluate(QRELS, tmp_path / "run", "AP")
    assert scores["run"]["AP"] == AP
    codes = ["run-three-columns"] if form == "MS MARCO" else []
    assert [*scores.runs["run"].findings.totals] == codes
    assert cupel.runs(tmp_path / "run")["run"].read().ranking.topics == ("1", "2")


@pytest.mark.parametrize("form", JUDGMENTS)
@pytest.mark.parametrize("name", ["qrels", "qrels.json"])
def test_judgments_of_any_format_are_equal(form: str, name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(JUDGMENTS[form])
    collection = cupel.qrels(tmp_path / name)
    assert cupel.evaluate(collection, RUN, "AP")["run"]["AP"] == AP
    (aspect,) = collection.aspects
    assert list(aspect.labels) == [0, 1, 2]


def test_judgments_of_several_aspects_in_several_formats(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text(JUDGMENTS["CSV"])
    (tmp_path / "q.txt").write_text(JUDGMENTS["TREC"])
    collection = cupel.qrels({"relevance": tmp_path / "r.csv", "quality": tmp_path / "q.txt", "other": QRELS})
    assert [aspect.name for aspect in collection.aspects] == ["relevance", "quality", "other"]
    (tmp_path / "r.csv").write_text("query_id,doc_id,relevance\n1,a,x\n")
    (tmp_path / "q.txt").write_text("query_id,doc_id,relevance\n1,a\n")
    with pytest.raises(cupel.Refused) as refused:
        cupel.qrels({"relevance": tmp_path / "r.csv", "quality": tmp_path / "q.txt"})
    assert {(finding.code, finding.file) for finding in refused.value.findings} == {
        ("qrels-grade-not-integer", "r.csv"),
        ("table-fields", "q.txt"),
    }


def test_findings_about_lines_of_files_keep_their_numbers(tmp_path: Path) -> None:
    (tmp_path / "q.txt").write_text("1 0 a 1\n1 0 b x\n")
    with pytest.raises(cupel.Refused, match=r"q.txt:2:7: error qrels-grade-not-integer"):
        cupel.qrels(tmp_path / "q.txt")
    (tmp_path / "r.csv").write_text("# note\nquery_id,doc_id,score\n1,a,1\n1,b\n\n1,c,2,3\n")
    with pytest.raises(cupel.Refused, match=r"r.csv:4: error table-fields.*r.csv:6: error table-fields"):
        cupel.evaluate(QRELS, tmp_path / "r.csv", "AP")
    (tmp_path / "r.jsonl").write_text('{"qid": "1", "docno": "a", "score": 1}\n\n{"qid": "1",\n')
    with pytest.raises(cupel.Refused, match=r"r.jsonl:3: error json-syntax"):
        cupel.evaluate(QRELS, tmp_path / "r.jsonl", "AP")


class TestStandardInput:
    def test_run_and_judgments(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("TREC", "JSON"):
            monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(RUNS[name].encode())))
            assert cupel.evaluate(QRELS, "-", "AP")["stdin"]["AP"] == AP
            monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(JUDGMENTS[name].encode())))
            assert cupel.evaluate("-", RUN, "AP")["run"]["AP"] == AP

    def test_command(self, tmp_path: Path) -> None:
        (tmp_path / "qrels.json").write_text(JUDGMENTS["JSON"])
        (tmp_path / "run.tsv").write_text(RUNS["BEIR"])
        for text, arguments in (
            (RUNS["JSON Lines"], [str(tmp_path / "qrels.json"), "-", str(tmp_path / "run.tsv")]),
            (JUDGMENTS["BEIR"], ["-", str(tmp_path / "run.tsv")]),
        ):
            result = CliRunner().invoke(
                cli, ["evaluate", *arguments, "-m", "AP", "--format", "jsonl"], input=text
            )
            assert result.exit_code == 0
            rows = [json.loads(line) for line in result.stdout.splitlines()]
            assert [row["value"] for row in rows] == [AP] * (len(arguments) - 1)
            assert {row["run"] for row in rows} <= {"stdin", "run.tsv"}


class TestFolders:
    def folder(self, path: Path) -> Path:
        for name in ("red/one.gz", "red/two.txt", "blue/one.gz", ".hidden/x", "blue/.hidden"):
            (path / "runs" / name).parent.mkdir(parents=True, exist_ok=True)
            (path / "runs" / name).write_text(RUNS["TREC"])
        return path / "runs"

    def test_names_begin_with_the_first_folder(self, tmp_path: Path) -> None:
        folder = self.folder(tmp_path)
        assert [*cupel.runs(folder)] == ["blue/one", "red/one", "red/two.txt"]
        (tmp_path / "other.txt").write_text(RUNS["TREC"])
        assert [*cupel.runs([folder, tmp_path / "other.txt"])][-1] == "other.txt"
        scores = cupel.evaluate(QRELS, folder, "AP")
        assert [scores[name]["AP"] for name in scores] == [AP] * 3

    def test_empty_folder_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(cupel.Refused, match="file-unreadable"):
            cupel.evaluate(QRELS, tmp_path, "AP")

    def test_command_takes_teams_from_folders(self, tmp_path: Path) -> None:
        (tmp_path / "qrels.txt").write_text(JUDGMENTS["TREC"])
        arguments = [str(tmp_path / "qrels.txt"), str(self.folder(tmp_path)), "-m", "AP"]
        result = CliRunner().invoke(cli, ["evaluate", *arguments, "--format", "csv"], catch_exceptions=False)
        assert [line.split(",")[0] for line in result.stdout.splitlines()[1:]] == [
            "blue/one",
            "red/one",
            "red/two.txt",
        ]
        audit = CliRunner().invoke(
            cli, ["audit", "leave_one_team_out", *arguments, "--format", "json"], catch_exceptions=False
        )
        assert audit.exit_code == 0, audit.stderr
        assert {"blue", "red"} <= set(re.findall(r"\w+", audit.stdout))


class TestParquet:
    def test_missing_package_is_named(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(parquet_tables, "READERS", (("no_such_package", "read_table"),))
        (tmp_path / "run.parquet").write_bytes(b"PAR1...PAR1")
        with pytest.raises(cupel.Refused, match="package-missing: reading Parquet needs the package pyarrow"):
            cupel.evaluate(QRELS, tmp_path / "run.parquet", "AP")

    def test_stand_in_for_pyarrow(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "stand_in_arrow.py").write_text(
            "class Column:\n"
            "    def __init__(self, values): self.values = values\n"
            "    def to_pylist(self): return self.values\n"
            "class Table:\n"
            "    column_names = ['query_id', 'doc_id', 'score']\n"
            "    columns = 'not names'\n"
            "    def __getitem__(self, name):\n"
            f"        return Column([row[self.column_names.index(name)] for row in {ROWS!r}])\n"
            "def read_table(source):\n"
            "    if source.read() != b'PAR1...PAR1': raise ValueError('damaged')\n"
            "    return Table()\n"
        )
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.setattr(parquet_tables, "READERS", (("stand_in_arrow", "read_table"),))
        (tmp_path / "run.parquet").write_bytes(b"PAR1...PAR1")
        assert cupel.evaluate(QRELS, tmp_path / "run.parquet", "AP")["run.parquet"]["AP"] == AP
        (tmp_path / "run.parquet").write_bytes(b"PAR1cut")
        with pytest.raises(cupel.Refused, match="parquet-damaged: cannot be read as Parquet: damaged"):
            cupel.evaluate(QRELS, tmp_path / "run.parquet", "AP")


class TestDataSets:
    PACKAGE = """
from collections import namedtuple
Qrel = namedtuple("Qrel", "query_id doc_id relevance iteration")
class Dataset:
    def __init__(self, id_): self.id_ = id_
    def has_qrels(self): return self.id_ != "texts/only"
    def qrels_iter(self):
        return iter([Qrel("1", "a", 2, "0"), Qrel("1", "b", 0, "0"), Qrel("2", "c", 1, "0")])
    def documentation(self): return {"official_measures": ["AP", "nDCG@10", "Unheard@7"]}
def load(id_):
    if id_ == "no/such": raise KeyError(id_)
    return Dataset(id_)
"""

    @pytest.fixture(autouse=True)
    def package(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "site").mkdir()
        (tmp_path / "site" / "ir_datasets.py").write_text(self.PACKAGE)
        monkeypatch.syspath_prepend(tmp_path / "site")
        monkeypatch.delitem(sys.modules, "ir_datasets", raising=False)

    def test_official_measures_are_the_default(self) -> None:
        scores = cupel.evaluate("irds:some/set", RUN)
        assert [*scores["run"]] == ["AP", "nDCG@10"]
        assert scores["run"]["AP"] == AP
        assert scores.collection.findings.totals == {"irds-measure": 1}

    def test_command(self, tmp_path: Path) -> None:
        (tmp_path / "run").write_text(RUNS["TREC"])
        result = CliRunner().invoke(
            cli,
            ["evaluate", "irds:some/set", str(tmp_path / "run"), "--format", "jsonl"],
            catch_exceptions=False,
        )
        assert [json.loads(line)["measure"] for line in result.stdout.splitlines()] == ["AP", "nDCG@10"]
        assert "irds-measure" in result.stderr

    def test_unknown_data_sets_are_refused(self) -> None:
        for id_ in ("no/such", "texts/only"):
            with pytest.raises(cupel.Refused, match=f"irds-unknown.*{id_}"):
                cupel.qrels(f"irds:{id_}")


def test_data_sets_need_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ir_datasets", None)
    with pytest.raises(cupel.Refused, match=r"package-missing: .* need the package ir_datasets"):
        cupel.qrels("irds:some/set")
