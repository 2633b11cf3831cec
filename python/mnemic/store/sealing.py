"""The part of the contract of stores that seals entries, and changes or destroys keys."""

from concurrent.futures import Future
from typing import Protocol
from uuid import UUID

from mnemic.crypto import Encryption
from mnemic.model import MemoryEntry


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

        Entries that are sealed under other keys can be read all the while; `reseal` seals them
        again.

        Raises:
            InvalidArgumentError: If the store was opened without encryption.
            WrongKeyError: If the options lack a key under which entries are sealed.
            KeyUnavailableError: If a key provider fails.
        """
        ...

    def sealed_under_other_keys(self, agent_id: str) -> int:
        """Return the number of entries, in any state, that are not sealed under the newest key."""
        ...

    def reseal(self, agent_id: str, after: int, limit: int) -> Future[tuple[int, int]]:
        """Seal entries under the newest key that are sealed under others, in the order of rows.

        Nothing else of them changes, and no change is logged.

        Args:
            agent_id: The agent.
            after: Row of the last entry of the call before; 0 for the first call.
            limit: Maximum number of entries.

        Returns:
            The number of entries, and the row of the last one; zeros if there was none.

        Raises:
            SealBrokenError: If an entry cannot be opened.
        """
        ...

    def end_rotation(self, agent_id: str) -> Future[bool]:
        """Destroy the keys of an agent but the newest, unless entries are sealed under them.

        Returns:
            Whether they were destroyed.
        """
        ...

    def forget_agent(self, agent_id: str) -> Future[list[UUID]]:
        """Destroy the keys of an agent, and delete its entries; return their ids.

        What copies of the store made before have sealed stays readable with them and the master
        key.
        """
        ...
