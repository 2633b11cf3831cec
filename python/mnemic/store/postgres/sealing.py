"""Sealing in the PostgreSQL store, and its keys."""

from collections.abc import Sequence
from concurrent.futures import Future
from uuid import UUID

from mnemic.crypto import Encryption
from mnemic.model import MemoryEntry, Scope
from mnemic.model.filter import EVERY_ENTRY
from mnemic.store.agent_keys import Keyring
from mnemic.store.postgres import agent_keys, rotation
from mnemic.store.postgres.changing import delete_all
from mnemic.store.postgres.jobs import AgentJob
from mnemic.store.postgres.opened_database import OpenedDatabase
from mnemic.store.postgres.session import Columns, Session
from mnemic.store.row_codec import ENCRYPTED, PlainRowCodec, RowCodec
from mnemic.store.sealing_codec import SealingRowCodec, sealed_prefix, sealing_codec_of
from mnemic.store.values import StoredKey


class PostgresSealing(OpenedDatabase):
    """Seals entries, and changes or destroys keys; see `Sealing`."""

    def codec_of(self, encryption: Encryption | None) -> RowCodec:
        """Return the codec of these options."""
        if encryption is None:
            return PlainRowCodec()
        return SealingRowCodec(Keyring(encryption, self._stored_keys, self._store_key))

    def _stored_keys(self, agent_id: str) -> Sequence[StoredKey]:
        connections = self._usable().connections  # a row that is being read may need its key
        return connections.read(
            [agent_id], lambda on: agent_keys.stored_keys(on, agent_id), apart=True
        )

    def _store_key(
        self, agent_id: str, key: StoredKey, *, allow_other_keys: bool
    ) -> Sequence[StoredKey]:
        job = AgentJob(
            agent_id,
            lambda on: agent_keys.store_key(on, agent_id, key, allow_other_keys=allow_other_keys),
            is_idempotent=True,
        )
        kept: Sequence[StoredKey] = self._writable().writer_of(agent_id).write(job).result()
        return kept

    def marked(self, entry: MemoryEntry) -> MemoryEntry:
        """Return an entry, marked as encrypted if it is to be sealed."""
        return self._codec.marked(entry)

    def check_key(self, agent_id: str) -> None:
        """Check the keys of an agent, and make one if its entries are to be sealed."""
        self._codec.check_key(agent_id, can_write=not self._database.connections.is_read_only)

    def begin_rotation(self, agent_id: str, encryption: Encryption) -> None:
        """Seal entries of an agent under the current key of these options from now on."""
        codec = sealing_codec_of(self._codec)
        self._writable()
        codec.keyring.rotate(agent_id, encryption)

    def sealed_under_other_keys(self, agent_id: str) -> int:
        """Return the number of entries that are not sealed under the newest key."""
        key = sealing_codec_of(self._codec).newest_key(agent_id)
        return self._read(
            agent_id, lambda on: rotation.sealed_under_others(on, agent_id, key.key_id)
        )

    def reseal(self, agent_id: str, after: int, limit: int) -> Future[tuple[int, int]]:
        """Seal entries under the newest key that are sealed under others."""
        codec = sealing_codec_of(self._codec)
        return self._write(
            agent_id, lambda on: rotation.reseal(on, codec, agent_id, after=after, limit=limit)
        )

    def end_rotation(self, agent_id: str) -> Future[bool]:
        """Destroy the keys of an agent but the newest, unless entries are sealed under them."""
        codec = sealing_codec_of(self._codec)
        return self._write(agent_id, lambda on: rotation.end_rotation(on, codec, agent_id))

    def forget_agent(self, agent_id: str) -> Future[list[UUID]]:
        """Destroy the keys of an agent, and delete its entries; return their ids."""
        everyone = Scope(agent_id, all_users=True)

        def forget(on: Session) -> list[UUID]:
            agent_keys.delete_keys(on, agent_id)
            return delete_all(on, self._codec, everyone, EVERY_ENTRY)

        def forgotten(ids: list[UUID]) -> list[UUID]:
            if isinstance(self._codec, SealingRowCodec):
                self._codec.keyring.forget(agent_id)
            return ids

        writer = self._writable().writer_of(agent_id)
        return writer.write(AgentJob(agent_id, forget), forgotten)

    def _under_former_keys(self, agent_id: str, rows: Sequence[Columns]) -> list[int]:
        """Return the numbers of sealed rows that no present key of their agent opens.

        They were resealed since they were read: that changes nothing of them, and is not logged.
        """
        if not isinstance(self._codec, SealingRowCodec):
            return []
        sealed = [row for row in rows if row[ENCRYPTED]]
        if not sealed:
            return []
        known = set(map(sealed_prefix, self._codec.keyring.keys(agent_id).sealers))
        return [row[0] for row in sealed if not rotation.is_under(row, known)]
