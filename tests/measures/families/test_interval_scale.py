"""Tests of the interval-scale measures and of scale types (Ferrante, Ferro and Losiouk 2019)."""

import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cupel_measures.catalogue.parser import all_declarations, parse
from cupel_measures.grammar.scale_types import OPERATIONS, scale_type
from cupel_measures.grammar.syntax import MeasureError
from cupel_measures.model import Aspect, Exact, Joined, Qrels
from cupel_measures.scoring.evaluator import check, evaluate, exact_values, has_exact_values
from support.data.small_collections import joined_of, qrels_of, ranked, scale, score_of

CLOSE = 6e-7  # values are printed to 6 decimals

Degrees = Sequence[int]


def collection(judged: Degrees, aspect: Aspect) -> Qrels:
    """Return one topic whose documents d00, d01, ... have these relevance degrees (indices of labels)."""
    return qrels_of({aspect: {"1": {f"d{place:02}": degree for place, degree in enumerate(judged)}}})


def run_of(degrees: Degrees, judged: Degrees) -> dict[str, float]:
    """Return a ranking of different documents with these relevance degrees.

    If `judged` has too few documents of degree 0, the ranking contains unjudged documents.
    """
    left = list(enumerate(judged))
    chosen = []
    for rank, degree in enumerate(degrees):
        place = next((pair for pair in left if pair[1] == degree), None)
        assert place or degree == 0
        if place:
            left.remove(place)
        chosen.append(f"d{place[0]:02}" if place else f"unjudged{rank}")
    return ranked(*chosen)


JUDGED = (2, 2, 1, 1, 1, 0, 0, 0, 0, 0)
PLAIN, TENS = scale(2), Aspect(name="relevance", labels=range(3), declared_gains=(0, 5, 10))


def score_topic(text: str, degrees: Degrees, judged: Degrees = JUDGED, aspect: Aspect = PLAIN) -> float:
    """Return the score on one topic of a ranking with these relevance degrees."""
    return score_of(text, {"1": run_of(degrees, judged)}, collection(judged, aspect))


class TestIntervalScaleExample:
    """Sections 4.1 to 4.3 of the paper, on r = (2,0,1,1,0) and judged degrees 2,2,1,1,1,0,0,0,0,0."""

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("gP@5", 0.400000),
            ("gR@5", 0.285714),
            ("gR(normalised=True)@5", 0.571429),
            ("P@5", 0.600000),
            ("R@5", 0.600000),
            ("F@5", 0.600000),
            ("AP@5", 0.483333),
            ("AP(rel=2)@5", 0.500000),
            ("gRBP@5", 0.716049),
            ("gRBP(p=0.8)@5", 0.315200),
            ("gRBP(p=.5,gains={0:0,1:1,2:3})@5", 0.562500),
            ("DCG(base=2)@5", 3.130930),
            ("DCG(base=10)@5", 4.000000),
            ("DCG(base=10,gains={1:5,2:10})@5", 20.000000),
            ("ERR(max_gain=scale)@5", 0.782552),
            ("SBTO@5", 8),
            ("RBTO@5", 174),
            ("RBTO(gains={1:1,2:3})@5", 255),
            ("P@7", 0.428571),
            ("F@7", 0.500000),
            ("SBTO@7", 10),
            ("RBTO@7", 1566),
        ],
    )
    def test_scores_equal_the_worked_values(self, text: str, expected: float) -> None:
        assert score_topic(text, (2, 0, 1, 1, 0)) == pytest.approx(expected, abs=CLOSE)

    def test_declared_gains_change_err_and_dcg(self) -> None:
        assert score_topic("ERR(max_gain=scale)@5", (2, 0, 1, 1, 0), aspect=TENS) == pytest.approx(
            0.999040, abs=CLOSE
        )
        assert score_topic("DCG(base=10)@5", (2, 0, 1, 1, 0), aspect=TENS) == pytest.approx(20.0, abs=CLOSE)
        # RBTO depends only on degrees.
        assert score_topic("RBTO@5", (2, 0, 1, 1, 0), aspect=TENS) == 174

    def test_dcg_discounts_ranks_beyond_the_base(self) -> None:
        long = (1, *[0] * 10, 2)
        assert score_topic("DCG(base=10)@12", long) == pytest.approx(2.853257, abs=CLOSE)
        assert score_topic("DCG(base=2)@12", long) == pytest.approx(1.557886, abs=CLOSE)

    def test_sbto_numbers_the_sets_of_two_documents(self) -> None:
        sets = [(0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2)]
        assert [score_topic("SBTO@2", degrees) for degrees in sets] == [0, 1, 2, 3, 4, 5]

    def test_scores_equal_the_example_of_the_paper(self) -> None:
        r, s = (1, 0, 2, 0, 1), (1, 1, 0, 0, 0)
        assert (score_topic("RBTO@5", r), score_topic("RBTO@5", s)) == (100, 108)
        both = [
            (score_topic(text, r), score_topic(text, s))
            for text in ("DCG(base=2)@5", "ERR(max_gain=scale)@5", "AP@5")
        ]
        times = (1, 1, 5)  # AP is printed times RB
        flat = [value * factor for pair, factor in zip(both, times, strict=True) for value in pair]
        assert flat == pytest.approx([2.692536, 2, 0.446875, 0.343750, 2.266667, 2], abs=CLOSE)
        for p, prefers in (("0.453397", False), ("0.453399", True)):
            assert (score_topic(f"gRBP(p={p})@5", r) > score_topic(f"gRBP(p={p})@5", s)) is prefers

    def test_dcg_without_base_is_the_numerator_of_ndcg(self) -> None:
        assert score_topic("DCG@5", (2, 0, 1, 1, 0)) == pytest.approx(2 + 1 / 2 + 1 / math.log2(5), abs=1e-15)
        assert score_topic("DCG", (2, 0, 1, 1, 0)) == score_topic("DCG@5", (2, 0, 1, 1, 0))


