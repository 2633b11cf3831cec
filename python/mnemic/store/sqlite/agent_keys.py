"""SQL statements on what is stored of the keys of agents."""

from typing import Final

from mnemic.errors import KeyUnavailableError
from mnemic.store.agent_keys import stored_key
from mnemic.store.row_codec import RowCodec
from mnemic.store.sealing_codec import SealingRowCodec
from mnemic.store.sqlite.hardening import GuardedConnection
from mnemic.store.sqlite.sql import fetch
from mnemic.store.values import StoredKey

_KEYS: Final = (
    "SELECT key_id, name, salt, check_value FROM agent_memory_keys WHERE agent_id = ? "
    "ORDER BY number"
)
_INSERT: Final = (
    "INSERT INTO agent_memory_keys (agent_id, number, key_id, name, salt, check_value) "
    "SELECT ?1, 1 + ifnull(max(number), 0), ?2, ?3, ?4, ?5 FROM agent_memory_keys "
    "WHERE agent_id = ?1"
)
_MAKE_NEWEST: Final = (
    "UPDATE agent_memory_keys SET number = "
    "(SELECT 1 + max(number) FROM agent_memory_keys WHERE agent_id = ?1) "
    "WHERE agent_id = ?1 AND key_id = ?2"
)
_DELETE: Final = "DELETE FROM agent_memory_keys WHERE agent_id = ?"
_IS_STORED: Final = (
    "SELECT EXISTS (SELECT 1 FROM agent_memory_keys WHERE agent_id = ? AND key_id = ? AND salt = ?)"
)


def stored_keys(connection: GuardedConnection, agent_id: str) -> list[StoredKey]:
    """Return what is stored of the keys of an agent, oldest first.

    Raises:
        SealBrokenError: If it is damaged.
    """
    return [stored_key(agent_id, key) for key in fetch(connection, _KEYS, (agent_id,))]


def store_key(
    connection: GuardedConnection, agent_id: str, key: StoredKey, *, allow_other_keys: bool
) -> list[StoredKey]:
    """Store a key unless the agent has it, or another and it is to have one; return all then.

    In a write transaction: of two processes the second finds the key of the first.
    """
    stored = stored_keys(connection, agent_id)
    if stored and not allow_other_keys:
        return stored
    if any(old.key_id == key.key_id for old in stored):
        connection.execute(_MAKE_NEWEST, (agent_id, key.key_id))
    else:
        connection.execute(_INSERT, (agent_id, *key))
    return stored_keys(connection, agent_id)


def delete_other_keys(connection: GuardedConnection, agent_id: str, key_id: bytes) -> None:
    """Destroy the keys of an agent but one; nothing may be sealed under them any more."""
    connection.execute(f"{_DELETE} AND key_id <> ?", (agent_id, key_id))


def delete_keys(connection: GuardedConnection, agent_id: str) -> None:
    """Destroy the keys of an agent: what was sealed under them never opens again."""
    connection.execute(_DELETE, (agent_id,))


def is_stored(connection: GuardedConnection, agent_id: str, key: StoredKey) -> bool:
    """Return whether a key is one of an agent's."""
    return bool(fetch(connection, _IS_STORED, (agent_id, key.key_id, key.salt))[0][0])


def check_key(connection: GuardedConnection, agent_id: str, key: StoredKey) -> None:
    """Check in a write transaction that a key is still that of an agent.

    Raises:
        KeyUnavailableError: If it was replaced or destroyed meanwhile.
    """
    if not is_stored(connection, agent_id, key):
        raise KeyUnavailableError(
            f"the key of agent {agent_id!r} was replaced or destroyed by another process while "
            "this was written; write it again"
        )


def current_key(connection: GuardedConnection, codec: RowCodec, agent_id: str) -> StoredKey | None:
    """Take in the keys that an agent has in a write transaction; return the one that seals.

    Raises:
        MnemicError: As `Keyring.take_in` does.
    """
    if not isinstance(codec, SealingRowCodec):
        return None
    return codec.keyring.take_in(
        agent_id,
        stored_keys(connection, agent_id),
        lambda key: store_key(connection, agent_id, key, allow_other_keys=False),
    )


def check_no_key(connection: GuardedConnection, agent_id: str) -> None:
    """Raise KeyUnavailableError if entries of an agent are sealed."""
    if stored_keys(connection, agent_id):
        raise sensitive_without_key(agent_id)


def sensitive_without_key(agent_id: str) -> KeyUnavailableError:
    """Return the error of a sensitive entry of an agent that seals such, stored without a key."""
    return KeyUnavailableError(
        f"agent {agent_id!r} seals its sensitive memories, and this one would be stored in "
        "plain text; open the memory with encryption=Encryption(key=...)"
    )
