"""The audits `content`, `label_selection` and `topic_selection`: text-based measures with few judgments."""

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from scipy.stats import kendalltau

from cupel_audits import AuditError, read_audit
from cupel_audits.subject import AuditSubject
from cupel_measures.model import Texts
from support.data.audit_subjects import audited, problems, reported, subject_of, trials_of
from support.data.small_collections import Scored, diverse, qrels_of, ranked, texts_of

FEW = {"repeats": 3, "percents": [100, 50, 20]}
CLASSIC = "alpha_nDCG@20"


def write_texts(
    topics: int = 4, subtopics: int = 3, documents: int = 12
) -> tuple[Texts, dict[str, dict[str, str]]]:
    """Return the text of each document, and by topic the subtopic of each document.

    Documents with smaller numbers have more words of their subtopic.
    """
    draw = random.Random(2)
    texts: dict[str, Any] = {}
    about: dict[str, Any] = {}
    for topic in range(topics):
        for number in range(subtopics * documents):
            subtopic, name = f"s{number % subtopics}", f"t{topic}d{number:02}"
            words = [
                f"{topic}{subtopic}{draw.randrange(6)}"
                if draw.random() < 0.9 - number / 60
                else f"w{draw.randrange(40)}"
                for _ in range(12)
            ]
            texts[name] = " ".join(words)
            about.setdefault(f"t{topic}", {})[name] = subtopic
    return texts_of(texts), about


TEXTS, ABOUT = write_texts()
JUDGED = diverse(
    {
        topic: {name: {subtopic: int(int(name[-2:]) < 24), "s9": 0} for name, subtopic in of.items()}
        for topic, of in ABOUT.items()
    }
)


def runs() -> Iterator[tuple[str, Scored]]:
    """Return runs of decreasing quality.

    The best run ranks the documents by number, so those with the most words of their subtopics are first.
    """
    for noise in range(6):
        draw = random.Random(noise)
        yield (
            f"run{noise}",
            {
                topic: ranked(*sorted(of, key=lambda name, at=noise: int(name[-2:]) + draw.gauss(0, 5 * at)))  # type: ignore[misc]
                for topic, of in ABOUT.items()
            },
        )


RUNS = dict(runs())


@pytest.fixture(scope="module")
def subject() -> AuditSubject:
    return subject_of(JUDGED, RUNS, CLASSIC, top=20, texts=TEXTS)


@pytest.mark.parametrize("curve", ["incomplete", "downsampling", "pool_depth"])
def test_every_measure_is_compared_with_the_reference_under_all_judgments(
    subject: AuditSubject, curve: str
) -> None:
    report = audited("content", subject, {**FEW, "curve": curve, "deepest": 20})
    first = {"pool_depth": "20"}.get(curve, "100")
    assert {row[0] for row in report.table("points").rows} == {CLASSIC, "LMD"}
    points = {(row[0], f"{row[1]:g}"): row[3] for row in report.table("points").rows}
    reference = {(row[0], f"{row[1]:g}"): row[2] for row in report.table("own").rows}
    for step in {step for _, step in points}:
        assert points[CLASSIC, step] == reference[CLASSIC, step]
        assert report.numbers[f"tau(LMD)@{step}"] == points["LMD", step]
    if curve != "pool_depth":  # the first sample has all judgments
        assert points[CLASSIC, first] == reference[CLASSIC, first] == reference["LMD", first] == 1
        full = subject_of(JUDGED, RUNS, f"{CLASSIC} LMD", texts=TEXTS).means
        assert points["LMD", first] == tau(full[CLASSIC].tolist(), full["LMD"].tolist())


def tau(x: list[float], y: list[float]) -> float:
    """Return Kendall's tau-a, which equals tau-b because the runs are not tied."""
    pairs = [(a, b) for a in range(len(x)) for b in range(a)]
    signs = [(x[a] - x[b]) * (y[a] - y[b]) for a, b in pairs]
    assert all(signs)
    return sum(1 if sign > 0 else -1 for sign in signs) / len(pairs)


def test_pool_depth_curve_equals_the_audit_pool_depth(subject: AuditSubject) -> None:
    mine = audited("content", subject, {"curve": "pool_depth", "deepest": 6}).numbers
    theirs = audited("pool_depth", subject, {"deepest": 6}).numbers
    for depth in range(1, 7):
        assert mine[f"tau({CLASSIC})@{depth}"] == theirs[f"tau({CLASSIC})@{depth}"]
        assert mine[f"kept@{depth}"] == theirs[f"kept@{depth}"]


