"""Opening what people upload: plain, gzip, bzip2, zstd, or zip with one member, within limits.

The kind is known by its first bytes, never by its name. Limits are enforced while bytes stream, so a
small archive that expands to a large one costs no more than the limit that stops it.
"""

import io
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from cupel_measures.findings import Finding, Findings, Refused, declare

Source = Path | bytes | BinaryIO


@dataclass(frozen=True)
class Limits:
    """How much of a file is read before it is refused.

    compressed, expanded: bytes. ratio: expanded to compressed bytes, looked at from `ratio_from`
    expanded bytes on. window: bytes that zstd has to remember. line: bytes in a line. lines, topics: in a
    file. depth: documents in a topic. document: bytes in a line of a texts file.
    """

    compressed: int = 512 << 20
    expanded: int = 2 << 30
    ratio: float = 200.0
    ratio_from: int = 8 << 20
    window: int = 128 << 20
    line: int = 8192
    lines: int = 50_000_000
    topics: int = 1_000_000
    depth: int = 100_000
    document: int = 64 << 20


ENCRYPTED_BITS = 0x41  # of a zip member's flags: any encryption, strong encryption
CORRUPT = declare(
    "file-corrupt",
    "error",
    "an archive is cut short or damaged",
    "make the archive again, and see that the whole of it is sent",
)
MEMBERS = declare(
    "file-members",
    "error",
    "a zip archive has not exactly one file in it",
    "send one file in an archive, or the file as it is",
)
ENCRYPTED = declare(
    "file-encrypted",
    "error",
    "an archive is encrypted",
    "make the archive without a password, or send the file as it is",
)


def _limit(name: str, what: str, remedy: str) -> str:
    return declare(f"limit-{name}", "error", f"the limit on {what} is reached", remedy)


COMPRESSED = _limit("compressed", "the bytes of a file as sent", "send a smaller file, or compress it")
EXPANDED = _limit("expanded", "the bytes of a file once expanded", "send a smaller file")
RATIO = _limit("ratio", "how far an archive may expand", "send the file as it is, or compressed otherwise")
WINDOW = _limit("window", "the bytes that zstd has to remember", "compress with `zstd --long=27` or less")
LINE = _limit("line", "the bytes of a line", "check that lines end with a newline; shorten ids and tag")
LINES = _limit("lines", "the lines of a file", "send fewer topics, or fewer documents for each")
TOPICS = _limit("topics", "the topics of a file", "send fewer topics")
DEPTH = _limit("depth", "the documents of a topic", "send fewer documents for each topic")
DOCUMENT = _limit("document", "the bytes of a document's line", "check that lines end with a newline")


def limit_reached(code: str, limit: float, **where: str | int | None) -> Finding:
    """The finding that says which limit (a setting, by its name) was reached, and where."""
    name = code.removeprefix("limit-")
    return Finding(code, f"more than {limit:,.0f}: the limit `{name}` is reached", **where)  # type: ignore[arg-type]


def name_of(source: Source) -> str | None:
    """The file name of a path; None for bytes and streams."""
    return source.name if isinstance(source, Path) else None


def again(source: Source, limits: Limits) -> Source:
    """A source that can be opened more than once: a stream that can't be rewound is read to bytes."""
    if isinstance(source, (Path, bytes)):
        return source
    data = source.read(limits.compressed + 1)
    while len(data) <= limits.compressed and (more := source.read(limits.compressed + 1 - len(data))):
        data += more
    return data


def open_plain(source: Source, limits: Limits | None = None) -> BinaryIO:
    """The plain bytes of `source` as a buffered stream, whose `readinto` fills what it is given.

    Closing it leaves a stream that was passed in open.

    Raises Refused, from here or while reading, where an archive is damaged or holds not exactly one
    file (file-corrupt, file-members), is encrypted (file-encrypted), or a limit on bytes is reached
    (limit-compressed, -expanded, -ratio, -window).
    OSError only where the file itself can't be read.
    """
    limits = limits or Limits()
    name = name_of(source)
    raw = _Counted(_binary(source), limits, name, owned=isinstance(source, (Path, bytes)))
    try:
        return io.BufferedReader(_Plain(raw, limits, name), 1 << 16)
    except BaseException:
        raw.close()
        raise


def _binary(source: Source) -> BinaryIO:
    if isinstance(source, bytes):
        return io.BytesIO(source)
    return source.open("rb", buffering=0) if isinstance(source, Path) else source


def _refuse(finding: Finding) -> NoReturn:
    findings = Findings()
    findings.add(finding)
    raise Refused(findings)


class _Counted(io.RawIOBase):
    """The bytes as sent: counts them against the limit, and can give its first ones twice."""

    def __init__(self, source: BinaryIO, limits: Limits, name: str | None, owned: bool) -> None:
        self._source, self._limit, self._name = source, limits.compressed, name
        self._owned = owned
        self.count = 0
        self._again = b""

    def peek(self, size: int) -> bytes:
        """The first `size` bytes (fewer in a short file), which reading will give again."""
        while len(self._again) < size and (more := self._source.read(size - len(self._again))):
            self._again += more
        return self._again

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        if self._again:
            got = min(len(buffer), len(self._again))
            buffer[:got], self._again = self._again[:got], self._again[got:]
        else:
            got = self._fill(buffer)
        self.count += got
        if self.count > self._limit:
            _refuse(limit_reached(COMPRESSED, self._limit, file=self._name))
        return got

    def _fill(self, buffer: memoryview) -> int:
        if hasattr(self._source, "readinto"):
            return self._source.readinto(buffer) or 0
        data = self._source.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if self._owned:
            self._source.close()
        super().close()


