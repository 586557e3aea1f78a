"""`cupel validate`: verdicts, findings and output formats."""

import contextlib
import csv
import gzip
import io
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from cupel_client.main import cli
from cupel_measures.findings import KINDS
from cupel_measures.reading.run_files import digest, read_run

QRELS = "1 0 a 2\n1 0 b 1\n2 0 a 1\n"
GOOD = "1 Q0 a 1 9 good\n1 Q0 b 2 8 good\n2 Q0 a 1 1 good\n"
ODD = "1 FIRST a 1 8 other\n1 FIRST b 2 9 other\n7 FIRST a 1 1 other\n"
BAD = "1 Q0 a 1 x bad\n1 Q0 b 2\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder with qrels, a collection and runs."""
    collection = "aspects: {relevance: {labels: [0, 1, 2]}}\nqrels: [{file: qrels.txt}]\n"
    texts = {"c.yaml": collection, "qrels.txt": QRELS, "good.txt": GOOD, "odd.txt": ODD, "bad.txt": BAD}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@contextlib.contextmanager
def pipe_with(text: str) -> Iterator[str]:
    """Yield the path of a pipe that holds `text`, like the shell's `<(cat file)`."""
    read_end, write_end = os.pipe()
    os.write(write_end, text.encode())
    os.close(write_end)
    yield f"/dev/fd/{read_end}"
    os.close(read_end)


def cupel(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["validate", *arguments], catch_exceptions=False)


def verdicts(*arguments: str) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = json.loads(cupel(*arguments, "--format", "json").stdout)
    return results


def test_valid_run_is_accepted_with_its_statistics() -> None:
    result = cupel("good.txt")
    assert result.exit_code == 0
    assert "good.txt: run, accepted" in result.stdout
    assert "2 topics, 3 documents, tag good" in result.stdout
    assert "1 file: 1 accepted" in result.stdout


def test_invalid_run_is_refused_with_all_errors_and_remedies() -> None:
    result = cupel("bad.txt")
    assert result.exit_code == 1
    assert "bad.txt:1:10: error run-score" in result.stdout
    assert "bad.txt:2:9: error run-columns" in result.stdout
    assert f"-> run-score: {KINDS['run-score'].remedy}" in result.stdout
    assert "1 file: 0 accepted, 1 refused" in result.stdout


def test_run_with_warnings_is_accepted() -> None:
    (verdict,) = verdicts("odd.txt")
    assert verdict["verdict"] == "accepted"
    codes = {finding["code"] for finding in verdict["findings"]}
    assert codes == {"run-second-column", "run-tag", "run-upside-down"}
    severities = {finding["code"]: finding["severity"] for finding in verdict["findings"]}
    assert severities == {"run-second-column": "warning", "run-tag": "note", "run-upside-down": "warning"}


def test_several_files_get_a_line_each_and_each_remedy_once(folder: Path) -> None:
    names = [f"copy{number}.txt" for number in range(30)]
    for name in names:
        (folder / name).write_text(GOOD)
    result = cupel(*names, "good.txt", "odd.txt", "bad.txt")
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        *(f"{name}: run, accepted" for name in names),
        "good.txt: run, accepted",
        "odd.txt: run, accepted: run-second-column, run-upside-down",
        "bad.txt: run, refused: run-columns (1), run-score (1); line 1: the score 'x' is not a number",
        f"-> error run-columns (1 file): {KINDS['run-columns'].remedy}",
        f"-> error run-score (1 file): {KINDS['run-score'].remedy}",
        f"-> warning run-second-column (1 file): {KINDS['run-second-column'].remedy}",
        f"-> warning run-upside-down (1 file): {KINDS['run-upside-down'].remedy}",
        f"-> note run-tag (31 files): {KINDS['run-tag'].remedy}",
        "33 files: 32 accepted (1 with warnings), 1 refused",
        "Add -v to list all findings.",
    ]


@pytest.mark.parametrize("option", ["-v", "--verbose", "--all"])
def test_verbose_lists_all_findings_of_several_files(option: str) -> None:
    stdout = cupel("odd.txt", "bad.txt", option).stdout
    assert "odd.txt:1: note run-tag: the tag is 'other', but the file is 'odd.txt'" in stdout
    assert "bad.txt:1:10: error run-score" in stdout
    assert "bad.txt:2:9: error run-columns" in stdout
    assert "Add -v" not in stdout


def test_valid_files_get_a_line_each_and_no_hint(folder: Path) -> None:
    assert cupel("good.txt", "qrels.txt").stdout.splitlines() == [
        "qrels.txt: qrels, accepted",
        "good.txt: run, accepted",
        "2 files: 2 accepted",
    ]


