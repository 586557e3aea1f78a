"""Tests of collection files in YAML or JSON: their keys, their error messages, and random documents."""

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cupel_measures.findings import KINDS, Refused
from cupel_measures.model import ABSENT, NEGATIVE, UNJUDGED, Aspect, LabelSet
from cupel_measures.model.profiles import PROFILES
from cupel_measures.reading.collection_files import (
    aspects_from,
    collection_for,
    is_collection,
    label_sets_from,
    parse_collection,
    read_collection,
)
from cupel_measures.reading.compression import Limits

FULL_COLLECTION = """
aspects:                              # the first is the default aspect
  relevance:
    labels: [0, 1, 2]
    lowest: [-2]
    unjudged: [-1]
    threshold: 1
    gains: {0: 0, 1: 1, 2: 3}
    embedding: [0, 1, 2.5]
  credibility: {labels: [nc, pc, c]}
qrels:
  - {file: qrels.relevance.txt, aspect: relevance}
  - {file: wide.txt, columns: [topic, _, document, relevance, credibility]}
  - {file: diversity.txt, layout: subtopics}
topics: topics.txt
texts: docs.jsonl.gz
label_sets: {possible: {aspects: [relevance, credibility], tuples: [[0, nc], [1, nc], [1, pc], [2, c]]}}
profile: trec_eval-10
measures: [nDCG@10, "TOMA(of=nDCG@10,label_set=possible)", map]
"""
FILES = {
    "qrels.relevance.txt": b"1 0 a 1\n1 0 b -2\n1 0 c -1\n",
    "wide.txt": b"2 0 a 2 c\n2 0 b 1 pc\n",
    "diversity.txt": b"1 s1 a 1\n",
    "topics.txt": b"1 red cabbage\n2\tblue  cheese \n3\n# no topic\n",
    "docs.jsonl.gz": gzip.compress(b'{"id": "a", "text": "red cabbage"}\n'),
}
PLAIN = "aspects: {relevance: {labels: [0, 1]}}\nqrels: [{file: q, aspect: relevance}]\n"


def judged_by(description: str) -> str:
    """Return a collection file with this description of its qrels file."""
    return PLAIN.replace("aspect: relevance", description)


def label_set_file(description: str) -> str:
    """Return a collection file with this label set; `description` follows the key `aspects`."""
    return PLAIN + f"label_sets: {{a: {{aspects: {description}}}}}\n"


def errors_of(
    text: str | bytes, files: Mapping[str, bytes] | None = None
) -> list[tuple[int | None, str, str]]:
    """Return (line, code, message) of every error."""
    with pytest.raises(Refused) as problem:
        parse_collection(text, {"q": b"1 0 a 1\n"} if files is None else files)
    return [(finding.line, finding.code, finding.message) for finding in problem.value.findings.errors]


