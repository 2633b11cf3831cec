"""The contract of every store."""

import os
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Executor, Future
from datetime import datetime
from typing import Protocol, TypeVar

from mnemic.arrays import Float32Array, Int64Array
from mnemic.crypto import Encryption
from mnemic.model import (
    MemoryEntry,
    VerifyReport,
)
from mnemic.model.rows import Record, RowBatch, State
from mnemic.reporting.progress import Report, silent
from mnemic.store.changes import ChangeListener
from mnemic.store.operations import Read, Write
from mnemic.store.snapshots import Snapshots
from mnemic.store.values import (
    AccessCount,
    LogPosition,
    Model,
)

Result = TypeVar("Result")


class Sealing(Protocol):
    """Seals entries where they are stored, with a key of their agent; see `Store`.

    A sealed entry that cannot be opened, because it was changed, is an error of reads of that entry
    alone; reads of many leave it out, log it, and count it in `stats`. Without encryption sealed
    entries do not exist for reads and changes, but for `stats`; deletions still reach them, by id
    or as all of a scope.
    """

    def marked(self, entry: MemoryEntry) -> MemoryEntry:
        """Return an entry, marked as encrypted if it is to be sealed.

        Raises:
            DetectorError: If the detector of sensitive texts fails.
            KeyUnavailableError: If it is marked already, and there is no encryption.
        """
        ...

    def check_key(self, agent_id: str) -> None:
        """Check the keys of an agent, and make one if its entries are to be sealed.

        Raises:
            WrongKeyError: If entries are sealed under a key that is not given.
            KeyUnavailableError: If a key provider fails.
            SealBrokenError: If what is stored of a key is damaged.
        """
        ...

    def begin_rotation(self, agent_id: str, encryption: Encryption) -> None:
        """Seal entries of an agent under the current key of these options from now on.

        Entries that are sealed under other keys can be read all the while; `Reseal` seals them
        again.

        Raises:
            InvalidArgumentError: If the store was opened without encryption.
            WrongKeyError: If the options lack a key under which entries are sealed.
            KeyUnavailableError: If a key provider fails.
        """
        ...


class BatchSink(Protocol):
    """Receives a full load in batches: all records, then the vectors."""

    def restart(self) -> None:
        """Forget what came before: the store reads all rows anew, in a later state."""
        ...

    def add_records(self, records: list[Record]) -> None:
        """Add records of rows."""
        ...

    def add_vectors(self, rows: Int64Array, vectors: Float32Array) -> None:
        """Add vectors, shape (n, dim), of rows, shape (n,), whose records were added before.

        All chunks of one row arrive in one call, next to each other.
        """
        ...


