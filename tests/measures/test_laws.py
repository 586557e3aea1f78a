"""Laws that hold for every declared measure: a new measure is covered by being declared (spec 11)."""

import pickle
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import chain, groupby, permutations, product
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cupel_measures import evaluating
from cupel_measures import parameters as kinds
from cupel_measures.evaluating import evaluate
from cupel_measures.explaining import explain, orders
from cupel_measures.grammar import Measure, all_declarations, parse
from cupel_measures.model import Aspect, Content, Joined, Qrels, Texts
from cupel_measures.profiles import PROFILES
from cupel_measures.registry import EMPTY, LAWS, NOTHING_RELEVANT, REQUIRED, SWAP, Declaration, Parameter
from making import Scored, content_of, joined_of, qrels_of, ranked, ranking_of, scores_of, texts_of

ASPECTS = (Aspect("relevance", range(4)), Aspect("credibility", ("nc", "pc", "c")))
TOPICS = ("1", "2", "3")


def example(parameter: Parameter) -> Any:
    """A value other than the default."""
    match parameter.kind:
        case kinds.Whole():
            return 2
        case kinds.Number(low=low, high=high):
            return (0.25 if parameter.default == 0.5 else 0.5) if (low, high) == (0, 1) else 2.5
        case kinds.Flag():
            return not parameter.default
        case kinds.Either(kinds=(_, last)):
            return example(Parameter(parameter.name, last, None))
        case kinds.Weighting():
            return {"relevance": 0.7, "credibility": 0.3}
        case kinds.Balance():
            return {"relevance": 2, "credibility": 0.1}
        case kinds.Table(value=kinds.Table()):
            return {"credibility": {1: 0.3}}
        case kinds.Table() if parameter.name == "thresholds":
            return {"credibility": 2}
        case kinds.Table() if parameter.name == "embedding":
            return {"credibility": [0, 0, 2]}
        case kinds.Table():
            return {1: 1, 2: 5, 3: 5}
        case kinds.Numbers(rising=True):
            return [0.25, 0.5, 0.75]
        case kinds.Numbers():
            return [4, 3, 2, 1, 1, 1, 0, 0, 0, 0][:10]
        case kinds.NameOrNames():
            return "credibility"
        case kinds.Words():
            return ["relevance", "credibility"]
        case kinds.Inner(by_aspect=True) if parameter.default is not REQUIRED:
            return {"relevance": "RBP@3", "credibility": "RR"}
        case kinds.Inner():
            return parse("nDCG@3")
        case kinds.Word(choices=choices) if choices:
            return choices[-1]
        case _:
            return {"aspect": "credibility", "label_set": "observed"}[parameter.name]


GOES_WITH = {
    ("RBP_u", "gains"): {"graded": True},
    ("Utility", "d"): {"documents": 50},
    ("LMD", "divergence"): {"smoothing": 0.2},
    ("soft_alpha_nDCG", "divergence"): {"smoothing": 0.2},
}
"""What a parameter of a measure needs beside itself."""


def instances(declaration: Declaration) -> list[Measure]:
    """The measure with its defaults, and once with each other parameter given."""
    normalised = "normalise" in declaration.parameters  # which needs a cutoff
    needed = {
        p.name: example(p)
        for p in declaration.parameters.values()
        if p.default is REQUIRED or (normalised and p.name == "cutoff")
    }
    base = Measure(declaration, ()).having(**needed)
    if declaration.name == "TOMA":
        inners = [
            parse(text) for text in ("AP", "Bpref", "RR", "P@2", "ERR(max_gain=scale)", "RBP(rel=3)", "DCG@2")
        ]
    else:
        inners = (
            [parse(text) for text in ("AP", "RBP@3", "DCG", "Utility")]
            if "of" in declaration.parameters
            else []
        )
    varied = [base.having(of=inner) for inner in inners]
    if declaration.name == "CAM":
        varied.append(base.having(of={"relevance": "nDCG@3", "credibility": "SetF"}))
    varied += [
        base.having(**{p.name: example(p)}, **GOES_WITH.get((declaration.name, p.name), {}))
        for p in declaration.parameters.values()
        if p.name != "weighting" and p.default is not REQUIRED
    ]
    return [base, *varied]


