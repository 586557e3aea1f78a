"""trec_eval's names for measures and what they mean here (compatibility.md 1.2), both ways."""

import re
from collections.abc import Callable

CUTOFFS = ("5", "10", "15", "20", "30", "100", "200", "500", "1000")
RECALLS = ("0.0", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9", "1.0")
MULTIPLES = ("0.2", "0.4", "0.6", "0.8", "1.0", "1.2", "1.4", "1.6", "1.8", "2.0")

# trec_eval's name, our text (`{}` takes the parameter), and the parameters that the bare name stands for
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
}
OURS = ("P", "Rprec")
"""Names that our grammar has too: it wins, so that a bare P asks for its cutoff."""

# members in trec_eval's order
OFFICIAL = "num_q num_ret num_rel num_rel_ret map gm_map Rprec bpref recip_rank iprec_at_recall P"
SETS = {
    "official": OFFICIAL,
    "all_trec": OFFICIAL
    + " recall map_cut ndcg ndcg_cut success set_P set_relative_P set_recall set_map set_F"
    + " 11pt_avg Rprec_mult num_nonrel_judged_ret",
    "set": "num_q num_ret num_rel num_rel_ret set_P set_recall set_map set_F set_relative_P",
}


def meant_by(name: str) -> list[str] | None:
    """Our texts for a trec_eval name, such as `ndcg_cut_10`, `P.5,10` or `official`; None if it is none."""
    if name in SETS:
        return [text for member in SETS[name].split() for text in _whole(member)]
    if name in NAMES and name not in OURS:
        return _whole(name)
    for trec, (text, _) in NAMES.items():
        if (values := _values(name, trec)) and "{}" in text:
            return [text.format(value) for value in values]
    return None


def _whole(name: str) -> list[str]:
    """What the bare name stands for: one measure, or one per default parameter."""
    text, defaults = NAMES[name]
    return [text.format(value) for value in defaults] if defaults else [text]


def _values(name: str, trec: str) -> list[str] | None:
    match = re.fullmatch(re.escape(trec) + r"[._]((?:\.?[0-9][0-9.]*)(?:,\.?[0-9][0-9.]*)*)", name)
    return match.group(1).split(",") if match else None


def examples() -> list[str]:
    """trec_eval names to suggest for a mistyped one."""
    return list(NAMES)


FORMATS: dict[str, Callable[[str], str]] = {
    "iprec_at_recall": lambda value: f"{float(value):.2f}",
    "Rprec_mult": lambda value: f"{float(value):.2f}",
}


def trec_name(text: str) -> str:
    """trec_eval's name of the measure with this canonical text; the text itself where it has none."""
    if text == "SetF":
        return "set_F"
    for trec, (pattern, _) in NAMES.items():
        match = re.fullmatch(re.escape(pattern).replace(r"\{\}", "([0-9.]+)"), text)
        if match:
            value = "".join(match.groups())
            return f"{trec}_{FORMATS.get(trec, str)(value)}" if value else trec
    return text
