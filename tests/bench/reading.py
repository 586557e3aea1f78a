"""Benchmark of reading, joining and scoring runs: CPU seconds, and their ratios to pytrec_eval-terrier.

    python tests/bench/reading.py [--quick] [--folder FOLDER]

Workload a has 100 runs of 50 topics x 1000 documents with 75,000 judgments; workload b has one run of 6,980
topics x 1000 documents. The inputs are created once, with a fixed seed, in FOLDER (default: `cupel-bench` in
the system's temporary folder). A measurement covers a process from its start to the per-topic values of {AP,
nDCG, nDCG@10, P@10, RR, Bpref}, except for the warm worker. The script prints results and aims, and asserts
nothing.
"""

import argparse
import gc
import inspect
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

MEASURES = "AP nDCG nDCG@10 P@10 RR Bpref"
THEIRS = {"map", "ndcg", "ndcg_cut_10", "P_10", "recip_rank", "bpref"}
UNIVERSE = 24_000  # number of documents that systems rank for a topic
FORMATS = ("{:.6f}", "{:.4f}", "{!r}", "{:.5f}")


# Inputs


@dataclass(frozen=True)
class Work:
    """Paths of the input files. runs: number of runs of workload a. topics: number of topics of workload
    b."""

    folder: Path
    runs: int
    topics: int

    @property
    def runs_a(self) -> list[Path]:
        return [self.folder / f"a-{number}.run" for number in range(self.runs)]

    @property
    def run_b(self) -> Path:
        return self.folder / "b.run"

    @property
    def run_crlf(self) -> Path:
        return self.folder / "b-tabs-crlf.run"

    def qrels(self, work: str) -> Path:
        return self.folder / f"{work}.qrels"


def make_inputs(folder: str, runs: str, topics: str) -> None:
    """Write the input files that do not exist yet."""
    work = Work(Path(folder), int(runs), int(topics))
    work.folder.mkdir(parents=True, exist_ok=True)
    if not all(path.exists() for path in work.runs_a):
        make_a(work)
    if not work.run_crlf.exists():
        make_b(work)
        with work.run_b.open("rb") as plain, work.run_crlf.open("wb") as converted:
            for line in plain:
                converted.write(line.replace(b" ", b"\t").replace(b"\n", b"\r\n"))
    print("{}")


def make_a(work: Work) -> None:
    """Write runs of different quality, and 1,500 judgments per topic; a run retrieves about 200 of them."""
    rng = np.random.default_rng(1)
    merits = rng.normal(size=(50, UNIVERSE))
    numbers = [rng.choice(10_000_000, UNIVERSE, replace=False) for _ in range(50)]
    with work.qrels("a").open("w") as file:
        for topic in range(50):
            pool = np.argsort(-(merits[topic] + rng.normal(size=UNIVERSE)))[:1500]
            for document in np.sort(pool).tolist():
                grade = max(0, int(merits[topic][document]))
                file.write(f"qtest.{topic + 1} 0 {document_id(int(numbers[topic][document]))} {grade}\n")
    for system, path in enumerate(work.runs_a):
        with path.open("w") as file:
            for topic in range(50):
                scores = merits[topic] + rng.normal(size=UNIVERSE) * (0.5 + system % 10 / 3)
                best = np.argsort(-scores)[:1000]
                if system % 4 == 1:
                    scores = np.round(scores, 3)  # some systems have many ties
                format_score = FORMATS[system % 4].format
                for rank, document in enumerate(best.tolist(), 1):
                    name = document_id(int(numbers[topic][document]))
                    value = format_score(float(20 + 5 * scores[document]))
                    file.write(f"qtest.{topic + 1} Q0 {name} {rank} {value} system{system}\n")


def document_id(number: int) -> str:
    return f"doc{number % 97:02}_12_{number:07}"


def make_b(work: Work) -> None:
    """Write a run of passages with numeric ids, and one relevant passage per topic."""
    rng = np.random.default_rng(2)
    topics = sorted(rng.choice(1_100_000, work.topics, replace=False).tolist())
    with work.run_b.open("w") as file, work.qrels("b").open("w") as judgments:
        for topic in topics:
            documents = rng.choice(8_841_823, 1000, replace=False).tolist()
            scores = np.sort(rng.gamma(8, 2, size=1000))[::-1].tolist()
            lines = zip(documents, scores, range(1, 1001), strict=True)
            file.writelines(f"{topic} Q0 {d} {rank} {score:.6f} bm25\n" for d, score, rank in lines)
            judgments.write(f"{topic} 0 {documents[int(rng.integers(1000))]} 1\n")
            if rng.random() < 0.07:
                judgments.write(f"{topic} 0 {int(rng.integers(8_841_823, 9_000_000))} 1\n")


