"""Tests of the error messages for invalid measures and for measures that a collection does not support.

A message is one sentence that says what is wrong, where, and what would be right. Some measures that look
impossible are valid, and have a score.
"""

import itertools
import math
import re
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import pytest
from click.testing import CliRunner

from cupel_client.main import cli
from cupel_measures.catalogue.parser import parse
from cupel_measures.families import label_classes
from cupel_measures.grammar.syntax import MeasureError
from cupel_measures.model import Aspect, LabelSet, Qrels
from cupel_measures.scoring.evaluator import check
from support.data.error_sentences import INVALID_MEASURES, UNSUPPORTED_MEASURES
from support.data.small_collections import diverse, qrels_of, ranked, score_of


@pytest.mark.parametrize("text", INVALID_MEASURES)
def test_invalid_measure_has_its_error_message(text: str) -> None:
    with pytest.raises(MeasureError) as problem:
        parse(text)
    assert str(problem.value) == INVALID_MEASURES[text]


LONG_WORD = "x" * 3900
SHOWN = "x" * 100 + "..."
HUGE = {
    f"AP@{'9' * 30}": f"'AP@{'9' * 30}', column 4: expected a whole number of at most 18 digits",
    f"AP(rel={'1' * 5000})": (
        f"'AP(rel={'1' * 93}...', column 4001: expected a measure of at most 4,000 characters"
    ),
    "AP" * 1_000_000: f"'{'AP' * 50}...', column 4001: expected a measure of at most 4,000 characters",
    "CAM(of=" * 40 + "AP" + ")" * 40: (
        f"'{('CAM(of=' * 15)[:100]}...', column 148: expected fewer nested values, found 'CAM'"
    ),
    f"AP(aspect={'[' * 25}{']' * 25})": (
        f"'AP(aspect={'[' * 25}{']' * 25})', column 31: expected fewer nested values, found '['"
    ),
    LONG_WORD: f"unknown measure '{SHOWN}'; `cupel measures` lists all measures",
    f"AP({LONG_WORD}=1)": f"AP has no parameter '{SHOWN}'; it takes cutoff, rel, judged_only, aspect",
    f"TOMA(of=AP,distance={LONG_WORD})": (
        f"TOMA: distance: expected euclidean, manhattan or chebyshev, got {SHOWN}"
    ),
    f"AP@{LONG_WORD}": f"AP: cutoff: expected a rank cutoff: a whole number from 1, got {SHOWN}",
}


@pytest.mark.parametrize("text", HUGE, ids=range(len(HUGE)))
def test_huge_text_has_a_short_error_message(text: str) -> None:
    with pytest.raises(MeasureError) as problem:
        parse(text)
    assert str(problem.value) == HUGE[text]


RELEVANCE, CREDIBILITY = (
    Aspect(name="relevance", labels=range(4)),
    Aspect(name="credibility", labels=("nc", "pc", "c")),
)
POSSIBLE = LabelSet(("relevance", "credibility"), frozenset([(0, 0), (1, 1)]))
LONG_ASPECTS = (
    Aspect(name="a", labels=range(2001)),
    Aspect(name="b", labels=range(2001)),
    Aspect(name="c", labels=range(0, 2001, 2)),
)
COLLECTIONS: dict[str, Qrels] = {
    "two": qrels_of({RELEVANCE: {"1": {"a": 1}}, CREDIBILITY: {"1": {"a": 1}}}, {"possible": POSSIBLE}),
    "one": qrels_of({Aspect(name="relevance", labels=range(3)): {"1": {"a": 1}}}),
    "sub": diverse({"1": {"a": {"s": 1}}}),
    "flat": qrels_of({Aspect(name="flat", labels=range(2), declared_embedding=(1, 1)): {"1": {"a": 1}}}),
    "long": qrels_of({aspect: {"1": {"x": 1}} for aspect in LONG_ASPECTS}),
}
"""Collections: two aspects; one aspect; judgments by subtopic only; one class; three long scales."""


@pytest.mark.parametrize(("name", "text"), UNSUPPORTED_MEASURES)
def test_unsupported_measure_has_its_error_message(name: str, text: str) -> None:
    with pytest.raises(MeasureError) as problem:
        check(COLLECTIONS[name], [parse(text)])
    assert str(problem.value) == UNSUPPORTED_MEASURES[name, text]


def test_every_error_message_is_one_sentence() -> None:
    sentences = [*INVALID_MEASURES.values(), *HUGE.values(), *UNSUPPORTED_MEASURES.values()]
    assert len(sentences) > 150
    for sentence in sentences:
        assert "\n" not in sentence
        assert sentence.endswith("...") or not sentence.endswith(".")
        assert len(sentence) < 400
        assert not re.search(r"Traceback|Error\b|None|<|object at", sentence), sentence


def test_long_aspect_name_is_shortened_in_the_error_message() -> None:
    with pytest.raises(MeasureError) as problem:
        check(COLLECTIONS["two"], [parse(f"AP(aspect={LONG_WORD})")])
    assert str(problem.value) == (
        f"AP(aspect={'x' * 90}...: the collection has no aspect '{SHOWN}'; it has relevance, credibility"
    )


