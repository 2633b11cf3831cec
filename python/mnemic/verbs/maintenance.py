"""The verbs for the whole file: erasure, backup, verification."""

import os
from typing import Literal

import mnemic  # noqa: TC001 - annotations name its classes
from mnemic.model import DeleteResult, ReembedReport, UserUsage, VerifyReport
from mnemic.reporting.progress import Progress
from mnemic.verbs.base import ScopedBase


class AsyncMaintenanceVerbs(ScopedBase):
    """Maintains the file of a memory."""

    async def users(
        self, *, limit: int = 1000, offset: int = 0, prefix: str | None = None
    ) -> list[UserUsage]:
        """Return the users of this agent who have memories, and what these take.

        For an operator: views of a user or of a project do not have this method.

        Args:
            limit: Maximum number of users, 1 to 1,000.
            offset: Number of first users to skip.
            prefix: Only users whose ids begin with it.

        Returns:
            The memories without a user first (`user_id` None, unless a prefix is given), then the
            users in the order of their ids, by code points. A user stays as long as any memory of
            theirs does, deleted ones included.

        Raises:
            InvalidArgumentError: If an argument is of the wrong type or out of range.
        """
        return await self._repository.statistics.users(limit, offset, prefix)

    async def erase_pending(self) -> bool:
        """Erase the bytes that permanent deletions could not erase at once, in the whole file.

        A deletion cannot erase them while a reader or a backup needs the old state, and reports
        that (`DeleteResult.erased`). Each call tries again, and waits a moment for readers.

        Returns:
            Whether nothing of permanently deleted data is left in the file and its log.

        Raises:
            ReadOnlyError: If the memory was opened read-only.
        """
        return await self._repository.deleter.erase_pending()

    async def drop_vectors(self, model: str | None = None) -> int:
        """Drop this agent's stored vectors of other models than the memory's own.

        They are those that `reembed` has replaced, or has not finished yet. The vectors by which
        the memory itself searches stay, whatever their model.

        Args:
            model: Name of the model; None for all other models.

        Returns:
            Number of memories whose vectors were dropped, those of each model counted apart.

        Raises:
            InvalidEntryError: If the name is empty, or has a control character.
            ReadOnlyError: If the memory was opened read-only.
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
        """Embed all of this agent's memories again, by another embedder, and use its vectors.

        The memory goes on with its old vectors meanwhile, in searches and in writes. The new ones
        are stored beside them in batches, and take their place in one step once no memory that is
        not deleted lacks them; from then on this memory uses the new embedder. What a killed
        process, a closed memory or a failed call has embedded is kept, and the next call goes on
        from there.

        Other openings of the memory with the old embedder raise `EmbeddingModelMismatchError`
        after the change. The old vectors stay, so that changing back embeds nothing, until
        `drop_vectors` is called with their model; those of sensitive memories are deleted at once.

        A text that the embedder fails on is tried four times, with growing pauses. An embedder that
        fails on all texts is waited for, and its error is raised after about 17 seconds.

        Args:
            embedder: The new embedder, in any of the forms that a memory is opened with. None is
                the memory's own: the call waits for what `reembed=True` has begun.
            embedding_model: Name of its model, where it has none of its own.
            progress: Called with the number of memories that have their new vectors, and of all; or
                True for a bar. See `mnemic.annotations.Progress`.
            skip_failed: Use the new vectors although some memories have none, because the embedder
                failed on their texts each time. They are found by keywords, and tried again as any
                memory without a vector. Otherwise the old vectors stay in use.

        Returns:
            The model, what was done, and the ids of the memories that failed.

        Raises:
            EmbedderRequiredError: If there is no embedder at all.
            EmbeddingError: If the embedder fails on all texts.
            EmbeddingModelMismatchError: If vectors of another length have the model's name.
            InvalidArgumentError: If the memories are being embedded by another embedder already.
            ReadOnlyError: If the memory was opened read-only.
            StoreClosedError: If the memory is closed meanwhile.
        """
        return await self._repository.reembed(
            embedder, embedding_model, progress=progress, skip_failed=skip_failed
        )

    async def rotate_key(
        self,
        key: "bytes | mnemic.MasterKey | mnemic.annotations.KeyProvider",
        *,
        progress: Progress | None = None,
    ) -> int:
        """Seal this agent's memories under another master key, during reads and writes.

        New memories are sealed under it at once; those that are sealed already follow in batches,
        each in one transaction. Both keys open memories until the last one is sealed anew, and then
        the former is needed no more, but for backups made before.

        After a crash, open the memory with both keys, as by
        `Encryption(key=new, previous=[old])`, and call it again: it goes on with what is left.
        Other processes go on reading and writing if they have both keys, by `previous` or a
        `KeyProvider`; otherwise they get `WrongKeyError` where they meet the new one.

        Args:
            key: The new master key, a `MasterKey`, or a `KeyProvider` whose current key it is.
            progress: Called with the number of memories so far, and of all; or True for a bar.

        Returns:
            Number of memories that were sealed anew.

        Raises:
            InvalidArgumentError: If the key is invalid, or the memory was opened without
                encryption.
            KeyUnavailableError: If a key provider fails.
            WrongKeyError: If memories are sealed under a third key.
            SealBrokenError: If a sealed memory does not open; all others are sealed anew, and the
                former key is kept.
            ReadOnlyError: If the memory was opened read-only.
        """
        return await self._repository.rotate_key(key, progress=progress)

    async def forget_agent(self) -> DeleteResult:
        """Destroy the keys of this agent, and delete all its memories permanently.

        What was sealed can never be opened again without what is destroyed here, wherever its bytes
        may remain: on the disk, in a log, in a backup made afterwards. It does not reach backups
        made before, which hold it: those open with the master key. Nor does it destroy the master
        key, or what was stored in plain text and copied.

        Returns:
            How many memories were deleted, and whether their bytes are erased from the file.

        Raises:
            ReadOnlyError: If the memory was opened read-only.
        """
        return await self._repository.deleter.forget_agent()

    async def backup(
        self, path: str | os.PathLike[str], *, progress: Progress | None = None
    ) -> None:
        """Copy the whole file, all agents' memories, as of one moment, during concurrent writes.

        Args:
            path: A new file; it gets mode 0600, and is complete or does not exist.
            progress: Called with the bytes written so far and their expected number; or True for
                a bar. See `mnemic.annotations.Progress`.

        Raises:
            StoreFileError: If the path exists, or cannot be written.
        """
        await self._repository.backup(path, progress=progress)

    async def verify(
        self, *, repair: bool = False, progress: Progress | None = None
    ) -> VerifyReport:
        """Read the whole file, all agents' memories, and compare it with its checksums.

        Rows, vectors and links are read and compared, and the number of each agent's memories, and
        SQLite checks its own structures. Nothing is written without `repair`. If an embedder cannot
        load a damaged file, open it with `embedder=None`.

        Args:
            repair: Add checksums to memories of earlier versions of mnemic, rewrite each agent's
                number, sum and bytes of memories, and each user's bytes, and drop damaged vectors
                of other models, after the comparison. Other damaged data is left unchanged: it is
                reported each time, and refused when read.
            progress: Called with the number of memories so far, and None; or True for a bar.

        Returns:
            Counts and problems; its `ok` is true without problems.

        Raises:
            SealBrokenError: If a sealed memory does not open, after all was read; its `report` is
                what is returned otherwise.
            ReadOnlyError: If a file opened read-only is to be repaired.
        """
        return await self._repository.verify(repair=repair, progress=progress)
