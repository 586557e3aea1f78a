"""Readers of runs in TREC text.

The result is a ranking with all its findings, or rows joined with qrels.

Two readers follow the same rules and give the same values. The diagnosing reader (`read_run`) collects all
findings. The fast reader (`join_run`) converts text to joined rows. For irregular files, it calls the
diagnosing reader.
"""

from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import PurePath

import numpy as np
from numpy.typing import NDArray

from cupel_measures.findings import Finding, Findings, Refused, declare
from cupel_measures.model import Joined, Qrels, Ranking, Run
from cupel_measures.model.profiles import DEFAULT, Profile
from cupel_measures.reading.compression import Limits, Source, name_of, open_plain, plain_name, reopenable
from cupel_measures.reading.content_formats import foreign
from cupel_measures.reading.joins import join, join_text
from cupel_measures.reading.lines.ir_metadata import metadata_of
from cupel_measures.reading.lines.rank_checks import rank_rows
from cupel_measures.reading.lines.run_lines import read_rows
from cupel_measures.reading.lines.topic_checks import check_against
from cupel_measures.reading.run_blobs import digest, pack, unpack
from cupel_measures.scoring.pool import are_judged

__all__ = [
    "Effects",
    "Limits",
    "check_against",
    "check_judged",
    "digest",
    "join",
    "join_run",
    "pack",
    "profile_effects",
    "read_run",
    "unpack",
]

SUFFIXES = (".txt", ".run", ".dat", ".res", ".trec", ".out", ".tsv")

TAG = declare(
    "run-tag",
    "warning",
    "the tag differs from the file name",
    "name the file after its tag, so that people can distinguish runs",
    is_note=True,
)
FEW_JUDGED = declare(
    "run-few-judged",
    "warning",
    "few of the top documents are judged",
    "prefer measures that tolerate missing judgments, such as Bpref, and report Judged@10",
)


def read_run(
    source: Source, *, name: str | None = None, limits: Limits | None = None, depth: int | None = None
) -> Run:
    """Read a run, plain or compressed (`compression.COMPRESSIONS`), without a cut.

    name: file name for findings and for the comparison with the tag (default: that of the path; "" for a
    temporary file, whose name means nothing). depth: cut of the track, for warnings. The
    `findings` of the result are warnings. Raise Refused, with every finding, if there is an error.
    """
    limits, name = limits or Limits(), (name_of(source) if name is None else name) or None
    source = reopenable(source, limits)
    try:
        with open_plain(source, limits) as stream:
            rows = read_rows(stream, limits, name)
    except Refused as refused:  # the archive cannot be opened
        raise Refused(refused.findings.in_file(name)) from None
    other = foreign(source, "score", name, limits) if rows.findings.refused else None
    if other is not None:
        raise Refused(Findings([other], {other.code: 1}))
    ranking, reordered = rank_rows(rows, depth, name)
    metadata, problem = metadata_of(rows.comments, name)
    if problem:
        rows.findings.add(problem)
    if rows.names and name and rows.tag not in _names(name):
        message = f"the tag is {rows.tag!r}, but the file is {PurePath(name).name!r}"
        rows.findings.add(
            Finding(code=TAG, message=message, file=name, line=int(rows.line[0]), sample=rows.tag)
        )
    if ranking is None:
        raise Refused(_of_file(rows.findings, name))
    return Run(tag=rows.tag, ranking=ranking, findings=rows.findings, metadata=metadata, reordered=reordered)


def _of_file(findings: Findings, name: str | None) -> Findings:
    """Return findings that all name a file."""
    if name is None or all(finding.file for finding in findings):
        return findings
    listed = [replace(finding, file=finding.file or name) for finding in findings]
    return Findings(listed, findings.totals)


def _names(file: str) -> set[str]:
    """Return the tags that match a file's name.

    The name can be without its suffixes and without NIST's prefix `input.`, or with them.
    """
    full = PurePath(file).name
    plain = plain_name(full)
    stem = plain
    for suffix in SUFFIXES:
        stem = stem.removesuffix(suffix)
    names = {full, plain, stem}
    return names | {name.removeprefix("input.") for name in names}


