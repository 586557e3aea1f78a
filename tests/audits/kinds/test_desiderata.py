"""`desiderata`: the properties that measures of two aspects have, and counterexamples."""

import pytest

from cupel_audits.kinds.desiderata.desiderata_checks import CHECKS
from cupel_audits.report import AuditReport
from cupel_audits.subject import AuditSubject
from cupel_measures.model import Aspect
from support.data.audit_subjects import SEED, audited, board, problems, reported, subject_of, trials_of
from support.data.small_collections import qrels_of, ranked, score_of

RELEVANCE, CREDIBILITY = Aspect("relevance", range(10)), Aspect("credibility", range(10))
WEIGHTS = "weights={relevance:0.9,credibility:0.1}"


def subject(measures: str) -> AuditSubject:
    """Measures of two aspects; one run of one topic is all there is."""
    judged = {RELEVANCE: {"1": {"a": 1}}, CREDIBILITY: {"1": {"a": 1}}}
    return subject_of(qrels_of(judged), {"run": {"1": ranked("a")}}, measures)


def report(measures: str, **given: int) -> AuditReport:
    return audited("desiderata", subject(measures), given)


def failed(measure: str) -> set[str]:
    """The checks that a measure fails."""
    return {str(row[1]) for row in report(measure).table("outcomes").rows if row[3] == "fails"}


class TestExpectedOutcomes:
    """Spec 6.6."""

    @pytest.mark.parametrize("name", ["NLRE", "NGRE"])
    @pytest.mark.parametrize("given", ["", "ties=min", WEIGHTS])
    def test_rank_errors_hold_all_but_the_literal_wording(self, name: str, given: str) -> None:
        """With mu, nu > 0; sharing the best position is as good as keeping the order of the list."""
        assert failed(f"{name}({given})" if given else name) == {"D4_literal"}

    def test_nlre_does_too_with_its_weights_exchanged(self) -> None:
        assert failed("NLRE(swap=True)") == {"D4_literal"}

    @pytest.mark.parametrize("name", ["NLRE", "NGRE"])
    def test_they_fail_d5_and_d7_when_ties_are_broken_the_other_way(self, name: str) -> None:
        assert {"D5", "D7"} <= failed(f"{name}(ties=reverse)")

    def test_the_weighted_score_fails_d4_and_one_scale(self) -> None:
        assert failed("NWCS") == {"D4", "D4_literal", "D6_one_scale"}

    @pytest.mark.parametrize("name", ["CAM", "WHAM", "MM"])
    def test_combinations_of_ndcg_know_no_error_beside_another(self, name: str) -> None:
        assert failed(f"{name}(of=nDCG)") == {"D4", "D4_literal"}

    def test_combinations_inherit_scale_from_their_components(self) -> None:
        """DCG is no share of an ideal: it grows with its gains."""
        assert {"D6", "D6_one_scale"} <= failed("CAM(of=DCG)")


def test_a_binary_measure_does_not_see_degrees() -> None:
    assert {"D1", "D2", "D3", "D7"} <= failed("CAM(of=AP)")


def test_a_measure_that_cannot_reach_1_may_still_lose_nothing_on_equal_labels() -> None:
    found = failed("CAM(of=RBP(p=0.8))")
    assert "D5" not in found
    assert "D7" in found


def test_the_worst_label_alone_counts_by_chebyshev_distance() -> None:
    assert "D1" in failed("TOMA(of=nDCG,distance=chebyshev)")


@pytest.mark.parametrize("measure", ["NWCS", "CAM(of=nDCG)", "CAM(of=AP)"])
def test_counterexamples_have_the_scores_that_the_library_gives(measure: str) -> None:
    """Those of the checks whose labels stand for themselves."""
    rows = [row for row in report(measure).table("counterexamples").rows if row[1] in ("D1", "D4", "D7")]
    assert rows
    for _, _, _, labels, score in rows:
        by_aspect = [list(map(int, part.split()[1:])) for part in str(labels).split(", ")]
        documents = [f"d{place}" for place in range(len(by_aspect[0]))]
        judged = {
            aspect: {"1": dict(zip(documents, of, strict=True))}
            for aspect, of in zip((RELEVANCE, CREDIBILITY), by_aspect, strict=True)
        }
        assert score_of(measure, {"1": ranked(*documents)}, qrels_of(judged)) == score


def test_a_counterexample_is_printed_readably() -> None:
    [row] = [row for row in report("NLRE").table("outcomes").rows if row[1] == "D4_literal"]
    lists = str(row[-1]).split("; ")
    assert len(lists) == 4
    assert lists[0].startswith("no error, high labels: relevance ")
    assert lists[0].endswith(": 1.000000")
    assert row[4:7] == (0.0, 200, 200)


def test_all_measures_see_the_same_lists_however_trials_are_grouped() -> None:
    """Those of a measure that fails every instance of D4_literal are told."""
    both = subject("NGRE NLRE")
    together = trials_of("desiderata", both)
    assert {one: trials_of("desiderata", both, only=[one])[one] for one in (14, 3, 0)} == {
        one: together[one] for one in (14, 3, 0)
    }
    number, place = len(CHECKS), list(CHECKS).index("D4_literal")
    shown = [together[trial]["example"] for trial in (place, place + number)]
    assert [one["labels"] for one in shown[0]] == [one["labels"] for one in shown[1]]
    other = trials_of("desiderata", both, seed=SEED + 1, only=[place])[place]
    assert [one["labels"] for one in other["example"]] != [one["labels"] for one in shown[0]]


def test_numbers_say_what_holds() -> None:
    found = report("NWCS").numbers
    [measure] = subject("NWCS").about.measures
    assert {name.partition("(")[0]: value for name, value in found.items()} == {
        name: int(name not in ("D4", "D4_literal", "D6_one_scale")) for name in CHECKS
    }
    assert f"D6_one_scale({measure})" in found


def test_what_cannot_be_tried_is_undefined_with_its_reason() -> None:
    found = report("AP NLRE TOMA(of=nDCG) CAM(of=ERR@20)")
    assert found.numbers["D1(AP)"] is None
    assert found.undefined[0] == "all checks of AP: it combines no two aspects"
    assert found.undefined[1].startswith("D8 of TOMA(of=nDCG,")
    assert found.undefined[1].endswith("it has no weights")
    assert "max_gain" in found.undefined[2]
    assert found.verdict[-2] == "AP: undefined, for none of the checks can be tried with it."
    assert found.verdict[0].startswith("NLRE(")


def test_a_report_on_some_trials_is_of_their_checks() -> None:
    whole = subject("NLRE")
    found = reported("desiderata", whole, None, trials_of("desiderata", whole, only=[2, 3]))
    assert found.table("outcomes").column("check") == ["D3", "D4"]
    assert found.verdict[0].endswith("holds all that were tried: D3, D4.")


def test_it_needs_a_measure_of_two_aspects_and_no_runs() -> None:
    qrels, runs = board(runs=1, topics=1)
    [sentence] = problems("desiderata", subject_of(qrels, runs, "AP nDCG@10"))
    assert "measures that combine two aspects" in sentence
    assert not problems("desiderata", subject("NLRE"))
    assert problems("desiderata", subject("NLRE"), {"length": 10}) == [
        "length: lists have up to 9 documents of different labels, not 10"
    ]
