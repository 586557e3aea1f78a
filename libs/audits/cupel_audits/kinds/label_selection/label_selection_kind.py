"""Audit kind `label_selection`: labels that a text-based measure needs.

Source: Hui, PIKM 2014, section 5.2.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, ClassVar

from cupel_audits.analysis import content_measures
from cupel_audits.analysis.content_measures import CLASSIC, MeasureText
from cupel_audits.analysis.lmd_selection import DEEPEST
from cupel_audits.analysis.pools import Depth
from cupel_audits.declarations import Audit, audit, setting, whole_number
from cupel_audits.kinds.label_selection import labelling_report
from cupel_audits.kinds.label_selection.document_labels import Labelling
from cupel_audits.kinds.label_selection.labelling_report import LabellingTrial
from cupel_audits.report import AuditReport
from cupel_audits.subject import AuditSubject, SubjectSummary
from cupel_measures.comparing.rank_correlation import tau_b
from cupel_measures.grammar.parameters import Whole

Batch = Annotated[int, Whole("a whole number of documents from 1")]
Repeats = Annotated[int, whole_number(0)]


@audit(
    "label_selection",
    title="Label selection",
    answers="How many labels does a text-based measure need to order the runs like a classic measure?",
    source="Hui, PIKM 2014, section 5.2",
)
class LabelSelection(Audit):
    """Selects documents to label, and ranks the runs with these labels alone.

    The runs are ranked by a text-based measure.

    For each topic, the pool of the first `depth` documents of all runs is labelled by decreasing centrality
    (mean similarity to the other documents), `batch` documents at a time, until every subtopic has a relevant
    labelled document. If some subtopic still has none, labelling continues in the next deeper pool, down to
    depth 20. Topics without a relevant document get no labels.

    The report gives the labelled documents as a share of the pools of depth 20. It also gives tau-b between
    the runs' scores by `measure` under these labels and their scores by the classic measure `reference` under
    all judgments, after each batch of every topic.

    Trial 0 is the selection. Each further trial is a baseline: it labels the same number of documents of each
    topic, drawn at random from its pool of depth 20.
    """

    needs_texts: ClassVar[bool] = True

    measure: MeasureText = setting("LMD", "text-based measure")
    reference: MeasureText = setting(CLASSIC, "classic measure that the text-based measure is compared with")
    depth: Depth = setting(3, "depth of the pool where labelling starts, at most 20")
    batch: Batch = setting(5, "number of documents to label at a time")
    repeats: Repeats = setting(10, "number of random selections for comparison")

    def problems(self, subject: AuditSubject) -> Iterator[str]:
        yield from super().problems(subject)
        yield from content_measures.problems(subject, self.reference, self.measure)
        if self.depth > DEEPEST:
            yield f"depth is {self.depth}, but labelling ends at {DEEPEST}: give a depth from 1 to {DEEPEST}"

    def ranking_depth(self) -> int:
        return DEEPEST

    def trials(self, subject: AuditSubject) -> int:
        return 1 + self.repeats

    def steps(self, subject: AuditSubject) -> float:
        return 200.0

    def run_trials(self, subject: AuditSubject, seed: int, trials: Sequence[int]) -> Iterator[LabellingTrial]:
        labelling = Labelling.of(subject, self.depth, self.batch)
        measures = content_measures.bound(subject, [self.measure, self.reference])
        measure, reference = map(str, measures)
        full = content_measures.means_of(subject.evaluator, measures)
        for trial in trials:
            order = labelling.order if trial == 0 else labelling.draw_order(self.generator(seed, trial))
            taus = []
            for labelled in labelling.labelled_masks(order, self.batch):
                means = content_measures.means_of(subject.evaluator.restricted_to(labelled), measures[:1])
                taus.append(tau_b(full[reference], means[measure]).value)
            yield {
                "topics": labelling.topics,
                "labels": labelling.label_counts(self.batch),
                "taus": taus,
                "full": tau_b(full[reference], full[measure]).value,
            }

    def report(self, about: SubjectSummary, results: Mapping[int, LabellingTrial]) -> AuditReport:
        return labelling_report.report(about, self.measure, self.reference, results)
