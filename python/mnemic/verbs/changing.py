"""The verbs that change memories."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from mnemic.arrays import ArrayLike
from mnemic.model import (
    MemoryEntry,
    MemoryEntryUpdate,
    MemoryFilter,
    MemoryStatus,
    MemoryType,
    OnEmbedError,
    UpdateResult,
)
from mnemic.model.new_entry import OwnVectors
from mnemic.model.scope import not_found
from mnemic.model.update import Expiry
from mnemic.repository import criteria, required_uuid, required_uuids
from mnemic.verbs.base import ScopedBase


class AsyncChangeVerbs(ScopedBase):
    """Changes memories, and counts accesses."""

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
        replace_metadata: Mapping[str, Any] | None = None,
        expires_at: Expiry | None = None,
        embedding: ArrayLike | None = None,
        embed: str | Sequence[str] | None = None,
        if_version: int | None = None,
        on_embed_error: OnEmbedError = "raise",
        user_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> MemoryEntry:
        """Change a memory; omitted fields stay unchanged.

        A new content is embedded, in place of vectors of the program's own too, unless new ones are
        given; without an embedder the old vectors are deleted with the old content.

        Args:
            id: Id of the memory.
            content: The new text; as in `add`, empty only if the memory then has metadata, or gets
                a vector of the program's own.
            importance: From 0 to 1.
            add_tags: Appended, unless present.
            remove_tags: Removed before tags are added.
            type: Sort of statement.
            metadata: Merged: its keys replace keys of the same name.
            replace_metadata: Takes the place of all metadata; `{}` removes them. It does not go
                with `metadata`.
            status: "archived" hides it from searches; "active" restores it.
            expires_at: From then on it is treated like a deleted one, at once if the time has
                passed; a text is read as ISO 8601. "never" takes an expiry away.
            embedding: Its vector, or vectors, in place of the stored ones; see `add`.
            embed: Texts to embed in place of the content; see `add`.
            if_version: The change is made only if the memory has this `version` at the moment of
                the write. Each change raises the version by one.
            on_embed_error: "pending" stores a new content without a vector if the embedder fails;
                it is embedded as soon as the embedder answers again.
            user_id: The user; None is the memories without a user.
            session_id: Only if it is of this session.
            all_users: Whether to find it among all users; not if a user is bound.

        Returns:
            The memory after the change, without its embedding. Its `evicted` has the ids of the
            memories that were deleted to make room, where the memory was opened with
            `when_full="evict"`.

        Raises:
            EntryNotFoundError: If the scope has no such memory; the message names the scope.
            AmbiguousIdError: If several users have one of this id, and all are included.
            VersionConflictError: If it has another version than `if_version`; nothing is changed
                then. It has the stored version, for another try.
            InvalidEntryError: If an argument is of the wrong type or out of range.
            EmbedderRequiredError: If `embed` names texts, and there is no embedder.
            EmbeddingError: If the embedder fails, and a new content may not wait for its vector;
                nothing is changed then.
            EmbeddingModelMismatchError: If the embedding does not fit the agent's vectors.
            StoreError: If the file cannot be written; nothing is changed then.
        """
        scope = self._scope.narrowed(user_id, session_id=session_id, all_users=all_users)
        given: dict[str, Any] = {
            "content": content,
            "importance": importance,
            "add_tags": add_tags,
            "remove_tags": remove_tags,
            "type": type,
            "metadata": metadata,
            "status": status,
            "replace_metadata": replace_metadata,
            "expires_at": expires_at,
        }
        update = MemoryEntryUpdate(**given)
        entry_id = required_uuid(id)
        own = OwnVectors.of(embedding, embed)
        entry = await self._repository.update(
            scope,
            entry_id,
            update,
            if_version=if_version,
            own=own,
            on_embed_error=on_embed_error,
        )
        if entry is None:
            raise not_found(entry_id, scope)
        return entry

    async def update_many(
        self,
        ids: Iterable[UUID | str] | None = None,
        *,
        filters: MemoryFilter | Mapping[str, Any] | None = None,
        content: str | None = None,
        importance: float | None = None,
        add_tags: Sequence[str] | None = (),
        remove_tags: Sequence[str] | None = (),
        type: MemoryType | str | None = None,  # noqa: A002 - the field's name everywhere
        metadata: Mapping[str, Any] | None = None,
        status: MemoryStatus | str | None = None,
        replace_metadata: Mapping[str, Any] | None = None,
        expires_at: Expiry | None = None,
        on_embed_error: OnEmbedError = "raise",
        user_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> UpdateResult:
        """Change the memories with these ids, those that match a filter, or those with both.

        All or none are changed, by one write. The filter is decided by the memories as they are at
        the moment of that write, whatever other processes changed before. As with `update`, deleted
        and expired memories are not changed, nor superseded ones; archived ones only if the filter
        tests the status, or the call sets it.

        Args:
            ids: Ids; unknown ones are skipped.
            filters: Only memories that match, in the grammar of docs/concepts/filters.md; `{}` is
                every memory of the scope.
            content: One text for all of them; it is embedded once.
            importance: See `update`, for all that follow.
            add_tags: As above.
            remove_tags: As above.
            type: As above.
            metadata: As above.
            status: As above.
            replace_metadata: As above.
            expires_at: As above.
            on_embed_error: As above.
            user_id: The user; None is the memories without a user.
            session_id: Only memories of this session.
            all_users: The memories of all users and of none.

        Returns:
            Number of changed memories. Its `evicted` has the ids of the memories that were deleted
            to make room, where the memory was opened with `when_full="evict"`.

        Raises:
            InvalidArgumentError: If neither ids nor a filter is given, or an argument is of the
                wrong type or out of range.
            FilterError: If the filter cannot be understood, or has a limit or an offset.
            AmbiguousIdError: If all users are named, and several have one of the ids.
            EmbeddingError: If the embedder fails, and a new content may not wait for its vector;
                nothing is changed then.
            StorageQuotaExceededError: If the contents would exceed a quota.
        """
        scope = self._scope.narrowed(user_id, session_id=session_id, all_users=all_users)
        wanted = criteria(ids, filters, otherwise="filters={} is every memory of the scope")
        given: dict[str, Any] = {
            "content": content,
            "importance": importance,
            "add_tags": add_tags,
            "remove_tags": remove_tags,
            "type": type,
            "metadata": metadata,
            "status": status,
            "replace_metadata": replace_metadata,
            "expires_at": expires_at,
        }
        return await self._repository.updater.update_all(
            scope, wanted, MemoryEntryUpdate(**given), on_embed_error=on_embed_error
        )

    async def touch(
        self,
        ids: Iterable[UUID | str],
        *,
        expires_at: Expiry | None = None,
        user_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> None:
        """Count an access of memories, and renew their expiry; ids that are not found are skipped.

        Reading a memory by its id counts by itself. Accesses are written together, within about a
        second; a crash may lose the last ones. A new expiry is on disk on return, for all of them
        or none. It is no change of the memories: `version` and `updated_at` stay.

        Args:
            ids: Ids.
            expires_at: As for `update`; None leaves each expiry as it is.
            user_id: The user; None is the memories without a user.
            session_id: Only memories of this session.
            all_users: Whether to find them among all users; not if a user is bound.

        Raises:
            AmbiguousIdError: If several users have one of an id, and all are included.
            InvalidEntryError: If the expiry is no time; nothing is changed then.
            StoreError: If the file cannot be written.
        """
        scope = self._scope.narrowed(user_id, session_id=session_id, all_users=all_users)
        await self._repository.touch(scope, required_uuids("ids", ids), expires_at)