def test_lmd_is_added_only_if_no_measure_reads_texts() -> None:
    subject = subject_of(JUDGED, RUNS, "LMD(stop=5) ERR_IA@20", texts=TEXTS)
    report = audited("content", subject, FEW)
    assert set(report.table("points").column("measure")) == {"LMD(stop=5)", "ERR_IA@20", CLASSIC}
    assert report.verdict[0].startswith(
        "LMD(stop=5): tau with the order of alpha_nDCG@20 under all judgments is"
    )
    assert len(report.verdict) == 1


def test_selection_labels_the_hand_worked_documents() -> None:
    texts = texts_of(
        {
            "a": "apple fruit tree apple",
            "b": "apple pie fruit",
            "c": "mac computer apple",
            "d": "rain weather",
            "e": "computer keyboard",
        }
    )
    judged = diverse({"t": {"a": {"1": 1}, "b": {"1": 1}, "c": {"2": 1}, "d": {"1": 0}}})
    lists = {"one": {"t": ranked("a", "d", "c")}, "two": {"t": ranked("b", "e", "c")}}
    subject = subject_of(judged, lists, CLASSIC, top=20, texts=texts)
    report = audited("label_selection", subject, {"depth": 1, "batch": 1, "repeats": 2})
    # labels a, b, d, e, c, and ends at depth 3
    assert report.table("topics").rows == (("t", 5, 5, 1.0, 3, 2, 0),)
    selected = [row[:3] for row in report.table("points").rows if row[0] == "selected"]
    assert selected == [("selected", number, number / 5) for number in range(1, 6)]
    assert report.numbers["tau"] == report.numbers["tau_random"] == report.numbers["tau_all"]


def test_random_baselines_label_the_same_number_of_documents(subject: AuditSubject) -> None:
    results = trials_of("label_selection", subject, {"repeats": 2, "batch": 2})
    assert results[0]["labels"] == results[1]["labels"] == results[2]["labels"]
    assert len(results[0]["taus"]) == len(results[1]["taus"]) == len(results[0]["labels"])
    assert results[1]["taus"] != results[2]["taus"]
    report = reported("label_selection", subject, {"repeats": 2, "batch": 2}, results)
    rows = report.table("topics").rows
    assert [row[0] for row in rows] == ["t0", "t1", "t2", "t3"]
    assert report.numbers["labels"] == sum(row[1] for row in rows)  # type: ignore[misc]
    assert report.numbers["missed"] == 0
    assert 0 < report.numbers["labelled"] < 1  # type: ignore[operator]


def test_missed_subtopic_labels_the_whole_pool(subject: AuditSubject) -> None:
    judged = diverse(
        {
            "t0": {"t0d00": {"s0": 1}, "t0d01": {"s1": 1}, "elsewhere": {"s2": 1}},
            "t1": {"t1d00": {"s0": 1}},
            "t2": {"t2d00": {"s0": 0}},
        }
    )
    report = audited(
        "label_selection", subject_of(judged, RUNS, CLASSIC, top=20, texts=TEXTS), {"repeats": 1}
    )
    [first, second] = report.table("topics").rows
    assert (first[0], first[3], first[4:]) == ("t0", 1.0, (20, 3, 1))
    assert (second[0], second[5:]) == ("t1", (1, 0))
    assert report.numbers["labelled_whole"] == second[3]
    assert "1 of 4 subtopics have no relevant document in the pools" in report.verdict[1]


def test_report_on_labels_without_a_tau_gives_no_advice_on_the_reference(subject: AuditSubject) -> None:
    given = {"repeats": 2, "batch": 3}
    report = reported(
        "label_selection", subject, given, trials_of("label_selection", subject, given, only=[1])
    )
    assert report.actions == (
        "Do not infer whether LMD can replace the reference: tau is undefined with these labels.",
    )


def test_selection_with_the_tau_of_random_labels_gives_no_higher_tau(subject: AuditSubject) -> None:
    given = {"repeats": 2, "batch": 3}
    trials = trials_of("label_selection", subject, given)
    trials |= {number: trials[number] | {"taus": trials[0]["taus"]} for number in (1, 2)}
    report = reported("label_selection", subject, given, trials)
    sentence = "The selection gives no higher tau than as many random labels on average (untested)."
    assert sentence in report.actions


