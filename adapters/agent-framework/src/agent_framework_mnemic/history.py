"""MnemicHistoryProvider: the messages of each session, in their order."""

import json
from collections.abc import Sequence
from typing import Any

from agent_framework import HistoryProvider, Message

from agent_framework_mnemic.common import AnyMemory, opened, quoted
from mnemic import AsyncScopedMemory, MemoryEntry
from mnemic.adapters import storable_text

_PAGE = 1_000


class MnemicHistoryProvider(HistoryProvider):
    """Keeps the whole messages of sessions, with tool calls, and gives them back as they were.

    Args:
        memory: A file, made if there is none, ":memory:", a PostgreSQL URL, or an open memory.
        user_id: Whose sessions they are; no other user's can be read.
        source_id: The provider's name in sessions and attributions.
        options: Those of `HistoryProvider`, such as `store_outputs`.

    Attributes:
        memory: The memory; its `close` closes the file.
    """

    def __init__(
        self, memory: AnyMemory, *, user_id: str, source_id: str = "mnemic_history", **options: Any
    ) -> None:
        super().__init__(source_id, **options)
        self.memory = opened(memory)
        self._user = f"{quoted(user_id)}/history"

    def scoped(self, session_id: str | None = None) -> AsyncScopedMemory:
        """Return the messages of a session, or all of the user's, with all calls of mnemic."""
        named = None if session_id is None else quoted(session_id)
        return self.memory.scoped(user_id=self._user, session_id=named)

    async def get_messages(self, session_id: str | None, **_: Any) -> list[Message]:
        """Return the messages of a session, oldest first."""
        session = self.scoped(session_id or "default")
        page = await session.list(limit=_PAGE)
        found = [*page]
        while page.cursor is not None:
            page = await session.list(limit=_PAGE, cursor=page.cursor)
            found += page
        return [_message(entry) for entry in reversed(found)]

    async def save_messages(
        self, session_id: str | None, messages: Sequence[Message], **_: Any
    ) -> None:
        """Store messages, all or none, without those at their beginning that the session ends with.

        So a conversation that is given as a whole each time is stored once.
        """
        session = self.scoped(session_id or "default")
        last = await session.list(limit=min(len(messages) or 1, _PAGE))
        known = [_message(entry) for entry in reversed(last)]
        new = messages[_overlap(known, messages) :]
        await session.add_many([_memory(message) for message in new])


def _overlap(known: Sequence[Message], given: Sequence[Message]) -> int:
    """Return how many messages end the one and begin the other; an input may be repeated."""
    ends, begins = [_identity(each) for each in known], [_identity(each) for each in given]
    for size in range(min(len(ends), len(begins)), 0, -1):
        is_repeated = size == 1 and known[-1].role == "user" and not known[-1].message_id
        if ends[-size:] == begins[:size] and not is_repeated:
            return size
    return 0


def _identity(message: Message) -> object:
    contents = [content.to_dict() for content in message.contents]
    return message.message_id or (message.role, json.dumps(contents, sort_keys=True))


def _message(entry: MemoryEntry) -> Message:
    return Message.from_dict(json.loads(entry.metadata["message"]))


def _memory(message: Message) -> dict[str, Any]:
    """Return a message as a memory, which is found by its words; it takes no vector."""
    text, whole = storable_text(message.text).strip(), json.dumps(message.to_dict())
    return {"content": text, "metadata": {"message": whole}, "embed": ()}
