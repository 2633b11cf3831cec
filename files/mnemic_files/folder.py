"""Folder, the memory files of one directory as they are read and written, with their problems."""

import logging
import os
from typing import Final, NamedTuple

from mnemic.errors import MnemicError, StoreFileError
from mnemic_files.errors import MemoryFileExistsError, MemoryFileFormatError
from mnemic_files.file_format import parse_memory_file, serialise_memory_file
from mnemic_files.ids import SUFFIX, checked_id, file_name, id_problem, shown_id
from mnemic_files.inside import Record, file_errors, new_file, tidy_folder
from mnemic_files.memory_file import MemoryFile
from mnemic_files.named_fields import named_fields
from mnemic_files.reading import Signature, read_text

SHADOWED: Final = "the repository has a file with this id, which counts in its place"

_MODE: Final = 0o750

_log = logging.getLogger("mnemic_files")


class FileProblem(Record, frozen=True, kw_only=True):
    """A file of a directory that was left out, or taken with a reservation.

    Attributes:
        name: Its name.
        scope: The directory's scope.
        reason: The problem, without any of the file's content.
        is_left_out: Whether the file was left out; otherwise a part of it was.
    """

    name: str
    scope: str
    reason: str
    is_left_out: bool = True


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


class Folder:
    """The memory files of one directory.

    Args:
        path: The directory, absolute. It is made by the first write, of mode 0750.
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
        _, reasons = named_fields(file.keys)
        if file.scope != self.scope:
            reasons.append(
                f"it names the scope {file.scope}, and counts as one of scope {self.scope}"
            )
        problems = [self.problem(name, reason, is_left_out=False) for reason in reasons]
        return FoundFile(file.as_of_scope(self.scope), signature, tuple(problems))

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

    def add(self, file: MemoryFile) -> str:
        """Add a file, which appears complete; return its path.

        Its name survives a power cut once `sync` was called.

        Raises:
            MemoryFileExistsError: If there is a file with its id.
            MemoryFileFormatError: If a field is invalid, or its scope is not the directory's.
            StoreError: If it cannot be written; nothing of it is left then.
        """
        text = serialise_memory_file(file)
        if file.scope != self.scope:
            raise MemoryFileFormatError(
                f"a file of scope {file.scope} does not belong into a directory of scope "
                f"{self.scope}"
            )
        path = self.path_of(file.id)
        self._make()
        try:
            if os.path.lexists(path):
                raise FileExistsError  # noqa: TRY301 - before anything is written
            with (
                file_errors(path),
                new_file(path, is_one_of_many=True) as descriptor,
                open(descriptor, "wb", closefd=False) as opened,
            ):
                opened.write(text.encode())
        except FileExistsError:
            raise MemoryFileExistsError(
                f"there is a memory file {shown_id(file.id)} already; memory files are never "
                "changed: store a new version"
            ) from None
        return path

    def sync(self) -> None:
        """Put the names of the files on disk, and remove what killed writers left.

        Raises:
            StoreError: If the directory cannot be opened.
        """
        if os.path.isdir(self.path):  # noqa: PTH112 - as above
            tidy_folder(self.path)

    def _make(self) -> None:
        try:
            with file_errors(self.path):
                os.makedirs(self.path, mode=_MODE, exist_ok=True)  # noqa: PTH103 - as above
        except FileExistsError:
            raise StoreFileError(f"{self.path}: it is no directory") from None
