"""Where the bytes live: immutable blobs, named by the SHA-256 of their content.

Bytes are stored before the row that names them: a stray blob is harmless, a row without its blob is
not. Storing the same content again, also at the same time, changes nothing.
"""

import hashlib
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Protocol
from urllib.parse import unquote, urlsplit


class Blobs(Protocol):
    """The seam to the object store."""

    def __hash__(self) -> int:
        """Stores are told apart by identity: what was read from one may be cached."""

    def put(self, content: bytes) -> str:
        """Store `content` durably and return its key."""

    def put_file(self, path: Path, digest: str) -> str:
        """Store the file at `path`, whose SHA-256 is `digest` (hex), durably; its key. The file may go."""

    def get(self, key: str) -> bytes:
        """The whole content; KeyError if there is no such blob."""

    def open(self, key: str) -> BinaryIO:
        """The content as a stream that the caller closes; KeyError if there is no such blob."""

    def check(self) -> None:
        """OSError unless blobs can be stored."""

    def tidy(self, before: float) -> int:
        """Remove what writers that died left half written before the time `before`; returns how much."""


def open_blobs(url: str) -> Blobs:
    """The store that `url` names; ValueError if its kind is not known."""
    parts = urlsplit(url)
    if parts.scheme == "file":
        return DirectoryBlobs(Path(unquote(parts.path)))
    raise ValueError(f"CUPEL_BLOBS is {url!r}; a file: URL was expected")


class DirectoryBlobs:
    """Blobs as files in a folder: written to a temporary name, synced, then renamed; whole or not there."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def put(self, content: bytes) -> str:
        key = _key(hashlib.sha256(content).hexdigest())
        return self._place(key, None if self._path(key).exists() else self._write(content))

    def put_file(self, path: Path, digest: str) -> str:
        key = _key(digest)
        if self._path(key).exists():
            return self._place(key, None)
        with path.open("rb") as file:
            os.fsync(file.fileno())
        return self._place(key, path)

    def get(self, key: str) -> bytes:
        with self.open(key) as file:
            return file.read()

    def open(self, key: str) -> BinaryIO:
        try:
            return self._path(key).open("rb")
        except FileNotFoundError:
            raise KeyError(key) from None

    def check(self) -> None:
        self._write(b"").unlink()

    def tidy(self, before: float) -> int:
        return remove_older(self.root / "tmp", before)

    def _path(self, key: str) -> Path:
        return self.root / key

    def _write(self, content: bytes) -> Path:
        """`content` in a temporary file of the same file system, so that it can be renamed into place."""
        folder = self.root / "tmp"
        folder.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=folder)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        return Path(name)

    def _place(self, key: str, source: Path | None) -> str:
        """Give `source` its name. Without one, the blob is there, but maybe not yet its name on the disk."""
        target = self._path(key)
        if source is not None:
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(source, target)
        _sync(target.parent)
        _sync(target.parent.parent)
        return key


def remove_older(folder: Path, before: float) -> int:
    """Remove what in `folder` was last changed before the time `before` (seconds); returns how much."""
    removed = 0
    for path in folder.glob("*"):
        with suppress(FileNotFoundError):
            if path.stat().st_mtime < before:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
                removed += 1
    return removed


def _key(digest: str) -> str:
    return f"{digest[:2]}/{digest}"


def _sync(folder: Path) -> None:
    """Make the names in `folder` durable: a rename is not until its directory is."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
