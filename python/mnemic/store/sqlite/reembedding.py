"""SQL statements that make the vectors of another model the agent's own."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import Future
from itertools import groupby
from operator import itemgetter
from typing import Final, NamedTuple

from mnemic._core import VectorSums
from mnemic.arrays import Float32Array, np
from mnemic.crypto.envelope import OVERHEAD
from mnemic.errors import StoreCorruptError
from mnemic.model import MemoryEntry
from mnemic.store.new_rows import vector_blobs
from mnemic.store.sql.reembedding import SqlReembedding
from mnemic.store.sql.session import Condition
from mnemic.store.sqlite.checksums import check_vectors
from mnemic.store.sqlite.damage import DAMAGED, reading_stored
from mnemic.store.sqlite.file import SqliteFile
from mnemic.store.sqlite.hardening import GuardedConnection
from mnemic.store.sqlite.new_rows import report_vectors, write_vectors
from mnemic.store.sqlite.shadow_vectors import (
    IS_OWN,
    MARK,
    SUM_BYTES,
    blobs_of,
    drop_shadow_vectors,
    shadow_vectors,
    write_shadow_vectors,
)
from mnemic.store.sqlite.sql import Columns, fetch, json_array
from mnemic.store.values import Model

_PAGE: Final = 256
"""Rows that are switched at once: few, so that other threads get their turn in between."""

_ENTRIES: Final = "agent_memory_entries INDEXED BY agent_memory_entries_by_agent"
_LACKS: Final = (
    "NOT EXISTS (SELECT 1 FROM agent_memory_embeddings AS v WHERE v.entry_row = e.row "
    "AND v.part = 0 AND v.model = ? AND length(v.embedding) IN (?, ?))"
)
_ROWS: Final = (
    "SELECT row, row_sum, vector_sum, is_sensitive <> 0 OR is_encrypted <> 0, updated_at "
    f"FROM {_ENTRIES} WHERE agent_id = ? AND row > ? ORDER BY row LIMIT ?"
)
_OWN: Final = (
    "SELECT entry_row, model, part, embedding FROM agent_memory_embeddings "
    f"WHERE entry_row IN (SELECT value FROM json_each(?)) AND {IS_OWN} "
    "ORDER BY entry_row, model, part"
)
_FILLED: Final = (
    "SELECT entry_row FROM agent_memory_embeddings WHERE part = 0 "
    "AND entry_row IN (SELECT value FROM json_each(?)) AND model = ? "
    "AND length(embedding) IN (?, ?)"
)
_SEALED: Final = (
    "SELECT entry_row, embedding FROM agent_memory_embeddings WHERE model = ? "
    f"AND length(embedding) = ? AND entry_row IN (SELECT row FROM {_ENTRIES} "
    "WHERE agent_id = ? AND row IN (SELECT value FROM json_each(?)) AND is_encrypted <> 0) "
    "ORDER BY entry_row, part"
)
_DROP: Final = "DELETE FROM agent_memory_embeddings WHERE entry_row = ? AND model = ?"
_KEEP: Final = (
    "UPDATE agent_memory_embeddings SET model = ?, embedding = ? "
    "WHERE entry_row = ? AND model = ? AND part = ?"
)
_OWN_NOW: Final = (
    "UPDATE agent_memory_embeddings SET model = ?, embedding = "
    f"substr(embedding, 1, length(embedding) - {SUM_BYTES}) WHERE entry_row = ? AND model = ?"
)
_RENAME: Final = "UPDATE agent_memory_embeddings SET model = ? WHERE entry_row = ? AND model = ?"


class _OwnVectors(NamedTuple):
    """The own vectors of a row: the model, and the bytes of each chunk in their order."""

    model: str
    blobs: list[bytes]

    @property
    def is_zero(self) -> bool:
        """Whether they stand for none."""
        return not any(self.blobs[0])


def _stored(model: Model) -> tuple[str, int, int]:
    """Return the stored name of shadow vectors of a model, and their bytes, plain and sealed."""
    size = 4 * model[1]
    return MARK + model[0], size + SUM_BYTES, size + OVERHEAD


def _pages(connection: GuardedConnection, agent_id: str) -> Iterator[list[Columns]]:
    after = 0
    while page := connection.fetch_checked(_ROWS, (agent_id, after, _PAGE)):
        yield page
        after = page[-1][0]


def _switch_page(
    connection: GuardedConnection,
    agent_id: str,
    model: Model,
    page: list[Columns],
    skipped: Collection[int],
) -> None:
    """Switch the vectors of some rows."""
    rows = [row for row, *_ in page]
    own = _own_vectors(connection, page)
    fresh = shadow_vectors(connection, agent_id, model, rows)
    sealed = _sealed_vectors(connection, agent_id, model, rows)
    _check_sound(connection, model, rows, {*fresh, *sealed, *skipped})
    for row, vectors in own.items():
        if vectors.is_zero:
            fresh[row] = np.zeros((1, model[1]), np.float32)
            sealed.pop(row, None)
    _move_to_shadow(connection, own, {row for row, *_, is_sensitive, _ in page if is_sensitive})
    _take_over(connection, model, fresh, {row: updated_at for row, *_, updated_at in page})
    connection.executemany(_RENAME, [(model[0], row, MARK + model[0]) for row in sealed])
    report_vectors(connection, dict.fromkeys(rows))


def _own_vectors(connection: GuardedConnection, page: list[Columns]) -> dict[int, _OwnVectors]:
    """Return the own vectors of rows, after a look at their checksums."""
    found = fetch(connection, _OWN, (json_array([row for row, *_ in page]),))
    with reading_stored("a vector's checksum"):
        known = {row: of_vectors or 0 for row, of_row, of_vectors, *_ in page if of_row is not None}
    own = {
        row: _OwnVectors(name, [blob for *_, blob in parts])
        for (row, name), parts in groupby(found, itemgetter(0, 1))
    }
    for name in {vectors.model for vectors in own.values()}:
        of_model = {row for row, vectors in own.items() if vectors.model == name}
        sums = VectorSums([(row, known[row]) for row in sorted(of_model & known.keys())])
        check_vectors(name, [(row, blob) for row, _, _, blob in found if row in of_model], sums)
    return own


def _sealed_vectors(
    connection: GuardedConnection, agent_id: str, model: Model, rows: Sequence[int]
) -> dict[int, list[bytes]]:
    """Return the new vectors of sealed rows, as they are stored now and as the agent's own."""
    name, _, size = _stored(model)
    found = fetch(connection, _SEALED, (name, size, agent_id, json_array(list(rows))))
    return {row: [blob for _, blob in parts] for row, parts in groupby(found, itemgetter(0))}


