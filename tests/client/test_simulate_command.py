"""`cupel simulate`: the library's simulation in every format."""

import csv
import io
import json

import pytest
from click.testing import CliRunner, Result

from cupel_client.main import cli
from cupel_measures.simulation import NAMES, SimulationSettings, simulate


def cupel(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["simulate", *arguments], catch_exceptions=False)


SMALL = ("--runs", "20", "--topicality", "0.3", "--mu", "40", "--mu", "30", "--seed", "7")


def test_formats_for_programs_agree_with_the_library() -> None:
    expected = simulate(SimulationSettings(topicality=(0.3,), mu=(40.0, 30.0), runs=20), 7)
    data = json.loads(cupel(*SMALL, "--format", "json").stdout)
    lines = [json.loads(line) for line in cupel(*SMALL, "--format", "jsonl").stdout.splitlines()]
    rows = list(csv.DictReader(io.StringIO(cupel(*SMALL, "--format", "csv").stdout)))
    assert [(one["mu"], one["measure"], one["mean"]) for one in data["cells"]] == [
        (one.mu, one.measure, one.mean) for one in expected
    ]
    assert (data["settings"]["seed"], data["settings"]["runs"]) == (7, 20)
    assert lines == data["cells"]
    assert [float(row["deviation"]) for row in rows] == [one.deviation for one in expected]
    assert [row["expected"] for row in rows if row["measure"] == "H"] == ["", ""]


def test_the_table_has_a_line_for_each_measure_of_each_kind() -> None:
    result = cupel(*SMALL)
    assert result.exit_code == 0
    lines = [line.split() for line in result.stdout.splitlines() if line.strip()]
    assert [line[2] for line in lines[2:]] == [*NAMES, *NAMES]


def test_the_same_seed_prints_the_same() -> None:
    assert cupel(*SMALL).stdout == cupel(*SMALL).stdout
    assert cupel(*SMALL).stdout != cupel(*SMALL[:-1], "8").stdout


def test_without_options_it_is_the_papers_table() -> None:
    data = json.loads(cupel("--format", "json").stdout)
    assert len(data["cells"]) == 60
    assert data["settings"]["sigma"] == 40


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--topicality", "2"), "topicality: expected probabilities from 0 to 1"),
        (("--rho", "1"), "rho: expected a number between 0 and 1"),
        (("--threshold", "nan"), "threshold: expected a label from 0 to 100"),
        (("--seed", "-1"), "--seed"),
        (("--forcing", "fold"), "clip"),
    ],
)
def test_what_can_not_be_simulated_is_wrong_usage(arguments: tuple[str, ...], said: str) -> None:
    result = cupel(*arguments)
    assert result.exit_code == 2
    assert said in result.stderr
