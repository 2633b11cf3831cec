"""The verbs that store memories."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal, Protocol, TypedDict, Unpack, overload
from uuid import UUID

from mnemic.arrays import Array, ArrayLike
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
from mnemic.model.filter import Criteria
from mnemic.model.new_entry import NewEntry, checked_embeddings
from mnemic.model.results import written
from mnemic.model.validation import items, word
from mnemic.reporting.progress import Progress, reporting
from mnemic.repository import required_uuids
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
    created_at: date | str | None
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
        created_at: date | str | None = None,
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
        """Store one memory, and return it as it is stored; `MemoryEntry` describes its fields.

        Args:
            content: The text; or a `MemoryEntry`, which has further fields, such as `expires_at`;
                or a dict of fields, in which `embed` has texts to embed in place of the content, or
                () for none. Fields of either stand in it, not beside it.
            supersedes: Id of the memory that this one replaces, which searches no longer find.
            id: With one given, a retry cannot store twice; see `on_conflict` of `add_many`.
            idempotency_key: Unique for agent and user: a second call with it stores nothing and
                returns the first one's memory, even if that was deleted.
            on_duplicate: If the user has the same text, but for case and white space: "keep" both,
                "skip" the new one, or "merge" its tags, metadata and importance into the older.
            check: "contradictions" returns a `CheckedEntry` with those that it contradicts.
        """
        if check is not None:
            word("check", check, ("contradictions",))
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
            {"content": content, **fields}
            if isinstance(content, str)
            else _with_own_fields(content, fields, idempotency_key),
            self._scope.narrowed(user_id, session_id=session_id),
            self._repository.now(),
            key=idempotency_key,
        )
        found: Sequence[ScoredMemory] = ()
        if check is not None and new.entry.content:
            # Before storing, so that a judge that fails leaves nothing stored.
            found = await self._contradicted(new.entry)
        added = await self._repository.adder.add([new], on_duplicate=on_duplicate)
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
        embeddings: Array | Sequence[ArrayLike | None] | None = None,
        user_id: str | None = None,
        session_id: str | None = None,
        on_conflict: OnConflict = "raise",
        on_duplicate: OnDuplicate = "keep",
        on_embed_error: OnEmbedError = "raise",
        instead_of: Iterable[UUID | str] | None = None,
        progress: Progress | None = None,
        all_users: bool = False,
    ) -> AddedMemories:
        """Store several memories, all or none, and return them in their order.

        Args:
            memories: What `add` takes. Texts get successive times, so that they keep their order.
            embeddings: Each one's vector, or vectors of its chunks; None in it embeds that memory.
            on_conflict: What becomes of an id that the user has already: "raise", "skip" the new,
                or "replace" the old, of which `created_at` and links from other memories stay.
            instead_of: Ids of memories that the same write deletes for good, unless it stores them.
        """
        if isinstance(memories, str | Mapping | MemoryEntry):
            raise InvalidEntryError("add_many takes a list of memories; add takes a single one")
        from mnemic.store.values import Selection  # noqa: PLC0415 - opened memories have loaded it

        scope = self._scope.narrowed(user_id, session_id=session_id)
        others = self._scope.narrowed(user_id, session_id=session_id, all_users=all_users)
        gone = Criteria(required_uuids("instead_of", () if instead_of is None else instead_of))
        now = self._repository.now()
        given = items("memories", memories)

        vectors = checked_embeddings(embeddings, len(given))

        def checked() -> list[NewEntry]:
            made: list[NewEntry] = []
            try:
                for memory, time, embedding in zip(given, times(given, now), vectors, strict=True):
                    made.append(self._new(memory, scope, time, embedding))
            except InvalidArgumentError as error:
                raise InvalidEntryError(f"memory {len(made)} of the list: {error}") from error
            return made

        if gone.ids and not given:
            await self._repository.deleter.delete_all(others, gone, permanent=True, soon=True)
        are_few = len(given) <= _FEW_MEMORIES
        entries = checked() if are_few else await run_blocking(checked, self._repository)
        with reporting(progress, "add_many") as report:
            return await self._repository.adder.add(
                entries,
                on_conflict=on_conflict,
                on_duplicate=on_duplicate,
                on_embed_error=on_embed_error,
                instead_of=Selection(others, gone) if gone.ids else None,
                report=report,
            )


def _with_own_fields(content: object, fields: Mapping[str, object], key: object) -> object:
    """Return a memory that has fields of its own.

    Raises:
        InvalidEntryError: If it is none, or other fields stand beside it.
    """
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
        names_time = isinstance(memory, Mapping) and memory.get("created_at") is not None
        if isinstance(memory, MemoryEntry):
            names_time = memory.names_time
        if not names_time and now < _LAST_TIME:
            now += _MICROSECOND
