"""Tests of the output of `cupel` on a terminal: colours, long names, and completion by the shell."""

import os
import pty
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from support.evaluated_files import BAD, GOOD, QRELS

COMMAND = [sys.executable, "-c", "from cupel_client.main import main; main()"]
ESCAPE = "\x1b"
COLOURED = {
    "table": ["evaluate", "qrels.txt", "good.txt"],
    "findings": ["validate", "bad.txt"],
    "summary of findings": ["validate", "bad.txt", "good.txt"],
    "refusal": ["evaluate", "qrels.txt", "bad.txt"],
    "list of measures": ["measures"],
    "page of a measure": ["measures", "AP"],
    "explanation": ["evaluate", "qrels.txt", "good.txt", "--explain", "ties"],
}
"""Commands that print colours or other styles on a terminal."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with qrels, a valid run and an invalid one."""
    for name, text in {"qrels.txt": QRELS, "good.txt": GOOD, "bad.txt": BAD}.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def on_terminal(folder: Path, arguments: Sequence[str], *, columns: int = 80, **environment: str) -> str:
    """Return what a command prints to a terminal."""
    kept = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR", "TERM")}
    terminal, inside = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=folder,
        env={**kept, "COLUMNS": str(columns), "TERM": "xterm-256color", **environment},
        stdin=subprocess.DEVNULL,
        stdout=inside,
        stderr=inside,
    )
    os.close(inside)
    output = b""
    while block := _read(terminal):
        output += block
    os.close(terminal)
    process.wait()
    return output.decode().replace("\r\n", "\n")


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # Linux reports the end of a terminal as an error
        return b""


@pytest.mark.parametrize("arguments", COLOURED.values(), ids=COLOURED)
def test_no_color_and_dumb_terminals_get_plain_text(folder: Path, arguments: list[str]) -> None:
    assert ESCAPE in on_terminal(folder, arguments)
    for environment in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        plain = on_terminal(folder, arguments, **environment)
        assert plain.strip()
        assert ESCAPE not in plain
    assert ESCAPE in on_terminal(folder, arguments, NO_COLOR="")  # an empty value does not count
