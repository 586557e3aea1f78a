"""`discriminative_power`: pairs of runs that measures tell apart."""

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


def example() -> AuditSubject:
    """Runs whose P@100 on five topics are the scores of spec 3.8: so many relevant of 100 documents."""
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
    return subject_of(qrels, runs, "P@100")


def small(measures: str = "AP nDCG@10 P@5") -> AuditSubject:
    return subject_of(*board(), measures)


def scores(subject: AuditSubject, measure: str) -> Floats:
    return subject.scores[measure]


def test_the_example_of_the_spec_tells_two_of_three_pairs_apart() -> None:
    """Spec 3.8: exact ASL 0.0096 of (x, y), 0.0064 of (x, c), 0.8304 of (y, c), so at 0.01 power is 66.67.

    The spec gives 0.003 to the ASL of 10,000 replicates; alpha 0.013 leaves as much room for chance.
    """
    subject = example()
    assert scores(subject, "P@100").T.tolist() == [list(one) for one in (X, Y, C)]
    report = audited("discriminative_power", subject, {"alpha": 0.013})
    assert report.numbers["power(P@100)"] == pytest.approx(200 / 3)
    assert report.numbers["pairs"] == 3
    [row] = report.table("measures").rows
    smallest, greatest = row[4:6]
    assert smallest == pytest.approx(0.67 - 0.314)  # x and c
    assert greatest == pytest.approx(0.314 - 0.31)  # c and y
    assert "2 of 3 pairs" in report.verdict[0]


def test_it_is_what_the_library_says_of_each_measure_with_the_seed_of_the_audit() -> None:
    subject = small()
    report = audited("discriminative_power", subject, {"alpha": 0.05, **FEW})
    for measure in subject.about.measures:
        values = scores(subject, measure)
        found = discriminative_power(values, alpha=0.05, replicates=500, seed=SEED)
        assert report.numbers[f"power({measure})"] == found.percent
        means = mean(values)
        apart = np.abs(means[found.first] - means[found.second])[found.asl < 0.05]
        assert report.numbers[f"smallest({measure})"] == min(apart)


def test_measures_share_their_replicates_however_trials_are_grouped() -> None:
    """AP and AP@80, of rankings that are no longer, find the same; alone, backwards or together."""
    subject = small("AP AP@80 P@5")
    together = trials_of("discriminative_power", subject, FEW)
    alone = [trials_of("discriminative_power", subject, FEW, only=[one])[one] for one in (2, 1, 0)]
    assert [together[2], together[1], together[0]] == alone
    same = [together[0] | {"measure": ""}, together[1] | {"measure": ""}]
    assert same[0] == same[1]


def test_euclid_and_manhattan_are_the_same_for_precision_of_positive_labels() -> None:
    """Spec 10.2: with AP and `positive` weights they see the same documents as relevant."""
    qrels, runs = board()
    other = np.random.default_rng(5).integers(3, size=qrels.labels.shape).astype(np.int32)
    both = dataclasses.replace(
        qrels,
        aspects=(*qrels.aspects, Aspect("quality", range(3))),
        labels=np.concatenate([qrels.labels, other]),
    )
    measures = "TOMA(of=AP,weighting=positive) TOMA(of=AP,distance=manhattan,weighting=positive)"
    found = trials_of("discriminative_power", subject_of(both, runs, measures), {"alpha": 0.2, **FEW})
    assert found[0]["told"] > 0
    assert found[0] | {"measure": "", "notes": []} == found[1] | {"measure": "", "notes": []}


def test_agreement_counts_pairs() -> None:
    subject = small()
    found = trials_of("discriminative_power", subject, {"alpha": 0.2, **FEW})
    report = audited("discriminative_power", subject, {"alpha": 0.2, **FEW})
    table = report.table("agreement")
    for row, (one, other) in zip(table.rows, combinations(found.values(), 2), strict=True):
        both, first, second, opposite = (int(cell or 0) for cell in row[2:])
        assert both + first + opposite == one["told"]
        assert both + second + opposite == other["told"]


def test_power_rises_with_the_level() -> None:
    report = audited("discriminative_power", small("AP"), FEW)
    percents = report.table("levels").column("percent")
    assert percents == sorted(percents)  # type: ignore[type-var]


def test_a_report_on_some_trials_is_of_their_measures() -> None:
    subject = small()
    report = reported(
        "discriminative_power", subject, FEW, trials_of("discriminative_power", subject, FEW, only=[1])
    )
    assert report.table("measures").column("measure") == ["nDCG@10"]
    assert [*report.numbers] == ["power(nDCG@10)", "smallest(nDCG@10)", "pairs"]


def test_alike_runs_are_not_told_apart() -> None:
    qrels, runs = board(runs=2)
    report = audited(
        "discriminative_power", subject_of(qrels, {"a": runs["run0"], "b": runs["run0"]}, "AP"), FEW
    )
    assert report.numbers == {"power(AP)": 0.0, "smallest(AP)": None, "pairs": 1}
    assert report.verdict[0].endswith("(0.00 per cent): all runs have the same mean.")


def test_scores_that_cannot_be_squared_are_undefined() -> None:
    """RBTO of three labels over 400 ranks goes up to 3^400, about 7e190."""
    report = audited("discriminative_power", small("RBTO@400 AP"), FEW)
    assert report.numbers["power(RBTO@400)"] is None
    assert "1e+150" in report.undefined[0]
    assert report.numbers["power(AP)"] is not None


def test_nonsense_is_refused_with_its_reason() -> None:
    qrels, runs = board(topics=1)
    [one_run, one_topic] = problems("discriminative_power", subject_of(qrels, {"a": runs["run0"]}, "AP"))
    assert "there is only one" in one_run
    assert "only one topic" in one_topic
    [few] = problems("discriminative_power", small(), {"replicates": 50})
    assert few == "50 replicates can't tell alpha 0.01: give 100 or more"
    [small_alpha] = problems("discriminative_power", small(), {"replicates": 50, "alpha": 1e-300})
    assert small_alpha == "50 replicates can't tell alpha 1e-300: give 1e+300 or more"
    [undefined] = problems("discriminative_power", small("alpha_nDCG@20 AP"))
    assert "alpha_nDCG@20" in undefined


def test_a_scale_that_has_no_means_is_warned_of() -> None:
    report = audited("discriminative_power", small("AP P@5 nDCG@5"), FEW)
    [warning] = report.warnings
    assert warning.startswith("AP, nDCG@5: ")
