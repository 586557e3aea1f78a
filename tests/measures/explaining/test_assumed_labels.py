"""Tests of qrels with assumed labels: they equal qrels in which these judgments are written."""

from pathlib import Path

import numpy as np
import pytest

import cupel_measures as cupel
from cupel_measures.explaining.assumed_labels import are_judged, assume_labels, index_in_pool
from cupel_measures.model import Qrels
from cupel_measures.model.profiles import PROFILES

RELEVANCE = "q1 0 a 2\nq1 0 b 0\nq1 0 u -1\nq2 0 a 1\nq2 0 c 0\n"
QUALITY = "q1 0 a 1\nq2 0 c 0\n"
COLLECTION = (
    "aspects: {relevance: {labels: [0, 1, 2], unjudged: [-1]}, quality: {labels: [0, 1]}}\n"
    "qrels: [{file: r.txt, aspect: relevance}, {file: q.txt, aspect: quality}]\n"
)
DOCUMENTS = [(0, b"u"), (0, b"z"), (1, b"b"), (0, b"b")]


def collection(folder: Path, relevance: str, quality: str) -> Qrels:
    (folder / "r.txt").write_text(relevance)
    (folder / "q.txt").write_text(quality)
    (folder / "c.yaml").write_text(COLLECTION)
    return cupel.qrels(folder / "c.yaml").qrels


@pytest.mark.parametrize("highest", [False, True])
def test_documents_get_labels_of_aspects_without_a_judgment(tmp_path: Path, highest: bool) -> None:
    """Document b keeps its judged relevance; its quality is assumed."""
    best, good = (2, 1) if highest else (0, 0)
    changed = RELEVANCE.replace("u -1", f"u {best}") + f"q1 0 z {best}\nq2 0 b {best}\n"
    quality = QUALITY + "".join(f"q{topic + 1} 0 {name.decode()} {good}\n" for topic, name in DOCUMENTS)
    expected = collection(tmp_path, changed, quality)
    given = collection(tmp_path, RELEVANCE, QUALITY)
    assumed = assume_labels(given, DOCUMENTS, PROFILES["cupel"], highest=highest)
    assert assumed.documents.to_list() == expected.documents.to_list()
    assert np.array_equal(assumed.offsets, expected.offsets)
    assert np.array_equal(assumed.labels, expected.labels)


@pytest.mark.parametrize("highest", [False, True])
def test_documents_are_judged_for_all_subtopics_of_their_topic(tmp_path: Path, highest: bool) -> None:
    text = "q1 1 a 1\nq1 2 b 1\nq2 7 a 1\n"
    level = int(highest)
    added = f"q1 1 z {level}\nq1 2 z {level}\nq2 7 b {level}\n"
    (tmp_path / "c.yaml").write_text("qrels: [{file: s.txt, layout: subtopics}]\n")
    (tmp_path / "s.txt").write_text(text + added)
    expected = cupel.qrels(tmp_path / "c.yaml").qrels.subtopics
    (tmp_path / "s.txt").write_text(text)
    given = cupel.qrels(tmp_path / "c.yaml").qrels
    profile = PROFILES["cupel"]
    assumed = assume_labels(given, [(0, b"z"), (1, b"b"), (0, b"a")], profile, highest=highest).subtopics
    assert expected is not None
    assert assumed is not None
    for column in ("document", "subtopic", "judgment"):
        assert np.array_equal(getattr(assumed, column), getattr(expected, column))
    assert are_judged(given, None, profile).tolist() == [True, True, True]


def test_documents_are_found_in_the_pool_of_their_topic(tmp_path: Path) -> None:
    qrels = collection(tmp_path, RELEVANCE, QUALITY)
    ids = qrels.documents.to_list()
    for index, topic in enumerate(qrels.topic_of.tolist()):
        assert index_in_pool(qrels, (topic, ids[index])) == index
    assert index_in_pool(qrels, (0, b"c")) is None
    assert index_in_pool(qrels, (1, b"zz")) is None
