"""Tests that audits of real collections reproduce findings of the papers."""

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cupel_audits.subject import AuditSubject
from cupel_audits.subject_files import NamedQrels, assemble_subject, view_of
from cupel_measures.catalogue.parser import parse_many
from cupel_measures.model import ABSENT, Qrels
from cupel_measures.reading.run_files import read_run
from support.data.audit_subjects import audited, board, subject_of
from support.data.lexical_systems import Collection, cranfield, odp, runs_over, texts_in
from support.data.real_runs import Load, clef, touche
from support.data.small_collections import diverse


def real_subject(load: Load, measures: str, *, top: int = 0, other: Qrels | None = None) -> AuditSubject:
    qrels = load.collection.qrels
    runs = [(path.name, view_of(read_run(path).ranking, qrels, top=top, other=other)) for path in load.runs]
    other_qrels = None if other is None else NamedQrels("other", other)
    return assemble_subject(
        NamedQrels(load.track, qrels), runs, parse_many(measures), top=top, other=other_qrels
    )


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=pytest.mark.sampled(every=2)) for name in ("clef-2015", "touche")],
)
def two_aspects(request: pytest.FixtureRequest, shared: Path) -> AuditSubject:
    return real_subject(
        touche(shared, ()) if request.param == "touche" else clef(shared)[1], "nDCG AP", top=100
    )


def test_cam_and_mm_rarely_reach_1(two_aspects: AuditSubject) -> None:
    """Maistro et al., CIKM 2021, section 4.2: no ranking scores 1 where aspects disagree."""
    numbers = audited("aspects", two_aspects).numbers
    for measure in ("CAM(of=nDCG)", "MM(of=nDCG)"):
        assert 0 < numbers[f"bound_1({measure})"] < 0.5  # type: ignore[operator]
        assert numbers[f"bound_below_0.9({measure})"] < 0.05  # type: ignore[operator]


def test_euclidean_and_manhattan_toma_rank_few_worthless_documents_high(two_aspects: AuditSubject) -> None:
    """Maistro et al., CIKM 2021: MANH and EUCL rank the fewest (Table 5); their tau is 1 for AP (Table 4)."""
    numbers = audited("aspects", two_aspects, {"weighting": "positive"}).numbers
    zero = {name: numbers[f"zero(all {name})"] for name in ("CAM", "MM", "TOMA euclidean", "TOMA manhattan")}
    worse = max(zero["MM"], numbers["zero(all TOMA chebyshev)"])  # type: ignore[type-var]
    assert max(zero["TOMA euclidean"], zero["TOMA manhattan"]) < min(zero["CAM"], worse)  # type: ignore[type-var]
    pair = "TOMA(of=AP,weighting=positive),TOMA(of=AP,distance=manhattan,weighting=positive)"
    assert numbers[f"tau({pair})"] == 1


def test_quality_falls_with_rank_in_the_best_runs(two_aspects: AuditSubject) -> None:
    """Maistro et al., CIKM 2021, Table 6: the mean sum of labels falls from bin to bin."""
    numbers = audited("aspects", two_aspects).numbers
    bins = ("1-25", "26-50", "51-75", "76-100")
    for kind in ("CAM", "MM", "TOMA euclidean", "TOMA manhattan", "TOMA chebyshev"):
        quality = [numbers[f"quality(all {kind})@{ranks}"] for ranks in bins]
        assert quality == sorted(quality, reverse=True)  # type: ignore[type-var]


def test_noise_lowers_agreement_more_than_tau(shared: Path) -> None:
    load = touche(shared, ())
    qrels, rng = load.collection.qrels, np.random.default_rng(3)
    labels = qrels.labels.copy()
    guessed = (rng.random(labels.shape) < 0.2) & (labels >= 0)
    labels[guessed] = rng.integers(0, 3, int(guessed.sum()))
    labels[(rng.random(labels.shape) < 0.1) & (labels >= 0)] = ABSENT
    report = audited(
        "qrels_versions", real_subject(load, "nDCG@10 AP", other=replace(qrels, labels=labels, cache={}))
    )
    assert 0.8 < report.numbers["same(relevance)"] < 0.9  # type: ignore[operator]
    assert 0.6 < report.numbers["kappa(relevance)"] < 0.85  # type: ignore[operator]
    assert report.numbers["tau(AP)"] > 0.85  # type: ignore[operator]
    assert report.numbers["opposite(AP)"] == 0


def lexical_subject(make: Callable[[Path], Collection], shared: Path) -> AuditSubject:
    collection = make(shared / "data")
    runs = runs_over(collection, random.Random(7))
    return subject_of(diverse(collection.judged), runs, "alpha_nDCG@20", top=20, texts=texts_in(collection))


@pytest.mark.experiment
def test_selected_labels_order_systems_better_than_random_labels(shared: Path) -> None:
    """Hui, PIKM 2014, section 5.2: under 20 per cent of the pool is selected, tau is above 0.8."""
    report = audited("label_selection", lexical_subject(cranfield, shared), {"repeats": 1, "batch": 15})
    assert report.numbers["labelled"] < 0.2  # type: ignore[operator]
    assert report.numbers["tau"] > 0.8  # type: ignore[operator]
    assert report.numbers["tau"] > report.numbers["tau_random"] + 0.05  # type: ignore[operator]


@pytest.mark.experiment
def test_lmd_keeps_the_order_with_few_judgments_better_than_alpha_ndcg(shared: Path) -> None:
    """Hui, PIKM 2014, section 5: classic measures fall below tau 0.8 at 40 per cent; LMD hardly falls."""
    numbers = audited(
        "content", lexical_subject(odp, shared), {"repeats": 3, "percents": [100, 20, 5]}
    ).numbers
    for percent in (20, 5):
        assert numbers[f"tau(LMD)@{percent}"] > numbers[f"tau(alpha_nDCG@20)@{percent}"]  # type: ignore[operator]
    assert numbers["tau(LMD)@100"] - numbers["tau(LMD)@20"] < 0.1  # type: ignore[operator]
    assert numbers["tau(alpha_nDCG@20)@20"] < 0.8  # type: ignore[operator]


def assert_inferred_ap_survives_missing_judgments(subject: AuditSubject) -> None:
    """Yilmaz and Aslam, CIKM 2006: under a sample of the judgments, infAP estimates AP and its order."""
    percents = [100, 70, 50, 30, 20, 10]
    report = audited("incomplete", subject, {"percents": percents, "repeats": 10})
    points = {(row["measure"], row["percent"]): row for row in report.table("points").records()}
    complete, at_30 = (points[key]["score"] for key in (("AP", 100), ("infAP", 30)))
    assert at_30 == pytest.approx(complete, rel=0.1)
    assert points["AP", 30]["score"] < 0.6 * complete  # type: ignore[operator]
    for percent in percents[1:]:
        assert points["infAP", percent]["mean"] > points["AP", percent]["mean"]  # type: ignore[operator]


def test_inferred_ap_survives_missing_judgments_of_clef(shared: Path) -> None:
    assert_inferred_ap_survives_missing_judgments(real_subject(clef(shared)[0], "AP infAP"))


def test_inferred_ap_survives_missing_judgments_of_random_runs() -> None:
    qrels, runs = board(runs=15, topics=20, documents=600, judged=400)
    assert_inferred_ap_survives_missing_judgments(subject_of(qrels, runs, "AP infAP"))
