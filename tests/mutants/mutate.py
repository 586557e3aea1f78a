"""Mutation testing: change the code in one place at a time, and count the changes that no test detects.

    make mutants M="corrections --limit 20"

A mutant is the code with one change. It is tested in a copy of the repository by the test files of its
module, and is killed if a test fails. The command fails if fewer than 90% of the mutants are killed. Mutants
that behave like the original code do not count: equivalent.toml lists them with a reason.
"""

import argparse
import ast
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).resolve().parents[2]

AUDITS = (
    "tests/audits/hand_worked",
    "tests/audits/kinds",
    "tests/audits/test_every_kind.py",
    "tests/audits/test_execution.py",
    "tests/audits/test_intervals.py",
    "tests/audits/test_judging.py",
    "tests/audits/test_report.py",
    "tests/audits/test_subject.py",
)
"""The quick tests of audits."""

TESTS_OF = {
    "libs/measures/cupel_measures/comparing/rank_correlation.py": (
        "tests/measures/comparing/test_rank_correlation.py",
    ),
    "libs/measures/cupel_measures/comparing/corrections.py": ("tests/measures/comparing/test_all_pairs.py",),
    "libs/measures/cupel_measures/comparing/all_pairs.py": ("tests/measures/comparing/test_all_pairs.py",),
    "libs/measures/cupel_measures/comparing/topic_set_sizes.py": (
        "tests/measures/comparing/test_topic_set_sizes_and_agreement.py",
    ),
    "libs/measures/cupel_measures/comparing/agreement.py": (
        "tests/measures/comparing/test_topic_set_sizes_and_agreement.py",
    ),
    "libs/measures/cupel_measures/comparing/swap_rates.py": ("tests/measures/comparing/test_swap_rates.py",),
    "libs/measures/cupel_measures/comparing/simultaneous/*.py": (
        "tests/measures/comparing/simultaneous/test_{module}.py",
        "tests/measures/comparing/test_max_t.py",
    ),
    "libs/measures/cupel_measures/comparing/topic_sets/*.py": ("tests/measures/comparing/test_{module}.py",),
    "libs/measures/cupel_measures/comparing/closeness/*.py": (
        "tests/measures/comparing/test_{module}.py",
        "tests/measures/comparing/test_margins.py",
        "tests/measures/comparing/test_same_system.py",
    ),
    "libs/measures/cupel_measures/comparing/differences/*.py": (
        "tests/measures/comparing/test_comparison.py",
    ),
    "libs/measures/cupel_measures/comparing/paired_tests.py": (
        "tests/measures/comparing/test_paired_tests.py",
        "tests/measures/comparing/test_published_values.py",
    ),
    "libs/measures/cupel_measures/comparing/*.py": (
        "tests/measures/comparing/test_{module}.py",
        "tests/measures/comparing",
    ),
    "libs/audits/cupel_audits/kinds/leave_one_*.py": (
        "tests/audits/hand_worked/test_leave_one_out.py",
        "tests/audits/kinds/test_leaving_out.py",
        *AUDITS,
    ),
    "libs/audits/cupel_audits/kinds/*.py": (
        "tests/audits/hand_worked/test_{kind}.py",
        "tests/audits/hand_worked/topic_sets/test_{kind}.py",
        "tests/audits/kinds/test_{kind}.py",
        *AUDITS,
    ),
    "libs/audits/cupel_audits/analysis/lmd_selection.py": (
        "tests/measures/families/test_document_content.py",
        *AUDITS,
    ),
    "libs/audits/cupel_audits/combining/*.py": ("tests/client/judgments/test_combined_audits.py",),
    "libs/audits/cupel_audits/*.py": ("tests/audits/test_{module}.py", *AUDITS),
    "libs/backend/cupel_backend/jobs.py": ("tests/backend/test_jobs.py", "tests/backend/test_concurrency.py"),
    "libs/backend/cupel_backend/job_*.py": (
        "tests/backend/test_jobs.py",
        "tests/backend/test_job_execution.py",
        "tests/backend/test_concurrency.py",
    ),
}
"""Patterns of modules and their tests, nearest first. The first pattern that fits a module counts.

{module} is the name of the module, and {kind} the kind of audit that it belongs to.
"""

