"""The items of a context window, and their compaction: what goes first, and summaries of it."""

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec

from mnemic._core import duplicates
from mnemic.context.items import (
    MAX_ITEMS,
    AddOutcome,
    AddResult,
    CompactionStrategy,
    ContextItem,
    ContextItemType,
)
from mnemic.context.tokens import Count
from mnemic.errors import ContextWindowFullError, InvalidArgumentError, UnknownIdError
from mnemic.model import validation
from mnemic.protocols import Clock, IdFactory, Summarizer
from mnemic.reporting.description import described, named
from mnemic.reporting.logs import logger
from mnemic.threads.locks import Lock
from mnemic.threads.sync_bridge import run_sync

_log = logger("mnemic.context")

COMPACTION_STEP = 15
"""Per cent of the window by which compaction in `add` goes below the threshold."""

SUMMARY_SHARE = 5
"""1/n of the capacity is left free: for the summary, whose length is unknown
before, and so that the next item does not need another summary."""

NEAR_DUPLICATE = 0.9
"""Minimum Jaccard similarity of the trigrams of two near duplicates."""

_EVICTION_TYPES = (
    ContextItemType.TOOL_RESULT,
    ContextItemType.RETRIEVED_DOCUMENT,
    ContextItemType.OTHER,
    ContextItemType.WORKING_MEMORY,
    ContextItemType.ASSISTANT_MESSAGE,
    ContextItemType.USER_MESSAGE,
    ContextItemType.INSTRUCTION,
    ContextItemType.SYSTEM_PROMPT,
)
"""Types in order of eviction: those that can be obtained again go first, by another call of a tool
or another retrieval."""


_NEVER = datetime.min.replace(tzinfo=UTC)


class Capacity(NamedTuple):
    """Maximum content of a window."""

    tokens: int
    items: int


class ItemStore:
    """Items by id in the order they were added, which decides ties of their order.

    Replacing an item keeps its place, as a dict keeps that of its key.

    Args:
        items: The items.
        peak: Maximum of the tokens so far.
    """

    def __init__(self, items: Iterable[ContextItem] = (), peak: int = 0) -> None:
        self._items: dict[str, ContextItem] = {}
        self._by_source: dict[str, dict[str, None]] = {}
        self.tokens = 0
        self.peak = peak
        for item in items:
            self.put(item)

    def __len__(self) -> int:
        return len(self._items)

    def get(self, item_id: str) -> ContextItem | None:
        """Return the item with an id."""
        return self._items.get(item_id)

    def find_same(self, item: ContextItem) -> ContextItem | None:
        """Return the item with the same source, of several the first in order, or the same id."""
        if item.source_ref is not None and item.source_ref in self._by_source:
            return in_order(self._items[each] for each in self._by_source[item.source_ref])[0]
        return self._items.get(item.id)

    def put(self, item: ContextItem) -> None:
        """Add an item, or replace the one with its id."""
        old = self._items.get(item.id)
        self.tokens += item.token_count - (old.token_count if old else 0)
        self.peak = max(self.peak, self.tokens)
        self._items[item.id] = item
        if item.source_ref is not None:
            self._by_source.setdefault(item.source_ref, {})[item.id] = None

    def refreshed(self, item: ContextItem) -> AddResult | None:
        """Return the result for an item that is present already; None if it is not.

        The higher priority of both stays.
        """
        present = self.find_same(item)
        if present is None:
            return None
        if item.priority <= present.priority:
            return AddResult(AddOutcome.PRESENT, present, 0)
        raised = present.with_changes(priority=item.priority)
        self.put(raised)
        return AddResult(AddOutcome.REFRESHED, raised, 0)

    def remove(self, item_id: str) -> ContextItem | None:
        """Remove the item with an id and return it."""
        item = self._items.pop(item_id, None)
        if item is None:
            return None
        self.tokens -= item.token_count
        if item.source_ref is not None:
            of_source = self._by_source[item.source_ref]
            del of_source[item_id]
            if not of_source:
                del self._by_source[item.source_ref]
        return item

    def in_insertion_order(self) -> list[ContextItem]:
        """Return all items in the order they were added."""
        return list(self._items.values())

    def protected(self) -> Capacity:
        """Return the tokens and items that compaction must keep."""
        counts = [item.token_count for item in self._items.values() if item.is_protected]
        return Capacity(sum(counts), len(counts))

    def is_within(self, capacity: Capacity) -> bool:
        """Return whether the items are within a capacity."""
        return self.tokens <= capacity.tokens and len(self._items) <= capacity.items


def in_order(items: Iterable[ContextItem]) -> list[ContextItem]:
    """Return items by type, then priority, highest first, then time, oldest first.

    Ties keep the order of addition.
    """
    return sorted(items, key=_sort_key)


def sums_by_type(
    items: Iterable[ContextItem],
) -> tuple[dict[ContextItemType, int], dict[ContextItemType, int]]:
    """Return the number of items of each type and of their tokens, in the types' order."""
    numbers, tokens = Counter[ContextItemType](), Counter[ContextItemType]()
    for item in in_order(items):
        numbers[item.type] += 1
        tokens[item.type] += item.token_count
    return dict(numbers), dict(tokens)


