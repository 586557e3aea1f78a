"""Tests of reading qrels: layouts, labels, errors and warnings, packing, and real files."""

import bz2
import gzip
import io
import random
import zipfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from cupel_measures.findings import KINDS, LISTED_PER_CODE, Finding, Findings, Refused
from cupel_measures.model import ABSENT, NEGATIVE, UNJUDGED, Aspect, LabelSet, Qrels
from cupel_measures.reading.qrels_files import (
    SUBTOPICS,
    QrelsFile,
    build_qrels,
    pack_qrels,
    qrels_digest,
    read_qrels,
    unpack_qrels,
    unscaled,
)

PLAIN = b"2 0 b 1\n1 0 d 0\n1 0 c 2\n"
RELEVANCE = Aspect(name="relevance", labels=range(3))
QUALITY = Aspect(name="quality", labels=("low", "fair", "high"))


def labels_of(qrels: Qrels, aspect: str = "relevance") -> dict[tuple[str, str], int]:
    """Return the labels by (topic, document), without absent ones."""
    topics = [qrels.topics[t] for t in qrels.topic_of]
    documents = [document.decode() for document in qrels.documents.to_list()]
    labels = qrels.labels[qrels.aspect_index(aspect)].tolist()
    return {
        (topic, document): label
        for topic, document, label in zip(topics, documents, labels, strict=True)
        if label != ABSENT
    }


def errors_of(data: bytes, aspect: Aspect | None = None) -> list[Finding]:
    with pytest.raises(Refused) as refused:
        read_qrels(data, aspect=aspect, name="q.txt")
    return refused.value.findings.errors


def codes(findings: Iterable[Finding]) -> list[str]:
    return [finding.code for finding in findings]


def test_topics_and_documents_are_sorted_by_bytes() -> None:
    qrels = read_qrels(b"9 0 b 1\n10 0 a 0\n9 0 B 1\n9 0 \xc3\xa9 0\n")
    assert qrels.topics == ("10", "9")
    assert qrels.offsets.tolist() == [0, 1, 4]
    assert [document.decode() for document in qrels.documents.to_list()] == ["a", "B", "b", "é"]


def test_inferred_scale_ends_at_the_highest_grade() -> None:
    aspect = read_qrels(b"1 0 a 0\n1 0 b 3\n").aspects[0]
    assert (aspect.name, list(aspect.labels), aspect.inferred, aspect.threshold) == (
        "relevance", [0, 1, 2, 3], True, 1,
    )  # fmt: skip


def test_inferred_scale_of_zeros_has_a_relevant_label() -> None:
    assert list(read_qrels(b"1 0 a 0\n").aspects[0].labels) == [0, 1]


def test_negative_grade_is_kept_if_the_scale_is_inferred() -> None:
    qrels = read_qrels(b"1 0 a -2\n1 0 b -1\n1 0 c +1\n")
    assert labels_of(qrels) == {("1", "a"): NEGATIVE, ("1", "b"): NEGATIVE, ("1", "c"): 1}


@pytest.mark.parametrize(
    "data",
    [
        PLAIN.replace(b" ", b"\t"),
        PLAIN.replace(b" ", b"   \t "),
        PLAIN.replace(b"\n", b"\r\n"),
        PLAIN.removesuffix(b"\n"),
        b"\xef\xbb\xbf" + PLAIN,
        PLAIN.replace(b"\n", b" \n"),
        PLAIN.replace(b"\n", b"\n\n \t\n"),
        b"# made by hand\n#\n" + PLAIN + b"# the end",
        PLAIN.replace(b" 0 ", b" Q0 ", 1),
        gzip.compress(PLAIN, mtime=0),
        bz2.compress(PLAIN),
        zstandard.compress(PLAIN),
    ],
    ids=[
        "tabs", "many spaces", "CRLF", "no last newline", "byte order mark", "trailing spaces", "blank lines",
        "comments", "column 2", "gzip", "bzip2", "zstd",
    ],
)  # fmt: skip
def test_qrels_do_not_depend_on_the_layout_of_the_file(data: bytes) -> None:
    assert qrels_digest(read_qrels(data)) == qrels_digest(read_qrels(PLAIN))


