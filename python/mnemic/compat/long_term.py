"""LongTermMemory: one agent's durable memories, found by meaning."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias, Unpack
from uuid import UUID

import mnemic  # noqa: TC001 - annotations name its classes
from mnemic.async_memory import AsyncMemory
from mnemic.errors import InvalidArgumentError, InvalidEntryError
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
    OnConflict,
    OnDuplicate,
    OnEmbedError,
    UpdateResult,
    validation,
)
from mnemic.model.new_entry import checked_keys
from mnemic.model.search import Search
from mnemic.model.time_zones import naive_times_in
from mnemic.model.update import Expiry
from mnemic.protocols import Target
from mnemic.reporting.description import quoted
from mnemic.reporting.near_names import names_arguments
from mnemic.reporting.progress import Progress
from mnemic.repository import Options, criteria, required_uuid, required_uuids
from mnemic.threads.sync_bridge import sync_method
from mnemic.verbs.adding import times
from mnemic.verbs.base import ScopedBase
from mnemic.verbs.changing import AsyncLinkVerbs
from mnemic.verbs.deleting import some_criteria
from mnemic.verbs.maintenance import AsyncAuditVerbs, AsyncImportVerbs, AsyncMaintenanceVerbs
from mnemic.verbs.opening import AsyncHandle, MemoryHandle, PlainHandle, opens_first


class AsyncLongTermBulkVerbs(ScopedBase):
    """Reads, changes and deletes many memories at once."""

    async def retrieve_batch(
        self,
        entry_ids: Sequence[UUID | str],
        *,
        user_id: str | None = None,
        all_users: bool = False,
        include_forgotten: bool = False,
    ) -> dict[UUID, MemoryEntry]:
        """Return the existing memories with these ids, like `retrieve`.

        Args:
            entry_ids: Their ids.
            user_id: The user; None is the memories stored without one.
            all_users: The memories of all users; goes with no `user_id`.
            include_forgotten: Also deleted ones that can be restored, and expired ones.
        """
        return await self._repository.reader.get(
            self._scope.narrowed(user_id, all_users=all_users),
            required_uuids("entry_ids", entry_ids),
            include_deleted=include_forgotten,
        )

    async def update_many(
        self,
        entry_ids: Iterable[UUID | str] | None = None,
        update: MemoryEntryUpdate | None = None,
        *,
        filters: MemoryFilter | Mapping[str, Any] | None = None,
        on_embed_error: OnEmbedError = "raise",
        user_id: str | None = None,
        all_users: bool = False,
    ) -> UpdateResult:
        """Change the memories with these ids, those that match a filter, or those with both.

        All or none are changed; see `Memory.update_many`.

        Args:
            entry_ids: Ids; unknown ones are skipped.
            update: The change of each.
            filters: Only memories that match; `{}` is every memory of the user.
            user_id: The user; None is the memories without a user.
            all_users: Whether to include all users.

        Returns:
            Number of changed memories; its `evicted` has the ids of those deleted to make space.

        Raises:
            InvalidArgumentError: If neither ids nor a filter is given, or no update.
            FilterError: If the filter cannot be understood, or has a limit or an offset.
            AmbiguousIdError: If all users are named, and several have one of the ids.
            EmbeddingError: If the embedder fails; nothing is changed then.
        """
        scope = self._scope.narrowed(user_id, all_users=all_users)
        update = validation.of_kind("update", MemoryEntryUpdate, "a MemoryEntryUpdate", update)
        with naive_times_in(self.time_zone):
            wanted = criteria(
                entry_ids, filters, otherwise="filters={} is every memory of the user"
            )
        return await self._repository.updater.update_all(
            scope, wanted, update, on_embed_error=on_embed_error
        )

    async def touch(
        self,
        entry_ids: Sequence[UUID | str],
        *,
        expires_at: Expiry | None = None,
        user_id: str | None = None,
        all_users: bool = False,
    ) -> None:
        """Count an access of memories that were used in another way; unknown ids are skipped.

        Accesses are written together, within about a second; a crash may lose the last ones. For
        the expiry see `Memory.touch`.

        Args:
            entry_ids: Their ids.
            expires_at: A new expiry of all of them, or "never"; None leaves it.
            user_id: The user; None is the memories stored without one.
            all_users: The memories of all users; goes with no `user_id`.
        """
        scope = self._scope.narrowed(user_id, all_users=all_users)
        with naive_times_in(self.time_zone):
            ids = required_uuids("entry_ids", entry_ids)
            await self._repository.updater.touch(scope, ids, expires_at)

    async def delete_many(
        self,
        entry_ids: Iterable[UUID | str] | None = None,
        *,
        filters: MemoryFilter | Mapping[str, Any] | None = None,
        permanent: bool = False,
        user_id: str | None = None,
        all_users: bool = False,
    ) -> DeleteResult:
        """Delete the memories with these ids, those that match a filter, or those with both.

        All or none are deleted, unless the disk is full; see `Memory.delete_many`.

        Args:
            entry_ids: Ids; unknown ones are skipped.
            filters: Only memories that match; without a test it is refused, see `delete_all`.
            permanent: Delete them permanently, also those deleted before.
            user_id: The user; None is the memories without a user.
            all_users: Whether to include all users.

        Returns:
            Number of memories deleted now; its `erased` is true if their bytes are gone already.

        Raises:
            InvalidArgumentError: If neither ids nor a test of a filter is given.
            FilterError: If the filter cannot be understood, or has a limit or an offset.
            AmbiguousIdError: If all users are named, and several have one of the ids.
        """
        scope = self._scope.narrowed(user_id, all_users=all_users)
        with naive_times_in(self.time_zone):
            wanted = some_criteria(entry_ids, filters)
        return await self._repository.deleter.delete_all(scope, wanted, permanent=permanent)


Entries: TypeAlias = list[MemoryEntry]
Filters: TypeAlias = MemoryFilter | Mapping[str, Any]


@names_arguments
class LongTermHandle(MemoryHandle):
    """How a `LongTermMemory` is opened."""

    def __init__(
        self,
        url: str | os.PathLike[str],
        *,
        agent_id: str = "default",
        **options: "Unpack[Options]",
    ) -> None:
        super().__init__(url, agent_id, **options)

    @property
    def license(self) -> LicensePolicy | None:
        """The license policy."""
        return self._repository.shared.limits.license

    async def _matching(self, wanted: Filters, user_id: str | None, *, all_users: bool) -> Entries:
        scope = self._scope.narrowed(user_id, all_users=all_users)
        with naive_times_in(self.time_zone):
            return await self._repository.lister.matching(scope, wanted)


@opens_first
class AsyncLongTermMemory(
    AsyncLongTermBulkVerbs,
    AsyncLinkVerbs,
    AsyncAuditVerbs,
    AsyncMaintenanceVerbs,
    AsyncImportVerbs,
    LongTermHandle,
    AsyncHandle,
):
    """The awaited form of `LongTermMemory`, for any event loop; for the arguments see there.

    In a running event loop it is opened by `async with`, or by the first call that is awaited. A
    cancelled write may have happened or not; repeating it with the same id or key is safe.
    """

    @property
    def memory(self) -> AsyncMemory:
        """The same open memory with the methods of `AsyncMemory`; closing either closes both.

        It is the same object each time.
        """
        return self._other_form(AsyncMemory)

    @property
    def sync(self) -> "LongTermMemory":
        """The same open memory with plain methods; closing either closes both.

        It is the same object each time.
        """
        return self._other_form(LongTermMemory)

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
            entry: A new entry, or a record of this agent.
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
        stored = await self._repository.adder.add(
            [self._new_entry(entry, self._scope, self._repository.now(), idempotency_key)],
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
            entries: Earlier ones count as stored for later ones. New ones without a time get
                successive microseconds from now on.
            idempotency_keys: One for each entry, or None.

        Errors are those of `store`; the error names an invalid entry by its place in the list.
        """
        given = validation.items("entries", entries)
        keys = checked_keys(idempotency_keys, len(given))
        rows = zip(given, times(given, self._repository.now()), keys, strict=True)
        checked = []
        for at, (entry, now, key) in enumerate(rows):
            try:
                checked.append(self._new_entry(entry, self._scope, now, key))
            except InvalidArgumentError as error:
                raise InvalidEntryError(f"memory {at} of the list: {error}") from error
        stored = await self._repository.adder.add(
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
        found = await self._repository.reader.get(
            self._scope.narrowed(user_id, all_users=all_users),
            required_uuids("entry_id", [entry_id]),
            include_deleted=include_forgotten,
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
            min_similarity: Minimum cosine, 0 to 1, inclusive; unless given the embedder's
                `similarity_floor`, or the one that is learned from the memories.
            user_id: The user; None is the memories without a user.
            all_users: Whether to search the memories of all users.

        Raises:
            InvalidArgumentError: If an argument is out of range.
            EmbedderRequiredError: If the memory was opened with `embedder=None`.
            EmbeddingError: If the embedder fails.
        """
        validation.limit("limit", limit)
        if min_similarity is not None and not (
            validation.is_number(min_similarity) and 0 <= min_similarity <= 1
        ):
            given = quoted(min_similarity)
            raise InvalidArgumentError(f"min_similarity must be from 0 to 1, got {given}")
        scope = self._scope.narrowed(user_id, all_users=all_users)
        search = Search(
            text=validation.query(query),
            limit=limit,
            ranking=SEMANTIC,
            min_similarity=float(min_similarity or 0) or None,  # 0 excludes nothing
            uses_similarity_floor=min_similarity is None,
        )
        found = await self._repository.searcher.search(scope, search, with_passages=False)
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
            filter: Fields, or a dict in the grammar of docs/tune/filters.md, which returns the
                newest 100.
            user_id: The user; None is the memories without a user.
            all_users: Whether to include all users.

        Returns:
            In the order of the filter. Ties: newest first, then smallest id, then user by name.

        Raises:
            FilterError: If the filter is invalid; the message names the place.
        """
        return await self._matching(filter, user_id, all_users=all_users)

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
        return await self._matching(wanted, user_id, all_users=all_users)

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
        return await self._matching(wanted, user_id, all_users=all_users)

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
        return await self._matching(wanted, user_id, all_users=all_users)

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
        return await self._matching(wanted, user_id, all_users=all_users)

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
        changed = await self._repository.updater.update(
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
        return await self._repository.reader.stats(
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
        unseal: bool = False,
        progress: Progress | None = None,
    ) -> int:
        """Write memories, and the links between them, as JSON Lines; see docs/reference/export.md.

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
            unseal: Whether sealed memories may be written, as plain text; else they are refused.

        Returns:
            Number of memories.

        Raises:
            InvalidArgumentError: If the path exists already, or a memory is sealed.
            StoreFullError: If the disk is full or failing.
            StoreError: If it cannot be written.
        """
        return await self._repository.transfer.export(
            self._scope.narrowed(user_id, all_users=all_users),
            target,
            include_deleted=include_forgotten,
            embeddings=embeddings,
            overwrite=overwrite,
            unseal=unseal,
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
        with naive_times_in(self.time_zone):
            return await self._repository.lister.page(
                self._scope.narrowed(user_id, all_users=all_users),
                limit=limit,
                cursor=cursor,
                filters=filters,
                include_deleted=include_forgotten,
            )


class LongTermMemory(LongTermHandle, PlainHandle):
    """One agent's memories in one store, under the names of a specification; see `Memory`.

    Example:
        >>> with LongTermMemory("agent.db", agent_id="aide") as memory:  # doctest: +SKIP
        ...     entry_id = memory.store(MemoryEntry("Likes tea"))

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

    @property
    def memory(self) -> "mnemic.Memory":
        """The same open memory with the methods of `Memory`; closing either closes both.

        It is the same object each time.
        """
        from mnemic.memory import Memory  # noqa: PLC0415 - each interface names the other

        return self._other_form(Memory)

    @property
    def aio(self) -> AsyncLongTermMemory:
        """The same open memory with coroutine methods; closing either closes both.

        It is the same object each time.
        """
        return self._other_form(AsyncLongTermMemory)

    store = sync_method(AsyncLongTermMemory.store)
    store_batch = sync_method(AsyncLongTermMemory.store_batch)
    retrieve = sync_method(AsyncLongTermMemory.retrieve)
    retrieve_batch = sync_method(AsyncLongTermMemory.retrieve_batch)
    search_semantic = sync_method(AsyncLongTermMemory.search_semantic)
    search_by_filter = sync_method(AsyncLongTermMemory.search_by_filter)
    get_by_type = sync_method(AsyncLongTermMemory.get_by_type)
    get_by_tag = sync_method(AsyncLongTermMemory.get_by_tag)
    get_recent = sync_method(AsyncLongTermMemory.get_recent)
    get_important = sync_method(AsyncLongTermMemory.get_important)
    list = sync_method(AsyncLongTermMemory.list)
    count = sync_method(AsyncLongTermMemory.count)
    get_stats = sync_method(AsyncLongTermMemory.get_stats)
    audit = sync_method(AsyncLongTermMemory.audit)
    update = sync_method(AsyncLongTermMemory.update)
    update_many = sync_method(AsyncLongTermMemory.update_many)
    touch = sync_method(AsyncLongTermMemory.touch)
    forget = sync_method(AsyncLongTermMemory.forget)
    restore = sync_method(AsyncLongTermMemory.restore)
    delete_many = sync_method(AsyncLongTermMemory.delete_many)
    delete_all = sync_method(AsyncLongTermMemory.delete_all)
    purge_expired = sync_method(AsyncLongTermMemory.purge_expired)
    link = sync_method(AsyncLongTermMemory.link)
    unlink = sync_method(AsyncLongTermMemory.unlink)
    links = sync_method(AsyncLongTermMemory.links)
    export = sync_method(AsyncLongTermMemory.export)
    import_ = sync_method(AsyncLongTermMemory.import_)
    users = sync_method(AsyncLongTermMemory.users)
    erase_pending = sync_method(AsyncLongTermMemory.erase_pending)
    drop_vectors = sync_method(AsyncLongTermMemory.drop_vectors)
    reembed = sync_method(AsyncLongTermMemory.reembed)
    rotate_key = sync_method(AsyncLongTermMemory.rotate_key)
    forget_agent = sync_method(AsyncLongTermMemory.forget_agent)
    backup = sync_method(AsyncLongTermMemory.backup)
    verify = sync_method(AsyncLongTermMemory.verify)
