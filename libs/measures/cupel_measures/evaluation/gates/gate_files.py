"""Readers of files of gates (cupel-gates.yaml)."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast, get_args

from cupel_measures.catalogue.parser import parse_many
from cupel_measures.comparing.closeness.margins import MarginTest
from cupel_measures.evaluation.gates.gate_rules import (
    MAX_UNJUDGED,
    MIN_TOPICS,
    GateRule,
    measure_problem,
    number_problem,
)
from cupel_measures.findings import Findings, Refused, declare
from cupel_measures.grammar.measure import Measure
from cupel_measures.grammar.syntax import MeasureError
from cupel_measures.inputs.judgment_sources import qrels as read_qrels
from cupel_measures.inputs.run_inputs import FileRun, RunInput
from cupel_measures.inputs.run_names import names_of
from cupel_measures.reading.collection_files import Collection
from cupel_measures.reading.compression import open_plain
from cupel_measures.reading.declarations import yaml_documents
from cupel_measures.reading.declarations.aspect_declarations import read_number
from cupel_measures.reading.declarations.yaml_documents import MISSING_KEY, Place, nearest
from cupel_measures.reading.lines.text_lines import text_lines
from cupel_measures.reading.qrels_files import NOT_TEXT
from cupel_measures.reading.unreadable_files import unreadable
from cupel_measures.scoring.evaluator import check

GATE_FILE = declare(
    "gates-file-missing",
    "error",
    "a file that a gate names is missing",
    "correct the name; names are relative to the file of gates",
)
GATE_NUMBER = declare(
    "gates-number", "error", "a number of a gate is out of range", "write a number as the message shows"
)
GATE_MEASURE = declare(
    "gates-measure",
    "error",
    "a measure of a gate is invalid or cannot be computed from the judgments",
    "`cupel measures` lists the measures and their parameters",
)
GATE_TEST = declare("gates-test", "error", "unknown test", f"use one of {', '.join(get_args(MarginTest))}")
GATE_NAME = declare("gates-name", "error", "two gates have the same name", "give each gate another name")
NO_GATE = declare("gates-none", "error", "the file has no gate", "list at least one gate")

_EXAMPLE = "{qrels: qrels.txt, baseline: base.txt, gates: [{measures: nDCG@10, max_drop: 0.01}]}"
_GATE = "{measures: nDCG@10, max_drop: 0.01}"
_REQUIRED = ("qrels", "baseline", "measures", "max_drop")
_OPTIONAL = ("alpha", "test", "min_topics", "max_unjudged")


@dataclass(frozen=True, kw_only=True)
class PlannedGate:
    """A gate with its judgments and its baseline."""

    collection: Collection
    baseline: RunInput
    baseline_name: str
    rule: GateRule


def read_gates(path: str | Path) -> tuple[PlannedGate, ...]:
    """Read a file of gates and the judgments that it names, relative to its folder.

    Raise Refused, with all errors of all these files, if any is invalid.
    """
    path = Path(path)
    try:
        with open_plain(path) as stream:
            findings = Findings()
            lines = text_lines(stream.read(), path.name, NOT_TEXT, findings)
    except OSError as problem:
        raise Refused(unreadable(problem, path)) from problem
    if findings.refused:
        raise Refused(findings)
    document = yaml_documents.parse(b"\n".join(lines).decode(), path.name)
    reader = _GateReader(path.parent)
    gates = reader.read(document.top)
    if document.findings.refused:
        raise Refused(document.findings)
    names = names_of(list(reader.baselines))
    name_of = {id(run): name for run, name in zip(reader.baselines.values(), names, strict=True)}
    return tuple(replace(gate, baseline_name=name_of[id(gate.baseline)]) for gate in gates)


@dataclass(frozen=True)
class _GateReader:
    """A reader of the gates of a file.

    values: the value read at each place. A default of all gates is therefore read only once, and its errors
    are reported only once.
    """

    folder: Path
    values: dict[yaml_documents.Path, object] = field(default_factory=dict)
    collections: dict[Path, Collection | None] = field(default_factory=dict)
    baselines: dict[Path, RunInput] = field(default_factory=dict)

    def read(self, top: Place) -> list[PlannedGate]:
        """Return the valid gates. Report errors in the others."""
        defaults = top.keys(_EXAMPLE, needed=["gates"], also=[*_REQUIRED, *_OPTIONAL])
        items = defaults["gates"].items(f"a list of gates such as [{_GATE}]") if "gates" in defaults else []
        if "gates" in defaults and defaults["gates"].value == []:
            defaults["gates"].wrong(NO_GATE, f"expected at least one gate, such as {_GATE}")
        gates = []
        names: set[str] = set()
        for item in items:
            parts = item.keys(_GATE, needed=[], also=["name", *_REQUIRED, *_OPTIONAL])
            name = parts["name"].word("the name of the gate") if "name" in parts else None
            if name in names:
                parts["name"].wrong(GATE_NAME, f"another gate has the name {name!r}")
            names |= {name} if name is not None else set()
            gates += self._gate(item, {**defaults, **parts}, name)
        for key in (*_REQUIRED, *_OPTIONAL):  # also report errors in defaults that no gate uses
            if key in defaults:
                self._value(key, defaults[key])
        return gates

    def _gate(self, item: Place, parts: Mapping[str, Place], name: str | None) -> list[PlannedGate]:
        """Return a gate for each measure, or nothing if a part is invalid."""
        missing = [key for key in _REQUIRED if key not in parts]
        if isinstance(item.value, dict):
            for key in missing:
                item.wrong(MISSING_KEY, f"missing key {key!r}; give it for this gate or for all gates")
        values = {key: self._value(key, parts[key]) for key in (*_REQUIRED, *_OPTIONAL) if key in parts}
        collection = values.get("qrels")
        measures = values.get("measures")
        if isinstance(collection, Collection) and isinstance(measures, list):
            self._check_measures(parts["measures"], measures, collection)
        if missing or None in values.values() or item.document.findings.refused:
            return []
        baseline = values["baseline"]
        assert isinstance(baseline, FileRun)
        assert isinstance(collection, Collection)
        assert isinstance(measures, list)
        numbers = {
            key: cast(float, values[key]) for key in ("max_drop", "alpha", "max_unjudged") if key in values
        }
        return [
            PlannedGate(
                collection=collection,
                baseline=baseline,
                baseline_name=baseline.name,
                rule=GateRule(
                    measure=str(measure),
                    max_drop=numbers["max_drop"],
                    alpha=numbers.get("alpha", 0.05),
                    test=cast(MarginTest, values.get("test", "t")),
                    min_topics=int(cast(float, values.get("min_topics", MIN_TOPICS))),
                    max_unjudged=numbers.get("max_unjudged", MAX_UNJUDGED),
                    name=name,
                ),
            )
            for _, measure in measures
        ]

    def _value(self, key: str, place: Place) -> object:
        """Return the value at a place, or None after an error. Read each place once."""
        if place.path not in self.values:
            read = {
                "qrels": self._collection,
                "baseline": self._baseline,
                "measures": _measures,
                "test": _test,
            }.get(key)
            self.values[place.path] = _number(key, place) if read is None else read(place)
        return self.values[place.path]

    def _collection(self, place: Place) -> Collection | None:
        path = self._file(place)
        if path is None:
            return None
        if path not in self.collections:
            self.collections[path] = None
            try:
                self.collections[path] = read_qrels(path)
            except Refused as refused:
                place.document.findings.extend(refused.findings)
        return self.collections[path]

    def _baseline(self, place: Place) -> RunInput | None:
        path = self._file(place)
        return None if path is None else self.baselines.setdefault(path, FileRun(path))

    def _file(self, place: Place) -> Path | None:
        name = place.word("the name of a file")
        if name is None:
            return None
        path = self.folder / name
        if path.is_file():
            return path
        folder = path.parent
        names = [other.name for other in folder.iterdir() if other.is_file()] if folder.is_dir() else []
        place.wrong(GATE_FILE, f"file {name!r} not found{nearest(path.name, names)}")
        return None

    def _check_measures(
        self, place: Place, measures: list[tuple[Place, Measure]], collection: Collection
    ) -> None:
        """Report measures that cannot be computed from the judgments.

        Each is reported once per place and judgments.
        """
        key = (*place.path, id(collection))
        if key in self.values:
            return
        self.values[key] = True
        for item, measure in measures:
            try:
                check(collection.qrels, [measure], texts=collection.texts is not None)
            except MeasureError as problem:
                item.wrong(GATE_MEASURE, str(problem))


def _measures(place: Place) -> list[tuple[Place, Measure]] | None:
    single = isinstance(place.value, str)
    items = [place] if single else place.items('a list of measures such as [nDCG@10, "AP(rel=2)"]')
    measures: dict[str, tuple[Place, Measure]] = {}
    is_valid = bool(items)
    for item in items:
        word = item.word("a measure, such as nDCG@10")
        is_valid = is_valid and word is not None
        for measure in _parsed(item, word or ""):
            if problem := measure_problem(str(measure)):
                item.wrong(GATE_MEASURE, problem)
            measures[str(measure)] = (item, measure)
    if place.value == []:
        place.wrong(GATE_MEASURE, "expected at least one measure, such as nDCG@10")
    return list(measures.values()) if is_valid and measures else None


def _parsed(item: Place, text: str) -> tuple[Measure, ...]:
    try:
        return parse_many(text)
    except MeasureError as problem:
        item.wrong(GATE_MEASURE, str(problem))
        return ()


def _test(place: Place) -> str | None:
    word = place.word("the name of a test")
    if word is not None and word not in get_args(MarginTest):
        place.wrong(GATE_TEST, f"unknown test {word!r}{nearest(word, get_args(MarginTest))}")
        return None
    return word


def _number(key: str, place: Place) -> float | None:
    number = read_number(place)
    if number is None:
        return None
    if problem := number_problem(key, float(number)):
        place.wrong(GATE_NUMBER, problem)
        return None
    return float(number)
