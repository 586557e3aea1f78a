"""Tests of explanations on small cases worked by hand; test_explaining_laws.py covers every measure."""

import json
import math
from typing import Any

import pytest

from cupel_measures.catalogue.parser import parse, parse_many
from cupel_measures.explaining import tie_orders
from cupel_measures.explaining.explained_parts import ABOUT
from cupel_measures.explaining.explanations import Explanation, explain
from cupel_measures.model import Aspect, LabelSet, Qrels
from cupel_measures.model.profiles import PROFILES
from support.data.small_collections import Scored, diverse, qrels_of, ranked, ranking_of, scale, scores_of

TIED = {"1": {"a": 2.0, "b": 1.0, "c": 1.0, "d": 1.0, "e": 0.0}}
"""A run with the order a; d, c, b; e, because tied ids are sorted in descending order."""


def part_of(text: str, run: Scored, qrels: Qrels, about: str, **options: Any) -> dict[str, Any]:
    """Return one part of the explanation of a measure, as data."""
    measure = parse(text)
    found = explain(qrels, ranking_of(run), [measure], about=[about], **options)
    data: dict[str, Any] = found[measure].as_data()[about]
    assert json.loads(json.dumps(data)) == data
    return data


class TestTies:
    """Values over all orders of tied documents."""

    def test_one_of_three_tied_documents_is_relevant(self) -> None:
        """The relevant document b has rank 2, 3 or 4 with equal probability; it is last by default."""
        data = part_of("AP", TIED, qrels_of({"1": {"b": 1, "e": 0}}), "ties")
        assert data["by_topic"]["least"] == data["by_topic"]["value"] == [1 / 4]
        assert data["greatest"] == 1 / 2
        assert data["expected"] == pytest.approx((1 / 2 + 1 / 3 + 1 / 4) / 3, rel=1e-12)
        assert (data["range_by"], data["expected_by"], data["topics"]) == ("exact", "closed form", 1)

    def test_two_of_three_tied_documents_are_relevant(self) -> None:
        """The relevant documents b and c have ranks 2 and 3, 2 and 4, or 3 and 4, equally likely."""
        data = part_of("AP", TIED, qrels_of({"1": {"b": 1, "c": 1}}), "ties")
        values = [(1 / 2 + 2 / 3) / 2, (1 / 2 + 2 / 4) / 2, (1 / 3 + 2 / 4) / 2]
        assert data["greatest"] == pytest.approx(max(values), rel=1e-12)
        assert data["least"] == pytest.approx(min(values), rel=1e-12)
        assert data["expected"] == pytest.approx(math.fsum(values) / 3, rel=1e-12)

    def test_mean_averages_independent_topics(self) -> None:
        run = {**TIED, "2": {"a": 1.0, "b": 1.0}, "3": {"a": 2.0, "b": 1.0}}
        data = part_of("RR", run, qrels_of({t: {"a": 0, "b": 1} for t in run}), "ties")
        assert data["by_topic"]["least"] == [1 / 4, 1 / 2, 1 / 2]
        assert data["by_topic"]["greatest"] == [1 / 2, 1, 1 / 2]
        assert data["by_topic"]["expected"] == pytest.approx([(1 / 2 + 1 / 3 + 1 / 4) / 3, 3 / 4, 1 / 2])
        assert data["least"] == pytest.approx((1 / 4 + 1 / 2 + 1 / 2) / 3)
        assert data["topics"] == 2

    def test_geometric_mean_is_expected_over_the_orders_of_all_topics(self) -> None:
        """AP is 1 or 1/2 on two topics, so the four geometric means are 1, sqrt(1/2) twice, and 1/2."""
        run = {t: {"a": 1.0, "b": 1.0} for t in "12"}
        data = part_of("GMAP", run, qrels_of({t: {"a": 1, "b": 0} for t in run}), "ties")
        assert data["expected"] == pytest.approx((1 + 2 * math.sqrt(1 / 2) + 1 / 2) / 4, rel=1e-12)
        assert (data["least"], data["greatest"]) == (pytest.approx(1 / 2), 1)
        assert (data["expected_by"], data["standard_error"]) == ("exact", None)

    def test_other_orders_can_bring_other_documents_above_the_cut(self) -> None:
        """At depth 2, the run is a, d. Other orders of the tied documents give a, b or a, c."""
        qrels = qrels_of({"1": {"b": 1, "c": 0}})
        for text in ("AP", "SetP"):
            data = part_of(text, TIED, qrels, "ties", depth=2)
            assert (data["least"], data["greatest"], data["value"]) == (0, 1 / 2, 0)
            assert data["expected"] == pytest.approx(1 / 6)

    def test_ties_below_the_cutoff_do_not_count(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """b and c are relevant to different subtopics, and have ranks 2 to 4 in any order."""
        monkeypatch.setattr(tie_orders, "SHUFFLES", 2)
        qrels = diverse({"1": {"a": {"s": 1}, "b": {"s": 1}, "c": {"t": 1}}})
        for text, method in (("alpha_nDCG@1", "exact"), ("alpha_nDCG@2", "sampled")):
            assert part_of(text, TIED, qrels, "ties")["range_by"] == method
        assert part_of("Unjudged@1", TIED, qrels_of({"1": {"b": 1}}), "ties")["range_by"] == "exact"

    def test_single_precision_ties_more(self) -> None:
        run = {"1": {"a": 1.0, "b": 1.0 + 1e-12}}
        qrels = qrels_of({"1": {"a": 1}})
        assert part_of("AP", run, qrels, "ties")["topics"] == 0
        old = part_of("AP", run, qrels, "ties", profile=PROFILES["trec_eval-9"])
        assert (old["least"], old["expected"], old["greatest"]) == (1 / 2, 3 / 4, 1)

    def test_aspects_with_conflicting_best_orders_have_bounds(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """a is best by one aspect and b by the other, so no order gives both aspects a P@1 of 1."""
        qrels = qrels_of({scale(1, "x"): {"1": {"a": 1, "b": 0}}, scale(1, "y"): {"1": {"a": 0, "b": 1}}})
        run = {"1": dict.fromkeys("abc", 1.0)}
        few = part_of("CAM(of=P@1)", run, qrels, "ties")
        assert (few["least"], few["greatest"], few["range_by"]) == (0, 1 / 2, "exact")
        monkeypatch.setattr(tie_orders, "SHUFFLES", 2)
        many = part_of("CAM(of=P@1)", run, qrels, "ties")
        assert (many["least"], many["greatest"], many["range_by"]) == (0, 1, "bounds")
        assert many["expected"] == few["expected"] == pytest.approx(1 / 3)
        assert part_of("NLRE", run, qrels, "ties")["range_by"] == "sampled"

    def test_shuffles_estimate_with_a_standard_error(self) -> None:
        """RBP is linear; with 4 relevant among 12 tied documents, each rank has an expected gain of 1/3."""
        qrels = qrels_of({"1": dict.fromkeys("abcd", 1)})
        data = part_of("RBP", {"1": dict.fromkeys("abcdefghijkl", 0.0)}, qrels, "ties")
        expected = (1 - 0.8**12) / 3
        assert (data["expected_by"], data["range_by"], data["shuffles"]) == ("sampled", "exact", 1000)
        assert 0 < data["standard_error"] < 0.01
        assert abs(data["expected"] - expected) < 4 * data["standard_error"]
        assert data["greatest"] == pytest.approx(1 - 0.8**4)

    def test_shuffles_depend_on_the_seed_and_not_on_other_measures(self) -> None:
        qrels, run = qrels_of({"1": dict.fromkeys("abcd", 1)}), {"1": dict.fromkeys("abcdefghijkl", 0.0)}
        both = explain(qrels, ranking_of(run), parse_many("RBP ERR Bpref"), about=["ties"])
        assert both[parse("RBP")].as_data()["ties"] == part_of("RBP", run, qrels, "ties")
        assert (
            part_of("RBP", run, qrels, "ties", seed=1)["expected"]
            != part_of("RBP", run, qrels, "ties")["expected"]
        )


QRELS = qrels_of({"1": {"a": 2, "b": 0, "z": 1}, "2": {"a": 0}})
RUN = {"1": ranked("x", "a", "b", "y"), "2": ranked("a", "w")}


class TestJudgments:
    """The effect of unjudged documents."""

    def test_unjudged_documents_down_to_the_cutoff_get_the_highest_label(self) -> None:
        """x and w become relevant. y does not, because its rank is 4."""
        data = part_of("P@3", RUN, QRELS, "judgments")
        assert (data["cutoff"], data["by_topic"]["unjudged"]) == (3, {"relevance": [1 / 3, 1 / 2]})
        assert data["by_topic"]["as_lowest"] == data["by_topic"]["least"] == [1 / 3, 0]
        assert data["by_topic"]["as_highest"] == data["by_topic"]["greatest"] == [2 / 3, 1 / 3]
        assert data["unjudged"] == {"relevance": (1 / 3 + 1 / 2) / 2}

    def test_unjudged_documents_join_recall_base_and_ideal(self) -> None:
        """R of topic 1 becomes 4 (x, a, y, z), so AP is (1 + 2/2 + 3/4) / 4; ideal gains are 2, 2, 2, 1."""
        assert part_of("AP", RUN, QRELS, "judgments")["by_topic"]["as_highest"][0] == pytest.approx(
            (1 + 1 + 3 / 4) / 4
        )
        found = part_of("nDCG", RUN, QRELS, "judgments")["by_topic"]["as_highest"][0]
        log = math.log2
        ideal = 2 + 2 / log(3) + 2 / log(4) + 1 / log(5)
        assert found == pytest.approx((2 + 2 / log(3) + 2 / log(5)) / ideal)

    def test_measure_that_can_fall_has_no_bounds(self) -> None:
        """AP falls from 1 to 5/6 if the unjudged document at rank 3 is relevant too."""
        qrels = qrels_of({"1": {"a": 1, "b": 0}})
        data = part_of("AP", {"1": ranked("a", "b", "c")}, qrels, "judgments")
        assert (data["as_lowest"], data["as_highest"]) == (1, pytest.approx(5 / 6))
        assert data["least"] is data["greatest"] is None

    def test_document_can_lack_the_label_of_one_aspect_only(self) -> None:
        qrels = qrels_of({scale(1, "x"): {"1": {"a": 0}}, scale(2, "y"): {"1": {"a": 2, "b": 1}}})
        data = part_of("CAM(of=P@2)", {"1": ranked("a", "b")}, qrels, "judgments")
        assert data["unjudged"] == {"x": 1 / 2, "y": 0}
        assert (data["as_lowest"], data["as_highest"]) == (pytest.approx(1 / 2), pytest.approx(3 / 4))

    def test_unjudged_documents_become_relevant_to_all_subtopics(self) -> None:
        qrels = diverse({"1": {"a": {"s": 1}, "b": {"t": 1}}, "2": {"a": {"u": 1}}})
        run = {"1": ranked("x", "a"), "2": ranked("y")}
        data = part_of("StRecall@1", run, qrels, "judgments")
        assert data["by_topic"] == {
            "as_lowest": [0, 0],
            "as_highest": [1, 1],
            "least": None,
            "greatest": None,
            "unjudged": {"subtopics": [1, 1]},
        }

    def test_labels_outside_a_declared_set_are_refused(self) -> None:
        possible = LabelSet(("x", "y"), frozenset({(0, 0), (1, 0)}))
        qrels = qrels_of({scale(1, "x"): {"1": {"a": 1}}, scale(1, "y"): {"1": {"a": 0}}}, {"some": possible})
        data = part_of("TOMA(of=P@2,label_set=some)", {"1": ranked("a", "b")}, qrels, "judgments")
        assert data["as_highest"] is None
        assert "the declared label set does not contain" in data["refused"]

    def test_negative_grade_is_a_judgment_depending_on_the_profile(self) -> None:
        qrels, run = qrels_of({"1": {"a": -1, "b": 1}}), {"1": ranked("a", "b")}
        assert part_of("P@2", run, qrels, "judgments")["as_highest"] == 1 / 2
        other = part_of("P@2", run, qrels, "judgments", profile=PROFILES["trec_eval-10"])
        assert (other["unjudged"], other["as_highest"]) == ({"relevance": 1 / 2}, 1)

    def test_first_documents_depend_on_the_profile(self) -> None:
        """In single precision the scores are tied, so b is first, and b is the unjudged document."""
        qrels, run = qrels_of({"1": {"z": 1}}), {"1": {"a": 1 + 1e-12, "b": 1.0}}
        data = part_of("RR@1", run, qrels, "judgments", profile=PROFILES["trec_eval-9"])
        assert data["as_highest"] == 1


class TestScale:
    """Scale types and their operations."""

    def test_type_operations_and_warning(self) -> None:
        run, qrels = {"1": ranked("a")}, qrels_of({"1": {"a": 1}})
        interval = part_of("P@5", run, qrels, "scale")
        assert (interval["type"], interval["warning"]) == ("interval", None)
        assert "ANOVA" in interval["operations"]
        ordinal = part_of("RBP(p=1/5)", run, qrels, "scale")
        assert (ordinal["type"], ordinal["operations"]) == ("ordinal", ["median", "ranks", "Kruskal-Wallis"])
        assert ordinal["warning"] == (
            "RBP(p=0.2): a mean over topics requires an interval scale, but its scale is ordinal"
        )
        assert part_of("NumRel", run, qrels, "scale")["warning"] is None
        assert "geometric mean over topics" in part_of("GMAP", run, qrels, "scale")["warning"]


RELEVANCE = Aspect(
    name="relevance", labels=("nr", "mr", "fr", "hr"), threshold=2, declared_gains=(0, 5, 10, 15)
)
CORRECTNESS = Aspect(
    name="correctness",
    labels=("nc", "pc", "c"),
    lowest=2 * (),
    unjudged=(),
    threshold=2,
    declared_gains=(0, 5, 10),
    declared_embedding=(0, 1.5, 3),
)
POSSIBLE = LabelSet(
    ("relevance", "correctness"), frozenset((r, c) for r in range(4) for c in range(3) if r or not c)
)
TABLE3 = qrels_of(
    {RELEVANCE: {"1": {"d1": 1, "d2": 3, "d3": 3}}, CORRECTNESS: {"1": {"d1": 2, "d2": 1, "d3": 0}}},
    {"possible": POSSIBLE},
)
"""A worked example with the labels of Maistro et al., CIKM 2021, Table 3."""


FOUND = {"1": ranked("d1", "d2", "d3")}


class TestParts:
    def test_mean_is_the_sum_of_its_contributions(self) -> None:
        """By hand, s_rel is 0.814567 and s_cor 1.0. The weights 0.7 and 0.3 give 0.870197."""
        data = part_of("CAM(of=nDCG,weights={relevance:0.7,correctness:0.3})", FOUND, TABLE3, "parts")
        assert data["combination"] == "mean"
        rel, cor = data["aspects"]
        assert (rel["aspect"], rel["measure"], rel["value"]) == (
            "relevance",
            "nDCG",
            pytest.approx(0.814567, abs=1e-6),
        )
        assert (cor["weight"], cor["contribution"]) == (0.3, pytest.approx(0.3))
        assert rel["contribution"] + cor["contribution"] == pytest.approx(0.870197, abs=1e-6)

    def test_limits_of_a_harmonic_mean_by_aspect(self) -> None:
        """AP of the run d1 d3 is 0.25 and 1 by aspect, so the reciprocals are 4 and 1."""
        run = {"1": ranked("d1", "d3")}
        for text in ("MM(of=AP)", "H(of=AP)", "WHAM(of=AP)"):
            data = part_of(text, run, TABLE3, "parts")
            assert [aspect["limits"] for aspect in data["aspects"]] == pytest.approx([0.8, 0.2])
            assert [aspect["weight"] for aspect in data["aspects"]] == [0.5, 0.5]
        zero = part_of("MM(of=AP)", {"1": ranked("d1")}, TABLE3, "parts")
        assert [aspect["by_topic"]["limits"] for aspect in zero["aspects"]] == [[1], [0]]

    def test_aspect_of_weight_0_limits_only_wham(self) -> None:
        run, weights = {"1": ranked("d1")}, "weights={relevance:0,correctness:1}"
        for name, limits in (("WHAM", [1, 0]), ("MM", [0, 1])):
            data = part_of(f"{name}(of=AP,{weights})", run, TABLE3, "parts")
            assert [aspect["limits"] for aspect in data["aspects"]] == limits

    def test_each_class_of_toma_has_its_labels_weight_distance_and_documents(self) -> None:
        """By hand, there are 10 Euclidean classes. The step1 weights of d1, d2 and d3 are 5, 7 and 3."""
        run = {"1": ranked("d1", "x", "y", "z", "w", "d2", "d3")}
        data = part_of("TOMA(of=nDCG@6,label_set=possible)", run, TABLE3, "parts")
        assert data["ranks"] == [[1, 5], [6, 6]]
        assert len(data["classes"]) == 10
        by_label = {
            tuple(labels): label_class for label_class in data["classes"] for labels in label_class["labels"]
        }
        assert {
            labels: by_label[labels]["weight"] for labels in (("mr", "c"), ("hr", "pc"), ("hr", "nc"))
        } == {
            ("mr", "c"): 5,
            ("hr", "pc"): 7,
            ("hr", "nc"): 3,
        }
        assert by_label["mr", "c"]["distance"] == 2
        assert by_label["hr", "pc"]["documents"] == [0, 1]
        assert by_label["hr", "pc"]["by_topic"] == [[0, 1]]
        assert by_label["hr", "nc"]["documents"] == [0, 0]
        assert data["unjudged"] == {"documents": [4, 0], "by_topic": [[4, 0]]}

    def test_equally_distant_labels_are_one_class(self) -> None:
        """By hand, there are 5 Chebyshev classes."""
        data = part_of("TOMA(of=AP,distance=chebyshev,label_set=possible)", FOUND, TABLE3, "parts")
        assert [label_class["distance"] for label_class in data["classes"]] == [0, 1, 1.5, 2, 3]
        assert sorted(map(tuple, data["classes"][2]["labels"])) == [("fr", "pc"), ("hr", "pc")]

    def test_long_scales_list_only_the_labels_of_documents(self) -> None:
        long = [Aspect(name=name, labels=range(101)) for name in "xy"]
        qrels = qrels_of({long[0]: {"1": {"a": 3, "b": 100}}, long[1]: {"1": {"a": 100, "b": 3}}})
        data = part_of("TOMA(of=nDCG)", {"1": ranked("a")}, qrels, "parts")
        assert [label_class["labels"] for label_class in data["classes"]] == [[[100, 3], [3, 100]]]

    def test_measure_without_components_has_no_parts(self) -> None:
        measure = parse("nDCG")
        found = explain(TABLE3, ranking_of(FOUND), [measure], about=["parts"])
        assert found[measure].as_data() == {"parts": None}


class TestProfiles:
    def test_each_rule_that_changes_a_value_is_named(self) -> None:
        """Single precision ranks b before a; the rule for negative grades changes Judged and Bpref."""
        run = {"1": {"a": 1 + 1e-12, "b": 1.0}, "2": ranked("a", "b")}
        qrels = qrels_of({"1": {"a": 1, "b": -1}, "2": {"a": 1, "b": 0}})
        nine, ten = part_of("RR", run, qrels, "profiles")["others"]
        assert (nine["profile"], nine["value"], nine["difference"]) == ("trec_eval-9", 0.75, -0.25)
        assert (nine["topics"], nine["because"]) == ({"1": 0.5}, ["single_precision"])
        assert (ten["changed"], ten["difference"], ten["because"]) == (0, 0, [])
        judged = part_of("Judged@2", run, qrels, "profiles", profile=PROFILES["trec_eval-9"])["others"]
        assert [effect["profile"] for effect in judged] == ["cupel", "trec_eval-10"]
        assert [effect["because"] for effect in judged] == [["negatives_judged"], []]

    def test_interpolation_rule_is_named(self) -> None:
        """For R = 3, level 0.4 is 1.2 documents: 1 by rounding, but int(1.2 + 0.9) = 2 in trec_eval 9."""
        run, qrels = {"1": ranked("a", "x", "b")}, qrels_of({"1": dict.fromkeys("abc", 1)})
        nine, ten = part_of("IPrec@0.4", run, qrels, "profiles")["others"]
        assert (nine["value"], nine["because"]) == (pytest.approx(2 / 3), ["truncated_recall"])
        assert ten["changed"] == 0


@pytest.mark.parametrize(
    "run",
    [{}, {"1": {}}, {"9": ranked("a")}, {"1": {"x": 0.0}}, {t: dict.fromkeys("abxyz", 0.0) for t in "129"}],
    ids=["nothing", "an empty topic", "another topic", "one stranger", "all tied"],
)
def test_degenerate_runs_are_explained(run: Scored) -> None:
    """Use empty, one-document and tied runs, and topics without judgments of one or of any aspect."""
    qrels = qrels_of(
        {scale(2): {"1": {"a": 1}, "2": {"a": 0}}, scale(1, "quality"): {"1": {"b": 1}}},
        subtopics={"1": {"a": {"s": 1}}, "2": {}},
    )
    measures = parse_many(
        "AP nDCG@10 GMAP Judged NumRet CAM(of=AP) TOMA(of=nDCG) NLRE H(of=P@5) alpha_nDCG@5"
    )
    for measure, found in explain(qrels, ranking_of(run), measures).items():
        data = found.as_data()
        assert list(data) == list(ABOUT)
        assert json.loads(json.dumps(data, allow_nan=False)) == data, measure
        low, value, high = (data["ties"][name] for name in ("least", "value", "greatest"))
        [[*of_topics]] = scores_of(str(measure), run, qrels).values()
        assert low <= value <= high
        assert data["judgments"]["by_topic"]["as_lowest"] == of_topics


def test_collections_without_topics_or_documents_are_explained() -> None:
    for qrels in (qrels_of({scale(1): {}}), qrels_of({scale(1): {"1": {}}})):
        for found in explain(qrels, ranking_of({"1": ranked("a")}), parse_many("AP P@5")).values():
            assert found.as_data()["ties"]["topics"] == 0


def test_only_requested_parts_are_explained() -> None:
    qrels, ranking = qrels_of({"1": {"a": 1}}), ranking_of({"1": ranked("a")})
    found: Explanation = explain(qrels, ranking, [parse("AP")], about=["scale", "ties"])[parse("AP")]
    assert list(found.as_data()) == ["ties", "scale"]
    with pytest.raises(
        ValueError, match="unknown part 'tie' of an explanation; choose from ties, judgments, scale"
    ):
        explain(qrels, ranking, [parse("AP")], about=["tie"])