ALL = [one for declaration in all_declarations() for one in instances(declaration)]

documents = st.sampled_from([f"d{i}" for i in range(9)])
grades = st.dictionaries(documents, st.integers(-2, 3), max_size=8)
labels = st.dictionaries(documents, st.integers(0, 2), max_size=8)
by_subtopic = st.dictionaries(
    documents,
    st.dictionaries(st.sampled_from("abcd"), st.integers(-2, 2), min_size=1, max_size=3),
    max_size=8,
)
rankings = st.lists(documents, unique=True, max_size=9)
SAID = {
    "d0": "red cabbage and apple",
    "d1": "red cabbage red wine",
    "d2": "wine of the house",
    "d3": "",
    "d4": "apple",
    "d5": "red cabbage and apple",
    "d6": "the the the house",
    "d7": "rain",
}
"""The texts of all documents but d8."""
TEXTS = texts_of(SAID)


@st.composite
def collections(draw: st.DrawFn) -> Qrels:
    judged = {
        ASPECTS[0]: {topic: draw(grades) for topic in TOPICS},
        ASPECTS[1]: {topic: draw(labels) for topic in TOPICS},
    }
    qrels = qrels_of(judged, subtopics={topic: draw(by_subtopic) for topic in TOPICS})
    assume(not qrels.only_by_subtopic)  # which measures of an aspect are refused for
    return qrels


@st.composite
def runs(draw: st.DrawFn) -> Scored:
    return {
        topic: {d: float(draw(st.integers(0, 5))) for d in draw(rankings)}
        for topic in draw(st.sets(st.sampled_from(TOPICS)))
    }


def exempt(measure: Measure, law: str) -> bool:
    """Whether its declaration, or that of a measure that it combines, says so."""
    return law in measure.declaration.exempt or any(exempt(one, law) for one in measure.within)


def values(
    qrels: Qrels, run: Scored, *, profile: str = "cupel", texts: Texts = TEXTS
) -> dict[Measure, list[float]]:
    chosen = PROFILES[profile]
    content = content_of(run, qrels, texts, profile=chosen)
    found = evaluate(qrels, joined_of(run, qrels, profile=chosen), _possible(qrels), content=content)
    return {measure: of.tolist() for measure, of in found.values.items()}


def _possible(qrels: Qrels) -> list[Measure]:
    """All but those that these judgments can't have: one class only among observed labels."""
    seen = {tuple(column) for column in np.maximum(qrels.labels, 0).T.tolist()}
    return [m for m in ALL if m.arguments.get("label_set") != "observed" or len(seen) > 9]


@given(collections(), runs(), st.sampled_from(sorted(PROFILES)))
@settings(max_examples=60, deadline=None)
def test_every_score_is_a_number_within_the_declared_bounds(qrels: Qrels, run: Scored, profile: str) -> None:
    for measure, of in values(qrels, run, profile=profile).items():
        low, high = measure.bounds
        assert all(low <= value <= high for value in of), (measure, of)


@given(runs())
@settings(max_examples=30, deadline=None)
def test_a_topic_without_relevant_documents_scores_0(run: Scored) -> None:
    judged = {a: {t: {"d1": 0, "d2": 0} for t in TOPICS} for a in ASPECTS}
    qrels = qrels_of(judged, subtopics={t: {"d1": {"a": 0, "b": -1}, "d2": {"a": 0}} for t in TOPICS})
    for measure, of in values(qrels, run).items():
        if not exempt(measure, NOTHING_RELEVANT):
            assert of == [0, 0, 0], measure


