"""MemoryDirectory, the memory files of one scope."""

import os
import threading
from collections.abc import Callable
from typing import Final, Literal, TypeAlias, get_args

from mnemic.description import quoted
from mnemic.errors import InvalidArgumentError
from mnemic.logs import logger
from mnemic.model import validation
from mnemic.protocols import Clock, system_clock
from mnemic_files.directory_reader import DirectoryReader
from mnemic_files.directory_writer import DirectoryWriter
from mnemic_files.errors import MemoryFileNotFoundError
from mnemic_files.ids import checked_id, file_name, shown_id
from mnemic_files.memory_file import MemoryFile, checked_scope
from mnemic_files.problems import FileProblem
from mnemic_files.reading import signatures
from mnemic_files.versions import MAX_DEPTH, latest_version, version_chain

FileOrder: TypeAlias = Literal["id", "time"]
"""Order of a list: by id, or by `created_at` and then by id."""

Files: TypeAlias = list[MemoryFile]
"""Memory files in an order."""

_ORDERS: Final = get_args(FileOrder)
_DIRECTORY_MODE: Final = 0o750

_log = logger("mnemic_files")


class MemoryDirectory:
    """The memory files of one scope, one file for each, named by its id.

    Files are added and never changed. All methods may be called from several threads, and several
    processes may use one directory. Subdirectories are not read.

    Args:
        path: The directory. It is made by the first write, of mode 0750.
        scope: "repo" or "user". All its files count as files of this scope, whatever they name.
        clock: Gives the time of new versions.

    Raises:
        InvalidArgumentError: If the scope is unknown.
    """

    def __init__(
        self, path: str | os.PathLike[str], scope: str, *, clock: Clock = system_clock
    ) -> None:
        validation.path("path", path)
        self.path = os.path.abspath(os.fspath(path))  # noqa: PTH100 - pathlib is slow
        self.scope = checked_scope(scope)
        self._now = clock
        self._reader = DirectoryReader(self.path, self.scope)
        self._writer = DirectoryWriter(self.path, self.scope)
        self._lock = threading.Lock()
        self._problems: tuple[FileProblem, ...] = ()

    def __repr__(self) -> str:
        return f"MemoryDirectory({self.path!r}, {self.scope!r})"

    def path_of(self, id: str) -> str:  # noqa: A002 - the field's name everywhere
        """Return the path that the file with an id has or would have.

        Args:
            id: Id of the file.
        """
        return self._reader.path_of(id)

    def write(self, file: MemoryFile) -> str:
        """Add a file, which appears complete, on disk and of mode 0600; return its path.

        Args:
            file: The file.

        Raises:
            MemoryFileExistsError: If there is a file with its id.
            MemoryFileFormatError: If a field is invalid, or its scope is not the directory's.
            StoreError: If it cannot be written; nothing of it is left then.
        """
        path = self._writer.add(file)
        self._writer.sync()
        return path

    def read(self, id: str) -> MemoryFile:  # noqa: A002 - the field's name everywhere
        """Return the file with an id.

        Args:
            id: Id of the file.

        Raises:
            InvalidArgumentError: If the id is empty or could lead out of the directory.
            MemoryFileNotFoundError: If there is none.
            MemoryFileFormatError: If it cannot be read.
        """
        try:
            found = self._reader.read(file_name(checked_id(id)))[0]
        except FileNotFoundError:
            raise MemoryFileNotFoundError(
                f"there is no memory file {shown_id(id)} in the directory of scope {self.scope}"
            ) from None
        return found.as_of_scope(self.scope)

    def list(self, *, order: FileOrder = "id") -> Files:
        """Return all files; those that are none, or corrupt, are left out.

        Each of those is logged at level debug, and `problems` returns them.

        Args:
            order: By "id", or by "time" of creation and then by id.
        """
        key = order_key(order)
        found = [self._reader.found(name) for name in sorted(signatures(self.path))]
        problems = [problem for one in found if one is not None for problem in one.problems]
        with self._lock:
            self._problems = tuple(problems)
        return sorted((one.file for one in found if one is not None and one.file), key=key)

    def problems(self) -> tuple[FileProblem, ...]:
        """Return the problems that the last list found, by name."""
        with self._lock:
            return self._problems

    def new_version(
        self,
        id: str,  # noqa: A002 - the field's name everywhere
        content: str,
        *,
        session_id: str | None = None,
        trigger: str | None = None,
        category: str | None = None,
    ) -> MemoryFile:
        """Add a file that replaces another one; the other stays as it is.

        It has a new id, the next version, and copies of the related edges and further keys.

        Args:
            id: Id of the file that it replaces.
            content: The new text.
            session_id: That of the replaced file if None, and so for the following.
            trigger: As above.
            category: As above.

        Returns:
            The new file.

        Raises:
            MemoryFileNotFoundError: If there is no file with this id.
            MemoryFileFormatError: If a field is invalid.
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
        """Return a file and its predecessors, oldest first.

        Args:
            id: Id of the newest file of the chain.
            max_depth: Maximum number of files, at least 1; the oldest are left out.

        Raises:
            MemoryFileNotFoundError: If there is no file with this id.
            VersionChainError: If a predecessor is missing.
        """
        return version_chain(self.read, id, max_depth)

    def latest_version(self, id: str) -> MemoryFile:  # noqa: A002 - the field's name everywhere
        """Return the newest successor of a file; itself without any.

        Of several successors of one file the one that was updated last counts, of equal ones that
        with the smallest id.

        Args:
            id: Id of the file.

        Raises:
            MemoryFileNotFoundError: If there is no file with this id.
            VersionChainError: If the successors form a cycle.
        """
        return latest_version(self.list(), checked_id(id))


def order_key(order: object) -> Callable[[MemoryFile], tuple[object, ...]]:
    """Return the key of a list's order.

    Raises:
        InvalidArgumentError: If the order is unknown.
    """
    if order not in _ORDERS:
        raise InvalidArgumentError(
            f"order must be one of {', '.join(_ORDERS)}, got {quoted(order)}"
        )
    if order == "id":
        return lambda file: (file.id,)
    return lambda file: (file.created_at, file.id)
