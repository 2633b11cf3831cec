"""The verbs that store memories."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, Protocol, TypedDict, Unpack, overload
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

_DEFAULTS: dict[str, object] = {
    "type": MemoryType.FACT,
    "tags": (),
    "importance": 0.5,
    "sensitive": False,
}

_MICROSECOND = timedelta(microseconds=1)
_LAST_TIME = datetime.max.replace(tzinfo=UTC)


class AddFields(TypedDict, total=False):
    """What `add` takes beside content and check, for type checkers; see `Memory.add`."""

    user_id: str | None
    session_id: str | None
    role: str | None
    speaker: str | None
    created_at: datetime | str | None
    type: MemoryType | str | None
    tags: Sequence[str] | None
    importance: float | None
    metadata: Mapping[str, Any] | None
    sensitive: bool | None
    supersedes: UUID | str | None
    id: UUID | str | None
    idempotency_key: str | None
    on_duplicate: OnDuplicate


class Add(Protocol):
    """The plain `add`, for type checkers: through `sync_method` one of its overloads is lost."""

    @overload
    def __call__(
        self,
        content: NewMemory,
        *,
        check: Literal["contradictions"],
        **fields: Unpack[AddFields],
    ) -> CheckedEntry: ...

    @overload
    def __call__(
        self, content: NewMemory, *, check: None = None, **fields: Unpack[AddFields]
    ) -> MemoryEntry: ...


class AsyncAddVerbs(ScopedBase):
    """Stores memories, one or many."""

    @overload
    async def add(
        self,
        content: NewMemory,
        *,
        check: Literal["contradictions"],
        **fields: Unpack[AddFields],
    ) -> CheckedEntry: ...

    @overload
    async def add(
        self, content: NewMemory, *, check: None = None, **fields: Unpack[AddFields]
    ) -> MemoryEntry: ...

    async def add(
        self,
        content: NewMemory,
        *,
        user_id: str | None = None,
        session_id: str | None = None,
        role: str | None = None,
        speaker: str | None = None,
        created_at: datetime | str | None = None,
        type: MemoryType | str | None = MemoryType.FACT,  # noqa: A002 - the field's name everywhere
        tags: Sequence[str] | None = (),
        importance: float | None = 0.5,
        metadata: Mapping[str, Any] | None = None,
        sensitive: bool | None = False,
        supersedes: UUID | str | None = None,
        id: UUID | str | None = None,  # noqa: A002 - the field's name everywhere
        idempotency_key: str | None = None,
        on_duplicate: OnDuplicate = "keep",
        check: Literal["contradictions"] | None = None,
    ) -> MemoryEntry:
        """Store one memory. On return it is on disk, and the next search can find it.

        Args:
            content: The text, at most 10 MB of UTF-8. Or a `mnemic.MemoryEntry`, which has further
                fields, such as `expires_at` and `source`; or a dict of fields, whose `embed` is a
                text, or several, to embed in place of the content: each gives a vector, and the
                nearest counts; with () it has no vector, and is found by its keywords alone.
                Fields of either stand in it, not beside it.
            user_id: The user whom it is about; only calls with the same user see it.
            session_id: Session, for filters.
            role: Role of the speaker, such as "user" or "assistant".
            speaker: Name of the speaker.
            created_at: Now if None. A text is read as ISO 8601; without a zone it is UTC.
            type: Sort of statement; a name such as "preference" is accepted.
            tags: Without control characters.
            importance: From 0 to 1.
            metadata: JSON values; ints within ±2⁵³.
            sensitive: Hide the content from `repr`, and from logs, events and errors even with
                `log_content=True`. It is sealed where it is stored with `Memory(encryption=…)`,
                and lies there in plain text without.
            supersedes: Id of the memory that this one replaces; it is marked as superseded, no
                longer found, and linked.
            id: A new one of version 7 if None. With a given id a retry cannot store twice; see
                `on_conflict` of `add_many`.
            idempotency_key: Unique for agent and user. A second call with it stores nothing and
                returns the first one's memory, even if that was deleted.
            on_duplicate: Treatment if the user has a memory with the same text, apart from case and
                white space, and none with the id: "keep" both, "skip" the new one, or "merge" its
                tags, metadata and importance into the older, which is returned then.
            check: "contradictions" returns a `mnemic.CheckedEntry` with the memories of the same
                scope that the new one contradicts; it is stored in any case. They are judged before
                it is stored: if that fails, nothing is stored.

        Returns:
            The memory as it was stored. Its `evicted` has the ids of the memories that were deleted
            to make room for it, where the memory was opened with `when_full="evict"`.

        Raises:
            InvalidEntryError: If an argument is of the wrong type or out of range.
            DuplicateEntryError: If the user already has a memory with this id, or the key was used
                for another content.
            EntryNotFoundError: If the user has no memory with the id that it supersedes.
            EmbedderRequiredError: If `embed` names texts, and there is no embedder.
            EmbeddingError: If the embedder fails; nothing is stored then.
            EmbeddingModelMismatchError: If an embedding of an entry or dict has another dimension
                than the agent's vectors, or these come from another model.
            StorageQuotaExceededError: If there is no room left; nothing is stored then.
            StoreError: If the file cannot be written; nothing is stored then.
        """
        if check not in (None, "contradictions"):
            raise InvalidArgumentError(
                f"check must be 'contradictions' or None, got {quoted(check)}"
            )
        fields = {
            "role": role,
            "speaker": speaker,
            "created_at": created_at,
            "type": type,
            "tags": tags,
            "importance": importance,
            "metadata": metadata,
            "sensitive": sensitive,
            "supersedes": supersedes,
            "id": id,
        }
        new = self._new(
            _with_fields(content, fields, idempotency_key),
            self._scope.narrowed(user_id, session_id=session_id),
            self._repository.now(),
            key=idempotency_key,
        )
        found: Sequence[ScoredMemory] = ()
        if check is not None and new.entry.content:
            # Before storing, so that a judge that fails leaves nothing stored.
            found = await self._contradicted(new.entry)
        added = await self._repository.add([new], on_duplicate=on_duplicate)
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
            memories: What `add` takes: texts, dicts of fields, or `MemoryEntry`. Records of stored
                memories keep their id and times, and their embedding where they have one.
            embeddings: Vectors of the memories, in their order: shape (n, d), or a list of n arrays
                of the shape (d,), or (chunks, d); None in it embeds that memory. They count as
                vectors of the embedder's model, or without an embedder of the memory's
                `embedding_model`.
            user_id: The user of memories without one.
            session_id: The session of memories without one.
            on_conflict: Treatment of an id that the user has already, in any project and session
                and in any state: "raise" an error; "skip" the new one, and return the stored one,
                even if it is deleted; or "replace" the stored one. A replacement is stored as if
                there were no other, in the call's project and session; but `created_at` and the
                links from other memories stay, `version` grows by one, and vectors are kept if the
                content is the same. The old content is gone as after `update`. Earlier ones of the
                list count as stored, so of an id that comes twice the last one stays.
            on_duplicate: As for `add`; earlier ones of the list count as stored.
            on_embed_error: "pending" stores the memories without a vector if the embedder fails;
                they are embedded once the embedder answers again. Texts of `embed` are not stored,
                so they cannot be embedded later: with them a failing embedder always raises.
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
        scope = self._scope.narrowed(user_id, session_id=session_id)
        now = self._repository.now()
        given = items("memories", memories)

        vectors = checked_embeddings(embeddings, len(given))

        def checked() -> list[NewEntry]:
            rows = zip(given, times(given, now), vectors, strict=True)
            return [
                self._numbered_new(at, memory, scope, time, embedding)
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


def _with_fields(content: object, fields: Mapping[str, object], key: object) -> object:
    """Return a memory as `add_many` takes it: a text with its fields, or what has its own.

    Raises:
        InvalidEntryError: If the content is none, or has fields of its own and others stand beside.
    """
    if isinstance(content, str):
        return {"content": content, **fields}
    if not isinstance(content, MemoryEntry | Mapping):
        many = "; add_many takes a list" if isinstance(content, Iterable) else ""
        raise InvalidEntryError(
            "content must be a str, a MemoryEntry or a dict of fields, got "
            f"{content.__class__.__name__}{many}"
        )
    for name, given in fields.items():
        if given is not None and given != _DEFAULTS.get(name):
            raise InvalidEntryError(_doubled(content, name))
    own_key = content.get("idempotency_key") if isinstance(content, Mapping) else None
    if key is not None and own_key not in (None, key):
        raise InvalidEntryError(_doubled(content, "idempotency_key"))
    return content


def _doubled(content: MemoryEntry | Mapping[str, object], name: str) -> str:
    whole = f"MemoryEntry(…, {name}=…)"
    if isinstance(content, Mapping):
        whole = f'{{"content": …, "{name}": …}}'
    return f"{name} stands beside an entry that has fields of its own; write {whole}"


def times(memories: Iterable[object], now: datetime) -> Iterator[datetime]:
    """Yield a time for each memory: a microsecond later after each that names none."""
    for memory in memories:
        yield now
        if not _names_time(memory) and now < _LAST_TIME:
            now += _MICROSECOND


def _names_time(memory: object) -> bool:
    if isinstance(memory, MemoryEntry):
        return memory.names_time
    return isinstance(memory, Mapping) and memory.get("created_at") is not None
