"""Plain qrels are read as columns where every line is regular, else line by line: to the same end."""

from hypothesis import given, settings
from hypothesis import strategies as st

from cupel_measures.findings import Refused
from cupel_measures.model import Aspect
from cupel_measures.reading.qrels_files import pack_qrels, read_qrels

DECLARED = Aspect("credibility", (0, 1, 2), lowest=(-2,), unjudged=(-1,))

lines = st.lists(
    st.tuples(
        st.sampled_from(["1", "10", "2", "qtest.1"]),
        st.just("0"),
        st.sampled_from(["a", "b", "ab", "\u00e9", "document-1", "document-2", "#", "x" * 40]),
        st.sampled_from(["0", "0", "1", "1", "2", "-1", "-2", "3", "+1", "x", "1.5"]),
    ),
    min_size=1,
    max_size=12,
)


def outcome(text: bytes, aspect: Aspect | None) -> object:
    """The qrels as they are stored; or what is wrong, and where, in lines from the end."""
    try:
        return pack_qrels(read_qrels(text, aspect=aspect))
    except Refused as refused:
        last = text.count(b"\n")
        return [(found.code, last - (found.line or last), found.column) for found in refused.findings]


@settings(max_examples=300, deadline=None)
@given(rows=lines, grouped=st.booleans(), aspect=st.sampled_from([None, DECLARED]))
def test_reading_as_columns_and_line_by_line_agree(
    rows: list[tuple[str, ...]], grouped: bool, aspect: Aspect | None
) -> None:
    rows = sorted(rows) if grouped else rows
    text = "".join(" ".join(row) + "\n" for row in rows).encode()
    assert outcome(text, aspect) == outcome(b"\n" + text, aspect)
