"""The store in PostgreSQL: one database for the agents of many processes and machines."""

import os
from collections.abc import Sequence
from concurrent.futures import Executor, Future
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

from mnemic.errors import StoreFileError
from mnemic.model.rows import RowBatch, State
from mnemic.model.timestamps import to_microseconds
from mnemic.reporting.progress import Report, silent
from mnemic.store.changes import COMMITTED, ChangeListener
from mnemic.store.futures import succeeded
from mnemic.store.operations import (
    AgentFacts,
    BuildVectorIndex,
    EntriesByRow,
    Nearest,
    PositionAndRevision,
    Read,
    RowsSince,
    Write,
)
from mnemic.store.postgres.cached_rows import CachedRows, RowChanges, cached_rows, row_changes
from mnemic.store.postgres.database import OpenedDatabase
from mnemic.store.postgres.maintenance import Verification, backup_to
from mnemic.store.postgres.nearest import VECTOR_READS
from mnemic.store.postgres.session import Columns, Session
from mnemic.store.postgres.stored import active_entries
from mnemic.store.postgres.target import target_of
from mnemic.store.row_codec import COLUMN_NAMES, ENCRYPTED, RowCodec
from mnemic.store.sealing_codec import PREFIX, SealingRowCodec, sealed_prefix
from mnemic.store.sql.change_log import position, rows_since
from mnemic.store.sql.operations import READS, SqlOperations
from mnemic.store.sql.sealing import SqlSealing
from mnemic.store.sql.verification import repaired_bytes

if TYPE_CHECKING:
    from mnemic.crypto import Encryption

Result = TypeVar("Result")

_CONTENT: Final = 1 + COLUMN_NAMES.index("content")
_UNKNOWN: bool | None = None