class TestIntervalScaleEdgeCases:
    def test_ranking_is_padded_or_cut_to_the_cutoff(self) -> None:
        for text in ("gP@5", "gR@5", "F@5", "gRBP@5", "SBTO@5", "RBTO@5"):
            assert (
                score_topic(text, (2, 0, 1))
                == score_topic(text, (2, 0, 1, 0, 0))
                == score_topic(text, (2, 0, 1, 0, 0, 1, 2))
            ), text

    def test_topic_without_gains_scores_0(self) -> None:
        flat = Aspect(name="relevance", labels=range(3), declared_gains=(0, 0, 0))
        for text in ("gP@3", "gR@3", "gR(normalised=True)@3", "gRBP", "DCG(base=10)"):
            assert score_topic(text, (2, 1), aspect=flat) == 0.0
            assert score_topic(text, (0, 0), (0, 0)) == 0.0

    def test_decreasing_gains_are_rejected(self) -> None:
        for text in ("gRBP(gains={1:3})", "RBTO(gains={1:3})@5"):
            with pytest.raises(
                MeasureError, match="label 2 has a smaller gain than label 1; gains must not decrease"
            ):
                check(collection(JUDGED, PLAIN), [parse(text)])
            assert score_topic(text.replace("3", "2"), (1, 2)) == score_topic(text.replace("3", "2"), (2, 1))

    def test_lowest_label_may_have_a_gain_but_unjudged_documents_have_none(self) -> None:
        aspect = Aspect(name="relevance", labels=(1, 2, 3))  # gains 1, 2, 3
        qrels = qrels_of({aspect: {"1": {"a": 0, "b": -1, "c": 2}}})
        run = {"1": ranked("a", "u", "b", "c")}
        assert score_of("gP@4", run, qrels) == pytest.approx((1 + 1 + 3) / 12)
        assert score_of("RBTO@4", run, qrels) == 2
        exact = exact_values(qrels, joined_of(run, qrels), [parse("gP@4")]).values[parse("gP@4")]
        assert exact == [Fraction(5, 12)]
        assert scale_type(parse("gP@4"), [aspect]) == "neither"

    def test_gains_of_word_labels_are_indices(self) -> None:
        words = Aspect(name="trust", labels=("no", "some", "full"))
        assert score_topic("RBTO@3", (2, 1, 0), aspect=words) == 21
        assert score_topic("RBTO(gains={2:3})@3", (2, 1, 0), aspect=words) == 30

    @pytest.mark.parametrize("text", ["RBTO@629", "RBTO(gains={2:1e90})@500", "RBTO@999999999999999999"])
    def test_score_beyond_floats_is_rejected(self, text: str) -> None:
        with pytest.raises(MeasureError, match=r"floats are limited to 10\^300; .*exact_values"):
            check(collection(JUDGED, PLAIN), [parse(text)])
        assert score_topic("RBTO@628", (2,)) == float(2 * 3**627)

    @pytest.mark.parametrize("text", ["RBTO@999999999999999999", "SBTO@999999999999999999"])
    def test_exact_values_beyond_the_limit_are_rejected(self, text: str) -> None:
        long = scale(1_000_000)
        qrels = collection((1,), long)
        with pytest.raises(MeasureError, match=r"exact values are limited to 10\^4000"):
            exact_values(qrels, Joined.empty(1), [parse(text)])
        with pytest.raises(MeasureError, match="use a smaller cutoff"):
            check(qrels, [parse(text)])

    def test_long_scales_and_deep_cutoffs_are_supported(self) -> None:
        assert score_topic("SBTO@999999999999999999", (2, 1)) == float(
            math.comb(10**18 + 1, 2) - math.comb(10**18, 2) + 1
        )
        assert score_topic("SBTO@3", (100, 1), (100, 1), scale(100)) == math.comb(102, 3) + math.comb(2, 2)


