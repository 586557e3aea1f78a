"""A supervisor of child processes.

It logs their output and restarts them when they die.

A single thread waits for output, signals and due restarts, so it may fork a child at any moment and needs no
lock.
"""

import ctypes
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import IO

POLL_SECONDS = 0.1
"""Seconds between two checks of the children."""

STABLE_SECONDS = 10.0
"""Lifetime in seconds after which a child counts as started successfully."""

MAX_DEATHS = 5
"""Consecutive deaths of a child that never started successfully, after which the supervisor stops."""

MAX_RESTART_DELAY = 30.0
"""Longest pause in seconds before a dead child is restarted."""

GRACE_SECONDS = 30.0
"""Seconds that children have to finish their work after SIGTERM."""

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""Signals that stop the supervisor. SIGHUP is sent when its terminal is closed."""

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


class ChildFailed(Exception):
    """A child died repeatedly without ever starting successfully.

    The message names it.
    """


def die_with_parent() -> Callable[[], None]:
    """Return a `preexec_fn` that makes Linux kill the child when this process ends.

    The child is killed even if this process ends by SIGKILL.

    Otherwise a child would continue to serve the data folder without a supervisor.
    """
    parent = os.getpid()

    def request_death_signal() -> None:
        if _libc is not None:
            _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # The parent ended before the request.
            os._exit(1)

    return request_death_signal


@dataclass(kw_only=True)
class Child:
    """A supervised process: its command, and its state.

    inherited: file descriptors that the process inherits.
    started, due: times of the last start and of the next restart, on the monotonic clock.
    deaths: consecutive deaths; the count restarts after a lifetime of more than `stable_seconds`.
    has_come_up: whether the process has ever lived for more than `stable_seconds`.
    unfinished: output after the last newline.
    """

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    inherited: tuple[int, ...] = ()
    process: subprocess.Popen[bytes] | None = None
    output: IO[bytes] | None = None
    started: float = 0.0
    due: float = 0.0
    deaths: int = 0
    has_come_up: bool = False
    unfinished: bytes = field(default=b"", repr=False)

    def start(self) -> None:
        """Start the process as the leader of a new process group.

        Its own children join the group.
        """
        self.process = subprocess.Popen(
            self.command,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            bufsize=0,
            pass_fds=self.inherited,
            process_group=0,
            preexec_fn=die_with_parent(),
        )
        self.started = time.monotonic()
        assert self.process.stdout is not None
        self.output = self.process.stdout
        os.set_blocking(self.output.fileno(), False)

    @property
    def is_alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the process if it is alive."""
        if self.is_alive and self.process is not None:
            self.process.send_signal(number)

    def kill_group(self) -> None:
        """Kill the process and all processes that it started."""
        if self.process is not None:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                return

    def record_death(self, stable_seconds: float) -> str:
        """Record the death and schedule the restart; return a description.

        The description says how the process ended.
        """
        assert self.process is not None
        code, lived = self.process.wait(), time.monotonic() - self.started
        self.process = None
        self.has_come_up = self.has_come_up or lived > stable_seconds
        self.deaths = 1 if lived > stable_seconds else self.deaths + 1
        self.due = time.monotonic() + min(0.2 * 2 ** min(self.deaths - 1, 10), MAX_RESTART_DELAY)
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        return f"{self.name} {how} after {lived:.0f} s"


