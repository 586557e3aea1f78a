"""Tests that reading plain qrels as columns and line by line gives the same result."""

from hypothesis import given, settings
from hypothesis import strategies as st

from cupel_measures.findings import Refused
from cupel_measures.model import Aspect
from cupel_measures.reading.qrels_files import pack_qrels, read_qrels

DECLARED = Aspect(name="credibility", labels=(0, 1, 2), lowest=(-2,), unjudged=(-1,))

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
    """Return the packed qrels, or the code, place and column of each error.

    The place is counted in lines from the end, so that a blank first line does not change it.
    """
    try:
        return pack_qrels(read_qrels(text, aspect=aspect))
    except Refused as refused:
        last = text.count(b"\n")
        return [(finding.code, last - (finding.line or last), finding.column) for finding in refused.findings]


@settings(max_examples=300, deadline=None)
@given(rows=lines, grouped=st.booleans(), aspect=st.sampled_from([None, DECLARED]))
def test_column_reader_and_line_reader_agree(
    rows: list[tuple[str, ...]], grouped: bool, aspect: Aspect | None
) -> None:
    rows = sorted(rows) if grouped else rows
    text = "".join(" ".join(row) + "\n" for row in rows).encode()
    assert outcome(text, aspect) == outcome(b"\n" + text, aspect)
