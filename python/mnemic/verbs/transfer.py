"""Exports and imports of memories; `AsyncLongTermMemory` has an `export` of its own."""

from mnemic.model import ImportResult
from mnemic.model.time_zones import naive_times_in
from mnemic.model.validation import flag
from mnemic.protocols import Source, Target
from mnemic.reporting.progress import Progress
from mnemic.verbs.base import ScopedBase


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
