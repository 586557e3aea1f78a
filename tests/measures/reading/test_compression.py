"""Tests of reading plain and compressed files: formats, damaged archives, and size limits."""

import bz2
import gzip
import io
import random
import struct
import zipfile
from pathlib import Path

import pytest
import zstandard

from cupel_measures.findings import Refused
from cupel_measures.reading.compression import open_plain
from cupel_measures.reading.qrels_files import read_qrels
from cupel_measures.reading.run_files import Limits, digest, join_run, read_run

TEXT = b"".join(f"1 Q0 document-{i} {i} {-i / 7} tag\n".encode() for i in range(1, 20_000))


def zipped(*members: str, data: bytes = TEXT, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", method) as file:
        for member in members:
            file.writestr(member, data)
    return archive.getvalue()


COMPRESSED = {
    "plain": TEXT,
    "gzip": gzip.compress(TEXT),
    "gzip with two members": gzip.compress(TEXT[:1000]) + gzip.compress(TEXT[1000:]),
    "bzip2": bz2.compress(TEXT),
    "bzip2 with two streams": bz2.compress(TEXT[:1000]) + bz2.compress(TEXT[1000:]),
    "zstd": zstandard.ZstdCompressor(write_checksum=True).compress(TEXT),
    "zstd with two frames": zstandard.compress(TEXT[:99]) + zstandard.compress(TEXT[99:]),
    "zstd after a skippable frame": struct.pack("<II", 0x184D2A57, 4) + b"skip" + zstandard.compress(TEXT),
    "zip": zipped("folder/run.txt"),
    "zip with an unusual file name": zipped("__MACOSX_run.txt"),
    "zip with bzip2": zipped("run.txt", method=zipfile.ZIP_BZIP2),
    "zip with LZMA": zipped("run.txt", method=zipfile.ZIP_LZMA),
    "zip from a Mac": zipped("run.txt", "__MACOSX/._run.txt"),
}
ARCHIVES = {kind: data for kind, data in COMPRESSED.items() if kind != "plain"}


class Pipe(io.RawIOBase):
    """A stream that cannot be rewound and returns a few bytes at a time, like a socket."""

    def __init__(self, data: bytes) -> None:
        self._data = io.BytesIO(data)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        data = self._data.read(min(len(buffer), 1000))
        buffer[: len(data)] = data
        return len(data)


def code_of(data: bytes, limits: Limits | None = None) -> str:
    """Return the code of the first error."""
    with pytest.raises(Refused) as refused:
        read_run(data, limits=limits)
    return refused.value.findings.errors[0].code


def decompressed_size(data: bytes) -> int:
    """Return the number of plain bytes that are read from `data` before it is rejected."""
    taken = 0
    try:
        with open_plain(data) as stream:
            while chunk := stream.read(1 << 16):
                taken += len(chunk)
    except Refused:
        return taken
    pytest.fail("the archive was not rejected")


@pytest.mark.parametrize("kind", COMPRESSED)
def test_format_is_detected_from_the_content(kind: str, tmp_path: Path) -> None:
    expected = digest(read_run(TEXT).ranking)
    path = tmp_path / "run.strange"
    path.write_bytes(COMPRESSED[kind])
    for source in (path, COMPRESSED[kind], io.BytesIO(COMPRESSED[kind]), Pipe(COMPRESSED[kind])):
        assert digest(read_run(source).ranking) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", COMPRESSED)
def test_joining_a_stream_equals_joining_a_file(kind: str) -> None:
    qrels = read_qrels(b"1 0 document-3 1\n1 0 document-19000 1\n")
    assert join_run(Pipe(COMPRESSED[kind]), qrels).rank.tolist() in ([3, 19000], [19000, 3])  # type: ignore[arg-type]


def test_caller_stream_stays_open() -> None:
    stream = io.BytesIO(COMPRESSED["gzip"])
    read_run(stream)
    assert not stream.closed


@pytest.mark.parametrize("kind", ARCHIVES)
@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
def test_truncated_archive_is_rejected(kind: str, share: float) -> None:
    data = ARCHIVES[kind]
    assert code_of(data[: int(len(data) * share)]) == "file-corrupt"


@pytest.mark.parametrize("kind", ["gzip", "bzip2", "zstd", "zip"])
def test_damaged_archive_is_rejected(kind: str) -> None:
    data = bytearray(ARCHIVES[kind])
    data[len(data) // 2] ^= 0xFF
    data[len(data) // 3] ^= 0xFF
    assert code_of(bytes(data)) in {"file-corrupt", "run-not-text", "run-columns", "limit-line"}


@pytest.mark.parametrize("kind", ["gzip", "bzip2", "zstd"])
@pytest.mark.parametrize("after", ["garbage", "a truncated member", "a damaged member"])
def test_data_after_the_first_member_is_checked(kind: str, after: str) -> None:
    data = COMPRESSED[kind]
    damaged = bytes([data[0] ^ 1]) + data[1:]
    trailing = {"garbage": b"rubbish", "a truncated member": data[:-20], "a damaged member": damaged}[after]
    assert code_of(data + trailing) == "file-corrupt"


SMALL = TEXT[:3000]
SMALL_ARCHIVES = {
    "gzip": gzip.compress(SMALL),
    "bzip2": bz2.compress(SMALL),
    "zstd": zstandard.ZstdCompressor(write_checksum=True).compress(SMALL),
    **{f"zip {method}": zipped("run.txt", data=SMALL, method=method) for method in (0, 8, 12, 14)},
}


@pytest.mark.parametrize("kind", SMALL_ARCHIVES)
def test_mutated_archive_is_read_or_rejected(kind: str) -> None:
    rng, refusals = random.Random(kind), 0
    for _ in range(300):
        data = bytearray(SMALL_ARCHIVES[kind])
        for _ in range(rng.randint(1, 3)):
            data[rng.choice([rng.randrange(len(data)), rng.randrange(60)])] = rng.randrange(256)
        if rng.random() < 0.2:
            del data[rng.randrange(len(data)) :]
        try:
            read_run(bytes(data))
        except Refused:
            refusals += 1
    assert refusals > 150


def test_encrypted_zip_has_its_own_error() -> None:
    data = bytearray(COMPRESSED["zip"])
    data[data.find(b"PK\x03\x04") + 6] |= 1
    data[data.rfind(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(Refused) as refused:
        read_run(bytes(data))
    finding = refused.value.findings.errors[0]
    assert finding.code == "file-encrypted"
    assert finding.message == "folder/run.txt in the archive is encrypted"


def test_zstd_window_above_the_limit_is_rejected() -> None:
    settings = zstandard.ZstdCompressionParameters(window_log=28, enable_ldm=True)
    packer = zstandard.ZstdCompressor(compression_params=settings).compressobj()
    data = packer.compress(TEXT) + packer.flush()
    assert code_of(data) == "limit-window"
    assert read_run(data, limits=Limits(window=1 << 28)).tag == "tag"


def test_archive_with_a_wrong_checksum_is_rejected() -> None:
    data = bytearray(COMPRESSED["gzip"])
    data[-6] ^= 0xFF
    assert code_of(bytes(data)) == "file-corrupt"


def test_lines_before_the_damage_are_checked() -> None:
    text = b"1 Q0 a 1 x tag\n" + TEXT
    with pytest.raises(Refused) as refused:
        read_run(gzip.compress(text)[:-5])
    assert {finding.code for finding in refused.value.findings} == {"run-score", "file-corrupt"}


@pytest.mark.parametrize("members", [("a.txt", "b.txt"), ()], ids=["two files", "none"])
def test_zip_without_exactly_one_file_is_rejected(members: tuple[str, ...]) -> None:
    assert code_of(zipped(*members)) == "file-members"


def test_each_size_limit_has_its_own_error() -> None:
    packed = COMPRESSED["gzip"]
    assert code_of(packed, Limits(compressed=len(packed) - 1)) == "limit-compressed"
    assert code_of(packed, Limits(expanded=len(TEXT) - 1)) == "limit-expanded"
    assert code_of(packed, Limits(ratio=2, ratio_from=1000)) == "limit-ratio"
    assert read_run(packed, limits=Limits(compressed=len(packed), expanded=len(TEXT))).tag == "tag"


@pytest.mark.parametrize(
    "pack", [gzip.compress, bz2.compress, zstandard.compress], ids=["gzip", "bzip2", "zstd"]
)
def test_decompression_bomb_is_stopped_at_the_limit(pack: object) -> None:
    bomb = pack(b"\n" * 80_000_000)  # type: ignore[operator]
    assert code_of(bomb) == "limit-ratio"
    assert decompressed_size(bomb) <= 32 << 20


def test_directory_raises_os_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="directory"):
        read_run(tmp_path)
