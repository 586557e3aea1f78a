"""Blobs: immutable, named by content, whole or not there."""

import hashlib
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from backend.cast import ALICE, make_track, publish_qrels, submit
from cupel_backend import runs
from cupel_backend.blobs import DirectoryBlobs, open_blobs
from cupel_backend.errors import Unavailable
from cupel_backend.system import System

WRITER = """
import hashlib
import sys
from pathlib import Path
from cupel_backend.blobs import DirectoryBlobs
blobs = DirectoryBlobs(Path(sys.argv[1]))
print("writing", flush=True)
source = Path(sys.argv[1]) / "source"
for number in range(10**6):
    content = number.to_bytes(4, "big") * 50_000
    source.write_bytes(content)
    blobs.put_file(source, hashlib.sha256(content).hexdigest())
"""


@pytest.fixture
def blobs(tmp_path: Path) -> DirectoryBlobs:
    return DirectoryBlobs(tmp_path / "blobs")


def put(blobs: DirectoryBlobs, source: Path, content: bytes) -> str:
    """Store `content` by way of a file at `source`."""
    source.write_bytes(content)
    return blobs.put_file(source, hashlib.sha256(content).hexdigest())


def files(root: Path) -> list[Path]:
    return [path for path in root.glob("??/*") if path.is_file()]


def test_what_is_put_is_got_back(blobs: DirectoryBlobs, tmp_path: Path) -> None:
    key = put(blobs, tmp_path / "upload", b"content")
    assert blobs.get(key) == b"content"
    with blobs.open(key) as stream:
        assert stream.read(3) == b"con"


def test_the_same_content_is_kept_once(blobs: DirectoryBlobs, tmp_path: Path) -> None:
    keys = {put(blobs, tmp_path / "upload", b"content") for _ in range(2)}
    assert len(keys) == len(files(blobs.root)) == 1


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Path]:
    """A folder of another file system."""
    memory = Path("/dev/shm")
    if not memory.is_dir() or memory.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no second file system here")
    with TemporaryDirectory(dir=memory) as folder:
        yield Path(folder)


def test_a_file_of_another_file_system_is_stored_too(elsewhere: Path, tmp_path: Path) -> None:
    blobs = DirectoryBlobs(elsewhere)
    for _ in range(2):
        key = put(blobs, tmp_path / "upload", b"content")
        assert blobs.get(key) == b"content"
    assert list((elsewhere / "tmp").iterdir()) == []


def test_submissions_are_kept_where_the_blobs_are_on_another_file_system(
    open_at: Callable[..., System], elsewhere: Path
) -> None:
    system = open_at(blobs=elsewhere.as_uri())
    make_track(system)
    publish_qrels(system)
    assert submit(system).state == "queued"
    assert len(files(elsewhere)) == 3


def test_a_missing_blob_is_a_clear_problem(blobs: DirectoryBlobs) -> None:
    for look in (blobs.get, blobs.open):
        with pytest.raises(Unavailable) as refusal:
            look("00/0000")
        assert refusal.value.code == "content-missing"


def test_a_run_whose_file_is_gone_is_a_clear_problem(system: System) -> None:
    make_track(system)
    received = submit(system)
    shutil.rmtree(system.settings.data / "blobs")
    with pytest.raises(Unavailable) as refusal:
        runs.open_file(system, ALICE, received.run.id)
    assert refusal.value.code == "content-missing"


def test_a_storage_that_fails_is_unavailable_for_now(tmp_path: Path) -> None:
    (tmp_path / "blobs").write_text("a file where the folder should be")
    with pytest.raises(Unavailable) as refusal:
        put(DirectoryBlobs(tmp_path / "blobs"), tmp_path / "upload", b"content")
    assert refusal.value.code == "storage-failed"
    assert refusal.value.retry_after


def test_putting_the_same_content_at_the_same_time_does_no_harm(
    blobs: DirectoryBlobs, tmp_path: Path
) -> None:
    keys: list[str] = []
    content = b"x" * 1_000_000

    def put_one(name: str) -> None:
        keys.append(put(blobs, tmp_path / name, content))

    threads = [threading.Thread(target=put_one, args=(name,)) for name in "abcdefgh"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(keys) == 8
    assert len(set(keys)) == 1
    assert blobs.get(keys[0]) == content


def test_a_writer_killed_at_any_moment_leaves_only_whole_blobs(tmp_path: Path) -> None:
    for _ in range(5):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE)
        assert writer.stdout is not None
        writer.stdout.readline()
        seen = len(files(tmp_path))
        while len(files(tmp_path)) < seen + 3:
            time.sleep(0.001)
        writer.kill()
        writer.communicate()
    for path in files(tmp_path):
        assert hashlib.sha256(path.read_bytes()).hexdigest() == path.name


def test_half_written_files_are_tidied_once_they_are_old(blobs: DirectoryBlobs, tmp_path: Path) -> None:
    key = put(blobs, tmp_path / "upload", b"content")
    blobs.check()
    (blobs.root / "tmp" / "left").write_bytes(b"half")
    assert blobs.tidy(before=0) == 0
    assert blobs.tidy(before=time.time() + 10) == 1
    assert blobs.get(key) == b"content"


def test_an_address_of_another_kind_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="CUPEL_BLOBS"):
        open_blobs("ftp://somewhere/")
