"""Tests of the object stores: immutable blobs, named by content and written atomically."""

import hashlib
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from pydantic import SecretStr

from cupel_backend import submitted_runs
from cupel_backend.infrastructure.errors import Unavailable
from cupel_backend.infrastructure.object_store import Blobs, DirectoryBlobs, blob_key
from cupel_backend.infrastructure.s3_store import S3Blobs
from cupel_backend.infrastructure.settings import Settings
from cupel_backend.infrastructure.system import System, open_blobs
from support.backend_cast import ALICE, make_track, publish_qrels, submit
from support.patience import until
from support.service.service_sizes import Places

on_s3 = pytest.mark.parametrize("size", ["production"], indirect=True)

WRITER = """
import hashlib
import sys
from pathlib import Path
from cupel_backend.infrastructure.object_store import DirectoryBlobs
blobs = DirectoryBlobs(Path(sys.argv[1]))
print("writing", flush=True)
source = Path(sys.argv[1]) / "source"
for number in range(10**6):
    content = number.to_bytes(4, "big") * 50_000
    source.write_bytes(content)
    blobs.put_file(source, hashlib.sha256(content).hexdigest())
"""


@pytest.fixture
def blobs(at: dict[str, Any]) -> Blobs:
    """Return a prepared store of this size."""
    settings = Settings(**at)
    settings.prepare()
    blobs = open_blobs(settings)
    blobs.prepare()
    return blobs


def put(blobs: Blobs, source: Path, content: bytes) -> str:
    """Write `content` to a file at `source` and store it; return the name of the blob."""
    source.write_bytes(content)
    return blobs.put_file(source, hashlib.sha256(content).hexdigest())


def files(root: Path) -> list[Path]:
    return [path for path in root.glob("??/*") if path.is_file()]


def test_stored_content_is_read_back(blobs: Blobs, tmp_path: Path) -> None:
    for content in (b"content", b"", bytes(range(256)) * 40_000):
        key = put(blobs, tmp_path / "upload", content)
        assert blobs.get(key) == content
        with blobs.open(key) as stream:
            assert stream.read(3) == content[:3]
            assert stream.read() == content[3:]


