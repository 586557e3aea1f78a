"""Parallel execution of one function over many items, on all cores."""

import contextlib
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from cupel_client.output import console

START = "fork" if "fork" in multiprocessing.get_all_start_methods() else "spawn"
"""Start method of processes.

A forked process shares the data of the function; a spawned process receives a copy. Forking is safe in the
command, which has no other thread at that time. A program with threads must set START to "spawn".
"""

POOL_FROM = 2.0
"""CPU seconds of work from which a pool of processes pays off."""
PROBE = 0.2
"""CPU seconds to spend on the first items. The total is estimated from the time per item."""

WAKE = 0.2
"""Seconds between two checks for Ctrl-C during a wait for a result."""

Item = TypeVar("Item")
T = TypeVar("T")


def map_in_parallel(
    work: Callable[[Item], T], items: Sequence[Item], *, doing: str, jobs: int | None = None
) -> list[T | None]:
    """Return the result of `work` for each item, in order.

    Up to `jobs` processes compute the results.

    By default, estimate the amount of work from the first items, and use all cores if that pays off. The
    result is None for an item whose process was killed, for example because memory ran out. If standard error
    is a terminal, show a progress bar titled `doing` there.
    """
    begin = time.process_time()
    first = _probe(work, items) if jobs is None else []
    left = items[len(first) :]
    ahead = (time.process_time() - begin) / max(len(first), 1) * len(left)
    processes = min(jobs or _cores(), len(left)) if jobs or ahead > POOL_FROM else 1
    with _distributed(work, left, processes) as results:
        if len(left) < 2 or not (screen := console(stderr=True)).is_terminal:
            return [*first, *results]
        from rich.progress import track  # imported late, because only a terminal needs it

        return [*first, *track(results, doing, len(left), console=screen, transient=True)]


def _probe(work: Callable[[Item], T], items: Sequence[Item]) -> list[T | None]:
    """Return the results of the first items, after about PROBE seconds of work."""
    end = time.process_time() + PROBE
    results: list[T | None] = []
    for item in items:
        results.append(work(item))
        if time.process_time() > end:
            break
    return results


@contextlib.contextmanager
def _distributed(
    work: Callable[[Item], T], items: Sequence[Item], processes: int
) -> Iterator[Iterator[T | None]]:
    """Yield an iterator over the results of `work`.

    The processes start at once, because forking is unsafe after a progress bar has started its thread.
    """
    if processes < 2:
        yield map(work, items)
        return
    context = multiprocessing.get_context(START)
    pool = ProcessPoolExecutor(processes, context, _begin, (work,))
    try:
        with _noted_interrupts() as interrupts:
            yield _results(_submitted(pool, items), len(items), interrupts)
    except BaseException:  # such as Ctrl-C
        for process in multiprocessing.active_children():
            process.kill()
        # Do not wait: the reader of a result never returns if the process that wrote it was killed.
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()


def _submitted(pool: ProcessPoolExecutor, items: Sequence[Any]) -> list[Future[Any]]:
    """Return a future per item, or fewer if a process is killed meanwhile."""
    futures: list[Future[Any]] = []
    with contextlib.suppress(BrokenProcessPool):
        futures.extend(pool.submit(_work, item) for item in items)
    return futures


def _results(futures: Sequence[Future[Any]], count: int, interrupts: Sequence[int]) -> Iterator[Any]:
    """Yield `count` results in order; None for an item whose process was killed.

    Raises KeyboardInterrupt within WAKE seconds of an interrupt.
    """
    for future in futures:
        while not interrupts and not wait([future], WAKE).done:
            pass
        if interrupts:
            raise KeyboardInterrupt
        yield None if isinstance(future.exception(), BrokenProcessPool) else future.result()
    yield from [None] * (count - len(futures))


@contextlib.contextmanager
def _noted_interrupts() -> Iterator[Sequence[int]]:
    """Yield a list that gets an element at every Ctrl-C.

    Raises KeyboardInterrupt at the end if the list has an element. An exception that is raised at once could
    be lost in a callback of Python, for example during an import.
    """
    interrupts: list[int] = []
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    ):
        yield interrupts
        return
    signal.signal(signal.SIGINT, lambda number, _frame: interrupts.append(number))
    try:
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if interrupts:
        raise KeyboardInterrupt


_function: Callable[[Any], Any]
"""The function that this process of a pool executes; the process receives it once, when it starts."""


def _begin(work: Callable[[Any], Any]) -> None:
    global _function
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # only the parent process handles Ctrl-C
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    _function = work


def _exit_with_parent() -> None:
    """Exit when the parent process has ended.

    A killed parent cannot stop its children.
    """
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _work(item: Any) -> Any:
    return _function(item)


def _cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