def test_zip_with_one_member_is_read(tmp_path: Path) -> None:
    path = tmp_path / "qrels.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("inside.txt", PLAIN)
    assert labels_of(read_qrels(path)) == labels_of(read_qrels(PLAIN))


def test_hash_sign_starts_a_comment_only_at_the_start_of_a_line() -> None:
    assert labels_of(read_qrels(b"1 0 #a 1\n # 0 b 1\n")) == {("1", "#a"): 1, ("#", "b"): 1}


@pytest.mark.parametrize(
    ("data", "code", "place"),
    [
        (b"1 0 a 1\n1 0 b\n", "qrels-columns", (2, 6)),
        (b"1 0 a 1\n1 0 b 1 2\n", "qrels-columns", (2, 9)),
        (b"1 0 a 1\n1  0 b 1.5\n", "qrels-grade-not-integer", (2, 8)),
        (b"1 0 a x\n", "qrels-grade-not-integer", (1, 7)),
        (b"1 0 a 1_0\n", "qrels-grade-not-integer", (1, 7)),
        ("1 0 a \u0661\n".encode(), "qrels-grade-not-integer", (1, 7)),
        (b"1 0 a 1e0\n", "qrels-grade-not-integer", (1, 7)),
        (b"1 0 a 1000001\n", "qrels-scale-too-long", (1, 7)),
        (b"1 0 a 1\n2 0 a 1\n1 0 a 1\n", "qrels-judged-twice", (3, 7)),
        (b"1 0 a 1\n1 0 \xff\xfe 1\n", "qrels-not-text", (2, 5)),
        (b"1 0 a 1\n1 0 \xc3\xa9\x00b 1\n", "qrels-not-text", (2, 6)),
        (PLAIN.decode().encode("utf-16"), "qrels-not-text", (1, 1)),
        (b"", "qrels-empty", (None, None)),
        (b"# nothing\n\n", "qrels-empty", (None, None)),
        (gzip.compress(PLAIN, mtime=0)[:20], "file-corrupt", (None, None)),
    ],
)  # fmt: skip
def test_error_has_a_code_and_a_place(data: bytes, code: str, place: tuple[int | None, int | None]) -> None:
    (finding,) = errors_of(data)
    assert (finding.code, (finding.line, finding.column), finding.file) == (code, place, "q.txt")
    assert KINDS[code].severity == "error"


def test_all_errors_of_a_file_are_reported_with_their_topics() -> None:
    errors = errors_of(b"7 0 a 1.5\n7 0 b\n8 0 c x\n8 0 d 1\n8 0 d 0\n")
    assert [(finding.line, finding.topic, finding.code) for finding in errors] == [
        (1, "7", "qrels-grade-not-integer"),
        (2, "7", "qrels-columns"),
        (3, "8", "qrels-grade-not-integer"),
        (5, "8", "qrels-judged-twice"),
    ]
    assert errors[0].sample == "1.5"
    assert "line 4" in errors[3].message


def test_errors_beyond_the_listed_ones_are_counted() -> None:
    with pytest.raises(Refused) as refused:
        read_qrels(b"".join(b"1 0 d%d x\n" % i for i in range(250)))
    findings = refused.value.findings
    assert len(findings.errors) == LISTED_PER_CODE
    assert findings.totals == {"qrels-grade-not-integer": 250}


def test_five_column_file_is_rejected_with_a_hint_at_layouts() -> None:
    first, second = errors_of(b"1 0 a 1 2\n1 0 b 0 1\n")
    assert "columns: [topic, _, document, a, b]" in first.message
    assert "layout: subtopics" in first.message
    assert "layout" not in second.message


def test_documents_judged_for_two_subtopics_have_a_hint_at_layouts() -> None:
    (finding,) = errors_of(b"1 1 a 1\n1 2 a 1\n")
    assert "layout: subtopics" in finding.message


