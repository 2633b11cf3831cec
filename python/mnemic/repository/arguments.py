"""Arguments of verbs: ids as UUIDs or texts, and cursors of pages."""

import base64
from collections.abc import Iterable
from contextlib import suppress
from uuid import UUID

from mnemic.description import quoted
from mnemic.errors import InvalidArgumentError
from mnemic.model import MemoryEntry, Scope, validation
from mnemic.model.timestamps import from_microseconds, to_microseconds
from mnemic.model.validation import items, optional_uuid
from mnemic.store import PageCursor


def required_uuid(value: UUID | str) -> UUID:
    """Return an id that a caller gave as a UUID or as its text."""
    entry_id = optional_uuid("id", value)
    if entry_id is None:
        raise InvalidArgumentError("id must be a UUID or its text, got None")
    return entry_id


def required_uuids(field: str, values: Iterable[UUID | str]) -> list[UUID]:
    """Return a list of ids that a caller gave."""
    return [required_uuid(value) for value in items(field, values)]


def encoded_cursor(scope: Scope, entry: MemoryEntry) -> str:
    """Return the cursor of the page that follows an entry."""
    place = to_microseconds(entry.created_at).to_bytes(8, "big", signed=True) + entry.id.bytes
    if scope.all_users and entry.user_id is not None:  # who may have given the same id as others
        place += entry.user_id.encode()
    return base64.urlsafe_b64encode(place).decode()


def decoded_cursor(cursor: object) -> PageCursor:
    """Return where a page begins.

    Raises:
        InvalidArgumentError: If it is no cursor of an earlier page.
    """
    with suppress(ValueError, OverflowError):
        if isinstance(cursor, str):
            place = base64.b64decode(cursor, altchars=b"-_", validate=True)
            created_at = from_microseconds(int.from_bytes(place[:8], "big", signed=True))
            user_id = validation.optional_name("user_id", place[24:].decode() or None)
            return PageCursor(created_at, UUID(bytes=place[8:24]), user_id)
    raise InvalidArgumentError(
        f"cursor must be one that an earlier page gave, or None; got {quoted(cursor)}"
    )
