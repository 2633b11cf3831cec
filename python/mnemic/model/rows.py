"""What an index needs to know of a store's rows."""

from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray


class RowFacts(NamedTuple):
    """One row's place in scope and in the order of ties.

    Attributes:
        row: The store's integer, never reused: the core's id (C164).
        user_id: Wall.
        project_id: Filter.
        session_id: Filter.
        created_at: Microseconds since 1970 in UTC.
        id: The UUID's 16 bytes.
        expires_at: Microseconds since 1970 in UTC; None is never.
    """

    row: int
    user_id: str | None
    project_id: str | None
    session_id: str | None
    created_at: int
    id: bytes
    expires_at: int | None = None


class RowBatch(msgspec.Struct, frozen=True, eq=False):
    """An agent's rows, or what changed among them, as of one moment (C163).

    Attributes:
        since: The change number that this follows; None if it is everything.
        seq: The change number it leads to.
        facts: Living rows that have a vector.
        vectors: float32, shape (len(facts), dim), in the same order.
        gone: Rows that are no longer to be found.
        unembedded: Living rows without a vector of this model.
    """

    since: int | None
    seq: int
    facts: list[RowFacts]
    vectors: NDArray[np.float32]
    gone: list[int]
    unembedded: list[int]
