"""Imports of memories; each door has an `export` of its own."""

from mnemic.model import ImportResult
from mnemic.protocols import Progress, Source
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
            progress: Called periodically with the number of memories done so far.

        Raises:
            ExportFormatError: At the first invalid line; nothing is stored then.
            DuplicateEntryError: If a key was used for another content. With this and the following
                errors, earlier batches of 1,000 memories are stored; repeat the import when the
                cause is removed.
            StorageQuotaExceededError: If a batch would exceed the quota.
            EmbeddingError: If the embedder fails.
            StoreError: If the file cannot be written.
        """
        return await self._repository.transfer.import_(self._scope, source, progress=progress)
