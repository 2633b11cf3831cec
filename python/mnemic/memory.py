"""The front door: a memory in one file, used with plain calls."""

from types import TracebackType
from typing import Self

from mnemic.async_memory import AsyncMemory, AsyncScopedMemory, View, WholeMemory
from mnemic.sync_bridge import driven


class ScopedMemory(View):
    """A view of one memory in which part of the scope is already named.

    It has the methods of `Memory`, which is itself the view in which only the agent is named. What
    a view names cannot be named otherwise in a call.

    A call that names no user, neither here nor itself, sees only memories stored without one. An id
    opens nothing by itself: outside the scope it is like an id that does not exist.

    All methods may be called from several threads at once. They run in the caller's thread.
    """

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
        narrowed = self._scope.narrowed(user_id, project_id, session_id)
        return ScopedMemory(self._repository, narrowed, self._services)

    add = driven(AsyncScopedMemory.add)
    add_many = driven(AsyncScopedMemory.add_many)
    search = driven(AsyncScopedMemory.search)
    retrieve = driven(AsyncScopedMemory.retrieve)
    retrieve_to_context = driven(AsyncScopedMemory.retrieve_to_context)
    recall = driven(AsyncScopedMemory.recall)
    contradictions = driven(AsyncScopedMemory.contradictions)
    context = driven(AsyncScopedMemory.context)
    similar = driven(AsyncScopedMemory.similar)
    recent = driven(AsyncScopedMemory.recent)
    important = driven(AsyncScopedMemory.important)
    get = driven(AsyncScopedMemory.get)
    list = driven(AsyncScopedMemory.list)
    count = driven(AsyncScopedMemory.count)
    stats = driven(AsyncScopedMemory.stats)
    purge = driven(AsyncScopedMemory.purge)
    update = driven(AsyncScopedMemory.update)
    delete = driven(AsyncScopedMemory.delete)
    delete_all = driven(AsyncScopedMemory.delete_all)
    restore = driven(AsyncScopedMemory.restore)
    touch = driven(AsyncScopedMemory.touch)
    link = driven(AsyncScopedMemory.link)
    unlink = driven(AsyncScopedMemory.unlink)
    links = driven(AsyncScopedMemory.links)
    export = driven(AsyncScopedMemory.export)
    import_ = driven(AsyncScopedMemory.import_)


class Memory(WholeMemory, ScopedMemory):
    """A long-term memory in one file.

    Example:
        >>> from mnemic import Memory
        >>> with Memory(":memory:") as memory:  # doctest: +SKIP
        ...     memory.add("Prefers metric units", user_id="alice")
        ...     memory.search("which units?", user_id="alice")[0].content
        'Prefers metric units'

    Several memories, in one process or in many, may have the same file open; each sees the others'
    writes in its next call.

    Args:
        path: A file, made if there is none and readable by its owner alone, or ":memory:".
        agent_id: Whose memory it is. Agents in one file never see each other's memories.
        options: See `mnemic.repository.Options`.

    Raises:
        MissingExtraError: If the local embedder is wanted and not installed.
        StoreFileError: If the path cannot be used or holds something else.
        SchemaVersionError: If a newer mnemic wrote the file.
        StoreCorruptError: If the file is damaged.
        EmbeddingModelMismatchError: If the agent's vectors come from another model.
    """

    erase_pending = driven(AsyncMemory.erase_pending)
    backup = driven(AsyncMemory.backup)
    verify = driven(AsyncMemory.verify)
    close = driven(AsyncMemory.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
