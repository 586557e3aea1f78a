"""Tests of the edge cases of all measures except LMD (see test_document_content.py)."""

import math
from collections.abc import Mapping

import pytest

from cupel_measures.model import Aspect, Qrels
from support.data.small_collections import Scored, qrels_of, ranked, scores_of

GAINS = ("nDCG", "nDCG@3", "AP", "TOMA(of=nDCG)", "TOMA(of=AP)", "CAM(of=nDCG)", "CAM(of=AP)", "MM(of=nDCG)")
DEGREES = (
    "P@3",
    "R@3",
    "F@3",
    "gP@3",
    "gR@3",
    "gRBP",
    "DCG",
    "DCG(base=2)@3",
    "ERR",
    "ERR(max_gain=scale)@3",
)
ORDERS = ("SBTO@3", "RBTO@3")
H_FAMILY = ("uRBP", "uRBPgr", "RBP_u", "H")
ERRORS = ("NLRE", "NGRE")
SUBTOPICS = ("alpha_nDCG@3", "ERR_IA@3", "NRBP")
COLUMNS = {
    "gains": GAINS,
    "degrees": DEGREES,
    "orders": ORDERS,
    "H": H_FAMILY,
    "errors": ERRORS,
    "NWCS": ("NWCS",),
    "subtopics": SUBTOPICS,
}
CELLS = [(column, text) for column, texts in COLUMNS.items() for text in texts]
every_measure = pytest.mark.parametrize(("column", "text"), CELLS)

RELEVANCE, EASE = Aspect(name="relevance", labels=range(4)), Aspect(name="ease", labels=range(3))
Grades = Mapping[str, tuple[int, int]]


def collection(grades: Grades) -> Qrels:
    """Return the judgments of one topic.

    grades: for each document, its grades of relevance and ease. A document with a positive grade of relevance
    is relevant to the subtopic s, which all share, and to a subtopic of its own.
    """
    return qrels_of(
        {
            aspect: {"1": {d: pair[i] for d, pair in grades.items()}}
            for i, aspect in enumerate((RELEVANCE, EASE))
        },
        subtopics={"1": {d: {"s": pair[0], f"of {d}": pair[0]} for d, pair in grades.items()}},
    )


def value(text: str, run: Scored, qrels: Qrels) -> float:
    """Return the score of a run on a collection of one topic."""
    [[score]] = scores_of(text, run, qrels).values()
    return score


