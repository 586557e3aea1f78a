"""Tests of reading document texts in JSON Lines: words, term counts, errors, and joining with runs."""

import bz2
import gzip
import io
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cupel_measures.findings import Refused
from cupel_measures.model import Texts
from cupel_measures.model.profiles import PROFILES
from cupel_measures.reading import joins
from cupel_measures.reading import text_files as reading
from cupel_measures.reading.compression import Limits
from cupel_measures.reading.run_files import read_run
from cupel_measures.reading.text_files import check_texts, join_texts, read_texts, words_of
from support.data.small_collections import content_of, diverse, qrels_of, texts_of


def lines(*records: object) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def counts(texts: Texts) -> dict[str, dict[str, int]]:
    """Return the number of occurrences of each term in each document."""
    return {
        texts.documents[d]: {
            texts.vocabulary[int(texts.term[i])]: int(texts.count[i])
            for i in range(texts.offsets[d], texts.offsets[d + 1])
        }
        for d in range(len(texts.documents))
    }


def errors_of(data: bytes, limits: Limits | None = None) -> list[tuple[int | None, str, str]]:
    """Return (line, code, message) of every error."""
    with pytest.raises(Refused) as problem:
        read_texts(data, name="docs.jsonl", limits=limits)
    assert {finding.file for finding in problem.value.findings.errors} == {"docs.jsonl"}
    return [(finding.line, finding.code, finding.message) for finding in problem.value.findings.errors]


class TestWords:
    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("Red cabbage, red wine", "red cabbage red wine"),
            ("snake_case and 42 things-to do", "snake_case and 42 things to do"),
            ("Ünlü şair İSTANBUL'da", "ünlü şair istanbul da"),  # the Turkish capital dotted I becomes i
            (
                "e\u0301te\u0301 \u00e9t\u00e9",
                "\u00e9t\u00e9 \u00e9t\u00e9",
            ),  # composed and decomposed letters are equal
            ("कहानी की शुरुआत", "कहानी की शुरुआत"),  # vowel signs are marks, which are part of words
            ("𞤀𞤣𞤤𞤢𞤥𞥄 日本語", "𞤢𞤣𞤤𞤢𞤥𞥄 日本語"),  # letters beyond the basic plane
            ("\u0301 ... !", ""),
            ("", ""),
        ],
    )
    def test_words_are_letters_marks_and_digits_in_lower_case(self, text: str, words: str) -> None:
        assert words_of(text) == words.split()


class TestReading:
    def test_line_is_a_document_with_title_and_text(self) -> None:
        data = lines(
            {"id": "b", "title": "Wine", "text": "red wine", "url": "x"},
            {"docno": "a", "text": ""},
            {"doc_id": 7, "text": "Wine!", "title": None},
        )
        texts = read_texts(b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n") + b"\n  \n")
        assert counts(texts) == {"b": {"red": 1, "wine": 2}, "a": {}, "7": {"wine": 1}}
        assert texts.vocabulary.to_list() == [b"red", b"wine"]

    @pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress])
    def test_texts_may_be_compressed_and_come_from_any_source(self, pack: object, tmp_path: Path) -> None:
        data = pack(lines({"id": "a", "text": "b"}))  # type: ignore[operator]
        (tmp_path / "docs").write_bytes(data)
        for source in (data, tmp_path / "docs", io.BytesIO(data)):
            assert counts(read_texts(source)) == {"a": {"b": 1}}

    @given(
        st.dictionaries(
            st.sampled_from("abcdefghij"), st.lists(st.sampled_from(["x", "y", "zz", "ü", "w"]), max_size=6)
        ).filter(len)
    )
    @settings(max_examples=60, deadline=None)
    def test_term_counts_equal_the_simple_implementation(
        self, words_by_document: dict[str, list[str]]
    ) -> None:
        texts = {document: " ".join(words) for document, words in words_by_document.items()}
        data = lines(*({"id": document, "text": text} for document, text in texts.items()))
        texts_read, expected = read_texts(data), texts_of(texts)
        assert counts(texts_read) == counts(expected)
        assert texts_read.vocabulary.to_list() == expected.vocabulary.to_list()

    def test_term_counts_do_not_depend_on_the_block_size(self, monkeypatch: pytest.MonkeyPatch) -> None:
        data = lines(*({"id": str(i), "text": "w x w " * (i % 4)} for i in range(9)))
        expected = counts(read_texts(data))
        monkeypatch.setattr(reading, "COUNTED", 5)
        assert counts(read_texts(data)) == expected


