"""Doing the same to many files, or to many parts of a work, over all cores."""

import contextlib
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from cupel_client.output import console

START = "fork" if "fork" in multiprocessing.get_all_start_methods() else "spawn"
"""Forking shares what the work holds, with all that was derived from it; else it is sent. The command
has no other thread when it forks; who calls this from a program with threads sets it to spawn."""

POOL_FROM = 2.0
"""CPU seconds of work from which a pool of processes is worth its start."""
TRIED = 0.2
"""CPU seconds of work that tell how much there is."""

Item = TypeVar("Item")
T = TypeVar("T")


def each(
    work: Callable[[Item], T], items: Sequence[Item], *, doing: str, jobs: int | None = None
) -> list[T | None]:
    """`work` of every item, in their order, by up to `jobs` processes.

    By default the first items tell how much work there is, and all cores share the others where that is
    worth it. None for an item whose work was lost, as a process was killed (where memory ends, say).
    A progress bar called `doing` stands on standard error where that is a terminal.
    """
    begin = time.process_time()
    first = _tried(work, items) if jobs is None else []
    left = items[len(first) :]
    ahead = (time.process_time() - begin) / max(len(first), 1) * len(left)
    processes = min(jobs or _cores(), len(left)) if jobs or ahead > POOL_FROM else 1
    with _spread(work, left, processes) as results:
        screen = console(stderr=True)
        if not screen.is_terminal or len(left) < 2:
            return [*first, *results]
        from rich.progress import track  # late: only a terminal shows it

        return [*first, *track(results, doing, len(left), console=screen, transient=True)]


def _tried(work: Callable[[Item], T], items: Sequence[Item]) -> list[T | None]:
    """The results of the first items, of about so much work as is TRIED."""
    end = time.process_time() + TRIED
    results: list[T | None] = []
    for item in items:
        results.append(work(item))
        if time.process_time() > end:
            break
    return results


@contextlib.contextmanager
def _spread(work: Callable[[Item], T], items: Sequence[Item], processes: int) -> Iterator[Iterator[T | None]]:
    """Results as they are made. Processes start here, before a progress bar starts its thread."""
    if processes < 2:
        yield map(work, items)
        return
    context = multiprocessing.get_context(START)
    pool = ProcessPoolExecutor(processes, context, _begin, (work,))
    try:
        yield _results(_submitted(pool, items), len(items))
    except BaseException:  # Ctrl-C, say: nobody wants what is still being made
        for process in multiprocessing.active_children():
            process.kill()
        # not waited for: who reads results waits for ever for the rest of one whose writer was killed
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()


def _submitted(pool: ProcessPoolExecutor, items: Sequence[Any]) -> list[Future[Any]]:
    """A future per item, fewer where a process is killed meanwhile."""
    futures: list[Future[Any]] = []
    with contextlib.suppress(BrokenProcessPool):
        futures.extend(pool.submit(_work, item) for item in items)
    return futures


def _results(futures: Sequence[Future[Any]], count: int) -> Iterator[Any]:
    """What `count` futures give, None for those that were lost."""
    for future in futures:
        yield None if isinstance(future.exception(), BrokenProcessPool) else future.result()
    yield from [None] * (count - len(futures))


_held: Callable[[Any], Any]
"""The work of a process of the pool, which gets it once, at its start."""


def _begin(work: Callable[[Any], Any]) -> None:
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


def _work(item: Any) -> Any:
    return _held(item)


def _cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