class PostgresStore(
    SqlOperations,
    SqlSealing,
    OpenedDatabase,
):
    """Keeps memories in the schema `mnemic` of a PostgreSQL database; see `Store`.

    A write runs in the calling thread, or in a thread of the store's own if the calling one runs an
    event loop. It holds a lock of its agent until its commit, so that changes are numbered in the
    order of the commits, a quota is never exceeded, and no write of one agent fails for another
    one. Reads wait for no write. Stores of one URL share their connections.

    Args:
        url: `postgresql://user@host/database`, with the options of libpq.
        read_only: Whether nothing may be changed. Then the tables must be there, and every write is
            a `ReadOnlyError`.
        codec: Codec of the entries; if None, plain text, or what the encryption makes of it.
        max_stale: Maximum seconds since the last sign of an unreachable server for which searches
            are answered from memory.
        row_security: Whether policies keep agents apart; they are put in force unless they are.
        encryption: Seals sensitive entries; None seals none, and cannot read those that are.

    Raises:
        StoreFileError: If the URL cannot be read.
        StoreUnavailableError: If the server cannot be reached.
        SchemaVersionError: If a newer mnemic made the tables, or an older one tables that are only
            to be read.
    """

    is_remote = True
    searches_vectors = True
    snapshot_folder = None
    _reads = MappingProxyType({**READS, **VECTOR_READS})

    def __init__(
        self,
        url: str,
        *,
        read_only: bool = False,
        codec: RowCodec | None = None,
        max_stale: float,
        row_security: bool = False,
        encryption: "Encryption | None" = None,
    ) -> None:
        super().__init__(
            target_of(url),
            self.codec_of(encryption) if codec is None else codec,
            read_only=read_only,
            max_stale=max_stale,
        )
        if row_security:
            try:
                self._database.connections.require_row_security()
            except BaseException:
                self._release()
                raise

    @property
    def executor(self) -> Executor:
        """Threads for blocking calls, as many as there are connections to the database."""
        return self._usable().workers.executor

    def read(self, wanted: Read[Result], *, deadline: float | None = None) -> Result:
        """Carry out a read; that of active rows from those held for searches, where they are."""
        held: Result | None = self._held(wanted, deadline)
        if held is not None:
            return held
        if isinstance(wanted, RowsSince):
            rows: Result = self._rows_since(wanted, deadline)
            return rows
        found = super().read(wanted, deadline=deadline)
        self._take_in(wanted, found)
        return found

    def _rows_since(self, wanted: RowsSince, deadline: float | None) -> Any:
        """Read rows for an index; hold them for searches, where all active ones are read."""
        database, agent_id = self._usable(), wanted.agent_id

        def work(on: Session) -> RowBatch:
            if wanted.sink is not None:  # a connection may have been lost in the midst of a load
                wanted.sink.restart()
            cached = CachedRows(position(on, agent_id))
            holds = wanted.state is State.ACTIVE
            batch = rows_since(on, self._codec, wanted, cached.put if holds else None)
            if holds and batch.since is None:
                database.cached[agent_id] = cached
            return batch

        return self._read(agent_id, work, deadline=deadline, one_moment=True)

    def write(self, wanted: Write[Result]) -> Future[Result]:
        """Hand in a write; an index is built outside a transaction."""
        if not isinstance(wanted, BuildVectorIndex):
            return super().write(wanted)
        return self._writable().workers.run(lambda: self._build(wanted.agent_id))

    def _build(self, agent_id: str) -> Any:
        """Build the approximate index of an agent's vectors; return whether there is one now."""
        model = self.read(AgentFacts(agent_id)).model
        return model is not None and self._database.vector_indexes.build(agent_id, model)

    def _take_in(self, wanted: Read[Any], found: Any) -> None:
        """Take in an agent's position, where a read has found it, and that it lacks an index."""
        if isinstance(wanted, PositionAndRevision):
            self._database.positions.advance({wanted.agent_id: found[0]})
        elif isinstance(wanted, Nearest) and found is not None:
            may_build = not self._database.connections.is_read_only
            if may_build and not (wanted.is_exact or found.approximate):
                self._database.vector_indexes.build_later(wanted.agent_id, wanted.model)

    def _held(self, wanted: Read[Any], deadline: float | None) -> Any:
        """Return active rows that are held for searches; None where some are not, or for others."""
        if not isinstance(wanted, EntriesByRow) or wanted.include_deleted:
            return None
        cached = self._cached_rows(wanted.agent_id, wanted.rows, deadline)
        if cached is None:
            return None
        return active_entries(self._codec, cached, wanted.scope, wanted.now)

    def _cached_rows(
        self, agent_id: str, rows: Sequence[int], deadline: float | None
    ) -> list[Columns] | None:
        database = self._usable()
        cached = database.cached.get(agent_id)
        if cached is None:
            return None
        is_behind = cached.position != self.known_position(agent_id)
        if is_behind and self.stale_since(agent_id) is None:
            is_current = cached.catch_up(
                lambda since: self._read(
                    agent_id,
                    lambda on: row_changes(on, agent_id, since),
                    deadline=deadline,
                    one_moment=True,
                )
            )
            if not is_current:
                database.cached.pop(agent_id, None)
                return None
        found = cached.of(rows)
        former = [] if found is None else self._under_former_keys(agent_id, found)
        if not former:
            return found
        cached.catch_up(
            lambda since: RowChanges(
                since,
                former,
                self._read(
                    agent_id, lambda on: cached_rows(on, agent_id, former), deadline=deadline
                ),
            )
        )
        return cached.of(rows)

    def _under_former_keys(self, agent_id: str, rows: Sequence[Columns]) -> list[int]:
        """Return the numbers of sealed rows that no present key of their agent opens.

        They were resealed since they were read: that changes nothing of them, and is not logged.
        """
        sealed = [row for row in rows if row[ENCRYPTED]]
        if not (sealed and isinstance(self._codec, SealingRowCodec)):
            return []
        known = set(map(sealed_prefix, self._codec.keyring.keys(agent_id).sealers))
        return [row[0] for row in sealed if row[_CONTENT][:PREFIX] not in known]

    def cached_bytes(self, agent_id: str) -> int:
        """Return the bytes of an agent's rows that are cached for searches; 0 if they are not."""
        cached = self._database.cached.get(agent_id)
        return 0 if cached is None else cached.nbytes

    def release(self, agent_id: str) -> None:
        """Hold an agent's rows no longer, until `RowsSince` gives them all again."""
        self._database.cached.pop(agent_id, None)

    def touch(self, agent_id: str, rows: Sequence[int], now: datetime) -> None:
        """Record accesses of rows, written later together."""
        self._writable().touch(agent_id, list(rows), to_microseconds(now))

    def write_accesses(self) -> Future[None]:
        """Write the accesses recorded so far."""
        database = self._writable()
        return database.write_accesses() if database.accesses.is_pending() else succeeded(None)

    def _verification(self, on: Session, report: Report) -> Verification:
        return Verification(on, self._codec, report)

    def _repaired(self) -> dict[str, Any]:
        agents = self._database.write(None, lambda on: repaired_bytes(on, self._codec))
        return {"repaired_agents": tuple(sorted(agents))}

    def locked_snapshots(self, *, wait: float = 0.0) -> NoReturn:
        """Raise StoreFileError: a server has no place for snapshots."""
        del wait
        raise StoreFileError("this store keeps no snapshots of indexes; see `snapshot_folder`")

    def watch(self, listener: ChangeListener) -> None:
        """Call a method after each change that this process commits to the database."""
        COMMITTED.add(self._usable().connections.database, listener)

    def erase(self, *, soon: bool = False) -> Future[bool | None]:  # noqa: ARG002 # pyright: ignore[reportUnusedParameter] - nothing is erased
        """Return None: deleted rows stay in the server's files until its tables are rewritten.

        Its write-ahead log and its backups hold them for as long as they are kept.
        """
        self._writable()
        return succeeded(_UNKNOWN)

    def backup(self, target: str | os.PathLike[str], *, report: Report = silent) -> None:
        """Copy everything, as of one moment, to another database, named by its URL."""
        self._usable()
        place = target_of(os.fsdecode(target))
        self._read(None, lambda on: backup_to(on, place, report), one_moment=True)
