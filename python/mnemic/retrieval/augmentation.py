"""Adds retrieved memories to a context window."""

from collections.abc import Sequence

from mnemic.context import ContextItemType, ContextWindow
from mnemic.model import MemoryEntry, RankedMemory, Scope

MIN_TOKENS = 4
"""With fewer free tokens no memory is added."""

MIN_PRIORITY, PRIORITY_RANGE = 50, 40
"""Priority of a context item: the minimum plus the range times its relevance."""


def window_contents(scope: Scope, window: ContextWindow) -> dict[str | None, str] | None:
    """Return the contents of a window's items by source, if users may share ids."""
    if not scope.all_users:
        return None
    return {item.source_ref: item.content for item in window.items()}


def _source(entry: MemoryEntry, contents: dict[str | None, str] | None) -> str:
    """Return the `source_ref` of a memory: its id, with its user if another one has that id."""
    memory_id = str(entry.id)
    if contents is None:
        return memory_id
    if contents.setdefault(memory_id, entry.content) == entry.content:
        return memory_id
    return f"{memory_id} of {entry.user_id!r}"


def augment(
    window: ContextWindow, wanted: Sequence[RankedMemory], contents: dict[str | None, str] | None
) -> tuple[int, int]:
    """Add memories with a text into free tokens only; return their number and their tokens."""
    items = tokens = 0
    present: set[str | None] | None = None
    for ranked in wanted:
        if not ranked.entry.content:
            continue
        memory_id = _source(ranked.entry, contents)
        if window.free_tokens < MIN_TOKENS:
            if present is None:
                present = {item.source_ref for item in window.items()}
            if memory_id not in present:  # what is there still gets the higher priority
                continue
        added = window.try_add(
            ranked.entry.content,
            ContextItemType.RETRIEVED_DOCUMENT,
            id=memory_id,
            priority=int(MIN_PRIORITY + PRIORITY_RANGE * ranked.relevance_score),
            source_ref=memory_id,
            metadata={
                "relevance": ranked.relevance_score,
                "memory_type": ranked.entry.type.name,
            },
        )
        items += bool(added)
        tokens += added.tokens_added
    return items, tokens
