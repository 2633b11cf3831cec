"""MnemicMemoryStore: what agents learn and what was said to them, a wall around each store."""

import os
from itertools import zip_longest
from typing import Any
from urllib.parse import quote
from uuid import UUID, uuid4

from strands.memory.extraction.types import ExtractionConfig
from strands.memory.types import (
    AddMessagesContext,
    MemoryEntry,
    MemoryStore,
    Metadata,
    SearchOptions,
)
from strands.types.content import Message

from mnemic import AsyncMemory, AsyncScopedMemory, Memory, MemoryType, SearchHit
from mnemic import MemoryEntry as Stored
from mnemic.adapters import named_id, query_text, storable_text
from mnemic.annotations import MinScore
from mnemic.errors import InvalidArgumentError

_IDS = UUID("0a5b9d0e-6b1f-5a37-8f0e-2d4f0b7e9c61")
_DEFAULT_RESULTS = 10
_MOST_RESULTS = 1_000


class MnemicMemoryStore(MemoryStore):
    """The memories of one name, and of one user where one is named, in a file with others.

    Its calls run outside the thread of the event loop, and may come from several event loops.

    Args:
        memory: A file, made if there is none, ":memory:", a PostgreSQL URL, or an open memory.
        name: The store's name; stores with another name have other memories.
        user_id: Whose memories they are; None is nobody's.
        description: What the store is for; models read it.
        max_search_results: How many a search returns that names no number; None is 10.
        writable: Whether it takes memories.
        extraction: Whether and when messages are stored; see `strands.memory`.
        min_score: Only memories with at least this score, 0 to 1; "auto" returns none unless an
            answer is likely, None the best at any score.

    Attributes:
        memory: The memory; its `close` closes the file.

    Raises:
        InvalidArgumentError: If the name is empty, or a number of results below 1.
    """

    def __init__(
        self,
        memory: str | os.PathLike[str] | Memory | AsyncMemory,
        *,
        name: str,
        user_id: str | None = None,
        description: str | None = None,
        max_search_results: int | None = None,
        writable: bool = True,
        extraction: ExtractionConfig | bool | None = None,
        min_score: MinScore = None,
    ) -> None:
        if not name.strip():
            raise InvalidArgumentError("a store's name must not be empty; name it, as 'notes'")
        if isinstance(memory, str | os.PathLike):
            memory = AsyncMemory(memory, agent_id="strands")
        self.memory = memory.aio if isinstance(memory, Memory) else memory
        self.name = name
        self.description = description
        self.max_search_results = _checked(max_search_results)
        self.writable = writable
        self.extraction = extraction
        self._min_score = min_score
        owner = [name] if user_id is None else [user_id, name]
        self._user = "/".join(quote(part, safe="", errors="surrogatepass") for part in owner)
        self._run = uuid4()

    @property
    def scoped(self) -> AsyncScopedMemory:
        """The memories of this store, with all calls of mnemic."""
        return self.memory.scoped(user_id=self._user)

    async def initialize(self) -> None:
        """Open the file, so that what is wrong with it shows now, and begin a run."""
        await self.memory.count(user_id=self._user)
        self._run = uuid4()

    async def search(self, query: str, options: SearchOptions | None = None) -> list[MemoryEntry]:
        """Return the memories that match a query best, best first; of a long one its beginning.

        A query without letters and digits finds nothing. Beside its own each has as metadata `_id`,
        `_relevanceScore`, 0 to 1, `_createdAt` and, of a message, `_role`.
        """
        given = _checked(options.get("max_search_results")) if options else None
        limit = given or self.max_search_results or _DEFAULT_RESULTS
        asked = query_text(query)
        if not any(map(str.isalnum, asked)):
            return []
        hits = await self.memory.search(
            asked, user_id=self._user, limit=min(limit, _MOST_RESULTS), min_score=self._min_score
        )
        return [MemoryEntry(hit.content, metadata=_metadata(hit)) for hit in hits]

    async def add(self, content: str, metadata: Metadata | None = None) -> Stored:
        """Store a text, and return it as a memory of mnemic.

        One that is there already, but for case, white space and punctuation around it, is stored
        once, with the metadata of both.
        """
        self._check_writable()
        return await self.memory.add(
            storable_text(content), user_id=self._user, metadata=metadata, on_duplicate="merge"
        )

    async def add_messages(
        self, messages: list[Message], context: AddMessagesContext | None = None
    ) -> None:
        """Store the texts of messages, all or none, without those that are stored already.

        A message is known by its text, role and `tracking_id`, or else, until the next agent
        begins, its sequence number. Without either it is stored each time.
        """
        self._check_writable()
        numbers = (context and context.sequence_numbers) or []
        if numbers and len(numbers) != len(messages):
            raise InvalidArgumentError(f"{len(messages)} messages have {len(numbers)} numbers")
        new = [self._new(*each) for each in zip_longest(messages, numbers)]
        if new := [each for each in new if each["content"].strip()]:
            await self.memory.add_many(new, user_id=self._user, on_conflict="skip")

    def _new(self, message: Message, number: int | None) -> dict[str, Any]:
        texts = (block["text"] for block in message["content"] if "text" in block)
        text = storable_text("\n".join(texts))
        numbered = uuid4() if number is None else f"{self._run} {number}"
        key = message.get("tracking_id") or numbered
        return {
            "content": text,
            "id": named_id(_IDS, f"{key}\0{message['role']}\0{text}"),
            "role": message["role"],
            "session_id": str(self._run),
            "type": MemoryType.CONVERSATION,
        }

    def _check_writable(self) -> None:
        if not self.writable:
            raise InvalidArgumentError(f"{self.name}: the store is not writable; set writable=True")


def _checked(limit: int | None) -> int | None:
    if limit is not None and limit < 1:
        raise InvalidArgumentError(f"max_search_results must be at least 1; got {limit}")
    return limit


def _metadata(hit: SearchHit) -> Metadata:
    role = {} if hit.entry.role is None else {"_role": hit.entry.role}
    time = hit.entry.created_at.isoformat()
    added = {"_id": str(hit.id), "_relevanceScore": hit.score, "_createdAt": time}
    return hit.entry.metadata | added | role
