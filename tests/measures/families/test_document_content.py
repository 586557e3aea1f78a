"""Tests of LMD and soft_alpha_nDCG, and of the selection of documents, terms and topics with them."""

import random
from collections import Counter
from operator import itemgetter
from statistics import fmean

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cupel_audits.analysis.lmd_selection import centrality, select_documents, select_terms, select_topics
from cupel_measures.catalogue.parser import parse
from cupel_measures.findings import Refused
from cupel_measures.grammar.syntax import MeasureError
from cupel_measures.model import Content, Texts
from cupel_measures.reading.collection_files import parse_collection
from cupel_measures.scoring.evaluator import check, evaluate
from cupel_measures.scoring.language_models import Corpus, Targets
from support.data.small_collections import diverse, joined_of, qrels_of, ranked, score_of, scores_of, texts_of

CLOSE = 6e-7  # values are printed to 6 decimals
SAID = {
    "a": "apple fruit tree apple",
    "b": "apple pie fruit",
    "c": "mac computer apple",
    "d": "rain weather",
    "e": "computer keyboard",
}
TEXTS = texts_of(SAID)
JUDGED = {"a": {"1": 1}, "b": {"1": 1}, "c": {"2": 1}, "d": {"1": 0}}
QRELS = diverse({"1": JUDGED})


def of(text: str, order: str, judged: dict[str, dict[str, int]] = JUDGED, said: Texts = TEXTS) -> float:
    """A measure of one topic, with one document a letter."""
    return score_of(text, {"1": ranked(*order)}, diverse({"1": judged}), said=said)


def model_of(*documents: str) -> dict[str, float]:
    """The mean of the models of some documents."""
    places = np.array([list(SAID).index(document) for document in documents])
    model = Corpus.of(TEXTS).mean(places)
    return {TEXTS.vocabulary[int(t)]: p for t, p in zip(model.terms, model.p.tolist(), strict=True)}