def test_declared_labels_become_indices_on_the_scale() -> None:
    qrels = read_qrels(b"1 0 a high\n1 0 b low\n", aspect=QUALITY)
    assert labels_of(qrels, "quality") == {("1", "a"): 2, ("1", "b"): 0}
    grades = Aspect(name="relevance", labels=(1, 3, 7))
    assert labels_of(read_qrels(b"1 0 a 7\n1 0 b 01\n", aspect=grades)) == {("1", "a"): 2, ("1", "b"): 0}


def test_scale_may_be_a_descending_range() -> None:
    ease = Aspect(name="ease", labels=range(100, -1, -1))
    assert labels_of(read_qrels(b"1 0 a 0\n1 0 b 100\n", aspect=ease), "ease") == {
        ("1", "a"): 100,
        ("1", "b"): 0,
    }


def test_lowest_and_unjudged_labels_are_distinguished() -> None:
    aspect = Aspect(name="relevance", labels=range(3), lowest=(-2,), unjudged=(-1, "n"))
    qrels = read_qrels(b"1 0 a -2\n1 0 b -1\n1 0 c n\n1 0 d 0\n", aspect=aspect)
    assert list(labels_of(qrels).values()) == [NEGATIVE, UNJUDGED, UNJUDGED, 0]


def test_word_declared_as_lowest_is_the_lowest_label() -> None:
    aspect = Aspect(name="quality", labels=("low", "high"), lowest=("spam",))
    assert labels_of(read_qrels(b"1 0 a spam\n1 0 b high\n", aspect=aspect), "quality") == {
        ("1", "a"): 0,
        ("1", "b"): 1,
    }


@pytest.mark.parametrize(
    ("label", "code"),
    [
        (b"3", "qrels-label-above-scale"),
        (b"-1", "qrels-label-not-declared"),
        (b"x", "qrels-label-not-declared"),
        (b"1.0", "qrels-label-not-declared"),
    ],
)
def test_undeclared_label_is_an_error_that_shows_the_scale(label: bytes, code: str) -> None:
    (finding,) = errors_of(b"1 0 a " + label + b"\n", RELEVANCE)
    assert finding.code == code
    assert "labels: 0, 1, 2" in finding.message


def test_files_of_several_aspects_make_one_qrels() -> None:
    findings = Findings()
    files = [
        QrelsFile.plain("r", b"1 0 a 1\n1 0 b 0\n", "relevance"),
        QrelsFile.plain("q", b"1 0 b high\n2 0 c low\n", "quality"),
    ]
    qrels = build_qrels([RELEVANCE, QUALITY], files, findings=findings)
    assert qrels.labels.tolist() == [[1, 0, ABSENT], [ABSENT, 2, 0]]
    assert findings.totals["qrels-partly-judged"] == 2
    assert [f.sample for f in findings if f.code == "qrels-partly-judged"] == ["relevance", "quality"]


def test_two_files_may_judge_one_aspect_but_not_the_same_pair() -> None:
    parts = [QrelsFile.plain(name, b"1 0 %s 1\n" % name.encode(), "relevance") for name in "ab"]
    assert len(build_qrels([RELEVANCE], parts).documents) == 2
    with pytest.raises(Refused, match=r"line 1 of a"):
        build_qrels([RELEVANCE], [parts[0], QrelsFile.plain("b", parts[0].source, "relevance")])


def test_wide_file_has_a_column_per_aspect() -> None:
    columns = ("topic", "_", "document", "quality", "relevance")
    qrels = build_qrels([RELEVANCE, QUALITY], [QrelsFile("w", b"1 0 a high 2\n1 0 b low 0\n", columns)])
    assert qrels.labels.tolist() == [[2, 0], [2, 0]]


