"""Checks of a run's topics against those of the track.

Hints are about differently written ids.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence

from cupel_measures.findings import Finding, Findings, declare
from cupel_measures.model import Run

Pieces = Callable[[str], Iterable[tuple[str, str]]]
Without = Callable[[str, str], str]

TRIED = 50
"""Number of topics from which affixes are guessed."""
LONGEST = 100
"""Length of the longest affix that is considered, in characters."""

NONE_IN_COMMON = declare(
    "run-topics-none",
    "error",
    "the run has no topic in common with the track",
    "check that the run is for this track, and write topic ids as the track does",
)
MISSING = declare(
    "run-topics-missing",
    "warning",
    "topics of the track are missing from the run",
    "no action needed if nothing was retrieved; a missing topic counts as an empty ranking",
)
EXTRA = declare(
    "run-topics-extra",
    "warning",
    "topics of the run are not in the track",
    "no action needed; topics that are not in the track are ignored",
)


def check_against(run: Run, qrels_topics: Sequence[str], *, file: str | None = None) -> Findings:
    """Compare the topics of a run with those of its track, as `check_topics` does."""
    return check_topics(run.ranking.topics, qrels_topics, file=file)


def check_topics(theirs: Sequence[str], qrels_topics: Sequence[str], *, file: str | None = None) -> Findings:
    """Compare the topics of a run with those of its track or qrels.

    Return an error if they share no topic, and warnings for topics that the run or the track lacks.
    """
    findings = Findings()
    ours = set(qrels_topics)
    if ours.isdisjoint(theirs):
        message = f"the run's topics ({_some(theirs)}) differ from those of the track ({_some(qrels_topics)})"
        hint = _hint(theirs, sorted(ours))
        message += f"; {hint}" if hint else ""
        findings.add(Finding(code=NONE_IN_COMMON, message=message, file=file, sample=_some(theirs)))
        return findings
    missing = sorted(ours.difference(theirs))
    if missing:
        message = f"the run lacks {len(missing):,} of {len(ours):,} topics: {_some(missing)}"
        findings.add(
            Finding(code=MISSING, message=message, file=file, topic=missing[0], sample=_some(missing)),
            len(missing),
        )
    extra = [topic for topic in theirs if topic not in ours]
    if extra:
        message = f"the track lacks {len(extra):,} of the run's {len(theirs):,} topics: {_some(extra)}"
        findings.add(
            Finding(code=EXTRA, message=message, file=file, topic=extra[0], sample=_some(extra)), len(extra)
        )
    return findings


def _some(topics: Sequence[str]) -> str:
    return ", ".join(topics[:3]) + (", ..." if len(topics) > 3 else "")


def _hint(theirs: Sequence[str], ours: Sequence[str]) -> str | None:
    """Return a hint if most ids differ only by leading zeros, an affix or both.

    Ids of the run are compared with those of the track.
    """
    run, track = {_plain(topic): topic for topic in theirs}, {_plain(topic): topic for topic in ours}
    common = [topic for topic in run if topic in track]
    if 2 * len(common) > len(theirs):
        mine, other = run[common[0]], track[common[0]]
        return f"ids differ in leading zeros: {mine!r} in the run, {other!r} in the track"
    for same, also in ((str, ""), (_plain, " and in leading zeros")):
        for longer, shorter, where in ((theirs, ours, "the run"), (ours, theirs, "the track")):
            known = set(map(same, shorter))
            for kind, pieces, without in AFFIXES:
                affix, matched = _affix(longer, known, pieces, without, same)
                if 2 * matched > len(theirs):
                    return f"ids differ by a {kind}{also}: only ids of {where} have {affix!r}"
    return None


def _plain(topic: str) -> str:
    """Return an id without leading zeros in its last number: q007 becomes q7."""
    digits = len(topic) - len(topic.rstrip("0123456789"))
    return topic[: len(topic) - digits] + (topic[len(topic) - digits :].lstrip("0") or "0" * bool(digits))


def _tails(topic: str) -> Iterable[tuple[str, str]]:
    """Yield each prefix of an id, with the rest of the id."""
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
    """Return the most common affix without which ids in `longer` are known.

    Return also how many known ids match.

    same: normalisation of ids. An affix of digits only is ignored, because 401 and 1 are different numbers.
    """
    affixes = Counter(cut for topic in longer[:TRIED] for cut, left in pieces(topic) if same(left) in known)
    for affix, _ in affixes.most_common():
        if not affix.isdigit():
            left = {same(without(topic, affix)) for topic in longer if without(topic, affix) != topic}
            return affix, len(left.intersection(known))
    return "", 0
