"""`cupel measures`, and the help texts and imports of the `cupel` command."""

import csv
import io
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cupel_client.main import VERBS, cli
from cupel_measures.catalogue.parser import all_declarations
from cupel_measures.catalogue.reference import ReferencePage, families, family_of
from cupel_measures.grammar.registry import DECLARATIONS, NAMES, Declaration


def cupel(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments, catch_exceptions=False)


def test_every_declared_measure_is_listed() -> None:
    listed = cupel("measures").stdout
    data = json.loads(cupel("measures", "--format", "json").stdout)
    assert {entry["name"] for entry in data} == set(DECLARATIONS)
    lines = [line.split()[0] for line in listed.splitlines() if line.strip()]
    first_words = {re.split(r"[\[@(]", word)[0] for word in lines}
    assert set(DECLARATIONS) <= first_words


@pytest.mark.parametrize("name", sorted(NAMES))
def test_page_of_every_name_describes_its_parameters(name: str) -> None:
    done = cupel("measures", name)
    declaration, shown = NAMES[name][0], on_one_line(done.stdout)
    page = ReferencePage(declaration)
    assert done.exit_code == 0
    for sentence in (*page.paragraphs, *page.caveats, declaration.source, *declaration.exempt.values()):
        assert on_one_line(sentence) in shown
    for run in (run for example in page.examples for run in example.runs):
        assert all(
            f"{value.measure} {value.printed} = {value.derivation}" in shown
            for value in run.values
            if value.derivation
        )
    for parameter in declaration.parameters.values():
        assert f"  {parameter.name} " in done.stdout
        assert parameter.kind.expects in shown


