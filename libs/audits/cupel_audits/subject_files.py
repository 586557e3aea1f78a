"""Assembly of the subject of an audit from rankings, and its serialisation."""

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from cupel_audits.analysis.judgment_samples import graded, relevant_by_subtopic
from cupel_audits.subject import AuditSubject, SubjectSummary, Tops
from cupel_measures.grammar.measure import Measure
from cupel_measures.model import Content, Ids, Joined, Qrels, Ranking, profiles
from cupel_measures.model.profiles import DEFAULT, Profile
from cupel_measures.reading.joins import join, order_of
from cupel_measures.scoring.evaluator import list_unsupported

ARRAYS = ("retrieved", "offsets", "document", "rank", "first", "last")


@dataclass(frozen=True, eq=False)
class RunView:
    """A run in the form that audits need.

    joined: the run joined with the qrels. top: the first documents of each topic of the qrels, best first, or
    None if the audit does not need them. content: the texts of the documents, or None. other: the run joined
    with the second version of the qrels, or None.
    """

    joined: Joined
    top: Ranking | None = None
    content: Content | None = None
    other: Joined | None = None


@dataclass(frozen=True, eq=False)
class NamedQrels:
    """Qrels with the name that reports use for them."""

    name: str
    qrels: Qrels


def view_of(
    ranking: Ranking,
    qrels: Qrels,
    *,
    profile: Profile = DEFAULT,
    depth: int | None = None,
    top: int = 0,
    content: Content | None = None,
    other: Qrels | None = None,
) -> RunView:
    """Return a run in the form that an audit needs.

    depth: maximum number of documents per topic. top: the `ranking_depth` of the audit. other: the second
    version of the qrels, if the audit compares two versions.
    """
    first = _first_documents(ranking, qrels, profile, min(top, depth or top)) if top else None
    other_joined = None if other is None else join(ranking, other, profile=profile, depth=depth)
    return RunView(join(ranking, qrels, profile=profile, depth=depth), first, content, other_joined)


def assemble_subject(
    judgments: NamedQrels,
    runs: Sequence[tuple[str, RunView]],
    measures: Sequence[Measure],
    *,
    teams: Sequence[str] | None = None,
    depth: int | None = None,
    top: int = 0,
    other: NamedQrels | None = None,
) -> AuditSubject:
    """Return the subject with these judgments and named runs.

    Raises ValueError if there are no runs.
    """
    if not runs:
        raise ValueError("an audit needs at least one run")
    views = [view for _, view in runs]
    names = tuple(name for name, _ in runs)
    about = summary_of(judgments, names, measures, views[0].joined.profile.name, teams, depth, other)
    tops = _tops([view.top for view in views if view.top], judgments.qrels, top) if top else None
    texts = [view.content for view in views if view.content]
    return AuditSubject(
        about=about,
        qrels=judgments.qrels,
        joined=Joined.stack([view.joined for view in views]),
        tops=tops,
        content=Content.stack(texts) if texts else None,
        other_subject=_other_subject(
            other, names, [view.other for view in views if view.other], measures, about
        ),
    )


def _other_subject(
    judgments: NamedQrels | None,
    names: tuple[str, ...],
    joined: Sequence[Joined],
    measures: Sequence[Measure],
    about: SubjectSummary,
) -> AuditSubject | None:
    if judgments is None:
        return None
    possible = [measure for measure in measures if not list_unsupported(judgments.qrels, [measure])]
    summary = summary_of(judgments, names, possible, about.profile, about.teams, about.depth, None)
    return AuditSubject(about=summary, qrels=judgments.qrels, joined=Joined.stack(joined))


def summary_of(
    judgments: NamedQrels,
    names: tuple[str, ...],
    measures: Sequence[Measure],
    profile: str,
    teams: Sequence[str] | None,
    depth: int | None,
    other: NamedQrels | None,
) -> SubjectSummary:
    """Return the summary of runs, judgments and measures."""
    qrels = judgments.qrels
    without_runs = AuditSubject(about=_EMPTY_SUMMARY, qrels=qrels, joined=Joined.empty(len(qrels.topics)))
    relevant = graded(without_runs)[1] | relevant_by_subtopic(without_runs)
    return SubjectSummary(
        runs=names,
        teams=None if teams is None else tuple(teams),
        topics=qrels.topics,
        aspects=tuple(aspect.name for aspect in qrels.aspects),
        measures=tuple(str(measure.bound(qrels.aspects)) for measure in measures),
        profile=profile,
        depth=depth,
        qrels=judgments.name,
        judged=int(without_runs.judged.sum()),
        relevant=int(relevant.sum()),
        other=None if other is None else other.name,
    )


_EMPTY_SUMMARY = SubjectSummary(
    runs=(),
    teams=None,
    topics=(),
    aspects=(),
    measures=(),
    profile=DEFAULT.name,
    depth=None,
    qrels="",
    judged=0,
    relevant=0,
)


