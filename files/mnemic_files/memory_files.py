"""MemoryFiles, the memory files of a repository and of a user, and their memory."""

import logging
import os
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from typing import Protocol
from weakref import WeakKeyDictionary

from mnemic.annotations import Clock, Progress
from mnemic.errors import InvalidArgumentError
from mnemic.model import OnEmbedError, Scope
from mnemic_files.directory import MemoryDirectory
from mnemic_files.errors import MemoryFileFormatError, MemoryFileNotFoundError
from mnemic_files.export import Export, ExportResult, exported
from mnemic_files.folder import SHADOWED, FileProblem, Folder
from mnemic_files.ids import checked_id, file_name, shown_id
from mnemic_files.inside import (
    Lock,
    NotPickled,
    Repository,
    described,
    names_arguments,
    reporting,
    run_blocking,
    run_sync,
    runs_sync,
    validation,
)
from mnemic_files.memory_file import MemoryFile, checked_scope
from mnemic_files.scan import Scanner
from mnemic_files.synchronise import Options, Synchroniser, SyncResult
from mnemic_files.versions import FileOrder, Files, VersionedFiles, order_key, system_clock

_WAIT_SECONDS = 0.01

_log = logging.getLogger("mnemic_files")


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


@names_arguments
class MemoryFiles(NotPickled, VersionedFiles):
    """The memory files of a repository and of a user, read as one.

    An id that both have stands for the repository's file; `problems` then has the user's. Versions
    and their chains may go through both; for their errors see `MemoryDirectory`.

    Args:
        repo: Directory of the repository's files; None for none.
        user: Directory of the user's files; None for none.
        clock: Gives the time of new versions.

    Raises:
        InvalidArgumentError: If there is no directory, or both are the same.
    """

    _not_pickled = (
        "{name} cannot be pickled or copied; make another one of the same directories where it is "
        "needed"
    )

    def __init__(
        self,
        repo: str | os.PathLike[str] | None = None,
        user: str | os.PathLike[str] | None = None,
        *,
        clock: Clock = system_clock,
    ) -> None:
        super().__init__(clock)
        given = (("repo", repo), ("user", user))
        self.directories = tuple(
            MemoryDirectory(path, scope, clock=clock) for scope, path in given if path is not None
        )
        if not self.directories:
            raise InvalidArgumentError("MemoryFiles needs a directory: repo, user, or both")
        if len({os.path.realpath(one.path) for one in self.directories}) < len(self.directories):
            raise InvalidArgumentError(
                "repo and user are the same directory, and its files would count as both; name two"
            )
        self._folders = tuple(Folder(one.path, one.scope) for one in self.directories)
        self._problems: tuple[FileProblem, ...] = ()
        self._scanner = Scanner(self._folders)
        self._running = Lock()
        self._synchronisers: WeakKeyDictionary[Repository, dict[Scope, Synchroniser]] = (
            WeakKeyDictionary()
        )

    def __repr__(self) -> str:
        named = ", ".join(f"{one.scope}={one.path!r}" for one in self.directories)
        return f"{type(self).__name__}({named})"

    def directory(self, scope: str) -> MemoryDirectory:
        """Return the directory of a scope.

        Args:
            scope: "repo" or "user".

        Raises:
            InvalidArgumentError: If there is none, or the scope is unknown.
        """
        for one in self.directories:
            if one.scope == checked_scope(scope):
                return one
        raise InvalidArgumentError(
            f"there is no directory of scope {scope}; name one with {scope}="
        )

    def write(self, file: MemoryFile) -> str:
        """Add a file to the directory of its scope; return its path. See `MemoryDirectory.write`.

        Args:
            file: The file.

        Raises:
            MemoryFileExistsError: If there is a file with its id in that directory.
        """
        if not isinstance(file, MemoryFile):
            raise MemoryFileFormatError(f"file must be a MemoryFile, got {type(file).__name__}")
        return self.directory(file.scope).write(file)

    def read(self, id: str) -> MemoryFile:  # noqa: A002 - the field's name everywhere
        """Return the file with an id: the repository's if both scopes have one.

        Args:
            id: Id of the file.

        Raises:
            InvalidArgumentError: If the id is empty or could lead out of a directory.
            MemoryFileNotFoundError: If there is none.
            MemoryFileFormatError: If it cannot be read.
        """
        for one in self.directories:
            if os.path.lexists(one.path_of(id)):
                return one.read(id)
        raise MemoryFileNotFoundError(f"there is no memory file {shown_id(checked_id(id))}")

    def list(self, *, scope: str | None = None, order: FileOrder = "id") -> Files:
        """Return the files of both scopes, or of one; see `MemoryDirectory.list`.

        Args:
            scope: "repo" or "user"; None is both, in which an id has one file.
            order: By "id", or by "time" of creation and then by id.
        """
        key = order_key(order)
        if scope is not None:
            return self.directory(scope).list(order=order)
        files: dict[str, MemoryFile] = {}
        problems: list[FileProblem] = []
        for one, folder in zip(self.directories, self._folders, strict=True):
            listed = one.list()
            shadowed = [file_name(file.id) for file in listed if file.id in files]
            problems += [*one.problems(), *(folder.problem(name, SHADOWED) for name in shadowed)]
            files = {file.id: file for file in listed} | files
        self._report(problems)
        return sorted(files.values(), key=key)

    def problems(self) -> tuple[FileProblem, ...]:
        """Return the problems that the last list or synchronisation found, by scope and name."""
        return self._problems

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
        return run_sync(
            self.synchronise_async(
                memory,
                keep_removed=keep_removed,
                on_embed_error=on_embed_error,
                progress=progress,
            )
        )

    async def synchronise_async(
        self,
        memory: AnyMemory,
        *,
        keep_removed: bool = False,
        on_embed_error: OnEmbedError = "raise",
        progress: Progress | None = None,
    ) -> SyncResult:
        """Do the same without blocking the event loop; see `synchronise`."""
        repository, scope = _checked(memory)
        validation.flag("keep_removed", keep_removed)
        with reporting(progress, "synchronise") as report:
            options = Options(keep_removed, on_embed_error, report)
            async with self._alone():
                scan = await run_blocking(self._scanner.scan, repository)
                synchroniser = self._synchroniser(repository, scope)
                result = await synchroniser.apply(scan, options)
                self._report(result.problems)
        return result

    def export(
        self,
        memory: AnyMemory,
        *,
        include_sensitive: bool = False,
        unseal: bool = False,
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
            unseal: Whether sealed memories may be written, as plain text; else they are refused.
            progress: Called with the number of memories done so far and of all; or True for a bar.
                See `mnemic.annotations.Progress`.

        Raises:
            InvalidArgumentError: If the scope has all users or a session, or a memory is sealed.
            StoreError: If the memory cannot be read, or a file cannot be written; the files written
                before stay.
        """
        return run_sync(
            self.export_async(
                memory,
                include_sensitive=include_sensitive,
                unseal=unseal,
                progress=progress,
            )
        )

    async def export_async(
        self,
        memory: AnyMemory,
        *,
        include_sensitive: bool = False,
        unseal: bool = False,
        progress: Progress | None = None,
    ) -> ExportResult:
        """Do the same without blocking the event loop; see `export`."""
        repository, scope = _checked(memory)
        validation.flag("include_sensitive", include_sensitive)
        validation.flag("unseal", unseal)
        with reporting(progress, "export") as report:
            request = Export(scope, include_sensitive, unseal, report)
            async with self._alone():
                return await exported(repository, self._folders, request)

    def _report(self, problems: Iterable[FileProblem]) -> None:
        """Keep problems, and log those that are new."""
        found = tuple(sorted(problems, key=lambda one: (one.scope, one.name, one.reason)))
        known, self._problems = self._problems, found
        for one in found:
            if one not in known:
                _log.warning("%s of scope %s: %s", one.name, one.scope, one.reason)

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