class Store(Sealing, Snapshots, Protocol):
    """Durable storage of memories. The store is the source of truth; an index is a cache of it.

    What is read and written are operations, each a record of `mnemic.store.operations`; their
    promises stand there. `tests/store` checks them on any store that a URL opens.

    Threads:
        Every method may be called from any thread, and by several at once. Reads run in the
        calling thread. Called in a thread that runs an event loop, a write never blocks it;
        elsewhere the store may carry it out in the calling thread and return a finished Future.
        Long maintenance (`verify`, `backup`, `close`) blocks.

    Accesses:
        Accesses are no changes. `touch` collects them in memory and never waits; they are written
        with later writes, after about a second, or by `write_accesses` and `close`. A crash may
        lose those of the last second.

    Raises:
        StoreClosedError: By every method after `close`.
        ReadOnlyError: By methods that write, if the store was opened read-only.
        StoreError: By any method; its subclasses name the problem with the file or the disk.
    """

    is_remote: bool
    """Whether each read is a round trip to a server, and rows are held here for searches."""

    searches_vectors: bool
    """Whether it carries out `Nearest`, `ActiveRows` and `RowsWithoutVectors`."""

    def read(self, wanted: Read[Result], *, deadline: float | None = None) -> Result:
        """Carry out a read; see `mnemic.store.operations.Read`."""
        ...

    def write(self, wanted: Write[Result]) -> Future[Result]:
        """Hand in a write; see `mnemic.store.operations.Write`."""
        ...

    def stale_since(self, agent_id: str, reads_since: float | None = None) -> datetime | None:
        """Since when changes of other processes may be missing in reads; None while none can be.

        A remote store gives out its `known_position` while its server is unreachable, for a limited
        time.

        Args:
            agent_id: In reads of this agent.
            reads_since: In those from this moment on, of `time.monotonic()`, until now; None asks
                about reads to come.
        """
        ...

    def cached_bytes(self, agent_id: str) -> int:
        """Return the bytes of an agent's rows that are cached for searches; 0 if they are not."""
        ...

    def release(self, agent_id: str) -> None:
        """Hold an agent's rows no longer, until `rows_since` gives them all again."""
        ...

    @property
    def path(self) -> str:
        """The place of the store, for messages and metrics."""
        ...

    @property
    def executor(self) -> Executor:
        """Threads for the store's blocking calls, as many as it can serve at once.

        Made on first use. `close` shuts it down without waiting for its work, which then fails
        with StoreClosedError where it still uses the store.
        """
        ...

    def touch(self, agent_id: str, rows: Sequence[int], now: datetime) -> None:
        """Record accesses of rows. They are written later, and are not changes."""
        ...

    def has_pending_accesses(self, agent_id: str, rows: Sequence[int]) -> bool:
        """Return whether accesses of any of these rows may not be written yet."""
        ...

    def pending_accesses(self, agent_id: str, rows: Collection[int]) -> Mapping[int, AccessCount]:
        """Return the accesses of rows that no write has begun to store."""
        ...

    def write_accesses(self) -> Future[None]:
        """Write the accesses recorded so far."""
        ...

    def stored_agent_id(self, agent_id: str) -> str:
        """Return an agent's id as it is stored; see `mnemic.model.agent_id.stored_spelling`."""
        ...

    def verify(self, *, repair: bool = False, report: Report = silent) -> VerifyReport:
        """Read the whole file, with the memories of all agents, and compare it with its checksums.

        Args:
            repair: Add checksums to memories of earlier versions without them, rewrite each
                agent's number and sum of memories, and drop damaged shadow vectors. Other damaged
                data is left unchanged and reported.
            report: Called periodically with the number of memories read so far.
        """
        ...

    def position(self, agent_id: str) -> LogPosition:
        """Return the agent's position in its change log and access log."""
        ...

    def known_position(self, agent_id: str) -> LogPosition:
        """Return the agent's position as far as the store has asked.

        It has all commits of this process, and is never behind an earlier `position` or
        `latest_position`. A remote store asks nobody for it.
        """
        ...

    def latest_position(self, agent_id: str, *, deadline: float | None = None) -> LogPosition:
        """Return the agent's position for a search that begins.

        It has every commit that was acknowledged to any process before this call. A remote store
        asks its server, in one round trip, and gives out the `known_position` while that is
        unreachable; see `stale_since`.
        """
        ...

    def watch(self, listener: ChangeListener) -> None:
        """Call a method after each change of entries that this process commits to the same place.

        Other stores of this process that are open on it are included, other processes are not;
        accesses and expiry are no changes. The method is called once for each commit, after it and
        before the Future of a write is done, in the writing thread, and at times for writes that
        failed. It must be short, must not use a store and must not raise. It is held weakly.

        Args:
            listener: A bound method that takes the agents and users of the changed entries.
        """
        ...

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
        """Return the changes that bring an index from change `seq` to the present.

        All rows are returned if `seq` is None, if the log no longer reaches back to `seq`, or, with
        vectors, if the agent's model was switched since. Expired rows are included.

        Args:
            agent_id: The agent.
            model: Model of the wanted vectors; None for no vectors.
            seq: Change number of the index.
            sink: Receives all rows in batches if all are returned; the returned batch is empty
                then.
            state: State of the rows.
            with_sensitive: Treat sensitive and sealed rows as changed, also those that have not
                since `seq`: for an index that was loaded from a snapshot of that change.
            deadline: Limit for reading changes. All rows are read to the end whatever it is: cut
                short, the next call would start again and never end either.

        Raises:
            EmbeddingModelMismatchError: If the agent's vectors come from another model.
        """
        ...

    def erase(self, *, soon: bool = False) -> Future[bool | None]:
        """Remove deleted data from the store's files; return whether nothing is left of it.

        None where the store cannot know: its server has files of its own.

        Snapshots of indexes are removed altogether, those of all agents. If something is left,
        removal is repeated later, at the latest when the last process closes the file. `close` may
        overtake it: then the Future fails with StoreClosedError.

        Args:
            soon: Begin it within about a second, for all deletions until then at once, and return
                that something is left. `close` does it before that.
        """
        ...

    def backup(self, target: str | os.PathLike[str], *, report: Report = silent) -> None:
        """Copy everything, as of one moment, to a new place; writers may continue meanwhile.

        Snapshots of indexes are not copied; they are rebuilt.

        Args:
            target: The new place.
            report: Called periodically with the bytes written so far and their expected number.

        Raises:
            StoreFileError: If the target exists or cannot be written.
        """
        ...

    def create_vector_index(self, agent_id: str) -> bool:
        """Build the approximate index of an agent's vectors, and wait for it.

        Returns:
            Whether there is one now; False if the store has no such indexes, or none for vectors
            as long as these.
        """
        ...

    def close(self) -> None:
        """Finish submitted writes, then release the file. Repeated calls have no effect."""
        ...