def test_wide_file_reports_the_column_of_each_wrong_label() -> None:
    columns = ("topic", "document", "relevance", "quality")
    with pytest.raises(Refused) as refused:
        build_qrels([RELEVANCE, QUALITY], [QrelsFile("w", b"1 a 9 bad\n", columns)])
    assert [(f.code, f.column) for f in refused.value.findings] == [
        ("qrels-label-above-scale", 5),
        ("qrels-label-not-declared", 7),
    ]


def test_subtopic_judgments_are_separate_from_labels() -> None:
    files = [
        QrelsFile.plain("r", b"1 0 a 1\n", "relevance"),
        QrelsFile("d", b"1 s2 b 0\n1 s1 a 1\n1 s2 a -2\n", SUBTOPICS),
    ]
    qrels = build_qrels([RELEVANCE], files)
    subtopics = qrels.subtopics
    assert subtopics is not None
    assert labels_of(qrels) == {("1", "a"): 1}
    assert subtopics.names == ("s1", "s2")
    assert [subtopics.document.tolist(), subtopics.subtopic.tolist(), subtopics.judgment.tolist()] == [
        [0, 0, 1], [0, 1, 1], [1, -2, 0],
    ]  # fmt: skip


def test_invalid_subtopic_judgments_are_errors() -> None:
    files = [
        QrelsFile.plain("r", b"1 0 a 1\n", "relevance"),
        QrelsFile("d", b"1 s a x\n1 s a 1\n1 s a 1\n", SUBTOPICS),
    ]
    with pytest.raises(Refused) as refused:
        build_qrels([RELEVANCE], files)
    assert codes(refused.value.findings) == ["qrels-grade-not-integer", "qrels-judged-twice"]


def test_listed_topics_replace_the_judged_topics() -> None:
    findings = Findings()
    files = [QrelsFile.plain("r", b"1 0 a 1\n2 0 a 1\n", "relevance")]
    qrels = build_qrels([RELEVANCE], files, topics=["3", "1"], findings=findings)
    assert (qrels.topics, qrels.unjudged_topics, qrels.listed_topics) == (("1",), ("3",), ("1", "3"))
    assert qrels.offsets.tolist() == [0, 1]
    assert findings.totals == {"qrels-topic-left-out": 1, "qrels-topic-without-judgments": 1}


def test_topics_without_relevant_documents_give_a_warning() -> None:
    findings = Findings()
    read_qrels(b"1 0 a 1\n2 0 a 0\n3 0 a -1\n", findings=findings)
    (finding,) = findings
    assert (finding.code, findings.totals) == (
        "qrels-topic-without-relevant",
        {"qrels-topic-without-relevant": 2},
    )
    assert "2, 3" in finding.message


def test_errors_of_all_files_are_reported_together() -> None:
    files = [QrelsFile.plain("r", b"1 0 a x\n", "relevance"), QrelsFile.plain("q", b"", "quality")]
    with pytest.raises(Refused) as refused:
        build_qrels([RELEVANCE, QUALITY], files)
    assert [(f.file, f.code) for f in refused.value.findings] == [
        ("r", "qrels-label-not-declared"),
        ("q", "qrels-empty"),
    ]


def example_qrels() -> Qrels:
    """Return qrels with two aspects, subtopics, and a topic without judgments."""
    files = [
        QrelsFile.plain("r", b"1 0 a 1\n1 0 b -2\n", "relevance"),
        QrelsFile.plain("q", "1 0 é high\n".encode(), "quality"),
        QrelsFile("d", b"1 s b 1\n2 t c 0\n", SUBTOPICS),
    ]
    relevance = Aspect(name="relevance", labels=range(3), lowest=(-2,), declared_gains=(0.0, 0.1, 3.0))
    return build_qrels([relevance, QUALITY], files, topics=["1", "2", "9"])


