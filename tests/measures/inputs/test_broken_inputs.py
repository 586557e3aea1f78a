"""Tests that broken runs and judgments are refused by every door, with the same codes."""

import io
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

import cupel_measures as cupel
from cupel_client.main import cli
from cupel_measures.findings import KINDS
from measures.inputs.broken_inputs import (
    BROKEN_QRELS,
    BROKEN_RUNS,
    GOOD_QRELS,
    GOOD_RUN,
    QRELS,
    BrokenInput,
    frame_of,
)

Door = Callable[[BrokenInput, Path, pytest.MonkeyPatch], Any]


def by_path(broken: BrokenInput, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    assert broken.text is not None
    (folder / "broken").write_bytes(broken.text)
    return folder / "broken"


def by_standard_input(broken: BrokenInput, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(broken.text or b"")))
    return "-"


def by_dictionary(broken: BrokenInput, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    return broken.table


def by_frame(broken: BrokenInput, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    assert broken.frame is not None
    return frame_of(broken.frame)


DOORS: dict[str, Door] = {
    "path": by_path,
    "standard input": by_standard_input,
    "dict": by_dictionary,
    "frame": by_frame,
}


def cases(broken: list[BrokenInput]) -> list[Any]:
    """Return a case for each kind and each door that can express it."""
    return [
        pytest.param(one, door, id=f"{one.kind} by {door}")
        for one in broken
        for door in DOORS
        if {"dict": one.table, "frame": one.frame}.get(door, one.text) is not None
    ]


def command(*arguments: str, text: bytes = b"") -> tuple[int, str]:
    """Return the exit code and standard error of `cupel evaluate`."""
    result = CliRunner().invoke(cli, ["evaluate", *arguments], input=text, catch_exceptions=False)
    return result.exit_code, result.stderr


@pytest.mark.parametrize(("broken", "door"), cases(BROKEN_RUNS))
def test_broken_run_is_refused(
    broken: BrokenInput, door: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = DOORS[door](broken, tmp_path, monkeypatch)
    with pytest.raises(cupel.Refused) as refused:
        cupel.evaluate(QRELS, source, "AP")
    assert {finding.code for finding in refused.value.findings.errors} == {broken.code_by(door)}
    assert all(finding.file in ("broken", "stdin", "run") for finding in refused.value.findings.errors)


@pytest.mark.parametrize(("broken", "door"), cases(BROKEN_QRELS))
def test_broken_judgments_are_refused(
    broken: BrokenInput, door: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = DOORS[door](broken, tmp_path, monkeypatch)
    with pytest.raises(cupel.Refused) as refused:
        cupel.qrels(source)
    assert {finding.code for finding in refused.value.findings.errors} == {broken.code_by(door)}
    assert all(f.file in ("broken", "stdin", "relevance") for f in refused.value.findings.errors)


@pytest.mark.parametrize("broken", [pytest.param(b, id=b.kind) for b in BROKEN_RUNS if b.text is not None])
def test_command_refuses_a_broken_run(broken: BrokenInput, tmp_path: Path) -> None:
    (tmp_path / "qrels.txt").write_bytes(GOOD_QRELS)
    (tmp_path / "broken").write_bytes(broken.text or b"")
    qrels, run = str(tmp_path / "qrels.txt"), str(tmp_path / "broken")
    for exit_code, errors in (command(qrels, run), command(qrels, "-", text=broken.text or b"")):
        assert exit_code == 1
        assert f"error {broken.code}: " in errors
        assert KINDS[broken.code].remedy in errors
        assert "cupel-" not in errors, "the message names a temporary file"


@pytest.mark.parametrize("broken", [pytest.param(b, id=b.kind) for b in BROKEN_QRELS if b.text is not None])
def test_command_refuses_broken_judgments(broken: BrokenInput, tmp_path: Path) -> None:
    (tmp_path / "broken").write_bytes(broken.text or b"")
    (tmp_path / "run").write_bytes(GOOD_RUN)
    qrels, run = str(tmp_path / "broken"), str(tmp_path / "run")
    for exit_code, errors in (command(qrels, run), command("-", run, text=broken.text or b"")):
        assert exit_code == 1
        assert f"error {broken.code}: " in errors


@pytest.mark.parametrize("door", ["path", "dict", "frame"])
def test_equal_scores_and_missing_topics_are_warned_of(
    door: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [("1", f"d{number:02}", 1.0) for number in range(12)]
    broken = BrokenInput(
        kind="equal scores",
        code="run-ties",
        text="".join(f"{t} Q0 {d} 1 {s} broken\n" for t, d, s in rows).encode(),
        table={"1": {document: score for _, document, score in rows}},
        frame={
            "query_id": ["1"] * 12,
            "doc_id": [document for _, document, _ in rows],
            "score": [1.0] * 12,
        },
    )
    source = DOORS[door](broken, tmp_path, monkeypatch)
    (run,) = cupel.runs(source).values()
    assert "run-ties" in run.read().findings.totals
    report = cupel.evaluate(QRELS, source, "AP")
    assert any("lacks topics of the qrels (up to 1 of 2)" in remark for remark in report.remarks())


def test_message_names_the_decimal_comma(tmp_path: Path) -> None:
    for broken in (*BROKEN_RUNS, *BROKEN_QRELS):
        if "decimal comma" in broken.kind:
            (tmp_path / "broken").write_bytes(broken.text or b"")
            read: Callable[[], object] = (
                (lambda: cupel.qrels(tmp_path / "broken"))
                if broken in BROKEN_QRELS
                else (lambda: cupel.evaluate(QRELS, tmp_path / "broken", "AP"))
            )
            with pytest.raises(cupel.Refused, match="with a decimal comma; write"):
                read()


def test_there_are_at_least_sixteen_kinds() -> None:
    assert len(BROKEN_RUNS) >= 16
    assert len(BROKEN_QRELS) >= 16