class Supervisor:
    """A supervisor that runs children until a stop signal.

    It also stops if a child repeatedly fails to start.

    A child that has started successfully once is restarted forever, at growing intervals, because its
    problem (for example a full disk) may pass. The other children keep running meanwhile.

    write_log: writes a line to the log (name of the process, text).
    stable_seconds: lifetime after which a child counts as started successfully.
    max_deaths: consecutive deaths after which `run` raises ChildFailed.
    """

    def __init__(
        self,
        children: Sequence[Child],
        write_log: Callable[[str, str], None],
        *,
        stable_seconds: float = STABLE_SECONDS,
        max_deaths: int = MAX_DEATHS,
    ) -> None:
        self.children = children
        self.write_log = write_log
        self.stable_seconds = stable_seconds
        self.max_deaths = max_deaths
        self.stop_deadline: float | None = None
        self._selector = selectors.DefaultSelector()

    def run(self, each_tick: Callable[[], None] = lambda: None) -> None:
        """Run the children until a signal in STOP_SIGNALS arrives.

        each_tick: called after every check of the children. A signal that is ignored at the start, such as
        SIGHUP under nohup, stays ignored. Raises ChildFailed.
        """
        handled = [number for number in STOP_SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
        before = {number: signal.signal(number, self._request_stop) for number in handled}
        try:
            while self.stop_deadline is None:
                self._start_due_children()
                self._log_output(POLL_SECONDS)
                self._handle_deaths()
                each_tick()
        finally:
            self._stop()
            for number, handler in before.items():
                signal.signal(number, handler)

    def _request_stop(self, number: int, frame: FrameType | None) -> None:
        """Handle a stop signal. A second signal ends the grace period."""
        self.stop_deadline = time.monotonic() + GRACE_SECONDS if self.stop_deadline is None else 0.0

    def _start_due_children(self) -> None:
        for child in self.children:
            if child.process is None and child.due <= time.monotonic():
                child.start()
                self._selector.register(child.output, selectors.EVENT_READ, child)  # type: ignore[arg-type]

    def _handle_deaths(self) -> None:
        """Log the last output of dead children and schedule their restarts."""
        for child in self.children:
            if child.process is None or child.is_alive:
                continue
            child.kill_group()
            while child.output is not None:
                self._read_output(child)
            death = child.record_death(self.stable_seconds)
            if child.deaths >= self.max_deaths and not child.has_come_up:
                raise ChildFailed(f"{death}, {self.max_deaths} times in a row; see its output above")
            delay = child.due - time.monotonic()
            self.write_log("cupel", f"{death}; restarting it" + (f" in {delay:.0f} s" if delay > 1 else ""))

    def _log_output(self, seconds: float) -> None:
        """Log the output of the children; wait at most `seconds` for it."""
        for key, _ in self._selector.select(seconds):
            self._read_output(key.data)

    def _read_output(self, child: Child) -> None:
        """Log the complete lines that have arrived.

        The pipe is closed at the end of the output.
        """
        assert child.output is not None
        chunk = child.output.read(1 << 16)
        *lines, child.unfinished = (child.unfinished + (chunk or b"")).split(b"\n")
        ended = chunk == b"" or (chunk is None and not child.is_alive)
        if ended and child.unfinished:
            lines.append(child.unfinished)
            child.unfinished = b""
        for line in lines:
            self.write_log(child.name, line.decode(errors="replace").rstrip("\r"))
        if ended:
            self._selector.unregister(child.output)
            child.output.close()
            child.output = None

    def _stop(self) -> None:
        """Stop the children.

        Send SIGTERM to them, wait for them, and kill those that still run at the deadline.
        """
        deadline = self.stop_deadline if self.stop_deadline is not None else time.monotonic() + GRACE_SECONDS
        if deadline:
            self.write_log("cupel", "stopping; press Ctrl-C again to stop immediately")
        for child in self.children:
            child.send(signal.SIGTERM)
        while any(child.is_alive for child in self.children) and time.monotonic() < deadline:
            self._log_output(POLL_SECONDS)
            if self.stop_deadline is not None:
                deadline = min(deadline, self.stop_deadline)
        for child in self.children:
            if child.is_alive:
                self.write_log("cupel", f"killing {child.name}, which did not stop in time")
            child.kill_group()
            if child.process is not None:
                child.process.wait()
            while child.output is not None:
                self._read_output(child)
        self._selector.close()
