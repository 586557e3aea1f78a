"""Streams of files to upload; large plain files are compressed."""

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import zstandard

from cupel_measures.reading.compression import compression_of

LARGE = 1 << 16  # smaller files are not compressed
BLOCK = 1 << 18


def no_progress(count: int) -> None:
    """Ignore the number of bytes that were read."""


@dataclass(frozen=True)
class FileBody:
    """A file to send.

    Each call of `blocks()` reads the file from its start and yields the same bytes.
    """

    name: str
    open: Callable[[], BinaryIO]
    progress: Callable[[int], None]

    def blocks(self) -> Iterator[bytes]:
        """Yield the bytes to send, compressed with zstd if the file is large and plain."""
        with self.open() as file:
            first = file.read(BLOCK)
            plain = len(first) > LARGE and compression_of(first) is None
            yield from self._compressed(first, file) if plain else self._read(first, file)

    def _read(self, block: bytes, file: BinaryIO) -> Iterator[bytes]:
        while block:
            self.progress(len(block))
            yield block
            block = file.read(BLOCK)

    def _compressed(self, first: bytes, file: BinaryIO) -> Iterator[bytes]:
        compressor = zstandard.ZstdCompressor().compressobj()
        for block in self._read(first, file):
            if compressed := compressor.compress(block):
                yield compressed
        yield compressor.flush()


def file_body(source: Path | bytes | BinaryIO, progress: Callable[[int], None]) -> FileBody:
    """Make the body of an upload.

    A stream is read into memory, so that it can be sent again.
    """
    if isinstance(source, Path):
        return FileBody(source.name, lambda: source.open("rb"), progress)
    content = source if isinstance(source, bytes) else source.read()
    return FileBody("", lambda: io.BytesIO(content), progress)
