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
    """Many ids in one byte string, in UTF-8.

    Id `i` is `blob[starts[i]:starts[i + 1]]`.
    """

    blob: bytes
    starts: Ints

    @classmethod
    def of(cls, ids: Sequence[bytes]) -> "Ids":
        """Pack `ids` in the given order."""
        starts = np.zeros(len(ids) + 1, dtype=np.int64)
        np.cumsum([len(id_) for id_ in ids], out=starts[1:])
        return cls(b"".join(ids), starts)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, i: int) -> str:
        return self.blob[self.starts[i] : self.starts[i + 1]].decode()

    def bytes_at(self, i: int) -> bytes:
        """Return id `i` as UTF-8 bytes."""
        return self.blob[self.starts[i] : self.starts[i + 1]]

    def only(self, mask: NDArray[np.bool_]) -> "Ids":
        """Return the ids selected by `mask`, bool[n], in order."""
        return Ids.of(list(itertools.compress(self.to_list(), mask)))

    def to_list(self) -> list[bytes]:
        """Return all ids in order, as UTF-8 bytes."""
        starts = self.starts.tolist()
        return [self.blob[begin:end] for begin, end in itertools.pairwise(starts)]
