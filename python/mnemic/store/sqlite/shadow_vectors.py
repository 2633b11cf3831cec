"""Shadow vectors in a file: those of other models than the agent's own; and its change of model.

They lie among the agent's own in the rows of their entries, so that they go with their entry in one
transaction, also if another process deletes it. Their model's name begins with `MARK`, which no
name of a model has: what reads, checks and counts an agent's own vectors never meets them.

Each has a checksum behind its numbers, over them, its row, its chunk and their number. The rows'
own sums leave them out: storing them changes no entry.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, TypeAlias, cast

from mnemic._core import VectorSums, vector_sums
from mnemic.arrays import np
from mnemic.crypto.envelope import OVERHEAD
from mnemic.errors import StoreCorruptError
from mnemic.model import MemoryEntry
from mnemic.model.timestamps import to_microseconds
from mnemic.store.new_rows import as_stored, vector_blobs
from mnemic.store.operations import AddShadowVectors
from mnemic.store.row_codec import RowCodec
from mnemic.store.sql.session import Condition, SqlSession
from mnemic.store.sqlite.checksums import MASK, check_vectors
from mnemic.store.sqlite.hardening import GuardedConnection
from mnemic.store.sqlite.new_rows import write_vectors
from mnemic.store.sqlite.sql import INSERT_VECTOR, IS_OWN, MARK, Columns
from mnemic.store.sqlite.sqlite_errors import DAMAGED, reading_stored
from mnemic.store.values import Model

_Blobs: TypeAlias = Mapping[int, Sequence[bytes]]
"""The stored bytes of each chunk of rows."""

SUM_BYTES: Final = 8
"""Bytes of the checksum behind the numbers of a vector."""
_ROW, _CHUNK, _NUMBER = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
"""Odd factors of 64 bits, of xxHash and the golden ratio, that spread small numbers."""

_PAGE: Final = 256
"""Rows that are switched at once: few, so that other threads get their turn in between."""

_LACKS: Final = (
    "NOT EXISTS (SELECT 1 FROM agent_memory_embeddings AS v WHERE v.entry_row = e.row "
    "AND v.part = 0 AND v.model = ? AND length(v.embedding) IN (?, ?))"
)
_ALL: Final = (
    "SELECT entry_row, model, embedding FROM agent_memory_embeddings "
    f"WHERE NOT {IS_OWN} AND entry_row NOT IN "  # which have no checksum of this kind
    "(SELECT row FROM agent_memory_entries WHERE is_encrypted <> 0) ORDER BY entry_row, model, part"
)
_ROWS: Final = (
    "SELECT row, row_sum, vector_sum, is_encrypted <> 0, is_sensitive <> 0, updated_at "
    "FROM agent_memory_entries INDEXED BY agent_memory_entries_by_agent "
    "WHERE agent_id = ? AND row > ? ORDER BY row LIMIT ?"
)
_OF_ROWS: Final = (
    "SELECT entry_row, model, embedding FROM agent_memory_embeddings "
    f"WHERE entry_row IN (SELECT value FROM json_each(?)) AND (model = ? OR {IS_OWN}) "
    "ORDER BY entry_row, model, part"
)
_DROP: Final = "DELETE FROM agent_memory_embeddings WHERE entry_row = ? AND model = ?"
_KEEP: Final = (
    "UPDATE agent_memory_embeddings SET model = ?, embedding = ? "
    "WHERE entry_row = ? AND model = ? AND part = ?"
)
_RENAME: Final = "UPDATE agent_memory_embeddings SET model = ? WHERE entry_row = ? AND model = ?"
_OWN_NOW: Final = _RENAME.replace(
    " WHERE", f", embedding = substr(embedding, 1, length(embedding) - {SUM_BYTES}) WHERE"
)


def lacks_shadow_vectors(model: Model) -> Condition:
    """Return the condition of entries, `e`, without shadow vectors of a model."""
    return _LACKS, [MARK + model[0], *_sizes(model)]


def _sizes(model: Model) -> tuple[int, int]:
    """Return the bytes of a shadow vector of a model, plain and sealed."""
    return 4 * model[1] + SUM_BYTES, 4 * model[1] + OVERHEAD


def shadow_vectors(agent_id: str, model: str | None) -> list[Condition]:
    """Return FROM and WHERE of the shadow vectors of a model, or of all."""
    where = (
        f"FROM agent_memory_embeddings WHERE NOT {IS_OWN} AND ifnull(model = ?, TRUE) "
        "AND entry_row IN (SELECT row FROM agent_memory_entries WHERE agent_id = ?)"
    )
    return [(where, [None if model is None else MARK + model, agent_id])]


def write_shadow_vectors(
    session: SqlSession, codec: RowCodec, wanted: AddShadowVectors, found: Mapping[int, MemoryEntry]
) -> None:
    """Write the vectors of rows, with their stored entries, over those of the model."""
    name = MARK + wanted.model
    session.run_all(_DROP, [(row, name) for row in found])
    values = [
        (row, name, part, to_microseconds(entry.updated_at), blob)
        for row, entry in found.items()
        for part, blob in enumerate(_stored(codec, entry, wanted, row))
    ]
    session.run_all(INSERT_VECTOR, values)


def _stored(
    codec: RowCodec, entry: MemoryEntry, wanted: AddShadowVectors, row: int
) -> Sequence[object]:
    """Return vectors as they are stored; those of a sealed entry as if they were its own."""
    vectors = wanted.vectors[row]
    if entry.is_encrypted and vectors.any():
        return as_stored(codec, entry, wanted.model, vectors)
    return _summed(MARK + wanted.model, {row: vector_blobs(vectors)})


def _summed(name: str, plain: _Blobs) -> list[bytes]:
    """Return the vectors of rows, each with its checksum."""
    blobs = [blob for own in plain.values() for blob in own]
    places = [(row, chunk, len(own)) for row, own in plain.items() for chunk in range(len(own))]
    with reading_stored("a vector"):
        sums = vector_sums(name, [[blob] for blob in blobs])
    return [
        blob + ((own + row * _ROW + chunk * _CHUNK + number * _NUMBER) & MASK).to_bytes(8, "little")
        for blob, own, (row, chunk, number) in zip(blobs, sums, places, strict=True)
    ]


def are_sound(name: str, stored: Mapping[int, Sequence[Any]]) -> bool:
    """Return whether the vectors of rows agree with their checksums."""
    blobs = [blob for own in stored.values() for blob in own]
    sizes = {len(blob) if isinstance(blob, bytes) else 0 for blob in blobs}
    if len(sizes) != 1 or min(sizes) <= SUM_BYTES or min(sizes) % 4:
        return False
    plain = {row: [blob[:-SUM_BYTES] for blob in own] for row, own in stored.items()}
    numbers = np.frombuffer(b"".join([blob for own in plain.values() for blob in own]), "<f4")
    return blobs == _summed(name, plain) and bool(np.isfinite(numbers).all())


def drop_damaged(on: GuardedConnection) -> None:
    """Delete shadow vectors that differ from their checksums."""
    for (row, name), parts in groupby(on.fetch(_ALL), itemgetter(0, 1)):
        if not are_sound(name, {row: [blob for *_, blob in parts]}):
            on.execute(_DROP, (row, name))


def check_shadow_vectors(row: int, found: list[Columns]) -> None:
    """Check the shadow vectors of a row, each (row, bytes, model).

    Raises:
        StoreCorruptError: If some are damaged.
    """
    for name, parts in groupby(found, itemgetter(2)):
        if not are_sound(name, {row: [blob for _, blob, _ in parts]}):
            raise StoreCorruptError(
                f"the vectors of row {row} by another model are not as stored; {DAMAGED}, or "
                "have verify(repair=True) drop them"
            )


def switch_vectors(
    session: SqlSession, agent_id: str, model: Model, skipped: Collection[int]
) -> None:
    """Make own vectors shadow vectors, and those of a model the agent's own."""
    on = cast("GuardedConnection", session)
    for page in _pages(on, agent_id):
        _switch_page(on, model, page, skipped)


