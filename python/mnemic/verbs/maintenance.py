"""The verbs for a whole file or scope: erasure, backup, verification, export, import, audit."""

import os
from collections.abc import Sequence
from datetime import timedelta
from typing import Final, Literal

import mnemic  # noqa: TC001 - annotations name its classes
from mnemic.model import (
    DeleteResult,
    ImportResult,
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
from mnemic.reporting.progress import Progress
from mnemic.repository import RETENTION
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
        embedder: "mnemic.embed.AnyEmbedder | Literal['minilm'] | None" = None,
        *,
        embedding_model: str | None = None,
        progress: Progress | None = None,
        skip_failed: bool = False,
    ) -> ReembedReport:
        """Embed all of this agent's memories by another embedder: docs/how-to/switch-embedders.md.

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
        """Destroy the agent's keys and all its memories, permanently: docs/how-to/encryption.md."""
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
        """Count duplicates, stale memories, plain secrets, and others: docs/how-to/audit.md.

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
