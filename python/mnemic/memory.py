"""The front door: a memory in one file, used with plain calls."""

import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from mnemic.errors import (
    EmbedderRequiredError,
    EmbeddingError,
    EmbeddingModelMismatchError,
    EntryNotFoundError,
    InvalidArgumentError,
    InvalidEntryError,
    MnemicError,
    StoreError,
)
from mnemic.index import NativeIndex, Ranked
from mnemic.model import (
    MemoryEntry,
    MemoryType,
    RowBatch,
    Scope,
    SearchHit,
    SearchResults,
    UuidFactory,
)
from mnemic.model.checks import name, optional_uuid
from mnemic.protocols import Clock, IdFactory, system_clock
from mnemic.store import SqliteStore
from mnemic.waiting import drive

if TYPE_CHECKING:
    from mnemic.embed.base import Embedder

NewMemory: TypeAlias = str | Mapping[str, Any] | MemoryEntry
"""What `add_many` takes: a text, a dict with the arguments of `add`, or a whole record."""

FIELDS = (
    "content",
    "user_id",
    "project_id",
    "session_id",
    "role",
    "speaker",
    "message_id",
    "position",
    "created_at",
    "type",
    "tags",
    "importance",
    "metadata",
    "category",
    "sensitive",
    "id",
)
"""The arguments of `add`, which are also the keys of a dict given to `add_many`."""


