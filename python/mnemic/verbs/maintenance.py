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
