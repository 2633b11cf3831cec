"""MemoryDirectory, the memory files of one scope."""

import os

from mnemic.annotations import Clock
from mnemic.errors import InvalidArgumentError
from mnemic_files.errors import MemoryFileNotFoundError
from mnemic_files.folder import FileProblem, Folder
from mnemic_files.ids import checked_id, file_name, shown_id
from mnemic_files.inside import names_arguments, validation
from mnemic_files.memory_file import MemoryFile, checked_scope
from mnemic_files.reading import signatures
from mnemic_files.versions import FileOrder, Files, VersionedFiles, order_key, system_clock


@names_arguments
class MemoryDirectory(VersionedFiles):
    """The memory files of one scope, one file for each, named by its id.

    Files are added and never changed. All methods may be called from several threads, and several
    processes may use one directory. Subdirectories are not read.

    Args:
        path: The directory. It is made by the first write, of mode 0750.
        scope: "repo" or "user". All its files count as files of this scope, whatever they name.
        clock: Gives the time of new versions.

    Raises:
        InvalidArgumentError: If the scope is unknown, or the path is not in UTF-8.
    """

    def __init__(
        self, path: str | os.PathLike[str], scope: str, *, clock: Clock = system_clock
    ) -> None:
        super().__init__(clock)
        self.path = os.path.abspath(validation.file("path", path))  # noqa: PTH100 - pathlib is slow
        if validation.lone_surrogate(self.path) is not None:  # memories could not name their file
            raise InvalidArgumentError(
                "the directory of memory files has a name that is not in UTF-8; rename it"
            )
        self.scope = checked_scope(scope)
        self._folder = Folder(self.path, self.scope)
        self._problems: tuple[FileProblem, ...] = ()

    def __repr__(self) -> str:
        return f"MemoryDirectory({self.path!r}, {self.scope!r})"

    def path_of(self, id: str) -> str:  # noqa: A002 - the field's name everywhere
        """Return the path that the file with an id has or would have.

        Args:
            id: Id of the file.
        """
        return self._folder.path_of(id)

    def write(self, file: MemoryFile) -> str:
        """Add a file, which appears complete, on disk and of mode 0600; return its path.

        Args:
            file: The file.

        Raises:
            MemoryFileExistsError: If there is a file with its id.
            MemoryFileFormatError: If a field is invalid, or its scope is not the directory's.
            StoreError: If it cannot be written; nothing of it is left then.
        """
        path = self._folder.add(file)
        self._folder.sync()
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
            found = self._folder.read(file_name(checked_id(id)))[0]
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
        found = [self._folder.found(name) for name in sorted(signatures(self.path))]
        problems = [problem for one in found if one is not None for problem in one.problems]
        self._problems = tuple(problems)
        return sorted((one.file for one in found if one is not None and one.file), key=key)

    def problems(self) -> tuple[FileProblem, ...]:
        """Return the problems that the last list found, by name."""
        return self._problems
