"""Converts a MemoryEntry to the columns of `agent_memory_entries` and back."""

import copy
import re
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from itertools import compress
from operator import ne
from typing import Any
from uuid import UUID, SafeUUID

import msgspec
import numpy as np
from msgspec.structs import force_setattr
from numpy.typing import NDArray

from mnemic.errors import InvalidEntryError, MnemicError, StoreCorruptError
from mnemic.model import MemoryEntry, MemoryStatus, MemoryType, validation
from mnemic.model.timestamps import EPOCH, from_microseconds, to_microseconds
from mnemic.model.validation import MAX_CONTENT_BYTES, MAX_METADATA_DEPTH
from mnemic.store.fingerprints import fingerprint

RESTORE = "keep it, and restore a backup (its -wal and -shm are not the backup's: move them away)"
"""Advice for a damaged file. A log left beside a restored backup would be mixed into it."""

DAMAGED = f"the file is damaged; {RESTORE}"

_TYPES = dict(enumerate(MemoryType))
_STATUSES = dict(enumerate(MemoryStatus))
_FLAGS = {0: False, 1: True}
_to_json = msgspec.json.Encoder().encode

COLUMNS = (
    "agent_id, id, created_at, updated_at, content, user_id, project_id, session_id, memory_type, "
    "status, importance, last_accessed_at, access_count, forgotten_at, expires_at, role, speaker, "
    "message_id, position, category, scope, version, supersedes, is_sensitive, is_encrypted, "
    "type_name, tags, metadata"
)
"""Columns in the order of `to_row` and `from_row`; each entry has its own values in the first five.
"""


CHANGEABLE = (
    "memory_type = ?, importance = ?, updated_at = ?, tags = ?, metadata = ?, content = ?, "
    "fingerprint = ?, status = ?"
)
"""Assignments in the order of `to_changed`."""


_OWN = 5
_UUID_BYTES = 16
_set_number = UUID.__dict__["int"].__set__
_set_safety = UUID.__dict__["is_safe"].__set__


def to_row(entry: MemoryEntry) -> tuple[Any, ...]:
    """Return the entry's columns; embeddings have their own table."""
    created_at = to_microseconds(entry.created_at)
    is_unchanged = entry.updated_at is entry.created_at  # as most are
    tags, metadata = to_texts(entry)
    return (
        entry.agent_id,
        entry.id.bytes,
        created_at,
        created_at if is_unchanged else to_microseconds(entry.updated_at),
        entry.content,
        entry.user_id,
        entry.project_id,
        entry.session_id,
        int(entry.type),
        int(entry.status),
        entry.importance,
        None if entry.last_accessed_at is None else to_microseconds(entry.last_accessed_at),
        entry.access_count,
        None if entry.forgotten_at is None else to_microseconds(entry.forgotten_at),
        None if entry.expires_at is None else to_microseconds(entry.expires_at),
        entry.role,
        entry.speaker,
        entry.message_id,
        entry.position,
        entry.category,
        entry.scope,
        entry.version,
        None if entry.supersedes is None else entry.supersedes.bytes,
        int(entry.sensitive),
        int(entry.is_encrypted),
        entry.type_name,
        tags,
        metadata,
    )


def to_changed(entry: MemoryEntry) -> tuple[Any, ...]:
    """Return the columns that an update may change."""
    return (
        int(entry.type),
        entry.importance,
        to_microseconds(entry.updated_at),
        *to_texts(entry),
        entry.content,
        fingerprint(entry.content),
        int(entry.status),
    )


def to_texts(entry: MemoryEntry) -> tuple[str | None, str | None]:
    """Return tags and metadata in their stored form.

    Raises:
        InvalidEntryError: If they and the content together are larger than 10 MB.
    """
    if not entry.tags and not entry.metadata:  # and a content alone is never too large
        return None, None
    tags = _to_json(entry.tags) if entry.tags else b""
    metadata = _to_json(entry.metadata) if entry.metadata else b""
    if len(tags) + len(metadata) + len(entry.content.encode()) > MAX_CONTENT_BYTES:
        raise InvalidEntryError(
            f"memory {entry.id}: content, tags and metadata together are larger than 10 MB; keep "
            "large things elsewhere, and their place in metadata"
        )
    return tags.decode() or None, metadata.decode() or None


def with_changed(entry: MemoryEntry, changed: MemoryEntry) -> MemoryEntry:
    """Return the entry with the columns of `to_changed` taken from another state."""
    kept = copy.copy(entry)
    for field in ("type", "importance", "updated_at", "tags", "metadata", "content", "status"):
        force_setattr(kept, field, getattr(changed, field))
    return kept


UNREADABLE = (
    ArithmeticError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
    msgspec.DecodeError,
)
"""Errors raised by decoding a value that cannot have been stored."""


@contextmanager
def reading_stored(what: str) -> Generator[None, None, None]:
    """Convert errors of decoding stored values to StoreCorruptError.

    Args:
        what: Name of the value for the message, such as "a link".
    """
    try:
        yield
    except MnemicError:
        raise
    except UNREADABLE as error:
        kind = type(error).__name__  # its message may quote what is stored
        raise StoreCorruptError(f"{what} cannot be read ({kind}); {DAMAGED}") from None