def test_packing_is_lossless() -> None:
    qrels = example_qrels()
    label_set = LabelSet(("relevance", "quality"), frozenset({(0, 0), (1, 2)}))
    qrels = replace(qrels, label_sets={"possible": label_set})
    again = unpack_qrels(pack_qrels(qrels))
    assert again.aspects == qrels.aspects
    assert (again.topics, again.label_sets) == (qrels.topics, qrels.label_sets)
    assert again.documents.to_list() == qrels.documents.to_list()
    np.testing.assert_array_equal(again.labels, qrels.labels)
    np.testing.assert_array_equal(again.offsets, qrels.offsets)
    assert again.subtopics is not None
    assert qrels.subtopics is not None
    assert again.subtopics.names == qrels.subtopics.names
    np.testing.assert_array_equal(again.subtopics.judgment, qrels.subtopics.judgment)
    assert qrels_digest(again) == qrels_digest(qrels)


def test_unpacking_other_bytes_is_rejected() -> None:
    with pytest.raises(ValueError, match="not packed qrels"):
        unpack_qrels(b"something else")


def test_digest_is_the_sha_256_of_the_documented_text() -> None:
    import hashlib

    text = (
        "cupel-qrels 1\n"
        'aspect\t{"embedding":null,"gains":null,"inferred":true,"labels":{"range":[0,2]},"lowest":[],'
        '"name":"relevance","threshold":1,"unjudged":[]}\n'
        "topic\t1\ndocument\tc\t2\ndocument\td\t0\ntopic\t2\ndocument\tb\t1\n"
    )
    assert qrels_digest(read_qrels(PLAIN)) == hashlib.sha256(text.encode()).hexdigest()


def test_digest_depends_on_everything_that_may_change_a_score() -> None:
    plain = QrelsFile.plain("r", b"1 0 a 1\n", "relevance")
    changed = [
        build_qrels([RELEVANCE], [plain]),
        build_qrels([Aspect(name="relevance", labels=range(4))], [plain]),
        build_qrels([Aspect(name="relevance", labels=range(3), threshold=2)], [plain]),
        build_qrels([Aspect(name="relevance", labels=range(3), declared_gains=(0, 1, 3))], [plain]),
        build_qrels([Aspect(name="relevance", labels=range(3), declared_embedding=(0, 1, 3))], [plain]),
        build_qrels([RELEVANCE], [plain], topics=["1", "2"]),
        build_qrels([RELEVANCE], [QrelsFile.plain("r", b"1 0 a 2\n", "relevance")]),
        build_qrels([RELEVANCE], [QrelsFile.plain("r", b"1 0 b 1\n", "relevance")]),
        build_qrels([RELEVANCE, QUALITY], [plain]),
    ]
    assert len(set(map(qrels_digest, changed))) == len(changed)


characters = st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Z"], exclude_characters="\ufeff")
words = st.text(characters, min_size=1, max_size=5)
judgments = st.dictionaries(st.tuples(words, words), st.integers(-3, 9), min_size=1)


@given(judgments, st.randoms(use_true_random=False))
def test_qrels_do_not_depend_on_line_order_and_packing(
    judged: dict[tuple[str, str], int], order: random.Random
) -> None:
    lines = [f"{topic} 0 {document} {grade}\n".encode() for (topic, document), grade in judged.items()]
    lines = [line for line in lines if not line.startswith(b"#")] or [b"1 0 a 1\n"]
    shuffled = list(lines)
    order.shuffle(shuffled)
    qrels, again = read_qrels(b"".join(lines)), read_qrels(b"".join(shuffled))
    assert qrels_digest(qrels) == qrels_digest(again) == qrels_digest(unpack_qrels(pack_qrels(again)))
    assert len(qrels.documents) == len(lines)


@given(st.binary(max_size=200))
def test_random_bytes_are_read_or_rejected_with_findings(data: bytes) -> None:
    qrels = findings = None
    try:
        qrels = read_qrels(io.BytesIO(data))
    except Refused as refused:
        findings = refused.findings
    assert qrels.documents if qrels else findings and findings.errors


# --- real qrels -------------------------------------------------------------------------------------------


