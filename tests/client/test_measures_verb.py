"""`cupel measures` and the command as a whole."""

import csv
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cupel_client.cli import VERBS, cli
from cupel_measures.registry import DECLARATIONS, NAMES


def cupel(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments, catch_exceptions=False)


def test_every_declared_measure_is_listed() -> None:
    listed = cupel("measures").stdout
    data = json.loads(cupel("measures", "--format", "json").stdout)
    assert {one["name"] for one in data} == set(DECLARATIONS)
    lines = [line.split()[0] for line in listed.splitlines() if line.strip()]
    first_words = {re.split(r"[\[@(]", word)[0] for word in lines}
    assert set(DECLARATIONS) <= first_words


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_name_has_a_page_with_its_parameters(name: str) -> None:
    page = cupel("measures", name)
    declaration = NAMES[name][0]
    assert page.exit_code == 0
    assert declaration.documentation in page.stdout
    assert declaration.source in page.stdout
    for parameter in declaration.parameters.values():
        assert f"  {parameter.name} " in page.stdout
        assert parameter.kind.expects in page.stdout


def test_without_an_aspect_there_is_no_threshold_of_one() -> None:
    assert "default: the aspect's threshold" in cupel("measures", "AP").stdout
    assert "default: the aspect's threshold" not in cupel("measures", "alpha_nDCG").stdout


def test_a_whole_text_is_explained_with_its_canonical_form() -> None:
    lines = [line.split() for line in cupel("measures", "ndcg_cut_10").stdout.splitlines()]
    assert ["canonical", "text", "nDCG@10"] in lines
    assert "canonical text" not in cupel("measures", "nDCG").stdout


def test_formats_for_programs_agree() -> None:
    data = json.loads(cupel("measures", "--format", "json").stdout)
    lines = [json.loads(line) for line in cupel("measures", "--format", "jsonl").stdout.splitlines()]
    rows = list(csv.DictReader(io.StringIO(cupel("measures", "--format", "csv").stdout)))
    assert lines == data
    assert [row["name"] for row in rows] == [one["name"] for one in data]
    one = json.loads(cupel("measures", "AP", "--format", "json").stdout)
    assert one["documentation"] == DECLARATIONS["AP"].documentation
    assert one["bounds"] == [0.0, 1.0]
    (rel,) = [parameter for parameter in one["parameters"] if parameter["name"] == "rel"]
    assert (rel["needed"], rel["default"]) == (False, None)
    assert "relevance level" in rel["expects"]


def test_a_mistyped_name_is_wrong_usage_with_a_hint() -> None:
    result = cupel("measures", "nDGC")
    assert result.exit_code == 2
    assert "did you mean nDCG?" in result.stderr


def test_help_lists_every_verb_and_each_has_an_example() -> None:
    overview = cupel("--help").stdout
    for verb, (_, short) in VERBS.items():
        assert verb in overview
        assert short in overview
        page = cupel(verb, "--help")
        assert page.exit_code == 0
        assert "Example" in page.stdout, verb


def test_a_mistyped_verb_is_wrong_usage_with_a_hint() -> None:
    result = cupel("evalute")
    assert result.exit_code == 2
    assert "Did you mean evaluate?" in result.stderr


def test_the_version_is_told() -> None:
    assert cupel("--version").stdout.startswith("cupel, version ")


def test_help_imports_neither_numpy_nor_rich_nor_a_web_client(root: Path) -> None:
    script = """
import sys
from cupel_client.cli import cli
cli.main(["--help"], standalone_mode=False)
print(sorted({"numpy", "rich", "httpx", "yaml", "cupel_measures"} & set(sys.modules)), file=sys.stderr)
"""
    folders = [str(root / name) for name in ("libs/client", "libs/measures")]
    script = f"import sys; sys.path[:0] = {folders}" + script
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"
