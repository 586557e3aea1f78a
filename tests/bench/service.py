"""Load test of the service: time to accept and to score a run, throughput, and memory.

python tests/bench/service.py [--quick] [--size embedded|production]

The production size uses private PostgreSQL, Redis and S3 servers, if they are installed. The track
has 50 topics, two aspects and 8 measures. Gzipped runs of 50 x 1,000 documents are submitted at two per
second, then eight at once. The script prints a table and asserts nothing.
"""

import argparse
import gzip
import os
import random
import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path

import psutil
import pytest

from cupel_client.api.client import Client
from cupel_standalone.demo import start_service
from cupel_standalone.embedded_service import token_file

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from support.service import components
from support.service.service_sizes import SIZES, SizeName, place

MEASURES = ["nDCG", "nDCG@10", "AP", "P@10", "RR", "Bpref", "CAM(of=nDCG@10)", "TOMA(of=nDCG@10)"]
ASPECTS = {"relevance": {"labels": [0, 1, 2, 3]}, "credibility": {"labels": [0, 1, 2]}}
PARTS = 180
TOPICS, DEPTH, POOL, DOCUMENTS = 50, 1000, 400, 20_000


def qrels(draw: random.Random) -> dict[str, bytes]:
    """Return a plain qrels file for each aspect, by file name."""
    pools = [draw.sample(range(DOCUMENTS), POOL) for _ in range(TOPICS)]
    return {
        f"{aspect}.txt": "".join(
            f"{topic} 0 doc-{document:06d} {draw.choice(scale['labels'])}\n"
            for topic, pool in enumerate(pools, 1)
            for document in pool
        ).encode()
        for aspect, scale in ASPECTS.items()
    }


def run(draw: random.Random, tag: str) -> bytes:
    lines = (
        f"{topic} Q0 doc-{document:06d} {rank} {1000 - rank + draw.random():.4f} {tag}\n"
        for topic in range(1, TOPICS + 1)
        for rank, document in enumerate(draw.sample(range(DOCUMENTS), DEPTH), 1)
    )
    return gzip.compress("".join(lines).encode(), 1)


def prepare(client: Client) -> None:
    client.create_track("bench", title="Bench", aspects=ASPECTS, measures=MEASURES)
    files = qrels(random.Random(1))
    listed = "".join(f"  - {{file: {name}, aspect: {name.removesuffix('.txt')}}}\n" for name in files)
    number = client.upload_qrels("bench", f"qrels:\n{listed}".encode(), files).number
    client.publish_qrels("bench", number)
    *_, last = client.watch_qrels("bench", number)
    assert last.state == "current", last


def submit(client: Client, body: bytes, name: str) -> tuple[str, float]:
    """Submit a run; return the id of the submission and the seconds until it was accepted."""
    start = time.perf_counter()
    submission = client.submit("bench", body, name=name)
    return submission.id, time.perf_counter() - start


def wait_until_scored(client: Client, ids: list[str], seconds: float = 300) -> list[float]:
    """Wait for the scores; return the seconds from receipt to the last score, by the clock of the service."""
    end = time.monotonic() + seconds
    waiting, durations = list(ids), []
    while waiting and time.monotonic() < end:
        states = {id: client.submission(id) for id in waiting}
        for submission in states.values():
            if submission.state == "scored":
                finished = max(job.finished_at for job in submission.jobs if job.finished_at)
                durations.append((_instant(finished) - _instant(submission.received_at)).total_seconds())
        waiting = [id for id in waiting if states[id].state != "scored"]
        time.sleep(0.2)
    assert not waiting, f"{len(waiting)} submissions were not scored"
    return durations


def _instant(text: datetime | str) -> datetime:
    return text if isinstance(text, datetime) else datetime.fromisoformat(text)


def submit_steadily(
    client: Client, bodies: list[bytes], per_second: float
) -> tuple[list[float], list[float]]:
    """Submit runs at a steady rate; return the seconds to accept and to score each."""
    with ThreadPoolExecutor(8) as pool:
        futures = []
        for number, body in enumerate(bodies):
            futures.append(pool.submit(submit, client, body, f"steady-{number}"))
            time.sleep(1 / per_second)
        accepted = [future.result() for future in futures]
    return [seconds for _, seconds in accepted], wait_until_scored(client, [id for id, _ in accepted])


