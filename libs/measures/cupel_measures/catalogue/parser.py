"""Measures by their text: `nDCG@10`, `AP(rel=2)`, `TOMA(of=nDCG@10)`, and trec_eval's names.

Importing this module declares every measure.
"""

from functools import lru_cache

import cupel_measures.families.diversity
import cupel_measures.families.document_content
import cupel_measures.families.ideal_rankings
import cupel_measures.families.interval_scale
import cupel_measures.families.multiaspect
import cupel_measures.families.rank_errors
import cupel_measures.families.ranked
import cupel_measures.families.set_based
import cupel_measures.families.understandability
import cupel_measures.families.user_models  # noqa: F401  (each declares its measures)
from cupel_measures.grammar import trec_names
from cupel_measures.grammar.measure import Measure, measure_of
from cupel_measures.grammar.registry import DECLARATIONS, Declaration
from cupel_measures.grammar.syntax import MeasureError, read, split

__all__ = ["Measure", "MeasureError", "all_declarations", "parse", "parse_many"]


def parse(text: str) -> Measure:
    """The measure that `text` says; MeasureError says in one sentence what is wrong with it."""
    found = _piece(text.strip())
    if len(found) != 1:
        raise MeasureError(f"{text.strip()!r} stands for {len(found)} measures; one is expected here")
    return found[0]


def parse_many(text: str) -> tuple[Measure, ...]:
    """The different measures of a list split at spaces; a trec_eval name may stand for several."""
    found = (measure for piece in split(text) for measure in _piece(piece))
    return tuple(dict.fromkeys(found))


@lru_cache(maxsize=4096)
def _piece(text: str) -> tuple[Measure, ...]:
    if (meant := trec_names.meant_by(text)) is not None:
        return tuple(parse(one) for one in meant)
    if (why := trec_names.refused(text)) is not None:
        raise MeasureError(why)
    return (measure_of(read(text)),)


def all_declarations() -> tuple[Declaration, ...]:
    """Every declared measure, by name."""
    return tuple(DECLARATIONS[name] for name in sorted(DECLARATIONS, key=str.lower))
