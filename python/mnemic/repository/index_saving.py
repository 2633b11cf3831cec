"""Snapshots of an index, saved in the background."""

from functools import partial

from mnemic.repository.agent_index import AgentIndex
from mnemic.repository.index_accesses import IndexAccesses
from mnemic.repository.index_snapshots import Due, IndexSnapshots, save_quietly
from mnemic.threads.background import Background


class IndexSaving:
    """Saves snapshots of an index, one at a time.

    Args:
        index: The index.
        accesses: Are written before a snapshot that counts them.
    """

    def __init__(self, index: AgentIndex, accesses: IndexAccesses) -> None:
        self._index = index
        self._accesses = accesses
        self._thread = Background("snapshot")

    def begin_if_due(self, rows: int) -> None:
        """Save a snapshot in the background, if enough has changed since the last one.

        Args:
            rows: Number of the index's rows.
        """
        snapshots, seq = self._index.model.snapshots, self._index.native.seq
        can_write = self._index.settings.can_write and not self._thread.is_running
        if snapshots is None or seq is None or not can_write:
            return
        due = snapshots.due(seq, rows, self._has_current_source)
        if due is not None:
            self._index.begin(self._thread, self._save, snapshots, due)

    def join(self) -> None:
        """Wait for the snapshot that is being saved."""
        self._thread.join()

    def _save(self, snapshots: IndexSnapshots, due: Due) -> None:
        accesses = self._accesses.written
        snapshot = self._index.native.snapshot()
        if snapshot is None:
            return
        try:
            # Those of the index must not be lost where it is loaded again.
            self._accesses.write()
            stopped = partial(getattr, self._index, "is_stopped")
            save_quietly(partial(snapshots.save, snapshot, accesses, due=due, is_stopped=stopped))
        finally:
            if snapshot.source is not None:
                snapshot.source.release()

    def _has_current_source(self) -> bool:
        """Return whether an approximate index has all changes."""
        state = self._index.native.source_state
        return state is not None and state.proposes and not state.waiting