class ScopedMemory:
    """A view of one memory in which part of the scope is already named.

    It has the methods of `Memory`, which is itself the view in which only the agent is named. What
    a view names cannot be named otherwise in a call.

    A call that names no user, neither here nor itself, sees only memories stored without one. An id
    opens nothing by itself: outside the scope it is like an id that does not exist.

    All methods may be called from several threads at once.
    """

    def __init__(self, engine: "_Engine", scope: Scope) -> None:
        self._engine = engine
        self._scope = scope

    @property
    def agent_id(self) -> str:
        """Whose memory this is."""
        return self._scope.agent_id

    @property
    def scope(self) -> Scope:
        """What this view names."""
        return self._scope

    def scoped(
        self,
        *,
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
    ) -> "ScopedMemory":
        """Return a view in which more of the scope is named.

        Raises:
            InvalidArgumentError: If something already named is named otherwise.
        """
        return ScopedMemory(self._engine, self._scope.narrowed(user_id, project_id, session_id))

    def add(
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
        type: MemoryType | str = MemoryType.FACT,  # noqa: A002 - the field's name everywhere
        tags: Sequence[str] = (),
        importance: float = 0.5,
        metadata: Mapping[str, Any] | None = None,
        category: str | None = None,
        sensitive: bool = False,
        id: UUID | str | None = None,  # noqa: A002 - the field's name everywhere
    ) -> MemoryEntry:
        """Store one memory. When this returns it is on disk, and the next search can find it.

        Args:
            content: The text, not empty, at most 10 MB of UTF-8.
            user_id: Whom it is about; only calls that name the same user will see it.
            project_id: Can be filtered by.
            session_id: Can be filtered by.
            role: Who spoke, such as "user" or "assistant".
            speaker: The speaker's name.
            message_id: The message's id where it came from.
            position: Order inside the session.
            created_at: Now if None. A text is read as ISO 8601; without a zone it is UTC.
            type: What sort of thing it states; a name such as "preference" will do.
            tags: Without control characters.
            importance: From 0 to 1.
            metadata: What JSON can hold; ints within ±2⁵³.
            category: Free.
            sensitive: Hide the content from `repr`. Nothing is encrypted yet.
            id: A new one of version 7 if None. With an id of your own a retry cannot store twice.

        Returns:
            The memory as it was stored.

        Raises:
            InvalidEntryError: If an argument is of the wrong type or out of range.
            DuplicateEntryError: If the agent already has a memory with this id.
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
            "type": type,
            "tags": tags,
            "importance": importance,
            "metadata": metadata,
            "category": category,
            "sensitive": sensitive,
            "id": id,
        }
        if not isinstance(content, str):
            raise InvalidEntryError(
                f"content must be a str, got {content.__class__.__name__}; "
                "add_many takes lists, dicts and MemoryEntry"
            )
        return self._engine.add([self._entry(fields, self._scope, self._engine.now())])[0]

    def add_many(
        self,
        memories: Iterable[NewMemory],
        *,
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
    ) -> list[MemoryEntry]:
        """Store several memories, all or none; far faster than one by one.

        Args:
            memories: Texts, dicts with the arguments of `add`, or `MemoryEntry` records, which keep
                their id and times.
            user_id: The user of those that name none.
            project_id: The project of those that name none.
            session_id: The session of those that name none.

        Returns:
            The memories as they were stored, in the given order.

        Raises:
            InvalidEntryError: If one of them cannot be stored; the message says which.
            DuplicateEntryError: If an id is there twice or already stored.
            EmbeddingError: If the embedder fails; nothing is stored then.
            StoreError: If the file cannot be written; nothing is stored then.
        """
        if isinstance(memories, str | Mapping | MemoryEntry):
            raise InvalidEntryError("add_many takes a list of memories; add takes a single one")
        scope = self._scope.narrowed(user_id, project_id, session_id)
        now = self._engine.now()
        return self._engine.add(
            [self._any_entry(at, memory, scope, now) for at, memory in enumerate(memories)]
        )

    def search(
        self,
        query: str,
        *,
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
        limit: int = 10,
    ) -> SearchResults:
        """Find the memories whose meaning is nearest to a query.

        Every memory of the scope is ranked, exactly. Order: score, then newest, then smallest id;
        a smaller limit always gives the head of what a larger one gives (C193). There is no floor:
        the best are returned however far they are.

        Args:
            query: What to look for, not empty.
            user_id: Whose memories; None is those stored without a user.
            project_id: Only memories of this project.
            session_id: Only memories of this session.
            limit: How many at most; 0 gives none.

        Returns:
            min(limit, memories in scope) hits, best first.

        Raises:
            InvalidArgumentError: If the query is empty or the limit negative.
            EmbedderRequiredError: If the memory was opened with `embedder=None`.
            EmbeddingError: If the embedder fails.
        """
        scope = self._scope.narrowed(user_id, project_id, session_id)
        if not isinstance(query, str) or not query.strip():
            raise InvalidArgumentError(f"query must be a text that is not empty, got {query!r}")
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 0:
            raise InvalidArgumentError(f"limit must be an int of at least 0, got {limit!r}")
        return self._engine.search(query, scope, limit)

    def get(
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
        return self._engine.get(_uuid(id), scope)

    def delete(
        self,
        id: UUID | str,  # noqa: A002 - the field's name everywhere
        *,
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
    ) -> None:
        """Delete a memory: from now on it is not found. Deleting it again changes nothing.

        The record stays in the file, marked as forgotten.

        Raises:
            EntryNotFoundError: If the scope has no such memory; the message names the scope.
        """
        scope = self._scope.narrowed(user_id, project_id, session_id)
        self._engine.delete(_uuid(id), scope)

    def count(
        self,
        *,
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
    ) -> int:
        """Return how many memories the scope has, without deleted and outdated ones."""
        return self._engine.count(self._scope.narrowed(user_id, project_id, session_id))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._engine.path!r}, {self._scope})"

    def _any_entry(self, at: int, memory: NewMemory, scope: Scope, now: datetime) -> MemoryEntry:
        try:
            if isinstance(memory, MemoryEntry):
                return _checked_record(memory, scope)
            fields = {"content": memory} if isinstance(memory, str) else memory
            return self._entry(fields, scope, now)
        except InvalidArgumentError as error:
            raise InvalidEntryError(f"memory {at} of the list: {error}") from error

    def _entry(self, fields: Mapping[str, Any], scope: Scope, now: datetime) -> MemoryEntry:
        given = _known_fields(fields)
        narrowed = scope.narrowed(
            given.pop("user_id", None), given.pop("project_id", None), given.pop("session_id", None)
        )
        given["type"] = MemoryType.parse(given.get("type", MemoryType.FACT))
        given["created_at"] = _time(given.get("created_at", now))
        if "id" not in given:
            given["id"] = self._engine.id_factory(now)
        return MemoryEntry(
            agent_id=narrowed.agent_id,
            user_id=narrowed.user_id,
            project_id=narrowed.project_id,
            session_id=narrowed.session_id,
            **given,
        )


class Memory(ScopedMemory):
    """A long-term memory in one file.

    Example:
        >>> from mnemic import Memory
        >>> with Memory(":memory:") as memory:  # doctest: +SKIP
        ...     memory.add("Prefers metric units", user_id="alice")
        ...     memory.search("which units?", user_id="alice")[0].content
        'Prefers metric units'

    Several `Memory` objects, in one process or in many, may have the same file open; each sees the
    others' writes in its next call.

    Args:
        path: A file, made if there is none and readable by its owner alone, or ":memory:".
        agent_id: Whose memory it is. Agents in one file never see each other's memories.
        embedder: Anything with `model`, `dimensions` and `embed(texts)`; the local MiniLM unless
            given. With None, memories are stored and read by id, and searching is refused.
        clock: Gives the time, aware and in UTC.
        id_factory: Makes an id for a time.

    Raises:
        MissingExtraError: If the local embedder is wanted and not installed.
        StoreFileError: If the path cannot be used or holds something else.
        SchemaVersionError: If a newer mnemic wrote the file.
        StoreCorruptError: If the file is damaged.
        EmbeddingModelMismatchError: If the agent's vectors come from another model.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        agent_id: str = "default",
        *,
        embedder: "Embedder | Literal['minilm'] | None" = "minilm",
        clock: Clock = system_clock,
        id_factory: IdFactory | None = None,
    ) -> None:
        scope = Scope(agent_id)
        chosen = _local_embedder() if embedder == "minilm" else embedder
        super().__init__(_Engine(path, scope, chosen, clock, id_factory or UuidFactory()), scope)

    @property
    def embedder(self) -> "Embedder | None":
        """What turns texts into vectors."""
        return self._engine.embedder

    def close(self) -> None:
        """Finish writing and let go of the file. Harmless if repeated."""
        self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class _Engine:
    """Store, index and embedder of one agent, joined. Runs in its callers' threads (C176)."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        scope: Scope,
        embedder: "Embedder | None",
        clock: Clock,
        id_factory: IdFactory,
    ) -> None:
        if embedder is not None:
            _check_embedder(embedder)
        self.embedder = embedder
        self.now = clock
        self.id_factory = id_factory
        self._agent_id = scope.agent_id
        self._catching_up = threading.Lock()
        self._unembedded: set[int] = set()
        self._store = SqliteStore(path)
        self.path = self._store.path
        self._index = None if embedder is None else NativeIndex(embedder.dimensions)
        try:
            self._load()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        drive(self._store.close())

    def add(self, entries: list[MemoryEntry]) -> list[MemoryEntry]:
        embedded = self._with_embeddings(entries)
        if embedded:
            self._follow(drive(self._store.add(self._agent_id, embedded)))
        return embedded

    def get(self, entry_id: UUID, scope: Scope) -> MemoryEntry:
        entry = drive(self._store.get(scope, entry_id))
        if entry is None:
            raise _not_found(entry_id, scope)
        return entry

    def delete(self, entry_id: UUID, scope: Scope) -> None:
        if not drive(self._store.forget(scope, entry_id, self.now())):
            raise _not_found(entry_id, scope)
        self._follow()

    def count(self, scope: Scope) -> int:
        return drive(self._store.count(scope))

    def search(self, query: str, scope: Scope, limit: int) -> SearchResults:
        if self.embedder is None or self._index is None:
            raise EmbedderRequiredError(
                "this memory was opened with embedder=None, and searching by meaning needs one; "
                "open it with an embedder, or read by id"
            )
        if limit == 0:
            return SearchResults(())
        vector = self._embed([query])[0]
        self._catch_up()
        wanted = limit
        while True:
            ranked = self._index.search(vector, scope, wanted)
            entries = drive(self._store.get_rows(scope, [row for row, _ in ranked]))
            if len(entries) >= limit or len(ranked) < wanted:
                return _results(ranked, entries, limit)
            # Some were deleted between the ranking and the reading: look further down.
            wanted = 2 * wanted + 8

    def _load(self) -> None:
        if self.embedder is None:
            return
        known = drive(self._store.embedding_model(self._agent_id))
        mine = (self.embedder.model, self.embedder.dimensions)
        if known is not None and known != mine:
            raise EmbeddingModelMismatchError(
                f"{self.path}: agent {self._agent_id!r} has vectors of {known[0]!r} with "
                f"{known[1]} dimensions, and the embedder is {mine[0]!r} with {mine[1]}; open the "
                "file with the embedder it was made with, or store the memories in a new file"
            )
        self._catch_up()

    def _follow(self, batch: RowBatch | None = None) -> None:
        """Take in what was just written; if that fails, the next search does it or says why."""
        if self._index is None or (batch is not None and self._take_in(batch)):
            return
        with suppress(StoreError):
            self._apply_changes()

    def _take_in(self, batch: RowBatch) -> bool:
        """Apply a batch if it follows where the index stands."""
        if self._index is None or not self._index.apply(batch):
            return False
        self._unembedded.difference_update(batch.gone, [facts.row for facts in batch.facts])
        self._unembedded.update(batch.unembedded)
        return True

    def _catch_up(self) -> None:
        """Bring the index to the store's last change, and embed what lacks a vector."""
        self._apply_changes()
        if self._unembedded:
            with self._catching_up:
                self._embed_missing()
            self._apply_changes()

    def _apply_changes(self) -> None:
        index, embedder = self._index, self.embedder
        if index is None or embedder is None or self._is_current(index):
            return
        with self._catching_up:
            while not self._is_current(index):
                since = self._store.rows_since(
                    self._agent_id, embedder.model, embedder.dimensions, index.seq
                )
                # Once is enough: what others write from now on is not waited for.
                if self._take_in(drive(since)):
                    return

    def _is_current(self, index: NativeIndex) -> bool:
        return drive(self._store.seq(self._agent_id)) == index.seq

    def _embed_missing(self) -> None:
        """Embed memories that were stored while no embedder was at hand."""
        if not self._unembedded or self.embedder is None:
            return
        contents = drive(self._store.contents(self._agent_id, sorted(self._unembedded)))
        if contents:
            vectors = self._embed(list(contents.values()))
            drive(
                self._store.add_embeddings(
                    self._agent_id, self.embedder.model, list(contents), vectors
                )
            )
        self._unembedded.clear()

    def _with_embeddings(self, entries: list[MemoryEntry]) -> list[MemoryEntry]:
        if self.embedder is None:
            return entries
        for entry in entries:
            _check_embedding(entry, self.embedder)
        bare = [at for at, entry in enumerate(entries) if entry.embedding is None]
        vectors = self._embed([entries[at].content for at in bare])
        embedded = list(entries)
        for at, vector in zip(bare, vectors, strict=True):
            embedded[at] = entries[at].with_embedding(vector, self.embedder.model)
        return embedded

    def _embed(self, texts: list[str]) -> NDArray[np.float32]:
        if self.embedder is None or not texts:
            return np.empty((0, 0), dtype=np.float32)
        try:
            with np.errstate(over="ignore"):  # what overflows float32 is refused below
                vectors = np.asarray(self.embedder.embed(texts), dtype=np.float32)
        except MnemicError:
            raise
        except Exception as error:
            raise EmbeddingError(f"the embedder {self.embedder.model!r} failed: {error}") from error
        expected = (len(texts), self.embedder.dimensions)
        if vectors.shape != expected:
            raise EmbeddingError(
                f"the embedder {self.embedder.model!r} returned shape {vectors.shape} for "
                f"{len(texts)} texts; it should be {expected}"
            )
        if not np.isfinite(vectors).all():
            raise EmbeddingError(f"the embedder {self.embedder.model!r} returned NaN or infinity")
        return vectors


