"""The database of a store, and its connections, each leased to one thread."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias, TypeVar
from uuid import UUID

from mnemic.model.ids import canonical, stored_spelling
from mnemic.store.group_commit import Finish, Job, unchanged
from mnemic.store.row_codec import RowCodec

if TYPE_CHECKING:
    from mnemic.store.changes import ChangedUser
    from mnemic.store.sql.dialect import Dialect

Result = TypeVar("Result")

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

    def fetch_checked(self, sql: str, values: Sequence[Any]) -> list[Columns]:
        """Return rows that are compared with their sums, after the changes of this write."""
        ...

    def stream(self, sql: str, values: Sequence[Any]) -> Generator[Columns, None, None]:
        """Run a statement, among reads of one moment; yield its rows one by one."""
        ...

    def lift_deadline(self) -> None:
        """Let the statements of a read that has a deadline run to their end from now on."""
        ...


Deletion: TypeAlias = Callable[[int | None, SqlSession], list[UUID]]
"""Deletes at most so many entries, in a transaction; returns their ids."""


class OpenedSql(ABC):
    """One database, which every part of a store reads and writes."""

    _codec: RowCodec
    _is_read_only: bool
    _dialect: "ClassVar[Dialect]"

    def stored_agent_id(self, agent_id: str) -> str:
        """Return an agent's id as it is stored."""
        sql = "SELECT agent_id FROM mnemic.agent_memory_agents"
        # Also read where nothing is looked up, so that a closed store says so.
        stored = self._read(
            None, lambda on: on.fetch(sql) if canonical(agent_id) is not None else []
        )
        return stored_spelling(agent_id, [name for (name,) in stored if isinstance(name, str)])

    @abstractmethod
    def _read(
        self,
        agent_id: str | None,
        work: Callable[[SqlSession], Result],
        *,
        deadline: float | None = None,
        one_moment: bool = False,
        apart: bool = False,
    ) -> Result:
        """Run reads on one connection.

        Args:
            agent_id: The agent whose rows they may see; None is every agent.
            work: The reads; on a lost connection they run once more.
            deadline: Statements that run past it raise DeadlineExceededError; None is no limit.
            one_moment: Whether all of them see the same state.
            apart: Whether the calling thread may be reading already.
        """

    @abstractmethod
    def _check_writable(self) -> None:
        """Raise a typed error if nothing may be written."""

    @abstractmethod
    def _submit(
        self,
        agent_id: str,
        job: Job,
        finish: Finish = unchanged,
        *,
        is_idempotent: bool = False,
        after_accesses: bool = False,
    ) -> Future[Any]:
        """Hand in a write of an agent's rows, which runs in a transaction with others.

        Args:
            agent_id: The agent.
            job: The write.
            finish: Turns its result into that of the future, after the commit.
            is_idempotent: Whether doing it twice is as good as once.
            after_accesses: Whether it must see all accesses recorded before it.
        """

    @abstractmethod
    def _write_in_parts(
        self,
        agent_id: str,
        deletion: Deletion,
        finish: Callable[[list[UUID]], list[UUID]] = unchanged,
    ) -> Future[list[UUID]]:
        """Hand in a deletion; a full disk may have it go on in several transactions.

        Args:
            agent_id: The agent.
            deletion: The deletion.
            finish: Turns what is deleted into the result, after the commit.
        """
