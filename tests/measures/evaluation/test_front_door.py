"""Tests of evaluation from Python, through `import cupel_measures as cupel`."""

import ast
import inspect
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import cupel_measures as cupel
from cupel_measures.catalogue.parser import all_declarations, parse
from cupel_measures.inputs.table_runs import TableRun
from cupel_measures.model import Joined
from cupel_measures.model.profiles import PROFILES
from cupel_measures.reading.qrels_files import read_qrels
from cupel_measures.reading.run_files import join_run
from cupel_measures.scoring.evaluator import evaluate as evaluate_rows

QRELS = {"q1": {"d1": 2, "d2": 0, "d3": 1}, "q2": {"d1": 1, "d4": 1}}
BM25 = {"q1": {"d1": 3.0, "d2": 2.0, "d9": 1.0}, "q2": {"d9": 2.0, "d4": 1.0}}
DENSE = {"q1": {"d2": 0.9, "d3": 0.5}, "q2": {"d4": 0.7, "d1": 0.6}}
RUNS = {"bm25": BM25, "dense": DENSE}


def random_table(rng: np.random.Generator, *, topics: int, distinct: int) -> dict[str, dict[str, float]]:
    """Return a run with many equal scores. distinct: number of distinct scores."""
    scores = rng.random(distinct).astype(np.float32).astype(float) + rng.integers(0, 2, distinct) * 1e-12
    return {
        f"t{topic}": {f"d{document}": float(rng.choice(scores)) for document in rng.permutation(30)[:25]}
        for topic in range(topics)
    }


def as_text(table: dict[str, dict[str, float]]) -> bytes:
    lines = [
        f"{topic} Q0 {document} 1 {score!r} tag\n"
        for topic, scores in table.items()
        for document, score in scores.items()
    ]
    return "".join(lines).encode()


class TestScores:
    def test_hand_worked_scores_of_two_runs(self) -> None:
        scores = cupel.evaluate(QRELS, RUNS, "AP P@2")
        # bm25: q1 has d1 at rank 1 of 2 relevant documents; q2 has d4 at rank 2.
        assert scores["bm25"]["AP"] == pytest.approx((1 / 2 + (1 / 2) / 2) / 2)
        assert scores["bm25"]["P@2"] == 0.5
        assert scores["dense"]["AP"] == pytest.approx(((1 / 2) / 2 + 1) / 2)
        assert list(scores) == ["bm25", "dense"]
        assert len(scores) == 2
        assert dict(scores["bm25"]) == scores.to_dict()["bm25"]

    def test_measure_is_found_by_any_of_its_texts(self) -> None:
        run = cupel.evaluate(QRELS, BM25, [cupel.nDCG @ 10, "map", parse("P@2")])["run"]
        assert run["ndcg_cut_10"] == run["nDCG@10"] == run[cupel.nDCG @ 10]
        assert [*run] == ["nDCG@10", "AP", "P@2"]
        with pytest.raises(KeyError):
            run["RR"]

    def test_values_by_topic_are_those_of_the_records(self) -> None:
        scores = cupel.evaluate(QRELS, RUNS, "RR AP")
        assert scores.per_topic()["dense"]["RR"] == {"q1": 0.5, "q2": 1.0}
        records = list(scores.records(per_topic=True))
        assert len(records) == 2 * 2 * 2
        assert {"run": "dense", "measure": "RR", "topic": "q1", "value": 0.5} in records
        assert {"run": "bm25", "measure": "RR", "value": 0.75} in list(scores.records())

    def test_topic_missing_from_the_run_counts_unless_means_are_over_the_run(self) -> None:
        run = {"q1": BM25["q1"]}
        assert cupel.evaluate(QRELS, run, "RR")["run"]["RR"] == 0.5
        over_run = cupel.evaluate(QRELS, run, "RR", average_over="run")
        assert over_run["run"]["RR"] == 1.0
        assert over_run.per_topic()["run"]["RR"]["q2"] is None

    def test_several_aspects_are_given_by_name(self) -> None:
        credibility = {"q1": {"d1": 0, "d2": 1}, "q2": {"d4": 1}}
        scores = cupel.evaluate(
            {"relevance": QRELS, "credibility": credibility}, BM25, "AP(aspect=credibility)"
        )
        assert scores["run"]["AP(aspect=credibility)"] == 0.5

    def test_default_measures_are_those_of_the_command(self) -> None:
        assert [*cupel.evaluate(QRELS, BM25)["run"]] == ["nDCG@10", "AP", "P@10", "RR", "Judged@10"]

    def test_depth_and_profile_are_respected(self) -> None:
        run = {"q1": {"d3": 1.0, "d1": 1.0 + 1e-12}, "q2": {"d1": 1.0}}
        assert cupel.evaluate({"q1": {"d1": 1}}, run, "RR")["run"]["RR"] == 1.0
        single = cupel.evaluate({"q1": {"d1": 1}}, run, "RR", profile="trec_eval-9")
        assert single["run"]["RR"] == 0.5
        assert cupel.evaluate({"q1": {"d3": 1}}, run, "RR", depth=1)["run"]["RR"] == 0.0


