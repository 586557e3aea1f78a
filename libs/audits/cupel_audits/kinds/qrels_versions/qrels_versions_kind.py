"""Audit kind `qrels_versions`: two versions of the judgments.

The versions can be of two assessors, or one can be of an automatic judge.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, final

import numpy as np

from cupel_audits.declarations import Audit, audit, setting, whole_number
from cupel_audits.kinds.qrels_versions import judgment_changes, order_changes
from cupel_audits.kinds.qrels_versions.judgment_changes import JudgmentsResult
from cupel_audits.kinds.qrels_versions.order_changes import OrderResult
from cupel_audits.report import AuditReport, merged
from cupel_audits.subject import AuditSubject, SubjectSummary, means
from cupel_measures.comparing.board_analysis import ALPHA
from cupel_measures.comparing.resampling import REPLICATES
from cupel_measures.grammar.measure import Measure
from cupel_measures.grammar.parameters import Persistence
from cupel_measures.model import Floats

Replicates = Annotated[int, whole_number(100)]


@final
class VersionsResult(JudgmentsResult):
    """The result of the first trial, which compares judgments; JSON-serialisable.

    topics: number of topics in both versions, in the first, and in the second. left_out: measures that cannot
    be compared.
    """

    topics: tuple[int, int, int]
    left_out: list[str]


@audit(
    "qrels_versions",
    title="Two versions of the judgments",
    answers="How far do two versions of the judgments agree, and how does the order of runs differ?",
    source="Cohen 1960; Krippendorff 2011; Voorhees, SIGIR 1998; Romano and Wolf 2005",
)
class QrelsVersions(Audit):
    """Compares two versions of the judgments, and the scores of the runs under both.

    Agreement is computed for each aspect that both versions have with the same labels, over the documents
    judged in both: the share of equal labels, Cohen's kappa with linear weights, Krippendorff's ordinal
    alpha, and the confusion matrix. Judgments by subtopic are compared as relevant or not, for every subtopic
    that either version names for the topic.

    Runs are scored under both versions over the topics of both. For each measure, the report gives tau-b and
    tau AP between the orders, the runs that change rank, and significance groups by the step-down max-T test,
    with the same replicates for both versions. A measure is left out unless it can be computed under both
    versions with the same aspects.
    """

    needs_other_qrels = True

    alpha: Persistence = setting(
        ALPHA, "probability of any false positive among all pairs of runs, for each measure"
    )
    replicates: Replicates = setting(REPLICATES, "number of replicates of the max-T test")

    def problems(self, subject: AuditSubject) -> Iterator[str]:
        yield from super().problems(subject)
        if subject.other_subject is None:
            yield "only one version of the judgments is given: give the second version as `other`"
            return
        if not _common_rows(subject)[0].size:
            yield (
                f"{subject.about.qrels} and {subject.about.other} have no topic in common: give two versions "
                "of the judgments of the same topics"
            )
        if not (subject.about.relevant or subject.other_subject.about.relevant):
            yield "no document is judged relevant in either version: all runs have the same score"

    def trials(self, subject: AuditSubject) -> int:
        return 1 + len(_shared_measures(subject))

    def steps(self, subject: AuditSubject) -> float:
        return 50.0

    def run_trials(
        self, subject: AuditSubject, seed: int, trials: Sequence[int]
    ) -> Iterator[VersionsResult | OrderResult]:
        for trial in trials:
            yield self._compare_orders(subject, trial, seed) if trial else _compare_judgments(subject)

    def _compare_orders(self, subject: AuditSubject, trial: int, seed: int) -> OrderResult:
        """Compare how the two versions order the runs by one measure.

        The orders are over the common topics.
        """
        measure = _shared_measures(subject)[trial - 1]
        first_rows, second_rows = _common_rows(subject)
        first = subject.scores[str(measure)][first_rows]
        second = _other(subject).scores[str(measure)][second_rows]
        return order_changes.compare_orders_of_versions(
            str(measure),
            (_means(first, measure), _means(second, measure)),
            (first, second),
            alpha=self.alpha,
            replicates=self.replicates,
            seed=seed,
        )

    def report(
        self, about: SubjectSummary, by_trial: Mapping[int, VersionsResult | OrderResult]
    ) -> AuditReport:
        versions = [result for result in by_trial.values() if "aspects" in result]
        orders = [result for result in by_trial.values() if "measure" in result]
        reports = [_report_summary(about, result) for result in versions]
        if orders:
            reports.append(order_changes.report(about, orders, alpha=self.alpha))
        return merged([*reports, *(judgment_changes.report(about, result) for result in versions)])


def _means(scores: Floats, measure: Measure) -> Floats:
    return means({str(measure): scores}, [measure])[str(measure)]


def _other(subject: AuditSubject) -> AuditSubject:
    """Return the subject under the other judgments; raise ValueError if there is none."""
    if subject.other_subject is None:
        raise ValueError("the audit subject has no second version of the judgments")
    return subject.other_subject


def _shared_measures(subject: AuditSubject) -> list[Measure]:
    """Return the measures that can be computed under both versions."""
    texts = set(_other(subject).about.measures)
    return [measure for measure in subject.measures if str(measure) in texts]


def _common_rows(subject: AuditSubject) -> tuple[np.ndarray[Any, np.dtype[np.int64]], ...]:
    """Return the rows of the common topics in the first and the second version.

    Each is int64[n].
    """
    first, second = subject.qrels.topics, _other(subject).qrels.topics
    common = sorted(set(first) & set(second), key=str.encode)
    return tuple(np.array([of.index(topic) for topic in common], dtype=np.int64) for of in (first, second))


def _compare_judgments(subject: AuditSubject) -> VersionsResult:
    first, second = subject.qrels, _other(subject).qrels
    common, shared = set(first.topics) & set(second.topics), _shared_measures(subject)
    judgments = judgment_changes.compare_judgments(first, second, common)
    return VersionsResult(
        topics=(len(common), len(first.topics), len(second.topics)),
        left_out=[str(measure) for measure in subject.measures if measure not in shared],
        aspects=judgments["aspects"],
        lacking=judgments["lacking"],
    )


def _report_summary(about: SubjectSummary, result: VersionsResult) -> AuditReport:
    """Report how many topics are compared, and which measures are not."""
    common, first, second = result["topics"]
    warning = (
        f"{about.qrels} has {first} topics and {about.other} has {second}; only the {common} topics of both "
        "are compared."
    )
    return AuditReport(
        verdict=(),
        numbers={"topics": common},
        tables=(),
        undefined=tuple(
            f"{measure}: it cannot be computed under {about.other} with the same aspects"
            for measure in result["left_out"]
        ),
        warnings=() if common == first == second else (warning,),
    )
