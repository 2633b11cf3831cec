"""A budget of memory for the indexes of many agents."""

import threading
from collections.abc import Generator
from contextlib import contextmanager
from itertools import count
from typing import Final, Protocol
from weakref import WeakKeyDictionary

from mnemic.model import validation

DEFAULT_BYTES: Final = 1 << 30
"""Budget of the pool that memories in PostgreSQL share unless they are given one."""


class Pooled(Protocol):
    """An index that can be dropped and loaded again."""

    @property
    def nbytes(self) -> int:
        """Bytes held, partly estimated."""
        ...

    def unload(self) -> bool:
        """Drop the index; return False if it is being loaded or changed."""
        ...


class _Use:
    """What a pool knows of an index.

    Attributes:
        nbytes: Its size when it was last measured.
        used_at: Number of its last use; of two indexes the one used later has the larger number.
    """

    __slots__ = ("nbytes", "used_at")

    def __init__(self) -> None:
        self.nbytes = 0
        self.used_at = 0


class PooledIndexes:
    """The loaded indexes of a pool. Thread-safe.

    Args:
        max_bytes: The budget.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._loading = threading.Lock()
        self._uses: WeakKeyDictionary[Pooled, _Use] = WeakKeyDictionary()
        self._turns = count()

    def __len__(self) -> int:
        """Return the number of loaded indexes."""
        with self._lock:
            return len(self._uses)

    @property
    def nbytes(self) -> int:
        """Bytes of the loaded indexes."""
        with self._lock:
            return sum(use.nbytes for use in self._uses.values())

    def used(self, index: Pooled) -> None:
        """Record a use of an index; nothing happens unless it is loaded."""
        use = self._uses.get(index)
        if use is not None:
            use.used_at = next(self._turns)

    @contextmanager
    def loading(self) -> Generator[None, None, None]:
        """Load an index while no other one is being loaded; `measured` follows."""
        with self._loading:
            yield

    def measured(self, index: Pooled) -> None:
        """Take in the size of an index, and drop others that no longer fit."""
        with self._lock:
            use = self._uses.setdefault(index, _Use())
            use.nbytes, use.used_at = index.nbytes, next(self._turns)
        self._make_room(index)

    def _make_room(self, kept: Pooled) -> None:
        for index in self._beyond_budget(kept):
            if index.unload():
                self.dropped(index)

    def _beyond_budget(self, kept: Pooled) -> list[Pooled]:
        with self._lock:
            excess = sum(use.nbytes for use in self._uses.values()) - self._max_bytes
            if excess <= 0:
                return []
            chosen: list[Pooled] = []
            for index, use in sorted(self._uses.items(), key=lambda item: item[1].used_at):
                if excess > 0 and index is not kept:
                    chosen.append(index)
                    excess -= use.nbytes
            return chosen

    def dropped(self, index: Pooled) -> None:
        """Record that an index is no longer loaded."""
        with self._lock:
            self._uses.pop(index, None)


class IndexPool:
    """Keeps the loaded indexes of memories within a number of bytes.

    Memories opened with one pool share its budget. When an index is loaded or has grown, the
    indexes used least recently are dropped until the rest fits; the next search of such a memory
    loads its index again. Indexes are loaded one at a time, and the one just loaded always stays:
    the budget is exceeded by one index at most. A search goes on with the index it began with.
    Thread-safe.

    Args:
        max_bytes: The budget: bytes of indexes and of the rows that are held beside them, partly
            estimated.

    Attributes:
        max_bytes: As above.

    Raises:
        InvalidEntryError: If it is not a whole number above 0.
    """

    def __init__(self, max_bytes: int = DEFAULT_BYTES) -> None:
        self.max_bytes = validation.whole("max_bytes", max_bytes, minimum=1)
        self._indexes = PooledIndexes(self.max_bytes)

    def __len__(self) -> int:
        """Return the number of loaded indexes."""
        return len(self._indexes)

    def __repr__(self) -> str:
        """Return the budget, and what is taken of it."""
        return f"IndexPool(max_bytes={self.max_bytes}, nbytes={self.nbytes}, indexes={len(self)})"

    @property
    def nbytes(self) -> int:
        """Bytes of the loaded indexes."""
        return self._indexes.nbytes


def indexes_of(pool: IndexPool) -> PooledIndexes:
    """Return the indexes of a pool."""
    return pool._indexes  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - of this module


SHARED: Final = IndexPool()
"""The pool of memories whose store has many agents, and which are given none."""
