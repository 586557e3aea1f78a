"""Where the bytes live: immutable blobs, named by the SHA-256 of their content.

Bytes are stored before the row that names them: a stray blob is harmless, a row without its blob is
not. Storing the same content again, also at the same time, changes nothing. What is read whole is
checked against its name.
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
from urllib.parse import unquote, urlsplit

from cupel_backend.infrastructure.errors import refusal
from cupel_backend.infrastructure.settings import Settings

log = logging.getLogger(__name__)

STORAGE_FAILED = refusal("storage-failed")
CONTENT_MISSING = refusal("content-missing")

CONTENT_DAMAGED = refusal("content-damaged")

RETRY_SECONDS = 30


class Blobs(Protocol):
    """The seam to the object store."""

    def __hash__(self) -> int:
        """Stores are told apart by identity: what was read from one may be cached."""

    def prepare(self) -> None:
        """Make the place where blobs are kept, if it is not there."""

    def put_file(self, path: Path, digest: str) -> str:
        """Store the file at `path`, whose SHA-256 is `digest` (hex), durably; its key. The file may go."""

    def get(self, key: str) -> bytes:
        """The whole content; Unavailable (content-missing, content-damaged) if it is not there as it was."""

    def open(self, key: str) -> BinaryIO:
        """The content as a stream that the caller closes; Unavailable if there is no such blob."""

    def copy_to(self, key: str, target: Path) -> None:
        """Write the content to `target`; Unavailable as with `get`.

        For what is wanted again and again, such as the judgments of a track.
        """

    def check(self) -> None:
        """OSError unless blobs can be stored."""

    def remove_partial_writes(self, before: float) -> int:
        """Remove what writers that died left half written before the time `before`; returns how much."""


def open_blobs(settings: Settings) -> Blobs:
    """The store that the settings name."""
    parts = urlsplit(settings.blobs_url)
    if parts.scheme == "s3":
        from cupel_backend.infrastructure.s3_store import (
            S3Blobs,  # boto3 takes a while to import: only who uses it pays
        )

        return S3Blobs(settings, bucket=parts.netloc, prefix=parts.path.strip("/"))
    return DirectoryBlobs(Path(unquote(parts.path)))


def blob_key(digest: str) -> str:
    """The key of a blob whose content has this SHA-256 (hex)."""
    return f"{digest[:2]}/{digest}"


def verify_content(key: str, content: bytes) -> bytes:
    """The content, if it is that which the key names."""
    if blob_key(sha256(content).hexdigest()) != key:
        log.error("the blob %s is damaged", key)
        raise CONTENT_DAMAGED(f"the content {key} was changed in the store")
    return content


@contextmanager
def storage_errors() -> Iterator[None]:
    """Within it, a disk that is full, broken or gone is Unavailable: nothing is wrong with the request."""
    try:
        yield
    except OSError as error:
        log.exception("the storage failed")
        raise STORAGE_FAILED(
            f"the storage failed: {error.strerror or type(error).__name__}", retry_after=RETRY_SECONDS
        ) from error


class WatchedBlobs:
    """A store of which somebody is told how each operation went: (name, whether it worked, seconds)."""

    def __init__(self, blobs: Blobs, note: Callable[[str, bool, float], None]) -> None:
        self._blobs = blobs
        self._note = note

    def prepare(self) -> None:
        with self._noted("prepare"):
            self._blobs.prepare()

    def put_file(self, path: Path, digest: str) -> str:
        with self._noted("put"):
            return self._blobs.put_file(path, digest)

    def get(self, key: str) -> bytes:
        with self._noted("get"):
            return self._blobs.get(key)

    def open(self, key: str) -> BinaryIO:
        with self._noted("open"):
            return self._blobs.open(key)

    def copy_to(self, key: str, target: Path) -> None:
        with self._noted("bring"):
            self._blobs.copy_to(key, target)

    def check(self) -> None:
        with self._noted("check"):
            self._blobs.check()

    def remove_partial_writes(self, before: float) -> int:
        return self._blobs.remove_partial_writes(before)

    @contextmanager
    def _noted(self, operation: str) -> Iterator[None]:
        began, worked = monotonic(), False
        try:
            yield
            worked = True
        finally:
            self._note(operation, worked, monotonic() - began)


class DirectoryBlobs:
    """Blobs as files in a folder: synced under a temporary name, then renamed; whole or not there."""

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
        _sync(target.parent)  # also where the blob was there: maybe its name is not on the disk yet
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
            log.error("the blob %s is gone", key)
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
        """A folder in the file system of the blobs, so that what is in it can be renamed into place."""
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
        """Bring a file from another file system."""
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
    """Remove what in `folder` was last changed before the time `before` (seconds); returns how much."""
    removed = 0
    for path in folder.glob("*"):
        with suppress(FileNotFoundError):
            if path.stat().st_mtime < before:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
                removed += 1
    return removed


def _sync(folder: Path) -> None:
    """Make the names in `folder` durable: a rename is not until its directory is."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
