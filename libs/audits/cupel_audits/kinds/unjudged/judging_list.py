"""The report of `unjudged`: the list for the next round of judging, and how much of each run is unjudged."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cupel_audits.analysis.sample_curves import MEASURE
from cupel_audits.report import AuditReport, Column, Plot, ReportTable
from cupel_audits.subject import SubjectSummary

TOPIC, DOCUMENT, RUN = Column("topic", "topic"), Column("document", "document"), Column("run", "run")
Listed = Sequence[tuple[str, Mapping[str, Any]]]
"""Documents on the list with their topics, the most influential first."""


def report(about: SubjectSummary, depth: int, most: int, found: Mapping[int, Any]) -> AuditReport:
    """The report on topics, by number. depth: of the first ranks. most: documents on the list."""
    listed = _listed(about, found, most)
    shares = _shares(about, found)
    total = math.fsum(one["influence"] for one in found.values())
    return AuditReport(
        verdict=tuple(_verdict(about, depth, found, listed, shares, total)),
        numbers={
            **_numbers(shares),
            "missing": sum(one["missing"] for one in found.values()),
            "turning": sum(one["turning"] for one in found.values()),
        },
        tables=(_documents(about, listed, total), _changes(about, listed), shares, _topics(about, found)),
        plots=PLOTS,
        reading=READING,
        undefined=(*_undefined(about, listed), *_without(shares)),
        warnings=(*about.cautions, *_untried(found)),
    )


def _listed(about: SubjectSummary, found: Mapping[int, Any], most: int) -> Listed:
    every = [(about.topics[topic], of) for topic, one in found.items() for of in one["documents"]]
    return sorted(every, key=lambda of: (-of[1]["influence"], of[0], of[1]["document"]))[:most]


def _documents(about: SubjectSummary, listed: Listed, total: float) -> ReportTable:
    columns = (
        Column("place", "place"),
        TOPIC,
        DOCUMENT,
        Column(
            "influence", "influence", "sum over neighbouring runs of the share of the lead, mean of measures"
        ),
        Column("share", "share so far", "of the influence of all documents tried, this and those above"),
        Column("turned", "pairs turned round", "of runs, by the measure by which it turns most"),
        Column("runs", "runs", "that have it"),
        Column("best", "best rank"),
        Column("where", "where", "the runs that have it highest"),
        Column("settles", "what it would settle", "the pair whose lead it touches most"),
    )
    rows, so_far = [], 0.0
    for place, (topic, one) in enumerate(listed, 1):
        so_far += one["influence"]
        turned = max((of[1] for of in one["measures"].values()), default=0)
        where = ", ".join(f"{about.runs[run]} {rank}" for run, rank in one["where"])
        share = so_far / total if total else None
        head = (place, topic, one["document"], one["influence"], share, turned, one["runs"])
        rows.append((*head, one["where"][0][1], where, _settles(about, one)))
    return ReportTable("documents", "What to judge next", columns, tuple(rows))


def _settles(about: SubjectSummary, one: Mapping[str, Any]) -> str | None:
    """The pair it decides by the measure of its largest influence, in words."""
    measure, best = max(one["measures"].items(), key=lambda of: of[1][0], default=("", (0, 0, None)))
    if best[2] is None:
        return None
    upper, lower, lead, left = best[2]
    return (
        f"{about.runs[upper]} over {about.runs[lower]} by {measure}: a lead of {lead:.5f} would be {left:.5f}"
    )


def _changes(about: SubjectSummary, listed: Listed) -> ReportTable:
    columns = (
        TOPIC,
        DOCUMENT,
        MEASURE,
        Column("influence", "influence"),
        Column("turned", "pairs turned round"),
        Column("upper", "upper run", "of the pair whose lead it touches most"),
        Column("lower", "lower run"),
        Column("lead", "lead", "as it is"),
        Column("left", "lead if it is relevant"),
    )
    rows = []
    for topic, one in listed:
        for measure, (influence, turned, pair) in one["measures"].items():
            names = (about.runs[pair[0]], about.runs[pair[1]], *pair[2:]) if pair else (None,) * 4
            rows.append((topic, one["document"], measure, influence, turned, *names))
    return ReportTable("changes", "What each would change, by measure", columns, tuple(rows))


def _shares(about: SubjectSummary, found: Mapping[int, Any]) -> ReportTable:
    """unjudged@k of each run."""
    columns = (RUN, Column("depth", "depth"), Column("share", "unjudged", "share, mean over its topics"))
    by_topic = [one["unjudged"] for one in found.values()]
    rows = []
    for place, (depth, _) in enumerate(by_topic[0]):
        for run, name in enumerate(about.runs):
            values = [of[place][1][run] for of in by_topic if of[place][1][run] is not None]
            rows.append((name, depth, math.fsum(values) / len(values) if values else None))
    return ReportTable(
        "unjudged", "Unjudged documents among the first ones of each run", columns, tuple(rows)
    )


def _topics(about: SubjectSummary, found: Mapping[int, Any]) -> ReportTable:
    columns = (
        TOPIC,
        Column("missing", "unjudged", "documents among the first ones of some run"),
        Column("tried", "tried"),
        Column("turning", "that turn a pair round", "each alone"),
        Column("influence", "influence", "sum over those tried"),
    )
    names = ("missing", "tried", "turning", "influence")
    rows = [(about.topics[topic], *(one[name] for name in names)) for topic, one in found.items()]
    return ReportTable("topics", "Where judgments are missing", columns, tuple(rows))


def _numbers(shares: ReportTable) -> dict[str, Any]:
    """unjudged@k: the mean over runs; worst(unjudged@k); unjudged@k(RUN)."""
    found: dict[str, Any] = {}
    for depth in dict.fromkeys(shares.column("depth")):
        of: dict[Any, Any] = {run: share for run, at, share in shares.rows if at == depth}
        known = [share for share in of.values() if share is not None]
        found[f"unjudged@{depth}"] = math.fsum(known) / len(known) if known else None
        found[f"worst(unjudged@{depth})"] = max(known, default=None)
        found |= {f"unjudged@{depth}({run})": share for run, share in of.items()}
    return found


def _verdict(
    about: SubjectSummary,
    depth: int,
    found: Mapping[int, Any],
    listed: Listed,
    shares: ReportTable,
    total: float,
) -> Iterator[str]:
    at = max(int(one or 0) for one in shares.column("depth"))
    for k in sorted({min(depth, at), at}):
        rows: list[Any] = [row for row in shares.rows if row[1] == k and row[2] is not None]
        if rows:
            worst = max(rows, key=lambda row: row[2])
            mean = math.fsum(row[2] for row in rows) / len(rows)
            yield (
                f"Of the first {k} documents of a run {mean:.1%} are unjudged on average, and {worst[2]:.1%} "
                f"at worst ({worst[0]})."
            )
    missing, turning = (sum(one[name] for one in found.values()) for name in ("missing", "turning"))
    if all(row[2] is None for row in shares.rows):
        yield "No run has a document of these topics."
    elif not missing:
        yield f"Nothing is left to judge among the first {depth} documents of any run."
    else:
        yield (
            f"{missing} unjudged documents stand among the first {depth} of some run; {turning} of those "
            "tried could each alone turn round the order of two runs."
        )
    if listed and total:
        share = math.fsum(one["influence"] for _, one in listed) / total
        topic, first = listed[0]
        yield (
            f"The {len(listed)} on the list hold {share:.0%} of the influence of all that were tried. Judge "
            f"{first['document']} of topic {topic} first; it could settle: {_settles(about, first)}."
        )


def _undefined(about: SubjectSummary, listed: Listed) -> Iterator[str]:
    for measure in about.measures:
        if listed and all(measure not in one["measures"] for _, one in listed):
            yield (
                f"{measure}: not tried, for it reads texts or its declared label set lacks the highest labels"
            )


def _without(shares: ReportTable) -> Iterator[str]:
    for run, depth, share in shares.rows:
        if share is None:
            yield f"unjudged@{depth} of {run}: it has no document there, as far as topics are done"


def _untried(found: Mapping[int, Any]) -> Iterator[str]:
    left = sum(one["missing"] - one["tried"] for one in found.values())
    if left:
        yield f"{left} documents were not tried, those that runs have lowest: `tried` says how many are."


PLOTS = (
    Plot(
        "share",
        "What the list is worth",
        "Influence of the first documents of the list, as a share of that of all documents tried.",
        "curve",
        "documents",
        "place",
        "share",
        domain=(0.0, 1.0),
    ),
    Plot(
        "unjudged",
        "Unjudged documents among the first ones",
        "Share of each run's first documents that nobody has judged.",
        "bars",
        "unjudged",
        "run",
        "share",
        series="depth",
        domain=(0.0, 1.0),
    ),
)
READING = (
    "A document has influence if its judgment could bring a run nearer to the one above it. Each is taken to "
    "be relevant at best, alone. Most will turn out not relevant: this is what could happen, not what will.",
    "A run with much more unjudged than others is likely worth more than its score says.",
)
