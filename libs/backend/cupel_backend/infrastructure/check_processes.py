"""Checking uploads in processes of their own, with limits on memory and time.

A checker that is killed, by the limits or by the file, costs that upload a refusal and nobody else
anything: each holds one file at a time, and a new one takes its place.
"""

import json
import logging
import os
import select
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from queue import Empty, LifoQueue
from time import monotonic
from typing import Any

from cupel_backend.infrastructure.errors import refusal
from cupel_backend.infrastructure.object_store import RETRY_SECONDS, STORAGE_FAILED
from cupel_backend.infrastructure.settings import MEGABYTE, Settings, checker_environment

log = logging.getLogger(__name__)

CHECK_ENDED = refusal("check-ended")
CHECKERS_BUSY = refusal("checkers-busy")


class Checkers:
    """A few checking processes, started when first needed; safe to use from several threads."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._starter = ThreadPoolExecutor(1, "starter of checkers")  # see checker._end_with
        self._free: LifoQueue[_Checker | None] = LifoQueue()
        for _ in range(settings.checkers):
            self._free.put(None)

    def check(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The verdict on the file that `request` names (see upload_checker.py).

        Raises Invalid (check-ended) where it ended without one, Unavailable if no turn came in time or
        the checker could not store what it made.
        """
        deadline = monotonic() + self._settings.checker_seconds
        with self._turn(deadline) as checker:
            verdict = checker.ask(request, deadline)
        if verdict.get("killed") == "storage":
            raise STORAGE_FAILED("what came of the file could not be stored", retry_after=RETRY_SECONDS)
        if "killed" in verdict:
            raise CHECK_ENDED(_ENDINGS[verdict["killed"]].format(self._settings))
        return verdict

    @contextmanager
    def _turn(self, deadline: float) -> Iterator["_Checker"]:
        try:
            checker = self._free.get(timeout=max(0.0, deadline - monotonic()))
        except Empty:
            raise CHECKERS_BUSY("no checking process became free in time", retry_after=10) from None
        try:
            checker = _still_usable(checker) or self._starter.submit(_Checker, self._settings).result()
            yield checker
        finally:
            self._free.put(_still_usable(checker))

    def close(self) -> None:
        """End the processes that are free, then, with the thread that started them, all others."""
        while True:
            try:
                checker = self._free.get_nowait()
            except Empty:
                break
            if checker is not None:
                checker.end()
        self._starter.shutdown()


def _still_usable(checker: "_Checker | None") -> "_Checker | None":
    """The checker if it can take another file; else it is ended."""
    if checker is None or checker.usable:
        return checker
    checker.end()
    return None


_ENDINGS = {
    "memory": "checking the file needs more than {0.checker_megabytes} MB of memory",
    "time": "checking the file takes more than {0.checker_seconds:g} seconds",
    "died": "the process that checked the file ended before it had a verdict",
}


class _Checker:
    """One checking process."""

    def __init__(self, settings: Settings) -> None:
        self._turns = settings.checker_turns
        self._process = subprocess.Popen(
            [sys.executable, "-m", "cupel_backend.infrastructure.upload_checker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=checker_environment(),
            start_new_session=True,  # Ctrl-C is for the service, which then ends its checkers
        )
        limits = {"memory": settings.checker_megabytes * MEGABYTE, "seconds": settings.checker_seconds}
        self._send({"parent": os.getpid(), **limits})

    @property
    def usable(self) -> bool:
        return self._turns > 0 and self._process.poll() is None

    def ask(self, request: Mapping[str, Any], deadline: float) -> dict[str, Any]:
        """The verdict, or `killed` with what ended the process."""
        self._turns -= 1
        try:
            self._send(request)
            line = self._line(deadline)
        except BrokenPipeError:
            line = b""
        if line is None or not line.endswith(b"\n"):
            self.end()
            log.warning("a checking process ended with code %s", self._process.returncode)
            return {"killed": "time" if line is None else "died"}
        verdict: dict[str, Any] = json.loads(line)
        if "killed" in verdict:
            self.end()
        return verdict

    def end(self) -> None:
        """Kill the process, and wait for its end."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):  # what was never read may still be in the buffer
                    pipe.close()

    def _send(self, value: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(value).encode() + b"\n")
        self._process.stdin.flush()

    def _line(self, deadline: float) -> bytes | None:
        """The next line of the answer; None if it takes too long, less than a line if the process ended."""
        assert self._process.stdout is not None
        handle = self._process.stdout.fileno()
        ready = select.poll()  # not select.select, which knows only the first 1,024 files of a process
        ready.register(handle, select.POLLIN)
        answer = b""
        while not answer.endswith(b"\n"):
            if not ready.poll(max(0.0, deadline - monotonic()) * 1000):
                return None
            more = os.read(handle, 1 << 20)
            if not more:
                return answer
            answer += more
        return answer
