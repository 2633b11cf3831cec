"""Contents of the kit as memories, and memories as its entries."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

from google.adk.events.event import Event
from google.adk.memory.memory_entry import MemoryEntry
from google.genai.types import Content, Part

from mnemic import MemoryEntry as Stored
from mnemic import MemoryType
from mnemic.adapters import named_id, storable_text
from mnemic.errors import InvalidEntryError

_IDS = UUID("5c0f3a52-8a5e-5d5c-9d0b-4f9f4b8f5a37")
_BLOBS = {"parts": {"__all__": {"inline_data"}}}
_Metadata = Mapping[str, object] | None


def of_event(event: Event, metadata: _Metadata) -> dict[str, Any]:
    """Return an event as a new memory, which is empty without a text, and for a streamed part."""
    content = None if event.partial else event.content
    memory = _new(content, event.id, event.author, metadata, event.custom_metadata)
    if memory:
        # With its text, because programs that number events themselves begin anew in each session.
        memory["id"] = named_id(_IDS, f"{event.id}\0{memory['content']}")
        memory["created_at"] = _time(event.timestamp)
        memory["type"] = MemoryType.CONVERSATION
    return memory


def of_entry(entry: MemoryEntry, metadata: _Metadata) -> dict[str, Any]:
    """Return an entry as a new memory, which is empty without a text."""
    key = entry.id or str(uuid4())
    memory = _new(entry.content, key, entry.author, metadata, entry.custom_metadata)
    if memory:
        memory["id"] = named_id(_IDS, key)
        memory["metadata"]["timestamp"] = entry.timestamp
        with suppress(ValueError):
            memory["created_at"] = datetime.fromisoformat(entry.timestamp or "")
    return memory


def to_entry(stored: Stored) -> MemoryEntry:
    """Return a memory as an entry, with its session among the metadata."""
    kept = stored.metadata
    session = {"session_id": stored.session_id} if stored.session_id else {}
    return MemoryEntry(
        id=stored.message_id,
        content=_content(stored.content, stored.role, kept.get("content")),
        author=stored.speaker,
        timestamp=kept.get("timestamp") or stored.created_at.astimezone().isoformat(),
        custom_metadata=session | kept.get("custom", {}),
    )


def _new(
    content: Content | None, key: str, author: str | None, *metadata: _Metadata
) -> dict[str, Any]:
    content = content or Content()
    texts = [part.text for part in content.parts or () if part.text and not part.thought]
    text = storable_text("\n".join(texts))
    if not text.strip():
        return {}
    custom = {key: value for each in metadata for key, value in (each or {}).items()}
    role, speaker = content.role or None, author or None
    kept: dict[str, Any] = {"custom": custom}
    if content != _content(text, role):
        with suppress(ValueError):  # of halves of surrogate pairs, which no file can hold
            kept["content"] = content.model_dump_json(exclude_none=True, exclude=_BLOBS)
    return {"content": text, "role": role, "speaker": speaker, "message_id": key, "metadata": kept}


def _content(text: str, role: str | None, whole: str | None = None) -> Content:
    if whole is not None:
        return Content.model_validate_json(whole)
    return Content(role=role, parts=[Part(text=text)])


def _time(seconds: float) -> datetime:
    with suppress(OverflowError, ValueError, OSError):
        return datetime.fromtimestamp(seconds, UTC)
    raise InvalidEntryError(f"an event's timestamp is {seconds}; give seconds of a year to 9999")
