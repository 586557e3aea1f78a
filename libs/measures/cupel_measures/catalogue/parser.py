"""Parser of measure texts and of trec_eval's names.

Measure texts are such as `nDCG@10`, `AP(rel=2)` and `TOMA(of=nDCG@10)`.

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
    """Return the measure that `text` names. Raise MeasureError if the text is invalid."""
    measures = _measures(text.strip())
    if len(measures) != 1:
        raise MeasureError(f"{text.strip()!r} is a list of {len(measures)} measures; name one of them")
    return measures[0]


def parse_many(text: str) -> tuple[Measure, ...]:
    """Return the distinct measures of a list separated by spaces or commas.

    A trec_eval name can stand for several measures.
    """
    measures = (measure for piece in split(text) for measure in _measures(piece))
    return tuple(dict.fromkeys(measures))


@lru_cache(maxsize=4096)
def _measures(text: str) -> tuple[Measure, ...]:
    if (translated := trec_names.translate(text)) is not None:
        return tuple(parse(name) for name in translated)
    if (reason := trec_names.refusal(text)) is not None:
        raise MeasureError(reason)
    return (measure_of(read(text)),)


def all_declarations() -> tuple[Declaration, ...]:
    """Return all declared measures, sorted by name."""
    return tuple(DECLARATIONS[name] for name in sorted(DECLARATIONS, key=str.lower))
