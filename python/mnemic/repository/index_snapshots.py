"""Snapshots of an index: saved beside the store's file, and loaded in place of all rows.

A snapshot is a cache. It is used if it was made from the history that the store has, by this
version of mnemic, for the same model, languages and coverage; else it is rebuilt.
"""

import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from mnemic._core import Coverage, IndexSnapshot, MemoryIndex, __version__
from mnemic.arrays import Float32Array, Int64Array, np
from mnemic.errors import (
    MnemicError,
    StoreError,
    VectorFileDamagedError,
    VectorFileError,
)
from mnemic.index import InitialVectors, Snapshot, SourceWriter
from mnemic.reporting.logs import logger
from mnemic.store import Store
from mnemic.store.operations import HasRemovedSince, NonceOfChange, SealedRows
from mnemic.store.row_codec import exact_digest

_log = logger(__name__)

MIN_ROWS = 10_000
"""Rows from which a snapshot is saved; fewer are loaded from the store within 0.3 s."""

MIN_CHANGES = 1_000
"""Changes after which a snapshot may be saved again."""

CHANGED_SHARE = 8
"""A snapshot is saved again when the changes since are this part of the rows; reading them takes a
few hundredths of a second for 100,000 rows."""

CHECK_SECONDS = 30.0
"""Seconds between two looks at whether a snapshot is due."""

SOURCE_SECONDS = 600.0
"""Seconds until an approximate index that could not be saved is looked at again."""

DOCIDS_AT_ONCE = 4096
"""Memories whose vectors are read at once for an approximate index."""

LOCK_SECONDS = 1.0
"""Maximum seconds to wait for another process that writes a snapshot."""


Due: TypeAlias = Literal["all", "source"]
"""An index with its approximate index, or for the sake of the latter."""


class IndexKind(msgspec.Struct, frozen=True):
    """What an index is made for: an index made for anything else is another one.

    Attributes:
        agent_id: The agent.
        model: Name and dimension of its vectors; None without.
        language: The language of the entries, "auto" or None.
        coverage: The languages that the embedder covers; None for any.
        mnemic: The version that saved it.
    """

    agent_id: str
    model: tuple[str, int] | None
    language: str | None
    coverage: tuple[str, ...] | None
    mnemic: str = __version__


class _Label(msgspec.Struct, frozen=True):
    """What a file says of its index.

    Attributes:
        kind: What the index is made for.
        seq: Number of its last change.
        nonce: Nonce of that change.
        accesses: Number of access writes that it contains, at least.
    """

    kind: IndexKind
    seq: int
    nonce: int
    accesses: int


class RestoredIndex(NamedTuple):
    """An index from a file.

    Attributes:
        core: The core's index, without sensitive or sealed entries.
        seq: Number of its last change.
        accesses: Number of access writes that it contains, at least.
        beginning: Its vectors, for a candidate source.
    """

    core: MemoryIndex
    seq: int
    accesses: int
    beginning: InitialVectors


