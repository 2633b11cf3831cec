"""What an index needs to know of a store's rows."""

from typing import Any, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

Record: TypeAlias = tuple[Any, ...]
"""A row's number, and its columns in the order of `mnemic._core.RECORD_COLUMNS`."""

Access: TypeAlias = tuple[int, int | None, int]
"""A row's number, its last access in microseconds since 1970 in UTC, and how many it had."""


class RowBatch(msgspec.Struct, frozen=True, eq=False):
    """An agent's rows, or what changed among them, as of one moment (C163).

    Attributes:
        since: The change number that this follows; None if it is everything.
        seq: The change number it leads to.
        records: Living rows.
        embedded: int64, shape (n,): those of them that have a vector of the wanted model; one of
            several parts comes as many times, one after the other (C165).
        vectors: float32, shape (n, dim), in the order of `embedded`.
        gone: Rows that are no longer to be found.
    """

    since: int | None
    seq: int
    records: list[Record]
    embedded: NDArray[np.int64]
    vectors: NDArray[np.float32]
    gone: list[int]