class TestContentExample:
    """The worked example of LMD: values from an independent implementation."""

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
    def test_scores_are_as_printed(self, order: str, expected: tuple[float, ...]) -> None:
        parameters = ("", ",smoothing=0.2", ",smoothing=0.2,divergence=kl")
        texts = [*(f"LMD(depth=3{one})" for one in parameters), "soft_alpha_nDCG"]
        found = scores_of(texts, {"1": ranked(*order)}, QRELS, said=TEXTS)
        assert [value for [value] in found.values()] == pytest.approx(expected, abs=CLOSE)

    def test_subtopics_and_the_ranking_are_mixtures_of_documents(self) -> None:
        assert model_of("a", "b") == pytest.approx(
            {"apple": 0.416667, "fruit": 0.291667, "pie": 0.166667, "tree": 0.125}, abs=CLOSE
        )
        assert model_of("c") == dict.fromkeys(("apple", "computer", "mac"), 1 / 3)
        discounts = [1.0, 0.630930, 0.5]  # 1 / log2(1 + rank)
        weights = np.array(discounts) / sum(discounts)
        model = Corpus.of(TEXTS).mixture(np.array([0, 2, -1]), weights)
        assert model.null == pytest.approx(0.234639, abs=CLOSE)
        found = {TEXTS.vocabulary[int(t)]: p for t, p in zip(model.terms, model.p.tolist(), strict=True)}
        computer = {"computer": 0.098694, "mac": 0.098694}
        assert found == pytest.approx(
            {"apple": 0.333333, "fruit": 0.117320, "tree": 0.117320, **computer}, abs=CLOSE
        )

    def test_divergences_are_as_printed(self) -> None:
        corpus = Corpus.of(TEXTS)
        a, c, every = (corpus.mean(np.array(one)) for one in ([0], [2], [0]))
        assert 1 - Targets(corpus=corpus, models=[c]).closeness(a)[0] == pytest.approx(0.595437, abs=CLOSE)
        # KL(a || collection): the collection is what a document becomes as smoothing goes to 1
        nearly = Targets(corpus=corpus, models=[every], divergence="kl")
        background = corpus.background
        lengths = np.array([4, 3, 3, 2, 2]) / 14
        whole = corpus.mixture(np.arange(5), lengths)
        assert whole.p == pytest.approx(background[whole.terms])
        assert -np.log(nearly.closeness(whole)[0]) == pytest.approx(0.732903, abs=CLOSE)

    def test_soft_labels_are_closeness_to_subtopics(self) -> None:
        corpus = Corpus.of(TEXTS)
        models = [corpus.mean(np.array([0, 1])), corpus.mean(np.array([2]))]
        targets = Targets(corpus=corpus, models=models)
        assert targets.closeness(corpus.mean(np.array([0]))) == pytest.approx([0.897454, 0.404563], abs=CLOSE)
        assert targets.closeness(corpus.mean(np.array([4]))) == pytest.approx([0, 0.404563], abs=CLOSE)

    def test_the_best_terms_tell_subtopics_from_the_collection(self) -> None:
        assert select_terms(["ab", "c"], TEXTS, 4) == ("mac", "computer", "apple", "fruit")
        assert of("LMD(depth=3,terms=4)", "ac") == pytest.approx(0.852733, abs=CLOSE)

    def test_documents_are_selected_by_centrality(self) -> None:
        found = centrality(["a", "b", "c"], TEXTS)
        assert found == pytest.approx([0.548242, 0.512627, 0.368948], abs=CLOSE)
        asked: list[str] = []

        def label(document: str) -> set[str]:
            asked.append(document)
            return {subtopic for subtopic, judgment in JUDGED.get(document, {}).items() if judgment > 0}

        selected = select_documents(["adc", "bec"], TEXTS, label, {"1", "2"}, depth=1, batch=1)
        assert selected.documents == tuple(asked) == tuple("abdec")
        assert (selected.depth, selected.missed, selected.share) == (3, frozenset(), 1.0)

    def test_topics_are_selected_by_the_order_of_systems(self) -> None:
        novel = np.array([[1.0, 2, 3], [3, 2, 1], [1, 3, 2]])
        reference = np.array([[1.0, 2, 3], [2, 2, 3], [1, 2, 4]])
        selected = select_topics(["t1", "t2", "t3"], novel, reference, 2)
        assert selected.topics == ("t1", "t3")
        assert selected.taus == pytest.approx([1.0, 2 / 6**0.5])  # (1, 2, 3) and (1, 2.5, 2.5) in that order


class TestEdgeCases:
    """Edge cases of content measures."""

    NAMES = ("LMD", "soft_alpha_nDCG@20")

    @pytest.mark.parametrize("name", NAMES)
    def test_nothing_relevant_an_empty_run_and_a_missing_topic_score_0(self, name: str) -> None:
        judged = {"1": JUDGED, "2": {"a": {"1": 0, "2": -2}}, "3": JUDGED}
        run = {"2": ranked(*"ab"), "3": {}, "9": ranked("a")}
        [values] = scores_of(name, run, diverse(judged), said=TEXTS).values()
        assert values == [0, 0, 0]

    @pytest.mark.parametrize("name", NAMES)
    def test_an_unjudged_document_counts_by_its_text(self, name: str) -> None:
        without = {document: labels for document, labels in JUDGED.items() if document != "b"}
        assert of(name, "cb", without) > of(name, "cd", without) > 0
        assert of(name, "e") > of(name, "x") == 0

    @pytest.mark.parametrize("name", NAMES)
    def test_a_negative_judgment_is_not_relevant(self, name: str) -> None:
        assert of(name, "acd", JUDGED | {"e": {"1": -1, "9": -2}}) == of(name, "acd")

    @pytest.mark.parametrize("name", NAMES)
    def test_a_subtopic_whose_documents_have_no_text_is_left_out(self, name: str) -> None:
        said = texts_of(SAID | {"f": ""})
        assert of(name, "ac", JUDGED | {"x": {"3": 1}, "f": {"4": 1}}, said) == of(name, "ac")
        assert of(name, "ac", {"x": {"3": 1}, "f": {"4": 1}}, said) == 0

    def test_document_equal_to_the_subtopic_scores_1(self) -> None:
        assert of("LMD(depth=1)", "c", {"c": {"1": 1}}) == 1.0
        assert of("soft_alpha_nDCG", "c", {"c": {"1": 1}}) == 1.0

    def test_missing_ranks_keep_their_weight(self) -> None:
        assert of("LMD(depth=2)", "ac") > of("LMD(depth=3)", "ac") > of("LMD", "ac") > 0
        assert of("LMD(depth=2)", "acd") == of("LMD(depth=2)", "ac")
        assert of("LMD(depth=3)", "acx") == of("LMD(depth=3)", "ac")


