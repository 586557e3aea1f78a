"""Tests that every reader of runs gives the same rows or errors on a table of cases."""

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from cupel_measures.findings import Refused
from cupel_measures.model import Joined, Qrels
from cupel_measures.model.profiles import PROFILES
from cupel_measures.reading import joins
from cupel_measures.reading.compression import open_plain
from cupel_measures.reading.qrels_files import read_qrels
from cupel_measures.reading.run_files import Limits, join, join_run, pack, read_run, unpack

QRELS = b"".join(
    f"{topic} 0 {document} 1\n".encode()
    for topic in ("1", "2", "t\u00e9")
    for document in ("a", "ab", "b", "doc-12345678", "doc-123456789", "\u00fc")
)
LIMITS = Limits(line=60, lines=8, topics=3, depth=4)

# (topic, document, rank, first, last) of each hit; ("1", 3) means 3 retrieved documents for topic 1.
Rows = set[tuple[Any, ...]]


@dataclass(frozen=True)
class Case:
    """The text of a run with its rows, or with the codes of its errors."""

    name: str
    text: bytes
    rows: Rows | None = None
    errors: tuple[str, ...] = ()
    depth: int | None = None
    profile: str = "cupel"


PLAIN = b"1 Q0 a 1 3.5 tag\n1 Q0 x 2 2.5 tag\n1 Q0 b 3 1.5 tag\n"
PLAIN_ROWS: Rows = {("1", 3), ("1", "a", 1, 1, 1), ("1", "b", 3, 3, 3)}


def run_with_score(text: str) -> bytes:
    """Return a run in which `a` has the given score and `b` the score 1.5."""
    return f"1 Q0 a 1 {text} tag\n1 Q0 b 2 1.5 tag\n".encode()


def ranked_rows(first: bool) -> Rows:
    """Return the rows of a run that ranks `a` before `b`, or after it."""
    a, b = (1, 2) if first else (2, 1)
    return {("1", 2), ("1", "a", a, a, a), ("1", "b", b, b, b)}


