"""What holds for entries, links and models in every store, whatever keeps them."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, TypeVar
from uuid import UUID

from mnemic.errors import (
    AmbiguousIdError,
    DuplicateEntryError,
    EmbeddingModelMismatchError,
    InvalidArgumentError,
    LinkAcrossUsersError,
)
from mnemic.model import (
    LongTermMemoryStats,
    MemoryEntry,
    MemoryStatus,
    MemoryType,
    Scope,
    TagUsage,
)
from mnemic.reporting.description import quoted
from mnemic.store.row_codec import next_version
from mnemic.store.values import Model

Found = TypeVar("Found")

FORGOTTEN, EXPIRED = -2, -1
"""States of entries in statistics, beside the numbers of the status of those that are present."""

_TOP_TAGS: Final = 10


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


def id_in_use(entry: MemoryEntry) -> DuplicateEntryError:
    """Return the error for an id that the user has already."""
    return DuplicateEntryError(
        f"a memory with id {entry.id} is already stored for agent {entry.agent_id!r}, "
        f"user {entry.user_id!r}"
    )


def check_model(agent_id: str, known: Sequence[Any], model: Model) -> None:
    """Check that vectors of a model may be stored beside those of an agent.

    Raises:
        EmbeddingModelMismatchError: If these are of another model.
    """
    if tuple(known) == model:
        return
    unfit = EmbeddingModelMismatchError(
        f"agent {agent_id!r} has vectors of {known[0]!r} with {known[1]} dimensions, and "
        f"those of {model[0]!r} with {model[1]} cannot be compared with them; open the memory "
        f"with the embedder {known[0]!r}, or have all embedded again: memory.reembed(...)"
    )
    if isinstance(known[1], int) and known[1] != model[1]:
        unfit.stored, unfit.given = known[1], model[1]
    raise unfit


def check_one_user(source: str | None, target: str | None) -> None:
    """Check that the ends of a link are of one user, or of none.

    Raises:
        LinkAcrossUsersError: If they are not.
    """
    if source != target:
        raise LinkAcrossUsersError(
            "the two memories are not of the same user: a link between users is neither followed "
            "within a user nor exported; link memories of one user"
        )


def superseded_version(status: int, version: int) -> int:
    """Return the version of an entry that is superseded; it grows the first time."""
    return version if status == MemoryStatus.SUPERSEDED else next_version(version)


def statistics_of(
    states: Iterable[tuple[int, int, int]],
    types: Mapping[MemoryType, int],
    tags: Iterable[tuple[Sequence[str], int]],
    *,
    oldest: datetime | None,
    newest: datetime | None,
    sealed: int = 0,
    unreadable: int = 0,
    hidden_bytes: int = 0,
) -> LongTermMemoryStats:
    """Return statistics, without figures of embedder and quota, which are not stored.

    Args:
        states: States of entries, with the number of these and their bytes.
        types: Number of active entries by type.
        tags: Tags of active entries, with the number of these.
        oldest: When the first active entry was created.
        newest: When the last one was.
        sealed: Number of sealed entries.
        unreadable: Number of those that cannot be opened.
        hidden_bytes: Bytes of entries that are in none of the states for lack of a key.
    """
    numbers: Counter[object] = Counter()
    for state, entries, size in states:
        numbers[state] += entries
        hidden_bytes += size
    return LongTermMemoryStats(
        active_entries=numbers[MemoryStatus.ACTIVE],
        archived_entries=numbers[MemoryStatus.ARCHIVED],
        superseded_entries=numbers[MemoryStatus.SUPERSEDED],
        forgotten_entries=numbers[FORGOTTEN],
        expired_entries=numbers[EXPIRED],
        sealed_entries=sealed,
        unreadable_entries=unreadable,
        storage_bytes_used=hidden_bytes,
        entries_by_type=dict(types),
        top_tags=_top_tags(tags),
        oldest_entry=oldest,
        newest_entry=newest,
    )


def _top_tags(found: Iterable[tuple[Sequence[str], int]]) -> tuple[TagUsage, ...]:
    """Return the most used tags, of lists of tags and the number of their entries."""
    used: Counter[str] = Counter()
    for tags, entries in found:
        for tag in set(tags):
            used[tag] += entries
    top = sorted(used.items(), key=lambda each: (-each[1], each[0]))[:_TOP_TAGS]
    return tuple(TagUsage(tag, entries) for tag, entries in top)


def checked_version(version: int | None, newest: int) -> int:
    """Return a version of the tables, the newest for None.

    Raises:
        InvalidArgumentError: If there is no such version.
    """
    if version is None:
        return newest
    if type(version) is not int or not 0 <= version <= newest:
        raise InvalidArgumentError(
            f"version must be None or a whole number from 0 to {newest}, the newest; "
            f"got {quoted(str(version))}"
        )
    return version
