"""The store in PostgreSQL: one database for the agents of many processes and machines."""

import os
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Executor, Future
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar
from uuid import UUID

import msgspec
import numpy as np
from numpy.typing import NDArray

from mnemic.errors import InvalidEntryError, SealBrokenError, StoreClosedError
from mnemic.licensing import Quota
from mnemic.model import (
    LinkType,
    MemoryEntry,
    MemoryLink,
    OnConflict,
    OnDuplicate,
    Scope,
    VerifyReport,
)
from mnemic.model.filter import EVERY_ENTRY, Criteria
from mnemic.model.new_entry import NewEntry
from mnemic.model.rows import RowBatch, State
from mnemic.model.timestamps import to_microseconds
from mnemic.protocols import UserLimit
from mnemic.reporting.progress import Report, silent
from mnemic.store.added import stored_of, stored_vectors
from mnemic.store.base import BatchSink
from mnemic.store.change_listeners import COMMITTED, ChangeListener
from mnemic.store.embedding_model import model_of
from mnemic.store.futures import succeeded
from mnemic.store.new_rows import AddOptions, encoded
from mnemic.store.postgres import (
    change_log,
    changing,
    links,
    reembedding,
    verification,
    writes,
)
from mnemic.store.postgres.backup import backup_to
from mnemic.store.postgres.cached_rows import CachedRows, cached_rows, row_changes
from mnemic.store.postgres.database import SHARED, Database
from mnemic.store.postgres.jobs import AgentAddJob, AgentJob
from mnemic.store.postgres.nearest import entries_among, nearest, rows_without_vectors
from mnemic.store.postgres.sealing import PostgresSealing
from mnemic.store.postgres.session import Columns, Session
from mnemic.store.postgres.store_reads import PostgresReads
from mnemic.store.postgres.target import target_of
from mnemic.store.postgres.vectors import MAX_DIMENSIONS
from mnemic.store.quota import NO_ENTRY_LIMITS, EntryLimits, Quotas
from mnemic.store.row_codec import RowCodec
from mnemic.store.snapshots import NoSnapshots
from mnemic.store.values import LogPosition, Model, StoredLink, UpdatedEntries, WriteResult
from mnemic.store.vector_search import NearestRequest, SelectedRows

if TYPE_CHECKING:
    from mnemic.crypto import Encryption

Result = TypeVar("Result")

_UNKNOWN: bool | None = None


