"""Tests of `cupel evaluate` with pipes, unreadable files, odd characters and closed outputs."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from support.evaluated_files import BAD, GOOD, QRELS, cupel, values


@contextlib.contextmanager
def pipe_with(text: str) -> Iterator[str]:
    """Yield the path of a pipe that holds `text`, like the shell's `<(cat file)`."""
    read_end, write_end = os.pipe()
    os.write(write_end, text.encode())
    os.close(write_end)
    yield f"/dev/fd/{read_end}"
    os.close(read_end)


def test_markup_in_names_is_printed_literally(folder: Path) -> None:
    (folder / "[red]run[b].txt").write_text(GOOD)
    assert "[red]run[b].txt" in cupel("qrels.txt", "[red]run[b].txt", "-m", "AP").stdout


def test_closed_pipe_causes_no_traceback(folder: Path, root: Path) -> None:
    paths = os.pathsep.join(str(root / "libs" / name) for name in ("client", "measures"))
    command = [sys.executable, "-c", "from cupel_client.main import main; main()", "evaluate"]
    with subprocess.Popen(
        [*command, "qrels.txt", "good.txt", "--per-topic", "--format", "jsonl", "-m", "all_trec"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths},
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()


def test_unreadable_run_is_refused_and_other_runs_are_scored(folder: Path) -> None:
    (folder / "dir").mkdir()
    result = cupel("qrels.txt", "dir", "good.txt", "-m", "AP", "--format", "jsonl")
    assert list(values(result)) == [("good.txt", "AP", "all")]
    assert result.exit_code == 1
    assert "dir: error file-unreadable: cannot be read: Is a directory" in result.stderr


def test_unreadable_qrels_are_refused(folder: Path) -> None:
    (folder / "dir").mkdir()
    result = cupel("dir", "good.txt")
    assert result.exit_code == 1
    assert "dir: error file-unreadable" in result.stderr


def test_pipes_are_supported() -> None:
    with pipe_with(QRELS) as qrels, pipe_with(GOOD) as run:
        result = cupel(qrels, run, "-m", "AP", "--format", "jsonl")
    assert list(values(result).values()) == [2 / 3]
    with pipe_with(QRELS) as qrels, pipe_with(BAD) as run:
        assert "run-rank" in cupel("--aspect", f"relevance={qrels}", run).stderr


def run_command(
    folder: Path, root: Path, *arguments: str, **options: Any
) -> "subprocess.CompletedProcess[bytes]":
    """Run `cupel evaluate` in a separate process."""
    paths = os.pathsep.join(str(root / "libs" / name) for name in ("client", "measures"))
    command_line = [
        sys.executable,
        "-c",
        "from cupel_client.main import main; main()",
        "evaluate",
        *arguments,
    ]
    environment = {**os.environ, "PYTHONPATH": paths, **options.pop("env", {})}
    return subprocess.run(
        command_line, cwd=folder, env=environment, stderr=subprocess.PIPE, check=False, **options
    )


def test_characters_outside_the_encoding_are_escaped(folder: Path, root: Path) -> None:
    (folder / "caf\xe9.txt").write_text(GOOD)
    for form in ("table", "jsonl", "csv"):
        arguments = ("qrels.txt", "caf\xe9.txt", "-m", "AP", "--format", form)
        done = run_command(
            folder, root, *arguments, stdout=subprocess.PIPE, env={"PYTHONIOENCODING": "ascii"}
        )
        assert done.returncode == 0, done.stderr
        assert b"caf" in done.stdout


def test_closed_or_full_output_is_an_error_message(folder: Path, root: Path) -> None:
    closed = run_command(folder, root, "qrels.txt", "good.txt", preexec_fn=lambda: os.close(1))
    assert (closed.returncode, closed.stderr) == (1, b"Error: standard output is closed\n")
    if Path("/dev/full").exists():
        with Path("/dev/full").open("wb") as full:
            done = run_command(folder, root, "qrels.txt", "good.txt", "--format", "csv", stdout=full)
        assert done.returncode == 2
        assert b"No space left" in done.stderr
        assert b"Exception" not in done.stderr


def test_control_characters_of_files_are_shown_as_escapes(folder: Path) -> None:
    (folder / "a\x1b[31mb.txt").write_text(GOOD.replace("1 Q0", "1\x1b[2J Q0"))
    (folder / "qrels.txt").write_text(QRELS.replace("1 0", "1\x1b[2J 0"))
    (folder / "c\x9bd.txt").write_text(BAD.replace("x 8", "\x1b[2J 8"))
    result = cupel("qrels.txt", "a\x1b[31mb.txt", "c\x9bd.txt", "-m", "AP", "--per-topic")
    assert "\x1b" not in result.output
    assert "\x9b" not in result.output
    assert r"1\x1b[2J" in result.stdout
    assert r"a\x1b[31mb.txt" in result.stdout
    assert r"c\x9bd.txt is refused" in result.stderr
