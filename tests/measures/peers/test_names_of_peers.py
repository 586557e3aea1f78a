"""Every name that ir_measures 0.4.3, trec_eval (pytrec_eval-terrier 0.5.11) and ndeval (pyndeval 0.0.8) know.

Each is a measure here that means the same, or is refused in a sentence that says why. The lists are those of
the tools themselves, so that a name they add is missed here.
"""

from typing import Any

import pytest

from cupel_measures.catalogue.parser import parse, parse_many
from cupel_measures.grammar import trec_names
from cupel_measures.grammar.syntax import MeasureError

ir_measures = pytest.importorskip("ir_measures")
pytrec_eval = pytest.importorskip("pytrec_eval")
pyndeval = pytest.importorskip("pyndeval")

REGISTRY = ir_measures.measures.registry
VALUES: dict[str, Any] = {
    "cutoff": 7,
    "rel": 2,
    "judged_only": True,
    "dcg": "exp-log2",
    "gains": {1: 2, 2: 5},
    "p": 0.25,
    "alpha": 0.75,
    "beta": 0.25,
    "T": 2.5,
    "min_rel": 1,
    "max_rel": 3,
    "recall": 0.35,
    "normalize": False,
    "relative": True,
}
"""A value other than the default for each parameter that ir_measures has."""
OWN_VALUES = {("SDCG", "dcg"): "log2"}


def variants(name: str) -> list[dict[str, Any]]:
    """What a measure of ir_measures needs, and that with each other parameter."""
    measure = REGISTRY[name]
    known = {k: OWN_VALUES.get((name, k), VALUES[k]) for k in measure.SUPPORTED_PARAMS}
    needed = {
        k: known[k]
        for k, parameter in measure.SUPPORTED_PARAMS.items()
        if parameter.required or k == "cutoff"
    }
    return [needed, *({**needed, k: v} for k, v in known.items() if k not in needed)]


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_every_measure_of_ir_measures_with_every_parameter_is_one_here(name: str) -> None:
    for parameters in variants(name):
        theirs = REGISTRY[name](**parameters)
        ours = parse(str(theirs))
        assert str(parse(ours.text)) == ours.text
        for key, value in parameters.items():
            meant = dict(ours.arguments[key]) if isinstance(value, dict) else ours.arguments[key]
            assert meant == value, (str(theirs), key)
        assert ours.declaration.name == theirs.NAME


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_a_name_alone_is_a_measure_or_says_what_it_needs(name: str) -> None:
    needed = {k for k, parameter in REGISTRY[name].SUPPORTED_PARAMS.items() if parameter.required}
    here_too = {"P_IA": {"cutoff"}}.get(name, needed - {"max_rel"})  # the scale has a greatest gain
    if not here_too:
        assert str(parse(name))
        return
    with pytest.raises(MeasureError) as problem:
        parse(name)
    [parameter] = here_too
    assert f" requires {parameter}, for example " in str(problem.value)


@pytest.mark.parametrize(
    "name", sorted(pytrec_eval.supported_measures | set(pytrec_eval.supported_nicknames))
)
def test_every_name_of_trec_eval_is_a_measure_or_says_why_not(name: str) -> None:
    why = trec_names.refusal(name)
    if name in trec_names.OURS:
        return  # our own grammar has the name, too
    if why is None:
        assert parse_many(name)
        return
    with pytest.raises(MeasureError) as problem:
        parse(name)
    assert str(problem.value) == why
    assert why.startswith(f"trec_eval's {name} ")


WITH_CUTOFF = ("P", "recall", "ndcg_cut", "map_cut", "success")


@pytest.mark.parametrize(
    "name",
    ["map", "Rprec", "bpref", "recip_rank", "ndcg", "infAP", "set_P", "set_recall", "set_F", "set_map"],
)
def test_trec_evals_names_mean_what_they_do_in_ir_measures(name: str) -> None:
    [theirs] = ir_measures.parse_trec_measure(name)
    assert without_level(str(theirs)) == str(parse(name))


@pytest.mark.parametrize("name", WITH_CUTOFF)
def test_trec_evals_names_with_cutoffs_do_too(name: str) -> None:
    theirs = [without_level(str(measure)) for measure in ir_measures.parse_trec_measure(f"{name}.3,20")]
    assert theirs == [str(measure) for measure in parse_many(f"{name}.3,20")]
    assert theirs == [str(parse(f"{name}_{k}")) for k in (3, 20)]


def without_level(text: str) -> str:
    """ir_measures' text as ours: it means level 1 where none is given, which ours leaves to the aspect."""
    return str(parse(text.replace("(rel=1)", "")))


NDEVAL = {
    "ERR-IA": "ERR_IA",
    "nERR-IA": "nERR_IA",
    "alpha-DCG": "alpha_DCG",
    "alpha-nDCG": "alpha_nDCG",
    "NRBP": "NRBP",
    "nNRBP": "nNRBP",
    "MAP-IA": "AP_IA",
    "P-IA": "P_IA",
    "strec": "StRecall",
}


@pytest.mark.parametrize("name", sorted(pyndeval.SUPPORTED_MEASURES))
def test_every_name_of_ndeval_is_a_measure(name: str) -> None:
    at = "" if name in pyndeval.NOCUTOFF_MEASURES else "@7"
    assert str(parse(name + at)) == NDEVAL[name] + at


def test_ndevals_names_take_parameters() -> None:
    assert str(parse("alpha-nDCG(alpha=0.9)@10")) == "alpha_nDCG(alpha=0.9)@10"
    with pytest.raises(MeasureError, match=r"unknown measure 'alpha-nDGC'; did you mean alpha-nDCG\?"):
        parse("alpha-nDGC@10")
