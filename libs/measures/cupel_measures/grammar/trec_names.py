"""Translation between the measure names of trec_eval and those of Cupel.

The versions of trec_eval are 9.0.8 and 10.0.
"""

import re
from collections.abc import Callable

CUTOFFS = ("5", "10", "15", "20", "30", "100", "200", "500", "1000")
RECALLS = ("0.0", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9", "1.0")
MULTIPLES = ("0.2", "0.4", "0.6", "0.8", "1.0", "1.2", "1.4", "1.6", "1.8", "2.0")

# trec_eval name: Cupel text, in which `{}` is the parameter; default values of the parameter
NAMES: dict[str, tuple[str, tuple[str, ...]]] = {
    "num_q": ("NumQ", ()),
    "num_ret": ("NumRet", ()),
    "num_rel": ("NumRel", ()),
    "num_rel_ret": ("NumRelRet", ()),
    "num_nonrel_judged_ret": ("NumNonrelRet", ()),
    "map": ("AP", ()),
    "gm_map": ("GMAP", ()),
    "Rprec": ("Rprec", ()),
    "bpref": ("Bpref", ()),
    "recip_rank": ("RR", ()),
    "iprec_at_recall": ("IPrec@{}", RECALLS),
    "P": ("P@{}", CUTOFFS),
    "recall": ("R@{}", CUTOFFS),
    "dcg": ("DCG", ()),
    "ndcg": ("nDCG", ()),
    "ndcg_cut": ("nDCG@{}", CUTOFFS),
    "map_cut": ("AP@{}", CUTOFFS),
    "success": ("Success@{}", ("1", "5", "10")),
    "set_P": ("SetP", ()),
    "set_relative_P": ("SetP(relative=True)", ()),
    "set_recall": ("SetR", ()),
    "set_map": ("SetAP", ()),
    "set_F": ("SetF(beta={})", ("1",)),
    "11pt_avg": ("AP11", ()),
    "Rprec_mult": ("Rprec(multiple={})", MULTIPLES),
    "unj": ("Unjudged@{}", ("5", "10", "20")),
    "infAP": ("infAP", ()),
    "gm_bpref": ("GMBpref", ()),
    "relative_P": ("RelP@{}", CUTOFFS),
    "utility": ("Utility", ()),
    "rbp": ("RBP_trec", ()),
    "rbp_resid": ("RBPResidual", ()),
}
ALL_VALUES = {
    "11pt_avg": "AP11(levels=[{}])",
    "utility": "Utility(a={},b={},c={},d={})",
}
"""trec_eval name -> Cupel text, for names with several values that belong to one measure."""
PAIRS = {"ndcg": "nDCG(gains={{{}}})", "rbp": "RBP_trec({})"}
"""trec_eval name -> Cupel text, for names with values of the form `1=3,2=9` or `p=0.8`."""
OURS = ("P", "Rprec", "infAP")
"""Names of both trec_eval and Cupel. They are read as Cupel names, so `P` requires a cutoff."""

EXPERIMENTAL = "is experimental and not supported; "
PREFERENCES = "is computed from preferences between documents, not from labels; use Bpref"
GROUPS = "averages over several groups of judgments in one qrels file; declare each group as an aspect"
REFUSED = {
    "G": EXPERIMENTAL + "use nDCG",
    "binG": EXPERIMENTAL + "use AP",
    "Rndcg": EXPERIMENTAL + "use nDCG@k with several k",
    "ndcg_rel": EXPERIMENTAL + "use nDCG",
    "ndcg_p": "was renamed: ndcg takes gains, for example ndcg_1=3,2=9 or nDCG(gains={1:3,2:9})",
    "yaap": EXPERIMENTAL + "use AP",
    "ideal_dcg": "does not depend on the run: it is the greatest DCG of a topic, the divisor of nDCG",
    "relstring": "is a string, not a number; use per-topic values",
    "runid": "is the name of the run, not a measure",
    "prefs": PREFERENCES,
    "all_prefs": PREFERENCES,
    "qrels_jg": GROUPS,
    "map_avgjg": GROUPS,
    "P_avgjg": GROUPS,
    "Rprec_mult_avgjg": GROUPS,
}
"""Unsupported trec_eval name -> reason."""
MISUSED = {
    "utility": "takes four values, for example utility_1,-1,0,0",
    "ndcg": "takes gains by level, for example ndcg_1=3,2=9; an unjudged document always has gain 0",
    "rbp": "takes p, for example rbp_p=0.8",
}
"""trec_eval name -> description of its values, for error messages."""

# members have the order of trec_eval
OFFICIAL = "num_q num_ret num_rel num_rel_ret map gm_map Rprec bpref recip_rank iprec_at_recall P"
SETS = {
    "official": OFFICIAL,
    "all_trec": OFFICIAL
    + " recall infAP gm_bpref Rprec_mult utility 11pt_avg ndcg ndcg_cut map_cut relative_P success"
    + " set_P set_relative_P set_recall set_map set_F num_nonrel_judged_ret rbp rbp_resid unj",
    "set": "num_q num_ret num_rel num_rel_ret utility set_P set_relative_P set_recall set_map set_F",
}


def translate(name: str) -> list[str] | None:
    """Return the Cupel texts of a trec_eval name.

    Such names are `ndcg_cut_10`, `P.5,10` or `official`.

    Return None for any other name.
    """
    if name in SETS:
        return [text for member in SETS[name].split() for text in _bare(member)]
    if name in NAMES and name not in OURS:
        return _bare(name)
    if (text := _parametrised(name)) is not None:
        return [text]
    for trec, (pattern, _) in NAMES.items():
        if (values := _values(name, trec)) and "{}" in pattern:
            return [pattern.format(value) for value in values]
    return None


def _bare(name: str) -> list[str]:
    """Return the Cupel texts of a trec_eval name that is written without parameters.

    The result is one text, or one for each of trec_eval's default values of the parameter.
    """
    text, defaults = NAMES[name]
    return [text.format(value) for value in defaults] if defaults else [text]


def _parametrised(name: str) -> str | None:
    """Return the Cupel text of a name with several values.

    Such names are `utility_2,-1,0,0` or `ndcg_1=3,2=9`.
    """
    for trec, text in ALL_VALUES.items():
        values = _values(name, trec)
        if values and text.count("{}") in (1, len(values)):
            return text.format(",".join(values)) if text.count("{}") == 1 else text.format(*values)
    for trec, text in PAIRS.items():
        if pairs := re.fullmatch(rf"{trec}[._](PAIR(?:,PAIR)*)".replace("PAIR", rf"\w+={NUMBER}"), name):
            inside = pairs.group(1)
            return text.format(inside.replace("=", ":") if trec == "ndcg" else inside)
    return None


NUMBER = r"-?\.?[0-9][0-9.]*"


def _values(name: str, trec: str) -> list[str] | None:
    match = re.fullmatch(re.escape(trec) + rf"[._]({NUMBER}(?:,{NUMBER})*)", name)
    return match.group(1).split(",") if match else None


def refusal(name: str) -> str | None:
    """Return why a trec_eval name is not supported; None for other names.

    The name can have parameters.
    """
    base = re.split(r"[.=]|_[0-9]", name)[0]
    if base.startswith("prefs_"):
        base = "prefs"
    for trec, usage in MISUSED.items():
        if re.fullmatch(rf"{trec}[._]-?[\w.]*[0-9=][\w.,=-]*", name):
            return f"trec_eval's {trec} {usage}"
    return f"trec_eval's {name} {REFUSED[base]}" if base in REFUSED else None


def examples() -> list[str]:
    """Return the trec_eval names to suggest for a mistyped name."""
    return list(NAMES)


FORMATS: dict[str, Callable[[str], str]] = {
    "iprec_at_recall": lambda value: f"{float(value):.2f}",
    "Rprec_mult": lambda value: f"{float(value):.2f}",
}


def trec_name(text: str) -> str:
    """Return trec_eval's name of the measure with this canonical text.

    Return the text if there is none.
    """
    if text == "SetF":
        return "set_F"
    for trec, (pattern, _) in NAMES.items():
        match = re.fullmatch(re.escape(pattern).replace(r"\{\}", "([0-9.]+)"), text)
        if match:
            value = "".join(match.groups())
            return f"{trec}_{FORMATS.get(trec, str)(value)}" if value else trec
    return text
