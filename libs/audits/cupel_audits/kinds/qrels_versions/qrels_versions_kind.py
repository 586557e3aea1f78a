"""`qrels_versions`: two versions of the judgments, or two assessors, or people and an automatic judge."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import numpy as np

from cupel_audits.declarations import Audit, audit, setting, whole_number
from cupel_audits.kinds.qrels_versions import judgment_changes, order_changes
from cupel_audits.report import AuditReport, merged
from cupel_audits.subject import AuditSubject, SubjectSummary, means
from cupel_measures.comparing.board_analysis import ALPHA
from cupel_measures.comparing.resampling import REPLICATES
from cupel_measures.grammar.measure import Measure
from cupel_measures.grammar.parameters import Persistence
from cupel_measures.grammar.scale_types import scale_type

Replicates = Annotated[int, whole_number(100)]


@audit(
    "qrels_versions",
    title="Two versions of the judgments",
    answers="How far do two judgings agree, and what would the other one make of the runs?",
    source="Cohen 1960; Krippendorff 2011; Voorhees, SIGIR 1998; Carterette, TOIS 2012 (spec 12)",
)
class QrelsVersions(Audit):
    """Holds the judgments against others of the same topics, and the runs' scores under both.

    Agreement is told for each aspect that both have with the same labels, over the documents that both judge:
    the share of the same label, Cohen's kappa with linear weights, Krippendorff's ordinal alpha, and how
    labels were confused; judgments by subtopic are compared as relevant or not, of every subtopic that either
    version knows of the topic.

    Runs are scored under both versions over the topics that both have. By measure: tau-b and tau AP between
    the orders, runs that change rank, and significance groups by randomised Tukey HSD, which both versions
    share the replicates of.

    The first trial compares judgments, each other one a measure. A measure that the two versions do not both
    have, with the same aspects, is left out.
    """

    needs_other_qrels = True

    alpha: Persistence = setting(ALPHA, "chance of any false finding among all pairs of runs of a measure")
    replicates: Replicates = setting(REPLICATES, "replicates of randomised Tukey HSD")

    def problems(self, subject: AuditSubject) -> Iterator[str]:
        yield from super().problems(subject)
        if subject.other_subject is None:
            yield "it compares two versions of the judgments: give the second one as `other`"
            return
        if not _common(subject)[0].size:
            yield (
                f"{subject.about.qrels} and {subject.about.other} have no topic in common: give two versions "
                "of the judgments of the same topics"
            )
        if not (subject.about.relevant or subject.other_subject.about.relevant):
            yield "neither version judges a document relevant: all runs score the same"

    def trials(self, subject: AuditSubject) -> int:
        return 1 + len(_shared(subject))

    def steps(self, subject: AuditSubject) -> float:
        return 50.0

    def run_trials(self, subject: AuditSubject, seed: int, trials: Sequence[int]) -> Iterator[Any]:
        for trial in trials:
            yield self._order(subject, _shared(subject)[trial - 1], seed) if trial else _judgments(subject)

    def _order(self, subject: AuditSubject, measure: Measure, seed: int) -> dict[str, Any]:
        """One measure under both versions, over the common topics."""
        versions = zip((subject, _other(subject)), _common(subject), strict=True)
        scores = [version.scores[str(measure)][rows] for version, rows in versions]
        drawn = {"alpha": self.alpha, "replicates": self.replicates, "seed": seed}
        averaged = [means({str(measure): one}, [measure])[str(measure)] for one in scores]
        scale = scale_type(measure, subject.qrels.aspects)
        return {"measure": str(measure), **order_changes.order(averaged, scores, scale, **drawn)}

    def report(self, about: SubjectSummary, found: Mapping[int, Any]) -> AuditReport:
        reports = []
        if 0 in found:
            reports.append(_topics(about, found[0]))
        if orders := {one["measure"]: one for trial, one in found.items() if trial}:
            reports.append(order_changes.report(about, orders))
        if 0 in found:
            reports.append(judgment_changes.report(about, found[0]))
        return merged(reports)


def _other(subject: AuditSubject) -> AuditSubject:
    """ValueError where there is none."""
    if subject.other_subject is None:
        raise ValueError("the other judgments are needed")
    return subject.other_subject


def _shared(subject: AuditSubject) -> list[Measure]:
    """The measures that both versions have."""
    theirs = set(_other(subject).about.measures)
    return [one for one in subject.measures if str(one) in theirs]


def _common(subject: AuditSubject) -> tuple[np.ndarray[Any, np.dtype[np.int64]], ...]:
    """int64[n] twice: where the common topics are in the one, and in the other."""
    mine, theirs = subject.qrels.topics, _other(subject).qrels.topics
    both = sorted(set(mine) & set(theirs), key=str.encode)
    return tuple(np.array([of.index(one) for one in both], dtype=np.int64) for of in (mine, theirs))


def _judgments(subject: AuditSubject) -> dict[str, Any]:
    other = _other(subject)
    common = set(subject.qrels.topics) & set(other.qrels.topics)
    left_out = [str(one) for one in subject.measures if one not in _shared(subject)]
    return {
        "topics": [len(common), len(subject.qrels.topics), len(other.qrels.topics)],
        "left_out": left_out,
        **judgment_changes.judgments(subject.qrels, other.qrels, common),
    }


def _topics(about: SubjectSummary, found: Mapping[str, Any]) -> AuditReport:
    """What is compared, where the two versions do not have the same topics and measures."""
    common, mine, theirs = found["topics"]
    have = f"{about.qrels} has {mine} topics and {about.other} {theirs}"
    return AuditReport(
        verdict=(),
        numbers={"topics": common},
        tables=(),
        undefined=tuple(
            f"{one}: {about.other} has it not, or for other aspects" for one in found["left_out"]
        ),
        warnings=() if common == mine == theirs else (f"{have}: all is told over the {common} of both.",),
    )
