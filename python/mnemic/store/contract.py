"""The contract of every store."""

import os
from collections.abc import Sequence
from concurrent.futures import Executor, Future
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Protocol, TypeVar

from mnemic.crypto import Encryption
from mnemic.model import MemoryEntry, VerifyReport
from mnemic.reporting.progress import Report, silent
from mnemic.store.accesses import PendingAccesses
from mnemic.store.changes import ChangeListener
from mnemic.store.operations import Read, Write
from mnemic.store.values import LogPosition

Result = TypeVar("Result")


class Store(Protocol):
    """Durable storage of memories. The store is the source of truth; an index is a cache of it.

    What is read and written are operations, each a record of `mnemic.store.operations`, where their
    promises stand. `tests/store` checks them on any store that a URL opens.

    Threads:
        Every method may be called from any thread, and by several at once. Reads run in the calling
        thread. Called in a thread that runs an event loop, a write never blocks it; elsewhere the
        store may carry it out in the calling thread and return a finished Future. Long maintenance
        (`verify`, `backup`, `close`) blocks.

    Accesses:
        Accesses are no changes. `touch` collects them in memory and never waits; they are written
        with later writes, after about a second, or by `write_accesses` and `close`. A crash may
        lose those of the last second.

    Attributes:
        accesses: Accesses that are recorded and not written yet.
        path: The place of the store, for messages and metrics.
        is_remote: Whether each read is a round trip to a server, and rows are held for searches.
        searches_vectors: Whether it carries out `Nearest`, `ActiveRows`, `RowsWithoutVectors` and
            `BuildVectorIndex`.

    Raises:
        StoreClosedError: By every method after `close`.
        ReadOnlyError: By methods that write, if the store was opened read-only.
        StoreError: By any method; its subclasses name the problem with the file or the disk.
    """

    accesses: PendingAccesses
    path: str
    is_remote: bool
    searches_vectors: bool

    def read(self, wanted: Read[Result], *, deadline: float | None = None) -> Result:
        """Carry out a read."""
        ...

    def write(self, wanted: Write[Result]) -> Future[Result]:
        """Hand in a write."""
        ...

    def position(self, agent_id: str) -> LogPosition:
        """Return the agent's position in its change log and access log."""
        ...

    def known_position(self, agent_id: str) -> LogPosition:
        """Return the position with all commits of this process, never behind one returned before.

        A remote store asks nobody for it.
        """
        ...

    def latest_position(self, agent_id: str, *, deadline: float | None = None) -> LogPosition:
        """Return the position with every commit acknowledged to any process before this call.

        A remote store asks its server, in one round trip, and gives out the `known_position` while
        that is unreachable, for a limited time.
        """
        ...

    def stale_since(self, agent_id: str, reads_since: float | None = None) -> datetime | None:
        """Since when changes of other processes may be missing in reads; None while none can be.

        Those from a moment on, of `time.monotonic()`, until now; None asks about reads to come.
        """
        ...

    def watch(self, listener: ChangeListener) -> None:
        """Call a method after each change of entries that this process commits to this place."""
        ...

    def cached_bytes(self, agent_id: str) -> int:
        """Return the bytes of an agent's rows that are cached for searches; 0 if they are not."""
        ...

    def release(self, agent_id: str) -> None:
        """Hold an agent's rows no longer, until `RowsSince` gives them all again."""
        ...

    def touch(self, agent_id: str, rows: Sequence[int], now: datetime) -> None:
        """Record accesses of rows."""
        ...

    def write_accesses(self) -> Future[None]:
        """Write the accesses recorded so far."""
        ...

    def stored_agent_id(self, agent_id: str) -> str:
        """Return an agent's id as it is stored; see `mnemic.model.ids.stored_spelling`."""
        ...

    def marked(self, entry: MemoryEntry) -> MemoryEntry:
        """Return an entry, marked as encrypted if it is to be sealed; see `RowCodec.marked`."""
        ...

    def check_key(self, agent_id: str) -> None:
        """Check the keys of an agent, and make one if its entries are to be sealed.

        Entries under a key that is not given are a WrongKeyError, a failing key provider is a
        KeyUnavailableError, and a damaged key in the store a SealBrokenError.
        """
        ...

    def begin_rotation(self, agent_id: str, encryption: Encryption) -> None:
        """Seal under the current key of these options from now on; see `Keyring.rotate`.

        It is an InvalidArgumentError if the store was opened without encryption.
        """
        ...

    @property
    def snapshot_folder(self) -> str | None:
        """The folder beside the file for snapshots of its indexes, which need not exist yet.

        None where there may be none: in memory, on a server, read-only, without locks of files.
        """
        ...

    def locked_snapshots(self, *, wait: float = 0.0) -> AbstractContextManager[str]:
        """Make and lock the folder of snapshots while one is written, and give its path.

        Others, and erasing, wait for it; meanwhile no file disappears. If an erasure gave up
        waiting, all files are removed as the block ends. Entering it is a StoreBusyError if another
        one holds the lock for so many seconds, a StoreReplacedError if the file is another one by
        now, and a StoreError if the store keeps no snapshots or the folder cannot be used.
        """
        ...

    def verify(self, *, repair: bool = False, report: Report = silent) -> VerifyReport:
        """Read all agents' memories, and compare them with their checksums.

        `report` is called periodically with the number of memories so far. A repair adds checksums
        to memories of earlier versions without them, rewrites each agent's number and sum, and
        drops damaged shadow vectors. Other damage is reported alone.
        """
        ...

    def erase(self, *, soon: bool = False) -> Future[bool | None]:
        """Remove deleted data from the store's files; return whether nothing is left of it.

        None where the store cannot know: its server has files of its own. Snapshots of indexes are
        removed altogether, those of all agents. If something is left, removal is repeated later, at
        the latest when the last process closes the file. `close` may overtake it: then the Future
        fails with StoreClosedError. With `soon` it begins within about a second, and before
        `close`, for all deletions until then at once; something is said to be left.
        """
        ...

    def backup(self, target: str | os.PathLike[str], *, report: Report = silent) -> None:
        """Copy all but snapshots, as of one moment, to a new place; writers may go on meanwhile.

        `report` is called periodically with the bytes so far and their expected number. A target
        that exists, or cannot be written, is a StoreFileError.
        """
        ...

    @property
    def executor(self) -> Executor:
        """Threads for the store's blocking calls, made on first use: as many as it serves at once.

        `close` shuts it down without waiting for its work, which then fails with StoreClosedError
        where it still uses the store.
        """
        ...

    def close(self) -> None:
        """Finish submitted writes, then release the file. Repeated calls have no effect."""
        ...
