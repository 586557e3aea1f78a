"""Tests of the errors and warnings of the line reader of runs, with their places and numbers."""

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cupel_measures.findings import KINDS, LISTED_PER_CODE, Finding, Findings, Refused
from cupel_measures.model import Aspect, Run
from cupel_measures.model.profiles import PROFILES
from cupel_measures.reading.qrels_files import SUBTOPICS, QrelsFile, build_qrels, read_qrels, unscaled
from cupel_measures.reading.run_files import (
    Limits,
    check_against,
    check_judged,
    join_run,
    profile_effects,
    read_run,
)


def findings_of(text: bytes, **limits: int) -> Findings:
    """Return the findings of a run that is rejected."""
    with pytest.raises(Refused) as caught:
        read_run(text, name="mytag.txt", limits=Limits(**limits))
    return caught.value.findings


def single_finding(findings: Findings) -> Finding:
    """Return the single finding."""
    assert len(findings) == 1, [str(finding) for finding in findings]
    return next(iter(findings))


def run_of(*lines: str, name: str | None = None, depth: int | None = None) -> Run:
    """Return a run of lines `topic document rank score`."""
    words = [line.split() for line in lines]
    text = "".join(f"{topic} Q0 {document} {rank} {score} mytag\n" for topic, document, rank, score in words)
    return read_run(text.encode(), name=name, depth=depth)


def codes(findings: Findings) -> list[str]:
    return [finding.code for finding in findings]


def place_of(finding: Finding) -> tuple[int | None, int | None, str | None, str | None]:
    return finding.line, finding.column, finding.topic, finding.sample


GOOD = b"7 Q0 a 1 2.5 mytag\n7 Q0 b 2 1.5 mytag\n"


def test_valid_run_has_no_findings() -> None:
    run = read_run(GOOD, name="mytag.txt.gz", depth=2)
    assert not list(run.findings)
    assert run.tag == "mytag"
    assert run.ranking.topics == ("7",)
    assert run.ranking.documents.to_list() == [b"a", b"b"]


def test_too_few_columns_are_reported_with_line_column_topic_and_sample() -> None:
    finding = single_finding(findings_of(GOOD + b"\n8 Q0 c 1 2.5\r\n"))
    assert (finding.code, finding.file) == ("run-columns", "mytag.txt")
    assert place_of(finding) == (4, 13, "8", "8 Q0 c 1 2.5")
    assert "5 columns; expected six" in finding.message


def test_invalid_score_and_rank_are_both_reported() -> None:
    findings = findings_of(GOOD + b"7\tQ0\tc\t3rd\t1,5\tmytag\n")
    assert sorted(codes(findings)) == ["run-rank", "run-score"]
    score, rank = sorted(findings, key=lambda finding: finding.code, reverse=True)
    assert place_of(score) == (3, 12, "7", "1,5")
    assert place_of(rank) == (3, 8, "7", "3rd")


def test_score_beyond_double_precision_is_reported() -> None:
    large = "9" * 400
    first, second = findings_of(GOOD + f"7 Q0 c 1 -1e400 mytag\n7 Q0 d 1 {large} mytag\n".encode())
    assert (first.code, *place_of(first)) == ("run-score", 3, 10, "7", "-1e400")
    assert "beyond the range of double precision" in first.message
    assert (second.line, second.sample) == (4, "9" * 80 + "...")


def test_carriage_returns_as_line_ends_have_their_own_error() -> None:
    finding = single_finding(findings_of((GOOD * 1000).replace(b"\n", b"\r")))
    assert (finding.code, finding.line, finding.column) == ("run-line-ends", 1, 19)
    assert finding.sample == "7 Q0 a 1 2.5 mytag\r"


@pytest.mark.parametrize("text", [b"1 0 a 1\r1 0 b 0\r", b"1 0 a 1\n1 0 b\r 0\n"])
def test_carriage_returns_as_line_ends_in_qrels_are_rejected(text: bytes) -> None:
    with pytest.raises(Refused) as caught:
        read_qrels(text)
    assert codes(caught.value.findings) == ["qrels-line-ends"]
    assert len(read_qrels(b"1 0 a 1\r\n1 0 b 0\r").documents) == 2


