"""Tests of identities between measures on real runs, with exact values and cutoff 250."""

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
"""Scores times 100: a row per topic, a column per system."""
SCORES = [[Fraction(value, 100) for value in row] for row in EXAMPLE]


class TestSignificanceExample:
    """Significance tests on a small example."""

    def test_kruskal_wallis_equals_recorded_values(self) -> None:
        verdict = kruskal_wallis(SCORES)
        assert (verdict.statistic, verdict.p, verdict.half_width) == pytest.approx(
            (5.513514, 0.063497, 7.197631), abs=1e-4
        )
        assert verdict.differing == frozenset()
        assert kruskal_wallis([[1, 1], [1, 1]]) == Verdict(0.0, 1.0, 0.0, frozenset())

    def test_two_way_anova_equals_recorded_values(self) -> None:
        verdict = two_way_anova(SCORES)
        assert (verdict.statistic, verdict.p, verdict.half_width) == pytest.approx(
            (26.005587, 0.000109, 0.111602), abs=1e-4
        )
        assert verdict.differing == {(0, 2), (1, 2)}


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
        """The exact scores of every run by every measure of this module."""
        degrees = len(self.qrels.aspects[0].labels)
        measures = [parse(text) for text in (*ALL_JUDGMENTS, *(BINARY_ONLY if degrees == 2 else ()))]
        measures.append(parse(f"gRBP(p=1/{degrees})@250"))
        paths = sorted((self.folder / "runs").rglob("*.gz"))
        return [exact_values(self.qrels, join_run(path, self.qrels), measures) for path in paths]

    def matrix(self, text: str) -> list[list[Exact]]:
        """A row per topic, a column per run."""
        measure = parse(text)
        columns = [scores.values[measure] for scores in self.scores]
        return [list(row) for row in zip(*columns, strict=True)]

    def means(self, text: str) -> list[Fraction]:
        return [scores.aggregates()[parse(text)] for scores in self.scores]


ALL_JUDGMENTS = (
    *("gP@250", "gR@250", "gR(normalised=True)@250", "SBTO@250", "RBTO@250"),
    *("RBTO(gains={1:2,2:4,3:6})@250", "gRBP(p=0.2)@250", "gRBP(p=0.8)@250"),
)
BINARY_ONLY = ("P@250", "R@250", "F@250", "RBP(p=1/2)@250", "RBP(p=0.2)@250", "AP@250")

CLEF_2014 = ("clef-ehealth-2014-task3", "qrels.clef2014.test.{}.txt.gz")
CLEF_2015 = ("clef-ehealth-2015-task2", "qrels.eng.clef2015.qtest.{}.txt.gz")
CLEF_QRELS = [
    (folder, name.format(kind)) for kind in ("bin", "graded") for folder, name in (CLEF_2014, CLEF_2015)
]
TOUCHE = [("touche22-task2", f"touche-task2-2022-{aspect}.qrels") for aspect in ("relevance", "quality")]


@lru_cache
def runs_at(data: Path, folder: str, file: str) -> Runs:
    return Runs(data / folder, file)


@pytest.fixture(params=[*CLEF_QRELS, *TOUCHE], ids=lambda param: param[1])
def runs(shared: Path, request: pytest.FixtureRequest) -> Runs:
    """Return real runs under binary or graded judgments."""
    return runs_at(shared / "data", *request.param)


@pytest.fixture(params=CLEF_QRELS[:2], ids=lambda param: param[1])
def binary(shared: Path, request: pytest.FixtureRequest) -> Runs:
    """Return real runs under binary judgments."""
    return runs_at(shared / "data", *request.param)


def taus(first: Sequence[Sequence[Exact]], second: Sequence[Sequence[Exact]]) -> set[float]:
    """Return the values of tau-b of all topics where it is defined, to 12 decimals.

    scipy gets dense ranks, because floats do not keep the exact order.
    """
    values = [stats.kendalltau(dense(a), dense(b)).statistic for a, b in zip(first, second, strict=True)]
    return {round(float(tau), 12) for tau in values if tau == tau}  # tau is NaN if either is constant


def overall_tau(runs: Runs, first: str, second: str) -> float:
    """Return tau-b between the mean scores of two measures, to 12 decimals."""
    return round(float(stats.kendalltau(dense(runs.means(first)), dense(runs.means(second))).statistic), 12)


def n_degrees(runs: Runs) -> int:
    return len(runs.qrels.aspects[0].labels)


