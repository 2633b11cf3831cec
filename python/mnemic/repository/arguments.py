"""Arguments of verbs: ids as UUIDs or texts, and cursors of pages."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any
from uuid import UUID

from mnemic._core import tokens
from mnemic.errors import FilterError, InvalidArgumentError
from mnemic.model import Expression, MemoryEntry, MemoryFilter, Scope, validation
from mnemic.model.filter import Criteria, parse_filter
from mnemic.model.results import PageCursor
from mnemic.model.timestamps import from_microseconds, to_microseconds
from mnemic.model.validation import items, optional_uuid
from mnemic.reporting.description import described, quoted


def required_uuid(value: UUID | str) -> UUID:
    """Return an id that a caller gave as a UUID or as its text."""
    entry_id = optional_uuid("id", value)
    if entry_id is None:
        raise InvalidArgumentError("id must be a UUID or its text, got None")
    return entry_id


def required_uuids(field: str, values: Iterable[UUID | str]) -> list[UUID]:
    """Return a list of ids that a caller gave."""
    return [required_uuid(value) for value in items(field, values)]


def criteria(
    ids: Iterable[UUID | str] | None,
    filters: MemoryFilter | Mapping[str, Any] | None,
    *,
    otherwise: str,
) -> Criteria:
    """Return the memories that a call for many names by ids, by a filter, or by both.

    Args:
        ids: The ids; None is any.
        filters: The filter; None is any memory.
        otherwise: Advice for a call with neither.

    Raises:
        InvalidArgumentError: If both are None, or an id is none.
        FilterError: If the filter cannot be understood, or limits the number of memories.
    """
    if ids is None and filters is None:
        raise InvalidArgumentError(f"ids and filters are both None; {otherwise}")
    named = None if ids is None else list(dict.fromkeys(required_uuids("ids", ids)))
    return Criteria(named, None if filters is None else unlimited(filters))


def unlimited(filters: MemoryFilter | Mapping[str, Any]) -> Expression:
    """Return the expression of a filter for all of its matches.

    Raises:
        FilterError: If it limits their number, which a call for all of them would pass over.
    """
    if isinstance(filters, MemoryFilter) and (filters.limit, filters.offset) != _WHOLE_LIST:
        raise FilterError(
            f"a MemoryFilter with limit={filters.limit} and offset={filters.offset} names a part "
            "of its matches, and this call is for all of them; leave both out, or list that part "
            "and name its ids"
        )
    return parse_filter(filters)


_WHOLE_LIST = (MemoryFilter().limit, MemoryFilter().offset)


_LONGEST_LANGUAGE = 20  # a longer text is not repeated in an error


def checked_language(language: object) -> str | None:
    """Return the language of a memory's texts.

    Raises:
        InvalidArgumentError: If it is no code of a language that can be stemmed; the error lists
            those that there are.
    """
    if language is None:
        return None
    is_short = isinstance(language, str) and len(language) <= _LONGEST_LANGUAGE
    if not isinstance(language, str) or not is_short or not language.isascii():
        raise InvalidArgumentError(
            f'language must be a code such as "de", "auto" or None, got {described(language)}'
        )
    tokens("", language)
    return language


def encoded_cursor(scope: Scope, entry: MemoryEntry) -> str:
    """Return the cursor of the page that follows an entry."""
    place = to_microseconds(entry.created_at).to_bytes(8, "big", signed=True) + entry.id.bytes
    if scope.all_users and entry.user_id is not None:  # who may have given the same id as others
        place += entry.user_id.encode()
    from base64 import urlsafe_b64encode  # noqa: PLC0415 - of pages alone

    return urlsafe_b64encode(place).decode()


def decoded_cursor(cursor: object) -> PageCursor:
    """Return where a page begins.

    Raises:
        InvalidArgumentError: If it is no cursor of an earlier page.
    """
    from base64 import b64decode  # noqa: PLC0415 - as above

    with suppress(ValueError, OverflowError):
        if isinstance(cursor, str):
            place = b64decode(cursor, altchars=b"-_", validate=True)
            created_at = from_microseconds(int.from_bytes(place[:8], "big", signed=True))
            user_id = validation.optional_name("user_id", place[24:].decode() or None)
            return PageCursor(created_at, UUID(bytes=place[8:24]), user_id)
    raise InvalidArgumentError(
        f"cursor must be one that an earlier page gave, or None; got {quoted(cursor)}"
    )
