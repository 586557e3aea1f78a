"""The report of `topic_selection` on seven runs, with the selection derived by hand.

The id of a document has two digits: its grade, and how many of its three words are red; the others are blue.
On each topic, a run retrieves one document. The reference is nDCG@1, which is half of the grade. LMD grows
with the number of red words, because the only document relevant to the subtopic, 23, is completely red.

The sums of grades are a 3, b 4, c 5, d 2, e 2, f 6, g 8. So 20 of the 21 pairs of runs are untied.
Topic 2: the red words are d, e 0, b 2, a, c, f, g 3. Of 14 untied pairs only (a, b) is discordant, and the
pairs of d or e with the others are concordant, so tau is (13 - 1) / sqrt(14 * 20).
Topics 2 and 1: d and e are still equal, and only (c, f) is discordant. Tau is (19 - 1) / 20 = 0.9.
Topics 2, 1 and 3: (b, d) are equal, d is above e, and (a, b) and (c, f) are discordant. Tau is (17 - 2) / 20.
The random topics and the selections with three of the runs are derived with an independent scorer below.
"""

import math
from collections.abc import Sequence

import pytest

from cupel_audits.report import AuditReport
from support.data.audit_subjects import audited, lists, subject_of
from support.data.expected_audits import generator_of, kendall_tau_b, score_lmd, spread_cells
from support.data.expected_reports import assert_report
from support.data.small_collections import qrels_of, scale, texts_of

RETRIEVED = {
    "1": ["00", "11", "12", "11", "01", "21", "23"],
    "2": ["23", "12", "23", "00", "10", "23", "23"],
    "3": ["11", "10", "01", "12", "01", "01", "23"],
    "4": ["01", "13", "23", "01", "12", "21", "22"],
}
"""The document that each of the seven runs retrieves, by topic."""
TOPICS = list(RETRIEVED)
ALL_RUNS = range(7)
TEXTS = {
    f"{grade}{red}": " ".join(["red"] * red + ["blue"] * (3 - red)) for grade in range(3) for red in range(4)
}
NDCG = {topic: [int(document[0]) / 2 for document in retrieved] for topic, retrieved in RETRIEVED.items()}
LMD = {
    topic: [score_lmd([document], TEXTS, {"x": ["23"]}) for document in retrieved]
    for topic, retrieved in RETRIEVED.items()
}
SELECTED = {"2": 12 / math.sqrt(14 * 20), "1": 0.9, "3": 0.75}
"""Tau after each selected topic."""


def tau_over(topics: Sequence[str], runs: Sequence[int]) -> float | None:
    """Return tau-b of the runs between LMD on `topics` and nDCG@1 on all topics."""
    lmd = [sum(LMD[topic][run] for topic in topics) for run in runs]
    return kendall_tau_b(lmd, [sum(scores[run] for scores in NDCG.values()) for run in runs])


def taus_along(topics: Sequence[str], runs: Sequence[int]) -> list[float | None]:
    """Return tau after each of the topics."""
    return [tau_over(topics[:number], runs) for number in range(1, len(topics) + 1)]


def select_three_topics(runs: Sequence[int]) -> list[str]:
    """Add the topic with the highest tau three times; the first one of equal topics."""
    chosen: list[str] = []
    for _ in range(3):
        left = [topic for topic in TOPICS if topic not in chosen]
        taus = [tau_over([*chosen, topic], runs) for topic in left]
        rounded = [-2 if tau is None else round(tau, 9) for tau in taus]
        chosen.append(left[rounded.index(max(rounded))])
    return chosen


def draw_trials() -> tuple[list[list[float | None]], list[list[float | None]]]:
    """Return the taus of three random orders of topics, and those of the runs that did not select."""
    random, held_out = [], []
    for trial in (1, 2, 3):
        rng = generator_of("topic_selection", trial)
        random.append(taus_along([TOPICS[place] for place in rng.permutation(4)][:3], ALL_RUNS))
        runs = rng.permutation(7).tolist()
        held_out.append(taus_along(select_three_topics(runs[:3]), runs[3:]))
    return random, held_out


def report_of(number: int) -> AuditReport:
    """Return the report of a selection of this number of topics."""
    grades = {topic: {document: int(document[0]) for document in TEXTS} for topic in TOPICS}
    qrels = qrels_of({scale(2): grades}, subtopics={topic: {"23": {"x": 1}} for topic in TOPICS})
    rankings = {
        name: {topic: [retrieved[run]] for topic, retrieved in RETRIEVED.items()}
        for run, name in enumerate("abcdefg")
    }
    subject = subject_of(qrels, lists(rankings), "nDCG@1", top=20, texts=texts_of(TEXTS))
    return audited("topic_selection", subject, {"reference": "nDCG@1", "number": number, "repeats": 3})


@pytest.fixture(scope="module")
def report() -> AuditReport:
    return report_of(3)


def test_report_equals_the_hand_worked_selection(report: AuditReport) -> None:
    assert select_three_topics(ALL_RUNS) == list(SELECTED)
    selected = list(SELECTED.values())
    random, held_out = draw_trials()
    curves = {"selected": [selected], "at random": random, "other runs": held_out}
    points = [
        (way, number, *spread_cells(taus))
        for way, repeats in curves.items()
        for number, taus in enumerate(zip(*repeats, strict=True), 1)
    ]
    means = {(way, number): mean for way, number, mean, *_ in points}
    names = {"selected": "tau", "at random": "tau_random", "other runs": "tau_other_runs"}
    assert_report(
        report,
        verdict=(
            "LMD: with 2 of 4 topics, selected with the scores of nDCG@1, tau with the order of nDCG@1 over "
            "all topics is 0.90, the highest in the selection.",
            f"With as many random topics, the mean tau is {means['at random', 2]:.2f}.",
            f"If half of the runs select the topics, the mean tau of the other half is "
            f"{means['other runs', 2]:.2f}.",
        ),
        numbers={"topics@0.9": 2} | {f"{names[way]}@{number}": mean for (way, number), mean in means.items()},
        tables={
            "points": ("way number mean low high least greatest n", points),
            "topics": (
                "place topic tau",
                [(place, topic, tau) for place, (topic, tau) in enumerate(SELECTED.items(), 1)],
            ),
        },
    )


def test_advice_and_title_follow_the_tau_of_the_other_and_of_all_runs(report: AuditReport) -> None:
    """Tau reaches 0.9 with two selected topics, but never over the runs that did not select the topics."""
    _, held_out = draw_trials()
    assert all(sum(taus) / 3 < 0.9 for taus in zip(*held_out, strict=True))  # type: ignore[arg-type]
    assert report.plots[0].title == "Tau with nDCG@1 first reaches 0.9 with 2 topics selected for these runs"
    assert report.actions == (
        "Choose topics by the scores of earlier runs only, because a selection needs scores on all topics.",
    )


def test_title_has_one_selected_topic_in_the_singular() -> None:
    [plot] = report_of(1).plots
    assert plot.title == "Tau with nDCG@1 reaches at most 0.72, with 1 topic selected for these runs"
    assert "Bands: 95 per cent intervals" in plot.caption
