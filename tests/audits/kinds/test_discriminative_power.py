"""Tests of the audit kind `discriminative_power`."""

import dataclasses
from itertools import combinations

import numpy as np
import pytest

from cupel_audits.subject import AuditSubject
from cupel_measures.comparing.outcomes import mean
from cupel_measures.comparing.resampling import discriminative_power
from cupel_measures.model import Aspect, Floats
from support.data.audit_subjects import SEED, audited, board, problems, reported, subject_of, trials_of
from support.data.small_collections import qrels_of, ranked

FEW = {"replicates": 500}
X, Y, C = (0.90, 0.40, 0.70, 0.80, 0.55), (0.30, 0.10, 0.60, 0.35, 0.20), (0.32, 0.12, 0.55, 0.40, 0.18)


def example(measures: str = "P@100") -> AuditSubject:
    """Return runs whose P@100 on five topics are X, Y and C."""
    topics = [str(number) for number in range(5)]
    documents = [f"d{number:03}" for number in range(200)]
    qrels = qrels_of({topic: {name: int(name < "d100") for name in documents} for topic in topics})
    runs = {
        name: {
            topic: ranked(*documents[: round(100 * share)], *documents[100 : 200 - round(100 * share)])
            for topic, share in zip(topics, shares, strict=True)
        }
        for name, shares in {"x": X, "y": Y, "c": C}.items()
    }
    return subject_of(qrels, runs, measures)


def small_subject(measures: str = "AP nDCG@10 P@5") -> AuditSubject:
    return subject_of(*board(), measures)


def scores(subject: AuditSubject, measure: str) -> Floats:
    return subject.scores[measure]


def test_two_of_three_pairs_differ_significantly() -> None:
    """The exact ASL over all 5^5 samples is 0.0096 for (x, y), 0.0064 for (x, c), 0.8304 for (y, c).

    The ASL of 10,000 random samples may differ by 0.003, so alpha is 0.013 here.
    """
    subject = example()
    assert scores(subject, "P@100").T.tolist() == [list(column) for column in (X, Y, C)]
    report = audited("discriminative_power", subject, {"alpha": 0.013})
    assert report.numbers["power(P@100)"] == pytest.approx(200 / 3)
    assert report.numbers["pairs"] == 3
    [row] = report.table("measures").records()
    assert row["smallest"] == pytest.approx(0.67 - 0.314)  # x and c
    assert row["greatest"] == pytest.approx(0.314 - 0.31)  # c and y
    assert "2 of 3 pairs" in report.verdict[0]


def test_verdict_ranks_measures_that_are_named_in_another_order() -> None:
    """No pair differs by P@30, one by P@60 and two by P@100. The tables are in this order."""
    report = audited("discriminative_power", example("P@30 P@60 P@100"), {"alpha": 0.05, "replicates": 1000})
    assert report.table("measures").column("significant") == [0, 1, 2]
    low, high = (report.table("agreement").column(end)[1] for end in ("low", "high"))
    assert report.verdict[0] == (
        "Of 3 pairs of runs, 2 (66.67%) differ significantly (paired bootstrap test, alpha 0.05, "
        "uncorrected) by P@100, the highest number, and 0 (0.00%) by P@30, the lowest. The difference of "
        "P@100 and P@30 is 66.67 percentage points; its 95 per cent interval over samples of topics is "
        f"{-high:.2f} to {-low:.2f}. It holds only for measures chosen beforehand."  # type: ignore[operator]
    )
    assert [sentence.partition(":")[0] for sentence in report.verdict[1:]] == ["P@100", "P@60", "P@30"]


def test_verdict_singles_out_no_pair_of_measures_if_powers_are_tied() -> None:
    report = audited("discriminative_power", example("P@30 P@40 P@100"), {"alpha": 0.05, "replicates": 1000})
    assert report.table("measures").column("significant") == [0, 0, 2]
    assert report.verdict[0].endswith(
        "by P@30 and P@40, the lowest. Intervals of the differences are in the table `agreement`."
    )


