from typing_extensions import Buffer

PADDING: int

class Index:
    def __new__(
        cls, blob: Buffer, starts: Buffer, names: Buffer, name_starts: Buffer, offsets: Buffer, seed: bytes
    ) -> Index: ...

class Reader:
    def __new__(
        cls,
        index: Index,
        single_precision: bool,
        depth: int,
        line: int,
        lines: int,
        topics: int,
        documents: int,
    ) -> Reader: ...
    def feed(self, buffer: bytearray, filled: int, last: bool) -> int: ...
    def unknown_topics(self) -> int: ...
    def result(self) -> tuple[bytes, bytes, bytes, bytes, bytes, bytes]: ...

def join(
    index: Index,
    blob: Buffer,
    starts: Buffer,
    rows: Buffer,
    offsets: Buffer,
    scores: Buffer,
    single_precision: bool,
    depth: int,
) -> tuple[bytes, bytes, bytes, bytes, bytes, bytes]: ...
