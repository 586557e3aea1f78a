"""Record the values that Cupel computes for a collection, or check that they are still the same.

    python tests/support/record_values.py COLLECTION_OR_QRELS RUN... --out FILE
    python tests/support/record_values.py COLLECTION_OR_QRELS RUN... --check FILE

Everything is read from the JSON that the `cupel` command prints, so that no module is imported. Numbers are
recorded in the order in which they are printed, as bits. Words, names of columns and nulls are not recorded,
nor are digests of audits, which are over words. A check uses the measures that the recording names; it prints
what differs, and exits with 1 if anything does.
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
    "randomisation": ("--all-pairs",),
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
    "scales": (),
    "topics": ("--draws", "5", "--subset", "4"),
    "unjudged": ("--tried", "5"),
    "unlabelled_systems": ("--percents", "20,60", "--repeats", "3"),
}
SIMULATED = ("--runs", "50", "--topicality", "0.3", "--topicality", "0.6", "--mu", "40", "--seed", "7")


@dataclass(frozen=True)
class Subject:
    """What is recorded.

    options: of audits, such as `--other`. limit: how many runs are scored; digests and audits are of all.
    kinds: of audits. board: whether the board of a service is recorded, too.
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
    """`cupel` prints no result; the argument is its exit code."""


def run_cupel(*arguments: str) -> Any:
    """Return the JSON that `cupel` prints."""
    code, printed = call_cupel(*arguments, "--format", "json")
    if not printed:
        raise RefusedError(code)
    return json.loads(printed)


def call_cupel(*arguments: str) -> tuple[int, str]:
    """Run `cupel` in this process; return its exit code and what it prints."""
    [command] = entry_points(group="console_scripts", name="cupel")
    start, printed, said = command.load(), io.StringIO(), io.StringIO()
    with redirect_stdout(printed), redirect_stderr(said), called_with(*arguments):
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
    """Yield the numbers in `value`, in order, as text that keeps every bit."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from list_numbers(one)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield write_bits(value)


def write_bits(number: int | float) -> str:
    """Write whole numbers and floats alike, unless a float cannot hold the whole number."""
    return repr(number) if isinstance(number, int) and abs(number) > 2**53 else float(number).hex()


def digest(parts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def digest_numbers(value: object) -> str:
    """Tell how many numbers are in `value`, and their digest."""
    numbers = list(list_numbers(value))
    return f"{len(numbers)} {digest(numbers)}"


def list_measures(subject: Subject) -> list[str]:
    """List every declared measure, some with parameters and some of other aspects, that `subject` allows."""
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
    """Write a declared measure with its defaults, and with a cutoff where it may have one."""
    name, needed = declared["name"], [one["name"] for one in declared["parameters"] if one["needed"]]
    if "of" in needed:
        return [f"{name}(of=nDCG@10)"]
    control = CONTROLS.get(declared["at"], "")
    return [name + control] if not control or declared["at"] in needed else [name, name + control]


def keep_applicable(subject: Subject, measures: Sequence[str]) -> list[str]:
    """Keep the measures that can be computed, found by halving."""
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
    asked = ("-m", " ".join(measures), "--profile", profile, "--jobs", "1", *options)
    return run_cupel("evaluate", subject.collection, *runs, *asked)


def record_digests(subject: Subject) -> Recording:
    """Record the digests of the qrels and of all runs, and what is counted in each."""
    found = run_cupel("evaluate", subject.collection, *subject.runs, "-m", "NumRet", "--jobs", "1")
    return {
        "qrels": f"{found['qrels']['digest']} {digest_numbers(found['qrels'])}",
        "runs": {run["run"]: f"{run['digest']} {digest_numbers(run)}" for run in found["runs"]},
    }


def record_scores(subject: Subject, measures: Sequence[str], profile: str) -> Recording:
    """Record each run's scores: the aggregate, and digests of the exact value and of those of all topics."""
    found = evaluate(subject, measures, subject.first, profile, "--per-topic")
    return {run["run"]: {name: record_score(run, name) for name in run["scores"]} for run in found["runs"]}


def record_score(run: Mapping[str, Any], measure: str) -> str:
    aggregate = run["scores"][measure]
    topics = sorted(run["topic_scores"][measure].items())
    lines = [f"{topic} {'null' if value is None else write_bits(value)}" for topic, value in topics]
    exact = str(run["exact"].get(measure))
    return f"{'null' if aggregate is None else write_bits(aggregate)} {digest([exact])} {digest(lines)}"


def record_explanations(subject: Subject, measures: Sequence[str]) -> Recording:
    found = evaluate(subject, measures, subject.first[-1:], "cupel", "--explain", "all")
    return {
        run["run"]: {name: digest_numbers(told) for name, told in run["explanations"].items()}
        for run in found["runs"]
    }


def record_comparison(subject: Subject, measures: Sequence[str], options: Sequence[str]) -> Recording:
    asked = ("-m", " ".join(measures), "--jobs", "1", *options)
    found = run_cupel("compare", subject.collection, *subject.first, *asked)
    return {one["measure"]: digest_numbers(one) for one in found["measures"]}


