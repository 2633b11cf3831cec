"""What an agent's index of vectors consists of, and how much it finds."""

import mnemic.repository  # noqa: TC001 - annotations name its classes
from mnemic.model import IndexAudit, IndexInfo, validation
from mnemic.reporting.near_names import names_arguments
from mnemic.reporting.progress import Progress
from mnemic.threads.sync_bridge import sync_method

MAX_SAMPLE = 10_000
MAX_NEAREST = 1000


class IndexBase:
    """The parts of both forms."""

    def __init__(self, repository: "mnemic.repository.Repository") -> None:
        self._repository = repository

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._repository.agent_id!r})"


@names_arguments
class AsyncVectorIndex(IndexBase):
    """The awaited form of `VectorIndex`: the attribute `index` of an `AsyncMemory`."""

    async def info(self) -> IndexInfo:
        """Return what the index consists of, and how far an approximate one is built.

        Changes of other processes are taken in first, as before a search.
        """
        return await self._repository.vector_index.info()

    async def wait(self, *, timeout: float | None = None, progress: Progress | None = None) -> bool:
        """Wait until the approximate index has the vectors of all memories.

        Nothing needs to wait: searches compare what is not in it. The vectors are added in the
        background by themselves, whether or not somebody waits for them.

        Args:
            timeout: Maximum seconds, above 0; None for no maximum. What it ends goes on in the
                background.
            progress: Called with the number of vectors added since the call, and their total; or
                True for a bar. See `mnemic.annotations.Progress`.

        Returns:
            Whether it has all; True with an exact index. False after the timeout.

        Raises:
            InvalidEntryError: If the timeout is not a number above 0.
        """
        seconds = None if timeout is None else validation.positive("timeout", timeout)
        return await self._repository.vector_index.wait(seconds, progress)

    async def audit(
        self,
        sample: int = 100,
        k: int = 10,
        *,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> IndexAudit:
        """Measure how many of the nearest memories the approximate index finds.

        The queries are vectors of memories drawn at random. For each, the approximate index and the
        exact one are asked for the nearest other memories, by similarity alone. Searches and
        changes go on meanwhile; accesses are not counted.

        Args:
            sample: Number of memories whose vectors are queries, 1 to 10,000; all, if there are
                fewer.
            k: Number of nearest memories that are compared, 1 to 1,000.
            seed: Seed of the draw; the same memories and seed give the same queries.
            progress: Called with the number of queries so far, and their total; or True for a bar.
                See `mnemic.annotations.Progress`.

        Returns:
            Recall and times. With an exact index, and while an approximate one is not used yet,
            the recall is 1.

        Raises:
            InvalidArgumentError: If an argument is of the wrong type or out of range.
        """
        return await self._repository.vector_index.audit(
            validation.limit("sample", sample, MAX_SAMPLE),
            validation.limit("k", k, MAX_NEAREST),
            validation.whole("seed", seed),
            progress,
        )

    async def create(self) -> bool:
        """Build the approximate index of this agent's vectors in PostgreSQL, and wait for it.

        It is an HNSW index of pgvector, which all agents of a partition with vectors of one model
        share. It is built beside reads and writes, also by itself once a search in the database
        meets more than `exact_limit` memories, and makes writing slower from then on.

        Returns:
            Whether there is one now; False for a file, for an agent without vectors, and for
            vectors of more than 4,000 dimensions.
        """
        return await self._repository.vector_index.create()


class VectorIndex(IndexBase):
    """The index of an agent's active memories, of all users.

    It is the attribute `index` of a `Memory`, for an operator: no memory is shown by it.

    Args:
        repository: The repository of the memory.
    """

    info = sync_method(AsyncVectorIndex.info)
    wait = sync_method(AsyncVectorIndex.wait)
    audit = sync_method(AsyncVectorIndex.audit)
    create = sync_method(AsyncVectorIndex.create)
