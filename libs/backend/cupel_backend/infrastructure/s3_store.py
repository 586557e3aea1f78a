"""Blobs in a bucket of any server that speaks S3. The one file that knows boto3.

An object appears whole or not at all, and its key is its content, so nothing is ever overwritten with
something else: that needs neither locks nor conditional writes, which few S3 servers have.
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

GONE = {"NoSuchKey", "404", "NotFound"}
THERE = {"BucketAlreadyOwnedByYou", "BucketAlreadyExists"}

PROBE = "probe"
"""The object that shows that objects can be stored."""

CACHED = 32
"""Blobs of which a copy is kept at hand."""


@cache
def _session() -> boto3.session.Session:
    """One for all: to read what it knows of S3 takes a while."""
    return boto3.session.Session()


class S3Blobs:
    """Blobs under a prefix of a bucket. Safe to use from several threads, not across a fork."""

    def __init__(self, settings: Settings, *, bucket: str, prefix: str = "") -> None:
        self.bucket = bucket
        self.prefix = f"{prefix}/" if prefix else ""
        self._cache = settings.data.absolute() / "cache"
        self._incoming = settings.incoming  # where what a killed process leaves half written is tidied up
        # AWS wants to be told where a bucket is to be, except for the region that it began with
        far = not settings.s3_endpoint and settings.s3_region != "us-east-1"
        place = {"CreateBucketConfiguration": {"LocationConstraint": settings.s3_region}}
        self._elsewhere: dict[str, Any] = place if far else {}
        self._s3 = _session().client(
            "s3",
            endpoint_url=settings.s3_endpoint or None,
            region_name=settings.s3_region,
            aws_access_key_id=settings.s3_key or None,
            aws_secret_access_key=settings.s3_secret.get_secret_value() or None,
            config=_config(settings),
        )

    def prepare(self) -> None:
        with self._asking():
            try:
                self._s3.head_bucket(Bucket=self.bucket)
            except ClientError as error:
                if _code(error) not in {*GONE, "NoSuchBucket"}:
                    raise
                self._create()

    def put_file(self, path: Path, digest: str) -> str:
        key = blob_key(digest)
        # Without a look whether it is there: nearly all is new, and storing it again changes nothing.
        with storage_errors(), path.open("rb") as file, self._asking():
            self._s3.put_object(Bucket=self.bucket, Key=self.prefix + key, Body=file)
        return key

    def get(self, key: str) -> bytes:
        with self._asking(key), self.open(key) as stream:
            return verify_content(key, stream.read())

    def open(self, key: str) -> BinaryIO:
        with self._asking(key):
            stream: BinaryIO = self._s3.get_object(Bucket=self.bucket, Key=self.prefix + key)["Body"]
            return stream

    @storage_errors()
    def copy_to(self, key: str, target: Path) -> None:
        cached = self._cache / key
        try:
            os.utime(cached)  # so that what is in use stays
            content = verify_content(key, cached.read_bytes())
        except (
            FileNotFoundError,
            Unavailable,
        ):  # not here, or spoilt by a power cut
            content = self.get(key)
            self._remember(content, cached)
        target.write_bytes(content)

    def check(self) -> None:
        with self._asking():
            self._s3.put_object(Bucket=self.bucket, Key=self.prefix + PROBE, Body=b"")

    def remove_partial_writes(self, before: float) -> int:
        """Nothing: an object is never half written."""
        return 0

    def _remember(self, content: bytes, cached: Path) -> None:
        cached.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=self._incoming, delete=False) as file:
            file.write(content)
        os.replace(file.name, cached)  # whole or not there, whoever else does the same
        _keep_newest(self._cache, CACHED)

    def _create(self) -> None:
        try:
            self._s3.create_bucket(Bucket=self.bucket, **self._elsewhere)
        except ClientError as error:
            if _code(error) not in THERE:  # another process was faster
                raise

    @contextmanager
    def _asking(self, key: str = "") -> Iterator[None]:
        """Within it, an object that is gone is content-missing, all else a failure of the storage."""
        try:
            yield
        except (ClientError, BotoCoreError, HTTPClientError) as error:
            if key and _code(error) in GONE:
                log.error("the blob %s is gone", key)
                raise CONTENT_MISSING(f"the content {key} is not in the store") from None
            log.warning("the bucket %s failed: %s", self.bucket, error)
            raise STORAGE_FAILED(
                f"the object store failed: {_code(error) or type(error).__name__}", retry_after=RETRY_SECONDS
            ) from error


def _keep_newest(folder: Path, most: int) -> None:
    """Remove what was last asked for longest ago, down to `most` files."""
    files = list(folder.glob("??/*"))
    with suppress(FileNotFoundError):  # another process does the same
        for path in sorted(files, key=lambda path: path.stat().st_mtime, reverse=True)[most:]:
            path.unlink()


def _code(error: Exception) -> str:
    """The word by which the server says what is wrong; empty where it did not answer."""
    return str(error.response["Error"].get("Code", "")) if isinstance(error, ClientError) else ""


def _config(settings: Settings) -> Config:
    s3: dict[str, Any] = {
        "payload_signing_enabled": True
    }  # the server checks the SHA-256 of what it was sent
    if settings.s3_endpoint:
        s3["addressing_style"] = "path"  # a server of one's own has no host name for each bucket
    return Config(
        signature_version="s3v4",
        s3=s3,
        connect_timeout=3,
        read_timeout=20,
        retries={"mode": "standard", "total_max_attempts": 3},
        max_pool_connections=CONNECTIONS,
        tcp_keepalive=True,
        # AWS's own checksums in trailers are unknown to most other servers; signing does their work.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