def oldest_first(items: Iterable[ContextItem]) -> list[ContextItem]:
    """Return items by time; ties keep their order."""
    return sorted(items, key=time_of)


def newest_first(items: Iterable[ContextItem]) -> list[ContextItem]:
    """Return items by time, newest first; of the same time, the last added first."""
    return oldest_first(items)[::-1]


def time_of(item: ContextItem) -> datetime:
    """Return the time of an item's addition, which items of a window always have."""
    return item.added_at or _NEVER


def _sort_key(item: ContextItem) -> tuple[ContextItemType, int, datetime]:
    return item.type, -item.priority, time_of(item)


def items_to_evict(
    strategy: CompactionStrategy, store: ItemStore, capacity: Capacity
) -> list[ContextItem]:
    """Return the items to evict to get within a capacity, in order.

    Protected items are never evicted. No more items than necessary are evicted; if all removable
    items are not enough, all are.
    """
    tokens, items, chosen = store.tokens, len(store), list[ContextItem]()
    if store.is_within(capacity):
        return chosen
    for item in _eviction_order(strategy, store.in_insertion_order()):
        chosen.append(item)
        tokens, items = tokens - item.token_count, items - 1
        if tokens <= capacity.tokens and items <= capacity.items:
            break
    return chosen


def to_summarise(store: ItemStore, capacity: Capacity) -> list[ContextItem]:
    """Return the items that one summary replaces, oldest first."""
    free = capacity.tokens - store.protected().tokens
    smaller = Capacity(
        capacity.tokens - free // SUMMARY_SHARE, capacity.items - capacity.items // SUMMARY_SHARE
    )
    return items_to_evict(CompactionStrategy.REMOVE_OLDEST, store, smaller)


def _eviction_order(strategy: CompactionStrategy, items: list[ContextItem]) -> list[ContextItem]:
    """Return all removable items in the order of eviction.

    SELECTIVE begins with near duplicates; then follow the others by type and priority per token.
    """
    removable = oldest_first(item for item in items if not item.is_protected)
    if strategy is CompactionStrategy.REMOVE_LOW_PRIORITY:
        removable.sort(key=lambda item: item.priority)
    if strategy is not CompactionStrategy.SELECTIVE:
        return removable
    best_first = newest_first(items)
    best_first.sort(key=lambda item: (not item.is_protected, -item.priority))
    repeated = list(_near_duplicates(best_first))
    ids = {item.id for item in repeated}
    removable.sort(key=lambda item: item.priority / max(1, item.token_count))
    removable.sort(key=lambda item: _EVICTION_TYPES.index(item.type))
    return repeated[::-1] + [item for item in removable if item.id not in ids]


def _near_duplicates(items: list[ContextItem]) -> Iterator[ContextItem]:
    """Yield removable items that nearly repeat an earlier one that was not yielded."""
    repeated = duplicates([item.content for item in items], NEAR_DUPLICATE)
    for place, item in enumerate(items):
        if repeated[place] != place and not item.is_protected:
            yield item


def known_id(item: ContextItem) -> InvalidArgumentError:
    """Return the error for an item whose id is in the window."""
    return InvalidArgumentError(f"id {item.id!r} is in the window already; ids must differ")


class ItemMaker(NamedTuple):
    """Gives items what they lack.

    Attributes:
        clock: Gives their time of addition.
        id_factory: Gives their ids.
        tokens_of: Counts their tokens.
    """

    clock: Clock
    id_factory: IdFactory
    tokens_of: Count

    def timed(self, item: ContextItem) -> ContextItem:
        """Return an item with its time and its id."""
        if item.id and item.added_at:
            return item
        now = self.clock()
        return item.with_changes(
            id=item.id or str(self.id_factory(now)), added_at=item.added_at or now
        )

    def counted(self, item: ContextItem) -> ContextItem:
        """Return an item with its token count; a given count is used unchanged."""
        if item.token_count:
            return item
        return item.with_changes(token_count=self.tokens_of(item.content))


