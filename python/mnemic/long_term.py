"""LongTermMemory: one agent's durable memories, found by meaning."""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, TypeAlias, Unpack
from uuid import UUID

from mnemic.async_memory import AsyncMemory
from mnemic.errors import InvalidArgumentError
from mnemic.licensing import LicensePolicy
from mnemic.model import (
    SEMANTIC,
    DeleteResult,
    LongTermMemoryStats,
    MemoryEntry,
    MemoryEntryUpdate,
    MemoryFilter,
    MemoryPage,
    MemorySearchResult,
    MemorySortOrder,
    MemoryType,
    NewEntry,
    OnConflict,
    OnDuplicate,
    OnEmbedError,
    Search,
    validation,
)
from mnemic.model.new_entry import checked_key, checked_record, checked_records
from mnemic.protocols import Target
from mnemic.reporting.description import quoted
from mnemic.reporting.near_names import names_arguments
from mnemic.reporting.progress import Progress
from mnemic.repository import Options, check_limit, required_uuid
from mnemic.threads.sync_bridge import run_blocking
from mnemic.verbs.audit import AsyncAuditVerbs
from mnemic.verbs.base import MemoryHandle
from mnemic.verbs.links import AsyncLinkVerbs
from mnemic.verbs.long_term_bulk import AsyncLongTermBulkVerbs
from mnemic.verbs.maintenance import AsyncMaintenanceVerbs
from mnemic.verbs.transfer import AsyncImportVerbs

if TYPE_CHECKING:
    from mnemic.memory import Memory

Entries: TypeAlias = list[MemoryEntry]

DOCUMENTED_FLOOR = 0.6


