"""Evaluation of ranked retrieval: judgments, runs, measures and comparisons.

    import cupel_measures as cupel
    scores = cupel.evaluate("qrels.txt", "runs/*.gz", "nDCG@10 AP")

It needs no service. Every measure is also a name of this module, such as `cupel.nDCG @ 10`. Names are
imported when they are first used, so that the import of this module takes little time.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cupel_measures.evaluation.compare import compare as compare
    from cupel_measures.evaluation.comparison_result import ComparisonResult as ComparisonResult
    from cupel_measures.evaluation.evaluate import evaluate as evaluate
    from cupel_measures.evaluation.evaluation_report import EvaluationReport as EvaluationReport
    from cupel_measures.evaluation.explain import explain as explain
    from cupel_measures.evaluation.gates.gate import gate as gate
    from cupel_measures.evaluation.gates.gate import gates as gates
    from cupel_measures.evaluation.gates.gate_reports import GateReport as GateReport
    from cupel_measures.evaluation.measure_names import MeasureName as MeasureName
    from cupel_measures.evaluation.measure_names import measures as measures
    from cupel_measures.findings import Finding as Finding
    from cupel_measures.findings import Findings as Findings
    from cupel_measures.findings import Refused as Refused
    from cupel_measures.grammar.measure import Measure as Measure
    from cupel_measures.grammar.syntax import MeasureError as MeasureError
    from cupel_measures.inputs.array_runs import array_run as array_run
    from cupel_measures.inputs.judgment_sources import qrels as qrels
    from cupel_measures.inputs.run_sources import runs as runs
    from cupel_measures.reading.collection_files import Collection as Collection

__version__ = "0.1.0"

_PLACES = {
    "Collection": "reading.collection_files",
    "ComparisonResult": "evaluation.comparison_result",
    "EvaluationReport": "evaluation.evaluation_report",
    "Finding": "findings",
    "Findings": "findings",
    "GateReport": "evaluation.gates.gate_reports",
    "Measure": "grammar.measure",
    "MeasureError": "grammar.syntax",
    "MeasureName": "evaluation.measure_names",
    "Refused": "findings",
    "array_run": "inputs.array_runs",
    "compare": "evaluation.compare",
    "evaluate": "evaluation.evaluate",
    "explain": "evaluation.explain",
    "gate": "evaluation.gates.gate",
    "gates": "evaluation.gates.gate",
    "measures": "evaluation.measure_names",
    "qrels": "inputs.judgment_sources",
    "runs": "inputs.run_sources",
}
"""Public name -> module that declares it."""

__all__ = sorted(_PLACES)  # noqa: PLE0605  (the names are strings)


def __getattr__(name: str) -> Any:
    if name in _PLACES:
        value = getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
    else:
        value = _measure_name(name)
    globals()[name] = value
    return value


def _measure_name(name: str) -> Any:
    """Return the name of a measure. Raise AttributeError if there is no such measure."""
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    names = import_module(f"{__name__}.evaluation.measure_names")
    if not names.is_measure(name):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}, and there is no such measure")
    return names.MeasureName(name)


def __dir__() -> list[str]:
    return sorted([*__all__, *import_module(f"{__name__}.evaluation.measure_names").measures()])