def _first_documents(ranking: Ranking, qrels: Qrels, profile: Profile, depth: int) -> Ranking:
    """Return the first `depth` documents of each topic of the qrels.

    The documents are in the order of the profile.
    """
    place = {topic: number for number, topic in enumerate(ranking.topics)}
    order = order_of(ranking, profile)
    starts, blob = ranking.documents.starts, ranking.documents.blob
    ids, offsets, scores = [], [0], []
    for topic in qrels.topics:
        number = place.get(topic)
        low, high = (0, 0) if number is None else ranking.offsets[number : number + 2].tolist()
        best = order[low : min(high, low + depth)]
        ids += [blob[starts[place] : starts[place + 1]] for place in best.tolist()]
        scores.append(ranking.scores[best])
        offsets.append(len(ids))
    return Ranking(qrels.topics, np.array(offsets, np.int64), Ids.of(ids), np.concatenate(scores))


def _tops(firsts: Sequence[Ranking], qrels: Qrels, depth: int) -> Tops:
    """Merge the first documents of all runs; number them by topic and id.

    depth: maximum number of documents per run and topic.
    """
    depth = min(depth, max((int(np.diff(first.offsets).max(initial=0)) for first in firsts), default=0))
    by_run = [first.documents.to_list() for first in firsts]
    ranked = np.full((len(firsts), len(qrels.topics), depth), -1, dtype=np.int32)
    ids: list[bytes] = []
    topics: list[int] = []
    pooled: list[int] = []
    known = qrels.documents.to_list()
    for topic, (low, high) in enumerate(pairwise(qrels.offsets.tolist())):
        ids_by_run = [
            run_ids[first.offsets[topic] : first.offsets[topic + 1]]
            for run_ids, first in zip(by_run, firsts, strict=True)
        ]
        names = sorted(set().union(*ids_by_run))
        number = {name: len(ids) + place for place, name in enumerate(names)}
        pool = {name: low + place for place, name in enumerate(known[low:high])}
        for run, run_ids in enumerate(ids_by_run):
            ranked[run, topic, : len(run_ids)] = [number[name] for name in run_ids]
        ids += names
        topics += [topic] * len(names)
        pooled += [pool.get(name, -1) for name in names]
    return Tops(Ids.of(ids), np.array(topics, np.int32), np.array(pooled, np.int32), ranked)


def pack(subject: AuditSubject) -> bytes:
    """Serialise a subject without its qrels and texts.

    Equal subjects have equal bytes.
    """
    arrays = _arrays("", subject)
    heads = [subject.about.as_data()]
    if subject.tops is not None:
        starts = subject.tops.documents.starts
        blob = np.frombuffer(subject.tops.documents.blob, np.uint8)
        arrays |= {"ids": blob, "starts": starts, "topic": subject.tops.topic}
        arrays |= {"pooled": subject.tops.pooled, "ranked": subject.tops.ranked}
    if subject.other_subject is not None:
        arrays |= _arrays("other_", subject.other_subject)
        heads.append(subject.other_subject.about.as_data())
    arrays["heads"] = np.frombuffer(json.dumps(heads).encode(), np.uint8)
    stream = io.BytesIO()
    np.savez_compressed(stream, allow_pickle=False, **arrays)
    return stream.getvalue()


def unpack(blob: bytes, qrels: Qrels, other: Qrels | None = None) -> AuditSubject:
    """Return the subject that `pack` serialised, under the same qrels.

    Raises ValueError for damaged bytes.
    """
    with np.load(io.BytesIO(blob), allow_pickle=False) as arrays:
        heads = [SubjectSummary.of(head) for head in json.loads(arrays["heads"].tobytes())]
        tops = None
        if "ranked" in arrays:
            documents = Ids(arrays["ids"].tobytes(), arrays["starts"])
            tops = Tops(documents, arrays["topic"], arrays["pooled"], arrays["ranked"])
        other_subject = None
        if other is not None:
            other_joined = _joined("other_", arrays, heads[1])
            other_subject = AuditSubject(about=heads[1], qrels=other, joined=other_joined)
        joined = _joined("", arrays, heads[0])
        return AuditSubject(
            about=heads[0], qrels=qrels, joined=joined, tops=tops, other_subject=other_subject
        )


def _arrays(prefix: str, subject: AuditSubject) -> dict[str, Any]:
    arrays = {prefix + name: getattr(subject.joined, name) for name in ARRAYS}
    return arrays | {prefix + "strangers": np.array(subject.joined.unknown_topics)}


def _joined(prefix: str, arrays: Any, about: SubjectSummary) -> Joined:
    columns = {name: arrays[prefix + name] for name in ARRAYS}
    unknown_topics = int(arrays[prefix + "strangers"])
    return Joined(**columns, profile=profiles.find(about.profile), unknown_topics=unknown_topics)