@names_arguments
class LongTermMemory(
    AsyncLongTermBulkVerbs,
    AsyncLinkVerbs,
    AsyncAuditVerbs,
    AsyncMaintenanceVerbs,
    AsyncImportVerbs,
    MemoryHandle,
):
    """One agent's memories in one store.

    Example:
        >>> memory = await LongTermMemory.open("agent.db", agent_id="aide")  # doctest: +SKIP
        >>> entry_id = await memory.store(entry)  # doctest: +SKIP

    Methods are coroutines and may be called from any event loop and from several at once. Blocking
    work runs in other threads. A cancelled write may have happened or not; repeating it with the
    same id or key is safe.

    Users are separated: a call without a user sees memories without a user; `all_users=True`
    includes all users. An id gives no access by itself; ids are unique within agent and user, and a
    call for all users with an id of several users raises AmbiguousIdError. From its `expires_at` on
    a memory is treated like a deleted one.

    Args:
        url: A file, created if it does not exist and readable by its owner alone, or ":memory:".
        agent_id: The agent. Agents in one store never see each other's memories.
        options: See `mnemic.annotations.Options`.

    Raises:
        MissingExtraError: If the local embedder is requested and not installed.
        StoreFileError: If the path cannot be used or is another file.
        SchemaVersionError: If a newer mnemic wrote the file, or an earlier one and `read_only`.
        StoreCorruptError: If the file is damaged.
        EmbeddingModelMismatchError: If the agent's vectors come from another model.
    """

    def __init__(
        self,
        url: str | os.PathLike[str],
        *,
        agent_id: str = "default",
        **options: Unpack[Options],
    ) -> None:
        super().__init__(url, agent_id, **options)

    @classmethod
    async def open(
        cls,
        url: str | os.PathLike[str],
        *,
        agent_id: str = "default",
        **options: Unpack[Options],
    ) -> Self:
        """Open a memory without blocking the event loop; for the arguments see the class."""
        return await run_blocking(lambda: cls(url, agent_id=agent_id, **options))

    @property
    def aio(self) -> AsyncMemory:
        """The same open memory with the verbs of `AsyncMemory`; closing either closes both.

        It is the same object each time.
        """
        return self._other_door(AsyncMemory)

    @property
    def sync(self) -> "Memory":
        """The same open memory with the verbs of `Memory`; closing either closes both.

        It is the same object each time.
        """
        return self.aio.sync

    @property
    def license(self) -> LicensePolicy | None:
        """The license policy."""
        return self._repository.limits.license

    async def store(
        self,
        entry: MemoryEntry,
        *,
        idempotency_key: str | None = None,
        on_conflict: OnConflict = "raise",
        on_duplicate: OnDuplicate = "keep",
        on_embed_error: OnEmbedError = "raise",
    ) -> UUID:
        """Store a memory; on return it is on disk, and the next search can find it.

        An entry without an embedding gets one. Its user, project and session are its scope. The
        entry that it `supersedes` is marked and linked to it in the same transaction.

        Args:
            entry: An entry of this agent.
            idempotency_key: Unique for agent and user. A second call with it stores nothing and
                returns the id of the first one's memory, even if that was deleted.
            on_conflict: Treatment if the user has a memory with its id, in any state: "raise" an
                error, "skip" the new one, or "replace" the stored one; see `Memory.add`.
            on_duplicate: Treatment if the user has a memory with the same text, apart from case and
                white space: "keep" both, "skip" the new one, or "merge" its tags, metadata and
                importance into the older; the id of the older is returned then.
            on_embed_error: "pending" stores the memory without a vector if the embedder fails; it
                is embedded as soon as the embedder answers again.

        Returns:
            The memory's id.

        Raises:
            InvalidEntryError: If it is not an entry of this agent.
            DuplicateEntryError: If the user already has a memory with its id, deleted or not, and
                `on_conflict` is "raise", or the key was used for another content.
            EntryNotFoundError: If the user has no memory with the id that it supersedes.
            EmbeddingError: If the embedder fails; nothing is stored then.
            EmbeddingModelMismatchError: If it has a vector of another model.
            StoreError: If the store cannot be written; nothing is stored then.
        """
        new = NewEntry.of_record(checked_record(entry, self._scope), checked_key(idempotency_key))
        stored = await self._repository.add(
            [new],
            on_conflict=on_conflict,
            on_duplicate=on_duplicate,
            on_embed_error=on_embed_error,
        )
        return stored[0].id

    async def store_batch(
        self,
        entries: Sequence[MemoryEntry],
        *,
        idempotency_keys: Sequence[str | None] | None = None,
        on_conflict: OnConflict = "raise",
        on_duplicate: OnDuplicate = "keep",
        on_embed_error: OnEmbedError = "raise",
    ) -> list[UUID]:
        """Store memories, all or none; return their ids in the given order.

        Args:
            entries: Entries of this agent; earlier ones count as stored for later ones.
            idempotency_keys: One for each entry, or None.
            on_conflict: As for `store`.
            on_duplicate: As for `store`.
            on_embed_error: As for `store`.

        Errors are those of `store`; the error names an invalid entry by its place in the list.
        """
        checked = checked_records(entries, idempotency_keys, self._scope)
        stored = await self._repository.add(
            checked,
            on_conflict=on_conflict,
            on_duplicate=on_duplicate,
            on_embed_error=on_embed_error,
        )
        return [entry.id for entry in stored]

    async def retrieve(
        self,
        entry_id: UUID | str,
        *,
        user_id: str | None = None,
        all_users: bool = False,
        include_forgotten: bool = False,
    ) -> MemoryEntry | None:
        """Return a memory without its embedding, or None if there is none with this id.

        This counts as an access, unless the memory was opened with `track_access=False`.

        Args:
            entry_id: Id of the memory.
            user_id: The user; None is the memories without a user.
            all_users: Whether to include all users.
            include_forgotten: Whether to return deleted, expired, archived and superseded ones too.
        """
        found = await self.retrieve_batch(
            [entry_id],
            user_id=user_id,
            all_users=all_users,
            include_forgotten=include_forgotten,
        )
        return next(iter(found.values()), None)

    async def search_semantic(
        self,
        query: str,
        limit: int = 10,
        min_similarity: float | None = None,
        *,
        user_id: str | None = None,
        all_users: bool = False,
    ) -> list[MemorySearchResult]:
        """Find the memories whose meaning is most similar to a query.

        Every memory of the scope is ranked, exactly. Order: similarity, then newest, then smallest
        id; the result of a smaller limit is always the head of the result of a larger one.

        Args:
            query: The query, not empty, at most 10,000 characters.
            limit: Maximum number of results, 1 to 1,000.
            min_similarity: Minimum cosine, 0 to 1, inclusive; the embedder's `similarity_floor`
                unless given, and 0.6 if it has none.
            user_id: The user; None is the memories without a user.
            all_users: Whether to search the memories of all users.

        Raises:
            InvalidArgumentError: If an argument is out of range.
            EmbedderRequiredError: If the memory was opened with `embedder=None`.
            EmbeddingError: If the embedder fails.
        """
        check_limit(limit)
        minimum = (
            self._repository.similarity_floor(DOCUMENTED_FLOOR)
            if min_similarity is None
            else min_similarity
        )
        if not (validation.is_number(minimum) and 0 <= minimum <= 1):
            raise InvalidArgumentError(f"min_similarity must be from 0 to 1, got {quoted(minimum)}")
        scope = self._scope.narrowed(user_id, all_users=all_users)
        checked = validation.bounded("query", validation.text("query", validation.query(query)))
        search = Search(
            text=checked, limit=limit, ranking=SEMANTIC, min_similarity=float(minimum) or None
        )
        found = await self._repository.search(scope, search)
        return [
            MemorySearchResult(hit.entry, hit.score, rank)
            for rank, hit in enumerate(found, start=1)
        ]

    async def search_by_filter(
        self,
        filter: MemoryFilter | Mapping[str, Any],  # noqa: A002 - the document's name
        *,
        user_id: str | None = None,
        all_users: bool = False,
    ) -> Entries:
        """Return the memories that match a filter, without a query.

        Archived and superseded ones are omitted unless the filter tests the status. The read does
        not count as an access.

        Args:
            filter: Fields, or a dict in the grammar of docs/concepts/filters.md, which returns the
                newest 100.
            user_id: The user; None is the memories without a user.
            all_users: Whether to include all users.

        Returns:
            In the order of the filter. Ties: newest first, then smallest id, then user by name.

        Raises:
            FilterError: If the filter is invalid; the message names the place.
        """
        return await self._repository.lister.matching(
            self._scope.narrowed(user_id, all_users=all_users), filter
        )

    async def get_by_type(
        self,
        type: MemoryType | str,  # noqa: A002 - the field's name everywhere
        limit: int = 100,
        *,
        user_id: str | None = None,
        all_users: bool = False,
    ) -> Entries:
        """Return the newest memories of a type.

        Args:
            type: A type, or its name.
            limit: Maximum number of memories.
            user_id: The user; None is the memories stored without one.
            all_users: The memories of all users; goes with no `user_id`.
        """
        wanted = MemoryFilter(types=(MemoryType.parse(type),), limit=limit)
        return await self.search_by_filter(wanted, user_id=user_id, all_users=all_users)

    async def get_by_tag(
        self, tag: str, limit: int = 100, *, user_id: str | None = None, all_users: bool = False
    ) -> Entries:
        """Return the newest memories with a tag.

        Args:
            tag: The tag, exactly.
            limit: Maximum number of memories.
            user_id: The user; None is the memories stored without one.
            all_users: The memories of all users; goes with no `user_id`.
        """
        wanted = MemoryFilter(tags=(tag,), limit=limit)
        return await self.search_by_filter(wanted, user_id=user_id, all_users=all_users)

    async def get_recent(
        self, limit: int = 10, *, user_id: str | None = None, all_users: bool = False
    ) -> Entries:
        """Return the memories accessed last; after them those never accessed, newest first.

        Accesses in this process count at once, those in others within about a second.

        Args:
            limit: Maximum number of memories.
            user_id: The user; None is the memories stored without one.
            all_users: The memories of all users; goes with no `user_id`.
        """
        wanted = MemoryFilter(limit=limit, sort_by=MemorySortOrder.ACCESSED_DESCENDING)
        return await self.search_by_filter(wanted, user_id=user_id, all_users=all_users)

    async def get_important(
        self, limit: int = 10, *, user_id: str | None = None, all_users: bool = False
    ) -> Entries:
        """Return the most important memories.

        Args:
            limit: Maximum number of memories.
            user_id: The user; None is the memories stored without one.
            all_users: The memories of all users; goes with no `user_id`.
        """
        wanted = MemoryFilter(limit=limit, sort_by=MemorySortOrder.IMPORTANCE_DESCENDING)
        return await self.search_by_filter(wanted, user_id=user_id, all_users=all_users)

    async def update(
        self,
        entry_id: UUID | str,
        update: MemoryEntryUpdate,
        *,
        if_version: int | None = None,
        user_id: str | None = None,
        all_users: bool = False,
    ) -> bool:
        """Change a memory; return False if there is none with this id.

        A new content is embedded. If anything fails the memory is unchanged.

        Args:
            entry_id: Id of the memory.
            update: The change.
            if_version: The change is made only if the memory has this `version` at the moment of
                the write.
            user_id: The user; None is the memories without a user.
            all_users: Whether to include all users.

        Raises:
            VersionConflictError: If it has another version.
            EmbeddingError: If the embedder fails.
            StoreError: If the store cannot be written.
        """
        scope = self._scope.narrowed(user_id, all_users=all_users)
        changed = await self._repository.update(
            scope, required_uuid(entry_id), update, if_version=if_version
        )
        return changed is not None

    async def forget(
        self,
        entry_id: UUID | str,
        permanent: bool = False,  # noqa: FBT001, FBT002 - the document's signature
        *,
        user_id: str | None = None,
        all_users: bool = False,
    ) -> DeleteResult:
        """Delete a memory; searches no longer find it.

        Deleting it again changes nothing and returns 1 again. It can be restored within the
        `retention` of the memory, 90 days unless given; then `purge_expired` deletes it
        permanently.

        Args:
            entry_id: Id of the memory.
            permanent: Delete it permanently now, with its vectors and links, also if it is deleted
                already; it cannot be restored.
            user_id: The user; None is the memories without a user.
            all_users: Whether to include all users.

        Returns:
            1, or 0 if there is none with this id: true or false.
        """
        scope = self._scope.narrowed(user_id, all_users=all_users)
        return await self._repository.deleter.delete(
            scope, required_uuid(entry_id), permanent=permanent
        )

    async def restore(
        self, entry_id: UUID | str, *, user_id: str | None = None, all_users: bool = False
    ) -> bool:
        """Restore a memory that was deleted within the retention, 90 days unless given.

        Args:
            entry_id: Its id.
            user_id: The user; None is the memories stored without one.
            all_users: The memories of all users; goes with no `user_id`.

        Returns:
            False if there is none with this id, if it is not deleted, or if that was too long ago.
        """
        scope = self._scope.narrowed(user_id, all_users=all_users)
        return await self._repository.deleter.restore(scope, required_uuid(entry_id))

    async def delete_all(self, *, user_id: str | None, permanent: bool = False) -> DeleteResult:
        """Delete all memories of a user, archived and superseded ones included.

        Args:
            user_id: The user; None is the memories without a user.
            permanent: Delete them permanently, and those deleted before too.

        Returns:
            Number of deleted memories.
        """
        scope = self._scope.narrowed(user_id)
        return await self._repository.deleter.delete_all(scope, permanent=permanent)

    async def purge_expired(
        self, *, user_id: str | None = None, all_users: bool = False
    ) -> DeleteResult:
        """Delete memories permanently that were deleted or expired before the retention.

        For users see the class.

        Returns:
            Number of deleted memories; its `erased` is true if their bytes are gone already.
        """
        return await self._repository.deleter.purge(
            self._scope.narrowed(user_id, all_users=all_users)
        )

    async def count(self, *, user_id: str | None = None, all_users: bool = False) -> int:
        """Return the number of memories that a search can find; for users see the class."""
        return await self._repository.lister.count(
            self._scope.narrowed(user_id, all_users=all_users)
        )

    async def get_stats(
        self, *, user_id: str | None = None, all_users: bool = False
    ) -> LongTermMemoryStats:
        """Return statistics of the memories; for users see the class.

        Two figures are of the whole agent: the storage limit, and, with a limit, the bytes used.
        Figures of the embedder are returned with `all_users` alone.
        """
        return await self._repository.statistics.stats(
            self._scope.narrowed(user_id, all_users=all_users)
        )

    async def export(
        self,
        target: Target,
        *,
        user_id: str | None = None,
        all_users: bool = False,
        include_forgotten: bool = True,
        embeddings: bool = False,
        overwrite: bool = False,
        progress: Progress | None = None,
    ) -> int:
        """Write memories, and the links between them, as JSON Lines; see docs/concepts/export.md.

        With concurrent writes each memory is written as it was at some moment during the export; a
        `backup` is of one moment.

        Args:
            target: A path, of which the file is complete or does not exist, of mode 0600; or a text
                file.
            user_id: The user; None is the memories without a user.
            all_users: Whether to include all users.
            include_forgotten: Whether to include deleted and expired memories.
            embeddings: Whether to include vectors, which take about 2 KB each.
            overwrite: Whether to replace an existing file.
            progress: As for `Memory.export`.

        Returns:
            Number of memories.

        Raises:
            InvalidArgumentError: If the path exists already.
            StoreFullError: If the disk is full or failing.
            StoreError: If it cannot be written.
        """
        return await self._repository.transfer.export(
            self._scope.narrowed(user_id, all_users=all_users),
            target,
            include_deleted=include_forgotten,
            embeddings=embeddings,
            overwrite=overwrite,
            progress=progress,
        )

    async def list(
        self,
        *,
        limit: int = 100,
        cursor: str | None = None,
        filters: MemoryFilter | Mapping[str, Any] | None = None,
        include_forgotten: bool = False,
        user_id: str | None = None,
        all_users: bool = False,
    ) -> MemoryPage:
        """Return a page of the memories, newest first.

        Memories that exist throughout are on exactly one page, whatever is written between pages.

        Args:
            limit: Maximum number on a page, 1 to 1,000.
            cursor: From the previous page; None for the first.
            filters: Only memories that match; limit, offset and order of a `MemoryFilter` are
                ignored.
            include_forgotten: Whether to include deleted and expired memories.
            user_id: The user; None is the memories without a user.
            all_users: Whether to include all users.

        Raises:
            InvalidArgumentError: If the limit is out of range, or the cursor is invalid.
            FilterError: If the filter is invalid.
        """
        return await self._repository.lister.page(
            self._scope.narrowed(user_id, all_users=all_users),
            limit=limit,
            cursor=cursor,
            filters=filters,
            include_deleted=include_forgotten,
        )
