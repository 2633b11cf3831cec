"""Order in which items are evicted when a window is compacted."""

from collections.abc import Iterator

from mnemic._core import duplicates
from mnemic.context.item_store import Capacity, ItemStore, newest_first, oldest_first
from mnemic.context.items import CompactionStrategy, ContextItem, ContextItemType

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
    """Return all removable items in the order of eviction."""
    if strategy is CompactionStrategy.SELECTIVE:
        return _selective_order(items)
    removable = oldest_first(item for item in items if not item.is_protected)
    if strategy is CompactionStrategy.REMOVE_LOW_PRIORITY:
        removable.sort(key=lambda item: item.priority)
    return removable


def _selective_order(items: list[ContextItem]) -> list[ContextItem]:
    """Return near duplicates, then the others by type, then by priority per token."""
    best_first = sorted(newest_first(items), key=_sort_key)
    repeated = list(_near_duplicates(best_first))
    duplicate_ids = {item.id for item in repeated}
    rest = [
        item
        for item in oldest_first(items)
        if not item.is_protected and item.id not in duplicate_ids
    ]
    rest.sort(key=lambda item: (_EVICTION_TYPES.index(item.type), _retention_score(item)))
    return repeated[::-1] + rest


def _sort_key(item: ContextItem) -> tuple[bool, int]:
    return not item.is_protected, -item.priority


def _retention_score(item: ContextItem) -> float:
    return item.priority / max(1, item.token_count)


def _near_duplicates(items: list[ContextItem]) -> Iterator[ContextItem]:
    """Yield removable items that nearly repeat an earlier one that was not yielded."""
    repeated = duplicates([item.content for item in items], NEAR_DUPLICATE)
    for place, item in enumerate(items):
        if repeated[place] != place and not item.is_protected:
            yield item
