"""What an index needs to know of a store's rows."""

import enum
from typing import Any, ClassVar, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from mnemic.model.redacted import Redacted

Record: TypeAlias = tuple[Any, ...]
"""A row's number, and its columns in the order of `mnemic._core.RECORD_COLUMNS`."""

Access: TypeAlias = tuple[int, int | None, int]
"""A row's number, its last access in microseconds since 1970 in UTC, and how many it had."""


Link: TypeAlias = tuple[int, int, int, float]
"""From which row, to which, its type, and its strength."""


class State(enum.Enum):
    """What became of a memory; each has an index of its own. Expired ones are among all."""

    ACTIVE = "living"
    """Neither forgotten nor outdated: what every search looks at."""
    INACTIVE = "outdated"
    """Archived or superseded, and not forgotten (C064)."""
    DELETED = "forgotten"
    """Forgotten, and not deleted for good."""


class RowBatch(Redacted, frozen=True, eq=False):
    """An agent's rows of one state, or what changed among them, as of one moment (C163).

    Attributes:
        since: The change number that this follows; None if it is everything.
        seq: The change number it leads to.
        records: Rows of the state.
        embedded: int64, shape (n,): those of them that have a vector of the wanted model; one of
            several parts comes as many times, one after the other (C165).
        vectors: float32, shape (n, dim), in the order of `embedded`.
        gone: Rows that no longer have it.
        linked: Rows of the state all of whose links are told.
        links: Theirs, also to rows of another state.
    """

    _hidden: ClassVar[frozenset[str]] = frozenset({"records", "vectors"})

    since: int | None
    seq: int
    records: list[Record]
    embedded: NDArray[np.int64]
    vectors: NDArray[np.float32]
    gone: list[int]
    linked: list[int] = msgspec.field(default_factory=list)
    links: list[Link] = msgspec.field(default_factory=list)
