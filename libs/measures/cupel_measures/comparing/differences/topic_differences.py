"""Differences between two systems by topic."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cupel_measures.comparing.outcomes import CLOSE
from cupel_measures.model import Floats

MOST_TOPICS = 5
"""Number of topics with the largest differences that are listed for each pair."""


@dataclass(frozen=True)
class TopicDifference:
    """The difference between two systems on one topic."""

    topic: str
    difference: float


def higher_same_lower(differences: Floats) -> tuple[int, int, int]:
    """Return the numbers of positive, zero and negative differences."""
    higher = int(np.count_nonzero(differences >= CLOSE))
    lower = int(np.count_nonzero(differences <= -CLOSE))
    return higher, len(differences) - higher - lower, lower


def largest_differences(topics: Sequence[str], differences: Floats) -> tuple[TopicDifference, ...]:
    """Return the nonzero differences largest in absolute value; ties keep topic order."""
    order = np.argsort(-np.round(np.abs(differences), 12), kind="stable")[:MOST_TOPICS].tolist()
    return tuple(
        TopicDifference(topics[index], float(differences[index]))
        for index in order
        if abs(differences[index]) >= CLOSE
    )
