"""Findings about the topics of a run beside those of a track, with a hint where ids are written otherwise."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence

from cupel_measures.findings import Finding, Findings, declare
from cupel_measures.model import Run

Pieces = Callable[[str], Iterable[tuple[str, str]]]
Without = Callable[[str, str], str]

TRIED = 50
"""From so many topics affixes are guessed."""
LONGEST = 100
"""Characters of an affix that is looked for."""

NONE_IN_COMMON = declare(
    "run-topics-none",
    "error",
    "the run has no topic in common with the track",
    "check that the run is for this track, and write the topics' ids as the track does",
)
MISSING = declare(
    "run-topics-missing",
    "warning",
    "topics of the track are missing from the run",
    "nothing, if nothing was retrieved: a missing topic counts as an empty ranking",
)
EXTRA = declare(
    "run-topics-extra",
    "warning",
    "topics of the run are not in the track",
    "nothing: they are ignored",
)


def check_against(run: Run, qrels_topics: Sequence[str], *, file: str | None = None) -> Findings:
    """What is to be said of a run's topics beside those of its track (or its qrels).

    An error where none is in common; warnings where some are missing from the run or not in the track.
    """
    findings = Findings()
    theirs, ours = run.ranking.topics, set(qrels_topics)
    if ours.isdisjoint(theirs):
        message = f"none of the run's topics ({_some(theirs)}) is in the track ({_some(qrels_topics)})"
        hint = _hint(theirs, sorted(ours))
        message += f"; {hint}" if hint else ""
        findings.add(Finding(NONE_IN_COMMON, message, file, sample=_some(theirs)))
        return findings
    missing = sorted(ours.difference(theirs))
    if missing:
        message = f"the run lacks {len(missing):,} of {len(ours):,} topics: {_some(missing)}"
        findings.add(Finding(MISSING, message, file, topic=missing[0], sample=_some(missing)), len(missing))
    extra = [topic for topic in theirs if topic not in ours]
    if extra:
        message = f"the track lacks {len(extra):,} of the run's {len(theirs):,} topics: {_some(extra)}"
        findings.add(Finding(EXTRA, message, file, topic=extra[0], sample=_some(extra)), len(extra))
    return findings


def _some(topics: Sequence[str]) -> str:
    return ", ".join(topics[:3]) + (", ..." if len(topics) > 3 else "")


def _hint(theirs: Sequence[str], ours: Sequence[str]) -> str | None:
    """What would make most of the run's topics those of the track: leading zeros, an affix, or both."""
    run, track = {_plain(topic): topic for topic in theirs}, {_plain(topic): topic for topic in ours}
    common = [topic for topic in run if topic in track]
    if 2 * len(common) > len(theirs):
        mine, other = run[common[0]], track[common[0]]
        return f"ids differ in leading zeros: {mine!r} in the run, {other!r} in the track"
    for same, also in ((str, ""), (_plain, "; and they differ in leading zeros")):
        for longer, shorter, where in ((theirs, ours, "the run"), (ours, theirs, "the track")):
            known = set(map(same, shorter))
            for kind, pieces, without in AFFIXES:
                affix, matched = _affix(longer, known, pieces, without, same)
                if 2 * matched > len(theirs):
                    return f"ids differ by a {kind}: {affix!r} is in those of {where} only{also}"
    return None


def _plain(topic: str) -> str:
    """An id without zeros before its last number: q007 is q7."""
    digits = len(topic) - len(topic.rstrip("0123456789"))
    return topic[: len(topic) - digits] + (topic[len(topic) - digits :].lstrip("0") or "0" * bool(digits))


def _tails(topic: str) -> Iterable[tuple[str, str]]:
    """(what is cut off, what is left), cutting from the front."""
    return ((topic[:i], topic[i:]) for i in range(1, min(len(topic), LONGEST)))


def _heads(topic: str) -> Iterable[tuple[str, str]]:
    return ((topic[i:], topic[:i]) for i in range(max(len(topic) - LONGEST, 1), len(topic)))


AFFIXES: tuple[tuple[str, Pieces, Without], ...] = (
    ("prefix", _tails, str.removeprefix),
    ("suffix", _heads, str.removesuffix),
)


def _affix(
    longer: Sequence[str],
    known: Collection[str],
    pieces: Pieces,
    without: Without,
    same: Callable[[str], str],
) -> tuple[str, int]:
    """What most of the first of `longer` have beyond a known id, and how many known ids are left without it.

    It is not digits alone: 401 and 1 are just two numbers.
    """
    found = Counter(cut for topic in longer[:TRIED] for cut, left in pieces(topic) if same(left) in known)
    for affix, _ in found.most_common():
        if not affix.isdigit():
            left = {same(without(topic, affix)) for topic in longer if without(topic, affix) != topic}
            return affix, len(left.intersection(known))
    return "", 0
