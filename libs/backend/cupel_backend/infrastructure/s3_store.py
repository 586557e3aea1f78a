"""Blobs in a bucket of an S3 server. Only this module imports boto3.

S3 writes objects atomically, and the key of a blob is the digest of its content, so an object is never
overwritten with other content. Locks and conditional writes, which few S3 servers support, are not
needed.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError

from cupel_backend.infrastructure.errors import Unavailable
from cupel_backend.infrastructure.object_store import (
    CONTENT_MISSING,
    RETRY_SECONDS,
    STORAGE_FAILED,
    blob_key,
    log,
    storage_errors,
    verify_content,
)
from cupel_backend.infrastructure.settings import Settings

CONNECTIONS = 64

MISSING_CODES = {"NoSuchKey", "404", "NotFound"}
EXISTS_CODES = {"BucketAlreadyOwnedByYou", "BucketAlreadyExists"}

PROBE = "probe"
"""Key of the object that `check` writes."""

MAX_CACHED = 32
"""Maximum number of blobs in the local cache."""


@cache
def _session() -> boto3.session.Session:
    """Return the shared session, because creating one is slow."""
    return boto3.session.Session()


class S3Blobs:
    """Blobs under a prefix of a bucket. Threads may share it; processes may not."""

    def __init__(self, settings: Settings, *, bucket: str, prefix: str = "") -> None:
        self.bucket = bucket
        self.prefix = f"{prefix}/" if prefix else ""
        self._cache = settings.data.absolute() / "cache"
        self._incoming = settings.incoming  # the scheduler removes partial files of killed processes there
        # AWS requires the region of a new bucket, except in us-east-1.
        needs_location = not settings.s3_endpoint and settings.s3_region != "us-east-1"
        location = {"CreateBucketConfiguration": {"LocationConstraint": settings.s3_region}}
        self._bucket_options: dict[str, Any] = location if needs_location else {}
        self._s3 = _session().client(
            "s3",
            endpoint_url=settings.s3_endpoint or None,
            region_name=settings.s3_region,
            aws_access_key_id=settings.s3_key or None,
            aws_secret_access_key=settings.s3_secret.get_secret_value() or None,
            config=_config(settings),
        )

    def prepare(self) -> None:
        with self._translated_errors():
            try:
                self._s3.head_bucket(Bucket=self.bucket)
            except ClientError as error:
                if _code(error) not in {*MISSING_CODES, "NoSuchBucket"}:
                    raise
                self._create_bucket()

    def put_file(self, path: Path, digest: str) -> str:
        key = blob_key(digest)
        # No check whether the blob exists: nearly every blob is new, and storing one again changes nothing.
        with storage_errors(), path.open("rb") as file, self._translated_errors():
            self._s3.put_object(Bucket=self.bucket, Key=self.prefix + key, Body=file)
        return key

    def get(self, key: str) -> bytes:
        with self._translated_errors(key), self.open(key) as stream:
            return verify_content(key, stream.read())

    def open(self, key: str) -> BinaryIO:
        with self._translated_errors(key):
            stream: BinaryIO = self._s3.get_object(Bucket=self.bucket, Key=self.prefix + key)["Body"]
            return stream

    @storage_errors()
    def copy_to(self, key: str, target: Path) -> None:
        cached = self._cache / key
        try:
            os.utime(cached)  # marks the blob as recently used
            content = verify_content(key, cached.read_bytes())
        except (FileNotFoundError, Unavailable):  # not cached, or damaged by a power cut
            content = self.get(key)
            self._cache_copy(content, cached)
        target.write_bytes(content)

    def check(self) -> None:
        with self._translated_errors():
            self._s3.put_object(Bucket=self.bucket, Key=self.prefix + PROBE, Body=b"")

    def remove_partial_writes(self, before: float) -> int:
        """Return 0, because S3 keeps no partial objects."""
        return 0

    def _cache_copy(self, content: bytes, cached: Path) -> None:
        cached.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=self._incoming, delete=False) as file:
            file.write(content)
        os.replace(file.name, cached)  # atomic, even if another process writes the same copy
        _remove_least_recent(self._cache, MAX_CACHED)

    def _create_bucket(self) -> None:
        try:
            self._s3.create_bucket(Bucket=self.bucket, **self._bucket_options)
        except ClientError as error:
            if _code(error) not in EXISTS_CODES:  # another process created it first
                raise

    @contextmanager
    def _translated_errors(self, key: str = "") -> Iterator[None]:
        """Turn errors of boto3 into content-missing and storage-failed.

        A missing object becomes content-missing. Other errors become storage-failed.
        """
        try:
            yield
        except (ClientError, BotoCoreError, HTTPClientError) as error:
            if key and _code(error) in MISSING_CODES:
                log.error("blob %s is missing", key)
                raise CONTENT_MISSING(f"the content {key} is not in the store") from None
            log.warning("a request to bucket %s failed: %s", self.bucket, error)
            raise STORAGE_FAILED(
                f"the object store failed: {_code(error) or type(error).__name__}", retry_after=RETRY_SECONDS
            ) from error


def _remove_least_recent(folder: Path, limit: int) -> None:
    """Remove the least recently used files of the cache, down to `limit` files."""
    files = list(folder.glob("??/*"))
    with suppress(FileNotFoundError):  # another process may remove the same files
        for path in sorted(files, key=lambda path: path.stat().st_mtime, reverse=True)[limit:]:
            path.unlink()


def _code(error: Exception) -> str:
    """Return the error code of the server's response; empty if there was no response."""
    return str(error.response["Error"].get("Code", "")) if isinstance(error, ClientError) else ""


def _config(settings: Settings) -> Config:
    # A signed payload makes the server verify the SHA-256 of the body.
    s3: dict[str, Any] = {"payload_signing_enabled": True}
    if settings.s3_endpoint:
        s3["addressing_style"] = "path"  # self-hosted servers have no host name per bucket
    return Config(
        signature_version="s3v4",
        s3=s3,
        connect_timeout=3,
        read_timeout=20,
        retries={"mode": "standard", "total_max_attempts": 3},
        max_pool_connections=CONNECTIONS,
        tcp_keepalive=True,
        # Most other servers do not support AWS's checksum trailers; the signed payload replaces them.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
