"""`desiderata`: what is to be wished of a measure of two aspects, tried on random lists (spec 6.6)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import numpy as np

from cupel_audits.analysis.sample_curves import MEASURE
from cupel_audits.declarations import Audit, audit, setting, whole_number
from cupel_audits.kinds.desiderata.desiderata_checks import CHECKS, LABELS, Check, Listed
from cupel_audits.report import AuditReport, Column, Plot, ReportTable
from cupel_audits.subject import AuditSubject, SubjectSummary
from cupel_measures.grammar.measure import Measure
from cupel_measures.grammar.parameters import Whole
from cupel_measures.grammar.syntax import MeasureError
from cupel_measures.model import Aspect, Floats, Ids, Joined, Qrels
from cupel_measures.scoring.evaluator import evaluate

Instances = Annotated[int, whole_number()]
Length = Annotated[int, Whole("a whole number from 3", 3)]

READING = (
    "A check holds where none of the random instances contradicts it: that is no proof. A counterexample is "
    "one, and can be checked by hand; the shortest that was met is shown.",
    "The lists are all there is: every document is judged and ranked, and labels are their own gains, 0 to "
    f"{LABELS - 1}. What a measure makes of documents that are missing is not asked.",
    "Lioma et al. (ICTIR 2017, section 3) wish all of D1 to D8. With stable ties NLRE and NGRE hold all but "
    "D4_literal, the paper's own wording of D4; NWCS holds all but D4 (either way) and D6_one_scale. CAM and "
    "WHAM inherit from what they combine; a mean knows no D4. A measure that does not order lists by their "
    "labels alone, such as one with a binary threshold or without an ideal ranking, is not made for D1 to D3 "
    "and D7.",
)


@audit(
    "desiderata",
    title="Desiderata of measures of two aspects",
    answers="Which of the properties D1 to D8 does a measure of two aspects have, and where does it fail?",
    source="Lioma, Simonsen, Larsen, ICTIR 2017, section 3 (spec 6.6)",
)
class Desiderata(Audit):
    """Tries to refute properties of measures that combine two aspects, on short random lists.

    An error is a document of the aspect's lower label that stands at some rank before better ones, which are
    otherwise in order; its size is how many. What is not said to have an error has one label throughout.

    D1: a larger error of the same documents at the same rank scores strictly lower. D2: the same error one
    rank higher, labels being equally far apart, scores strictly lower. D3: so does an error by a document of
    a lower label, which more documents should stand before. D4: an error in one aspect costs more if there is
    one in the other aspect at the same rank; D4_literal: if all documents have a higher label in the other.
    D5: with equal labels throughout, the score is defined and from 0 to 1; and it is no lower than with
    labels that fall from these on, which are no better and in order: nothing stands wrong. D6: multiplying
    all labels (gains and places) by a number changes nothing; D6_one_scale: those of one aspect. D7: with one
    aspect equal throughout, the score is 1 exactly if the list is sorted by the other. D8: other weights
    change what an error in one aspect costs beside the same error in the other.

    Which of the two aspects has the error is drawn too. It goes by the measures alone: runs and judgments of
    the collection play no part, and all measures see the same lists.
    """

    instances: Instances = setting(200, "random instances of each check")
    length: Length = setting(6, f"documents of the longest list, 3 to {LABELS - 1}")

    def problems(self, subject: AuditSubject) -> Iterator[str]:
        if self.length > LABELS - 1:
            yield f"length: lists have up to {LABELS - 1} documents of different labels, not {self.length}"
        if not any(len(_aspects(measure)) == 2 for measure in subject.measures):
            yield (
                "it is about measures that combine two aspects, and there is none: give one, such as NLRE or "
                "CAM(of=nDCG@10), on a collection of two aspects, or name two of more by aspects=[...]"
            )

    def trials(self, subject: AuditSubject) -> int:
        return len(subject.measures) * len(CHECKS)

    def run_trials(self, subject: AuditSubject, seed: int, trials: Sequence[int]) -> Iterator[Any]:
        checks = list(CHECKS.values())
        for trial in trials:
            measure, number = subject.measures[trial // len(checks)], trial % len(checks)
            chance = self.generator(seed, number)  # by the check: all measures see the same
            found = self._trial(measure, checks[number], chance)
            yield {"measure": str(measure), "check": checks[number].name, **found}

    def _trial(self, measure: Measure, check: Check, chance: np.random.Generator) -> dict[str, Any]:
        names = _aspects(measure)
        if len(names) != 2:
            return _undefined("it combines no two aspects" if len(names) < 2 else "it combines more than two")
        if check.weighs and "weights" not in measure.declaration.parameters:
            return _undefined("it has no weights")
        instances = [check.draw(chance, self.length) for _ in range(self.instances)]
        try:
            scores = _scores(measure, names, [one for instance in instances for one in instance])
        except MeasureError as problem:
            return _undefined(str(problem))
        of_each = scores.reshape(self.instances, -1).tolist()
        failing = [place for place, one in enumerate(of_each) if not check.holds(instances[place], one)]
        shortest = min(failing, key=lambda place: len(instances[place][0].labels[0]), default=None)
        return {
            "undefined": None,
            "instances": self.instances,
            "failing": len(failing),
            "example": None
            if shortest is None
            else [_shown(names, *one) for one in zip(instances[shortest], of_each[shortest], strict=True)],
        }

    def report(self, about: SubjectSummary, found: Mapping[int, Any]) -> AuditReport:
        done = list(found.values())
        return AuditReport(
            verdict=tuple(_verdict(done)),
            numbers={
                f"{one['check']}({one['measure']})": None if one["undefined"] else int(not one["failing"])
                for one in done
            },
            tables=(_outcomes(done), _counterexamples(done)),
            plots=(PLOT,),
            reading=READING,
            undefined=tuple(_without(done)),
        )


def _undefined(why: str) -> dict[str, Any]:
    return {"undefined": why, "instances": 0, "failing": 0, "example": None}


def _aspects(measure: Measure) -> tuple[str, ...]:
    """Those that a bound measure combines; none of a measure of one aspect, or of subtopics."""
    arguments = measure.arguments
    if not measure.declaration.combines:
        return ()
    if "understandability" not in arguments:
        return tuple(arguments["aspects"])
    topical = (arguments["aspect"],) if arguments.get("aspect") else ()
    return (*topical, *arguments["understandability"])


def _scores(measure: Measure, names: Sequence[str], lists: Sequence[Listed]) -> Floats:
    """float64[lists]: those of one scale and one weighting are scored together, each as a topic."""
    found = np.empty(len(lists))
    kinds = [(one.factors, one.weights) for one in lists]
    for kind in dict.fromkeys(kinds):
        places = [place for place, one in enumerate(kinds) if one == kind]
        factors, weights = kind
        given = measure if weights is None else measure.having(weights=dict(zip(names, weights, strict=True)))
        aspects = tuple(_scale(name, factor) for name, factor in zip(names, factors, strict=True))
        collection = _collection(aspects, [lists[place] for place in places])
        found[places] = evaluate(*collection, [given]).values[given]
    return found


def _scale(name: str, factor: int) -> Aspect:
    """Labels that are gains and places, times `factor`."""
    numbers = [factor * label for label in range(LABELS)]
    gains = tuple(float(number) for number in numbers)
    return Aspect(name, range(LABELS), declared_gains=gains, declared_embedding=tuple(numbers))


def _collection(aspects: tuple[Aspect, ...], lists: Sequence[Listed]) -> tuple[Qrels, Joined]:
    """A topic for each list, whose documents are all judged and ranked."""
    sizes = [len(one.labels[0]) for one in lists]
    offsets = np.cumsum([0, *sizes], dtype=np.int64)
    rank = np.array([rank for size in sizes for rank in range(1, size + 1)], dtype=np.int32)
    qrels = Qrels(
        aspects,
        tuple(f"{number:08}" for number in range(len(lists))),
        offsets,
        Ids.of([b"%02d" % one for one in rank.tolist()]),
        np.array([[label for one in lists for label in one.labels[side]] for side in (0, 1)], np.int32),
    )
    document = np.arange(len(rank), dtype=np.int32)
    return qrels, Joined(np.array(sizes, np.int64), offsets, document, rank, rank, rank)


def _shown(names: Sequence[str], one: Listed, score: float) -> dict[str, Any]:
    """A list of a counterexample, readable."""
    said = [
        f"{name} {' '.join(map(str, labels))}" + (f" (times {factor})" if factor > 1 else "")
        for name, labels, factor in zip(names, one.labels, one.factors, strict=True)
    ]
    weights = dict(zip(names, one.weights, strict=True)) if one.weights else {}
    weighed = ", ".join(f"{name} weighs {weight:g}" for name, weight in weights.items())
    what = f"{one.what}, {weighed}" if weighed else one.what
    return {"what": what, "labels": ", ".join(said), "score": score if np.isfinite(score) else None}


def _verdict(done: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A sentence for each measure, first of those that could be tried."""
    without = {one["measure"] for one in done} - {one["measure"] for one in done if not one["undefined"]}
    for measure in sorted(dict.fromkeys(one["measure"] for one in done), key=lambda one: one in without):
        tried = [one for one in done if one["measure"] == measure and one["undefined"] is None]
        failed = [one["check"] for one in tried if one["failing"]]
        held = [one["check"] for one in tried if not one["failing"]]
        if not tried:
            yield f"{measure}: undefined, for none of the checks can be tried with it."
        elif not failed:
            yield f"{measure} holds all that were tried: {', '.join(held)}."
        else:
            holds = f"; it holds {', '.join(held)}" if held else ""
            yield f"{measure} fails {', '.join(failed)}{holds}."