def test_labelled_shares_of_equal_pools_have_no_extremes() -> None:
    """No topic has a relevant document in the pools, so every pool is labelled completely."""
    judged = diverse(
        {topic: {"elsewhere": {"s0": 1}} | {name: {"s0": 0} for name in of} for topic, of in ABOUT.items()}
    )
    subject = subject_of(judged, RUNS, CLASSIC, top=20, texts=TEXTS)
    report = audited("label_selection", subject, {"repeats": 2})
    assert report.plots[1].title == "Labelled share of a topic's pool: 100% for every topic"
    assert [column.title for column in report.table("points").columns if column.name == "share"] == [
        "labelled share"
    ]


@pytest.mark.parametrize(
    ("kind", "given"), [("content", FEW), ("label_selection", {"repeats": 2, "batch": 3})]
)
def test_results_are_independent_of_the_order_of_trials(
    subject: AuditSubject, kind: str, given: dict[str, object]
) -> None:
    alone = {trial: trials_of(kind, subject, given, only=[trial])[trial] for trial in (2, 0, 1)}
    assert alone == trials_of(kind, subject, given)
    for trial in alone:
        assert reported(kind, subject, given, {trial: alone[trial]}).numbers


def test_random_baselines_alone_leave_tau_of_the_selection_undefined(subject: AuditSubject) -> None:
    given = {"repeats": 2, "batch": 3}
    results = trials_of("label_selection", subject, given, only=[1])
    numbers = reported("label_selection", subject, given, results).numbers
    assert numbers["tau"] is None
    assert numbers["tau_random"] is not None


def test_equal_scores_leave_tau_undefined() -> None:
    same = dict.fromkeys(("one", "two"), RUNS["run0"])
    subject = subject_of(JUDGED, same, CLASSIC, top=20, texts=TEXTS)
    report = audited("content", subject, FEW)
    assert report.numbers["tau(LMD)@50"] is None
    assert report.verdict == (
        "LMD: undefined because tau of LMD or of alpha_nDCG@20 is undefined at every step.",
    )
    assert audited("label_selection", subject, {"repeats": 0}).numbers["tau"] is None


@pytest.mark.parametrize("kind", ["content", "label_selection"])
def test_impossible_audits_are_refused_with_a_reason(kind: str) -> None:
    def refusal_of(*measures: str, **made: object) -> str:
        given = {"qrels": JUDGED, "runs": RUNS, "texts": TEXTS} | made
        subject = subject_of(given["qrels"], given["runs"], CLASSIC, top=20, texts=given["texts"])  # type: ignore[arg-type]
        return " ".join(problems(kind, subject, {"reference": measures[0]} if measures else None))

    assert refusal_of() == ""
    assert "the audit needs the texts of the documents, but the collection has none" in refusal_of(texts=None)
    plain = qrels_of({"t0": {"t0d00": 1}})
    assert "the audit needs judgments by subtopic, but the collection has none" in refusal_of(qrels=plain)
    assert "no document is judged relevant to a subtopic" in refusal_of(
        qrels=diverse({"t0": {"t0d00": {"s0": 0}}})
    )
    assert "the audit compares runs, but only one is given" in refusal_of(runs={"one": RUNS["run0"]})
    assert "LMD uses texts itself" in refusal_of("LMD")
    assert "reference: AP: it needs judgments of an aspect" in refusal_of("AP")
    with pytest.raises(AuditError, match="reference: unknown measure 'alpha_NDGC'"):
        read_audit(kind, {"reference": "alpha_NDGC@20"})


def test_selection_refuses_classic_measures_and_too_deep_pools(subject: AuditSubject) -> None:
    assert problems("label_selection", subject, {"measure": CLASSIC}) == [
        f"{CLASSIC} does not read texts: give a text-based measure such as LMD"
    ]
    assert problems("label_selection", subject, {"depth": 20}) == []
    assert problems("label_selection", subject, {"depth": 21}) == [
        "depth is 21, but labelling ends at 20: give a depth from 1 to 20"
    ]


FEW_TOPICS = {"repeats": 3, "number": 3}


