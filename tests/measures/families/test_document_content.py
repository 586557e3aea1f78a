"""Tests of LMD and soft_alpha_nDCG, and of the selection of documents and topics with LMD."""

import random
from collections import Counter
from operator import itemgetter

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cupel_audits.analysis.lmd_selection import centrality, select_documents, select_topics
from cupel_measures.catalogue.parser import parse
from cupel_measures.findings import Refused
from cupel_measures.grammar.syntax import MeasureError
from cupel_measures.model import Content, Texts
from cupel_measures.reading.collection_files import parse_collection
from cupel_measures.scoring.evaluator import check, evaluate
from cupel_measures.scoring.language_models import Corpus, Targets, salient
from support.data.small_collections import diverse, joined_of, qrels_of, ranked, score_of, scores_of, texts_of

CLOSE = 6e-7  # values are printed to 6 decimals
WORDS = {
    "a": "apple fruit tree apple",
    "b": "apple pie fruit",
    "c": "mac computer apple",
    "d": "rain weather",
    "e": "computer keyboard",
}
TEXTS = texts_of(WORDS)
JUDGED = {"a": {"1": 1}, "b": {"1": 1}, "c": {"2": 1}, "d": {"1": 0}}
QRELS = diverse({"1": JUDGED})


def score_topic(
    text: str, order: str, judged: dict[str, dict[str, int]] = JUDGED, document_texts: Texts = TEXTS
) -> float:
    """Return the score of a ranking of one topic, with one letter per document."""
    return score_of(text, {"1": ranked(*order)}, diverse({"1": judged}), document_texts=document_texts)


def model_of(*documents: str) -> dict[str, float]:
    """Return the mean language model of some documents, by term."""
    places = np.array([list(WORDS).index(document) for document in documents])
    model = Corpus.of(TEXTS).mean(places)
    return {TEXTS.vocabulary[int(t)]: p for t, p in zip(model.terms, model.p.tolist(), strict=True)}


def salient_terms(number: int) -> list[str]:
    """Return the terms that LMD keeps for the two subtopics of the example."""
    corpus = Corpus.of(TEXTS)
    models = [corpus.mean(np.array([0, 1])), corpus.mean(np.array([2]))]
    return [TEXTS.vocabulary[int(term)] for term in salient(models, corpus, number)]


