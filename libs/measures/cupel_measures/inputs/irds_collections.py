"""Collections of the package ir_datasets, such as irds:beir/scifact/test."""

from importlib import import_module
from typing import Any

from cupel_measures.catalogue.parser import parse_many
from cupel_measures.findings import Finding, Findings, Refused, declare
from cupel_measures.grammar.syntax import MeasureError
from cupel_measures.inputs.formats.parquet_tables import NO_READER
from cupel_measures.inputs.record_tables import record_table
from cupel_measures.inputs.topic_tables import Table

PREFIX = "irds:"
UNKNOWN = declare(
    "irds-unknown",
    "error",
    "ir_datasets has no data set with this id, or the data set has no qrels",
    "check the id; https://ir-datasets.com lists all data sets",
)
MEASURE = declare(
    "irds-measure",
    "warning",
    "an official measure of the data set is unknown, so it is not in the default measures",
    "no action needed if the other default measures suffice; otherwise name the measures to compute",
)


def read_irds(source: str) -> tuple[Table, tuple[str, ...], Findings]:
    """Return the judgments of a data set, its official measures, and warnings.

    source: irds:ID. The measures are canonical texts. Raise Refused if ir_datasets is not installed, or if
    there is no such data set with qrels.
    """
    id_ = source.removeprefix(PREFIX)
    dataset = _load(id_, source)
    if not dataset.has_qrels():
        raise _refused(UNKNOWN, f"the data set {id_} has no qrels", source)
    table = record_table(dataset.qrels_iter(), "relevance", source)
    findings, measures = Findings(), list[str]()
    for text in (dataset.documentation() or {}).get("official_measures", []):
        try:
            measures += map(str, parse_many(str(text)))
        except MeasureError as problem:
            findings.add(Finding(code=MEASURE, message=f"measure {text}: {problem}", file=source))
    return table, tuple(dict.fromkeys(measures)), findings


def _load(id_: str, source: str) -> Any:
    try:
        package = import_module("ir_datasets")
    except ImportError:
        message = "data sets with irds: need the package ir_datasets, which is not installed"
        raise _refused(NO_READER, message, source) from None
    try:
        return package.load(id_)
    except KeyError:
        raise _refused(UNKNOWN, f"ir_datasets has no data set {id_}", source) from None


def _refused(code: str, message: str, source: str) -> Refused:
    findings = Findings()
    findings.add(Finding(code=code, message=message, file=source))
    return Refused(findings)
