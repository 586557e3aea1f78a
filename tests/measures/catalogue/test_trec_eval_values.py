"""Every value that trec_eval printed for the shared real runs, to its 4 decimals, per topic and over all."""

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

PRINTED = 0.5e-4 + 1e-9
"""How far a value may lie from its 4 printed decimals."""

Row = tuple[str, str, float]
"""A measure by trec_eval's name, a topic or `all`, the value."""


@lru_cache(maxsize=512)
def measure_named(name: str, level: int = 1) -> Measure | None:
    """Ours for a trec_eval name as printed; None where it is no measure of this library yet."""
    texts = [name] if name in trec_names.OURS else trec_names.translate(name) or []
    if len(texts) != 1:
        return None
    measure = parse(texts[0])
    takes_level = "rel" in measure.declaration.parameters and measure.declaration.name != "NumRet"
    return measure.having(rel=level) if takes_level and level > 1 else measure


def differing(
    run: Path,
    qrels: Qrels,
    rows: Iterable[Row],
    *,
    profile: str,
    depth: int | None = None,
    level: int = 1,
) -> tuple[int, list[tuple[Row, float]]]:
    """How many values were compared, and those that are not the printed ones."""
    rows = [row for row in rows if measure_named(row[0], level) is not None]
    measures = {name: measure_named(name, level) or parse("AP") for name, _, _ in rows}
    joined = join_run(run, qrels, profile=PROFILES[profile], depth=depth)
    values = evaluate(qrels, joined, list(measures.values())).values
    place = {topic: index for index, topic in enumerate(qrels.topics)}
    wrong = []
    for name, topic, printed in rows:
        of_topics = values[measures[name]]
        got = aggregate(measures[name], of_topics) if topic == "all" else float(of_topics[place[topic]])
        if abs(got - printed) > PRINTED:
            wrong.append(((name, topic, printed), got))
    return len(rows), wrong


@lru_cache(maxsize=8)
def qrels_at(path: Path) -> Qrels:
    return read_qrels(path)


@pytest.mark.parametrize(("profile", "version"), [("trec_eval-9", "9.0.8"), ("trec_eval-10", "10.0")])
def test_every_value_that_trec_eval_gave_for_the_75_shared_runs(
    shared: Path, profile: str, version: str
) -> None:
    compared = 0
    for (collection, qrels_name, run_name), rows in _reference(shared, version).items():
        if collection == "clef-ehealth-2014-task3" and run_name == MISTAKEN:
            continue
        qrels = qrels_at(shared / "data" / collection / "qrels" / qrels_name)
        run = _run_file(shared / "data" / collection / "runs", run_name)
        number, wrong = differing(run, qrels, rows, profile=profile)
        assert not wrong, (collection, qrels_name, run_name, wrong[:5])
        assert number == len(rows)  # there is a measure for every name
        compared += number
    assert compared > 700_000


MISTAKEN = "GRIUM_EN_Run.1.dat"
"""Both CLEF sets have a run of this name. The reference took the one of 2015 for 2014's qrels, with
which it shares no topic; the 2014 run is compared with its official values below."""


def test_a_run_of_another_years_topics_is_refused_where_trec_eval_9_stops(shared: Path) -> None:
    rows = _reference(shared, "9.0.8")["clef-ehealth-2014-task3", "qrels.clef2014.test.bin.txt.gz", MISTAKEN]
    assert [name for name, _, _ in rows] == ["ERROR"]
    qrels = qrels_at(shared / "data/clef-ehealth-2014-task3/qrels/qrels.clef2014.test.bin.txt.gz")
    with pytest.raises(Refused) as refused:
        join_run(shared / "data/clef-ehealth-2015-task2/runs" / f"{MISTAKEN}.gz", qrels)
    assert [error.code for error in refused.value.findings.errors] == ["run-topics-none"]


