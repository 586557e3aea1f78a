"""Tests of exact scores: their sort keys and texts, their values, and identities that floats break."""

import sys
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cupel_measures.catalogue.parser import Measure, all_declarations, parse, parse_many
from cupel_measures.grammar.syntax import MeasureError
from cupel_measures.model import Aspect, Exact, Joined, Qrels
from cupel_measures.model.profiles import PROFILES
from cupel_measures.reading.qrels_files import read_qrels
from cupel_measures.reading.run_files import join_run
from cupel_measures.scoring.evaluator import ExactScores, aggregate, evaluate, exact_values, has_exact_values
from cupel_measures.scoring.exact import floats, sort_key, to_text
from support.data.small_collections import Scored, joined_of, qrels_of, ranked, scale

numbers = st.fractions() | st.integers() | st.integers(0, 3**250) | st.fractions(0, 1, max_denominator=10**40)


class TestExactNumbers:
    @given(numbers, numbers)
    @settings(max_examples=500)
    def test_sort_keys_order_as_the_numbers(self, x: Exact, y: Exact) -> None:
        assert (sort_key(x) < sort_key(y)) == (x < y)
        assert (sort_key(x) == sort_key(y)) == (x == y)

    @given(numbers, st.integers(1, 10**30))
    def test_sort_keys_distinguish_close_numbers(self, number: Exact, inverse: int) -> None:
        keys = [sort_key(number + step) for step in (Fraction(-1, inverse), 0, Fraction(1, inverse**3))]
        assert keys == sorted(set(keys))

    def test_sort_keys_order_very_long_numbers(self) -> None:
        long = [3**200_000 - 1, 3**200_000, 3**200_000 + 1]
        assert [sort_key(number) for number in long] == sorted(sort_key(number) for number in reversed(long))

    @given(numbers)
    def test_text_has_all_digits(self, number: Exact) -> None:
        assert to_text(number) == str(number)

    @pytest.mark.parametrize(
        "number", [3**20_000, -(3**20_000), Fraction(10**8000 + 1, 3**20_000), 10**4000], ids=lambda _: "long"
    )
    def test_text_of_a_very_long_number_has_all_digits(self, number: Exact) -> None:
        text, limit = to_text(number), sys.get_int_max_str_digits()
        sys.set_int_max_str_digits(0)
        try:
            assert text == str(number)
        finally:
            sys.set_int_max_str_digits(limit)

    def test_floats_are_rounded_to_nearest_and_never_infinite(self) -> None:
        assert floats([2**53 + 1, 2**53 + 3, Fraction(1, 3)]).tolist() == [2.0**53, 2.0**53 + 4, 1 / 3]
        with pytest.raises(OverflowError):
            floats([3**1000])


TOPICS = ("1", "2", "3")
GAINS = Aspect(name="relevance", labels=range(4), declared_gains=(0, 0.1, 0.25, 0.7))
PLAIN = scale(3)
documents = st.sampled_from([f"d{i}" for i in range(9)])
judgments = st.fixed_dictionaries(
    {topic: st.dictionaries(documents, st.integers(-1, 3), max_size=9) for topic in TOPICS}
)
rankings = st.lists(documents, unique=True, max_size=9).map(lambda order: ranked(*order))
runs = st.dictionaries(st.sampled_from(TOPICS), rankings)
EXACT = parse_many(
    "AP AP(rel=2)@3 P@4 R@4 F@4 RBP(p=1/3) RBP@3 gRBP@5 gRBP(p=0.8,gains={3:9}) gP@4 gR@4"
    " gR(normalised=True)@4 gP(judged_only=True)@4 SBTO@4 SBTO@60 RBTO@4 RBTO@60 RBTO(gains={2:5/2,3:3})@4"
)


def exactly(measures: Sequence[Measure], run: Scored, qrels: Qrels) -> ExactScores:
    return exact_values(qrels, joined_of(run, qrels), measures)


