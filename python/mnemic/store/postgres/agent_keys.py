"""SQL statements on what is stored of the keys of agents."""

from typing import Final

from mnemic.errors import KeyUnavailableError
from mnemic.store.agent_keys import stored_key
from mnemic.store.postgres.session import Session
from mnemic.store.row_codec import RowCodec
from mnemic.store.sealing_codec import SealingRowCodec
from mnemic.store.values import StoredKey

_KEYS: Final = "mnemic.agent_memory_keys"
_OF_AGENT: Final = (
    f"SELECT key_id, name, salt, check_value FROM {_KEYS} WHERE agent_id = %s ORDER BY number"
)
_INSERT: Final = (
    f"INSERT INTO {_KEYS} (agent_id, number, key_id, name, salt, check_value) "
    f"VALUES (%s, (SELECT 1 + coalesce(max(number), 0) FROM {_KEYS} WHERE agent_id = %s), "
    "%s, %s, %s, %s)"
)
_MAKE_NEWEST: Final = (
    f"UPDATE {_KEYS} SET number = "
    f"(SELECT 1 + max(number) FROM {_KEYS} WHERE agent_id = %s) "
    "WHERE agent_id = %s AND key_id = %s"
)
_DELETE: Final = f"DELETE FROM {_KEYS} WHERE agent_id = %s"


def current_key(session: Session, codec: RowCodec, agent_id: str) -> StoredKey | None:
    """Take in the keys that an agent has, before entries are sealed; return the one that seals.

    In a transaction with the agent's lock, under which no other process stores or destroys a key.

    Raises:
        MnemicError: As `Keyring.take_in` does.
    """
    if not isinstance(codec, SealingRowCodec):
        return None
    return codec.keyring.take_in(
        agent_id,
        stored_keys(session, agent_id),
        lambda key: store_key(session, agent_id, key, allow_other_keys=False),
    )


def stored_keys(session: Session, agent_id: str) -> list[StoredKey]:
    """Return what is stored of the keys of an agent, oldest first."""
    return [stored_key(agent_id, key) for key in session.fetch(_OF_AGENT, (agent_id,))]


def store_key(
    session: Session, agent_id: str, key: StoredKey, *, allow_other_keys: bool
) -> list[StoredKey]:
    """Store a key unless the agent has it, or another and it is to have one; return all then.

    In a transaction with the agent's lock: of two processes the second finds the key of the first.
    """
    stored = stored_keys(session, agent_id)
    if stored and not allow_other_keys:
        return stored
    if any(old.key_id == key.key_id for old in stored):
        session.run(_MAKE_NEWEST, (agent_id, agent_id, key.key_id))
    else:
        session.run(_INSERT, (agent_id, agent_id, *key))
    return stored_keys(session, agent_id)


def delete_other_keys(session: Session, agent_id: str, key_id: bytes) -> None:
    """Destroy the keys of an agent but one; nothing may be sealed under them any more."""
    session.run(f"{_DELETE} AND key_id <> %s", (agent_id, key_id))


def delete_keys(session: Session, agent_id: str) -> None:
    """Destroy the keys of an agent: what was sealed under them never opens again."""
    session.run(_DELETE, (agent_id,))


def check_no_key(session: Session, agent_id: str) -> None:
    """Raise KeyUnavailableError if entries of an agent are sealed."""
    if stored_keys(session, agent_id):
        raise KeyUnavailableError(
            f"agent {agent_id!r} seals its sensitive memories, and this one would be stored in "
            "plain text; open the memory with encryption=Encryption(key=...)"
        )
