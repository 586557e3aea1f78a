"""The architecture: imports, use of outside libraries, names, sizes, and what is committed."""

import ast
import re
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from support.violations import assert_none

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
"""Packages that each package may import. Only cupel_standalone combines services."""

MEASURES_LAYERS = (
    {"native", "findings"},
    {"model"},
    {"grammar"},
    {"scoring"},
    {"families"},
    {"catalogue"},
    {"reading"},
    {"comparing", "explaining", "simulation"},
    {"inputs"},
    {"evaluation"},
    {"interop"},
)
"""Folders and modules of cupel_measures, lowest layer first.

A module imports only its own folder and lower layers.
"""

ONE_FILE = [{"boto3", "botocore"}, {"celery", "kombu"}, {"prometheus_client"}, {"vl_convert"}]
"""Outside libraries that only one file may import."""

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
"""Packages that may import an outside library at all."""

TOP_LEVEL = {
    ".ci", ".dockerignore", ".editorconfig", ".gitignore", ".pre-commit-config.yaml", "CHANGELOG.md",
    "CITATION.cff",
    "CONTRIBUTING.md", "LICENSE", "Makefile", "README.md", "SECURITY.md", "deploy", "docker-compose.yml",
    "libs", "pyproject.toml", "requirements-check.in", "requirements-check.lock", "requirements-full.in",
    "requirements-full.lock", "requirements-test.in", "requirements-test.lock", "requirements.in",
    "requirements.lock", "services", "tests",
}  # fmt: skip

VAGUE_MODULE_NAMES = {"utils", "util", "helpers", "helper", "constants", "common", "misc"}

PARTICIPLE_MODULE_NAMES = {
    "asking", "auditing", "planning", "standing", "stories", "verdicts", "wishes", "working",
}  # fmt: skip
"""Former module names that did not say what the module contains."""

MOST_SIGNS_OF_A_SUMMARY = 80
MOST_LINES_OF_A_FILE = 500
MOST_LINES_OF_A_FUNCTION = 60
MOST_FILES_OF_A_FOLDER = 15
MOST_POSITIONAL_FIELDS = 4


def source_files() -> list[Path]:
    return sorted(
        path
        for top in ("libs", "services")
        for path in (ROOT / top).rglob("*.py")
        if not {"build", "__pycache__"} & set(path.parts)
    )


def modules() -> dict[str, Path]:
    """Return the file of every module of the packages, by its dotted name."""
    found = {}
    for path in source_files():
        parts = path.relative_to(ROOT).with_suffix("").parts[2:]
        if parts[0].startswith("cupel_"):
            found[".".join(parts).removesuffix(".__init__")] = path
    return found


def package_of(path: Path) -> str:
    """Return the package of a source file: the third part of its path (libs/client/cupel_client/...)."""
    return path.relative_to(ROOT).parts[2]


def place_of(path: Path, line: int | None = None) -> str:
    return str(path.relative_to(ROOT)) + (f":{line}" if line else "")


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), str(path))


@cache
def imports_of(path: Path) -> list[tuple[str, int]]:
    """Return the top-level name of every module that a file imports anywhere, with the line."""
    return list(_imports_in(path))


