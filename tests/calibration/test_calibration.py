"""A small version of `make calibrate`, and checks of the page that it writes."""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from calibration import __main__ as calibrate
from calibration import page, pair_rates, rank_rates, real_matrices, simultaneous_rates
from calibration.promises import COVERAGE, ERROR, Promise, Rate, Row
from calibration.score_models import MEANS, NOISE, make_rng
from calibration.simultaneous_rates import Design, max_t_row
from cupel_measures import __version__
from cupel_measures.comparing.board_analysis import METHOD
from cupel_measures.comparing.simultaneous.max_t import max_t

CHANCE = 4
"""Standard errors that a small simulation may miss a promise by: about 1 in 30,000 rates."""
TRIALS = 250


def small_designs() -> Iterator[Design]:
    for design in simultaneous_rates.designs(TRIALS):
        is_shown = design.topics in (25, *simultaneous_rates.FEW_TOPICS)
        if is_shown and design.noise not in simultaneous_rates.SKEWED:
            trials = TRIALS if design.systems == 10 else 40
            yield Design(
                noise=design.noise,
                means=design.means,
                systems=design.systems,
                topics=design.topics,
                trials=trials,
            )


def with_25_topics(cases: list[tuple[str, str, int]]) -> list[tuple[str, str, int]]:
    return [case for case in cases if case[2] == 25]


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("design", list(small_designs()), ids=lambda design: "-".join(design.cells))
def test_max_t_tests_keep_their_promises(design: Design) -> None:
    row = max_t_row(design, seed=2)
    assert {name: rate.value for name, rate in row.rates.items() if not rate.is_kept(CHANCE)} == {}


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize(
    "case", with_25_topics(pair_rates.rejection_cases()), ids=lambda case: "-".join(case[:2])
)
def test_tests_of_one_pair_keep_their_promises(case: tuple[str, str, int]) -> None:
    row = pair_rates.rejection_row(case, 100, seed=2)
    assert row.outside or row.rates[pair_rates.REJECTED].is_kept(CHANCE)


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize(
    "case", with_25_topics(pair_rates.interval_cases()), ids=lambda case: "-".join(case[:2])
)
def test_intervals_of_one_difference_keep_their_promises(case: tuple[str, str, int]) -> None:
    row = pair_rates.interval_row(case, 100, seed=2)
    assert row.outside or row.rates[pair_rates.COVERED].is_kept(CHANCE)


def test_hsd_misses_its_promise_for_unequal_spreads_only() -> None:
    equal, unequal = (
        simultaneous_rates.hsd_row(
            Design(noise=noise, means="equal", systems=10, topics=25, trials=150), seed=2
        )
        for noise in ("normal", "unequal")
    )
    assert equal.rates[simultaneous_rates.FALSE_FINDING].is_kept(CHANCE)
    assert not unequal.rates[simultaneous_rates.FALSE_FINDING].is_kept(CHANCE)


def small_rank_designs() -> Iterator[Design]:
    for design in rank_rates.rank_designs(TRIALS):
        if design.topics == 25 and design.systems == 10:
            yield design


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("design", list(small_rank_designs()), ids=lambda design: "-".join(design.cells))
def test_rank_tests_keep_their_promises(design: Design) -> None:
    for row in rank_rates.rank_rows([design], seed=2):
        assert row.outside or row.rates[simultaneous_rates.FALSE_FINDING].is_kept(CHANCE), row.cells


def test_conover_misses_its_promise_where_other_systems_are_far_apart() -> None:
    design = Design(noise="normal", means="partial", systems=10, topics=25, trials=60)
    counts = rank_rates.false_findings(design, seed=2)
    rows = {test: rank_rates.rank_row(test, design, counts[test]) for test in ("nemenyi", "conover")}
    assert not rows["conover"].rates[simultaneous_rates.FALSE_FINDING].is_kept(CHANCE)
    assert rows["conover"].outside == rank_rates.RANKS_VARY
    assert rows["nemenyi"].rates[simultaneous_rates.FALSE_FINDING].is_kept(CHANCE)