TINY = st.integers(1, 3), st.integers(1, 4)


def sequences(top: int, length: int) -> Iterator[tuple[int, ...]]:
    return itertools.product(range(top + 1), repeat=length)


def enumerate_values(text: str, top: int, length: int, aspect: Aspect | None = None) -> dict[Degrees, Exact]:
    """Return the exact value of every ranking of `length` documents with degrees from 0 to `top`.

    The topic has `length` judged documents of every degree.
    """
    judged = [degree for degree in range(top + 1) for _ in range(length)]
    qrels = collection(judged, aspect or scale(top))
    runs = list(sequences(top, length))
    joined = Joined.stack([joined_of({"1": run_of(run, judged)}, qrels) for run in runs])
    measure = parse(text)
    if has_exact_values(measure):
        return dict(zip(runs, exact_values(qrels, joined, [measure]).values[measure], strict=True))
    floats = evaluate(qrels, joined, [measure]).values[measure].tolist()
    # rounding merges values that differ by float errors only
    return dict(
        zip(runs, [Fraction(round(value, 12)).limit_denominator(10**12) for value in floats], strict=True)
    )


SMALL = [(1, 1), (1, 4), (2, 3), (3, 2), (3, 3)]


class TestIntervalScaleLaws:
    """RBTO and SBTO number the rankings in order; gRBP is RBTO divided by the number of rankings."""

    @pytest.mark.parametrize(("top", "length"), SMALL)
    def test_rbto_numbers_all_rankings_in_order(self, top: int, length: int) -> None:
        values = enumerate_values(f"RBTO@{length}", top, length)
        assert [values[run] for run in sorted(values)] == list(range((top + 1) ** length))

    @pytest.mark.parametrize(("top", "length"), SMALL)
    def test_sbto_numbers_all_sets_in_order(self, top: int, length: int) -> None:
        values = enumerate_values(f"SBTO@{length}", top, length)
        sets = {tuple(sorted(run, reverse=True)): value for run, value in values.items()}
        assert all(sets[tuple(sorted(run, reverse=True))] == value for run, value in values.items())
        assert [sets[degrees] for degrees in sorted(sets)] == list(range(math.comb(length + top, length)))

    @given(st.integers(1, 4), st.integers(1, 60), st.data())
    def test_sbto_equals_the_sum_of_the_paper(self, top: int, length: int, data: st.DataObject) -> None:
        degrees = data.draw(st.lists(st.integers(0, top), min_size=length, max_size=length))
        qrels = collection(degrees, scale(top))
        measure = parse(f"SBTO@{length}")
        [value] = exact_values(qrels, joined_of({"1": run_of(degrees, degrees)}, qrels), [measure]).values[
            measure
        ]
        falling = enumerate(sorted(degrees, reverse=True), 1)
        assert value == sum(math.comb(d + length - j, length - j + 1) for j, d in falling)

    @given(st.integers(1, 4), st.integers(1, 30), st.data())
    def test_grbp_is_rbto_divided_by_the_number_of_rankings(
        self, top: int, length: int, data: st.DataObject
    ) -> None:
        degrees = data.draw(st.lists(st.integers(0, top), min_size=length, max_size=length))
        qrels = collection(degrees, scale(top))
        measures = [parse(f"gRBP(p=1/{top + 1})@{length}"), parse(f"RBTO@{length}")]
        values = exact_values(qrels, joined_of({"1": run_of(degrees, degrees)}, qrels), measures).values
        [grbp], [rbto] = (values[measure] for measure in measures)
        assert grbp == Fraction(rbto) / (top + 1) ** length