class TestExactValues:
    @given(judgments, runs, st.sampled_from([PLAIN, GAINS]), st.sampled_from(sorted(PROFILES)))
    @settings(max_examples=80)
    def test_floats_are_the_rounded_exact_values(
        self, judged: Mapping[str, Mapping[str, int]], run: Scored, aspect: Aspect, profile: str
    ) -> None:
        qrels = qrels_of({aspect: judged})
        joined = joined_of(run, qrels, profile=PROFILES[profile])
        rounded, values = evaluate(qrels, joined, EXACT).values, exact_values(qrels, joined, EXACT).values
        for measure in EXACT:
            expected = floats(values[measure])
            assert rounded[measure] == pytest.approx(expected, rel=1e-14, abs=0), measure
            if measure.declaration.name in ("P", "R", "F", "SBTO", "RBTO"):
                assert rounded[measure].tobytes() == expected.tobytes(), measure

    @given(judgments, st.lists(runs, min_size=2, max_size=4))
    @settings(max_examples=30)
    def test_exact_values_do_not_depend_on_the_batch(
        self, judged: Mapping[str, Mapping[str, int]], several: list[Scored]
    ) -> None:
        qrels = qrels_of({GAINS: judged})
        joined = [joined_of(run, qrels) for run in several]
        together = exact_values(qrels, Joined.stack(joined), EXACT)
        bits = evaluate(qrels, Joined.stack(joined), EXACT)
        for place, single in enumerate(joined):
            alone = exact_values(qrels, single, EXACT).values
            floating = evaluate(qrels, single, EXACT).values
            for measure in EXACT:
                assert list(together.of_run(place).values[measure]) == list(alone[measure])
                assert bits.of_run(place).values[measure].tobytes() == floating[measure].tobytes()

    @given(judgments, rankings, st.randoms(use_true_random=False))
    @settings(max_examples=40)
    def test_set_measures_do_not_depend_on_the_ranking(
        self, judged: Mapping[str, Mapping[str, int]], run: dict[str, float], draw: object
    ) -> None:
        qrels = qrels_of({GAINS: judged})
        texts = ("P@9", "R@9", "F@9", "gP@9", "gR@9", "gR(normalised=True)@9", "SBTO@9")
        measures = [parse(text) for text in texts]
        shuffled = dict(zip(draw.sample(list(run), len(run)), run.values(), strict=True))  # type: ignore[attr-defined]
        before, after = (
            evaluate(qrels, joined_of({"1": r}, qrels), measures).values for r in (run, shuffled)
        )
        assert all(before[m].tobytes() == after[m].tobytes() for m in measures)

    def test_values_below_float_precision_differ(self) -> None:
        qrels = qrels_of({scale(2): {"1": {"a": 2, "b": 1}, "2": {"a": 1}}})
        far = {"1": ranked("a", *(f"u{i}" for i in range(200)), "b")}
        near = {"1": ranked("a", *(f"u{i}" for i in range(100)), "b")}
        for text in ("RBTO@250", "gRBP@250"):
            measure = parse(text)
            assert evaluate(qrels, joined_of(far, qrels), [measure]).values[measure].tolist() == (
                evaluate(qrels, joined_of(near, qrels), [measure]).values[measure].tolist()
            )
            far_mean, near_mean = (
                exactly([measure], run, qrels).aggregates()[measure] for run in (far, near)
            )
            assert far_mean < near_mean
            assert sort_key(far_mean) < sort_key(near_mean)
        assert exactly([parse("RBTO@250")], far, qrels).aggregates()[parse("RBTO@250")] == Fraction(
            2 * 3**249 + 3**48, 2
        )

    def test_value_beyond_the_range_of_floats_is_exact(self) -> None:
        qrels = qrels_of({scale(2): {"1": {"a": 2}}})
        [value] = exactly([parse("RBTO@5000")], {"1": ranked("a")}, qrels).values[parse("RBTO@5000")]
        assert value == 2 * 3**4999
        with pytest.raises(MeasureError, match="or exact_values of the library"):
            evaluate(qrels, Joined.empty(1), [parse("RBTO@5000")])

    def test_decimal_parameters_are_exact(self) -> None:
        qrels = qrels_of({GAINS: {"1": {"a": 1, "b": 3}}})
        scores = exactly([parse("gP@2"), parse("gRBP(p=0.1)")], {"1": ranked("a", "b")}, qrels).values
        expected = [Fraction(8, 14), Fraction(9, 10) * Fraction(17, 70)]
        assert [value for values in scores.values() for value in values] == expected

    def test_toma_has_the_exact_values_of_its_inner_measure(self) -> None:
        qrels = qrels_of({scale(1, "a"): {"1": {"x": 1, "y": 1}}, scale(1, "b"): {"1": {"x": 1}}})
        [value] = exactly([parse("TOMA(of=RBTO@9)")], {"1": ranked("y", "x")}, qrels).values.values()
        assert list(value) == [3**8 + 2 * 3**7]

    def test_measure_without_exact_values_is_rejected(self) -> None:
        qrels = qrels_of({"1": {"a": 1}})
        for text in ("nDCG", "CAM(of=P@5)", "TOMA(of=nDCG)"):
            assert not has_exact_values(parse(text))
            with pytest.raises(MeasureError, match="has no exact values, only floats"):
                exactly([parse(text)], {}, qrels)
        assert {declaration.name for declaration in all_declarations() if declaration.exact is not None} == {
            *("P", "R", "F", "AP", "RBP", "gP", "gR", "gRBP", "SBTO", "RBTO", "TOMA")
        }

    def test_aggregates_of_several_runs_are_rejected(self) -> None:
        qrels = qrels_of({"1": {"a": 1}})
        with pytest.raises(ValueError, match="several runs"):
            exact_values(qrels, Joined.stack([Joined.empty(1)] * 2), [parse("P@1")]).aggregates()


