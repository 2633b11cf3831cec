"""AsyncMemory: one agent's memories in one file, with coroutine methods.

`mnemic.memory` has the same methods as plain calls. The methods stand in `mnemic.verbs`.
"""

import os
from datetime import tzinfo

import mnemic  # noqa: TC001 - annotations name its classes
from mnemic.model import EmbeddingModel
from mnemic.model.time_zones import checked_time_zone
from mnemic.reporting.near_names import checks_arguments, names_arguments
from mnemic.threads.sync_bridge import run_blocking
from mnemic.verbs.adding import AsyncAddVerbs
from mnemic.verbs.changing import AsyncChangeVerbs, AsyncLinkVerbs
from mnemic.verbs.deleting import AsyncDeleteVerbs
from mnemic.verbs.documents import AsyncDocumentVerbs
from mnemic.verbs.maintenance import (
    AsyncAuditVerbs,
    AsyncMaintenanceVerbs,
    AsyncTransferVerbs,
    AsyncVectorIndex,
)
from mnemic.verbs.opening import AsyncHandle, opens_first
from mnemic.verbs.reading import AsyncReadVerbs
from mnemic.verbs.recall import AsyncRecallVerbs
from mnemic.verbs.retrieval import AsyncRetrievalStats, AsyncRetrievalVerbs
from mnemic.verbs.search import AsyncSearchVerbs


@names_arguments
class AsyncScopedMemory(
    AsyncAddVerbs,
    AsyncDocumentVerbs,
    AsyncReadVerbs,
    AsyncAuditVerbs,
    AsyncSearchVerbs,
    AsyncRetrievalVerbs,
    AsyncRecallVerbs,
    AsyncChangeVerbs,
    AsyncDeleteVerbs,
    AsyncLinkVerbs,
    AsyncTransferVerbs,
):
    """A memory with a part of the scope bound.

    It has the methods of `AsyncMemory`, in which only the agent is bound. A call cannot name a
    bound part otherwise.

    A call without a user, bound or given, sees only memories without a user; `all_users=True`
    includes all users, and goes with no user. `project_id` and `session_id` limit a call to a
    project or a session. An id gives no access by itself: outside the scope it does not exist.

    All methods may be called from any event loop, and from several at once.
    """

    @checks_arguments
    def scoped(
        self,
        *,
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
        time_zone: str | tzinfo | None = None,
    ) -> "AsyncScopedMemory":
        """Return a memory with more bound: a user, a project, a session or a `time_zone`."""
        narrowed = self._scope.narrowed(user_id, project_id, session_id)
        zone = checked_time_zone(time_zone) or self._own_time_zone
        return AsyncScopedMemory(self._repository, narrowed, self._services, zone)

    @property
    def sync(self) -> "mnemic.ScopedMemory":
        """The same view with plain methods; the same object each time."""
        from mnemic.memory import ScopedMemory  # noqa: PLC0415 - each interface names the other

        return self._other_form(ScopedMemory)


@opens_first
class AsyncMemory(AsyncMaintenanceVerbs, AsyncRetrievalStats, AsyncHandle, AsyncScopedMemory):
    """The awaited form of `Memory`, for any event loop; for the arguments see there.

    Example:
        >>> async with AsyncMemory("agent.db") as memory:  # doctest: +SKIP
        ...     await memory.add("Prefers metric units", user_id="alice")
        ...     hits = await memory.search("which units?", user_id="alice")

    Several memories, in one process or in many, may have the same file open; each sees the others'
    writes in its next call. In a running event loop it is opened by `async with`, or by the first
    call that is awaited, in another thread; by a property, or by `scoped`, at once.
    """

    @property
    def index(self) -> AsyncVectorIndex:
        """The index of this agent's memories: how far it is built, and how much it finds."""
        return AsyncVectorIndex(self._repository)

    @staticmethod
    async def model_of(
        path: str | os.PathLike[str], agent_id: str = "default"
    ) -> EmbeddingModel | None:
        """Return the embedding model of an agent's vectors in a file; None if it has no vectors.

        Args:
            path: The file, which is only read; no embedder is needed.
            agent_id: Whose vectors.
        """
        from mnemic.repository.vector_model import stored_model  # noqa: PLC0415 - seldom used

        return await run_blocking(lambda: stored_model(path, agent_id))

    @property
    def sync(self) -> "mnemic.Memory":
        """The same open memory with plain methods; closing either closes both.

        It is the same object each time.
        """
        from mnemic.memory import Memory  # noqa: PLC0415 - each interface names the other

        return self._other_form(Memory)
