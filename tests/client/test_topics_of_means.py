"""`cupel evaluate`, `compare`, `validate`: the topics of a mean, and the output for other topics."""

import csv
import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cupel_client.main import cli

COLLECTION = """
aspects: {relevance: {labels: [0, 1, 2], unjudged: [-1]}}
qrels: [{file: qrels.txt}]
topics: topics.txt
"""
QRELS = "1 0 a 2\n1 0 b 0\n3 0 a 1\n4 0 a -1\n5 0 a 0\n"
RUN = "1 Q0 a 1 9 t\n2 Q0 a 1 9 t\n4 Q0 a 1 9 t\n5 Q0 a 1 9 t\n"
OTHER = "1 Q0 b 1 9 o\n3 Q0 a 1 9 o\n"
WARNING = "warning qrels-topic-without-judgments: 2 topics without judgments, so not in any mean: 2, 4"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder: topics 1 to 5 are listed, and 2 and 4 have no judgment."""
    files = {"c.yaml": COLLECTION, "qrels.txt": QRELS, "topics.txt": "1\n2\n3\n4\n5\n"}
    for name, text in (files | {"run.txt": RUN, "other.txt": OTHER}).items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def cupel(*arguments: str) -> Result:
    result = CliRunner().invoke(cli, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


def evaluate(form: str, *options: str) -> Result:
    return cupel("evaluate", "c.yaml", "run.txt", "-m", "P@1 NumQ", "--format", form, *options)


class TestTopicsOfTheRun:
    """With --average-over run, means also omit topic 3, because the run has no documents for it."""

    def test_aggregates_are_over_topics_of_the_run(self) -> None:
        data = json.loads(evaluate("json", "--per-topic", "--average-over", "run").stdout)
        (run,) = data["runs"]
        assert data["average_over"] == "run"
        assert run["scores"] == {"P@1": 0.5, "NumQ": 2.0}
        assert run["exact"]["P@1"] == "1/2"
        assert run["topics"] == {"scored": 2, "missing": 1}
        assert run["topic_scores"]["P@1"] == {"1": 1.0, "2": None, "3": None, "4": None, "5": 0.0}

    def test_every_format_leaves_missing_topics_out(self) -> None:
        options = ("--per-topic", "--average-over", "run")
        topics = [line.split("\t")[1] for line in evaluate("trec_eval", *options).stdout.splitlines()]
        assert topics == ["1", "5", "all", "all"]
        lines = evaluate("jsonl", *options).stdout.splitlines()
        assert [json.loads(line)["value"] for line in lines[:6]] == [1.0, None, None, None, 0.0, 0.5]
        result = evaluate("table", *options)
        assert ["3", "-", "-"] in [line.split() for line in result.stdout.splitlines()]
        assert "these topics are left out of the means" in result.stderr

    def test_runs_are_ranked_by_means_over_their_topics(self) -> None:
        Path("few.txt").write_text("3 Q0 x 1 9 f\n3 Q0 a 2 8 f\n")  # nDCG is 0.63 on one topic of three
        options = ("-m", "nDCG", "--format", "table")
        orders = [
            [word for word in result.stdout.split() if word.endswith(".txt")]
            for result in (
                cupel("evaluate", "c.yaml", "run.txt", "few.txt", *options),
                cupel("evaluate", "c.yaml", "run.txt", "few.txt", *options, "--average-over", "run"),
            )
        ]
        assert orders == [["run.txt", "few.txt"], ["few.txt", "run.txt"]]

    def test_explanations_are_refused(self) -> None:
        options = ["--explain", "ties", "--format", "json", "--average-over", "run"]
        result = CliRunner().invoke(cli, ["evaluate", "c.yaml", "run.txt", *options])
        assert result.exit_code == 2
        assert "omit --average-over run" in result.stderr


class TestUnjudgedTopics:
    """Topics 2 and 4 are shown without a value; means are over topics 1, 3 and 5."""

    def test_every_format_warns_and_averages_over_judged_topics(self) -> None:
        for form in ("table", "json", "jsonl", "csv", "trec_eval"):
            result = evaluate(form)
            assert WARNING in result.stderr, form
            assert "0.3333" in result.stdout, form

    def test_json_names_unjudged_topics_without_values(self) -> None:
        data = json.loads(evaluate("json", "--per-topic").stdout)
        assert (data["qrels"]["topics"], data["qrels"]["unjudged_topics"]) == (3, ["2", "4"])
        (run,) = data["runs"]
        assert run["scores"] == {"P@1": pytest.approx(1 / 3), "NumQ": 3.0}
        assert run["topics"] == {"scored": 2, "missing": 1}
        assert run["topic_scores"]["P@1"] == {"1": 1.0, "2": None, "3": 0.0, "4": None, "5": 0.0}

    def test_csv_rows_of_unjudged_topics_have_an_empty_value(self) -> None:
        rows = list(csv.DictReader(io.StringIO(evaluate("csv", "--per-topic").stdout)))
        values = {row["topic"]: row["value"] for row in rows if row["measure"] == "P@1"}
        assert values == {"1": "1.0", "2": "", "3": "0.0", "4": "", "5": "0.0", "all": "0.3333333333333333"}
        lines = evaluate("jsonl", "--per-topic").stdout.splitlines()
        assert [json.loads(line)["value"] for line in lines[:6]] == [1.0, None, 0.0, None, 0.0, 1 / 3]

    @pytest.mark.parametrize("runs", [("run.txt",), ("run.txt", "other.txt")])
    def test_tables_have_a_dash_for_unjudged_topics(self, runs: tuple[str, ...]) -> None:
        result = cupel("evaluate", "c.yaml", *runs, "-m", "P@1", "--format", "table", "--per-topic")
        rows = [line.split() for line in result.stdout.splitlines()]
        assert ["2", *["-"] * len(runs)] in rows
        assert ["4", *["-"] * len(runs)] in rows
        assert "3 topics" in result.stdout

    def test_trec_eval_format_omits_unjudged_topics(self) -> None:
        topics = [line.split("\t")[1] for line in evaluate("trec_eval", "--per-topic").stdout.splitlines()]
        assert topics == ["1", "3", "5", "all", "all"]

    def test_compare_uses_judged_topics(self) -> None:
        result = cupel("compare", "c.yaml", "run.txt", "other.txt", "-m", "P@1", "--format", "json")
        data = json.loads(result.stdout)
        assert data["qrels"]["topics"] == 3
        assert WARNING in result.stderr

    def test_validate_names_unjudged_topics(self) -> None:
        text = cupel("validate", "-v", "c.yaml", "run.txt").stdout
        assert "3 judged topics of 5 listed, 4 documents" in text
        assert "without judgments: 2, 4" in text
        assert WARNING in text
        assert "run-topics-extra" not in text
        (collection, _) = json.loads(cupel("validate", "c.yaml", "run.txt", "--format", "json").stdout)
        assert collection["unjudged_topics"] == ["2", "4"]

    def test_audits_use_judged_topics(self) -> None:
        result = cupel(
            "audit", "correlation", "c.yaml", "run.txt", "other.txt", "-m", "P@1 AP", "--format", "json"
        )
        assert json.loads(result.stdout)["about"]["topics"] == ["1", "3", "5"]
        assert WARNING in result.stderr
