"""Renders the items of a window to a text or to messages."""

from collections.abc import Iterable
from datetime import datetime

from mnemic.context.item_store import in_order, newest_first, oldest_first, time_of
from mnemic.context.items import BuildContextOptions, BuiltContext, ContextItem, ContextItemType
from mnemic.context.tokens import counted
from mnemic.protocols import TokenCounter


def render(
    items: list[ContextItem],
    options: BuildContextOptions,
    max_tokens: int,
    counter: TokenCounter,
) -> BuiltContext:
    """Choose among items, given in the order they were added, and join them.

    Raises:
        InvalidArgumentError: If the reserve leaves nothing.
    """
    budget = options.budget(max_tokens)
    wanted = [item for item in items if options.types is None or item.type in options.types]
    between = counted(counter, options.separator)
    chosen = _fitting(_without_old_history(wanted, options.max_history), between, budget)
    while True:
        kept = {item.id for item in chosen}
        read = sorted((item for item in wanted if item.id in kept), key=_reading_place)
        text = options.separator.join(item.content for item in read)
        tokens = counted(counter, text)
        if tokens <= budget or not chosen or chosen[-1].is_protected:
            break
        chosen.pop()  # a tokenizer may need more for the whole than for its parts
    return BuiltContext(
        text=text,
        items=tuple(read),
        left_out=tuple(in_order(item for item in wanted if item.id not in kept)),
        token_count=tokens,
        budget=budget,
    )


def messages(items: Iterable[ContextItem]) -> list[dict[str, str]]:
    """Return each item as a message with `role` and `content`."""
    return [{"role": item.role or item.type.role, "content": item.content} for item in items]


def _without_old_history(items: list[ContextItem], max_history: int) -> list[ContextItem]:
    history = oldest_first(item for item in items if item.type.is_history and not item.pinned)
    old = {item.id for item in history[: max(0, len(history) - max_history)]}
    return [item for item in items if item.id not in old]


def _fitting(items: list[ContextItem], between: int, budget: int) -> list[ContextItem]:
    """Return the items that fit, by weight and newest first; those that do not fit are skipped."""
    chosen, tokens = list[ContextItem](), -between
    for item in sorted(newest_first(items), key=_weight):
        cost = item.token_count + between
        if item.is_protected or tokens + cost <= budget:
            chosen.append(item)
            tokens += cost
    return chosen


def _weight(item: ContextItem) -> tuple[bool, bool, int]:
    is_instruction = item.type is ContextItemType.INSTRUCTION
    return not item.is_protected, not is_instruction, -item.priority


def _reading_place(item: ContextItem) -> tuple[ContextItemType, int, datetime]:
    if item.type.is_history:
        return ContextItemType.USER_MESSAGE, 0, time_of(item)
    return item.type, -item.priority, time_of(item)
