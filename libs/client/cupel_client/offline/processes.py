"""Doing the same to many files over all cores."""

import contextlib
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from cupel_client.output import console

POOL_FROM = 4
"""Files from which a pool of processes is worth its start."""

T = TypeVar("T")


def each(work: Callable[[Path], T], paths: Sequence[Path], *, doing: str, jobs: int | None = None) -> list[T]:
    """`work` of every path, in their order, by up to `jobs` processes (default: all cores).

    A progress bar called `doing` stands on standard error where that is a terminal.
    """
    with _spread(work, paths, jobs) as results:
        screen = console(stderr=True)
        if not screen.is_terminal or len(paths) < 2:
            return list(results)
        from rich.progress import track  # late: only a terminal shows it

        return list(track(results, doing, len(paths), console=screen, transient=True))


@contextlib.contextmanager
def _spread(work: Callable[[Path], T], paths: Sequence[Path], jobs: int | None) -> Iterator[Iterator[T]]:
    """Results as they are made. Processes start here, before a progress bar starts its thread."""
    processes = min(jobs or _cores(), len(paths))
    if processes < 2 or (jobs is None and len(paths) < POOL_FROM):
        yield map(work, paths)
        return
    # forking shares what `work` holds, with all that was derived from it; elsewhere it is sent
    way = "fork" if "fork" in multiprocessing.get_all_start_methods() else None
    pool = ProcessPoolExecutor(processes, multiprocessing.get_context(way), _begin, (work,))
    try:
        futures = [pool.submit(_work, path) for path in paths]
        yield (future.result() for future in futures)
    finally:
        pool.shutdown(cancel_futures=True)


_held: Callable[[Path], Any]
"""The work of a process of the pool, which gets it once, at its start."""


def _begin(work: Callable[[Path], Any]) -> None:
    global _held
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that waits for this one
    _held = work


def _work(path: Path) -> Any:
    return _held(path)


def _cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
