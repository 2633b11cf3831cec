"""The stored part of agents' keys, and the sealers made of it."""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol

from mnemic.crypto import Encryption, Sealer, new_salt
from mnemic.crypto.envelope import KEY_ID_BYTES
from mnemic.crypto.sealer import SALT_BYTES
from mnemic.errors import SealBrokenError, WrongKeyError
from mnemic.store.values import StoredKey


def stored_key(agent_id: str, columns: Sequence[object]) -> StoredKey:
    """Return a key as it was read: its id, name, salt and check value.

    Raises:
        SealBrokenError: If it cannot have been stored.
    """
    key_id, name, salt, check_value = columns
    if (
        isinstance(key_id, bytes)
        and isinstance(name, str)
        and isinstance(salt, bytes)
        and isinstance(check_value, bytes)
        and (len(key_id), len(salt)) == (KEY_ID_BYTES, SALT_BYTES)
    ):
        return StoredKey(key_id, name, salt, check_value)
    raise SealBrokenError(
        f"agent {agent_id!r}: what is stored of its key is damaged; restore a backup of the memory"
    )


class AgentKeys(NamedTuple):
    """The keys of an agent.

    Attributes:
        stored: What is stored of them, oldest first.
        sealers: Those that can be made of the given master keys, by the id of these.
        current: The newest of them, which seals; None without any.
    """

    stored: tuple[StoredKey, ...]
    sealers: dict[bytes, Sealer]
    current: Sealer | None

    @property
    def sealing(self) -> StoredKey | None:
        """What is stored of the one that seals."""
        key_id = self.current and self.current.key_id
        return next((key for key in self.stored if key.key_id == key_id), None)

    @property
    def missing(self) -> list[StoredKey]:
        """Those of which no master key is given."""
        return [key for key in self.stored if key.key_id not in self.sealers]


class StoreKey(Protocol):
    """Stores a key of an agent as its newest; returns the keys that are stored then, durably."""

    def __call__(
        self, agent_id: str, key: StoredKey, /, *, allow_other_keys: bool
    ) -> Sequence[StoredKey]:
        """Store a key unless the agent has it.

        Args:
            agent_id: The agent.
            key: The key.
            allow_other_keys: Whether it is stored also if the agent has another.
        """
        ...


