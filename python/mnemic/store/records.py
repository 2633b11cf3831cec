"""MemoryEntry to the columns of `agent_memory_entries` and back."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from typing import Any
from uuid import UUID

import msgspec
import numpy as np

from mnemic._core import fingerprint_digests
from mnemic.errors import StoreCorruptError
from mnemic.model import MemoryEntry, MemoryStatus, MemoryType, RowFacts

DAMAGED = "the file is damaged; keep it, and restore a backup"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_TYPES = tuple(MemoryType)
_STATUSES = tuple(MemoryStatus)
_to_json = msgspec.json.Encoder().encode
_from_json = msgspec.json.decode

COLUMNS = (
    "agent_id, id, user_id, project_id, session_id, memory_type, status, importance, created_at, "
    "updated_at, last_accessed_at, access_count, forgotten_at, expires_at, role, speaker, "
    "message_id, position, category, scope, version, supersedes, is_sensitive, is_encrypted, "
    "type_name, tags, metadata, content"
)
"""In the order of `to_row` and `from_row`."""


CHANGEABLE = (
    "memory_type = ?, importance = ?, updated_at = ?, tags = ?, metadata = ?, content = ?, "
    "fingerprint = ?"
)
"""In the order of `to_changed`."""


_facts = itemgetter(
    *map(
        COLUMNS.split(", ").index,
        ("user_id", "project_id", "session_id", "created_at", "id", "expires_at"),
    )
)

_FINGERPRINT_BYTES = 16  # 128 bits: two of 2**32 texts are taken for one with a chance of 2**-65


def fingerprint(content: str) -> bytes:
    """Return what is equal for texts that count as the same; see `mnemic.fingerprint`."""
    return fingerprints([content])[0]


def fingerprints(contents: list[str]) -> list[bytes]:
    """Return the fingerprint of each text."""
    return [digest[:_FINGERPRINT_BYTES] for digest in fingerprint_digests(contents)]


def to_microseconds(time: datetime) -> int:
    """Return microseconds since 1970, exactly."""
    return (time - _EPOCH) // _MICROSECOND


def from_microseconds(microseconds: int) -> datetime:
    """Return the aware time in UTC, exactly."""
    return _EPOCH + timedelta(microseconds=microseconds)


def to_row(entry: MemoryEntry) -> tuple[Any, ...]:
    """Return the entry's columns; the embedding has a table of its own."""
    return (
        entry.agent_id,
        entry.id.bytes,
        entry.user_id,
        entry.project_id,
        entry.session_id,
        int(entry.type),
        int(entry.status),
        entry.importance,
        to_microseconds(entry.created_at),
        to_microseconds(entry.updated_at),
        _to_optional_time(entry.last_accessed_at),
        entry.access_count,
        _to_optional_time(entry.forgotten_at),
        _to_optional_time(entry.expires_at),
        entry.role,
        entry.speaker,
        entry.message_id,
        entry.position,
        entry.category,
        entry.scope,
        entry.version,
        entry.supersedes.bytes if entry.supersedes else None,
        int(entry.sensitive),
        int(entry.is_encrypted),
        entry.type_name,
        _to_json(entry.tags).decode() if entry.tags else None,
        _to_json(entry.metadata).decode() if entry.metadata else None,
        entry.content,
    )


def to_changed(entry: MemoryEntry) -> tuple[Any, ...]:
    """Return the columns that an update may change."""
    return (
        int(entry.type),
        entry.importance,
        to_microseconds(entry.updated_at),
        _to_json(entry.tags).decode() if entry.tags else None,
        _to_json(entry.metadata).decode() if entry.metadata else None,
        entry.content,
        fingerprint(entry.content),
    )


def facts_of(row: int, columns: Sequence[Any]) -> RowFacts:
    """Return what an index needs to know of the entry that `to_row` took apart."""
    return RowFacts(row, *_facts(columns))


def from_row(columns: Sequence[Any]) -> MemoryEntry:
    """Return the entry that `to_row` took apart, without its embedding.

    Raises:
        StoreCorruptError: If no entry can have been stored so: the file is damaged. A content that
            was changed into other text cannot be told.
    """
    try:
        entry = _from_row(columns)
    except (ArithmeticError, LookupError, TypeError, ValueError, msgspec.DecodeError) as error:
        raise StoreCorruptError(f"a stored memory cannot be read ({error}); {DAMAGED}") from error
    if "\0" in entry.content:  # what a lost sector reads as, and what is never stored
        raise StoreCorruptError(f"memory {entry.id} has lost a part of its content; {DAMAGED}")
    return entry


def _from_row(columns: Sequence[Any]) -> MemoryEntry:
    (
        agent_id, entry_id, user_id, project_id, session_id, memory_type, status, importance,
        created_at, updated_at, last_accessed_at, access_count, forgotten_at, expires_at, role,
        speaker, message_id, position, category, scope, version, supersedes, sensitive,
        is_encrypted, type_name, tags, metadata, content,
    ) = columns  # fmt: skip
    return MemoryEntry.of_stored(
        {
            "agent_id": agent_id,
            "id": UUID(bytes=entry_id),
            "user_id": user_id,
            "project_id": project_id,
            "session_id": session_id,
            "type": _TYPES[memory_type],
            "status": _STATUSES[status],
            "importance": importance,
            "created_at": from_microseconds(created_at),
            "updated_at": from_microseconds(updated_at),
            "last_accessed_at": _from_optional_time(last_accessed_at),
            "access_count": access_count,
            "forgotten_at": _from_optional_time(forgotten_at),
            "expires_at": _from_optional_time(expires_at),
            "role": role,
            "speaker": speaker,
            "message_id": message_id,
            "position": position,
            "category": category,
            "scope": scope,
            "version": version,
            "supersedes": UUID(bytes=supersedes) if supersedes else None,
            "sensitive": bool(sensitive),
            "is_encrypted": bool(is_encrypted),
            "type_name": type_name,
            "tags": tuple(_from_json(tags)) if tags else (),
            "metadata": _from_json(metadata) if metadata else {},
            "content": content,
        }
    )


def with_vector(entry: MemoryEntry, vector: bytes | None, model: str | None) -> MemoryEntry:
    """Return the entry with its stored vector of a model, if it has one."""
    if vector is None or model is None:
        return entry
    return entry.with_embedding(np.frombuffer(vector, dtype="<f4"), model)


def _to_optional_time(time: datetime | None) -> int | None:
    return None if time is None else to_microseconds(time)


def _from_optional_time(microseconds: int | None) -> datetime | None:
    return None if microseconds is None else from_microseconds(microseconds)