Values = Sequence[Exact]


def dense_ranks(values: Values) -> list[int]:
    """Return dense ranks. Two measures with equal ranks have a tau of 1, or are both constant."""
    place = {value: rank for rank, value in enumerate(sorted(set(values)))}
    return [place[value] for value in values]


BINARY_SETS = ("P@{}", "R@{}", "F@{}", "SBTO@{}")


def assert_same_order(texts: Sequence[str], qrels: Qrels, joined: Sequence[Joined], *, overall: bool) -> None:
    """Assert that all measures order the systems equally on each topic. If `overall`, also by exact means."""
    measures = [parse(text) for text in texts]
    scores = [exact_values(qrels, run, measures) for run in joined]
    for topic in range(len(qrels.topics)):
        per_measure = [dense_ranks([exact.values[m][topic] for exact in scores]) for m in measures]
        assert all(ranks == per_measure[0] for ranks in per_measure), (texts, qrels.topics[topic])
    if overall:
        means = [dense_ranks([exact.aggregates()[m] for exact in scores]) for m in measures]
        assert all(ranks == means[0] for ranks in means), texts


def assert_identities(qrels: Qrels, joined: Sequence[Joined], depth: int) -> None:
    """Assert the identities of Ferrante et al. 2019, Tables 1 and 2, on binary or graded judgments."""
    [aspect] = qrels.aspects
    degrees = len(aspect.labels)
    multiple = ",".join(f"{label}:{2 * label}" for label in range(1, degrees))
    same = [
        ([f"gP@{depth}", f"gR@{depth}", f"gR(normalised=True)@{depth}"], False),
        ([f"gR@{depth}", f"gR(normalised=True)@{depth}"], True),
        ([f"gRBP(p=1/{degrees})@{depth}", f"RBTO@{depth}"], True),
        ([f"gRBP(p=0.2)@{depth}", f"RBTO@{depth}"], False),
        ([f"RBTO@{depth}", f"RBTO(gains={{{multiple}}})@{depth}"], True),
    ]
    if degrees == 2:
        same += [
            ([text.format(depth) for text in BINARY_SETS], False),
            ([f"P@{depth}", f"SBTO@{depth}"], True),
            ([f"RBP(p=1/2)@{depth}", f"RBTO@{depth}"], True),
            ([f"RBP(p=0.2)@{depth}", f"RBTO@{depth}"], False),
        ]
    for texts, overall in same:
        assert_same_order(texts, qrels, joined, overall=overall)