def _pages(on: GuardedConnection, agent_id: str) -> Iterator[list[Columns]]:
    after = 0
    while page := on.fetch_checked(_ROWS, (agent_id, after, _PAGE)):
        yield page
        after = page[-1][0]


def _switch_page(
    on: GuardedConnection, model: Model, page: list[Columns], skipped: Collection[int]
) -> None:
    """Switch the vectors of some rows."""
    name, shadow = model[0], MARK + model[0]
    rows = [row for row, *_ in page]
    found: dict[str, dict[int, list[bytes]]] = {}
    for (row, of), parts in groupby(on.fetch(_OF_ROWS, (rows, shadow)), itemgetter(0, 1)):
        found.setdefault(of, {})[row] = [blob for *_, blob in parts]
    plain, sealed = _new_vectors(model, found.pop(shadow, {}), page, skipped)
    zero = {row for row, blobs in plain.items() if _are_zero(blobs, model[1])}
    for former, own in found.items():
        zero |= _move_to_shadow(on, former, own, page)
    on.run_all(_DROP, [(row, shadow) for row in zero])
    nothing = bytes(4 * model[1])
    times = {row: updated_at for row, *_, updated_at in page}
    write_vectors(on, [(row, name, 0, times[row], nothing) for row in sorted(zero)])
    on.run_all(_OWN_NOW, [(name, row, shadow) for row in plain.keys() - zero])
    on.run_all(_RENAME, [(name, row, shadow) for row in sealed.keys() - zero])
    on.summed_rows.write_vectors(rows)