def on_one_line(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("declaration", all_declarations(), ids=lambda declaration: declaration.name)
def test_documentation_mentions_every_parameter(declaration: Declaration) -> None:
    page, family = ReferencePage(declaration), family_of(declaration)
    assert page.formulas
    assert len(page.scale.split()) > 2
    documentation = " ".join([declaration.documentation, *family.introduction])
    for name in set(declaration.parameters) - COMMON_PARAMETERS:
        assert re.search(rf"(?<![A-Za-z_]){name}(?![A-Za-z_])", documentation), name


COMMON_PARAMETERS = {"cutoff", "rel", "aspect", "judged_only", "aspects", "weights"}
"""Parameters that the head of the reference page explains, because many measures have them."""


READINGS = [
    (1, "MM", "equation 6"),
    (2, "TOMA", "label_set"),
    (3, "TOMA", "positive"),
    (4, "TOMA", "computed exactly"),
    (8, "SBTO", "ascending"),
    (9, "gR", "normalised"),
    (10, "RBTO", "neither"),
    (13, "uRBP", "depth"),
    (13, "H", "rank 10"),
    (14, "uRBP", "strict"),
    (18, "NLRE", "swap"),
    (19, "NLRE", "with_positions"),
    (20, "NWCS", "0"),
    (21, "WHAM", "of_means"),
    (23, "ERR_IA", "R(r)"),
    (24, "NRBP", "literal"),
]
"""Reading in READINGS.md, measure, and words from the paragraph of its page that explains the reading."""


@pytest.mark.parametrize(("reading", "name", "words"), READINGS)
def test_reading_is_explained_on_the_page_of_its_measure(reading: int, name: str, words: str) -> None:
    [paragraph, *_] = [
        paragraph
        for paragraph in map(on_one_line, ReferencePage(DECLARATIONS[name]).paragraphs)
        if re.search(rf"\bREADINGS.md, reading {reading}\b", paragraph)
    ]
    assert words in paragraph


def test_list_is_grouped_by_family_and_can_be_filtered() -> None:
    listed = cupel("measures").stdout
    assert all(family.title in listed for family in families())
    filtered = cupel("measures", "--family", "diversity").stdout
    assert "StRecall[@k]" in filtered
    assert "nDCG[@k]" not in filtered.replace("alpha_nDCG[@k]", "")
    data = json.loads(cupel("measures", "--family", "ideal_rankings", "--format", "json").stdout)
    assert [entry["name"] for entry in data] == ["Compat", "Q"]
    assert cupel("measures", "nDCG", "--family", "ideal_rankings").exit_code == 2


@pytest.mark.parametrize("name", sorted(DECLARATIONS))
def test_page_fits_the_line_length(name: str) -> None:
    lines = cupel("measures", name).stdout.splitlines()
    assert max(map(len, lines)) <= 110
    assert max(len(line) for line in lines if not line.startswith(" " * 4)) <= 100


def test_page_explains_the_scale_type() -> None:
    page = on_one_line(cupel("measures", "RBP").stdout)
    assert "interval if p = 1/2, ordinal below 1/2, else neither" in page
    page = " ".join(cupel("measures", "AP").stdout.split())
    disputed = "Whether a mean needs an interval scale is disputed"
    assert f"neither: allows median, ranks, Kruskal-Wallis. {disputed}" in page
    assert disputed not in on_one_line(cupel("measures", "P").stdout)


def test_written_example_can_be_scored(tmp_path: Path) -> None:
    folder = tmp_path / "example"
    written = cupel("measures", "uRBP", "--example", str(folder))
    [line] = written.stdout.splitlines()
    verb, *arguments = shlex.split(line)
    assert verb == "cupel"
    assert "0.2000" in cupel(*arguments).stdout
    again = cupel("measures", "uRBP", "--example", str(folder))
    assert again.exit_code == 2
    assert "File exists" in again.stderr
    assert cupel("measures", "--example", str(folder)).exit_code == 2


def test_committed_reference_equals_the_generated_reference(root: Path) -> None:
    made = cupel("measures", "--format", "markdown").stdout
    committed = (root / "libs/measures/MEASURES.md").read_text()
    assert committed == made, "run: cupel measures --format markdown > libs/measures/MEASURES.md"


def test_links_of_the_reference_point_to_its_headings() -> None:
    made = cupel("measures", "--format", "markdown").stdout
    headings = {heading.lower() for heading in re.findall("^#+ (.*)$", made, re.M)}
    assert set(re.findall(r"\]\(#([^)]*)\)", made)) <= headings
    assert "### nDCG\n" in cupel("measures", "nDCG", "--format", "markdown").stdout


def test_measure_without_aspect_has_no_aspect_threshold() -> None:
    assert "default: the aspect's threshold" in cupel("measures", "AP").stdout
    assert "default: the aspect's threshold" not in cupel("measures", "alpha_nDCG").stdout


def test_page_of_a_measure_text_shows_its_canonical_form() -> None:
    lines = [line.split() for line in cupel("measures", "ndcg_cut_10").stdout.splitlines()]
    assert ["canonical", "text", "nDCG@10"] in lines
    assert "canonical text" not in cupel("measures", "nDCG").stdout


def test_json_jsonl_and_csv_agree() -> None:
    data = json.loads(cupel("measures", "--format", "json").stdout)
    lines = [json.loads(line) for line in cupel("measures", "--format", "jsonl").stdout.splitlines()]
    rows = list(csv.DictReader(io.StringIO(cupel("measures", "--format", "csv").stdout)))
    assert lines == data
    assert [row["name"] for row in rows] == [entry["name"] for entry in data]
    page = json.loads(cupel("measures", "AP", "--format", "json").stdout)
    assert page["documentation"] == DECLARATIONS["AP"].documentation
    assert page["formulas"][0].startswith("AP@k = 1/R * sum")
    assert len(page["caveats"]) == 1
    [first] = page["examples"]
    assert first["runs"][0]["values"][0]["value"] == 0.805556
    assert (page["exact"], page["family"]) == (True, "ranked")
    assert page["bounds"] == [0.0, 1.0]
    (rel,) = [parameter for parameter in page["parameters"] if parameter["name"] == "rel"]
    assert (rel["needed"], rel["default"]) == (False, None)
    assert "relevance level" in rel["expects"]


def test_misspelt_measure_is_a_usage_error_with_a_hint() -> None:
    result = cupel("measures", "nDGC")
    assert result.exit_code == 2
    assert "did you mean nDCG?" in result.stderr


def test_help_lists_every_command_and_each_has_an_example() -> None:
    overview = cupel("--help").stdout
    for verb, (_, short) in VERBS.items():
        assert verb in overview
        assert short in overview
        page = cupel(verb, "--help")
        assert page.exit_code == 0
        assert "Example" in page.stdout, verb


def test_misspelt_command_is_a_usage_error_with_a_hint() -> None:
    result = cupel("evalute")
    assert result.exit_code == 2
    assert "Did you mean evaluate?" in result.stderr


def test_version_option_prints_the_version() -> None:
    assert cupel("--version").stdout.startswith("cupel, version ")


def test_help_imports_no_heavy_modules(root: Path) -> None:
    script = """
import sys
from cupel_client.main import cli
cli.main(["--help"], standalone_mode=False)
unwanted = {"numpy", "rich", "httpx", "pydantic", "yaml", "cupel_measures"}
print(sorted(unwanted & set(sys.modules)), file=sys.stderr)
"""
    folders = [str(root / name) for name in ("libs/client", "libs/measures", "libs/audits")]
    script = f"import sys; sys.path[:0] = {folders}" + script
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


@pytest.mark.parametrize("arguments", [["compare", "--help"], ["evaluate", "q.txt", "r.txt", "-m", "nDCG"]])
def test_offline_commands_import_neither_pydantic_nor_unneeded_scipy(
    root: Path, tmp_path: Path, arguments: list[str]
) -> None:
    (tmp_path / "q.txt").write_text("1 0 a 1\n")
    (tmp_path / "r.txt").write_text("1 Q0 a 1 1 r\n")
    folders = [str(root / name) for name in ("libs/client", "libs/measures", "libs/audits")]
    script = f"""
import sys; sys.path[:0] = {folders}
from cupel_client.main import cli
cli.main({arguments}, standalone_mode=False)
print(sorted({{"pydantic", "scipy"}} & set(sys.modules)), file=sys.stderr)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stderr.splitlines()[-1] == "[]"
