"""Tests of the audit kind `aspects`: bounds, documents of the best runs, and orders."""

from collections.abc import Mapping

import pytest

from cupel_audits import AuditError
from cupel_audits.report import AuditReport
from cupel_audits.subject import AuditSubject
from cupel_measures.model import Aspect
from support.data.audit_subjects import audited, reported, subject_of, trials_of
from support.data.small_collections import diverse, qrels_of, ranked, scale

RELEVANCE = Aspect(
    name="relevance", labels=("nr", "mr", "fr", "hr"), threshold=2, declared_gains=(0, 5, 10, 15)
)
CORRECTNESS = Aspect(name="correctness", labels=("nc", "pc", "c"), threshold=2, declared_gains=(0, 5, 10))
TABLE_3 = qrels_of(
    {RELEVANCE: {"t": {"d1": 1, "d2": 3, "d3": 3}}, CORRECTNESS: {"t": {"d1": 2, "d2": 1, "d3": 0}}}
)
RUNS = {
    "one": {"t": ranked("d1", "d2", "d3")},
    "two": {"t": ranked("d2", "d1", "d3")},
    "three": {"t": ranked("d3")},
}
OF_THREE = {
    scale(3, "a"): {"1": {"d1": 1, "d9": 0, "d3": 0}, "2": {"d8": 3, "d9": 0}},
    scale(3, "b"): {"1": {"d1": 2, "d9": 0, "d3": -2}, "2": {"d8": 0, "d9": 0}},
    scale(3, "c"): {"1": {"d1": 0, "d9": 0, "d3": 0}, "2": {"d8": 1, "d9": 0}},
}


@pytest.fixture
def table_3() -> AuditSubject:
    return subject_of(TABLE_3, RUNS, "nDCG AP", top=100)


@pytest.fixture
def two_topics() -> AuditSubject:
    """Return a subject of two runs, of which one is better on both topics."""
    best = {"1": ranked("d1", "u", "d9", "d3"), "2": ranked("d8", "d9")}
    worse = {"1": ranked("d9", "d3"), "2": ranked("d9")}
    return subject_of(qrels_of(OF_THREE), {"worse": worse, "best": best}, "CAM(of=AP)", top=5)


def cells_by_key(
    report: AuditReport, table: str, key: str, value: str, **where: object
) -> dict[object, object]:
    """Map the cells of column `key` to those of column `value`, for the rows whose cells equal `where`."""
    rows = report.table(table).records()
    return {
        row[key]: row[value] for row in rows if all(row[name] == expected for name, expected in where.items())
    }


def report_of(subject: AuditSubject, given: Mapping[str, object] | None = None) -> AuditReport:
    return audited("aspects", subject, given)


def test_bounds_of_cam_and_mm_of_three_documents(table_3: AuditSubject) -> None:
    report = report_of(table_3)
    assert cells_by_key(report, "topic_bounds", "measure", "bound") == pytest.approx(
        {"CAM(of=nDCG)": 0.907284, "MM(of=nDCG)": 0.903258, "CAM(of=AP)": 0.791667, "MM(of=AP)": 14 / 19},
        abs=1e-6,
    )  # MM(AP) of d1 d2 d3: 2 / (1 / (7/12) + 1 / 1) = 14/19
    assert cells_by_key(report, "strategies", "strategy", "score", measure="CAM(of=nDCG)") == pytest.approx(
        {
            "relevance > correctness": 0.880094,
            "correctness > relevance": 0.907284,
            "sum": 0.905581,
            "squares": 0.880094,
            "maximum": 0.880094,
        },
        abs=1e-6,
    )
    assert report.numbers["bound_1(CAM(of=nDCG))"] == 0
    assert report.numbers["bound_below_0.9(CAM(of=nDCG))"] == 0
    assert report.numbers["bound_below_0.9(CAM(of=AP))"] == 1


def test_tied_medians_are_counted_and_advice_is_on_the_rankings_found(table_3: AuditSubject) -> None:
    report = report_of(table_3)
    titles = [plot.title for plot in report.plots]
    assert (
        "Median score of rankings by one sort key: highest for correctness > relevance (0.84), lowest for "
        "squares and 2 others (0.77)"
    ) in titles
    assert report.actions[-1] == (
        "Do not compare averages over aspects between topics or collections: the best ranking found scores "
        "below 0.9 on some topics."
    )


def test_low_bounds_without_lacking_aspects_are_a_share_of_all_topics() -> None:
    """The bound of AP is 19/24 on topic t, and 1 on topic u, where one document is best by both aspects."""
    qrels = qrels_of(
        {
            RELEVANCE: {"t": {"d1": 1, "d2": 3, "d3": 3}, "u": {"d1": 3}},
            CORRECTNESS: {"t": {"d1": 2, "d2": 1, "d3": 0}, "u": {"d1": 2}},
        }
    )
    runs = {name: ranking | {"u": ranked("d1")} for name, ranking in RUNS.items()}
    report = report_of(subject_of(qrels, runs, "CAM(of=AP)", top=100))
    [row] = report.table("bounds").records()
    assert (row["topics"], row["full"], row["low"], row["low_whole"]) == (2, 1 / 2, 1 / 2, 1 / 2)


