"""Tests of the audit kind `desiderata`."""

import re

import pytest

from cupel_audits.kinds.desiderata.desiderata_checks import CHECKS
from cupel_audits.report import AuditReport
from cupel_audits.subject import AuditSubject
from cupel_measures.model import Aspect
from support.data.audit_subjects import SEED, audited, board, problems, reported, subject_of, trials_of
from support.data.small_collections import qrels_of, ranked, score_of

RELEVANCE, CREDIBILITY = (
    Aspect(name="relevance", labels=range(10)),
    Aspect(name="credibility", labels=range(10)),
)
WEIGHTS = "weights={relevance:0.9,credibility:0.1}"


def subject(measures: str) -> AuditSubject:
    """Return a subject with two aspects, one topic and one run."""
    judged = {RELEVANCE: {"1": {"a": 1}}, CREDIBILITY: {"1": {"a": 1}}}
    return subject_of(qrels_of(judged), {"run": {"1": ranked("a")}}, measures)


def report(measures: str, **given: int) -> AuditReport:
    return audited("desiderata", subject(measures), given)


def failed(measure: str) -> set[str]:
    """Return the checks that a measure fails."""
    rows = report(measure).table("outcomes").records()
    return {str(row["check"]) for row in rows if row["outcome"] == "fails"}


class TestExpectedOutcomes:
    """Lioma, Simonsen, Larsen, ICTIR 2017, section 3."""

    @pytest.mark.parametrize("name", ["NLRE", "NGRE"])
    @pytest.mark.parametrize("given", ["", "ties=min", WEIGHTS])
    def test_rank_error_measures_fail_only_d4_literal(self, name: str, given: str) -> None:
        """The weights mu, nu > 0 do not matter, nor whether ties are `stable` or `min`."""
        assert failed(f"{name}({given})" if given else name) == {"D4_literal"}

    def test_nlre_with_swapped_weights_fails_only_d4_literal(self) -> None:
        assert failed("NLRE(swap=True)") == {"D4_literal"}

    @pytest.mark.parametrize("name", ["NLRE", "NGRE"])
    def test_rank_error_measures_with_reversed_ties_fail_d5_and_d7(self, name: str) -> None:
        assert {"D5", "D7"} <= failed(f"{name}(ties=reverse)")

    def test_nwcs_fails_d4_and_d6_one_scale(self) -> None:
        assert failed("NWCS") == {"D4", "D4_literal", "D6_one_scale"}

    @pytest.mark.parametrize("name", ["CAM", "WHAM", "MM"])
    def test_combinations_of_ndcg_fail_d4(self, name: str) -> None:
        assert failed(f"{name}(of=nDCG)") == {"D4", "D4_literal"}

    def test_combinations_of_dcg_fail_d6(self) -> None:
        """DCG is not normalised by an ideal ranking, so it grows with the gains."""
        assert {"D6", "D6_one_scale"} <= failed("CAM(of=DCG)")


def test_binary_components_fail_checks_of_graded_errors() -> None:
    assert {"D1", "D2", "D3", "D7"} <= failed("CAM(of=AP)")


def test_measure_without_ideal_fails_d7_and_holds_d5() -> None:
    outcome = failed("CAM(of=RBP(p=0.8))")
    assert "D5" not in outcome
    assert "D7" in outcome


def test_chebyshev_distance_fails_d1() -> None:
    assert "D1" in failed("TOMA(of=nDCG,distance=chebyshev)")


@pytest.mark.parametrize("measure", ["NWCS", "CAM(of=nDCG)", "CAM(of=AP)"])
def test_counterexample_scores_equal_library_scores(measure: str) -> None:
    """D1, D4 and D7 change neither scales nor weights."""
    records = report(measure).table("counterexamples").records()
    rows = [row for row in records if row["check"] in ("D1", "D4", "D7")]
    assert rows
    for row in rows:
        by_aspect = [list(map(int, part.split()[1:])) for part in str(row["labels"]).split(", ")]
        documents = [f"d{place}" for place in range(len(by_aspect[0]))]
        judged = {
            aspect: {"1": dict(zip(documents, of, strict=True))}
            for aspect, of in zip((RELEVANCE, CREDIBILITY), by_aspect, strict=True)
        }
        assert score_of(measure, {"1": ranked(*documents)}, qrels_of(judged)) == row["score"]


