"""Every worked example in the documentation of a measure holds, read and scored as a user would."""

import math
import re
from pathlib import Path

import pytest

from cupel_measures import examples
from cupel_measures.evaluating import evaluate
from cupel_measures.examples import Example, Value
from cupel_measures.grammar import all_declarations, parse
from cupel_measures.reading.collections import collection_for
from cupel_measures.reading.runs import join_run
from cupel_measures.registry import Declaration

FROM_THE_SPECIFICATION = {
    ("alpha_DCG@20", "0.599853"): "7.1",
    ("ERR_IA@20", "0.530992"): "7.1",
}
"""Values without a derivation, and the section of the specification that prints them."""

PAGES = [(one, text) for one in all_declarations() for text in one.documentation.split("\n\n")]
WORKED = [
    pytest.param(declaration, examples.read(text), id=declaration.name)
    for declaration, text in PAGES
    if text.startswith("Example:")
]


@pytest.mark.parametrize("declaration", all_declarations(), ids=lambda one: one.name)
def test_every_measure_has_a_worked_example_of_its_own(declaration: Declaration) -> None:
    texts = [text for one, text in PAGES if one is declaration and text.startswith("Example:")]
    measured = {value.measure for text in texts for run in examples.read(text).runs for value in run.values}
    assert declaration in {parse(text).declaration for text in measured}


@pytest.mark.parametrize(("declaration", "example"), WORKED)
def test_scores_are_as_printed(declaration: Declaration, example: Example, tmp_path: Path) -> None:
    qrels, runs = example.write(tmp_path)
    collection = collection_for(qrels)
    for path, run in zip(runs, example.runs, strict=True):
        measures = [parse(value.measure) for value in run.values]
        scores = evaluate(collection.qrels, join_run(path, collection.qrels), measures).aggregates()
        for value, measure in zip(run.values, measures, strict=True):
            assert scores[measure] == pytest.approx(float(value.printed), rel=0, abs=value.tolerance), value


@pytest.mark.parametrize(("declaration", "example"), WORKED)
def test_values_are_derived_apart_from_the_code(declaration: Declaration, example: Example) -> None:
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