def test_touche_has_three_aspects(shared: Path) -> None:
    folder = shared / "data/touche22-task2/qrels"
    stance = Aspect(name="stance", labels=("NO", "NEUTRAL", "FIRST", "SECOND"))
    aspects = [unscaled("relevance"), unscaled("quality"), stance]
    names = [aspect.name for aspect in aspects]
    paths = [folder / f"touche-task2-2022-{name}.qrels" for name in names]
    files = [QrelsFile.plain(path.name, path, name) for path, name in zip(paths, names, strict=True)]
    findings = Findings()
    qrels = build_qrels(aspects, files, findings=findings)
    assert (len(qrels.topics), qrels.labels.shape) == (50, (3, 2107))
    counts = [np.bincount(labels).tolist() for labels in qrels.labels]
    assert counts == [[851, 723, 533], [762, 696, 649], [1012, 418, 393, 284]]
    assert "qrels-partly-judged" not in findings.totals


def test_touche_stance_without_a_declared_scale_is_rejected(shared: Path) -> None:
    with pytest.raises(Refused) as refused:
        read_qrels(shared / "data/touche22-task2/qrels/touche-task2-2022-stance.qrels")
    assert refused.value.findings.totals == {"qrels-grade-not-integer": 2107}


def test_trec_web_junk_label_may_be_lowest_or_unjudged(shared: Path) -> None:
    path = shared / "data/trec-web-diversity/2010/10.adhoc-qrels.final.txt.gz"
    junk = sum(line.split()[3] == b"-2" for line in gzip.decompress(path.read_bytes()).splitlines())
    for declared, label in (
        ({"lowest": (-2,)}, NEGATIVE),
        ({"unjudged": (-2,)}, UNJUDGED),
    ):
        qrels = read_qrels(path, aspect=Aspect(name="relevance", labels=range(4), **declared))  # type: ignore[arg-type]
        assert (len(qrels.topics), len(qrels.documents)) == (48, 25329)
        assert int((qrels.labels == label).sum()) == junk > 0
    with pytest.raises(Refused) as refused:
        read_qrels(path, aspect=Aspect(name="relevance", labels=range(4)))
    assert refused.value.findings.totals == {"qrels-label-not-declared": junk}


def test_trec_web_subtopics_are_read_with_adhoc_labels(shared: Path) -> None:
    folder = shared / "data/trec-web-diversity/2012"
    files = [
        QrelsFile.plain("adhoc", folder / "qrels.adhoc.txt.gz", "relevance"),
        QrelsFile("diversity", folder / "qrels.diversity.txt.gz", SUBTOPICS),
    ]
    qrels = build_qrels([Aspect(name="relevance", labels=range(5), lowest=(-2,))], files)
    assert qrels.subtopics is not None
    assert len(qrels.subtopics.judgment) == 62394
    assert len(qrels.topics) == 50


def test_cranfield_with_crlf_and_several_spaces_is_read(shared: Path) -> None:
    qrels = read_qrels(shared / "data/cranfield/cranqrel.trec.txt")
    assert (len(qrels.topics), len(qrels.documents)) == (225, 1837)
    assert labels_of(qrels)["40", "85"] == 3


@pytest.mark.parametrize("kind", ["qrels.eng", "qread.eng", "qrels.merged", "qread.merged"])
def test_tab_separated_clef_2015_qrels_are_read(shared: Path, kind: str) -> None:
    qrels = read_qrels(shared / f"data/clef-ehealth-2015-task2/qrels/{kind}.clef2015.qtest.graded.txt.gz")
    assert (len(qrels.topics), len(qrels.documents)) == (66, 12092 if "merged" in kind else 8713)
    assert int((qrels.labels == NEGATIVE).sum()) == (125 if kind == "qread.merged" else 0)


def test_commented_qrels_of_trec_eval_differ_in_one_document_id(shared: Path) -> None:
    folder = shared / "data/trec-eval-tests"
    plain, commented = (
        labels_of(read_qrels(folder / f"qrels.test{ending}")) for ending in ("", ".with-comments")
    )
    assert len(plain) == len(commented) == 3681
    ((_, document),) = commented.keys() - plain.keys()
    assert "#" in document