class Compaction(msgspec.Struct, eq=False):
    """The items of a window, and what keeps them within its size.

    Args:
        agent_id: The agent, for log lines and errors.
        max_tokens: Size of the window.
        threshold: Per cent of it above which `add` compacts.
        maker: Completes summaries.
        summarizer: Makes them; None where no strategy needs any.
        lock: The window's, which is held for each change.

    Attributes:
        store: The items.
        number: How often items were removed or replaced.
        removed: How many were.
    """

    agent_id: str
    max_tokens: int
    threshold: int
    maker: ItemMaker
    summarizer: Summarizer | None
    lock: Lock
    store: ItemStore = msgspec.field(default_factory=ItemStore)
    number: int = 0
    removed: int = 0

    @property
    def free_tokens(self) -> int:
        """Tokens up to the threshold; never below 0."""
        return max(0, self.share(self.threshold) - self.store.tokens)

    def share(self, of_hundred: int) -> int:
        """Return so many hundredths of the window, in tokens."""
        return self.max_tokens * of_hundred // 100

    def add(self, item: ContextItem, strategy: CompactionStrategy) -> ContextItem:
        """Add an item with id, time and token count; see `ContextWindow.add`."""
        try:
            target = self.share(max(0, self.threshold - COMPACTION_STEP))
            self.to(target, strategy, item)
        except ContextWindowFullError as error:
            _log.warning(
                "Context window full for agent %s: current=%d, max=%d, requested=%d",
                self.agent_id,
                error.current_tokens,
                error.max_tokens,
                error.requested_tokens,
            )
            raise
        return item

    def change(self, item_id: str, **changes: object) -> ContextItem:
        """Change an item; return its new state."""
        with self.lock:
            item = self.store.get(validation.text("item_id", item_id))
            if item is None:
                raise UnknownIdError(
                    f"no item {named(item_id)} is in the window of {self.agent_id!r}"
                )
            changed = item.with_changes(**changes)
            self.store.put(changed)
        return changed

    def to(
        self, target: int, strategy: CompactionStrategy, new: ContextItem | None = None
    ) -> list[ContextItem]:
        """Compact to a number of tokens, or make space for a new item, which is then added.

        Returns:
            The items removed or replaced.
        """
        removed: list[ContextItem] = []
        while True:
            with self.lock:
                capacity = self._capacity(target, new)
                is_within = self.store.is_within(capacity)
                if is_within or strategy is not CompactionStrategy.SUMMARIZE:
                    if not is_within:
                        removed += self._evict(capacity, strategy)
                    if new is not None:
                        self.store.put(new)
                    return removed
            removed += self._summarise(capacity)

    def _capacity(self, target: int, new: ContextItem | None) -> Capacity:
        """Return the capacity beside a new item; that of the window if all items may stay.

        Raises:
            ContextWindowFullError: If the protected items exceed it.
            InvalidArgumentError: If the item's id is present already.
        """
        store = self.store
        if new is None:
            return Capacity(max(target, store.protected().tokens), MAX_ITEMS)
        wanted = new.token_count
        if store.get(new.id):
            raise known_id(new)
        if wanted <= self.free_tokens and len(store) < MAX_ITEMS:
            return Capacity(self.max_tokens, MAX_ITEMS)
        protected = store.protected()
        if protected.tokens + wanted > self.max_tokens or protected.items >= MAX_ITEMS:
            error = ContextWindowFullError(store.tokens, self.max_tokens, wanted)
            if protected.items >= MAX_ITEMS:
                error.add_note(f"it holds {MAX_ITEMS} items that must stay, the most it may")
            raise error
        tokens = min(target, self.max_tokens - wanted)
        return Capacity(max(tokens, protected.tokens), MAX_ITEMS - 1)

    def _evict(self, capacity: Capacity, strategy: CompactionStrategy) -> list[ContextItem]:
        """Remove items until the rest is within a capacity, and return the removed ones."""
        return self._remove_all(items_to_evict(strategy, self.store, capacity))

    def _remove_all(self, items: list[ContextItem]) -> list[ContextItem]:
        for item in items:
            self.store.remove(item.id)
        self.number += bool(items)
        self.removed += len(items)
        return items

    def _summarise(self, capacity: Capacity) -> list[ContextItem]:
        """Replace old items by one summary, so that all are within a capacity, and return them.

        The summariser runs without the lock. If another thread removed or pinned one of the items
        meanwhile, nothing is done: the summary would not agree with the items.
        """
        with self.lock:
            replaced = to_summarise(self.store, capacity)
        if not replaced:
            return []
        summary = self._summary(replaced)
        with self.lock:
            current = [self.store.get(item.id) for item in replaced]
            if any(item is None or item.pinned for item in current):
                return []
            self._remove_all(replaced)
            beside = Capacity(capacity.tokens - summary.token_count, capacity.items - 1)
            protected = self.store.protected()
            if protected.tokens <= beside.tokens and protected.items <= beside.items:
                replaced += self._evict(beside, CompactionStrategy.REMOVE_OLDEST)
                self.store.put(summary)
                return replaced
        _log.warning(
            "Summary left out for agent %s: %d tokens do not fit",
            self.agent_id,
            summary.token_count,
        )
        return replaced

    def _summary(self, items: list[ContextItem]) -> ContextItem:
        """Return an item with the summary of others, at the place of the newest of them.

        Raises:
            InvalidArgumentError: If the summariser returns no text.
        """
        from mnemic.threads.sync_bridge import called  # noqa: PLC0415 - seldom used; imports inspect

        assert self.summarizer is not None  # noqa: S101 - `_allowed` saw to it
        text = run_sync(called(self.summarizer, [item.content for item in items]))
        if not isinstance(text, str) or not text.strip():
            raise InvalidArgumentError(f"summarizer must return a text, got {described(text)}")
        summary = ContextItem(
            content=text,
            type=ContextItemType.WORKING_MEMORY,
            priority=max(item.priority for item in items),
            added_at=time_of(items[-1]),
            metadata={"summary_of": len(items)},
        )
        return self.maker.counted(self.maker.timed(summary))