def measure_during_audit(client: Client, bodies: list[bytes], undisturbed: list[float]) -> None:
    """Submit runs while a long audit runs; then measure the duration of an audit of PARTS parts."""
    long = {"repeats": 50 * PARTS, "ratios": [90, 70, 50, 30, 10, 5]}
    audit = client.request_audit("bench", "downsampling", parameters=long, part_trials=50)
    while client.audit(audit.id).progress.parts is None:
        time.sleep(0.1)
    _, scored = submit_steadily(client, bodies, 2)
    last = client.audit(audit.id)
    assert last.state == "running", "the audit ended too early, so nothing was measured"
    client.cancel_audit(audit.id)
    print(format_quantiles("submit to scored, during an audit", scored))
    p50, p95 = (quantile(scored, share) / quantile(undisturbed, share) for share in (0.5, 0.95))
    print(f"{'ratio to the time without audit':34} p50 {p50:5.2f} x   p95 {p95:5.2f} x")
    print(f"{'finished trials of the audit':34} {last.progress.trials_done}")
    start = time.perf_counter()
    small = {"repeats": PARTS, "ratios": [90, 70, 50, 30, 10, 5]}
    audit = client.request_audit("bench", "downsampling", parameters=small, measures=["AP"], part_trials=1)
    *_, last = client.watch_audit(audit.id)
    assert last.state == "done", last
    print(f"{f'audit of {PARTS} parts by AP':34} {time.perf_counter() - start:.1f} s")


def submit_at_once(client: Client, bodies: list[bytes]) -> tuple[list[float], float]:
    """Submit runs in 8 threads; return the seconds to accept each, and the seconds until all are scored."""
    start = time.perf_counter()
    with ThreadPoolExecutor(8) as pool:
        accepted = list(pool.map(lambda pair: submit(client, pair[1], f"burst-{pair[0]}"), enumerate(bodies)))
    wait_until_scored(client, [id for id, _ in accepted])
    return [seconds for _, seconds in accepted], time.perf_counter() - start


def memory() -> tuple[float, int]:
    """Return the MB (proportional set size) of the service's processes, and their number."""
    (supervisor,) = [child for child in psutil.Process(os.getpid()).children() if "serve" in child.cmdline()]
    children = [supervisor, *supervisor.children(recursive=True)]
    return sum(child.memory_full_info().pss for child in children) / 2**20, len(children)


def quantile(values: list[float], share: float) -> float:
    return statistics.quantiles(values, n=100)[round(share * 100) - 1] if len(values) > 1 else values[0]


def format_quantiles(name: str, values: list[float]) -> str:
    p50, p95 = quantile(values, 0.5), quantile(values, 0.95)
    return f"{name:34} p50 {p50:6.3f} s   p95 {p95:6.3f} s   n {len(values)}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="Submit 10 runs instead of 60.")
    parser.add_argument(
        "--size", choices=SIZES, action="append", help="Size of the service; may be repeated (default: both)."
    )
    options = parser.parse_args()
    draw = random.Random(2)
    bodies = [run(draw, f"run{number}") for number in range(10 if options.quick else 60)]
    components.share_servers()
    for size in options.size or SIZES:
        try:
            measure_size(size, bodies)
        except pytest.skip.Exception as reason:
            print(f"\n{size}: skipped: {reason}")


def measure_size(size: SizeName, bodies: list[bytes]) -> None:
    """Start a service of this size and measure it."""
    with place(size) as at, tempfile.TemporaryDirectory() as folder:
        os.environ |= {f"CUPEL_{name.upper()}": str(value) for name, value in at.items()}
        with start_service(Path(folder)) as url:
            token = token_file(Path(folder)).read_text().strip()
            with Client(url, token) as client:
                print(f"\n{size}")
                measure(client, bodies)


def measure(client: Client, bodies: list[bytes]) -> None:
    prepare(client)
    time.sleep(5)
    megabytes, processes = memory()
    print(f"{'idle memory':34} {megabytes:.0f} MB in {processes} processes")
    accept, scored = submit_steadily(client, bodies, 2)
    print(format_quantiles("accept, 2 per second", accept))
    print(format_quantiles("submit to scored, 2 per second", scored))
    measure_during_audit(client, bodies, scored)
    accept, seconds = submit_at_once(client, bodies)
    print(format_quantiles("accept, 8 at once", accept))
    print(f"{'accepted and scored, 8 at once':34} {len(bodies) / seconds:.1f} runs per second")
    print(f"{'memory afterwards':34} {memory()[0]:.0f} MB")


if __name__ == "__main__":
    main()
