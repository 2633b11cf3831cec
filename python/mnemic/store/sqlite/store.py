"""The embedded store: one SQLite file, durable, shared between threads and processes."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from contextlib import AbstractContextManager
from datetime import datetime
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from mnemic.errors import StoreFileError
from mnemic.model.timestamps import to_microseconds
from mnemic.reporting.progress import Report, silent
from mnemic.store.accesses import AccessFlush
from mnemic.store.changes import COMMITTED, ChangeListener
from mnemic.store.futures import succeeded
from mnemic.store.row_codec import RowCodec
from mnemic.store.sql.change_log import position, write_accesses
from mnemic.store.sql.operations import READS, SqlOperations
from mnemic.store.sql.sealing import SqlSealing
from mnemic.store.sqlite import (
    maintenance,
    shadow_vectors,
)
from mnemic.store.sqlite.change_log import SNAPSHOT_READS
from mnemic.store.sqlite.file import LaterErasure, SqliteFile, nothing
from mnemic.store.sqlite.hardening import GuardedConnection
from mnemic.store.url import path_of
from mnemic.store.values import (
    LogPosition,
)

if TYPE_CHECKING:
    from mnemic.crypto import Encryption


class SqliteStore(
    SqlOperations,
    SqlSealing,
    SqliteFile,
):
    """Keeps memories in one SQLite file; see `Store` for what its methods promise.

    Reads run where they are called, on connections of their own, and never wait for a write. Writes
    run one after the other, grouped; SQLite's write-ahead log is flushed before a write's call
    returns. Methods may be called from any thread and from any event loop.

    Args:
        path: A file, made if there is none (mode 0600), or ":memory:"; or a URL, see `path_of`.
        read_only: Whether nothing of the file may change. Then it must be there, and every write is
            a `ReadOnlyError`. What other processes write is seen.
        codec: Codec of the entries; if None, plain text, or what the encryption makes of it.
        encryption: Seals sensitive entries; None seals none, and cannot read those that are.

    Raises:
        StoreFileError: If the path cannot be used or holds something else.
        StoreError: If it was open when this process was forked off.
        SchemaVersionError: If a newer mnemic wrote the file, or an older one a file that is only to
            be read.
        StoreCorruptError: If the file is damaged.
    """

    is_remote = False
    searches_vectors = False
    _reads = MappingProxyType({**READS, **SNAPSHOT_READS})

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        read_only: bool = False,
        codec: RowCodec | None = None,
        encryption: "Encryption | None" = None,
    ) -> None:
        super().__init__(
            path_of(path),
            self.codec_of(encryption) if codec is None else codec,
            read_only=read_only,
        )
        self._later_erasure = LaterErasure(self._connections, self._writer, self._workers)

    def latest_position(self, agent_id: str, *, deadline: float | None = None) -> LogPosition:  # noqa: ARG002 # pyright: ignore[reportUnusedParameter] - it takes microseconds
        """Return the agent's position in its change log and access log: two numbers are read."""
        return self._read(None, lambda on: position(on, agent_id))

    position = known_position = latest_position

    def stale_since(self, agent_id: str, reads_since: float | None = None) -> datetime | None:  # noqa: ARG002 # pyright: ignore[reportUnusedParameter] - of none
        """Return None: every read sees all commits."""
        return None

    def cached_bytes(self, agent_id: str) -> int:  # noqa: ARG002 # pyright: ignore[reportUnusedParameter] - none are
        """Return 0: rows are read from the file."""
        return 0

    def release(self, agent_id: str) -> None:  # pyright: ignore[reportUnusedParameter] - none are
        """Do nothing: rows are read from the file."""

    @property
    def executor(self) -> Executor:
        """Threads for blocking calls; each reads on a connection of its own."""
        self._connections.check_usable()
        return self._workers.executor

    def touch(self, agent_id: str, rows: Sequence[int], now: datetime) -> None:
        """Record accesses of rows, written later together with other writes."""
        self._connections.check_writable()
        if self.accesses.add(agent_id, rows, to_microseconds(now)):
            flush = self.accesses.flush()
            self._writer.submit_delayed(_writing(flush), flush.ended)

    def write_accesses(self) -> Future[None]:
        """Write the accesses recorded so far."""
        self._connections.check_writable()
        if not self.accesses.is_pending():
            return succeeded(None)
        return self._submit(None, nothing, after_accesses=True)

    def _verification(self, on: GuardedConnection, report: Report) -> maintenance.Verification:
        log_problem = self._connections.log_problem
        return maintenance.Verification(on, self._codec, report, log_problem)

    def _repaired(self) -> dict[str, Any]:
        checksums_added = after = 0
        add_missing = partial(maintenance.add_missing_checksums, codec=self._codec)
        while True:
            number, after = self._submit(None, partial(add_missing, after=after)).result()
            checksums_added += number
            if not after:
                break
        self._submit(None, shadow_vectors.drop_damaged).result()
        agents = self._submit(None, partial(maintenance.repair_agents, codec=self._codec)).result()
        return {"checksums_added": checksums_added, "repaired_agents": tuple(agents)}

    def watch(self, listener: ChangeListener) -> None:
        """Call a method after each change that this process commits to the file."""
        COMMITTED.add(self._connections.file, listener)

    @property
    def snapshot_folder(self) -> str | None:
        """The folder beside the file for snapshots of its indexes; None where none may be kept."""
        folder = self._connections.snapshots
        return None if folder is None else folder.path

    def locked_snapshots(self, *, wait: float = 0.0) -> AbstractContextManager[str]:
        """Lock the folder of snapshots while one is written; see `Store.locked_snapshots`."""
        if self.snapshot_folder is None:
            raise StoreFileError(f"{self.path}: no snapshots of its indexes are kept")
        return self._connections.locked_snapshots(wait)

    def erase(self, *, soon: bool = False) -> Future[bool | None]:
        """Remove deleted data from the file, its log and its snapshots; return whether all is gone.

        A concurrent reader, or a running backup, may prevent the log from being emptied, and a
        snapshot may be being written. Then removal is repeated after later writes, and by the last
        process that closes the file; snapshots are removed by whoever writes one. The change table
        keeps the ids of deleted entries, and nothing else of them.
        """
        self._connections.check_writable()
        if soon:
            self._later_erasure.begin()
            return succeeded(False)  # noqa: FBT003 - the answer
        return self._workers.run(self._connections.erase)

    def backup(self, target: str | os.PathLike[str], *, report: Report = silent) -> None:
        """Copy everything, as of one moment, to a new file of mode 0600; see `backup_to`."""
        maintenance.backup_to(self._connections, path_of(target), report)


def _writing(flush: AccessFlush) -> Callable[[GuardedConnection], object]:
    return lambda connection: write_accesses(connection, flush.taken())