def _reference(shared: Path, version: str) -> dict[tuple[str, str, str], list[Row]]:
    found: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    with gzip.open(shared / f"data/_reference/trec_eval-{version}.csv.gz", "rt") as file:
        for row in csv.DictReader(file):
            is_error = row["measure"] == "ERROR"
            value = 0.0 if is_error else float(row["value"])
            found[row["set"], row["qrels"], row["run"]].append((row["measure"], row["topic"], value))
    return found


@cache
def _run_file(folder: Path, name: str) -> Path:
    """The run of this name, below teams' folders too (`Team/output/run1.txt` or `Team_run1.txt`)."""
    for path in folder.rglob("*.gz"):
        local = path.relative_to(folder).as_posix().removesuffix(".gz")
        if name in (local, path.name.removesuffix(".gz"), local.replace("/output/", "/")) or (
            name == local.replace("/output/", "_").replace("/", "_")
        ):
            return path
    raise AssertionError(f"there is no run {name} in {folder.name}")


OLDER_COUNT = {
    (run, "num_rel", "all")
    for run in ("COMPL_EN_Run.1.dat", "RePaLi_EN_Run.1.dat", "SNUMEDINFO_CZ_Run.1.dat")
}
"""Runs that miss a topic. The organisers' trec_eval 9.0 left its relevant documents out of num_rel;
9.0.8 counts them (in the reference above, too), and so do we. Every other value agrees."""


def test_the_organisers_older_trec_eval_counted_relevant_documents_of_the_runs_topics_only(
    shared: Path,
) -> None:
    folder = shared / "data/clef-ehealth-2014-task3"
    qrels = qrels_at(folder / "qrels/qrels.clef2014.test.bin.txt.gz")
    counts = [parse("NumRel"), parse("NumRet")]
    for run, name, topic in OLDER_COUNT:
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
def test_every_official_value_that_trec_eval_made(
    shared: Path, collection: str, binary: str, graded: str, runs: int
) -> None:
    folder = shared / "data" / collection
    official = _official(folder)
    assert len(official) == runs
    for run, rows in official.items():
        path = folder / "runs" / f"{run}.gz"
        rows = [row for row in rows if (run, row[0], row[1]) not in OLDER_COUNT]
        by_qrels = {
            binary: [r for r in rows if "ndcg" not in r[0]],
            graded: [r for r in rows if "ndcg" in r[0]],
        }
        for name, some in by_qrels.items():
            compared, wrong = differing(
                path, qrels_at(folder / "qrels" / name), some, profile="trec_eval-9", depth=1000
            )
            assert compared
            assert not wrong, (run, name, wrong[:5])


def _official(folder: Path) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = defaultdict(list)
    for path in ("official/means.csv", "official/per_topic.csv.gz"):
        opener = gzip.open if path.endswith(".gz") else open
        with opener(folder / path, "rt") as file:
            for row in csv.DictReader(file):
                if measure_named(row["measure"]) is not None:
                    found[row["run_file"]].append((row["measure"], row["topic"], float(row["value"])))
    return found


OWN_TESTS = {
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
"""What trec_eval prints of its experiments, which are no measures here."""


@pytest.mark.parametrize("name", OWN_TESTS)
def test_trec_evals_own_tests_give_what_it_expects(shared: Path, name: str) -> None:
    folder = shared / "data/trec-eval-tests"
    qrels, run, depth, level = OWN_TESTS[name]
    compared, wrong = differing(
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
    assert {one for one in names if measure_named(one) is None} <= EXPERIMENTS | {"runid"}


def test_comments_in_qrels_change_nothing(shared: Path) -> None:
    folder = shared / "data/trec-eval-tests"
    rows = list(_printed(folder / "out.test.aq"))
    qrels = qrels_at(folder / "qrels.test.with-comments")
    assert differing(folder / "results.test", qrels, rows, profile="trec_eval-10")[1] == []


def _printed(path: Path) -> Iterator[Row]:
    for line in path.read_text().splitlines():
        name, topic, value = (field.strip() for field in line.split("\t"))
        if measure_named(name) is not None:
            yield name, topic, float(value)
