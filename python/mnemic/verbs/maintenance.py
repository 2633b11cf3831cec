"""The verbs for a whole file, scope or index: erasure, backup, checks, export, import, audit."""

import os
from collections.abc import Sequence
from datetime import timedelta
from typing import Final, Literal

import mnemic.repository  # noqa: TC001 - annotations name its classes
from mnemic.model import (
    DeleteResult,
    ImportResult,
    IndexAudit,
    IndexInfo,
    MemoryAudit,
    ReembedReport,
    UserUsage,
    VerifyReport,
    validation,
)
from mnemic.model.deadline import TimeLimit
from mnemic.model.results import AuditRequest
from mnemic.model.time_zones import naive_times_in
from mnemic.model.validation import flag, items
from mnemic.protocols import Source, Target
from mnemic.reporting.near_names import names_arguments
from mnemic.reporting.progress import Progress
from mnemic.repository import RETENTION
from mnemic.threads.sync_bridge import sync_method
from mnemic.verbs.base import ScopedBase


class AsyncMaintenanceVerbs(ScopedBase):
    """Maintains the file of a memory."""

    async def users(
        self, *, limit: int = 1000, offset: int = 0, prefix: str | None = None
    ) -> list[UserUsage]:
        """Return the users who have memories, by id, None first, and what these take."""
        return await self._repository.reader.users(limit, offset, prefix)

    async def erase_pending(self) -> bool | None:
        """Erase bytes that deletions could not erase; return whether none is left, if known."""
        return await self._repository.deleter.erase_pending()

    async def drop_vectors(self, model: str | None = None) -> int:
        """Drop vectors of other models, which `reembed` has replaced; return of how many memories.

        Args:
            model: Name of the model; None for all other models.
        """
        return await self._repository.reembedding.drop_vectors(model)

    async def reembed(
        self,
        embedder: "mnemic.embed.AnyEmbedder | Literal['minilm', 'multilingual'] | None" = None,
        *,
        embedding_model: str | None = None,
        progress: Progress | None = None,
        skip_failed: bool = False,
    ) -> ReembedReport:
        """Embed all of this agent's memories by another embedder: docs/tune/switch-embedders.md.

        Old vectors are used until all new ones are there. What an ended call has embedded is kept.

        Args:
            embedder: In any form that `Memory` takes; None waits for what `reembed=True` began.
            embedding_model: Name of its model, where it has none of its own.
            skip_failed: Use the new vectors although the embedder failed on some texts.
        """
        return await self._repository.reembedding.run(
            embedder, embedding_model, progress=progress, skip_failed=skip_failed
        )

    async def rotate_key(
        self,
        key: "bytes | mnemic.MasterKey | mnemic.annotations.KeyProvider",
        *,
        progress: Progress | None = None,
    ) -> int:
        """Seal this agent's memories under another master key, in use; return how many.

        After a crash, open it with `Encryption(key=new, previous=[old])`, and call it again.

        Args:
            key: The new master key, a `MasterKey`, or a `KeyProvider` whose current key it is.
        """
        return await self._repository.maintenance.rotate_key(key, progress=progress)

    async def forget_agent(self) -> DeleteResult:
        """Destroy the agent's keys and all its memories, permanently: docs/run/encryption.md."""
        return await self._repository.deleter.forget_agent()

    async def backup(
        self, path: str | os.PathLike[str], *, progress: Progress | None = None
    ) -> None:
        """Copy the whole file, all agents' memories, as of one moment, during concurrent writes.

        Args:
            path: A new file; it gets mode 0600, and is complete or does not exist.
        """
        await self._repository.maintenance.backup(path, progress=progress)

    async def verify(
        self, *, repair: bool = False, progress: Progress | None = None
    ) -> VerifyReport:
        """Read the whole file, all agents' memories, and compare it with its checksums.

        Args:
            repair: Afterwards, add missing checksums, correct the sums of each agent and user, and
                drop damaged vectors of other models. Other damage is reported each time.
        """
        return await self._repository.maintenance.verify(repair=repair, progress=progress)


class AsyncImportVerbs(ScopedBase):
    """Stores the memories of exports."""

    async def import_(self, source: Source, *, progress: Progress | None = None) -> ImportResult:
        """Store the memories of an export, of any agent, with their ids, users and times.

        The file is checked first; nothing is stored if a line is invalid, outside the scope, or was
        sealed and finds no key here.
        Batches of 1,000 follow, and existing ids are skipped: repeat an import that failed.

        Args:
            source: A path, or an open file.
        """
        with naive_times_in("UTC"):  # whatever the zone here, for a file means the same everywhere
            return await self._repository.transfer.import_(self._scope, source, progress=progress)


class AsyncTransferVerbs(AsyncImportVerbs):
    """Exports memories, and stores those of exports."""

    async def export(
        self,
        target: Target,
        *,
        include_deleted: bool = True,
        embeddings: bool = False,
        overwrite: bool = False,
        unseal: bool = False,
        progress: Progress | None = None,
        user_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> int:
        """Write memories and their links as JSON Lines, in plain text; return how many memories.

        Args:
            target: A path, which is complete or not there at all, of mode 0600; or a text file.
            embeddings: Their vectors too, which take about 2 KB each.
            overwrite: Whether a file at this path may be replaced.
            unseal: Whether sealed memories may be written, as plain text; else they are refused.
        """
        scope = self._scope.narrowed(user_id, session_id=session_id, all_users=all_users)
        return await self._repository.transfer.export(
            scope,
            target,
            include_deleted=flag("include_deleted", include_deleted),
            embeddings=embeddings,
            overwrite=overwrite,
            unseal=unseal,
            progress=progress,
        )


MAX_FINDINGS: Final = 1_000_000


class AsyncAuditVerbs(ScopedBase):
    """Audits memories."""

    async def audit(
        self,
        *,
        ids: bool = False,
        limit: int = 1000,
        near: float | None = 0.95,
        stale_after: timedelta = RETENTION,
        max_bytes: int | None = None,
        patterns: Sequence["str | mnemic.policy.RedactionPattern"] = (
            "api_key",
            "card",
            "iban",
            "ssn",
        ),
        timeout: float | None = None,
        progress: Progress | None = None,
        user_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> MemoryAudit:
        """Count duplicates, stale memories, plain secrets, and others: docs/run/audit.md.

        Args:
            ids: Whether to return ids with the counts, in `findings`, in the order of storing.
            patterns: Secrets: names of known ones, regular expressions, or `RedactionPattern`s.
        """
        scope = self._scope.narrowed(user_id, session_id=session_id, all_users=all_users)
        most = validation.limit("limit", limit, MAX_FINDINGS)
        request = AuditRequest(
            near=None if near is None else validation.fraction("near", near),
            stale_after=validation.duration("stale_after", stale_after),
            max_bytes=validation.optional_whole("max_bytes", max_bytes),
            limit=most if flag("ids", ids) else 0,
            deadline=TimeLimit.after(timeout, "raise").deadline,
        )
        return await self._repository.maintenance.audit(
            scope, request, items("patterns", patterns), progress=progress
        )


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