@given(collections())
@settings(max_examples=30, deadline=None)
def test_an_empty_run_scores_0(qrels: Qrels) -> None:
    for measure, of in values(qrels, {}).items():
        if not exempt(measure, EMPTY):
            assert of == [0, 0, 0], measure


@given(collections(), st.lists(documents, unique=True, min_size=2, max_size=9), st.data())
@settings(max_examples=80, deadline=None)
def test_a_better_swap_never_lowers_the_score(qrels: Qrels, order: list[str], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(order) - 2))
    pair = order[place : place + 2]
    better = {
        seen: _better(*(of(qrels, d) for d in pair))
        for seen, of in {False: _labels, True: _subtopics}.items()
    }
    assume(any(better.values()))
    swapped = [*order[:place], order[place + 1], order[place], *order[place + 2 :]]
    before, after = (values(qrels, {"1": ranked(*one)}) for one in (order, swapped))
    for measure in before:
        if better[measure.declaration.subtopics] and not exempt(measure, SWAP):
            assert after[measure][0] >= before[measure][0] - 1e-12, measure


def _better(above: list[int], below: list[int]) -> bool:
    """Whether the document below is at least as good in everything."""
    return all(a <= b for a, b in zip(above, below, strict=True))


def _labels(qrels: Qrels, document: str) -> list[int]:
    places = _places(qrels, document)
    return qrels.labels[:, places[0]].tolist() if places else [-3, -3]


def _subtopics(qrels: Qrels, document: str) -> list[int]:
    """The judgment of a document of the first topic for each subtopic, -3 where it has none."""
    assert qrels.subtopics is not None
    places, found = _places(qrels, document), dict.fromkeys(qrels.subtopics.names, -3)
    columns = (qrels.subtopics.document, qrels.subtopics.subtopic, qrels.subtopics.judgment)
    for at, subtopic, judgment in zip(*(column.tolist() for column in columns), strict=True):
        if at in places:
            found[qrels.subtopics.names[subtopic]] = judgment
    return list(found.values())


def _places(qrels: Qrels, document: str) -> list[int]:
    return [i for i in range(qrels.offsets[0], qrels.offsets[1]) if qrels.documents[i] == document]


@given(collections(), st.lists(runs(), min_size=2, max_size=4), st.sampled_from([1, 7, evaluating.PART]))
@settings(max_examples=40, deadline=None)
def test_scores_are_the_same_bits_alone_and_in_any_batch(
    qrels: Qrels, several: list[Scored], part: int
) -> None:
    measures = _possible(qrels)
    joined = [joined_of(run, qrels) for run in several]
    content = [content_of(run, qrels, TEXTS) for run in several]
    with mock.patch.object(evaluating, "PART", part):  # a few hits at once, so that the stack is cut
        together = evaluate(qrels, Joined.stack(joined), measures, content=Content.stack(content))
    back = {"content": Content.stack(content[::-1])}
    turned = evaluate(qrels, Joined.stack(joined[::-1]), measures[::-1], **back)
    for place, one in enumerate(joined):
        alone = evaluate(qrels, one, measures, content=content[place])
        for measure in measures:
            bits = alone.values[measure].tobytes()
            assert together.of_run(place).values[measure].tobytes() == bits
            assert turned.of_run(len(joined) - 1 - place).values[measure].tobytes() == bits


