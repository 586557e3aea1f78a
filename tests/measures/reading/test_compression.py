"""Plain and compressed files, damage, and limits on bytes."""

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


PACKED = {
    "plain": TEXT,
    "gzip": gzip.compress(TEXT),
    "gzip in parts": gzip.compress(TEXT[:1000]) + gzip.compress(TEXT[1000:]),
    "bzip2": bz2.compress(TEXT),
    "bzip2 in parts": bz2.compress(TEXT[:1000]) + bz2.compress(TEXT[1000:]),
    "zstd": zstandard.ZstdCompressor(write_checksum=True).compress(TEXT),
    "zstd in frames": zstandard.compress(TEXT[:99]) + zstandard.compress(TEXT[99:]),
    "zstd after a frame to skip": struct.pack("<II", 0x184D2A57, 4) + b"skip" + zstandard.compress(TEXT),
    "zip": zipped("folder/run.txt"),
    "zip with a strange name": zipped("__MACOSX_run.txt"),
    "zip with bzip2": zipped("run.txt", method=zipfile.ZIP_BZIP2),
    "zip with LZMA": zipped("run.txt", method=zipfile.ZIP_LZMA),
    "zip from a Mac": zipped("run.txt", "__MACOSX/._run.txt"),
}
ARCHIVES = {kind: data for kind, data in PACKED.items() if kind != "plain"}


class Pipe(io.RawIOBase):
    """A stream that cannot be rewound and gives a few bytes at a time, as a socket does."""

    def __init__(self, data: bytes) -> None:
        self._data = io.BytesIO(data)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        data = self._data.read(min(len(buffer), 1000))
        buffer[: len(data)] = data
        return len(data)


def code_of(data: bytes, limits: Limits | None = None) -> str:
    with pytest.raises(Refused) as refused:
        read_run(data, limits=limits)
    return refused.value.findings.errors[0].code


def given(data: bytes) -> int:
    """How many plain bytes come of `data` before it is refused."""
    taken = 0
    try:
        with open_plain(data) as stream:
            while chunk := stream.read(1 << 16):
                taken += len(chunk)
    except Refused:
        return taken
    pytest.fail("it was not refused")


@pytest.mark.parametrize("kind", PACKED)
def test_the_kind_is_known_by_the_bytes(kind: str, tmp_path: Path) -> None:
    wanted = digest(read_run(TEXT).ranking)
    path = tmp_path / "run.strange"
    path.write_bytes(PACKED[kind])
    for source in (path, PACKED[kind], io.BytesIO(PACKED[kind]), Pipe(PACKED[kind])):
        assert digest(read_run(source).ranking) == wanted  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", PACKED)
def test_a_stream_is_joined_as_a_file_is(kind: str) -> None:
    qrels = read_qrels(b"1 0 document-3 1\n1 0 document-19000 1\n")
    assert join_run(Pipe(PACKED[kind]), qrels).rank.tolist() in ([3, 19000], [19000, 3])  # type: ignore[arg-type]


def test_a_stream_that_was_passed_in_stays_open() -> None:
    stream = io.BytesIO(PACKED["gzip"])
    read_run(stream)
    assert not stream.closed


@pytest.mark.parametrize("kind", ARCHIVES)
@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
def test_an_archive_cut_short_is_refused(kind: str, share: float) -> None:
    data = ARCHIVES[kind]
    assert code_of(data[: int(len(data) * share)]) == "file-corrupt"


