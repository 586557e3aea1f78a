"""Record the values that Cupel computes for a collection, or check that they are still the same.

    python tests/support/record_values.py COLLECTION_OR_QRELS RUN... --out FILE
    python tests/support/record_values.py COLLECTION_OR_QRELS RUN... --check FILE

The values come from the JSON output of the `cupel` command, so the script imports no module of Cupel. Numbers
are recorded in output order, with all their bits. Words, column names, nulls, and digests of audits (which
depend on words) are not recorded. A check uses the measures in the recording. It prints the differences, and
exits with 1 if there are any.
"""

import argparse
import hashlib
import io
import json
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from functools import partial
from importlib.metadata import entry_points
from multiprocessing import get_context
from pathlib import Path
from typing import Any

Recording = dict[str, Any]

PROFILES = ("cupel", "trec_eval-9", "trec_eval-10")
CONTROLS = {"cutoff": "@10", "recall": "@0.1"}
PARAMETERISED = (
    "AP(rel=2)@100",
    "P(judged_only=True)@10",
    "nDCG(dcg=exp-log2)@20",
    "ERR(max_gain=3)@20",
    "RBP(p=0.5)@20",
    "Rprec(multiple=0.5)",
    "Bpref(rel=2)",
    "SetF(beta=2)",
    "Utility(a=2,b=-1)",
    "DCG(base=10)@20",
    "gRBP(p=1/4)",
    "gR(normalised=True)@10",
    "Q(beta=10)@20",
    "Compat(p=0.9)",
    "BPM(T=2)@10",
    "INST(T=2)",
    "SDCG(min_rel=1)@10",
    "TOMA(of=AP,distance=manhattan)",
    "TOMA(of=nDCG@10,distance=chebyshev)",
    "TOMA(of=nDCG@10,label_set=observed)",
    "CAM(of=AP)",
    "MM(of=RBP@10)",
    "WHAM(of=P@10)",
    "uRBP(strict=True)@20",
    "RBP_u(graded=True)@20",
    "alpha_nDCG(alpha=0.3,cap=True)@10",
    "alpha_DCG(normalise=False)@10",
    "ERR_IA(normalise=False)@10",
    "NRBP(beta=0.8)",
    "LMD(depth=5,smoothing=0.1)",
    "soft_alpha_nDCG(alpha=0.3)@5",
)
COMPARED = {
    "max-t": ("--all-pairs",),
    "randomisation": ("--test", "randomisation"),
    "t": ("--test", "t", "--correction", "benjamini-hochberg", "--seed", "3"),
    "wilcoxon": ("--test", "wilcoxon", "--correction", "none", "--confidence", "0.9"),
    "sign": ("--test", "sign", "--all-pairs"),
}
AUDITED = ("AP", "nDCG@10", "CAM(of=nDCG@10)", "alpha_nDCG@10")
AUDITS = {
    "aspects": (),
    "pool_depth": ("--deepest", "5"),
    "downsampling": ("--ratios", "50,20", "--repeats", "3", "--tau-ap"),
    "incomplete": ("--percents", "60,20", "--repeats", "3"),
    "content": ("--percents", "60,20", "--repeats", "2", "--reference", "alpha_nDCG@10"),
    "correlation": ("--tau-ap",),
    "desiderata": ("--instances", "20", "--length", "4"),
    "discriminative_power": ("--replicates", "500", "--alpha", "0.05"),
    "label_selection": ("--batch", "50", "--repeats", "1", "--reference", "alpha_nDCG@10"),
    "leave_one_run_out": ("--depths", "5,10"),
    "leave_one_team_out": ("--depths", "5,10"),
    "qrels_versions": ("--replicates", "500"),
    "reliability": (),
    "scales": (),
    "topic_selection": ("--number", "4", "--repeats", "3"),
    "topics": ("--draws", "5", "--subset", "4"),
    "unjudged": ("--tried", "5"),
    "unlabelled_systems": ("--percents", "20,60", "--repeats", "3"),
}
SIMULATED = ("--runs", "50", "--topicality", "0.3", "--topicality", "0.6", "--mu", "40", "--seed", "7")