def test_topics_are_checked_against_qrels_or_a_collection() -> None:
    for arguments in (("qrels.txt", "odd.txt"), ("c.yaml", "odd.txt"), ("--qrels", "c.yaml", "odd.txt")):
        qrels, run = verdicts(*arguments)
        assert qrels["kind"] in ("qrels", "collection")
        assert {"run-topics-missing", "run-topics-extra"} <= run["totals"].keys()
    assert not {"run-topics-missing", "run-topics-extra"} & verdicts("odd.txt")[0]["totals"].keys()


def test_run_without_topics_of_the_qrels_is_refused(folder: Path) -> None:
    (folder / "other.txt").write_text(GOOD.replace("1 Q0", "01 Q0").replace("2 Q0", "02 Q0"))
    result = cupel("qrels.txt", "other.txt")
    assert result.exit_code == 1
    assert "run-topics-none" in result.stdout
    assert "leading zeros" in result.stdout


def test_json_has_digest_tag_and_profile_effects(folder: Path) -> None:
    (folder / "close.txt").write_text("1 Q0 a 1 0.1 close\n1 Q0 b 2 0.100000001 close\n")
    (verdict,) = verdicts("close.txt")
    assert (verdict["kind"], verdict["tag"], verdict["topics"], verdict["documents"]) == (
        "run",
        "close",
        1,
        2,
    )
    assert verdict["digest"] == digest(read_run(Path("close.txt")).ranking)
    assert verdict["profile_effects"]["rank_column"] == ["1"]
    (folder / "tied.txt").write_text("1 Q0 a 1 0.100000001 tied\n1 Q0 b 2 0.1 tied\n")
    assert verdicts("tied.txt")[0]["profile_effects"] == {"single_precision": ["1"], "rank_column": []}
    assert "differ in single precision (profile trec_eval-9): 1" in cupel("tied.txt").stdout


def test_qrels_and_collections_are_validated(folder: Path) -> None:
    (folder / "wrong.txt").write_text("1 0 a x\n")
    (folder / "wrong.yaml").write_text("aspects: {a: {labels: [0]}}\nqrels: []\n")
    result = cupel("qrels.txt", "c.yaml", "wrong.txt", "wrong.yaml", "--format", "jsonl")
    results = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(verdict["file"], verdict["kind"], verdict["verdict"]) for verdict in results] == [
        ("qrels.txt", "qrels", "accepted"),
        ("c.yaml", "collection", "accepted"),
        ("wrong.txt", "qrels", "refused"),
        ("wrong.yaml", "collection", "refused"),
    ]
    assert results[0]["aspects"] == {"relevance": "0, 1, 2 (inferred)"}
    assert results[1]["aspects"] == {"relevance": "0, 1, 2"}
    assert results[0]["digest"]
    assert result.exit_code == 1


def test_qrels_option_makes_every_argument_a_run() -> None:
    results = verdicts("--qrels", "qrels.txt", "qrels.txt")
    assert [(verdict["kind"], verdict["verdict"]) for verdict in results] == [
        ("qrels", "accepted"),
        ("run", "refused"),
    ]


def test_csv_has_a_row_per_finding_and_one_per_file_without_findings() -> None:
    rows = list(csv.DictReader(io.StringIO(cupel("good.txt", "bad.txt", "--format", "csv").stdout)))
    assert [(row["file"], row["verdict"], row["line"], row["column"], row["code"]) for row in rows] == [
        ("good.txt", "accepted", "", "", ""),
        ("bad.txt", "refused", "2", "9", "run-columns"),
        ("bad.txt", "refused", "1", "10", "run-score"),
    ]


