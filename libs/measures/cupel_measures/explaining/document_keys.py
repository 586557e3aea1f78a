"""Sort keys of documents, for the best and the worst order of tied documents.

The keys depend on the measure.
"""

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
"""Sort key of an unjudged document, less than NEGATIVE, UNJUDGED, ABSENT and every label index."""


def document_keys(view: AspectView, measure: Measure, aspect: str | None = None) -> Keys | None:
    """Return sort keys of the pooled documents, with larger keys for better documents.

    If a document moves above another one that is not better by any key, the value of the bound measure does
    not fall. Return None if the measure has no such keys.
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
        by_aspect = [document_keys(view, inner(arguments["of"], name), name) for name in arguments["aspects"]]
        return None if None in by_aspect else [key for keys in by_aspect for key in keys or ()]
    if declaration.combines:
        return None
    return _in_pool(measure, view.pool(aspect or arguments["aspect"] or view.qrels.aspects[0].name))


def _in_pool(measure: Measure, pool: Pool) -> Keys:
    """Return the labels as a key.

    If the measure has the parameter `gains`, the gains are a second key.

    The order of these gains can differ from that of the labels.
    """
    arguments = measure.arguments
    keys: Keys = [pool.labels]
    if arguments.get("gains"):
        keys = [pool.labels, pool.gains(table(pool.aspect, arguments["gains"]))]
    if not arguments.get("judged_only"):
        return keys
    return [np.where(pool.judged, key, LEAST) for key in keys]


def _by_subtopic(pool: SubtopicPool, rel: int | None) -> Keys:
    """Return a key for judged documents, and a key for each subtopic of a topic.

    The first key is 1 for a judged document. Each other key is 1 for a document that is relevant to its
    subtopic.
    """
    relevance = pool.relevance(rel)
    document = np.repeat(np.arange(len(pool.topic_of)), np.diff(relevance.starts))
    first = np.searchsorted(relevance.topic, relevance.topic)
    place = (np.arange(len(relevance.topic)) - first)[relevance.slot]
    relevant = np.zeros((int(place.max(initial=-1)) + 1, len(pool.topic_of)), dtype=np.int8)
    relevant[place, document] = 1
    return [pool.judged.astype(np.int8), *relevant]
