"""A pool of processes that check uploads, with limits on memory and time.

A check process checks one file at a time. If the process fails or exceeds a limit, only the upload of this
file is refused, and a new process replaces the old one.
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


_ENDINGS = {
    "memory": "checking the file needs more than {0.checker_megabytes} MB of memory",
    "time": "checking the file takes more than {0.checker_seconds:g} seconds",
    "died": "the check process ended without a verdict",
}


class _CheckProcess:
    """A check process."""

    def __init__(self, settings: Settings) -> None:
        self._turns = settings.checker_turns
        self._process = subprocess.Popen(
            [sys.executable, "-m", "cupel_backend.infrastructure.upload_checker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=checker_environment(),
            start_new_session=True,  # Ctrl-C reaches the service only, which ends this process
        )
        limits = {"memory": settings.checker_megabytes * MEGABYTE, "seconds": settings.checker_seconds}
        with suppress(BrokenPipeError):  # the process was killed while it started; `check` reports it
            self._send({"parent": os.getpid(), **limits})

    @property
    def usable(self) -> bool:
        return self._turns > 0 and self._process.poll() is None

    def check(self, request: Mapping[str, Any], deadline: float) -> dict[str, Any]:
        """Return the verdict on the file that `request` names.

        If the process ended, the reason is returned under the key `killed`.
        """
        self._turns -= 1
        try:
            self._send(request)
            line = self._read_line(deadline)
        except BrokenPipeError:
            line = b""
        if line is None or not line.endswith(b"\n"):
            self.end()
            log.warning("a check process ended with exit code %s", self._process.returncode)
            return {"killed": "time" if line is None else "died"}
        verdict: dict[str, Any] = json.loads(line)
        if "killed" in verdict:
            self.end()
        return verdict

    def end(self) -> None:
        """Kill the process and wait until it has ended."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):  # the buffer may hold an unread request
                    pipe.close()

    def _send(self, value: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(value).encode() + b"\n")
        self._process.stdin.flush()

    def _read_line(self, deadline: float) -> bytes | None:
        """Read a line of output.

        Returns None after the deadline, and an incomplete line if the process ended.
        """
        assert self._process.stdout is not None
        handle = self._process.stdout.fileno()
        ready = select.poll()  # select.select supports only the first 1,024 files of a process
        ready.register(handle, select.POLLIN)
        line = b""
        while not line.endswith(b"\n"):
            if not ready.poll(max(0.0, deadline - monotonic()) * 1000):
                return None
            chunk = os.read(handle, 1 << 20)
            if not chunk:
                return line
            line += chunk
        return line


class Checkers:
    """A pool of check processes, which are started on first use. Threads may share it."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        # A check process ends with the thread that started it (see upload_checker._end_with).
        self._starter = ThreadPoolExecutor(1, "start-checkers")
        self._free: LifoQueue[_CheckProcess | None] = LifoQueue()
        for _ in range(settings.checkers):
            self._free.put(None)

    def check(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Check the file that `request` names and return the verdict.

        See upload_checker.py for verdicts. Raises Invalid (check-ended) if the process failed or exceeded a
        limit. Raises Unavailable if no process became free in time, or if the process could not store its
        output.
        """
        deadline = monotonic() + self._settings.checker_seconds
        with self._borrow(deadline) as process:
            verdict = process.check(request, deadline)
        if verdict.get("killed") == "storage":
            raise STORAGE_FAILED("the output of the check could not be stored", retry_after=RETRY_SECONDS)
        if "killed" in verdict:
            raise CHECK_ENDED(_ENDINGS[verdict["killed"]].format(self._settings))
        return verdict

    @contextmanager
    def _borrow(self, deadline: float) -> Iterator[_CheckProcess]:
        try:
            checker = self._free.get(timeout=max(0.0, deadline - monotonic()))
        except Empty:
            raise CHECKERS_BUSY("no check process became free in time", retry_after=10) from None
        try:
            checker = _keep_if_usable(checker) or self._starter.submit(_CheckProcess, self._settings).result()
            yield checker
        finally:
            self._free.put(_keep_if_usable(checker))

    def close(self) -> None:
        """End the idle processes.

        A busy process ends together with the thread that started it.
        """
        while True:
            try:
                checker = self._free.get_nowait()
            except Empty:
                break
            if checker is not None:
                checker.end()
        self._starter.shutdown()


def _keep_if_usable(checker: _CheckProcess | None) -> _CheckProcess | None:
    """Return the process if it can check another file.

    Otherwise the process is ended, and None is returned.
    """
    if checker is None or checker.usable:
        return checker
    checker.end()
    return None