def test_rankings_are_orders_of_aspects_and_three_more(two_topics: AuditSubject) -> None:
    names = cells_by_key(report_of(two_topics), "strategies", "strategy", "topic")
    assert len(names) == 3 * 2 * 1 + 3


def test_six_aspects_have_bounds_and_seven_have_none() -> None:
    for number, rankings in ((6, 720 + 3), (7, 0)):
        qrels = qrels_of({scale(1, f"a{place}"): {"t": {"x": 1}} for place in range(number)})
        runs = {name: {"t": ranked("x")} for name in ("one", "two")}
        subject = subject_of(qrels, runs, "CAM(of=AP)", top=5)
        report = reported("aspects", subject, None, trials_of("aspects", subject, only=[0]))
        assert len(report.table("strategies").rows) == rankings


def test_bound_is_1_if_aspects_agree() -> None:
    same = qrels_of({scale(2, "a"): {"t": {"x": 2, "y": 1}}, scale(2, "b"): {"t": {"x": 2, "y": 1}}})
    runs = {"1": {"t": ranked("y")}, "2": {"t": ranked("x")}}
    report = report_of(subject_of(same, runs, "nDCG", top=100))
    assert report.numbers["bound_1(CAM(of=nDCG))"] == report.numbers["bound_1(MM(of=nDCG))"] == 1
    assert "Median score of ideal rankings: 1.00 for each of 2" in [plot.title for plot in report.plots]


def test_zero_aspect_documents_by_rank(two_topics: AuditSubject) -> None:
    report = report_of(two_topics)
    assert cells_by_key(report, "zero_ranks", "rank", "count") == {1: 0, 2: 1, 3: 1, 4: 1, 5: 0}
    assert cells_by_key(report, "zero_ranks", "rank", "percent") == {1: 0, 2: 20, 3: 20, 4: 20, 5: 0}
    assert report.table("zero").rows == (("CAM(of=AP@5)", 3, 5, 60.0),)
    assert report.numbers["zero(CAM(of=AP@5))"] == 60


def test_advice_on_zero_aspect_documents_names_no_single_measure(two_topics: AuditSubject) -> None:
    assert (
        "Look at the first documents of the best runs by a measure before you use it, above all where the "
        "share of zero-aspect documents is high."
    ) in report_of(two_topics).actions


def test_unjudged_documents_can_count_as_zero_aspect_documents(two_topics: AuditSubject) -> None:
    report = report_of(two_topics, {"count_unjudged": True})
    assert cells_by_key(report, "zero_ranks", "rank", "count") == {1: 0, 2: 2, 3: 1, 4: 1, 5: 0}
    assert report.table("zero").rows == (("CAM(of=AP@5)", 4, 6, 100 * 4 / 6),)


@pytest.mark.parametrize(("exclude", "first"), [(False, 1.75), (True, 2.333333)])
def test_mean_sum_of_labels_by_bin(two_topics: AuditSubject, exclude: bool, first: float) -> None:
    report = report_of(two_topics, {"depth": 4, "width": 2, "exclude": exclude})
    assert cells_by_key(report, "quality", "ranks", "labels") == pytest.approx(
        {"1-2": first, "3-4": 0}, abs=1e-6
    )


def test_empty_bin_is_undefined(two_topics: AuditSubject) -> None:
    report = report_of(two_topics, {"depth": 5, "width": 4})
    assert report.numbers["quality(CAM(of=AP@5))@5-5"] is None
    assert any("ranks 5-5" in sentence for sentence in report.undefined)


def test_ties_for_best_run_go_to_the_smallest_name() -> None:
    good = {scale(1, "a"): {"t": {"x": 1, "z": 0}}, scale(1, "b"): {"t": {"x": 1, "z": 0}}}
    runs = {"b": {"t": ranked("x", "z")}, "a": {"t": ranked("x", "unjudged")}, "c": {"t": ranked("z")}}
    report = report_of(subject_of(qrels_of(good), runs, "CAM(of=AP)", top=2), {"first": 2, "depth": 2})
    assert report.table("zero").rows == (("CAM(of=AP@2)", 0, 1, 0.0),)


def test_dominated_runs_are_not_on_the_front(table_3: AuditSubject) -> None:
    report = report_of(table_3)
    assert cells_by_key(report, "trade_off", "run", "dominated_by", component="nDCG") == {
        "one": None,
        "two": None,
        "three": "one",
    }
    assert report.numbers["front(nDCG)"] == 2
    assert report.numbers["dominated(nDCG)"] == pytest.approx(1 / 3)
    # relevance: two > one > three; correctness: one > two > three: 2 pairs agree, 1 does not
    assert report.numbers["tau(nDCG,relevance,correctness)"] == pytest.approx(1 / 3)