def test_counterexample_is_described_in_one_cell() -> None:
    records = report("NLRE").table("outcomes").records()
    [row] = [row for row in records if row["check"] == "D4_literal"]
    lists = str(row["counterexample"]).split("; ")
    assert len(lists) == 4
    assert lists[0].startswith("no error, high labels: relevance ")
    assert lists[0].endswith(": 1.000000")
    assert (row["share"], row["failing"], row["instances"]) == (0.0, 200, 200)


def test_counterexample_gives_the_factors_of_scaled_labels() -> None:
    """D6 multiplies the labels of both aspects of the second list by 2, 3, 4 or 5."""
    place, dcg, factors = list(CHECKS).index("D6"), subject("CAM(of=DCG)"), set()
    for seed in range(12):
        trials = trials_of("desiderata", dcg, {"instances": 1}, seed=seed, only=[place])
        plain, scaled = trials[place]["example"]
        assert "times" not in plain["labels"]
        factors |= set(re.findall(r"\(times (\d)\)", scaled["labels"]))
    assert factors == set("2345")


def test_all_measures_are_tested_on_the_same_lists() -> None:
    """A measure that fails every instance of D4_literal reports its shortest instance."""
    both = subject("NGRE NLRE")
    together = trials_of("desiderata", both)
    assert {trial: trials_of("desiderata", both, only=[trial])[trial] for trial in (14, 3, 0)} == {
        trial: together[trial] for trial in (14, 3, 0)
    }
    number, place = len(CHECKS), list(CHECKS).index("D4_literal")
    shown = [together[trial]["example"] for trial in (place, place + number)]
    assert [list_["labels"] for list_ in shown[0]] == [list_["labels"] for list_ in shown[1]]
    other = trials_of("desiderata", both, seed=SEED + 1, only=[place])[place]
    assert [list_["labels"] for list_ in other["example"]] != [list_["labels"] for list_ in shown[0]]


def test_number_of_a_check_that_holds_is_1() -> None:
    outcome = report("NWCS").numbers
    [measure] = subject("NWCS").about.measures
    assert {name.partition("(")[0]: value for name, value in outcome.items()} == {
        name: int(name not in ("D4", "D4_literal", "D6_one_scale")) for name in CHECKS
    }
    assert f"D6_one_scale({measure})" in outcome


def test_check_that_cannot_be_made_is_undefined_with_its_reason() -> None:
    outcome = report("AP NLRE TOMA(of=nDCG) CAM(of=ERR@20)")
    assert outcome.numbers["D1(AP)"] is None
    assert outcome.undefined[0] == "all checks of AP: it does not combine two aspects"
    assert outcome.undefined[1].startswith("D8 of TOMA(of=nDCG,")
    assert outcome.undefined[1].endswith("it has no weights")
    assert "max_gain" in outcome.undefined[2]
    assert outcome.verdict[-2] == "AP: no check could be run."
    assert outcome.verdict[0].startswith("NLRE(")


def test_partial_report_covers_the_finished_checks() -> None:
    nlre = subject("NLRE")
    outcome = reported("desiderata", nlre, None, trials_of("desiderata", nlre, only=[2, 3]))
    assert outcome.table("outcomes").column("check") == ["D3", "D4"]
    assert outcome.verdict[0].endswith(": no counterexample to D3, D4 in 200 random instances of each.")


def test_measure_of_two_aspects_is_required_but_one_run_is_enough() -> None:
    qrels, runs = board(runs=1, topics=1)
    [sentence] = problems("desiderata", subject_of(qrels, runs, "AP nDCG@10"))
    assert sentence.startswith("no measure combines two aspects")
    assert not problems("desiderata", subject("NLRE"))
    assert problems("desiderata", subject("NLRE"), {"length": 10}) == [
        "length: a list contains no label twice, so give at most 9 documents, not 10"
    ]
