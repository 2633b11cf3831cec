"""Decisions about entries that are stored already: by id, by idempotency key, by text."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import TypeVar
from uuid import UUID

from mnemic.errors import (
    AmbiguousIdError,
    DuplicateEntryError,
    EntryNotFoundError,
    LinkAcrossUsersError,
)
from mnemic.model import MemoryEntry, MemoryEntryUpdate, Scope
from mnemic.records.lines import HIDDEN
from mnemic.reporting.description import quoted
from mnemic.store.fingerprints import fingerprint
from mnemic.store.row_codec import Columns, UsedKey

Found = TypeVar("Found")


def id_in_use(entry: MemoryEntry, agent_id: str) -> DuplicateEntryError:
    """Return the error for an id that the user has already."""
    return DuplicateEntryError(
        f"a memory with id {entry.id} is already stored for agent {agent_id!r}, "
        f"user {entry.user_id!r}"
    )


def check_idempotency_key(
    key: str | None, used: UsedKey | None, content: str, entry_id: UUID
) -> None:
    """Raise DuplicateEntryError if an idempotency key was used for another content.

    Args:
        key: The key; None hides it.
        used: The key that is stored, with the fingerprint of the content that it came with.
        content: The content that it comes with now.
        entry_id: Id of the entry stored with the key.
    """
    if used is None or used.fingerprint != fingerprint(content):
        shown = HIDDEN if key is None else quoted(key)
        raise DuplicateEntryError(
            f"idempotency key {shown} was used for another content, that of "
            f"memory {entry_id}; a key belongs to one memory"
        )


def first_with_text(
    content: str,
    fetch: Callable[[int | None], list[Columns]],
    decode: Callable[[list[Columns]], Iterable[MemoryEntry]],
) -> tuple[Columns, MemoryEntry] | None:
    """Return the first row with the same text as a content, and its entry.

    Args:
        content: The content.
        fetch: Returns the rows with one of its fingerprints, at most so many.
        decode: Returns their entries.
    """
    wanted = fingerprint(content)
    for limit in (1, None):  # the first has another text only if an earlier version stored it
        rows = fetch(limit)
        for row, entry in zip(rows, decode(rows), strict=True):
            if fingerprint(entry.content) == wanted:
                return row, entry
        if not rows:
            break
    return None


def merged(old: MemoryEntry, new: MemoryEntry, now: datetime) -> MemoryEntry | None:
    """Return an entry with the tags, the metadata and the higher importance of its duplicate.

    Returns:
        None if nothing changes.
    """
    update = MemoryEntryUpdate(
        importance=max(old.importance, new.importance), add_tags=new.tags, metadata=new.metadata
    )
    changed = update.applied_to(old, now)
    before = old.importance, old.tags, old.metadata
    return None if (changed.importance, changed.tags, changed.metadata) == before else changed


def superseded_missing(entry: MemoryEntry, agent_id: str) -> EntryNotFoundError:
    """Return the error for an entry that supersedes one the user does not have."""
    return EntryNotFoundError(
        f"memory {entry.id} supersedes {entry.supersedes}, and there is no such "
        f"memory for agent {agent_id!r}, user {entry.user_id!r}"
    )


def single(found: Sequence[Found], scope: Scope, entry_id: UUID) -> Found | None:
    """Return the only row found for an id, or None.

    Raises:
        AmbiguousIdError: If several users have one.
    """
    if len(found) > 1:
        raise _ambiguous(scope, entry_id)
    return found[0] if found else None


def check_unambiguous(scope: Scope, ids: Sequence[bytes]) -> None:
    """Check that no id is one of several users' entries.

    Raises:
        AmbiguousIdError: If one is.
    """
    if len(set(ids)) < len(ids):
        shared = min(entry_id for entry_id, count in Counter(ids).items() if count > 1)
        raise _ambiguous(scope, UUID(bytes=shared))


def _ambiguous(scope: Scope, entry_id: UUID) -> AmbiguousIdError:
    return AmbiguousIdError(
        f"several users of agent {scope.agent_id!r} have a memory with id {entry_id}; "
        "name the user_id in place of all_users=True"
    )


def check_one_user(source: str | None, target: str | None) -> None:
    """Check that both ends of a link are of one user, or both of none."""
    if source != target:
        raise LinkAcrossUsersError(
            "the two memories are not of the same user: a link between users is neither followed "
            "within a user nor exported; link memories of one user"
        )
