"""Array types, exact numbers and packed ids."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Exact = int | Fraction


@dataclass(frozen=True, eq=False)
class Ids:
    """Many short byte strings in one: id `i` is `blob[starts[i]:starts[i + 1]]`, UTF-8."""

    blob: bytes
    starts: Ints

    @classmethod
    def of(cls, ids: Sequence[bytes]) -> "Ids":
        """Pack `ids` in their order."""
        starts = np.zeros(len(ids) + 1, dtype=np.int64)
        np.cumsum([len(one) for one in ids], out=starts[1:])
        return cls(b"".join(ids), starts)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, i: int) -> str:
        return self.blob[self.starts[i] : self.starts[i + 1]].decode()

    def bytes_at(self, i: int) -> bytes:
        return self.blob[self.starts[i] : self.starts[i + 1]]

    def to_list(self) -> list[bytes]:
        """Every id, in order."""
        starts = self.starts.tolist()
        return [self.blob[a:b] for a, b in itertools.pairwise(starts)]
