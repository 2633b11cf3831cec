"""A session whose items are memories: they keep their order, and what was said can be searched."""

import asyncio
import json
from collections.abc import AsyncIterator, Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar, cast
from uuid import UUID, uuid5

from agents import SessionSettings, TResponseInputItem

from mnemic import AsyncScopedMemory, MemoryEntry, MemoryType, ScopedMemory
from mnemic.adapters import storable_text
from mnemic.errors import DuplicateEntryError

_Result = TypeVar("_Result")
_IDS: Final = UUID("0f6b5e0c-54a1-4b43-9c5e-6c2a1f3f7f0e")
_SOURCE: Final = "openai-agents"
_ITEMS: Final = {"source": _SOURCE}
_PAGE: Final = 1000
_STEP: Final = timedelta(microseconds=1)


class MnemicSession:
    """A conversation in a memory, for `Runner.run(…, session=…)`.

    Several objects, tasks and processes may use one conversation. Items come back as they were
    given, byte by byte as JSON. A message's text is the content of a memory of this user and
    session, which searches find. A call that is cancelled while it writes waits for the outcome.

    Args:
        session_id: Name of the conversation, of this user alone.
        memory: An open memory, plain or awaited; closing it is the caller's.
        user_id: Whose conversation it is; None is one without a user.
        session_settings: How many items `get_items` returns; by default all.
    """

    def __init__(
        self,
        session_id: str,
        memory: ScopedMemory | AsyncScopedMemory,
        *,
        user_id: str | None = None,
        session_settings: SessionSettings | None = None,
    ) -> None:
        self.session_id = session_id
        self.session_settings: SessionSettings | None = SessionSettings().resolve(session_settings)
        self.memory = memory.aio if isinstance(memory, ScopedMemory) else memory
        self._scope: dict[str, Any] = {"user_id": user_id, "session_id": session_id}

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the items, oldest first.

        Args:
            limit: Only the newest so many; a negative one is no limit, and None is that of the
                settings.
        """
        if limit is None:
            limit = SessionSettings().resolve(self.session_settings).limit
        left = None if limit is None or limit < 0 else limit
        return [_item(entry) async for entry in self._newest(left)][::-1]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Add items behind the last one, one after the other: all or none.

        Raises:
            TypeError: If an item is not JSON.
            InvalidEntryError: If an item and its text have more than 10 MB.
        """
        records = [_record(item) for item in items]
        if records:
            await _settled(self._append(records))

    async def pop_item(self) -> TResponseInputItem | None:
        """Delete the newest item for good and return it; None if there is none.

        Of several that pop at once no two get the same item.
        """
        return await _settled(self._pop())

    async def clear_session(self) -> None:
        """Delete all items for good; other memories of the session stay."""
        await _settled(self.memory.delete_many(filters=_ITEMS, permanent=True, **self._scope))

    async def _append(self, records: list[dict[str, Any]]) -> None:
        last, step = None, 0
        while True:
            before, last = last, await anext(self._newest(1), None)
            # Ids of deleted items may be in use still: they are passed over.
            step = step + 1 if before == last else 1
            self._place(records, last, step)
            try:
                await self.memory.add_many(records, **self._scope)
            except DuplicateEntryError:  # others were faster: behind theirs, then
                continue
            return

    async def _pop(self) -> TResponseInputItem | None:
        while (last := await anext(self._newest(1), None)) is not None:
            if await self.memory.delete_many([last.id], permanent=True, **self._scope):
                return _item(last)
        return None

    def _place(self, records: list[dict[str, Any]], last: MemoryEntry | None, step: int) -> None:
        """Give records the next places; the id of a place can be stored by one writer alone."""
        place, time = step, datetime.now(UTC)
        if last is not None:
            place += last.position or 0
            time = max(time, last.created_at + _STEP)
        names = self.memory.scope.project_id, self.session_id
        for number, record in enumerate(records):
            record["position"] = place + number
            record["created_at"] = time + number * _STEP
            record["id"] = uuid5(_IDS, json.dumps([*names, place + number]))

    async def _newest(self, left: int | None) -> AsyncIterator[MemoryEntry]:
        cursor = None
        while left != 0:
            size = _PAGE if left is None else min(left, _PAGE)
            page = await self.memory.list(limit=size, cursor=cursor, filters=_ITEMS, **self._scope)
            for entry in page:
                yield entry
            left, cursor = left and left - len(page), page.cursor
            if cursor is None:
                return


async def _settled(writing: Coroutine[Any, Any, _Result]) -> _Result:
    """Await a write; a cancelled call ends when the outcome is known, as those of the SDK do."""
    task, cancelled = asyncio.ensure_future(writing), None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        task.exception()  # is known now, and nobody's to handle
        raise cancelled
    return task.result()


def _record(item: TResponseInputItem) -> dict[str, Any]:
    text, role = _text(item), item.get("role")
    return {
        "content": text,
        **({} if text else {"embed": ()}),
        "type": MemoryType.CONVERSATION,
        "role": role if isinstance(role, str) else None,
        "source": _SOURCE,
        "metadata": {"item": json.dumps(item)},  # as a text it keeps all numbers and surrogates
    }


def _item(entry: MemoryEntry) -> TResponseInputItem:
    return cast("TResponseInputItem", json.loads(entry.metadata["item"]))


def _text(item: TResponseInputItem) -> str:
    """Return the text of a message, without what no memory can hold; "" of other items."""
    content = item.get("content")
    parts = content if isinstance(content, list) else [{"text": content}]
    texts = (part.get("text") for part in parts if isinstance(part, dict))
    text = "\n".join(text for text in texts if isinstance(text, str))
    return storable_text(text).strip()
