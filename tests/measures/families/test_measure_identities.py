"""Tests of identities between measures on real runs, with exact values and cutoff 250."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from cupel_measures.catalogue.parser import parse
from cupel_measures.comparing.all_pairs import anova, kruskal_wallis
from cupel_measures.comparing.rank_correlation import levels
from cupel_measures.model import Exact, Floats, Qrels
from cupel_measures.reading.qrels_files import read_qrels
from cupel_measures.reading.run_files import join_run
from cupel_measures.scoring.evaluator import ExactScores, exact_values


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
    values = [stats.kendalltau(levels(a), levels(b)).statistic for a, b in zip(first, second, strict=True)]
    return {round(float(tau), 12) for tau in values if tau == tau}  # tau is NaN if either is constant


def overall_tau(runs: Runs, first: str, second: str) -> float:
    """Return tau-b between the mean scores of two measures, to 12 decimals."""
    return round(float(stats.kendalltau(levels(runs.means(first)), levels(runs.means(second))).statistic), 12)


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
        """The paper prints tau = 0.9985 and 0.9996 instead of 1, because it computes with floats."""
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
    """Identities of Ferrante, Ferro and Losiouk 2019, Tables 3 and 4: equal significant pairs of runs."""

    def test_precision_and_the_set_based_order_find_the_same_pairs(self, binary: Runs) -> None:
        assert_same_pairs(binary, "P@250", "SBTO@250")

    def test_rbp_of_a_half_and_the_rank_based_order_find_the_same_pairs(self, binary: Runs) -> None:
        assert_same_pairs(binary, "RBP(p=1/2)@250", "RBTO@250")

    def test_rbp_of_the_scale_and_the_rank_based_order_find_the_same_pairs(self, runs: Runs) -> None:
        assert_same_pairs(runs, f"gRBP(p=1/{n_degrees(runs)})@250", "RBTO@250")

    def test_grbp_with_low_p_finds_the_same_pairs_by_ranks(self, runs: Runs) -> None:
        assert rank_test(runs, "gRBP(p=0.2)@250") == rank_test(runs, "RBTO@250")

    def test_rbp_with_low_p_finds_the_same_pairs_by_ranks(self, binary: Runs) -> None:
        assert rank_test(binary, "RBP(p=0.2)@250") == rank_test(binary, "RBTO@250")

    def test_other_measures_find_other_pairs(self, runs: Runs) -> None:
        assert rank_test(runs, "gRBP(p=0.8)@250") != rank_test(runs, "RBTO@250")


def rank_test(runs: Runs, text: str) -> tuple[object, ...]:
    """Return the statistic, p, width and verdicts of Kruskal-Wallis on the exact order of the scores."""
    scores = runs.matrix(text)
    order = levels([value for row in scores for value in row]).reshape(len(scores), -1)
    result = kruskal_wallis(order.astype(np.float64))
    return result.statistic, result.p, result.width, result.differs.tolist()


def assert_same_pairs(runs: Runs, first: str, second: str) -> None:
    """Compare the results of Kruskal-Wallis exactly, and those of the two-way ANOVA up to rounding."""
    assert rank_test(runs, first) == rank_test(runs, second)
    x, y = anova(scaled_matrix(runs, first)), anova(scaled_matrix(runs, second))
    assert x.differs.tolist() == y.differs.tolist()
    assert (x.statistic, x.p) == pytest.approx((y.statistic, y.p), rel=1e-9)


def scaled_matrix(runs: Runs, text: str) -> Floats:
    """Return the exact scores divided by their maximum, because some are too large for floats."""
    scores = [[Fraction(value) for value in row] for row in runs.matrix(text)]
    largest = max(map(max, scores))
    return np.array([[float(value / largest) for value in row] for row in scores])
