"""Audit kind `aspects`: measures that combine several aspects into one number."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated

from cupel_audits.declarations import Audit, audit, setting, whole_number
from cupel_audits.kinds.aspects import aspect_orders, score_bounds, top_documents
from cupel_audits.kinds.aspects.aspect_measures import AspectFamily, find_families
from cupel_audits.kinds.aspects.aspect_orders import OrdersResult
from cupel_audits.kinds.aspects.score_bounds import BoundsResult
from cupel_audits.kinds.aspects.top_documents import CountingRules, DocumentsResult
from cupel_audits.report import AuditReport, merged
from cupel_audits.subject import AuditSubject, SubjectSummary
from cupel_measures.grammar.measure import Measure
from cupel_measures.grammar.parameters import OneFlag, Word
from cupel_measures.scoring.evaluator import list_unsupported

Depth = Annotated[int, whole_number(description="a whole number of ranks")]
Weighting = Annotated[str, Word("top_half or positive", ("top_half", "positive"))]
BOUNDS, DOCUMENTS, ORDERS = range(3)


AspectsResult = BoundsResult | DocumentsResult | OrdersResult
"""The result of one of the three trials."""


@audit(
    "aspects",
    title="Aspects",
    answers="What do measures that combine several aspects reward, and how far do they agree?",
    source="Maistro, Lima, Simonsen, Lioma, CIKM 2021, section 4",
)
class Aspects(Audit):
    """Inspects measures that combine several aspects, in three trials.

    Each measure of one aspect is combined over all aspects by CAM, by MM, and by TOMA with its three
    distances. A given measure that already combines aspects is compared with the aggregates of the same
    component.

    1. Upper bounds: for CAM and MM over n aspects, the best score of n! + 3 rankings of the judged documents
       of a topic. A ranking that is best for one aspect need not be best for another, so the bound may be
       below 1.

    2. Documents: for each measure and topic, the documents of the run with the highest score. A zero-aspect
       document has no label above the lowest on any aspect. The report gives the share of zero-aspect
       documents at the first `first` ranks, with the measures cut off at `first`. It also gives the mean sum
       of label indices in bins of the first `depth` ranks, with the measures cut off at `depth`.

    3. Orders: the scores of the runs by aspect, the runs that another run dominates, and the pairs of runs on
       which aggregates disagree.

    In a sum of label indices, one step from a label to the next has the same weight on every aspect.
    """

    weighting: Weighting = setting(
        "top_half",
        "labels that count as relevant for TOMA with a binary component; the experiments of Maistro et al. "
        "(CIKM 2021) used positive",
    )
    first: Depth = setting(5, "number of top ranks in which zero-aspect documents are counted")
    depth: Depth = setting(100, "number of top ranks that are divided into bins")
    width: Depth = setting(25, "number of ranks in a bin")
    count_unjudged: OneFlag = setting(False, "count unjudged documents as zero-aspect documents")
    exclude: OneFlag = setting(False, "leave unjudged documents out of the bins instead of adding 0 for them")

    def problems(self, subject: AuditSubject) -> Iterator[str]:
        yield from super().problems(subject)
        if len(subject.qrels.aspects) < 2:
            only = subject.qrels.aspects[0].name
            yield f"the collection has only one aspect, {only!r}: give judgments of two or more aspects"
        elif not (subject.qrels.labels > 0).any():
            yield "no document has a label above the lowest on any aspect: all runs have the same score"
        elif not self._families(subject)[0]:
            yield (
                "no measure can be combined over aspects: give a measure of one aspect that is averaged over "
                "topics, such as nDCG@10, or an aggregate, such as CAM(of=nDCG@10)"
            )

    def ranking_depth(self) -> int:
        return max(self.first, self.depth)

    def trials(self, subject: AuditSubject) -> int:
        return 3

    def steps(self, subject: AuditSubject) -> float:
        return 10.0

    def run_trials(self, subject: AuditSubject, seed: int, trials: Sequence[int]) -> Iterator[AspectsResult]:
        families, missing = self._families(subject)
        for trial in trials:
            yield self._trial(subject, families, missing, trial)

    def _trial(
        self, subject: AuditSubject, families: Sequence[AspectFamily], missing: Sequence[str], trial: int
    ) -> AspectsResult:
        if trial == ORDERS:
            scores = aspect_orders.score_families(subject, families)
            return OrdersResult(families=scores, lacking=list(missing))
        aggregates = list(
            {str(aggregate): aggregate for family in families for aggregate in family.aggregates}.values()
        )
        if trial == BOUNDS:
            return score_bounds.compute_bounds(subject, aggregates)
        return top_documents.count_documents(subject, aggregates, self.first, self.depth, self.width)

    def _families(self, subject: AuditSubject) -> tuple[list[AspectFamily], list[str]]:
        """Return the families with the aggregates that the qrels allow.

        The second list has sentences on the missing aggregates.
        """
        families, missing_texts = find_families(subject, self.weighting)
        missing = list(missing_texts)

        def select_possible(family: AspectFamily) -> Iterator[Measure]:
            for aggregate in family.aggregates:
                if reasons := list_unsupported(subject.qrels, [aggregate]):
                    missing.extend(reasons)
                else:
                    yield aggregate

        return [
            AspectFamily(family.component, tuple(select_possible(family))) for family in families
        ], missing

    @property
    def rules(self) -> CountingRules:
        """Return the settings that determine how documents are counted."""
        return CountingRules(
            count_unjudged=self.count_unjudged,
            exclude_unjudged=self.exclude,
            depth=self.depth,
            width=self.width,
        )

    def report(self, about: SubjectSummary, by_trial: Mapping[int, AspectsResult]) -> AuditReport:
        reports, orders = [], []
        for result in by_trial.values():
            if "measures" in result:
                reports.append(score_bounds.report(about, result))
            elif "zero" in result:
                reports.append(top_documents.report(result, self.rules))
            else:
                orders.append(aspect_orders.report(about, result))
        # The orders are the main finding, so their sentences and plots come first.
        findings, reports = merged([*orders, *reports]), [*reports, *orders]
        return replace(
            merged(reports), verdict=findings.verdict, plots=findings.plots, actions=findings.actions
        )
