"""The main interface: a memory in one file, used with plain calls."""

import os
from typing import TYPE_CHECKING, cast

from mnemic.async_memory import AsyncMemory, AsyncScopedMemory
from mnemic.model import EmbeddingModel
from mnemic.reporting.near_names import checks_arguments
from mnemic.threads.sync_bridge import sync_method
from mnemic.verbs.base import ScopedBase
from mnemic.verbs.opening import PlainHandle
from mnemic.verbs.vector_index import VectorIndex

if TYPE_CHECKING:
    from mnemic.verbs.adding import Add


class ScopedMemory(ScopedBase):
    """A memory with a part of the scope bound.

    It has the methods of `Memory`, in which only the agent is bound. A call cannot name a bound
    part otherwise.

    A call without a user, bound or given, sees only memories without a user; `all_users=True`
    includes all users, and goes with no user. `project_id` and `session_id` limit a call to a
    project or a session. An id gives no access by itself: outside the scope it does not exist.

    All methods may be called from several threads at once. They run in the caller's thread.
    """

    @checks_arguments
    def scoped(
        self,
        *,
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
    ) -> "ScopedMemory":
        """Return a memory with more of the scope bound.

        Raises:
            InvalidArgumentError: If a bound part is named otherwise.
        """
        narrowed = self._scope.narrowed(user_id, project_id, session_id)
        return ScopedMemory(self._repository, narrowed, self._services)

    @property
    def aio(self) -> AsyncScopedMemory:
        """The same view with coroutine methods; the same object each time."""
        return self._other_form(AsyncScopedMemory)

    add = cast("Add", sync_method(AsyncScopedMemory.add))
    add_many = sync_method(AsyncScopedMemory.add_many)
    search = sync_method(AsyncScopedMemory.search)
    retrieve = sync_method(AsyncScopedMemory.retrieve)
    retrieve_to_context = sync_method(AsyncScopedMemory.retrieve_to_context)
    suggest = sync_method(AsyncScopedMemory.suggest)
    expand = sync_method(AsyncScopedMemory.expand)
    recall = sync_method(AsyncScopedMemory.recall)
    linked = sync_method(AsyncScopedMemory.linked)
    salience = sync_method(AsyncScopedMemory.salience)
    reinforce = sync_method(AsyncScopedMemory.reinforce)
    contradictions = sync_method(AsyncScopedMemory.contradictions)
    context = sync_method(AsyncScopedMemory.context)
    similar = sync_method(AsyncScopedMemory.similar)
    recent = sync_method(AsyncScopedMemory.recent)
    important = sync_method(AsyncScopedMemory.important)
    get = sync_method(AsyncScopedMemory.get)
    get_many = sync_method(AsyncScopedMemory.get_many)
    list = sync_method(AsyncScopedMemory.list)
    count = sync_method(AsyncScopedMemory.count)
    distinct = sync_method(AsyncScopedMemory.distinct)
    stats = sync_method(AsyncScopedMemory.stats)
    audit = sync_method(AsyncScopedMemory.audit)
    purge = sync_method(AsyncScopedMemory.purge)
    update = sync_method(AsyncScopedMemory.update)
    update_many = sync_method(AsyncScopedMemory.update_many)
    delete = sync_method(AsyncScopedMemory.delete)
    delete_many = sync_method(AsyncScopedMemory.delete_many)
    delete_all = sync_method(AsyncScopedMemory.delete_all)
    restore = sync_method(AsyncScopedMemory.restore)
    touch = sync_method(AsyncScopedMemory.touch)
    link = sync_method(AsyncScopedMemory.link)
    unlink = sync_method(AsyncScopedMemory.unlink)
    links = sync_method(AsyncScopedMemory.links)
    export = sync_method(AsyncScopedMemory.export)
    import_ = sync_method(AsyncScopedMemory.import_)


class Memory(PlainHandle, ScopedMemory):
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
        expander: Adds related terms to the queries of `retrieve` and `expand`: a function or a
            coroutine function from a text to a list of texts, a dict of synonyms, or an object with
            `expand`; by default words of the memories themselves.
        options: See `mnemic.annotations.Options`.

    Raises:
        MissingExtraError: If the local embedder is wanted and not installed.
        StoreFileError: If the path cannot be used or holds something else.
        SchemaVersionError: If a newer mnemic wrote the file, or an earlier one and `read_only`.
        StoreCorruptError: If the file is damaged.
        EmbeddingModelMismatchError: If the agent's vectors come from another model.
    """

    @property
    def aio(self) -> AsyncMemory:
        """The same open memory with coroutine methods; closing either closes both.

        It is the same object each time.
        """
        return self._other_form(AsyncMemory)

    @property
    def index(self) -> VectorIndex:
        """The index of this agent's memories: how far it is built, and how much it finds."""
        return VectorIndex(self._repository)

    @staticmethod
    @checks_arguments
    def model_of(path: str | os.PathLike[str], agent_id: str = "default") -> EmbeddingModel | None:
        """Return the embedding model of an agent's vectors in a file; None if it has no vectors.

        Nothing is written, no model is loaded, and no embedder is needed.

        Args:
            path: The file.
            agent_id: Whose vectors.

        Raises:
            StoreFileError: If there is no such file, or it holds something else.
            SchemaVersionError: If another version of mnemic wrote the file; the message has the
                call that brings an earlier one up to date.
        """
        from mnemic.repository.stored_model import stored_model  # noqa: PLC0415 - seldom used

        return stored_model(path, agent_id)

    retrieval_stats = sync_method(AsyncMemory.retrieval_stats)
    users = sync_method(AsyncMemory.users)
    erase_pending = sync_method(AsyncMemory.erase_pending)
    drop_vectors = sync_method(AsyncMemory.drop_vectors)
    reembed = sync_method(AsyncMemory.reembed)
    rotate_key = sync_method(AsyncMemory.rotate_key)
    forget_agent = sync_method(AsyncMemory.forget_agent)
    backup = sync_method(AsyncMemory.backup)
    verify = sync_method(AsyncMemory.verify)