def _imports_in(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name.partition(".")[0], node.lineno
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{place_of(path, node.lineno)}: write the import with its full name"
            yield str(node.module).partition(".")[0], node.lineno


def importers_of(libraries: set[str]) -> set[Path]:
    return {path for path in source_files() if libraries & {name for name, _ in imports_of(path)}}


@cache
def import_graph() -> dict[str, set[str]]:
    """Return the modules of this repository that each module imports, even lazily or for type checking.

    A package that a module imports implicitly, as the parent of another module, does not count.
    """
    known = modules()
    graph: dict[str, set[str]] = {}
    for module, path in known.items():
        names = set()
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                members = {f"{node.module}.{alias.name}" for alias in node.names}
                names |= {name if name in known else str(node.module) for name in members}
        graph[module] = (names & known.keys()) - {module}
    return graph


def import_cycles(graph: Mapping[str, set[str]]) -> set[frozenset[str]]:
    """Return import cycles. After each cycle, remove one of its imports and continue the search."""
    remaining = {module: set(imported) for module, imported in graph.items()}
    cycles = set()
    while True:
        try:
            TopologicalSorter(remaining).prepare()
        except CycleError as error:
            cycle = error.args[1]
            cycles.add(frozenset(cycle))
            remaining[cycle[1]].discard(cycle[0])
        else:
            return cycles


def folder_in_measures(module: str) -> str:
    """Return the folder or module directly below cupel_measures that holds a module."""
    return [*module.split("."), ""][1]


@cache
def committed() -> list[Path]:
    """Return every file that git tracks; skip the test outside a checkout."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("this is not a git checkout, or git is not installed")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_every_package_has_import_rules() -> None:
    assert {package_of(path) for path in source_files() if path.name != "setup.py"} == set(MAY_IMPORT)


def test_packages_import_only_what_their_layer_allows() -> None:
    assert_none(
        f"{place_of(path, line)}: {package_of(path)} imports {name}"
        for path in source_files()
        if path.name != "setup.py"
        for name, line in imports_of(path)
        if name.startswith("cupel_") and name not in MAY_IMPORT[package_of(path)] | {package_of(path)}
    )


def test_folders_of_measures_import_only_lower_layers() -> None:
    layer = {folder: number for number, folders in enumerate(MEASURES_LAYERS) for folder in folders}
    inside = {
        (module, imported)
        for module, all_imported in import_graph().items()
        for imported in all_imported
        if module.startswith("cupel_measures.") and imported.startswith("cupel_measures")
    }
    assert_none(
        f"{module} imports {imported}"
        for module, imported in inside
        if (upper := folder_in_measures(module)) != (lower := folder_in_measures(imported))
        and layer[upper] <= layer.get(lower, len(layer))
    )


def test_infrastructure_does_not_import_the_domain() -> None:
    infrastructure = "cupel_backend.infrastructure"
    assert_none(
        f"{module} imports {imported}"
        for module, all_imported in import_graph().items()
        for imported in all_imported
        if module.startswith(infrastructure)
        and imported.startswith("cupel_backend")
        and not imported.startswith(infrastructure)
    )


def test_modules_do_not_import_each_other_in_a_cycle() -> None:
    assert_none(" <-> ".join(sorted(cycle)) for cycle in import_cycles(import_graph()))


def test_check_finds_an_import_cycle() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a", "e"}, "e": {"d"}, "f": set()}
    assert import_cycles(graph) == {frozenset("abc"), frozenset("de")}


def test_backend_imports_only_states_and_error_codes_of_the_contract() -> None:
    allowed = {"cupel_contract.states", "cupel_contract.error_codes"}
    assert_none(
        f"{module} imports {imported}"
        for module, all_imported in import_graph().items()
        for imported in all_imported
        if module.startswith("cupel_backend") and imported.startswith("cupel_contract")
        if imported not in allowed
    )


def test_states_and_error_codes_import_only_the_standard_library() -> None:
    """The only exception is `states`: `error_codes` imports it for the token scopes."""
    assert_none(
        f"{module}: {name}"
        for module in ("states", "error_codes")
        for name, _ in imports_of(ROOT / f"libs/contract/cupel_contract/{module}.py")
        if name not in {*sys.stdlib_module_names, "cupel_contract"}
    )
    assert not import_graph()["cupel_contract.states"]
    assert import_graph()["cupel_contract.error_codes"] == {"cupel_contract.states"}


@pytest.mark.parametrize("libraries", ONE_FILE, ids=lambda libraries: min(libraries))
def test_only_one_file_imports_the_library(libraries: set[str]) -> None:
    importers = importers_of(libraries)
    assert len(importers) <= 1, f"{sorted(libraries)} are imported in {sorted(map(str, importers))}"


@pytest.mark.parametrize("library", PACKAGES_OF)
def test_only_some_packages_import_the_library(library: str) -> None:
    others = {str(path) for path in importers_of({library}) if package_of(path) not in PACKAGES_OF[library]}
    assert not others, f"only {sorted(PACKAGES_OF[library])} may import {library}: {sorted(others)}"


def test_one_file_of_the_service_and_one_of_the_command_read_the_environment() -> None:
    readers = {
        path
        for path in source_files()
        for node in ast.walk(tree_of(path))
        if (isinstance(node, ast.Attribute) and node.attr in {"environ", "environb", "getenv", "putenv"})
        or (isinstance(node, ast.ImportFrom) and node.module == "os" and "environ" in ast.dump(node))
        or (isinstance(node, ast.Name) and node.id == "getenv")
        or (isinstance(node, ast.Name) and node.id == "BaseSettings")
    }
    services = {path for path in readers if "cupel_client" not in path.parts}
    assert len(services) <= 1, sorted(map(str, services))
    assert {path.name for path in readers - services} <= {"environment.py"}


def test_files_are_short() -> None:
    lengths = {path: path.read_text().count("\n") for path in source_files()}
    assert_none(
        f"{place_of(path)}: {length} lines"
        for path, length in lengths.items()
        if length > MOST_LINES_OF_A_FILE
    )


def test_docstrings_begin_with_a_short_summary() -> None:
    summaries = {
        f"{place_of(path, getattr(node, 'lineno', 1))}": text.splitlines()[0]
        for path in source_files()
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if (text := ast.get_docstring(node))
    }
    assert_none(
        f"{place}: {line}" for place, line in summaries.items() if len(line) > MOST_SIGNS_OF_A_SUMMARY
    )
    questions = ("What ", "Which ", "Whose ", "Whether ")
    assert_none(f"{place}: {line}" for place, line in summaries.items() if line.startswith(questions))


def test_functions_are_short() -> None:
    assert_none(
        f"{place_of(path, node.lineno)} {node.name}: {length} lines"
        for path in source_files()
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (length := body_length(node)) > MOST_LINES_OF_A_FUNCTION
    )


def body_length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the number of lines of a function's body without its docstring."""
    first = function.body[0]
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    start = function.body[1] if documented and len(function.body) > 1 else first
    return int(function.end_lineno or start.lineno) - start.lineno + 1


def test_folders_hold_few_source_files() -> None:
    tests = [path for suffix in ("py", "c", "h") for path in (ROOT / "tests").rglob(f"*.{suffix}")]
    native = [path for suffix in ("c", "h") for path in (ROOT / "libs").rglob(f"*.{suffix}")]
    counts = Counter(path.parent for path in [*source_files(), *native, *tests])
    assert_none(
        f"{place_of(folder)}: {count} source files"
        for folder, count in counts.items()
        if count > MOST_FILES_OF_A_FOLDER
    )


def test_module_names_are_not_vague() -> None:
    assert_none(
        place_of(path) for path in source_files() if path.stem in VAGUE_MODULE_NAMES | PARTICIPLE_MODULE_NAMES
    )


def test_module_names_are_unique() -> None:
    paths = defaultdict(list)
    for path in source_files():
        if path.name not in {"__init__.py", "__main__.py", "setup.py"}:
            paths[path.stem].append(place_of(path))
    assert_none(f"{name}: {', '.join(places)}" for name, places in paths.items() if len(places) > 1)


def test_class_names_are_unique() -> None:
    places = defaultdict(list)
    for path in source_files():
        for node in tree_of(path).body:
            if isinstance(node, ast.ClassDef):
                places[node.name].append(place_of(path, node.lineno))
    assert_none(f"{name}: {', '.join(where)}" for name, where in places.items() if len(where) > 1)


def test_large_dataclasses_are_keyword_only() -> None:
    assert_none(
        f"{place_of(path, node.lineno)} {node.name}: {count} fields; add kw_only=True"
        for path in source_files()
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ClassDef) and (count := positional_fields(node)) > MOST_POSITIONAL_FIELDS
    )


