"""The object store: immutable blobs, named by the SHA-256 of their content.

A blob is stored before the row that names it, because an unused blob is harmless and a missing one is not.
Storing the same content again, even concurrently, changes nothing. `get` verifies the content against
its name.
"""

import errno
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from time import monotonic
from typing import BinaryIO, Protocol

from cupel_backend.infrastructure.errors import refusal

log = logging.getLogger(__name__)

STORAGE_FAILED = refusal("storage-failed")
CONTENT_MISSING = refusal("content-missing")

CONTENT_DAMAGED = refusal("content-damaged")

RETRY_SECONDS = 30


class Blobs(Protocol):
    """The interface of the object stores."""

    def __hash__(self) -> int:
        """Hash by identity, because callers cache contents per store."""

    def prepare(self) -> None:
        """Create the folder or bucket of the blobs if it does not exist."""

    def put_file(self, path: Path, digest: str) -> str:
        """Store the file at `path` durably and return its key. The file may be moved.

        digest: SHA-256 of the content, in hexadecimal.
        """

    def get(self, key: str) -> bytes:
        """Return the content.

        Raises Unavailable (content-missing, content-damaged) if the blob is missing or was changed.
        """

    def open(self, key: str) -> BinaryIO:
        """Return the content as a stream, which the caller closes.

        Raises Unavailable (content-missing) if there is no such blob.
        """

    def copy_to(self, key: str, target: Path) -> None:
        """Write the content to `target`. Raises Unavailable as `get` does.

        Use it for blobs that are read often, such as judgments: a remote store keeps a local copy.
        """

    def check(self) -> None:
        """Raise OSError or Unavailable unless blobs can be stored."""

    def remove_partial_writes(self, before: float) -> int:
        """Remove partial files last changed before `before`; return how many.

        before: seconds since the epoch.
        """


def blob_key(digest: str) -> str:
    """Return the key of the blob whose content has this SHA-256 (hexadecimal)."""
    return f"{digest[:2]}/{digest}"


def verify_content(key: str, content: bytes) -> bytes:
    """Return the content if its digest matches the key.

    Otherwise Unavailable (content-damaged) is raised.
    """
    if blob_key(sha256(content).hexdigest()) != key:
        log.error("the content of blob %s does not match its digest", key)
        raise CONTENT_DAMAGED(f"the content {key} was changed in the store")
    return content


@contextmanager
def storage_errors() -> Iterator[None]:
    """Turn an OSError into Unavailable (storage-failed).

    Such an error comes from a full, broken or missing disk.
    """
    try:
        yield
    except OSError as error:
        log.exception("the storage failed")
        raise STORAGE_FAILED(
            f"the storage failed: {error.strerror or type(error).__name__}", retry_after=RETRY_SECONDS
        ) from error


class InstrumentedBlobs:
    """A store that reports each operation.

    It reports the name of the operation, whether it succeeded, and its duration in seconds.
    """

    def __init__(self, blobs: Blobs, record: Callable[[str, bool, float], None]) -> None:
        self._blobs = blobs
        self._record = record

    def prepare(self) -> None:
        with self._observed("prepare"):
            self._blobs.prepare()

    def put_file(self, path: Path, digest: str) -> str:
        with self._observed("put"):
            return self._blobs.put_file(path, digest)

    def get(self, key: str) -> bytes:
        with self._observed("get"):
            return self._blobs.get(key)

    def open(self, key: str) -> BinaryIO:
        with self._observed("open"):
            return self._blobs.open(key)

    def copy_to(self, key: str, target: Path) -> None:
        with self._observed("copy"):
            self._blobs.copy_to(key, target)

    def check(self) -> None:
        with self._observed("check"):
            self._blobs.check()

    def remove_partial_writes(self, before: float) -> int:
        return self._blobs.remove_partial_writes(before)

    @contextmanager
    def _observed(self, operation: str) -> Iterator[None]:
        started, succeeded = monotonic(), False
        try:
            yield
            succeeded = True
        finally:
            self._record(operation, succeeded, monotonic() - started)


class DirectoryBlobs:
    """Blobs as files in a folder, written atomically.

    A file is synced under a temporary name, then renamed.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    @storage_errors()
    def prepare(self) -> None:
        self.root.mkdir(parents=True, exist_ok=True)

    @storage_errors()
    def put_file(self, path: Path, digest: str) -> str:
        key = blob_key(digest)
        target = self.root / key
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            self._move(path, target)
        _sync(target.parent)  # also for an existing blob, whose writer may not have synced yet
        _sync(target.parent.parent)
        return key

    @storage_errors()
    def get(self, key: str) -> bytes:
        with self.open(key) as file:
            return verify_content(key, file.read())

    @storage_errors()
    def open(self, key: str) -> BinaryIO:
        try:
            return (self.root / key).open("rb")
        except FileNotFoundError:
            log.error("blob %s is missing", key)
            raise CONTENT_MISSING(f"the content {key} is not in the store") from None

    @storage_errors()
    def copy_to(self, key: str, target: Path) -> None:
        target.write_bytes(self.get(key))

    def check(self) -> None:
        with tempfile.TemporaryFile(dir=self._tmp()):
            pass

    def remove_partial_writes(self, before: float) -> int:
        return remove_older(self.root / "tmp", before)

    def _tmp(self) -> Path:
        """Return the folder of temporary files.

        It is on the file system of the blobs, so files can be renamed into place.
        """
        folder = self.root / "tmp"
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def _move(self, path: Path, target: Path) -> None:
        with path.open("rb") as file:
            os.fsync(file.fileno())
        try:
            os.replace(path, target)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            self._copy(path, target)

    def _copy(self, path: Path, target: Path) -> None:
        """Copy a file from another file system."""
        with tempfile.NamedTemporaryFile(dir=self._tmp(), delete=False) as copy:
            try:
                with path.open("rb") as file:
                    shutil.copyfileobj(file, copy, 1 << 20)
                copy.flush()
                os.fsync(copy.fileno())
                os.replace(copy.name, target)
            except BaseException:
                os.unlink(copy.name)
                raise


def remove_older(folder: Path, before: float) -> int:
    """Remove the entries of `folder` last changed before the time `before`.

    Returns the number of removed entries. before: seconds since the epoch.
    """
    removed = 0
    for path in folder.glob("*"):
        with suppress(FileNotFoundError):
            if path.stat().st_mtime < before:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
                removed += 1
    return removed


def _sync(folder: Path) -> None:
    """Sync a folder, because a rename is durable only after its folder is synced."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