class IndexSnapshots:
    """Saves and loads one agent's index of active entries, and its approximate index.

    Args:
        store: The store.
        kind: What the index is made for.
        coverage: The coverage that `kind` names, as the core takes it.
    """

    def __init__(self, store: Store, kind: IndexKind, coverage: Coverage | None) -> None:
        self._store = store
        self._kind = kind
        self._coverage = coverage
        self._saved_seq: int | None = None
        self._saved_source: int | None = None  # number of the last change of its file
        self._next_check = self._next_source = 0.0

    def restored(self) -> RestoredIndex | None:
        """Load the index from its file, if there is one that fits the store.

        A file that does not fit, or is damaged, is removed; one of another account is not read.
        """
        path = self._file("index")
        if path is None or not _is_own(path):
            return None
        try:
            dim = None if self._kind.model is None else self._kind.model[1]
            index, label = MemoryIndex.load_file(
                path, dim, language=self._kind.language, coverage=self._coverage
            )
            found = msgspec.msgpack.decode(label, type=_Label)
        except (VectorFileError, VectorFileDamagedError, msgspec.MsgspecError) as error:
            self._drop(path, str(error))
            return None
        wanted = NonceOfChange(self._kind.agent_id, found.seq)
        if found.kind != self._kind or self._store.read(wanted) != found.nonce:
            self._drop(path, "it was made from another state of the store, or for other options")
            return None
        self._saved_seq = found.seq
        return RestoredIndex(
            index, found.seq, found.accesses, self._beginning(index, found.seq, label)
        )

    def _beginning(self, core: MemoryIndex, seq: int, label: bytes) -> InitialVectors:
        """Return the vectors of an index, whose approximate index may be in a file."""
        path, snapshot = self._file("faiss"), core.snapshot()
        if path is not None and not os.path.lexists(path):
            path = None
        self._saved_source = None if path is None else seq
        parts = partial(_parts, snapshot)
        return InitialVectors(path, label, snapshot.vector_count, parts, self._drop_source)

    def due(self, seq: int, rows: int, has_source: Callable[[], bool]) -> Due | None:
        """Return what of an index with so many rows to save as of a change.

        Args:
            seq: Number of the change.
            rows: Number of rows.
            has_source: Returns whether it has an approximate index, with all changes.
        """
        now = time.monotonic()
        if rows < MIN_ROWS or now < self._next_check or self._file("index") is None:
            return None
        self._next_check = now + CHECK_SECONDS
        saved = self._saved_seq if self._is_there(self._file("index")) else None
        if saved is None or seq - saved >= max(MIN_CHANGES, rows // CHANGED_SHARE):
            is_mostly_sealed = 2 * len(self._sealed_rows()) > rows
            return None if is_mostly_sealed else "all"
        is_tried = self._lacks_source and now >= self._next_source
        return "source" if is_tried and has_source() else None

    def _sealed_rows(self) -> list[int]:
        return self._store.read(SealedRows(self._kind.agent_id))

    @property
    def _lacks_source(self) -> bool:
        saved = self._saved_source if self._is_there(self._file("faiss")) else None
        return saved is None or saved != self._saved_seq

    def save(
        self,
        snapshot: Snapshot,
        accesses: int,
        *,
        due: Due = "all",
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> bool:
        """Write an index to its file, and its approximate index; return whether that was done.

        Args:
            snapshot: The index.
            accesses: Number of access writes that it contains, at least.
            due: What is due; of "source" nothing is written if that cannot be.
            is_stopped: Ends the making of an approximate index without some rows.

        Raises:
            StoreError: If the store cannot be read, or another process writes snapshots.
            VectorFileError: If the file cannot be written.
        """
        write = self._writer(snapshot, is_stopped)
        if write is None and due == "source":
            return False
        agent_id = self._kind.agent_id
        with self._store.locked_snapshots(wait=LOCK_SECONDS):
            path = self._file("index")
            nonce = self._store.read(NonceOfChange(agent_id, snapshot.seq))
            is_stale = self._store.read(HasRemovedSince(agent_id, snapshot.seq))
            if path is None or nonce is None or is_stale:
                return False
            label = msgspec.msgpack.encode(_Label(self._kind, snapshot.seq, nonce, accesses))
            snapshot.core.save(path, label, without=self._sealed_rows())
            self._saved_seq = snapshot.seq
            self._save_source(write, label)
        return True

    def _writer(self, snapshot: Snapshot, is_stopped: Callable[[], bool]) -> SourceWriter | None:
        """Return what writes the held source, if its file has nothing that it must not have."""
        source = snapshot.source
        if source is None:
            return None
        outdated = np.array(snapshot.unembedded, np.int64)
        sealed = np.array(self._sealed_rows(), np.int64)
        without = np.concatenate([snapshot.core.sensitive(), sealed, outdated])
        write = source.writer(without, rebuild=source.may_rebuild, is_stopped=is_stopped)
        if write is None:
            self._next_source = time.monotonic() + SOURCE_SECONDS
        return write

    def _save_source(self, write: SourceWriter | None, label: bytes) -> None:
        path = self._file("faiss")
        if path is None:
            return
        if write is not None and write(path, label):
            self._saved_source = self._saved_seq
            return
        self._saved_source = None
        with suppress(OSError):  # of an older state: of no use, and what it has may be removed now
            os.unlink(path)  # noqa: PTH108 - pathlib is slow to import

    def drop(self) -> None:
        """Remove the file, in which an index has found damage."""
        path = self._file("index")
        if path is not None:
            self._drop(path, "it is damaged")

    @staticmethod
    def _is_there(path: str | None) -> bool:
        return path is not None and os.path.lexists(path)

    def _file(self, ending: str) -> str | None:
        folder = self._store.snapshot_folder
        if folder is None:
            return None
        kind = self._kind
        named = msgspec.msgpack.encode((kind.agent_id, kind.model, kind.language, kind.coverage))
        name = exact_digest(named)[:32]  # agents' names need not fit a file's name
        return f"{folder}/{name}.{ending}"

    def _drop_source(self, reason: str) -> None:
        """Remove the file of the approximate index."""
        self._saved_source = None
        path = self._file("faiss")
        if path is not None:
            self._drop(path, reason)

    def _drop(self, path: str, reason: str) -> None:
        """Remove a file; it is rebuilt."""
        _log.info("The snapshot %s is not used: %s", path, reason)
        with suppress(OSError):
            os.unlink(path)  # noqa: PTH108 - pathlib is slow to import


def _parts(snapshot: IndexSnapshot) -> Iterator[tuple[Int64Array, Float32Array]]:
    """Yield the vectors of an index, part by part."""
    first: int | None = 0
    while first is not None:
        rows, vectors, first = snapshot.vectors(first, DOCIDS_AT_ONCE)
        yield rows, vectors


def _is_own(path: str) -> bool:
    """Return whether a path is a plain file of this account: others could make it hostile."""
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()


def save_quietly(save: Callable[[], object]) -> None:
    """Save an index; a failure is logged, for a snapshot saves time and nothing else."""
    try:
        save()
    except StoreError as error:
        _log.debug("A snapshot of an index is not saved now: %s", str(error))
    except (MnemicError, MemoryError) as error:
        _log.warning("A snapshot of an index cannot be saved: %s", str(error))
