"""What documents are worth to a measure: by it the best and the worst of their orders are found."""

import numpy as np

from cupel_measures.explaining.tie_orders import Keys
from cupel_measures.families.multiaspect import inner, weighed
from cupel_measures.grammar.measure import Measure
from cupel_measures.grammar.registry import SWAP
from cupel_measures.scoring.gains import table
from cupel_measures.scoring.pool import Pool
from cupel_measures.scoring.subtopics import SubtopicPool
from cupel_measures.scoring.view import AspectView

LEAST = -9
"""Below every state of a label."""


def worths(view: AspectView, measure: Measure, aspect: str | None = None) -> Keys | None:
    """Numbers per pooled document such that a better swap by all of them never lowers the measure's value.

    measure: bound. None where there are none: the measure is exempt from that law, or compares labels of
    documents in a way of its own.
    """
    declaration, arguments = measure.declaration, measure.arguments
    if SWAP in declaration.exempt:
        return None
    if declaration.subtopics:
        return _by_subtopic(view.by_subtopic.pool, arguments["rel"])
    if declaration.worth is not None:
        return [declaration.worth(view, **arguments)]
    if declaration.combination == "classes":
        return _in_pool(arguments["of"], weighed(view, **arguments))
    if declaration.combination is not None:
        found = [worths(view, inner(arguments["of"], name), name) for name in arguments["aspects"]]
        return None if None in found else [key for keys in found for key in keys or ()]
    if declaration.combines:
        return None
    return _in_pool(measure, view.pool(aspect or arguments["aspect"] or view.qrels.aspects[0].name))


def _in_pool(measure: Measure, pool: Pool) -> Keys:
    """The labels, and the gains where others are given: only documents better by both are surely better."""
    arguments = measure.arguments
    keys: Keys = [pool.labels]
    if arguments.get("gains"):
        keys = [pool.labels, pool.gains(table(pool.aspect, arguments["gains"]))]
    if not arguments.get("judged_only"):
        return keys
    return [np.where(pool.judged, key, LEAST) for key in keys]


def _by_subtopic(pool: SubtopicPool, rel: int | None) -> Keys:
    """Whether a document is judged, and whether it is relevant to the first subtopic of its topic, ..."""
    relevance = pool.relevance(rel)
    document = np.repeat(np.arange(len(pool.topic_of)), np.diff(relevance.starts))
    first = np.searchsorted(relevance.topic, relevance.topic)
    place = (np.arange(len(relevance.topic)) - first)[relevance.slot]
    relevant = np.zeros((int(place.max(initial=-1)) + 1, len(pool.topic_of)), dtype=np.int8)
    relevant[place, document] = 1
    return [pool.judged.astype(np.int8), *relevant]
