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


@dataclass(frozen=True, kw_only=True)
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
    Case(name="six columns", text=PLAIN, rows=PLAIN_ROWS),
    Case(name="no newline at the end", text=PLAIN[:-1], rows=PLAIN_ROWS),
    Case(name="carriage returns", text=PLAIN.replace(b"\n", b"\r\n"), rows=PLAIN_ROWS),
    Case(name="one line without its carriage return", text=PLAIN.replace(b"\n", b"\r\n", 2), rows=PLAIN_ROWS),
    Case(name="a carriage return and no newline at the end", text=PLAIN[:-1] + b"\r", rows=PLAIN_ROWS),
    Case(name="tabs", text=PLAIN.replace(b" ", b"\t"), rows=PLAIN_ROWS),
    Case(name="several spaces", text=PLAIN.replace(b" ", b"  \t "), rows=PLAIN_ROWS),
    Case(name="spaces at the end of lines", text=PLAIN.replace(b"\n", b" \n"), rows=PLAIN_ROWS),
    Case(name="spaces at the start of lines", text=b"  " + PLAIN.replace(b"\n", b"\n\t"), rows=PLAIN_ROWS),
    Case(
        name="vertical tabs and form feeds are whitespace",
        text=PLAIN.replace(b" ", b"\x0b\x0c"),
        rows=PLAIN_ROWS,
    ),
    Case(name="blank lines", text=b"\n" + PLAIN.replace(b"\n", b"\n \n"), rows=PLAIN_ROWS),
    Case(name="a byte order mark", text=b"\xef\xbb\xbf" + PLAIN, rows=PLAIN_ROWS),
    Case(name="comments", text=b"# a comment\n#\n" + PLAIN + b"# the end", rows=PLAIN_ROWS),
    Case(
        name="a comment after a byte order mark", text=b"\xef\xbb\xbf#1 Q0 q 1 9 t\n" + PLAIN, rows=PLAIN_ROWS
    ),
    Case(name="a # in an id does not start a comment", text=PLAIN.replace(b" x ", b" #x "), rows=PLAIN_ROWS),
    Case(
        name="a # after a space does not start a comment", text=b" #1 Q0 a 1 1 t\n" + PLAIN, rows=PLAIN_ROWS
    ),
    Case(name="words after the tag", text=PLAIN.replace(b"tag", b'"my tag" is long'), rows=PLAIN_ROWS),
    Case(
        name="other control characters are part of words",
        text=PLAIN.replace(b" x ", b" \x01\x7f "),
        rows=PLAIN_ROWS,
    ),
    Case(
        name="no-break spaces are part of words",
        text=PLAIN.replace(b" x ", " x\u00a0\u2028 ".encode()),
        rows=PLAIN_ROWS,
    ),
    Case(name="ranks are ignored", text=PLAIN.replace(b" 1 3.5", b" 9 3.5"), rows=PLAIN_ROWS),
    Case(name="ranks may be any numbers", text=PLAIN.replace(b" 1 3.5", b" -1.5e+3 3.5"), rows=PLAIN_ROWS),
    Case(
        name="ranks of many digits",
        text=PLAIN.replace(b" 1 3.5", b" 000000000000000000001 3.5"),
        rows=PLAIN_ROWS,
    ),
    Case(
        name="lines out of order",
        text=b"1 Q0 b 1 1 t\n1 Q0 x 1 2 t\n1 Q0 a 1 3 t\n",
        rows=PLAIN_ROWS,
    ),
    Case(
        name="ties by document id, descending, as bytes",
        text=b"1 Q0 ab 1 2 t\n1 Q0 a 2 2 t\n1 Q0 b 3 2 t\n1 Q0 \xc3\xbc 4 2 t\n",
        rows={("1", 4)}
        | {("1", name, rank, 1, 4) for rank, name in enumerate(("\u00fc", "b", "ab", "a"), 1)},
    ),
    Case(
        name="ties below and above, with unjudged documents",
        text=b"1 Q0 z 1 9 t\n1 Q0 a 2 8 t\n1 Q0 x 3 8 t\n1 Q0 b 4 8.0 t\n",
        rows={("1", 4), ("1", "b", 3, 2, 4), ("1", "a", 4, 2, 4)},
    ),
    Case(
        name="ties out of order",
        text=b"1 Q0 a 1 1 t\n1 Q0 x 2 2 t\n1 Q0 b 3 1 t\n1 Q0 ab 4 2 t\n",
        rows={("1", 4), ("1", "ab", 2, 1, 2), ("1", "b", 3, 3, 4), ("1", "a", 4, 3, 4)},
    ),
    Case(
        name="ids that differ late and in length",
        text=b"1 Q0 doc-12345678 1 1 t\n1 Q0 doc-1234567 2 1 t\n1 Q0 doc-123456789 3 1 t\n",
        rows={("1", 3), ("1", "doc-123456789", 1, 1, 3), ("1", "doc-12345678", 2, 1, 3)},
    ),
    Case(
        name="zero and minus zero tie",
        text=b"1 Q0 a 1 0 t\n1 Q0 b 2 -0.0 t\n",
        rows={("1", 2), ("1", "b", 1, 1, 2), ("1", "a", 2, 1, 2)},
    ),
    Case(
        name="a cut at the depth, through a tie",
        text=b"1 Q0 a 1 5 t\n1 Q0 b 2 4 t\n1 Q0 x 3 4 t\n1 Q0 ab 4 4 t\n",
        rows={("1", 2), ("1", "a", 1, 1, 1)},
        depth=2,
    ),
    Case(
        name="a cut at the depth that keeps a part of a tie",
        text=b"1 Q0 a 1 5 t\n1 Q0 b 2 4 t\n1 Q0 ab 3 4 t\n",
        rows={("1", 2), ("1", "a", 1, 1, 1), ("1", "b", 2, 2, 2)},
        depth=2,
    ),
    Case(
        name="single precision ties",
        text=b"1 Q0 b 1 0.100000001 t\n1 Q0 a 2 0.1 t\n",
        rows={("1", 2), ("1", "b", 1, 1, 2), ("1", "a", 2, 1, 2)},
        profile="trec_eval-9",
    ),
    Case(
        name="single precision ties, the other way round",
        text=b"1 Q0 a 1 0.100000001 t\n1 Q0 b 2 0.1 t\n",
        rows={("1", 2), ("1", "b", 1, 1, 2), ("1", "a", 2, 1, 2)},
        profile="trec_eval-9",
    ),
    Case(
        name="double precision",
        text=b"1 Q0 a 1 0.100000001 t\n1 Q0 b 2 0.1 t\n",
        rows=ranked_rows(True),
        profile="trec_eval-10",
    ),
    Case(name="tiny scores", text=b"1 Q0 a 1 2e-305 t\n1 Q0 b 2 1e-305 t\n", rows=ranked_rows(True)),
    Case(
        name="tiny scores in single precision",
        text=b"1 Q0 a 1 2e-305 t\n1 Q0 b 2 1e-305 t\n",
        rows={("1", 2), ("1", "b", 1, 1, 2), ("1", "a", 2, 1, 2)},
        profile="trec_eval-9",
    ),
    Case(name="the highest score", text=run_with_score("1.7976931348623157e308"), rows=ranked_rows(True)),
    Case(name="the lowest score", text=run_with_score("-1.7976931348623157e308"), rows=ranked_rows(False)),
    Case(
        name="a score of many digits",
        text=run_with_score("1." + "5" + "0" * 40),
        rows={("1", 2), ("1", "b", 1, 1, 2), ("1", "a", 2, 1, 2)},
    ),
    Case(name="the next number up", text=run_with_score("1.5000000000000002"), rows=ranked_rows(True)),
    Case(name="the next number down", text=run_with_score("1.4999999999999998"), rows=ranked_rows(False)),
    Case(
        name="an integer of many digits", text=run_with_score("12345678901234567890"), rows=ranked_rows(True)
    ),
    *(
        Case(name=f"the score {text}", text=run_with_score(text), rows=ranked_rows(True))
        for text in ("+2", "2.0", "20e-1", ".2E1", "0.2e+1", "00002")
    ),
    *(
        Case(name=f"the score {text}", text=run_with_score(text), rows=ranked_rows(False))
        for text in ("-2", "1", "15e-1000", "-.5", "0.0")
    ),
    Case(
        name="several topics",
        text="2 Q0 a 1 1 t\n1 Q0 b 1 1 t\nt\u00e9 Q0 \u00fc 1 1 t\n".encode(),
        rows={
            ("2", 1),
            ("1", 1),
            ("t\u00e9", 1),
            ("2", "a", 1, 1, 1),
            ("1", "b", 1, 1, 1),
            ("t\u00e9", "\u00fc", 1, 1, 1),
        },
    ),
    Case(
        name="a topic in two places",
        text=b"1 Q0 b 1 1 t\n2 Q0 a 1 1 t\n1 Q0 a 1 2 t\n",
        rows={("2", 1), ("1", 2), ("2", "a", 1, 1, 1), ("1", "a", 1, 1, 1), ("1", "b", 2, 2, 2)},
    ),
    Case(
        name="a topic that the qrels lack, in two places",
        text=b"9 Q0 b 1 1 t\n1 Q0 a 1 1 t\n9 Q0 a 1 2 t\n",
        rows={("1", 1), ("1", "a", 1, 1, 1)},
    ),
    Case(
        name="a topic that the qrels lack",
        text=b"1 Q0 a 1 1 t\n9 Q0 b 1 1 t\n",
        rows={("1", 1), ("1", "a", 1, 1, 1)},
    ),
    Case(
        name="topics with a common prefix",
        text=b"1 Q0 a 1 1 t\n12 Q0 a 1 1 t\n",
        rows={("1", 1), ("1", "a", 1, 1, 1)},
    ),
    Case(name="a topic without a judged document", text=b"1 Q0 x 1 1 t\n", rows={("1", 1)}),
    Case(
        name="the same document in two topics",
        text=b"1 Q0 x 1 1 t\n2 Q0 x 1 1 t\n",
        rows={("1", 1), ("2", 1)},
    ),
    Case(
        name="as many lines, topics and documents as allowed",
        text=b"#\n#\n"
        + b"".join(f"1 Q0 {name} 1 1 t\n".encode() for name in "wxyz")
        + b"2 Q0 x 1 1 t\n9 Q0 x 1 1 t\n",
        rows={("1", 4), ("2", 1)},
    ),
    Case(
        name="a line as long as allowed",
        text=b"1 Q0 a 1 1 " + b"t" * 49 + b"\n",
        rows={("1", 1), ("1", "a", 1, 1, 1)},
    ),
    # rejected runs
    Case(name="empty", text=b"", errors=("run-empty",)),
    Case(name="only a byte order mark", text=b"\xef\xbb\xbf", errors=("run-empty",)),
    Case(name="only whitespace", text=b" \n\r\n\t", errors=("run-empty",)),
    Case(name="only comments", text=b"# nothing\n", errors=("run-empty",)),
    Case(name="five columns", text=PLAIN + b"1 Q0 q 1 1\n", errors=("run-columns",)),
    Case(name="one column", text=b"1\n" + PLAIN, errors=("run-columns",)),
    Case(name="five columns and a space", text=b"1 Q0 q 1 1 \r\n" + PLAIN, errors=("run-columns",)),
    *(
        Case(name=f"the score {text!r}", text=run_with_score(text), errors=("run-score",))
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
    Case(name="carriage returns only", text=PLAIN.replace(b"\n", b"\r")[:60], errors=("run-line-ends",)),
    Case(
        name="a long file with carriage returns only",
        text=PLAIN.replace(b"\n", b"\r") * 9,
        errors=("run-line-ends",),
    ),
    Case(
        name="a lone carriage return in a tag",
        text=PLAIN.replace(b"tag", b"t\ra", 1),
        errors=("run-line-ends",),
    ),
    Case(
        name="a lone carriage return in a comment",
        text=b"#\r1 Q0 a 1 1 t\n" + PLAIN,
        errors=("run-line-ends",),
    ),
    Case(name="Latin-1 and a carriage return", text=PLAIN + b"1 Q0 \xfc\r 1 1 t\n", errors=("run-not-text",)),
    Case(name="two carriage returns", text=PLAIN.replace(b"\n", b"\r\r\n"), errors=("run-line-ends",)),
    *(
        Case(name=f"the rank {text!r}", text=f"1 Q0 a {text} 1 t\n".encode(), errors=("run-rank",))
        for text in ("x", "1.", "Q0", "1e", "0x1", "nan", "1234567890123x", "\u0661")
    ),
    Case(name="a rank and a score", text=b"1 Q0 a x y t\n", errors=("run-rank", "run-score")),
    Case(name="a duplicate document", text=PLAIN + b"1 Q0 a 4 1 t\n", errors=("run-duplicate",)),
    Case(
        name="a duplicate document, first and last", text=PLAIN + b"1 Q0 x 4 1 t\n", errors=("run-duplicate",)
    ),
    Case(
        name="a duplicate document in a topic that the qrels lack",
        text=PLAIN + b"9 Q0 a 4 1 t\n9 Q0 a 4 2 t\n",
        errors=("run-duplicate",),
    ),
    Case(
        name="a duplicate document in a topic in two places",
        text=b"1 Q0 a 1 1 t\n2 Q0 a 1 1 t\n1 Q0 a 1 2 t\n",
        errors=("run-duplicate",),
    ),
    Case(
        name="a duplicate document below the depth",
        text=PLAIN + b"1 Q0 a 4 0 t\n",
        errors=("run-duplicate",),
        depth=1,
    ),
    Case(name="no topic in common", text=b"q1 Q0 a 1 1 t\n", errors=("run-topics-none",)),
    Case(name="a NUL byte", text=PLAIN + b"1 Q0 q\x00 1 1 t\n", errors=("run-not-text",)),
    Case(name="a NUL byte in a comment", text=b"#\x00\n" + PLAIN, errors=("run-not-text",)),
    Case(name="a NUL byte in a tag", text=b"1 Q0 a 1 1 t\x00\n", errors=("run-not-text",)),
    Case(name="Latin-1", text=PLAIN + b"1 Q0 \xfc 1 1 t\n", errors=("run-not-text",)),
    Case(name="a surrogate", text=b"1 Q0 \xed\xa0\x80 1 1 t\n", errors=("run-not-text",)),
    Case(name="an overlong sequence", text=b"1 Q0 \xc0\x80 1 1 t\n", errors=("run-not-text",)),
    Case(name="an overlong sequence of three", text=b"1 Q0 \xe0\x9f\xbf 1 1 t\n", errors=("run-not-text",)),
    Case(
        name="an overlong sequence of four", text=b"1 Q0 \xf0\x8f\xbf\xbf 1 1 t\n", errors=("run-not-text",)
    ),
    Case(name="beyond Unicode", text=b"1 Q0 \xf4\x90\x80\x80 1 1 t\n", errors=("run-not-text",)),
    Case(name="a sequence cut short", text=b"1 Q0 a 1 1 t\xe2\x82\n", errors=("run-not-text",)),
    Case(name="a sequence cut short at the end", text=b"1 Q0 a 1 1 t\xe2\x82", errors=("run-not-text",)),
    Case(name="UTF-16", text=PLAIN.decode().encode("utf-16"), errors=("run-not-text",)),
    Case(name="a line too long", text=b"1 Q0 a 1 1 " + b"t" * 50 + b"\n", errors=("limit-line",)),
    Case(name="a last line too long", text=PLAIN + b"2 Q0 a 1 1 " + b"t" * 50, errors=("limit-line",)),
    Case(name="a comment too long", text=b"#" * 61 + b"\n" + PLAIN, errors=("limit-line",)),
    Case(name="a blank line too long", text=b" " * 61 + b"\n" + PLAIN, errors=("limit-line",)),
    Case(name="too many lines", text=PLAIN + b"#\n" * 6, errors=("limit-lines",)),
    Case(
        name="too many topics",
        text=b"".join(f"{t} Q0 a 1 1 t\n".encode() for t in range(4)),
        errors=("limit-topics",),
    ),
    Case(
        name="too many documents",
        text=b"".join(f"1 Q0 {d} 1 1 t\n".encode() for d in range(5)),
        errors=("limit-depth",),
    ),
    Case(name="a damaged archive", text=b"\x1f\x8b\x08\x00rubbish", errors=("file-corrupt",)),
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