@pytest.mark.parametrize("kind", ["gzip", "bzip2", "zstd", "zip"])
def test_a_damaged_archive_is_refused(kind: str) -> None:
    data = bytearray(ARCHIVES[kind])
    data[len(data) // 2] ^= 0xFF
    data[len(data) // 3] ^= 0xFF
    assert code_of(bytes(data)) in {"file-corrupt", "run-not-text", "run-columns", "limit-line"}


@pytest.mark.parametrize("kind", ["gzip", "bzip2", "zstd"])
@pytest.mark.parametrize("after", ["rubbish", "a part cut short", "a damaged part"])
def test_whatever_follows_the_first_part_of_an_archive_is_checked(kind: str, after: str) -> None:
    data = PACKED[kind]
    damaged = bytes([data[0] ^ 1]) + data[1:]
    more = {"rubbish": b"rubbish", "a part cut short": data[:-20], "a damaged part": damaged}[after]
    assert code_of(data + more) == "file-corrupt"


SMALL = TEXT[:3000]
SMALL_ARCHIVES = {
    "gzip": gzip.compress(SMALL),
    "bzip2": bz2.compress(SMALL),
    "zstd": zstandard.ZstdCompressor(write_checksum=True).compress(SMALL),
    **{f"zip {method}": zipped("run.txt", data=SMALL, method=method) for method in (0, 8, 12, 14)},
}


@pytest.mark.parametrize("kind", SMALL_ARCHIVES)
def test_a_mutated_archive_is_read_or_refused(kind: str) -> None:
    chance, refusals = random.Random(kind), 0
    for _ in range(300):
        data = bytearray(SMALL_ARCHIVES[kind])
        for _ in range(chance.randint(1, 3)):
            data[chance.choice([chance.randrange(len(data)), chance.randrange(60)])] = chance.randrange(256)
        if chance.random() < 0.2:
            del data[chance.randrange(len(data)) :]
        try:
            read_run(bytes(data))
        except Refused:
            refusals += 1
    assert refusals > 150


def test_an_encrypted_zip_is_called_by_its_name() -> None:
    data = bytearray(PACKED["zip"])
    data[data.find(b"PK\x03\x04") + 6] |= 1
    data[data.rfind(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(Refused) as refused:
        read_run(bytes(data))
    finding = refused.value.findings.errors[0]
    assert finding.code == "file-encrypted"
    assert finding.message == "folder/run.txt in the archive is encrypted"


def test_a_zstd_window_that_is_too_large_is_a_limit_with_a_name() -> None:
    settings = zstandard.ZstdCompressionParameters(window_log=28, enable_ldm=True)
    packer = zstandard.ZstdCompressor(compression_params=settings).compressobj()
    data = packer.compress(TEXT) + packer.flush()
    assert code_of(data) == "limit-window"
    assert read_run(data, limits=Limits(window=1 << 28)).tag == "tag"


def test_an_archive_whose_checksum_is_wrong_is_refused() -> None:
    data = bytearray(PACKED["gzip"])
    data[-6] ^= 0xFF
    assert code_of(bytes(data)) == "file-corrupt"


def test_what_an_archive_gave_before_it_broke_is_checked_too() -> None:
    text = b"1 Q0 a 1 x tag\n" + TEXT
    with pytest.raises(Refused) as refused:
        read_run(gzip.compress(text)[:-5])
    assert {finding.code for finding in refused.value.findings} == {"run-score", "file-corrupt"}


@pytest.mark.parametrize("members", [("a.txt", "b.txt"), ()], ids=["two files", "none"])
def test_a_zip_has_one_file(members: tuple[str, ...]) -> None:
    assert code_of(zipped(*members)) == "file-members"


def test_limits_on_bytes_are_named() -> None:
    packed = PACKED["gzip"]
    assert code_of(packed, Limits(compressed=len(packed) - 1)) == "limit-compressed"
    assert code_of(packed, Limits(expanded=len(TEXT) - 1)) == "limit-expanded"
    assert code_of(packed, Limits(ratio=2, ratio_from=1000)) == "limit-ratio"
    assert read_run(packed, limits=Limits(compressed=len(packed), expanded=len(TEXT))).tag == "tag"


@pytest.mark.parametrize(
    "pack", [gzip.compress, bz2.compress, zstandard.compress], ids=["gzip", "bzip2", "zstd"]
)
def test_a_bomb_is_stopped_where_the_limit_is(pack: object) -> None:
    bomb = pack(b"\n" * 80_000_000)  # type: ignore[operator]
    assert code_of(bomb) == "limit-ratio"
    assert given(bomb) <= 32 << 20


def test_a_folder_is_no_finding(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="directory"):
        read_run(tmp_path)
