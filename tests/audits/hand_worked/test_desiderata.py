"""The whole report of `desiderata` on CAM of nDCG, with an independent scorer and independent predicates.

The instances are random lists, so the four runs of the collection do not affect the report. CAM is the mean
of two nDCG scores. An error in one aspect costs the same for all labels of the other aspect, so D4 fails on
every instance. nDCG is a ratio of gains and falls if labels are misplaced, so all other checks hold.
"""

from collections.abc import Callable, Sequence
from math import log2

import pytest

from cupel_audits.kinds.desiderata.desiderata_checks import CHECKS, Instance, LabelledList
from support.data.audit_subjects import audited, lists, subject_of
from support.data.expected_audits import generator_of
from support.data.expected_reports import assert_report
from support.data.small_collections import qrels_of, scale

QRELS = qrels_of({scale(9, "relevance"): {"1": {"a": 1}}, scale(9, "quality"): {"1": {"a": 1}}})
RUNS = lists({f"r{number}": {"1": ["a"]} for number in range(4)})
INSTANCES, LENGTH = 5, 4
MEASURE = "CAM(of=nDCG)"


def score(ranked: LabelledList) -> float:
    """Return the weighted mean of nDCG over both aspects; a gain is a label times its aspect's factor."""

    def dcg(gains: Sequence[int]) -> float:
        return sum(gain / log2(rank + 1) for rank, gain in enumerate(gains, 1))

    values = []
    for labels, factor in zip(ranked.labels, ranked.factors, strict=True):
        gains = [factor * label for label in labels]
        ideal = dcg(sorted(gains, reverse=True))
        values.append(dcg(gains) / ideal if ideal else 0.0)
    first, second = ranked.weights or (0.5, 0.5)
    return first * values[0] + second * values[1]


def is_sorted(instance: Instance) -> bool:
    return all(list(labels) == sorted(labels, reverse=True) for labels in instance[0].labels)


HOLDS: dict[str, Callable[[Instance, Sequence[float]], bool]] = {
    "D1": lambda _, s: s[1] < s[0] - 1e-12,
    "D2": lambda _, s: s[1] < s[0] - 1e-12,
    "D3": lambda _, s: s[1] < s[0] - 1e-12,
    "D4": lambda _, s: s[0] - s[1] > s[2] - s[3] + 1e-12,
    "D4_literal": lambda _, s: s[0] - s[1] > s[2] - s[3] + 1e-12,
    "D5": lambda _, s: 0 <= s[0] <= 1 and s[1] <= s[0] + 1e-12,
    "D6": lambda _, s: s[0] == pytest.approx(s[1], abs=1e-12),
    "D6_one_scale": lambda _, s: s[0] == pytest.approx(s[1], abs=1e-12),
    "D7": lambda instance, s: (s[0] > 1 - 1e-12) == is_sorted(instance),
    "D8": lambda _, s: abs(s[0] - s[1] - s[2] + s[3]) > 1e-12,
}


def draw(name: str) -> list[Instance]:
    """Draw the instances of a check; the number of the check selects the random generator."""
    rng = generator_of("desiderata", list(HOLDS).index(name))
    return [CHECKS[name].draw(rng, LENGTH) for _ in range(INSTANCES)]


def test_report_equals_an_independent_scorer() -> None:
    outcomes, counterexamples = [], []
    for name, holds in HOLDS.items():
        instances = draw(name)
        scores = [[score(ranked) for ranked in instance] for instance in instances]
        failing = [n for n in range(INSTANCES) if not holds(instances[n], scores[n])]
        assert len(failing) == (INSTANCES if name.startswith("D4") else 0), name
        shown = []
        if failing:
            shortest = min(failing, key=lambda n: len(instances[n][0].labels[0]))
            for ranked, value in zip(instances[shortest], scores[shortest], strict=True):
                first, second = (" ".join(map(str, labels)) for labels in ranked.labels)
                labels = f"relevance {first}, quality {second}"
                counterexamples.append((MEASURE, name, ranked.description, labels, value))
                shown.append(f"{ranked.description}: {labels}: {value:.6f}")
        share, outcome = 1 - len(failing) / INSTANCES, "fails" if failing else "no counterexample"
        text = "; ".join(shown) or None
        outcomes.append(
            (
                MEASURE,
                name,
                CHECKS[name].statement,
                outcome,
                share,
                len(failing),
                INSTANCES,
                text,
                100 - 100 * share,
            )
        )
    subject = subject_of(QRELS, RUNS, MEASURE)
    report = audited("desiderata", subject, {"instances": INSTANCES, "length": LENGTH})
    [measure] = {str(row["measure"]) for row in report.table("outcomes").records()}
    assert measure == "CAM(of=nDCG,aspects=[relevance,quality])"
    assert_report(
        report,
        verdict=[
            f"{measure} fails D4, D4_literal; no counterexample to D1, D2, D3, D5, D6, D6_one_scale, D7, D8 "
            "in 5 random instances of each."
        ],
        numbers={f"{name}({measure})": int(not name.startswith("D4")) for name in HOLDS},
        tables={
            "outcomes": (
                "measure check says outcome share failing instances counterexample percent",
                [(measure, *row[1:]) for row in outcomes],
            ),
            "counterexamples": (
                "measure check what labels score",
                [(measure, *row[1:]) for row in counterexamples],
            ),
        },
    )
    assert report.plots[0].title == f"{measure}: 2 failed checks"


def error_of(labels: Sequence[int]) -> tuple[int, int] | None:
    """Return the rank and the size of the only error in a list of different labels.

    The size is the number of higher labels below the rank. Return None if the list is sorted.
    """
    misplaced = [n for n in range(len(labels) - 1) if labels[n] < labels[n + 1]]
    if not misplaced:
        return None
    [place] = misplaced
    return place + 1, sum(label > labels[place] for label in labels[place:])