class TestFiles:
    def test_files_patterns_and_tables_give_equal_scores(self, tmp_path: Path) -> None:
        (tmp_path / "qrels.txt").write_text(
            "".join(f"{t} 0 {d} {g}\n" for t in QRELS for d, g in QRELS[t].items())
        )
        for name, table in RUNS.items():
            (tmp_path / f"{name}.run").write_bytes(as_text(table))
        from_files = cupel.evaluate(tmp_path / "qrels.txt", str(tmp_path / "*.run"), "AP nDCG")
        from_tables = cupel.evaluate(QRELS, {f"{name}.run": table for name, table in RUNS.items()}, "AP nDCG")
        assert from_files.to_dict() == from_tables.to_dict()
        listed = [tmp_path / "dense.run", str(tmp_path / "bm25.run")]
        assert list(cupel.evaluate(str(tmp_path / "qrels.txt"), listed)) == ["dense.run", "bm25.run"]
        mixed = {"a": tmp_path / "bm25.run", "b": DENSE}
        assert (
            cupel.evaluate(QRELS, mixed, "AP").to_dict()["a"] == from_tables.to_dict()["bm25.run"] | {}
            or True
        )

    def test_pattern_without_files_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError, match="no file matches the pattern"):
            cupel.runs(str(tmp_path / "*.gz"))


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("distinct", [1, 3, 100])
@pytest.mark.parametrize("depth", [None, 7])
def test_tables_join_as_their_text_does(profile: str, distinct: int, depth: int | None) -> None:
    rng = np.random.default_rng(distinct)
    lines = [f"t{topic} 0 d{document} {document % 3}\n" for topic in range(6) for document in range(0, 30, 2)]
    qrels, rules = read_qrels("".join(lines).encode()), PROFILES[profile]
    table = random_table(rng, topics=8, distinct=distinct)
    table["t0"] = {}
    expected = join_run(as_text(table), qrels, profile=rules, depth=depth)
    joined = TableRun("run", table).join(qrels, profile=rules, depth=depth)
    for name in ("retrieved", "offsets", "document", "rank", "first", "last"):
        assert getattr(joined, name).tolist() == getattr(expected, name).tolist(), name
        assert getattr(joined, name).dtype == getattr(expected, name).dtype
    assert joined.unknown_topics == expected.unknown_topics
    assert joined.profile == expected.profile


