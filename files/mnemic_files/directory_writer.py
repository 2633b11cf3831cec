"""Writes memory files of one directory."""

import os
from typing import Final

from mnemic.errors import StoreFileError
from mnemic.new_files import file_errors, new_file, tidy_folder
from mnemic_files.errors import MemoryFileExistsError, MemoryFileFormatError
from mnemic_files.ids import checked_id, file_name, shown_id
from mnemic_files.memory_file import MemoryFile
from mnemic_files.serialise import serialise_memory_file

_DIRECTORY_MODE: Final = 0o750


class DirectoryWriter:
    """Writes memory files of one directory, which is made by the first of them, of mode 0750.

    Args:
        path: The directory, absolute.
        scope: The scope of all its files.
    """

    def __init__(self, path: str, scope: str) -> None:
        self.path = path
        self.scope = scope

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
        path = os.path.join(self.path, file_name(checked_id(file.id)))  # noqa: PTH118 - pathlib is slow
        self._make()
        try:
            if os.path.lexists(path):
                raise FileExistsError  # noqa: TRY301 - before anything is written
            with new_file(path, is_one_of_many=True) as descriptor:
                _write_all(descriptor, text.encode())
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
                os.makedirs(self.path, mode=_DIRECTORY_MODE, exist_ok=True)  # noqa: PTH103 - as above
        except FileExistsError:
            raise StoreFileError(f"{self.path}: it is no directory") from None


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
