"""Worked examples, as the documentation of a measure writes them: a small collection, runs and their scores.

    Example: a=3 b=0 c=1; run c x a: nDCG 0.688529 = (1 + 3/2) / (3 + 1/log2(3)), P@2 0.5.

Parts end with `;`. Judgments come first, then runs: documents in order, and after a colon measures with
their values over all topics. What stands behind `=` is how a value comes about. A value with six decimals is
rounded, one with fewer is exact. `|` separates topics; `-` is a run without documents for a topic.

Without more, documents are judged for relevance on a scale from 0 to the highest grade. Aspects are declared
ahead of the judgments, with their labels from worst to best or the ends of a range, and after `from` the
threshold: `relevance 0..3 from 2, trust low high; a=(3,high) b=(1,-)`, where `-` says not judged. Judgments
by subtopic stand in braces: `a={1,2} b={}`. A text in quotes may follow: `a={1}"apple tree" b"not judged"`.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NOTHING = "-"
JUDGMENT = re.compile(
    r"(?P<document>\w+)(?:=(?:\{(?P<subtopics>[^{}]*)\}|\((?P<labels>[^()]*)\)|(?P<label>[^\s{}()\"]+)))?"
    r"(?:\"(?P<text>[^\"]*)\")?(?:\s|$)"
)
RESULT = re.compile(r"(\S+) (-?[\d.]+)(?: = (.+))?")
SCALE = re.compile(r"(?P<name>\w+) (?P<labels>.+?)(?: from (?P<threshold>\S+))?")
RANGE = re.compile(r"(-?\d+)\.\.(-?\d+)")
PLAIN, SUBTOPICS, DECLARED, TEXTS = "qrels.txt", "subtopics.txt", "collection.json", "texts.jsonl"


@dataclass(frozen=True)
class Value:
    """What a measure gives over all topics: as printed, and how it comes about, if that is said."""

    measure: str
    printed: str
    derivation: str | None

    @property
    def tolerance(self) -> float:
        """How far a score may be from the printed number: half a unit of its sixth decimal, if it has one."""
        return 5.1e-7 if len(self.printed.partition(".")[2]) >= 6 else 1e-12


@dataclass(frozen=True)
class ExampleRun:
    """Documents in order, topic after topic, also as written (`text`), and the values of some measures."""

    text: str
    topics: tuple[tuple[str, ...], ...]
    values: tuple[Value, ...]


@dataclass(frozen=True)
class Judgment:
    """What is known of a document: a label per aspect, or subtopics, or neither; and perhaps its text."""

    document: str
    labels: tuple[str, ...]
    subtopics: tuple[str, ...] | None
    text: str | None

    def lines(self, topic: str) -> Iterator[str]:
        """Its lines in a file of qrels."""
        if self.labels:
            yield f"{topic} 0 {self.document} {' '.join(self.labels)}\n"
        for subtopic in self.subtopics or ():
            yield f"{topic} {subtopic} {self.document} 1\n"
        if self.subtopics == ():
            yield f"{topic} 1 {self.document} 0\n"


@dataclass(frozen=True)
class Example:
    """A worked example. aspects: as a collection declares them; none where the scale is inferred.

    judgments: scales, if any, and judgments, as written.
    """

    judgments: tuple[str, ...]
    aspects: Mapping[str, Mapping[str, Any]]
    topics: tuple[tuple[Judgment, ...], ...]
    runs: tuple[ExampleRun, ...]

    def lines(self) -> list[str]:
        """The example to be read: judgments, then each run and what measures give, a line for each."""
        lines = ["judged " + self.judgments[-1]]
        if len(self.judgments) == 2:
            lines = [*("aspect " + one.strip() for one in self.judgments[0].split(",")), *lines]
        width = max(len(value.measure) for run in self.runs for value in run.values)
        for run in self.runs:
            lines.append("run    " + run.text)
            for value in run.values:
                behind = "" if value.derivation is None else f" = {value.derivation}"
                lines.append(f"  {value.measure:<{width}}  {value.printed}{behind}")
        return lines

    def write(self, folder: Path) -> tuple[Path, list[Path]]:
        """Write it into a folder that exists; the file of its qrels or collection, and those of the runs."""
        runs = []
        for number, run in enumerate(self.runs, 1):
            runs.append(folder / f"run-{number}.txt")
            runs[-1].write_text("".join(_ranking(run, tag=runs[-1].stem)))
        judged = [(str(t), one) for t, of in enumerate(self.topics, 1) for one in of]
        name = PLAIN if all(one.subtopics is None for _, one in judged) else SUBTOPICS
        (folder / name).write_text("".join(line for topic, one in judged for line in one.lines(topic)))
        if name == PLAIN and not self.aspects:
            return folder / PLAIN, runs
        collection = self._collection(name)
        texts = {one.document: one.text for _, one in judged if one.text is not None}
        if texts:
            lines = (json.dumps({"id": document, "text": text}) for document, text in texts.items())
            (folder / TEXTS).write_text("".join(f"{line}\n" for line in lines))
            collection["texts"] = TEXTS
        (folder / DECLARED).write_text(json.dumps(collection, indent=2) + "\n")
        return folder / DECLARED, runs

    def _collection(self, qrels: str) -> dict[str, Any]:
        if qrels == SUBTOPICS:
            relevance = {"relevance": {"labels": [0, 1]}}
            return {"aspects": relevance, "qrels": [{"file": qrels, "layout": "subtopics"}]}
        columns = ["topic", "_", "document", *self.aspects]
        return {"aspects": self.aspects, "qrels": [{"file": qrels, "columns": columns}]}


def _ranking(run: ExampleRun, tag: str) -> Iterator[str]:
    for topic, documents in enumerate(run.topics, 1):
        for rank, document in enumerate(documents, 1):
            yield f"{topic} Q0 {document} {rank} {len(documents) - rank + 1} {tag}\n"


def read(paragraph: str) -> Example:
    """The example that a paragraph of documentation holds; ValueError says what can't be read."""
    head, _, body = " ".join(paragraph.split()).partition(": ")
    parts = [part.strip() for part in body.removesuffix(".").split(";")]
    ahead = [part for part in parts if not part.startswith("run ")]
    if head != "Example" or not 1 <= len(ahead) <= 2 or len(ahead) == len(parts):
        raise ValueError(
            f"expected `Example: [scales;] judgments; run DOCUMENTS: RESULTS`, got {paragraph!r}"
        )
    scales = dict(_scale(one.strip()) for one in ahead[0].split(",")) if len(ahead) == 2 else {}
    topics = tuple(tuple(_judgments(of.strip())) for of in ahead[-1].split("|"))
    return Example(tuple(ahead), scales, topics, tuple(_run(part) for part in parts if part not in ahead))


