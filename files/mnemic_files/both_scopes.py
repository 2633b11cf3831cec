"""Reads the files of the repository's and of the user's directory as one."""

import os
from collections.abc import Iterable

from mnemic.errors import InvalidArgumentError
from mnemic.logs import logger
from mnemic.protocols import Clock, system_clock
from mnemic_files.directory import FileOrder, Files, MemoryDirectory, order_key
from mnemic_files.errors import MemoryFileFormatError, MemoryFileNotFoundError
from mnemic_files.ids import checked_id, shown_id
from mnemic_files.memory_file import MemoryFile, checked_scope
from mnemic_files.problems import FileProblem, shadowed
from mnemic_files.versions import MAX_DEPTH, latest_version, version_chain

_log = logger("mnemic_files")


class BothScopes:
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
        self._now = clock
        self._problems: tuple[FileProblem, ...] = ()

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
        for one in self.directories:
            listed = one.list()
            problems += [
                *one.problems(),
                *(shadowed(one.scope, file.id) for file in listed if file.id in files),
            ]
            files = {file.id: file for file in listed} | files
        self._report(problems)
        return sorted(files.values(), key=key)

    def problems(self) -> tuple[FileProblem, ...]:
        """Return the problems that the last list or synchronisation found, by scope and name."""
        return self._problems

    def _report(self, problems: Iterable[FileProblem]) -> None:
        """Keep problems, and log those that are new."""
        found = tuple(sorted(problems, key=lambda one: (one.scope, one.name, one.reason)))
        known, self._problems = self._problems, found
        for one in found:
            if one not in known:
                _log.warning("%s of scope %s: %s", one.name, one.scope, one.reason)

    def new_version(
        self,
        id: str,  # noqa: A002 - the field's name everywhere
        content: str,
        *,
        session_id: str | None = None,
        trigger: str | None = None,
        category: str | None = None,
    ) -> MemoryFile:
        """Add a file that replaces another one, in its scope; see `MemoryDirectory.new_version`.

        Args:
            id: Id of the file that it replaces.
            content: The new text.
            session_id: That of the replaced file if None, and so for the following.
            trigger: As above.
            category: As above.
        """
        file = self.read(id).next_version(
            content, now=self._now(), session_id=session_id, trigger=trigger, category=category
        )
        self.write(file)
        return file

    def version_chain(
        self,
        id: str,  # noqa: A002 - the field's name everywhere
        max_depth: int = MAX_DEPTH,
    ) -> Files:
        """Return a file and its predecessors, oldest first, of whichever scope.

        For errors see `MemoryDirectory.version_chain`.

        Args:
            id: Id of the newest file of the chain.
            max_depth: Maximum number of files, at least 1; the oldest are left out.
        """
        return version_chain(self.read, id, max_depth)

    def latest_version(self, id: str) -> MemoryFile:  # noqa: A002 - the field's name everywhere
        """Return the newest successor of a file, of whichever scope; itself without any.

        For ties and errors see `MemoryDirectory.latest_version`.

        Args:
            id: Id of the file.
        """
        return latest_version(self.list(), checked_id(id))
