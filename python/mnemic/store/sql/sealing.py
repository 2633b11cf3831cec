"""Sealing in the stores in SQL: what is stored of the keys of agents, and their change."""

from abc import ABC
from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import Final

from mnemic.crypto import Encryption
from mnemic.errors import KeyUnavailableError, SealBrokenError
from mnemic.store.agent_keys import Keyring, stored_key
from mnemic.store.operations import EndRotation, Reseal, SealedUnderOtherKeys
from mnemic.store.row_codec import COLUMN_NAMES, RowCodec, sealed_ids
from mnemic.store.sealing_codec import SealingRowCodec, log_broken, sealing_codec_of
from mnemic.store.sql.conditions import ENTRIES
from mnemic.store.sql.dialect import PlainVector
from mnemic.store.sql.session import Columns, OpenedSql, SqlSession
from mnemic.store.values import StoredKey

_KEYS: Final = "mnemic.agent_memory_keys"
_OF_AGENT: Final = (
    f"SELECT key_id, name, salt, check_value FROM {_KEYS} WHERE agent_id = ? ORDER BY number"
)
_INSERT: Final = (
    f"INSERT INTO {_KEYS} (agent_id, number, key_id, name, salt, check_value) "
    f"VALUES (?, (SELECT 1 + coalesce(max(number), 0) FROM {_KEYS} WHERE agent_id = ?), ?, ?, ?, ?)"
)
_MAKE_NEWEST: Final = (
    f"UPDATE {_KEYS} SET number = (SELECT 1 + max(number) FROM {_KEYS} WHERE agent_id = ?) "
    "WHERE agent_id = ? AND key_id = ?"
)
_DELETE: Final = f"DELETE FROM {_KEYS} WHERE agent_id = ?"
_RESEAL: Final = (  # names few indexed columns: SQLite rewrites their indexes
    f"UPDATE {ENTRIES} SET content = ?, fingerprint = ?, idempotency_key = ?, key_fingerprint = ? "
    "WHERE agent_id = ? AND row = ?"
)

_ENCODED: Final = slice(1, 1 + len(COLUMN_NAMES))
_CONTENT: Final = COLUMN_NAMES.index("content")

_MODEL_AND_CHUNK: Final = itemgetter(0, 1)


class SqlSealing(OpenedSql, ABC):
    """Seals entries, and changes keys; see `Sealing`."""

    def codec_of(self, encryption: Encryption | None) -> RowCodec:
        """Return the codec of these options."""
        if encryption is None:
            return RowCodec()
        return SealingRowCodec(Keyring(encryption, self._stored_keys, self._store_key))

    def _stored_keys(self, agent_id: str) -> Sequence[StoredKey]:
        # A row that is being read may need its key.
        return self._read(agent_id, lambda on: stored_keys(on, agent_id), apart=True)

    def _store_key(
        self, agent_id: str, key: StoredKey, *, allow_other_keys: bool
    ) -> Sequence[StoredKey]:
        stored: Sequence[StoredKey] = self._submit(
            agent_id,
            lambda on: store_key(on, agent_id, key, allow_other_keys=allow_other_keys),
            is_idempotent=True,
        ).result()
        return stored

    def check_key(self, agent_id: str) -> None:
        """Check the keys of an agent, and make one if its entries are to be sealed."""
        self._codec.check_key(agent_id, can_write=not self._is_read_only)

    def begin_rotation(self, agent_id: str, encryption: Encryption) -> None:
        """Seal entries of an agent under the current key of these options from now on."""
        sealing_codec_of(self._codec).keyring.rotate(agent_id, encryption)


def sealed_under_other_keys(on: SqlSession, codec: RowCodec, wanted: SealedUnderOtherKeys) -> int:
    """Return the number of entries that are not sealed under the newest key."""
    sealing_codec_of(codec)
    keys = stored_keys(on, wanted.agent_id)
    if not keys:
        return 0
    others, values = on.dialect.under_other_keys(wanted.agent_id, keys[-1].key_id, 0)
    return int(on.value(f"SELECT count(*) FROM ({others}) AS others", values))


def reseal(on: SqlSession, codec: RowCodec, wanted: Reseal) -> tuple[int, int]:
    """Seal entries under the newest key that are sealed under others."""
    seals, agent_id = sealing_codec_of(codec), wanted.agent_id
    newest = _newest_key(on, seals, agent_id)
    others, values = on.dialect.under_other_keys(agent_id, newest.key_id, wanted.after)
    found = on.fetch(f"{others} ORDER BY row LIMIT ?", (*values, wanted.limit))
    if not found:
        return 0, 0
    rows = [row for (row,) in found]
    return _reseal(on, seals, agent_id, rows), rows[-1]


