"""Scoring a run: it is read, joined with the qrels, and measured."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from cupel_client.offline.input_files import unreadable
from cupel_measures.catalogue.parser import Measure, parse
from cupel_measures.explaining import explain
from cupel_measures.findings import Finding, Findings, Refused
from cupel_measures.model import Content, Floats, Joined, Qrels, Ranking, Run, Texts, profiles
from cupel_measures.reading.lines.topic_checks import EXTRA
from cupel_measures.reading.run_files import check_against, digest, join, join_run, read_run
from cupel_measures.reading.text_files import join_texts
from cupel_measures.scoring.evaluator import aggregate, evaluate, exact_means

DEEPEST = 2**31 - 1
"""The largest depth of a cut: ranks are int32."""
UNJUDGED = parse("Unjudged@10")


@dataclass(frozen=True)
class ScoringTask:
    """What to score runs with. With `story`, a run's tag, digest and warnings are wanted too, which takes
    longer. exact: the first so many measures are wanted exactly, too, where they can be. explain: what is to
    be told of each value (explaining.ABOUT). measures are texts, and profile a name: the job may be sent to
    other processes. texts: of the documents, where a measure needs them."""

    qrels: Qrels
    measures: tuple[str, ...]
    profile: str
    depth: int | None = None
    story: bool = False
    texts: Texts | None = None
    exact: int = 0
    explain: tuple[str, ...] = ()

    @cached_property
    def parsed(self) -> tuple[Measure, ...]:
        return tuple(map(parse, self.measures))

    def joined(self, ranking: Ranking) -> tuple[Joined, Content | None]:
        """A ranking seen through the qrels, and through the texts where there are any."""
        rules: Any = {"profile": profiles.find(self.profile), "depth": self.depth}
        content = None if self.texts is None else join_texts(ranking, self.qrels, self.texts, **rules)
        return join(ranking, self.qrels, **rules), content


@dataclass(frozen=True, eq=False)
class Scored:
    """A run that was scored, or refused: then `values` is None and `findings` says why.

    values: float64[T] per measure of the job; means: what each is over all topics; exact: what that is
    rounded from, by the text of the measure, where it was wanted and is kept. missing: topics of the qrels
    that the run lacks.
    """

    path: Path
    findings: Findings
    values: tuple[Floats, ...] | None = None
    means: tuple[float, ...] = ()
    missing: int = 0
    tag: str | None = None
    digest: str | None = None
    unjudged: float | None = None
    """Share of the first 10 ranks without a judgment for the first aspect, over all topics; None where
    judgments are by subtopic only."""
    exact: Mapping[str, Fraction] = field(default_factory=dict)
    explanations: tuple[Mapping[str, Any], ...] = ()
    """Per measure of the job what was to be told, as plain values; empty where nothing was."""


def score(path: Path, job: ScoringTask) -> Scored:
    """Read and score one run."""
    run: Run | None = None
    content: Content | None = None
    try:
        if job.story or job.explain or job.texts is not None:
            run = read_run(path, depth=job.depth)
            run.findings.extend(check_against(run, job.qrels.topics, file=path.name))
            if run.findings.refused:
                return Scored(path, run.findings)
            joined, content = job.joined(run.ranking)
        else:
            joined = join_run(path, job.qrels, profile=profiles.find(job.profile), depth=job.depth)
    except Refused as refused:
        return Scored(path, refused.findings)
    except OSError as problem:
        return Scored(path, unreadable(problem, path))
    scores = evaluate(job.qrels, joined, job.parsed, content=content)
    values = tuple(scores.values[measure] for measure in job.parsed)
    means = tuple(map(aggregate, job.parsed, values))
    deepest = int(joined.retrieved.max(initial=0))
    rational = exact_means(job.qrels, joined, job.parsed[: job.exact], depth=deepest)
    exact = {str(measure): value for measure, value in rational.items()}
    missing = int(np.count_nonzero(joined.retrieved == 0))
    if run is None:
        return Scored(path, strangers(joined, path), values, means, missing, exact=exact)
    unjudged = None if job.qrels.only_by_subtopic else _unjudged(job.qrels, joined)
    told = _explained(run, job) if job.explain else ()
    story = run.tag, digest(run.ranking), unjudged
    return Scored(path, run.findings, values, means, missing, *story, exact, told)


def _unjudged(qrels: Qrels, joined: Joined) -> float:
    return evaluate(qrels, joined, [UNJUDGED]).aggregates()[UNJUDGED]


def _explained(run: Run, job: ScoringTask) -> tuple[Mapping[str, Any], ...]:
    found = explain(
        job.qrels,
        run.ranking,
        job.parsed,
        profile=profiles.find(job.profile),
        depth=job.depth,
        about=job.explain,
    )
    return tuple(found[measure].as_data() for measure in job.parsed)


def strangers(joined: Joined, path: Path) -> Findings:
    """The one thing that reading fast tells beside the rows: topics that the qrels don't have."""
    findings = Findings()
    if joined.strangers:
        message = f"{joined.strangers} topics of the run are not among the qrels': they are ignored"
        findings.add(Finding(EXTRA, message, path.name), joined.strangers)
    return findings