def test_friedman_has_no_false_finding_where_means_differ() -> None:
    scores = np.random.default_rng(1).normal(size=(25, 3)) + np.array([0.0, 0.0, 3.0])
    assert list(rank_rates.rank_events(scores, np.array([0.0, 0.0, 3.0]))) == []
    expected = {"nemenyi", "aligned-ranks", "conover", "friedman", "friedman, aligned ranks"}
    assert set(rank_rates.rank_events(scores, np.zeros(3))) == expected


def test_false_finding_is_a_significant_difference_in_a_wrong_direction() -> None:
    scores = np.random.default_rng(1).normal(size=(25, 3)) + np.array([0.0, 0.0, 3.0])
    test = max_t(scores, replicates=99)
    assert test.differs.tolist() == [False, True, True]
    name = simultaneous_rates.FALSE_FINDING
    for means, is_false in (([0, 0, 3], False), ([0, 0, -3], True), ([0, 0, 0], True), ([0, 1, 3], False)):
        assert (name in simultaneous_rates.events(test, np.array(means, dtype=float))) is is_false


def test_events_of_covered_truth() -> None:
    scores = np.random.default_rng(1).normal(size=(25, 3)) + np.array([0.0, 0.0, 3.0])
    test = max_t(scores, replicates=99)
    others = {simultaneous_rates.INTERVALS, simultaneous_rates.RANKS, simultaneous_rates.BEST}
    assert set(simultaneous_rates.events(test, np.array([0.0, 0.0, 3.0]))) == others
    reversed_ranks = set(simultaneous_rates.events(test, np.array([3.0, 3.0, 0.0])))
    assert reversed_ranks == {simultaneous_rates.FALSE_FINDING}


@pytest.mark.parametrize("name", NOISE)
def test_noise_has_mean_0(name: str) -> None:
    noise = NOISE[name][0](make_rng(0, name), 40_000, 3)
    errors = noise.std(axis=0) / 200
    assert (np.abs(noise.mean(axis=0)) <= 4 * errors).all()


@pytest.mark.parametrize("name", MEANS)
def test_true_means_rise(name: str) -> None:
    means = MEANS[name][0](10)
    assert len(means) == 10
    assert (np.diff(means) >= 0).all()


def test_rate_is_compared_with_its_promise() -> None:
    # 0.05 + 2 * sqrt(0.05 * 0.95 / 400) = 0.0718; 0.95 - 0.0218 = 0.9282
    assert Rate(events=28, trials=400, promise=ERROR).is_kept()
    assert not Rate(events=29, trials=400, promise=ERROR).is_kept()
    assert Rate(events=372, trials=400, promise=COVERAGE).is_kept()
    assert not Rate(events=371, trials=400, promise=COVERAGE).is_kept()
    assert Rate(events=1, trials=100, promise=Promise(bound="at most", probability=0.5)).error == 0.05


def test_page_marks_missed_promises() -> None:
    rate = Rate(events=90, trials=1000, promise=ERROR)
    rows = [
        Row(cells=("t", "normal"), rates={"rejected": rate}, outside=outside) for outside in ("", "skewed")
    ]
    table = page.Table(title="Tests", text="Text.", headings=("test", "scores"), rows=rows)
    text = page.render([table], seed=3, trials=1000)
    assert "| t | normal | 0.090 **missed** | 0.0069 | skewed |" in text
    assert "| Tests | 2 | 1 | 1 |" in text
    assert "seed 3, 1,000\n" in text


def test_real_rows_are_none_without_shared_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CUPEL_SHARED", str(tmp_path))
    assert list(real_matrices.real_rows(1, 0)) == []


def test_neighbours_get_equal_means() -> None:
    scores = np.random.default_rng(0).random((30, 10))
    shifted = real_matrices.POPULATIONS["shifted within five neighbours"](scores)
    groups = real_matrices._neighbour_means(scores.mean(axis=0))
    assert sorted(np.unique(groups, return_counts=True)[1].tolist()) == [5, 5]
    assert groups.mean() == pytest.approx(scores.mean())
    assert shifted.mean(axis=0) == pytest.approx(groups)


