"""Tests that no sentence claims equality where a test only did not reject.

Searches the strings of all packages except docstrings, the pages' templates, the reports of every kind of
audit, and the tables of comparisons by every test.
"""

import ast
import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from cupel_audits import KINDS, read_audit
from cupel_audits.execution import result
from cupel_audits.subject import SubjectSummary
from cupel_client.main import cli
from cupel_measures.comparing.board_analysis import analyse
from cupel_measures.comparing.differences.comparison_choices import SIMULTANEOUS
from cupel_measures.comparing.paired_tests import TESTS
from support.data import real_runs
from support.extended_example import describe_extended_example, write_extended_example

ROOT = Path(__file__).parents[1]
STORED = json.loads(gzip.decompress((ROOT / "tests/audits/stored_results.json.gz").read_bytes()))

EQUALITY = re.compile(
    r"\b(tied|ties|equal|equally|same|identical|no difference|indistinguishable|equivalent|as good as"
    r"|(?:do|does|did) not differ(?! significantly))\b",
    re.I,
)
INFERENCE = re.compile(
    r"significan|\bgroups?\b|\btests?\b|\bletter|\bbest\b|\balpha\b|\bp\b|worse|differ", re.I
)
TRUE = (
    # Properties of scores, ranks or labels, which no test infers.
    "equal scores",
    "lower/same/higher",
    "higher/same/lower",
    "are equal on every topic except for rounding",
    "the same on every topic, so its variance",
    "the systems score the same on every topic",
    "all runs have the same score",
    "Scores that differ by no more than this are equal",
    "same or different labels",
    "have the same label",
    "same label",
    "documents with the same label",
    "are equally far from the best",
    "DeltaRI",
    "equally many",
    "at the same distance from the best one",
    # Assumptions, hypotheses and settings.
    "equal spreads",
    "if all runs had equal means",
    "under the hypothesis",
    "equal differences of scores",
    "the same replicates",
    "two measures of the same property",
    "Runs of the same team",
    "for --same",
    "so no difference can be",
    "no difference can be excluded",
    # Pairs that do differ significantly.
    "in the same direction",
    "the same pairs of runs differ significantly",
    # Equivalence within a margin, which two one-sided tests establish.
    "equal within",
    "does not establish that the systems are the same",
)
"""Parts of reviewed sentences with words for equality that do not follow from a test that did not reject."""


def suspicious(text: str) -> list[str]:
    """Return the sentences that speak of equality and of a test, and are not reviewed."""
    sentences = re.split(r"(?<=[.;:])\s+|\n\n", " ".join(text.split(" ")))
    return [
        sentence
        for sentence in sentences
        if EQUALITY.search(sentence)
        and INFERENCE.search(sentence)
        and not any(part in " ".join(sentence.split()) for part in TRUE)
    ]


@pytest.mark.parametrize(
    "claim",
    [
        "16 of 30 runs are tied for the best.",
        "Runs that share a letter are equal (max-T test).",
        "The test found no difference between a and b.",
        "a and b do not differ (alpha 0.05).",
        "b is as good as the best.",
    ],
)
def test_claims_of_equality_are_found(claim: str) -> None:
    assert suspicious(claim) == [claim]


def test_careful_sentences_are_not_found() -> None:
    assert suspicious("Runs that share a letter are not significantly different (max-T test).") == []
    assert suspicious("The runs do not differ significantly (alpha 0.05).") == []


def sources() -> list[Path]:
    return sorted(
        path
        for folder in ("libs", "services")
        for path in (ROOT / folder).glob("*/cupel_*/**/*.py")
        if "build" not in path.parts
    )


def strings(path: Path) -> Iterator[str]:
    """Yield the strings of a module except docstrings; braces replace formatted values."""
    text = path.read_text()
    if not EQUALITY.search(text):
        return
    tree = ast.parse(text)
    skipped = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            skipped |= {id(value) for value in node.values}
            yield "".join(str(v.value) if isinstance(v, ast.Constant) else "{}" for v in node.values)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
            yield node.value


def test_sources_make_no_claim_of_equality() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {sentence}"
        for path in sources()
        for text in strings(path)
        if " " in text
        for sentence in suspicious(text)
    ]
    assert len(sources()) > 200
    assert found == []


def test_templates_make_no_claim_of_equality() -> None:
    templates = list((ROOT / "libs").glob("*/cupel_*/**/*.html"))
    assert templates
    lines = [line for path in templates for line in path.read_text().splitlines()]
    assert [sentence for line in lines for sentence in suspicious(line)] == []


@pytest.mark.parametrize("name", STORED)
def test_reports_make_no_claim_of_equality(name: str) -> None:
    stored, kind = STORED[name], name.partition("-")[0]
    assert kind in KINDS
    trials = {int(number): trial for number, trial in stored["trials"].items()}
    audit, about = read_audit(kind, stored["parameters"]), SubjectSummary.of(stored["about"])
    report = result(audit, about, stored["seed"], len(trials), trials).report
    assert report is not None
    captions = [text for plot in report.plots for text in (plot.title, plot.caption)]
    texts = (*report.verdict, *report.reading, *report.undefined, *report.warnings, *captions)
    assert [sentence for text in texts for sentence in suspicious(text)] == []


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return the collection of the extended example and its runs."""
    folder = tmp_path_factory.mktemp("claims") / "example"
    write_extended_example(folder)
    subject = describe_extended_example(folder)
    return [str(subject.collection), *map(str, subject.runs[:4])]


@pytest.mark.parametrize("test", [*TESTS, *SIMULTANEOUS])
def test_comparisons_make_no_claim_of_equality(test: str, example: list[str]) -> None:
    options = ["-m", "nDCG@10", "--test", test, "--all-pairs", "--permutations", "200"]
    shown = CliRunner().invoke(cli, ["compare", *example, *options])
    assert shown.exit_code == 0, shown.output
    assert "not significantly different" in shown.output
    assert [sentence for line in shown.output.splitlines() for sentence in suspicious(line)] == []


def test_best_set_of_clef_2014_has_no_run_far_below_the_first(shared: Path) -> None:
    """No run with p < 0.001 (scipy.stats.ttest_rel, uncorrected) against the first is in the best set."""
    from scipy.stats import ttest_rel

    load = real_runs.clef(shared)[0]
    [measure] = [measure for measure in load.bound if str(measure) == "nDCG@10"]
    scores = np.column_stack([list(load.offline(run).values[measure]) for run in load.runs])
    [analysis] = analyse([scores])
    first = int(scores.mean(axis=0).argmax())
    p = [float(ttest_rel(scores[:, first], column).pvalue) for column in scores.T]
    in_best_set = [system.in_best_set for system in analysis.standings]
    assert sum(value < 0.001 for value in p) >= 10
    assert in_best_set[first]
    assert min(value for place, value in enumerate(p) if in_best_set[place] and place != first) > 0.001