class TestParameters:
    def test_kl_without_smoothing_is_rejected(self) -> None:
        with pytest.raises(MeasureError, match=r"^LMD\(divergence=kl\): divergence=kl needs smoothing"):
            check(QRELS, [parse("LMD(divergence=kl)")], texts=True)

    def test_kl_is_0_where_the_ranking_has_no_text_at_all(self) -> None:
        assert of("LMD(smoothing=0.2,divergence=kl)", "xy") == 0

    @pytest.mark.parametrize(
        "text", ["LMD(smoothing=1)", "LMD(divergence=l1)", "LMD(stop=-1)", "LMD(terms=0)", "LMD@20"]
    )
    def test_invalid_parameters_are_rejected(self, text: str) -> None:
        with pytest.raises(MeasureError):
            parse(text)

    @pytest.mark.parametrize("smoothing", [0, 0.3])
    def test_keeping_more_terms_than_there_are_keeps_all(self, smoothing: float) -> None:
        for k in (9, 10, 1000):
            text = f"LMD(terms={k},smoothing={smoothing})"
            assert of(text, "ead") == pytest.approx(of(f"LMD(smoothing={smoothing})", "ead"), abs=1e-12)

    def test_stop_leaves_the_most_frequent_terms_out(self) -> None:
        assert Counter(" ".join(SAID.values()).split()).most_common(1) == [("apple", 4)]
        without = texts_of({d: text.replace("apple", "") for d, text in SAID.items()})
        assert of("LMD(stop=1)", "ac") == of("LMD", "ac", said=without) != of("LMD", "ac")
        # computer and fruit stand twice each: ties are alphabetical
        without = texts_of({d: text.replace("apple", "").replace("computer", "") for d, text in SAID.items()})
        assert of("soft_alpha_nDCG(stop=2)", "eb") == of("soft_alpha_nDCG", "eb", said=without)
        assert of("LMD(stop=100)", "ac") == 0

    def test_weights_are_the_documents_that_made_a_model(self) -> None:
        once = {"a": {"1": 1}, "c": {"2": 1}}
        assert of("LMD(weights=documents)", "ac", once) == of("LMD", "ac", once)
        apart = {"a": {"1": 1}, "b": {"1": 1}, "d": {"2": 1}}  # subtopic 2 shares no word with subtopic 1
        by_size, equal = (
            [of(f"LMD({weights}depth=1)", order, apart) for order in "ad"]
            for weights in ("weights=documents,", "")
        )
        assert by_size[0] > equal[0]
        assert by_size[1] < equal[1]

    def test_rel_is_the_least_judgment_that_counts(self) -> None:
        judged = JUDGED | {"e": {"2": 2}}
        assert of("LMD(rel=2)", "ea", judged) == of("LMD", "ea", {"e": {"2": 2}})

    def test_texts_are_canonical(self) -> None:
        assert str(parse("LMD(divergence=jsd,stop=50,depth=20,smoothing=0)")) == "LMD(stop=50)"
        assert str(parse("soft_alpha_nDCG(alpha=1/2)@20")) == "soft_alpha_nDCG@20"


