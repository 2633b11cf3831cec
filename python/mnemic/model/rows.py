"""Rows of a store, in the form of an index."""

import enum
from typing import Any, ClassVar, TypeAlias

import msgspec

from mnemic.arrays import Float32Array
from mnemic.records import Redacted

Record: TypeAlias = tuple[Any, ...]
"""A row's number, and its columns in the order of `mnemic._core.RECORD_COLUMNS`."""

Access: TypeAlias = tuple[int, int | None, int]
"""A row's number, its last access in microseconds since 1970 in UTC, and how many it had."""


Link: TypeAlias = tuple[int, int, int, float]
"""From which row, to which, its type, and its strength."""


class State(enum.Enum):
    """State of a memory; each has an index of its own. Expired memories are in all of them."""

    ACTIVE = "active"
    """Neither deleted nor inactive: found by every search."""
    INACTIVE = "inactive"
    """Archived or superseded, and not deleted."""
    DELETED = "deleted"
    """Deleted, and not permanently."""


class RowBatch(Redacted, frozen=True, eq=False):
    """All of an agent's rows in one state, or their changes, as of one moment.

    Attributes:
        since: Change number that this batch follows; None if it is complete.
        seq: Change number after this batch.
        records: Rows of the state.
        embedded: Those of them with a vector of the requested model; a row with several chunks is
            repeated, next to each other.
        vectors: Shape (n, dim), in the order of `embedded`; None for none.
        removed: Rows that left the state, and rows of which an index must keep nothing when it
            takes their records.
        linked: Changed rows whose links are all replaced by those in `links`: rows of the state,
            and those that are still there in another state. A row of `removed` that is not among
            them was deleted permanently, and so were links to it.
        links: Their links, also to rows of another state. Of active rows all links, of others those
            of type SUPERSEDES alone: a link to a superseded row leads on to its successor.
    """

    _hidden: ClassVar[frozenset[str]] = frozenset({"records", "vectors"})

    since: int | None
    seq: int
    records: list[Record]
    embedded: list[int]
    vectors: Float32Array | None
    removed: list[int]
    linked: list[int] = msgspec.field(default_factory=list)
    links: list[Link] = msgspec.field(default_factory=list)