class TestContentExample:
    """A worked example of LMD, with values from an independent implementation."""

    @pytest.mark.parametrize(
        ("order", "expected"),
        [
            ("ac", (0.831340, 0.850115, 0.687349, 0.869963)),
            ("ca", (0.834504, 0.852131, 0.712278, 0.884750)),
            ("ab", (0.747035, 0.799018, 0.616828, 0.808525)),
            ("acb", (0.986157, 0.990665, 0.970806, 0.985212)),
            ("d", (0.000000, 0.286572, 0.089819, 0.000000)),
            ("ea", (0.592850, 0.713404, 0.434838, 0.531524)),
            ("", (0, 0, 0, 0)),
        ],
    )
    def test_scores_equal_the_worked_values(self, order: str, expected: tuple[float, ...]) -> None:
        parameters = ("", ",smoothing=0.2", ",smoothing=0.2,divergence=kl")
        texts = [*(f"LMD(depth=3{option})" for option in parameters), "soft_alpha_nDCG"]
        scores = scores_of(texts, {"1": ranked(*order)}, QRELS, document_texts=TEXTS)
        assert [value for [value] in scores.values()] == pytest.approx(expected, abs=CLOSE)

    def test_models_of_subtopics_and_rankings_are_mixtures(self) -> None:
        assert model_of("a", "b") == pytest.approx(
            {"apple": 0.416667, "fruit": 0.291667, "pie": 0.166667, "tree": 0.125}, abs=CLOSE
        )
        assert model_of("c") == dict.fromkeys(("apple", "computer", "mac"), 1 / 3)
        discounts = [1.0, 0.630930, 0.5]  # 1 / log2(1 + rank)
        weights = np.array(discounts) / sum(discounts)
        model = Corpus.of(TEXTS).mixture(np.array([0, 2, -1]), weights)
        assert model.null == pytest.approx(0.234639, abs=CLOSE)
        probabilities = {
            TEXTS.vocabulary[int(t)]: p for t, p in zip(model.terms, model.p.tolist(), strict=True)
        }
        computer = {"computer": 0.098694, "mac": 0.098694}
        assert probabilities == pytest.approx(
            {"apple": 0.333333, "fruit": 0.117320, "tree": 0.117320, **computer}, abs=CLOSE
        )

    def test_divergences_equal_the_worked_values(self) -> None:
        corpus = Corpus.of(TEXTS)
        a, c, a_model = (corpus.mean(np.array(places)) for places in ([0], [2], [0]))
        assert 1 - Targets(corpus=corpus, models=[c]).closeness(a)[0] == pytest.approx(0.595437, abs=CLOSE)
        # KL(a || collection), where the ranking is the whole collection
        targets = Targets(corpus=corpus, models=[a_model], divergence="kl")
        background = corpus.background
        lengths = np.array([4, 3, 3, 2, 2]) / 14
        collection = corpus.mixture(np.arange(5), lengths)
        assert collection.p == pytest.approx(background[collection.terms])
        assert -np.log(targets.closeness(collection)[0]) == pytest.approx(0.732903, abs=CLOSE)

    def test_soft_labels_equal_closeness_to_subtopics(self) -> None:
        corpus = Corpus.of(TEXTS)
        models = [corpus.mean(np.array([0, 1])), corpus.mean(np.array([2]))]
        targets = Targets(corpus=corpus, models=models)
        assert targets.closeness(corpus.mean(np.array([0]))) == pytest.approx([0.897454, 0.404563], abs=CLOSE)
        assert targets.closeness(corpus.mean(np.array([4]))) == pytest.approx([0, 0.404563], abs=CLOSE)

    def test_selected_terms_distinguish_subtopics_from_the_collection(self) -> None:
        assert salient_terms(4) == ["mac", "computer", "apple", "fruit"]
        assert score_topic("LMD(depth=3,terms=4)", "ac") == pytest.approx(0.852733, abs=CLOSE)

    def test_documents_are_selected_by_centrality(self) -> None:
        centralities = centrality(["a", "b", "c"], TEXTS)
        assert centralities == pytest.approx([0.548242, 0.512627, 0.368948], abs=CLOSE)
        # In a pair, each is the closeness of a and b: 0.548242 + 0.512627 - 0.368948.
        assert centrality(["a", "b"], TEXTS) == pytest.approx([0.691921] * 2, abs=3 * CLOSE)
        assert centrality(["a"], TEXTS).tolist() == [0]
        labelled_documents: list[str] = []

        def label(document: str) -> set[str]:
            labelled_documents.append(document)
            return {subtopic for subtopic, judgment in JUDGED.get(document, {}).items() if judgment > 0}

        selected = select_documents(["adc", "bec"], TEXTS, label, {"1", "2"}, depth=1, batch=1)
        assert selected.documents == tuple(labelled_documents) == tuple("abdec")
        assert (selected.depth, selected.missed) == (3, frozenset())
        missed = select_documents(["adc", "bec"], TEXTS, label, {"1", "elsewhere"}, depth=1, batch=1)
        assert (missed.depth, missed.missed) == (20, frozenset({"elsewhere"}))

    def test_topics_are_selected_by_correlation_of_systems(self) -> None:
        novel = np.array([[1.0, 2, 3], [3, 2, 1], [1, 3, 2]])
        reference = np.array([[1.0, 2, 3], [2, 2, 3], [1, 2, 4]])
        selected = select_topics(["t1", "t2", "t3"], novel, reference, 2)
        assert selected.topics == ("t1", "t3")
        assert selected.taus == pytest.approx([1.0, 2 / 6**0.5])  # tau of (1, 2.5, 2.5)