class TestEdgeCaseTable:
    """A test for each edge case, with every measure."""

    good: Grades = {"a": (2, 1), "b": (1, 2), "z": (0, 0)}  # noqa: RUF012

    @every_measure
    def test_topic_without_relevant_documents(self, column: str, text: str) -> None:
        qrels = collection({"y": (0, 0), "z": (0, 0)})
        expected = 1.0 if column == "errors" else 0.0  # all labels are equal, so there are no errors
        assert value(text, {"1": ranked("y", "x", "z")}, qrels) == expected

    @pytest.mark.parametrize("text", ERRORS)
    def test_rank_errors_without_relevant_documents_count_other_labels(self, text: str) -> None:
        qrels = collection({"y": (0, 0), "z": (0, 2)})
        assert value(text, {"1": ranked("z", "y")}, qrels) == 1.0
        assert value(text, {"1": ranked("y", "z")}, qrels) < 1.0

    @every_measure
    def test_empty_run_scores_0(self, column: str, text: str) -> None:
        assert value(text, {"1": {}}, collection(self.good)) == 0.0, column

    @every_measure
    def test_run_of_a_single_document(self, column: str, text: str) -> None:
        score = value(text, {"1": ranked("a")}, collection(self.good))
        assert score == (1.0 if column in ("errors", "NWCS") else pytest.approx(SINGLE[text], abs=1e-12))
        without = value(text, {"1": ranked("z")}, collection(self.good))
        assert without == (1.0 if column == "errors" else 0.0)

    @every_measure
    @pytest.mark.parametrize("order", ["uab", "aub", "abu"])
    def test_unjudged_document_has_the_lowest_label(self, column: str, text: str, order: str) -> None:
        qrels = collection(self.good)
        unjudged, lowest = (value(text, {"1": ranked(*order.replace("u", d))}, qrels) for d in "uz")
        assert unjudged == lowest, column

    @every_measure
    @pytest.mark.parametrize("order", ["nab", "anb", "abn"])
    def test_negative_grade_is_the_lowest_label(self, column: str, text: str, order: str) -> None:
        qrels = collection({**self.good, "n": (-2, -1)})
        negative, lowest = (value(text, {"1": ranked(*order.replace("n", d))}, qrels) for d in "nz")
        assert negative == lowest, column

    @every_measure
    def test_complete_run_of_equally_good_documents(self, column: str, text: str) -> None:
        score = value(text, {"1": ranked("a", "b")}, collection({"a": (1, 1), "b": (1, 1)}))
        is_ideal = column in ("errors", "NWCS") or text in COMPLETE
        assert score == 1.0 if is_ideal else score > 0

    @every_measure
    def test_topic_missing_from_the_run_scores_0(self, column: str, text: str) -> None:
        assert value(text, {}, collection(self.good)) == 0.0, column
        assert value(text, {"9": ranked("a")}, collection(self.good)) == 0.0, column

    @every_measure
    def test_topic_missing_from_the_judgments_is_ignored(self, column: str, text: str) -> None:
        qrels, run = collection(self.good), {"1": ranked("b", "a")}
        more = {**run, "0": ranked("a", "b"), "2": ranked("z")}
        assert value(text, more, qrels) == value(text, run, qrels), column


COMPLETE = (
    "nDCG",
    "nDCG@3",
    "AP",
    "TOMA(of=nDCG)",
    "TOMA(of=AP)",
    "CAM(of=nDCG)",
    "CAM(of=AP)",
    "MM(of=nDCG)",
)
"""The measures of other columns that give a complete run of equally good documents a score of 1."""

SECOND = 1 / math.log2(3)
RELEVANT, EASY = 2 / (2 + SECOND), 1 / (2 + SECOND)
"""nDCG of the run (a) by aspect: the gains of a and b are 2, 1 for relevance and 1, 2 for ease."""
# The classes of the 4 x 3 labels have the squared distances 13 10 9 8 5 4 2 1 0 from (3, 2). That of a = (2,
# 1) is 2, and that of b = (1, 2) is 4.
CLASS = {"a": 6, "b": 5}
SINGLE = {
    "nDCG": RELEVANT,
    "nDCG@3": RELEVANT,
    "AP": 1 / 2,
    "TOMA(of=nDCG)": CLASS["a"] / (CLASS["a"] + CLASS["b"] * SECOND),
    "TOMA(of=AP)": 1 / 2,  # a and b are in the better half of the 9 classes
    "CAM(of=nDCG)": (RELEVANT + EASY) / 2,
    "CAM(of=AP)": 1 / 2,
    "MM(of=nDCG)": 2 / (1 / RELEVANT + 1 / EASY),
    "P@3": 1 / 3,
    "R@3": 1 / 2,
    "F@3": 2 / 5,
    "gP@3": 2 / 9,
    "gR@3": 2 / 9,
    "gRBP": 2 / 3 * 2 / 3,
    "DCG": 2,
    "DCG(base=2)@3": 2,
    "ERR": 3 / 16,
    "ERR(max_gain=scale)@3": 3 / 8,
    "SBTO@3": math.comb(4, 3),
    "RBTO@3": 2 * 4**2,
    "uRBP": 0.2,
    "uRBPgr": 0.2 / 2,
    "RBP_u": 0.2,
    "H": 0.2,
    "alpha_nDCG@3": 2 / (2 + 1.5 * SECOND),
    "ERR_IA@3": 2 / (3 * (1 + 1 / 4 + 1 / 12)),
    "NRBP": 0.75 / 3 * 2,
}
"""The scores of the run (a), computed by hand."""
