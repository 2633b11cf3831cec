"""What the parts of a store share: its database, and the codec of its rows."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, ClassVar, NamedTuple, TypeAlias, TypeVar
from uuid import UUID

from mnemic.model.agent_id import canonical, stored_spelling
from mnemic.store.group_commit import Finish, Job, unchanged
from mnemic.store.operations import Read, Write
from mnemic.store.row_codec import RowCodec
from mnemic.store.sql.dialect import Dialect
from mnemic.store.sql.session import SqlSession

Result = TypeVar("Result")


class Reading(NamedTuple):
    """How a read is carried out.

    Attributes:
        carry_out: Reads.
        one_moment: Whether it takes several statements, which must see the same state.
    """

    carry_out: Callable[[Any, RowCodec, Any], Any]
    one_moment: bool = False


class Writing(NamedTuple):
    """How a write is carried out.

    Attributes:
        carry_out: Writes; a deletion in parts also takes how many entries it deletes at most.
        may_seal: Whether it may seal entries, for which their agent needs a key.
        in_parts: Whether a full disk may have it go on in several transactions.
        finish: Called after the commit of a write in parts, with the agent.
    """

    carry_out: Callable[..., Any]
    may_seal: bool = False
    in_parts: bool = False
    finish: Callable[[RowCodec, str], object] | None = None


Deletion: TypeAlias = Callable[[int | None, SqlSession], list[UUID]]
"""Deletes at most so many entries, in a transaction; returns their ids."""


class OpenedSql(ABC):
    """One database, which every part of a store reads and writes."""

    _codec: RowCodec
    _is_read_only: bool
    _dialect: ClassVar[Dialect]
    _reads: ClassVar[Mapping[type, Reading]]
    _writes: ClassVar[Mapping[type, Writing]]

    def read(self, wanted: Read[Result], *, deadline: float | None = None) -> Result:
        """Carry out a read; see `Store.read`."""
        reading, codec = self._reads[type(wanted)], self._codec
        result: Result = self._read(
            wanted.agent_id,
            lambda on: reading.carry_out(on, codec, wanted),
            deadline=deadline,
            one_moment=reading.one_moment,
        )
        return result

    def write(self, wanted: Write[Result]) -> Future[Result]:
        """Hand in a write; see `Store.write`."""
        writing, codec, agent_id = self._writes[type(wanted)], self._codec, wanted.agent_id
        if writing.in_parts:
            return self._deletion(writing, wanted)
        if writing.may_seal:
            self._check_writable()
            codec.prepare(agent_id)
        written: Future[Result] = self._write(
            agent_id,
            lambda on: writing.carry_out(on, codec, wanted),
            after_accesses=wanted.runs_after_accesses,
        )
        return written

    def _deletion(self, writing: Writing, wanted: Write[Any]) -> Future[Any]:
        codec, agent_id, finish = self._codec, wanted.agent_id, writing.finish

        def finished(ids: list[UUID]) -> list[UUID]:
            if finish is not None:
                finish(codec, agent_id)
            return ids

        return self._write_in_parts(
            agent_id, lambda limit, on: writing.carry_out(on, codec, wanted, limit), finished
        )

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
    def _write(
        self,
        agent_id: str,
        job: Callable[[SqlSession], Result],
        *,
        is_idempotent: bool = False,
        after_accesses: bool = False,
    ) -> Future[Result]:
        """Hand in a write of an agent's rows, which runs in a transaction with others.

        Args:
            agent_id: The agent.
            job: The write.
            is_idempotent: Whether doing it twice is as good as once.
            after_accesses: Whether it must see all accesses recorded before it.
        """

    @abstractmethod
    def _submit(
        self, agent_id: str, job: Job, finish: Finish = unchanged, *, after_accesses: bool = False
    ) -> Future[Any]:
        """Hand in a job of an agent; turn its result into that of the future, after the commit."""

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