def _check_sound(
    connection: GuardedConnection, model: Model, rows: list[int], sound: Collection[int]
) -> None:
    """Raise StoreCorruptError if a row has new vectors, and they are not as stored."""
    for (row,) in fetch(connection, _FILLED, (json_array(rows), *_stored(model))):
        if row not in sound:
            raise StoreCorruptError(
                f"the new vectors of row {row} are not as stored; {DAMAGED}, or have "
                "verify(repair=True) drop them, and embed again"
            )


def _move_to_shadow(
    connection: GuardedConnection, own: Mapping[int, _OwnVectors], sensitive: Collection[int]
) -> None:
    """Make own vectors shadow vectors of their model; none is kept that is zero or sensitive."""
    kept = {
        row: vectors for row, vectors in own.items() if row not in sensitive and not vectors.is_zero
    }
    dropped = own.keys() - kept.keys()
    stale = [(row, MARK + vectors.model) for row, vectors in own.items()]
    connection.executemany(_DROP, [*stale, *((row, own[row].model) for row in sorted(dropped))])
    by_kind: dict[tuple[str, int], dict[int, _OwnVectors]] = {}
    for row, vectors in kept.items():
        by_kind.setdefault((vectors.model, len(vectors.blobs[0])), {})[row] = vectors
    for (name, size), rows in by_kind.items():
        connection.executemany(_KEEP, _marked(name, size, rows))


def _marked(name: str, size: int, rows: Mapping[int, _OwnVectors]) -> list[Columns]:
    """Return what makes the vectors of rows, each of so many bytes, shadow vectors."""
    numbers = [(row, len(vectors.blobs)) for row, vectors in rows.items()]
    with reading_stored("a vector"):
        joined = b"".join([blob for vectors in rows.values() for blob in vectors.blobs])
        table = np.frombuffer(joined, "<f4").reshape(-1, size // 4)
    places = [(row, part) for row, number in numbers for part in range(number)]
    marked = MARK + name
    return [
        (marked, blob, row, name, part)
        for blob, (row, part) in zip(blobs_of(marked, numbers, table), places, strict=True)
    ]


def _take_over(
    connection: GuardedConnection,
    model: Model,
    fresh: Mapping[int, Float32Array],
    times: Mapping[int, int],
) -> None:
    """Make shadow vectors of rows their own; those of zeros are rewritten."""
    name, zero = model[0], [row for row in fresh if not fresh[row].any()]
    connection.executemany(_DROP, [(row, MARK + name) for row in zero])
    write_vectors(
        connection,
        [(row, name, 0, times[row], vector_blobs(fresh[row])[0]) for row in zero],
    )
    connection.executemany(_OWN_NOW, [(name, row, MARK + name) for row in fresh.keys() - set(zero)])


class SqliteReembedding(SqlReembedding, SqliteFile):
    """Makes another model the agent's own; see `Reembedding`."""

    def drop_shadow_vectors(self, agent_id: str, model: str | None) -> Future[int]:
        """Delete the shadow vectors of a model, or of all; return of how many entries."""
        return self._write(agent_id, lambda on: drop_shadow_vectors(on, agent_id, model))

    def _lacks(self, model: Model) -> Condition:
        return _LACKS, [*_stored(model)]

    def _write_shadow_vectors(
        self,
        on: GuardedConnection,
        agent_id: str,  # noqa: ARG002 - a row's number leads to no other agent's
        model: str,
        found: Mapping[int, MemoryEntry],
        vectors: Mapping[int, Float32Array],
    ) -> None:
        write_shadow_vectors(on, self._codec, model, found, vectors)

    def _switch_vectors(
        self, on: GuardedConnection, agent_id: str, model: Model, skipped: AbstractSet[int]
    ) -> None:
        for page in _pages(on, agent_id):
            _switch_page(on, agent_id, model, page, skipped)