def test_frequently_used_blob_is_cached_as_a_file(
    blobs: Blobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cupel_backend.infrastructure.s3_store.MAX_CACHED", 2)
    keys = [put(blobs, tmp_path / "upload", bytes([number])) for number in range(4)]
    for number, key in enumerate((*keys, keys[0], keys[0])):
        blobs.copy_to(key, tmp_path / str(number))
    assert [(tmp_path / str(number)).read_bytes()[0] for number in range(6)] == [0, 1, 2, 3, 0, 0]
    with pytest.raises(Unavailable) as refusal:
        blobs.copy_to("00/0000", tmp_path / "none")
    assert refusal.value.code == "content-missing"
    if isinstance(blobs, S3Blobs):
        assert len(list((tmp_path / "data" / "cache").glob("??/*"))) == 2


def test_equal_content_is_stored_once(blobs: Blobs, tmp_path: Path) -> None:
    keys = {put(blobs, tmp_path / "upload", b"content") for _ in range(2)}
    assert len(keys) == 1
    if isinstance(blobs, DirectoryBlobs):
        assert len(files(blobs.root)) == 1


def test_store_can_be_prepared_repeatedly(blobs: Blobs) -> None:
    blobs.prepare()
    blobs.check()


@pytest.fixture
def other_file_system(tmp_path: Path) -> Iterator[Path]:
    """Yield a folder of another file system."""
    others = [
        folder
        for folder in map(Path, ("/dev/shm", "/var/tmp"))
        if folder.is_dir() and folder.stat().st_dev != tmp_path.stat().st_dev
    ]
    if not others:
        pytest.skip("this machine has no second file system")
    with TemporaryDirectory(dir=others[0]) as folder:
        yield Path(folder)


def test_file_of_another_file_system_is_stored(other_file_system: Path, tmp_path: Path) -> None:
    blobs = DirectoryBlobs(other_file_system)
    for _ in range(2):
        key = put(blobs, tmp_path / "upload", b"content")
        assert blobs.get(key) == b"content"
    assert list((other_file_system / "tmp").iterdir()) == []


def test_submission_is_stored_when_blobs_are_on_another_file_system(
    open_at: Callable[..., System], other_file_system: Path
) -> None:
    system = open_at(blobs=other_file_system.as_uri())
    make_track(system)
    publish_qrels(system)
    assert submit(system).state == "queued"
    assert len(files(other_file_system)) == 3


def test_missing_blob_has_a_clear_error(blobs: Blobs) -> None:
    for look in (blobs.get, blobs.open):
        with pytest.raises(Unavailable) as refusal:
            look("00/0000")
        assert refusal.value.code == "content-missing"


def test_changed_blob_is_detected(blobs: Blobs, tmp_path: Path) -> None:
    (tmp_path / "upload").write_bytes(b"other content")
    key = blobs.put_file(tmp_path / "upload", hashlib.sha256(b"content").hexdigest())
    with pytest.raises(Unavailable) as refusal:
        blobs.get(key)
    assert refusal.value.code == "content-damaged"
    assert refusal.value.retry_after is None


def test_missing_run_file_has_a_clear_error(system: System, new_place: Places) -> None:
    make_track(system)
    received = submit(system)
    other = new_place() or {"blobs": (system.settings.data / "other").as_uri()}
    system = replace(system, blobs=open_blobs(Settings(data=system.settings.data, **other)))
    system.blobs.prepare()
    with pytest.raises(Unavailable) as refusal:
        submitted_runs.open_file(system, ALICE, received.run.id)
    assert refusal.value.code == "content-missing"


def test_storage_failure_is_temporary_unavailability(tmp_path: Path) -> None:
    (tmp_path / "blobs").write_text("a file where the folder should be")
    with pytest.raises(Unavailable) as refusal:
        put(DirectoryBlobs(tmp_path / "blobs"), tmp_path / "upload", b"content")
    assert refusal.value.code == "storage-failed"
    assert refusal.value.retry_after


def test_equal_content_can_be_stored_concurrently(blobs: Blobs, tmp_path: Path) -> None:
    keys: list[str] = []
    content = b"x" * 1_000_000

    def put_file(name: str) -> None:
        keys.append(put(blobs, tmp_path / name, content))

    threads = [threading.Thread(target=put_file, args=(name,)) for name in "abcdefgh"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(keys) == 8
    assert len(set(keys)) == 1
    assert blobs.get(keys[0]) == content


def test_killed_writer_leaves_only_complete_blobs(tmp_path: Path) -> None:
    for _ in range(5):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE)
        assert writer.stdout is not None
        writer.stdout.readline()
        seen = len(files(tmp_path))
        until(lambda seen=seen: len(files(tmp_path)) >= seen + 3)
        writer.kill()
        writer.communicate()
    for path in files(tmp_path):
        assert hashlib.sha256(path.read_bytes()).hexdigest() == path.name


def test_old_incomplete_files_are_removed(tmp_path: Path) -> None:
    blobs = DirectoryBlobs(tmp_path / "blobs")
    key = put(blobs, tmp_path / "upload", b"content")
    blobs.check()
    (blobs.root / "tmp" / "left").write_bytes(b"half")
    assert blobs.remove_partial_writes(before=0) == 0
    assert blobs.remove_partial_writes(before=time.time() + 10) == 1
    assert blobs.get(key) == b"content"


def test_unreachable_store_is_temporary_unavailability(unreachable_blobs: S3Blobs, tmp_path: Path) -> None:
    for call in (
        lambda: put(unreachable_blobs, tmp_path / "upload", b"content"),
        lambda: unreachable_blobs.get("00/0000"),
        lambda: unreachable_blobs.open("00/0000"),
        unreachable_blobs.check,
        unreachable_blobs.prepare,
    ):
        with pytest.raises(Unavailable) as refusal:
            call()
        assert refusal.value.code == "storage-failed"
        assert refusal.value.retry_after


@pytest.fixture
def unreachable_blobs(tmp_path: Path) -> S3Blobs:
    settings = Settings(
        data=tmp_path, blobs="s3://b", s3_endpoint="http://127.0.0.1:1", s3_key="k", s3_secret=SecretStr("s")
    )
    return S3Blobs(settings, bucket="b")


def test_damaged_cached_judgments_are_fetched_again(blobs: Blobs, tmp_path: Path, at: dict[str, Any]) -> None:
    key = put(blobs, tmp_path / "upload", b"content")
    blobs.copy_to(key, tmp_path / "first")
    damaged = (tmp_path / "data" / ("cache" if isinstance(blobs, S3Blobs) else "blobs")) / key
    for spoilt in (b"", b"c0ntent"):
        damaged.write_bytes(spoilt)
        if isinstance(blobs, S3Blobs):
            blobs.copy_to(key, tmp_path / "again")
            assert (tmp_path / "again").read_bytes() == b"content"
        else:
            with pytest.raises(Unavailable) as refusal:
                blobs.copy_to(key, tmp_path / "again")
            assert refusal.value.code == "content-damaged"


@on_s3
def test_wrong_secret_is_named_in_the_error(at: dict[str, Any]) -> None:
    wrong = open_blobs(Settings(**at | {"s3_secret": "wrong"}))
    with pytest.raises(Unavailable, match=r"SignatureDoesNotMatch|Forbidden|403"):
        wrong.check()


@on_s3
def test_missing_bucket_is_created(at: dict[str, Any], tmp_path: Path) -> None:
    blobs = open_blobs(Settings(**at | {"blobs": f"s3://bucket-{uuid4().hex}"}))
    with pytest.raises(Unavailable, match="NoSuchBucket"):
        blobs.check()
    threads = [threading.Thread(target=blobs.prepare) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    blobs.check()
    assert blobs.get(put(blobs, tmp_path / "upload", b"content")) == b"content"


@contextmanager
def tampering_proxy(host: str, port: int) -> Iterator[int]:
    """Yield the port of a proxy that forwards requests to a server, but changes a byte of each body."""

    class Tampering(StreamRequestHandler):
        def handle(self) -> None:
            with socket.create_connection((host, port)) as server:
                back = threading.Thread(target=self.answer, args=(server,))
                back.start()
                while sent := self.request.recv(1 << 16):
                    server.sendall(sent.replace(b"the content", b"the c0ntent"))
                server.shutdown(socket.SHUT_WR)
                back.join()

        def answer(self, server: socket.socket) -> None:
            while answered := server.recv(1 << 16):
                self.request.sendall(answered)

    with ThreadingTCPServer(("127.0.0.1", 0), Tampering) as proxy:
        proxy.daemon_threads = True
        threading.Thread(target=proxy.serve_forever).start()
        yield proxy.server_address[1]
        proxy.shutdown()


@on_s3
def test_bytes_changed_in_transit_are_refused(at: dict[str, Any], tmp_path: Path) -> None:
    """Check that the store verifies the signed digest of the body."""
    server = urlsplit(at["s3_endpoint"])
    with tampering_proxy(server.hostname or "", server.port or 80) as port:
        blobs = open_blobs(Settings(**at | {"s3_endpoint": f"http://127.0.0.1:{port}"}))
        with pytest.raises(Unavailable):
            put(blobs, tmp_path / "upload", b"the content of a run")
    with pytest.raises(Unavailable) as refusal:
        open_blobs(Settings(**at)).get(blob_key(hashlib.sha256(b"the content of a run").hexdigest()))
    assert refusal.value.code == "content-missing"
