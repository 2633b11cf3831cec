"""A cache with bounds, in which concurrent calls that want one value compute it once.

It is under the cached answers, payloads and turns, and under the kept vectors of queries and texts.
"""

import os
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Hashable, Iterable, Sequence
from concurrent.futures import Future
from heapq import heapify, heapreplace
from itertools import chain, count
from sys import maxsize
from threading import get_ident
from typing import Any, Final, Generic, NamedTuple, TypeVar

from mnemic.threads.background import running_loop
from mnemic.threads.locks import InnerLock
from mnemic.threads.sync_bridge import arrived, runs_sync

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

FREED_SHARE: Final = 16
"""1/n of what all owners may have is freed at once: ordering the owners by size gets slower with
their number."""

_numbers = count(1)


class Bounds(NamedTuple):
    """Bounds of a cache; bytes are those that its function of bytes estimates.

    Attributes:
        entries: Maximum number of values of one owner.
        bytes: Maximum bytes of them.
        entry_bytes: Maximum bytes of one value; a larger one is not kept.
        all_entries: Maximum number of values of all owners.
        all_bytes: Maximum bytes of them.
    """

    entries: int = maxsize
    bytes: int = maxsize
    entry_bytes: int = maxsize
    all_entries: int = maxsize
    all_bytes: int = maxsize


class AbandonedError(Exception):
    """A value does not arrive: its call was cancelled or left, or the value was dropped."""


class Flight(Future[Value]):
    """A value that a call computes, and that others may wait for.

    Args:
        key: Key of the value; an attribute too.
        blocks: Whether the call blocks its thread; else it is awaited in an event loop.

    Attributes:
        calls: Number of calls that want the value.
        number: Later flights have larger ones.
    """

    def __init__(self, key: Hashable, *, blocks: bool) -> None:
        super().__init__()
        self.key = key
        self.calls = 1
        self.number = next(_numbers)
        self._thread = get_ident()
        self._loop = None if blocks or runs_sync() else running_loop()

    def cancel(self) -> bool:
        """Do nothing: a waiting call that is cancelled cancels no other's."""
        return False

    def may_be_awaited(self, *, blocks: bool) -> bool:
        """Return whether waiting for it cannot block forever.

        A call that blocks its thread may block the computing event loop, or be that of a signal
        handler, which interrupted the computing call. A loop that was stopped or closed during the
        call may never continue.
        """
        if blocks:
            return self._loop is None and self._thread != get_ident()
        return self._loop is None or self._loop.is_running()


class Claim(NamedTuple, Generic[Value]):
    """What a call gets for its keys.

    Attributes:
        found: Kept values.
        own: Flights of the values that this call has to compute, for others too.
        awaited: Flights of the values that other calls compute.
    """

    found: dict[Any, Value]
    own: list[Flight[Value]]
    awaited: list[Flight[Value]]