class PostgresStore(PostgresReads, PostgresSealing, NoSnapshots):
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
        target = target_of(url)
        self.path = target.shown
        self._codec = self.codec_of(encryption) if codec is None else codec
        self._max_stale = max_stale
        self._database = SHARED.opened(target, read_only=read_only)
        self._release = weakref.finalize(self, SHARED.released, self._database)
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

    def _usable(self) -> Database:
        """Return the database; raise a typed error if it cannot be read."""
        if not self._release.alive:
            raise StoreClosedError(f"the memory was closed ({self.path})")
        self._database.connections.check_usable()
        return self._database

    def _writable(self) -> Database:
        """Return the database; raise a typed error if it cannot be written."""
        database = self._usable()
        database.connections.check_writable()
        return database

    def _read(
        self,
        agent_id: str | None,
        work: Callable[[Session], Result],
        *,
        deadline: float | None = None,
        one_moment: bool = False,
    ) -> Result:
        agents = None if agent_id is None else [agent_id]
        connections = self._usable().connections
        return connections.read(agents, work, deadline=deadline, one_moment=one_moment)

    def _prepare(self, agent_id: str) -> None:
        """Make the key that seals entries of an agent, if it has none."""
        self._writable()
        self._codec.prepare(agent_id)

    def _write(self, agent_id: str, job: Callable[[Session], Result]) -> Future[Result]:
        database = self._writable()
        return database.writer_of(agent_id).write(AgentJob(agent_id, job))

    def stale_since(self, agent_id: str, reads_since: float | None = None) -> datetime | None:
        """Since when changes of other processes may be missing; None while none can be."""
        return self._database.positions.stale_since(agent_id, reads_since)

    def position(self, agent_id: str) -> LogPosition:
        """Return the agent's position in its change log and access log."""
        return self._usable().position(agent_id)

    def position_and_revision(
        self, scope: Scope, *, deadline: float | None = None
    ) -> tuple[LogPosition, int]:
        """Return the agent's position and the revision of the scope's user."""
        found = self._read(
            scope.agent_id,
            lambda on: change_log.position_and_revision(on, scope),
            deadline=deadline,
        )
        self._database.positions.advance({scope.agent_id: found[0]})
        return found

    def known_position(self, agent_id: str) -> LogPosition:
        """Return the agent's position as far as searches of this process have asked."""
        known = self._usable().positions.known(agent_id)
        return self.latest_position(agent_id) if known is None else known

    def latest_position(self, agent_id: str, *, deadline: float | None = None) -> LogPosition:
        """Return the agent's position, which the server is asked for, for a search that begins."""
        return self._usable().positions.latest(agent_id, self._max_stale, deadline)

    def rows_since(
        self,
        agent_id: str,
        model: Model | None,
        seq: int | None,
        sink: BatchSink | None = None,
        *,
        state: State = State.ACTIVE,
        with_sensitive: bool = False,
        deadline: float | None = None,
    ) -> RowBatch:
        """Return the changes that bring an index from change `seq` to the present."""
        database = self._usable()

        def work(on: Session) -> RowBatch:
            cached = CachedRows(change_log.position(on, agent_id))
            holds = state is State.ACTIVE
            batch = change_log.rows_since(
                on,
                agent_id,
                model,
                seq,
                sink,
                codec=self._codec,
                state=state,
                with_sensitive=with_sensitive,
                hold=cached.put if holds else None,
            )
            if holds and batch.since is None:
                database.cached.replace(agent_id, cached)
            return batch

        limit = None if seq is None else deadline
        return self._read(agent_id, work, deadline=limit, one_moment=True)

    def cached_bytes(self, agent_id: str) -> int:
        """Return the bytes of an agent's rows that are cached for searches; 0 if they are not."""
        cached = self._database.cached.of(agent_id)
        return 0 if cached is None else cached.nbytes

    def release(self, agent_id: str) -> None:
        """Hold an agent's rows no longer, until `rows_since` gives them all again."""
        self._database.cached.release(agent_id)

    def _cached_rows(
        self, agent_id: str, rows: Sequence[int], deadline: float | None
    ) -> list[Columns] | None:
        database = self._usable()
        cached = database.cached.of(agent_id)
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
                database.cached.release(agent_id)
                return None
        found = cached.of(rows)
        former = [] if found is None else self._under_former_keys(agent_id, found)
        if not former:
            return found
        cached.renew(
            former,
            lambda: self._read(
                agent_id, lambda on: cached_rows(on, agent_id, former), deadline=deadline
            ),
        )
        return cached.of(rows)

    def nearest(
        self, wanted: NearestRequest, *, deadline: float | None = None
    ) -> SelectedRows | None:
        """Return memories among which the most similar ones are; see `VectorSearch.nearest`."""
        if wanted.model[1] > MAX_DIMENSIONS:
            return None
        found = self._read(
            wanted.scope.agent_id,
            lambda on: nearest(on, self._codec, wanted),
            deadline=deadline,
            one_moment=not wanted.is_exact,
        )
        if found is not None and not (wanted.is_exact or found.approximate):
            indexes = self._usable().vector_indexes
            if not self._database.connections.is_read_only:
                indexes.build_later(wanted.scope.agent_id, wanted.model)
        return found

    def active_rows(
        self, scope: Scope, model: Model | None, *, deadline: float | None = None
    ) -> SelectedRows | None:
        """Return all active rows of a scope with vectors and links."""

        def work(on: Session) -> SelectedRows:
            batch, rows = change_log.rows_of(on, self._codec, scope, model)
            return SelectedRows(batch, entries_among(self._codec, rows))

        return self._read(scope.agent_id, work, deadline=deadline, one_moment=True)

    def rows_without_vectors(
        self,
        agent_id: str,
        model: Model,
        among: Sequence[int] | None = None,
        *,
        deadline: float | None = None,
    ) -> list[int]:
        """Return the active rows, of an agent or among some, without a vector of a model."""
        return self._read(
            agent_id,
            lambda on: rows_without_vectors(on, self._codec, agent_id, model[0], among),
            deadline=deadline,
        )

    def create_vector_index(self, agent_id: str) -> bool:
        """Build the approximate index of an agent's vectors; return whether there is one now."""
        model = self.embedding_model(agent_id)
        return model is not None and self._writable().vector_indexes.build(agent_id, model)

    def add(
        self,
        agent_id: str,
        entries: Sequence[NewEntry],
        *,
        now: datetime,
        quota: Quota | None = None,
        user_quota: UserLimit | None = None,
        entry_limits: EntryLimits = NO_ENTRY_LIMITS,
        on_conflict: OnConflict = "raise",
        on_duplicate: OnDuplicate = "keep",
        is_import: bool = False,
    ) -> Future[WriteResult]:
        """Store entries of this agent, all or none, with the embeddings they carry."""
        for new in entries:
            if new.entry.agent_id != agent_id:
                raise InvalidEntryError(
                    f"memory {new.entry.id} is agent {new.entry.agent_id!r}'s, not {agent_id!r}'s"
                )
        model = model_of(new.entry for new in entries)
        codec = self._codec
        database = self._writable()
        key = codec.prepare(agent_id)
        rows = encoded(codec, entries, list(map(stored_vectors, entries)), model and model[0])
        quotas = Quotas(quota, user_quota, entry_limits)
        rules = AddOptions(
            codec, to_microseconds(now), model, quotas, on_duplicate, is_import, on_conflict, key
        )
        # They are those of an entry that is replaced, or decide which entries go first.
        if on_conflict == "replace" or entry_limits.evicts:
            self._write_pending_accesses(agent_id)
        job = AgentAddJob(agent_id, rows, rules)
        writer = database.writer_of(agent_id)
        return writer.write(job, lambda added: stored_of(codec, added, job.rows))

    def _write_pending_accesses(self, agent_id: str) -> None:
        """Hand in the writing of an agent's accesses before the next write."""
        database = self._writable()
        if database.accesses.is_pending():
            database.write_accesses_of(agent_id)

    def add_embeddings(
        self,
        agent_id: str,
        model: str,
        contents: Mapping[int, str],
        vectors: Sequence[NDArray[np.float32]],
    ) -> Future[None]:
        """Give rows the vectors of their contents; those that changed are passed over."""
        given = {
            row: (content, parts)
            for (row, content), parts in zip(contents.items(), vectors, strict=True)
        }
        known = model, vectors[0].shape[1] if vectors else 0
        return self._write(
            agent_id, lambda on: writes.add_embeddings(on, self._codec, agent_id, given, known)
        )

    def soft_delete(self, scope: Scope, entry_id: UUID, now: datetime) -> Future[bool | None]:
        """Mark an entry as deleted; see `Store.soft_delete`."""
        time = to_microseconds(now)
        return self._write(
            scope.agent_id, lambda on: changing.soft_delete(on, scope, entry_id, time)
        )

    def restore(
        self, scope: Scope, entry_id: UUID, *, oldest: datetime, now: datetime
    ) -> Future[bool]:
        """Take a forgotten entry back; return False if there is none forgotten since `oldest`."""
        times = to_microseconds(oldest), to_microseconds(now)
        return self._write(scope.agent_id, lambda on: changing.restore(on, scope, entry_id, *times))

    def delete(self, scope: Scope, entry_id: UUID) -> Future[list[UUID]]:
        """Delete an entry permanently, marked as deleted or not; return its id."""
        return self._write(
            scope.agent_id, lambda on: changing.delete(on, self._codec, scope, entry_id)
        )

    def update(
        self,
        scope: Scope,
        entry_id: UUID,
        change: Callable[[MemoryEntry], MemoryEntry],
        embedded: tuple[str, NDArray[np.float32]] | None = None,
        *,
        now: datetime,
        quota: Quota | None = None,
        user_quota: UserLimit | None = None,
        entry_limits: EntryLimits = NO_ENTRY_LIMITS,
        include_archived: bool = False,
        replace_vectors: bool = False,
    ) -> Future[MemoryEntry | None]:
        """Change an entry; return its new state, or None if the scope has no such entry."""
        time = to_microseconds(now)
        self._prepare(scope.agent_id)
        if entry_limits.evicts:
            self._write_pending_accesses(scope.agent_id)
        return self._write(
            scope.agent_id,
            lambda on: changing.update(
                on,
                self._codec,
                scope,
                entry_id,
                change,
                vectors=embedded,
                now=time,
                quotas=Quotas(quota, user_quota, entry_limits),
                include_archived=include_archived,
                replace_vectors=replace_vectors,
            ),
        )

    def set_expiry(
        self, scope: Scope, ids: Sequence[UUID], expires_at: datetime | None, *, now: datetime
    ) -> Future[int]:
        """Set the expiry of the active entries with these ids; return the number of changes."""
        new = None if expires_at is None else to_microseconds(expires_at)
        time = to_microseconds(now)
        return self._write(
            scope.agent_id,
            lambda on: changing.set_expiry(on, self._codec, scope, ids, new, now=time),
        )

    def soft_delete_all(
        self, scope: Scope, now: datetime, criteria: Criteria = EVERY_ENTRY
    ) -> Future[list[UUID]]:
        """Mark the selected entries of a scope as deleted; return the ids of those marked now."""
        time = to_microseconds(now)
        return self._write(
            scope.agent_id,
            lambda on: changing.soft_delete_all(on, self._codec, scope, criteria, time),
        )

    def delete_all(self, scope: Scope, criteria: Criteria = EVERY_ENTRY) -> Future[list[UUID]]:
        """Delete the selected entries of a scope permanently; return their ids."""
        return self._write(
            scope.agent_id, lambda on: changing.delete_all(on, self._codec, scope, criteria)
        )

    def purge(
        self, scope: Scope, oldest: datetime, expired: datetime | None = None
    ) -> Future[list[UUID]]:
        """Delete permanently what was deleted or expired before `oldest`; return the ids."""
        times = to_microseconds(oldest), None if expired is None else to_microseconds(expired)
        return self._write(
            scope.agent_id, lambda on: changing.purge(on, self._codec, scope, *times)
        )

    def update_all(
        self,
        scope: Scope,
        criteria: Criteria,
        change: Callable[[MemoryEntry], MemoryEntry],
        embedded: tuple[str, NDArray[np.float32]] | None = None,
        *,
        now: datetime,
        quota: Quota | None = None,
        user_quota: UserLimit | None = None,
        entry_limits: EntryLimits = NO_ENTRY_LIMITS,
        include_archived: bool = False,
    ) -> Future[UpdatedEntries]:
        """Change the selected entries of a scope, all or none; return those changed."""
        time = to_microseconds(now)
        self._prepare(scope.agent_id)
        if entry_limits.evicts:
            self._write_pending_accesses(scope.agent_id)
        return self._write(
            scope.agent_id,
            lambda on: changing.update_all(
                on,
                self._codec,
                scope,
                criteria,
                change,
                vectors=embedded,
                now=time,
                quotas=Quotas(quota, user_quota, entry_limits),
                include_archived=include_archived,
            ),
        )

    def link(self, scope: Scope, wanted: MemoryLink, *, now: datetime) -> Future[MemoryLink]:
        """Write a link between two entries of a scope; return its new state."""
        time = to_microseconds(now)
        return self._write(
            scope.agent_id, lambda on: links.link(on, self._codec, scope, wanted, time)
        )

    def unlink(
        self, scope: Scope, from_id: UUID, to_id: UUID, kind: LinkType | None
    ) -> Future[int]:
        """Delete the links from one entry of a scope to another; return their number."""
        return self._write(
            scope.agent_id,
            lambda on: links.unlink(on, self._codec, scope, from_id, to_id, kind=kind),
        )

    def add_links(self, scope: Scope, new: Sequence[StoredLink]) -> Future[int]:
        """Write links of any type between entries of a scope; return how many are new."""
        return self._write(scope.agent_id, lambda on: links.add_links(on, self._codec, scope, new))

    def add_shadow_vectors(
        self,
        agent_id: str,
        model: str,
        entries: Mapping[int, MemoryEntry],
        vectors: Mapping[int, NDArray[np.float32]],
    ) -> Future[int]:
        """Store shadow vectors; return of how many rows."""
        return self._write(
            agent_id,
            lambda on: reembedding.add_shadow_vectors(
                on, self._codec, agent_id, model, entries, vectors=vectors
            ),
        )

    def drop_shadow_vectors(self, agent_id: str, model: str | None) -> Future[int]:
        """Delete the shadow vectors of a model, or of all; return of how many entries."""
        return self._write(
            agent_id, lambda on: reembedding.drop_shadow_vectors(on, agent_id, model)
        )

    def switch_model(
        self, agent_id: str, model: Model, skipped: Collection[int] = (), max_missing: int = 0
    ) -> Future[bool]:
        """Make the shadow vectors of a model the agent's own, unless entries lack them."""
        rows = frozenset(skipped)
        return self._write(
            agent_id, lambda on: reembedding.switch_model(on, agent_id, model, rows, max_missing)
        )

    def touch(self, agent_id: str, rows: Sequence[int], now: datetime) -> None:
        """Record accesses of rows, written later together."""
        self._writable().touch(agent_id, list(rows), to_microseconds(now))

    def has_pending_accesses(self, agent_id: str, rows: Sequence[int]) -> bool:
        """Return whether accesses of any of these rows may not be written yet."""
        return self._database.accesses.has(agent_id, rows)

    def write_accesses(self) -> Future[None]:
        """Write the accesses recorded so far."""
        database = self._writable()
        return database.write_accesses() if database.accesses.is_pending() else succeeded(None)

    def verify(self, *, repair: bool = False, report: Report = silent) -> VerifyReport:
        """Read all memories and compare them with what was counted; see `Store.verify`."""
        if repair:
            self._writable()
        found, broken = self._read(None, lambda on: self._verified(on, report), one_moment=True)
        if repair:
            agents = self._database.write(None, lambda on: verification.repair(on, self._codec))
            found = msgspec.structs.replace(found, repaired_agents=tuple(agents))
        if broken is not None:
            broken.report = found
            raise broken
        return found

    def _verified(
        self, session: Session, report: Report
    ) -> tuple[VerifyReport, SealBrokenError | None]:
        walk = verification.Verification(session, self._codec, report)
        return walk.report(), walk.broken

    def watch(self, listener: ChangeListener) -> None:
        """Call a method after each change that this process commits to the database."""
        COMMITTED.add(self._usable().connections.database, listener)

    def erase(self) -> Future[bool | None]:
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

    def close(self) -> None:
        """Finish submitted writes, write accesses, and release the connections."""
        if self._release.alive and not self._database.connections.is_foreign:
            self._database.settle()
        self._release()
