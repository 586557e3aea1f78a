"""Audit kind `desiderata`: properties of measures of two aspects.

The properties are tested on random lists.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, TypedDict

import numpy as np

from cupel_audits.declarations import Audit, audit, setting, whole_number
from cupel_audits.kinds.desiderata.desiderata_checks import CHECKS, LABELS, Check, LabelledList
from cupel_audits.report import AuditReport, Heading, MeasureCell, Plot, TableSchema, name_some
from cupel_audits.subject import AuditSubject, SubjectSummary
from cupel_measures.grammar.measure import Measure
from cupel_measures.grammar.parameters import Whole
from cupel_measures.grammar.syntax import MeasureError
from cupel_measures.model import Aspect, Floats, Ids, Joined, Qrels
from cupel_measures.scoring.evaluator import evaluate

Instances = Annotated[int, whole_number()]
Length = Annotated[int, Whole("a whole number from 3", 3)]

READING = (
    "If none of the random instances is a counterexample, the property is not proved. A counterexample "
    "disproves the property and can be verified by hand; the shortest one found is shown.",
    "Every document of a list is judged and retrieved. The gain of a label is its number, 0 to "
    f"{LABELS - 1}. The checks do not cover unjudged documents or relevant documents that are not retrieved.",
    "Lioma et al. (ICTIR 2017, section 3) require all of D1 to D8. With ties=stable, NLRE and NGRE "
    "had no counterexample except to D4_literal, the paper's own wording of D4. NWCS had none except to D4 "
    "(both wordings) and D6_one_scale. CAM and WHAM have the outcome of the measure that they combine, "
    "but cannot satisfy D4, because they are means. D1 to D3 and D7 are not tested for measures that do not "
    "order lists by their labels alone, such as measures with a binary threshold or no ideal ranking.",
)


class ScoredList(TypedDict):
    """A list of a counterexample.

    what: its description. labels: the labels of each aspect in ranked order, as text. score: None if it is
    NaN.
    """

    what: str
    labels: str
    score: float | None


class CheckResult(TypedDict):
    """The result of one check of one measure; JSON-serialisable.

    undefined: why the check could not be run, or None. failing: number of the instances that are
    counterexamples. example: the lists of the shortest counterexample, None if there is none.
    """

    measure: str
    check: str
    undefined: str | None
    instances: int
    failing: int
    example: list[ScoredList] | None


@dataclass(frozen=True, kw_only=True)
class OutcomeRow:
    """The outcome of one check of one measure."""

    measure: MeasureCell
    check: Annotated[str, Heading("check")]
    says: Annotated[str, Heading("property")]
    outcome: Annotated[
        str | None,
        Heading("outcome", "of the random instances; fails: a counterexample was found"),
    ]
    share: Annotated[float | None, Heading("share without counterexample", "of the instances")]
    failing: Annotated[int, Heading("counterexamples", "number of instances")]
    instances: Annotated[int, Heading("instances", "random instances of the check")]
    counterexample: Annotated[
        str | None,
        Heading("shortest counterexample", "for each list: its labels in ranked order, and its score"),
    ]
    percent: Annotated[float | None, Heading("counterexamples, per cent", "of the instances")]


@dataclass(frozen=True, kw_only=True)
class CounterexampleRow:
    """One list of a counterexample."""

    measure: MeasureCell
    check: Annotated[str, Heading("check")]
    what: Annotated[str, Heading("list")]
    labels: Annotated[str, Heading("labels", "of each aspect, in ranked order")]
    score: Annotated[float | None, Heading("score")]


OUTCOMES = TableSchema.of("outcomes", "Outcome of each check", OutcomeRow)
COUNTEREXAMPLES = TableSchema.of("counterexamples", "Counterexamples, list by list", CounterexampleRow)


@audit(
    "desiderata",
    title="Desiderata of measures of two aspects",
    answers="To which of D1 to D8 is there a counterexample, for a measure of two aspects?",
    source="Lioma, Simonsen, Larsen, ICTIR 2017, section 3",
)
class Desiderata(Audit):
    """Searches for counterexamples to properties of measures that combine two aspects.

    The instances are short random lists of judged documents. An error of size s is a document ranked above s
    documents that have higher labels; all other documents are in order. An aspect without an error has the
    same label throughout, unless the check says otherwise. The aspect with the error is drawn at random.

    D1: a larger error at the same rank scores strictly lower. D2: the same error one rank higher scores
    strictly lower, if labels are equally far apart. D3: an error scores strictly lower if its document has a
    lower label. D4: an error in one aspect costs more if there is an error in the other aspect at the same
    rank. D4_literal: an error costs more if all documents have a higher label in the other aspect. D5: with
    equal labels throughout, the score is from 0 to 1, and no lower than with labels that decrease from the
    same first label. D6: multiplying all labels (gains and embeddings) by a number changes nothing.
    D6_one_scale: multiplying the labels of one aspect changes nothing. D7: if one aspect has equal labels
    throughout, the score is 1 if and only if the list is sorted by the other aspect. D8: the cost of an error
    in one aspect relative to the same error in the other aspect depends on the weights.

    All measures are tested on the same lists. The runs and judgments of the collection are not used.
    """

    instances: Instances = setting(200, "number of random instances of each check")
    length: Length = setting(6, f"number of documents in the longest list, 3 to {LABELS - 1}")

    def problems(self, subject: AuditSubject) -> Iterator[str]:
        if self.length > LABELS - 1:
            yield (
                f"length: a list contains no label twice, so give at most {LABELS - 1} documents, "
                f"not {self.length}"
            )
        if not any(len(_aspects(measure)) == 2 for measure in subject.measures):
            yield (
                "no measure combines two aspects: give one, such as NLRE or CAM(of=nDCG@10); if the "
                "collection has more than two aspects, choose two of them with aspects=[...]"
            )

    def trials(self, subject: AuditSubject) -> int:
        return len(subject.measures) * len(CHECKS)

    def run_trials(self, subject: AuditSubject, seed: int, trials: Sequence[int]) -> Iterator[CheckResult]:
        checks = list(CHECKS.values())
        for trial in trials:
            measure, number = subject.measures[trial // len(checks)], trial % len(checks)
            # The generator depends on the check only, so all measures are tested on the same lists.
            yield self._test(measure, checks[number], self.generator(seed, number))

    def _test(self, measure: Measure, check: Check, rng: np.random.Generator) -> CheckResult:
        names = _aspects(measure)
        if (why := _why_not(measure, check, names)) is not None:
            return _not_made(measure, check, why)
        instances = [check.draw(rng, self.length) for _ in range(self.instances)]
        try:
            scores = _score_lists(measure, names, [ranked for instance in instances for ranked in instance])
        except MeasureError as problem:
            return _not_made(measure, check, str(problem))
        by_instance = scores.reshape(self.instances, -1).tolist()
        failing = [
            place
            for place, (instance, values) in enumerate(zip(instances, by_instance, strict=True))
            if not check.holds(instance, values)
        ]
        shortest = min(failing, key=lambda place: len(instances[place][0].labels[0]), default=None)
        example = None
        if shortest is not None:
            scored = zip(instances[shortest], by_instance[shortest], strict=True)
            example = [_describe(names, ranked, score) for ranked, score in scored]
        return CheckResult(
            measure=str(measure),
            check=check.name,
            undefined=None,
            instances=self.instances,
            failing=len(failing),
            example=example,
        )

    def report(self, about: SubjectSummary, by_trial: Mapping[int, CheckResult]) -> AuditReport:
        results = list(by_trial.values())
        return AuditReport(
            verdict=tuple(_verdict(results)),
            numbers={f"{result['check']}({result['measure']})": _number(result) for result in results},
            tables=(
                OUTCOMES.table(map(_outcome_row, results)),
                COUNTEREXAMPLES.table(_counterexample_rows(results)),
            ),
            plots=(_plot(results),),
            actions=tuple(_advice(results)),
            reading=(*READING, *(f"{check.name}: {check.statement}." for check in CHECKS.values())),
            undefined=tuple(_undefined(results)),
        )


def _aspects(measure: Measure) -> tuple[str, ...]:
    """Return the aspects that a bound measure combines.

    The result is () for measures of one aspect or of subtopics.
    """
    arguments = measure.arguments
    if not measure.declaration.combines:
        return ()
    if "understandability" not in arguments:
        return tuple(arguments["aspects"])
    topical = (arguments["aspect"],) if arguments.get("aspect") else ()
    return (*topical, *arguments["understandability"])


def _why_not(measure: Measure, check: Check, names: Sequence[str]) -> str | None:
    """Return the reason why a check cannot be run on a measure.

    The result is None if the check can be run.
    """
    if len(names) != 2:
        return "it does not combine two aspects" if len(names) < 2 else "it combines more than two aspects"
    if check.needs_weights and "weights" not in measure.declaration.parameters:
        return "it has no weights"
    return None


def _not_made(measure: Measure, check: Check, why: str) -> CheckResult:
    return CheckResult(
        measure=str(measure), check=check.name, undefined=why, instances=0, failing=0, example=None
    )


def _number(result: CheckResult) -> int | None:
    """Return 1 if the check holds, 0 if it fails, None if it could not be run."""
    return None if result["undefined"] is not None else int(not result["failing"])


def _outcome(result: CheckResult) -> str | None:
    if result["undefined"] is not None:
        return None
    return "fails" if result["failing"] else "no counterexample"


def _score_lists(measure: Measure, names: Sequence[str], lists: Sequence[LabelledList]) -> Floats:
    """Return the score of each list, float64[lists].

    Each list is scored as a topic. Lists with the same factors and weights are scored together.
    """
    scores = np.empty(len(lists))
    keys = [(ranked.factors, ranked.weights) for ranked in lists]
    for key in dict.fromkeys(keys):
        places = [place for place, other in enumerate(keys) if other == key]
        factors, weights = key
        weighted = (
            measure if weights is None else measure.having(weights=dict(zip(names, weights, strict=True)))
        )
        aspects = tuple(_scaled_aspect(name, factor) for name, factor in zip(names, factors, strict=True))
        collection = _collection(aspects, [lists[place] for place in places])
        scores[places] = evaluate(*collection, [weighted]).values[weighted]
    return scores


def _scaled_aspect(name: str, factor: int) -> Aspect:
    """Return an aspect whose gains and embedding are the labels times `factor`."""
    numbers = [factor * label for label in range(LABELS)]
    gains = tuple(float(number) for number in numbers)
    return Aspect(name=name, labels=range(LABELS), declared_gains=gains, declared_embedding=tuple(numbers))


def _collection(aspects: tuple[Aspect, ...], lists: Sequence[LabelledList]) -> tuple[Qrels, Joined]:
    """Return a collection with a topic for each list.

    The documents of a topic are all judged and retrieved.
    """
    sizes = [len(ranked.labels[0]) for ranked in lists]
    offsets = np.cumsum([0, *sizes], dtype=np.int64)
    rank = np.array([rank for size in sizes for rank in range(1, size + 1)], dtype=np.int32)
    labels = [[label for ranked in lists for label in ranked.labels[side]] for side in (0, 1)]
    qrels = Qrels(
        aspects=aspects,
        topics=tuple(f"{number:08}" for number in range(len(lists))),
        offsets=offsets,
        documents=Ids.of([b"%02d" % number for number in rank.tolist()]),
        labels=np.array(labels, np.int32),
    )
    document = np.arange(len(rank), dtype=np.int32)
    return qrels, Joined(
        retrieved=np.array(sizes, np.int64),
        offsets=offsets,
        document=document,
        rank=rank,
        first=rank,
        last=rank,
    )


def _describe(names: Sequence[str], ranked: LabelledList, score: float) -> ScoredList:
    labels = [
        f"{name} {' '.join(map(str, by_rank))}" + (f" (times {factor})" if factor > 1 else "")
        for name, by_rank, factor in zip(names, ranked.labels, ranked.factors, strict=True)
    ]
    weights = zip(names, ranked.weights or (), strict=False)
    description = ", ".join(
        [ranked.description, *(f"{name} has weight {weight:g}" for name, weight in weights)]
    )
    return ScoredList(what=description, labels=", ".join(labels), score=score if np.isfinite(score) else None)


def _plot(results: Sequence[CheckResult]) -> Plot:
    return Plot.heatmap(
        OUTCOMES,
        "checks",
        title=_title(results),
        caption="Counterexamples in per cent of the random instances. Coloured cells are failed checks; a "
        "check without a counterexample has no colour, and an empty cell was not tested.",
        x="check",
        y="measure",
        value="percent",
        x_order=tuple(CHECKS),
        domain=(0, 100),
        blank=0.0,
    )


def _count_failures(results: Sequence[CheckResult]) -> dict[int, list[str]]:
    """Return the tested measures by their number of failed checks.

    The smallest number is first.
    """
    failures: dict[str, int] = {}
    for result in results:
        if result["undefined"] is None:
            failures[result["measure"]] = failures.get(result["measure"], 0) + bool(result["failing"])
    return {
        count: [measure for measure in failures if failures[measure] == count]
        for count in sorted({*failures.values()})
    }


def _title(results: Sequence[CheckResult]) -> str:
    """Return the numbers of failed checks of the best measures and of the worst ones."""
    measures = _count_failures(results)
    if not measures:
        return "No check could be run"
    fewest, most = min(measures), max(measures)
    best = f"{name_some(measures[fewest], 'measures')}: {fewest or 'no'} failed check{'s' * (fewest != 1)}"
    return best if fewest == most else f"{best}; {name_some(measures[most], 'measures')}: {most}"


def _advice(results: Sequence[CheckResult]) -> Iterator[str]:
    """Yield what to do about failed checks."""
    measures = _count_failures(results)
    if not measures:
        yield "Give a measure of two aspects, such as NLRE or `CAM(of=nDCG@10)`, and run the audit again."
        return
    if max(measures):
        yield (
            "Decide which properties your task needs, and read the counterexamples to them in the table. "
            "A measure that fails a property that the task does not need is still suitable."
        )
    yield (
        "Increase `instances` before you rely on a check without a counterexample: the search is random, and "
        "finding none is not a proof."
    )


def _verdict(results: Sequence[CheckResult]) -> Iterator[str]:
    """Yield a sentence for each measure; measures that could not be tested come last."""
    tested = {result["measure"] for result in results if result["undefined"] is None}
    for measure in sorted(
        dict.fromkeys(result["measure"] for result in results), key=lambda m: m not in tested
    ):
        done = [result for result in results if result["measure"] == measure and result["undefined"] is None]
        failing = [result["check"] for result in done if result["failing"]]
        holding = [result["check"] for result in done if not result["failing"]]
        if not done:
            yield f"{measure}: no check could be run."
            continue
        instances = f"in {done[0]['instances']} random instances of each"
        if not failing:
            yield f"{measure}: no counterexample to {', '.join(holding)} {instances}."
        elif not holding:
            yield f"{measure} fails {', '.join(failing)}."
        else:
            yield (
                f"{measure} fails {', '.join(failing)}; "
                f"no counterexample to {', '.join(holding)} {instances}."
            )


def _outcome_row(result: CheckResult) -> OutcomeRow:
    return OutcomeRow(
        measure=result["measure"],
        check=result["check"],
        says=CHECKS[result["check"]].statement,
        outcome=_outcome(result),
        share=None if result["undefined"] is not None else 1 - result["failing"] / result["instances"],
        failing=result["failing"],
        instances=result["instances"],
        counterexample="; ".join(map(_list_text, result["example"] or ())) or None,
        percent=100 * result["failing"] / result["instances"] if result["instances"] else None,
    )


def _list_text(ranked: ScoredList) -> str:
    score = "no number" if ranked["score"] is None else f"{ranked['score']:.6f}"
    return f"{ranked['what']}: {ranked['labels']}: {score}"


def _counterexample_rows(results: Sequence[CheckResult]) -> Iterator[CounterexampleRow]:
    for result in results:
        for ranked in result["example"] or ():
            yield CounterexampleRow(
                measure=result["measure"],
                check=result["check"],
                what=ranked["what"],
                labels=ranked["labels"],
                score=ranked["score"],
            )


def _undefined(results: Sequence[CheckResult]) -> Iterator[str]:
    """Yield a sentence for each measure and reason why checks could not be run."""
    checks: dict[tuple[str, str], list[str]] = {}
    for result in results:
        if result["undefined"] is not None:
            checks.setdefault((result["measure"], result["undefined"]), []).append(result["check"])
    for (measure, why), names in checks.items():
        which = "all checks" if len(names) == len(CHECKS) else ", ".join(names)
        yield f"{which} of {measure}: {why.removeprefix(f'{measure}: ')}"