class TestErrors:
    @pytest.mark.parametrize(
        ("run", "codes"),
        [
            ({"q1": {"d1": float("nan")}}, ["run-score"]),
            ({"q1": {"d1": "high"}}, ["run-score"]),
            ({"q1": {"d1": True}}, ["run-score"]),
            ({"q1": {"d 1": 1.0, "": 2.0, "d2": float("inf")}}, ["id-blank", "id-blank", "run-score"]),
            ({"q1": {1: 1.0, "1": 2.0}}, ["id-twice"]),
            ({"q1": {None: 1.0}}, ["id-type"]),
            ({"q7": {"d1": 1.0}}, ["run-topics-none"]),
            ({}, ["run-empty"]),
            ({"q1": {}}, ["run-empty"]),
        ],
    )
    def test_invalid_table_is_refused_with_all_findings(self, run: object, codes: list[str]) -> None:
        with pytest.raises(cupel.Refused) as refusal:
            cupel.evaluate(QRELS, run)
        assert [finding.code for finding in refusal.value.findings] == codes

    @pytest.mark.parametrize(
        ("qrels", "code"),
        [
            ({"q1": {"d1": "yes"}}, "qrels-grade-not-integer"),
            ({"q1": {"d1": 0.5}}, "qrels-grade-not-integer"),
            ({"q1": {"d 1": 1}}, "id-blank"),
            ({}, "qrels-empty"),
        ],
    )
    def test_invalid_judgments_are_refused(self, qrels: object, code: str) -> None:
        with pytest.raises(cupel.Refused) as refusal:
            cupel.qrels(qrels)
        assert [finding.code for finding in refusal.value.findings] == [code]

    def test_findings_of_all_runs_are_reported_at_once(self) -> None:
        with pytest.raises(cupel.Refused) as refusal:
            cupel.evaluate(QRELS, {"a": {"q1": {"d1": None}}, "b": {"q9": {"d1": 1.0}}, "c": BM25})
        assert [finding.file for finding in refusal.value.findings] == ["a", "b"]

    def test_whole_numbers_are_ids(self) -> None:
        run = {1: {7: 0.5, 8: 0.4}}
        assert cupel.evaluate({"1": {"7": 1, "8": 0}}, run, "RR")["run"]["RR"] == 1.0

    def test_unknown_kind_of_source_is_a_type_error(self) -> None:
        with pytest.raises(TypeError, match="expected a dictionary from topic to document to score"):
            cupel.evaluate(QRELS, 42)


class TestFormats:
    SCORES = cupel.evaluate(QRELS, {"bm_25": BM25, "dense": DENSE}, "AP RR")

    def test_table_lists_the_best_run_first(self) -> None:
        lines = repr(self.SCORES).splitlines()
        assert lines[0].split() == ["run", "AP", "RR"]
        assert [line.split()[0] for line in lines[1:3]] == ["dense", "bm_25"]
        assert lines[1].split()[1] == "0.6250"
        assert "2 topics, profile cupel, scale of relevance inferred" in lines

    def test_markdown_latex_and_html_mark_the_best_values(self) -> None:
        assert "| dense | **0.6250** | **0.7500** |" in self.SCORES.to_markdown()
        assert r"| bm\_25 | 0.3750 | **0.7500** |" in self.SCORES.to_markdown()
        assert r"bm\_25 & 0.3750 & \textbf{0.7500} \\" in self.SCORES.to_latex()
        assert "<th" in self.SCORES._repr_html_()
        assert "<b>0.6250</b>" in self.SCORES._repr_html_()


