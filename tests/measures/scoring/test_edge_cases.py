"""Edge cases of all measures except LMD, which has its own tests."""

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

RELEVANCE, EASE = Aspect("relevance", range(4)), Aspect("ease", range(3))
Grades = Mapping[str, tuple[int, int]]


def collection(grades: Grades) -> Qrels:
    """One topic; a document with a positive grade is relevant to subtopic s, and to one of its own."""
    return qrels_of(
        {aspect: {"1": {d: of[i] for d, of in grades.items()}} for i, aspect in enumerate((RELEVANCE, EASE))},
        subtopics={"1": {d: {"s": of[0], f"of {d}": of[0]} for d, of in grades.items()}},
    )


def value(text: str, run: Scored, qrels: Qrels) -> float:
    [[found]] = scores_of(text, run, qrels).values()
    return found


class TestEdgeCaseTable:
    """One test per edge case, for every measure."""

    good: Grades = {"a": (2, 1), "b": (1, 2), "z": (0, 0)}  # noqa: RUF012

    @every_measure
    def test_no_relevant_document_judged(self, column: str, text: str) -> None:
        qrels = collection({"y": (0, 0), "z": (0, 0)})
        expected = 1.0 if column == "errors" else 0.0  # from the labels: all equal
        assert value(text, {"1": ranked("y", "x", "z")}, qrels) == expected

    @pytest.mark.parametrize("text", ERRORS)
    def test_no_relevant_document_judged_where_other_labels_differ(self, text: str) -> None:
        qrels = collection({"y": (0, 0), "z": (0, 2)})
        assert value(text, {"1": ranked("z", "y")}, qrels) == 1.0
        assert value(text, {"1": ranked("y", "z")}, qrels) < 1.0

    @every_measure
    def test_an_empty_run(self, column: str, text: str) -> None:
        assert value(text, {"1": {}}, collection(self.good)) == 0.0, column

    @every_measure
    def test_a_single_document(self, column: str, text: str) -> None:
        found = value(text, {"1": ranked("a")}, collection(self.good))
        assert found == (1.0 if column in ("errors", "NWCS") else pytest.approx(SINGLE[text], abs=1e-12))
        without = value(text, {"1": ranked("z")}, collection(self.good))
        assert without == (1.0 if column == "errors" else 0.0)

    @every_measure
    @pytest.mark.parametrize("order", ["uab", "aub", "abu"])
    def test_an_unjudged_document_has_the_lowest_label(self, column: str, text: str, order: str) -> None:
        qrels = collection(self.good)
        unjudged, lowest = (value(text, {"1": ranked(*order.replace("u", one))}, qrels) for one in "uz")
        assert unjudged == lowest, column

    @every_measure
    @pytest.mark.parametrize("order", ["nab", "anb", "abn"])
    def test_a_negative_grade_is_the_lowest_label(self, column: str, text: str, order: str) -> None:
        qrels = collection({**self.good, "n": (-2, -1)})
        negative, lowest = (value(text, {"1": ranked(*order.replace("n", one))}, qrels) for one in "nz")
        assert negative == lowest, column

    @every_measure
    def test_all_labels_equal_and_positive(self, column: str, text: str) -> None:
        found = value(text, {"1": ranked("a", "b")}, collection({"a": (1, 1), "b": (1, 1)}))
        one = ("errors", "NWCS")
        assert found == 1.0 if column in one or text in COMPLETE else found > 0

    @every_measure
    def test_a_topic_missing_from_the_run(self, column: str, text: str) -> None:
        assert value(text, {}, collection(self.good)) == 0.0, column
        assert value(text, {"9": ranked("a")}, collection(self.good)) == 0.0, column

    @every_measure
    def test_a_topic_missing_from_the_judgments(self, column: str, text: str) -> None:
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
"""What is 1 where a complete run of equally good documents is ideal."""

SECOND = 1 / math.log2(3)
RELEVANT, EASY = 2 / (2 + SECOND), 1 / (2 + SECOND)
"""nDCG of (a) by aspect: gains 2, 1 of relevance and 1, 2 of ease."""
# classes of 4 x 3 labels by distance from (3, 2): squares 13 10 9 8 5 4 2 1 0; a = (2, 1) 2, b = (1, 2) 4
CLASS = {"a": 6, "b": 5}
SINGLE = {
    "nDCG": RELEVANT,
    "nDCG@3": RELEVANT,
    "AP": 1 / 2,
    "TOMA(of=nDCG)": CLASS["a"] / (CLASS["a"] + CLASS["b"] * SECOND),
    "TOMA(of=AP)": 1 / 2,  # both are in the better half of 9 classes
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
"""The values of the run (a), by hand."""