def end_rotation(on: SqlSession, codec: RowCodec, wanted: EndRotation) -> bool:
    """Destroy the keys of an agent but the newest, unless entries are sealed under them."""
    agent_id = wanted.agent_id
    newest = _newest_key(on, sealing_codec_of(codec), agent_id)
    others, values = on.dialect.under_other_keys(agent_id, newest.key_id, 0)
    if on.value(f"SELECT EXISTS ({others})", values):
        return False
    on.run(f"{_DELETE} AND key_id <> ?", (agent_id, newest.key_id))
    return True


def forgotten(codec: RowCodec, agent_id: str) -> None:
    """Forget the keys of an agent, which were destroyed."""
    if isinstance(codec, SealingRowCodec):
        codec.keyring.forget(agent_id)


def stored_keys(on: SqlSession, agent_id: str) -> list[StoredKey]:
    """Return what is stored of the keys of an agent, oldest first.

    Raises:
        SealBrokenError: If it is damaged.
    """
    return [stored_key(agent_id, key) for key in on.fetch(_OF_AGENT, (agent_id,))]


def store_key(
    on: SqlSession, agent_id: str, key: StoredKey, *, allow_other_keys: bool
) -> list[StoredKey]:
    """Store a key unless the agent has it, or another and it is to have one; return all then.

    In a write of the agent: of two processes the second finds the key of the first.
    """
    stored = stored_keys(on, agent_id)
    if stored and not allow_other_keys:
        return stored
    if any(old.key_id == key.key_id for old in stored):
        on.run(_MAKE_NEWEST, (agent_id, agent_id, key.key_id))
    else:
        on.run(_INSERT, (agent_id, agent_id, *key))
    return stored_keys(on, agent_id)


def delete_keys(on: SqlSession, agent_id: str) -> None:
    """Destroy the keys of an agent: what was sealed under them never opens again."""
    on.run(_DELETE, (agent_id,))


def current_key(on: SqlSession, codec: RowCodec, agent_id: str) -> StoredKey | None:
    """Take in the keys that an agent has, before entries are sealed; return the one that seals.

    In a write of the agent, during which no other process stores or destroys a key.

    Raises:
        MnemicError: As `Keyring.take_in` does.
    """
    if not isinstance(codec, SealingRowCodec):
        return None
    return codec.keyring.take_in(
        agent_id,
        stored_keys(on, agent_id),
        lambda key: store_key(on, agent_id, key, allow_other_keys=False),
    )


def check_no_key(on: SqlSession, agent_id: str) -> None:
    """Raise KeyUnavailableError if an agent seals its sensitive entries: one has no key."""
    if stored_keys(on, agent_id):
        raise KeyUnavailableError(
            f"agent {agent_id!r} seals its sensitive memories, and this one would be stored in "
            "plain text; open the memory with encryption=Encryption(key=...)"
        )


def _newest_key(on: SqlSession, codec: SealingRowCodec, agent_id: str) -> StoredKey:
    """Return the newest key of an agent, in a write of it.

    Raises:
        WrongKeyError: If its master key is not given.
    """
    current_key(on, codec, agent_id)
    return codec.keyring.newest(agent_id)


def _reseal(on: SqlSession, codec: SealingRowCodec, agent_id: str, rows: list[int]) -> int:
    """Reseal rows; return how many. Those that do not open are logged, and stay as they are."""
    dialect = on.dialect
    sql = (
        f"SELECT {dialect.row} FROM {ENTRIES} {dialect.by_row} "
        f"WHERE agent_id = ? AND {dialect.among('row')} ORDER BY row"
    )
    stored = on.fetch_checked(sql, (agent_id, rows))
    try:
        with dialect.reading_stored("a memory"):
            vectors = dialect.opened_vectors(on, codec, agent_id, stored)
            sealed = codec.resealed([row[_ENCODED] for row in stored])
    except SealBrokenError as error:
        if len(rows) > 1:
            return sum(_reseal(on, codec, agent_id, [row]) for row in rows)
        log_broken(error)
        return 0
    on.run_all(
        _RESEAL,
        [
            (new.columns[_CONTENT].decode(), *new.more, agent_id, old[0])
            for old, new in zip(stored, sealed, strict=True)
        ],
    )
    ids = sealed_ids(stored)
    dialect.write_sealed(on, agent_id, list(ids), _sealed(codec, agent_id, ids, vectors))
    return len(stored)


def _sealed(
    codec: SealingRowCodec, agent_id: str, ids: dict[int, bytes], vectors: list[PlainVector]
) -> list[Columns]:
    """Return vectors sealed, each with its row, model and chunk.

    Those of one chunk together: most rows have no other.
    """
    sealed: list[Columns] = []
    by_chunk = groupby(sorted(vectors, key=_MODEL_AND_CHUNK), _MODEL_AND_CHUNK)
    for (model, chunk), of_chunk in by_chunk:
        _, _, rows, plain = zip(*of_chunk, strict=True)
        fields = codec.sealed_vectors(agent_id, [ids[row] for row in rows], model, chunk, plain)
        sealed += [(field, row, model, chunk) for row, field in zip(rows, fields, strict=True)]
    return sealed
