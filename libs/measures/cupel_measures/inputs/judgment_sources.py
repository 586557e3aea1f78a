"""Judgments from any source: files, and tables in memory, by aspect."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from cupel_measures.findings import Findings, Refused
from cupel_measures.inputs.topic_tables import Table, check_table, nesting, table_of
from cupel_measures.model.profiles import find
from cupel_measures.reading.collection_files import Collection, collection_for
from cupel_measures.reading.compression import Source
from cupel_measures.reading.declarations.label_scales import NOT_INTEGER
from cupel_measures.reading.qrels_files import QrelsFile, build_qrels, unscaled
from cupel_measures.reading.unreadable_files import unreadable

FIRST_ASPECT = "relevance"


def qrels(source: Any, *, profile: str | None = None) -> Collection:
    """Return the judgments of a collection.

    source: the path of a qrels file or of a collection file; a dictionary from topic to document to grade; or
    another table of topics, documents and grades. For several aspects, a dictionary from aspect to such a
    source. A `Collection` is returned as it is. profile: name of the conventions for ties and parsing
    (default: those of the collection, or cupel).

    Grades are integers, and their scale is inferred. A collection file can declare labels that are words.
    Raise Refused, with all findings, if a judgment is invalid, and TypeError for an unknown kind of source.
    """
    collection = source if isinstance(source, Collection) else _read(source)
    return collection if profile is None else replace(collection, profile=find(profile))


def _read(source: Any) -> Collection:
    if isinstance(source, str | Path):
        return _read_files(Path(source), {})
    aspects = source if _is_by_aspect(source) else {FIRST_ASPECT: source}
    if all(isinstance(part, str | Path) for part in aspects.values()):
        return _read_files(None, {name: Path(part) for name, part in aspects.items()})
    return _read_tables({name: _grades(part, name) for name, part in aspects.items()})


def _grades(source: Any, name: str) -> Table:
    """Return the grades of an aspect. Grades that are whole numbers become integers."""
    if isinstance(source, str | Path):
        raise TypeError(f"aspect {name}: give files for all aspects, or tables for all aspects")
    table = table_of(source, "relevance", name)
    findings = check_table(table, "relevance", name, NOT_INTEGER)
    if findings.refused:
        raise Refused(findings)
    return {
        topic: {document: int(grade) if grade == int(grade) else grade for document, grade in grades.items()}
        for topic, grades in table.items()
    }


def _read_files(path: Path | None, aspects: Mapping[str, Path]) -> Collection:
    try:
        return collection_for(path, aspects)
    except OSError as problem:
        raise Refused(unreadable(problem, path or Path())) from problem


def _is_by_aspect(source: Any) -> bool:
    """Return whether the keys of a dictionary are aspects, not topics."""
    if not isinstance(source, Mapping) or not source:
        return False
    return nesting(source) == 3 or not all(isinstance(part, Mapping) for part in source.values())


def _read_tables(tables: Mapping[str, Table]) -> Collection:
    files = [QrelsFile.plain(name, _as_text(table), name) for name, table in tables.items()]
    findings = Findings()
    try:
        built = build_qrels([unscaled(name) for name in tables], files, findings=findings)
    except Refused as refused:
        raise Refused(_without_lines(refused.findings)) from None
    return Collection(qrels=built, findings=_without_lines(findings))


def _as_text(table: Table) -> Source:
    """Return judgments in TREC format. They are few, so that this takes little time."""
    lines = (
        f"{topic} 0 {document} {grade}\n"
        for topic, grades in table.items()
        for document, grade in grades.items()
    )
    return "".join(lines).encode()


def _without_lines(findings: Findings) -> Findings:
    listed = [replace(finding, line=None, column=None) for finding in findings.listed]
    return Findings(listed, findings.totals)
