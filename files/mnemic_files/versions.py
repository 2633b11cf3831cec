"""Chains of versions: files that supersede each other."""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Final, Protocol, TypeVar

from mnemic.description import described
from mnemic.errors import InvalidArgumentError
from mnemic_files.errors import MemoryFileNotFoundError, VersionChainError
from mnemic_files.ids import shown_id

MAX_DEPTH: Final = 100


class Versioned(Protocol):
    """A file as far as its place in a chain goes."""

    @property
    def id(self) -> str:
        """Its id."""
        ...

    @property
    def supersedes(self) -> str | None:
        """The id of its predecessor."""
        ...

    @property
    def updated_at(self) -> datetime:
        """Time of the last change."""
        ...


Version = TypeVar("Version", bound=Versioned)


def version_chain(read: Callable[[str], Version], file_id: str, max_depth: int) -> list[Version]:
    """Return a file and its predecessors, oldest first.

    Args:
        read: Returns the file of an id.
        file_id: Id of the newest file of the chain.
        max_depth: Maximum number of files, at least 1; the oldest are left out.

    Raises:
        MemoryFileNotFoundError: If there is no file with this id.
        VersionChainError: If a predecessor is missing.
    """
    if isinstance(max_depth, bool) or not isinstance(max_depth, int) or max_depth < 1:
        raise InvalidArgumentError(
            f"max_depth must be an int of at least 1, got {described(max_depth)}"
        )
    chain = [read(file_id)]
    while len(chain) < max_depth and chain[-1].supersedes:
        try:
            chain.append(read(chain[-1].supersedes))
        except (MemoryFileNotFoundError, InvalidArgumentError):
            raise VersionChainError(
                f"{shown_id(chain[-1].id)} supersedes {shown_id(chain[-1].supersedes)}, which is "
                f"missing; {len(chain)} of its versions are there"
            ) from None
    return chain[::-1]


def latest_version(files: Iterable[Version], file_id: str) -> Version:
    """Return the newest successor of a file; itself without any.

    Of several successors of one file the one that was updated last counts, of equal ones that with
    the smallest id.

    Raises:
        MemoryFileNotFoundError: If there is no file with this id.
        VersionChainError: If the successors form a cycle.
    """
    given = {file.id: file for file in files}
    successors: dict[str, Version] = {}
    for file in sorted(given.values(), key=lambda one: one.id, reverse=True):
        superseded = file.supersedes
        if superseded is None:
            continue
        known = successors.get(superseded)
        if known is None or file.updated_at >= known.updated_at:
            successors[superseded] = file
    if file_id not in given:
        raise MemoryFileNotFoundError(f"there is no memory file {shown_id(file_id)}")
    seen = {file_id}
    while file_id in successors:
        file_id = successors[file_id].id
        if file_id in seen:
            raise VersionChainError(
                f"cycle detected: {shown_id(file_id)} supersedes a file that supersedes it; "
                "remove the key supersedes from one of them"
            )
        seen.add(file_id)
    return given[file_id]