def positional_fields(definition: ast.ClassDef) -> int:
    """Return the number of fields that callers of a dataclass may pass by position."""
    decorators = [ast.unparse(decorator) for decorator in definition.decorator_list]
    if not any(text.startswith("dataclass") and "kw_only=True" not in text for text in decorators):
        return 0
    fields = [node for node in definition.body if isinstance(node, ast.AnnAssign)]
    return sum("ClassVar" not in ast.unparse(field.annotation) and is_init(field) for field in fields)


def is_init(field: ast.AnnAssign) -> bool:
    """Return whether a field is a positional parameter of the constructor."""
    text = ast.unparse(field.value) if field.value else ""
    return "init=False" not in text and "kw_only=True" not in text


def test_top_folder_holds_only_known_files() -> None:
    assert {path.relative_to(ROOT).parts[0] for path in committed()} <= TOP_LEVEL


def test_no_committed_file_names_a_machine_path_or_a_package_index() -> None:
    home = re.compile(rb"(?<![\w.~-])/(home|Users|root|work)/\w")
    index = re.compile(rb"pypi\.(org|python)|pythonhosted\.org|(?<!no-emit-)index-url|extra-index")
    assert_none(
        f"{place_of(path)}: {match.group().decode()}"
        for path in committed()
        if path != Path(__file__)
        for pattern in (home, index)
        if (match := pattern.search(path.read_bytes()))
    )


@pytest.mark.parametrize("lock", sorted(ROOT.glob("requirements*.lock")), ids=lambda path: path.name)
def test_locked_dependencies_have_hashes_and_no_address(lock: Path) -> None:
    text = lock.read_text()
    pins = re.findall(
        r"^[a-zA-Z0-9._-]+==\S+(?:.*\\\n(?: +--hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)?", text, re.M
    )
    assert len(pins) > 10
    assert not [pin for pin in pins if "--hash=sha256:" not in pin]
    assert "://" not in text


def test_packages_declare_the_packages_that_they_import() -> None:
    for declaration in sorted(ROOT.glob("*/*/pyproject.toml")):
        (package,) = [
            path.name
            for path in declaration.parent.glob("cupel_*")
            if path.is_dir() and "egg" not in path.name
        ]
        files = [path for path in source_files() if package_of(path) == package]
        imported = {name for path in files for name, _ in imports_of(path) if name in MAY_IMPORT} - {package}
        text = declaration.read_text()
        missing = {name for name in imported if name.replace("_", "-") not in text}
        assert not missing, f"{declaration.relative_to(ROOT)} does not name {sorted(missing)}"
