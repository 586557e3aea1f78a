"""Tests of comparison reports against scipy and hand-worked cases, in any order of the systems."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from cupel_measures.catalogue.parser import parse
from cupel_measures.comparing.all_pairs import randomised_hsd
from cupel_measures.comparing.compared_measures import AspectVariant, ComparedMeasure, compared_measure
from cupel_measures.comparing.comparison import ComparisonReport, compare
from cupel_measures.comparing.differences.comparison_choices import Choices
from cupel_measures.comparing.differences.difference_tests import LATER_STEP
from cupel_measures.comparing.differences.inverted_randomisation import randomisation_interval
from cupel_measures.comparing.differences.unjudged_gaps import UnjudgedGap
from cupel_measures.comparing.outcomes import CLOSE
from cupel_measures.comparing.paired_tests import TESTS, effect_size
from cupel_measures.comparing.resampling import EXACT, Interval, intervals, randomisation
from cupel_measures.comparing.simultaneous.max_t import max_t
from cupel_measures.comparing.t_intervals import t_intervals
from cupel_measures.comparing.topic_set_sizes import pooled_variance, smallest_difference
from cupel_measures.model import Floats, Qrels
from cupel_measures.reading.collection_files import parse_collection

NAMES = ("base", "more", "less", "same")
TOPICS = tuple(f"t{number}" for number in range(20))


def scores(seed: int = 1, topics: int = 20) -> Floats:
    """Return scores: a baseline, a better system, a worse one, and a copy of the baseline."""
    rng = np.random.default_rng(seed)
    base = rng.random(topics)
    more, less = base + 0.05 + 0.1 * rng.random(topics), base - 0.02 + 0.1 * rng.normal(size=topics)
    return np.stack([base, more, less, base], axis=1)


def report(
    values: Floats, *, names: Sequence[str] = NAMES, choices: Choices | None = None, **more: Floats
) -> ComparisonReport:
    """Compare the systems by the measure M and by other measures."""
    measures = [ComparedMeasure(text=name, scale="interval") for name in ("M", *more)]
    topics = TOPICS[: len(values)]
    return compare(names[: values.shape[1]], topics, {"M": values, **more}, measures, choices)


def qrels() -> Qrels:
    """Return judgments of relevance (0 to 2) and credibility (nc, pc, c)."""
    declared = (
        "aspects: {relevance: {labels: [0, 1, 2]}, credibility: {labels: [nc, pc, c]}}\n"
        "qrels: [{file: q.txt, columns: [topic, _, document, relevance, credibility]}]\n"
    )
    return parse_collection(declared, {"q.txt": b"1 0 a 2 pc\n1 0 b 1 c\n2 0 c 1 nc\n"}).qrels


def test_unjudged_documents_are_those_of_the_aspect_of_the_measure() -> None:
    for text, unjudged in {
        "AP": "Unjudged@10",
        "AP(aspect=credibility)": "Unjudged(aspect=credibility)@10",
        "CAM(of=P@5)": "Unjudged@5",
    }.items():
        assert compared_measure(parse(text), qrels()).unjudged == unjudged


class TestEachPair:
    @pytest.mark.parametrize("test", TESTS)
    def test_pair_equals_the_result_of_the_test(self, test: str) -> None:
        values = scores()
        result = report(values, choices=Choices(test=test, correction="none")).measures[0]
        for pair, place in zip(result.differences, (1, 2, 3), strict=True):
            assert pair.test == TESTS[test](values[:, place], values[:, 0])
            assert pair.effect == effect_size(values[:, place], values[:, 0])
            [interval] = t_intervals((values[:, place] - values[:, 0])[:, None])
            if place == 3:  # a copy of the baseline
                interval = Interval(0.0, None, None, "the differences have no variance")
            assert pair.difference == interval

    def test_p_of_the_t_test_is_corrected_by_holm_over_measures_and_pairs(self) -> None:
        first, second = scores(1), scores(2)
        choices = Choices(test="t", correction="holm")
        result = report(first[:, :3], N=second[:, :3], choices=choices)
        p = [stats.ttest_rel(m[:, place], m[:, 0]).pvalue for m in (first, second) for place in (1, 2)]
        by_hand, largest = [0.0] * 4, 0.0
        for number, place in enumerate(np.argsort(p)):
            largest = max(largest, min(1.0, p[place] * (4 - number)))
            by_hand[place] = largest
        pairs = [pair for measure in result.measures for pair in measure.differences]
        assert result.tests == 4
        assert [pair.corrected_p for pair in pairs] == pytest.approx(by_hand, rel=1e-12)
        assert [pair.significant for pair in pairs] == [value <= 0.05 for value in by_hand]

    def test_undefined_p_counts_in_the_family_and_is_not_significant(self) -> None:
        result = report(scores(), choices=Choices(test="t")).measures[0].differences
        twin = result[2]
        assert (twin.test.p, twin.corrected_p, twin.significant) == (None, None, False)
        assert result[0].test.p is not None
        assert result[0].corrected_p == pytest.approx(3 * result[0].test.p)

    def test_p_without_correction_is_unchanged(self) -> None:
        result = report(scores(), choices=Choices(correction="none")).measures[0].differences
        assert [pair.corrected_p for pair in result] == [pair.test.p for pair in result]

    def test_pair_lists_topics_with_the_largest_differences(self) -> None:
        values = np.array([[0.5, 0.5], [0.1, 0.7], [0.9, 0.2], [0.3, 0.3 + 1e-16], [0.2, 0.3]])
        [pair] = report(values).measures[0].differences
        assert pair.topics == (2, 2, 1)
        assert [row.topic for row in pair.largest_differences] == ["t2", "t1", "t4"]
        assert [row.difference for row in pair.largest_differences] == pytest.approx([-0.7, 0.6, 0.1])
        assert pair.difference.value == pytest.approx(0.0)

    def test_all_pairs_are_compared_in_their_order(self) -> None:
        result = report(scores(), choices=Choices(all_pairs=True))
        assert result.pairs == ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))
        assert result.tests == 6


class TestEachMeasure:
    def test_means_are_correctly_rounded(self) -> None:
        values = scores()
        result = report(values).measures[0].means
        assert [mean.value for mean in result] == [math.fsum(column) / 20 for column in values.T]
        assert result[1].low is not None
        assert result[1].low < values[:, 1].mean() < (result[1].high or 0)

    def test_detectable_difference_uses_the_pooled_variance(self) -> None:
        values = scores()
        variance = pooled_variance(values)
        assert variance is not None
        expected = smallest_difference(variance, 20, alpha=0.01)
        assert report(values, choices=Choices(alpha=0.01)).measures[0].detectable == pytest.approx(expected)

    def test_groups_equal_randomised_hsd(self) -> None:
        values = scores()
        result = report(values).measures[0].groups
        hsd = randomised_hsd(values[:, [0, 2, 1, 3]])  # in the order of names
        apart = {
            frozenset((("base", "less", "more", "same")[a], ("base", "less", "more", "same")[b]))
            for a, b, differs in zip(hsd.first, hsd.second, hsd.differs, strict=True)
            if differs
        }
        for i, name in enumerate(NAMES):
            for j, other in enumerate(NAMES[:i]):
                assert bool(set(result[i]) & set(result[j])) == (frozenset((name, other)) not in apart)
        assert result[1] == (0,)  # the best mean is in the first group
        assert apart

    def test_two_systems_have_no_groups_nor_orders(self) -> None:
        result = report(scores()[:, :2], N=scores(2)[:, :2])
        assert (result.measures[0].groups, result.measures[0].groups_undefined, result.orders) == (
            (),
            None,
            (),
        )

    def test_orders_are_compared_by_tau_b(self) -> None:
        first, second = scores(1), scores(2)[:, [1, 0, 3, 2]]
        [result] = report(first, N=second).orders
        assert result.overall.value == pytest.approx(
            stats.kendalltau(first.mean(axis=0), second.mean(axis=0))[0]
        )
        taus = [stats.kendalltau(x, y)[0] for x, y in zip(first, second, strict=True)]
        assert result.by_topic.value == pytest.approx(np.mean(taus))

    def test_geometric_mean_is_compared_by_logarithms(self) -> None:
        requests = [compared_measure(parse("GMAP"), qrels())]
        values = {
            text: np.array([[0.5, 0.25], [0.1, 0.2]]) for request in requests for text in request.required
        }
        report = compare(["a", "b"], ["1", "2"], values, requests)
        result, [apart, _] = report.measures[0], report.aspects
        assert result.means[0].value == pytest.approx(math.log(0.05) / 2)
        assert result.differences[0].difference.value == pytest.approx(0.0, abs=1e-12)
        assert apart.differences == (result.differences[0].difference,)
        assert result.warnings[-1] == "compared by the mean of the logarithms of its per-topic values"


class TestIndependence:
    def test_results_do_not_depend_on_the_order_of_systems(self) -> None:
        values, other = scores(3), scores(4)
        order = [0, 3, 1, 2]
        first = report(values, N=other)
        second = report(values[:, order], names=[NAMES[place] for place in order], N=other[:, order])
        for measure, again in zip(first.measures, second.measures, strict=True):
            assert [measure.means[place] for place in order] == list(again.means)
            assert [measure.groups[place] for place in order] == list(again.groups)
            assert measure.detectable == again.detectable
            moved = [replace(pair, second=order.index(pair.second)) for pair in measure.differences]
            assert sorted(moved, key=lambda pair: pair.second) == list(again.differences)
        assert first.orders == second.orders

    def test_results_do_not_depend_on_the_order_of_measures(self) -> None:
        values, other = scores(3), scores(4)
        requests = [ComparedMeasure(text="M", scale="interval"), ComparedMeasure(text="N", scale="interval")]
        matrices = {"M": values, "N": other}
        first, second = (compare(NAMES, TOPICS, matrices, order) for order in (requests, requests[::-1]))
        assert first.measures[0].differences == second.measures[1].differences
        assert first.measures[1].groups == second.measures[0].groups

    def test_only_the_correction_depends_on_other_systems(self) -> None:
        values = scores()
        alone, together = report(values[:, :2]).measures[0], report(values).measures[0]
        first, second = alone.differences[0], together.differences[0]
        assert first.test == second.test
        assert first.difference.value == second.difference.value
        assert first.largest_differences == second.largest_differences
        wide, narrow = second.difference, first.difference
        assert None not in (wide.low, wide.high, narrow.low, narrow.high)
        assert wide.low < narrow.low < narrow.high < wide.high  # type: ignore[operator]  # simultaneous

    def test_random_results_depend_on_the_seed_only(self) -> None:
        first, again, other = (report(scores(), choices=Choices(seed=seed)) for seed in (7, 7, 8))
        assert first.measures[0].differences == again.measures[0].differences
        assert first.measures[0].differences != other.measures[0].differences


@pytest.mark.filterwarnings("error")
class TestDegenerate:
    @pytest.mark.parametrize("test", TESTS)
    def test_one_topic_gives_undefined_results(self, test: str) -> None:
        result = report(np.array([[0.25, 0.5, 0.75]]), choices=Choices(test=test))
        measure = result.measures[0]
        assert measure.means[1].value == 0.5
        assert measure.means[1].undefined == "there is only one topic"
        assert measure.groups_undefined == "there is only one topic"
        assert measure.detectable is None
        for pair in measure.differences:
            assert pair.difference.undefined == "there is only one topic"
            assert pair.effect.undefined == "the differences have no variance"
            assert pair.test.p is None or pair.test.p == 1.0
            assert not pair.significant

    @pytest.mark.parametrize("test", TESTS)
    def test_equal_and_constant_scores_do_not_differ(self, test: str) -> None:
        for values in (np.full((5, 3), 0.1), np.repeat(scores(topics=5)[:, :1], 3, axis=1)):
            result = report(values, N=values, choices=Choices(test=test, all_pairs=True))
            for pair in result.measures[0].differences:
                assert pair.difference == Interval(0.0, None, None, "the differences have no variance")
                assert (pair.test.p is None) == (pair.test.undefined is not None)
                assert pair.test.p in (None, 1.0)
                assert pair.topics == (0, 5, 0)
                assert pair.largest_differences == ()
            assert result.measures[0].groups == ((0,), (0,), (0,))
            assert (
                result.orders[0].overall.undefined
                == "all systems score the same under one of the two measures"
            )

    @pytest.mark.parametrize("test", TESTS)
    @pytest.mark.parametrize("bad", [math.nan, math.inf, 1e200])
    def test_nan_scores_give_undefined_results(self, test: str, bad: float) -> None:
        values = scores()
        values[4, 1] = bad
        measure = report(values, choices=Choices(test=test)).measures[0]
        assert (measure.means[1].value, measure.differences[0].difference.value) == (None, None)
        assert measure.differences[0].test.undefined
        assert measure.differences[0].topics is None
        assert measure.groups_undefined
        assert measure.detectable is None
        clean = report(scores(), choices=Choices(test=test)).measures[0]
        assert measure.differences[1].difference == clean.differences[1].difference
        assert measure.differences[1].test == clean.differences[1].test

    @pytest.mark.parametrize(
        ("test", "topics", "is_warned"), [("max-t", 24, True), ("max-t", 25, False), ("hsd", 24, False)]
    )
    def test_max_t_on_few_topics_warns_about_skewed_scores(
        self, test: str, topics: int, is_warned: bool
    ) -> None:
        names = [str(topic) for topic in range(topics)]
        measures = [ComparedMeasure(text="M", scale="interval")]
        choices = Choices(test=test, all_pairs=True, permutations=99)
        result = compare([*NAMES], names, {"M": scores(topics=topics)}, measures, choices)
        assert any("strongly skewed scores" in warning for warning in result.warnings) == is_warned

    def test_too_few_topics_for_significance_have_a_warning(self) -> None:
        [warning] = report(scores(topics=4)[:, :2]).warnings
        assert "with 4 topics p of the randomisation test is at least 0.125" in warning
        assert report(scores(topics=8)[:, :2]).warnings == ()
        # 2 / 2^6 = 0.03
        alone = report(scores(topics=6)[:, :2], choices=Choices(test="sign", correction="none"))
        assert not any("no difference can be" in warning for warning in alone.warnings)
        exact = report(scores(topics=6)[:, :2], choices=Choices(test="sign", correction="none", alpha=2**-5))
        assert not any("no difference can be" in warning for warning in exact.warnings)
        several = report(scores(topics=8), choices=Choices(all_pairs=True, test="sign"))
        # 2 / 2^8 = 0.0078, and six tests
        assert not any("no difference can be" in warning for warning in several.warnings)
        warning = report(scores(topics=7), choices=Choices(all_pairs=True, test="sign")).warnings[0]
        assert warning.endswith(
            "no difference can be significant at 0.05 after Holm's correction over 6 tests"
        )

    @pytest.mark.parametrize(("alpha", "confidence"), [(0.05, None), (0.05, 0.8), (0.02, 0.9)])
    def test_max_t_finds_nothing_with_too_few_topics(self, alpha: float, confidence: float | None) -> None:
        values = scores(topics=5) + np.array([0.0, 10.0, 20.0, 0.0])
        choices = Choices(all_pairs=True, alpha=alpha, confidence=confidence)
        result = report(values, choices=choices)
        assert not any(pair.significant for pair in result.measures[0].differences)
        assert min(pair.corrected_p or 0 for pair in result.measures[0].differences) == 0.0625
        assert result.warnings[0].startswith("with 5 topics p of the max-T test is at least 0.0625, so no")

    def test_wrong_requests_are_refused(self) -> None:
        with pytest.raises(ValueError, match="at least two systems"):
            report(scores()[:, :1])
        with pytest.raises(ValueError, match="with different names"):
            report(scores(), names=["a", "a", "b", "c"])
        with pytest.raises(ValueError, match="unknown test 'z'; choose one of randomisation"):
            Choices(test="z")
        with pytest.raises(ValueError, match="benjamini-hochberg, none"):
            Choices(correction="bonferroni")
        with pytest.raises(ValueError, match="alpha must be between 0 and 1"):
            Choices(alpha=1.0)
        with pytest.raises(ValueError, match="expected scores of shape"):
            compare(["a", "b"], ["1"], {"M": scores()}, [ComparedMeasure(text="M", scale="interval")])


class TestMeasureSelection:
    """Measures by aspect, scale types and warnings of a requested measure."""

    def test_single_aspect_measure_is_compared_under_each_aspect(self) -> None:
        result = compared_measure(parse("nDCG(aspect=credibility)@5"), qrels())
        assert result.variants == (
            AspectVariant("nDCG@5", "relevance", "nDCG@5"),
            AspectVariant("nDCG@5", "credibility", "nDCG(aspect=credibility)@5"),
        )
        assert result.unjudged == "Unjudged(aspect=credibility)@5"

    def test_combining_measure_is_compared_by_its_components(self) -> None:
        result = compared_measure(parse("TOMA(of=nDCG@5)"), qrels())
        assert result.variants == compared_measure(parse("nDCG@5"), qrels()).variants
        assert result.unjudged == "Unjudged@5"
        apart = compared_measure(parse("CAM(of={relevance:AP,credibility:P@3})"), qrels())
        assert [variant.measure for variant in apart.variants] == ["AP", "P(aspect=credibility)@3"]
        assert apart.unjudged == "Unjudged@10"
        assert compared_measure(parse("NWCS"), qrels()).variants == ()

    def test_unsupported_aspect_is_left_out_with_the_reason(self) -> None:
        declared = (
            "aspects: {a: {labels: [0, 1]}, b: {labels: [0, 1, 2, 3]}}\nqrels: [{file: q.txt, aspect: a}]\n"
        )
        judged = parse_collection(declared, {"q.txt": b"1 0 d 1\n"}).qrels
        result = compared_measure(parse("ERR(max_gain=1)@5"), judged)
        assert [variant.aspect for variant in result.variants] == ["a"]
        assert "not compared under b: ERR(max_gain=1,aspect=b)@5: max_gain=1 is below 3" in result.notes[0]

    def test_scale_type_is_reported_and_checked(self) -> None:
        for text, warned in (("nDCG@5", True), ("P@5", False), ("SBTO@5", False), ("gRBP(p=1/9)", True)):
            requests = [compared_measure(parse(text), qrels())]
            values = {text_: np.random.default_rng(1).random((6, 2)) for text_ in requests[0].required}
            result = compare(["a", "b"], TOPICS[:6], values, requests).measures[0]
            assert (
                any("the randomisation test needs an interval scale" in it for it in result.warnings)
                == warned
            )
            signs = compare(["a", "b"], TOPICS[:6], values, requests, Choices(test="sign")).measures[0]
            assert [it for it in signs.warnings if "test" in it] == []

    def test_runs_with_different_judged_shares_have_a_warning(self) -> None:
        requests = [ComparedMeasure(text="M", scale="interval", unjudged="Unjudged@10")]
        shares = np.array([[0.0, 0.1, 0.3], [0.1, 0.2, 0.5]])
        result = compare(
            ["a", "b", "c"], ["1", "2"], {"M": scores()[:2, :3], "Unjudged@10": shares}, requests
        )
        assert result.unjudged == {"Unjudged@10": pytest.approx((0.05, 0.15, 0.4))}
        assert result.unjudged_gaps == (UnjudgedGap("Unjudged@10", 2, 0, ("M",)),)
        # b has 0.1 more than a, which is not above UNJUDGED_GAP. c has no gap if it scores higher or is tied.
        for shifts, gaps in (
            ([0, 0, 1], ()),
            ([0, -1, 0], result.unjudged_gaps),
            ([0, 0, None], ()),
        ):
            columns = [
                scores()[:2, 0 if shift is None else i] + (shift or 0) for i, shift in enumerate(shifts)
            ]
            values = {"M": np.stack(columns, axis=1), "Unjudged@10": shares}
            assert compare(["a", "b", "c"], ["1", "2"], values, requests).unjudged_gaps == gaps

    def test_differences_by_aspect_are_reported_once(self) -> None:
        requests = [compared_measure(parse(text), qrels()) for text in ("nDCG@5", "TOMA(of=nDCG@5)")]
        values = {
            text: np.random.default_rng(len(text)).random((6, 2))
            for request in requests
            for text in request.required
        }
        result = compare(["a", "b"], TOPICS[:6], values, requests)
        assert [difference.variant.aspect for difference in result.aspects] == ["relevance", "credibility"]
        [difference] = result.aspects[1].differences
        under = values["nDCG(aspect=credibility)@5"]
        assert difference == t_intervals((under[:, 1] - under[:, 0])[:, None])[0]


class TestIntervals:
    @pytest.mark.sampled(every=2)
    @pytest.mark.parametrize("test", ["t", "randomisation", "max-t", "hsd"])
    @pytest.mark.parametrize("correction", ["holm", "benjamini-hochberg", "none"])
    @pytest.mark.parametrize("topics", [4, 9, 18])
    def test_interval_excludes_zero_exactly_if_the_difference_is_significant(
        self, test: str, correction: str, topics: int
    ) -> None:
        is_paired = test in TESTS
        if not is_paired and correction != "holm":
            return
        choices = Choices(
            test=test, correction=correction if is_paired else None, all_pairs=True, permutations=999
        )
        names, seen = ["T" + str(topic) for topic in range(topics)], set()
        for seed in range(25):
            rng = np.random.default_rng(seed)
            values = np.round(rng.normal(size=(topics, 5)) + np.linspace(0, 2, 5) * rng.random(), 1)
            result = compare(
                [*"abcde"], names, {"M": values}, [ComparedMeasure(text="M", scale="interval")], choices
            )
            for pair in result.measures[0].differences:
                low, high = pair.difference.low, pair.difference.high
                if low is None or high is None or pair.test.undefined:
                    is_later = pair.difference.undefined == LATER_STEP
                    assert pair.significant == is_later == (pair.effect.undefined == LATER_STEP)
                    assert not is_later or pair.effect.value is not None
                    continue
                assert (low > 0 or high < 0) == pair.significant
                if pair.effect.interval is not None:
                    assert (pair.effect.interval[0] > 0 or pair.effect.interval[1] < 0) == pair.significant
                seen.add(pair.significant)
        assert topics < 9 or seen == {True, False}

    @pytest.mark.parametrize("test", ["max-t", "t", "randomisation"])
    def test_difference_that_only_a_later_step_finds_has_no_interval(self, test: str) -> None:
        values = np.random.default_rng(2).normal(size=(20, 4)) + np.array([0, 0.7, 2, 4])
        result = report(values, names=[*"abcd"], choices=Choices(test=test, all_pairs=True, permutations=999))
        pair = result.measures[0].differences[0]
        assert pair.significant
        assert pair.difference == Interval(pair.difference.value, None, None, LATER_STEP)
        assert (pair.effect.interval, pair.effect.undefined) == (None, LATER_STEP)
        expected = effect_size(values[:, 1], values[:, 0]).value
        assert pair.effect.value == expected
        assert all(other.difference.undefined is None for other in result.measures[0].differences[1:])
        assert not result.interval_warnings

    def test_intervals_of_means_that_contradict_the_sign_test_are_reported_apart(self) -> None:
        # The sign test finds 11 topics against 1 (p = 26 / 4096); the outlier makes the t interval hold 0.
        values = np.array([[0.0, 0.1]] * 11 + [[5.0, 0.0]])
        result = report(values, names=["a", "b"], choices=Choices(test="sign"))
        assert result.interval_warnings == (
            "1 of 1 intervals contradict the test, because the sign test compares signs, not means",
        )
        assert not any("contradict" in warning for warning in result.warnings)
        assert not report(values, names=["a", "b"], choices=Choices(test="t")).interval_warnings

    @pytest.mark.parametrize("topics", [9, EXACT])  # with up to EXACT topics, all signs are assigned
    def test_inverted_randomisation_interval_holds_what_is_not_rejected(self, topics: int) -> None:
        differences = np.random.default_rng(2).normal(0.5, 1, topics)
        low, high = randomisation_interval(differences, level=0.1, flips=99, seed=0)
        for bound, inside in ((low, 1e-6), (high, -1e-6)):
            assert (randomisation(differences - bound - inside, np.zeros(topics)).p or 0) > 0.1
            assert (randomisation(differences - bound + inside, np.zeros(topics)).p or 0) <= 0.1

    def test_inverted_randomisation_interval_equals_hand_worked_subset_means(self) -> None:
        # Of 16 assignments, two leave all signs equal. The other 7 pairs split the topics in two sets, whose
        # larger means are 0.6, 0.45, 0.4, 0.37, 0.35, 0.33 and 0.3, and smaller means are 0.1, 0.15, 0.2,
        # 0.2, 0.25, 0.27 and 0.3. At level 0.25, 4 assignments may be as extreme: two and the next pair.
        differences = np.array([0.1, 0.2, 0.3, 0.6])
        low, high = randomisation_interval(differences, level=0.25, flips=99, seed=0)
        assert low == pytest.approx(0.15 - CLOSE, abs=1e-14)
        assert high == pytest.approx(0.45 + CLOSE, abs=1e-14)

    def test_interval_of_the_effect_has_the_level_of_the_interval_of_the_mean(self) -> None:
        values = scores(topics=20)
        pair = report(values, choices=Choices(all_pairs=True)).measures[0].differences[0]
        differences = values[:, 1] - values[:, 0]
        assert pair.difference.low is not None
        t = (differences.mean() - pair.difference.low) / stats.sem(differences)
        level = 1 - 2 * stats.t.sf(t, 19)
        assert pair.effect.interval == pytest.approx(
            effect_size(values[:, 1], values[:, 0], confidence=level).interval
        )

    def test_all_pairs_use_max_t_by_default(self) -> None:
        values = scores()
        result = report(values, choices=Choices(all_pairs=True))
        expected = max_t(values)
        assert result.choices.test_name == "max-t"
        assert result.tests == 6
        differences = result.measures[0].differences
        assert [pair.corrected_p for pair in differences] == np.asarray(expected.pair_p).tolist()
        bounds = [pair.difference.low for pair in differences if pair.difference.undefined is None]
        assert bounds == pytest.approx(np.delete(-expected.intervals[1], 2))  # the third pair is identical
        assert result.measures[0].best_set == tuple(np.flatnonzero(expected.in_best_set).tolist())

    @pytest.mark.parametrize(("equal", "is_reported"), [(20, True), (15, False)])
    def test_bca_intervals_of_pairs_that_rarely_differ_have_a_caution(
        self, equal: int, is_reported: bool
    ) -> None:
        values = np.zeros((30, 2))
        values[equal:, 1] = np.linspace(0.1, 0.9, 30 - equal)
        names = [f"t{topic}" for topic in range(30)]
        measures = [ComparedMeasure(text="M", scale="interval")]
        result = compare(["a", "b"], names, {"M": values}, measures, Choices(interval="bca"))
        assert (
            result.warnings
            == (
                "BCa intervals may be too narrow, because 1 pair differs on fewer than half of the topics; t "
                "intervals are safer",
            )
            * is_reported
        )

    def test_bca_intervals_are_an_option_with_a_caution(self) -> None:
        values = scores()[:, :2]
        result = report(values, choices=Choices(interval="bca"))
        assert (
            result.measures[0].differences[0].difference
            == intervals((values[:, 1] - values[:, 0])[:, None])[0]
        )
        assert any("BCa intervals may be too narrow" in warning for warning in result.warnings)
        names = [str(topic) for topic in range(25)]
        measures = [ComparedMeasure(text="M", scale="interval")]
        enough = {"M": scores(topics=25)[:, :2]}
        result = compare(NAMES[:2], names, enough, measures, Choices(interval="bca"))
        assert not any("BCa intervals may be" in warning for warning in result.warnings)

    def test_simultaneous_test_with_a_correction_is_refused(self) -> None:
        with pytest.raises(ValueError, match="the max-t test corrects p itself"):
            Choices(all_pairs=True, correction="holm")
        with pytest.raises(ValueError, match="permutations must be at least 1"):
            Choices(permutations=0)
        with pytest.raises(ValueError, match="unknown interval"):
            Choices(interval="percentile")  # type: ignore[arg-type]
