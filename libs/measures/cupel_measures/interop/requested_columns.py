"""Measures as callers of pytrec_eval request them, and their columns of results."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cupel_measures.catalogue.parser import Measure, MeasureError, parse
from cupel_measures.grammar.trec_names import ALL_VALUES, FORMATS, NAMES

NO_VALUE = ("runid", "relstring")
"""Names that trec_eval prints as text. As numbers they are 0."""
GAIN_BASED = ("binG", "G", "ndcg_rel", "Rndcg")
"""Experimental measures of trec_eval 9 that Cupel has only for this module."""
CUT = ("P", "recall", "ndcg_cut", "map_cut", "relative_P", "success")
LEVELS = ("iprec_at_recall", "Rprec_mult")
NO_CUTOFF = "it takes no cutoff"
NO_PARAMETERS = {
    "ndcg": f"{NO_CUTOFF}; use ndcg_cut",
    "G": NO_CUTOFF,
    "ndcg_rel": NO_CUTOFF,
    "Rndcg": NO_CUTOFF,
    "utility": "its weights lose their order here; use Utility(a=2,b=-1) of cupel_measures.evaluate",
}
"""Reason against parameters by measure. pytrec_eval ends the process, or sorts the weights of utility."""

# in the order of the results of pytrec_eval
ALL_TREC = (
    "runid num_q num_ret num_rel num_rel_ret map gm_map Rprec bpref recip_rank iprec_at_recall P relstring"
    " recall infAP gm_bpref Rprec_mult utility 11pt_avg binG G ndcg ndcg_rel Rndcg ndcg_cut map_cut"
    " relative_P success set_P set_relative_P set_recall set_map set_F num_nonrel_judged_ret"
)
ORDER = ALL_TREC.split()
PREFS = "prefs_simp prefs_pair prefs_avgjg"
NICKNAMES: Mapping[str, str] = {
    "official": "runid num_q num_ret num_rel num_rel_ret map gm_map Rprec bpref recip_rank iprec_at_recall P",
    "set": "runid num_q num_ret num_rel num_rel_ret utility set_P set_relative_P set_recall set_map set_F",
    "all_trec": ALL_TREC,
    "all_prefs": f"runid num_q {PREFS} prefs_avgjg_Rnonrel prefs_simp_ret prefs_pair_ret prefs_avgjg_ret"
    " prefs_avgjg_Rnonrel_ret prefs_simp_imp prefs_pair_imp prefs_avgjg_imp prefs_num_prefs_poss"
    " prefs_num_prefs_ful prefs_num_prefs_ful_ret",
    "prefs": f"runid num_q {PREFS} prefs_num_prefs_poss prefs_num_prefs_ful prefs_num_prefs_ful_ret",
    "qrels_jg": "runid num_q map_avgjg P_avgjg Rprec_mult_avgjg",
}
WITH_PARAMETERS = re.compile(
    rf"({'|'.join(map(re.escape, ORDER))})[._]([0-9]+(?:\.[0-9]+)?(?:,[0-9]+(?:\.[0-9]+)?)*)"
)


@dataclass(frozen=True)
class RequestedColumn:
    """A column of results: its key, and its measure or, without one, its name."""

    key: str
    measure: Measure | str


def parameters_of(requested: Iterable[str]) -> dict[str, list[str]]:
    """Return the distinct parameters of each requested measure, sorted as texts.

    requested: names such as P_5 and ndcg_cut.10,20, and nicknames. Raise ValueError for an unknown measure.
    """
    found: dict[str, set[str]] = {}
    for name in requested:
        for member in NICKNAMES[name].split() if name in NICKNAMES else [name]:
            base, values = _split(member)
            found.setdefault(base, set()).update(values)
    return {base: sorted(values) for base, values in found.items()}


def _split(name: str) -> tuple[str, list[str]]:
    if name in ORDER:
        return name, []
    match = WITH_PARAMETERS.match(name)  # as in pytrec_eval, signs after the parameters are ignored
    if match is None:
        raise ValueError(f"unsupported measure {name}")
    return match.group(1), match.group(2).split(",")


def ignored(parameters: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Return the parameters that trec_eval ignores, because the measure has none."""
    taken = {*CUT, *LEVELS, *NO_PARAMETERS, "set_F", "11pt_avg", "relstring"}
    return {name: values for name, values in parameters.items() if values and name not in taken}


def columns_of(parameters: Mapping[str, list[str]]) -> tuple[RequestedColumn, ...]:
    """Return the columns of the results, in the order of pytrec_eval.

    Raise ValueError for parameters that the measure cannot have.
    """
    return tuple(
        column for name in ORDER if name in parameters for column in _columns(name, parameters[name])
    )


def _columns(name: str, values: list[str]) -> list[RequestedColumn]:
    if name in NO_VALUE:
        return [RequestedColumn(name, name)]
    if values and name in NO_PARAMETERS:
        raise ValueError(f"unsupported measure {name}.{','.join(values)}: {NO_PARAMETERS[name]}")
    if name in GAIN_BASED:
        return [RequestedColumn(name, name)]
    try:
        return [RequestedColumn(key, parse(text)) for key, text in _texts(name, values).items()]
    except MeasureError as problem:
        raise ValueError(f"unsupported measure {name}.{','.join(values)}: {problem}") from problem


def _texts(name: str, values: list[str]) -> dict[str, str]:
    """Return the text of Cupel for each key of the results."""
    text, defaults = NAMES[name]
    if name in CUT:
        cutoffs = sorted(int(float(value)) for value in values or defaults)
        if len(set(cutoffs)) < len(cutoffs):
            raise MeasureError("a cutoff is given twice")
        return {f"{name}_{cutoff}": text.format(cutoff) for cutoff in cutoffs}
    if name in LEVELS:
        levels = sorted(values or defaults, key=float)
        return {f"{name}_{FORMATS[name](level)}": text.format(float(level)) for level in levels}
    if name == "set_F":
        return {name: text.format((values or defaults)[0])}
    if values and name == "11pt_avg":
        return {name: ALL_VALUES[name].format(",".join(sorted(values, key=float)))}
    return {name: text}
