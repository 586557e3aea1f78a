"""Hypothesis strategies for collections and runs, and instances of every declared measure."""

import random
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from cupel_measures.catalogue.parser import Measure, all_declarations, parse
from cupel_measures.grammar import parameters as kinds
from cupel_measures.grammar.registry import REQUIRED, Declaration, Parameter
from cupel_measures.model import Aspect, Qrels, Texts
from cupel_measures.model.profiles import PROFILES
from cupel_measures.scoring.evaluator import evaluate
from support.data.small_collections import Scored, content_of, joined_of, qrels_of, texts_of

ASPECTS = (Aspect(name="relevance", labels=range(4)), Aspect(name="credibility", labels=("nc", "pc", "c")))
TOPICS = ("1", "2", "3")


def example(parameter: Parameter) -> Any:
    """Return a valid value of the parameter that differs from the default."""
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
        case kinds.GainTableParameter(value=kinds.GainTableParameter()):
            return {"credibility": {1: 0.3}}
        case kinds.GainTableParameter() if parameter.name == "thresholds":
            return {"credibility": 2}
        case kinds.GainTableParameter() if parameter.name == "embedding":
            return {"credibility": [0, 0, 2]}
        case kinds.GainTableParameter():
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
"""(measure, parameter) -> other parameters that it requires."""


def instances(declaration: Declaration) -> list[Measure]:
    """Return the measure with default values, and variants that change one parameter each."""
    normalised = "normalise" in declaration.parameters  # these measures need a cutoff
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
        # Omit Utility for harmonic means, because it may be negative.
        negative = ["Utility"] * (declaration.combination == "mean")
        inners = [parse(text) for text in ("AP", "RBP@3", "DCG", *negative) if "of" in declaration.parameters]
    varied = [base.having(of=inner) for inner in inners]
    if declaration.name == "CAM":
        varied.append(base.having(of={"relevance": "nDCG@3", "credibility": "SetF"}))
    varied += [
        base.having(**{p.name: example(p)}, **GOES_WITH.get((declaration.name, p.name), {}))
        for p in declaration.parameters.values()
        if p.name != "weighting" and p.default is not REQUIRED
    ]
    return [base, *varied]


ALL = [measure for declaration in all_declarations() for measure in instances(declaration)]

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
"""The texts of all documents except d8."""
TEXTS = texts_of(SAID)


@st.composite
def collections(draw: st.DrawFn) -> Qrels:
    """Draw qrels of two aspects, with subtopics."""
    judged = {
        ASPECTS[0]: {topic: draw(grades) for topic in TOPICS},
        ASPECTS[1]: {topic: draw(labels) for topic in TOPICS},
    }
    qrels = qrels_of(judged, subtopics={topic: draw(by_subtopic) for topic in TOPICS})
    assume(not qrels.only_by_subtopic)  # qrels judged by subtopic only support no measures of an aspect
    return qrels


@st.composite
def runs(draw: st.DrawFn) -> Scored:
    """Draw a run with ties, which may lack topics."""
    return {
        topic: {d: float(draw(st.integers(0, 5))) for d in draw(rankings)}
        for topic in draw(st.sets(st.sampled_from(TOPICS)))
    }


def is_exempt(measure: Measure, law: str) -> bool:
    """Return whether the measure, or one that it combines, is exempt from a law."""
    return law in measure.declaration.exempt or any(is_exempt(inner, law) for inner in measure.within)


def values(
    qrels: Qrels, run: Scored, *, profile: str = "cupel", texts: Texts = TEXTS
) -> dict[Measure, list[float]]:
    """Return the scores per topic of all measures that the judgments allow."""
    chosen = PROFILES[profile]
    content = content_of(run, qrels, texts, profile=chosen)
    scores = evaluate(
        qrels, joined_of(run, qrels, profile=chosen), supported_measures(qrels), content=content
    )
    return {measure: per_topic.tolist() for measure, per_topic in scores.values.items()}


def supported_measures(qrels: Qrels) -> list[Measure]:
    """Return all measures that these judgments allow.

    With too few observed labels, label_set=observed would give a single class.
    """
    seen = {tuple(column) for column in np.maximum(qrels.labels, 0).T.tolist()}
    return [m for m in ALL if m.arguments.get("label_set") != "observed" or len(seen) > 9]


def random_value(draw: random.Random, parameter: Parameter, depth: int = 0) -> Any:
    """Return a random valid value of the parameter."""
    match parameter.kind:
        case kinds.Whole(least=least):
            return draw.choice([max(least, 1), 7, 10**6, 10**17])
        case kinds.Number(low=low, high=high):
            low, high = max(low, -1e6), min(high, 1e6)
            numbers = [draw.uniform(low, high), round(draw.uniform(low, high), 2), Fraction(1, 3)]
            return draw.choice([number for number in numbers if low < number < high] or [parameter.default])
        case kinds.Flag():
            return draw.random() < 0.5
        case kinds.Either(kinds=(first, last)):
            return random_value(draw, replace(parameter, kind=draw.choice([first, last])), depth)
        case kinds.Weighting():
            share = draw.randrange(1001)
            return {"a b": share / 1000, "it's": Fraction(1000 - share, 1000)}
        case kinds.Balance():
            return {"a-b": draw.uniform(0.1, 999), "True": draw.randrange(9)}
        case kinds.GainTableParameter(value=kinds.GainTableParameter()):
            return {"ease": {draw.randrange(-9, 9): draw.random()}, "x.y": {0: 1}}
        case kinds.GainTableParameter() if parameter.name == "thresholds":
            return {"ease": draw.randrange(-9, 99)}
        case kinds.GainTableParameter() if parameter.name == "embedding":
            return {"a": sorted(draw.uniform(-9, 9) for _ in range(3)), "b": [0, Fraction(1, 7), 1]}
        case kinds.GainTableParameter():
            return {draw.randrange(-5, 99): draw.uniform(0, 1e9) for _ in range(3)}
        case kinds.Numbers(rising=True):
            return sorted(draw.random() for _ in range(draw.randrange(1, 5)))
        case kinds.Numbers():
            return sorted((draw.randrange(99) for _ in range(draw.randrange(1, 5))), reverse=True)
        case kinds.NameOrNames() | kinds.Words():
            return draw.sample(["a", "b c", "None", "\\'", "é", "x-1"], draw.randrange(1, 4))
        case kinds.Inner(by_aspect=True) if draw.random() < 0.5:
            return {"a": random_measure(draw), "b c": "AP(rel=2)@5"}
        case kinds.Inner():
            return random_measure(draw)
        case kinds.Word(choices=choices) if choices:
            return draw.choice(choices)
        case _:
            return draw.choice(["relevance", "how easy", "1", "nDCG@10", "'\"", "हिन्दी"])


def random_measure(draw: random.Random) -> Measure:
    """Return a random measure of one aspect that is averaged over topics."""
    excluded = [d for d in all_declarations() if d.combines or d.subtopics or d.texts]
    single = [d for d in all_declarations() if d not in excluded and d.aggregate == "mean"]
    return random_variant(draw, draw.choice(single), without=("aspect",))


def random_variant(draw: random.Random, declaration: Declaration, without: tuple[str, ...] = ()) -> Measure:
    """Return the measure with its required and some other parameters at random values."""
    chosen = [
        parameter
        for parameter in declaration.parameters.values()
        if parameter.name not in without and (parameter.default is REQUIRED or draw.random() < 0.5)
    ]
    return Measure(declaration, ()).having(
        **{parameter.name: random_value(draw, parameter) for parameter in chosen}
    )