class TestEdgeCases:
    """Edge cases of content measures."""

    NAMES = ("LMD", "soft_alpha_nDCG@20")

    @pytest.mark.parametrize("name", NAMES)
    def test_topic_without_relevant_documents_or_run_scores_0(self, name: str) -> None:
        judged = {"1": JUDGED, "2": {"a": {"1": 0, "2": -2}}, "3": JUDGED}
        run = {"2": ranked(*"ab"), "3": {}, "9": ranked("a")}
        [values] = scores_of(name, run, diverse(judged), document_texts=TEXTS).values()
        assert values == [0, 0, 0]

    @pytest.mark.parametrize("name", NAMES)
    def test_unjudged_document_is_scored_by_its_text(self, name: str) -> None:
        without = {document: labels for document, labels in JUDGED.items() if document != "b"}
        assert score_topic(name, "cb", without) > score_topic(name, "cd", without) > 0
        assert score_topic(name, "e") > score_topic(name, "x") == 0

    @pytest.mark.parametrize("name", NAMES)
    def test_negative_judgment_is_not_relevant(self, name: str) -> None:
        assert score_topic(name, "acd", JUDGED | {"e": {"1": -1, "9": -2}}) == score_topic(name, "acd")

    @pytest.mark.parametrize("name", NAMES)
    def test_subtopic_without_texts_is_ignored(self, name: str) -> None:
        document_texts = texts_of(WORDS | {"f": ""})
        assert score_topic(
            name, "ac", JUDGED | {"x": {"3": 1}, "f": {"4": 1}}, document_texts
        ) == score_topic(name, "ac")
        assert score_topic(name, "ac", {"x": {"3": 1}, "f": {"4": 1}}, document_texts) == 0

    def test_document_equal_to_the_subtopic_scores_1(self) -> None:
        assert score_topic("LMD(depth=1)", "c", {"c": {"1": 1}}) == 1.0
        assert score_topic("soft_alpha_nDCG", "c", {"c": {"1": 1}}) == 1.0

    def test_missing_ranks_lower_the_score(self) -> None:
        assert (
            score_topic("LMD(depth=2)", "ac")
            > score_topic("LMD(depth=3)", "ac")
            > score_topic("LMD", "ac")
            > 0
        )
        assert score_topic("LMD(depth=2)", "acd") == score_topic("LMD(depth=2)", "ac")
        assert score_topic("LMD(depth=3)", "acx") == score_topic("LMD(depth=3)", "ac")


