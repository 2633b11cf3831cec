"""What the parts of a store share: its database, and the codec of its rows."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import Future
from typing import ClassVar, TypeVar

from mnemic.store.row_codec import RowCodec
from mnemic.store.sql.dialect import Dialect
from mnemic.store.sql.session import SqlSession

Result = TypeVar("Result")


class OpenedSql(ABC):
    """One database, which every part of a store reads and writes."""

    _codec: RowCodec
    _is_read_only: bool
    _dialect: ClassVar[Dialect]

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
    def _write(
        self, agent_id: str, job: Callable[[SqlSession], Result], *, is_idempotent: bool = False
    ) -> Future[Result]:
        """Hand in a write of an agent's rows, which runs in a transaction with others.

        Args:
            agent_id: The agent.
            job: The write.
            is_idempotent: Whether doing it twice is as good as once.
        """
