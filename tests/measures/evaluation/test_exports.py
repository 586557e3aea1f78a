"""Tests of scores in the formats of other tools, from Python."""

import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

import cupel_measures as cupel

README = Path(__file__).parents[3] / "libs" / "measures" / "README.md"
QRELS = {"q1": {"d1": 2, "d3": 1}, "q2": {"d4": 1}}
RUNS = {"bm25": {"q1": {"d1": 3.0}, "q2": {"d4": 1.0}}, "dense": {"q1": {"d2": 0.9, "d3": 0.5}}}
SCORES = cupel.evaluate(QRELS, RUNS, "RR@10 nDCG@10 P@1")


class TestResults:
    def test_run_is_chosen_by_name(self) -> None:
        assert SCORES.to_beir("dense") == {
            "mrr": {"MRR@10": 0.25},
            "ndcg": {"NDCG@10": SCORES["dense"]["nDCG@10"]},
            "precision": {"P@1": 0.0},
        }
        assert 'key: "P@1"\n  value: "1.0"' in SCORES.to_tira("bm25")
        with pytest.raises(KeyError):
            SCORES.to_beir("splade")

    def test_run_may_be_omitted_only_if_there_is_one(self) -> None:
        for export in (SCORES.to_beir, SCORES.to_mteb, SCORES.to_tira):
            with pytest.raises(ValueError, match="describes one run; choose one of bm25, dense"):
                export()
        assert cupel.evaluate(QRELS, RUNS["bm25"], "P@1").to_beir() == {"precision": {"P@1": 1.0}}

    def test_task_and_split_of_mteb_are_set(self) -> None:
        result = SCORES.to_mteb("dense", task="MyTask", split="dev")
        assert result["task_name"] == "MyTask"
        [entry] = result["scores"]["dev"]
        assert entry["main_score"] == SCORES["dense"]["nDCG@10"]
        [other] = cupel.evaluate(QRELS, RUNS["dense"], "RR@10 P@1").to_mteb()["scores"]["test"]
        assert other["main_score"] == 0.25

    def test_measure_without_a_name_in_beir_is_an_error(self) -> None:
        scores = cupel.evaluate(QRELS, RUNS["dense"], "AP AP(rel=2)@10 P@1")
        for export in (scores.to_beir, scores.to_mteb):
            with pytest.raises(ValueError, match=re.escape("have no name for AP, AP(rel=2)@10; they have")):
                export()

    def test_quotes_and_backslashes_are_escaped_for_tira(self) -> None:
        qrels = {"relevance": QRELS, 'a"b\\c': QRELS}
        scores = cupel.evaluate(qrels, RUNS["bm25"], ["P@1", r"""P(aspect='a"b\\c')@1"""])
        [_, key] = re.findall(r'^  key: "(.*)"$', scores.to_tira(), re.M)
        assert re.sub(r"\\(.)", r"\1", key) == [*scores["run"]][1]


class MlflowStandIn(SimpleNamespace):
    """The parts of MLflow that the recipe uses, with its rule for names of metrics."""

    def __init__(self) -> None:
        super().__init__()
        self.logged: dict[str, dict[str, float]] = {}
        self.active: list[str] = []

    @contextmanager
    def start_run(self, *, run_name: str) -> Iterator[None]:
        self.active.append(run_name)
        yield
        self.active.pop()

    def log_metrics(self, metrics: Mapping[str, float]) -> None:
        for name in metrics:
            assert re.fullmatch(r"[/\w.\- ]*", name), f"MLflow refuses the name {name}"
        self.logged.setdefault(self.active[-1], {}).update(metrics)


def test_recipe_logs_the_scores_to_mlflow(monkeypatch: pytest.MonkeyPatch) -> None:
    [recipe] = re.findall(r"^```py\n(import re, mlflow\n.*?)^```", README.read_text(), re.M | re.S)
    mlflow = MlflowStandIn()
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)  # type: ignore[arg-type]
    exec(recipe, {"scores": cupel.evaluate(QRELS, RUNS, "nDCG@10 AP(rel=2)")})
    assert mlflow.logged["bm25"] == {"nDCG_10": SCORES["bm25"]["nDCG@10"], "AP_rel_2_": 0.5}
    assert [*mlflow.logged] == ["bm25", "dense"]
