"""Sealing in the SQLite store, and its keys."""

from collections.abc import Sequence
from concurrent.futures import Future
from uuid import UUID

from mnemic.crypto import Encryption
from mnemic.model import MemoryEntry, Scope
from mnemic.model.filter import EVERY_ENTRY
from mnemic.store.agent_keys import Keyring
from mnemic.store.row_codec import PlainRowCodec, RowCodec
from mnemic.store.sealing_codec import SealingRowCodec, sealing_codec_of
from mnemic.store.sqlite import agent_keys, rotation
from mnemic.store.sqlite.deletes import SqliteDeletes, delete_all
from mnemic.store.sqlite.hardening import GuardedConnection
from mnemic.store.values import StoredKey


class SqliteSealing(SqliteDeletes):
    """Seals entries, and changes or destroys keys; see `Sealing`."""

    def codec_of(self, encryption: Encryption | None) -> RowCodec:
        """Return the codec of these options."""
        if encryption is None:
            return PlainRowCodec()
        return SealingRowCodec(Keyring(encryption, self._stored_keys, self._store_key))

    def _stored_keys(self, agent_id: str) -> Sequence[StoredKey]:
        with self._reading() as connection:
            return agent_keys.stored_keys(connection, agent_id)

    def _store_key(
        self, agent_id: str, key: StoredKey, *, allow_other_keys: bool
    ) -> Sequence[StoredKey]:
        return self._write(
            agent_id,
            lambda on: agent_keys.store_key(on, agent_id, key, allow_other_keys=allow_other_keys),
        ).result()

    def marked(self, entry: MemoryEntry) -> MemoryEntry:
        """Return an entry, marked as encrypted if it is to be sealed."""
        return self._codec.marked(entry)

    def check_key(self, agent_id: str) -> None:
        """Check the keys of an agent, and make one if its entries are to be sealed."""
        self._codec.check_key(agent_id, can_write=not self._is_read_only)

    def begin_rotation(self, agent_id: str, encryption: Encryption) -> None:
        """Seal entries of an agent under the current key of these options from now on."""
        sealing_codec_of(self._codec).keyring.rotate(agent_id, encryption)

    def sealed_under_other_keys(self, agent_id: str) -> int:
        """Return the number of entries that are not sealed under the newest key."""
        key = self._newest_key(agent_id)
        with self._reading() as connection:
            return rotation.sealed_under_others(connection, agent_id, key.key_id)

    def reseal(self, agent_id: str, after: int, limit: int) -> Future[tuple[int, int]]:
        """Seal entries under the newest key that are sealed under others."""
        codec, key = sealing_codec_of(self._codec), self._newest_key(agent_id)
        return self._write(
            agent_id, lambda on: rotation.reseal(on, codec, agent_id, key, after=after, limit=limit)
        )

    def end_rotation(self, agent_id: str) -> Future[bool]:
        """Destroy the keys of an agent but the newest, unless entries are sealed under them."""
        key = self._newest_key(agent_id)
        return self._write(agent_id, lambda on: rotation.end_rotation(on, agent_id, key))

    def forget_agent(self, agent_id: str) -> Future[list[UUID]]:
        """Destroy the keys of an agent, and delete its entries; return their ids."""
        everyone = Scope(agent_id, all_users=True)

        def forget(limit: int | None, on: GuardedConnection) -> list[UUID]:
            agent_keys.delete_keys(on, agent_id)
            return delete_all(on, self._codec, everyone, EVERY_ENTRY, limit=limit)

        return self._write_or_parts(forget)

    def _newest_key(self, agent_id: str) -> StoredKey:
        codec = sealing_codec_of(self._codec)
        codec.keyring.refreshed(agent_id)
        return codec.newest_key(agent_id)
