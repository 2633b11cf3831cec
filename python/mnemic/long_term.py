"""LongTermMemory: one agent's memories, stored for good and found by meaning."""

import os
from collections.abc import Collection, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeAlias, Unpack
from uuid import UUID

from mnemic.description import described, quoted
from mnemic.errors import InvalidArgumentError, InvalidEntryError
from mnemic.licensing import LicensePolicy
from mnemic.model import (
    SEMANTIC,
    DeleteResult,
    ImportResult,
    LinkType,
    LongTermMemoryStats,
    MemoryEntry,
    MemoryEntryUpdate,
    MemoryFilter,
    MemoryLink,
    MemoryPage,
    MemorySearchResult,
    MemorySortOrder,
    MemoryType,
    NewEntry,
    OnDuplicate,
    OnEmbedError,
    Scope,
    Search,
    VerifyReport,
)
from mnemic.model.new_entry import checked_key, checked_record
from mnemic.model.validation import bounded, items, text
from mnemic.observability.events import Events
from mnemic.protocols import Progress, Source, Target
from mnemic.repository import Options, Repository, check_limit, required_uuid, required_uuids
from mnemic.store import Direction
from mnemic.sync_bridge import run_blocking

if TYPE_CHECKING:
    from mnemic.embed.base import Embedder

Entries: TypeAlias = list[MemoryEntry]

DOCUMENTED_FLOOR = 0.6


