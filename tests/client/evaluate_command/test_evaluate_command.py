"""Tests of `cupel evaluate`."""

import csv
import gzip
import io
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from cupel_client.main import cli
from cupel_measures.catalogue.parser import parse
from cupel_measures.findings import KINDS
from cupel_measures.reading.qrels_files import qrels_digest, read_qrels
from cupel_measures.reading.run_files import digest, join_run, read_run
from cupel_measures.scoring.evaluator import evaluate
from support.evaluated_files import BAD, GOOD, POOR, cupel, values


@pytest.mark.usefixtures("folder")
def test_table_lists_runs_by_decreasing_score() -> None:
    result = cupel("qrels.txt", "poor.txt", "good.txt", "-m", "nDCG@10 P@5")
    lines = [line.split() for line in result.stdout.splitlines() if line.strip()]
    assert result.exit_code == 0
    assert lines[0] == ["run", "nDCG@10", "P@5"]
    assert lines[2] == ["1", "good.txt", "0.6667", "0.2000"]
    assert lines[3][:2] == ["2", "poor.txt"]
    assert "3 topics, profile cupel, scale of relevance inferred" in result.stdout


@pytest.mark.usefixtures("folder")
def test_blank_measures_option_means_the_default() -> None:
    assert cupel("qrels.txt", "good.txt", "-m", " ").stdout == cupel("qrels.txt", "good.txt").stdout


@pytest.mark.usefixtures("folder")
def test_equal_scores_share_a_rank(folder: Path) -> None:
    (folder / "twin.txt").write_text(GOOD)
    result = cupel("qrels.txt", "poor.txt", "good.txt", "twin.txt", "-m", "AP")
    ranks = [line.split()[0] for line in result.stdout.splitlines() if ".txt" in line]
    assert ranks == ["1", "1", "3"]