def _local_embedder() -> "Embedder":
    from mnemic.embed.minilm import MiniLmEmbedder  # noqa: PLC0415 - an optional extra

    return MiniLmEmbedder()


def _check_embedder(embedder: object) -> None:
    """Refuse what cannot be an embedder before a file is made for it."""
    model, dimensions = getattr(embedder, "model", None), getattr(embedder, "dimensions", None)
    if (
        not isinstance(dimensions, int)
        or dimensions < 1
        or not callable(getattr(embedder, "embed", None))
    ):
        raise InvalidArgumentError(
            "embedder must have a model (a name), dimensions (an int of at least 1) and "
            f"embed(texts), or be 'minilm' or None; got {embedder!r}"
        )
    name("the embedder's model", model)


def _check_embedding(entry: MemoryEntry, embedder: "Embedder") -> None:
    """Refuse a vector that comes along and is not one of this embedder's."""
    if entry.embedding is None:
        return
    given, mine = (
        (entry.embedding_model, entry.embedding.size),
        (embedder.model, embedder.dimensions),
    )
    if given != mine:
        raise EmbeddingModelMismatchError(
            f"memory {entry.id} comes with a vector of {given[0]!r} with {given[1]} dimensions, "
            f"and the embedder is {mine[0]!r} with {mine[1]}; leave its embedding out"
        )


