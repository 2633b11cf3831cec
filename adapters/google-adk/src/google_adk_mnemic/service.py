"""MnemicMemoryService: the events of sessions as memories, a wall around each user of an app."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from google.adk.events.event import Event
from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions.session import Session

from google_adk_mnemic.records import of_entry, of_event, to_entry
from mnemic import AsyncMemory, AsyncScopedMemory, Memory
from mnemic.adapters import query_text
from mnemic.annotations import MinScore
from mnemic.model import OnConflict

_ERASED: Any = {"content": "", "replace_metadata": {"deleted": True}, "status": "archived"}


class MnemicMemoryService(BaseMemoryService):
    """Memories of all apps and users in one file; a search sees those of one user of one app.

    Its calls run outside the thread of the event loop, and may come from several event loops.

    Args:
        memory: A file, made if there is none, ":memory:", a PostgreSQL URL, or an open memory.
        limit: How many memories a search returns at most.
        min_score: Only those with at least this score, 0 to 1; "auto" returns none unless an
            answer is likely, None the best at any score.

    Attributes:
        memory: The memory, for what a memory service has no call for; its `close` closes the file.
    """

    def __init__(
        self,
        memory: str | os.PathLike[str] | Memory | AsyncMemory,
        *,
        limit: int = 10,
        min_score: MinScore = None,
    ) -> None:
        if isinstance(memory, str | os.PathLike):
            memory = AsyncMemory(memory, agent_id="google-adk")
        self.memory = memory.aio if isinstance(memory, Memory) else memory
        self._options: dict[str, Any] = {"limit": limit, "min_score": min_score}

    def scoped(self, *, app_name: str, user_id: str) -> AsyncScopedMemory:
        """Return the memories of a user of an app, with all calls of mnemic."""
        return self.memory.scoped(user_id=_user(app_name, user_id))

    async def add_session_to_memory(self, session: Session) -> None:
        """Store the events of a session that are new, all or none."""
        memories = [of_event(event, None) for event in session.events]
        await self._add(memories, session.app_name, session.user_id, session.id, "skip")

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Store events, all or none, without those that are stored, or were deleted.

        An event is known by its id and text. One without a text, or streamed in part, is skipped.

        Args:
            app_name: The app.
            user_id: Its user.
            events: What to store.
            session_id: Their session.
            custom_metadata: Of each of them, below its own.
        """
        memories = [of_event(event, custom_metadata) for event in events]
        await self._add(memories, app_name, user_id, session_id, "skip")

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Store memories, all or none; one with an id takes the place of that with the same.

        Args:
            app_name: The app.
            user_id: Its user.
            memories: What to store; one without a text is skipped.
            custom_metadata: Of each of them, below its own.
        """
        given = [of_entry(each, custom_metadata) for each in memories]
        await self._add(given, app_name, user_id, None, "replace")

    async def search_memory(
        self, *, app_name: str, user_id: str, query: str
    ) -> SearchMemoryResponse:
        """Return the memories that match a query best, best first; of a long one its beginning.

        A query without letters and digits finds nothing.
        """
        asked = query_text(query)
        if not any(map(str.isalnum, asked)):
            return SearchMemoryResponse()
        user = self.scoped(app_name=app_name, user_id=user_id)
        hits = await user.search(asked, **self._options)
        return SearchMemoryResponse(memories=[to_entry(hit.entry) for hit in hits])

    async def delete_memory(
        self, *, app_name: str, user_id: str, memory_id: str | None = None
    ) -> None:
        """Erase the text of a memory; adding its session again does not bring it back."""
        if memory_id:
            user = self.scoped(app_name=app_name, user_id=user_id)
            await user.update_many(filters={"message_id": memory_id}, **_ERASED)

    async def _add(
        self,
        memories: Iterable[dict[str, Any]],
        app_name: str,
        user_id: str,
        session_id: str | None,
        on_conflict: OnConflict,
    ) -> None:
        new = [memory | {"session_id": session_id or None} for memory in memories if memory]
        if new:
            user = self.scoped(app_name=app_name, user_id=user_id)
            await user.add_many(new, on_conflict=on_conflict)


def _user(app_name: str, user_id: str) -> str:
    """Return one name for both: each is quoted, so that the slash is the only one."""
    return "/".join(quote(part, safe="", errors="surrogatepass") for part in (app_name, user_id))
