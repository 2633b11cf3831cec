"""What tests of the index share: records, batches of them, and what is wanted of them."""

from datetime import timedelta
from uuid import UUID

import numpy as np

from mnemic.index import RankRequest
from mnemic.model import SEMANTIC, MemoryEntry, RowBatch
from mnemic.store.sqlite.row_codec import to_row
from tests.support.clock import EPOCH

NOW = 1_000_000
DIM = 2


def moment(microseconds):
    return EPOCH + timedelta(microseconds=microseconds)


def record(row, user=None, project=None, session=None, *, created_at=0, expires_at=None, **fields):
    """Return a row's record; the number is the row's id too, times are in microseconds."""
    entry = MemoryEntry(
        id=UUID(int=row),
        agent_id="a",
        user_id=user,
        project_id=project,
        session_id=session,
        created_at=moment(created_at),
        expires_at=None if expires_at is None else moment(expires_at),
        **{"content": f"memory {row}", **fields},
    )
    return (row, *to_row(entry))


def batch(records=(), *, since=None, seq=1, gone=(), vectors=None):
    """Return a batch in which each record has a vector; `vectors` names those of some, by row."""
    if vectors is None:
        vectors = {row: (1.0, row / 100) for row, *_ in records}
    values = np.array(list(vectors.values()), dtype=np.float32).reshape(len(vectors), DIM)
    embedded = np.array(list(vectors), dtype=np.int64)
    return RowBatch(since, seq, list(records), embedded, values, list(gone))


def wanted(scope, limit=100, *, query=(1, 0), now=NOW, ranking=SEMANTIC, **options):
    vectors = None if query is None else np.array([query], dtype=np.float32)
    given = {"scope": scope, "now": now, "limit": limit, "ranking": ranking, "vectors": vectors}
    return RankRequest(**given, **options)


def rows_found(index, scope, limit=100, **options):
    return [ranked.row for ranked in index.rank(wanted(scope, limit, **options)).ranked]
