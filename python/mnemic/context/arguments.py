"""Arguments of a context window: items, contents with their fields, snapshots."""

from collections.abc import Iterable

from mnemic.context.items import (
    MAX_ITEMS,
    ContextItem,
    ContextItemType,
    ContextSnapshot,
    ItemFields,
)
from mnemic.errors import InvalidArgumentError
from mnemic.model import validation
from mnemic.reporting.description import must_be


def given_item(
    given: ContextItem | str, kind: ContextItemType | None, fields: ItemFields
) -> ContextItem:
    """Return the item that was given, or the one of a content with its fields."""
    if isinstance(given, str):
        if kind is None:
            raise InvalidArgumentError("type must be named with a content, such as 'user_message'")
        return ContextItem(content=given, type=kind, **fields)
    if not isinstance(given, ContextItem):
        raise must_be("item", "a ContextItem or a str", given)
    named = [*(("type",) if kind is not None else ()), *fields]
    if named:
        raise InvalidArgumentError(f"{', '.join(named)} must be in the item, not beside it")
    return given


def listed_items(items: Iterable[ContextItem]) -> list[ContextItem]:
    """Return the items that were given."""
    listed = validation.items("items", items)
    for at, item in enumerate(listed):
        if not isinstance(item, ContextItem):
            raise must_be(f"items[{at}]", "a ContextItem", item)
    return listed


def known_id(item: ContextItem) -> InvalidArgumentError:
    """Return the error for an item whose id is in the window."""
    return InvalidArgumentError(f"id {item.id!r} is in the window already; ids must differ")


def check_snapshot(snapshot: object, agent_id: str) -> None:
    """Raise if it is no snapshot, another agent's, or has too many items."""
    if not isinstance(snapshot, ContextSnapshot):
        raise must_be("snapshot", "a ContextSnapshot", snapshot)
    if snapshot.agent_id != agent_id:
        raise InvalidArgumentError(
            f"snapshot is of agent {snapshot.agent_id!r}, the window of {agent_id!r}"
        )
    if len(snapshot.items) > MAX_ITEMS:
        raise InvalidArgumentError(
            f"snapshot must hold at most {MAX_ITEMS} items, got {len(snapshot.items)}"
        )