@dataclass(frozen=True, kw_only=True)
class Subject:
    """The collection, runs and audits to record.

    options: options of audits, such as `--other`. limit: the number of runs to score; digests and audits use
    all runs. kinds: the kinds of audits. board: whether to record the leaderboard of a service.
    """

    collection: str
    runs: Sequence[str]
    options: Sequence[str] = ()
    limit: int = 4
    kinds: Sequence[str] = tuple(AUDITS)
    board: bool = False

    @property
    def first(self) -> Sequence[str]:
        return self.runs[: self.limit]


class RefusedError(Exception):
    """`cupel` printed no result. The argument is its exit code."""


def run_cupel(*arguments: str) -> Any:
    """Return the JSON that `cupel` prints."""
    code, printed = call_cupel(*arguments, "--format", "json")
    if not printed:
        raise RefusedError(code)
    return json.loads(printed)


def call_cupel(*arguments: str) -> tuple[int, str]:
    """Run `cupel` in this process; return its exit code and its output."""
    [command] = entry_points(group="console_scripts", name="cupel")
    start, printed, errors = command.load(), io.StringIO(), io.StringIO()
    with redirect_stdout(printed), redirect_stderr(errors), called_with(*arguments):
        try:
            start()
        except SystemExit as end:
            return int(end.code or 0), printed.getvalue()
    return 0, printed.getvalue()


@contextmanager
def called_with(*arguments: str) -> Iterator[None]:
    before = sys.argv
    sys.argv = ["cupel", *arguments]
    try:
        yield
    finally:
        sys.argv = before


