"""AsyncMemory: one agent's memories in one file, with coroutine methods.

`mnemic.memory` has the same methods as plain calls.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, Self, TypeAlias, Unpack
from uuid import UUID

from mnemic.description import quoted
from mnemic.errors import InvalidArgumentError, InvalidEntryError
from mnemic.model import (
    CheckedEntry,
    DeleteResult,
    LongTermMemoryStats,
    MemoryEntry,
    MemoryEntryUpdate,
    MemoryFilter,
    MemoryPage,
    MemoryStatus,
    MemoryType,
    NewEntry,
    OnDuplicate,
    OnEmbedError,
    ScoredMemory,
)
from mnemic.model.scope import not_found
from mnemic.model.validation import flag, items
from mnemic.protocols import Progress, Target
from mnemic.repository import Options, required_uuid, required_uuids
from mnemic.sync_bridge import run_blocking
from mnemic.verbs.base import MemoryHandle, NewMemory
from mnemic.verbs.links import AsyncLinkVerbs
from mnemic.verbs.maintenance import AsyncMaintenanceVerbs
from mnemic.verbs.search import AsyncSearchVerbs
from mnemic.verbs.transfer import AsyncImportVerbs

Entries: TypeAlias = list[MemoryEntry]

# Checking one takes about 50 µs; more of them at once go to a thread.
_FEW_MEMORIES = 16


class AsyncScopedMemory(AsyncSearchVerbs, AsyncLinkVerbs, AsyncImportVerbs):
    """A memory with a part of the scope bound.

    It has the methods of `AsyncMemory`, in which only the agent is bound. A call cannot name a
    bound part otherwise.

    A call without a user, bound or given, sees only memories without a user; `all_users=True`
    includes all users, and goes with no user. `project_id` and `session_id` limit a call to a
    project or a session. An id gives no access by itself: outside the scope it does not exist.

    All methods may be called from any event loop, and from several at once.
    """

    def scoped(
        self,
        *,
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
    ) -> "AsyncScopedMemory":
        """Return a memory with more of the scope bound.

        Raises:
            InvalidArgumentError: If a bound part is named otherwise.
        """
        narrowed = self._scope.narrowed(user_id, project_id, session_id)
        return AsyncScopedMemory(self._repository, narrowed, self._services)

    async def add(
        self,
        content: str,
        *,
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
        role: str | None = None,
        speaker: str | None = None,
        message_id: str | None = None,
        position: int | None = None,
        created_at: datetime | str | None = None,
        expires_at: datetime | str | None = None,
        type: MemoryType | str | None = MemoryType.FACT,  # noqa: A002 - the field's name everywhere
        tags: Sequence[str] | None = (),
        importance: float | None = 0.5,
        metadata: Mapping[str, Any] | None = None,
        category: str | None = None,
        source: str | None = None,
        sensitive: bool | None = False,
        supersedes: UUID | str | None = None,
        id: UUID | str | None = None,  # noqa: A002 - the field's name everywhere
        idempotency_key: str | None = None,
        on_duplicate: OnDuplicate = "keep",
        on_embed_error: OnEmbedError = "raise",
        check: Literal["contradictions"] | None = None,
    ) -> MemoryEntry:
        """Store one memory. On return it is on disk, and the next search can find it.

        Args:
            content: The text, not empty, at most 10 MB of UTF-8.
            user_id: The user whom it is about; only calls with the same user see it.
            project_id: Project, for filters.
            session_id: Session, for filters.
            role: Role of the speaker, such as "user" or "assistant".
            speaker: Name of the speaker.
            message_id: Id of the source message.
            position: Order inside the session.
            created_at: Now if None. A text is read as ISO 8601; without a zone it is UTC.
            expires_at: From then on it is treated like a deleted one; None is never.
            type: Sort of statement; a name such as "preference" is accepted.
            tags: Without control characters.
            importance: From 0 to 1.
            metadata: JSON values; ints within ±2⁵³.
            category: Free text.
            source: Where it came from, such as a file's name or a URL.
            sensitive: Hide the content from `repr`, and from logs, events and errors even with
                `log_content=True`. Nothing is encrypted yet.
            supersedes: Id of the memory that this one replaces; it is marked as superseded, no
                longer found, and linked.
            id: A new one of version 7 if None. With a given id a retry cannot store twice.
            idempotency_key: Unique for agent and user. A second call with it stores nothing and
                returns the first one's memory, even if that was deleted.
            on_duplicate: Treatment if the user has a memory with the same text, apart from case and
                white space: "keep" both, "skip" the new one, or "merge" its tags, metadata and
                importance into the older, which is returned then.
            on_embed_error: "pending" stores the memory without a vector if the embedder fails; it
                is embedded before a later search.
            check: "contradictions" returns a `mnemic.CheckedEntry` with the memories of the same
                scope that the new one contradicts; it is stored in any case. They are judged before
                it is stored: if that fails, nothing is stored.

        Returns:
            The memory as it was stored.

        Raises:
            InvalidEntryError: If an argument is of the wrong type or out of range.
            DuplicateEntryError: If the user already has a memory with this id, or the key was used
                for another content.
            EntryNotFoundError: If the user has no memory with the id that it supersedes.
            EmbeddingError: If the embedder fails; nothing is stored then.
            StoreError: If the file cannot be written; nothing is stored then.
        """
        fields = {
            "content": content,
            "user_id": user_id,
            "project_id": project_id,
            "session_id": session_id,
            "role": role,
            "speaker": speaker,
            "message_id": message_id,
            "position": position,
            "created_at": created_at,
            "expires_at": expires_at,
            "type": type,
            "tags": tags,
            "importance": importance,
            "metadata": metadata,
            "category": category,
            "source": source,
            "sensitive": sensitive,
            "supersedes": supersedes,
            "id": id,
            "idempotency_key": idempotency_key,
        }
        if not isinstance(content, str):
            raise InvalidEntryError(
                f"content must be a str, got {content.__class__.__name__}; "
                "add_many takes lists, dicts and MemoryEntry"
            )
        if check not in (None, "contradictions"):
            raise InvalidArgumentError(
                f"check must be 'contradictions' or None, got {quoted(check)}"
            )
        new = self._new(fields, self._scope, self._repository.now())
        found: Sequence[ScoredMemory] = ()
        if check is not None:  # before storing, so that a judge that fails leaves nothing stored
            scope = self._scope.narrowed(user_id, project_id, session_id)
            replaced = () if new.entry.supersedes is None else (new.entry.supersedes,)
            contradicted = await self._contradictions(
                scope, content, 10, replaced, is_sensitive=bool(sensitive)
            )
            found = contradicted.memories
        (stored,) = await self._repository.add(
            [new], on_duplicate=on_duplicate, on_embed_error=on_embed_error
        )
        if check is None:
            return stored
        return CheckedEntry.of(stored, tuple(one for one in found if one.memory.id != stored.id))

    async def add_many(
        self,
        memories: Iterable[NewMemory],
        *,
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
        on_duplicate: OnDuplicate = "keep",
        on_embed_error: OnEmbedError = "raise",
    ) -> Entries:
        """Store several memories, all or none; far faster than one by one.

        Args:
            memories: Texts, dicts with the arguments of `add`, or `MemoryEntry` records, which keep
                their id and times.
            user_id: The user of memories without one.
            project_id: The project of memories without one.
            session_id: The session of memories without one.
            on_duplicate: As for `add`; earlier ones of the list count as stored.
            on_embed_error: As for `add`.

        Returns:
            The memories as they were stored, in the given order.

        Raises:
            InvalidEntryError: If one of them is invalid; the message names it.
            DuplicateEntryError: If a user has one of the ids already, or the list has it twice for
                the user.
            EntryNotFoundError: If one supersedes a memory that its user does not have.
            EmbeddingError: If the embedder fails; nothing is stored then.
            StoreError: If the file cannot be written; nothing is stored then.
        """
        if isinstance(memories, str | Mapping | MemoryEntry):
            raise InvalidEntryError("add_many takes a list of memories; add takes a single one")
        scope = self._scope.narrowed(user_id, project_id, session_id)
        now = self._repository.now()
        given = items("memories", memories)

        def checked() -> list[NewEntry]:
            return [self._any_new(at, memory, scope, now) for at, memory in enumerate(given)]

        are_few = len(given) <= _FEW_MEMORIES
        entries = checked() if are_few else await run_blocking(checked, self._repository)
        return await self._repository.add(
            entries, on_duplicate=on_duplicate, on_embed_error=on_embed_error
        )

    async def get(
        self,
        id: UUID | str,  # noqa: A002 - the field's name everywhere
        *,
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
    ) -> MemoryEntry:
        """Return a memory by its id, without its embedding.

        Raises:
            EntryNotFoundError: If the scope has no such memory; the message names the scope.
        """
        scope = self._scope.narrowed(user_id, project_id, session_id)
        entry_id = required_uuid(id)
        found = await self._repository.get(scope, [entry_id])
        if entry_id not in found:
            raise not_found(entry_id, scope)
        return found[entry_id]

    async def update(
        self,
        id: UUID | str,  # noqa: A002 - the field's name everywhere
        *,
        content: str | None = None,
        importance: float | None = None,
        add_tags: Sequence[str] | None = (),
        remove_tags: Sequence[str] | None = (),
        type: MemoryType | str | None = None,  # noqa: A002 - the field's name everywhere
        metadata: Mapping[str, Any] | None = None,
        status: MemoryStatus | str | None = None,
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
    ) -> MemoryEntry:
        """Change a memory; omitted fields stay unchanged. A new content is embedded.

        Args:
            id: Id of the memory.
            content: The new text.
            importance: From 0 to 1.
            add_tags: Appended, unless present.
            remove_tags: Removed before tags are added.
            type: Sort of statement.
            metadata: Merged: its keys replace keys of the same name.
            status: "archived" hides it from searches; "active" restores it.
            user_id: The user; None is the memories without a user.
            project_id: Only if it is of this project.
            session_id: Only if it is of this session.

        Returns:
            The memory after the change, without its embedding.

        Raises:
            EntryNotFoundError: If the scope has no such memory; the message names the scope.
            InvalidEntryError: If an argument is of the wrong type or out of range.
            EmbeddingError: If the embedder fails; nothing is changed then.
            StoreError: If the file cannot be written; nothing is changed then.
        """
        scope = self._scope.narrowed(user_id, project_id, session_id)
        given: dict[str, Any] = {
            "content": content,
            "importance": importance,
            "add_tags": add_tags,
            "remove_tags": remove_tags,
            "type": type,
            "metadata": metadata,
            "status": status,
        }
        update = MemoryEntryUpdate(**given)
        entry_id = required_uuid(id)
        entry = await self._repository.update(scope, entry_id, update)
        if entry is None:
            raise not_found(entry_id, scope)
        return entry

    async def delete(
        self,
        id: UUID | str,  # noqa: A002 - the field's name everywhere
        *,
        permanent: bool = False,
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
    ) -> DeleteResult:
        """Delete a memory; searches no longer find it. Deleting it again changes nothing.

        Args:
            id: Id of the memory.
            permanent: Delete its record, vectors and links too; it cannot be restored. Otherwise
                the record stays, marked as deleted, and can be restored for 90 days.
            user_id: The user; None is the memories without a user.
            project_id: Only if it is of this project.
            session_id: Only if it is of this session.

        Returns:
            1; its `erased` is true if the deleted bytes are gone from the file already.

        Raises:
            EntryNotFoundError: If the scope has no such memory; the message names the scope.
        """
        scope, entry_id = self._scope.narrowed(user_id, project_id, session_id), required_uuid(id)
        deleted = await self._repository.deleter.delete(scope, entry_id, permanent=permanent)
        if not deleted:
            raise not_found(entry_id, scope)
        return deleted

    async def delete_all(
        self,
        *,
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
        permanent: bool = False,
    ) -> DeleteResult:
        """Delete all memories of a scope: of a user, of those without a user, or of a part.

        Args:
            user_id: The user; None is the memories without a user.
            project_id: Only those of this project.
            session_id: Only those of this session.
            permanent: Delete records, vectors and links too, also of memories deleted before; they
                cannot be restored.

        Returns:
            Number of deleted memories.
        """
        scope = self._scope.narrowed(user_id, project_id, session_id)
        return await self._repository.deleter.delete_all(scope, permanent=permanent)

    async def restore(
        self,
        id: UUID | str,  # noqa: A002 - the field's name everywhere
        *,
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
    ) -> bool:
        """Restore a memory that was deleted within the last 90 days, and not permanently.

        Returns:
            False if the scope has no such memory, if it is not deleted, or was so too long ago.
        """
        scope = self._scope.narrowed(user_id, project_id, session_id)
        return await self._repository.deleter.restore(scope, required_uuid(id))

    async def count(
        self,
        *,
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> int:
        """Return the number of memories that a search can find; for the scope see the class."""
        scope = self._scope.narrowed(user_id, project_id, session_id, all_users=all_users)
        return await self._repository.count(scope)

    async def stats(
        self,
        *,
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> LongTermMemoryStats:
        """Return statistics of the memories; for the scope see the class.

        Two figures are of the whole agent: the storage limit, and, with a limit, the bytes used.
        Figures of the embedder are returned with `all_users` alone.
        """
        scope = self._scope.narrowed(user_id, project_id, session_id, all_users=all_users)
        return await self._repository.stats(scope)

    async def purge(
        self,
        *,
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> DeleteResult:
        """Delete memories permanently that were deleted or expired more than 90 days ago.

        For the scope see the class.

        Returns:
            Number of deleted memories; its `erased` is true if their bytes are gone already.
        """
        scope = self._scope.narrowed(user_id, project_id, session_id, all_users=all_users)
        return await self._repository.deleter.purge(scope)

    async def touch(
        self,
        ids: Iterable[UUID | str],
        *,
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
    ) -> None:
        """Count an access of memories; unknown ids are skipped.

        Reading a memory by its id counts by itself. Accesses are written together, within about a
        second; a crash may lose the last ones.
        """
        scope = self._scope.narrowed(user_id, project_id, session_id)
        await self._repository.touch(scope, required_uuids("ids", ids))

    async def export(
        self,
        target: Target,
        *,
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
        include_deleted: bool = True,
        embeddings: bool = False,
        overwrite: bool = False,
        progress: Progress | None = None,
    ) -> int:
        """Write memories, and the links between them, as JSON Lines; see docs/export.md.

        What is written while others write is each memory as it was at some moment meanwhile; a
        `backup` is all of one moment.

        Args:
            target: A path, which is complete or not there at all, of mode 0600; or a text file.
            user_id: The user; None is the memories without a user.
            project_id: Only memories of this project.
            session_id: Only memories of this session.
            all_users: Whether to include all users; not if part of the scope is bound.
            include_deleted: Those that can be restored, and expired ones, too.
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
        scope = self._scope.narrowed(user_id, project_id, session_id, all_users=all_users)
        return await self._repository.transfer.export(
            scope,
            target,
            include_deleted=flag("include_deleted", include_deleted),
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
        include_deleted: bool = False,
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
    ) -> MemoryPage:
        """Return a page of the memories, newest first.

        Memories that are there all the while are on exactly one page, whatever is written between.

        Args:
            limit: How many on a page, 1 to 1,000.
            cursor: From the page before; None begins.
            filters: Only those that match, in the grammar of docs/filters.md; the limit, offset and
                order of a `MemoryFilter` are not used.
            include_deleted: Those that can be restored, and expired ones, too.
            user_id: The user; None is the memories without a user.
            project_id: Only memories of this project.
            session_id: Only memories of this session.

        Raises:
            InvalidArgumentError: If the limit is out of range, or no page gave the cursor.
            FilterError: If the filter cannot be understood.
        """
        return await self._repository.page(
            self._scope.narrowed(user_id, project_id, session_id),
            limit=limit,
            cursor=cursor,
            filters=filters,
            include_deleted=flag("include_deleted", include_deleted),
        )


