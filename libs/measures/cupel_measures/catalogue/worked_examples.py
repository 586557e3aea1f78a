"""Worked examples in the docstrings of measures.

An example is a small collection, runs and their scores.

    Example: a=3 b=0 c=1; run c x a: nDCG 0.688529 = (1 + 3/2) / (3 + 1/log2(3)), P@2 0.5.

`;` separates the judgments and the runs. A run lists documents in rank order, then a colon, then measures
with their aggregates over topics. The derivation of a value follows `=`. A value with six decimals is
rounded; one with fewer is exact. `|` separates topics; `-` is an empty ranking.

By default, documents are judged for relevance on a scale from 0 to the highest grade in the example. Other
aspects are declared before the judgments: the name, the labels from worst to best, and optionally the
threshold, which is the lowest relevant label. In `relevance: 0..3 (threshold 2), trust: low < high;
a=(3,high) b=(1,-)`, the labels of relevance are 0 to 3, and `-` means not judged. Judgments by subtopic are
in braces: `a={1,2} b={}`. A text in quotes may follow: `a={1}"apple tree" b"not judged"`.
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
SCALE = re.compile(r"(?P<name>\w+): (?P<labels>.+?)(?: \(threshold (?P<threshold>[^\s()]+)\))?")
RANGE = re.compile(r"(-?\d+)\.\.(-?\d+)")
PLAIN, SUBTOPICS, DECLARED, TEXTS = "qrels.txt", "subtopics.txt", "collection.json", "texts.jsonl"


@dataclass(frozen=True)
class Value:
    """Aggregate of a measure over topics, as printed.

    It has a derivation if the example has one.
    """

    measure: str
    printed: str
    derivation: str | None

    @property
    def tolerance(self) -> float:
        """Return the greatest accepted error of the printed number.

        The number is rounded if it has six decimals.
        """
        return 5.1e-7 if len(self.printed.partition(".")[2]) >= 6 else 1e-12


@dataclass(frozen=True)
class ExampleRun:
    """A run of a worked example.

    It has its text as written, its documents by topic in rank order, and its values.
    """

    text: str
    topics: tuple[tuple[str, ...], ...]
    values: tuple[Value, ...]


@dataclass(frozen=True)
class Judgment:
    """Judgment of a document.

    It has a label per aspect, or subtopics, or neither; optionally the document's text.
    """

    document: str
    labels: tuple[str, ...]
    subtopics: tuple[str, ...] | None
    text: str | None

    def lines(self, topic: str) -> Iterator[str]:
        """Yield the lines of the judgment in a qrels file."""
        if self.labels:
            yield f"{topic} 0 {self.document} {' '.join(self.labels)}\n"
        for subtopic in self.subtopics or ():
            yield f"{topic} {subtopic} {self.document} 1\n"
        if self.subtopics == ():
            yield f"{topic} 1 {self.document} 0\n"


@dataclass(frozen=True)
class Example:
    """A worked example.

    judgments: the text of the judgments as written, preceded by the text of the scales if the example
    declares scales. aspects: the aspects as a collection file declares them; empty if the scale is inferred.
    """

    judgments: tuple[str, ...]
    aspects: Mapping[str, Mapping[str, Any]]
    topics: tuple[tuple[Judgment, ...], ...]
    runs: tuple[ExampleRun, ...]

    def lines(self) -> list[str]:
        """Return the example as lines: judgments, then each run with its values."""
        lines = ["judged " + self.judgments[-1]]
        if len(self.judgments) == 2:
            lines = [*("aspect " + scale.strip() for scale in self.judgments[0].split(",")), *lines]
        width = max(len(value.measure) for run in self.runs for value in run.values)
        for run in self.runs:
            lines.append("run    " + run.text)
            for value in run.values:
                derivation = "" if value.derivation is None else f" = {value.derivation}"
                lines.append(f"  {value.measure:<{width}}  {value.printed}{derivation}")
        return lines

    def write(self, folder: Path) -> tuple[Path, list[Path]]:
        """Write the example to an existing folder.

        Return its qrels or collection file, and its run files.
        """
        runs = []
        for number, run in enumerate(self.runs, 1):
            runs.append(folder / f"run-{number}.txt")
            runs[-1].write_text("".join(_ranking(run, tag=runs[-1].stem)))
        judged = [(str(t), judgment) for t, topic in enumerate(self.topics, 1) for judgment in topic]
        name = PLAIN if all(judgment.subtopics is None for _, judgment in judged) else SUBTOPICS
        (folder / name).write_text(
            "".join(line for topic, judgment in judged for line in judgment.lines(topic))
        )
        if name == PLAIN and not self.aspects:
            return folder / PLAIN, runs
        collection = self._collection(name)
        texts = {judgment.document: judgment.text for _, judgment in judged if judgment.text is not None}
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
    """Parse a paragraph of a docstring as an example.

    Raise ValueError with the expected syntax.
    """
    head, _, body = " ".join(paragraph.split()).partition(": ")
    parts = [part.strip() for part in body.removesuffix(".").split(";")]
    before_runs = [part for part in parts if not part.startswith("run ")]
    if head != "Example" or not 1 <= len(before_runs) <= 2 or len(before_runs) == len(parts):
        raise ValueError(
            f"expected `Example: [scales;] judgments; run DOCUMENTS: RESULTS`, got {paragraph!r}"
        )
    declared = before_runs[0].split(",") if len(before_runs) == 2 else []
    scales = dict(_scale(scale.strip()) for scale in declared)
    topics = tuple(tuple(_judgments(topic.strip())) for topic in before_runs[-1].split("|"))
    runs = tuple(_run(part) for part in parts if part not in before_runs)
    return Example(tuple(before_runs), scales, topics, runs)


def _scale(text: str) -> tuple[str, dict[str, Any]]:
    match = SCALE.fullmatch(text)
    if match is None:
        raise ValueError(f"expected a scale such as `relevance: 0..3 (threshold 2)`, got {text!r}")
    ends = RANGE.fullmatch(match["labels"])
    labels = {"range": [int(end) for end in ends.groups()]} if ends else match["labels"].split(" < ")
    threshold = {"threshold": _label(match["threshold"])} if match["threshold"] else {}
    return match["name"], {"labels": labels, "unjudged": [NOTHING], **threshold}


def _label(word: str) -> int | str:
    return int(word) if re.fullmatch(r"-?\d+", word) else word


def _judgments(text: str) -> Iterator[Judgment]:
    place = 0
    while place < len(text):
        match = JUDGMENT.match(text, place)
        if match is None:
            raise ValueError(f"expected a judgment such as a=1, a=(1,2) or a={{1,2}}, got {text[place:]!r}")
        subtopics = None if match["subtopics"] is None else _items(match["subtopics"])
        labels = _items(match["labels"] or match["label"] or "")
        yield Judgment(match["document"], labels, subtopics, match["text"])
        place = match.end()


def _items(text: str) -> tuple[str, ...]:
    return tuple(filter(None, text.split(",")))


def _run(text: str) -> ExampleRun:
    documents, _, results = text.removeprefix("run ").partition(": ")
    topics = tuple(tuple(id_ for id_ in topic.split() if id_ != NOTHING) for topic in documents.split("|"))
    return ExampleRun(documents, topics, tuple(_value(result.strip()) for result in _pieces(results)))


def _value(text: str) -> Value:
    match = RESULT.fullmatch(text)
    if match is None:
        raise ValueError(f"expected a measure and its value, such as P@2 0.5 = 1/2, got {text!r}")
    return Value(*match.groups())


def _pieces(text: str) -> list[str]:
    """Split `text` at the commas outside brackets."""
    pieces, depth = [""], 0
    for mark in text:
        depth += (mark in "([{") - (mark in ")]}")
        if mark == "," and not depth:
            pieces.append("")
        else:
            pieces[-1] += mark
    return pieces