def _uuid(value: UUID | str) -> UUID:
    entry_id = optional_uuid("id", value)
    if entry_id is None:
        raise InvalidArgumentError("id must be a UUID or its text, got None")
    return entry_id


def _known_fields(fields: object) -> dict[str, Any]:
    """Return the fields that say something; None says nothing."""
    if not isinstance(fields, Mapping):
        raise InvalidEntryError(
            f"a memory is a str, a dict or a MemoryEntry, got {type(fields).__name__}"
        )
    unknown = sorted(set(map(str, fields)) - set(FIELDS))
    if unknown:
        raise InvalidEntryError(
            f"unknown fields {unknown}; the fields are {', '.join(FIELDS)}; "
            "anything else belongs in metadata"
        )
    if fields.get("content") is None:
        raise InvalidEntryError("content is missing")
    return {name: value for name, value in fields.items() if value is not None}


def _time(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        raise InvalidEntryError(f"created_at is not an ISO 8601 time: {value!r}") from None


def _checked_record(entry: MemoryEntry, scope: Scope) -> MemoryEntry:
    if entry.agent_id != scope.agent_id:
        raise InvalidEntryError(f"its agent is {entry.agent_id!r}, not {scope.agent_id!r}")
    named = scope.narrowed(entry.user_id, entry.project_id, entry.session_id)
    if named != Scope(entry.agent_id, entry.user_id, entry.project_id, entry.session_id):
        raise InvalidEntryError(f"a record is stored in its own scope, which is not {named}")
    for field in ("expires_at", "supersedes"):
        if getattr(entry, field) is not None:
            raise InvalidEntryError(f"{field} is not supported yet, and would not be honoured")
    if entry.is_encrypted:
        raise InvalidEntryError("encrypted records are not supported yet")
    return entry


def _results(ranked: list[Ranked], entries: Mapping[int, MemoryEntry], limit: int) -> SearchResults:
    hits = [
        SearchHit(entries[row], score, {"similarity": min(1.0, max(0.0, score))})
        for row, score in ranked
        if row in entries
    ]
    return SearchResults(hits[:limit])


def _not_found(entry_id: UUID, scope: Scope) -> EntryNotFoundError:
    return EntryNotFoundError(f"no memory with id {entry_id} for {scope}")