@pytest.mark.parametrize(("number", "named"), [(6, " and r6"), (7, ", r6 and 1 more")])
def test_verdict_names_six_runs_of_the_front(number: int, named: str) -> None:
    equal = {f"r{run}": RUNS["one"] for run in range(1, number + 1)}
    report = report_of(subject_of(TABLE_3, equal, "nDCG", top=100))
    assert report.verdict[0].startswith(f"nDCG: {number} of {number} runs are on the Pareto front")
    assert f" r1, r2, r3, r4, r5{named}." in report.verdict[0]


def test_aggregates_disagree_on_pairs_in_opposite_orders(table_3: AuditSubject) -> None:
    # CAM(nDCG) 0.907284 of run one > 0.905581 of two; MM(nDCG) 0.897809 < 0.903258
    report = report_of(table_3)
    opposite = cells_by_key(report, "disagreement", "second", "opposite", first="CAM(of=nDCG)")
    assert opposite["MM(of=nDCG)"] == 1
    assert report.numbers["disagree(nDCG)"] == pytest.approx(1 / 3)
    assert report.numbers["tau(CAM(of=nDCG),MM(of=nDCG))"] == pytest.approx(1 / 3)
    assert "aggregates disagree on the order of 1 (33.3%) with nDCG" in " ".join(report.verdict)


def test_verdict_counts_one_further_pair_in_the_singular() -> None:
    report = report_of(subject_of(TABLE_3, RUNS, "AP", top=100))
    assert ", and 1 further pair of aggregates, disagree on the most pairs (1)" in " ".join(report.verdict)


def test_disagreement_plot_uses_short_names(table_3: AuditSubject) -> None:
    report = report_of(table_3)
    short = cells_by_key(report, "disagreement", "second_kind", "second", component="nDCG", first_kind="CAM")
    assert short == {
        "MM": "MM(of=nDCG)",
        "TOMA euclidean": "TOMA(of=nDCG)",
        "TOMA manhattan": "TOMA(of=nDCG,distance=manhattan)",
        "TOMA chebyshev": "TOMA(of=nDCG,distance=chebyshev)",
    }


def test_euclidean_and_manhattan_toma_of_ap_agree_with_positive_weighting(table_3: AuditSubject) -> None:
    report = report_of(table_3, {"weighting": "positive"})
    pair = "TOMA(of=AP,weighting=positive),TOMA(of=AP,distance=manhattan,weighting=positive)"
    assert report.numbers[f"tau({pair})"] == 1


def test_given_aggregates_join_the_family_of_their_component(table_3: AuditSubject) -> None:
    subject = subject_of(TABLE_3, RUNS, "AP CAM(of=AP,weights={relevance:0.7,correctness:0.3})", top=100)
    seen = set(cells_by_key(report_of(subject), "disagreement", "first", "component"))
    assert seen >= {"CAM(of=AP)", "CAM(of=AP,weights={correctness:0.3,relevance:0.7})"}


def test_component_without_cutoff_has_no_first_documents() -> None:
    report = report_of(subject_of(TABLE_3, RUNS, "Rprec", top=100))
    assert not report.table("zero").rows
    assert "CAM(of=Rprec): its component takes no cutoff" in report.undefined


def test_trial_does_not_depend_on_other_trials(table_3: AuditSubject) -> None:
    alone = {trial: trials_of("aspects", table_3, only=[trial])[trial] for trial in (2, 0, 1)}
    assert alone == trials_of("aspects", table_3)


@pytest.mark.parametrize("trial", [0, 1, 2])
def test_partial_report_covers_one_question(table_3: AuditSubject, trial: int) -> None:
    results = trials_of("aspects", table_3, only=[trial])
    report = reported("aspects", table_3, None, results)
    assert report.verdict
    assert set(report.numbers) < set(report_of(table_3).numbers)


def test_unsuitable_collections_and_settings_are_refused(table_3: AuditSubject) -> None:
    one_aspect = qrels_of({"t": {"d1": 1}})
    with pytest.raises(
        AuditError, match="the collection has only one aspect, 'relevance': give judgments of two"
    ):
        report_of(subject_of(one_aspect, RUNS, "nDCG", top=100))
    all_lowest = qrels_of({scale(1, "a"): {"t": {"x": 0}}, scale(1, "b"): {"t": {"x": 0}}})
    with pytest.raises(AuditError, match="no document has a label above the lowest"):
        report_of(subject_of(all_lowest, RUNS, "nDCG", top=100))
    with pytest.raises(AuditError, match="the audit compares runs, but only one is given"):
        report_of(subject_of(TABLE_3, {"one": RUNS["one"]}, "nDCG", top=100))
    with pytest.raises(AuditError, match="no measure can be combined over aspects"):
        report_of(subject_of(TABLE_3, RUNS, "GMAP", top=100))
    with pytest.raises(AuditError, match="first: expected a whole number of ranks from 1 to 100,000, got"):
        report_of(table_3, {"first": 1_000_000_000})
    by_subtopic = diverse({"t": {"d1": {"1": 1}}})
    with pytest.raises(AuditError, match="the collection has only one aspect"):
        report_of(subject_of(by_subtopic, RUNS, "alpha_nDCG@20", top=100))
