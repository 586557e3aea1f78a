"""Doing the same to many files over all cores."""

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any, TypeVar

from cupel_client.output import console

START = "fork" if "fork" in multiprocessing.get_all_start_methods() else "spawn"
"""Forking shares what the work holds, with all that was derived from it; else it is sent. The command
has no other thread when it forks; who calls this from a program with threads sets it to spawn."""

POOL_FROM = 4
"""Files from which a pool of processes is worth its start."""

T = TypeVar("T")


def each(
    work: Callable[[Path], T], paths: Sequence[Path], *, doing: str, jobs: int | None = None
) -> list[T | None]:
    """`work` of every path, in their order, by up to `jobs` processes (default: all cores).

    None for a file whose work was lost, as a process was killed (where memory ends, say).
    A progress bar called `doing` stands on standard error where that is a terminal.
    """
    with _spread(work, paths, jobs) as results:
        screen = console(stderr=True)
        if not screen.is_terminal or len(paths) < 2:
            return list(results)
        from rich.progress import track  # late: only a terminal shows it

        return list(track(results, doing, len(paths), console=screen, transient=True))


@contextlib.contextmanager
def _spread(
    work: Callable[[Path], T], paths: Sequence[Path], jobs: int | None
) -> Iterator[Iterator[T | None]]:
    """Results as they are made. Processes start here, before a progress bar starts its thread."""
    processes = min(jobs or _cores(), len(paths))
    if processes < 2 or (jobs is None and len(paths) < POOL_FROM):
        yield map(work, paths)
        return
    context = multiprocessing.get_context(START)
    with ProcessPoolExecutor(processes, context, _begin, (work,)) as pool:
        try:
            yield _results(_submitted(pool, paths), len(paths))
        except BaseException:  # Ctrl-C, say: nobody wants what is still being made
            for process in multiprocessing.active_children():
                process.kill()
            raise


def _submitted(pool: ProcessPoolExecutor, paths: Sequence[Path]) -> list[Future[Any]]:
    """A future per path, fewer where a process is killed meanwhile."""
    futures: list[Future[Any]] = []
    with contextlib.suppress(BrokenProcessPool):
        futures.extend(pool.submit(_work, path) for path in paths)
    return futures


def _results(futures: Sequence[Future[Any]], count: int) -> Iterator[Any]:
    """What `count` futures give, None for those that were lost."""
    for future in futures:
        yield None if isinstance(future.exception(), BrokenProcessPool) else future.result()
    yield from [None] * (count - len(futures))


_held: Callable[[Path], Any]
"""The work of a process of the pool, which gets it once, at its start."""


def _begin(work: Callable[[Path], Any]) -> None:
    global _held
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that waits for this one
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _held = work


def _end_with_parent() -> None:
    """End this process when the one that started it has ended, however it did: killed, it can't say so."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _work(path: Path) -> Any:
    return _held(path)


def _cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
