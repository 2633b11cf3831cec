"""SQL statements that reseal entries under another key; each runs in a transaction."""

from collections.abc import Mapping
from itertools import groupby
from operator import itemgetter
from typing import Final, NamedTuple

from mnemic._core import VectorSums
from mnemic.errors import SealBrokenError
from mnemic.store.row_codec import COLUMN_NAMES, sealed_ids
from mnemic.store.sealing_codec import PREFIX, SealingRowCodec, log_broken, sealed_prefix
from mnemic.store.sqlite.agent_keys import check_key, delete_other_keys
from mnemic.store.sqlite.checksums import CHECKED_COLUMNS, KEY, check
from mnemic.store.sqlite.hardening import GuardedConnection
from mnemic.store.sqlite.new_rows import fetch_checked, report_vectors
from mnemic.store.sqlite.sealed_rows import VectorOpener
from mnemic.store.sqlite.shadow_vectors import DELETE_OF_ROW, IS_OWN
from mnemic.store.sqlite.sql import Columns, execute_all, fetch, json_array
from mnemic.store.values import StoredKey

_CONTENT: Final = COLUMN_NAMES.index("content")
_IS_UNDER_OTHERS: Final = (
    f"agent_id = ? AND is_encrypted <> 0 AND substr(content, 1, {PREFIX}) <> ?"
)
_INDEXED: Final = "agent_memory_entries INDEXED BY agent_memory_entries_by_seal"
_UNDER_OTHERS: Final = (
    f"SELECT {CHECKED_COLUMNS} FROM {_INDEXED} WHERE {_IS_UNDER_OTHERS} AND row > ? "
    "ORDER BY row LIMIT ?"
)
_COUNT: Final = f"SELECT count(*) FROM {_INDEXED} WHERE {_IS_UNDER_OTHERS}"
_UPDATE: Final = (  # names few indexed columns: SQLite rewrites their indexes
    "UPDATE agent_memory_entries SET content = CAST(? AS TEXT), fingerprint = ?, "
    "idempotency_key = ?, key_fingerprint = ? WHERE row = ?"
)
_VECTORS: Final = (
    "SELECT entry_row, embedding, model FROM agent_memory_embeddings "
    f"WHERE entry_row IN (SELECT value FROM json_each(?)) AND {IS_OWN} "
    "ORDER BY entry_row, model, part"
)
_UPDATE_VECTOR: Final = (
    "UPDATE agent_memory_embeddings SET embedding = ? "
    "WHERE entry_row = ? AND model = ? AND part = ?"
)


def sealed_under_others(connection: GuardedConnection, agent_id: str, key_id: bytes) -> int:
    """Return the number of an agent's entries that are sealed under other keys than this one."""
    return int(fetch(connection, _COUNT, (agent_id, sealed_prefix(key_id)))[0][0])


def reseal(
    connection: GuardedConnection,
    codec: SealingRowCodec,
    agent_id: str,
    key: StoredKey,
    *,
    after: int,
    limit: int,
) -> tuple[int, int]:
    """Seal the next entries that are sealed under other keys; return their number and last row."""
    check_key(connection, agent_id, key)
    which = agent_id, sealed_prefix(key.key_id), after, limit
    found = fetch_checked(connection, _UNDER_OTHERS, which)
    if not found:
        return 0, 0
    resealed = _Resealer(connection, codec, agent_id).reseal(found)
    return resealed, found[-1][0]


class _Resealer(NamedTuple):
    """Reseals the rows of an agent.

    Attributes:
        connection: In a write transaction.
        codec: Codec of the entries.
        agent_id: The agent.
    """

    connection: GuardedConnection
    codec: SealingRowCodec
    agent_id: str

    def reseal(self, found: list[Columns]) -> int:
        """Reseal rows; return how many. Those that do not open are logged, and stay as they are."""
        try:
            return self._resealed(found)
        except SealBrokenError as error:
            if len(found) > 1:
                return sum(self.reseal([row]) for row in found)
            log_broken(error)
            return 0

    def _resealed(self, found: list[Columns]) -> int:
        known = check(found).vectors
        sealed = self.codec.resealed([row[1 : KEY - 1] for row in found])
        self._seal_vectors(sealed_ids(found), known)
        values = [
            (new.columns[_CONTENT], *new.more, old[0])
            for old, new in zip(found, sealed, strict=True)
        ]
        execute_all(self.connection, _UPDATE, values)
        rows = [(row[0],) for row in found]
        execute_all(self.connection, DELETE_OF_ROW, rows)  # rebuilt
        return len(found)

    def _seal_vectors(self, ids: Mapping[int, bytes], known: VectorSums) -> None:
        """Seal the vectors of rows again."""
        stored = fetch(self.connection, _VECTORS, (json_array(list(ids)),))
        for model, of_model in groupby(sorted(stored, key=itemgetter(2)), itemgetter(2)):
            vectors = [vector[:2] for vector in of_model]
            opened = VectorOpener(self.codec, self.agent_id, model, ids).checked(vectors, known)
            self._write_vectors(model, opened, ids)

    def _write_vectors(self, model: str, opened: list[Columns], ids: Mapping[int, bytes]) -> None:
        places: dict[int, list[Columns]] = {}
        for _, parts in groupby(opened, itemgetter(0)):
            for part, vector in enumerate(parts):
                places.setdefault(part, []).append(vector)
        for part, vectors in places.items():  # those of one part together: most have no other
            numbers, plain = zip(*vectors, strict=True)
            owners = [ids[row] for row in numbers]
            sealed = self.codec.sealed_vectors(self.agent_id, owners, model, part, plain)
            values = [(blob, row, model, part) for row, blob in zip(numbers, sealed, strict=True)]
            execute_all(self.connection, _UPDATE_VECTOR, values)
            report_vectors(self.connection, numbers)


def end_rotation(connection: GuardedConnection, agent_id: str, key: StoredKey) -> bool:
    """Destroy the keys of an agent but this one, unless entries are sealed under them."""
    check_key(connection, agent_id, key)
    if sealed_under_others(connection, agent_id, key.key_id):
        return False
    delete_other_keys(connection, agent_id, key.key_id)
    return True