def type_by_enumeration(values: dict[Degrees, Exact], *, by_set: bool) -> str:
    """Return the scale type of a measure with these values for all rankings.

    by_set: whether to compare the values with the order of sets of documents instead of that of rankings.
    """
    key: Any = (lambda run: tuple(sorted(run, reverse=True))) if by_set else tuple
    classes: dict[Degrees, set[Exact]] = {}
    for run, value in values.items():
        classes.setdefault(key(run), set()).add(value)
    if any(len(distinct) > 1 for distinct in classes.values()):
        return "neither"
    in_order = [min(classes[order_key]) for order_key in sorted(classes)]
    steps = {after - before for before, after in itertools.pairwise(in_order)}
    if min(steps) <= 0:
        return "neither"
    return "interval" if len(steps) == 1 else "ordinal"


def aspect_with_gains(*gains: float) -> Aspect:
    return Aspect(name="relevance", labels=range(len(gains)), declared_gains=gains)


SETS = ("P", "R", "F", "gP", "gR", "SBTO", "SetP", "SetR")

BY_RULE = {
    # (text, gains): scale type, and a length for which enumeration shows it
    ("P@5", (0, 1)): ("interval", 5),
    ("R@5", (0, 1)): ("interval", 5),
    ("F@5", (0, 1)): ("interval", 5),
    ("gP@5", (0, 1)): ("interval", 5),
    ("gP@4", (0, 1, 2)): ("neither", 4),
    ("gP@4", (0, 1, 3)): ("neither", 4),
    ("gR@5", (0, 1)): ("interval", 5),
    ("gR@4", (0, 1, 2)): ("neither", 4),
    ("gR(normalised=True)@4", (0, 1, 2)): ("neither", 4),
    ("SBTO@4", (0, 1, 2)): ("interval", 4),
    ("RBTO@5", (0, 1)): ("interval", 5),
    ("RBTO@4", (0, 1, 2)): ("interval", 4),
    ("RBTO(gains={1:2,2:4})@4", (0, 1, 2)): ("interval", 4),
    ("RBTO(gains={1:1,2:3})@4", (0, 1, 2)): ("neither", 4),
    ("RBP(p=1/2)@5", (0, 1)): ("interval", 5),
    ("RBP(p=1/5)@5", (0, 1)): ("ordinal", 5),
    ("RBP(p=4/5)@5", (0, 1)): ("neither", 5),
    ("RBP@5", (0, 1)): ("neither", 5),
    ("gRBP@5", (0, 1)): ("ordinal", 5),
    ("gRBP@4", (0, 1, 2)): ("interval", 4),
    ("gRBP@4", (0, 5, 10)): ("interval", 4),
    ("gRBP(gains={1:5,2:10})@4", (0, 1, 2)): ("interval", 4),
    ("gRBP(p=0.2)@4", (0, 1, 2)): ("ordinal", 4),
    ("gRBP(p=0.8)@4", (0, 1, 2)): ("neither", 4),
    ("gRBP(p=333/1000)@4", (0, 1, 2)): ("ordinal", 4),
    ("gRBP(p=0.34)@5", (0, 1, 2)): ("neither", 5),
    ("gRBP(p=1/4)@4", (0, 1, 3)): ("ordinal", 4),
    ("gRBP(p=1/4,gains={2:3})@4", (0, 1, 2)): ("ordinal", 4),
    ("gRBP@4", (0, 1, 3)): ("neither", 4),
    ("gRBP(p=1/4)@3", (0, 1, 2, 3)): ("interval", 3),
    ("AP@4", (0, 1)): ("neither", 4),
    ("nDCG@4", (0, 1)): ("neither", 4),
    ("DCG(base=2)@4", (0, 1)): ("neither", 4),
    ("DCG(base=10)@4", (0, 1, 2)): ("neither", 4),
    ("ERR(max_gain=scale)@5", (0, 1)): ("neither", 5),
    ("ERR(max_gain=scale)@4", (0, 1, 2)): ("neither", 4),
    ("RR", (0, 1)): ("neither", 4),
    ("Success@3", (0, 1)): ("neither", 3),
    ("Rprec", (0, 1)): ("neither", 4),
    ("SetR", (0, 1)): ("interval", 4),
}


