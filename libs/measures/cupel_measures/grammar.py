"""Measures by their text: `nDCG@10`, `AP(rel=2)`, `TOMA(of=nDCG@10)`, and trec_eval's names.

Importing this module declares every measure.
"""

from functools import lru_cache

import cupel_measures.content
import cupel_measures.diversity
import cupel_measures.ideals
import cupel_measures.multiaspect
import cupel_measures.ranked
import cupel_measures.rankerror
import cupel_measures.scales
import cupel_measures.sets
import cupel_measures.understandability
import cupel_measures.users  # noqa: F401  (each declares its measures)
from cupel_measures import trec_names
from cupel_measures.measure import Measure, measure_of
from cupel_measures.registry import DECLARATIONS, Declaration
from cupel_measures.syntax import MeasureError, read, split

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