class TestUnusualMeasures:
    """Measures that look impossible but are valid."""

    @pytest.mark.parametrize("distance", ["euclidean", "manhattan", "chebyshev"])
    def test_toma_on_long_scales_equals_enumeration(self, distance: str) -> None:
        """Compare with weights from an enumeration of all 101 x 101 x 3 = 30,603 tuples."""
        best = (100, 100, 2)
        documents = {"best": best, "good": (97, 96, 1), "fair": (95, 100, 2), "bad": (0, 0, 0)}
        scales = [Aspect(name=name, labels=range(top + 1)) for name, top in zip("abc", best, strict=True)]
        judged = {s: {"1": {d: labels[i] for d, labels in documents.items()}} for i, s in enumerate(scales)}
        order = ("fair", "u", "bad", "best", "good")

        def distance_of(labels: Sequence[int]) -> int:
            return DISTANCES[distance]([top - label for top, label in zip(best, labels, strict=True)])

        distances = sorted(
            {distance_of(labels) for labels in itertools.product(*(range(top + 1) for top in best))}
        )
        weight = {
            d: len(distances) - 1 - distances.index(distance_of(labels)) for d, labels in documents.items()
        }
        dcg = sum(weight.get(d, 0) / math.log2(rank + 1) for rank, d in enumerate(order, 1))
        ideal = sum(w / math.log2(r + 1) for r, w in enumerate(sorted(weight.values(), reverse=True), 1))
        value = score_of(f"TOMA(of=nDCG,distance={distance})", {"1": ranked(*order)}, qrels_of(judged))
        assert value == pytest.approx(dcg / ideal, abs=1e-12)

    def test_toma_sums_far_fewer_distances_than_tuples(self) -> None:
        scales = [Aspect(name=name, labels=range(n)) for name, n in (("a", 101), ("b", 101), ("c", 3))]
        for distance, most in (("euclidean", 12_000), ("manhattan", 612), ("chebyshev", 404)):
            table = label_classes.deviations(scales[:2], {}, distance)
            steps = len(set(label_classes.deviations(scales[2:], {}, distance)[0]))
            # the sums for the last aspect: the distances so far times its number of steps
            assert len(label_classes.all_distances(table, distance)) * steps < most < 101 * 101 * 3

    def test_toma_score_does_not_depend_on_scale_length(self) -> None:
        for top in (1, 100):
            scales = [Aspect(name=name, labels=range(top + 1)) for name in "ab"]
            qrels = qrels_of({scale: {"1": {"x": top, "y": 0}} for scale in scales})
            assert score_of("TOMA(of=AP)", {"1": ranked("x", "y")}, qrels) == 1.0

    @pytest.mark.parametrize(
        "text", ["P@999999999999999999", "R@999999999999999999", "nDCG@999999999999999999"]
    )
    def test_huge_cutoff_is_accepted(self, text: str) -> None:
        qrels = qrels_of({"1": {"a": 1}})
        value = score_of(text, {"1": ranked("a")}, qrels)
        assert value == {"P": 1e-18, "R": 1.0, "n": 1.0}[text[0]]

    def test_weights_of_any_notation_may_sum_to_1(self) -> None:
        qrels = COLLECTIONS["two"]
        for weights in (
            "{relevance:1/3,credibility:2/3}",
            "{relevance:.1,credibility:9e-1}",
            "{relevance:1}",
        ):
            check(qrels, [parse(f"CAM(of=AP,weights={weights})")])
        assert Fraction(1, 3) in dict(parse("CAM(of=AP,weights={a:1/3,b:2/3})").arguments["weights"]).values()


def _squares(steps: Sequence[int]) -> int:
    return sum(step * step for step in steps)


DISTANCES = {"euclidean": _squares, "manhattan": sum, "chebyshev": max}
"""The distance to the best labels (Maistro et al., CIKM 2021, section 3.2)."""


class TestCommandLine:
    """The same messages from `cupel evaluate`."""

    @pytest.fixture
    def folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "qrels").write_text("1 0 a 1\n1 0 b 0\n")
        (tmp_path / "by_subtopic").write_text("1 s a 1\n")
        (tmp_path / "run").write_text("1 Q0 a 1 2 r\n1 Q0 b 2 1 r\n")
        (tmp_path / "sub.yaml").write_text(
            "aspects: {rel: {labels: [0, 1]}}\nqrels: [{file: by_subtopic, layout: subtopics}]\n"
        )
        monkeypatch.chdir(tmp_path)

    @pytest.mark.usefixtures("folder")
    @pytest.mark.parametrize(
        ("qrels", "measures", "sentence"),
        [
            ("qrels", "nDCG@0", INVALID_MEASURES["nDCG@0"]),
            ("qrels", "AP ndgc@10", INVALID_MEASURES["ndgc@10"]),
            ("qrels", "AP@", INVALID_MEASURES["AP@"]),
            ("qrels", "RBP(p=1)", INVALID_MEASURES["RBP(p=1)"]),
            ("qrels", "TOMA(of=AP,distance=cosine)", INVALID_MEASURES["TOMA(of=AP,distance=cosine)"]),
            ("qrels", "prefs_simp", INVALID_MEASURES["prefs_simp"]),
            ("qrels", "NLRE", UNSUPPORTED_MEASURES["one", "NLRE"]),
            ("qrels", "alpha_nDCG@10", UNSUPPORTED_MEASURES["two", "alpha_nDCG@10"]),
            ("qrels", "AP(aspect=x)", "AP(aspect=x): the collection has no aspect 'x'; it has relevance"),
            ("sub.yaml", "Compat", UNSUPPORTED_MEASURES["sub", "Compat"]),
        ],
    )
    def test_evaluate_prints_the_message_and_exits_with_2(
        self, qrels: str, measures: str, sentence: str
    ) -> None:
        done = CliRunner().invoke(cli, ["evaluate", qrels, "run", "-m", measures])
        assert done.exit_code == 2
        assert sentence in done.stderr
        assert done.stdout == ""
