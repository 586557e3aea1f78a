"""Tests of CAM, MM and TOMA, and of the nDCG and AP in them, on worked examples to 6 decimals."""

import pytest

from cupel_measures.grammar.syntax import MeasureError
from cupel_measures.model import Aspect, LabelSet
from support.data.small_collections import qrels_of, ranked, score_of

CLOSE = 6e-7  # values are printed to 6 decimals


class TestSingleAspectExample:
    """An example with the judgments a=3, b=0, c=1, d=-2, e=2."""

    qrels = qrels_of({"1": {"a": 3, "b": 0, "c": 1, "d": -2, "e": 2}})

    @pytest.mark.parametrize(
        ("run", "expected"),
        [
            ("cxaed", (0.705891, 0.234639, 0.805556, 0.333333)),
            ("aec", (1.0, 1.0, 1.0, 0.666667)),
            ("", (0, 0, 0, 0)),
            ("xy", (0, 0, 0, 0)),
        ],
    )
    def test_ndcg_and_ap_equal_the_worked_values(self, run: str, expected: tuple[float, ...]) -> None:
        scores = [
            score_of(text, {"1": ranked(*run)}, self.qrels) for text in ("nDCG", "nDCG@2", "AP", "AP@2")
        ]
        assert scores == pytest.approx(expected, abs=CLOSE)


RELEVANCE, CORRECTNESS = ("nr", "mr", "fr", "hr"), ("nc", "pc", "c")
POSSIBLE = LabelSet(
    ("relevance", "correctness"),
    frozenset((r, c) for r in range(4) for c in range(3)) - {(0, 1), (0, 2)},
)
DOCUMENTS = {"d1": (1, 2), "d2": (3, 1), "d3": (3, 0)}

# (run, mu) -> s_rel, s_cor, CAM, MM, EUCL, MANH, CHEB
TABLE_3 = {
    ("d1 d2 d3", "nDCG"): (0.814567, 1.000000, 0.907284, 0.897809, 0.936666, 0.971134, 0.859719),
    ("d1 d2 d3", "AP"): (0.583333, 1.000000, 0.791667, 0.736842, 1.000000, 1.000000, 0.500000),
    ("d2 d1 d3", "nDCG"): (0.951443, 0.859719, 0.905581, 0.903258, 1.000000, 1.000000, 1.000000),
    ("d2 d1 d3", "AP"): (0.833333, 0.500000, 0.666667, 0.625000, 1.000000, 1.000000, 1.000000),
    ("d1 d3", "nDCG"): (0.536418, 0.760188, 0.648303, 0.628994, 0.591420, 0.666667, 0.380094),
    ("d1 d3", "AP"): (0.250000, 1.000000, 0.625000, 0.400000, 0.500000, 0.500000, 0.000000),
    ("d1", "nDCG"): (0.185433, 0.760188, 0.472810, 0.298140, 0.429013, 0.469279, 0.380094),
    ("d1", "AP"): (0.000000, 1.000000, 0.500000, 0.000000, 0.500000, 0.500000, 0.000000),
}


class TestMultiAspectExample:
    """The example of Maistro et al., CIKM 2021, section 4.2, with aspects relevance and correctness."""

    aspects = (
        Aspect(name="relevance", labels=RELEVANCE, threshold=2, declared_gains=(0, 5, 10, 15)),
        Aspect(
            name="correctness",
            labels=CORRECTNESS,
            threshold=2,
            declared_gains=(0, 5, 10),
            declared_embedding=(0, 1.5, 3),
        ),
    )
    qrels = qrels_of(
        {
            aspect: {"1": {document: labels[place] for document, labels in DOCUMENTS.items()}}
            for place, aspect in enumerate(aspects)
        },
        {"possible": POSSIBLE},
    )

    @pytest.mark.parametrize(("run", "mu"), TABLE_3)
    def test_scores_equal_table_3(self, run: str, mu: str) -> None:
        toma = "TOMA(of={},distance={},label_set=possible)"
        texts = [
            f"{mu}(aspect=relevance)",
            f"{mu}(aspect=correctness)",
            f"CAM(of={mu})",
            f"MM(of={mu})",
            *(toma.format(mu, distance) for distance in ("euclidean", "manhattan", "chebyshev")),
        ]
        scores = [score_of(text, {"1": ranked(*run.split())}, self.qrels) for text in texts]
        assert scores == pytest.approx(TABLE_3[run, mu], abs=CLOSE)

    def test_weights_change_cam_and_mm(self) -> None:
        run = {"1": ranked("d1", "d2", "d3")}
        weights = "weights={relevance:0.7,correctness:0.3}"
        scores = [score_of(f"{name}(of=nDCG,{weights})", run, self.qrels) for name in ("CAM", "MM")]
        assert scores == pytest.approx((0.870197, 0.862551), abs=CLOSE)

    def test_toma_rejects_judged_tuple_outside_the_label_set(self) -> None:
        judged = {self.aspects[0]: {"1": {"d": 0}}, self.aspects[1]: {"1": {"d": 2}}}
        with pytest.raises(MeasureError, match="the declared label set does not contain"):
            score_of("TOMA(of=AP,label_set=possible)", {}, qrels_of(judged, {"possible": POSSIBLE}))

    @pytest.mark.parametrize(
        ("distance", "classes"), [("euclidean", 10), ("manhattan", 10), ("chebyshev", 5)]
    )
    def test_toma_number_of_classes_equals_the_paper(self, distance: str, classes: int) -> None:
        text = f"TOMA(of=nDCG,distance={distance},label_set=possible,weighting=[1])"
        with pytest.raises(MeasureError, match=f"has 1 weights for {classes} classes"):
            score_of(text, {}, self.qrels)

    @pytest.mark.parametrize(
        ("weighting", "distance", "printed"),
        [
            ("step1", "euclidean", (5, 7, 3)),
            ("step1", "manhattan", (6, 7, 4)),
            ("step1", "chebyshev", (1, 2, 0)),
            ("top_half", "euclidean", (1, 1, 0)),
            ("top_half", "manhattan", (1, 1, 0)),
            ("top_half", "chebyshev", (0, 1, 0)),
        ],
    )
    def test_toma_weights_of_documents_equal_the_paper(
        self, weighting: str, distance: str, printed: tuple[int, ...]
    ) -> None:
        # For a run of one document, DCG is the weight of the document.
        text = f"TOMA(of=DCG,distance={distance},weighting={weighting},label_set=possible)"
        scores = [score_of(text, {"1": ranked(document)}, self.qrels) for document in DOCUMENTS]
        assert tuple(scores) == printed

    def test_toma_ap_with_positive_weighting_is_equal_for_euclidean_and_manhattan(self) -> None:
        """The statement of the paper holds for `positive`, not for `top_half` (READINGS.md, reading 3)."""
        judged = {"d1": (0, 1), "d2": (2, 2), "d3": (3, 0), "d4": (0, 0), "d5": (1, 1)}
        qrels = qrels_of(
            {
                aspect: {"1": {d: labels[i] for d, labels in judged.items()}}
                for i, aspect in enumerate(self.aspects)
            }
        )
        values = {
            (weighting, distance): score_of(
                f"TOMA(of=AP,distance={distance},weighting={weighting})",
                {"1": ranked("d4", "d1", "d3", "d5", "d2")},
                qrels,
            )
            for weighting in ("positive", "top_half")
            for distance in ("euclidean", "manhattan")
        }
        assert values["positive", "euclidean"] == values["positive", "manhattan"]
        assert values["top_half", "euclidean"] != values["top_half", "manhattan"]
