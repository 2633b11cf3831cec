"""Exports and imports of memories; `AsyncLongTermMemory` has an `export` of its own."""

from mnemic.model import ImportResult
from mnemic.model.validation import flag
from mnemic.protocols import Source, Target
from mnemic.reporting.progress import Progress
from mnemic.verbs.base import ScopedBase


class AsyncImportVerbs(ScopedBase):
    """Stores the memories of exports."""

    async def import_(self, source: Source, *, progress: Progress | None = None) -> ImportResult:
        """Store the memories of an export, of any agent, with their ids, users and times.

        The whole file is checked first; memories outside the scope of this view are refused. Then
        memories are stored in batches; existing ids are skipped, so an interrupted import can be
        repeated. Memories without a vector of this embedder are embedded.

        Args:
            source: A path, or an open file.
            progress: Called with the number of memories done so far and of all; or True for a
                bar. See `mnemic.annotations.Progress`.

        Raises:
            ExportFormatError: At the first invalid line; nothing is stored then.
            DuplicateEntryError: If a key was used for another content. With this and the following
                errors, earlier batches of 1,000 memories are stored; repeat the import when the
                cause is removed.
            StorageQuotaExceededError: If a batch would exceed the quota.
            KeyUnavailableError: If a memory was sealed where it comes from, and there is no key.
            EmbeddingError: If the embedder fails.
            StoreError: If the file cannot be written.
        """
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
        progress: Progress | None = None,
        user_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> int:
        """Write memories, and the links between them, as JSON Lines; see docs/concepts/export.md.

        What is written while others write is each memory as it was at some moment meanwhile; a
        `backup` is all of one moment. Sealed memories are written in plain text; those that do not
        open, as without a key, are left out.

        Args:
            target: A path, which is complete or not there at all, of mode 0600; or a text file.
            include_deleted: Those that can be restored, and expired ones, too.
            embeddings: Their vectors too, which take about 2 KB each.
            overwrite: Whether a file at this path may be replaced.
            progress: Called with the number of memories written so far and of all, as they were
                counted before; or True for a bar. See `mnemic.annotations.Progress`.
            user_id: The user; None is the memories without a user.
            session_id: Only memories of this session.
            all_users: Whether to include all users; not if part of the scope is bound.

        Returns:
            How many memories.

        Raises:
            InvalidArgumentError: If there is a file at this path already.
            StoreFullError: If the disk is full or failing.
            StoreError: If it cannot be written.
        """
        scope = self._scope.narrowed(user_id, session_id=session_id, all_users=all_users)
        return await self._repository.transfer.export(
            scope,
            target,
            include_deleted=flag("include_deleted", include_deleted),
            embeddings=embeddings,
            overwrite=overwrite,
            progress=progress,
        )
