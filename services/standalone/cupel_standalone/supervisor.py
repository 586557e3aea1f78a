"""Keeping child processes alive: start them, show what they say, start them again when they die, stop them.

One thread does everything: it waits for output, for a signal and for the next thing that is due. So a child
may safely be forked at any moment, and nothing here needs a lock.
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

TICK = 0.1
"""Seconds between two looks at the children."""

STEADY = 10.0
"""A child that lived for so many seconds came up: its death counts as the first one."""

PATIENCE = 5
"""Deaths in quick succession after which a child that never came up is given up."""

LONGEST_PAUSE = 30.0
"""Seconds at most before a dead child is started again."""

GRACE = 30.0
"""Seconds that children have to finish what they are doing, once told to stop."""

STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""Signals that ask the supervisor to stop: the last is a terminal that was closed."""

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


class GaveUp(Exception):
    """A child died again and again and never came up; the message says which, and how."""


def die_with_parent() -> Callable[[], None]:
    """What a child is to run before it becomes its program: has Linux kill it when this process is gone,
    even by `kill -9`, so that nothing goes on serving a folder that nobody looks after."""
    parent = os.getpid()

    def ask() -> None:
        if _libc is not None:
            _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # gone before we could ask
            os._exit(1)

    return ask


@dataclass
class Child:
    """One kept process: how it is started, and how it has been doing."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    inherited: tuple[int, ...] = ()
    process: subprocess.Popen[bytes] | None = None
    output: IO[bytes] | None = None
    started: float = 0.0
    due: float = 0.0
    deaths: int = 0
    came_up: bool = False
    unfinished: bytes = field(default=b"", repr=False)

    def start(self) -> None:
        """Start the process, as leader of a group that holds its own children."""
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
    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def send(self, number: signal.Signals) -> None:
        if self.alive and self.process is not None:
            self.process.send_signal(number)

    def kill_group(self) -> None:
        """End whatever is left of the process and of the processes that it started."""
        if self.process is not None:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                return

    def buried(self, steady: float) -> str:
        """Note a death: returns how it ended, and decides when it may start again."""
        assert self.process is not None
        code, lived = self.process.wait(), time.monotonic() - self.started
        self.process = None
        self.came_up = self.came_up or lived > steady
        self.deaths = 1 if lived > steady else self.deaths + 1
        self.due = time.monotonic() + min(0.2 * 2 ** min(self.deaths - 1, 10), LONGEST_PAUSE)
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        return f"{self.name} {how} after {lived:.0f} s"


class Supervisor:
    """Runs children until it is told to stop, or one of them never comes up.

    A child that came up once is started again for ever, at growing intervals: what kills it (a full disk,
    say) may pass, and its siblings go on meanwhile. say: shows one line of (who, text). steady: seconds of
    life by which a child has come up. patience: deaths of one that has not after which it is given up.
    """

    def __init__(
        self,
        children: Sequence[Child],
        say: Callable[[str, str], None],
        *,
        steady: float = STEADY,
        patience: int = PATIENCE,
    ) -> None:
        self.children = children
        self.say = say
        self.steady = steady
        self.patience = patience
        self.stopping: float | None = None
        self._selector = selectors.DefaultSelector()

    def run(self, each_tick: Callable[[], None] = lambda: None) -> None:
        """Start the children and keep them until a signal of STOPS; GaveUp if one never comes up.

        A signal that is ignored when we start (SIGHUP under nohup) goes on being ignored.
        """
        heeded = [number for number in STOPS if signal.getsignal(number) is not signal.SIG_IGN]
        before = {number: signal.signal(number, self._asked_to_stop) for number in heeded}
        try:
            while self.stopping is None:
                self._start_what_is_due()
                self._listen(TICK)
                self._bury_the_dead()
                each_tick()
        finally:
            self._stop()
            for number, handler in before.items():
                signal.signal(number, handler)

    def _asked_to_stop(self, number: int, frame: FrameType | None) -> None:
        """A second signal takes the rest of the grace away."""
        self.stopping = time.monotonic() + GRACE if self.stopping is None else 0.0

    def _start_what_is_due(self) -> None:
        for child in self.children:
            if child.process is None and child.due <= time.monotonic():
                child.start()
                self._selector.register(child.output, selectors.EVENT_READ, child)  # type: ignore[arg-type]

    def _bury_the_dead(self) -> None:
        for child in self.children:
            if child.process is None or child.alive:
                continue
            child.kill_group()
            while child.output is not None:
                self._hear(child)
            how = child.buried(self.steady)
            if child.deaths >= self.patience and not child.came_up:
                raise GaveUp(f"{how}, {self.patience} times in a row; what it said is above")
            pause = child.due - time.monotonic()
            self.say("cupel", f"{how}; starting it again" + (f" in {pause:.0f} s" if pause > 1 else ""))

    def _listen(self, seconds: float) -> None:
        """Show what the children say, for at most `seconds` of silence."""
        for key, _ in self._selector.select(seconds):
            self._hear(key.data)

    def _hear(self, child: Child) -> None:
        """Show the complete lines that have arrived; at the end of the output, forget the pipe."""
        assert child.output is not None
        chunk = child.output.read(1 << 16)
        *lines, child.unfinished = (child.unfinished + (chunk or b"")).split(b"\n")
        ended = chunk == b"" or (chunk is None and not child.alive)
        if ended and child.unfinished:
            lines.append(child.unfinished)
            child.unfinished = b""
        for line in lines:
            self.say(child.name, line.decode(errors="replace").rstrip("\r"))
        if ended:
            self._selector.unregister(child.output)
            child.output.close()
            child.output = None

    def _stop(self) -> None:
        """Let the children finish, then end what is left of them."""
        deadline = self.stopping if self.stopping is not None else time.monotonic() + GRACE
        if deadline:
            self.say("cupel", "stopping; press Ctrl-C again to end at once")
        for child in self.children:
            child.send(signal.SIGTERM)
        while any(child.alive for child in self.children) and time.monotonic() < deadline:
            self._listen(TICK)
            deadline = min(deadline, self.stopping if self.stopping is not None else deadline)
        for child in self.children:
            if child.alive:
                self.say("cupel", f"{child.name} did not stop in time and is ended")
            child.kill_group()
            if child.process is not None:
                child.process.wait()
            while child.output is not None:
                self._hear(child)
        self._selector.close()