class TestWithoutTexts:
    @pytest.mark.parametrize("name", ["LMD", "soft_alpha_nDCG@5"])
    def test_a_collection_is_refused_in_one_sentence(self, name: str) -> None:
        with pytest.raises(MeasureError) as refused:
            check(QRELS, [parse(name)])
        assert str(refused.value) == (
            f"{name}: it needs the texts of the documents, and this collection has none; "
            "add them to the collection file, as in texts: docs.jsonl.gz"
        )

    def test_judgments_by_subtopic_are_needed_too(self) -> None:
        with pytest.raises(MeasureError, match="LMD: it needs judgments by subtopic"):
            check(qrels_of({"1": {"a": 1}}), [parse("LMD")], texts=True)

    def test_a_plan_is_refused_where_no_texts_are_named(self) -> None:
        text = "aspects: {rel: {labels: [0, 1]}}\nqrels: [{file: q, layout: subtopics}]\nmeasures: [LMD]\n"
        files = {"q": b"1 x a 1\n", "docs": b'{"id": "a", "text": "b"}\n'}
        with pytest.raises(Refused) as refused:
            parse_collection(text, files)
        [error] = refused.value.findings.errors
        assert "LMD: it needs the texts of the documents" in error.message
        assert parse_collection(text + "texts: docs\n", files).measures == ("LMD",)

    def test_texts_with_other_rows_are_rejected(self) -> None:
        with pytest.raises(ValueError, match="content has 2 rows, joined has 1"):
            evaluate(QRELS, joined_of({}, QRELS), [parse("LMD")], content=Content.empty(2))

    def test_runs_over_different_texts_are_not_stacked(self) -> None:
        with pytest.raises(ValueError, match="same texts"):
            Content.stack([Content.empty(1), Content.empty(1)])


