"""Tests that scores of real runs equal those of trec_eval, per topic and averaged, to its 4 decimals."""

import csv
import gzip
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from pathlib import Path

import pytest

from cupel_measures.catalogue.parser import Measure, parse
from cupel_measures.findings import Refused
from cupel_measures.grammar import trec_names
from cupel_measures.model import Qrels
from cupel_measures.model.profiles import PROFILES
from cupel_measures.reading.qrels_files import read_qrels
from cupel_measures.reading.run_files import join_run
from cupel_measures.scoring.evaluator import aggregate, evaluate

TOLERANCE = 0.5e-4 + 1e-9
"""The largest difference that rounding to 4 decimals explains."""

Row = tuple[str, str, float]
"""The name of a measure in trec_eval, a topic or `all`, and the value."""


@lru_cache(maxsize=512)
def measure_named(name: str, level: int = 1) -> Measure | None:
    """Return the measure for a name that trec_eval prints, or None if there is no such measure."""
    texts = [name] if name in trec_names.OURS else trec_names.translate(name) or []
    if len(texts) != 1:
        return None
    measure = parse(texts[0])
    takes_level = "rel" in measure.declaration.parameters and measure.declaration.name != "NumRet"
    return measure.having(rel=level) if takes_level and level > 1 else measure


def compare_scores(
    run: Path,
    qrels: Qrels,
    rows: Iterable[Row],
    *,
    profile: str,
    depth: int | None = None,
    level: int = 1,
) -> tuple[int, list[tuple[Row, float]]]:
    """Return the number of compared values, and those that differ from trec_eval."""
    rows = [row for row in rows if measure_named(row[0], level) is not None]
    measures = {name: measure_named(name, level) or parse("AP") for name, _, _ in rows}
    joined = join_run(run, qrels, profile=PROFILES[profile], depth=depth)
    values = evaluate(qrels, joined, list(measures.values())).values
    topic_index = {topic: index for index, topic in enumerate(qrels.topics)}
    wrong = []
    for name, topic, printed in rows:
        per_topic = values[measures[name]]
        score = (
            aggregate(measures[name], per_topic) if topic == "all" else float(per_topic[topic_index[topic]])
        )
        if abs(score - printed) > TOLERANCE:
            wrong.append(((name, topic, printed), score))
    return len(rows), wrong


@lru_cache(maxsize=8)
def qrels_at(path: Path) -> Qrels:
    return read_qrels(path)


@pytest.mark.parametrize(
    ("profile", "version", "first"), [("trec_eval-9", "9.0.8", 0), ("trec_eval-10", "10.0", 1)]
)
def test_scores_of_75_runs_equal_trec_eval(
    shared: Path, profile: str, version: str, first: int, all_examples: bool
) -> None:
    """Compare all runs with both versions of trec_eval; `make test` compares a quarter with each."""
    recorded = list(_reference(shared, version).items())
    compared = 0
    for (collection, qrels_name, run_name), rows in recorded if all_examples else recorded[first::4]:
        if collection == "clef-ehealth-2014-task3" and run_name == AMBIGUOUS_RUN:
            continue
        qrels = qrels_at(shared / "data" / collection / "qrels" / qrels_name)
        run = _run_file(shared / "data" / collection / "runs", run_name)
        number, wrong = compare_scores(run, qrels, rows, profile=profile)
        assert not wrong, (collection, qrels_name, run_name, wrong[:5])
        assert number == len(rows)  # every name has a measure
        compared += number
    assert compared > (700_000 if all_examples else 150_000)


AMBIGUOUS_RUN = "GRIUM_EN_Run.1.dat"
"""A run name of both CLEF collections.

The recorded trec_eval output used the run of 2015 with the qrels of 2014, which share no topic. A test below
compares the run of 2014 with its official values.
"""


def test_run_without_common_topics_is_rejected_as_by_trec_eval_9(shared: Path) -> None:
    rows = _reference(shared, "9.0.8")[
        "clef-ehealth-2014-task3", "qrels.clef2014.test.bin.txt.gz", AMBIGUOUS_RUN
    ]
    assert [name for name, _, _ in rows] == ["ERROR"]
    qrels = qrels_at(shared / "data/clef-ehealth-2014-task3/qrels/qrels.clef2014.test.bin.txt.gz")
    with pytest.raises(Refused) as refused:
        join_run(shared / "data/clef-ehealth-2015-task2/runs" / f"{AMBIGUOUS_RUN}.gz", qrels)
    assert [error.code for error in refused.value.findings.errors] == ["run-topics-none"]


def _reference(shared: Path, version: str) -> dict[tuple[str, str, str], list[Row]]:
    """Return the recorded output of trec_eval by (collection, qrels, run)."""
    values: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    with gzip.open(shared / f"data/_reference/trec_eval-{version}.csv.gz", "rt") as file:
        for row in csv.DictReader(file):
            is_error = row["measure"] == "ERROR"
            value = 0.0 if is_error else float(row["value"])
            values[row["set"], row["qrels"], row["run"]].append((row["measure"], row["topic"], value))
    return values


@cache
def _run_file(folder: Path, name: str) -> Path:
    """Return the path of a run, which may be in a team's folder (`Team/output/run1.txt`, `Team_run1.txt`)."""
    for path in folder.rglob("*.gz"):
        local = path.relative_to(folder).as_posix().removesuffix(".gz")
        if name in (local, path.name.removesuffix(".gz"), local.replace("/output/", "/")) or (
            name == local.replace("/output/", "_").replace("/", "_")
        ):
            return path
    raise AssertionError(f"there is no run {name} in {folder.name}")


