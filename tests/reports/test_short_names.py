"""Tests of short names of runs and measures."""

import pytest

from cupel_audits.report import AuditReport
from cupel_reports import page
from cupel_reports.short_names import LONGEST, ShortNames, shortened, typed_text
from support.data.sample_pages import plot, result, summary_of, table

LONG = "university_of_somewhere_bm25_with_feedback.run"


@pytest.mark.parametrize(
    ("full", "typed"),
    [
        ("CAM(aspects=[relevance,quality],of=nDCG@10)", "CAM(of=nDCG@10)"),
        ("NLRE(aspects=[relevance,quality])", "NLRE"),
        ("NLRE(aspects=[relevance])", "NLRE(aspects=[relevance])"),
        ("uRBP(aspect=relevance,understandability=[quality])", "uRBP"),
        ("nDCG(aspect=quality)@10", "nDCG(aspect=quality)@10"),
        ("AP", "AP"),
        ("forgotten(measure)", "forgotten(measure)"),
    ],
)
def test_measure_has_the_text_without_default_aspects(full: str, typed: str) -> None:
    assert typed_text(full, ("relevance", "quality")) == typed


def test_endings_of_files_are_dropped_unless_names_become_equal() -> None:
    names = ShortNames.of(summary_of(["a.dat", "b.txt", "b.dat", "c.1.dat.gz", "d", "d.run", ".dat"]))
    assert names.runs == {"a.dat": "a", "c.1.dat.gz": "c.1"}


def test_long_names_are_shortened_in_the_middle() -> None:
    assert shortened("x" * LONGEST) == "x" * LONGEST
    assert shortened("university_of_somewhere_bm25_with_feedback") == "university_of_…with_feedback"
    assert ShortNames.of(summary_of([LONG])).runs == {LONG: "university_of_…with_feedback"}
    alike = [LONG, LONG.replace("bm25", "tf")]
    assert ShortNames.of(summary_of(alike)).runs == {}


def test_names_in_sentences_are_replaced_as_whole_words() -> None:
    names = ShortNames.of(summary_of(["a.dat", "aa.dat"]))
    assert names.text("a.dat beats aa.dat and xa.dat (a.dat).") == "a beats aa and xa.dat (a)."


def test_page_shows_short_names_and_files_keep_full_ones() -> None:
    measure = "CAM(of=AP,aspects=[relevance,quality])"
    about = summary_of([LONG, "b.dat"], [measure], aspects=("relevance", "quality"))
    report = AuditReport(
        verdict=(f"{measure}: {LONG} is best.",),
        numbers={f"tau({measure})": 0.5},
        tables=(table("points", "measure run score", [(measure, LONG, 0.5), (measure, "b.dat", 0.25)]),),
        plots=(plot("bars", "points", "run", "score", series="measure", x_order=("b.dat", LONG)),),
    )
    text = page(result(report) | {"about": about.as_data()})
    assert "CAM(of=AP): university_of_…with_feedback is best." in text
    assert "<td>university_of_…with_feedback" in text
    assert f"(university_of_…with_feedback ({LONG})".lstrip("(") in text
    assert text.count(">CAM(of=AP,aspects=[relevance,quality])<") == 1  # in the request
    assert f"{LONG},0.5" in text.replace("%2C", ",").replace("%0A", "\n")
    assert f"tau({measure})" in text
