"""From rankings to the subject of an audit; and the subject as a blob, so that it is made once."""

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
from cupel_measures.scoring.evaluator import impossible

ARRAYS = ("retrieved", "offsets", "document", "rank", "first", "last")


@dataclass(frozen=True, eq=False)
class RunView:
    """A run as audits look at it.

    joined: with the qrels. top: the first documents of each topic of the qrels, best first, where they are
    asked for. content: the texts of its documents, where there are any. other: joined with other qrels.
    """

    joined: Joined
    top: Ranking | None = None
    content: Content | None = None
    other: Joined | None = None


@dataclass(frozen=True, eq=False)
class NamedQrels:
    """Qrels and the name that reports give them."""

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
    """A run as an audit needs it. depth: rankings are cut there. top: as `Audit.top` says."""
    first = _first(ranking, qrels, profile, min(top, depth or top)) if top else None
    again = None if other is None else join(ranking, other, profile=profile, depth=depth)
    return RunView(join(ranking, qrels, profile=profile, depth=depth), first, content, again)


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
    """The subject that named runs make under judgments. ValueError where there are no runs."""
    if not runs:
        raise ValueError("an audit needs runs")
    seen = [one for _, one in runs]
    names = tuple(name for name, _ in runs)
    about = _about(judgments, names, measures, seen[0].joined.profile.name, teams, depth, other)
    tops = _tops([one.top for one in seen if one.top], judgments.qrels, top) if top else None
    texts = [one.content for one in seen if one.content]
    return AuditSubject(
        about,
        judgments.qrels,
        Joined.stack([one.joined for one in seen]),
        tops,
        Content.stack(texts) if texts else None,
        _other(other, names, [one.other for one in seen if one.other], measures, about),
    )


def _other(
    judgments: NamedQrels | None,
    names: tuple[str, ...],
    joined: Sequence[Joined],
    measures: Sequence[Measure],
    about: SubjectSummary,
) -> AuditSubject | None:
    if judgments is None:
        return None
    had = [one for one in measures if not impossible(judgments.qrels, [one])]
    there = _about(judgments, names, had, about.profile, about.teams, about.depth, None)
    return AuditSubject(there, judgments.qrels, Joined.stack(joined))


def _about(
    judgments: NamedQrels,
    names: tuple[str, ...],
    measures: Sequence[Measure],
    profile: str,
    teams: Sequence[str] | None,
    depth: int | None,
    other: NamedQrels | None,
) -> SubjectSummary:
    qrels = judgments.qrels
    bare = AuditSubject(_EMPTY_SUMMARY, qrels, Joined.empty(len(qrels.topics)))
    relevant = graded(bare)[1] | relevant_by_subtopic(bare)
    return SubjectSummary(
        runs=names,
        teams=None if teams is None else tuple(teams),
        topics=qrels.topics,
        aspects=tuple(aspect.name for aspect in qrels.aspects),
        measures=tuple(str(one.bound(qrels.aspects)) for one in measures),
        profile=profile,
        depth=depth,
        qrels=judgments.name,
        judged=int(bare.judged.sum()),
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


def _first(ranking: Ranking, qrels: Qrels, profile: Profile, depth: int) -> Ranking:
    """The first `depth` documents of each topic of the qrels, in the order of the profile."""
    place = {topic: number for number, topic in enumerate(ranking.topics)}
    order = order_of(ranking, profile)
    starts, blob = ranking.documents.starts, ranking.documents.blob
    ids, offsets, scores = [], [0], []
    for topic in qrels.topics:
        number = place.get(topic)
        low, high = (0, 0) if number is None else ranking.offsets[number : number + 2].tolist()
        best = order[low : min(high, low + depth)]
        ids += [blob[starts[one] : starts[one + 1]] for one in best.tolist()]
        scores.append(ranking.scores[best])
        offsets.append(len(ids))
    return Ranking(qrels.topics, np.array(offsets, np.int64), Ids.of(ids), np.concatenate(scores))


def _tops(firsts: Sequence[Ranking], qrels: Qrels, depth: int) -> Tops:
    """The first documents of all runs, numbered topic by topic by their ids; no deeper than any run goes."""
    depth = min(depth, max((int(np.diff(one.offsets).max(initial=0)) for one in firsts), default=0))
    by_run = [one.documents.to_list() for one in firsts]
    ranked = np.full((len(firsts), len(qrels.topics), depth), -1, dtype=np.int32)
    ids: list[bytes] = []
    topics: list[int] = []
    pooled: list[int] = []
    known = qrels.documents.to_list()
    for topic, (low, high) in enumerate(pairwise(qrels.offsets.tolist())):
        here = [
            of_run[one.offsets[topic] : one.offsets[topic + 1]]
            for of_run, one in zip(by_run, firsts, strict=True)
        ]
        names = sorted(set().union(*here))
        number = {name: len(ids) + place for place, name in enumerate(names)}
        pool = {name: low + place for place, name in enumerate(known[low:high])}
        for run, of_run in enumerate(here):
            ranked[run, topic, : len(of_run)] = [number[name] for name in of_run]
        ids += names
        topics += [topic] * len(names)
        pooled += [pool.get(name, -1) for name in names]
    return Tops(Ids.of(ids), np.array(topics, np.int32), np.array(pooled, np.int32), ranked)


def pack(subject: AuditSubject) -> bytes:
    """All of a subject but its qrels and texts, as one blob. The same subject, the same blob."""
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
    """The subject that `pack` was given, under the same qrels. ValueError where the blob is damaged."""
    with np.load(io.BytesIO(blob), allow_pickle=False) as arrays:
        heads = [SubjectSummary.of(one) for one in json.loads(arrays["heads"].tobytes())]
        tops = None
        if "ranked" in arrays:
            documents = Ids(arrays["ids"].tobytes(), arrays["starts"])
            tops = Tops(documents, arrays["topic"], arrays["pooled"], arrays["ranked"])
        again = None if other is None else AuditSubject(heads[1], other, _joined("other_", arrays, heads[1]))
        return AuditSubject(heads[0], qrels, _joined("", arrays, heads[0]), tops, None, again)


def _arrays(prefix: str, subject: AuditSubject) -> dict[str, Any]:
    found = {prefix + name: getattr(subject.joined, name) for name in ARRAYS}
    return found | {prefix + "strangers": np.array(subject.joined.strangers)}


def _joined(prefix: str, arrays: Any, about: SubjectSummary) -> Joined:
    columns = {name: arrays[prefix + name] for name in ARRAYS}
    strangers = int(arrays[prefix + "strangers"])
    return Joined(**columns, profile=profiles.find(about.profile), strangers=strangers)
