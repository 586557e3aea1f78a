"""The example collection, with subtopics and texts, so that every measure and every audit applies to it."""

import subprocess
import sys
from pathlib import Path
from zlib import crc32

from support.record_values import Subject

WORDS = [f"word{number}" for number in range(40)]
RUNS = ("aster-bm25", "aster-monot5", "basalt-splade", "cobalt-bm25f", "delta-plain", "ember-trust")
TOPICS = 12


def write_extended_example(folder: Path) -> None:
    """Write the first topics of the example to `folder`, with subtopics and texts, and its runs."""
    subprocess.run(
        [str(Path(sys.executable).parent / "cupel"), "example", str(folder)], check=True, capture_output=True
    )
    for path in folder.glob("qrels*/*.txt"):
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join(line for line in lines if int(line[1:3]) <= TOPICS))
    judged = [line.split() for line in (folder / "qrels/relevance.txt").read_text().splitlines()]
    (folder / "subtopics.txt").write_text("".join(write_subtopics(judged)))
    documents = sorted({document for _, _, document, _ in judged})
    (folder / "texts.jsonl").write_text("".join(map(write_text, documents)))
    for name in ("collection.yaml", "collection-corrected.yaml"):
        extend_collection(folder / name)


def write_subtopics(judged: list[list[str]]) -> list[str]:
    """Give each relevant document one or two of four subtopics."""
    return [
        f"{topic} s{subtopic} {document} 1\n"
        for topic, _, document, label in judged
        if int(label) > 0
        for subtopic in sorted({draw(topic, document, 4), draw(document, topic, 4)})
    ]


def write_text(document: str) -> str:
    words = " ".join(
        WORDS[draw(document, str(place), len(WORDS))] for place in range(5 + draw(document, "length", 20))
    )
    return f'{{"id": "{document}", "text": "{words}"}}\n'


def draw(first: str, second: str, below: int) -> int:
    """Return a pseudorandom number from 0 to `below` - 1 that depends on the two words only."""
    return crc32(f"{first} {second}".encode()) % below


def extend_collection(path: Path) -> None:
    lines = path.read_text().splitlines(keepends=True)
    kept = "".join(line for line in lines if not line.startswith("topics:"))
    listed = "qrels:\n  - {file: subtopics.txt, layout: subtopics}\n"
    path.write_text(kept.replace("qrels:\n", listed) + "texts: texts.jsonl\n")


def describe_extended_example(folder: Path) -> Subject:
    """Return the recording subject for a collection written by `write_extended_example`."""
    runs = [str(folder / "runs" / f"{name}.gz") for name in RUNS]
    options = ("--other", str(folder / "collection-corrected.yaml"), "--team-pattern", r"^(\w+)-")
    return Subject(collection=str(folder / "collection.yaml"), runs=runs, options=options, board=True)