def test_columns_are_counted_in_characters() -> None:
    finding = single_finding(findings_of("7 Q0 \u00e9\u00e9\u6f22 1 x mytag\n".encode()))
    assert place_of(finding) == (1, 12, "7", "x")


def test_duplicate_document_reports_both_lines() -> None:
    finding = single_finding(findings_of(GOOD + b"8 Q0 a 1 2 mytag\n7 Q0 a 3 1 mytag\n"))
    assert finding.code == "run-duplicate"
    assert place_of(finding) == (4, 6, "7", "a")
    assert "first on line 1" in finding.message


def test_errors_after_an_invalid_byte_are_reported() -> None:
    findings = findings_of(b"7 Q0 \xff 1 1 mytag\n7 Q0 a 1 x mytag\n7 Q0 b\x00 1 1 mytag\n")
    assert codes(findings) == ["run-not-text", "run-not-text", "run-score"]
    first, second, score = findings
    assert (first.line, first.column) == (1, 6)
    assert (second.line, second.column) == (3, 7)
    assert "NUL" in second.message
    assert score.line == 2


def test_utf_16_is_named_in_the_message() -> None:
    assert "UTF-16" in single_finding(findings_of(GOOD.decode().encode("utf-16"))).message


def test_all_errors_are_counted_and_the_first_of_each_kind_listed() -> None:
    findings = findings_of(b"".join(f"7 Q0 d{i} 1 x mytag\n7 short\n".encode() for i in range(250)))
    assert findings.totals == {"run-score": 250, "run-columns": 250}
    assert codes(findings).count("run-score") == LISTED_PER_CODE == codes(findings).count("run-columns")
    assert [finding.line for finding in findings if finding.code == "run-score"][:3] == [1, 3, 5]


def count_findings(monkeypatch: pytest.MonkeyPatch, read: Callable[[], object]) -> tuple[int, dict[str, int]]:
    """Return the number of `Finding` objects created by a rejected `read`, and the totals by code."""
    count, original = 0, Finding.__init__

    def count_and_init(self: Finding, *args: Any, **kwargs: Any) -> None:
        nonlocal count
        count += 1
        original(self, *args, **kwargs)

    monkeypatch.setattr(Finding, "__init__", count_and_init)
    with pytest.raises(Refused) as caught:
        read()
    return count, caught.value.findings.totals


INVALID_RUNS = {
    "run-duplicate": b"7 Q0 a 1 1 t\n" * 251,
    "run-not-text": b"7 Q0 a\0 1 1 t\n" * 250,
    "run-line-ends": b"7 Q0\r a 1 1 t\n" * 250,
}
INVALID_QRELS = {
    "qrels-columns": b"1 0\n" * 250,
    "qrels-judged-twice": b"1 0 a 1\n" * 251,
    "qrels-grade-not-integer": b"1 0 a x\n" * 250,
    "qrels-not-text": b"1 0 \xff 1\n" * 250,
    "qrels-line-ends": b"1 0 \r 1\n" * 250,
}


