"""`cupel simulate`: the simulation of the library in every output format."""

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


def test_json_jsonl_and_csv_agree_with_the_library() -> None:
    expected = simulate(SimulationSettings(topicality=(0.3,), mu=(40.0, 30.0), runs=20), 7)
    data = json.loads(cupel(*SMALL, "--format", "json").stdout)
    lines = [json.loads(line) for line in cupel(*SMALL, "--format", "jsonl").stdout.splitlines()]
    rows = list(csv.DictReader(io.StringIO(cupel(*SMALL, "--format", "csv").stdout)))
    assert [(cell["mu"], cell["measure"], cell["mean"]) for cell in data["cells"]] == [
        (cell.mu, cell.measure, cell.mean) for cell in expected
    ]
    assert (data["settings"]["seed"], data["settings"]["runs"]) == (7, 20)
    assert lines == data["cells"]
    assert [float(row["deviation"]) for row in rows] == [cell.deviation for cell in expected]
    assert [row["expected"] for row in rows if row["measure"] == "H"] == ["", ""]


def test_table_has_a_line_for_each_setting_and_measure() -> None:
    result = cupel(*SMALL)
    assert result.exit_code == 0
    lines = [line.split() for line in result.stdout.splitlines() if line.strip()]
    assert [line[2] for line in lines[2:]] == [*NAMES, *NAMES]


def test_output_depends_only_on_the_seed() -> None:
    assert cupel(*SMALL).stdout == cupel(*SMALL).stdout
    assert cupel(*SMALL).stdout != cupel(*SMALL[:-1], "8").stdout


def test_default_options_simulate_the_table_of_the_paper() -> None:
    data = json.loads(cupel("--format", "json").stdout)
    assert len(data["cells"]) == 60
    assert data["settings"]["sigma"] == 40


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--topicality", "2"), "topicality: give one or more probabilities, each from 0 to 1"),
        (("--rho", "1"), "rho: expected a number between 0 and 1"),
        (("--threshold", "nan"), "threshold: expected a label from 0 to 100"),
        (("--seed", "-1"), "--seed"),
        (("--forcing", "fold"), "clip"),
    ],
)
def test_invalid_setting_is_a_usage_error(arguments: tuple[str, ...], message: str) -> None:
    result = cupel(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