class TestScaleTypes:
    """Scale types by the rules of the paper, sections 4.2 and 4.3, compared with enumeration."""

    @pytest.mark.parametrize(("text", "gains"), BY_RULE)
    def test_scale_type_equals_enumeration(self, text: str, gains: tuple[int, ...]) -> None:
        expected, length = BY_RULE[text, gains]
        aspect = aspect_with_gains(*gains)
        assert scale_type(parse(text), [aspect]) == expected
        values = enumerate_values(text, len(gains) - 1, length, aspect)
        assert type_by_enumeration(values, by_set=parse(text).declaration.name in SETS) == expected

    @given(
        st.fractions(Fraction(1, 20), Fraction(19, 20), max_denominator=20),
        st.lists(st.integers(1, 5), min_size=1, max_size=2),
    )
    @settings(max_examples=60)
    def test_scale_type_of_grbp_equals_enumeration(self, p: Fraction, steps: list[int]) -> None:
        gains = list(itertools.accumulate(steps, initial=0))
        rule_type = scale_type(parse("gRBP").having(p=p), [aspect_with_gains(*gains)])
        enumerated_type = type_by_enumeration(grbp_by_formula(p, gains, 6), by_set=False)
        # If p is above the bound, the tail of a short run can weigh less than a step of the gains.
        tail = sum(p**place for place in range(1, 6))
        tail_outweighs_step = tail * gains[-1] >= min(steps)
        assert enumerated_type == rule_type or (
            rule_type == "neither" and enumerated_type == "ordinal" and not tail_outweighs_step
        )

    def test_rational_p_is_compared_exactly_and_decimal_p_with_a_tolerance(self) -> None:
        types = {
            "gRBP(p=1/3)": "interval",
            "gRBP(p=3333333333/10000000001)": "ordinal",
            "gRBP(p=3333333334/10000000001)": "neither",
            "gRBP(p=0.3333333333)": "interval",
            "gRBP(p=0.33333)": "ordinal",
        }
        assert {text: scale_type(parse(text), [PLAIN]) for text in types} == types

    def test_rbto_with_weights_is_not_interval(self) -> None:
        assert scale_type(parse("RBTO(gains={2:3})@250"), [PLAIN]) == "neither"

    def test_labels_of_equal_gain_are_one_degree(self) -> None:
        junk = Aspect(name="relevance", labels=(-2, 0, 1, 2))
        assert scale_type(parse("gRBP"), [junk]) == "interval"
        assert scale_type(parse("gP@5"), [Aspect(name="relevance", labels=(-2, 0, 1))]) == "interval"
        assert scale_type(parse("gP@5"), [aspect_with_gains(0, 0)]) == "neither"

    def test_scale_type_depends_on_the_aspect(self) -> None:
        aspects = [PLAIN, scale(1, "trust")]
        assert scale_type(parse("gP@5"), aspects) == "neither"
        assert scale_type(parse("gP(aspect=trust)@5"), aspects) == "interval"
        with pytest.raises(MeasureError, match="the collection has no aspect 'x'"):
            scale_type(parse("gP(aspect=x)@5"), aspects)

    def test_toma_has_the_scale_type_of_its_inner_measure(self) -> None:
        aspects = [scale(1, "a"), scale(1, "b")]
        types = {
            "TOMA(of=P@5)": "interval",
            "TOMA(of=AP)": "neither",
            "TOMA(of=gRBP)": "interval",  # three classes
            "TOMA(of=gRBP,distance=chebyshev)": "ordinal",  # two
            "TOMA(of=gRBP,weighting=[5,1,0])": "neither",
            "TOMA(of=gRBP,label_set=observed)": "neither",
            "TOMA(of=SBTO@5,label_set=observed)": "interval",
            "CAM(of=P@5)": "neither",
            "MM(of=P@5)": "neither",
        }
        assert {text: scale_type(parse(text), aspects) for text in types} == types

    def test_every_declared_measure_has_a_scale_type(self) -> None:
        aspects = [PLAIN, Aspect(name="other", labels=range(3))]
        for declaration in all_declarations():
            inner = "(of=gRBP)" if "of" in declaration.parameters else ""
            other = "(understandability=other)" if "understandability" in declaration.parameters else ""
            at = declaration.at
            needs_control = at is not None and declaration.parameters[at].default is not None
            text = f"{declaration.name}{inner or other}" + ("@1" if needs_control else "")
            assert scale_type(parse(text), aspects) in OPERATIONS, text
        assert "mean" in OPERATIONS["interval"]
        assert "mean" not in OPERATIONS["ordinal"]


def grbp_by_formula(p: Fraction, gains: Sequence[int], length: int) -> dict[Degrees, Exact]:
    """Return gRBP of every run, by the formula."""
    return {
        run: (1 - p) * sum(p**place * gains[degree] for place, degree in enumerate(run)) / gains[-1]
        for run in sequences(len(gains) - 1, length)
    }