def from_row(columns: Sequence[Any]) -> MemoryEntry:
    """Return the entry of the columns of `to_row`, without its embedding.

    Raises:
        StoreCorruptError: If no entry has these columns: the file is damaged. A content changed
            into another text is not detected.
    """
    try:
        entry = _from_row(columns)
        is_whole = "\0" not in entry.content  # a lost sector reads as NULs, which are never stored
    except UNREADABLE as error:
        problem = type(error).__name__  # its message may quote what is stored
    else:
        if is_whole:
            return entry
        raise StoreCorruptError(f"memory {entry.id} has lost a part of its content; {DAMAGED}")
    raise StoreCorruptError(f"a stored memory cannot be read ({problem}); {DAMAGED}")


def _from_row(columns: Sequence[Any]) -> MemoryEntry:
    agent_id, entry_id, created_at, updated_at, content, *others = columns
    if type(content) is not str or len(content) > MAX_CONTENT_BYTES or not content:
        raise ValueError("a content that is no text, or empty, or too long")
    entry = _BLANK.detached()
    time = from_microseconds(created_at)
    force_setattr(entry, "agent_id", agent_id)
    force_setattr(entry, "id", uuid_of(entry_id))
    force_setattr(entry, "created_at", time)
    is_unchanged = updated_at == created_at  # as most are
    force_setattr(entry, "updated_at", time if is_unchanged else from_microseconds(updated_at))
    force_setattr(entry, "content", content)
    if others != _DEFAULTS:
        differ = map(ne, others, _DEFAULTS)
        for (field, read), value in compress(zip(_FIELDS, others, strict=True), differ):
            force_setattr(entry, field, read(value))
    return entry


def vector_of(blob: bytes) -> NDArray[np.float32]:
    """Return a stored vector.

    Raises:
        ValueError: If it is not a vector, or has a component that is not finite.
    """
    if type(blob) is not bytes or not blob:
        raise ValueError("a vector that is none")
    vector = np.frombuffer(blob, dtype="<f4")
    if not np.isfinite(vector).all():
        raise ValueError("a vector with a component that is no number")
    return vector


def key_of(key: str | None) -> str | None:
    """Return a stored idempotency key; raise ValueError if it is not a text."""
    return None if key is None else _text(key)


def uuid_of(data: bytes) -> UUID:
    """Return UUID(bytes=data) in a quarter of the time, which is half that of reading an entry.

    Raises:
        ValueError: If it does not have 16 bytes.
    """
    if type(data) is not bytes or len(data) != _UUID_BYTES:
        raise ValueError("an id that has not 16 bytes")
    made = UUID.__new__(UUID)
    _set_number(made, int.from_bytes(data, "big"))
    _set_safety(made, SafeUUID.unknown)
    return made


def uuids_of(ids: Iterable[bytes]) -> list[UUID]:
    """Return stored ids.

    Raises:
        StoreCorruptError: If one is invalid.
    """
    with reading_stored("a memory's id"):
        return [uuid_of(entry_id) for entry_id in ids]


def _importance(number: float) -> float:
    if not 0 <= number <= 1:
        raise ValueError(f"an importance of {number}")
    return float(number)


def _count(number: int) -> int:
    if type(number) is not int or number < 0:
        raise ValueError("a number that is not whole, or below 0")
    return number


def _text(text: str) -> str:
    if type(text) is not str or "\0" in text:
        raise ValueError("a field that is no text")
    return text


def _metadata(text: str) -> dict[str, Any]:
    metadata = _to_object(text)
    is_flat = text.count("{") + text.count("[") <= MAX_METADATA_DEPTH
    if is_flat and not _ODD.search(text):
        return metadata
    try:
        return validation.metadata(metadata)
    except InvalidEntryError:  # whose message has a key of it
        raise ValueError("metadata that cannot have been stored") from None


_to_tags = msgspec.json.Decoder(tuple[str, ...]).decode
_to_object = msgspec.json.Decoder(dict[str, Any]).decode
_ODD = re.compile(r"\d{16}|[eE]\+?\d{3}|\\u0000")
"""May be a number that is too large, or a NUL character."""

_READERS: dict[str, Callable[[Any], object]] = {
    "type": _TYPES.__getitem__,
    "status": _STATUSES.__getitem__,
    "importance": _importance,
    "last_accessed_at": from_microseconds,
    "access_count": _count,
    "forgotten_at": from_microseconds,
    "expires_at": from_microseconds,
    "position": _count,
    "version": _count,
    "supersedes": uuid_of,
    "sensitive": _FLAGS.__getitem__,
    "is_encrypted": _FLAGS.__getitem__,
    "tags": _to_tags,
    "metadata": _metadata,
}
_NAMES = {"memory_type": "type", "is_sensitive": "sensitive"}
_FIELDS = tuple(
    (name, _READERS.get(name, _text))
    for name in (_NAMES.get(name, name) for name in COLUMNS.split(", ")[_OWN:])
)
# Copying and filling it takes a third of the time that checking an entry again takes.
_BLANK = MemoryEntry(id=UUID(int=0), agent_id="nobody", content="nothing", created_at=EPOCH)
_DEFAULTS = list(to_row(_BLANK)[_OWN:])
"""Value of each further column when the entry's field is that of the blank entry."""
