"""Files on their way to the service: streamed, large plain ones compressed as they go."""

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import zstandard

from cupel_measures.reading.compression import compression_of

LARGE = 1 << 16  # smaller files are sent as they are
BLOCK = 1 << 18


def no_progress(count: int) -> None:
    """Nobody wants to know how many bytes were read."""


@dataclass(frozen=True)
class Body:
    """A file to send, as often as it takes: `blocks()` starts anew each time, with the same bytes."""

    name: str
    open: Callable[[], BinaryIO]
    progress: Callable[[int], None]

    def blocks(self) -> Iterator[bytes]:
        """The bytes to send; compressed with zstd where the file is large and plain."""
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


def streamed(source: Path | bytes | BinaryIO, progress: Callable[[int], None]) -> Body:
    """`source` as a body. A stream is read whole: it could not be sent a second time otherwise."""
    if isinstance(source, Path):
        return Body(source.name, lambda: source.open("rb"), progress)
    content = source if isinstance(source, bytes) else source.read()
    return Body("", lambda: io.BytesIO(content), progress)
