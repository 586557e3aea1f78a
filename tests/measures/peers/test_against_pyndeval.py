"""Tests of agreement with pyndeval 0.0.8 (ndeval 4.5) per topic, on random collections and on real runs.

The inputs avoid the deliberate differences and the errors of ndeval, which have separate tests.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cupel_measures.catalogue.parser import parse
from cupel_measures.model import Qrels
from cupel_measures.reading.qrels_files import SUBTOPICS, QrelsFile, build_qrels, unscaled
from cupel_measures.reading.run_files import join_run, read_run
from cupel_measures.scoring.evaluator import evaluate
from support.data.small_collections import BySubtopic, Scored, diverse, ranked, scores_of

pyndeval = pytest.importorskip("pyndeval")

CLOSE = 1e-6
CUTOFFS = (1, 2, 3, 5, 10, 20)
AT_CUTOFF = {
    "ERR-IA": "ERR_IA",
    "nERR-IA": "nERR_IA",
    "alpha-DCG": "alpha_DCG",
    "alpha-nDCG": "alpha_nDCG",
    "P-IA": "P_IA",
    "strec": "StRecall",
}
UNDIVIDED = ("ERR-IA@1", "alpha-DCG@1")
"""Measures that ndeval does not divide by their ideal value, by mistake."""
OURS = {
    **{f"{theirs}@{k}": f"{ours}@{k}" for theirs, ours in AT_CUTOFF.items() for k in CUTOFFS},
    "NRBP": "NRBP",
    "nNRBP": "nNRBP",
    "MAP-IA": "AP_IA",
}
TEXTS = {name: text for name, text in OURS.items() if name not in UNDIVIDED}


def theirs(
    judged: BySubtopic, run: Scored, names: Sequence[str], **options: Any
) -> dict[str, dict[str, float]]:
    """Return topic -> measure -> value by pyndeval."""
    qrels = [(t, s, d, g) for t, of in judged.items() for d, by in of.items() for s, g in by.items()]
    rows = [(topic, document, score) for topic, of in run.items() for document, score in of.items()]
    values: dict[str, dict[str, float]] = pyndeval.RelevanceEvaluator(qrels, names, **options).evaluate(rows)
    return values


documents = st.sampled_from([f"d{i:02}" for i in range(24)])
topics = st.sampled_from(["1", "10", "2"])
by_subtopic = st.dictionaries(st.sampled_from("abcde"), st.integers(-2, 3), min_size=1, max_size=5)
judgments = st.dictionaries(
    topics, st.dictionaries(documents, by_subtopic, min_size=1, max_size=24), min_size=1
)
runs = st.dictionaries(topics, st.lists(documents, unique=True, min_size=1, max_size=24), min_size=1)
# Sums of their powers are exact in floating point, so rounding never breaks a tie of gains.
exact_alphas = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])


@given(judgments, runs, st.integers(1, 3), exact_alphas, st.sampled_from([0.2, 0.5, 0.8, 0.95]))
@settings(max_examples=300, deadline=None)
def test_every_measure_agrees_per_topic(
    judged: BySubtopic, orders: dict[str, list[str]], rel: int, alpha: float, beta: float
) -> None:
    run = {topic: ranked(*order) for topic, order in orders.items()}
    peer_values = theirs(judged, run, list(TEXTS), relevance_level=rel, alpha=alpha, beta=beta)
    given_ = {"rel": rel, "alpha": alpha, "beta": beta}
    texts = {name: _having(text, given_) for name, text in TEXTS.items()}
    qrels = diverse(judged)
    ours = scores_of(list(texts.values()), run, qrels)
    for place, topic in enumerate(qrels.topics):
        for name, value in peer_values.get(topic, {}).items():
            if name != "query_id" and not math.isnan(value):
                assert ours[texts[name]][place] == pytest.approx(value, abs=CLOSE), (topic, name)


def _having(text: str, options: dict[str, float]) -> str:
    measure = parse(text)
    known = measure.declaration.parameters
    return str(measure.having(**{name: value for name, value in options.items() if name in known}))


def test_values_agree_without_negative_judgments_and_ties() -> None:
    judged = {"1": {"a": {"1": 1, "2": 1}, "b": {"1": 1}, "c": {"2": 0}}}
    run = {"1": ranked("c", "b", "a")}
    peer_values = theirs(judged, run, list(TEXTS))["1"]
    ours = scores_of(list(TEXTS.values()), run, diverse(judged))
    assert {name: ours[text][0] for name, text in TEXTS.items()} == pytest.approx(
        {name: peer_values[name] for name in TEXTS}, abs=CLOSE
    )


class TestDifferences:
    """Deliberate differences from pyndeval; each test shows both values."""

    judged = {"1": {"a": {"1": 1, "2": 1}, "b": {"1": 1}, "c": {"2": 1}}}  # noqa: RUF012

    def both(
        self, theirs_: str, ours: str, run: Scored, judged: BySubtopic | None = None, **options: Any
    ) -> Any:
        judged = judged or self.judged
        peer_values = theirs(judged, run, [theirs_], **options)
        topic = {topic: of[theirs_] for topic, of in peer_values.items()}
        return topic, next(iter(scores_of(ours, run, diverse(judged)).values()))

    @pytest.mark.parametrize(("name", "text"), [(name, OURS[name]) for name in UNDIVIDED])
    def test_value_at_cutoff_1_is_normalised(self, name: str, text: str) -> None:
        # The document has one of two subtopics. ndeval does not divide its gain by the ideal gain.
        assert self.both(name, text, {"1": ranked("b")}) == ({"1": 1.0}, [0.5])

    def test_topic_without_relevant_documents_scores_0(self) -> None:
        peer_values, ours = self.both("nNRBP", "nNRBP", {"1": ranked("a")}, {"1": {"a": {"1": 0}}})
        assert math.isnan(peer_values["1"])
        assert ours == [0.0]

    def test_parameters_that_make_the_ideal_0_are_refused(self) -> None:
        # With beta 1 and alpha 0, the factor 1 - (1 - alpha) beta of the run and of its ideal is 0.
        peer_values = theirs(self.judged, {"1": ranked("a")}, ["nNRBP"], alpha=0.0, beta=1.0)
        assert math.isnan(peer_values["1"]["nNRBP"])
        with pytest.raises(ValueError, match="1 excluded"):
            parse("nNRBP(alpha=0,beta=1)")

    def test_tied_scores_are_ordered_by_descending_id(self) -> None:
        run = {"1": {"a": 1.0, "b": 1.0}}
        assert self.both("alpha-nDCG@1", "alpha_nDCG@1", run) == ({"1": 1.0}, [0.5])

    def test_missing_topic_counts(self) -> None:
        judged = {"1": self.judged["1"], "2": self.judged["1"]}
        assert self.both("strec@5", "StRecall@5", {"1": ranked("a")}, judged) == ({"1": 1.0}, [1.0, 0.0])

    def test_negative_judgment_is_never_relevant(self) -> None:
        run, judged = {"1": ranked("a")}, {"1": {"a": {"1": -2}, "b": {"1": 1}}}
        both = self.both("strec@1", "StRecall(rel=-2)@1", run, judged, relevance_level=-2)
        assert both == ({"1": 1.0}, [0.0])

    def test_cutoffs_above_20_are_possible(self) -> None:
        with pytest.raises(AssertionError, match="only supports cutoffs up to 20"):
            theirs(self.judged, {"1": ranked("a")}, ["strec@21"])
        assert scores_of("StRecall@21", {"1": ranked("a")}, diverse(self.judged)) == {"StRecall@21": [1.0]}

    def test_gains_that_differ_only_by_rounding_are_tied(self) -> None:
        # After p, documents x (0.4 + 0.4 + 1) and y (1 + 0.4 + 0.4) both gain 1.8, but in floating point
        # y gains 1.7999999999999998. ndeval has the ideal p x y w; Cupel has p y w x, the largest id first.
        names = {"p": "125689", "w": "1289", "x": "123", "y": "356"}
        judged = {
            "1": {"a": dict.fromkeys("123456789", 0)} | {d: dict.fromkeys(s, 1) for d, s in names.items()}
        }
        peer_values, ours = self.both(
            "alpha-nDCG@20", "alpha_nDCG(alpha=0.6)@20", {"1": ranked(*"pxyw")}, judged, alpha=0.6
        )
        assert peer_values == {"1": 1.0}
        assert ours == pytest.approx([0.996637], abs=CLOSE)
        best = scores_of("alpha_nDCG(alpha=0.6)@20", {"1": ranked(*"pywx")}, diverse(judged))
        assert next(iter(best.values())) == [1.0]


WEB = {
    "2010": ("10.diversity-qrels.final.txt.gz", 1),
    "2012": ("qrels.diversity.txt.gz", 9),
}


@pytest.mark.parametrize("year", WEB)
def test_all_values_of_the_web_track_runs_agree(shared: Path, year: str) -> None:
    """pyndeval gets the ranks of Cupel as scores, so that both order ties in the same way."""
    folder = shared / "data/trec-web-diversity" / year
    name, number = WEB[year]
    qrels = _web(folder / name)
    paths = sorted((folder / "runs").rglob("*.gz"))
    assert len(paths) == number
    compared = 0
    for path in paths:
        peer_values = theirs(_judged(qrels), _ranks(path), list(TEXTS))
        values = evaluate(qrels, join_run(path, qrels), [parse(text) for text in TEXTS.values()]).values
        for place, topic in enumerate(qrels.topics):
            for measure, text in TEXTS.items():
                if topic in peer_values and not math.isnan(peer_values[topic][measure]):
                    ours = values[parse(text)][place]
                    assert ours == pytest.approx(peer_values[topic][measure], abs=CLOSE), (
                        path,
                        topic,
                        measure,
                    )
                    compared += 1
    assert compared >= number * 40 * len(TEXTS)


def test_cleaned_qrels_of_2012_give_bit_identical_values(shared: Path) -> None:
    """The cleaned qrels lack spam labels and the eight subtopics without a relevant document."""
    folder = shared / "data/trec-web-diversity/2012"
    original, cleaned = (
        _web(folder / name) for name in ("qrels.diversity.txt.gz", "qrels-for-ndeval.txt.gz")
    )
    measures = [parse(text) for text in OURS.values()]
    for path in sorted((folder / "runs").rglob("*.gz")):
        original_scores, cleaned_scores = (
            evaluate(qrels, join_run(path, qrels), measures) for qrels in (original, cleaned)
        )
        assert all(
            original_scores.values[m].tobytes() == cleaned_scores.values[m].tobytes() for m in measures
        )


def test_values_of_real_judgments_with_ten_subtopics_per_topic_agree(shared: Path) -> None:
    """ODP-TR30 has no runs, so rank its documents in the order of the file, and in reverse order."""
    judged: dict[str, dict[str, dict[str, int]]] = {}
    for line in (shared / "data/odp-tr30/STRel.txt").read_text().splitlines()[1:]:
        subtopic, document = line.split("\t")
        judged.setdefault(subtopic.split(".")[0], {}).setdefault(document, {})[subtopic] = 1
    qrels = diverse(judged)
    assert len(qrels.topics) == 30
    for step in (1, -1):
        run = {topic: ranked(*list(of)[::step]) for topic, of in judged.items()}
        peer_values, ours = theirs(judged, run, list(TEXTS)), scores_of(list(TEXTS.values()), run, qrels)
        for place, topic in enumerate(qrels.topics):
            assert {name: ours[text][place] for name, text in TEXTS.items()} == pytest.approx(
                {name: peer_values[topic][name] for name in TEXTS}, abs=CLOSE
            )


def _web(path: Path) -> Qrels:
    return build_qrels([unscaled("relevance")], [QrelsFile(path.name, path, SUBTOPICS)])


def _judged(qrels: Qrels) -> BySubtopic:
    assert qrels.subtopics is not None
    judged: dict[str, dict[str, dict[str, int]]] = {}
    columns = (qrels.subtopics.document, qrels.subtopics.subtopic, qrels.subtopics.judgment)
    for document, subtopic, judgment in zip(*(column.tolist() for column in columns), strict=True):
        of_topic = judged.setdefault(qrels.topics[qrels.topic_of[document]], {})
        of_topic.setdefault(qrels.documents[document], {})[qrels.subtopics.names[subtopic]] = judgment
    return judged


def _ranks(path: Path) -> Scored:
    ranking = read_run(path).ranking
    offsets = ranking.offsets.tolist()
    return {
        topic: ranked(*(ranking.documents[i] for i in range(begin, end)))
        for topic, begin, end in zip(ranking.topics, offsets[:-1], offsets[1:], strict=True)
    }
