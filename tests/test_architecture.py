"""The shape of the house: who may import whom, one door per outside library, sizes, and what is committed."""

import ast
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

MAY_IMPORT = {
    "cupel_measures": set(),
    "cupel_audits": {"cupel_measures"},
    "cupel_reports": {"cupel_audits", "cupel_measures"},
    "cupel_contract": set(),
    "cupel_backend": {"cupel_audits", "cupel_contract", "cupel_measures"},
    "cupel_client": {"cupel_audits", "cupel_contract", "cupel_measures", "cupel_reports"},
    "cupel_gateway": {"cupel_audits", "cupel_backend", "cupel_contract", "cupel_measures", "cupel_reports"},
    "cupel_worker": {"cupel_backend", "cupel_measures"},
    "cupel_standalone": {
        "cupel_audits",
        "cupel_measures",
        "cupel_backend",
        "cupel_client",
        "cupel_contract",
        "cupel_gateway",
        "cupel_worker",
    },
}
"""Arrows point down only; standalone alone puts services together."""

ONE_FILE = [{"boto3", "botocore"}, {"celery", "kombu"}, {"prometheus_client"}, {"vl_convert"}]
"""Outside libraries that are spoken to in one file each."""

PACKAGES_OF = {
    "sqlalchemy": {"cupel_backend"},
    "alembic": {"cupel_backend"},
    "fastapi": {"cupel_gateway"},
    "starlette": {"cupel_gateway"},
    "uvicorn": {"cupel_gateway", "cupel_standalone"},
    "httpx": {"cupel_client", "cupel_standalone"},
    "click": {"cupel_client", "cupel_backend", "cupel_standalone"},
    "altair": {"cupel_reports"},
    "jinja2": {"cupel_reports"},
    "rich": {"cupel_client", "cupel_standalone"},
    "multiprocessing": {"cupel_client", "cupel_backend", "cupel_worker"},
}
"""The packages that may use an outside library at all."""

TOP_LEVEL = {
    ".ci", ".dockerignore", ".gitignore", "LICENSE", "Makefile", "README.md", "deploy", "docker-compose.yml",
    "libs", "pyproject.toml", "requirements.in", "requirements.lock", "services", "tests",
}  # fmt: skip


def source_files() -> list[Path]:
    return sorted(
        path
        for top in ("libs", "services")
        for path in (ROOT / top).rglob("*.py")
        if not {"build", "__pycache__"} & set(path.parts)
    )


def package_of(path: Path) -> str:
    """The package a source file belongs to: the third part of its path (libs/client/cupel_client/...)."""
    return path.relative_to(ROOT).parts[2]


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), str(path))


def imports_of(path: Path) -> Iterator[tuple[str, int]]:
    """The first word of every module that a file imports, anywhere in it, with its line."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name.partition(".")[0], node.lineno
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports are written in full here"
            yield str(node.module).partition(".")[0], node.lineno


def importers_of(libraries: set[str]) -> set[Path]:
    return {path for path in source_files() if libraries & {name for name, _ in imports_of(path)}}


def committed() -> list[Path]:
    """Every file that git knows, or skips visibly outside a checkout."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout, or no git: what is committed can't be told")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_there_is_something_to_check() -> None:
    assert {package_of(path) for path in source_files() if path.name != "setup.py"} == set(MAY_IMPORT)


def test_imports_follow_the_arrows() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {package_of(path)} imports {name}"
        for path in source_files()
        if path.name != "setup.py"
        for name, line in imports_of(path)
        if name.startswith("cupel_") and name not in MAY_IMPORT[package_of(path)] | {package_of(path)}
    ]
    assert not wrong, "\n".join(wrong)


def test_the_backend_imports_only_states_and_error_codes_of_the_contract() -> None:
    modules = {
        node.module
        for path in source_files()
        if package_of(path) == "cupel_backend"
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("cupel_contract")
    }
    assert modules <= {"cupel_contract.states", "cupel_contract.error_codes"}


