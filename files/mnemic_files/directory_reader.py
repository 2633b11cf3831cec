"""Reads the memory files of one directory, with their problems."""

import os
from typing import NamedTuple

from mnemic.errors import MnemicError
from mnemic.logs import logger
from mnemic_files.errors import MemoryFileFormatError
from mnemic_files.ids import SUFFIX, checked_id, file_name, id_problem, shown_id
from mnemic_files.memory_file import MemoryFile
from mnemic_files.parse import parse_memory_file
from mnemic_files.problems import FileProblem
from mnemic_files.reading import Signature, read_text

_log = logger("mnemic_files")


class FoundFile(NamedTuple):
    """A file of a directory as it was found.

    Attributes:
        file: The memory file; None if it is left out.
        signature: Its state when it was read.
        problems: Reasons why it, or a part of it, was left out.
    """

    file: MemoryFile | None
    signature: Signature
    problems: tuple[FileProblem, ...] = ()


class DirectoryReader:
    """Reads the memory files of one directory.

    Args:
        path: The directory, absolute.
        scope: The scope of all its files.
    """

    def __init__(self, path: str, scope: str) -> None:
        self.path = path
        self.scope = scope

    def path_of(self, file_id: str) -> str:
        """Return the path that the file with an id has or would have."""
        return os.path.join(self.path, file_name(checked_id(file_id)))  # noqa: PTH118 - pathlib is slow

    def read(self, name: str) -> tuple[MemoryFile, Signature]:
        """Return a file by its name, with its state.

        Raises:
            FileNotFoundError: If there is none.
            MemoryFileFormatError: If it is no memory file of this name.
        """
        stem = name.removesuffix(SUFFIX)
        problem = id_problem(stem)
        if problem is not None:
            raise MemoryFileFormatError(f"its name, taken as an id, {problem}")
        text, signature = read_text(self.path, name)
        file = parse_memory_file(text)
        if file.id != stem:
            raise MemoryFileFormatError(
                f"its id is {shown_id(file.id)}; a memory file is named by its id"
            )
        return file, signature

    def found(self, name: str) -> FoundFile | None:
        """Return a file by its name, with its problems; None if there is none.

        Args:
            name: Its name in the directory.
        """
        try:
            file, signature = self.read(name)
        except FileNotFoundError:
            return None
        except MnemicError as error:
            problem = self.problem(name, str(error))
            _log.debug("%s is left out: %s", shown_id(name), error)
            return FoundFile(None, Signature(0, 0, 0, 0), (problem,))
        if file.scope == self.scope:
            return FoundFile(file, signature)
        reason = f"it names the scope {file.scope}, and counts as one of scope {self.scope}"
        problem = self.problem(name, reason, is_left_out=False)
        return FoundFile(file.as_of_scope(self.scope), signature, (problem,))

    def problem(self, name: str, reason: str, *, is_left_out: bool = True) -> FileProblem:
        """Return a problem of a file of this directory.

        Args:
            name: Its name.
            reason: The problem.
            is_left_out: Whether the file is left out.
        """
        return FileProblem(
            name=shown_id(name), scope=self.scope, reason=reason, is_left_out=is_left_out
        )
