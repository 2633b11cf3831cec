"""A budget of memory for the indexes of many agents."""

import math
import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final, Protocol
from weakref import WeakKeyDictionary, WeakSet

from mnemic.model import validation
from mnemic.reporting.near_names import checks_arguments
from mnemic.threads.locks import InnerLock, Lock, busy_thread

DEFAULT_BYTES: Final = 1 << 30
"""Budget of the pool that memories in PostgreSQL share unless they are given one."""


HALF_LIFE: Final = 2000
"""Uses of a pool after which an earlier use counts half. Of 1,000 agents drawn by Zipf's law with
capacity for 100, the hit rate was 0.68 from here on, 0.59 by recency alone, and 0.71 at best."""


class PooledIndex(Protocol):
    """An index that can be dropped and loaded again."""

    @property
    def nbytes(self) -> int:
        """Bytes held, partly estimated."""
        ...

    @property
    def is_held_here(self) -> bool:
        """Whether this thread is in the midst of loading or changing it."""
        ...

    def unload(self) -> bool:
        """Drop the index; return False if it is being loaded or changed."""
        ...


class _Use:
    """What a pool knows of an index.

    Attributes:
        nbytes: Its size when it was last measured; 0 unless it is loaded.
        is_loaded: Whether it is.
    """

    __slots__ = ("_count", "_used_at", "is_loaded", "nbytes")

    def __init__(self) -> None:
        self.nbytes = 0
        self.is_loaded = False
        self._count = 0.0
        self._used_at = 0

    def again(self, turn: int) -> None:
        """Count a use, the `turn`th one of the pool."""
        self._count, self._used_at = self.count_at(turn) + 1.0, turn

    def count_at(self, turn: int) -> float:
        """Return the number of uses, of which those long before a turn count less."""
        age = (turn - self._used_at) / HALF_LIFE
        return self._count * math.pow(0.5, age)


_POOLS: "WeakSet[PooledIndexes]" = WeakSet()


class PooledIndexes:
    """The loaded indexes of a pool. Thread-safe.

    Args:
        max_bytes: The budget, which is an attribute too.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.forget()
        _POOLS.add(self)

    def forget(self) -> None:
        """Start again; after a fork, for another thread may have held a lock."""
        self._lock = InnerLock()
        self._loading = Lock()
        self._uses: WeakKeyDictionary[PooledIndex, _Use] = WeakKeyDictionary()
        self._turn = 0

    def __len__(self) -> int:
        """Return the number of loaded indexes."""
        with self._lock:
            return sum(use.is_loaded for use in self._uses.values())

    @property
    def nbytes(self) -> int:
        """Bytes of the loaded indexes."""
        with self._lock:
            return sum(use.nbytes for use in self._uses.values())

    def used(self, index: PooledIndex) -> None:
        """Record a use of an index, loaded or about to be."""
        with self._lock:
            self._turn += 1
            self._uses.setdefault(index, _Use()).again(self._turn)

    @contextmanager
    def loading(self) -> Generator[None, None, None]:
        """Load an index while no other one is being loaded; `measured` follows.

        Raises:
            BusyThreadError: If this thread is in the midst of changing an index, as it is in a
                signal handler's call: whoever loads may wait for that one.
        """
        with self._lock:
            known = list(self._uses)
        if any(index.is_held_here for index in known):
            raise busy_thread()
        with self._loading:
            yield

    def measured(self, index: PooledIndex) -> None:
        """Take in the size of an index, and drop others that no longer fit."""
        nbytes = index.nbytes  # without the lock, which every search takes: it may apply changes
        with self._lock:
            use = self._uses.setdefault(index, _Use())
            use.nbytes, use.is_loaded = nbytes, True
        self._evict_others(index)

    def _evict_others(self, kept: PooledIndex) -> None:
        for index in self._beyond_budget(kept):
            if index.unload():
                with self._lock:
                    use = self._uses[index]
                    use.nbytes, use.is_loaded = 0, False

    def _beyond_budget(self, kept: PooledIndex) -> list[PooledIndex]:
        with self._lock:
            excess = sum(use.nbytes for use in self._uses.values()) - self.max_bytes
            if excess <= 0:
                return []
            chosen: list[PooledIndex] = []
            loaded = [item for item in self._uses.items() if item[1].is_loaded]
            for index, use in sorted(loaded, key=lambda item: item[1].count_at(self._turn)):
                if excess > 0 and index is not kept:
                    chosen.append(index)
                    excess -= use.nbytes
            return chosen

    def closed(self, index: PooledIndex) -> None:
        """Forget an index that is used no more."""
        with self._lock:
            self._uses.pop(index, None)


class IndexPool:
    """Keeps the loaded indexes of memories within a number of bytes.

    Memories opened with one pool share its budget. When an index is loaded or has grown, the
    indexes used least are dropped until the rest fits, where a use counts half after 2,000 others
    (LRFU: Lee et al., IEEE Transactions on Computers 50(12), 2001); the next search of such a
    memory loads its index again. Indexes are loaded one at a time, and the one just loaded always
    stays: the budget is exceeded by one index at most. A search goes on with the index it began
    with. Thread-safe.

    Args:
        max_bytes: The budget: bytes of indexes and of the rows that are held beside them, partly
            estimated. It is an attribute too.

    Raises:
        InvalidEntryError: If it is not a whole number above 0.
    """

    @checks_arguments
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


def _forget_all() -> None:
    for pool in _POOLS:
        pool.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)


def indexes_of(pool: IndexPool) -> PooledIndexes:
    """Return the indexes of a pool."""
    return pool._indexes  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - of this module


SHARED: Final = IndexPool()
"""The pool of memories whose store has many agents, and which are given none."""
