"""Search by vectors in the database: exact, or by an HNSW index where there is one."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from datetime import datetime
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mnemic.model import MemoryEntry, Scope
from mnemic.model.filter import All
from mnemic.model.rows import RowBatch
from mnemic.store.operations import ActiveRows, Nearest, RowsWithoutVectors
from mnemic.store.postgres.dialect import POSTGRES
from mnemic.store.postgres.rows import StoredRows
from mnemic.store.postgres.session import Columns, Session, Vector
from mnemic.store.postgres.stored import EMBEDDINGS, HAS_NO_VECTOR, ROW, active_entries, records_of
from mnemic.store.postgres.vector_indexes import VectorIndex, find_vector_index
from mnemic.store.postgres.vectors import MAX_DIMENSIONS
from mnemic.store.row_codec import RowCodec
from mnemic.store.sql.change_log import all_rows
from mnemic.store.sql.conditions import (
    ENTRIES,
    HAS_ACTIVE_STATUS,
    IS_ACTIVE,
    narrowed,
    visible,
    visible_in,
)
from mnemic.store.sql.lists import has_sealed
from mnemic.store.sql.operations import Reading
from mnemic.store.sql.session import Condition
from mnemic.store.values import CollectedBatch, SelectedRows, full_batch

_SPARE: Final = 16
"""Rows read beyond the limit: they show that none of the rest ties with the last one."""

_MAX_TIES: Final = 10_000
"""Rows that tie with the last one, beyond which the whole agent is loaded instead."""

_CANDIDATES_PER_HIT: Final = 4
_MIN_CANDIDATES: Final = 64
"""Rows requested from an approximate index: so many for each hit, and at least this many."""

_MAX_EF_SEARCH: Final = 1000
"""Of pgvector."""


class _Row(NamedTuple):
    """A row with the distance of its nearest chunk, None without a vector, and its vectors."""

    distance: float | None
    vectors: list[NDArray[np.float32]] | None
    columns: Columns


def nearest(on: Session, codec: RowCodec, wanted: Nearest) -> SelectedRows | None:
    """Return memories among which the most similar ones are."""
    if wanted.model[1] > MAX_DIMENSIONS:
        return None
    with nullcontext() if wanted.is_exact else on.one_moment():
        return _nearest_or_none(on, codec, wanted)


def active_rows(on: Session, codec: RowCodec, wanted: ActiveRows) -> SelectedRows:
    """Return all active rows of a scope with vectors and links."""
    rows: list[Columns] = []
    reader = StoredRows(on, codec, wanted.agent_id, wanted.model)
    batch = all_rows(on, reader, wanted.scope, CollectedBatch(), hold=rows.extend)
    return SelectedRows(batch, _entries_among(codec, rows))


def rows_without_vectors(on: Session, codec: RowCodec, wanted: RowsWithoutVectors) -> list[int]:
    """Return the active rows, of an agent or among some, without a vector of a model."""
    agent_id, model = wanted.agent_id, wanted.model[0]
    some, values = ("", []) if wanted.among is None else ("AND row = ANY(%s)", [list(wanted.among)])
    sql = (
        f"SELECT row FROM {ENTRIES} WHERE agent_id = %s AND {HAS_ACTIVE_STATUS} "
        f"AND {visible(codec)} {some} AND {HAS_NO_VECTOR}"
    )
    found = on.fetch(sql, (agent_id, *values, agent_id, model, agent_id, model))
    return [row for (row,) in found]


VECTOR_READS: Final[Mapping[type, Reading]] = {
    ActiveRows: Reading(active_rows, one_moment=True),
    Nearest: Reading(nearest),
    RowsWithoutVectors: Reading(rows_without_vectors),
}
"""The reads of a store that searches vectors itself."""


def _nearest_or_none(session: Session, codec: RowCodec, wanted: Nearest) -> SelectedRows | None:
    """Return rows among which the most similar are; see `nearest`."""
    selected = _selected(codec, wanted)
    if selected is None or has_sealed(session, codec, selected):
        return None
    found, is_approximate = None, False
    if not wanted.is_exact:
        index = find_vector_index(session, wanted.scope.agent_id, wanted.model)
        found = None if index is None else _by_index(session, wanted, selected, index)
        is_approximate = found is not None
    if found is None:
        found = _by_distance(session, wanted, selected)
    if found is None:
        return None
    rows = [row.columns for row in found]
    return SelectedRows(_batch(codec, found), _entries_among(codec, rows), is_approximate)


def _entries_among(
    codec: RowCodec, rows: Sequence[Columns]
) -> Callable[[Scope, Sequence[int], datetime], dict[int, MemoryEntry]]:
    """Return a function that decodes the active entries of a scope among rows."""
    by_row = {columns[0]: columns for columns in rows}

    def entries(scope: Scope, wanted: Sequence[int], now: datetime) -> dict[int, MemoryEntry]:
        return active_entries(codec, [by_row[row] for row in wanted if row in by_row], scope, now)

    return entries


def _selected(codec: RowCodec, wanted: Nearest) -> Condition | None:
    """Return the condition of the rows to compare; None if it would hold for too many."""
    expression = All(()) if wanted.filters is None else wanted.filters
    narrow = narrowed(POSTGRES, expression, seals=codec.seals)
    if not narrow.is_exact:
        return None
    where, values = visible_in(wanted.scope, codec)
    return f"{where} AND {IS_ACTIVE} AND {narrow.sql}", [*values, wanted.now, *narrow.values]


def _by_distance(session: Session, wanted: Nearest, selected: Condition) -> list[_Row] | None:
    """Return the nearest rows by comparing all; None if one lacks a vector or too many tie."""
    found = _nearest(session, wanted, selected, wanted.limit + _SPARE)
    if found and found[0].distance is None:
        return None
    if len(found) < wanted.limit + _SPARE:
        return found
    last, beyond = found[wanted.limit - 1].distance, found[-1].distance
    if last is None or beyond is None:
        return None
    farthest = last + rounding(wanted.model[1])
    if not farthest < 1.0:  # nor if it is no number: rows without any similarity tie
        return None
    if beyond > farthest:
        return found
    found = _nearest(session, wanted, selected, _MAX_TIES, farthest)
    return found if wanted.limit <= len(found) < _MAX_TIES else None


def rounding(dimensions: int) -> float:
    """Return how far two cosines of one pair of vectors may lie apart that were rounded apart.

    A sum of n products of single precision, of vectors of length 1, is off by at most n · 2^-24,
    and so are the squares of both lengths that pgvector divides by, each by half as much.
    """
    return (2 * dimensions + 16) * 2.0**-24


# One statement, so that all of it is of one moment without a transaction. LIMIT has each row looked
# up by its number: the planner would read all of the agent's for a join.
_WITH_COLUMNS: Final = (
    f"SELECT distance, (SELECT array_agg(embedding ORDER BY part) FROM {EMBEDDINGS} AS v "
    "WHERE v.agent_id = %s AND entry_row = nearest.row AND model = %s AND NOT is_companion), e.* "
    f"FROM nearest CROSS JOIN LATERAL (SELECT {ROW} FROM {ENTRIES} AS e "
    "WHERE e.agent_id = %s AND e.row = nearest.row LIMIT 1) AS e ORDER BY distance NULLS FIRST"
)


def _nearest(
    session: Session,
    wanted: Nearest,
    selected: Condition,
    limit: int,
    farthest: float | None = None,
) -> list[_Row]:
    """Return at most so many rows, nearest first; those without a vector come before them."""
    queries = [Vector(vector) for vector in wanted.vectors]
    one = "embedding OPERATOR(pgvector.<=>) %s"
    distance = f"min(least({', '.join([one] * len(queries))}))"
    is_near = "" if farthest is None else f"HAVING {distance} <= %s"
    nearest_rows = (
        f"SELECT row, {distance} AS distance FROM (SELECT row FROM {ENTRIES} WHERE {selected[0]}) "
        f"AS e LEFT JOIN {EMBEDDINGS} AS v ON v.agent_id = %s AND entry_row = row AND model = %s "
        f"AND NOT is_companion GROUP BY row {is_near} ORDER BY distance NULLS FIRST LIMIT %s"
    )
    values = [*queries, *selected[1], wanted.scope.agent_id, wanted.model[0]]
    if farthest is not None:
        values += [*queries, farthest]
    return _with_columns(session, wanted, nearest_rows, [*values, limit])


def _with_columns(
    session: Session, wanted: Nearest, rows: str, values: Sequence[Any]
) -> list[_Row]:
    """Return rows, a statement for their numbers and distances, with columns and vectors."""
    agent_id = wanted.scope.agent_id
    sql = f"WITH nearest AS MATERIALIZED ({rows}) {_WITH_COLUMNS}"
    found = session.fetch(sql, (*values, agent_id, wanted.model[0], agent_id))
    return [_Row(columns[0], columns[1], columns[2:]) for columns in found]


def _by_index(
    session: Session, wanted: Nearest, selected: Condition, index: VectorIndex
) -> list[_Row] | None:
    """Return the rows that an index takes for the nearest; None if it found too few."""
    enough = max(_MIN_CANDIDATES, _CANDIDATES_PER_HIT * wanted.limit)
    session.run(
        "SELECT set_config('hnsw.iterative_scan', 'strict_order', true), "
        "set_config('hnsw.ef_search', %s, true), "
        "set_config('plan_cache_mode', 'force_custom_plan', true)",
        (str(min(enough, _MAX_EF_SEARCH)),),
    )
    rows: dict[int, None] = {}
    for vector in wanted.vectors:
        sql = (
            f"SELECT entry_row FROM {EMBEDDINGS} WHERE agent_id = %s AND model = %s "
            f"AND {index.covered} AND entry_row IN (SELECT row FROM {ENTRIES} WHERE {selected[0]}) "
            f"ORDER BY {index.expression} OPERATOR(pgvector.<=>) "
            f"pgvector.l2_normalize(%s)::{index.type} LIMIT %s"
        )
        values = (wanted.scope.agent_id, wanted.model[0], *selected[1], Vector(vector), enough)
        found = session.fetch(sql, values)
        if len(found) < enough:
            return None
        rows |= dict.fromkeys(row for (row,) in found)
    if len(rows) < wanted.limit:
        return None
    numbers = "SELECT unnest(%s::bigint[]) AS row, 0.0::float8 AS distance"
    return _with_columns(session, wanted, numbers, [list(rows)])


def _batch(codec: RowCodec, found: Sequence[_Row]) -> RowBatch:
    """Return rows with their vectors as the change that an empty index begins with."""
    sink = CollectedBatch()
    sink.add_records(records_of(codec, [row.columns for row in found]))
    chunks = [(row.columns[0], vector) for row in found for vector in row.vectors or ()]
    if chunks:
        rows, vectors = zip(*chunks, strict=True)
        sink.add_vectors(np.array(rows), np.stack(vectors))
    return full_batch(sink, [])
