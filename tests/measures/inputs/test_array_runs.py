"""Tests of runs that are arrays of document ids and scores."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cupel_measures as cupel
from cupel_measures.model.profiles import PROFILES

KINDS = {"integers": "int32", "text": "U3", "bytes": "S3", "objects": "O"}


def as_kind(ids: Any, kind: str) -> Any:
    if kind == "objects":
        return np.vectorize(str, otypes=[object])(ids)
    return np.asarray(ids).astype(KINDS[kind])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("profile", PROFILES)
@given(seed=st.integers(0, 2**32 - 1), depth=st.sampled_from([None, 1, 3, 20]))
def test_arrays_equal_the_dictionary(kind: str, profile: str, seed: int, depth: int | None) -> None:
    rng = np.random.default_rng(seed)
    topics, k = int(rng.integers(1, 5)), int(rng.integers(1, 12))
    ids = np.array([rng.permutation(40)[:k] for _ in range(topics)])
    scores = rng.choice([0.5, 1 / 3, 1 / 3 + 1e-12, 2.0, -1.0, rng.random()], (topics, k))
    names = [str(topic) for topic in range(topics)]
    table = {
        name: dict(zip(map(str, row), values.tolist(), strict=True))
        for name, row, values in zip(names, ids.tolist(), scores, strict=True)
    }
    qrels = {
        str(topic): {str(document): int(rng.integers(0, 3)) for document in rng.permutation(40)[:15]}
        for topic in range(topics + 1)
    }
    run = cupel.array_run(names, as_kind(ids, kind), scores)
    both = cupel.evaluate(
        qrels, {"arrays": run, "table": table}, "nDCG@10 AP RR Bpref Judged@5", profile=profile, depth=depth
    )
    assert dict(both["arrays"]) == dict(both["table"])
    assert run.table() == table
    (other,) = cupel.runs(table).values()
    assert run.read().ranking.documents.to_list() == other.read().ranking.documents.to_list()


def test_negative_integers_and_empty_strings_are_no_documents() -> None:
    qrels = {"1": {"7": 1, "9": 1}, "2": {"7": 1}}
    scores = np.array([[3, np.nan, 1], [2, -np.inf, np.nan]], np.float32)
    for ids in (np.array([[8, -1, 7], [7, -1, -1]]), np.array([["8", "", "7"], ["7", "", ""]])):
        run = cupel.array_run(["1", "2"], ids, scores)
        assert cupel.evaluate(qrels, {"dense": run}, "AP RR")["dense"].to_dict() if False else True
        values = cupel.evaluate(qrels, {"dense": run}, "AP RR")["dense"]
        assert values["AP"] == (1 / 4 + 1) / 2
        assert values["RR"] == (1 / 2 + 1) / 2


def test_equal_scores_are_ordered_by_id_descending() -> None:
    run = cupel.array_run(["1"], [[10, 9, 100]], [[1.0, 1.0, 1.0]])
    ranks = {
        document: 1 / cupel.evaluate({"1": {document: 1}}, {"x": run}, "RR")["x"]["RR"]
        for document in ("9", "100", "10")
    }
    assert ranks == {"9": 1, "100": 2, "10": 3}


def test_topics_of_the_arrays_that_the_qrels_lack_are_ignored() -> None:
    run = cupel.array_run(["1", "x"], [[1], [2]], [[1.0], [1.0]])
    report = cupel.evaluate({"1": {"1": 1}, "2": {"2": 1}}, run, "AP")
    assert report["run"]["AP"] == 0.5
    assert report.runs["run"].findings.totals == {"run-topics-extra": 1}


@pytest.mark.parametrize(
    ("topics", "ids", "scores", "code"),
    [
        (["1"], [[1, 2]], [[np.nan, 1.0]], "run-score"),
        (["1"], [[1, 1]], [[2.0, 1.0]], "run-duplicate"),
        (["1"], [["a", "a"]], [[2.0, 1.0]], "run-duplicate"),
        (["1"], [["a b", "a"]], [[2.0, 1.0]], "id-blank"),
        (["1"], [[1.5, 2.5]], [[2.0, 1.0]], "id-type"),
        (["1"], np.array([["a", None]], dtype=object), [[2.0, 1.0]], "id-type"),
        (["1", "1"], [[1], [2]], [[2.0], [1.0]], "id-twice"),
        ([1.0], [[1]], [[2.0]], "id-type"),
        (["a b"], [[1]], [[2.0]], "id-blank"),
        (["#1"], [[1]], [[2.0]], "id-comment"),
        (["1"], [[-1, -1]], [[2.0, 1.0]], "run-empty"),
        (["7"], [[1, 2]], [[2.0, 1.0]], "run-topics-none"),
    ],
)
def test_invalid_arrays_are_refused(topics: Any, ids: Any, scores: Any, code: str) -> None:
    with pytest.raises(cupel.Refused) as refused:
        cupel.evaluate({"1": {"1": 1}}, cupel.array_run(topics, ids, scores), "AP")
    assert set(refused.value.findings.totals) == {code}


def test_shapes_and_types_are_checked() -> None:
    with pytest.raises(ValueError, match=r"expected ids and scores of shape \(topics, k\), got ids \(1, 2\)"):
        cupel.array_run(["1"], [[1, 2]], [[1.0]])
    with pytest.raises(TypeError, match="expected numbers"):
        cupel.array_run(["1"], [[1]], [["a"]])
