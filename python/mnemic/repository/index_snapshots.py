"""Snapshots of an index: saved beside the store's file, and loaded in place of all rows.

A snapshot is a cache. It is used if it was made from the history that the store has, by this
version of mnemic, for the same model, languages and coverage; else it is made anew.
"""

import hashlib
import os
import stat
import time
from contextlib import suppress
from typing import NamedTuple

import msgspec

from mnemic._core import Coverage, IndexSnapshot, MemoryIndex, __version__
from mnemic.errors import (
    MnemicError,
    StoreError,
    VectorFileDamagedError,
    VectorFileError,
)
from mnemic.logs import logger
from mnemic.store import Store

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

LOCK_SECONDS = 1.0
"""Maximum seconds to wait for another process that writes a snapshot."""


class Kind(msgspec.Struct, frozen=True):
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
        kind: As above.
        seq: Number of its last change.
        nonce: Nonce of that change.
        accesses: Number of access writes that it contains, at least.
    """

    kind: Kind
    seq: int
    nonce: int
    accesses: int


class Frozen(NamedTuple):
    """An index as it was after a change.

    Attributes:
        core: The core's view of it.
        seq: Number of the change.
        accesses: Number of access writes that it contains, at least.
    """

    core: IndexSnapshot
    seq: int
    accesses: int


class Restored(NamedTuple):
    """An index from a file.

    Attributes:
        core: The core's index, without sensitive entries.
        seq: Number of its last change.
        accesses: Number of access writes that it contains, at least.
    """

    core: MemoryIndex
    seq: int
    accesses: int


class IndexSnapshots:
    """Saves and loads one agent's index of active entries.

    Args:
        store: The store.
        kind: What the index is made for.
        coverage: The coverage that `kind` names, as the core takes it.
    """

    def __init__(self, store: Store, kind: Kind, coverage: Coverage | None) -> None:
        self._store = store
        self._kind = kind
        self._coverage = coverage
        self._saved_seq: int | None = None
        self._next_check = 0.0

    def restored(self) -> Restored | None:
        """Load the index from its file, if there is one that fits the store.

        A file that does not fit, or is damaged, is removed; one of another account is not read.
        """
        path = self._path
        if path is None or not _is_own(path):
            return None
        try:
            index, label = MemoryIndex.load_file(
                path, self._dim, language=self._kind.language, coverage=self._coverage
            )
            found = msgspec.msgpack.decode(label, type=_Label)
        except (VectorFileError, VectorFileDamagedError, msgspec.MsgspecError) as error:
            self._drop(path, str(error))
            return None
        if not self._fits(found):
            self._drop(path, "it was made from another state of the store, or for other options")
            return None
        self._saved_seq = found.seq
        return Restored(index, found.seq, found.accesses)

    def is_due(self, seq: int, rows: int) -> bool:
        """Return whether to save an index with so many rows as of a change."""
        if rows < MIN_ROWS or time.monotonic() < self._next_check:
            return False
        self._next_check = time.monotonic() + CHECK_SECONDS
        path = self._path
        if path is None:
            return False
        saved = self._saved_seq if os.path.lexists(path) else None
        return saved is None or seq - saved >= max(MIN_CHANGES, rows // CHANGED_SHARE)

    def save(self, frozen: Frozen) -> bool:
        """Write an index to its file; return whether that was done.

        Raises:
            StoreError: If the store cannot be read, or another process writes snapshots.
            VectorFileError: If the file cannot be written.
        """
        agent_id = self._kind.agent_id
        with self._store.locked_snapshots(wait=LOCK_SECONDS):
            path = self._path
            mark = self._store.change_mark(agent_id, frozen.seq)
            is_stale = mark is None or self._store.has_removed_since(agent_id, frozen.seq)
            if path is None or mark is None or is_stale:
                return False
            label = _Label(self._kind, frozen.seq, mark.nonce, frozen.accesses)
            frozen.core.save(path, msgspec.msgpack.encode(label))
        self._saved_seq = frozen.seq
        return True

    def drop(self) -> None:
        """Remove the file, in which an index has found damage."""
        path = self._path
        if path is not None:
            self._drop(path, "it is damaged")

    @property
    def _path(self) -> str | None:
        folder = self._store.snapshot_folder
        if folder is None:
            return None
        kind = self._kind
        named = msgspec.msgpack.encode((kind.agent_id, kind.model, kind.language, kind.coverage))
        name = hashlib.sha256(named).hexdigest()[:32]  # agents' names need not fit a file's name
        return f"{folder}/{name}.index"

    @property
    def _dim(self) -> int | None:
        return None if self._kind.model is None else self._kind.model[1]

    def _fits(self, label: _Label) -> bool:
        is_same = label.kind == self._kind
        return is_same and self._store.has_change(self._kind.agent_id, label.seq, label.nonce)

    def _drop(self, path: str, reason: str) -> None:
        """Remove a file; it is made anew."""
        _log.info("The snapshot %s is not used: %s", path, reason)
        with suppress(OSError):
            os.unlink(path)  # noqa: PTH108 - pathlib is slow to import


def _is_own(path: str) -> bool:
    """Return whether a path is a plain file of this account: others could make it hostile."""
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()


def save_quietly(snapshots: IndexSnapshots, frozen: Frozen) -> None:
    """Save an index; a failure is logged, for a snapshot saves time and nothing else."""
    try:
        snapshots.save(frozen)
    except StoreError as error:
        _log.debug("A snapshot of an index is not saved now: %s", str(error))
    except (MnemicError, MemoryError) as error:
        _log.warning("A snapshot of an index cannot be saved: %s", str(error))