def test_symmetric_residuals_keep_spreads_and_correlations() -> None:
    """The scores are skewed, such as those of bounded measures; only shifted differences stay skewed."""
    scores = np.random.default_rng(0).exponential(size=(40, 4)) * np.array([1.0, 1.0, 1.0, 5.0])
    symmetric, shifted = (
        real_matrices.POPULATIONS[name](scores) for name in ("symmetric residuals", "shifted")
    )
    assert np.cov(symmetric.T, bias=True) == pytest.approx(np.cov(scores.T, bias=True))
    assert np.abs(symmetric.mean(axis=0)).max() < 1e-12
    assert real_matrices.largest_skewness(symmetric) < 1e-9
    assert real_matrices.largest_skewness(shifted) > real_matrices.STRONG
    rows = [
        real_matrices.real_row("simulated", scores, name, 25, 60, seed=1)
        for name in ("symmetric residuals", "shifted")
    ]
    assert [row.outside for row in rows] == ["", real_matrices.OUTSIDE]
    assert rows[0].rates[simultaneous_rates.FALSE_FINDING].is_kept(CHANCE)


def test_largest_skewness_equals_worked_value() -> None:
    """The differences -1, -1 and 2 have the squares 6 / 3 = 2 and the cubes 6 / 3 = 2: 2 / 2^1.5."""
    assert real_matrices.largest_skewness(np.array([[-1.0, 0], [-1, 0], [2, 0]])) == pytest.approx(2**-0.5)
    assert real_matrices.largest_skewness(np.array([[3.0, 2.0], [2.0, 1.0]])) == 0


def test_symmetric_residuals_of_real_matrices_keep_the_error_rate(shared: Path) -> None:
    name, scores = next(real_matrices.matrices(shared / "data"))
    row = real_matrices.real_row(name, scores, "symmetric residuals", 25, 60, seed=1)
    assert row.rates[simultaneous_rates.FALSE_FINDING].is_kept(CHANCE)


class TestCommittedPage:
    """The page is that of this version; a sample of its rows is computed again."""

    @pytest.fixture
    def text(self, root: Path) -> str:
        return (root / "libs/measures/CALIBRATION.md").read_text()

    def test_page_names_this_version_and_method(self, text: str) -> None:
        assert f"cupel-measures {__version__},\nmethod {METHOD}." in text

    def test_page_has_all_cases(self, text: str) -> None:
        cases = [
            *pair_rates.rejection_cases(),
            *pair_rates.interval_cases(),
            *(design.cells for design in simultaneous_rates.designs(1)),
            *(design.cells for design in simultaneous_rates.hsd_designs(1)),
            *((test, *design.cells) for test, design in rank_rates.rank_cases(rank_rates.rank_designs(1))),
        ]
        shown = [tuple(line.split(" | ")) for line in re.findall(r"^\| (.* \| \d+) \| [01]\.\d", text, re.M)]
        assert shown == [tuple(map(str, case)) for case in cases]

    @pytest.mark.parametrize("case", [("randomisation", "normal", 25), ("randomisation", "sparse", 50)])
    def test_row_of_a_test_is_reproduced(self, text: str, case: tuple[str, str, int]) -> None:
        row = pair_rates.rejection_row(case, calibrate.TRIALS, calibrate.SEED)
        assert f"| {' | '.join(row.cells)} | {row.rates[pair_rates.REJECTED].value:.3f}" in text

    def test_rows_of_rank_tests_are_reproduced(self, text: str) -> None:
        [design] = [
            design
            for design in rank_rates.rank_designs(calibrate.TRIALS)
            if design.cells == ("normal", "partial", "10", "25")
        ]
        for row in rank_rates.rank_rows([design], calibrate.SEED):
            assert (
                f"| {' | '.join(row.cells)} | {row.rates[simultaneous_rates.FALSE_FINDING].value:.3f}" in text
            )

    def test_row_of_max_t_is_reproduced(self, text: str) -> None:
        row = max_t_row(simultaneous_rates.designs(calibrate.TRIALS)[0], calibrate.SEED)
        rates = [f"{rate.value:.3f}{'' if rate.is_kept() else ' **missed**'}" for rate in row.rates.values()]
        assert f"| {' | '.join([*row.cells, *rates])} |" in text