def list_numbers(value: object) -> Iterator[str]:
    """Yield the numbers in `value`, in order, as text without loss of precision."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from list_numbers(item)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield write_bits(value)


def write_bits(number: int | float) -> str:
    """Write a number as a hexadecimal float, or as an integer if no float is equal to it."""
    return repr(number) if isinstance(number, int) and abs(number) > 2**53 else float(number).hex()


def digest(parts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def digest_numbers(value: object) -> str:
    """Return the count of the numbers in `value`, and a digest of them."""
    numbers = list(list_numbers(value))
    return f"{len(numbers)} {digest(numbers)}"


def list_measures(subject: Subject) -> list[str]:
    """List the applicable measures: all declared ones, and variants with parameters and other aspects."""
    texts = [text for declared in run_cupel("measures") for text in write_measure(declared)]
    scored = run_cupel("evaluate", subject.collection, subject.runs[0], "-m", "NumRet")
    aspects = [aspect["name"] for aspect in scored["qrels"]["aspects"]]
    others = [
        text for aspect in aspects[1:] for text in (f"nDCG(aspect={aspect})@10", f"AP(aspect={aspect})")
    ]
    pair = f"aspects=[{','.join(aspects[:2])}]"
    pairs = [
        f"NLRE({pair})",
        f"NLRE(swap=True,{pair})",
        *(f"{name}(of=nDCG@10,{pair})" for name in ("CAM", "TOMA")),
    ]
    return keep_applicable(subject, [*texts, *PARAMETERISED, *others, *pairs])


def write_measure(declared: Mapping[str, Any]) -> list[str]:
    """Write a declared measure with its defaults, and with a cutoff if it takes one."""
    name, needed = (
        declared["name"],
        [parameter["name"] for parameter in declared["parameters"] if parameter["needed"]],
    )
    if "of" in needed:
        return [f"{name}(of=nDCG@10)"]
    control = CONTROLS.get(declared["at"], "")
    return [name + control] if not control or declared["at"] in needed else [name, name + control]


def keep_applicable(subject: Subject, measures: Sequence[str]) -> list[str]:
    """Return the measures that can be computed, by bisection."""
    with suppress(RefusedError):
        evaluate(subject, measures, subject.runs[:1], "cupel")
        return list(measures)
    if len(measures) == 1:
        return []
    middle = len(measures) // 2
    return keep_applicable(subject, measures[:middle]) + keep_applicable(subject, measures[middle:])


def evaluate(
    subject: Subject, measures: Sequence[str], runs: Sequence[str], profile: str, *options: str
) -> Any:
    options_given = ("-m", " ".join(measures), "--profile", profile, "--jobs", "1", *options)
    return run_cupel("evaluate", subject.collection, *runs, *options_given)


def record_digests(subject: Subject) -> Recording:
    """Record the digests and counts of the qrels and of all runs."""
    output = run_cupel("evaluate", subject.collection, *subject.runs, "-m", "NumRet", "--jobs", "1")
    return {
        "qrels": f"{output['qrels']['digest']} {digest_numbers(output['qrels'])}",
        "runs": {run["run"]: f"{run['digest']} {digest_numbers(run)}" for run in output["runs"]},
    }


def record_scores(subject: Subject, measures: Sequence[str], profile: str) -> Recording:
    """Record the scores of each run: the aggregate, and digests of the exact value and of all topics."""
    output = evaluate(subject, measures, subject.first, profile, "--per-topic")
    return {run["run"]: {name: record_score(run, name) for name in run["scores"]} for run in output["runs"]}


def record_score(run: Mapping[str, Any], measure: str) -> str:
    aggregate = run["scores"][measure]
    topics = sorted(run["topic_scores"][measure].items())
    lines = [f"{topic} {'null' if value is None else write_bits(value)}" for topic, value in topics]
    exact = str(run["exact"].get(measure))
    return f"{'null' if aggregate is None else write_bits(aggregate)} {digest([exact])} {digest(lines)}"


def record_explanations(subject: Subject, measures: Sequence[str]) -> Recording:
    output = evaluate(subject, measures, subject.first[-1:], "cupel", "--explain", "all")
    return {
        run["run"]: {name: digest_numbers(parts) for name, parts in run["explanations"].items()}
        for run in output["runs"]
    }


def record_comparison(subject: Subject, measures: Sequence[str], options: Sequence[str]) -> Recording:
    options_given = ("-m", " ".join(measures), "--jobs", "1", *options)
    output = run_cupel("compare", subject.collection, *subject.first, *options_given)
    return {entry["measure"]: digest_numbers(entry) for entry in output["measures"]}


def record_audit(subject: Subject, measures: Sequence[str], kind: str) -> Recording:
    """Record the rows of each table by position, and all named numbers in sorted order."""
    options_given = ("-m", " ".join(measures), "--jobs", "1", "--seed", "5", *subject.options, *AUDITS[kind])
    output = run_cupel("audit", kind, subject.collection, *subject.runs, *options_given)
    tables = {
        f"table {n}": digest_numbers(table["rows"]) for n, table in enumerate(output["report"]["tables"], 1)
    }
    numbers = sorted(list_numbers(output["report"]["numbers"]))
    return {**tables, "numbers": f"{len(numbers)} {digest(numbers)}"}


def record_simulation() -> Recording:
    cells = run_cupel("simulate", *SIMULATED)["cells"]
    measures = sorted({cell["measure"] for cell in cells})
    return {name: digest_numbers([cell for cell in cells if cell["measure"] == name]) for name in measures}


def record_board(subject: Subject) -> Recording:
    """Record the scores and the leaderboard of a service with the collection and the first runs."""
    with serve() as address:
        call_cupel("track", "create", "recorded", subject.collection, *address)
        call_cupel("qrels", "upload", "recorded", subject.collection, "--publish", *address)
        submitted = run_cupel("submit", "recorded", *subject.first, "--wait", *address)
        scores = {run["tag"]: digest_numbers(run_cupel("scores", run["id"], *address)) for run in submitted}
        [board] = run_cupel("leaderboard", "recorded", "--wait", *address)
    digests = {run["tag"]: run["digest"] for run in submitted}
    return {
        "digests": digests,
        "scores": scores,
        "rows": digest_numbers(board["rows"]),
        "qrels": board["qrels_digest"],
    }


@contextmanager
def serve() -> Iterator[Sequence[str]]:
    """Start a service in a temporary folder, and yield the command-line options with its URL and token."""
    with tempfile.TemporaryDirectory() as folder:
        cupel = str(Path(sys.executable).parent / "cupel")
        command = [cupel, *("serve", "--port", "0", "--workers", "1", "--data"), folder]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            address = read_address(process)
            yield ("--url", address, "--token", (Path(folder) / "admin-token").read_text().strip())
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)


def read_address(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    for line in process.stdout:
        if match := re.search(r"ready at (https?://\S+)", line):
            return match.group(1)
    raise RuntimeError("the service exited before it was ready")


Task = Callable[[], Recording]


def list_tasks(subject: Subject, measures: Sequence[str]) -> dict[str, Task]:
    """List the tasks by name. Audits and comparisons use few measures."""
    few = [measure for measure in AUDITED if measure in measures]
    pairs = [measure for measure in measures if "aspects=[" in measure]
    measures_of_kind = {kind: pairs if kind == "desiderata" else few for kind in subject.kinds}
    tasks: dict[str, Task] = {"board": partial(record_board, subject)} if subject.board else {}
    tasks |= {
        f"audit {kind}": partial(record_audit, subject, measures_of_kind[kind], kind)
        for kind in measures_of_kind
    }
    tasks |= {f"scores {profile}": partial(record_scores, subject, measures, profile) for profile in PROFILES}
    tasks["explanations"] = partial(record_explanations, subject, measures)
    for test, options in COMPARED.items():
        tasks[f"comparison {test}"] = partial(record_comparison, subject, few, options)
    tasks["digests"] = partial(record_digests, subject)
    tasks["simulation"] = record_simulation
    return tasks


def perform(task: Task) -> Recording:
    """Return the recording of `task`, or the exit code if `cupel` fails."""
    try:
        return task()
    except RefusedError as refusal:
        return {"exit": str(refusal)}


def record(subject: Subject, measures: Sequence[str] = ()) -> Recording:
    """Record `subject` with these measures (default: all applicable ones)."""
    chosen = list(measures) or list_measures(subject)
    tasks = list_tasks(subject, chosen)
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        futures = {name: pool.submit(perform, task) for name, task in tasks.items()}
        return {"measures": chosen, **{name: future.result() for name, future in futures.items()}}


def list_differences(expected: Recording, current: Recording) -> list[str]:
    """Return the differences between two recordings, one line for each difference."""
    before, after = dict(flatten(expected)), dict(flatten(current))
    return [
        f"{name}: {before.get(name, 'nothing')} became {after.get(name, 'nothing')}"
        for name in [*before, *(name for name in after if name not in before)]
        if before.get(name) != after.get(name)
    ]


def flatten(recording: object, name: str = "") -> Iterator[tuple[str, object]]:
    if not isinstance(recording, Mapping):
        yield name, recording
        return
    for key, value in recording.items():
        yield from flatten(value, f"{name} / {key}" if name else key)


def write_recording(path: Path, recording: Recording) -> None:
    path.write_text(json.dumps(recording, indent=1, sort_keys=True) + "\n")


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("collection")
    parser.add_argument("runs", nargs="+")
    parser.add_argument(
        "--limit",
        type=int,
        default=4,
        help="number of runs to score (default: 4); digests and audits use all runs",
    )
    parser.add_argument(
        "--kinds", default=",".join(AUDITS), help="audit kinds to record, separated by commas (default: all)"
    )
    parser.add_argument("--other", help="second qrels file, for audits that compare qrels")
    parser.add_argument(
        "--team-pattern", help="regular expression for the team in the name of a run, for audits"
    )
    parser.add_argument("--board", action="store_true", help="also record the leaderboard of a service")
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("--out", type=Path)
    target.add_argument("--check", type=Path)
    return parser.parse_args()


def choose_subject(arguments: argparse.Namespace) -> Subject:
    given = {"--other": arguments.other, "--team-pattern": arguments.team_pattern}
    options = [word for name, value in given.items() if value for word in (name, value)]
    kinds = [kind for kind in arguments.kinds.split(",") if kind]
    return Subject(
        collection=arguments.collection,
        runs=arguments.runs,
        options=options,
        limit=arguments.limit,
        kinds=kinds,
        board=arguments.board,
    )


def main() -> int:
    arguments = read_arguments()
    subject = choose_subject(arguments)
    if arguments.out:
        write_recording(arguments.out, record(subject))
        return 0
    expected = json.loads(arguments.check.read_text())
    differences = list_differences(expected, record(subject, expected["measures"]))
    print("\n".join(differences) or "all values are equal")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