def _outcomes(done: Sequence[Mapping[str, Any]]) -> ReportTable:
    columns = (
        MEASURE,
        Column("check", "check"),
        Column("says", "what is wished"),
        Column("outcome", "outcome", "holds, where no instance contradicts it, or fails"),
        Column("share", "share that holds", "of the instances"),
        Column("failing", "counterexamples", "of the instances"),
        Column("instances", "instances"),
        Column("counterexample", "shortest counterexample", "labels in ranked order, and the score"),
    )
    rows = []
    for one in done:
        none = one["undefined"] is not None
        outcome = None if none else "fails" if one["failing"] else "holds"
        share = None if none else 1 - one["failing"] / one["instances"]
        shown = None if one["example"] is None else "; ".join(map(_told, one["example"]))
        known = one["measure"], one["check"], CHECKS[one["check"]].says, outcome, share
        rows.append((*known, one["failing"], one["instances"], shown))
    return ReportTable("outcomes", "Which checks hold", columns, tuple(rows))


def _told(one: Mapping[str, Any]) -> str:
    score = "no number" if one["score"] is None else f"{one['score']:.6f}"
    return f"{one['what']}: {one['labels']}: {score}"


def _counterexamples(done: Sequence[Mapping[str, Any]]) -> ReportTable:
    columns = (
        MEASURE,
        Column("check", "check"),
        Column("what", "list"),
        Column("labels", "labels", "of each aspect, in ranked order"),
        Column("score", "score"),
    )
    rows = [
        (one["measure"], one["check"], shown["what"], shown["labels"], shown["score"])
        for one in done
        for shown in one["example"] or ()
    ]
    return ReportTable("counterexamples", "Counterexamples, list by list", columns, tuple(rows))


def _without(done: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What could not be tried, a sentence for each measure and reason."""
    checks: dict[tuple[str, str], list[str]] = {}
    for one in done:
        if one["undefined"] is not None:
            checks.setdefault((one["measure"], one["undefined"]), []).append(one["check"])
    for (measure, why), names in checks.items():
        said = "all checks" if len(names) == len(CHECKS) else ", ".join(names)
        yield f"{said} of {measure}: {why.removeprefix(f'{measure}: ')}"


PLOT = Plot(
    "checks",
    "Which checks hold",
    "The share of random instances on which a check holds: it holds only where that is 1.",
    "heatmap",
    "outcomes",
    "check",
    "measure",
    value="share",
    x_order=tuple(CHECKS),
    domain=(0, 1),
)
