"""Blobs: immutable, named by content, whole or not there."""

import hashlib
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from cupel_backend.blobs import DirectoryBlobs, open_blobs

WRITER = """
import sys
from pathlib import Path
from cupel_backend.blobs import DirectoryBlobs
blobs = DirectoryBlobs(Path(sys.argv[1]))
print("writing", flush=True)
for number in range(10**6):
    blobs.put(number.to_bytes(4, "big") * 50_000)
"""


@pytest.fixture
def blobs(tmp_path: Path) -> DirectoryBlobs:
    return DirectoryBlobs(tmp_path)


def files(root: Path) -> list[Path]:
    return [path for path in root.glob("??/*") if path.is_file()]


def test_what_is_put_is_got_back(blobs: DirectoryBlobs) -> None:
    key = blobs.put(b"content")
    assert blobs.get(key) == b"content"
    with blobs.open(key) as stream:
        assert stream.read(3) == b"con"


def test_the_same_content_is_kept_once(blobs: DirectoryBlobs, tmp_path: Path) -> None:
    assert blobs.put(b"content") == blobs.put(b"content")
    assert len(files(tmp_path)) == 1


def test_a_file_is_taken_over_under_the_name_of_its_content(blobs: DirectoryBlobs, tmp_path: Path) -> None:
    path = tmp_path / "upload"
    for _ in range(2):
        path.write_bytes(b"content")
        key = blobs.put_file(path, hashlib.sha256(b"content").hexdigest())
    assert key == blobs.put(b"content")
    assert blobs.get(key) == b"content"


def test_a_missing_blob_is_a_key_error(blobs: DirectoryBlobs) -> None:
    with pytest.raises(KeyError):
        blobs.get("00/0000")


def test_putting_the_same_content_at_the_same_time_does_no_harm(blobs: DirectoryBlobs) -> None:
    keys: list[str] = []
    content = b"x" * 1_000_000
    threads = [threading.Thread(target=lambda: keys.append(blobs.put(content))) for _ in range(8)]
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
    key = blobs.put(b"content")
    (tmp_path / "tmp" / "left").write_bytes(b"half")
    assert blobs.tidy(before=0) == 0
    assert blobs.tidy(before=time.time() + 10) == 1
    assert blobs.get(key) == b"content"


def test_an_address_of_another_kind_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="CUPEL_BLOBS"):
        open_blobs("ftp://somewhere/")
