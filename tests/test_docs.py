"""Commands printed in the READMEs and recipes: each one runs and prints the output shown.

A ```console block contains commands (lines that begin with `$ `) and their output. The commands of one
document, and its ```python blocks, run in order in one new folder.
`$ cupel serve` keeps running in the background, as in a second terminal, on a free port that replaces the
printed one.
"""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.patience import seconds

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = sorted(
    path
    for pattern in (
        "README.md",
        "libs/*/README.md",
        "libs/*/RECIPES.md",
        "libs/*/INPUTS.md",
        "services/*/README.md",
    )
    for path in ROOT.glob(pattern)
)

RUN_BY_OTHER_FILES = {
    "make demo": "tests/end_to_end/test_demo.py",
    "make demo ONCE=1": "tests/end_to_end/test_demo.py",
    "make setup": ".ci/run",
    "make check": ".ci/run",
    "make test": ".ci/run",
}
"""Commands that take too long for this test -> the file that runs them."""

PRINTED_URL = "http://127.0.0.1:8000"


@dataclass(frozen=True)
class Command:
    """A printed command with its line number and its printed output."""

    text: str
    line: int
    output: tuple[str, ...]


def commands(document: Path) -> Iterator[Command]:
    """Yield the commands of the console blocks of a document, and its python blocks as commands.

    A python block follows those before it, as in a notebook.
    """
    text, program = document.read_text(), ""
    for block in re.finditer(r"^```(console|python)\n(.*?)^```", text, re.M | re.S):
        first_line = text.count("\n", 0, block.start(2)) + 1
        if block.group(1) == "python":
            program += block.group(2)
            yield Command(f"python - <<'END'\n{program}END", first_line, ())
            continue
        for part in re.finditer(r"^\$ (.*(?:\\\n.*)*)\n((?:(?!\$ ).*\n)*)", block.group(2), re.M):
            line = first_line + block.group(2).count("\n", 0, part.start())
            yield Command(part.group(1), line, tuple(filter(None, part.group(2).splitlines())))


class ReadmeSession:
    """A shell session in a new folder that runs the commands of one document."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = PRINTED_URL
        self.services: list[subprocess.Popen[str]] = []
        keep = {
            name: value for name, value in os.environ.items() if not name.startswith(("CUPEL_", "PYTEST_"))
        }
        self.environment = {
            **keep,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(folder),
            "XDG_CONFIG_HOME": str(folder / ".config"),
            "COLUMNS": "120",
        }

    def run(self, command: str) -> str:
        """Run a command and return its output; `# exits with 1` in its text allows that exit code."""
        if command.startswith("cupel serve"):
            return self._start_service(command)
        allowed = int(match.group(1)) if (match := re.search(r"# exits with (\d)", command)) else 0
        done = subprocess.run(
            ["bash", "-c", command.replace(PRINTED_URL, self.url)],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=seconds(120),
        )
        assert done.returncode == allowed, f"$ {command}\n{done.stdout}\nexit code {done.returncode}"
        return done.stdout.replace(self.url, PRINTED_URL)

    def _start_service(self, command: str) -> str:
        service = subprocess.Popen(
            ["bash", "-c", f"exec {command} --port 0"],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.services.append(service)
        assert service.stdout is not None
        for line in service.stdout:
            if match := re.search(r"ready at (http\S+)", line):
                self.url = match.group(1)
                return line.replace(self.url, PRINTED_URL)
        raise AssertionError(f"$ {command}\nended with {service.wait()} before it was ready")

    def close(self) -> None:
        """Send SIGINT to the services that still run, as Ctrl-C does, and wait until they end."""
        for service in self.services:
            service.send_signal(signal.SIGINT)
            service.communicate(timeout=seconds(60))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_readme_commands_print_the_shown_output(document: Path, tmp_path: Path) -> None:
    session = ReadmeSession(tmp_path)
    try:
        for command in commands(document):
            if command.text not in RUN_BY_OTHER_FILES:
                printed = " ".join(session.run(command.text).split())
                missing = [
                    line for line in command.output if " ".join(line.split()) not in printed and line != "..."
                ]
                assert not missing, (
                    f"{document.name}:{command.line} $ {command.text}\nprints {printed}\nnot {missing}"
                )
    finally:
        session.close()


def test_every_package_has_a_readme() -> None:
    readmes = [path for path in DOCUMENTS if path.name == "README.md"]
    assert len(readmes) == 1 + len(list(ROOT.glob("libs/cupel_*"))) + len(
        list(ROOT.glob("*/*/pyproject.toml"))
    )


@pytest.mark.parametrize(("command", "place"), RUN_BY_OTHER_FILES.items())
def test_skipped_command_is_run_by_the_named_file(command: str, place: str) -> None:
    assert command.split(" ONCE")[0] in (ROOT / place).read_text()


def test_readme_shows_the_first_commands() -> None:
    printed = {command.text for command in commands(ROOT / "README.md")}
    assert {"make demo", "make test"} <= printed
    assert any(text.startswith("cupel evaluate") for text in printed)


def test_every_make_target_in_a_readme_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):.*## ", (ROOT / "Makefile").read_text(), re.M))
    named = {
        target
        for path in DOCUMENTS
        for target in re.findall(r"(?:`|^\$ )make ([a-z]+)", path.read_text(), re.M)
    }
    assert named <= targets
