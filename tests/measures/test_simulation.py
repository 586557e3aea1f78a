"""Tests of the simulation of H: means, seeds and options."""

import math

import pytest

from cupel_measures.simulation import NAMES, Cell, SimulationSettings, expectations, simulate

UNDERSTOOD = {50.0: 0.401294, 40.0: 0.5, 30.0: 0.598706}
PRINTED_RBP = {0.3: 0.26, 0.4: 0.36, 0.5: 0.44, 0.6: 0.54, 0.7: 0.63}
PRINTED_H = {  # Palotti et al., CIKM 2018, Table 1, at mu = 50, 40, 30
    0.3: (0.27, 0.31, 0.34),
    0.4: (0.33, 0.37, 0.40),
    0.5: (0.37, 0.42, 0.46),
    0.6: (0.41, 0.46, 0.50),
    0.7: (0.44, 0.49, 0.54),
}


def means(cells: list[Cell]) -> dict[tuple[float, float, str], float]:
    return {(cell.topicality, cell.mu, cell.measure): cell.mean for cell in cells}


@pytest.mark.parametrize("topicality", PRINTED_RBP)
@pytest.mark.parametrize("mu", UNDERSTOOD)
def test_expectations_equal_the_closed_forms(topicality: float, mu: float) -> None:
    c = 1 - 0.8**10
    expected = (topicality * c, topicality * UNDERSTOOD[mu] * c, UNDERSTOOD[mu] * c)
    assert expectations(SimulationSettings(), topicality, mu) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_means_of_a_thousand_runs_are_near_the_expected_means(seed: int) -> None:
    cells = simulate(SimulationSettings(), seed)
    assert len(cells) == 5 * 3 * len(NAMES)
    for cell in cells:
        if cell.expected is not None:
            assert abs(cell.mean - cell.expected) < 0.02, cell
        assert 0.07 < cell.deviation < 0.19, cell


def test_rbp_and_h_are_near_the_printed_table() -> None:
    """All 15 values of RBP in Table 1 agree, and H is near. The printed uRBP and RBP_u differ more."""
    found = means(simulate(SimulationSettings(), 5))
    for topicality, printed in PRINTED_RBP.items():
        for mu, h in zip((50.0, 40.0, 30.0), PRINTED_H[topicality], strict=True):
            assert abs(found[topicality, mu, "RBP"] - printed) < 0.025
            assert abs(found[topicality, mu, "H"] - h) < 0.03


def test_simulation_depends_on_the_seed_alone() -> None:
    settings = SimulationSettings(runs=50)
    assert simulate(settings, 7) == simulate(settings, 7)
    assert means(simulate(settings, 7)) != means(simulate(settings, 8))


def test_combinations_are_independent_of_each_other() -> None:
    full = simulate(SimulationSettings(runs=50), 7)
    first = simulate(SimulationSettings(runs=50, topicality=(0.3,), mu=(50.0,)), 7)
    assert full[: len(NAMES)] == first


def test_systems_without_randomness_have_known_scores() -> None:
    settings = SimulationSettings(topicality=(0.0, 1.0), mu=(0.0,), sigma=1e-9, runs=5)
    reach = 1 - 0.8**10
    never, always = simulate(settings, 0)[:4], simulate(settings, 0)[4:]
    assert [cell.mean for cell in never] == pytest.approx([0, 0, reach, 0])
    assert [cell.mean for cell in always] == pytest.approx([reach] * 4)
    assert all(cell.deviation == pytest.approx(0) for cell in never + always)


@pytest.mark.parametrize(
    "settings",
    [
        SimulationSettings(forcing="resample", runs=3000),
        SimulationSettings(forcing="resample", threshold=20, sigma=15, runs=3000),
        SimulationSettings(threshold=0, runs=3000),
        SimulationSettings(threshold=0, strict=True),
        SimulationSettings(threshold=100),
        SimulationSettings(threshold=100, strict=True, runs=3000),
        SimulationSettings(rho=0.5, depth=3, runs=3000),
    ],
    ids=str,
)
def test_expectations_hold_for_every_option(settings: SimulationSettings) -> None:
    for cell in simulate(settings, 11):
        if cell.expected is not None:
            spread = max(cell.deviation, 0.02) / math.sqrt(settings.runs)
            assert abs(cell.mean - cell.expected) < 5 * spread + 1e-12, cell


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"topicality": (1.5,)}, "topicality: give one or more probabilities, each from 0 to 1"),
        ({"topicality": ()}, "topicality"),
        ({"mu": (math.nan,)}, "mu: give one or more means, each from 0 to 100"),
        ({"sigma": 0.0}, "sigma: expected a number above 0"),
        ({"rho": 1.0}, "rho: expected a number between 0 and 1"),
        ({"threshold": math.nan}, "threshold: expected a label"),
        ({"runs": 0}, "runs, depth: expected numbers from 1"),
        ({"runs": 10**9}, "at most 10,000,000 documents"),
    ],
)
def test_invalid_settings_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SimulationSettings(**settings)  # type: ignore[arg-type]
