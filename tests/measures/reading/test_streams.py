"""Plain and compressed files, damage, and limits on bytes."""

import bz2
import gzip
import io
import zipfile
from pathlib import Path

import pytest
import zstandard

from cupel_measures.findings import Refused
from cupel_measures.reading.qrels import read_qrels
from cupel_measures.reading.runs import Limits, digest, join_run, read_run
from cupel_measures.reading.streams import open_plain

TEXT = b"".join(f"1 Q0 document-{i} {i} {-i / 7} tag\n".encode() for i in range(1, 20_000))


def zipped(*members: str, data: bytes = TEXT) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for member in members:
            file.writestr(member, data)
    return archive.getvalue()


PACKED = {
    "plain": TEXT,
    "gzip": gzip.compress(TEXT),
    "gzip in parts": gzip.compress(TEXT[:1000]) + gzip.compress(TEXT[1000:]),
    "bzip2": bz2.compress(TEXT),
    "zstd": zstandard.ZstdCompressor(write_checksum=True).compress(TEXT),
    "zstd in frames": zstandard.compress(TEXT[:99]) + zstandard.compress(TEXT[99:]),
    "zip": zipped("folder/run.txt"),
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