CASES = [
    Case("six columns", PLAIN, PLAIN_ROWS),
    Case("no newline at the end", PLAIN[:-1], PLAIN_ROWS),
    Case("carriage returns", PLAIN.replace(b"\n", b"\r\n"), PLAIN_ROWS),
    Case("one line without its carriage return", PLAIN.replace(b"\n", b"\r\n", 2), PLAIN_ROWS),
    Case("a carriage return and no newline at the end", PLAIN[:-1] + b"\r", PLAIN_ROWS),
    Case("tabs", PLAIN.replace(b" ", b"\t"), PLAIN_ROWS),
    Case("several spaces", PLAIN.replace(b" ", b"  \t "), PLAIN_ROWS),
    Case("spaces at the end of lines", PLAIN.replace(b"\n", b" \n"), PLAIN_ROWS),
    Case("spaces at the start of lines", b"  " + PLAIN.replace(b"\n", b"\n\t"), PLAIN_ROWS),
    Case("vertical tabs and form feeds are whitespace", PLAIN.replace(b" ", b"\x0b\x0c"), PLAIN_ROWS),
    Case("blank lines", b"\n" + PLAIN.replace(b"\n", b"\n \n"), PLAIN_ROWS),
    Case("a byte order mark", b"\xef\xbb\xbf" + PLAIN, PLAIN_ROWS),
    Case("comments", b"# a comment\n#\n" + PLAIN + b"# the end", PLAIN_ROWS),
    Case("a comment after a byte order mark", b"\xef\xbb\xbf#1 Q0 q 1 9 t\n" + PLAIN, PLAIN_ROWS),
    Case("a # in an id does not start a comment", PLAIN.replace(b" x ", b" #x "), PLAIN_ROWS),
    Case("a # after a space does not start a comment", b" #1 Q0 a 1 1 t\n" + PLAIN, PLAIN_ROWS),
    Case("words after the tag", PLAIN.replace(b"tag", b'"my tag" is long'), PLAIN_ROWS),
    Case("other control characters are part of words", PLAIN.replace(b" x ", b" \x01\x7f "), PLAIN_ROWS),
    Case("no-break spaces are part of words", PLAIN.replace(b" x ", " x\u00a0\u2028 ".encode()), PLAIN_ROWS),
    Case("ranks are ignored", PLAIN.replace(b" 1 3.5", b" 9 3.5"), PLAIN_ROWS),
    Case("ranks may be any numbers", PLAIN.replace(b" 1 3.5", b" -1.5e+3 3.5"), PLAIN_ROWS),
    Case("ranks of many digits", PLAIN.replace(b" 1 3.5", b" 000000000000000000001 3.5"), PLAIN_ROWS),
    Case(
        "lines out of order",
        b"1 Q0 b 1 1 t\n1 Q0 x 1 2 t\n1 Q0 a 1 3 t\n",
        PLAIN_ROWS,
    ),
    Case(
        "ties by document id, descending, as bytes",
        b"1 Q0 ab 1 2 t\n1 Q0 a 2 2 t\n1 Q0 b 3 2 t\n1 Q0 \xc3\xbc 4 2 t\n",
        {("1", 4)} | {("1", name, rank, 1, 4) for rank, name in enumerate(("\u00fc", "b", "ab", "a"), 1)},
    ),
    Case(
        "ties below and above, with unjudged documents",
        b"1 Q0 z 1 9 t\n1 Q0 a 2 8 t\n1 Q0 x 3 8 t\n1 Q0 b 4 8.0 t\n",
        {("1", 4), ("1", "b", 3, 2, 4), ("1", "a", 4, 2, 4)},
    ),
    Case(
        "ties out of order",
        b"1 Q0 a 1 1 t\n1 Q0 x 2 2 t\n1 Q0 b 3 1 t\n1 Q0 ab 4 2 t\n",
        {("1", 4), ("1", "ab", 2, 1, 2), ("1", "b", 3, 3, 4), ("1", "a", 4, 3, 4)},
    ),
    Case(
        "ids that differ late and in length",
        b"1 Q0 doc-12345678 1 1 t\n1 Q0 doc-1234567 2 1 t\n1 Q0 doc-123456789 3 1 t\n",
        {("1", 3), ("1", "doc-123456789", 1, 1, 3), ("1", "doc-12345678", 2, 1, 3)},
    ),
    Case(
        "zero and minus zero tie",
        b"1 Q0 a 1 0 t\n1 Q0 b 2 -0.0 t\n",
        {("1", 2), ("1", "b", 1, 1, 2), ("1", "a", 2, 1, 2)},
    ),
    Case(
        "a cut at the depth, through a tie",
        b"1 Q0 a 1 5 t\n1 Q0 b 2 4 t\n1 Q0 x 3 4 t\n1 Q0 ab 4 4 t\n",
        {("1", 2), ("1", "a", 1, 1, 1)},
        depth=2,
    ),
    Case(
        "a cut at the depth that keeps a part of a tie",
        b"1 Q0 a 1 5 t\n1 Q0 b 2 4 t\n1 Q0 ab 3 4 t\n",
        {("1", 2), ("1", "a", 1, 1, 1), ("1", "b", 2, 2, 2)},
        depth=2,
    ),
    Case(
        "single precision ties",
        b"1 Q0 b 1 0.100000001 t\n1 Q0 a 2 0.1 t\n",
        {("1", 2), ("1", "b", 1, 1, 2), ("1", "a", 2, 1, 2)},
        profile="trec_eval-9",
    ),
    Case(
        "single precision ties, the other way round",
        b"1 Q0 a 1 0.100000001 t\n1 Q0 b 2 0.1 t\n",
        {("1", 2), ("1", "b", 1, 1, 2), ("1", "a", 2, 1, 2)},
        profile="trec_eval-9",
    ),
    Case(
        "double precision",
        b"1 Q0 a 1 0.100000001 t\n1 Q0 b 2 0.1 t\n",
        ranked_rows(True),
        profile="trec_eval-10",
    ),
    Case("tiny scores", b"1 Q0 a 1 2e-305 t\n1 Q0 b 2 1e-305 t\n", ranked_rows(True)),
    Case(
        "tiny scores in single precision",
        b"1 Q0 a 1 2e-305 t\n1 Q0 b 2 1e-305 t\n",
        {("1", 2), ("1", "b", 1, 1, 2), ("1", "a", 2, 1, 2)},
        profile="trec_eval-9",
    ),
    Case("the highest score", run_with_score("1.7976931348623157e308"), ranked_rows(True)),
    Case("the lowest score", run_with_score("-1.7976931348623157e308"), ranked_rows(False)),
    Case(
        "a score of many digits",
        run_with_score("1." + "5" + "0" * 40),
        {("1", 2), ("1", "b", 1, 1, 2), ("1", "a", 2, 1, 2)},
    ),
    Case("the next number up", run_with_score("1.5000000000000002"), ranked_rows(True)),
    Case("the next number down", run_with_score("1.4999999999999998"), ranked_rows(False)),
    Case("an integer of many digits", run_with_score("12345678901234567890"), ranked_rows(True)),
    *(
        Case(f"the score {text}", run_with_score(text), ranked_rows(True))
        for text in ("+2", "2.0", "20e-1", ".2E1", "0.2e+1", "00002")
    ),
    *(
        Case(f"the score {text}", run_with_score(text), ranked_rows(False))
        for text in ("-2", "1", "15e-1000", "-.5", "0.0")
    ),
    Case(
        "several topics",
        "2 Q0 a 1 1 t\n1 Q0 b 1 1 t\nt\u00e9 Q0 \u00fc 1 1 t\n".encode(),
        {
            ("2", 1),
            ("1", 1),
            ("t\u00e9", 1),
            ("2", "a", 1, 1, 1),
            ("1", "b", 1, 1, 1),
            ("t\u00e9", "\u00fc", 1, 1, 1),
        },
    ),
    Case(
        "a topic in two places",
        b"1 Q0 b 1 1 t\n2 Q0 a 1 1 t\n1 Q0 a 1 2 t\n",
        {("2", 1), ("1", 2), ("2", "a", 1, 1, 1), ("1", "a", 1, 1, 1), ("1", "b", 2, 2, 2)},
    ),
    Case(
        "a topic that the qrels lack, in two places",
        b"9 Q0 b 1 1 t\n1 Q0 a 1 1 t\n9 Q0 a 1 2 t\n",
        {("1", 1), ("1", "a", 1, 1, 1)},
    ),
    Case("a topic that the qrels lack", b"1 Q0 a 1 1 t\n9 Q0 b 1 1 t\n", {("1", 1), ("1", "a", 1, 1, 1)}),
    Case(
        "topics with a common prefix",
        b"1 Q0 a 1 1 t\n12 Q0 a 1 1 t\n",
        {("1", 1), ("1", "a", 1, 1, 1)},
    ),
    Case("a topic without a judged document", b"1 Q0 x 1 1 t\n", {("1", 1)}),
    Case("the same document in two topics", b"1 Q0 x 1 1 t\n2 Q0 x 1 1 t\n", {("1", 1), ("2", 1)}),
    Case(
        "as many lines, topics and documents as allowed",
        b"#\n#\n"
        + b"".join(f"1 Q0 {name} 1 1 t\n".encode() for name in "wxyz")
        + b"2 Q0 x 1 1 t\n9 Q0 x 1 1 t\n",
        {("1", 4), ("2", 1)},
    ),
    Case("a line as long as allowed", b"1 Q0 a 1 1 " + b"t" * 49 + b"\n", {("1", 1), ("1", "a", 1, 1, 1)}),
    # rejected runs
    Case("empty", b"", errors=("run-empty",)),
    Case("only a byte order mark", b"\xef\xbb\xbf", errors=("run-empty",)),
    Case("only whitespace", b" \n\r\n\t", errors=("run-empty",)),
    Case("only comments", b"# nothing\n", errors=("run-empty",)),
    Case("five columns", PLAIN + b"1 Q0 q 1 1\n", errors=("run-columns",)),
    Case("one column", b"1\n" + PLAIN, errors=("run-columns",)),
    Case("five columns and a space", b"1 Q0 q 1 1 \r\n" + PLAIN, errors=("run-columns",)),
    *(
        Case(f"the score {text!r}", run_with_score(text), errors=("run-score",))
        for text in (
            "abc",
            "nan",
            "inf",
            "-inf",
            "Infinity",
            "0x10",
            "1_000",
            "1,5",
            "1.",
            ".",
            "-",
            "+",
            "e5",
            "1e",
            "1e+",
            "--1",
            "1.5.2",
            "1e5.0",
            "1d5",
            "\u0661",
            "1f",
            "5\u0660",
            "1e5e5",
            "12345678.",
            "123456789x",
            "1.5x",
            "1e999",
            "-1e999",
            "1.8e308",
            "9" * 40 + "e290",
        )
    ),
    Case("carriage returns only", PLAIN.replace(b"\n", b"\r")[:60], errors=("run-line-ends",)),
    Case(
        "a long file with carriage returns only", PLAIN.replace(b"\n", b"\r") * 9, errors=("run-line-ends",)
    ),
    Case("a lone carriage return in a tag", PLAIN.replace(b"tag", b"t\ra", 1), errors=("run-line-ends",)),
    Case("a lone carriage return in a comment", b"#\r1 Q0 a 1 1 t\n" + PLAIN, errors=("run-line-ends",)),
    Case("Latin-1 and a carriage return", PLAIN + b"1 Q0 \xfc\r 1 1 t\n", errors=("run-not-text",)),
    Case("two carriage returns", PLAIN.replace(b"\n", b"\r\r\n"), errors=("run-line-ends",)),
    *(
        Case(f"the rank {text!r}", f"1 Q0 a {text} 1 t\n".encode(), errors=("run-rank",))
        for text in ("x", "1.", "Q0", "1e", "0x1", "nan", "1234567890123x", "\u0661")
    ),
    Case("a rank and a score", b"1 Q0 a x y t\n", errors=("run-rank", "run-score")),
    Case("a duplicate document", PLAIN + b"1 Q0 a 4 1 t\n", errors=("run-duplicate",)),
    Case("a duplicate document, first and last", PLAIN + b"1 Q0 x 4 1 t\n", errors=("run-duplicate",)),
    Case(
        "a duplicate document in a topic that the qrels lack",
        PLAIN + b"9 Q0 a 4 1 t\n9 Q0 a 4 2 t\n",
        errors=("run-duplicate",),
    ),
    Case(
        "a duplicate document in a topic in two places",
        b"1 Q0 a 1 1 t\n2 Q0 a 1 1 t\n1 Q0 a 1 2 t\n",
        errors=("run-duplicate",),
    ),
    Case(
        "a duplicate document below the depth", PLAIN + b"1 Q0 a 4 0 t\n", errors=("run-duplicate",), depth=1
    ),
    Case("no topic in common", b"q1 Q0 a 1 1 t\n", errors=("run-topics-none",)),
    Case("a NUL byte", PLAIN + b"1 Q0 q\x00 1 1 t\n", errors=("run-not-text",)),
    Case("a NUL byte in a comment", b"#\x00\n" + PLAIN, errors=("run-not-text",)),
    Case("a NUL byte in a tag", b"1 Q0 a 1 1 t\x00\n", errors=("run-not-text",)),
    Case("Latin-1", PLAIN + b"1 Q0 \xfc 1 1 t\n", errors=("run-not-text",)),
    Case("a surrogate", b"1 Q0 \xed\xa0\x80 1 1 t\n", errors=("run-not-text",)),
    Case("an overlong sequence", b"1 Q0 \xc0\x80 1 1 t\n", errors=("run-not-text",)),
    Case("an overlong sequence of three", b"1 Q0 \xe0\x9f\xbf 1 1 t\n", errors=("run-not-text",)),
    Case("an overlong sequence of four", b"1 Q0 \xf0\x8f\xbf\xbf 1 1 t\n", errors=("run-not-text",)),
    Case("beyond Unicode", b"1 Q0 \xf4\x90\x80\x80 1 1 t\n", errors=("run-not-text",)),
    Case("a sequence cut short", b"1 Q0 a 1 1 t\xe2\x82\n", errors=("run-not-text",)),
    Case("a sequence cut short at the end", b"1 Q0 a 1 1 t\xe2\x82", errors=("run-not-text",)),
    Case("UTF-16", PLAIN.decode().encode("utf-16"), errors=("run-not-text",)),
    Case("a line too long", b"1 Q0 a 1 1 " + b"t" * 50 + b"\n", errors=("limit-line",)),
    Case("a last line too long", PLAIN + b"2 Q0 a 1 1 " + b"t" * 50, errors=("limit-line",)),
    Case("a comment too long", b"#" * 61 + b"\n" + PLAIN, errors=("limit-line",)),
    Case("a blank line too long", b" " * 61 + b"\n" + PLAIN, errors=("limit-line",)),
    Case("too many lines", PLAIN + b"#\n" * 6, errors=("limit-lines",)),
    Case(
        "too many topics", b"".join(f"{t} Q0 a 1 1 t\n".encode() for t in range(4)), errors=("limit-topics",)
    ),
    Case(
        "too many documents",
        b"".join(f"1 Q0 {d} 1 1 t\n".encode() for d in range(5)),
        errors=("limit-depth",),
    ),
    Case("a damaged archive", b"\x1f\x8b\x08\x00rubbish", errors=("file-corrupt",)),
]