@pytest.mark.parametrize("name", ["D1", "D2", "D3", "D4", "D8"])
def test_instances_have_the_errors_that_the_check_describes(name: str) -> None:
    rng = generator_of("desiderata", 99)
    for _ in range(200):
        instance = CHECKS[name].draw(rng, 6)
        side = 0 if len(set(instance[0].labels[0])) > 1 and len(set(instance[0].labels[1])) == 1 else 1
        if name in ("D1", "D2", "D3"):
            assert all(len(set(ranked.labels[1 - side])) == 1 for ranked in instance)
            first, second = (error_of(ranked.labels[side]) for ranked in instance)
            assert second is not None
            if name == "D1":
                assert sorted(instance[0].labels[side]) == sorted(instance[1].labels[side])
                assert second[1] == (first[1] if first else 0) + 1
                assert first is None or first[0] == second[0]
            else:
                assert first is not None
                assert second[0] == first[0] - (name == "D2")
                if name == "D2":
                    assert first[1] == second[1]
                else:  # the label is lower, so more labels should precede it
                    assert second[1] > first[1]
                    assert instance[1].labels[side][first[0] - 1] < instance[0].labels[side][first[0] - 1]
        elif name == "D4":
            # The second and fourth lists have an error in one aspect. In the first two lists, the other
            # aspect has a higher label at one rank.
            errors = {error_of(ranked.labels[s]) for ranked in instance[1::2] for s in (0, 1)}
            assert any(errors)
            assert instance[0].labels != instance[2].labels
        else:
            assert [ranked.weights for ranked in instance] == [(0.8, 0.2)] * 2 + [(0.2, 0.8)] * 2
            assert instance[0].labels == instance[1].labels[::-1]


@pytest.mark.parametrize(
    ("name", "list_", "least", "room"), [("D1", 1, 2, 0), ("D2", 1, 3, 1), ("D3", 0, 3, 1), ("D8", 0, 2, 0)]
)
def test_draws_cover_all_errors(name: str, list_: int, least: int, room: int) -> None:
    """D2 moves an error one rank down, so a list needs a further rank; D3 gives it a lower label.

    room: the number of ranks that must follow an error.
    """
    rng = generator_of("desiderata", 5)
    errors, sides, others = set(), set(), set()
    for _ in range(2000):
        labels = CHECKS[name].draw(rng, 5)[list_].labels
        side = 0 if len(set(labels[0])) > 1 else 1
        errors.add((len(labels[side]), error_of(labels[side])))
        sides.add(side)
        others |= set(labels[1 - side])
    assert errors == {
        (number, (rank, size))
        for number in range(least, 6)
        for rank in range(1, number)
        for size in range(1, number - rank + 1 - room)
    }
    assert sides == ({0} if name == "D8" else {0, 1})
    assert others == set(range(1, 10))


def test_draws_cover_all_labels_and_factors() -> None:
    rng = generator_of("desiderata", 5)
    drawn = {name: [CHECKS[name].draw(rng, 3) for _ in range(1000)] for name in CHECKS}
    lengths = {name: {len(instance[0].labels[0]) for instance in drawn[name]} for name in CHECKS}
    assert lengths == {
        name: {1, 2, 3} if name == "D5" else {3} if name in ("D2", "D3") else {2, 3} for name in CHECKS
    }
    labels = {
        name: {label for instance in drawn[name] for side in instance[0].labels for label in side}
        for name in CHECKS
    }
    assert labels == {name: set(range(name == "D3", 10)) for name in CHECKS}
    factors = {instance[1].factors for instance in drawn["D6"]}
    assert factors == {(factor, factor) for factor in range(2, 6)}
    factors = {instance[1].factors for instance in drawn["D6_one_scale"]}
    assert factors == {(factor, 1) for factor in range(2, 6)} | {(1, factor) for factor in range(2, 6)}


def test_draws_follow_the_random_numbers_in_a_fixed_order() -> None:
    """A seed gives the same instances in every release."""
    drawn, plain = generator_of("desiderata", 8), generator_of("desiderata", 8)
    for _ in range(10):
        labels = [plain.integers(10, size=plain.integers(2, 4)).tolist()]
        labels.append([int(plain.integers(10)) for _ in labels[0]])
        factor, coin = plain.integers(2, 6), plain.integers(2)
        original, scaled = CHECKS["D6_one_scale"].draw(drawn, 3)
        assert [list(of_aspect) for of_aspect in original.labels] == labels
        assert scaled.factors == ((factor, 1) if coin == 0 else (1, factor))
    for _ in range(10):
        number = plain.integers(2, 4)
        ranked = [*(int(plain.integers(4)) for _ in range(number - 1)), int(plain.integers(1, 4))]
        ranked = (
            sorted(ranked, reverse=True) if plain.integers(2) == 1 else plain.permutation(ranked).tolist()
        )
        side, other = plain.integers(2), int(plain.integers(1, 10))
        [instance] = CHECKS["D7"].draw(drawn, 3)
        assert list(instance.labels[side]) == ranked
        assert instance.labels[1 - side] == (other,) * number


@pytest.mark.parametrize("name", ["D1", "D2", "D3"])
def test_both_aspects_have_errors_equally_often(name: str) -> None:
    """Of 1000 errors, 500 +- 4 standard errors (15.8) are in the first aspect."""
    rng = generator_of("desiderata", 6)
    drawn = [CHECKS[name].draw(rng, 5)[1].labels for _ in range(1000)]
    assert sum(len(set(first)) > 1 for first, _ in drawn) == pytest.approx(500, abs=4 * 15.8)
