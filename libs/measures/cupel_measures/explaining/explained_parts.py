"""Names of the parts of an explanation."""

from collections.abc import Mapping

ABOUT: Mapping[str, str] = {
    "ties": "the least, expected and greatest value over all orders of documents with equal scores",
    "judgments": "the share of unjudged documents, and the value if all of them had the highest label",
    "scale": "the scale type, the operations it allows, and a warning if the aggregate is not one of them",
    "parts": "the contribution of each aspect or label class to a measure that combines aspects",
    "profiles": "the changes of the score under every other profile",
}
"""The parts of an explanation, with a description of each."""
