"""Records of CrewAI as memories, and the arguments of its calls as mnemic's."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from inspect import Signature, signature
from typing import Any
from uuid import UUID

from crewai.memory.storage.backend import StorageBackend
from crewai.memory.types import MemoryRecord

from mnemic import MemoryEntry
from mnemic.adapters import named_id

_IDS = UUID("0e0f7be5-61f3-5f39-9d5c-6a2f3f8f9f1d")
_SEARCH, _DELETE = signature(StorageBackend.search), signature(StorageBackend.delete)


def entry_id(record_id: str) -> UUID:
    """Return the id of a record's memory; CrewAI's ids are any texts."""
    return named_id(_IDS, record_id)


def path_of(scope: str | None) -> str:
    """Return a scope with a slash at both ends, so that "/a" is no prefix of "/ab"."""
    return "/" + "".join(f"{part}/" for part in (scope or "").split("/") if part)


def children_of(scope: str, paths: Iterable[str]) -> list[str]:
    """Return the scopes one level below a scope that lead to these paths, in order."""
    own = path_of(scope)
    return sorted({own + path[len(own) :].split("/", 1)[0] for path in paths if path != own})


def entry_of(record: MemoryRecord) -> MemoryEntry:
    """Return a record as a new memory, without a vector of zeros and without empty categories.

    Raises:
        TypeError: If JSON cannot hold the metadata, as from CrewAI's own storages.
    """
    return MemoryEntry(
        record.content,
        id=entry_id(record.id),
        message_id=record.id,
        created_at=_in_utc(record.created_at),
        last_accessed_at=_in_utc(record.last_accessed),
        importance=record.importance,
        tags=list(filter(None, record.categories)),
        metadata=json.loads(json.dumps(record.metadata)),
        scope=path_of(record.scope),
        source=record.source or None,
        sensitive=record.private,
        embedding=record.embedding if any(record.embedding or ()) else None,
    )


def record_of(entry: MemoryEntry) -> MemoryRecord:
    """Return a memory as a record; its times have no zone and are in UTC, as CrewAI's."""
    return MemoryRecord(
        id=entry.message_id or str(entry.id),
        content=entry.content,
        scope=(entry.scope or "").rstrip("/") or "/",
        categories=list(entry.tags),
        metadata=entry.metadata,
        importance=entry.importance,
        created_at=_without_zone(entry.created_at),
        last_accessed=_without_zone(entry.last_accessed_at or entry.created_at),
        embedding=None if entry.embedding is None else entry.embedding.tolist(),
        source=entry.source,
        private=entry.sensitive,
    )


def filters_of(scope_prefix: str | None, **given: Any) -> dict[str, Any]:
    """Return the filter of what is in a scope and meets all conditions of a call."""
    filters = {
        f"metadata.{key}": {"eq": value}
        for key, value in (given.get("metadata_filter") or {}).items()
    }
    if categories := given.get("categories"):
        filters["tags"] = {"any": categories}
    if older_than := given.get("older_than"):
        filters["created_at"] = {"lt": _in_utc(older_than)}
    return filters | {"scope": {"prefix": path_of(scope_prefix)}}


def query_of(*args: Any, **named: Any) -> dict[str, Any]:
    """Return the arguments of mnemic's search; none where nothing is near, or wanted."""
    given = _arguments(_SEARCH, *args, **named)
    if given["limit"] < 1 or not any(given["query_embedding"]):
        return {}
    return {
        "vector": given["query_embedding"],
        "search_type": "semantic",
        "filters": filters_of(**given),
        "limit": given["limit"],
        "min_score": given["min_score"] or None,
    }


def deletion_of(*args: Any, **named: Any) -> dict[str, Any]:
    """Return the arguments of mnemic's deletion; a list of no ids means no record."""
    given = _arguments(_DELETE, *args, **named)
    ids = None if given["record_ids"] is None else list(map(entry_id, given["record_ids"]))
    return {"ids": ids, "filters": filters_of(**given), "permanent": True}


def _arguments(method: Signature, *args: Any, **named: Any) -> dict[str, Any]:
    call = method.bind(None, *args, **named)
    call.apply_defaults()
    return call.arguments


def _in_utc(time: datetime) -> datetime:
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time


def _without_zone(time: datetime) -> datetime:
    return time.astimezone(UTC).replace(tzinfo=None)
