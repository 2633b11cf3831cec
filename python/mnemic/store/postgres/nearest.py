"""Search by vectors in the database: exact, or by an HNSW index where there is one."""

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from mnemic.model import All, RowBatch
from mnemic.store.filter_sql import Condition
from mnemic.store.postgres.change_log import position
from mnemic.store.postgres.session import Session, vector_text
from mnemic.store.postgres.sql import EMBEDDINGS, ENTRIES, IS_ACTIVE, ROW, in_scope, narrowed
from mnemic.store.postgres.stored import records_of
from mnemic.store.postgres.vector_indexes import VectorIndex, find_vector_index
from mnemic.store.row_codec import RowCodec
from mnemic.store.vector_search import Nearest, NearestRequest

_SPARE: Final = 16
"""Rows read beyond the limit: they show that none of the rest ties with the last one."""

_MAX_TIES: Final = 10_000
"""Rows that tie with the last one, beyond which the whole agent is loaded instead."""

_CANDIDATES_PER_HIT: Final = 4
_MIN_CANDIDATES: Final = 64
"""Rows requested from an approximate index: so many for each hit, and at least this many."""

_MAX_EF_SEARCH: Final = 1000
"""Of pgvector."""


def nearest(session: Session, codec: RowCodec, wanted: NearestRequest) -> Nearest | None:
    """Return rows among which the most similar are; see `VectorSearch.nearest`."""
    selected = _selected(wanted)
    if selected is None:
        return None
    rows, is_approximate = None, False
    if not wanted.is_exact:
        index = find_vector_index(session, wanted.scope.agent_id, wanted.model)
        rows = None if index is None else _by_index(session, wanted, selected, index)
        is_approximate = rows is not None
    if rows is None:
        rows = _by_distance(session, wanted, selected)
    if rows is None:
        return None
    return Nearest(_batch(session, codec, wanted, rows), is_approximate)


def _selected(wanted: NearestRequest) -> Condition | None:
    """Return the condition of the rows to compare; None if it would hold for too many."""
    narrow = narrowed(All(()) if wanted.filters is None else wanted.filters)
    if not narrow.is_exact:
        return None
    where, values = in_scope(wanted.scope)
    return f"{where} AND {IS_ACTIVE} AND {narrow.sql}", [*values, wanted.now, *narrow.values]


def _by_distance(
    session: Session, wanted: NearestRequest, selected: Condition
) -> Sequence[int] | None:
    """Return the nearest rows by comparing all; None if one lacks a vector or too many tie."""
    found = _distances(session, wanted, selected, limit=wanted.limit + _SPARE)
    if found and found[0][1] is None:
        return None
    if len(found) < wanted.limit + _SPARE:
        return [row for row, _ in found]
    farthest = found[wanted.limit - 1][1] + rounding(wanted.model[1])
    if not farthest < 1.0:  # nor if it is no number: rows without any similarity tie
        return None
    if found[-1][1] <= farthest:
        found = _distances(session, wanted, selected, limit=_MAX_TIES, farthest=farthest)
    return None if len(found) == _MAX_TIES else [row for row, _ in found]


def rounding(dimensions: int) -> float:
    """Return how far two cosines of one pair of vectors may lie apart that were rounded apart.

    A sum of n products of single precision, of vectors of length 1, is off by at most n · 2^-24,
    and so are the squares of both lengths that pgvector divides by, each by half as much.
    """
    return (2 * dimensions + 16) * 2.0**-24


def _distances(
    session: Session,
    wanted: NearestRequest,
    selected: Condition,
    *,
    limit: int,
    farthest: float = math.inf,
) -> list[tuple[int, Any]]:
    """Return rows with the distance of their nearest chunk, nearest first.

    Those without a vector come first, their distance is None.
    """
    queries = [vector_text(vector) for vector in wanted.vectors]
    each = ", ".join(["embedding <=> %s::vector"] * len(queries))
    distance = f"min(least({each}))"
    is_near = "" if farthest == math.inf else f"HAVING {distance} <= %s"
    sql = (
        f"SELECT row, {distance} AS distance FROM (SELECT row FROM {ENTRIES} WHERE {selected[0]}) "
        f"AS e LEFT JOIN {EMBEDDINGS} AS v ON v.agent_id = %s AND entry_row = row AND model = %s "
        f"AND NOT is_companion GROUP BY row {is_near} ORDER BY distance NULLS FIRST LIMIT %s"
    )
    values = [*queries, *selected[1], wanted.scope.agent_id, wanted.model[0]]
    if is_near:
        values += [*queries, farthest]
    return [(row, near) for row, near in session.fetch(sql, (*values, limit))]


def _by_index(
    session: Session, wanted: NearestRequest, selected: Condition, index: VectorIndex
) -> Sequence[int] | None:
    """Return the rows that an index takes for the nearest; None if it found too few."""
    enough = max(_MIN_CANDIDATES, _CANDIDATES_PER_HIT * wanted.limit)
    session.run(
        "SELECT set_config('hnsw.iterative_scan', 'strict_order', true), "
        "set_config('hnsw.ef_search', %s, true), "
        "set_config('plan_cache_mode', 'force_custom_plan', true)",
        (str(min(enough, _MAX_EF_SEARCH)),),
    )
    rows: dict[int, None] = {}
    covered = index.covered.replace("%", "%%")
    for vector in wanted.vectors:
        sql = (
            f"SELECT entry_row FROM {EMBEDDINGS} WHERE agent_id = %s AND {covered} "
            f"AND entry_row IN (SELECT row FROM {ENTRIES} WHERE {selected[0]}) "
            f"ORDER BY {index.expression} <=> %s::{index.type} LIMIT %s"
        )
        values = (wanted.scope.agent_id, *selected[1], vector_text(vector), enough)
        found = session.fetch(sql, values)
        if len(found) < enough:
            return None
        rows |= dict.fromkeys(row for (row,) in found)
    return list(rows) if len(rows) >= wanted.limit else None


def _batch(
    session: Session, codec: RowCodec, wanted: NearestRequest, rows: Sequence[int]
) -> RowBatch:
    """Return rows with their vectors as the change that an empty index begins with."""
    agent_id, (model, dimensions) = wanted.scope.agent_id, wanted.model
    sql = f"SELECT {ROW} FROM {ENTRIES} WHERE agent_id = %s AND row = ANY(%s) ORDER BY row"
    records = records_of(codec, session.fetch(sql, (agent_id, list(rows))))
    vectors = session.vectors(agent_id, rows, model)
    chunks = [vector for own in vectors.values() for vector in own]
    return RowBatch(
        since=None,
        seq=position(session, agent_id).seq,
        records=records,
        embedded=np.array([row for row, own in vectors.items() for _ in own], dtype=np.int64),
        vectors=np.stack(chunks) if chunks else np.empty((0, dimensions), dtype=np.float32),
        gone=[],
        links=[],
    )
