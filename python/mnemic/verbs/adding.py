"""The verbs that store memories."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal
from uuid import UUID

from mnemic.arrays import ArrayLike
from mnemic.errors import InvalidArgumentError, InvalidEntryError
from mnemic.model import (
    AddedMemories,
    CheckedEntry,
    MemoryEntry,
    MemoryType,
    OnConflict,
    OnDuplicate,
    OnEmbedError,
    ScoredMemory,
)
from mnemic.model.new_entry import NewEntry, checked_embeddings
from mnemic.model.validation import items
from mnemic.model.written import written
from mnemic.reporting.description import quoted
from mnemic.reporting.progress import Progress
from mnemic.threads.sync_bridge import run_blocking
from mnemic.verbs.base import NewMemory, ScopedBase

# Checking one takes about 50 µs; more of them at once go to a thread.
_FEW_MEMORIES = 16

_MICROSECOND = timedelta(microseconds=1)
_LAST_TIME = datetime.max.replace(tzinfo=UTC)


class AsyncAddVerbs(ScopedBase):
    """Stores memories, one or many."""

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
        embedding: ArrayLike | None = None,
        embed: str | Sequence[str] | None = None,
        idempotency_key: str | None = None,
        on_conflict: OnConflict = "raise",
        on_duplicate: OnDuplicate = "keep",
        on_embed_error: OnEmbedError = "raise",
        check: Literal["contradictions"] | None = None,
    ) -> MemoryEntry:
        """Store one memory. On return it is on disk, and the next search can find it.

        Args:
            content: The text, at most 10 MB of UTF-8; empty only with metadata or an embedding.
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
                `log_content=True`. It is sealed where it is stored with `Memory(encryption=…)`,
                and lies there in plain text without.
            supersedes: Id of the memory that this one replaces; it is marked as superseded, no
                longer found, and linked.
            id: A new one of version 7 if None. With a given id a retry cannot store twice; see
                `on_conflict`.
            embedding: Its vector, shape (d,), or those of its chunks, shape (chunks, d): any array
                or list of finite numbers. Nothing is embedded then; it counts as a vector of the
                embedder's model, or without an embedder of the memory's `embedding_model`.
            embed: A text, or several, to embed in place of the content; each gives a vector, and
                the nearest counts. With () it has no vector, and is found by its keywords alone.
            idempotency_key: Unique for agent and user. A second call with it stores nothing and
                returns the first one's memory, even if that was deleted.
            on_conflict: Treatment of an id that the user has already, in any project and session
                and in any state: "raise" an error; "skip" the new one, and return the stored one,
                even if it is deleted; or "replace" the stored one. A replacement is stored as if
                there were no other, in the call's project and session; but `created_at` and the
                links from other memories stay, `version` grows by one, and vectors are kept if the
                content is the same. The old content is gone as after `update`.
            on_duplicate: Treatment if the user has a memory with the same text, apart from case and
                white space, and none with the id: "keep" both, "skip" the new one, or "merge" its
                tags, metadata and importance into the older, which is returned then.
            on_embed_error: "pending" stores the memory without a vector if the embedder fails; it
                is embedded once the embedder answers again. Texts of `embed` are not stored, so
                they cannot be embedded later: with them a failing embedder always raises.
            check: "contradictions" returns a `mnemic.CheckedEntry` with the memories of the same
                scope that the new one contradicts; it is stored in any case. They are judged before
                it is stored: if that fails, nothing is stored.

        Returns:
            The memory as it was stored. Its `evicted` has the ids of the memories that were deleted
            to make room for it, where the memory was opened with `when_full="evict"`.

        Raises:
            InvalidEntryError: If an argument is of the wrong type or out of range.
            DuplicateEntryError: If the user already has a memory with this id, and `on_conflict` is
                "raise", or the key was used for another content.
            EntryNotFoundError: If the user has no memory with the id that it supersedes.
            EmbedderRequiredError: If `embed` names texts, and there is no embedder.
            EmbeddingError: If the embedder fails; nothing is stored then.
            EmbeddingModelMismatchError: If the embedding has another dimension than the agent's
                vectors, or these come from another model.
            StorageQuotaExceededError: If there is no room left; nothing is stored then.
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
            "embedding": embedding,
            "embed": embed,
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
        if (
            check is not None and content
        ):  # before storing, so that a judge that fails leaves nothing stored
            scope = self._scope.narrowed(user_id, project_id, session_id)
            replaced = () if new.entry.supersedes is None else (new.entry.supersedes,)
            contradicted = await self._contradictions(
                scope, content, 10, replaced, is_sensitive=bool(sensitive)
            )
            found = contradicted.memories
        added = await self._repository.add(
            [new],
            on_conflict=on_conflict,
            on_duplicate=on_duplicate,
            on_embed_error=on_embed_error,
        )
        stored = written(added[0], added.evicted)
        if check is None:
            return stored
        others = tuple(one for one in found if one.memory.id != stored.id)
        repeats = stored.repeats if isinstance(stored, CheckedEntry) else None
        return CheckedEntry.of(stored, others, repeats)

    async def add_many(
        self,
        memories: Iterable[NewMemory],
        *,
        embeddings: ArrayLike | Sequence[ArrayLike | None] | None = None,
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
        on_conflict: OnConflict = "raise",
        on_duplicate: OnDuplicate = "keep",
        on_embed_error: OnEmbedError = "raise",
        progress: Progress | None = None,
    ) -> AddedMemories:
        """Store several memories, all or none; far faster than one by one.

        Those that name no time of creation get successive microseconds from now on, so that lists
        keep their order.

        Args:
            memories: Texts, dicts with the arguments of `add`, or `MemoryEntry` records, which keep
                their id and times, and their embedding where they have one.
            embeddings: Vectors of the memories, in their order: shape (n, d), or a list of n arrays
                of the shapes that `add` takes; None in it embeds that memory.
            user_id: The user of memories without one.
            project_id: The project of memories without one.
            session_id: The session of memories without one.
            on_conflict: As for `add`; earlier ones of the list count as stored, so of an id that
                comes twice the last one stays.
            on_duplicate: As for `add`; earlier ones of the list count as stored.
            on_embed_error: As for `add`.
            progress: Called with the number of memories embedded so far and of all, and after they
                are stored; or True for a bar. The embedder then gets 256 texts at a time. See
                `mnemic.annotations.Progress`.

        Returns:
            A list of the memories as they were stored, in the given order. Its `evicted` has the
            ids of those that were deleted to make room, as for `add`.

        Raises:
            InvalidEntryError: If one of them is invalid; the message names it.
            CountMismatchError: If there are more or fewer embeddings than memories.
            DuplicateEntryError: If `on_conflict` is "raise", and a user has one of the ids already,
                or the list has it twice for the user.
            EntryNotFoundError: If one supersedes a memory that its user does not have.
            EmbedderRequiredError: As for `add`.
            EmbeddingError: If the embedder fails; nothing is stored then.
            EmbeddingModelMismatchError: As for `add`.
            StoreError: If the file cannot be written; nothing is stored then.
        """
        if isinstance(memories, str | Mapping | MemoryEntry):
            raise InvalidEntryError("add_many takes a list of memories; add takes a single one")
        scope = self._scope.narrowed(user_id, project_id, session_id)
        now = self._repository.now()
        given = items("memories", memories)

        vectors = checked_embeddings(embeddings, len(given))

        def checked() -> list[NewEntry]:
            rows = zip(given, _times(given, now), vectors, strict=True)
            return [
                self._any_new(at, memory, scope, time, embedding)
                for at, (memory, time, embedding) in enumerate(rows)
            ]

        are_few = len(given) <= _FEW_MEMORIES
        entries = checked() if are_few else await run_blocking(checked, self._repository)
        return await self._repository.add(
            entries,
            on_conflict=on_conflict,
            on_duplicate=on_duplicate,
            on_embed_error=on_embed_error,
            progress=progress,
        )


def _times(memories: Iterable[NewMemory], now: datetime) -> Iterator[datetime]:
    """Yield a time for each memory: a microsecond later after each that names none."""
    for memory in memories:
        yield now
        if not _names_time(memory) and now < _LAST_TIME:
            now += _MICROSECOND


def _names_time(memory: NewMemory) -> bool:
    if isinstance(memory, str):
        return False
    return isinstance(memory, MemoryEntry) or (
        isinstance(memory, Mapping) and memory.get("created_at") is not None
    )