NO_TOPICS = ("run-topics-none",)
Reader = Callable[[Case, Qrels], Joined]


def join_directly(case: Case, qrels: Qrels) -> Joined:
    return join_run(case.text, qrels, profile=PROFILES[case.profile], depth=case.depth, limits=LIMITS)


def join_stored(case: Case, qrels: Qrels) -> Joined:
    """Read, pack, unpack and join a run, as a worker does."""
    ranking = unpack(pack(read_run(case.text, limits=LIMITS)))
    return join(ranking, qrels, profile=PROFILES[case.profile], depth=case.depth)


@pytest.fixture(params=["compiled", "numpy"])
def implementation(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Select the compiled or the numpy implementation of the fast readers."""
    if request.param == "numpy":
        monkeypatch.setattr(joins, "extension", None)
    elif joins.extension is None:
        pytest.skip("the extension was not compiled")
    return str(request.param)


def rows_of(joined: Joined, qrels: Qrels) -> Rows:
    rows: Rows = set()
    for row, topic in enumerate(qrels.topics):
        if joined.retrieved[row]:
            rows.add((topic, int(joined.retrieved[row])))
        for hit in range(int(joined.offsets[row]), int(joined.offsets[row + 1])):
            document = qrels.documents[int(joined.document[hit])]
            rows.add(
                (topic, document, *(int(part[hit]) for part in (joined.rank, joined.first, joined.last)))
            )
    return rows


@pytest.mark.parametrize(
    ("case", "reader"),
    [pytest.param(case, join_directly, id=f"{case.name}-direct") for case in CASES]
    # A stored run was accepted under other qrels, so its topics are not checked.
    + [
        pytest.param(case, join_stored, id=f"{case.name}-stored")
        for case in CASES
        if case.errors != NO_TOPICS
    ],
)
def test_every_reader_gives_the_same_rows_or_the_same_errors(
    case: Case, reader: Reader, implementation: str
) -> None:
    qrels = read_qrels(QRELS)
    if case.rows is None:
        with pytest.raises(Refused) as refused:
            reader(case, qrels)
        assert tuple(sorted({finding.code for finding in refused.value.findings.errors})) == case.errors
    else:
        assert rows_of(reader(case, qrels), qrels) == case.rows


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.rows is not None], ids=lambda case: case.name
)
def test_valid_run_is_read_without_the_line_reader(case: Case, implementation: str) -> None:
    is_split_topic = "in two places" in case.name
    joined = joins.join_text(
        open_plain(case.text),
        read_qrels(QRELS),
        profile=PROFILES[case.profile],
        depth=case.depth,
        limits=LIMITS,
    )
    assert (joined is None) == is_split_topic


@pytest.mark.parametrize("idle", [b"# a comment\n", b"\n"], ids=["comments", "blank lines"])
def test_long_stretches_of_comments_and_blank_lines_are_read(idle: bytes, implementation: str) -> None:
    count = (6 << 20) // len(idle)
    text, qrels = PLAIN + idle * count + b"1 Q0 ab 4 1 tag\n", read_qrels(QRELS)
    declined = joins.join_text(
        open_plain(text), qrels, profile=PROFILES["cupel"], depth=None, limits=Limits()
    )
    assert declined is None
    assert rows_of(join_run(text, qrels), qrels) == PLAIN_ROWS - {("1", 3)} | {("1", 4), ("1", "ab", 4, 4, 4)}


@pytest.mark.parametrize("huge", [1 << 31, 1 << 63, 1 << 80])
def test_limits_and_depth_may_be_huge(huge: int, implementation: str) -> None:
    qrels, limits = read_qrels(QRELS), Limits(line=huge, lines=huge, topics=huge, depth=huge)
    assert rows_of(join_run(PLAIN, qrels, depth=huge, limits=limits), qrels) == PLAIN_ROWS
    assert rows_of(join(read_run(PLAIN, limits=limits).ranking, qrels, depth=huge), qrels) == PLAIN_ROWS


def test_joined_qrels_can_be_pickled(implementation: str) -> None:
    qrels = read_qrels(QRELS)
    joined = join_run(PLAIN, qrels)
    assert rows_of(join_run(PLAIN, pickle.loads(pickle.dumps(qrels))), qrels) == rows_of(joined, qrels)