@pytest.mark.filterwarnings("ignore:An input array is constant")
class TestCorrelationIdentities:
    """Identities of Ferrante, Ferro and Losiouk 2019, Tables 1 and 2: exact arithmetic gives tau = 1."""

    def test_gp_and_gr_order_systems_equally_per_topic(self, runs: Runs) -> None:
        assert taus(runs.matrix("gP@250"), runs.matrix("gR@250")) == {1.0}
        assert overall_tau(runs, "gR@250", "gR(normalised=True)@250") == 1.0

    def test_grbp_with_p_of_the_scale_orders_systems_as_rbto(self, runs: Runs) -> None:
        text = f"gRBP(p=1/{n_degrees(runs)})@250"
        assert taus(runs.matrix(text), runs.matrix("RBTO@250")) == {1.0}
        assert overall_tau(runs, text, "RBTO@250") == 1.0

    def test_rbto_with_multiplied_gains_orders_systems_as_rbto(self, runs: Runs) -> None:
        multiple = "RBTO(gains={1:2,2:4,3:6})@250"
        assert taus(runs.matrix(multiple), runs.matrix("RBTO@250")) == {1.0}
        assert overall_tau(runs, multiple, "RBTO@250") == 1.0

    def test_grbp_with_low_p_orders_systems_as_rbto_per_topic(self, runs: Runs) -> None:
        """The paper prints 0.9985 and 0.9996, because it computes with floats."""
        assert taus(runs.matrix("gRBP(p=0.2)@250"), runs.matrix("RBTO@250")) == {1.0}

    def test_grbp_with_high_p_orders_systems_differently_from_rbto(self, runs: Runs) -> None:
        assert min(taus(runs.matrix("gRBP(p=0.8)@250"), runs.matrix("RBTO@250"))) < 1

    def test_binary_set_measures_order_systems_as_sbto(self, binary: Runs) -> None:
        for text in ("P@250", "R@250", "F@250"):
            assert taus(binary.matrix(text), binary.matrix("SBTO@250")) == {1.0}
        assert overall_tau(binary, "P@250", "SBTO@250") == 1.0

    def test_binary_rbp_orders_systems_as_rbto(self, binary: Runs) -> None:
        assert taus(binary.matrix("RBP(p=1/2)@250"), binary.matrix("RBTO@250")) == {1.0}
        assert overall_tau(binary, "RBP(p=1/2)@250", "RBTO@250") == 1.0
        assert taus(binary.matrix("RBP(p=0.2)@250"), binary.matrix("RBTO@250")) == {1.0}


class TestSignificanceIdentities:
    """Identities of Ferrante, Ferro and Losiouk 2019, Tables 3 and 4: the same pairs differ significantly."""

    def test_precision_and_sbto_find_the_same_pairs(self, binary: Runs) -> None:
        self.assert_same_pairs(binary, "P@250", "SBTO@250")

    def test_rbp_with_p_one_half_and_rbto_find_the_same_pairs(self, binary: Runs) -> None:
        self.assert_same_pairs(binary, "RBP(p=1/2)@250", "RBTO@250")

    def test_grbp_with_p_of_the_scale_and_rbto_find_the_same_pairs(self, runs: Runs) -> None:
        self.assert_same_pairs(runs, f"gRBP(p=1/{n_degrees(runs)})@250", "RBTO@250")

    def test_kruskal_wallis_is_equal_for_grbp_with_low_p_and_rbto(self, runs: Runs) -> None:
        assert kruskal_wallis(runs.matrix("gRBP(p=0.2)@250")) == kruskal_wallis(runs.matrix("RBTO@250"))

    def test_kruskal_wallis_is_equal_for_rbp_with_low_p_and_rbto(self, binary: Runs) -> None:
        assert kruskal_wallis(binary.matrix("RBP(p=0.2)@250")) == kruskal_wallis(binary.matrix("RBTO@250"))

    def test_kruskal_wallis_differs_for_grbp_with_high_p_and_rbto(self, runs: Runs) -> None:
        assert kruskal_wallis(runs.matrix("gRBP(p=0.8)@250")) != kruskal_wallis(runs.matrix("RBTO@250"))

    def assert_same_pairs(self, runs: Runs, measure: str, other: str) -> None:
        assert kruskal_wallis(runs.matrix(measure)) == kruskal_wallis(runs.matrix(other))
        first, second = two_way_anova(runs.matrix(measure)), two_way_anova(runs.matrix(other))
        assert first.differing == second.differing
        assert (first.statistic, first.p) == (second.statistic, second.p)
