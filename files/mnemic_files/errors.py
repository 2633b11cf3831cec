"""The errors of memory files; each is a `mnemic.errors.MnemicError` and a built-in error too."""

from mnemic.errors import InvalidArgumentError, MnemicError


class MemoryFileFormatError(InvalidArgumentError):
    """A memory file cannot be read, or a record cannot be written as one; nothing was changed."""


class MemoryFileNotFoundError(MnemicError, KeyError):
    """No directory that was searched has a memory file with this id."""

    def __str__(self) -> str:
        """Return the message as written; KeyError would quote it."""
        return str(self.args[0]) if self.args else ""


class MemoryFileExistsError(MnemicError, FileExistsError):
    """There is a memory file with this id already; memory files are never changed."""


class VersionChainError(MnemicError, RuntimeError):
    """The versions of a memory file form a cycle, or one of them is missing."""
