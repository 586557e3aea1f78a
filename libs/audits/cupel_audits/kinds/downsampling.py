"""`downsampling`: fewer judgments of the same pool (Ferrante et al., TKDE 2019, 5.4; spec 4.6)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

from cupel_audits.analysis import judgment_samples, sample_curves
from cupel_audits.analysis.judgment_samples import Judged
from cupel_audits.analysis.run_orders import against, weighed
from cupel_audits.declarations import Audit, audit, setting, whole
from cupel_audits.report import AuditReport, Column
from cupel_audits.subject import About, AuditSubject
from cupel_measures.catalogue.parser import parse
from cupel_measures.grammar.parameters import AspectName, Number, Numbers, OneFlag, Word

Percents = Annotated[
    tuple[float, ...],
    Numbers(
        "falling percentages above 0, up to 100, such as [90,50,10]",
        Number("", 0, 100, (0,)),
        rising=False,
    ),
]
KEPT = sample_curves.Axis(
    Column("percent", "judgments kept, in per cent", "of each stratum, before floors"),
    "{:g} per cent of the judgments",
    falling=True,
)
READING = (
    "Judgments are taken away at random, as if fewer had been made; those of a shallower pool would be "
    "missing systematically: `pool_depth` asks about that.",
    "All judgments are taken for the truth. They are a sample themselves, so that tau tells how stable the "
    "order is, not how right.",
)
Repeats = Annotated[int, whole()]
Method = Annotated[str, Word("stratified or uniform", ("stratified", "uniform"))]


@audit(
    "downsampling",
    title="Pool downsampling",
    answers="How much of the order of runs is left when only a part of the judgments is there?",
    source="Ferrante, Ferro, Pontarollo, TKDE 2019, section 5.4 (spec 4.6)",
)
class Downsampling(Audit):
    """Takes judgments away at random and ranks the runs again.

    A document that loses its judgment is unjudged. A stratified sample keeps, of the n documents of each
    topic and grade, max(f, floor(P n / 100)), f being 10 for the lowest grade and 1 for others. A uniform one
    keeps max(1, floor(P n / 100)) of a topic's n judged documents, and is drawn again while it has no
    relevant one. Recall bases and ideal rankings are those of the sample.
    """

    ratios: Percents = setting((90.0, 70.0, 50.0, 30.0, 10.0, 5.0), "percentages that are kept")
    repeats: Repeats = setting(30, "how often judgments are drawn anew")
    method: Method = setting("stratified", "stratified by grade, or uniform over a topic's judged documents")
    nested: OneFlag = setting(False, "uniform samples are nested, as stratified ones always are")
    aspect: AspectName | None = setting(
        None, "the aspect that loses judgments (default: all do, and those by subtopic)"
    )
    tau_ap: OneFlag = setting(False, "tell tau AP too, which weighs swaps at the top more")

    def problems(self, subject: AuditSubject) -> Iterator[str]:
        yield from super().problems(subject)
        if self.aspect is not None and self.aspect not in subject.about.aspects:
            yield f"aspect: there is no {self.aspect!r}; there are {', '.join(subject.about.aspects)}"
        if not subject.about.relevant:
            yield "no document is judged relevant: there is nothing to take away that would matter"

    def trials(self, subject: AuditSubject) -> int:
        return self.repeats

    def steps(self, subject: AuditSubject) -> float:
        return len(self.ratios)

    def work(self, subject: AuditSubject, seed: int, trials: Sequence[int]) -> Iterator[Any]:
        judged = Judged.of(subject, self.aspect)
        for trial in trials:
            yield self._trial(subject, judged, seed, trial)

    def _trial(self, subject: AuditSubject, judged: Judged, seed: int, trial: int) -> list[Any]:
        """What becomes of the order at each ratio, and how many judged documents were kept."""
        chance, whole, found = self.generator(seed, trial), subject.evaluator, []
        if self.method == "stratified":
            samples = list(judgment_samples.stratified(chance, judged, self.ratios))
        else:
            samples = list(judgment_samples.uniform(chance, judged, self.ratios, nested=self.nested))
        if self.nested or self.method == "stratified":
            evaluators = whole.along(samples, self.aspect)
        else:
            evaluators = (whole.keeping(kept, self.aspect) for kept in samples)
        for kept, evaluator in zip(samples, evaluators, strict=True):
            means = subject.means_under(evaluator)
            top = {"tau_ap": weighed(subject.means, means)} if self.tau_ap else {}
            found.append({"kept": int(kept.sum()), "orders": against(subject.means, means), **top})
        return found

    def report(self, about: About, found: Mapping[int, Any]) -> AuditReport:
        report = sample_curves.report(about, KEPT, self.ratios, list(found.values()), READING)
        if self.aspect is None:
            return report
        blind = [one for one in about.measures if self.aspect not in _looked_at(one, about.aspects)]
        said = (
            f"{', '.join(blind)}: not by {self.aspect}, which alone loses judgments, so that nothing changes"
        )
        return replace(report, warnings=(*report.warnings, said)) if blind else report


def _looked_at(text: str, aspects: Sequence[str]) -> set[str]:
    """The aspects that a bound measure scores by."""
    measure = parse(text)
    given = measure.arguments
    if measure.declaration.subtopics:
        return set()
    named = {*(given.get("aspects") or ()), *(given.get("understandability") or ())}
    alone = not measure.declaration.combines or "understandability" in given
    return named | ({given.get("aspect") or aspects[0]} if alone else set())
