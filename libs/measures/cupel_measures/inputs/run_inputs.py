"""Runs as they are given: files, and tables of scores in memory."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from cupel_measures.findings import Refused
from cupel_measures.inputs.formats.file_tables import table_in
from cupel_measures.inputs.table_runs import TableRun
from cupel_measures.model import Joined, Qrels, Run
from cupel_measures.model.profiles import Profile
from cupel_measures.reading.compression import Source
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
    """A run in a file: in TREC format or as a table, plain or compressed.

    content: the bytes of the file, if it is not read from `path`.
    """

    path: Path
    content: bytes | None = None

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def source(self) -> Source:
        return self.path if self.content is None else self.content

    def read(self, depth: int | None = None) -> Run:
        """Read the file."""
        try:
            if table := self._table():
                return table.read(depth)
            return read_run(self.source, name=self.name, depth=depth)
        except OSError as problem:
            raise Refused(unreadable(problem, self.path)) from problem

    def join(self, qrels: Qrels, *, profile: Profile, depth: int | None = None) -> Joined:
        """Join the file with `qrels` while it is read."""
        try:
            if table := self._table():
                return table.join(qrels, profile=profile, depth=depth)
            return join_run(self.source, qrels, profile=profile, depth=depth, name=self.name)
        except OSError as problem:
            raise Refused(unreadable(problem, self.path)) from problem

    def _table(self) -> TableRun | None:
        """Return the run if the file contains a table; None if it is in TREC format."""
        found = table_in(self.source, "score", self.name)
        return None if found is None else TableRun(self.name, found.table, found.notes)
