"""Test that INPUTS.md states what Cupel and other tools do with broken files."""

import io
from collections.abc import Callable
from pathlib import Path

import pytest
import pytrec_eval

import cupel_measures
from measures.inputs.broken_inputs import BROKEN_QRELS, BROKEN_RUNS, GOOD_RUN, QRELS, BrokenInput

ir_measures = pytest.importorskip("ir_measures")  # ignores the warnings of its modules

PAGE = Path(cupel_measures.__file__).parent.parent / "INPUTS.md"
Peer = Callable[[bytes, Path], float]


def pytrec_eval_run(data: bytes, path: Path) -> float:
    return mean_of_pytrec_eval(QRELS, pytrec_eval.parse_run(io.TextIOWrapper(io.BytesIO(data), "utf-8")))


def pytrec_eval_qrels(data: bytes, path: Path) -> float:
    judged = pytrec_eval.parse_qrel(io.TextIOWrapper(io.BytesIO(data), "utf-8"))
    return mean_of_pytrec_eval(judged, pytrec_eval.parse_run(io.StringIO(GOOD_RUN.decode())))


def mean_of_pytrec_eval(qrels: object, run: object) -> float:
    values = pytrec_eval.RelevanceEvaluator(qrels, {"map"}).evaluate(run).values()
    return float(sum(value["map"] for value in values) / len(values)) if values else 0.0


def ir_measures_run(data: bytes, path: Path) -> float:
    path.write_bytes(data)
    run = ir_measures.read_trec_run(str(path))
    return float(ir_measures.calc_aggregate([ir_measures.AP], QRELS, run)[ir_measures.AP])


def ir_measures_qrels(data: bytes, path: Path) -> float:
    path.write_bytes(data)
    qrels = ir_measures.read_trec_qrels(str(path))
    run = ir_measures.read_trec_run(io.StringIO(GOOD_RUN.decode()))
    return float(ir_measures.calc_aggregate([ir_measures.AP], qrels, run)[ir_measures.AP])


def cell(peer: Peer, data: bytes, path: Path) -> str:
    """Return what a tool does with a file: the exception, or the mean AP."""
    try:
        return f"AP {peer(data, path):.2f}"
    except Exception as problem:  # any exception is an outcome
        return type(problem).__name__


def table(broken: list[BrokenInput], peers: tuple[Peer, Peer], path: Path) -> str:
    rows = [
        f"| {one.kind} | `{one.code}` | " + " | ".join(cell(peer, one.text, path) for peer in peers) + " |"
        for one in broken
        if one.text is not None
    ]
    return "\n".join(["| kind | Cupel | pytrec_eval | ir_measures |", "|---|---|---|---|", *rows]) + "\n"


@pytest.mark.filterwarnings("ignore")
def test_page_states_what_each_tool_does(tmp_path: Path) -> None:
    page, path = PAGE.read_text(), tmp_path / "broken"
    for broken, peers in (
        (BROKEN_RUNS, (pytrec_eval_run, ir_measures_run)),
        (BROKEN_QRELS, (pytrec_eval_qrels, ir_measures_qrels)),
    ):
        expected = table(broken, peers, path)
        assert expected in page, expected