REQUIRED_SHARE = 0.9
MEMORY = 4 << 30
"""Most bytes of data of a process that tests a mutant. A mutant can fill the memory in an endless loop."""

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
}


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """A change of the expression at one place of a module."""

    module: str
    line: int
    before: str
    after: str
    source: str
    """The text of the whole module after the change."""
    code: str
    """The first line of the expression before the change."""

    @property
    def key(self) -> str:
        """The text of the mutant without its line number, which changes too often."""
        return f"{self.module}: {self.before} -> {self.after}"

    def __str__(self) -> str:
        return f"{self.module}:{self.line}: {self.before} -> {self.after}"


def mutations(node: ast.AST) -> Iterator[ast.expr]:
    """Yield other expressions for an expression."""
    match node:
        case ast.Compare(ops=[operator]) if type(operator) in COMPARISONS:
            yield ast.Compare(node.left, [COMPARISONS[type(operator)]()], node.comparators)
        case ast.BinOp(op=operator) if type(operator) in OPERATORS and not is_type(node):
            yield ast.BinOp(node.left, OPERATORS[type(operator)](), node.right)
        case ast.BoolOp(op=ast.And()):
            yield ast.BoolOp(ast.Or(), node.values)
        case ast.BoolOp(op=ast.Or()):
            yield ast.BoolOp(ast.And(), node.values)
        case ast.UnaryOp(op=ast.Not()):
            yield node.operand
        case ast.IfExp():
            yield ast.IfExp(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield ast.Constant(value + 1)
        case ast.Constant(value=float(value)):
            yield ast.Constant(value * 1.5 + 0.5)


def is_type(node: ast.BinOp) -> bool:
    return isinstance(node.left, ast.Constant) and isinstance(node.left.value, str)


def mutants_of(module: str) -> list[Mutant]:
    """Return all mutants of the functions of a module, in the order of its lines."""
    source = (ROOT / module).read_text()
    found = []
    functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    bodies = [statement for function in functions for statement in function.body]
    nodes = {id(node): node for statement in bodies for node in ast.walk(statement)}
    # strict=True of zip only detects programming errors, which no test can cause
    strict = {
        id(node.value) for node in nodes.values() if isinstance(node, ast.keyword) and node.arg == "strict"
    }
    for node in nodes.values():
        for other in mutations(node) if id(node) not in strict else ():
            assert isinstance(node, ast.expr)
            before = ast.get_source_segment(source, node) or ""
            after = f"({ast.unparse(ast.fix_missing_locations(other))})"
            one_line = " ".join(before.split())
            found.append(
                Mutant(
                    module=module,
                    line=node.lineno,
                    before=one_line,
                    after=after[1:-1],
                    source=replaced(source, node, after),
                    code=source.splitlines()[node.lineno - 1].strip(),
                )
            )
    return sorted(found, key=lambda mutant: (mutant.line, mutant.before, mutant.after))


def replaced(source: str, node: ast.expr, text: str) -> str:
    """Return the source with a node replaced by `text`. The columns of nodes count bytes of UTF-8."""
    lines = source.encode().splitlines(keepends=True)
    begin = sum(map(len, lines[: node.lineno - 1])) + node.col_offset
    end = sum(map(len, lines[: (node.end_lineno or node.lineno) - 1])) + (node.end_col_offset or 0)
    data = source.encode()
    return (data[:begin] + text.encode() + data[end:]).decode()


def tests_of(module: str) -> tuple[str, ...]:
    tests = next(tests for pattern, tests in TESTS_OF.items() if fnmatch(module, pattern))
    kind = module.partition("/kinds/")[2].partition("/")[0].removesuffix(".py")
    named = (test.format(kind=kind, module=Path(module).stem) for test in tests)
    return tuple(test for test in named if (ROOT / test).exists())


def modules(words: list[str]) -> list[str]:
    """Return the modules in TESTS_OF whose path contains one of the words (default: all)."""
    paths = (str(path.relative_to(ROOT)) for path in sorted(ROOT.glob("libs/**/*.py")))
    known = [path for path in paths if any(fnmatch(path, pattern) for pattern in TESTS_OF)]
    return [path for path in known if not words or any(word in path for word in words)]


class Copy:
    """A copy of the repository in which modules are changed and tested."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.writes = 0
        skipped = shutil.ignore_patterns("__pycache__", "build", "*.egg-info")
        for name in ("libs", "services", "tests"):
            shutil.copytree(ROOT / name, folder / name, ignore=skipped)
        shutil.copy(ROOT / "pyproject.toml", folder)

    def passes(self, tests: tuple[str, ...], limit: float | None = None) -> bool:
        """Return whether the tests pass within `limit` seconds."""
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-x",
            "-q",
            "-p",
            "no:cacheprovider",
            "-k",
            "not production",
        ]
        shared = os.environ.get("CUPEL_SHARED", str(ROOT.parent / "shared"))
        environment = {**os.environ, "CI": "1", "CUPEL_SHARED": shared}
        try:
            done = subprocess.run(
                [*command, *tests], cwd=self.folder, env=environment, capture_output=True, timeout=limit
            )
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0

    def survives(self, mutant: Mutant, limit: float) -> bool:
        path = self.folder / mutant.module
        original = path.read_text()
        self.write(path, mutant.source)
        try:
            return self.passes(tests_of(mutant.module), limit)
        finally:
            self.write(path, original)

    def write(self, path: Path, source: str) -> None:
        """Write a module with a new modification time, so that Python does not use its cached bytecode."""
        path.write_text(source)
        self.writes += 1
        os.utime(path, (self.writes, self.writes))


class Copies:
    """Copies of the repository, each of which tests one mutant at a time."""

    def __init__(self, folder: Path, number: int) -> None:
        self.free: SimpleQueue[Copy] = SimpleQueue()
        for index in range(number):
            self.free.put(Copy(folder / str(index)))
        self.limit = 0.0

    def measure(self, tests: tuple[str, ...]) -> None:
        """Run the tests without any change, and allow a mutant three times their duration plus 60 s."""
        copy = self.free.get()
        begin = time.monotonic()
        assert copy.passes(tests), "a test fails without any change"
        self.limit = 60 + 3 * (time.monotonic() - begin)
        self.free.put(copy)

    def survives(self, mutant: Mutant) -> bool:
        copy = self.free.get()
        try:
            return copy.survives(mutant, self.limit)
        finally:
            self.free.put(copy)


def equivalents(chosen: list[Mutant]) -> dict[Mutant, str]:
    """Return the mutants that equivalent.toml lists, with the reasons why they are equivalent."""
    listed = tomllib.loads(Path(__file__).with_name("equivalent.toml").read_text()).get("equivalent", [])
    return {
        mutant: entry["reason"]
        for mutant in chosen
        for entry in listed
        if entry["mutant"] == mutant.key and entry.get("line", mutant.code) == mutant.code
    }


def run(chosen: list[Mutant], jobs: int) -> int:
    """Test the mutants, print what became of each, and return the exit code."""
    equivalent = equivalents(chosen)
    for mutant, reason in equivalent.items():
        print(f"equivalent  {mutant}: {reason}", flush=True)
    others = [mutant for mutant in chosen if mutant not in equivalent]
    survived = 0
    with tempfile.TemporaryDirectory(prefix="cupel-mutants-") as folder, ThreadPoolExecutor(jobs) as pool:
        copies = Copies(Path(folder), jobs)
        copies.measure(tuple(sorted({test for mutant in others for test in tests_of(mutant.module)})))
        for mutant, survives in zip(others, pool.map(copies.survives, others), strict=True):
            survived += survives
            print(f"{'survived' if survives else 'killed  '}    {mutant}", flush=True)
    share = 1 - survived / max(len(others), 1)
    killed = f"{len(others) - survived} of {len(others)} mutants killed"
    print(f"{killed}: {share:.0%}, of which {REQUIRED_SHARE:.0%} are required")
    return 0 if share >= REQUIRED_SHARE else 1


def main() -> int:
    parser = argparse.ArgumentParser(description="Test mutants of the code.")
    parser.add_argument("words", nargs="*", help="parts of the paths of modules (default: all modules)")
    parser.add_argument("--limit", type=int, default=10, help="mutants per module (default: 10; 0: all)")
    parser.add_argument("--seed", type=int, default=0, help="random seed of the sample (default: 0)")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="mutants at a time (default: the cores)"
    )
    arguments = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    chosen = []
    for module in modules(arguments.words):
        mutants = mutants_of(module)
        size = min(arguments.limit or len(mutants), len(mutants))
        sample = random.Random(f"{arguments.seed}/{module}").sample(range(len(mutants)), size)
        chosen += [mutants[index] for index in sorted(sample)]
    if not chosen:
        print("no module has a path with these words", file=sys.stderr)
        return 2
    return run(chosen, arguments.jobs)


if __name__ == "__main__":
    sys.exit(main())