def test_advice_names_the_test_and_the_number_of_topics() -> None:
    topics = len(example().about.topics)
    report = audited("discriminative_power", example(), {"alpha": 0.05, "replicates": 1000})
    assert (
        f"are expected to be significant by the uncorrected paired bootstrap test at alpha 0.05, for these "
        f"runs and {topics} topics" in report.actions[0]
    )
    assert (
        "Choose the number of topics of a new collection by the table of detectable differences, for a "
        "single test, if runs vary as here; several comparisons need more." in report.actions
    )


def test_power_equals_library_result_with_the_same_seed() -> None:
    subject = small_subject()
    report = audited("discriminative_power", subject, {"alpha": 0.05, **FEW})
    for measure in subject.about.measures:
        values = scores(subject, measure)
        power = discriminative_power(values, alpha=0.05, replicates=500, seed=SEED)
        assert report.numbers[f"power({measure})"] == power.percent
        means = mean(values)
        significant = np.abs(means[power.first] - means[power.second])[power.asl < 0.05]
        assert report.numbers[f"smallest({measure})"] == min(significant)


def test_measures_share_bootstrap_samples() -> None:
    """AP and AP@80 of rankings of 80 documents have equal results, alone or together."""
    subject = small_subject("AP AP@80 P@5")
    together = trials_of("discriminative_power", subject, FEW)
    alone = [trials_of("discriminative_power", subject, FEW, only=[trial])[trial] for trial in (2, 1, 0)]
    assert [together[2], together[1], together[0]] == alone
    assert together[0] | {"measure": ""} == together[1] | {"measure": ""}


def test_euclidean_and_manhattan_toma_of_ap_agree_with_positive_weighting() -> None:
    """With AP and `positive` weighting, the same documents are relevant for both distances."""
    qrels, runs = board()
    other = np.random.default_rng(5).integers(3, size=qrels.labels.shape).astype(np.int32)
    both = dataclasses.replace(
        qrels,
        aspects=(*qrels.aspects, Aspect(name="quality", labels=range(3))),
        labels=np.concatenate([qrels.labels, other]),
    )
    measures = "TOMA(of=AP,weighting=positive) TOMA(of=AP,distance=manhattan,weighting=positive)"
    results = trials_of("discriminative_power", subject_of(both, runs, measures), {"alpha": 0.2, **FEW})
    assert results[0]["told"] > 0
    assert results[0] | {"measure": "", "notes": []} == results[1] | {"measure": "", "notes": []}


def test_agreement_adds_up_to_significant_pairs() -> None:
    subject = small_subject()
    results = trials_of("discriminative_power", subject, {"alpha": 0.2, **FEW})
    report = audited("discriminative_power", subject, {"alpha": 0.2, **FEW})
    rows = report.table("agreement").records()
    for row, (first, second) in zip(rows, combinations(results.values(), 2), strict=True):
        counts = {name: int(row[name] or 0) for name in ("both", "only_first", "only_second", "opposite")}
        assert counts["both"] + counts["only_first"] + counts["opposite"] == first["told"]
        assert counts["both"] + counts["only_second"] + counts["opposite"] == second["told"]


def test_power_increases_with_alpha() -> None:
    report = audited("discriminative_power", small_subject("AP"), FEW)
    percents = report.table("levels").column("percent")
    assert percents == sorted(percents)  # type: ignore[type-var]


def test_partial_report_covers_the_finished_measures() -> None:
    subject = small_subject()
    report = reported(
        "discriminative_power", subject, FEW, trials_of("discriminative_power", subject, FEW, only=[1])
    )
    assert report.table("measures").column("measure") == ["nDCG@10"]
    assert [*report.numbers] == ["power(nDCG@10)", "smallest(nDCG@10)", "required(nDCG@10)", "pairs"]


def test_equal_runs_do_not_differ() -> None:
    qrels, runs = board(runs=2)
    report = audited(
        "discriminative_power", subject_of(qrels, {"a": runs["run0"], "b": runs["run0"]}, "AP"), FEW
    )
    assert report.numbers == {"power(AP)": 0.0, "smallest(AP)": None, "required(AP)": 0.0, "pairs": 1}
    assert report.verdict[0].endswith("; the observed means of all runs are the same.")