class TestParameters:
    def test_kl_without_smoothing_is_rejected(self) -> None:
        with pytest.raises(MeasureError, match=r"^LMD\(divergence=kl\): divergence=kl needs smoothing"):
            check(QRELS, [parse("LMD(divergence=kl)")], texts=True)

    def test_kl_of_a_ranking_without_texts_is_0(self) -> None:
        assert score_topic("LMD(smoothing=0.2,divergence=kl)", "xy") == 0

    @pytest.mark.parametrize(
        "text", ["LMD(smoothing=1)", "LMD(divergence=l1)", "LMD(stop=-1)", "LMD(terms=0)", "LMD@20"]
    )
    def test_invalid_parameters_are_rejected(self, text: str) -> None:
        with pytest.raises(MeasureError):
            parse(text)

    @pytest.mark.parametrize("smoothing", [0, 0.3])
    def test_terms_above_the_vocabulary_size_keep_all_terms(self, smoothing: float) -> None:
        for k in (9, 10, 1000):
            text = f"LMD(terms={k},smoothing={smoothing})"
            assert score_topic(text, "ead") == pytest.approx(
                score_topic(f"LMD(smoothing={smoothing})", "ead"), abs=1e-12
            )

    @pytest.mark.parametrize("measure", ["LMD(terms={})", "soft_alpha_nDCG(terms={})"])
    @pytest.mark.parametrize("options", ["1", "1,smoothing=0.2", "2,smoothing=0.2,divergence=kl", "4"])
    def test_a_run_of_unknown_documents_scores_0(self, measure: str, options: str) -> None:
        assert score_topic(measure.format(options), "xyz") == 0

    def test_a_subtopic_without_kept_terms_has_closeness_0(self) -> None:
        """The only kept term is mac. Only subtopic 2 has it, so its document c is the best ranking."""
        assert salient_terms(1) == ["mac"]
        for measure in ("LMD(depth=1,terms=1)", "soft_alpha_nDCG(terms=1)"):
            assert [score_topic(measure, order) for order in ("c", "a", "d", "x")] == [1, 0, 0, 0]

    def test_stop_removes_the_most_frequent_terms(self) -> None:
        assert Counter(" ".join(WORDS.values()).split()).most_common(1) == [("apple", 4)]
        without = texts_of({d: text.replace("apple", "") for d, text in WORDS.items()})
        assert (
            score_topic("LMD(stop=1)", "ac")
            == score_topic("LMD", "ac", document_texts=without)
            != score_topic("LMD", "ac")
        )
        # computer and fruit occur twice each, so the alphabetical order decides which of them is removed.
        without = texts_of(
            {d: text.replace("apple", "").replace("computer", "") for d, text in WORDS.items()}
        )
        assert score_topic("soft_alpha_nDCG(stop=2)", "eb") == score_topic(
            "soft_alpha_nDCG", "eb", document_texts=without
        )
        assert score_topic("LMD(stop=100)", "ac") == 0

    def test_weights_parameter_can_weight_subtopics_by_their_documents(self) -> None:
        once = {"a": {"1": 1}, "c": {"2": 1}}
        assert score_topic("LMD(weights=documents)", "ac", once) == score_topic("LMD", "ac", once)
        disjoint = {"a": {"1": 1}, "b": {"1": 1}, "d": {"2": 1}}  # the subtopics have no common word
        by_size, equal = (
            [score_topic(f"LMD({weights}depth=1)", order, disjoint) for order in "ad"]
            for weights in ("weights=documents,", "")
        )
        assert by_size[0] > equal[0]
        assert by_size[1] < equal[1]

    def test_rel_is_the_lowest_relevant_judgment(self) -> None:
        judged = JUDGED | {"e": {"2": 2}}
        assert score_topic("LMD(rel=2)", "ea", judged) == score_topic("LMD", "ea", {"e": {"2": 2}})

    def test_measure_texts_are_canonical(self) -> None:
        assert str(parse("LMD(divergence=jsd,stop=50,depth=20,smoothing=0)")) == "LMD(stop=50)"
        assert str(parse("soft_alpha_nDCG(alpha=1/2)@20")) == "soft_alpha_nDCG@20"


class TestWithoutTexts:
    @pytest.mark.parametrize("name", ["LMD", "soft_alpha_nDCG@5"])
    def test_collection_without_texts_is_rejected_in_one_sentence(self, name: str) -> None:
        with pytest.raises(MeasureError) as refused:
            check(QRELS, [parse(name)])
        assert str(refused.value) == (
            f"{name}: it needs the texts of the documents, and this collection has none; "
            "add them to the collection file, as in texts: docs.jsonl.gz"
        )

    def test_collection_without_subtopics_is_rejected(self) -> None:
        with pytest.raises(MeasureError, match="LMD: it needs judgments by subtopic"):
            check(qrels_of({"1": {"a": 1}}), [parse("LMD")], texts=True)

    def test_content_measure_without_a_texts_file_is_rejected(self) -> None:
        text = "aspects: {rel: {labels: [0, 1]}}\nqrels: [{file: q, layout: subtopics}]\nmeasures: [LMD]\n"
        files = {"q": b"1 x a 1\n", "docs": b'{"id": "a", "text": "b"}\n'}
        with pytest.raises(Refused) as refused:
            parse_collection(text, files)
        [error] = refused.value.findings.errors
        assert "LMD: it needs the texts of the documents" in error.message
        assert parse_collection(text + "texts: docs\n", files).measures == ("LMD",)

    def test_content_with_a_different_number_of_rows_is_rejected(self) -> None:
        with pytest.raises(ValueError, match="content has 2 rows, joined has 1"):
            evaluate(QRELS, joined_of({}, QRELS), [parse("LMD")], content=Content.empty(2))

    def test_stacking_content_with_different_texts_is_rejected(self) -> None:
        with pytest.raises(ValueError, match="same texts"):
            Content.stack([Content.empty(1), Content.empty(1)])