# Measured processes


def disable_extension() -> None:
    from cupel_measures.reading import joins

    joins.extension = None


def ours(qrels_file: str, *runs: str) -> None:
    """Score the runs of the files with Cupel, and print the sum of each measure."""
    from cupel_measures.catalogue.parser import parse_many
    from cupel_measures.model import Joined
    from cupel_measures.reading.qrels_files import read_qrels
    from cupel_measures.reading.run_files import join_run
    from cupel_measures.scoring.evaluator import evaluate

    qrels = read_qrels(Path(qrels_file))
    joined = Joined.stack([join_run(Path(run), qrels) for run in runs])
    scores = evaluate(qrels, joined, parse_many(MEASURES))
    print(json.dumps({str(measure): float(values.sum()) for measure, values in scores.values.items()}))


def ours_numpy(qrels_file: str, *runs: str) -> None:
    disable_extension()
    ours(qrels_file, *runs)


def theirs(qrels_file: str, *runs: str) -> None:
    import pytrec_eval

    with open(qrels_file) as file:
        evaluator = pytrec_eval.RelevanceEvaluator(pytrec_eval.parse_qrel(file), THEIRS)
    total = 0.0
    for run in runs:
        with open(run) as file:
            values = evaluator.evaluate(pytrec_eval.parse_run(file))
        total += sum(topic["map"] for topic in values.values())
    print(json.dumps({"AP": total}))


def join_only(qrels_file: str, run: str) -> None:
    from cupel_measures.reading.qrels_files import read_qrels
    from cupel_measures.reading.run_files import join_run

    qrels = read_qrels(Path(qrels_file))
    begin = time.process_time()
    join_run(Path(run), qrels)
    print(json.dumps({"seconds": time.process_time() - begin}))


def join_only_numpy(qrels_file: str, run: str) -> None:
    disable_extension()
    join_only(qrels_file, run)


def read_carefully(qrels_file: str, run: str) -> None:
    from cupel_measures.reading.run_files import read_run

    begin = time.process_time()
    read_run(Path(run), depth=1000)
    print(json.dumps({"seconds": time.process_time() - begin}))


def warm(qrels_file: str, run: str) -> None:
    """Print the CPU milliseconds of each step in a process that has run the step before."""
    import pytrec_eval

    from cupel_measures.catalogue.parser import parse_many
    from cupel_measures.reading import joins
    from cupel_measures.reading.qrels_files import read_qrels
    from cupel_measures.reading.run_files import join, join_run, pack, read_run, unpack
    from cupel_measures.scoring.evaluator import evaluate

    qrels, measures = read_qrels(Path(qrels_file)), parse_many(MEASURES)
    blob = pack(read_run(Path(run)))
    ranking = unpack(blob)
    with open(qrels_file) as file:
        evaluator = pytrec_eval.RelevanceEvaluator(pytrec_eval.parse_qrel(file), THEIRS)

    def parse_and_evaluate() -> None:
        with open(run) as file:
            evaluator.evaluate(pytrec_eval.parse_run(file))

    times = {"pytrec_eval, from text": milliseconds(parse_and_evaluate)}
    extension = joins.extension
    for name, joins.extension in (("compiled", extension), ("numpy", None)):
        times |= {
            f"{name}, from text": milliseconds(lambda: evaluate(qrels, join_run(Path(run), qrels), measures)),
            f"{name}, from the blob": milliseconds(
                lambda: evaluate(qrels, join(unpack(blob), qrels), measures)
            ),
            f"{name}, from the ranking": milliseconds(
                lambda: evaluate(qrels, join(ranking, qrels), measures)
            ),
            f"{name}, the join alone": milliseconds(lambda: join(ranking, qrels)),
        }
    joins.extension = extension
    times["reading with all findings"] = milliseconds(lambda: read_run(Path(run), depth=1000))
    print(json.dumps(times))


def milliseconds(call: Callable[[], object]) -> float:
    """Return the median CPU milliseconds of a call, after five calls to warm up."""
    times = []
    for _ in range(25):
        gc.collect()
        begin = time.process_time()
        call()
        times.append(1000 * (time.process_time() - begin))
    return statistics.median(times[5:])


IMPLEMENTATIONS = ("pytrec_eval-terrier", "without the extension", "with the extension")
PROCESSES = [make_inputs, ours, ours_numpy, theirs, join_only, join_only_numpy, read_carefully, warm]


# Measurement


@dataclass(frozen=True)
class Outcome:
    """CPU seconds and peak memory in megabytes of a process, and the values that it printed."""

    cpu: float
    peak: float
    printed: dict[str, float]


