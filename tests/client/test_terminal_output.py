"""Tests of the output of `cupel` on a terminal: colours, long names, and completion by the shell."""

import os
import pty
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

import cupel_measures as cupel
from cupel_client import output
from cupel_client.main import cli
from cupel_measures.evaluation.score_formats import fitting_names
from support.evaluated_files import BAD, GOOD, QRELS

COMMAND = [sys.executable, "-c", "from cupel_client.main import main; main()"]
ESCAPE = "\x1b"
COLOURED = {
    "table": ["evaluate", "qrels.txt", "good.txt"],
    "findings": ["validate", "bad.txt"],
    "list of measures": ["measures"],
    "page of a measure": ["measures", "AP"],
}
"""Commands that print colours or other styles on a terminal."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with qrels, a valid run and an invalid one."""
    for name, text in {"qrels.txt": QRELS, "good.txt": GOOD, "bad.txt": BAD}.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def on_terminal(folder: Path, arguments: Sequence[str], **environment: str) -> str:
    """Return what a command prints to a terminal."""
    kept = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR", "TERM")}
    terminal, inside = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=folder,
        env={**kept, "TERM": "xterm-256color", **environment},
        stdin=subprocess.DEVNULL,
        stdout=inside,
        stderr=inside,
    )
    os.close(inside)
    printed = b""
    while block := _read(terminal):
        printed += block
    os.close(terminal)
    process.wait()
    return printed.decode().replace("\r\n", "\n")


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


def test_empty_no_color_does_not_count(folder: Path) -> None:
    assert ESCAPE in on_terminal(folder, ["validate", "bad.txt"], NO_COLOR="")


def in_columns(columns: int, arguments: Sequence[str], monkeypatch: pytest.MonkeyPatch) -> str:
    """Return what a command prints in this number of columns."""
    monkeypatch.setattr(output, "WIDTH_IN_FILES", columns)
    result = CliRunner(env={"COLUMNS": str(columns)}).invoke(cli, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["audit"],
        ["audit", "--help"],
        ["measures"],
        ["track", "--help"],
        ["qrels", "--help"],
        ["audits", "--help"],
        ["audits", "schedule", "--help"],
        ["admin", "--help"],
        ["evaluate", "--help"],
    ],
    ids=" ".join,
)
def test_help_and_lists_have_no_cut_words(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    full, narrow = (
        {word for word in in_columns(columns, arguments, monkeypatch).split() if word.strip("─")}
        for columns in (400, 80)
    )
    assert narrow == full
    assert {word for word in narrow if word.endswith("...")} <= {"RUN...", "[ARGS]...", "..."}


LONG = [f"run-{'abcdefgh' * 18}-{end}.txt" for end in ("first", "second")]


@pytest.mark.parametrize("columns", [80, 160])
@pytest.mark.parametrize(
    "arguments",
    [
        ["evaluate", "qrels.txt", *LONG, "-m", "AP RR P@5"],
        ["evaluate", "qrels.txt", *LONG, "--per-topic", "-m", "AP"],
        ["compare", "qrels.txt", *LONG, "-m", "AP"],
        ["compare", "qrels.txt", *LONG, "-m", "AP", "--all-pairs"],
    ],
    ids=["evaluate", "topics", "compare", "pairs"],
)
def test_long_names_are_shortened_in_tables(
    folder: Path, columns: int, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    for name in LONG:
        Path(name).write_text(GOOD)
    lines = in_columns(columns, arguments, monkeypatch).splitlines()
    tables = [line for line in lines if line.startswith(" ") or "…" in line]
    assert max(map(len, tables)) <= columns
    shortened = [word for line in tables for word in line.split() if "abcdefgh" in word]
    assert shortened
    assert {(word[:4], word[-9:]) for word in shortened} == {("run-", "first.txt"), ("run-", "econd.txt")}
    if arguments[0] == "evaluate" and "--per-topic" not in arguments:
        assert sum("AP" in line and "RR" in line and "P@5" in line for line in tables) == 1  # one block


def test_long_names_do_not_break_the_table_of_the_library(folder: Path) -> None:
    for name in LONG:
        (folder / name).write_text(GOOD)
    report = repr(cupel.evaluate(folder / "qrels.txt", [folder / name for name in LONG], "AP"))
    assert max(map(len, report.splitlines()[:3])) < 80
    assert "-first.txt" in report
    assert "-second.txt" in report


def test_names_that_would_look_alike_are_shortened_less() -> None:
    names = ["a" * 30 + "1" + "b" * 30, "a" * 30 + "2" + "b" * 30, "short"]
    short = fitting_names(names, 20)
    assert len({*short.values()}) == 3
    assert short["short"] == "short"
    assert fitting_names(["x" * 40], 11) == {"x" * 40: "xxxxx…xxxxx"}


class TestCompletion:
    @staticmethod
    def completed(*words: str) -> list[str]:
        """Return what bash offers for the last word, after the setup that the README gives."""
        script = (
            'eval "$(_CUPEL_COMPLETE=bash_source cupel)"; COMP_WORDS=(cupel "$@"); COMP_CWORD=$#; '
            '_cupel_completion cupel; printf "%s\\n" "${COMPREPLY[@]}"'
        )
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-c", script, "bash", *words],
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            check=True,
        )
        assert not done.stderr
        return done.stdout.split()

    def test_bash_completes_verbs_options_and_values(self) -> None:
        assert self.completed("eva") == ["evaluate"]
        assert self.completed("evaluate", "--prof") == ["--profile"]
        assert self.completed("evaluate", "--profile", "trec") == ["trec_eval-9", "trec_eval-10"]
        assert self.completed("audit", "downs") == ["downsampling"]

    def test_unknown_verb_is_no_error_during_completion(self) -> None:
        assert self.completed("evalute", "--prof") == []
        assert self.completed("audit", "downsamplin", "--rep") == []

    def test_completion_of_verbs_imports_no_verb(self) -> None:
        code = "import sys; from cupel_client.main import main\ntry: main()\nfinally: print(*sys.modules)"
        environment = {"COMP_WORDS": "cupel ", "COMP_CWORD": "1", "_CUPEL_COMPLETE": "bash_complete"}
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        assert {"plain,evaluate", "plain,leaderboard", "plain,serve"} <= set(done.stdout.splitlines())
        assert "cupel_client.offline" not in done.stdout.splitlines()[-1]