class AsyncMemory(AsyncMaintenanceVerbs, MemoryHandle, AsyncScopedMemory):
    """One agent's long-term memory in one file, with coroutine methods; see `Memory`.

    Example:
        >>> async with await AsyncMemory.open("agent.db") as memory:  # doctest: +SKIP
        ...     await memory.add("Prefers metric units", user_id="alice")
        ...     hits = await memory.search("which units?", user_id="alice")

    Several memories, in one process or in many, may have the same file open; each sees the others'
    writes in its next call.

    Args:
        path: A file, created if it does not exist and readable by its owner alone, or ":memory:".
        agent_id: The agent. Agents in one file never see each other's memories.
        options: See `mnemic.repository.Options`.

    Raises:
        MissingExtraError: If the local embedder is requested and not installed.
        StoreFileError: If the path cannot be used or is another file.
        SchemaVersionError: If a newer mnemic wrote the file.
        StoreCorruptError: If the file is damaged.
        EmbeddingModelMismatchError: If the agent's vectors come from another model.
    """

    @classmethod
    async def open(
        cls,
        path: str | os.PathLike[str],
        agent_id: str = "default",
        **options: Unpack[Options],
    ) -> Self:
        """Open a memory without blocking the event loop; for the arguments see the class."""
        return await run_blocking(lambda: cls(path, agent_id, **options))
