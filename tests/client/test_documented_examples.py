"""Worked examples in the documentation of the measures: `cupel evaluate` gives the printed values."""

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

VALUES_WITHOUT_DERIVATION = {
    ("alpha_DCG@20", "0.599853"),
    ("ERR_IA@20", "0.530992"),
    ("LMD(depth=3)", "0.831340"),
    ("LMD(depth=3,smoothing=0.2)", "0.850115"),
    ("LMD(depth=3)", "0.986157"),
    ("LMD(depth=3)", "0"),
    ("soft_alpha_nDCG", "0.869963"),
    ("soft_alpha_nDCG", "0.808525"),
    ("soft_alpha_nDCG", "0.531524"),
    ("soft_alpha_nDCG", "0"),
}
"""Values whose derivation is too long for one expression."""

EXAMPLES = [
    pytest.param(example, id=declaration.name)
    for declaration in all_declarations()
    for example in ReferencePage(declaration).examples
]


@pytest.mark.parametrize("declaration", all_declarations(), ids=lambda declaration: declaration.name)
def test_every_measure_has_a_worked_example(declaration: Declaration) -> None:
    values = [
        value
        for example in ReferencePage(declaration).examples
        for run in example.runs
        for value in run.values
    ]
    assert declaration in {parse(value.measure).declaration for value in values}


@pytest.mark.parametrize("example", EXAMPLES)
def test_scores_equal_the_printed_values(example: Example, tmp_path: Path) -> None:
    qrels, runs = example.write(tmp_path)
    for path, run in zip(runs, example.runs, strict=True):
        for value, score in zip(run.values, evaluated_scores(qrels, path, run), strict=True):
            assert score == pytest.approx(float(value.printed), rel=0, abs=value.tolerance), value


def evaluated_scores(qrels: Path, run: Path, example: ExampleRun) -> list[float]:
    """Return the scores of `cupel evaluate` in the order of the values of the example."""
    texts = [value.measure for value in example.values]
    arguments = ["evaluate", str(qrels), str(run), "-m", " ".join(texts), "--format", "jsonl"]
    done = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.stderr
    scores = {row["measure"]: row["value"] for row in map(json.loads, done.stdout.splitlines())}
    return [scores[str(parse(text))] for text in texts]


@pytest.mark.parametrize("example", EXAMPLES)
def test_printed_derivations_give_the_printed_values(example: Example) -> None:
    for value in (value for run in example.runs for value in run.values):
        if value.derivation is None:
            assert (value.measure, value.printed) in VALUES_WITHOUT_DERIVATION, value
        else:
            # A derivation from rounded values inherits their rounding error.
            assert evaluate_derivation(value) == pytest.approx(float(value.printed), rel=0, abs=1e-6), value


def evaluate_derivation(value: Value) -> float:
    """Return the value of the printed arithmetic expression."""
    names = {"log2": math.log2, "sqrt": math.sqrt, "C": math.comb, "min": min, "max": max, "pi": math.pi}
    arithmetic = str(value.derivation).replace("^", "**")
    assert set(re.findall(r"[A-Za-z]\w*", arithmetic)) <= set(names), value
    return float(eval(arithmetic, {"__builtins__": {}}, names))
