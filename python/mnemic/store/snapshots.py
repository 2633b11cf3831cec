"""The part of the contract of stores that keeps snapshots of indexes beside its file."""

from contextlib import AbstractContextManager
from typing import NoReturn, Protocol

from mnemic.errors import StoreFileError
from mnemic.store.values import ChangeMark


class Snapshots(Protocol):
    """Tells what a snapshot of an index was made from, and where it may lie.

    A snapshot is a file that an index is loaded from in place of all rows. It is a cache: it is of
    use if the store `has_change`, with its nonce, that the index had read last, and every row
    changed since is read by `rows_since(…, with_sensitive=True)`, for it holds no sensitive entry
    and no sealed one.

    `Store.erase` removes every snapshot, after the deletion has been committed. So that none with
    deleted content appears later, whoever saves one does all of this in `locked_snapshots`: it
    takes the index as of a change after which nothing `has_removed_since`, creates the file, writes
    it, and gives it its name.
    """

    @property
    def snapshot_folder(self) -> str | None:
        """The folder beside the file for snapshots of its indexes, which need not exist yet.

        None where none may be kept: in memory, on a server, opened read-only, or on a system
        without locks of files.
        """
        ...

    def sealed_rows(self, agent_id: str) -> list[int]:
        """Return the rows of an agent's sealed entries, in any state, which no snapshot may hold.

        A row of a snapshot that was sealed then is among them unless something `has_removed_since`.
        """
        ...

    def change_mark(self, agent_id: str, seq: int | None = None) -> ChangeMark | None:
        """Return a change of an agent with its nonce, read at one moment.

        Args:
            agent_id: The agent.
            seq: Number of the change; None is the last one.

        Returns:
            None if there is no such change, if the log has dropped it, or if the store keeps no
            snapshots and no nonces.
        """
        ...

    def has_change(self, agent_id: str, seq: int, nonce: int) -> bool:
        """Return whether the agent's log has the change with this number and this nonce.

        Then everything that was written up to that change is the same. False for a change that the
        log has dropped.
        """
        ...

    def has_removed_since(self, agent_id: str, seq: int) -> bool:
        """Return whether content or vectors may have been deleted or overwritten after a change.

        True also if the log no longer reaches back to it, or not yet to it.
        """
        ...

    def locked_snapshots(self, *, wait: float = 0.0) -> AbstractContextManager[str]:
        """Lock the folder of snapshots while one is written; others, and erasing, wait for it.

        Meanwhile no file disappears from it. If an erasure gave up waiting, all files are removed
        as the block ends.

        Args:
            wait: Maximum seconds to wait for another thread or process.

        Returns:
            A context manager that makes the folder (mode 0700) and gives its path.

        Raises:
            StoreBusyError: By entering it, if another one holds the lock.
            StoreReplacedError: If the file is another file by now.
            StoreError: If the store keeps no snapshots, or the folder cannot be used.
        """
        ...


class NoSnapshots:
    """The same of a store that keeps none."""

    snapshot_folder = None

    def sealed_rows(self, agent_id: str) -> list[int]:
        """Return none: no snapshot may be saved."""
        del agent_id
        return []

    def change_mark(self, agent_id: str, seq: int | None = None) -> None:
        """Return None."""
        del agent_id, seq

    def has_change(self, agent_id: str, seq: int, nonce: int) -> bool:
        """Return False: no snapshot fits."""
        del agent_id, seq, nonce
        return False

    def has_removed_since(self, agent_id: str, seq: int) -> bool:
        """Return True: no snapshot may be saved."""
        del agent_id, seq
        return True

    def locked_snapshots(self, *, wait: float = 0.0) -> NoReturn:
        """Raise StoreFileError."""
        del wait
        raise StoreFileError("this store keeps no snapshots of indexes; see `snapshot_folder`")
