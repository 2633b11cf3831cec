"""What carries out each operation in the stores in SQL."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, ClassVar, Final, NamedTuple, TypeVar
from uuid import UUID

import msgspec

from mnemic.model import VerifyReport
from mnemic.reporting.progress import Report, silent
from mnemic.store import operations
from mnemic.store.adding import add_options
from mnemic.store.new_rows import stored_of
from mnemic.store.operations import Add, Read, Write
from mnemic.store.row_codec import RowCodec
from mnemic.store.sql import (
    adding,
    change_log,
    deletes,
    links,
    lists,
    reads,
    reembedding,
    replacing,
    sealing,
    updates,
)
from mnemic.store.sql.session import OpenedSql
from mnemic.store.sql.verification import SqlVerification

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
        carry_out: Writes; one that goes in parts also takes how many entries it deletes at most.
        may_seal: Whether it may seal entries, for which their agent needs a key.
        finish: Called after the commit of a write in parts, with the agent.
    """

    carry_out: Callable[..., Any]
    may_seal: bool = False
    finish: Callable[[RowCodec, str], object] | None = None


READS: Final[Mapping[type, Reading]] = {
    operations.AccessesSince: Reading(change_log.accesses_since, one_moment=True),
    operations.AgentFacts: Reading(change_log.agent_facts),
    operations.ChangedRows: Reading(change_log.changed_rows, one_moment=True),
    operations.CountToEmbed: Reading(reembedding.count_to_embed),
    operations.DistinctValues: Reading(lists.distinct),
    operations.EntriesById: Reading(reads.entries_by_id),
    operations.EntriesByRow: Reading(reads.entries_by_row),
    operations.EntryCount: Reading(lists.entry_count),
    operations.EntryPage: Reading(lists.entry_page),
    operations.Links: Reading(links.links, one_moment=True),
    operations.NeedVectors: Reading(replacing.needed_vectors, one_moment=True),
    operations.PositionAndRevision: Reading(change_log.position_and_revision),
    operations.RowsSince: Reading(change_log.rows_since, one_moment=True),
    operations.RowsToEmbed: Reading(reembedding.rows_to_embed),
    operations.ScopeStatistics: Reading(reads.statistics, one_moment=True),
    operations.SealedUnderOtherKeys: Reading(sealing.sealed_under_other_keys, one_moment=True),
    operations.StoredAmount: Reading(reads.stored_amount),
    operations.StoredEntries: Reading(reads.stored_entries, one_moment=True),
    operations.Successors: Reading(links.successors, one_moment=True),
    operations.Users: Reading(reads.users),
    operations.VectorsById: Reading(reads.vectors_by_id, one_moment=True),
    operations.VectorsOfRow: Reading(reads.vectors_of_row),
}


WRITES: Final[Mapping[type, Writing]] = {
    operations.AddEmbeddings: Writing(reembedding.add_embeddings),
    operations.AddLinks: Writing(links.add_links),
    operations.AddShadowVectors: Writing(reembedding.add_shadow_vectors),
    operations.Delete: Writing(deletes.delete),
    operations.DropShadowVectors: Writing(reembedding.drop_shadow_vectors),
    operations.EndRotation: Writing(sealing.end_rotation),
    operations.ForgetAgent: Writing(deletes.forget_agent, finish=sealing.forgotten),
    operations.Link: Writing(links.link),
    operations.Purge: Writing(deletes.purge),
    operations.Reseal: Writing(sealing.reseal),
    operations.Restore: Writing(deletes.restore),
    operations.SetExpiry: Writing(updates.set_expiry),
    operations.SoftDelete: Writing(deletes.soft_delete),
    operations.SwitchModel: Writing(reembedding.switch_model),
    operations.Unlink: Writing(links.unlink),
    operations.Update: Writing(updates.update, may_seal=True),
}


class SqlOperations(OpenedSql, ABC):
    """Carries out operations; see `Store`."""

    _reads: ClassVar[Mapping[type, Reading]] = READS

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
        codec, agent_id = self._codec, wanted.agent_id
        if isinstance(wanted, Add):
            job = adding.AddJob(add_options(codec, wanted), self._dialect)
            return self._submit(
                agent_id,
                job,
                lambda added: stored_of(codec, added, job.rows),
                after_accesses=wanted.runs_after_accesses,
            )
        writing = WRITES[type(wanted)]
        if wanted.goes_in_parts:
            return self._deletion(writing, wanted)
        if writing.may_seal:
            codec.prepare(agent_id)
        written: Future[Result] = self._submit(
            agent_id,
            lambda on: writing.carry_out(on, codec, wanted),
            after_accesses=wanted.runs_after_accesses,
        )
        return written

    def verify(self, *, repair: bool = False, report: Report = silent) -> VerifyReport:
        """Read everything, and compare it with what was counted; see `Store.verify`."""
        if repair:
            self._check_writable()
        found, broken = self._read(
            None, lambda on: self._verification(on, report).result(), one_moment=True
        )
        if repair:
            found = msgspec.structs.replace(found, **self._repaired())
        if broken is not None:
            broken.report = found
            raise broken
        return found

    @abstractmethod
    def _verification(self, on: Any, report: Report) -> SqlVerification:
        """Return what reads everything, at one moment."""

    @abstractmethod
    def _repaired(self) -> dict[str, Any]:
        """Repair what can be repaired; return what a report says of it."""

    def _deletion(self, writing: Writing, wanted: Write[Any]) -> Future[Any]:
        codec, agent_id, finish = self._codec, wanted.agent_id, writing.finish

        def finished(ids: list[UUID]) -> list[UUID]:
            if finish is not None:
                finish(codec, agent_id)
            return ids

        return self._write_in_parts(
            agent_id, lambda limit, on: writing.carry_out(on, codec, wanted, limit), finished
        )
