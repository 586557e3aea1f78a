"""Runs as they are given: files, and tables of scores in memory."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from cupel_measures.findings import Refused
from cupel_measures.model import Joined, Qrels, Run
from cupel_measures.model.profiles import Profile
from cupel_measures.reading.run_files import join_run, read_run
from cupel_measures.reading.unreadable_files import unreadable


class RunInput(Protocol):
    """A run that can be read as a whole, or joined with qrels.

    Both methods raise Refused, with every finding, if the run has an error.
    """

    @property
    def name(self) -> str:
        """Return the name that findings show."""
        ...

    def read(self, depth: int | None = None) -> Run:
        """Return the whole run with its findings. depth: cut of the track, for warnings."""
        ...

    def join(self, qrels: Qrels, *, profile: Profile, depth: int | None = None) -> Joined:
        """Return the run joined with `qrels`: one row per topic of the qrels.

        depth: maximum number of documents per topic.
        """
        ...


@dataclass(frozen=True)
class FileRun:
    """A run in a file in TREC format, plain or compressed."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.name

    def read(self, depth: int | None = None) -> Run:
        """Read the file."""
        try:
            return read_run(self.path, depth=depth)
        except OSError as problem:
            raise Refused(unreadable(problem, self.path)) from problem

    def join(self, qrels: Qrels, *, profile: Profile, depth: int | None = None) -> Joined:
        """Join the file with `qrels` while it is read."""
        try:
            return join_run(self.path, qrels, profile=profile, depth=depth)
        except OSError as problem:
            raise Refused(unreadable(problem, self.path)) from problem