class LongTermMemory:
    """One agent's memories in one store.

    Example:
        >>> memory = await LongTermMemory.open("agent.db", agent_id="aide")  # doctest: +SKIP
        >>> entry_id = await memory.store(entry)  # doctest: +SKIP

    Methods are coroutines and may be called from any event loop and from several at once. What
    computes or waits for long runs in other threads. A cancelled write may have happened or not;
    repeating it with the same id or key is safe.

    Between users there are walls: a call that names no user sees memories stored without one;
    `all_users=True` takes the walls down. Ids open nothing by themselves; they are unique within
    agent and user, and one that several users gave raises AmbiguousIdError where a call for all
    users names it. From its `expires_at` on a memory is like a forgotten one.

    Args:
        url: A file, made if there is none and readable by its owner alone, or ":memory:".
        agent_id: Whose memory it is. Agents in one store never see each other's memories.
        options: See `mnemic.repository.Options`.

    Raises:
        MissingExtraError: If the local embedder is wanted and not installed.
        StoreFileError: If the path cannot be used or holds something else.
        SchemaVersionError: If a newer mnemic wrote the file.
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
        self._repository = Repository(url, agent_id, **options)

    @classmethod
    async def open(
        cls,
        url: str | os.PathLike[str],
        *,
        agent_id: str = "default",
        **options: Unpack[Options],
    ) -> Self:
        """Open a memory without holding up the event loop; for the arguments see the class."""
        return await run_blocking(lambda: cls(url, agent_id=agent_id, **options))

    @property
    def agent_id(self) -> str:
        """Whose memory this is."""
        return self._repository.agent_id

    @property
    def repository(self) -> Repository:
        """What joins store and index; for services."""
        return self._repository

    @property
    def scope(self) -> Scope:
        """Whose memories are seen where no user is named."""
        return self._repository.agent

    @property
    def embedder(self) -> "Embedder | None":
        """What turns texts into vectors."""
        return self._repository.embedder

    @property
    def license(self) -> LicensePolicy | None:
        """What the caller's user may do."""
        return self._repository.limits.license

    @property
    def events(self) -> Events:
        """Tells listeners what happens to memories; see `mnemic.observability.events`."""
        return self._repository.events

    async def store(
        self,
        entry: MemoryEntry,
        *,
        idempotency_key: str | None = None,
        on_duplicate: OnDuplicate = "keep",
        on_embed_error: OnEmbedError = "raise",
    ) -> UUID:
        """Store a memory; when this returns it is on disk, and the next search can find it.

        An entry without an embedding gets one. Its user, project and session are its scope.
        What it `supersedes` is marked as such and linked to it in the same transaction.

        Args:
            entry: Of this agent.
            idempotency_key: Unique for agent and user. A second call with it stores nothing and
                returns the id of the first one's memory, whatever became of that.
            on_duplicate: What to do if the user has a memory with the same text, whatever its case
                and white space: "keep" both, "skip" the new one, or "merge" its tags, metadata and
                importance into the older; the id of the older is returned then.
            on_embed_error: "pending" stores the memory without a vector if the embedder fails; it
                gets one before a later search.

        Returns:
            The memory's id.

        Raises:
            InvalidEntryError: If it is no entry of this agent.
            DuplicateEntryError: If the user already has a memory with its id, forgotten or not, or
                the key was used for another content.
            EntryNotFoundError: If the user has no memory of the id that it supersedes.
            EmbeddingError: If the embedder fails; nothing is stored then.
            EmbeddingModelMismatchError: If it brings a vector of another model.
            StoreError: If the store cannot be written; nothing is stored then.
        """
        new = NewEntry(self._checked(entry), checked_key(idempotency_key))
        stored = await self._repository.add(
            [new], on_duplicate=on_duplicate, on_embed_error=on_embed_error
        )
        return stored[0].id

    async def store_batch(
        self,
        entries: Sequence[MemoryEntry],
        *,
        idempotency_keys: Sequence[str | None] | None = None,
        on_duplicate: OnDuplicate = "keep",
        on_embed_error: OnEmbedError = "raise",
    ) -> list[UUID]:
        """Store memories, all or none; return their ids in the given order.

        Args:
            entries: Of this agent; earlier ones count as stored for later ones.
            idempotency_keys: One for each entry, or None.
            on_duplicate: As for `store`.
            on_embed_error: As for `store`.

        Raises:
            As `store`; an entry that cannot be stored is named by its place in the list.
        """
        given = items("entries", entries)
        keys = [None] * len(given)
        if idempotency_keys is not None:
            keys = items("idempotency_keys", idempotency_keys)
        if len(keys) != len(given):
            raise InvalidArgumentError(
                f"{len(given)} entries come with {len(keys)} idempotency keys; give one for "
                "each, None where there is none"
            )
        checked = []
        for at, (entry, key) in enumerate(zip(given, keys, strict=True)):
            try:
                checked.append(NewEntry(self._checked(entry), checked_key(key)))
            except InvalidEntryError as error:
                raise InvalidEntryError(f"memory {at} of the list: {error}") from error
        stored = await self._repository.add(
            checked, on_duplicate=on_duplicate, on_embed_error=on_embed_error
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
        """Return a memory without its embedding, or None if there is none of this id.

        This counts as an access, unless the memory was opened with `track_access=False`.

        Args:
            entry_id: Which one.
            user_id: Whose it is; None is those stored without a user.
            all_users: Whoever it belongs to.
            include_forgotten: Forgotten, expired, archived and superseded ones too.
        """
        found = await self.retrieve_batch(
            [entry_id],
            user_id=user_id,
            all_users=all_users,
            include_forgotten=include_forgotten,
        )
        return next(iter(found.values()), None)

    async def retrieve_batch(
        self,
        entry_ids: Sequence[UUID | str],
        *,
        user_id: str | None = None,
        all_users: bool = False,
        include_forgotten: bool = False,
    ) -> dict[UUID, MemoryEntry]:
        """Return the memories of these ids that there are, as `retrieve` does."""
        return await self._repository.get(
            self._scope(user_id, all_users=all_users),
            required_uuids("entry_ids", entry_ids),
            include_deleted=include_forgotten,
        )

    async def search_semantic(
        self,
        query: str,
        limit: int = 10,
        min_similarity: float | None = None,
        *,
        user_id: str | None = None,
        all_users: bool = False,
    ) -> list[MemorySearchResult]:
        """Find the memories whose meaning is nearest to a query.

        Every memory of the scope is ranked, exactly. Order: similarity, then newest, then smallest
        id; a smaller limit always gives the head of what a larger one gives.

        Args:
            query: What to look for, not empty, at most 10,000 characters.
            limit: How many at most, 1 to 1,000.
            min_similarity: The least cosine, 0 to 1, inclusive; the embedder's `similarity_floor`
                unless given, and 0.6 where it has none.
            user_id: Whose memories; None is those stored without a user.
            all_users: Everybody's.

        Raises:
            InvalidArgumentError: If an argument is outside its range.
            EmbedderRequiredError: If the memory was opened with `embedder=None`.
            EmbeddingError: If the embedder fails.
        """
        check_limit(limit)
        minimum = self._floor() if min_similarity is None else min_similarity
        if (
            isinstance(minimum, bool)
            or not isinstance(minimum, int | float)
            or not 0 <= minimum <= 1
        ):
            raise InvalidArgumentError(f"min_similarity must be from 0 to 1, got {quoted(minimum)}")
        scope = self._scope(user_id, all_users=all_users)
        if not isinstance(query, str) or not query.strip():
            raise InvalidArgumentError(
                f"query must be a text that is not empty, got {described(query)}"
            )
        checked = bounded("query", text("query", query))
        search = Search(text=checked, limit=limit, ranking=SEMANTIC, min_similarity=minimum)
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
        """Return the memories that match a filter; nothing of meaning is asked.

        Archived and superseded ones are left out unless the filter asks for a status. Reading a
        memory this way does not count as an access.

        Args:
            filter: Fields, or a dict in the grammar of docs/filters.md, which gives the newest 100.
            user_id: Whose memories; None is those stored without a user.
            all_users: Everybody's.

        Returns:
            In the order the filter names; ties go to the newest, then to the smallest id, then to
            the first user by name.

        Raises:
            FilterError: If the filter cannot be understood; the message names the place.
        """
        return await self._repository.matching(self._scope(user_id, all_users=all_users), filter)

    async def get_by_type(
        self,
        type: MemoryType | str,  # noqa: A002 - the field's name everywhere
        limit: int = 100,
        *,
        user_id: str | None = None,
        all_users: bool = False,
    ) -> Entries:
        """Return the newest memories of a type."""
        wanted = MemoryFilter(types=(MemoryType.parse(type),), limit=limit)
        return await self.search_by_filter(wanted, user_id=user_id, all_users=all_users)

    async def get_by_tag(
        self, tag: str, limit: int = 100, *, user_id: str | None = None, all_users: bool = False
    ) -> Entries:
        """Return the newest memories that carry a tag."""
        wanted = MemoryFilter(tags=(tag,), limit=limit)
        return await self.search_by_filter(wanted, user_id=user_id, all_users=all_users)

    async def get_recent(
        self, limit: int = 10, *, user_id: str | None = None, all_users: bool = False
    ) -> Entries:
        """Return the memories accessed last; after them those never accessed, newest first.

        Accesses in this process count at once, those of others within about a second.
        """
        wanted = MemoryFilter(limit=limit, sort_by=MemorySortOrder.ACCESSED_DESCENDING)
        return await self.search_by_filter(wanted, user_id=user_id, all_users=all_users)

    async def get_important(
        self, limit: int = 10, *, user_id: str | None = None, all_users: bool = False
    ) -> Entries:
        """Return the most important memories."""
        wanted = MemoryFilter(limit=limit, sort_by=MemorySortOrder.IMPORTANCE_DESCENDING)
        return await self.search_by_filter(wanted, user_id=user_id, all_users=all_users)

    async def update(
        self,
        entry_id: UUID | str,
        update: MemoryEntryUpdate,
        *,
        user_id: str | None = None,
        all_users: bool = False,
    ) -> bool:
        """Change a memory; return False if there is none of this id.

        A new content is embedded. If anything fails the memory stays as it was.

        Raises:
            EmbeddingError: If the embedder fails.
            StoreError: If the store cannot be written.
        """
        scope = self._scope(user_id, all_users=all_users)
        changed = await self._repository.update(scope, required_uuid(entry_id), update)
        return changed is not None

    async def touch(
        self,
        entry_ids: Sequence[UUID | str],
        *,
        user_id: str | None = None,
        all_users: bool = False,
    ) -> None:
        """Count an access of memories that were used in another way; unknown ids are passed over.

        Accesses are written down together, within about a second; a crash may lose the last.
        """
        scope = self._scope(user_id, all_users=all_users)
        await self._repository.touch(scope, required_uuids("entry_ids", entry_ids))

    async def link(
        self,
        from_id: UUID | str,
        to_id: UUID | str,
        type: LinkType | str = LinkType.RELATED,  # noqa: A002 - the field's name everywhere
        strength: float = 1.0,
        *,
        user_id: str | None = None,
        all_users: bool = False,
    ) -> MemoryLink:
        """Link two memories, from the newer to the older.

        Linking them again with the same type changes the strength.

        Args:
            from_id: The memory that says something of the other.
            to_id: The other one.
            type: What it says. SUPERSEDES comes from the field of that name alone.
            strength: From 0 to 1.
            user_id: Whose they are; None is those stored without a user.
            all_users: Whoever they belong to.

        Raises:
            EntryNotFoundError: If one of them is not there.
            InvalidArgumentError: If both are the same, the type is SUPERSEDES or unknown, or the
                strength outside its range.
        """
        scope = self._scope(user_id, all_users=all_users)
        ends = required_uuid(from_id), required_uuid(to_id)
        return await self._repository.link(scope, *ends, type, strength)

    async def unlink(
        self,
        from_id: UUID | str,
        to_id: UUID | str,
        type: LinkType | str | None = None,  # noqa: A002 - the field's name everywhere
        *,
        user_id: str | None = None,
        all_users: bool = False,
    ) -> int:
        """Delete links from one memory to another, of one type or of all but SUPERSEDES.

        Returns:
            How many.
        """
        scope = self._scope(user_id, all_users=all_users)
        ends = required_uuid(from_id), required_uuid(to_id)
        return await self._repository.unlink(scope, *ends, type)

    async def links(
        self,
        entry_id: UUID | str,
        *,
        direction: Direction = "both",
        types: Collection[LinkType | str] | None = None,
        user_id: str | None = None,
        all_users: bool = False,
    ) -> list[MemoryLink]:
        """Return the links of a memory whose other ends are there: not forgotten, not expired.

        Args:
            entry_id: Which memory; one that is not there has none.
            direction: "out" from it, "in" to it, or "both".
            types: Only these.
            user_id: Whose it is; None is those stored without a user.
            all_users: Whoever it belongs to.

        Returns:
            Oldest first, then by the ids, then by type.
        """
        scope = self._scope(user_id, all_users=all_users)
        return await self._repository.links(scope, required_uuid(entry_id), direction, types)

    async def forget(
        self,
        entry_id: UUID | str,
        permanent: bool = False,  # noqa: FBT001, FBT002 - the document's signature
        *,
        user_id: str | None = None,
        all_users: bool = False,
    ) -> DeleteResult:
        """Forget a memory: from now on it is not found.

        Forgetting a forgotten memory again changes nothing and is true again. For 90 days it
        can be restored; then `purge_expired` deletes it.

        Args:
            entry_id: Which one.
            permanent: Delete it at once, with its vectors and links, also if it is forgotten
                already; it cannot be restored.
            user_id: Whose it is; None is those stored without a user.
            all_users: Whoever it belongs to.

        Returns:
            1, or 0 if there is none of this id: true or false.
        """
        scope = self._scope(user_id, all_users=all_users)
        return await self._repository.delete(scope, required_uuid(entry_id), permanent=permanent)

    async def restore(
        self, entry_id: UUID | str, *, user_id: str | None = None, all_users: bool = False
    ) -> bool:
        """Take a memory back that was forgotten within the last 90 days.

        Returns:
            False if there is none of this id, if it is not forgotten, or if that was too long ago.
        """
        scope = self._scope(user_id, all_users=all_users)
        return await self._repository.restore(scope, required_uuid(entry_id))

    async def delete_all(self, *, user_id: str | None, permanent: bool = False) -> DeleteResult:
        """Forget all memories of a user, archived and superseded ones included.

        Args:
            user_id: Whose; None is those stored without a user.
            permanent: Delete them for good, and those forgotten before too.

        Returns:
            How many memories that were.
        """
        scope = self._scope(user_id, all_users=False)
        return await self._repository.delete_all(scope, permanent=permanent)

    async def purge_expired(
        self, *, user_id: str | None = None, all_users: bool = False
    ) -> DeleteResult:
        """Delete for good memories that were forgotten or expired more than 90 days ago.

        Args:
            user_id: Whose memories; None is those stored without a user.
            all_users: Everybody's.

        Returns:
            How many memories that were; its `erased` tells whether their bytes are gone already.
        """
        return await self._repository.purge(self._scope(user_id, all_users=all_users))

    async def count(self, *, user_id: str | None = None, all_users: bool = False) -> int:
        """Return how many memories a search can find.

        Args:
            user_id: Whose memories; None is those stored without a user.
            all_users: Everybody's.
        """
        return await self._repository.count(self._scope(user_id, all_users=all_users))

    async def get_stats(
        self, *, user_id: str | None = None, all_users: bool = False
    ) -> LongTermMemoryStats:
        """Return what the memories of a user, of nobody or of all users amount to.

        Two figures are of the whole agent: the storage limit, and, where there is one, the bytes
        used. What the embedder did is told with `all_users` alone.

        Args:
            user_id: Whose memories; None is those stored without a user.
            all_users: Everybody's.
        """
        return await self._repository.stats(self._scope(user_id, all_users=all_users))

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
        """Write memories, and the links between them, as JSON Lines; see docs/export.md.

        What is written while others write is each memory as it was at some moment meanwhile; a
        `backup` is all of one moment.

        Args:
            target: A path, which is complete or not there at all, of mode 0600; or a text file.
            user_id: Whose memories; None is those stored without a user.
            all_users: Everybody's.
            include_forgotten: Forgotten and expired ones too.
            embeddings: Their vectors too, which take about 2 KB each.
            overwrite: Whether a file at this path may be replaced.
            progress: Called now and then with the number of memories written so far.

        Returns:
            How many memories.

        Raises:
            InvalidArgumentError: If there is a file at this path already.
            EmbedderRequiredError: If vectors are wanted of a memory opened with `embedder=None`.
            StoreFullError: If the disk is full or failing.
            StoreError: If it cannot be written.
        """
        return await self._repository.export(
            self._scope(user_id, all_users=all_users),
            target,
            include_deleted=include_forgotten,
            embeddings=embeddings,
            overwrite=overwrite,
            progress=progress,
        )

    async def import_(self, source: Source, *, progress: Progress | None = None) -> ImportResult:
        """Store the memories of an export, of whatever agent, with their ids, users and times.

        The whole file is checked first. Then memories are stored in batches; those whose ids are
        there already are passed over, so an import that was interrupted can be repeated. Memories
        without a vector of this embedder are embedded.

        Args:
            source: A path, or an open file.
            progress: Called now and then with the number of memories done so far.

        Raises:
            ExportFormatError: At the first line that is not right; nothing is stored then.
            DuplicateEntryError: If a key was used for another content. With this and what follows,
                the batches of 1,000 memories before are stored; repeat it when the cause is gone.
            StorageQuotaExceededError: If a batch would pass the quota.
            EmbeddingError: If the embedder fails.
            StoreError: If the file cannot be written.
        """
        return await self._repository.import_(self._repository.agent, source, progress=progress)

    async def erase_pending(self) -> bool:
        """Erase the bytes that deletions for good could not erase at once, in the whole file.

        A deletion cannot erase them while a reader or a backup needs the old state, and says so
        (`DeleteResult.erased`). Each call tries again, and waits a moment for those who read.

        Returns:
            Whether nothing of what was deleted for good is left in the file and its log.

        Raises:
            ReadOnlyError: If the memory was opened for reading alone.
        """
        return await self._repository.erase_pending()

    async def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy the whole file, all agents' memories, as of one moment, while others go on writing.

        Args:
            path: A new file; it gets mode 0600, and is complete or not there at all.

        Raises:
            StoreFileError: If there is something already, or it cannot be written.
        """
        await self._repository.backup(path)

    async def verify(
        self, *, repair: bool = False, progress: Progress | None = None
    ) -> VerifyReport:
        """Walk through the whole file, all agents' memories, and compare it with its checksums.

        Rows, vectors and links are read and compared, the number of each agent's memories too, and
        SQLite checks its own structures. Nothing is written unless `repair` asks for it. Where an
        embedder cannot load a damaged file, open it with `embedder=None`.

        Args:
            repair: Give checksums to memories that earlier versions of mnemic wrote, and write each
                agent's number and sum of memories anew, after they were compared. What is damaged
                stays as it is: it is reported each time, and refused where it is read.
            progress: Called now and then with the number of memories so far.

        Returns:
            What was counted and found; its `ok` says whether all is as it was stored.

        Raises:
            ReadOnlyError: If a file opened for reading alone is to be repaired.
        """
        return await self._repository.verify(repair=repair, progress=progress)

    async def close(self) -> None:
        """Finish writing and let go of the file. Harmless if repeated."""
        await self._repository.close()

    aclose = close

    async def list(
        self,
        *,
        limit: int = 100,
        cursor: str | None = None,
        filter: MemoryFilter | Mapping[str, Any] | None = None,  # noqa: A002 - as above
        include_forgotten: bool = False,
        user_id: str | None = None,
        all_users: bool = False,
    ) -> MemoryPage:
        """Return a page of the memories, newest first.

        Memories that are there all the while are on exactly one page, whatever is written between.

        Args:
            limit: How many on a page, 1 to 1,000.
            cursor: From the page before; None begins.
            filter: Only those that match; its limit, offset and order are not used.
            include_forgotten: Forgotten and expired ones too.
            user_id: Whose memories; None is those stored without a user.
            all_users: Everybody's.

        Raises:
            InvalidArgumentError: If the limit is out of range, or no page gave the cursor.
            FilterError: If the filter cannot be understood.
        """
        return await self._repository.page(
            self._scope(user_id, all_users=all_users),
            limit=limit,
            cursor=cursor,
            wanted=filter,
            include_deleted=include_forgotten,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"LongTermMemory({self._repository.path!r}, {self._repository.agent})"

    def _floor(self) -> float:
        """Return the default floor: the embedder's, else `DOCUMENTED_FLOOR`."""
        floor = self._repository.similarity_floor
        return DOCUMENTED_FLOOR if floor is None else floor

    def _scope(self, user_id: str | None, *, all_users: bool) -> Scope:
        """Return the scope of one of the agent's users, of nobody, or of all."""
        return Scope(self.agent_id, user_id, all_users=all_users)

    def _checked(self, entry: object) -> MemoryEntry:
        if not isinstance(entry, MemoryEntry):
            raise InvalidEntryError(f"entry must be a MemoryEntry, got {type(entry).__name__}")
        return checked_record(entry, self._repository.agent)
