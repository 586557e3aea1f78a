"""References in committed text: files, headings, modules and sources exist."""

import ast
import importlib
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pytest

from support.violations import assert_none

ROOT = Path(__file__).resolve().parent.parent

PROSE = {".md", ".yml", ".yaml", ".toml", ".in", ".sh", ".c", ".h", ".cfg"}
"""Suffixes of files whose whole text is checked; of Python files, docstrings and comments are."""

LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")

FILE = re.compile(
    r"(?<![\w./*<>{}~$-])(?:[\w.*-]+/)*[\w*-](?:[\w.*-]*[\w*-])?\.(?:md|pyi?|sh|toml|lock|c|h)(?![\w/(]|\.\w)"
)
"""A name that looks like a source file or a document of this repository."""

PATH = re.compile(r"(?<![\w./*<>{}~$-])(?:libs|services|tests|deploy)/[\w.*/-]*[\w*]")
"""A path from the top folder."""

MODULE = re.compile(
    r"(?<![\w./-])cupel_(?:measures|audits|reports|contract|backend|client|gateway|worker|standalone)"
    r"(?:\.[A-Za-z_]\w*)+"
)

UNAVAILABLE_SOURCES = re.compile(
    r"(?i:\bspec(?:ification)?s? (?:\d+(?:\.\d+)*|section)|\bthe spec\b|\bregister\s+of\s+readings\b)"
    r"|\b(?:design|compatibility|service|speed|english)\.md\b"
    r"|(?<![/\w])measures\.md\b"
    r"|\.\./shared/"
)
"""Documents that are not in the repository."""

NOT_COMMITTED = (
    "*/build",
    "*.egg-info",
    "deploy/secrets",
    "deploy/secrets/*",
    "setup.py",
    "beir/retrieval/evaluation.py",
    "mteb/load_results/task_results.py",
    "*pytrec_eval_tests.py",
)
"""Patterns of files that commands write, that readers have, and of other projects."""


@dataclass(frozen=True)
class Text:
    """A text of a file with the number of its first line."""

    path: Path
    line: int
    text: str

    def matches(self, pattern: re.Pattern[str]) -> Iterator[tuple[str, str]]:
        """Yield the place and the text of each match of the pattern."""
        for match in pattern.finditer(self.text):
            line = self.line + self.text.count("\n", 0, match.start())
            yield f"{self.path.relative_to(ROOT)}:{line}", match.group(match.re.groups)


@cache
def tracked() -> frozenset[str]:
    """Return the paths of all files that git tracks or would add, relative to the top folder."""
    if not (ROOT / ".git").exists():
        pytest.skip("this is not a git checkout")
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return frozenset(name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file())


@cache
def folders() -> frozenset[str]:
    return frozenset(str(parent) for name in tracked() for parent in Path(name).parents)


@cache
def texts() -> list[Text]:
    """Return all prose of the repository: documents, settings, docstrings and comments."""
    found: list[Text] = []
    for name in sorted(tracked()):
        path = ROOT / name
        if path == Path(__file__):
            continue
        if path.suffix == ".py":
            found += python_texts(path)
        elif path.suffix in PROSE or path.name in {"Makefile", "run", "Dockerfile"}:
            found.append(Text(path, 1, path.read_text()))
    return found


def python_texts(path: Path) -> Iterator[Text]:
    """Yield the comments and the docstrings of a Python file."""
    source = path.read_text()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield Text(path, token.start[0], token.string)
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            yield Text(path, node.lineno, node.value.value)


def exists(name: str, folder: Path) -> bool:
    """Return whether a name, perhaps with wildcards, is the path of a file or the end of such a path."""
    near = (folder / name).resolve()
    if near.exists() or (ROOT / name).exists():
        return True
    return any(fnmatch(path, name) or fnmatch(path, f"*/{name}") for path in tracked() | folders())


def slug(heading: str) -> str:
    """Return the anchor that GitHub creates for a heading."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def anchors(document: Path) -> set[str]:
    without_code = re.sub(r"^```.*?^```", "", document.read_text(), flags=re.M | re.S)
    seen: dict[str, int] = {}
    found = set(re.findall(r'<a (?:id|name)="([^"]+)"', without_code))
    for heading in re.findall(r"^#+ (.*)$", without_code, re.M):
        anchor = slug(heading)
        number = seen.get(anchor, 0)
        seen[anchor] = number + 1
        found.add(f"{anchor}-{number}" if number else anchor)
    return found


def test_links_lead_to_files_and_headings() -> None:
    wrong = []
    for text in texts():
        for place, link in text.matches(LINK) if text.path.suffix == ".md" else ():
            address, _, anchor = link.partition("#")
            target = (text.path.parent / address).resolve() if address else text.path
            if "://" in link or link.startswith("mailto:"):
                continue
            if not target.exists():
                wrong.append(f"{place}: {link}: there is no such file")
            elif anchor and anchor not in anchors(target):
                wrong.append(f"{place}: {link}: there is no such heading")
    assert_none(wrong)


@pytest.mark.parametrize("pattern", [FILE, PATH], ids=["name", "path"])
def test_named_files_exist(pattern: re.Pattern[str]) -> None:
    assert_none(
        f"{place}: {name}"
        for text in texts()
        for place, name in text.matches(pattern)
        if not any(fnmatch(name, other) for other in NOT_COMMITTED)
        and not UNAVAILABLE_SOURCES.fullmatch(name)
        and not exists(name.rstrip("."), text.path.parent)
    )


def test_named_modules_exist() -> None:
    names = {
        name: f"{path}:{source.count(chr(10), 0, match.start()) + 1}"
        for path in sorted(tracked())
        if Path(path).suffix in PROSE | {".py"} and path != str(Path(__file__).relative_to(ROOT))
        for source in [(ROOT / path).read_text()]
        for match in MODULE.finditer(source)
        for name in [match.group()]
    }
    assert_none(f"{place}: {name}" for name, place in names.items() if not resolves(name))


def resolves(name: str) -> bool:
    """Return whether a dotted name is the name of a module or of an attribute of a module."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[length:]:
            if not hasattr(found, attribute):
                return False
            found = getattr(found, attribute)
        return True
    return False


def test_cited_sources_can_be_opened() -> None:
    assert_none(
        f"{place}: {citation}" for text in texts() for place, citation in text.matches(UNAVAILABLE_SOURCES)
    )


@pytest.mark.parametrize(
    ("citation", "is_found"),
    [
        ("see the spec", True),
        ("the register\nof readings", True),
        ("MEASURES.md", False),
        ("RFC 9457", False),
    ],
)
def test_citations_of_unavailable_sources_are_found(citation: str, is_found: bool) -> None:
    assert bool(UNAVAILABLE_SOURCES.search(citation)) == is_found
