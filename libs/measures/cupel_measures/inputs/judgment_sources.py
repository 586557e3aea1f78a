"""Judgments from any source: files, data sets, and tables in memory, by aspect."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cupel_measures.findings import Findings, Refused
from cupel_measures.inputs.formats.file_tables import table_in
from cupel_measures.inputs.irds_collections import PREFIX, read_irds
from cupel_measures.inputs.run_names import STANDARD_INPUT, STDIN
from cupel_measures.inputs.table_sources import is_by_name, table_of
from cupel_measures.inputs.topic_tables import Table, check_table
from cupel_measures.model.profiles import find
from cupel_measures.reading.collection_files import Collection, is_collection, read_collection
from cupel_measures.reading.compression import Source
from cupel_measures.reading.declarations.label_scales import NOT_INTEGER
from cupel_measures.reading.qrels_files import QrelsFile, build_qrels, unscaled
from cupel_measures.reading.unreadable_files import unreadable

FIRST_ASPECT = "relevance"


def qrels(source: Any, *, profile: str | None = None) -> Collection:
    """Return the judgments of a collection.

    source: the path of a collection file, or of qrels in any format that INPUTS.md lists ("-" for standard
    input); "irds:ID" for a data set of ir_datasets; a dictionary from topic to document to grade; a data
    frame or other named columns; or records of topic, document and grade. For several aspects, a dictionary
    from aspect to such a source. A `Collection` is returned as it is. profile: name of the conventions for
    ties and parsing (default: those of the collection, or cupel).

    Grades are integers, and their scale is inferred. A collection file can declare labels that are words.
    Raise Refused, with all findings, if a judgment is invalid, and TypeError for an unknown kind of source.
    """
    collection = source if isinstance(source, Collection) else _read(source)
    return collection if profile is None else replace(collection, profile=find(profile))


def _read(source: Any) -> Collection:
    if isinstance(source, str | Path):
        if str(source).startswith(PREFIX):
            table, measures, findings = read_irds(str(source))
            collection = _built([_judged(table, str(source), FIRST_ASPECT)])
            collection.findings.extend(findings)
            return replace(collection, measures=measures)
        if str(source) != STANDARD_INPUT and _is_collection(Path(source)):
            return read_collection(source)
    by_aspect = source if is_by_name(source) else {FIRST_ASPECT: source}
    return _built(_parts(by_aspect))


def _is_collection(path: Path) -> bool:
    try:
        return is_collection(path)
    except OSError as problem:
        raise Refused(unreadable(problem, path)) from problem


@dataclass(frozen=True)
class _Part:
    """Judgments of one aspect.

    is_table: whether the source is a table. The lines of `file` are then not lines of the source.
    """

    aspect: str
    file: QrelsFile
    is_table: bool


def _parts(by_aspect: Mapping[str, Any]) -> list[_Part]:
    """Return the judgments of each aspect.

    Raise Refused with the errors of all tables.
    """
    findings, parts = Findings(), []
    for aspect, source in by_aspect.items():
        try:
            parts.append(_part(source, str(aspect)))
        except Refused as refused:
            findings.extend(refused.findings)
    if findings.refused:
        raise Refused(findings)
    return parts


def _part(source: Any, aspect: str) -> _Part:
    if not isinstance(source, str | Path):
        return _judged(table_of(source, "relevance", aspect), aspect, aspect)
    path, content = Path(source), None
    if str(source) == STANDARD_INPUT:
        path, content = Path(STDIN), sys.stdin.buffer.read()
    data: Source = path if content is None else content
    try:
        found = table_in(data, "relevance", path.name)
        if found is None and content is None:
            path.open("rb").close()  # a missing file is reported here
    except OSError as problem:
        raise Refused(unreadable(problem, path)) from problem
    if found is not None:
        return _judged(found.table, path.name, aspect)
    return _Part(aspect, QrelsFile.plain(path.name, data, aspect), is_table=False)


def _judged(table: Table, name: str, aspect: str) -> _Part:
    findings = check_table(table, "relevance", name, NOT_INTEGER)
    if findings.refused:
        raise Refused(findings)
    return _Part(aspect, QrelsFile.plain(name, _as_text(table), aspect), is_table=True)


def _as_text(table: Table) -> bytes:
    """Return judgments in TREC format. They are few, so that this takes little time."""
    lines = (
        f"{topic} 0 {document} {int(grade) if grade == int(grade) else grade}\n"
        for topic, grades in table.items()
        for document, grade in grades.items()
    )
    return "".join(lines).encode()


def _built(parts: list[_Part]) -> Collection:
    aspects, files = [unscaled(part.aspect) for part in parts], [part.file for part in parts]
    tables = {part.file.name for part in parts if part.is_table}
    findings = Findings()
    try:
        built = build_qrels(aspects, files, findings=findings)
    except Refused as refused:
        raise Refused(_without_lines(refused.findings, tables)) from None
    return Collection(qrels=built, findings=_without_lines(findings, tables))


def _without_lines(findings: Findings, tables: set[str]) -> Findings:
    """Return the findings, without line numbers in those about tables."""
    listed = [
        replace(finding, line=None, column=None) if finding.file in tables else finding
        for finding in findings.listed
    ]
    return Findings(listed, findings.totals)