class SingleFlightCache(Generic[Key, Value]):
    """Keeps values within bounds, each owner's part evicted by least recent use.

    Only the largest part is reduced for another's: none that is no larger than its fair share.
    What is dropped while it is computed is not kept. Safe for threads and event loops. A forked
    process begins with an empty one: it has no threads that end the flights of the first process.

    Args:
        bounds: The bounds.
        bytes_of: Estimates the bytes of a key and its value, the same each time.
        owner_of: Returns the owner of a key.
        is_kept: Returns whether a value is kept.

    Attributes:
        used_bytes: Bytes of the kept values.
        hits: Number of claimed keys whose values the claiming calls need not compute.
        misses: Number of the others.
    """

    def __init__(
        self,
        bounds: Bounds,
        bytes_of: Callable[[Key, Value], int],
        *,
        owner_of: Callable[[Key], Hashable] = lambda _: None,
        is_kept: Callable[[Value], bool] = lambda _: True,
    ) -> None:
        self._bounds = bounds
        self._bytes_of = bytes_of
        self._owner_of = owner_of
        self._is_kept = is_kept
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._lock = InnerLock()
        self._parts: dict[Hashable, _Part] = {}
        self._flights: dict[Hashable, list[Flight[Value]]] = {}
        self.used_bytes = self.hits = self.misses = 0

    def __len__(self) -> int:
        """Return the number of kept values, outdated ones included."""
        return sum(len(part.values) for part in list(self._parts.values()))

    def items(self) -> list[tuple[Key, Value]]:
        """Return the keys and kept values; of each owner, the least recently used first."""
        with self._lock:
            return [item for part in self._parts.values() for item in part.values.items()]

    def peek(self, key: Key) -> Value | None:
        """Return a kept value, or None; that counts as no use of it."""
        part = self._parts.get(self._owner_of(key))
        return None if part is None else part.values.get(key)

    def get(self, key: Key) -> Value | None:
        """Return a kept value, or None."""
        with self._lock:
            return self._used(key)

    def put(self, key: Key, value: Value, revision: int = 0) -> None:
        """Keep a value, in place of all of its owner's that are of an earlier revision.

        Args:
            key: The key.
            value: The value.
            revision: Its revision; it is not kept where values of a later one are.
        """
        with self._lock:
            self._put(key, value, revision)

    def replace(self, key: Key, before: Value, after: Value | None) -> None:
        """Keep another value, or none, unless a value was replaced meanwhile."""
        with self._lock:
            part = self._parts.get(self._owner_of(key))
            if part is not None and part.values.get(key) is before:
                self._drop(key)
                if after is not None:
                    self._put(key, after, part.revision)

    def drop(self, keys: Collection[Key]) -> int:
        """Drop values, those that are being computed too; return the number of kept ones."""
        with self._lock:
            number = sum(map(self._drop, keys))
            flights = [flight for key in keys for flight in self._flights.pop(key, ())]
        _give_up(flights)
        return number

    def drop_owner(self, owner: Hashable) -> None:
        """Drop the kept values of an owner."""
        with self._lock:
            self._drop_part(owner)

    def clear(self) -> None:
        """Drop all values, those that are being computed too."""
        with self._lock:
            self._parts.clear()
            self.used_bytes = 0
            flights, self._flights = self._flights, {}
        _give_up(chain(*flights.values()))

    def claim(
        self, keys: Sequence[Key], *, blocks: bool, is_valid: Callable[[Value], bool] | None = None
    ) -> Claim[Value]:
        """Return kept values; the others are computed by this call or by a running one.

        Args:
            keys: The keys.
            blocks: Whether the call blocks its thread; else it is awaited in an event loop.
            is_valid: Returns whether the call takes a kept value; None takes any.
        """
        if os.getpid() != self._process:
            self._begin()
        claim: Claim[Value] = Claim({}, [], [])
        with self._lock:
            for key in keys if len(keys) == 1 else dict.fromkeys(keys):
                value = self._used(key)
                if value is not None and (is_valid is None or is_valid(value)):
                    claim.found[key] = value
                else:
                    self._board(key, claim, blocks=blocks)
            self.misses += len(claim.own)
            self.hits += len(keys) - len(claim.own)
        return claim

    def _board(self, key: Key, claim: Claim[Value], *, blocks: bool) -> None:
        """Join a flight that may be awaited, or begin one."""
        flights = self._flights.setdefault(key, [])
        for flight in flights:
            if flight.may_be_awaited(blocks=blocks):
                flight.calls += 1
                claim.awaited.append(flight)
                return
        flights.append(Flight(key, blocks=blocks))
        claim.own.append(flights[-1])

    def settle(
        self, flights: Sequence[Flight[Value]], values: Sequence[Value], revision: int = 0
    ) -> None:
        """Keep the values of own flights as `put` does, and give them to the calls that wait."""
        with self._lock:
            ended = [pair for pair in zip(flights, values, strict=True) if self._ends(pair[0])]
            for flight, value in ended:
                self._put(flight.key, value, revision)
        for flight, value in ended:
            flight.set_result(value)

    def fail(self, flights: Iterable[Flight[Value]], error: BaseException | None = None) -> None:
        """Give flights up; calls that wait get the error, or an `AbandonedError` if it is none."""
        with self._lock:
            ended = list(filter(self._ends, flights))
        _give_up(ended, error)

    def leave(self, flight: Flight[Value]) -> None:
        """Want the value of a flight no longer; it is given up when all calls have left it."""
        with self._lock:
            flight.calls -= 1
        if not flight.calls and not flight.done():
            self.fail([flight])

    async def get_or_compute(
        self,
        key: Key,
        compute: Callable[[], Awaitable[Value]],
        *,
        is_valid: Callable[[Value], bool] | None = None,
        revision: int = 0,
    ) -> Value:
        """Return a value that is kept, or computed by this call or by a concurrent one.

        If the computing call is cancelled, one of the waiting calls computes it; its errors are
        raised in all of them.
        """
        while True:
            claim = self.claim([key], blocks=runs_sync(), is_valid=is_valid)
            if claim.found:
                return claim.found[key]
            if claim.own:
                break
            try:
                return await arrived(claim.awaited[0])
            except AbandonedError:
                continue
        try:
            value = await compute()
        except BaseException as error:
            self.fail(claim.own, error)
            raise
        self.settle(claim.own, [value], revision)
        return value

    def _used(self, key: Key) -> Value | None:
        part = self._parts.get(self._owner_of(key))
        value: Value | None = None if part is None else part.values.get(key)
        if part is not None and value is not None:
            part.values.move_to_end(key)
        return value

    def _put(self, key: Any, value: Value, revision: int) -> None:
        bounds, size, owner = self._bounds, self._bytes_of(key, value), self._owner_of(key)
        if size > bounds.entry_bytes or not self._is_kept(value):
            return
        part = self._parts.get(owner)
        if part is not None and part.revision > revision:
            return
        if part is not None and part.revision < revision:
            self._drop_part(owner)
        elif part is not None and key in part.values:
            self._pop(owner, part, key)
        part = self._parts.get(owner)
        if part is None:
            part = self._parts[owner] = _Part(revision)
        part.values[key] = value
        part.bytes += size
        self.used_bytes += size
        while len(part.values) > bounds.entries or part.bytes > bounds.bytes:
            self._pop(owner, part, next(iter(part.values)))
        if self.used_bytes > bounds.all_bytes:
            self._make_space(lambda part: part.bytes, bounds.all_bytes)
        if bounds.all_entries < maxsize and len(self) > bounds.all_entries:
            self._make_space(lambda part: len(part.values), bounds.all_entries)

    def _make_space(self, size_of: "Callable[[_Part], int]", most: int) -> None:
        """Drop values of the largest part, and of what is the largest then, and so on."""
        heap = [(-size_of(part), at, part) for at, part in enumerate(self._parts.values())]
        heapify(heap)
        excess = most // FREED_SHARE - most - sum(size for size, _, _ in heap)
        while excess > 0:
            size, at, part = heap[0]
            self._drop(next(iter(part.values)))
            excess += size + size_of(part)
            heapreplace(heap, (-size_of(part), at, part))

    def _drop(self, key: Any) -> bool:
        owner = self._owner_of(key)
        part = self._parts.get(owner)
        if part is None or key not in part.values:
            return False
        self._pop(owner, part, key)
        return True

    def _pop(self, owner: Hashable, part: "_Part", key: Any) -> None:
        """Drop a value of an owner."""
        size = self._bytes_of(key, part.values.pop(key))
        part.bytes -= size
        self.used_bytes -= size
        if not part.values:
            del self._parts[owner]

    def _drop_part(self, owner: Hashable) -> None:
        part = self._parts.pop(owner, None)
        if part is not None:
            self.used_bytes -= part.bytes

    def _ends(self, flight: Flight[Value]) -> bool:
        """End a flight; return False if it was ended or dropped before."""
        flights = self._flights.pop(flight.key, [])
        others = [other for other in flights if other is not flight]
        if others:
            self._flights[flight.key] = others
        return len(others) < len(flights)


class _Part:
    """The values of one owner, the least recently used first.

    Args:
        revision: Revision of all of them.
    """

    __slots__ = ("bytes", "revision", "values")

    def __init__(self, revision: int) -> None:
        self.revision = revision
        self.values: OrderedDict[Any, Any] = OrderedDict()
        self.bytes = 0


def _give_up(flights: Iterable[Flight[Any]], error: BaseException | None = None) -> None:
    for flight in flights:
        flight.set_exception(error if isinstance(error, Exception) else AbandonedError())