DIFFERENT_COUNTS = {
    (run, "num_rel", "all")
    for run in ("COMPL_EN_Run.1.dat", "RePaLi_EN_Run.1.dat", "SNUMEDINFO_CZ_Run.1.dat")
}
"""The values of num_rel that differ, for runs that miss a topic.

The trec_eval 9.0 of the organisers excludes the relevant documents of missing topics from num_rel. trec_eval
9.0.8 and Cupel count them. All other values agree.
"""


def test_official_num_rel_counts_only_topics_of_the_run(
    shared: Path,
) -> None:
    folder = shared / "data/clef-ehealth-2014-task3"
    qrels = qrels_at(folder / "qrels/qrels.clef2014.test.bin.txt.gz")
    counts = [parse("NumRel"), parse("NumRet")]
    for run, name, topic in DIFFERENT_COUNTS:
        official = {row[:2]: row[2] for row in _official(folder)[run]}
        scores = evaluate(qrels, join_run(folder / "runs" / f"{run}.gz", qrels), counts)
        relevant, retrieved = (scores.values[count] for count in counts)
        assert relevant[retrieved > 0].sum() == official[name, topic] < relevant.sum()


@pytest.mark.parametrize(
    ("collection", "binary", "graded", "runs"),
    [
        (
            "clef-ehealth-2015-task2",
            "qrels.eng.clef2015.qtest.bin.txt.gz",
            "qrels.eng.clef2015.qtest.graded.txt.gz",
            24,
        ),
        (
            "clef-ehealth-2014-task3",
            "qrels.clef2014.test.bin.txt.gz",
            "qrels.clef2014.test.graded.txt.gz",
            30,
        ),
    ],
)
def test_scores_equal_the_official_values(
    shared: Path, collection: str, binary: str, graded: str, runs: int
) -> None:
    folder = shared / "data" / collection
    official = _official(folder)
    assert len(official) == runs
    for run, rows in official.items():
        path = folder / "runs" / f"{run}.gz"
        rows = [row for row in rows if (run, row[0], row[1]) not in DIFFERENT_COUNTS]
        by_qrels = {
            binary: [r for r in rows if "ndcg" not in r[0]],
            graded: [r for r in rows if "ndcg" in r[0]],
        }
        for name, rows_of_qrels in by_qrels.items():
            compared, wrong = compare_scores(
                path, qrels_at(folder / "qrels" / name), rows_of_qrels, profile="trec_eval-9", depth=1000
            )
            assert compared
            assert not wrong, (run, name, wrong[:5])


def _official(folder: Path) -> dict[str, list[Row]]:
    """Return the official values of a CLEF collection by run."""
    values: dict[str, list[Row]] = defaultdict(list)
    for path in ("official/means.csv", "official/per_topic.csv.gz"):
        opener = gzip.open if path.endswith(".gz") else open
        with opener(folder / path, "rt") as file:
            for row in csv.DictReader(file):
                if measure_named(row["measure"]) is not None:
                    values[row["run_file"]].append((row["measure"], row["topic"], float(row["value"])))
    return values


TREC_EVAL_TESTS = {
    "out.test": ("qrels.test", "results.test", None, 1),
    "out.comment.test": ("qrels.comment.test.gz", "results.comment.test.gz", None, 1),
    "out.test.a": ("qrels.test", "results.test", None, 1),
    "out.test.aq": ("qrels.test", "results.test", None, 1),
    "out.test.aqc": ("qrels.test", "results.trunc", None, 1),
    "out.test.aqcM": ("qrels.test", "results.trunc", 100, 1),
    "out.test.aql": ("qrels.rel_level", "results.test", None, 2),
    "out.test.meas_params": ("qrels.test", "results.test", None, 1),
}


EXPERIMENTS = {"G", "binG", "Rndcg", "ndcg_rel", "relstring", "relstring_20"}
"""Experimental measures of trec_eval that Cupel does not have."""


@pytest.mark.parametrize("name", TREC_EVAL_TESTS)
def test_scores_equal_the_expected_output_of_trec_eval_tests(shared: Path, name: str) -> None:
    folder = shared / "data/trec-eval-tests"
    qrels, run, depth, level = TREC_EVAL_TESTS[name]
    compared, wrong = compare_scores(
        folder / run,
        qrels_at(folder / qrels),
        _printed(folder / name),
        profile="trec_eval-10",
        depth=depth,
        level=level,
    )
    assert compared > 15
    assert not wrong, wrong[:5]
    names = {line.split()[0] for line in (folder / name).read_text().splitlines()}
    assert {printed for printed in names if measure_named(printed) is None} <= EXPERIMENTS | {"runid"}


def test_comments_in_qrels_do_not_change_scores(shared: Path) -> None:
    folder = shared / "data/trec-eval-tests"
    rows = list(_printed(folder / "out.test.aq"))
    qrels = qrels_at(folder / "qrels.test.with-comments")
    assert compare_scores(folder / "results.test", qrels, rows, profile="trec_eval-10")[1] == []


def _printed(path: Path) -> Iterator[Row]:
    """Yield the values in an output file of trec_eval."""
    for line in path.read_text().splitlines():
        name, topic, value = (field.strip() for field in line.split("\t"))
        if measure_named(name) is not None:
            yield name, topic, float(value)