def test_repeated_findings_are_shortened_unless_all_is_given(folder: Path) -> None:
    (folder / "worse.txt").write_text("".join(f"1 Q0 d{i} {i} x worse\n" for i in range(250)))
    short, full = cupel("worse.txt").stdout, cupel("worse.txt", "--all").stdout
    assert (short.count("error run-score: the"), full.count("error run-score: the")) == (10, 100)
    assert "and 240 more" in short
    assert "and 150 more" in full


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "run-empty"),
        (b"1 Q0 \xff 1 1 t\n", "run-not-text"),
        (gzip.compress(GOOD.encode(), mtime=0)[:30], "file-corrupt"),
        (b"1 Q0 a 1 nan t\n", "run-score"),
        (b"1 Q0 a 1 1 t\n1 Q0 a 2 0 t\n", "run-duplicate"),
    ],
)
def test_unreadable_content_gets_a_verdict(folder: Path, data: bytes, code: str) -> None:
    (folder / "run").write_bytes(data)
    result = cupel("run", "--format", "json")
    assert result.exit_code == 1
    assert code in json.loads(result.stdout)[0]["totals"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [([], "Missing argument"), (["no.txt"], "no.txt"), (["--qrels", "no.txt", "good.txt"], "no.txt")],
)
def test_usage_error_exits_with_2(arguments: list[str], message: str) -> None:
    result = cupel(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_verdicts_keep_the_order_of_the_arguments(folder: Path) -> None:
    names = [f"r{i}.txt" for i in range(8)]
    for i, name in enumerate(names):
        (folder / name).write_text(BAD if i % 3 else GOOD)
    assert [verdict["file"] for verdict in verdicts(*names)] == names


def test_clef_runs_are_accepted_with_their_known_warnings(shared: Path) -> None:
    folder = shared / "data/clef-ehealth-2015-task2"
    qrels = str(folder / "qrels/qrels.eng.clef2015.qtest.graded.txt.gz")
    expected = {
        "KUCS_EN_Run.3.dat.gz": "run-ranks-contradict",
        "KISTI_EN_RUN.2.dat.gz": "run-ranks-equal",
        "Miracl_EN_Run.1.dat.gz": "run-second-column",
        "baseline_run.2.dat.gz": "run-topics-extra",
    }
    _, *runs = verdicts("--qrels", qrels, *(str(folder / "runs" / name) for name in expected))
    for run, (name, code) in zip(runs, expected.items(), strict=True):
        assert (run["verdict"], Path(run["file"]).name) == ("accepted", name)
        assert code in run["totals"], name
    assert len(runs[0]["profile_effects"]["rank_column"]) == 66
    assert len(runs[1]["profile_effects"]["single_precision"]) > 0


def test_unreadable_file_is_refused_alone(folder: Path) -> None:
    (folder / "dir").mkdir()
    results = {verdict["file"]: verdict for verdict in verdicts("dir", "good.txt")}
    assert (results["dir"]["verdict"], results["dir"]["totals"]) == ("refused", {"file-unreadable": 1})
    assert results["good.txt"]["verdict"] == "accepted"


def test_unreadable_qrels_are_refused(folder: Path) -> None:
    (folder / "dir").mkdir()
    results = verdicts("--qrels", "dir", "good.txt")
    assert [(verdict["kind"], verdict["verdict"]) for verdict in results] == [
        ("qrels", "refused"),
        ("run", "accepted"),
    ]


def test_pipes_are_supported() -> None:
    with pipe_with(QRELS) as qrels, pipe_with(GOOD) as run:
        assert [verdict["kind"] for verdict in verdicts(qrels, run)] == ["qrels", "run"]


def test_findings_of_a_pipe_name_the_pipe(folder: Path) -> None:
    with pipe_with(BAD) as run:
        result = cupel(run)
    assert f"{run}: run, refused" in result.stdout
    assert f"{run}:1:10: error run-score" in result.stdout
    with pipe_with(GOOD) as run:
        assert "note run-tag" not in cupel(run).stdout
    assert "note run-tag" not in CliRunner().invoke(cli, ["validate", "-"], input=GOOD).stdout
    assert "stdin:1:10: error run-score" in CliRunner().invoke(cli, ["validate", "-"], input=BAD).stdout
    with pipe_with(BAD) as run, pipe_with(BAD) as qrels:
        for line in (
            *CliRunner().invoke(cli, ["evaluate", "qrels.txt", run]).stderr.splitlines()[:2],
            *CliRunner().invoke(cli, ["evaluate", qrels, "good.txt"]).stderr.splitlines()[:1],
        ):
            assert line.startswith((f"{run}:", f"{qrels}:"))
    with pipe_with(BAD) as run:
        (verdict,) = verdicts(run)
    assert verdict["file"] == run


def test_qrels_of_several_aspects_need_a_layout(folder: Path) -> None:
    (folder / "two.txt").write_text("1 0 a 2 1\n1 0 b 1 0\n")
    (folder / "untagged.txt").write_text("1 Q0 a 1 9\n")
    two, untagged = verdicts("two.txt", "untagged.txt")
    assert (two["kind"], two["verdict"], untagged["kind"]) == ("qrels", "refused", "run")
    assert "declare this in a collection file" in two["findings"][0]["message"]


def test_control_characters_of_files_are_shown_as_escapes(folder: Path) -> None:
    (folder / "a\x1bb.txt").write_text(GOOD.replace("good", "go\x1b[2Jod"))
    result = cupel("a\x1bb.txt")
    assert "\x1b" not in result.output
    assert r"tag go\x1b[2Jod" in result.stdout