def join_run(
    source: Source,
    qrels: Qrels,
    *,
    profile: Profile = DEFAULT,
    depth: int | None = None,
    limits: Limits | None = None,
    name: str | None = None,
) -> Joined:
    """Join the run in `source` with `qrels`.

    This is faster than `read_run` followed by `join`. name: for findings (default: that of the path).

    Raise Refused, with every finding of `read_run` and `check_against`, if there is an error.
    """
    limits = limits or Limits()
    source = reopenable(source, limits)
    try:
        with open_plain(source, limits) as stream:
            joined = join_text(stream, qrels, profile=profile, depth=depth, limits=limits)
    except Refused:
        joined = None
    if joined is not None:
        return joined
    run = read_run(source, name=name, limits=limits, depth=depth)
    topics = check_against(run, qrels.listed_topics, file=name or name_of(source))
    if topics.refused:
        run.findings.extend(topics)
        raise Refused(run.findings)
    return join(run.ranking, qrels, profile=profile, depth=depth)


@dataclass(frozen=True)
class Effects:
    """Topics of a run in which the order of documents depends on the profile.

    precision: ids of topics whose documents have another order by scores in single precision. ranks: ids of
    topics whose documents have another order by the rank column.
    """

    precision: tuple[str, ...]
    ranks: tuple[str, ...]


def profile_effects(run: Run, *, depth: int | None = None) -> Effects:
    """Return the topics of `run` whose ranking depends on the profile.

    For single precision, only the first `depth` documents of each topic are compared.

    Documents with equal ranks have no order by rank, so they do not count as a difference.
    """
    ranking = run.ranking
    changed = [
        topic
        for number, topic in enumerate(ranking.topics)
        if _changes_in_single_precision(
            ranking, int(ranking.offsets[number]), int(ranking.offsets[number + 1]), depth
        )
    ]
    return Effects(tuple(changed), run.reordered)


def _changes_in_single_precision(ranking: Ranking, low: int, high: int, depth: int | None) -> bool:
    """Return whether single precision changes the order of documents low:high.

    These documents belong to one topic.
    """
    with np.errstate(over="ignore", under="ignore"):
        single = ranking.scores[low:high].astype(np.float32)
    alike = single[1:] == single[:-1]
    if not (alike & (ranking.scores[low + 1 : high] != ranking.scores[low : high - 1])).any():
        return False
    bounds = np.flatnonzero(np.concatenate([[True], ~alike, [True]])).tolist()
    cut = high - low if depth is None else depth
    for a, b in pairwise(bounds):
        if b - a > 1 and a < cut:
            ids = [ranking.documents.bytes_at(low + place) for place in range(a, b)]
            if sorted(ids, reverse=True)[: cut - a] != ids[: cut - a]:
                return True
    return False


def check_judged(
    run: Run, qrels: Qrels, *, profile: Profile = DEFAULT, cutoff: int = 10, share: float = 0.5
) -> Findings:
    """Warn if the share of judged documents at the first ranks is below `share`.

    It is the share among the first `cutoff` documents of all common topics.

    A judgment of any aspect or subtopic counts. A label that means "not judged" does not count, and neither
    does a negative grade if `profile` does not treat it as a judgment. The warning reveals judgments, so
    participants of a blind phase must not see it.
    """
    findings = Findings()
    joined = join(run.ranking, qrels, profile=profile, depth=cutoff)
    total = int(joined.retrieved.sum())
    judged = float(_judged(qrels, profile)[joined.document].sum()) / total if total else 1.0
    if judged < share:
        message = f"only {judged:.0%} of the documents at ranks 1 to {cutoff} are judged"
        findings.add(Finding(code=FEW_JUDGED, message=message))
    return findings


def _judged(qrels: Qrels, profile: Profile) -> NDArray[np.bool_]:
    """Return which documents have a judgment of any aspect or subtopic: bool[D]."""
    judged = np.zeros(len(qrels.documents), bool)
    for aspect, labels in zip(qrels.aspects, qrels.labels, strict=True):
        judged |= are_judged(aspect, labels, negatives_judged=profile.negatives_judged)
    if qrels.subtopics is not None:
        judged[qrels.subtopics.document] = True
    return judged
