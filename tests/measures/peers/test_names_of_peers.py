"""Tests of names of ir_measures 0.4.3, trec_eval (pytrec_eval-terrier 0.5.11) and ndeval (pyndeval 0.0.8).

Each name is a measure with the same meaning, or is refused with a reason. The lists of names come from the
tools, so a name that a new version adds makes a test fail.
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
    """Return the required parameters of a measure of ir_measures alone, and with each optional one."""
    measure = REGISTRY[name]
    known = {k: OWN_VALUES.get((name, k), VALUES[k]) for k in measure.SUPPORTED_PARAMS}
    needed = {k: known[k] for k, p in measure.SUPPORTED_PARAMS.items() if p.required or k == "cutoff"}
    return [needed, *({**needed, k: v} for k, v in known.items() if k not in needed)]


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_measures_of_ir_measures_parse_with_every_parameter(name: str) -> None:
    for parameters in variants(name):
        theirs = REGISTRY[name](**parameters)
        ours = parse(str(theirs))
        assert str(parse(ours.text)) == ours.text
        for key, value in parameters.items():
            meant = dict(ours.arguments[key]) if isinstance(value, dict) else ours.arguments[key]
            assert meant == value, (str(theirs), key)
        assert ours.declaration.name == theirs.NAME


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_bare_name_is_a_measure_or_lists_the_required_parameter(name: str) -> None:
    needed = {k for k, p in REGISTRY[name].SUPPORTED_PARAMS.items() if p.required}
    required = {"P_IA": {"cutoff"}}.get(name, needed - {"max_rel"})  # defaults to that of the scale
    if not required:
        assert str(parse(name))
        return
    with pytest.raises(MeasureError) as problem:
        parse(name)
    [parameter] = required
    assert f" requires {parameter}, for example " in str(problem.value)


@pytest.mark.parametrize(
    "name", sorted(pytrec_eval.supported_measures | set(pytrec_eval.supported_nicknames))
)
def test_names_of_trec_eval_are_measures_or_refused_with_a_reason(name: str) -> None:
    why = trec_names.refusal(name)
    if name in trec_names.OURS:
        return  # the grammar of Cupel has this name too
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
def test_names_of_trec_eval_mean_the_same_as_in_ir_measures(name: str) -> None:
    [theirs] = ir_measures.parse_trec_measure(name)
    assert without_level(str(theirs)) == str(parse(name))


@pytest.mark.parametrize("name", WITH_CUTOFF)
def test_names_of_trec_eval_with_cutoffs_mean_the_same_as_in_ir_measures(name: str) -> None:
    theirs = [without_level(str(measure)) for measure in ir_measures.parse_trec_measure(f"{name}.3,20")]
    assert theirs == [str(measure) for measure in parse_many(f"{name}.3,20")]
    assert theirs == [str(parse(f"{name}_{k}")) for k in (3, 20)]


def without_level(text: str) -> str:
    """Return Cupel's text for a measure of ir_measures; omit the level 1, which is Cupel's default."""
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
def test_names_of_ndeval_are_measures(name: str) -> None:
    at = "" if name in pyndeval.NOCUTOFF_MEASURES else "@7"
    assert str(parse(name + at)) == NDEVAL[name] + at


def test_names_of_ndeval_take_parameters() -> None:
    assert str(parse("alpha-nDCG(alpha=0.9)@10")) == "alpha_nDCG(alpha=0.9)@10"
    with pytest.raises(MeasureError, match=r"unknown measure 'alpha-nDGC'; did you mean alpha-nDCG\?"):
        parse("alpha-nDGC@10")