def _new_vectors(
    model: Model, found: _Blobs, page: list[Columns], skipped: Collection[int]
) -> tuple[_Blobs, _Blobs]:
    """Return the new vectors of rows that have some, in plain text and sealed.

    Raises:
        StoreCorruptError: If those of a row that is not skipped are not as stored.
    """
    name, (plain_size, sealed_size) = MARK + model[0], _sizes(model)
    is_sealed = {row for row, _, _, is_encrypted, *_ in page if is_encrypted}
    sizes = {row: {len(blob) if type(blob) is bytes else 0 for blob in found[row]} for row in found}
    plain = {row: found[row] for row in found if sizes[row] == {plain_size}}
    if not are_sound(name, plain):
        plain = {row: own for row, own in plain.items() if are_sound(name, {row: own})}
    sealed = {row: found[row] for row in is_sealed & found.keys() if sizes[row] == {sealed_size}}
    for row in found.keys() - plain.keys() - sealed.keys() - set(skipped):
        if not sizes[row].isdisjoint((plain_size, sealed_size)):  # they did not count as lacking
            raise StoreCorruptError(
                f"the new vectors of row {row} are not as stored; {DAMAGED}, or have "
                "verify(repair=True) drop them, and embed again"
            )
    return plain, sealed


def _are_zero(blobs: Sequence[bytes], dimensions: int) -> bool:
    return not any(np.frombuffer(blob, "<f4", dimensions).any() for blob in blobs)


def _move_to_shadow(
    on: GuardedConnection, model: str, own: _Blobs, page: list[Columns]
) -> set[int]:
    """Make own vectors of rows, after a look at their checksums, shadow vectors of their model.

    None is kept that is zero, or of a sensitive or sealed entry; return the rows of zeros.
    """
    _check_own(model, own, page)
    hidden = {row for row, _, _, *is_hidden, _ in page if any(is_hidden)}
    zero = {row for row, blobs in own.items() if not any(blobs[0])}
    kept = {row: blobs for row, blobs in own.items() if row not in hidden | zero}
    on.run_all(_DROP, [(row, MARK + model) for row in own])
    on.run_all(_DROP, [(row, model) for row in own.keys() - kept.keys()])
    places = [(row, model, part) for row, blobs in kept.items() for part in range(len(blobs))]
    on.run_all(
        _KEEP,
        [
            (MARK + model, blob, *place)
            for blob, place in zip(_summed(MARK + model, kept), places, strict=True)
        ],
    )
    return zero


def _check_own(model: str, own: _Blobs, page: list[Columns]) -> None:
    with reading_stored("a vector's checksum"):
        known = {row: of_vectors or 0 for row, of_row, of_vectors, *_ in page if of_row is not None}
    sums = VectorSums([(row, known[row]) for row in own.keys() & known.keys()])
    check_vectors(model, [(row, blob) for row, blobs in own.items() for blob in blobs], sums)