def scipy_tau(subject: AuditSubject, topics: list[int], runs: list[int]) -> float:
    """Return scipy 1.17's tau-b: LMD over `topics` against the reference over all topics."""
    novel, reference = (subject.scores[text][:, runs] for text in ("LMD", CLASSIC))
    means = (np.round(scores.mean(axis=0), 12) for scores in (novel[topics], reference))
    return float(kendalltau(*means).statistic)


@pytest.fixture(scope="module")
def scored() -> AuditSubject:
    return subject_of(JUDGED, RUNS, f"LMD {CLASSIC}", texts=TEXTS)


def test_topics_are_selected_greedily_by_tau(scored: AuditSubject) -> None:
    """No other topic has a higher tau at any step, and the first one in the order of ids wins a tie."""
    every = list(range(len(RUNS)))
    [selection] = trials_of("topic_selection", scored, {**FEW_TOPICS, "repeats": 0}).values()
    chosen: list[int] = []
    for topic, tau in zip(selection["topics"], selection["taus"], strict=True):
        possible = {
            other: round(scipy_tau(scored, [*chosen, other], every), 9)
            for other in range(len(ABOUT))
            if other not in chosen
        }
        assert round(tau, 9) == max(possible.values())
        assert topic == min(other for other, value in possible.items() if value == max(possible.values()))
        chosen.append(topic)
    assert len(chosen) == 3


def test_random_topics_and_other_runs_have_the_tau_of_scipy(scored: AuditSubject) -> None:
    results = trials_of("topic_selection", scored, FEW_TOPICS)
    for trial in (1, 2, 3):
        order = results[trial]["topics"]
        assert len(set(order)) == len(order) == 3
        for end, tau in enumerate(results[trial]["taus"], 1):
            assert tau == pytest.approx(scipy_tau(scored, order[:end], list(range(len(RUNS)))))
        assert len(results[trial]["held_out"]) == 3
    assert results[0]["held_out"] == []


def test_advice_names_the_topics_from_which_the_other_runs_reach_a_high_tau(scored: AuditSubject) -> None:
    trials = trials_of("topic_selection", scored, FEW_TOPICS)
    for number in (1, 2, 3):
        trials[number]["held_out"] = [0.5, 0.95, 0.8]
    report = reported("topic_selection", scored, FEW_TOPICS, trials)
    assert report.actions[0] == (
        "With 2 topics, the mean tau of the runs that did not select them first reaches 0.9."
    )


def test_report_names_the_best_number_of_topics(scored: AuditSubject) -> None:
    report = audited("topic_selection", scored, FEW_TOPICS)
    rows = report.table("topics").records()
    taus = [row["tau"] for row in rows]
    best = taus.index(max(taus)) + 1  # type: ignore[type-var]
    assert report.verdict[0] == (
        f"LMD: with {best} of 4 topics, selected with the scores of {CLASSIC}, tau with the "
        f"order of {CLASSIC} over all topics is {taus[best - 1]:.2f}, the highest in the selection."
    )
    assert [report.numbers[f"tau@{number}"] for number in (1, 2, 3)] == taus
    ways = report.table("points").column("way")
    assert [ways.count(way) for way in ("selected", "at random", "other runs")] == [3, 3, 3]


def test_few_runs_are_not_divided(scored: AuditSubject) -> None:
    few = subject_of(JUDGED, dict(list(RUNS.items())[:5]), "LMD", texts=TEXTS)
    report = audited("topic_selection", few, FEW_TOPICS)
    assert "other runs" not in report.table("points").column("way")


def test_selection_without_random_topics_and_equal_runs(scored: AuditSubject) -> None:
    """Equal runs have no order, so tau is undefined."""
    equal = subject_of(JUDGED, {"a": RUNS["run0"], "b": RUNS["run0"]}, "LMD", texts=TEXTS)
    report = audited("topic_selection", equal, {"repeats": 0, "number": 2})
    assert report.verdict == (f"LMD: tau with {CLASSIC} is undefined for every selection of topics.",)
    assert report.numbers["topics@0.9"] is None
    assert len(report.undefined) == 3


def test_topic_selection_needs_texts_and_a_text_based_measure(scored: AuditSubject) -> None:
    [sentence] = problems("topic_selection", scored, {"measure": "alpha_nDCG@10"})
    assert sentence == "alpha_nDCG@10 does not read texts: give a text-based measure such as LMD"
    without = subject_of(JUDGED, RUNS, CLASSIC)
    assert any("needs the texts" in sentence for sentence in problems("topic_selection", without))
