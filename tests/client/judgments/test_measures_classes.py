"""`cupel measures TOMA --classes COLLECTION`: the classes of label tuples of a collection."""

import csv
import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from cupel_client.main import cli
from cupel_measures.catalogue.parser import parse
from cupel_measures.explaining.class_lists import list_classes
from support.data.small_collections import qrels_of, scale, scores_of

PAPER = """\
aspects:
  relevance: {labels: [nr, mr, fr, hr], threshold: fr}
  correctness: {labels: [nc, pc, c], embedding: [0, 1.5, 3], threshold: c}
label_sets:
  possible:
    aspects: [relevance, correctness]
    tuples: [[nr, nc], [mr, nc], [mr, pc], [mr, c], [fr, nc], [fr, pc], [fr, c], [hr, nc], [hr, pc], [hr, c]]
qrels:
  - {file: q.txt, columns: [topic, _, document, relevance, correctness]}
"""
"""The example of Maistro et al., CIKM 2021, section 4.2."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "c.yaml").write_text(PAPER)
    (tmp_path / "q.txt").write_text("t 0 d1 mr c\nt 0 d2 hr pc\nt 0 d3 hr nc\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def classes(text: str, *options: str, code: int = 0) -> Result:
    done = CliRunner().invoke(
        cli, ["measures", text, "--classes", "c.yaml", *options], catch_exceptions=False
    )
    assert done.exit_code == code, done.output
    return done


@pytest.mark.parametrize(
    ("distance", "total", "weights"),
    [("euclidean", 10, (5, 7, 3)), ("manhattan", 10, (6, 7, 4)), ("chebyshev", 5, (1, 2, 0))],
)
def test_classes_of_the_paper_have_its_weights(distance: str, total: int, weights: tuple[int, ...]) -> None:
    done = classes(f"TOMA(of=nDCG,distance={distance},label_set=possible)", "--format", "json")
    [listed] = json.loads(done.stdout)
    assert (listed["total"], len(listed["classes"]), listed["all_tuples"]) == (total, total, True)
    weight_of = {tuple(labels): row["weight"] for row in listed["classes"] for labels in row["labels"]}
    assert len(weight_of) == 10
    assert (weight_of["mr", "c"], weight_of["hr", "pc"], weight_of["hr", "nc"]) == weights
    assert sum(row["documents"] for row in listed["classes"]) == 3


def test_distances_are_in_units_of_the_embedding() -> None:
    """(fr, pc) is 1 and 1.5 away from (hr, c): sqrt(3.25), 2.5 and 1.5."""
    rows = list(csv.DictReader(io.StringIO(classes("TOMA", "--format", "csv").stdout)))
    distances = [float(row["distance"]) for row in rows if '["fr", "pc"]' in row["labels"]]
    assert distances == pytest.approx([3.25**0.5, 2.5, 1.5], abs=1e-15)
    assert [row["class"] for row in rows if row["weight"] == "10"] == ["1", "1"]


def test_table_shows_the_tuples_of_each_class() -> None:
    lines = classes("TOMA").stdout.splitlines()
    assert lines[0] == "TOMA(of=nDCG): 11 classes of (relevance, correctness)"
    [tied] = [line for line in lines if "(hr, nc) (nr, c)" in line and line.split()[0] == "7"]
    assert tied.split()[:4] == ["7", "3.0000", "4", "1"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nDCG", "nDCG has no label classes"),
        ("TOMA(of=nDCG,label_set=other)", "unknown label set"),
        ("TOMAA", "unknown measure"),
    ],
)
def test_other_measures_are_usage_errors(text: str, words: str) -> None:
    assert words in classes(text, code=2).stderr


def test_classes_need_a_measure() -> None:
    done = CliRunner().invoke(cli, ["measures", "--classes", "c.yaml"])
    assert done.exit_code == 2
    assert "requires the NAME" in done.stderr


def test_many_possible_tuples_are_limited_to_those_of_documents() -> None:
    """Two scales of 40 labels have 1,600 tuples; (39, 0) is 39 steps from the best tuple."""
    first, second = scale(39), scale(39, "second")
    qrels = qrels_of({first: {"1": {"a": 39, "b": 39}}, second: {"1": {"a": 39, "b": 0}}})
    listed = list_classes(qrels, parse("TOMA(of=nDCG,distance=manhattan)"))
    assert (listed.all_tuples, listed.total) == (False, 79)
    shown = [(row.number, row.distance, row.weight, row.labels) for row in listed.classes]
    assert shown == [(1, 0.0, 78, ((39, 39),)), (40, 39.0, 39, ((39, 0),))]


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=8),
    st.sampled_from(["euclidean", "manhattan", "chebyshev"]),
    st.sampled_from(["cartesian", "observed"]),
)
def test_listed_weights_are_those_that_the_measure_uses(
    labels: list[tuple[int, int]], distance: str, label_set: str
) -> None:
    """The gain of the first rank, without a discount, is the weight of the class of its document."""
    grades = {f"d{place}": pair for place, pair in enumerate([*labels, (3, 2), (0, 0)])}
    qrels = qrels_of(
        {
            scale(3): {"1": {name: pair[0] for name, pair in grades.items()}},
            scale(2, "second"): {"1": {name: pair[1] for name, pair in grades.items()}},
        }
    )
    measure = parse(f"TOMA(of=DCG@1,distance={distance},label_set={label_set})")
    weight_of = {pair: row.weight for row in list_classes(qrels, measure).classes for pair in row.labels}
    for name, pair in grades.items():
        [score] = scores_of([str(measure)], {"1": {name: 1.0}}, qrels)[str(measure)]
        assert score == weight_of[pair]