class Keyring:
    """The sealers of the agents of one store, from any thread.

    Keys are read once, and again by each transaction that seals, because another process may
    replace them; see `take_in`.

    Args:
        encryption: Gives the master keys.
        load: Reads the stored keys of an agent, oldest first.
        store: Stores one; nothing that was sealed opens without it.
    """

    def __init__(
        self,
        encryption: Encryption,
        load: Callable[[str], Sequence[StoredKey]],
        store: "StoreKey",
    ) -> None:
        self.encryption = encryption
        self._load: Final = load
        self._store: Final = store
        self._known: dict[str, AgentKeys] = {}

    def keys(self, agent_id: str) -> AgentKeys:
        """Return the keys of an agent.

        Raises:
            WrongKeyError: If its memories are sealed under other keys alone.
            KeyUnavailableError: If the key provider fails.
            SealBrokenError: If what is stored of a key is damaged.
        """
        known = self._known.get(agent_id)
        return self._known_from(agent_id, self._load(agent_id)) if known is None else known

    def refreshed(self, agent_id: str) -> AgentKeys:
        """Return the keys of an agent as they are stored now; see `keys`."""
        stored, known = tuple(self._load(agent_id)), self._known.get(agent_id)
        if known is not None and known.stored == stored and not known.missing:
            return known
        return self._known_from(agent_id, stored)

    def prepared(self, agent_id: str) -> AgentKeys:
        """Return `keys`; a key is made and stored if the agent has none."""
        keys = self.keys(agent_id)
        keys = keys if keys.stored else self.refreshed(agent_id)
        return keys if keys.stored else self._with_new_key(agent_id, allow_other_keys=False)

    def take_in(
        self,
        agent_id: str,
        stored: Sequence[StoredKey],
        store: Callable[[StoredKey], Sequence[StoredKey]],
    ) -> StoredKey | None:
        """Know the keys that an agent has in this transaction; return the one that seals.

        One is made if the agent has none: another process may have destroyed them.

        Args:
            agent_id: The agent.
            stored: Its keys.
            store: Stores a key in this transaction; returns the agent's keys then.

        Raises:
            WrongKeyError: If no master key of them is given.
            MnemicError: As `keys` does.
        """
        stored = stored or store(self._new_key(agent_id))
        known = self._known.get(agent_id)
        if known is None or known.stored != tuple(stored):
            known = self._known_from(agent_id, stored)
        return known.sealing

    def newest(self, agent_id: str) -> StoredKey:
        """Return the newest stored key of an agent.

        Raises:
            WrongKeyError: If its master key is not given.
            MnemicError: As `keys` does.
        """
        keys = self.prepared(agent_id)
        newest = keys.stored[-1]
        if newest.key_id not in keys.sealers:
            raise self._wrong_key(agent_id, newest.key_id)
        return newest

    def check(self, agent_id: str) -> None:
        """Check that all that an agent sealed can be opened.

        Raises:
            WrongKeyError: If a master key is missing.
            MnemicError: As `keys` does.
        """
        for missing in self.refreshed(agent_id).missing:
            raise self._wrong_key(agent_id, missing.key_id)

    def rotate(self, agent_id: str, encryption: Encryption) -> AgentKeys:
        """Seal under the current key of other options from now on; return the keys then.

        Entries that are sealed under other keys can be read all the while; `Reseal` seals them
        again. No transaction waits for a key provider, which may be far away.

        Raises:
            WrongKeyError: If the options lack a key under which entries are sealed.
            MnemicError: As `keys` does.
        """
        before, self.encryption = self.encryption, encryption
        try:
            self.check(agent_id)
            keys = self._known_from(agent_id, self._load(agent_id))
            wanted = encryption.master_key().key_id
            if keys.stored and keys.stored[-1].key_id == wanted:
                return keys
            return self._with_new_key(agent_id, allow_other_keys=True)
        except BaseException:
            self.encryption = before
            raise

    def forget(self, agent_id: str) -> None:
        """Keep the keys of an agent no longer."""
        self._known.pop(agent_id, None)

    def sealer_of(self, agent_id: str, key_id: bytes) -> Sealer | None:
        """Return the sealer of an agent under a key; None if it has no such key.

        Raises:
            WrongKeyError: If it has, and its master key is not given.
            MnemicError: As `keys` does.
        """
        sealer = self.keys(agent_id).sealers.get(key_id)
        if sealer is not None:
            return sealer
        keys = self.refreshed(agent_id)
        if key_id not in keys.sealers and any(key.key_id == key_id for key in keys.stored):
            raise self._wrong_key(agent_id, key_id)
        return keys.sealers.get(key_id)

    def _wrong_key(self, agent_id: str, stored: bytes) -> WrongKeyError:
        """Return the error for a stored key whose master key is not given."""
        return WrongKeyError(agent_id, stored.hex(), self.encryption.master_key().key_id.hex())

    def _new_key(self, agent_id: str) -> StoredKey:
        """Return a key of an agent that is not stored yet."""
        master, salt = self.encryption.master_key(), new_salt()
        check_value = Sealer(master, agent_id, salt).check_value()
        return StoredKey(master.key_id, master.name, salt, check_value)

    def _with_new_key(self, agent_id: str, *, allow_other_keys: bool) -> AgentKeys:
        made = self._new_key(agent_id)
        return self._known_from(
            agent_id, self._store(agent_id, made, allow_other_keys=allow_other_keys)
        )

    def _known_from(self, agent_id: str, stored: Sequence[StoredKey]) -> AgentKeys:
        sealers = {}
        for key in stored:
            master = self.encryption.known_key(key.key_id, key.name)
            if master is not None:
                sealer = sealers[key.key_id] = Sealer(master, agent_id, key.salt)
                sealer.verify_check(key.check_value)
        current = next(reversed(sealers.values()), None)  # of the newest key that is given
        keys = AgentKeys(tuple(stored), sealers, current)
        if stored and not sealers:
            raise self._wrong_key(agent_id, stored[-1].key_id)
        self._known[agent_id] = keys
        return keys