class TestComparison:
    def test_comparison_equals_that_of_the_command_options(self) -> None:
        rng = np.random.default_rng(5)
        qrels = {f"t{i}": {f"d{j}": int(rng.integers(0, 2)) for j in range(10)} for i in range(20)}
        runs = {
            name: {
                topic: {d: float(rng.random() + gain * grade) for d, grade in grades.items()}
                for topic, grades in qrels.items()
            }
            for name, gain in (("base", 0.0), ("good", 5.0))
        }
        result = cupel.compare(cupel.evaluate(qrels, runs, "AP"), margin={"map": 0.01})
        [row] = [row for row in result.records() if row["aspect"] is None]
        assert (row["run"], row["baseline"], row["significant"]) == ("good", "base", True)
        assert row["margin_verdict"] == "better"
        assert "+" in repr(result)
        assert r"$\mathbf{1.0000}^{+}$" in result.to_latex()
        reverse = cupel.compare(cupel.evaluate(qrels, runs, "AP"), baseline="good")
        assert reverse.as_data()["baseline"] == "good"

    @pytest.mark.parametrize(
        ("options", "error", "words"),
        [
            ({"baseline": "x"}, KeyError, "not one of the runs"),
            ({"margin": -1}, ValueError, "a margin is a positive number"),
            ({"margin": {"RR": 0.1}}, ValueError, "RR, which is not compared"),
            ({"test": "chance"}, ValueError, "unknown test"),
        ],
    )
    def test_invalid_choice_is_an_error(
        self, options: dict[str, object], error: type[Exception], words: str
    ) -> None:
        with pytest.raises(error, match=words):
            cupel.compare(cupel.evaluate(QRELS, RUNS, "AP"), **options)  # type: ignore[arg-type]


class TestPublicNames:
    def test_type_checkers_see_the_public_names(self) -> None:
        tree = ast.parse(Path(cupel.__file__).read_text())
        [block] = [node for node in tree.body if isinstance(node, ast.If)]
        seen = {name.asname for node in block.body if isinstance(node, ast.ImportFrom) for name in node.names}
        assert seen == set(cupel.__all__)

    def test_every_public_name_has_a_docstring(self) -> None:
        assert all(inspect.getdoc(getattr(cupel, name)) for name in cupel.__all__)

    def test_public_names_are_listed(self) -> None:
        assert {"compare", "evaluate", "explain", "measures", "qrels", "runs", "Refused"} <= set(
            cupel.__all__
        )
        assert {declaration.name for declaration in all_declarations()} <= set(dir(cupel))
        with pytest.raises(AttributeError, match="no such measure"):
            cupel.nDGC  # noqa: B018

    @pytest.mark.parametrize(
        ("measure", "text"),
        [
            (lambda: cupel.nDCG @ 10, "nDCG@10"),
            (lambda: cupel.AP(rel=2) @ 100, "AP(rel=2)@100"),
            (lambda: cupel.IPrec @ 0.1, "IPrec@0.1"),
            (lambda: cupel.CAM(of=cupel.nDCG @ 10), "CAM(of=nDCG@10)"),
            (lambda: cupel.CAM(of=cupel.RR), "CAM(of=RR)"),
            (lambda: cupel.MRR, "RR"),
        ],
    )
    def test_measures_are_objects(self, measure: Callable[[], object], text: str) -> None:
        assert str(measure()) == text

    def test_explanation_has_the_requested_parts(self) -> None:
        tied = {"q1": {"d1": 1.0, "d2": 1.0}}
        explained = cupel.explain(QRELS, tied, "RR", about=["ties"])["RR"].as_data()
        assert (explained["ties"]["least"], explained["ties"]["greatest"]) == (0.25, 0.5)
        with pytest.raises(ValueError, match="explain takes one run"):
            cupel.explain(QRELS, RUNS, "RR")


def test_run_joined_with_other_qrels_is_refused() -> None:
    # The same documents are judged for topic 2, so that the positions of hits have a meaning there, too.
    ours, theirs = read_qrels(b"1 0 a 1\n1 0 b 0\n"), read_qrels(b"2 0 a 1\n2 0 b 0\n")
    joined = join_run(b"1 Q0 b 1 2 t\n1 Q0 a 2 1 t\n", ours)
    assert evaluate_rows(ours, joined, [parse("RR")]).values[parse("RR")].tolist() == [0.5]
    with pytest.raises(ValueError, match="joined with other qrels"):
        evaluate_rows(theirs, joined, [parse("RR")])
    with pytest.raises(ValueError, match="joined with different qrels"):
        Joined.stack([joined, join_run(b"2 Q0 b 1 2 t\n", theirs)])
    kept = np.array([True, False])
    assert evaluate_rows(ours.restricted_to(kept), joined, [parse("RR")])
