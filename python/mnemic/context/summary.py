"""The item that replaces others by a summary of their contents."""

from collections.abc import Sequence

from mnemic.context.item_store import time_of
from mnemic.context.items import ContextItem, ContextItemType
from mnemic.errors import InvalidArgumentError
from mnemic.protocols import Summarizer
from mnemic.reporting.description import described
from mnemic.threads.sync_bridge import run_sync


def summary_of(items: Sequence[ContextItem], summarizer: Summarizer) -> ContextItem:
    """Return the summary of items, oldest first, at the time of the newest of them.

    Raises:
        InvalidArgumentError: If the summariser returns no text.
    """
    from mnemic.threads.calling import called  # noqa: PLC0415 - seldom used; imports inspect

    text = run_sync(called(summarizer, [item.content for item in items]))
    if not isinstance(text, str) or not text.strip():
        raise InvalidArgumentError(f"summarizer must return a text, got {described(text)}")
    return ContextItem(
        content=text,
        type=ContextItemType.WORKING_MEMORY,
        priority=max(item.priority for item in items),
        added_at=time_of(items[-1]),
        metadata={"summary_of": len(items)},
    )
