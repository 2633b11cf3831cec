"""Documents as memories."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any
from uuid import UUID, uuid4

from langchain_core.documents import Document

from mnemic import MemoryEntry
from mnemic.adapters import named_id

_IDS = UUID("5b8a2a70-3f0e-5d4b-8f58-3f8b9a0c8f7e")


def entry_id(document_id: str) -> UUID:
    """Return the id of a document's memory; LangChain's ids are any texts."""
    return named_id(_IDS, document_id)


def entry_of(text: str, metadata: Mapping[str, Any], given_id: str | None) -> MemoryEntry:
    """Return a document as a new memory, without its vector; without an id it gets one."""
    name = given_id or str(uuid4())
    made: Callable[..., MemoryEntry] = partial(MemoryEntry, text) if text else MemoryEntry.empty
    return made(id=entry_id(name), message_id=name, metadata=metadata)


def document_of(entry: MemoryEntry) -> Document:
    """Return a memory as a document; one that no vector store added has mnemic's id."""
    own = entry.message_id
    known = own if own is not None and entry_id(own) == entry.id else str(entry.id)
    return Document(id=known, page_content=entry.content, metadata=entry.metadata)
