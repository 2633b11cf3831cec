"""A block of LlamaIndex's memory over mnemic."""

from typing import Any

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory import BaseMemoryBlock

from mnemic import MemoryEntry, ScopedMemory
from mnemic.adapters import query_text, storable_text

_SESSION = "session_id"  # the key under which LlamaIndex gives it


class MnemicMemoryBlock(BaseMemoryBlock[str]):
    """What a user said before, in any session, found by meaning and words.

    The memory embeds texts itself, by default with mnemic's local model.

    Attributes:
        memory: An open `mnemic.Memory`, or a view of one.
        user_id: The user whose messages these are. The block finds those of no other one.
        max_tokens: The most that the found messages take in a prompt.
    """

    name: str = "mnemic"
    memory: ScopedMemory
    user_id: str | None = None
    max_tokens: int = 1000

    async def _aget(self, messages: list[ChatMessage] | None = None, **_: Any) -> str:
        """Return what the last message with a text is about, as lines of a prompt."""
        texts = [text for each in messages or () if (text := query_text(each.content or ""))]
        if not texts:
            return ""
        memory = self.memory.scoped(user_id=self.user_id).aio
        found = await memory.context(texts[-1], max_tokens=self.max_tokens)
        return str(found)

    async def _aput(self, messages: list[ChatMessage]) -> None:
        """Store the messages that have a text, all or none."""
        entries = [
            MemoryEntry(
                text, role=each.role.value, session_id=each.additional_kwargs.get("session_id")
            )
            for each in messages
            if (text := storable_text(each.content or "")).strip()
        ]
        await self.memory.scoped(user_id=self.user_id).aio.add_many(entries)