class _Plain(io.RawIOBase):
    """The expanded bytes: counts them against the limits and turns damage into a finding."""

    def __init__(self, raw: _Counted, limits: Limits, name: str | None) -> None:
        self._raw, self._limits, self._name = raw, limits, name
        self._count = 0
        self._damage: tuple[type[BaseException], ...] = (EOFError, OSError, zlib.error, struct.error)
        self._plain = self._expanded(raw.peek(4))

    def _expanded(self, magic: bytes) -> io.RawIOBase | BinaryIO:
        """What gives the expanded bytes, by the first bytes of the file."""
        if magic.startswith(b"\x1f\x8b"):
            import gzip  # late, as the others: a plain file needs none of them

            return gzip.GzipFile(fileobj=io.BufferedReader(self._raw, 1 << 16))  # type: ignore[return-value]
        if magic.startswith(b"BZh"):
            import bz2

            return _Members(
                bz2.BZ2Decompressor, lambda member, data: member.decompress(data, 1 << 16), self._raw
            )
        if magic == b"\x28\xb5\x2f\xfd" or (magic[1:] == b"\x2a\x4d\x18" and magic[0] >> 4 == 5):
            return self._zstd()  # the second is a frame to be skipped, which may come first
        if magic == b"PK\x03\x04" or magic == b"PK\x05\x06":
            return self._zip()
        self._damage = ()
        return self._raw

    def _zstd(self) -> io.RawIOBase:
        import zstandard

        self._damage += (zstandard.ZstdError,)
        decompressor = zstandard.ZstdDecompressor(max_window_size=self._limits.window)
        return _Members(decompressor.decompressobj, lambda frame, data: frame.decompress(data), self._raw)

    def _zip(self) -> BinaryIO:
        import lzma
        import zipfile

        data = self._raw.readall()  # a zip's directory is at its end, so it is read whole, within the limit
        self._damage += (zipfile.BadZipFile, lzma.LZMAError, NotImplementedError, RuntimeError, ValueError)
        try:
            archive = zipfile.ZipFile(io.BytesIO(data))
            files = [
                m for m in archive.infolist() if not m.is_dir() and "__MACOSX" not in m.filename.split("/")
            ]
            if len(files) == 1 and not files[0].flag_bits & ENCRYPTED_BITS:
                return archive.open(files[0])  # type: ignore[return-value]
        except self._damage as error:
            self._corrupt(error)
        if len(files) == 1:
            message = f"{files[0].filename} in the archive is encrypted"
            _refuse(Finding(ENCRYPTED, message, file=self._name, sample=files[0].filename[:200]))
        names = ", ".join(member.filename for member in files[:3])
        message = f"{len(files)} files in the archive{': ' + names if names else ''}; one is wanted"
        _refuse(Finding(MEMBERS, message, file=self._name, sample=names[:200] or None))

    def _corrupt(self, error: BaseException) -> NoReturn:
        if "too much memory" in str(error):  # zstd's only name for it
            _refuse(limit_reached(WINDOW, self._limits.window, file=self._name))
        message = f"the archive is cut short or damaged after {self._count:,} expanded bytes: {error}"
        _refuse(Finding(CORRUPT, message, file=self._name))

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        try:
            got = self._piece(buffer)
        except self._damage as error:
            self._corrupt(error)
        self._count += got
        self._check()
        return got

    def _piece(self, buffer: memoryview) -> int:
        """Fill some of `buffer` with what one step gives, so that damage after it costs nothing before it."""
        if not hasattr(self._plain, "read1"):
            return self._plain.readinto(buffer) or 0  # type: ignore[union-attr]
        data = self._plain.read1(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def _check(self) -> None:
        limits, sent = self._limits, max(self._raw.count, 1)
        if self._count > limits.expanded:
            _refuse(limit_reached(EXPANDED, limits.expanded, file=self._name))
        if self._count > limits.ratio_from and self._count > limits.ratio * sent:
            _refuse(limit_reached(RATIO, limits.ratio, file=self._name))

    def close(self) -> None:
        if not self.closed:
            self._plain.close()
            self._raw.close()
        super().close()


class _Members(io.RawIOBase):
    """bzip2 streams or zstd frames one after another, and nothing else after them: the readers of their
    libraries let a last one that is cut short, or no one at all, pass.

    expand: gives what a member makes of more bytes. They are fed in small pieces, which bounds what one piece
    can expand to; a bzip2 member bounds it itself and `needs_input` once it has given all.
    """

    PIECE = 512

    def __init__(
        self, new_member: Callable[[], Any], expand: Callable[[Any, bytes], bytes], raw: _Counted
    ) -> None:
        self._new_member, self._expand, self._raw = new_member, expand, raw
        self._member = new_member()
        self._started = False
        self._packed = self._ready = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        while not self._ready and self._more():
            pass
        got = min(len(buffer), len(self._ready))
        buffer[:got], self._ready = self._ready[:got], self._ready[got:]
        return got

    def _more(self) -> bool:
        """Expand one more piece; False at the end of the last member."""
        if not self._packed and getattr(self._member, "needs_input", True):
            self._packed = self._raw.read(self.PIECE) or b""
            if not self._packed and self._started:
                raise EOFError("its last part has no end")
            if not self._packed:
                return False
        self._ready, self._started = self._expand(self._member, self._packed), True
        self._packed = b""
        if self._member.eof:
            self._packed, self._member, self._started = self._member.unused_data, self._new_member(), False
        return True