def test_power_of_scores_with_overflowing_squares_is_undefined() -> None:
    """RBTO of three labels over 400 ranks is at most 3^400, about 7e190."""
    report = audited("discriminative_power", small_subject("RBTO@400 AP"), FEW)
    assert report.numbers["power(RBTO@400)"] is None
    assert "1e+150" in report.undefined[0]
    assert report.numbers["power(AP)"] is not None


def test_unsuitable_subjects_and_settings_are_refused() -> None:
    qrels, runs = board(topics=1)
    [one_run, one_topic] = problems("discriminative_power", subject_of(qrels, {"a": runs["run0"]}, "AP"))
    assert "only one is given" in one_run
    assert "only one topic" in one_topic
    [few] = problems("discriminative_power", small_subject(), {"replicates": 50})
    assert few == "50 replicates are too few for alpha 0.01: give 100 or more"
    assert problems("discriminative_power", small_subject(), {"replicates": 100}) == []
    [small_alpha] = problems("discriminative_power", small_subject(), {"replicates": 50, "alpha": 1e-300})
    assert small_alpha == "50 replicates are too few for alpha 1e-300: give 1e+300 or more"
    [undefined] = problems("discriminative_power", small_subject("alpha_nDCG@20 AP"))
    assert "alpha_nDCG@20" in undefined


def test_report_has_no_notes_on_scale_types() -> None:
    assert audited("discriminative_power", small_subject("AP P@5 nDCG@5"), FEW).warnings == ()


def test_equal_notes_on_several_measures_are_merged() -> None:
    report = audited("discriminative_power", small_subject("GMAP GMBpref P@5"), FEW)
    assert report.warnings == (
        "GMAP, GMBpref: compared by the mean of the logarithms of its per-topic values",
    )


def test_difference_of_power_has_an_interval_over_topics() -> None:
    """The intervals of (first, second) and of (second, first) are negatives of each other."""
    first, second = (
        audited("discriminative_power", small_subject(text), {"alpha": 0.05, **FEW})
        for text in ("AP P@5", "P@5 AP")
    )
    [row], [other] = (report.table("agreement").records() for report in (first, second))
    assert row["difference"] == pytest.approx(
        first.numbers["power(AP)"] - first.numbers["power(P@5)"]  # type: ignore[operator]
    )
    assert row["low"] < row["high"]  # type: ignore[operator]
    assert [row[name] for name in ("difference", "low", "high")] == pytest.approx(
        [-other[name] for name in ("difference", "high", "low")]  # type: ignore[operator]
    )
    assert "its 95 per cent interval over samples of topics is" in first.verdict[0]
    assert all(f"{abs(row[name]):.2f}" in first.verdict[0] for name in ("low", "high"))  # type: ignore[arg-type]
    assert first.verdict[0] == second.verdict[0]


def test_report_on_stored_trials_of_an_earlier_release_has_no_intervals() -> None:
    subject = small_subject("AP P@5")
    results = trials_of("discriminative_power", subject, {"alpha": 0.2, **FEW})
    for trial in results.values():
        for name in ("required", "designs", "asl", "by_sample"):
            del trial[name]
    report = reported("discriminative_power", subject, {"alpha": 0.2, **FEW}, results)
    assert report.table("agreement").records()[0]["low"] is None
    assert report.table("asl").rows == report.table("designs").rows == ()
    assert "interval" not in report.verdict[0]


def test_asl_curves_of_many_pairs_are_thinned(monkeypatch: pytest.MonkeyPatch) -> None:
    subject = small_subject("AP")
    full = audited("discriminative_power", subject, FEW).table("asl").rows
    monkeypatch.setattr("cupel_audits.kinds.discriminative_power.LISTED_PAIRS", 6)
    assert len(full) == 15
    assert audited("discriminative_power", subject, FEW).table("asl").rows == full[::3]