def aspect_errors(declared: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return (code, message) of every error in declared aspects."""
    with pytest.raises(Refused) as problem:
        aspects_from(declared)
    return [(finding.code, finding.message) for finding in problem.value.findings.errors]


def test_collection_has_aspects_judgments_topics_and_measures() -> None:
    collection = parse_collection(FULL_COLLECTION, FILES)
    relevance, credibility = collection.aspects
    assert relevance == Aspect(
        name="relevance",
        labels=range(3),
        lowest=(-2,),
        unjudged=(-1,),
        threshold=1,
        declared_gains=(0.0, 1.0, 3.0),
        declared_embedding=(0.0, 1.0, 2.5),
    )
    assert credibility == Aspect(name="credibility", labels=("nc", "pc", "c"))
    assert collection.qrels.topics == ("1", "2")
    assert collection.qrels.unjudged_topics == ("3",)
    assert collection.qrels.labels.tolist() == [
        [1, NEGATIVE, UNJUDGED, 2, 1],
        [ABSENT, ABSENT, ABSENT, 2, 1],
    ]
    assert collection.qrels.subtopics is not None
    assert collection.titles == {"1": "red cabbage", "2": "blue  cheese"}
    assert collection.texts is not None
    assert collection.texts.name == "docs.jsonl.gz"
    assert collection.texts.read().documents.to_list() == [b"a"]
    assert collection.label_sets == {
        "possible": LabelSet(("relevance", "credibility"), frozenset({(0, 0), (1, 0), (1, 1), (2, 2)}))
    }
    assert collection.profile == PROFILES["trec_eval-10"]
    assert collection.measures == ("nDCG@10", "TOMA(of=nDCG@10,label_set=possible)", "AP")
    assert collection.findings.totals == {
        "qrels-topic-without-judgments": 1,
        "qrels-partly-judged": 2,
        "qrels-topic-without-relevant": 1,
    }


def test_json_collection_may_be_indented_with_tabs() -> None:
    relevance = {"labels": [0, 1], "gains": {"0": 0, "1": 2}}
    document = {
        "aspects": {"relevance": relevance, "stance": {"labels": ["NO", "\U0001f600"]}},
        "qrels": [{"file": "w", "columns": ["topic", "_", "document", "relevance", "stance"]}],
        "measures": "nDCG@10 AP",
    }  # fmt: skip
    files = {"w": "1 0 a 1 \U0001f600\n".encode()}
    for text in (json.dumps(document), json.dumps(document, indent="\t"), json.dumps(document, indent=1)):
        collection = parse_collection(text, files)
        assert collection.aspects[1].labels == ("NO", "\U0001f600")
        assert collection.aspects[0].declared_gains == (0.0, 2.0)
        assert collection.measures == ("nDCG@10", "AP")


def test_labels_keep_their_spelling_in_yaml() -> None:
    declared = (
        "aspects: {stance: {labels: [no, yes, on, null, ~, 1.50, 0x1F, 2024-01-01]}}\nqrels: [{file: q}]"
    )
    collection = parse_collection(declared, {"q": b"1 0 a no\n1 0 b yes\n1 0 c 1.50\n"})
    assert collection.aspects[0].labels == ("no", "yes", "on", "null", "~", "1.50", "0x1F", "2024-01-01")


def test_qrels_file_of_the_only_aspect_needs_no_aspect_key() -> None:
    text = "aspects: {quality: {labels: [low, high]}}\nqrels: [{file: q}]"
    assert parse_collection(text, {"q": b"1 0 a high\n"}).qrels.labels.tolist() == [[1]]


def test_file_paths_are_relative_to_the_collection_file(tmp_path: Path) -> None:
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels/rel.txt.gz").write_bytes(gzip.compress(b"1 0 a 1\n"))
    path = tmp_path / "collection.yaml"
    path.write_text("aspects: {relevance: {labels: [0, 1]}}\nqrels: [{file: qrels/rel.txt.gz}]\n")
    assert read_collection(path).qrels.labels.tolist() == [[1]]


def test_errors_in_all_files_are_reported_together() -> None:
    text = PLAIN + "profile: cupell\nmeasures: [nDCG, nDGC@10]\n"
    errors = errors_of(text, {"q": b"1 0 a 7\n1 0\n"})
    assert [(line, code) for line, code, _ in errors] == [
        (3, "collection-profile"),
        (4, "collection-measure"),
        (1, "qrels-label-above-scale"),
        (2, "qrels-columns"),
    ]


@pytest.mark.parametrize(
    ("text", "line", "code", "message"),
    [
        ("aspects: [\n", 2, "document-syntax", "expected"),
        ("{" * 3000, None, "document-syntax", "deep"),
        ("[" * 100_000, None, "document-syntax", "deep"),
        ("aspects: &a {x: *a}\n", 1, "document-syntax", "anchors"),
        ("a: 1\n---\nb: 2\n", 2, "document-syntax", "document"),
        (b"aspects: \xff", 1, "qrels-not-text", "UTF-8"),
        ("", None, "document-missing-key", "aspects"),
        ("- a\n", None, "document-other-kind", "a list"),
        (PLAIN + "mesures: [AP]\n", 3, "document-unknown-key", "did you mean measures?"),
        (PLAIN + "qrels: []\n", 3, "document-repeated-key", "'qrels' occurs twice"),
        ("qrels: [{file: q, aspect: relevance}]\n", None, "document-missing-key", "'aspects'"),
        ("aspects: {relevance: {labels: [0, 1]}}\n", None, "document-missing-key", "'qrels'"),
        ("aspects: {relevance: {labels: [0, 1]}}\nqrels: []\n", 2, "collection-columns", "at least one"),
        ("aspects: {relevance: {labels: [0, 1]}}\nqrels:\n", 2, "document-other-kind", "got nothing"),
        (PLAIN.replace("file: q", "file: qq"), 2, "collection-file-missing", "did you mean q?"),
        (PLAIN.replace("file: q", "file: ../q"), 2, "collection-file-missing", "'../q'"),
        (PLAIN.replace("file: q", "fle: q"), 2, "document-missing-key", "'file'"),
        (judged_by("aspect: relevant"), 2, "collection-columns", "did you mean relevance?"),
        (judged_by("layout: wide"), 2, "collection-columns", "subtopics"),
        (PLAIN.replace("aspect: rel", "layout: subtopics, aspect: rel"), 2, "collection-columns", "one of"),
        (judged_by("columns: [topic, _, relevance]"), 2, "collection-columns", "column document is missing"),
        (judged_by("columns: [topic, _, document]"), 2, "collection-columns", "no column names an aspect"),
        (judged_by("columns: [topic, document, topic, relevance]"), 2, "collection-columns", "twice"),
        (judged_by("columns: [topic, document, _, b]"), 2, "collection-columns", "unknown aspect 'b'"),
        (PLAIN + "topics: t.txt\n", 3, "collection-file-missing", "t.txt"),
        (PLAIN + "texts: t.txt\n", 3, "collection-file-missing", "t.txt"),
        (PLAIN + "profile: trec_eval-11\n", 3, "collection-profile", "did you mean trec_eval"),
        (PLAIN + "measures: [nDGC@10]\n", 3, "collection-measure", "nDCG"),
        (PLAIN + "measures: [nDCG(aspect=b)@10]\n", 3, "collection-measure", "'b'"),
        (PLAIN + "measures:\n  - AP\n  - {AP: 1}\n", 5, "document-other-kind", "a mapping"),
        (label_set_file("[relevance]"), 3, "document-missing-key", "tuples"),
        (label_set_file("[b], tuples: []"), 3, "label-set", "unknown aspect 'b'"),
        (label_set_file("[relevance], tuples: [[0]]"), 3, "label-set", "two"),
        (label_set_file("[relevance], tuples: [[0], [1, 1]]"), 3, "label-set", "2 labels for 1"),
        (label_set_file("[relevance], tuples: [[0], [7]]"), 3, "label-set", "7 is not a label"),
        (label_set_file("[relevance, relevance], tuples: [[0, 0], [1, 1]]"), 3, "label-set", "twice"),
    ],
)  # fmt: skip
def test_invalid_collection_has_an_error_with_line_and_message(
    text: str | bytes, line: int | None, code: str, message: str
) -> None:
    errors = errors_of(text)
    assert (line, code) in [(line, code) for line, code, _ in errors], errors
    assert any(message in text for _, other, text in errors if other == code), errors
    assert KINDS[code].remedy


@pytest.mark.parametrize(
    ("declared", "code", "message"),
    [
        ({}, "aspect-labels", "at least one aspect"),
        ({"a b": {"labels": [0, 1]}}, "aspect-name", "'a b'"),
        ({"topic": {"labels": [0, 1]}}, "aspect-name", "'topic'"),
        ({"_": {"labels": [0, 1]}}, "aspect-name", "'_'"),
        ({"a": {}}, "document-missing-key", "labels"),
        ({"a": [0, 1]}, "document-other-kind", "got a list"),
        ({"a": {"labels": "0 1"}}, "document-other-kind", "list of labels"),
        ({"a": {"labels": [0]}}, "aspect-labels", "at least two"),
        ({"a": {"labels": []}}, "aspect-labels", "at least two"),
        ({"a": {"labels": [0, 2, 1]}}, "aspect-labels", "ascending or descending"),
        ({"a": {"labels": [0, 1, 1]}}, "aspect-label-twice", "label 1"),
        ({"a": {"labels": [0, "very good"]}}, "aspect-labels", "space"),
        ({"a": {"labels": [0, [1]]}}, "document-other-kind", "a list"),
        ({"a": {"labels": [0, None]}}, "document-other-kind", "nothing"),
        ({"a": {"labels": {"range": [0]}}}, "aspect-labels", "two integers"),
        ({"a": {"labels": {"range": [0, "x"]}}}, "aspect-labels", "two integers"),
        ({"a": {"labels": {"range": [5, 5]}}}, "aspect-labels", "at least two"),
        ({"a": {"labels": {"range": [0, 10**9]}}}, "aspect-labels", "at most"),
        ({"a": {"labels": {"rnge": [0, 9]}}}, "document-unknown-key", "did you mean range?"),
        ({"a": {"labels": [0, 1], "lowest": [0]}}, "aspect-label-twice", "label 0"),
        ({"a": {"labels": [0, 1], "lowest": [-1], "unjudged": [-1]}}, "aspect-label-twice", "label -1"),
        ({"a": {"labels": [0, 1], "lowest": -1}}, "document-other-kind", "list of labels"),
        ({"a": {"labels": [0, 1], "threshold": 0}}, "aspect-threshold", "lowest"),
        ({"a": {"labels": [0, 1], "threshold": 2}}, "aspect-threshold", "not a label"),
        ({"a": {"labels": [0, 1], "treshold": 1}}, "document-unknown-key", "did you mean threshold?"),
        ({"a": {"labels": [0, 1], "gains": {0: 0}}}, "aspect-gains", "no gain for label 1"),
        ({"a": {"labels": [0, 1], "gains": {0: 0, 1: 1, 2: 2}}}, "aspect-gains", "2 is not a label"),
        ({"a": {"labels": [0, 1, 2], "gains": {0: 0, 1: 2, 2: 1}}}, "aspect-gains", "non-decreasing"),
        ({"a": {"labels": [0, 1], "gains": [-1, 1]}}, "aspect-gains", "at least 0"),
        ({"a": {"labels": [0, 1], "gains": [0, 1, 2]}}, "aspect-gains", "3 numbers for 2 labels"),
        ({"a": {"labels": [0, 1], "gains": [0, "nan"]}}, "document-other-kind", "a number"),
        ({"a": {"labels": [0, 1], "gains": [0, "1e999"]}}, "document-other-kind", "a number"),
        ({"a": {"labels": [0, 1], "gains": [0, True]}}, "document-other-kind", "a number"),
        ({"a": {"labels": [0, 1], "embedding": [0]}}, "aspect-embedding", "1 numbers for 2 labels"),
        ({"a": {"labels": [0, 1], "embedding": [1, 0]}}, "aspect-embedding", "non-decreasing"),
    ],
)
def test_invalid_aspect_has_an_error(declared: dict[str, Any], code: str, message: str) -> None:
    errors = aspect_errors(declared)
    assert [error for error in errors if error[0] == code and message in error[1]], errors


def test_errors_of_all_aspects_are_reported_together() -> None:
    errors = aspect_errors({
        "a": {"labels": [0, 1], "threshold": 9, "gains": [0], "embedding": [2, 1], "weight": 1},
        "b": {"labels": [0]},
        "c": {},
    })  # fmt: skip
    assert [code for code, _ in errors] == [
        "document-unknown-key",
        "aspect-threshold",
        "aspect-gains",
        "aspect-embedding",
        "aspect-labels",
        "document-missing-key",
    ]


def test_aspects_are_read_from_parsed_json() -> None:
    ease = {"labels": {"range": [100, 0]}, "threshold": 40, "unjudged": ["NA", -1]}
    (aspect,) = aspects_from({"ease": ease})
    assert aspect == Aspect(name="ease", labels=range(100, -1, -1), unjudged=("NA", -1), threshold=60)


def test_consecutive_integer_labels_are_stored_as_a_range() -> None:
    listed, ranged = ({"labels": [3, 2, 1]}, {"labels": {"range": [3, 1]}})
    assert aspects_from({"a": listed}) == aspects_from({"a": ranged})
    assert aspects_from({"a": {"labels": [1, 3]}})[0].labels == (1, 3)


def test_gains_may_be_a_list_with_fractions() -> None:
    (aspect,) = aspects_from({"a": {"labels": ["x", "y", "z"], "gains": [0, "1/3", 0.5]}})
    assert aspect.declared_gains == (0.0, 1 / 3, 0.5)


def test_default_threshold_that_makes_0_relevant_gives_a_warning() -> None:
    text = PLAIN.replace("[0, 1]", "[-2, 0, 1]")
    assert "aspect-low-threshold" in parse_collection(text, {"q": b"1 0 a 1\n"}).findings.totals


def test_aspect_without_judgments_gives_a_warning() -> None:
    text = PLAIN.replace("aspects: {", "aspects: {quality: {labels: [0, 1]}, ")
    (warning,) = parse_collection(text, {"q": b"1 0 a 1\n"}).findings.warnings[:1]
    assert (warning.code, warning.message) == (
        "collection-aspect-not-judged",
        "qrels: no file judges quality",
    )


def test_label_sets_are_read_from_parsed_json() -> None:
    aspects = aspects_from({"a": {"labels": [0, 1]}, "b": {"labels": ["x", "y"]}})
    declared = {"set": {"aspects": ["b", "a"], "tuples": [["x", 0], ["y", 1]]}}
    assert label_sets_from(declared, aspects) == {"set": LabelSet(("b", "a"), frozenset({(0, 0), (1, 1)}))}
    with pytest.raises(Refused, match="not a label of b"):
        label_sets_from({"set": {"aspects": ["b"], "tuples": [["x"], ["z"]]}}, aspects)


@pytest.mark.parametrize("name", ["cartesian", "observed", "two words", "tab\there", ""])
def test_invalid_label_set_name_is_rejected(name: str) -> None:
    aspects = aspects_from({"a": {"labels": [0, 1]}})
    with pytest.raises(Refused, match="name of a label set"):
        label_sets_from({name: {"aspects": ["a"], "tuples": [[0], [1]]}}, aspects)


def test_deeply_nested_data_is_rejected() -> None:
    deep: Any = 1
    for _ in range(5000):
        deep = [deep]
    assert aspect_errors({"a": deep}) == [("document-syntax", "nested too deeply")]


def test_lone_surrogate_in_a_label_is_replaced() -> None:
    (aspect,) = aspects_from(json.loads('{"a": {"labels": ["\\ud800", "ok"]}}'))
    assert aspect.labels == ("\ufffd", "ok")


def test_judged_tuples_outside_a_label_set_are_errors() -> None:
    text = """
aspects: {a: {labels: [0, 1]}, b: {labels: [x, y]}}
qrels: [{file: q, columns: [topic, _, document, a, b]}]
label_sets: {set: {aspects: [b, a], tuples: [[x, 0], [y, 1]]}}
"""
    assert parse_collection(text, {"q": b"1 0 d 0 x\n1 0 e 1 y\n"}).label_sets
    ((_, code, message),) = errors_of(text, {"q": b"1 0 d 0 x\n1 0 e 0 y\n1 0 f 1 x\n"})
    assert code == "collection-outside-label-set"
    assert "2 judged documents" in message
    assert "e has (y, 0)" in message


@pytest.mark.parametrize(
    ("topics", "line", "message"),
    [
        (b"1 a\n1 b\n", 2, "listed twice"),
        (b"", None, "no topics"),
        (b"# 1\n", None, "no topics"),
        (b"<topic number='1'>\n", 2, "XML"),
        (b"1\n\xff\n", 2, "UTF-8"),
    ],
)
def test_invalid_topics_file_has_an_error(topics: bytes, line: int | None, message: str) -> None:
    errors = errors_of(PLAIN + "topics: t\n", {"q": b"1 0 a 1\n", "t": topics})
    assert [error for error in errors if error[0] == line and message in error[2]], errors


def test_unused_file_gives_a_warning() -> None:
    collection = parse_collection(PLAIN, {"q": b"1 0 a 1\n", "notes.txt": b"x"})
    assert collection.findings.totals["collection-file-unused"] == 1


def test_declarations_of_the_track_are_the_default() -> None:
    declared = {"aspects": {"relevance": {"labels": [0, 1]}}}
    short = "qrels: [{file: q}]"
    for text in (short, PLAIN):
        collection = parse_collection(text, {"q": b"1 0 a 1\n"}, declared=declared)
        assert collection.aspects == (Aspect(name="relevance", labels=range(2)),)
    with pytest.raises(Refused, match="differ from those of the track"):
        parse_collection(PLAIN.replace("[0, 1]", "[0, 1, 2]"), {"q": b"1 0 a 1\n"}, declared=declared)


def test_limits_apply_to_every_file() -> None:
    with pytest.raises(Refused, match="limit-expanded"):
        parse_collection(PLAIN, {"q": gzip.compress(b"1 0 a 1\n" * 1000)}, limits=Limits(expanded=1000))


def test_collection_file_is_recognised_by_extension_or_content(tmp_path: Path) -> None:
    for name, content, expected in (
        ("a.yaml", b"1 0 a 1\n", True),
        ("b", b"# mine\naspects:\n  relevance: {labels: [0, 1]}\n", True),
        ("c", b'{"aspects": {}}', True),
        ("d.txt", b"1 0 a 1\n", False),
        ("e.gz", gzip.compress(b"1 0 a 1\n", mtime=0), False),
        ("f.gz", b"\x1f\x8bdamaged", False),
    ):  # fmt: skip
        (tmp_path / name).write_bytes(content)
        assert is_collection(tmp_path / name) == expected, name


def test_plain_qrels_files_make_a_collection_with_inferred_scales(tmp_path: Path) -> None:
    for name, grades in (("r", b"1 0 a 1\n"), ("q", b"1 0 a 3\n")):
        (tmp_path / name).write_bytes(grades)
    alone = collection_for(tmp_path / "r")
    assert [aspect.name for aspect in alone.aspects] == ["relevance"]
    both = collection_for(None, {"relevance": tmp_path / "r", "quality": tmp_path / "q"})
    assert [(aspect.name, len(aspect.labels), aspect.inferred) for aspect in both.aspects] == [
        ("relevance", 2, True),
        ("quality", 4, True),
    ]


keys = st.sampled_from(
    ["aspects", "qrels", "topics", "label_sets", "measures", "labels", "file", "range", "a"]
)
trees = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.text(max_size=5), keys),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)


# Drawing a deep tree can be slow on a busy machine, which does not depend on the reader.
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(keys, trees, max_size=5))
def test_random_document_is_rejected_with_findings(tree: dict[str, Any]) -> None:
    with pytest.raises(Refused) as problem:
        parse_collection(json.dumps(tree), {"q": b"1 0 a 1\n"})
    assert problem.value.findings.errors


@settings(max_examples=200)
@given(st.binary(max_size=120))
def test_random_bytes_are_rejected_with_findings(data: bytes) -> None:
    with pytest.raises(Refused) as problem:
        parse_collection(data, {})
    assert problem.value.findings.errors


def test_touche_with_three_aspects_is_read_as_one_collection(shared: Path) -> None:
    folder = shared / "data/touche22-task2/qrels"
    names = {aspect: f"touche-task2-2022-{aspect}.qrels" for aspect in ("relevance", "quality", "stance")}
    text = {
        "aspects": {
            "relevance": {"labels": [0, 1, 2]},
            "quality": {"labels": [0, 1, 2]},
            "stance": {"labels": ["NO", "NEUTRAL", "FIRST", "SECOND"]},
        },
        "qrels": [{"file": name, "aspect": aspect} for aspect, name in names.items()],
        "measures": ["TOMA(of=nDCG@5,aspects=[relevance,quality])", "CAM(of=nDCG@5)"],
    }
    files = {name: (folder / name).read_bytes() for name in names.values()}
    collection = parse_collection(json.dumps(text), files)
    assert collection.qrels.labels.shape == (3, 2107)
    assert int((collection.qrels.labels[2] == 0).sum()) == 1012