def _scale(text: str) -> tuple[str, dict[str, Any]]:
    found = SCALE.fullmatch(text)
    if found is None:
        raise ValueError(f"expected a scale such as `relevance 0..3 from 2`, got {text!r}")
    ends = RANGE.fullmatch(found["labels"])
    labels = {"range": [int(end) for end in ends.groups()]} if ends else found["labels"].split()
    threshold = {"threshold": _label(found["threshold"])} if found["threshold"] else {}
    return found["name"], {"labels": labels, "unjudged": [NOTHING], **threshold}


def _label(word: str) -> int | str:
    return int(word) if re.fullmatch(r"-?\d+", word) else word


def _judgments(text: str) -> Iterator[Judgment]:
    place = 0
    while place < len(text):
        found = JUDGMENT.match(text, place)
        if found is None:
            raise ValueError(f"expected a judgment such as a=1, a=(1,2) or a={{1,2}}, got {text[place:]!r}")
        subtopics = None if found["subtopics"] is None else _listed(found["subtopics"])
        labels = _listed(found["labels"] or found["label"] or "")
        yield Judgment(found["document"], labels, subtopics, found["text"])
        place = found.end()


def _listed(text: str) -> tuple[str, ...]:
    return tuple(filter(None, text.split(",")))


def _run(text: str) -> ExampleRun:
    documents, _, results = text.removeprefix("run ").partition(": ")
    topics = tuple(tuple(one for one in of.split() if one != NOTHING) for of in documents.split("|"))
    return ExampleRun(documents, topics, tuple(_value(one.strip()) for one in _pieces(results)))


def _value(text: str) -> Value:
    found = RESULT.fullmatch(text)
    if found is None:
        raise ValueError(f"expected a measure and its value, such as P@2 0.5 = 1/2, got {text!r}")
    return Value(*found.groups())


def _pieces(text: str) -> list[str]:
    """`text` split at the commas outside brackets."""
    pieces, depth = [""], 0
    for mark in text:
        depth += (mark in "([{") - (mark in ")]}")
        if mark == "," and not depth:
            pieces.append("")
        else:
            pieces[-1] += mark
    return pieces