@given(collections(), runs(), st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_measures_in_one_call_never_influence_each_other(
    qrels: Qrels, run: Scored, draw: random.Random
) -> None:
    together = values(qrels, run)
    for measure in draw.sample(list(together), 12):
        fresh = replace(qrels, cache={})
        content = content_of(run, fresh, texts_of(SAID))
        alone = evaluate(fresh, joined_of(run, fresh), [measure], content=content).values[measure]
        assert alone.tolist() == together[measure]


@given(collections(), runs())
@settings(max_examples=30, deadline=None)
def test_renaming_documents_in_the_same_order_changes_nothing(qrels: Qrels, run: Scored) -> None:
    renamed = {topic: {f"x/{d}é": score for d, score in of.items()} for topic, of in run.items()}
    ids = [b"x/" + one + "é".encode() for one in qrels.documents.to_list()]
    other = replace(qrels, documents=type(qrels.documents).of(ids), cache={})
    texts = texts_of({f"x/{d}é": text for d, text in SAID.items()})
    assert values(qrels, run) == values(other, renamed, texts=texts)


@pytest.mark.parametrize("measure", ALL, ids=str)
def test_every_measure_round_trips_through_its_text(measure: Measure) -> None:
    assert parse(measure.text) == measure
    assert parse(measure.text).text == measure.text


@pytest.mark.parametrize("declaration", all_declarations(), ids=lambda one: one.name)
def test_every_measure_is_documented_and_its_exemptions_are_of_known_laws(declaration: Declaration) -> None:
    assert len(declaration.summary.split()) > 4
    assert declaration.source
    assert set(declaration.exempt) <= set(LAWS)
    assert all(declaration.exempt.values())


def every_order(scores: dict[str, float]) -> Iterator[list[str]]:
    """The documents of a topic in every order that their scores allow."""
    by_score = sorted(scores, key=lambda document: -scores[document])
    groups = [list(of) for _, of in groupby(by_score, key=scores.__getitem__)]
    return (list(chain.from_iterable(one)) for one in product(*map(permutations, groups)))


tied_runs = st.dictionaries(documents, st.sampled_from([1.0, 1.0, 1.0, 2.0, 3.0]), max_size=5)


class TestExplanations:
    """What `explain` says of ties and judgments holds for every measure, against trying everything."""

    @pytest.mark.parametrize("tried", [2, 1000])
    @given(qrels=collections(), scores=tied_runs, depth=st.sampled_from([None, None, 2, 4]))
    @settings(max_examples=25, deadline=None)
    def test_least_expected_and_greatest_are_those_of_all_orders(
        self, tried: int, qrels: Qrels, scores: dict[str, float], depth: int | None
    ) -> None:
        """With two orders tried, what is said to be exact is so by law or closed form alone."""
        measures = [one for one in _possible(qrels) if not one.declaration.texts]
        every = [joined_of({"1": ranked(*one)}, qrels, depth=depth) for one in every_order(scores)]
        values = evaluate(qrels, Joined.stack(every), measures).values
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(orders, "SHUFFLES", tried)
            ranking = ranking_of({"1": scores})
            told = explain(qrels, ranking, measures, depth=depth, about=["ties"])
        for measure in measures:
            ties, of_first = told[measure].told["ties"], values[measure][:: len(TOPICS)]
            low, expected, high = (
                getattr(ties, name).by_topic[0] for name in ("least", "expected", "greatest")
            )
            if ties.range_by == "exact":
                assert [low, high] == pytest.approx([of_first.min(), of_first.max()], abs=1e-12), measure
            if ties.expected_by != "sampled":
                assert expected == pytest.approx(of_first.mean(), rel=1e-9), measure
            assert low <= ties.value.by_topic[0] <= high
            if ties.range_by == "bounds":
                assert low <= of_first.min() + 1e-12
                assert of_first.max() <= high + 1e-12
            if ties.range_by == "sampled":
                assert of_first.min() <= low + 1e-12
                assert high <= of_first.max() + 1e-12
            assert low - 1e-12 <= expected <= high + 1e-12
            if tried == 1000:
                assert (ties.range_by, ties.standard_error) == ("exact", None)

    @given(
        judged=st.tuples(grades, labels),
        order=st.lists(documents, unique=True, max_size=4),
        draw=st.randoms(),
    )
    @settings(max_examples=40, deadline=None)
    def test_bounds_hold_whatever_the_unjudged_documents_are(
        self, judged: tuple[dict[str, int], dict[str, int]], order: list[str], draw: random.Random
    ) -> None:
        """Every document of the run without a label gets any, or none; only those down to the cutoff do."""
        known = {aspect: {"1": of} for aspect, of in zip(ASPECTS, judged, strict=True)}
        qrels, run = qrels_of(known), {"1": ranked(*order)}
        measures = [one for one in ALL if not one.declaration.subtopics and "observed" not in one.text]
        measures = [one for one in measures if not one.declaration.texts]
        told = explain(qrels, ranking_of(run), measures, about=["judgments"])
        bounded = [one for one in measures if told[one].told["judgments"].least is not None]
        names = {one.declaration.name for one in bounded}
        assert names >= {"P", "RR", "RBP", "gRBP", "DCG", "ERR", "Success", "gP", "RBTO"}
        for cutoff in {told[one].told["judgments"].cutoff for one in bounded}:
            of_cutoff = [one for one in bounded if told[one].told["judgments"].cutoff == cutoff]
            for _ in range(6):
                labelled = {a: _completed(a, of, order[:cutoff], draw) for a, of in known.items()}
                possible = qrels_of(labelled)
                found = evaluate(possible, joined_of(run, possible), of_cutoff).values
                for measure in of_cutoff:
                    part = told[measure].told["judgments"]
                    low, high = part.least.by_topic[0], part.greatest.by_topic[0]
                    assert low - 1e-12 <= found[measure][0] <= high + 1e-12, measure


def _completed(
    aspect: Aspect, known: dict[str, dict[str, int]], order: list[str], draw: random.Random
) -> dict[str, dict[str, int]]:
    """The judgments of the first topic, with some label or none for each document of `order` without one."""
    of = known["1"]
    chosen = {d: draw.randint(-1, len(aspect.labels) - 1) for d in order if d not in of}
    return {"1": {**of, **{document: label for document, label in chosen.items() if label >= 0}}}


COMBINED: dict[str, Callable[[int, int], int]] = {
    "euclidean": lambda a, b: a * a + b * b,
    "manhattan": lambda a, b: a + b,
    "chebyshev": max,
}


class TestTOMA:
    """Laws of total order multi-aspect measures (spec 11.3 to 11.7)."""

    @given(collections(), st.sampled_from(sorted(COMBINED)))
    @settings(max_examples=60, deadline=None)
    def test_the_ranking_by_distance_scores_1_if_anything_has_weight(
        self, qrels: Qrels, distance: str
    ) -> None:
        text = "TOMA(of=nDCG)" if distance == "euclidean" else f"TOMA(of=nDCG,distance={distance})"
        away = _distances(qrels, distance)
        [value, *_] = scores_of(text, {"1": ranked(*sorted(away, key=away.__getitem__))}, qrels)[text]
        credited = any(place < COMBINED[distance](3, 2) for place in away.values())
        assert value == (1.0 if credited else 0.0)

    @given(grades, rankings)
    @settings(max_examples=40, deadline=None)
    def test_with_one_aspect_it_is_the_measure_itself(self, judged: dict[str, int], order: list[str]) -> None:
        qrels = qrels_of({ASPECTS[0]: {"1": judged}})
        texts = [f"TOMA(of=nDCG,distance={name})" for name in ("euclidean", "manhattan", "chebyshev")]
        found = scores_of(["nDCG", *texts], {"1": ranked(*order)}, qrels)
        assert len({tuple(of) for of in found.values()}) == 1

    @given(labels, labels, rankings)
    @settings(max_examples=40, deadline=None)
    def test_binary_aspects_make_euclidean_and_manhattan_equal(
        self, one: dict[str, int], two: dict[str, int], order: list[str]
    ) -> None:
        binary = [{d: min(label, 1) for d, label in judged.items()} for judged in (one, two)]
        qrels = qrels_of({Aspect(name, range(2)): {"1": of} for name, of in zip("ab", binary, strict=True)})
        texts = ["TOMA(of=nDCG)", "TOMA(of=nDCG,distance=manhattan)"]
        a, b = scores_of(texts, {"1": ranked(*order)}, qrels).values()
        assert a == b

    @given(collections(), runs())
    @settings(max_examples=40, deadline=None)
    def test_mm_lies_between_the_least_score_and_cam(self, qrels: Qrels, run: Scored) -> None:
        parts = ["nDCG(aspect=relevance)", "nDCG(aspect=credibility)"]
        found = scores_of([*parts, "MM(of=nDCG)", "CAM(of=nDCG)"], run, qrels)
        for one, two, mm, cam in zip(*found.values(), strict=True):
            assert min(one, two) - 1e-12 <= mm <= cam + 1e-12
            assert cam <= max(one, two) + 1e-12


def _distances(qrels: Qrels, distance: str) -> dict[str, int]:
    """Distance of each document of the first topic to the best labels, (3, 2)."""
    labels = np.maximum(qrels.labels, 0).T.tolist()
    return {
        qrels.documents[place]: COMBINED[distance](3 - labels[place][0], 2 - labels[place][1])
        for place in range(qrels.offsets[1])
    }


class TestScales:
    """A measure that a longer scale may change says so: readers are told where the scale was inferred."""

    @given(collections(), runs())
    @settings(max_examples=60, deadline=None)
    def test_a_better_label_that_nobody_was_given_changes_no_other_measure(
        self, qrels: Qrels, run: Scored
    ) -> None:
        measures = [one for one in _possible(qrels) if not (one.by_scale or one.declaration.texts)]
        longer = replace(qrels, aspects=LONGER, cache={})
        before, after = (evaluate(one, joined_of(run, one), measures).values for one in (qrels, longer))
        for measure in measures:
            assert after[measure].tolist() == before[measure].tolist(), measure

    @pytest.mark.parametrize("name", sorted({one.declaration.name for one in ALL if one.by_scale}))
    def test_a_measure_that_says_so_is_changed_by_one(self, name: str) -> None:
        judged = {aspect: {t: dict(zip("abc", (1, 2, 0), strict=True)) for t in TOPICS} for aspect in ASPECTS}
        qrels = qrels_of(judged)
        longer = replace(qrels, aspects=LONGER, cache={})
        measures = [
            one for one in ALL if one.declaration.name == name and one.by_scale and not fixed_to_labels(one)
        ]
        run = {t: ranked(*order) for t, order in zip(TOPICS, ("abc", "cba", "acb"), strict=True)}
        before, after = (evaluate(one, joined_of(run, one), measures).values for one in (qrels, longer))
        changed = any(after[measure].tolist() != before[measure].tolist() for measure in measures)
        assert (
            changed or name == "SBTO"
        )  # of it only the greatest value changes; compatibility.md 1.2 names it


LONGER = (Aspect("relevance", range(5)), Aspect("credibility", ("nc", "pc", "c", "cc")))
"""ASPECTS with a better label each."""


def fixed_to_labels(measure: Measure) -> bool:
    """Whether the measure has a number for each label, so that another scale can't have it."""
    return any(measure.arguments.get(name) is not None for name in ("embedding", "gains"))


def drawn(draw: random.Random, parameter: Parameter, depth: int = 0) -> Any:
    """A random value that the parameter takes."""
    match parameter.kind:
        case kinds.Whole(least=least):
            return draw.choice([max(least, 1), 7, 10**6, 10**17])
        case kinds.Number(low=low, high=high):
            low, high = max(low, -1e6), min(high, 1e6)
            numbers = [draw.uniform(low, high), round(draw.uniform(low, high), 2), Fraction(1, 3)]
            return draw.choice([one for one in numbers if low < one < high] or [parameter.default])
        case kinds.Flag():
            return draw.random() < 0.5
        case kinds.Either(kinds=(first, last)):
            return drawn(draw, replace(parameter, kind=draw.choice([first, last])), depth)
        case kinds.Weighting():
            share = draw.randrange(1001)
            return {"a b": share / 1000, "it's": Fraction(1000 - share, 1000)}
        case kinds.Balance():
            return {"a-b": draw.uniform(0.1, 999), "True": draw.randrange(9)}
        case kinds.Table(value=kinds.Table()):
            return {"ease": {draw.randrange(-9, 9): draw.random()}, "x.y": {0: 1}}
        case kinds.Table() if parameter.name == "thresholds":
            return {"ease": draw.randrange(-9, 99)}
        case kinds.Table() if parameter.name == "embedding":
            return {"a": sorted(draw.uniform(-9, 9) for _ in range(3)), "b": [0, Fraction(1, 7), 1]}
        case kinds.Table():
            return {draw.randrange(-5, 99): draw.uniform(0, 1e9) for _ in range(3)}
        case kinds.Numbers(rising=True):
            return sorted(draw.random() for _ in range(draw.randrange(1, 5)))
        case kinds.Numbers():
            return sorted((draw.randrange(99) for _ in range(draw.randrange(1, 5))), reverse=True)
        case kinds.NameOrNames() | kinds.Words():
            return draw.sample(["a", "b c", "None", "\\'", "é", "x-1"], draw.randrange(1, 4))
        case kinds.Inner(by_aspect=True) if draw.random() < 0.5:
            return {"a": some_measure(draw), "b c": "AP(rel=2)@5"}
        case kinds.Inner():
            return some_measure(draw)
        case kinds.Word(choices=choices) if choices:
            return draw.choice(choices)
        case _:
            return draw.choice(["relevance", "how easy", "1", "nDCG@10", "'\"", "हिन्दी"])


def some_measure(draw: random.Random) -> Measure:
    """A random measure of one aspect that is averaged over topics."""
    apart = [d for d in all_declarations() if d.combines or d.subtopics or d.texts]
    single = [d for d in all_declarations() if d not in apart and d.aggregate == "mean"]
    return varied(draw, draw.choice(single), without=("aspect",))


def varied(draw: random.Random, declaration: Declaration, without: tuple[str, ...] = ()) -> Measure:
    """The measure with what it needs, and a random choice of other parameters, at random values."""
    chosen = [
        one
        for one in declaration.parameters.values()
        if one.name not in without and (one.default is REQUIRED or draw.random() < 0.5)
    ]
    return Measure(declaration, ()).having(**{one.name: drawn(draw, one) for one in chosen})


@given(st.sampled_from(all_declarations()), st.randoms(use_true_random=False))
@settings(max_examples=300, deadline=None)
def test_any_parameters_round_trip_through_the_text(declaration: Declaration, draw: random.Random) -> None:
    measure = varied(draw, declaration)
    again = parse(str(measure))
    assert again == measure
    assert str(again) == str(measure)
    assert again.arguments == measure.arguments
    assert pickle.loads(pickle.dumps(measure)).arguments == measure.arguments


@given(collections(), runs(), st.randoms(use_true_random=False))
@settings(max_examples=30, deadline=None)
def test_two_variants_in_one_call_are_the_two_calls(qrels: Qrels, run: Scored, draw: random.Random) -> None:
    """Every instance of a declaration with another one of it, in both orders, on qrels without memory."""
    measures = _possible(qrels)
    for declaration in draw.sample(all_declarations(), 6):
        variants = [one for one in measures if one.declaration is declaration]
        pair = draw.sample(variants, min(2, len(variants)))
        alone = [_fresh(qrels, run, [one])[0] for one in pair]
        assert _fresh(qrels, run, pair) == alone
        assert _fresh(qrels, run, pair[::-1]) == alone[::-1]


def _fresh(qrels: Qrels, run: Scored, measures: list[Measure]) -> list[list[float]]:
    """Values by measure, where nothing was computed before."""
    unused = replace(qrels, cache={})
    content = content_of(run, unused, TEXTS)
    found = evaluate(unused, joined_of(run, unused), measures, content=content).values
    return [found[measure].tolist() for measure in measures]