def test_states_and_error_codes_import_only_the_standard_library() -> None:
    for name in ("states", "error_codes"):
        imported = {name for name, _ in imports_of(ROOT / f"libs/contract/cupel_contract/{name}.py")}
        assert imported <= sys.stdlib_module_names


@pytest.mark.parametrize("libraries", ONE_FILE, ids=lambda libraries: min(libraries))
def test_an_outside_library_has_one_door(libraries: set[str]) -> None:
    doors = importers_of(libraries)
    assert len(doors) <= 1, f"{sorted(libraries)} are imported in {sorted(map(str, doors))}"


@pytest.mark.parametrize("library", PACKAGES_OF)
def test_an_outside_library_stays_in_its_packages(library: str) -> None:
    strangers = {
        str(path) for path in importers_of({library}) if package_of(path) not in PACKAGES_OF[library]
    }
    assert not strangers, f"only {sorted(PACKAGES_OF[library])} may import {library}: {sorted(strangers)}"


def test_the_environment_is_read_in_one_file() -> None:
    readers = {
        path
        for path in source_files()
        for node in ast.walk(tree_of(path))
        if (isinstance(node, ast.Attribute) and node.attr in {"environ", "environb", "getenv", "putenv"})
        or (isinstance(node, ast.ImportFrom) and node.module == "os" and "environ" in ast.dump(node))
        or (isinstance(node, ast.Name) and node.id == "getenv")
        or (isinstance(node, ast.Name) and node.id == "BaseSettings")
    }
    assert len(readers) <= 1, sorted(map(str, readers))


def test_no_file_is_long() -> None:
    lengths = {path: path.read_text().count("\n") for path in source_files()}
    long = {str(path.relative_to(ROOT)): length for path, length in lengths.items() if length > 500}
    assert not long


def test_no_function_is_long() -> None:
    long = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}: {length} lines"
        for path in source_files()
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (length := body_length(node)) > 60
    ]
    assert not long, "\n".join(long)


def body_length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function's body, its docstring not counted."""
    first = function.body[0]
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    start = function.body[1] if documented and len(function.body) > 1 else first
    return int(function.end_lineno or start.lineno) - start.lineno + 1


def test_no_module_is_a_drawer() -> None:
    drawers = {"utils", "util", "helpers", "helper", "constants", "common", "misc"}
    assert not [str(path) for path in source_files() if path.stem in drawers]


def test_the_top_folder_holds_only_what_it_should() -> None:
    assert {path.relative_to(ROOT).parts[0] for path in committed()} <= TOP_LEVEL


def test_nothing_committed_names_a_machine_or_an_index() -> None:
    home = re.compile(rb"(?<![\w.~-])/(home|Users|root|work)/\w")
    index = re.compile(rb"pypi\.(org|python)|pythonhosted\.org|index-url|extra-index")
    wrong = [
        f"{path.relative_to(ROOT)}: {match.group().decode()}"
        for path in committed()
        if path != Path(__file__)
        for pattern in ((home,) if path.name == "requirements.in" else (home, index))
        if (match := pattern.search(path.read_bytes()))
    ]
    assert not wrong, "\n".join(wrong)


def test_every_locked_dependency_has_a_hash_and_no_address() -> None:
    text = (ROOT / "requirements.lock").read_text()
    pins = re.findall(
        r"^[a-zA-Z0-9._-]+==\S+(?:.*\\\n(?: +--hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)?", text, re.M
    )
    assert len(pins) > 30
    assert not [pin for pin in pins if "--hash=sha256:" not in pin]
    assert "://" not in text


def test_every_package_declares_what_it_imports_from_here() -> None:
    for declaration in sorted(ROOT.glob("*/*/pyproject.toml")):
        (package,) = [
            path.name
            for path in declaration.parent.glob("cupel_*")
            if path.is_dir() and "egg" not in path.name
        ]
        mine = [path for path in source_files() if package_of(path) == package]
        used = {name for path in mine for name, _ in imports_of(path) if name in MAY_IMPORT} - {package}
        text = declaration.read_text()
        missing = {name for name in used if name.replace("_", "-") not in text}
        assert not missing, f"{declaration.relative_to(ROOT)} does not name {sorted(missing)}"