@pytest.mark.parametrize("code", [*INVALID_RUNS, *INVALID_QRELS])
def test_unlisted_findings_are_only_counted(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = INVALID_RUNS.get(code) or INVALID_QRELS[code]
    read = read_run if code in INVALID_RUNS else read_qrels
    count, totals = count_findings(monkeypatch, lambda: read(text))
    assert totals[code] == 250
    assert count <= LISTED_PER_CODE + 5


def test_line_numbers_continue_across_blocks() -> None:
    lines = [f"{topic} Q0 document-{i} 1 {1 / (i + 1)} mytag\n" for topic in range(40) for i in range(1000)]
    lines[30_000] = "30 Q0 x 1 y mytag\n"
    lines[39_999] = lines[39_998]
    score, duplicate = findings_of("".join(lines).encode())
    assert (score.code, score.line, score.topic) == ("run-score", 30_001, "30")
    assert (duplicate.code, duplicate.line, duplicate.sample) == ("run-duplicate", 40_000, "document-998")


@pytest.mark.parametrize(
    ("limit", "value", "line"), [("line", 17, 1), ("lines", 1, 2), ("topics", 0, 1), ("depth", 1, 2)]
)
def test_exceeded_limit_ends_the_reading(limit: str, value: int, line: int) -> None:
    finding = single_finding(
        findings_of(GOOD + b"junk\n" * 3, **{limit: value})
        if limit in ("line", "lines")
        else findings_of(GOOD, **{limit: value})
    )
    assert (finding.code, finding.line) == (f"limit-{limit}", line)
    assert f"`{limit}`" in finding.message


def test_endless_line_is_not_read_into_memory() -> None:
    assert single_finding(findings_of(b"x" * 30_000_000, line=1000)).code == "limit-line"


# ---------------------------------------------------------------------------------------- warnings


def warning_of(run: Run, code: str) -> tuple[Finding, int]:
    """Return the warning with this code, and how often it occurs."""
    findings = [finding for finding in run.findings if finding.code == code]
    assert len(findings) == 1, codes(run.findings)
    assert findings[0].severity == "warning"
    return findings[0], run.findings.totals[code]


def test_documents_beyond_the_depth_give_a_warning_and_are_kept() -> None:
    run = run_of("1 a 1 3", "2 a 1 3", "2 b 2 2", "2 c 3 1", depth=2)
    finding, topics = warning_of(run, "run-depth")
    assert (topics, finding.topic, finding.line) == (1, "2", 2)
    assert len(run.ranking.documents) == 4


def test_ranks_that_contradict_scores_give_a_warning() -> None:
    run = run_of("1 a 2 3", "1 b 1 2", "1 c 3 1", "2 a 1 3", "2 b 2 2")
    finding, topics = warning_of(run, "run-ranks-contradict")
    assert (topics, finding.topic) == (1, "1")


def test_ranks_within_a_tie_do_not_contradict_scores() -> None:
    run = run_of("1 a 1 2", "1 b 2 2", "1 c 3 1")
    assert codes(run.findings) == ["run-ties"]


def test_equal_ranks_give_a_warning() -> None:
    finding, topics = warning_of(run_of("1 a 0 3", "1 b 0 2", "2 a 0 1", "2 b 0 0.5"), "run-ranks-equal")
    assert (topics, finding.topic) == (2, "1")


def test_ranks_from_0_give_a_warning() -> None:
    assert codes(run_of("1 a 0 3", "1 b 1 2").findings) == ["run-ranks-zero"]


def test_scores_that_increase_with_rank_give_a_warning() -> None:
    run = run_of("1 a 1 0.1", "1 b 2 0.2", "1 c 3 0.3")
    finding, _ = warning_of(run, "run-upside-down")
    assert "upside down" in finding.message
    assert codes(run.findings) == ["run-upside-down"]


def test_ties_are_counted_by_line_topic_and_cutoff() -> None:
    lines = [f"1 a{i} {i} {20 - i}" for i in range(1, 10)] + ["1 b 10 1", "1 c 11 1", "2 a 1 1", "2 b 2 1"]
    finding, lines_tied = warning_of(run_of(*lines, depth=1), "run-ties")
    assert lines_tied == 4
    assert "4 lines in 2 topics" in finding.message
    assert "ties extend across rank 1 in 1 topic and across rank 10 in 1 topic" in finding.message


@pytest.mark.parametrize(
    "name", ["mytag", "mytag.txt", "mytag.run.gz", "folder/mytag.dat.zst", "input.mytag.gz"]
)
def test_tag_equal_to_the_file_name_gives_no_warning(name: str) -> None:
    assert not list(read_run(GOOD, name=name).findings)


def test_tag_different_from_the_file_name_gives_a_warning() -> None:
    finding, _ = warning_of(read_run(GOOD, name="other.txt"), "run-tag")
    assert finding.sample == "mytag"


@pytest.mark.parametrize(
    "data",
    [
        gzip.compress(GOOD, mtime=0)[:20],
        b"",
        GOOD.replace(b" a ", b" a a a "),
        GOOD.replace(b"Q0 b", b"0 b"),
    ],
    ids=["cut archive", "empty", "columns", "second column"],
)
@pytest.mark.parametrize("name", ["given.gz", ""])
def test_findings_name_the_given_file_not_the_one_that_is_read(
    tmp_path: Path, data: bytes, name: str
) -> None:
    temporary = tmp_path / "temporary"
    temporary.write_bytes(data)
    try:
        findings = read_run(temporary, name=name).findings
    except Refused as refused:
        findings = refused.findings
    assert {finding.file for finding in findings} == {name or None}
    assert "temporary" not in "".join(map(str, findings))


def test_second_column_other_than_q0_gives_a_warning() -> None:
    finding, lines = warning_of(read_run(GOOD.replace(b"Q0 b", b"0 b")), "run-second-column")
    assert (lines, *place_of(finding)) == (1, 2, 3, None, "0")


# --------------------------------------------------------------------------------- topics and judgments


def test_missing_and_extra_topics_give_warnings() -> None:
    run = run_of("1 a 1 1", "9 a 1 1")
    findings = check_against(run, ["1", "2", "3"], file="r")
    assert findings.totals == {"run-topics-missing": 2, "run-topics-extra": 1}
    assert not findings.refused


@pytest.mark.parametrize(
    ("run_topics", "track_topics", "hint"),
    [
        (["qtest.1", "qtest.2"], ["1", "2"], "prefix: only ids of the run have 'qtest.'"),
        (["1", "2"], ["qtest.1", "qtest.2"], "prefix: only ids of the track have 'qtest.'"),
        (["1-en", "2-en"], ["1", "2"], "suffix: only ids of the run have '-en'"),
        (["007", "010"], ["7", "10"], "leading zeros: '007' in the run, '7' in the track"),
        (["q1", "q2", "x"], ["1", "2", "3"], "prefix: only ids of the run have 'q'"),
        (
            ["qtest.1", "qtest.2"],
            ["001", "002"],
            "prefix and in leading zeros: only ids of the run have 'qtest.'",
        ),
        (["mb1", "mb2"], ["mb01", "mb02"], "leading zeros: 'mb1' in the run, 'mb01' in the track"),
    ],
)
def test_no_common_topic_has_a_hint_at_the_difference(
    run_topics: list[str], track_topics: list[str], hint: str
) -> None:
    findings = check_against(run_of(*(f"{topic} a 1 1" for topic in run_topics)), track_topics)
    assert findings.refused
    assert hint in single_finding(findings).message


@pytest.mark.parametrize(
    ("run_topics", "track_topics"),
    [
        (["x"], ["y"]),
        (["a1", "b2", "c3"], ["1", "2", "3"]),
        (["q1", "other", "strange"], ["1", "2", "3"]),
        (["007", "other"], ["7", "8"]),
        ([str(topic) for topic in range(401, 451)], [str(topic) for topic in range(1, 51)]),
    ],
)
def test_no_common_topic_without_a_pattern_has_no_hint(
    run_topics: list[str], track_topics: list[str]
) -> None:
    finding = single_finding(check_against(run_of(*(f"{topic} a 1 1" for topic in run_topics)), track_topics))
    assert (finding.code, "ids differ" in finding.message) == ("run-topics-none", False)


def test_joining_reports_findings_of_lines_and_topics() -> None:
    with pytest.raises(Refused) as caught:
        join_run(GOOD.replace(b"2.5", b"1.5"), read_qrels(b"8 0 a 1\n"))
    assert set(caught.value.findings.totals) == {"run-ties", "run-topics-none"}


def test_few_judged_documents_at_the_top_give_a_warning() -> None:
    run = run_of("1 a 1 3", "1 b 2 2", "1 c 3 1")
    assert codes(check_judged(run, read_qrels(b"1 0 a 1\n"))) == ["run-few-judged"]
    assert not list(check_judged(run, read_qrels(b"1 0 a 1\n1 0 c 0\n")))


def test_documents_labelled_as_unjudged_are_not_judged() -> None:
    run = run_of("1 a 1 4", "1 b 2 3", "1 c 3 2")
    some = Aspect(name="some", labels=(0, 1), unjudged=(-2,))
    other = Aspect(name="other", labels=(0, 1), unjudged=(-2,))
    columns = ("topic", "_", "document", "some", "other")
    file = QrelsFile("q", b"1 0 a -2 -2\n1 0 b -2 -2\n1 0 c 0 -2\n", columns)
    assert (
        "only 33% of the documents"
        in single_finding(check_judged(run, build_qrels([some, other], [file]))).message
    )
    file = QrelsFile("q", b"1 0 a -2 1\n1 0 b 0 -2\n1 0 c -2 -2\n", columns)
    assert not list(check_judged(run, build_qrels([some, other], [file])))
    subtopics = build_qrels([unscaled("relevance")], [QrelsFile("q", b"1 1 a 1\n1 1 b 0\n", SUBTOPICS)])
    assert not list(check_judged(run, subtopics))


def test_negative_grades_are_judgments_in_the_cupel_profile() -> None:
    run, qrels = run_of("1 a 1 4", "1 b 2 3"), read_qrels(b"1 0 a -1\n1 0 b -1\n1 0 c 1\n")
    assert not list(check_judged(run, qrels))
    assert (
        "only 0% of the documents"
        in single_finding(check_judged(run, qrels, profile=PROFILES["trec_eval-9"])).message
    )


# ------------------------------------------------------------------------------------------- profiles


def test_single_precision_effects_list_the_topics_that_change() -> None:
    run = run_of(
        "1 a 1 0.100000001", "1 b 2 0.1", "2 b 1 0.100000001", "2 a 2 0.1", "3 a 1 2e-305", "3 b 2 1e-305"
    )
    assert profile_effects(run).precision == ("1", "3")


def test_single_precision_effects_are_limited_to_the_depth() -> None:
    run = run_of("1 z 1 9", "1 a 2 0.100000001", "1 b 3 0.1")
    assert profile_effects(run, depth=1).precision == ()
    assert profile_effects(run, depth=2).precision == ("1",)


def test_rank_effects_list_the_topics_that_change() -> None:
    run = run_of("1 a 1 2", "1 b 2 1", "2 a 2 2", "2 b 1 1", "3 a 1 1", "3 b 2 1", "4 a 0 1", "4 b 0 1")
    assert profile_effects(run).ranks == ("2", "3")


# ------------------------------------------------------------------------------------------- metadata

BLOCK = b"""# ir_metadata.start
# platform:
#   cpu: {cores: 8}
# version: 1.10
# tags: [a, b]
# ir_metadata.end
"""


def test_metadata_in_comments_is_parsed() -> None:
    run = read_run(b"# hello\n" + BLOCK + GOOD)
    assert run.metadata == {"platform": {"cpu": {"cores": "8"}}, "version": "1.10", "tags": ["a", "b"]}
    assert read_run(GOOD).metadata is None


@pytest.mark.parametrize(
    "block",
    [
        b"# ir_metadata.start\n# a: 1\n",
        b"# ir_metadata.start\n# a: [\n# ir_metadata.end\n",
        b"# ir_metadata.start\n# just words\n# ir_metadata.end\n",
        b'# ir_metadata.start\n# a: "\\ud800"\n# ir_metadata.end\n',
        b"# ir_metadata.start\n# a: &x [1]\n# b: [*x, *x]\n# ir_metadata.end\n",
        b"# ir_metadata.start\n# a: " + b"[" * 5000 + b"\n# ir_metadata.end\n",
    ],
    ids=["unterminated", "invalid YAML", "not a mapping", "invalid text", "aliases", "too deep"],
)
def test_invalid_metadata_gives_a_warning(block: bytes) -> None:
    run = read_run(block + GOOD)
    assert run.metadata is None
    assert codes(run.findings) == ["run-metadata"]


def test_every_finding_has_a_meaning_and_a_remedy() -> None:
    kinds = [kind for code, kind in KINDS.items() if code.startswith(("run-", "file-", "limit-"))]
    assert len(kinds) > 25
    assert all(kind.remedy and kind.meaning for kind in kinds)