class TestIdentities:
    """Identities that hold on any data in exact arithmetic."""

    @given(judgments, st.lists(runs, min_size=2, max_size=6), st.integers(1, 12), st.sampled_from([1, 2, 3]))
    @settings(max_examples=80)
    def test_identities_hold_on_random_judgments_and_runs(
        self, judged: Mapping[str, Mapping[str, int]], several: list[Scored], depth: int, top: int
    ) -> None:
        kept = {
            topic: {d: min(grade, top) for d, grade in grades.items()} for topic, grades in judged.items()
        }
        qrels = qrels_of({scale(top): kept})
        assert_identities(qrels, [joined_of(run, qrels) for run in several], depth)

    @pytest.mark.parametrize(
        ("folder", "qrels_name", "degrees"),
        [
            ("clef-ehealth-2014-task3", "qrels.clef2014.test.bin.txt.gz", 2),
            ("clef-ehealth-2015-task2", "qrels.eng.clef2015.qtest.bin.txt.gz", 2),
            ("clef-ehealth-2014-task3", "qrels.clef2014.test.graded.txt.gz", 4),
            ("clef-ehealth-2015-task2", "qrels.eng.clef2015.qtest.graded.txt.gz", 3),
            ("touche22-task2", "touche-task2-2022-relevance.qrels", 3),
        ],
    )
    def test_identities_hold_on_real_runs(
        self, shared: Path, folder: str, qrels_name: str, degrees: int
    ) -> None:
        qrels = read_qrels(shared / "data" / folder / "qrels" / qrels_name)
        assert len(qrels.aspects[0].labels) == degrees
        paths = sorted((shared / "data" / folder / "runs").rglob("*.gz"))
        assert len(paths) > 20
        joined = [join_run(path, qrels) for path in paths]
        assert_identities(qrels, joined, 250)

    def test_floats_break_the_identities_on_real_runs(self, shared: Path) -> None:
        """Floats order runs differently from exact scores.

        Ferrante et al. (2019) print tau = 0.9985 and 0.9996 between gRBP(p=0.2) and RBTO instead of 1,
        because they compute with floats.
        """
        folder = shared / "data/clef-ehealth-2015-task2"
        qrels = read_qrels(folder / "qrels/qrels.eng.clef2015.qtest.graded.txt.gz")
        measure, place = parse("gRBP(p=0.2)@250"), parse("RBTO@250")
        joined = [join_run(path, qrels) for path in sorted((folder / "runs").rglob("*.gz"))]
        rounded = np.array([evaluate(qrels, run, [measure]).values[measure] for run in joined])
        exact = [exact_values(qrels, run, [place]).values[place] for run in joined]
        differing = sum(
            dense_ranks(rounded[:, topic].tolist()) != dense_ranks([run[topic] for run in exact])
            for topic in range(len(qrels.topics))
        )
        assert differing > 0


def test_float_aggregates_are_close_to_exact_aggregates() -> None:
    qrels = qrels_of({scale(2): {"1": {"a": 2}, "2": {"b": 1}}})
    run = {"1": ranked("a"), "2": ranked("x", "b")}
    measure = parse("RBTO@250")
    mean = exactly([measure], run, qrels).aggregates()[measure]
    values = evaluate(qrels, joined_of(run, qrels), [measure]).values[measure]
    assert aggregate(measure, values) == pytest.approx(float(mean), rel=1e-15)