def record_audit(subject: Subject, measures: Sequence[str], kind: str) -> Recording:
    """Record the rows of each table, by its place, and all named numbers in any order."""
    asked = ("-m", " ".join(measures), "--jobs", "1", "--seed", "5", *subject.options, *AUDITS[kind])
    found = run_cupel("audit", kind, subject.collection, *subject.runs, *asked)
    tables = {
        f"table {n}": digest_numbers(table["rows"]) for n, table in enumerate(found["report"]["tables"], 1)
    }
    numbers = sorted(list_numbers(found["report"]["numbers"]))
    return {**tables, "numbers": f"{len(numbers)} {digest(numbers)}"}


def record_simulation() -> Recording:
    cells = run_cupel("simulate", *SIMULATED)["cells"]
    measures = sorted({cell["measure"] for cell in cells})
    return {name: digest_numbers([one for one in cells if one["measure"] == name]) for name in measures}


def record_board(subject: Subject) -> Recording:
    """Record the scores and the leaderboard of a service that is given the collection and the first runs."""
    with serve() as address:
        call_cupel("track", "create", "recorded", subject.collection, *address)
        call_cupel("qrels", "upload", "recorded", subject.collection, "--publish", *address)
        handed = run_cupel("submit", "recorded", *subject.first, "--wait", *address)
        scores = {one["tag"]: digest_numbers(run_cupel("scores", one["id"], *address)) for one in handed}
        [board] = run_cupel("leaderboard", "recorded", "--wait", *address)
    digests = {one["tag"]: one["digest"] for one in handed}
    return {
        "digests": digests,
        "scores": scores,
        "rows": digest_numbers(board["rows"]),
        "qrels": board["qrels_digest"],
    }


@contextmanager
def serve() -> Iterator[Sequence[str]]:
    """Start a service on a folder of its own; yield the options that name it and its token."""
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
    raise RuntimeError("the service ends before it is ready")


Task = Callable[[], Recording]


def list_tasks(subject: Subject, measures: Sequence[str]) -> dict[str, Task]:
    """List what is recorded, by name. Audits and comparisons are of few measures."""
    few = [measure for measure in AUDITED if measure in measures]
    pairs = [measure for measure in measures if "aspects=[" in measure]
    asked = {kind: pairs if kind == "desiderata" else few for kind in subject.kinds}
    tasks: dict[str, Task] = {"board": partial(record_board, subject)} if subject.board else {}
    tasks |= {f"audit {kind}": partial(record_audit, subject, asked[kind], kind) for kind in asked}
    tasks |= {f"scores {profile}": partial(record_scores, subject, measures, profile) for profile in PROFILES}
    tasks["explanations"] = partial(record_explanations, subject, measures)
    for test, options in COMPARED.items():
        tasks[f"comparison {test}"] = partial(record_comparison, subject, few, options)
    tasks["digests"] = partial(record_digests, subject)
    tasks["simulation"] = record_simulation
    return tasks


def perform(task: Task) -> Recording:
    """Return what `task` records, or the exit code where `cupel` refuses it."""
    try:
        return task()
    except RefusedError as refusal:
        return {"exit": str(refusal)}


def record(subject: Subject, measures: Sequence[str] = ()) -> Recording:
    """Record `subject` with these measures, by default all that it allows."""
    chosen = list(measures) or list_measures(subject)
    tasks = list_tasks(subject, chosen)
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        found = {name: pool.submit(perform, task) for name, task in tasks.items()}
        return {"measures": chosen, **{name: future.result() for name, future in found.items()}}


def list_differences(expected: Recording, found: Recording) -> list[str]:
    """Say where two recordings differ, a line each."""
    before, after = dict(flatten(expected)), dict(flatten(found))
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
    parser.add_argument("--limit", type=int, default=4, help="runs to score; digests and audits are of all")
    parser.add_argument("--kinds", default=",".join(AUDITS), help="audits to record")
    parser.add_argument("--other", help="judgments that audits compare with")
    parser.add_argument("--team-pattern", help="the team in a run's name, for audits")
    parser.add_argument("--board", action="store_true", help="record the board of a service, too")
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("--out", type=Path)
    target.add_argument("--check", type=Path)
    return parser.parse_args()


def choose_subject(arguments: argparse.Namespace) -> Subject:
    given = {"--other": arguments.other, "--team-pattern": arguments.team_pattern}
    options = [word for name, value in given.items() if value for word in (name, value)]
    kinds = [kind for kind in arguments.kinds.split(",") if kind]
    return Subject(arguments.collection, arguments.runs, options, arguments.limit, kinds, arguments.board)


def main() -> int:
    arguments = read_arguments()
    subject = choose_subject(arguments)
    if arguments.out:
        write_recording(arguments.out, record(subject))
        return 0
    expected = json.loads(arguments.check.read_text())
    differences = list_differences(expected, record(subject, expected["measures"]))
    print("\n".join(differences) or "all values are the same")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
