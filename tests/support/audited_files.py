"""Files of a small collection with runs, and calls of `cupel audit` on them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from click.testing import CliRunner, Result

from cupel_client.main import cli

TOPICS = [f"q{number:02}" for number in range(1, 9)]
DOCUMENTS = 60
RUNS = ("ant-a.txt", "ant-b.txt", "bee-a.txt", "bee-b.txt", "cat-a.txt")


def write_audited_files(folder: Path) -> None:
    """Write two qrels, a collection with texts, five runs, and an invalid run."""
    rng = np.random.default_rng(5)
    grades = rng.integers(0, 3, (len(TOPICS), DOCUMENTS))
    for name, noise in (("qrels.txt", 0), ("second.txt", 1)):
        shifted = np.clip(grades - rng.integers(0, 2, grades.shape) * noise, 0, 2)
        (folder / name).write_text(
            "".join(
                f"{topic} 0 d{place} {grade}\n"
                for topic, row in zip(TOPICS, shifted.tolist(), strict=True)
                for place, grade in enumerate(row)
            )
        )
    (folder / "quality.txt").write_text("".join(f"{topic} 0 d1 1\n" for topic in TOPICS))
    (folder / "subtopics.txt").write_text(
        "".join(f"{topic} s{i} d{i} 1\n" for topic in TOPICS for i in (1, 2))
    )
    (folder / "texts.jsonl").write_text(
        "".join(f'{{"id": "d{place}", "text": "word{place % 7} common"}}\n' for place in range(DOCUMENTS + 5))
    )
    (folder / "c.yaml").write_text(
        "aspects: {relevance: {labels: [0, 1, 2]}, quality: {labels: [0, 1]}}\n"
        "qrels: [{file: qrels.txt, aspect: relevance}, {file: quality.txt, aspect: quality}, "
        "{file: subtopics.txt, layout: subtopics}]\nmeasures: [nDCG@10, AP]\ntexts: texts.jsonl\n"
    )
    for merit, name in enumerate(RUNS):
        (folder / name).write_text("".join(_lines(rng, grades, merit)))
    (folder / "bad.txt").write_text("q01 Q0 d1 x 9 bad\n")
    (folder / "none.txt").write_text("".join(f"{topic} 0 d1 0\n" for topic in TOPICS))


def _lines(rng: np.random.Generator, grades: Any, merit: int) -> Iterator[str]:
    """Yield the lines of a run that ranks by grade plus noise, with five unjudged documents per topic."""
    for topic, row in zip(TOPICS, grades, strict=True):
        scores = np.append(row, [1] * 5) * merit + rng.normal(size=DOCUMENTS + 5) * 4
        for rank, document in enumerate(np.argsort(-scores).tolist(), 1):
            yield f"{topic} Q0 d{document} {rank} {scores[document]:.6f} {merit}\n"


def cupel(*arguments: str) -> Result:
    """Run `cupel audit` in this process."""
    return CliRunner().invoke(cli, ["audit", *arguments], catch_exceptions=False)