def test_runs_are_ranked_by_exact_values(folder: Path) -> None:
    (folder / "two.txt").write_text("1 0 a 1\n1 0 b 1\n1 0 c 1\n2 0 a 1\n2 0 b 1\n")

    def run(name: str, *rankings: tuple[str, Sequence[str]]) -> None:
        lines = [f"{t} Q0 {d} 0 {-place} x" for t, docs in rankings for place, d in enumerate(docs)]
        (folder / name).write_text("\n".join(lines))

    run("split.txt", ("1", "a"), ("2", "ab"))  # (0.1 + 0.2) / 2 is above 0.15 in floats
    run("one.txt", ("1", "abc"))
    run("far.txt", ("1", ["a", *(f"u{number}" for number in range(80)), "b"]))
    run("near.txt", ("1", ["a", *(f"u{number}" for number in range(70)), "b"]))

    def ranks(measures: str) -> list[list[str]]:
        runs = ("far.txt", "near.txt", "one.txt", "split.txt")
        stdout = cupel("two.txt", *runs, "-m", measures, "--jobs", "2").stdout
        return [line.split()[:2] for line in stdout.splitlines() if ".txt" in line]

    assert ranks("P@10") == [["1", "one.txt"], ["1", "split.txt"], ["3", "far.txt"], ["3", "near.txt"]]
    assert [name for _, name in ranks("RBTO@100")][2:] == ["near.txt", "far.txt"]
    assert [rank for rank, _ in ranks("RBTO@100")] == ["1", "2", "3", "4"]
    run("deep.txt", ("1", ["a", *(f"u{number}" for number in range(3000))]))
    stderr = cupel("two.txt", "far.txt", "deep.txt", "-m", "RBP(p=0.123)", "--format", "table").stderr
    assert "exact values would be too long, so runs are compared by floating-point values." in stderr
    stdout = cupel("two.txt", "far.txt", "-m", "RBTO@100 AP", "--explain", "ties").stdout
    assert stdout.count("computed in floating point (about 15 digits)") == 1
    report = json.loads(cupel("two.txt", "far.txt", "-m", "nDCG P@10 RBTO@100", "--format", "json").stdout)
    # The labels are binary digits: 2^99 for a and 2^(100 - 82) for b, averaged over two topics.
    assert report["runs"][0]["exact"] == {"P@10": "1/20", "RBTO@100": str((2**99 + 2**18) // 2)}


@pytest.mark.usefixtures("folder")
def test_huge_values_are_printed_with_float_precision() -> None:
    shown = cupel("qrels.txt", "good.txt", "-m", "RBTO@250", "--explain", "ties").stdout
    report = json.loads(cupel("qrels.txt", "good.txt", "-m", "RBTO@250", "--format", "json").stdout)
    (run,) = report["runs"]
    assert run["scores"]["RBTO@250"] > 1e50
    assert f"{run['scores']['RBTO@250']:.14e}" in shown
    assert max(len(word) for word in shown.split() if word[0].isdigit()) < 25


@pytest.mark.usefixtures("folder")
def test_jsonl_has_full_precision_and_the_aggregate() -> None:
    results = values(cupel("qrels.txt", "poor.txt", "-m", "nDCG", "--per-topic", "--format", "jsonl"))
    qrels = read_qrels(Path("qrels.txt"))
    measure = parse("nDCG")
    expected = evaluate(qrels, join_run(Path("poor.txt"), qrels), [measure])
    assert [results["poor.txt", "nDCG", topic] for topic in qrels.topics] == expected.values[measure].tolist()
    assert results["poor.txt", "nDCG", "all"] == expected.aggregates()[measure]
    assert len(results) == 4


@pytest.mark.usefixtures("folder")
def test_csv_equals_jsonl() -> None:
    arguments = ("qrels.txt", "good.txt", "poor.txt", "-m", "AP RR", "--per-topic", "--format")
    rows = list(csv.DictReader(io.StringIO(cupel(*arguments, "csv").stdout)))
    results = {(row["run"], row["measure"], row["topic"]): float(row["value"]) for row in rows}
    assert results == values(cupel(*arguments, "jsonl"))


@pytest.mark.usefixtures("folder")
def test_json_has_provenance_scores_and_refused_runs() -> None:
    result = cupel("qrels.txt", "good.txt", "bad.txt", "-m", "AP NumRel", "--format", "json", "--per-topic")
    report = json.loads(result.stdout)
    qrels = read_qrels(Path("qrels.txt"))
    assert (report["profile"], report["depth"], report["scoring_version"]) == ("cupel", None, 1)
    assert report["cupel"]
    assert report["qrels"]["digest"] == qrels_digest(qrels)
    assert (report["qrels"]["topics"], report["qrels"]["documents"]) == (3, 6)
    (aspect,) = report["qrels"]["aspects"]
    assert (aspect["scale"], aspect["labels"], aspect["topics_without_relevant"]) == (
        "inferred",
        {"range": [0, 2]},
        1,
    )
    assert report["measures"][1] == {
        "measure": "NumRel",
        "aggregate": "sum",
        "scale": "count",
        "warnings": [],
    }
    assert "requires an interval scale" in report["measures"][0]["warnings"][0]
    (run,) = report["runs"]
    assert run["digest"] == digest(read_run(Path("good.txt")).ranking)
    assert (run["run"], run["tag"], run["topics"]) == ("good.txt", "good", {"scored": 2, "missing": 1})
    assert run["scores"] == {"AP": 2 / 3, "NumRel": 3.0}
    assert run["topic_scores"]["AP"] == {"1": 1.0, "2": 1.0, "3": 0.0}
    assert "run-topics-missing" in run["warnings"]
    assert run["unjudged_at_10"] == 0.0
    (bad,) = report["refused"]
    assert sorted(error["line"] for error in bad["errors"]) == [2, 3, 4]


@pytest.mark.usefixtures("folder")
def test_refused_run_is_reported_and_other_runs_are_scored() -> None:
    result = cupel("qrels.txt", "bad.txt", "good.txt", "-m", "AP", "--format", "jsonl")
    assert result.exit_code == 1
    assert list(values(result)) == [("good.txt", "AP", "all")]
    for place in ("bad.txt:2:8: error run-rank", "bad.txt:3:6: error run-dup", "bad.txt:4:9: error run-col"):
        assert place in result.stderr


@pytest.mark.usefixtures("folder")
def test_run_without_topics_of_the_qrels_is_refused_with_a_hint(folder: Path) -> None:
    (folder / "other.txt").write_text(GOOD.replace("1 Q0", "q1 Q0").replace("2 Q0", "q2 Q0"))
    for form in ("table", "json"):
        result = cupel("qrels.txt", "other.txt", "--format", form)
        assert result.exit_code == 1
        assert "run-topics-none" in result.stderr
        assert "prefix: only ids of the run have 'q'" in result.stderr


@pytest.mark.usefixtures("folder")
def test_trec_eval_format_has_the_names_and_widths_of_trec_eval() -> None:
    result = cupel("qrels.txt", "good.txt", "-m", "num_ret map P_5 TOMA(of=nDCG)", "--format", "trec_eval")
    assert (
        result.stdout
        == (
            "num_ret               \tall\t3\n"
            "map                   \tall\t0.6667\n"
            "P_5                   \tall\t0.2000\n"
            "TOMA(of=nDCG,aspects=[relevance])\tall\t0.6667\n"
        )
        or "TOMA(of=nDCG)         \tall\t0.6667\n" in result.stdout
    )


@pytest.mark.usefixtures("folder")
def test_trec_eval_format_prints_runid_for_several_runs_or_official() -> None:
    several = cupel("qrels.txt", "good.txt", "poor.txt", "-m", "map", "--format", "trec_eval").stdout
    assert [line.split()[0] for line in several.splitlines()] == ["runid", "map", "runid", "map"]
    assert "runid                 \tall\tgood\n" in several
    assert cupel("qrels.txt", "good.txt", "-m", "official", "--format", "trec_eval").stdout.startswith(
        "runid"
    )


@pytest.mark.usefixtures("folder")
def test_per_topic_tables_have_a_row_per_topic() -> None:
    single = cupel("qrels.txt", "good.txt", "-m", "AP NumRet", "--per-topic").stdout
    rows = [line.split() for line in single.splitlines()]
    for row in (
        ["topic", "AP", "NumRet"],
        ["1", "1.0000", "2"],
        ["3", "0.0000", "0"],
        ["all", "0.6667", "3"],
    ):
        assert row in rows
    several = cupel("qrels.txt", "good.txt", "poor.txt", "-m", "AP", "--per-topic").stdout
    assert ["topic", "good.txt", "poor.txt"] in [line.split() for line in several.splitlines()]


@pytest.mark.usefixtures("folder")
def test_wide_tables_are_split_into_blocks() -> None:
    measures = " ".join(f"nDCG(gains={{1:{k}}})@{k}" for k in range(1, 30))
    stdout = cupel("qrels.txt", "good.txt", "-m", measures).stdout
    assert max(map(len, stdout.splitlines())) <= 160
    assert sum("good.txt" in line for line in stdout.splitlines()) > 1
    assert stdout.count("@29") == 1


@pytest.mark.usefixtures("folder")
def test_aspect_options_define_a_collection() -> None:
    aspects = ("--aspect", "relevance=qrels.txt", "--aspect", "quality=quality.txt")
    results = values(cupel(*aspects, "good.txt", "-m", "P@1 P(aspect=quality)@1", "--format", "jsonl"))
    assert results == {
        ("good.txt", "P@1", "all"): 2 / 3,
        ("good.txt", "P(aspect=quality)@1", "all"): 1 / 3,
    }


def test_collection_sets_the_default_measures_and_profile(folder: Path) -> None:
    (folder / "c.yaml").write_text(
        "aspects: {relevance: {labels: [0, 1, 2]}, quality: {labels: [0, 1, 2, 3]}}\n"
        "qrels: [{file: qrels.txt, aspect: relevance}, {file: quality.txt, aspect: quality}]\n"
        "profile: trec_eval-9\nmeasures: [CAM(of=nDCG@5), nDCG(aspect=quality)@5]\n"
    )
    planned = json.loads(cupel("c.yaml", "good.txt", "--format", "json").stdout)
    assert planned["profile"] == "trec_eval-9"
    assert list(planned["runs"][0]["scores"]) == ["CAM(of=nDCG@5)", "nDCG(aspect=quality)@5"]
    other = json.loads(
        cupel("c.yaml", "good.txt", "--format", "json", "-m", "AP", "--profile", "cupel").stdout
    )
    assert (other["profile"], list(other["runs"][0]["scores"])) == ("cupel", ["AP"])


@pytest.mark.usefixtures("folder")
def test_measures_that_depend_on_an_inferred_scale_are_noted() -> None:
    aspects = ("--aspect", "relevance=qrels.txt", "--aspect", "quality=quality.txt")
    result = cupel(*aspects, "good.txt", "-m", "TOMA(of=nDCG@10) AP")
    assert "TOMA(of=nDCG@10): values depend on the scale, which is inferred for" in result.stderr
    assert "inferred for" not in cupel(*aspects, "good.txt", "-m", "AP").stderr
    several = cupel(*aspects, "good.txt", "-m", "gP@5 P@5 RBTO@5 CAM(of=gRBP) CAM(of=P@5)")
    assert "gP@5, RBTO@5, CAM(of=gRBP): values depend on the scale" in several.stderr
    measures = "INST INST(max_rel=2) ERR(max_gain=scale) ERR CAM(of=SDCG@5) RBP_u RBP_u(graded=True)"
    assert (
        "INST, ERR(max_gain=scale), CAM(of=SDCG@5), RBP_u(graded=True): values depend on the scale"
        in cupel(*aspects, "good.txt", "-m", measures).stderr
    )


@pytest.mark.usefixtures("folder")
def test_json_has_the_scale_type_on_the_given_aspects() -> None:
    report = json.loads(cupel("qrels.txt", "good.txt", "-m", "gRBP gP@5 RBP P@5", "--format", "json").stdout)
    assert [measure["scale"] for measure in report["measures"]] == [
        "interval",
        "neither",
        "neither",
        "interval",
    ]


def test_values_above_the_greedy_ideal_are_noted(folder: Path) -> None:
    subtopics = {
        "b": "123",
        "c": "456",
        "z": "124",
    }  # the greedy ideal starts with z, which has the largest id
    rows = [f"1 {subtopic} {document} 1\n" for document, digits in subtopics.items() for subtopic in digits]
    (folder / "subtopics.txt").write_text("".join(rows))
    (folder / "better.txt").write_text("1 Q0 b 1 2 r\n1 Q0 c 2 1 r\n")
    (folder / "c.yaml").write_text(
        "aspects: {relevance: {labels: [0, 1, 2]}}\n"
        "qrels: [{file: qrels.txt, aspect: relevance}, {file: subtopics.txt, layout: subtopics}]\n"
    )
    above = cupel("c.yaml", "better.txt", "-m", "alpha_nDCG@2 AP").stderr
    assert "alpha_nDCG@2: 1 value above 1, because the greedy ideal is not always optimal; cap=True" in above
    assert "above 1" not in cupel("c.yaml", "better.txt", "-m", "alpha_nDCG(cap=True)@2 NRBP").stderr


@pytest.mark.usefixtures("folder")
def test_default_measures_are_computed() -> None:
    plain = values(cupel("qrels.txt", "good.txt", "--format", "jsonl"))
    assert {measure for _, measure, _ in plain} == {"nDCG@10", "AP", "P@10", "RR", "Judged@10"}
    aspects = ("--aspect", "relevance=qrels.txt", "--aspect", "quality=quality.txt")
    several = values(cupel(*aspects, "good.txt", "--format", "jsonl"))
    assert "nDCG(aspect=quality)@10" in {measure for _, measure, _ in several}


@pytest.mark.usefixtures("folder")
def test_depth_truncates_rankings_before_scoring() -> None:
    results = values(cupel("qrels.txt", "poor.txt", "-m", "NumRet RR", "--depth", "1", "--format", "jsonl"))
    assert results == {("poor.txt", "NumRet", "all"): 2.0, ("poor.txt", "RR", "all"): 0.0}


def test_profile_decides_whether_nearly_equal_scores_tie(folder: Path) -> None:
    (folder / "close.txt").write_text("1 Q0 a 1 0.100000001 t\n1 Q0 c 2 0.1 t\n")
    for profile, expected in (("cupel", 1.0), ("trec_eval-10", 1.0), ("trec_eval-9", 0.5)):
        arguments = ("-m", "RR", "--profile", profile, "--per-topic", "--format", "jsonl")
        assert values(cupel("qrels.txt", "close.txt", *arguments))["close.txt", "RR", "1"] == expected


@pytest.mark.usefixtures("folder")
def test_compressed_run_is_named_without_its_suffix(folder: Path) -> None:
    (folder / "good.run.gz").write_bytes(gzip.compress(GOOD.encode()))
    results = values(cupel("qrels.txt", "good.run.gz", "-m", "AP", "--format", "jsonl"))
    assert list(results) == [("good.run", "AP", "all")]


def test_runs_with_the_same_name_are_named_with_their_folders(folder: Path) -> None:
    for team in ("ants", "bees"):
        (folder / team).mkdir()
        (folder / team / "run1.txt").write_text(GOOD)
    arguments = ("qrels.txt", "ants/run1.txt", "bees/run1.txt", "good.txt", "-m", "AP", "--format", "jsonl")
    assert {run for run, _, _ in values(cupel(*arguments))} == {"ants/run1.txt", "bees/run1.txt", "good.txt"}


def test_output_does_not_depend_on_the_number_of_processes(folder: Path) -> None:
    names = [f"run{i}.txt" for i in range(7)]
    for i, name in enumerate(names):
        (folder / name).write_text(POOR if i % 2 else GOOD)
    (folder / "run3.txt").write_text(BAD)
    arguments = ("qrels.txt", *names, "-m", "nDCG AP", "--per-topic", "--format", "jsonl")
    serial, parallel = (cupel(*arguments, "--jobs", jobs) for jobs in ("1", "2"))
    assert serial.stdout == parallel.stdout == cupel(*arguments).stdout
    assert serial.exit_code == parallel.exit_code == 1
    assert list(dict.fromkeys(run for run, _, _ in values(parallel))) == [n for n in names if n != "run3.txt"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["qrels.txt"], "no run to score"),
        (["qrels.txt", "missing.txt"], "missing.txt"),
        (["missing.txt", "good.txt"], "missing.txt"),
        (["qrels.txt", "good.txt", "good.txt"], "given twice"),
        (["qrels.txt", "good.txt", "-m", "nDGC@10"], "did you mean nDCG?"),
        (["qrels.txt", "good.txt", "-m", "P"], "P@10"),
        (["qrels.txt", "good.txt", "-m", "nDCG(aspect=quality)@10"], "no aspect 'quality'"),
        (["qrels.txt", "good.txt", "-m", "TOMA(of=nDCG)@10"], "TOMA(of=nDCG@10)"),
        (["qrels.txt", "good.txt", "--profile", "trec_eval"], "trec_eval-9"),
        (["qrels.txt", "good.txt", "--format", "xml"], "jsonl"),
        (["qrels.txt", "good.txt", "--depth", "0"], "depth"),
        (["qrels.txt", "good.txt", "--depth", "99999999999999999999"], "depth"),
        (["--aspect", "quality", "good.txt"], "NAME=FILE"),
        (["--aspect", "quality=missing.txt", "good.txt"], "missing.txt"),
        (["--aspect", "a=qrels.txt", "--aspect", "a=quality.txt", "good.txt"], "two files for one aspect"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_usage_error_exits_with_2_and_a_remedy(arguments: list[str], message: str) -> None:
    result = cupel(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


def test_invalid_qrels_exit_with_1_and_all_errors(folder: Path) -> None:
    (folder / "wrong.txt").write_text("1 0 a x\n1 0 b\n")
    result = cupel("wrong.txt", "good.txt")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "wrong.txt:1:7: error qrels-grade-not-integer" in result.stderr
    assert "wrong.txt:2:6: error qrels-columns" in result.stderr


def test_invalid_collection_exits_with_1_and_all_errors(folder: Path) -> None:
    (folder / "c.yaml").write_text("aspects: {a: {labels: [0]}}\nqrels: [{fil: qrels.txt}]\n")
    result = cupel("c.yaml", "good.txt")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "c.yaml:1: error aspect-labels" in result.stderr
    assert "c.yaml:2: error document-unknown-key" in result.stderr


def test_compressed_run_keeps_its_suffix_if_names_clash(folder: Path) -> None:
    (folder / "good.txt.gz").write_bytes(gzip.compress(GOOD.encode(), mtime=0))
    results = values(cupel("qrels.txt", "good.txt", "good.txt.gz", "-m", "AP", "--format", "jsonl"))
    assert [run for run, _, _ in results] == ["good.txt", "good.txt.gz"]


def test_trec_eval_runid_is_the_first_word_of_the_tag(folder: Path) -> None:
    (folder / "good.txt").write_text(GOOD.replace("good", "good and more"))
    lines = cupel("qrels.txt", "good.txt", "-m", "official", "--format", "trec_eval").stdout.splitlines()
    assert lines[0] == "runid                 \tall\tgood"


def test_repeated_findings_are_shortened_and_have_a_remedy(folder: Path) -> None:
    (folder / "worse.txt").write_text("".join(f"1 Q0 d{i} {i} x worse\n" for i in range(250)))
    stderr = cupel("qrels.txt", "worse.txt").stderr
    assert stderr.count("error run-score: the") == 10
    assert "and 240 more" in stderr
    assert f"-> run-score: {KINDS['run-score'].remedy}" in stderr


@pytest.mark.usefixtures("folder")
def test_swapped_qrels_and_run_are_detected() -> None:
    assert "QRELS and RUN seem to be swapped" in cupel("good.txt", "qrels.txt").stderr
    assert "swapped" not in cupel("bad.txt", "good.txt").stderr


def test_topics_missing_from_the_qrels_are_ignored_with_a_warning(tmp_path: Path) -> None:
    (tmp_path / "qrels.txt").write_text("1 0 a 1\n")
    (tmp_path / "run.txt").write_text("1 Q0 a 1 2 run\n8 Q0 a 1 2 run\n9 Q0 a 1 2 run\n")
    files = [str(tmp_path / name) for name in ("qrels.txt", "run.txt")]
    done = CliRunner().invoke(cli, ["evaluate", *files, "-m", "AP"])
    assert done.exit_code == 0
    assert "1.0000" in done.stdout
    assert "run-topics-extra" in done.stderr
