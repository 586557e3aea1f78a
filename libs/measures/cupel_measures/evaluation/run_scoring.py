"""Scoring of one run: read it, join it with the qrels, compute the measures."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from cupel_measures.catalogue.parser import Measure, parse
from cupel_measures.evaluation.run_checks import RunChecks, check_joined
from cupel_measures.findings import Finding, Findings, Refused
from cupel_measures.inputs.run_inputs import RunInput
from cupel_measures.model import Content, Floats, Joined, Qrels, Ranking, Run, Texts, profiles
from cupel_measures.reading.lines.topic_checks import EXTRA
from cupel_measures.reading.run_files import check_against, digest, join
from cupel_measures.reading.text_files import join_texts
from cupel_measures.scoring.evaluator import evaluate, exact_means
from cupel_measures.scoring.pool import Mask

DEEPEST = 2**31 - 1
"""Largest depth of a ranking, because ranks are int32."""
UNJUDGED = parse("Unjudged@10")


@dataclass(frozen=True, kw_only=True)
class ScoringTask:
    """Specification of how to score runs; it can be sent to other processes.

    measures: canonical texts. profile: name of the profile. depth: maximum number of documents per ranking,
    or None. details: whether to also return tag, digest and all findings, which makes reading slower.
    texts: document texts, if a measure needs them. exact: number of leading measures whose exact means are
    also returned. explain: parts to explain (explained_parts.ABOUT). over_run: whether to aggregate over
    the topics of the run only, instead of all judged topics.
    """

    qrels: Qrels
    measures: tuple[str, ...]
    profile: str
    depth: int | None = None
    details: bool = False
    texts: Texts | None = None
    exact: int = 0
    explain: tuple[str, ...] = ()
    over_run: bool = False

    @cached_property
    def parsed(self) -> tuple[Measure, ...]:
        return tuple(map(parse, self.measures))

    def joined(self, ranking: Ranking) -> tuple[Joined, Content | None]:
        """Join a ranking with the qrels, and with the texts if there are any."""
        rules: Any = {"profile": profiles.find(self.profile), "depth": self.depth}
        content = None if self.texts is None else join_texts(ranking, self.qrels, self.texts, **rules)
        return join(ranking, self.qrels, **rules), content


@dataclass(frozen=True, eq=False, kw_only=True)
class Scored:
    """A scored or refused run.

    If it is refused, `values` is None and `findings` has the reasons.

    source: name in findings. values: float64[T] per measure of the job. over: bool[T], the topics of the
    aggregates, or None for all. means: mean over these topics by measure. exact: exact means by measure text,
    if requested and available.
    missing: number of topics of the qrels that the run lacks.
    """

    source: str
    findings: Findings
    values: tuple[Floats, ...] | None = None
    over: Mask | None = None
    means: tuple[float, ...] = ()
    missing: int = 0
    tag: str | None = None
    digest: str | None = None
    unjudged: float | None = None
    """Mean share of the first 10 ranks that have no judgment for the first aspect.

    The mean is over the same topics as `means`. It is None if all judgments are by subtopic.
    """
    exact: Mapping[str, Fraction] = field(default_factory=dict)
    explanations: tuple[Mapping[str, Any], ...] = ()
    """Explanations per measure of the job, as plain values; empty if none were requested."""
    checks: RunChecks | None = None
    """Facts that reveal mistakes of beginners, or None for a refused run."""


def score(source: RunInput, job: ScoringTask) -> Scored:
    """Read and score one run."""
    run: Run | None = None
    content: Content | None = None
    try:
        if job.details or job.explain or job.texts is not None:
            run = source.read(job.depth)
            run.findings.extend(check_against(run, job.qrels.listed_topics, file=source.name))
            if run.findings.refused:
                return Scored(source=source.name, findings=run.findings)
            joined, content = job.joined(run.ranking)
        else:
            joined = source.join(job.qrels, profile=profiles.find(job.profile), depth=job.depth)
    except Refused as refused:
        return Scored(source=source.name, findings=refused.findings)
    scores = evaluate(job.qrels, joined, job.parsed, content=content)
    values = tuple(scores.values[measure] for measure in job.parsed)
    over = joined.has_documents if job.over_run else None
    aggregates = scores.aggregates(over)
    means = tuple(aggregates[measure] for measure in job.parsed)
    deepest = int(joined.retrieved.max(initial=0))
    rational = exact_means(job.qrels, joined, job.parsed[: job.exact], depth=deepest, over=over)
    exact = {str(measure): value for measure, value in rational.items()}
    missing = int(np.count_nonzero(joined.retrieved == 0))
    checks = check_joined(joined, job.qrels, job.parsed)
    if run is None:
        return Scored(
            source=source.name,
            findings=unknown_topics(joined, source.name),
            values=values,
            over=over,
            means=means,
            missing=missing,
            exact=exact,
            checks=checks,
        )
    unjudged = None if job.qrels.only_by_subtopic else _unjudged(job.qrels, joined, over)
    return Scored(
        source=source.name,
        findings=run.findings,
        values=values,
        over=over,
        means=means,
        missing=missing,
        tag=run.tag,
        digest=digest(run.ranking),
        unjudged=unjudged,
        exact=exact,
        checks=checks,
        explanations=_explained(run, job) if job.explain else (),
    )


def _unjudged(qrels: Qrels, joined: Joined, over: Mask | None) -> float:
    return evaluate(qrels, joined, [UNJUDGED]).aggregates(over)[UNJUDGED]


def _explained(run: Run, job: ScoringTask) -> tuple[Mapping[str, Any], ...]:
    from cupel_measures.explaining.explanations import explain  # imported late, because it is slow

    explanations = explain(
        job.qrels,
        run.ranking,
        job.parsed,
        profile=profiles.find(job.profile),
        depth=job.depth,
        about=job.explain,
    )
    return tuple(explanations[measure].as_data() for measure in job.parsed)


def unknown_topics(joined: Joined, file: str) -> Findings:
    """Return notes of a joined run, and a finding about topics that the qrels lack.

    The fast reader has no other findings.
    """
    findings = Findings()
    for note in joined.notes:
        findings.add(note)
    if joined.unknown_topics:
        message = f"the qrels lack {joined.unknown_topics} topics of the run; these topics are ignored"
        findings.add(Finding(code=EXTRA, message=message, file=file), joined.unknown_topics)
    return findings
