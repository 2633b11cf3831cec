"""The items of a window and their sums; callers hold the window's lock."""

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import NamedTuple

from mnemic.context.items import AddOutcome, AddResult, ContextItem, ContextItemType

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
