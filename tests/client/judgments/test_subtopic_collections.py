"""Collections judged by subtopic only, which declare no aspect: reading and every offline command."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cupel_client.main import cli
from cupel_measures.findings import Refused
from cupel_measures.reading.collection_files import is_collection, parse_collection
from cupel_measures.reading.qrels_files import qrels_digest

COLLECTION = "qrels:\n  - {file: d.txt, layout: subtopics}\n"
WITH_ASPECT = "aspects: {relevance: {labels: [0, 1]}}\n" + COLLECTION
JUDGED = "1 s1 a 1\n1 s2 b 1\n1 s1 c 0\n2 s1 a 1\n2 s2 d 1\n"
RUNS = {
    "x.run": "1 Q0 a 1 9 x\n1 Q0 b 2 8 x\n2 Q0 d 1 9 x\n",
    "y.run": "1 Q0 c 1 9 y\n2 Q0 a 1 9 y\n2 Q0 d 2 8 y\n",
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder, with a collection that declares no aspect."""
    for name, text in {"c.yaml": COLLECTION, "d.txt": JUDGED, **RUNS}.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def cupel(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(cli, list(arguments), catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result


def test_aspects_are_optional_without_warnings() -> None:
    files = {"d.txt": JUDGED.encode()}
    collection, declared = parse_collection(COLLECTION, files), parse_collection(WITH_ASPECT, files)
    assert collection.qrels.only_by_subtopic
    assert collection.findings.totals == declared.findings.totals == {}
    assert qrels_digest(collection.qrels) == qrels_digest(declared.qrels)


@pytest.mark.parametrize("other", ["{file: q.txt}", "{file: q.txt, aspect: relevance}", "q.txt"])
def test_other_judgments_need_aspects(other: str) -> None:
    with pytest.raises(Refused, match="aspects"):
        parse_collection(f"{COLLECTION}  - {other}\n", {"d.txt": JUDGED.encode(), "q.txt": b"1 0 a 1\n"})


def test_collection_without_suffix_is_recognised(folder: Path) -> None:
    (folder / "collection").write_text(COLLECTION)
    assert is_collection(folder / "collection")


def test_evaluate_has_default_measures() -> None:
    data = json.loads(cupel("evaluate", "c.yaml", "x.run", "--format", "json").stdout)
    (run,) = data["runs"]
    assert list(run["scores"]) == ["alpha_nDCG@20", "ERR_IA@20", "StRecall@20"]
    assert run["scores"]["StRecall@20"] == 0.75


def test_measures_of_labels_are_refused_with_a_sentence() -> None:
    result = cupel("evaluate", "c.yaml", "x.run", "-m", "nDCG@10", code=2)
    assert "nDCG@10: it needs judgments of an aspect, and this collection has only judgments by subtopic" in (
        result.stderr.replace("\n", " ")
    )


def test_validate_compare_and_audit_work() -> None:
    text = cupel("validate", "c.yaml", "x.run").stdout
    assert "2 files: 2 accepted" in text
    assert "relevance" not in text
    compared = json.loads(cupel("compare", "c.yaml", "x.run", "y.run", "--format", "json").stdout)
    assert compared["qrels"]["topics"] == 2
    audited = cupel(
        "audit", "incomplete", "c.yaml", "x.run", "y.run", "-m", "alpha_nDCG@2", "--format", "json"
    )
    assert json.loads(audited.stdout)["about"]["topics"] == ["1", "2"]


TEXTS = {
    "a": "apple fruit tree apple",
    "b": "apple pie fruit",
    "c": "rain weather",
    "d": "mac computer apple",
}


@pytest.fixture
def with_texts(folder: Path) -> Path:
    """Return the folder, whose collection has texts and still no aspect."""
    lines = [json.dumps({"id": document, "text": text}) for document, text in TEXTS.items()]
    (folder / "docs.jsonl").write_text("\n".join(lines))
    (folder / "c.yaml").write_text(COLLECTION + "texts: docs.jsonl\n")
    return folder


@pytest.mark.parametrize("aspect", [False, True])
@pytest.mark.parametrize("curve", ["incomplete", "downsampling", "pool_depth"])
def test_content_audit_needs_no_aspect(with_texts: Path, curve: str, aspect: bool) -> None:
    """With all judgments, the classic measure has tau 1 with itself."""
    if aspect:
        (with_texts / "c.yaml").write_text(WITH_ASPECT + "texts: docs.jsonl\n")
    done = cupel(
        "audit", "content", "c.yaml", "x.run", "y.run", "--curve", curve, "--repeats", "2",
        "--deepest", "2", "--format", "json",
    )  # fmt: skip
    report = json.loads(done.stdout)["report"]
    step = "2" if curve == "pool_depth" else "100"
    assert report["numbers"][f"tau(alpha_nDCG@20)@{step}"] == 1
    measures = {row[0] for row in report["tables"][0]["rows"]}
    assert measures == {"alpha_nDCG@20", "ERR_IA@20", "StRecall@20", "LMD"}


def test_label_selection_audit_needs_no_aspect(with_texts: Path) -> None:
    """Topic 1: pool a b c with subtopics s1 (a) and s2 (b). Topic 2: pool a d, both relevant."""
    done = cupel(
        "audit", "label_selection", "c.yaml", "x.run", "y.run", "--batch", "1", "--repeats", "1",
        "--format", "json",
    )  # fmt: skip
    numbers = json.loads(done.stdout)["report"]["numbers"]
    assert (numbers["subtopics"], numbers["missed"], numbers["labels"]) == (4, 0, 4)


def test_counts_of_topics_and_documents_need_no_aspect() -> None:
    done = cupel("evaluate", "c.yaml", "x.run", "-m", "NumQ NumRet", "--format", "json")
    (run,) = json.loads(done.stdout)["runs"]
    assert run["scores"] == {"NumQ": 2, "NumRet": 3}


@pytest.mark.parametrize("text", ["NumRet(rel=1)", "NumQ(aspect=relevance)", "NumRel", "NumRelRet"])
def test_counts_of_labels_are_refused(text: str) -> None:
    result = cupel("evaluate", "c.yaml", "x.run", "-m", text, code=2)
    assert "it needs judgments of an aspect" in result.stderr.replace("\n", " ")


def test_plan_of_a_collection_can_name_counts(folder: Path) -> None:
    (folder / "c.yaml").write_text(COLLECTION + "measures: [alpha_nDCG@20, NumQ]\n")
    data = json.loads(cupel("evaluate", "c.yaml", "x.run", "--format", "json").stdout)
    assert data["runs"][0]["scores"]["NumQ"] == 2
