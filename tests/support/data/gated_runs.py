"""Seeded judgments and runs with a planted difference, as files for gates."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from random import Random

Ranked = list[str]
"""Document ids, best first."""
Change = Callable[[Ranked, Random], Ranked]
"""Makes the run's ranking of a topic from the baseline's."""

LABELS = [2] * 4 + [1] * 8 + [0] * 48
"""Labels of the judged documents of each topic; document d7 has the label LABELS[7]."""
RELEVANT = {f"d{number}" for number, label in enumerate(LABELS) if label}


def topic_names(number: int, first: int = 1) -> list[str]:
    """Return the names of consecutive topics."""
    return [f"q{index:03}" for index in range(first, first + number)]


def write_qrels(path: Path, topics: Iterable[str]) -> None:
    """Write the judgments of topics."""
    lines = (f"{topic} 0 d{number} {label}\n" for topic in topics for number, label in enumerate(LABELS))
    path.write_text("".join(lines))


def ranking(random: Random, spread: float = 1.2) -> Ranked:
    """Return all judged documents, ordered by label plus normal noise with this standard deviation."""
    scores = {f"d{number}": label + random.gauss(0, spread) for number, label in enumerate(LABELS)}
    return sorted(scores, key=scores.__getitem__, reverse=True)


def write_runs(folder: Path, topics: Sequence[str], change: Change, *, seed: int = 7) -> None:
    """Write base.txt and, with each ranking changed, run.txt."""
    random = Random(seed)
    baseline = {topic: ranking(random) for topic in topics}
    write_run(folder / "base.txt", baseline)
    write_run(folder / "run.txt", {topic: change(ranked, random) for topic, ranked in baseline.items()})


def write_run(path: Path, rankings: dict[str, Ranked]) -> None:
    """Write a run in TREC format."""
    path.write_text(
        "".join(
            f"{topic} Q0 {document} {rank} {1000 - rank} planted\n"
            for topic, ranked in rankings.items()
            for rank, document in enumerate(ranked, 1)
        )
    )


def swap_neighbours(ranked: Ranked, random: Random) -> Ranked:
    """Swap random neighbours: noise, without a systematic difference."""
    changed = [*ranked]
    for _ in range(3):
        place = random.randrange(15)
        changed[place : place + 2] = changed[place : place + 2][::-1]
    return changed


def demote_relevant(ranked: Ranked, random: Random) -> Ranked:
    """Move the first two relevant documents down by 30 ranks: a true drop."""
    moved = [document for document in ranked if document in RELEVANT][:2]
    others = [document for document in ranked if document not in moved]
    return [*others[:30], *moved, *others[30:]]


def promote_relevant(ranked: Ranked, random: Random) -> Ranked:
    """Move the last two relevant documents to the top: a true gain."""
    moved = [document for document in ranked if document in RELEVANT][-2:]
    return [*moved, *(document for document in ranked if document not in moved)]


def reshuffle(ranked: Ranked, random: Random) -> Ranked:
    """Return an unrelated ranking of the same quality: much noise."""
    return ranking(random)


def put_unjudged_first(ranked: Ranked, random: Random) -> Ranked:
    """Put three unjudged documents at the top, which may be a gain."""
    return [*(f"new{number}" for number in range(3)), *ranked]


def replace_most(ranked: Ranked, random: Random) -> Ranked:
    """Replace the first relevant and all irrelevant documents of the first ten by unjudged documents."""
    kept = [document for document in ranked[:10] if document in RELEVANT][1:]
    return [
        document if document in kept or place >= 10 else f"new{place}"
        for place, document in enumerate(ranked)
    ]


def replace_irrelevant(ranked: Ranked, random: Random) -> Ranked:
    """Replace the irrelevant documents of the first ten by unjudged documents."""
    return [
        document if document in RELEVANT or place >= 10 else f"new{place}"
        for place, document in enumerate(ranked)
    ]