class TestErrors:
    def test_errors_of_all_lines_are_reported_together(self) -> None:
        data = lines({"id": "a", "text": "x"}, {"text": "x"}, {"id": "a", "text": "x"}, {"id": "b"})
        assert errors_of(data + b"{oops}\n") == [
            (2, "texts-id", "no id, docno or doc_id; the keys are text"),
            (3, "texts-twice", "document a is already on line 1"),
            (4, "texts-text", "no text; the keys are id"),
            (
                5,
                "texts-not-json",
                "invalid JSON at column 2: Expecting property name enclosed in double quotes",
            ),
        ]

    @pytest.mark.parametrize(
        ("line", "code", "words"),
        [
            (b"\xff{}", "texts-not-json", "the byte 0xff at column 1 is not valid UTF-8"),
            (b"[" * 200_000, "texts-not-json", "invalid JSON: a number is too large"),
            (b'{"id": ' + b"1" * 9999 + b"}", "texts-not-json", "invalid JSON: a number is too large"),
            (b"[1]", "texts-not-json", 'expected an object such as {"id": "d1", "title": "Red cabbage"'),
            (b"{}", "texts-id", "no id, docno or doc_id; the keys are none"),
            (b'{"id": "two words", "text": ""}', "texts-id", 'id is "two words"; expected a word without'),
            (b'{"docno": true, "text": ""}', "texts-id", "docno is true; expected a word without spaces"),
            (b'{"id": "\\ud800", "text": ""}', "texts-id", r'id is "\ud800"; expected a word without'),
            (b'{"id": "a", "text": null}', "texts-text", "text is null; expected a string"),
            (b'{"id": "a", "text": "", "title": ["x"]}', "texts-text", 'title is ["x"]; expected a string'),
        ],
    )
    def test_error_has_a_message(self, line: bytes, code: str, words: str) -> None:
        [(number, reported, message)] = errors_of(lines({"id": "x", "text": ""}) + line)
        assert (number, reported) == (2, code)
        assert message.startswith(words)

    def test_lone_surrogate_in_a_text_separates_words(self) -> None:
        assert counts(read_texts(b'{"id": "a", "text": "x\\ud800y"}')) == {"a": {"x": 1, "y": 1}}

    def test_file_without_documents_is_rejected(self) -> None:
        assert errors_of(b"\n \n") == [(None, "texts-empty", "no documents")]

    def test_line_above_the_limit_is_rejected(self) -> None:
        data = lines({"id": "a", "text": "x" * 100}, {"id": "b", "text": "y"})
        [(line, code, _)] = errors_of(data, Limits(document=50))
        assert (line, code) == (1, "limit-document")

    def test_relevant_document_without_text_gives_a_warning(self) -> None:
        qrels = diverse({"1": {"a": {"x": 1}, "b": {"x": 1}, "c": {"y": 0}, "d": {"y": 2}}})
        findings = check_texts(read_texts(lines({"id": "a", "text": "w"}, {"id": "d", "text": "!"})), qrels)
        [warning] = findings.warnings
        assert findings.totals == {"texts-lacking": 2}
        assert warning.message == "2 of 3 relevant documents, such as b, have no text"
        assert not check_texts(texts_of(dict.fromkeys("abd", "w")), qrels)
        assert not check_texts(texts_of({}), qrels_of({"1": {"a": 1}}))


scores = st.sampled_from([3.0, 2.0, 1.0, 1.00000001, 1.00000002, -5.0])
runs = st.dictionaries(
    st.sampled_from("1234"), st.dictionaries(st.sampled_from("abcdefgh"), scores, min_size=1), min_size=1
)


@given(runs, st.sampled_from(sorted(PROFILES)), st.sampled_from([None, 1, 3]))
@settings(max_examples=100, deadline=None)
def test_joined_texts_have_the_order_and_depth_of_the_run(
    run: dict[str, dict[str, float]], profile: str, depth: int | None
) -> None:
    qrels = diverse({topic: {"a": {"x": 1}} for topic in "135"})
    texts = texts_of(dict.fromkeys("hgfaxcb", "w"))
    rows = [f"{t} Q0 {d} 1 {score!r} tag\n" for t, scores in run.items() for d, score in scores.items()]
    ranking = read_run("".join(rows).encode()).ranking
    options = {"profile": PROFILES[profile], "depth": depth}
    joined_content, expected = (
        join_texts(ranking, qrels, texts, **options),
        content_of(run, qrels, texts, **options),
    )
    assert joined_content.offsets.tolist() == expected.offsets.tolist()
    assert joined_content.document.tolist() == expected.document.tolist()
    joined = joins.join(ranking, qrels, **options)
    assert joined.retrieved.tolist() == [
        b - a for a, b in zip(joined_content.offsets, joined_content.offsets[1:], strict=False)
    ]