def run_process(function: Callable[..., None], *arguments: Path | str) -> Outcome:
    """Run a function of a benchmark script in a new process."""
    command = [
        sys.executable,
        inspect.getfile(function),
        "--process",
        function.__name__,
        *map(str, arguments),
    ]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment)
    assert process.stdout is not None
    printed = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{function.__name__} failed")
    return Outcome(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, json.loads(printed))


def medians(rounds: int, *processes: tuple[Callable[..., None], tuple[Path | str, ...]]) -> list[Outcome]:
    """Return the median outcome of each process. They run in turns, so that noise affects all equally."""
    outcomes: list[list[Outcome]] = [[] for _ in processes]
    for _ in range(rounds):
        for place, (function, arguments) in enumerate(processes):
            outcomes[place].append(run_process(function, *arguments))
    return [sorted(of_process, key=lambda outcome: outcome.cpu)[rounds // 2] for of_process in outcomes]


def compare(rounds: int, qrels: Path, runs: list[Path]) -> Iterator[tuple[str, Outcome, float]]:
    """Yield the name, outcome and ratio to pytrec_eval of each implementation that scores `runs`."""
    arguments = (qrels, *runs)
    outcomes = medians(rounds, (theirs, arguments), (ours_numpy, arguments), (ours, arguments))
    for outcome in outcomes[1:]:
        assert abs(outcome.printed["AP"] - outcomes[0].printed["AP"]) < 1e-3 * len(runs), "values differ"
    for name, outcome in zip(IMPLEMENTATIONS, outcomes, strict=True):
        yield name, outcome, outcome.cpu / outcomes[0].cpu


def report_works(work: Work, rounds: int) -> None:
    size = "" if work.runs == 100 else f" (quick: {work.runs} runs, {work.topics} topics)"
    aims = {
        ("a", 1): "0.45",
        ("a", 2): "0.17",
        ("b", 1): "0.35, 150 MB",
        ("b", 2): "0.09, 60 MB",
    }
    print(f"\nProcesses: CPU seconds, medians of {rounds}{size}")
    print(f"{'':6}{'':24}{'CPU s':>8}{'ratio':>8}{'peak MB':>9}  aim")
    for name, runs in (("a", work.runs_a), ("b", [work.run_b])):
        for place, (implementation, outcome, ratio) in enumerate(compare(rounds, work.qrels(name), runs)):
            aim = aims.get((name, place), "")
            print(f"{name:6}{implementation:24}{outcome.cpu:8.2f}{ratio:8.3f}{outcome.peak:9.0f}  {aim}")


def report_reading(work: Work, rounds: int) -> None:
    print("\nReading one file: CPU seconds without the start of the process")
    print(f"{'':34}{'MB':>6}{'CPU s':>8}{'MB/s':>8}{'peak MB':>9}")
    readers = (("compiled", join_only), ("numpy", join_only_numpy), ("with all findings", read_carefully))
    for name, path in (("clean", work.run_b), ("tabs, CRLF", work.run_crlf)):
        size = path.stat().st_size / 1e6
        for reader, process in readers:
            outcome = medians(1 if process is read_carefully else rounds, (process, (work.qrels("b"), path)))[
                0
            ]
            seconds = outcome.printed["seconds"]
            print(
                f"{name + ', ' + reader:34}{size:6.0f}{seconds:8.2f}{size / seconds:8.0f}{outcome.peak:9.0f}"
            )


def report_warm(work: Work) -> None:
    times = run_process(warm, work.qrels("a"), work.runs_a[0]).printed
    reference = times["pytrec_eval, from text"]
    print("\nOne run of 50 x 1000 in a warm worker (aims: 0.4 without the extension, 0.12 with it)")
    print(f"{'':34}{'CPU ms':>8}{'ratio':>8}")
    for name, value in times.items():
        print(f"{name:34}{value:8.2f}{value / reference:8.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="Use a tenth of the work, and measure once.")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "cupel-bench")
    parser.add_argument("--process", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.process:
        name, *arguments = options.process
        next(process for process in PROCESSES if process.__name__ == name)(*arguments)
        return
    runs, topics, rounds = (10, 698, 1) if options.quick else (100, 6980, 3)
    work = Work(options.folder / ("quick" if options.quick else "full"), runs, topics)
    # Use a separate process, because the peak memory of a child starts at the peak memory of its parent.
    run_process(make_inputs, work.folder, str(runs), str(topics))
    report_works(work, rounds)
    report_reading(work, rounds)
    report_warm(work)


if __name__ == "__main__":
    main()
