"""MemoryFiles, the memory files of a repository and of a user, and their memory."""

import os
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Protocol
from weakref import WeakKeyDictionary

from mnemic.description import described
from mnemic.errors import InvalidArgumentError
from mnemic.model import OnEmbedError, Scope
from mnemic.model.validation import flag
from mnemic.progress import Progress, reporting
from mnemic.protocols import Clock, system_clock
from mnemic.repository import Repository
from mnemic.sync_bridge import run_blocking, run_sync, runs_sync
from mnemic_files.both_scopes import BothScopes
from mnemic_files.directory_reader import DirectoryReader
from mnemic_files.export import Export, ExportResult, exported
from mnemic_files.scan import Scanner
from mnemic_files.sync_result import SyncResult
from mnemic_files.synchronise import Options, Synchroniser

_WAIT_SECONDS = 0.01


class AnyMemory(Protocol):
    """A memory or a view of one, of whichever door."""

    @property
    def repository(self) -> Repository:
        """The repository."""
        ...

    @property
    def scope(self) -> Scope:
        """The scope."""
        ...


class MemoryFiles(BothScopes):
    """The memory files of a repository and of a user, read as one.

    An id that both have stands for the repository's file; `problems` then has the user's.

    Args:
        repo: Directory of the repository's files; None for none.
        user: Directory of the user's files; None for none.
        clock: Gives the time of new versions.

    Raises:
        InvalidArgumentError: If there is no directory, or both are the same.
    """

    def __init__(
        self,
        repo: str | os.PathLike[str] | None = None,
        user: str | os.PathLike[str] | None = None,
        *,
        clock: Clock = system_clock,
    ) -> None:
        super().__init__(repo, user, clock=clock)
        self._scanner = Scanner(DirectoryReader(one.path, one.scope) for one in self.directories)
        self._running = threading.Lock()
        self._synchronisers: WeakKeyDictionary[Repository, dict[Scope, Synchroniser]] = (
            WeakKeyDictionary()
        )

    def synchronise(
        self,
        memory: AnyMemory,
        *,
        keep_removed: bool = False,
        on_embed_error: OnEmbedError = "raise",
        progress: Progress | None = None,
    ) -> SyncResult:
        """Bring the memories of a memory, or of a view of one, to the state of the files.

        New files become memories, changed ones change them, and the memories of files that are
        gone are deleted so that they can be restored, which a file that is back does. Memories
        that did not come from these files stay as they are. A file that cannot be read changes
        nothing of its memory. Only files whose name, time or size changed are read again.

        Predecessors are stored first, and are superseded by their successors. Edges to files that
        are not there are left out until these are there, and so are the edges of a cycle.

        Args:
            memory: A memory or a view of one, of whichever door. All files belong to its scope,
                which names no session.
            keep_removed: Whether the memories of files that are gone stay.
            on_embed_error: "pending" stores memories without vectors if the embedder fails; they
                are embedded once it answers again.
            progress: Called with the number of memories stored so far and of all; or True for a
                bar. See `mnemic.annotations.Progress`.

        Raises:
            InvalidArgumentError: If the scope has all users or a session.
            EmbeddingError: If the embedder fails. With this and the following errors, earlier
                batches of memories are stored; repeat the call when the cause is removed.
            StorageQuotaExceededError: If a batch would exceed the quota.
            StoreError: If a directory cannot be read, or the memory cannot be written.
        """
        return run_sync(self._synchronised(memory, keep_removed, on_embed_error, progress))

    async def synchronise_async(
        self,
        memory: AnyMemory,
        *,
        keep_removed: bool = False,
        on_embed_error: OnEmbedError = "raise",
        progress: Progress | None = None,
    ) -> SyncResult:
        """Do the same without blocking the event loop; see `synchronise`.

        Args:
            memory: A memory or a view of one.
            keep_removed: Whether the memories of files that are gone stay.
            on_embed_error: See `synchronise`.
            progress: As above.
        """
        return await self._synchronised(memory, keep_removed, on_embed_error, progress)

    def export(
        self,
        memory: AnyMemory,
        *,
        include_sensitive: bool = False,
        progress: Progress | None = None,
    ) -> ExportResult:
        """Write the active and superseded memories of a memory, or of a view of one, as files.

        Memories of the scope "repo" go to the repository's directory, all others to the user's.
        Files that are there stay as they are, so that a repeated export adds what is new. A memory
        that was made of a file keeps its id, version and further keys; any other one has the id
        `mem_` with its own, and the number of its place in its chain as version. Links become
        related edges. Metadata, role, speaker, expiry, strength of links and vectors are left out:
        `Memory.export` has them all.

        Args:
            memory: A memory or a view of one, of whichever door; its scope names no session.
            include_sensitive: Whether sensitive memories are written, which their files say.
            progress: Called with the number of memories done so far and of all; or True for a bar.
                See `mnemic.annotations.Progress`.

        Raises:
            InvalidArgumentError: If the scope has all users or a session.
            StoreError: If the memory cannot be read, or a file cannot be written; the files written
                before stay.
        """
        return run_sync(self._exported(memory, include_sensitive, progress))

    async def export_async(
        self,
        memory: AnyMemory,
        *,
        include_sensitive: bool = False,
        progress: Progress | None = None,
    ) -> ExportResult:
        """Do the same without blocking the event loop; see `export`.

        Args:
            memory: A memory or a view of one.
            include_sensitive: Whether sensitive memories are written.
            progress: As above.
        """
        return await self._exported(memory, include_sensitive, progress)

    async def _exported(
        self,
        memory: AnyMemory,
        include_sensitive: bool,  # noqa: FBT001 - private
        progress: Progress | None,
    ) -> ExportResult:
        repository, scope = _checked(memory)
        flag("include_sensitive", include_sensitive)
        with reporting(progress, "export") as report:
            request = Export(scope, include_sensitive, report)
            async with self._alone():
                return await exported(repository, self.directories, request)

    async def _synchronised(
        self,
        memory: AnyMemory,
        keep_removed: bool,  # noqa: FBT001 - private
        on_embed_error: OnEmbedError,
        progress: Progress | None,
    ) -> SyncResult:
        repository, scope = _checked(memory)
        flag("keep_removed", keep_removed)
        with reporting(progress, "synchronise") as report:
            options = Options(keep_removed, on_embed_error, report)
            async with self._alone():
                scan = await run_blocking(self._scanner.scan, repository)
                synchroniser = self._synchroniser(repository, scope)
                result = await synchroniser.apply(scan, options)
                self._report(result.problems)
        return result

    @asynccontextmanager
    async def _alone(self) -> AsyncGenerator[None, None]:
        """Let one synchronisation run at a time, of whichever thread or event loop."""
        if runs_sync():
            self._running.acquire()
        else:
            import asyncio  # noqa: PLC0415 - unused at the synchronous door

            # No event of a loop can be set from the threads and loops of the others.
            while not self._running.acquire(blocking=False):  # noqa: ASYNC110 - as said
                await asyncio.sleep(_WAIT_SECONDS)
        try:
            yield
        finally:
            self._running.release()

    def _synchroniser(self, repository: Repository, scope: Scope) -> Synchroniser:
        of_scopes = self._synchronisers.setdefault(repository, {})
        if scope not in of_scopes:
            paths = [directory.path for directory in self.directories]
            of_scopes[scope] = Synchroniser(repository, scope, paths)
        return of_scopes[scope]


def _checked(memory: AnyMemory) -> tuple[Repository, Scope]:
    repository = getattr(memory, "repository", None)
    scope = getattr(memory, "scope", None)
    if not isinstance(repository, Repository) or not isinstance(scope, Scope):
        raise InvalidArgumentError(
            f"memory must be a memory of mnemic or a view of one, got {described(memory)}"
        )
    if scope.all_users or scope.session_id is not None:
        raise InvalidArgumentError(
            "memory files belong to one user, or to none, and name their sessions themselves; "
            "give a view without a session"
        )
    return repository, scope
