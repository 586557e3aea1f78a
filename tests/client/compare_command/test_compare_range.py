"""`cupel compare` if an interval or a detectable difference exceeds the range of the measure."""

from pathlib import Path

import pytest

from support.compared_files import cupel, json_of

TOPICS = ("1", "2", "3")
HITS = {"low.txt": "100", "mid.txt": "110", "all.txt": "111"}
"""P@1 of each run on the three topics."""


@pytest.fixture(autouse=True)
def few_topics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "q.txt").write_text("".join(f"{topic} 0 x 1\n{topic} 0 y 0\n" for topic in TOPICS))
    for name, hits in HITS.items():
        lines = [
            f"{topic} Q0 {'x' if hit == '1' else 'y'} 1 1 r\n"
            for topic, hit in zip(TOPICS, hits, strict=True)
        ]
        (tmp_path / name).write_text("".join(lines))
    monkeypatch.chdir(tmp_path)


def test_table_says_that_no_possible_difference_is_detected() -> None:
    printed = " ".join(cupel("q.txt", "low.txt", "mid.txt", "-m", "P@1", "--test", "t").stdout.split())
    assert "not significant none possible" in printed
    assert (
        "a paired t-test at alpha 0.05 (a single test) detects with power 0.8 exceeds the range of the "
        "measure (0 to 1), so these topics detect no possible difference with this power"
    ) in printed


def test_summary_of_many_pairs_says_that_no_possible_difference_is_detected() -> None:
    for copy in ("4.txt", "5.txt", "6.txt"):
        Path(copy).write_text(Path("low.txt").read_text())
    runs = [*HITS, "4.txt", "5.txt", "6.txt"]
    summary = cupel("q.txt", *runs, "-m", "P@1", "--all-pairs", "--alpha", "0.01").stdout
    assert "Detectable difference: none possible." in summary


def test_possible_detectable_difference_has_no_note() -> None:
    """The differences 0, 1, 0 times 1/1000 have a detectable difference far below 1."""
    printed = cupel("q.txt", "low.txt", "mid.txt", "-m", "RBP(p=0.999)", "--test", "t").stdout
    assert "no possible difference" not in printed
    assert "none possible" not in printed


def test_intervals_are_clipped_to_the_range_of_the_measure() -> None:
    """The t interval of the mean of 1, 1, 0 is 2/3 +- 4.30 / 3, and that of 0, 1, 0 is 1/3 +- 4.30 / 3."""
    [measure] = json_of("q.txt", "low.txt", "mid.txt", "-m", "P@1", "--test", "t")["measures"]
    assert [(run["low"], run["high"]) for run in measure["means"]] == [(0, 1), (0, 1)]
    [pair] = measure["differences"]
    assert (pair["low"], pair["high"]) == (-1, 1)


def test_method_of_a_rank_test_names_no_simultaneous_intervals() -> None:
    arguments = ("q.txt", *HITS, "-m", "P@1", "--all-pairs", "--test")
    assert "Intervals: Student's t.\n" in cupel(*arguments, "nemenyi").stdout
    assert "simultaneous for differences (max-T quantile)" in cupel(*arguments, "max-t").stdout
