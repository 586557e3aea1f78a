"""Tests that the scores after one more judgment equal those under qrels that contain the judgment."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cupel_audits.analysis import judgment_effects
from cupel_audits.analysis.judgment_effects import score_after_judgment
from cupel_audits.subject import AuditSubject
from cupel_audits.subject_files import NamedQrels, assemble_subject, view_of
from cupel_measures.catalogue.parser import Measure, parse
from cupel_measures.model import Aspect, LabelSet, Qrels
from cupel_measures.model.profiles import PROFILES
from cupel_measures.reading.joins import join
from cupel_measures.scoring.evaluator import evaluate
from support.data.audit_subjects import subject_of
from support.data.random_collections import collections, runs, supported_measures
from support.data.small_collections import Scored, diverse, qrels_of, ranked, ranking_of


def add_judgment(qrels: Qrels, topic: int, document: bytes) -> Qrels:
    """Return qrels with one more judgment, rebuilt from dictionaries."""
    names = [aspect.name for aspect in qrels.aspects]
    labels: dict[str, dict[str, dict[str, int]]] = {name: {t: {} for t in qrels.topics} for name in names}
    subtopics: dict[str, dict[str, dict[str, int]]] = {t: {} for t in qrels.topics}
    for place, name_bytes in enumerate(qrels.documents.to_list()):
        its_topic = qrels.topics[int(qrels.topic_of[place])]
        for name, label in zip(names, qrels.labels[:, place].tolist(), strict=True):
            if label > -3:
                labels[name][its_topic][name_bytes.decode()] = label
    given = qrels.subtopics
    assert given is not None
    for place, name, judgment in zip(given.document, given.subtopic, given.judgment, strict=True):
        its_topic = qrels.topics[int(qrels.topic_of[place])]
        subtopics[its_topic].setdefault(qrels.documents[int(place)], {})[given.names[name]] = int(judgment)
    topic_name = qrels.topics[topic]
    known = {name for by_name in subtopics[topic_name].values() for name in by_name}
    best = max([1, *given.judgment.tolist()])
    if known:
        subtopics[topic_name][document.decode()] = dict.fromkeys(known, best)
    if not qrels.only_by_subtopic:
        for aspect in qrels.aspects:
            labels[aspect.name][topic_name][document.decode()] = len(aspect.labels) - 1
    return qrels_of({aspect: labels[aspect.name] for aspect in qrels.aspects}, qrels.label_sets, subtopics)


def compare(subject: AuditSubject, given: Sequence[Scored], measures: Sequence[Measure]) -> int:
    """Compare all unjudged documents by all measures, bit by bit; return the number of documents."""
    tops, compared = subject.tops, 0
    assert tops is not None
    known = np.append(subject.judged, False)[tops.pooled]
    for topic in range(len(subject.qrels.topics)):
        documents = np.flatnonzero((tops.topic == topic) & ~known)[::-1]
        scores = score_after_judgment(subject, topic, documents, measures)
        for place, document in enumerate(documents.tolist()):
            qrels = add_judgment(subject.qrels, topic, tops.documents.bytes_at(document))
            for run, scored in enumerate(given):
                joined = join(ranking_of(scored), qrels, profile=subject.joined.profile)
                expected = evaluate(qrels, joined, [m for m in measures if not m.declaration.texts])
                for measure, values in expected.values.items():
                    best = scores[str(measure)]
                    assert best is not None
                    assert best[place, run] == values[topic], (measure, document, run)
            compared += 1
    return compared


@given(collections(), st.lists(runs(), min_size=1, max_size=2), st.sampled_from(sorted(PROFILES)), st.data())
@settings(max_examples=8, deadline=None)
def test_scores_if_judged_equal_rescoring(
    qrels: Qrels, given: list[Scored], profile: str, data: st.DataObject
) -> None:
    measures = supported_measures(qrels)
    begin = data.draw(st.integers(0, 9))
    chosen = measures[begin::10]
    seen = [
        (f"{n}", view_of(ranking_of(run), qrels, profile=PROFILES[profile], top=9))
        for n, run in enumerate(given)
    ]
    compare(assemble_subject(NamedQrels("q", qrels), seen, chosen, top=9), given, chosen)


def test_documents_inside_and_outside_the_pool_are_scored() -> None:
    qrels = qrels_of({"1": {"b": 1, "d": 0}, "2": {"a": 2}}, subtopics={"1": {"d": {"x": 1}, "e": {"y": 0}}})
    given = [
        {"1": ranked("a", "b", "c", "d", "e"), "2": ranked("z", "a")},
        {"1": ranked("e", "c"), "2": ranked("a")},
    ]
    measures = [parse(text) for text in ("AP", "nDCG@3", "P@2", "Bpref", "infAP", "alpha_nDCG@5")]
    subject = subject_of(qrels, {"one": given[0], "two": given[1]}, "AP", top=5)
    assert compare(subject, given, measures) == 3


def test_scores_if_judged_with_judgments_by_subtopic_only() -> None:
    qrels = diverse({"1": {"a": {"x": 1}, "b": {"y": 2}, "c": {"x": 0}}})
    given = [{"1": ranked("a", "n", "b")}, {"1": ranked("m", "b", "n")}]
    subject = subject_of(qrels, {"one": given[0], "two": given[1]}, "alpha_nDCG@20", top=5)
    assert compare(subject, given, [parse("alpha_nDCG@20"), parse("ERR_IA@20"), parse("NRBP")]) == 2


def test_scores_if_judged_do_not_depend_on_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    qrels = qrels_of({"1": {"b": 1}})
    subject = subject_of(
        qrels, {"one": {"1": ranked(*"abcdef")}, "two": {"1": ranked(*"fedcba")}}, "AP nDCG", top=6
    )
    documents = np.array([5, 0, 3, 2, 4])  # deliberately unsorted
    together = score_after_judgment(subject, 0, documents, subject.measures)
    monkeypatch.setattr(judgment_effects, "AT_ONCE", 1)
    single = score_after_judgment(subject, 0, documents, subject.measures)
    assert all(np.array_equal(together[text], single[text]) for text in together)  # type: ignore[arg-type]


def test_measure_is_none_if_its_label_set_lacks_the_best_labels() -> None:
    aspects = (Aspect(name="one", labels=range(2)), Aspect(name="two", labels=range(2)))
    declared = {"some": LabelSet(("one", "two"), frozenset({(0, 0), (1, 0), (0, 1)}))}
    qrels = qrels_of({aspect: {"1": {"a": 0, "b": 0}} for aspect in aspects}, declared)
    subject = subject_of(qrels, {"one": {"1": ranked("a", "x")}}, "AP", top=2)
    measures = [parse("TOMA(of=nDCG,label_set='some')").bound(aspects), parse("AP").bound(aspects)]
    scores = score_after_judgment(subject, 0, np.array([1]), measures)
    assert scores[str(measures[0])] is None
    assert scores[str(measures[1])] is not None


def test_scores_of_no_documents_are_empty() -> None:
    subject = subject_of(qrels_of({"1": {"a": 1}}), {"one": {"1": ranked("a")}}, "AP", top=2)
    scores = score_after_judgment(subject, 0, np.zeros(0, dtype=np.int64), subject.measures)
    assert {text: values.shape for text, values in scores.items() if values is not None} == {"AP": (0, 1)}