said = st.dictionaries(
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


class TestLaws:
    @given(said, judgments, orders, st.randoms(use_true_random=False))
    @settings(max_examples=100, deadline=None)
    def test_judgments_of_ranked_documents_matter_by_the_models_of_subtopics_alone(
        self, said: dict[str, str], judged: dict[str, dict[str, int]], order: list[str], draw: random.Random
    ) -> None:
        """Each relevant document in the run gives its judgments to a twin outside of it."""
        twins = {f"x{document}": text for document, text in said.items()}
        texts = texts_of(said | twins)
        moved = {
            (f"x{document}" if document in order and draw.random() < 0.7 else document): labels
            for document, labels in judged.items()
        }
        for text in MEASURES:
            before, after = (
                score_of(text, {"1": ranked(*order)}, diverse({"1": one}), said=texts)
                for one in (judged, moved)
            )
            assert after == pytest.approx(before, abs=1e-12)

    @given(said, judgments, orders)
    @settings(max_examples=100, deadline=None)
    def test_scores_are_those_of_the_definition(
        self, said: dict[str, str], judged: dict[str, dict[str, int]], order: list[str]
    ) -> None:
        for text in MEASURES:
            found = score_of(text, {"1": ranked(*order)}, diverse({"1": judged}), said=texts_of(said))
            assert found == pytest.approx(_lmd(text, order, judged, said), abs=1e-9)

    @given(said, judgments, orders)
    @settings(max_examples=60, deadline=None)
    def test_the_order_of_the_texts_in_their_file_changes_no_bit(
        self, said: dict[str, str], judged: dict[str, dict[str, int]], order: list[str]
    ) -> None:
        run, qrels = {"1": ranked(*order)}, diverse({"1": judged})
        texts = [*MEASURES, "soft_alpha_nDCG"]
        back = texts_of(dict(reversed(said.items())))
        assert scores_of(texts, run, qrels, said=texts_of(said)) == scores_of(texts, run, qrels, said=back)

    @given(judgments, orders)
    @settings(max_examples=60, deadline=None)
    def test_soft_labels_of_documents_without_a_common_word_are_the_judgments(
        self, judged: dict[str, dict[str, int]], order: list[str]
    ) -> None:
        """With a subtopic to each document and words of its own, soft_alpha_nDCG is alpha_nDCG."""
        own = {document: {document: max(labels.values())} for document, labels in judged.items()}
        texts = texts_of({f"d{i}": f"w{i} v{i}" for i in range(10)})
        assume(any(label for of in own.values() for label in of.values()))
        run, qrels = {"1": ranked(*order)}, diverse({"1": own})
        found = scores_of(["soft_alpha_nDCG@3", "alpha_nDCG@3"], run, qrels, said=texts).values()
        [[soft], [hard]] = found
        assert soft == pytest.approx(hard, abs=1e-12)

    @given(st.lists(said, min_size=1, max_size=3), judgments, st.lists(orders, min_size=1, max_size=3))
    @settings(max_examples=40, deadline=None)
    def test_selection_ends_when_all_subtopics_are_covered_or_the_pool_is_exhausted(
        self, said: list[dict[str, str]], judged: dict[str, dict[str, int]], several: list[list[str]]
    ) -> None:
        relevant = {d: {s for s, label in of.items() if label} for d, of in judged.items()}
        known = set().union(*relevant.values())
        selected = select_documents(several, texts_of(said[0]), lambda d: relevant.get(d, set()), known)
        assert len(set(selected.documents)) == len(selected.documents) <= selected.pool
        found = set().union(*(relevant.get(document, set()) for document in selected.documents))
        assert selected.missed == known - found
        assert not selected.missed or set(selected.documents) == {d for one in several for d in one}


def _lmd(text: str, order: list[str], judged: dict[str, dict[str, int]], said: dict[str, str]) -> float:
    """Compute LMD straight from its definition, with dictionaries."""
    depth, smoothing, divergence, terms = itemgetter("depth", "smoothing", "divergence", "terms")(
        parse(text).arguments
    )
    every = Counter(word for one in said.values() for word in one.split())
    background = {word: count / every.total() for word, count in every.items()}

    def model(document: str | None) -> dict[str, float]:
        counts = Counter(said.get(document or "", "").split())
        if not counts:
            return {"NULL": 1.0}
        return {
            word: (1 - smoothing) * counts[word] / counts.total() + smoothing * background[word]
            for word in every
        }

    groups: dict[str, list[str]] = {}
    for document, labels in sorted(judged.items()):
        for subtopic, label in labels.items():
            if label and said.get(document, "").split():
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
        run, mean, *thetas = (_cut_down(one, {*kept, "NULL"}) for one in (run, mean, *thetas))
    found, best = (fmean(_closeness(one, theta, divergence) for theta in thetas) for one in (run, mean))
    return min(1.0, found / best)


def _mixture(parts: list[tuple[float, dict[str, float]]]) -> dict[str, float]:
    words = {word for _, one in parts for word in one}
    return {word: sum(weight * one.get(word, 0.0) for weight, one in parts) for word in words}


def _cut_down(model: dict[str, float], kept: set[str]) -> dict[str, float]:
    left = {word: p for word, p in model.items() if word in kept}
    total = sum(left.values())
    return {word: p / total for word, p in left.items()} if total else {"NULL": 1.0}


def _closeness(p: dict[str, float], q: dict[str, float], divergence: str) -> float:
    if divergence == "kl":
        if any(b and not p.get(word) for word, b in q.items()):
            return 0.0
        return float(np.exp(-sum(b * np.log(b / p[word]) for word, b in q.items() if b)))
    middle = {word: (p.get(word, 0.0) + q.get(word, 0.0)) / 2 for word in p.keys() | q.keys()}
    halves = [sum(a * np.log2(a / middle[word]) for word, a in one.items() if a) for one in (p, q)]
    return 1.0 - sum(halves) / 2
