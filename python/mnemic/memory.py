"""The front door: a memory in one file, used with plain calls."""

import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias
from uuid import UUID

from mnemic.errors import EntryNotFoundError, InvalidArgumentError, InvalidEntryError
from mnemic.events import Events
from mnemic.licensing import License, LicenseTier
from mnemic.long_term import Found, LongTermMemory, checked_record, required_uuid
from mnemic.model import (
    LongTermMemoryStats,
    MemoryEntry,
    MemoryEntryUpdate,
    MemoryType,
    Scope,
    SearchHit,
    SearchResults,
)
from mnemic.protocols import Clock, IdFactory, system_clock
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

    def __init__(self, long_term: LongTermMemory, scope: Scope) -> None:
        self._long_term = long_term
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
        return ScopedMemory(self._long_term, self._scope.narrowed(user_id, project_id, session_id))

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
        entry = self._entry(fields, self._scope, self._long_term.now())
        return drive(self._long_term.add([entry]))[0]

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
        now = self._long_term.now()
        entries = [self._any_entry(at, memory, scope, now) for at, memory in enumerate(memories)]
        return drive(self._long_term.add(entries))

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
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 0:
            raise InvalidArgumentError(f"limit must be an int of at least 0, got {limit!r}")
        return _results(drive(self._long_term.nearest(query, scope, limit)))

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
        return drive(self._get(required_uuid(id), scope))

    def update(
        self,
        id: UUID | str,  # noqa: A002 - the field's name everywhere
        *,
        content: str | None = None,
        importance: float | None = None,
        add_tags: Sequence[str] = (),
        remove_tags: Sequence[str] = (),
        type: MemoryType | str | None = None,  # noqa: A002 - the field's name everywhere
        metadata: Mapping[str, Any] | None = None,
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
    ) -> MemoryEntry:
        """Change a memory; what is left out stays as it is. A new content is embedded.

        Args:
            id: Which one.
            content: The new text.
            importance: From 0 to 1.
            add_tags: Added after the others, unless there already.
            remove_tags: Removed before tags are added.
            type: What sort of thing it states.
            metadata: Merged into the old: its keys replace keys of the same name.
            user_id: Whose it is; None is those stored without a user.
            project_id: Only if it is of this project.
            session_id: Only if it is of this session.

        Returns:
            The memory as it is now, without its embedding.

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
        }
        update = MemoryEntryUpdate(**given)
        entry_id = required_uuid(id)
        entry = drive(self._long_term.changed(entry_id, update, scope))
        if entry is None:
            raise _not_found(entry_id, scope)
        return entry

    def delete(
        self,
        id: UUID | str,  # noqa: A002 - the field's name everywhere
        *,
        permanent: bool = False,
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
    ) -> None:
        """Delete a memory: from now on it is not found. Deleting it again changes nothing.

        Args:
            id: Which one.
            permanent: Delete its record, vectors and links too; it cannot be restored. Otherwise
                the record stays, marked as forgotten, and can be restored for 90 days.
            user_id: Whose it is; None is those stored without a user.
            project_id: Only if it is of this project.
            session_id: Only if it is of this session.

        Raises:
            EntryNotFoundError: If the scope has no such memory; the message names the scope.
        """
        scope, entry_id = self._scope.narrowed(user_id, project_id, session_id), required_uuid(id)
        if not drive(self._long_term.forget_in(scope, entry_id, permanent=permanent)):
            raise _not_found(entry_id, scope)

    def delete_all(
        self,
        *,
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
        permanent: bool = False,
    ) -> int:
        """Delete all memories of a scope: of a user, of nobody, or of a part of theirs.

        Args:
            user_id: Whose; None is those stored without a user.
            project_id: Only those of this project.
            session_id: Only those of this session.
            permanent: Delete records, vectors and links too, also of memories deleted before; they
                cannot be restored.

        Returns:
            How many memories that were.
        """
        scope = self._scope.narrowed(user_id, project_id, session_id)
        return drive(self._long_term.delete_all_in(scope, permanent=permanent))

    def restore(
        self,
        id: UUID | str,  # noqa: A002 - the field's name everywhere
        *,
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
    ) -> bool:
        """Take a memory back that was deleted within the last 90 days, and not permanently.

        Returns:
            False if the scope has no such memory, if it is not deleted, or was so too long ago.
        """
        scope = self._scope.narrowed(user_id, project_id, session_id)
        return drive(self._long_term.restore_in(scope, required_uuid(id)))

    def count(
        self,
        *,
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
    ) -> int:
        """Return how many memories the scope has, without deleted and outdated ones."""
        scope = self._scope.narrowed(user_id, project_id, session_id)
        return drive(self._long_term.count_in(scope))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._long_term.path!r}, {self._scope})"

    async def _get(self, entry_id: UUID, scope: Scope) -> MemoryEntry:
        found = await self._long_term.retrieve_in(scope, [entry_id])
        if entry_id not in found:
            raise _not_found(entry_id, scope)
        return found[entry_id]

    def _any_entry(self, at: int, memory: NewMemory, scope: Scope, now: datetime) -> MemoryEntry:
        try:
            if isinstance(memory, MemoryEntry):
                return checked_record(memory, scope)
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
            given["id"] = self._long_term.id_factory(now)
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
        license: What the caller's user may do; everything unless a host names a tier.
        clock: Gives the time, aware and in UTC.
        id_factory: Makes an id for a time.
        log_content: Show queries in logs and events; otherwise only how long they are.

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
        license: License | LicenseTier | None = None,  # noqa: A002 - the field's name everywhere
        clock: Clock = system_clock,
        id_factory: IdFactory | None = None,
        log_content: bool = False,
    ) -> None:
        long_term = LongTermMemory(
            path,
            agent_id=agent_id,
            embedder=embedder,
            license=license,
            clock=clock,
            id_factory=id_factory,
            log_content=log_content,
        )
        super().__init__(long_term, Scope(agent_id))

    @property
    def embedder(self) -> "Embedder | None":
        """What turns texts into vectors."""
        return self._long_term.embedder

    def purge(self) -> int:
        """Delete for good what was deleted more than 90 days ago, of all users.

        Returns:
            How many memories that were.
        """
        return drive(self._long_term.purge_expired())

    def stats(self) -> LongTermMemoryStats:
        """Return what the agent's memory holds, all users together."""
        return drive(self._long_term.get_stats())

    @property
    def events(self) -> Events:
        """Tells listeners what happens to memories; see `mnemic.events`."""
        return self._long_term.events

    def close(self) -> None:
        """Finish writing and let go of the file. Harmless if repeated."""
        drive(self._long_term.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


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


def _results(found: list[Found]) -> SearchResults:
    return SearchResults(
        [
            SearchHit(entry, score, {"similarity": min(1.0, max(0.0, score))})
            for entry, score in found
        ]
    )


def _not_found(entry_id: UUID, scope: Scope) -> EntryNotFoundError:
    return EntryNotFoundError(f"no memory with id {entry_id} for {scope}")