words = st.dictionaries(
    st.sampled_from([f"d{i}" for i in range(8)]),
    st.lists(st.sampled_from("uvwxyz"), max_size=6).map(" ".join),
    min_size=1,
)
judgments = st.dictionaries(
    st.sampled_from([f"d{i}" for i in range(10)]),
    st.dictionaries(st.sampled_from("123"), st.integers(0, 1), min_size=1),
    min_size=1,
)
orders = st.lists(st.sampled_from([f"d{i}" for i in range(10)]), unique=True, min_size=1)
MEASURES = (
    "LMD(depth=4)",
    "LMD(depth=4,smoothing=0.2)",
    "LMD(depth=4,smoothing=0.2,divergence=kl)",
    "LMD(depth=4,terms=2)",
    "LMD(depth=4,smoothing=0.2,terms=3)",
    "LMD(depth=4,smoothing=0.2,divergence=kl,terms=3)",
)


class TestContentLaws:
    @given(words, judgments, orders, st.randoms(use_true_random=False))
    @settings(max_examples=100, deadline=None)
    def test_judgments_change_only_the_models_of_subtopics(
        self, words: dict[str, str], judged: dict[str, dict[str, int]], order: list[str], draw: random.Random
    ) -> None:
        """Move judgments of ranked documents to copies of these documents that the run does not contain."""
        copies = {f"x{document}": text for document, text in words.items()}
        texts = texts_of(words | copies)
        moved = {
            (f"x{document}" if document in order and draw.random() < 0.7 else document): labels
            for document, labels in judged.items()
        }
        for text in MEASURES:
            before, after = (
                score_of(text, {"1": ranked(*order)}, diverse({"1": labels}), document_texts=texts)
                for labels in (judged, moved)
            )
            assert after == pytest.approx(before, abs=1e-12)

    @given(words, judgments, orders)
    @settings(max_examples=100, deadline=None)
    def test_scores_equal_the_definition(
        self, words: dict[str, str], judged: dict[str, dict[str, int]], order: list[str]
    ) -> None:
        for text in MEASURES:
            score = score_of(
                text, {"1": ranked(*order)}, diverse({"1": judged}), document_texts=texts_of(words)
            )
            assert score == pytest.approx(_lmd(text, order, judged, words), abs=1e-9)

    @given(words, judgments, orders)
    @settings(max_examples=60, deadline=None)
    def test_scores_do_not_depend_on_the_order_of_texts(
        self, words: dict[str, str], judged: dict[str, dict[str, int]], order: list[str]
    ) -> None:
        run, qrels = {"1": ranked(*order)}, diverse({"1": judged})
        texts = [*MEASURES, "soft_alpha_nDCG"]
        reversed_texts = texts_of(dict(reversed(words.items())))
        assert scores_of(texts, run, qrels, document_texts=texts_of(words)) == scores_of(
            texts, run, qrels, document_texts=reversed_texts
        )

    @given(judgments, orders)
    @settings(max_examples=60, deadline=None)
    def test_soft_labels_of_disjoint_texts_equal_judgments(
        self, judged: dict[str, dict[str, int]], order: list[str]
    ) -> None:
        """If each document has its own subtopic and words, soft_alpha_nDCG equals alpha_nDCG."""
        by_document = {document: {document: max(labels.values())} for document, labels in judged.items()}
        texts = texts_of({f"d{i}": f"w{i} v{i}" for i in range(10)})
        assume(any(label for labels in by_document.values() for label in labels.values()))
        run, qrels = {"1": ranked(*order)}, diverse({"1": by_document})
        scores = scores_of(["soft_alpha_nDCG@3", "alpha_nDCG@3"], run, qrels, document_texts=texts).values()
        [[soft], [hard]] = scores
        assert soft == pytest.approx(hard, abs=1e-12)

    @given(st.lists(words, min_size=1, max_size=3), judgments, st.lists(orders, min_size=1, max_size=3))
    @settings(max_examples=40, deadline=None)
    def test_selection_covers_all_subtopics_or_the_pool(
        self, words: list[dict[str, str]], judged: dict[str, dict[str, int]], several: list[list[str]]
    ) -> None:
        relevant = {d: {s for s, label in labels.items() if label} for d, labels in judged.items()}
        known = set().union(*relevant.values())
        selected = select_documents(several, texts_of(words[0]), lambda d: relevant.get(d, set()), known)
        assert len(set(selected.documents)) == len(selected.documents) <= selected.pool
        covered = set().union(*(relevant.get(document, set()) for document in selected.documents))
        assert selected.missed == known - covered
        assert not selected.missed or set(selected.documents) == {d for ranking in several for d in ranking}


