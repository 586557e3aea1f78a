"""Tests of identities between measures on real runs, with exact values and N = 250."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from pathlib import Path

import pytest
from scipy import stats

from cupel_measures.catalogue.parser import parse
from cupel_measures.model import Exact, Qrels
from cupel_measures.reading.qrels_files import read_qrels
from cupel_measures.reading.run_files import join_run
from cupel_measures.scoring.evaluator import ExactScores, exact_values
from support.data.significance import Verdict, dense, kruskal_wallis, two_way_anova

EXAMPLE = [[30, 35, 60], [10, 20, 45], [55, 50, 80], [20, 30, 30], [40, 45, 75], [5, 25, 40]]
"""Scores times 100, one row per topic."""
SCORES = [[Fraction(value, 100) for value in row] for row in EXAMPLE]


class TestSignificanceExample:
    """Significance tests on a worked example."""

    def test_kruskal_wallis(self) -> None:
        found = kruskal_wallis(SCORES)
        assert (found.statistic, found.p, found.half_width) == pytest.approx(
            (5.513514, 0.063497, 7.197631), abs=1e-4
        )
        assert found.differing == frozenset()
        assert kruskal_wallis([[1, 1], [1, 1]]) == Verdict(0.0, 1.0, 0.0, frozenset())

    def test_two_way_anova(self) -> None:
        found = two_way_anova(SCORES)
        assert (found.statistic, found.p, found.half_width) == pytest.approx(
            (26.005587, 0.000109, 0.111602), abs=1e-4
        )
        assert found.differing == {(0, 2), (1, 2)}


@dataclass(frozen=True, eq=False)
class Runs:
    """The runs of a collection under one qrels file."""

    folder: Path
    file: str

    @cached_property
    def qrels(self) -> Qrels:
        return read_qrels(self.folder / "qrels" / self.file)

    @cached_property
    def scores(self) -> list[ExactScores]:
        """Those of every run, by every measure here."""
        degrees = len(self.qrels.aspects[0].labels)
        measures = [parse(text) for text in (*ANY, *(BINARY if degrees == 2 else ()))]
        measures.append(parse(f"gRBP(p=1/{degrees})@250"))
        paths = sorted((self.folder / "runs").rglob("*.gz"))
        return [exact_values(self.qrels, join_run(path, self.qrels), measures) for path in paths]

    def matrix(self, text: str) -> list[list[Exact]]:
        """A row per topic, a column per run."""
        measure = parse(text)
        columns = [one.values[measure] for one in self.scores]
        return [list(row) for row in zip(*columns, strict=True)]

    def means(self, text: str) -> list[Fraction]:
        return [one.aggregates()[parse(text)] for one in self.scores]


ANY = (
    *("gP@250", "gR@250", "gR(normalised=True)@250", "SBTO@250", "RBTO@250"),
    *("RBTO(gains={1:2,2:4,3:6})@250", "gRBP(p=0.2)@250", "gRBP(p=0.8)@250"),
)
BINARY = ("P@250", "R@250", "F@250", "RBP(p=1/2)@250", "RBP(p=0.2)@250", "AP@250")

CLEF_2014 = ("clef-ehealth-2014-task3", "qrels.clef2014.test.{}.txt.gz")
CLEF_2015 = ("clef-ehealth-2015-task2", "qrels.eng.clef2015.qtest.{}.txt.gz")
JUDGED_TWICE = [
    (folder, name.format(kind)) for kind in ("bin", "graded") for folder, name in (CLEF_2014, CLEF_2015)
]
TOUCHE = [("touche22-task2", f"touche-task2-2022-{aspect}.qrels") for aspect in ("relevance", "quality")]


@lru_cache
def runs_at(data: Path, folder: str, file: str) -> Runs:
    return Runs(data / folder, file)


@pytest.fixture(params=[*JUDGED_TWICE, *TOUCHE], ids=lambda one: one[1])
def runs(shared: Path, request: pytest.FixtureRequest) -> Runs:
    """Binary or graded."""
    return runs_at(shared / "data", *request.param)


@pytest.fixture(params=JUDGED_TWICE[:2], ids=lambda one: one[1])
def binary(shared: Path, request: pytest.FixtureRequest) -> Runs:
    return runs_at(shared / "data", *request.param)


def taus(one: Sequence[Sequence[Exact]], two: Sequence[Sequence[Exact]]) -> set[float]:
    """tau-b per topic where it is defined, to 12 decimals; scipy sees exact orders as small integers."""
    found = [stats.kendalltau(dense(a), dense(b)).statistic for a, b in zip(one, two, strict=True)]
    return {round(float(tau), 12) for tau in found if tau == tau}  # not a number where one is constant


def overall(runs: Runs, one: str, two: str) -> float:
    return round(float(stats.kendalltau(dense(runs.means(one)), dense(runs.means(two))).statistic), 12)


def degrees(runs: Runs) -> int:
    return len(runs.qrels.aspects[0].labels)


@pytest.mark.filterwarnings("ignore:An input array is constant")
class TestCorrelationIdentities:
    """Ferrante, Ferro and Losiouk 2019, Tables 1 and 2: tau is 1 with exact arithmetic."""

    def test_graded_precision_and_recall_agree_topic_by_topic(self, runs: Runs) -> None:
        assert taus(runs.matrix("gP@250"), runs.matrix("gR@250")) == {1.0}
        assert overall(runs, "gR@250", "gR(normalised=True)@250") == 1.0

    def test_rbp_of_the_scale_is_the_rank_based_order(self, runs: Runs) -> None:
        text = f"gRBP(p=1/{degrees(runs)})@250"
        assert taus(runs.matrix(text), runs.matrix("RBTO@250")) == {1.0}
        assert overall(runs, text, "RBTO@250") == 1.0

    def test_a_multiple_of_the_weights_is_the_rank_based_order(self, runs: Runs) -> None:
        multiple = "RBTO(gains={1:2,2:4,3:6})@250"
        assert taus(runs.matrix(multiple), runs.matrix("RBTO@250")) == {1.0}
        assert overall(runs, multiple, "RBTO@250") == 1.0

    def test_grbp_with_low_p_agrees_with_rbto_topic_by_topic(self, runs: Runs) -> None:
        """Printed as 0.9985 and 0.9996, from floating point."""
        assert taus(runs.matrix("gRBP(p=0.2)@250"), runs.matrix("RBTO@250")) == {1.0}

    def test_grbp_with_high_p_disagrees_with_rbto(self, runs: Runs) -> None:
        assert min(taus(runs.matrix("gRBP(p=0.8)@250"), runs.matrix("RBTO@250"))) < 1

    def test_binary_sets_agree_topic_by_topic_and_precision_overall(self, binary: Runs) -> None:
        for text in ("P@250", "R@250", "F@250"):
            assert taus(binary.matrix(text), binary.matrix("SBTO@250")) == {1.0}
        assert overall(binary, "P@250", "SBTO@250") == 1.0

    def test_binary_rbp_of_a_half_and_of_a_fifth(self, binary: Runs) -> None:
        assert taus(binary.matrix("RBP(p=1/2)@250"), binary.matrix("RBTO@250")) == {1.0}
        assert overall(binary, "RBP(p=1/2)@250", "RBTO@250") == 1.0
        assert taus(binary.matrix("RBP(p=0.2)@250"), binary.matrix("RBTO@250")) == {1.0}


class TestSignificanceIdentities:
    """Ferrante, Ferro and Losiouk 2019, Tables 3 and 4: the same pairs of systems differ."""

    def test_precision_and_the_set_based_order_find_the_same_pairs(self, binary: Runs) -> None:
        self.same(binary, "P@250", "SBTO@250")

    def test_rbp_of_a_half_and_the_rank_based_order_find_the_same_pairs(self, binary: Runs) -> None:
        self.same(binary, "RBP(p=1/2)@250", "RBTO@250")

    def test_rbp_of_the_scale_and_the_rank_based_order_find_the_same_pairs(self, runs: Runs) -> None:
        self.same(runs, f"gRBP(p=1/{degrees(runs)})@250", "RBTO@250")

    def test_grbp_with_low_p_finds_the_same_pairs_by_ranks(self, runs: Runs) -> None:
        assert kruskal_wallis(runs.matrix("gRBP(p=0.2)@250")) == kruskal_wallis(runs.matrix("RBTO@250"))

    def test_rbp_with_low_p_finds_the_same_pairs_by_ranks(self, binary: Runs) -> None:
        assert kruskal_wallis(binary.matrix("RBP(p=0.2)@250")) == kruskal_wallis(binary.matrix("RBTO@250"))

    def test_other_measures_find_other_pairs(self, runs: Runs) -> None:
        assert kruskal_wallis(runs.matrix("gRBP(p=0.8)@250")) != kruskal_wallis(runs.matrix("RBTO@250"))

    def same(self, runs: Runs, one: str, two: str) -> None:
        assert kruskal_wallis(runs.matrix(one)) == kruskal_wallis(runs.matrix(two))
        first, second = two_way_anova(runs.matrix(one)), two_way_anova(runs.matrix(two))
        assert first.differing == second.differing
        assert (first.statistic, first.p) == (second.statistic, second.p)
