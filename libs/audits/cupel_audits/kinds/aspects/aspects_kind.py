"""`aspects`: several aspects in one number (Maistro et al., CIKM 2021, section 4; spec 3.7, 3.9, 3.10)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any

from cupel_audits.declarations import Audit, audit, setting, whole_number
from cupel_audits.kinds.aspects import aspect_orders, score_bounds, top_documents
from cupel_audits.kinds.aspects.aspect_measures import AspectFamily, families
from cupel_audits.kinds.aspects.top_documents import Counting
from cupel_audits.report import AuditReport, merged
from cupel_audits.subject import AuditSubject, SubjectSummary
from cupel_measures.grammar.measure import Measure
from cupel_measures.grammar.parameters import OneFlag, Word
from cupel_measures.scoring.evaluator import impossible

Depth = Annotated[int, whole_number(description="a whole number of ranks")]
Weighting = Annotated[str, Word("top_half or positive", ("top_half", "positive"))]
QUESTIONS = ("bounds", "documents", "orders")


@audit(
    "aspects",
    title="Aspects",
    answers="What do measures that make one number of several aspects reward, and how far do they agree?",
    source="Maistro, Chaves Lima, Simonsen, Lioma, CIKM 2021 (spec 3.7, 3.9, 3.10)",
)
class Aspects(Audit):
    """Looks at aggregates of aspects in three ways, each a trial.

    Every measure of one aspect is asked of each aspect, and aggregated by CAM, MM and TOMA with its three
    distances; aggregates among the measures join those of what they ask.

    1. Upper bounds (3.7): the best score that any of n! + 3 rankings of a topic's judged documents has by CAM
    or MM. They average scores that different rankings would make largest, so that no ranking may reach 1.

    2. Documents (3.9, 3.10): of each topic the run that an aggregate puts first. How many of its first
    documents have no label above the lowest on any aspect (the denominator is of all these ranks together);
    and the mean sum of label indices by bins of ranks. The measures are taken at the cutoffs `first` and
    `depth`.

    3. Orders: the runs by each aspect, which of them another dominates, and on how many pairs of runs
    aggregates disagree.

    Caveat: sums of labels count a step on one scale as much as one on another.
    """

    weighting: Weighting = setting(
        "top_half",
        "which classes of labels TOMA takes for relevant where it is binary: the paper's experiments "
        "took positive",
    )
    first: Depth = setting(5, "first ranks where documents worth nothing are counted")
    depth: Depth = setting(100, "first ranks whose documents are looked at by bins")
    width: Depth = setting(25, "ranks in a bin")
    count_unjudged: OneFlag = setting(False, "an unjudged document counts as one worth nothing")
    exclude: OneFlag = setting(False, "leave unjudged documents out of the bins, where they count as 0")

    def problems(self, subject: AuditSubject) -> Iterator[str]:
        yield from super().problems(subject)
        if len(subject.qrels.aspects) < 2:
            only = subject.qrels.aspects[0].name
            yield f"it compares aspects, and there is only {only!r}: it needs judgments of two or more"
        elif not (subject.qrels.labels > 0).any():
            yield "no document has a label above the lowest on any aspect: all runs are worth the same"
        elif not self._families(subject)[0]:
            yield (
                "none of the measures can be asked of one aspect and averaged over topics: give one such as "
                "nDCG@10, or an aggregate such as CAM(of=nDCG@10)"
            )

    def ranking_depth(self) -> int:
        return max(self.first, self.depth)

    def trials(self, subject: AuditSubject) -> int:
        return len(QUESTIONS)

    def steps(self, subject: AuditSubject) -> float:
        return 10.0

    def run_trials(self, subject: AuditSubject, seed: int, trials: Sequence[int]) -> Iterator[Any]:
        found, lacking = self._families(subject)
        aggregates = list({str(one): one for family in found for one in family.aggregates}.values())
        ask: tuple[Callable[[], dict[str, Any]], ...] = (
            lambda: score_bounds.bounds(subject, aggregates),
            lambda: top_documents.documents(subject, aggregates, self.first, self.depth, self.width),
            lambda: {"families": aspect_orders.orders(subject, found), "lacking": lacking},
        )
        for trial in trials:
            yield ask[trial]()

    def _families(self, subject: AuditSubject) -> tuple[list[AspectFamily], list[str]]:
        """Those whose aggregates the qrels can have, and why others are missing."""
        found, lacking = families(subject, self.weighting)
        missing = list(lacking)

        def possible(family: AspectFamily) -> Iterator[Measure]:
            for one in family.aggregates:
                if why := impossible(subject.qrels, [one]):
                    missing.extend(why)
                else:
                    yield one

        return [AspectFamily(one.of, tuple(possible(one))) for one in found], missing

    def report(self, about: SubjectSummary, found: Mapping[int, Any]) -> AuditReport:
        counting = Counting(self.count_unjudged, self.exclude, self.depth, self.width)
        tell: tuple[Callable[[Any], AuditReport], ...] = (
            lambda one: score_bounds.report(about, one),
            lambda one: top_documents.report(one, counting),
            lambda one: aspect_orders.report(about, one["families"], one["lacking"]),
        )
        return merged([tell[trial](one) for trial, one in found.items()])
