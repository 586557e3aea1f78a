"""The simulation of H (spec 5.1): its means, its seed, its options."""

import math

import pytest

from cupel_measures.simulation import NAMES, Cell, SimulationSettings, expectations, simulate

UNDERSTOOD = {50.0: 0.401294, 40.0: 0.5, 30.0: 0.598706}
PRINTED_RBP = {0.3: 0.26, 0.4: 0.36, 0.5: 0.44, 0.6: 0.54, 0.7: 0.63}
PRINTED_H = {  # spec 10.6, at mu = 50, 40, 30
    0.3: (0.27, 0.31, 0.34),
    0.4: (0.33, 0.37, 0.40),
    0.5: (0.37, 0.42, 0.46),
    0.6: (0.41, 0.46, 0.50),
    0.7: (0.44, 0.49, 0.54),
}


def means(cells: list[Cell]) -> dict[tuple[float, float, str], float]:
    return {(one.topicality, one.mu, one.measure): one.mean for one in cells}


@pytest.mark.parametrize("topicality", PRINTED_RBP)
@pytest.mark.parametrize("mu", UNDERSTOOD)
def test_expectations_are_the_closed_forms(topicality: float, mu: float) -> None:
    c = 1 - 0.8**10
    expected = (topicality * c, topicality * UNDERSTOOD[mu] * c, UNDERSTOOD[mu] * c)
    assert expectations(SimulationSettings(), topicality, mu) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_a_thousand_runs_come_within_two_hundredths_of_the_expected_means(seed: int) -> None:
    cells = simulate(SimulationSettings(), seed)
    assert len(cells) == 5 * 3 * len(NAMES)
    for one in cells:
        if one.expected is not None:
            assert abs(one.mean - one.expected) < 0.02, one
        assert 0.07 < one.deviation < 0.19, one


def test_rbp_and_h_are_near_the_printed_table() -> None:
    """Spec 10.6: all 15 cells of RBP fit, and H comes near; printed uRBP and RBP_u drift (5.1)."""
    found = means(simulate(SimulationSettings(), 5))
    for topicality, printed in PRINTED_RBP.items():
        for mu, h in zip((50.0, 40.0, 30.0), PRINTED_H[topicality], strict=True):
            assert abs(found[topicality, mu, "RBP"] - printed) < 0.025
            assert abs(found[topicality, mu, "H"] - h) < 0.03


def test_the_same_seed_gives_the_same_bits_and_another_seed_others() -> None:
    settings = SimulationSettings(runs=50)
    assert simulate(settings, 7) == simulate(settings, 7)
    assert means(simulate(settings, 7)) != means(simulate(settings, 8))


def test_each_kind_of_system_is_drawn_by_itself() -> None:
    whole = simulate(SimulationSettings(runs=50), 7)
    first = simulate(SimulationSettings(runs=50, topicality=(0.3,), mu=(50.0,)), 7)
    assert whole[: len(NAMES)] == first


def test_certain_systems_have_certain_scores() -> None:
    settings = SimulationSettings(topicality=(0.0, 1.0), mu=(0.0,), sigma=1e-9, runs=5)
    reach = 1 - 0.8**10
    never, always = simulate(settings, 0)[:4], simulate(settings, 0)[4:]
    assert [one.mean for one in never] == pytest.approx([0, 0, reach, 0])
    assert [one.mean for one in always] == pytest.approx([reach] * 4)
    assert all(one.deviation == pytest.approx(0) for one in never + always)


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
    for one in simulate(settings, 11):
        if one.expected is not None:
            spread = max(one.deviation, 0.02) / math.sqrt(settings.runs)
            assert abs(one.mean - one.expected) < 5 * spread + 1e-12, one


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"topicality": (1.5,)}, "topicality: expected probabilities from 0 to 1"),
        ({"topicality": ()}, "topicality"),
        ({"mu": (math.nan,)}, "mu: expected means from 0 to 100"),
        ({"sigma": 0.0}, "sigma: expected a number above 0"),
        ({"rho": 1.0}, "rho: expected a number between 0 and 1"),
        ({"threshold": math.nan}, "threshold: expected a label"),
        ({"runs": 0}, "runs, depth: expected numbers from 1"),
        ({"runs": 10**9}, "at most 10,000,000 documents"),
    ],
)
def test_settings_that_can_not_be_are_refused(given: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        SimulationSettings(**given)  # type: ignore[arg-type]
