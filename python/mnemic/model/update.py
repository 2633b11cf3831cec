"""MemoryEntryUpdate, a change of a memory."""

import copy
from datetime import date, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, TypeAlias

import msgspec
from msgspec.structs import force_setattr

from mnemic.errors import InvalidEntryError
from mnemic.model import validation
from mnemic.model.entry import MemoryEntry, MemoryStatus, MemoryType
from mnemic.records import NamedFields, Redacted
from mnemic.reporting.description import described

NEVER: Final = "never"

Expiry: TypeAlias = date | str
"""A time, also as ISO 8601 text, or "never", which takes an expiry away."""


if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    _Expiry: TypeAlias = Expiry
else:
    _Expiry = Any  # msgspec refuses a union of two types that JSON writes as text


def checked_expiry(value: object) -> "datetime | Literal['never']":
    """Return a valid new expiry: a time in UTC, or "never"."""
    if isinstance(value, str) and value == NEVER:
        return NEVER
    if isinstance(value, str | date):
        return validation.given_time("expires_at", value)
    raise InvalidEntryError(
        f'expires_at must be a datetime, its ISO 8601 text or "never", got {described(value)}'
    )


class MemoryEntryUpdate(Redacted, frozen=True, kw_only=True, metaclass=NamedFields):
    """A change of a memory; fields that are None stay unchanged.

    Attributes:
        content: The new text; it is embedded again. Empty only where the memory has metadata after
            the change, or gets a vector of the program's own.
        importance: From 0 to 1.
        add_tags: Appended, unless present.
        remove_tags: Removed before tags are added.
        type: Sort of statement.
        metadata: Merged: its keys replace keys of the same name.
        replace_metadata: Takes the place of all metadata; does not go with `metadata`.
        expires_at: A time, also as ISO 8601 text, from which on the memory is treated like a
            deleted one, at once if it has passed; "never" takes an expiry away.
        status: ARCHIVED hides the memory from searches until it is ACTIVE again; SUPERSEDED is set
            only by storing the memory that supersedes it.

    Raises:
        InvalidEntryError: If a value is of the wrong type or out of range.
    """

    _hidden: ClassVar[frozenset[str]] = frozenset(
        {"content", "add_tags", "remove_tags", "metadata", "replace_metadata"}
    )

    content: str | None = None
    importance: float | None = None
    add_tags: tuple[str, ...] = ()
    remove_tags: tuple[str, ...] = ()
    type: MemoryType | None = None
    metadata: dict[str, Any] | None = None
    status: MemoryStatus | None = None
    replace_metadata: dict[str, Any] | None = None
    expires_at: "_Expiry | None" = None

    if TYPE_CHECKING:  # what construction takes, and what it makes of it, are of different types

        def __init__(
            self,
            *,
            content: str | None = None,
            importance: float | None = None,
            add_tags: Sequence[str] | None = (),
            remove_tags: Sequence[str] | None = (),
            type: MemoryType | str | None = None,  # noqa: A002 - the field's name everywhere
            metadata: Mapping[str, Any] | None = None,
            status: MemoryStatus | str | None = None,
            replace_metadata: Mapping[str, Any] | None = None,
            expires_at: Expiry | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        """Check every field and convert it to its stored form."""
        for field, check in _CHECKS:
            given = getattr(self, field)
            force_setattr(self, field, _KEEPING[field] if given is None else check(given))
        if self.metadata is not None and self.replace_metadata is not None:
            raise InvalidEntryError(
                "metadata and replace_metadata are both given; the first is merged into what is "
                "stored, the second takes its place; leave one of them out"
            )

    @property
    def is_empty(self) -> bool:
        """Whether it changes nothing, whatever the memory."""
        return self == _NOTHING

    def applied_to(
        self, entry: MemoryEntry, now: datetime, *, has_vectors: bool = False
    ) -> MemoryEntry:
        """Return the entry after the change, without its embedding.

        Args:
            entry: The entry.
            now: Time of the change.
            has_vectors: Whether vectors of the program's own come with the change.

        Raises:
            InvalidEntryError: If it would have neither content, nor metadata, nor such vectors.
        """
        kept = [tag for tag in entry.tags if tag not in self.remove_tags]
        added = [tag for tag in dict.fromkeys(self.add_tags) if tag not in kept]
        metadata = {**entry.metadata, **(self.metadata or {})}
        if self.replace_metadata is not None:
            metadata = dict(self.replace_metadata)
        expiry = entry.expires_at if self.expires_at is None else self.expires_at
        changed = copy.copy(entry)
        values = {
            "content": entry.content if self.content is None else self.content,
            "importance": entry.importance if self.importance is None else self.importance,
            "type": entry.type if self.type is None else self.type,
            "tags": (*kept, *added),
            "metadata": metadata,
            "expires_at": expiry if isinstance(expiry, datetime) else None,
            "status": entry.status if self.status is None else self.status,
            "updated_at": max(now, entry.created_at),
            "embedding": None,
            "embedding_model": None,
        }
        for field, value in values.items():
            force_setattr(changed, field, value)
        if self.content == "" and not (changed.metadata or has_vectors):
            raise validation.empty_content()
        return changed


def _status(given: object) -> MemoryStatus:
    status = MemoryStatus.parse(given)
    if status is MemoryStatus.SUPERSEDED:
        raise InvalidEntryError(
            "status cannot be set to superseded; store the new memory with supersedes= this one's "
            "id"
        )
    return status


_CHECKS = (
    ("content", validation.content_or_none),
    ("importance", partial(validation.fraction, "importance")),
    ("add_tags", validation.tags),
    ("remove_tags", validation.tags),
    ("type", MemoryType.parse),
    ("metadata", validation.metadata),
    ("status", _status),
    ("replace_metadata", partial(validation.metadata, field="replace_metadata")),
    ("expires_at", checked_expiry),
)
_KEEPING = {field.name: field.default for field in msgspec.structs.fields(MemoryEntryUpdate)}
_NOTHING = MemoryEntryUpdate()
