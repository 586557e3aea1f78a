"""Every worked example in the documentation of a measure holds, scored by the command as a reader would."""

import json
import math
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from cupel_client.main import cli
from cupel_measures.catalogue.parser import all_declarations, parse
from cupel_measures.catalogue.reference import ReferencePage
from cupel_measures.catalogue.worked_examples import Example, ExampleRun, Value
from cupel_measures.grammar.registry import Declaration

FROM_THE_SPECIFICATION = {
    ("alpha_DCG@20", "0.599853"): "7.1",
    ("ERR_IA@20", "0.530992"): "7.1",
    ("LMD(depth=3)", "0.831340"): "7.5",
    ("LMD(depth=3,smoothing=0.2)", "0.850115"): "7.5",
    ("LMD(depth=3)", "0.986157"): "7.5",
    ("LMD(depth=3)", "0"): "7.5",
    ("soft_alpha_nDCG", "0.869963"): "7.5",
    ("soft_alpha_nDCG", "0.808525"): "7.5",
    ("soft_alpha_nDCG", "0.531524"): "7.5",
    ("soft_alpha_nDCG", "0"): "7.5",
}
"""Values without a derivation, and the section of the specification that prints them."""

WORKED = [
    pytest.param(example, id=declaration.name)
    for declaration in all_declarations()
    for example in ReferencePage(declaration).examples
]


@pytest.mark.parametrize("declaration", all_declarations(), ids=lambda one: one.name)
def test_every_measure_has_a_worked_example_of_its_own(declaration: Declaration) -> None:
    values = [
        one for example in ReferencePage(declaration).examples for run in example.runs for one in run.values
    ]
    assert declaration in {parse(value.measure).declaration for value in values}


@pytest.mark.parametrize("example", WORKED)
def test_scores_are_as_printed(example: Example, tmp_path: Path) -> None:
    qrels, runs = example.write(tmp_path)
    for path, run in zip(runs, example.runs, strict=True):
        for value, score in zip(run.values, scored(qrels, path, run), strict=True):
            assert score == pytest.approx(float(value.printed), rel=0, abs=value.tolerance), value


def scored(qrels: Path, run: Path, example: ExampleRun) -> list[float]:
    """What `cupel evaluate` gives, in the order of the example's values."""
    texts = [value.measure for value in example.values]
    arguments = ["evaluate", str(qrels), str(run), "-m", " ".join(texts), "--format", "jsonl"]
    done = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.stderr
    found = {one["measure"]: one["value"] for one in map(json.loads, done.stdout.splitlines())}
    return [found[str(parse(text))] for text in texts]


@pytest.mark.parametrize("example", WORKED)
def test_values_are_derived_apart_from_the_code(example: Example) -> None:
    for value in (value for run in example.runs for value in run.values):
        if value.derivation is None:
            assert (value.measure, value.printed) in FROM_THE_SPECIFICATION, value
        else:
            # one that builds on rounded values is off by as much as they are
            assert calculated(value) == pytest.approx(float(value.printed), rel=0, abs=1e-6), value


def calculated(value: Value) -> float:
    """The number that the printed arithmetic gives."""
    names = {"log2": math.log2, "sqrt": math.sqrt, "C": math.comb, "min": min, "max": max, "pi": math.pi}
    arithmetic = str(value.derivation).replace("^", "**")
    assert set(re.findall(r"[A-Za-z]\w*", arithmetic)) <= set(names), value
    return float(eval(arithmetic, {"__builtins__": {}}, names))