def _lmd(text: str, order: list[str], judged: dict[str, dict[str, int]], words: dict[str, str]) -> float:
    """Return LMD computed from its definition, with dictionaries."""
    depth, smoothing, divergence, terms = itemgetter("depth", "smoothing", "divergence", "terms")(
        parse(text).arguments
    )
    all_counts = Counter(word for text in words.values() for word in text.split())
    background = {word: count / all_counts.total() for word, count in all_counts.items()}

    def model(document: str | None) -> dict[str, float]:
        counts = Counter(words.get(document or "", "").split())
        if not counts:
            return {"NULL": 1.0}
        return {
            word: (1 - smoothing) * counts[word] / counts.total() + smoothing * background[word]
            for word in all_counts
        }

    groups: dict[str, list[str]] = {}
    for document, labels in sorted(judged.items()):
        for subtopic, label in labels.items():
            if label and words.get(document, "").split():
                groups.setdefault(subtopic, []).append(document)
    if not groups:
        return 0.0
    thetas = [_mixture([(1 / len(ds), model(d)) for d in ds]) for _, ds in sorted(groups.items())]
    weights = [1 / np.log2(1 + rank) for rank in range(1, depth + 1)]
    seen = [*order[:depth], *[None] * (depth - len(order))]
    run = _mixture([(w / sum(weights), model(d)) for w, d in zip(weights, seen, strict=True)])
    mean = _mixture([(1 / len(thetas), theta) for theta in thetas])
    if terms is not None:
        value = {w: sum(t[w] * np.log2(t[w] / p) for t in thetas if t[w]) for w, p in background.items()}
        kept = sorted(value, key=lambda w: (-round(value[w] / len(thetas), 12), w))[:terms]
        run, mean, *thetas = (_restricted_model(reduced, {*kept, "NULL"}) for reduced in (run, mean, *thetas))
    kept_thetas = [theta for theta in thetas if set(theta) != {"NULL"}]  # the closeness to the others is 0
    raw, best = (
        sum(_closeness(mixture, theta, divergence) for theta in kept_thetas) for mixture in (run, mean)
    )
    return min(1.0, raw / best) if best else 0.0


def _mixture(parts: list[tuple[float, dict[str, float]]]) -> dict[str, float]:
    words = {word for _, model in parts for word in model}
    return {word: sum(weight * model.get(word, 0.0) for weight, model in parts) for word in words}


def _restricted_model(model: dict[str, float], kept: set[str]) -> dict[str, float]:
    left = {word: p for word, p in model.items() if word in kept}
    total = sum(left.values())
    return {word: p / total for word, p in left.items()} if total else {"NULL": 1.0}


def _closeness(p: dict[str, float], q: dict[str, float], divergence: str) -> float:
    if divergence == "kl":
        if any(b and not p.get(word) for word, b in q.items()):
            return 0.0
        return float(np.exp(-sum(b * np.log(b / p[word]) for word, b in q.items() if b)))
    middle = {word: (p.get(word, 0.0) + q.get(word, 0.0)) / 2 for word in p.keys() | q.keys()}
    halves = [sum(a * np.log2(a / middle[word]) for word, a in model.items() if a) for model in (p, q)]
    return 1.0 - sum(halves) / 2
