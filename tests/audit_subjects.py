"""Subjects of audits from small runs, and audits done of them in whatever order and grouping."""

import json
import random
from collections.abc import Mapping, Sequence
from typing import Any

from cupel_measures.audits import read
from cupel_measures.audits.declaring import require
from cupel_measures.audits.gathering import Judgments, gather, see
from cupel_measures.audits.running import Result, result, work
from cupel_measures.audits.subject import Subject
from cupel_measures.grammar import parse_many
from cupel_measures.model import Qrels, Texts
from making import Scored, content_of, ranking_of

SEED = 5


def subject_of(
    runs: Mapping[str, Scored],
    qrels: Qrels,
    measures: str,
    *,
    top: int = 0,
    other: Qrels | None = None,
    texts: Texts | None = None,
    teams: Sequence[str] | None = None,
) -> Subject:
    """`runs` by name under `qrels`, and under `other`, which is called new."""
    seen = [
        (
            name,
            see(
                ranking_of(run),
                qrels,
                top=top,
                other=other,
                content=content_of(run, qrels, texts) if texts else None,
            ),
        )
        for name, run in runs.items()
    ]
    again = None if other is None else Judgments("new", other)
    return gather(Judgments("old", qrels), seen, parse_many(measures), top=top, other=again, teams=teams)


def found_of(
    kind: str, subject: Subject, given: Mapping[str, Any] | None = None, *, order: Sequence[int] | None = None
) -> dict[int, Any]:
    """The results of trials as JSON gives them back; each asked for alone where `order` says which."""
    audit = read(kind, given)
    require(audit, subject)
    groups = [range(audit.trials(subject))] if order is None else [[trial] for trial in order]
    pairs = [pair for group in groups for pair in work(audit, subject, SEED, group)]
    return {trial: json.loads(json.dumps(one, allow_nan=False)) for trial, one in pairs}


def result_of(
    kind: str, subject: Subject, given: Mapping[str, Any] | None = None, *, order: Sequence[int] | None = None
) -> Result:
    """The result on all trials, or on those of `order`."""
    audit, found = read(kind, given), found_of(kind, subject, given, order=order)
    return result(audit, subject.about, SEED, audit.trials(subject), found)


def shuffled_trials(kind: str, subject: Subject, given: Mapping[str, Any] | None = None) -> list[int]:
    """All trials in another order."""
    trials = list(range(read(kind, given).trials(subject)))
    random.Random(1).shuffle(trials)
    return trials
