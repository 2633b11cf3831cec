"""Files that replace each other: new versions, and chains of them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

from mnemic.errors import InvalidArgumentError
from mnemic_files.errors import MemoryFileNotFoundError, VersionChainError
from mnemic_files.ids import checked_id, shown_id
from mnemic_files.inside import checked_clock, described, validation
from mnemic_files.memory_file import MemoryFile

if TYPE_CHECKING:
    from mnemic.annotations import Clock

MAX_DEPTH: Final = 100

FileOrder: TypeAlias = Literal["id", "time"]
"""Order of a list: by id, or by `created_at` and then by id."""

Files: TypeAlias = list[MemoryFile]
"""Memory files in an order."""

_ORDERS: Final = get_args(FileOrder)


def system_clock() -> datetime:
    """Return the system time."""
    return datetime.now(UTC)


class VersionedFiles(ABC):
    """Memory files in which one may replace another; none is ever changed.

    Args:
        clock: Gives the time of new versions.
    """

    def __init__(self, clock: "Clock") -> None:
        self._now = checked_clock(clock)

    @abstractmethod
    def write(self, file: MemoryFile) -> str:
        """Add a file; return its path."""

    @abstractmethod
    def read(self, id: str) -> MemoryFile:  # noqa: A002 - the field's name everywhere
        """Return the file with an id."""

    @abstractmethod
    def list(self, *, order: FileOrder = "id") -> Files:
        """Return all files."""

    def new_version(
        self,
        id: str,  # noqa: A002 - the field's name everywhere
        content: str,
        *,
        session_id: str | None = None,
        trigger: str | None = None,
        category: str | None = None,
    ) -> MemoryFile:
        """Add a file that replaces another one of the same scope; the other stays as it is.

        It has a new id, the next version, and copies of the related edges and further keys.

        Args:
            id: Id of the file that it replaces.
            content: The new text.
            session_id: That of the replaced file if None.
            trigger: That of the replaced file if None.
            category: That of the replaced file if None.

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
        if isinstance(max_depth, bool) or not isinstance(max_depth, int) or max_depth < 1:
            raise InvalidArgumentError(
                f"max_depth must be an int of at least 1, got {described(max_depth)}"
            )
        chain = [self.read(id)]
        while len(chain) < max_depth and chain[-1].supersedes:
            try:
                chain.append(self.read(chain[-1].supersedes))
            except (MemoryFileNotFoundError, InvalidArgumentError):
                raise VersionChainError(
                    f"{shown_id(chain[-1].id)} supersedes {shown_id(chain[-1].supersedes)}, which "
                    f"is missing; {len(chain)} of its versions are there"
                ) from None
        return chain[::-1]

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
        files = self.list()
        latest = {file.id: file for file in files}.get(checked_id(id))
        if latest is None:
            raise MemoryFileNotFoundError(f"there is no memory file {shown_id(id)}")
        successors = _successors(files)
        seen = {latest.id}
        while latest.id in successors:
            latest = successors[latest.id]
            if latest.id in seen:
                raise VersionChainError(
                    f"cycle detected: {shown_id(latest.id)} supersedes a file that supersedes it; "
                    "remove the key supersedes from one of them"
                )
            seen.add(latest.id)
        return latest


def _successors(files: Iterable[MemoryFile]) -> dict[str, MemoryFile]:
    """Return the file that counts as the successor of each, by the id of the superseded one."""
    found: dict[str, MemoryFile] = {}
    for file in sorted(files, key=lambda one: one.id, reverse=True):
        if file.supersedes is None:
            continue
        known = found.get(file.supersedes)
        if known is None or file.updated_at >= known.updated_at:
            found[file.supersedes] = file
    return found


def order_key(order: object) -> Callable[[MemoryFile], tuple[object, ...]]:
    """Return the key of a list's order.

    Raises:
        InvalidArgumentError: If the order is unknown.
    """
    validation.word("order", order, _ORDERS)
    if order == "id":
        return lambda file: (file.id,)
    return lambda file: (file.created_at, file.id)
