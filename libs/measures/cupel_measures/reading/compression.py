"""Compressed files: the formats, and streams of plain bytes within limits.

A format is recognised by the first bytes of the file, never by its name. Limits are enforced while the bytes
are read, so a small archive that would expand to a huge file is read only up to the limit. To add a
format, add a row to `COMPRESSIONS`.
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


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits on a file. A file that exceeds a limit is refused.

    compressed, expanded: size in bytes before and after expansion. ratio: expanded size divided by compressed
    size, checked after `ratio_from` expanded bytes. window: bytes of the zstd window. line: bytes per line.
    lines, topics: per file. depth: documents per topic. document: bytes per line of a texts file.
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


ENCRYPTED_BITS = 0x41
"""Flags of a zip member: encryption, strong encryption."""
CORRUPT = declare(
    "file-corrupt",
    "error",
    "the archive is truncated or damaged",
    "create the archive again and send all of it",
)
MEMBERS = declare(
    "file-members",
    "error",
    "a zip archive does not contain exactly one file",
    "put one file into the archive, or send the plain file",
)
ENCRYPTED = declare(
    "file-encrypted",
    "error",
    "the archive is encrypted",
    "create the archive without a password, or send the plain file",
)


def _limit(name: str, quantity: str, remedy: str) -> str:
    return declare(f"limit-{name}", "error", f"the file exceeds the limit on {quantity}", remedy)


COMPRESSED = _limit("compressed", "the size as sent", "send a smaller file, or compress it")
EXPANDED = _limit("expanded", "the expanded size", "send a smaller file")
RATIO = _limit("ratio", "the compression ratio", "send the plain file, or use another compression")
WINDOW = _limit("window", "the zstd window", "compress with `zstd --long=27` or less")
LINE = _limit("line", "the length of a line", "check that lines end with a newline; shorten ids and tag")
LINES = _limit("lines", "the number of lines", "send fewer topics or fewer documents per topic")
TOPICS = _limit("topics", "the number of topics", "send fewer topics")
DEPTH = _limit("depth", "the number of documents per topic", "send fewer documents per topic")
DOCUMENT = _limit("document", "the length of a document's line", "check that lines end with a newline")


DAMAGE = (EOFError, OSError, zlib.error, struct.error)
"""Exceptions that the decompression of any format can raise for damaged input."""


def limit_reached(code: str, limit: float, **where: str | int | None) -> Finding:
    """Return the finding for an exceeded limit.

    Its message contains the name of the setting.
    """
    name = code.removeprefix("limit-")
    return Finding(code=code, message=f"exceeds the limit `{name}` of {limit:,.0f}", **where)  # type: ignore[arg-type]


def name_of(source: Source) -> str | None:
    """Return the file name if `source` is a path, else None."""
    return source.name if isinstance(source, Path) else None


def reopenable(source: Source, limits: Limits) -> Source:
    """Return a source that can be opened repeatedly.

    Read a stream into bytes, up to the limit.
    """
    if isinstance(source, (Path, bytes)):
        return source
    data = source.read(limits.compressed + 1)
    while len(data) <= limits.compressed and (more := source.read(limits.compressed + 1 - len(data))):
        data += more
    return data


def open_plain(source: Source, limits: Limits | None = None) -> BinaryIO:
    """Open the expanded bytes of `source` as a buffered stream.

    `readinto` of the result fills the whole buffer, except at the end.

    Closing the result does not close a stream that was passed as `source`. Raise Refused, on opening or on
    reading, if an archive is damaged (file-corrupt), does not contain exactly one file (file-members), is
    encrypted (file-encrypted), or exceeds a limit (limit-compressed, -expanded, -ratio, -window). Raise
    OSError only if the file itself cannot be read.
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
    """The file before expansion.

    It enforces the limit on its size, and can peek at its first bytes.
    """

    def __init__(self, source: BinaryIO, limits: Limits, name: str | None, owned: bool) -> None:
        self._source, self._limit, self._name = source, limits.compressed, name
        self._owned = owned
        self.count = 0
        self._head = b""

    def peek(self, size: int) -> bytes:
        """Return the first `size` bytes, or fewer of a short file.

        A later read returns these bytes again.
        """
        while len(self._head) < size and (more := self._source.read(size - len(self._head))):
            self._head += more
        return self._head

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        if self._head:
            got = min(len(buffer), len(self._head))
            buffer[:got], self._head = self._head[:got], self._head[got:]
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
    """The expanded bytes of a file.

    Reading enforces the limits, and raises Refused if the input is damaged.
    """

    def __init__(self, raw: "_Counted", limits: Limits, name: str | None) -> None:
        self._raw, self._limits, self._name = raw, limits, name
        self._count = 0
        self._damage: tuple[type[BaseException], ...] = ()
        self._plain: Any = raw
        if compression := compression_of(raw.peek(LONGEST_SIGNATURE)):
            opener = _Opener(raw, limits, name)
            try:
                self._plain = compression.open(opener)
            except Refused:
                raise
            except DAMAGE + opener.damage as error:
                self._corrupt(error)
            self._damage = DAMAGE + opener.damage

    def _corrupt(self, error: BaseException) -> NoReturn:
        if "too much memory" in str(error):  # only the message of zstd shows that the window is too large
            _refuse(limit_reached(WINDOW, self._limits.window, file=self._name))
        message = f"the archive is truncated or damaged after {self._count:,} expanded bytes: {error}"
        _refuse(Finding(code=CORRUPT, message=message, file=self._name))

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
        """Fill part of `buffer` with a single read, and return the number of bytes.

        With several reads, an error in damaged input would discard the bytes read before it.
        """
        if not hasattr(self._plain, "read1"):
            return int(self._plain.readinto(buffer) or 0)
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
    """A sequence of members without other bytes after them.

    Members are bzip2 streams or zstd frames.

    Unlike the readers of the libraries, this one refuses a truncated last member. new_member: creates the
    decompressor of a member. expand: passes input to a decompressor and returns its output. Input is passed
    in small pieces, which bounds the output per piece. A bzip2 decompressor also limits its output; it sets
    `needs_input` when it has returned all output of a piece.
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
        """Expand one more piece. Return False at the end of the file."""
        if not self._packed and getattr(self._member, "needs_input", True):
            self._packed = self._raw.read(self.PIECE) or b""
            if not self._packed and self._started:
                raise EOFError("the last part is incomplete")
            if not self._packed:
                return False
        self._ready, self._started = self._expand(self._member, self._packed), True
        self._packed = b""
        if self._member.eof:
            self._packed, self._member, self._started = self._member.unused_data, self._new_member(), False
        return True


class _Opener:
    """Arguments of the functions that open a format.

    damage: exceptions of its library for damaged input.
    """

    def __init__(self, raw: _Counted, limits: Limits, name: str | None) -> None:
        self.raw, self.limits, self.name = raw, limits, name
        self.damage: tuple[type[BaseException], ...] = ()


def _open_gzip(file: _Opener) -> Any:
    import gzip  # imported late, like the libraries of other formats, because plain files need none

    return gzip.GzipFile(fileobj=io.BufferedReader(file.raw, 1 << 16))


def _open_bzip2(file: _Opener) -> Any:
    import bz2

    return _Members(bz2.BZ2Decompressor, lambda member, data: member.decompress(data, 1 << 16), file.raw)


def _open_zstd(file: _Opener) -> Any:
    import zstandard

    file.damage = (zstandard.ZstdError,)
    decompressor = zstandard.ZstdDecompressor(max_window_size=file.limits.window)
    return _Members(decompressor.decompressobj, lambda frame, data: frame.decompress(data), file.raw)


def _open_zip(file: _Opener) -> Any:
    import lzma
    import zipfile

    file.damage = (zipfile.BadZipFile, lzma.LZMAError, NotImplementedError, RuntimeError, ValueError)
    data = file.raw.readall()  # a zip has its directory at its end; the limit bounds the size
    archive = zipfile.ZipFile(io.BytesIO(data))
    members = [m for m in archive.infolist() if not m.is_dir() and "__MACOSX" not in m.filename.split("/")]
    if len(members) != 1:
        names = ", ".join(member.filename for member in members[:3])
        message = f"the archive contains {len(members)} files{': ' + names if names else ''}; expected one"
        _refuse(Finding(code=MEMBERS, message=message, file=file.name, sample=names[:200] or None))
    if members[0].flag_bits & ENCRYPTED_BITS:
        message = f"{members[0].filename} in the archive is encrypted"
        _refuse(Finding(code=ENCRYPTED, message=message, file=file.name, sample=members[0].filename[:200]))
    return archive.open(members[0])


@dataclass(frozen=True)
class Compression:
    """A format of compressed files.

    It has a file-name suffix, first bytes, and a function that opens it.
    """

    name: str
    suffix: str
    signatures: tuple[bytes, ...]
    open: Callable[[_Opener], Any]


SKIPPABLE_FRAMES = tuple(bytes([0x50 + i]) + b"\x2a\x4d\x18" for i in range(16))
"""Signatures of zstd frames without data, which can precede the data (RFC 8878, 3.1.2)."""

COMPRESSIONS = (
    Compression("gzip", ".gz", (b"\x1f\x8b",), _open_gzip),
    Compression("bzip2", ".bz2", (b"BZh",), _open_bzip2),
    Compression("zstd", ".zst", (b"\x28\xb5\x2f\xfd", *SKIPPABLE_FRAMES), _open_zstd),
    Compression("zip", ".zip", (b"PK\x03\x04", b"PK\x05\x06"), _open_zip),
)
"""All supported formats. Readers, names of runs, uploads and help texts use this table."""

LONGEST_SIGNATURE = max(len(signature) for format_ in COMPRESSIONS for signature in format_.signatures)


def compression_of(head: bytes) -> Compression | None:
    """Return the format of a file that begins with `head`; None for a plain file."""
    return next((format_ for format_ in COMPRESSIONS if head.startswith(format_.signatures)), None)


def plain_name(name: str) -> str:
    """Return a file name without the suffix of a compression format."""
    for format_ in COMPRESSIONS:
        if name.endswith(format_.suffix) and name != format_.suffix:
            return name.removesuffix(format_.suffix)
    return name
