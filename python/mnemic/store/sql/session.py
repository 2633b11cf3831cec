"""One connection of a store, leased to one thread."""

from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from mnemic.store.change_listeners import ChangedUser
    from mnemic.store.sql.dialect import Dialect

Columns: TypeAlias = tuple[Any, ...]

Condition: TypeAlias = tuple[str, list[Any]]
"""SQL, and the values bound to its placeholders."""


class SqlSession(Protocol):
    """Runs statements.

    Attributes:
        dialect: How the database writes them.
        changed_users: Agents and users whose entries the current write has changed.
    """

    changed_users: "set[ChangedUser]"

    @property
    def dialect(self) -> "Dialect":
        """How the database writes statements."""
        ...

    def fetch(self, sql: str, values: Sequence[Any] = ()) -> list[Columns]:
        """Run a statement; return all its rows."""
        ...

    def value(self, sql: str, values: Sequence[Any] = ()) -> Any:
        """Run a statement; return the first value of its only row."""
        ...

    def run(self, sql: str, values: Sequence[Any] = ()) -> int:
        """Run a statement; return the number of rows that it changed."""
        ...

    def run_all(self, sql: str, values: Sequence[Columns]) -> None:
        """Run a statement once for each of these values."""
        ...

    def batches(
        self, sql: str, values: Sequence[Any], size: int
    ) -> Generator[list[Columns], None, None]:
        """Run a statement; yield its rows in batches of `size`."""
        ...

    def parts(self, sql: str, values: Sequence[Any]) -> Generator[list[Columns], None, None]:
        """Run a statement; yield its rows in parts of a size that suits the database."""
        ...

    def one_moment(self) -> AbstractContextManager[None]:
        """Let all statements see one state; nothing if they do already."""
        ...

    def pipeline(self) -> AbstractContextManager[None]:
        """Send statements without waiting for those before, where they cross a network."""
        ...

    def fetch_checked(self, sql: str, values: Sequence[Any]) -> list[Columns]:
        """Return rows that are compared with their sums, after the changes of this write."""
        ...

    def stream(self, sql: str, values: Sequence[Any]) -> Generator[Columns, None, None]:
        """Run a statement, among reads of one moment; yield its rows one by one."""
        ...

    def lift_deadline(self) -> None:
        """Let the statements of a read that has a deadline run to their end from now on."""
        ...
