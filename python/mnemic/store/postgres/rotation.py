"""SQL statements that reseal entries under another key; each runs in a transaction."""

from collections.abc import Collection, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Final

from mnemic.crypto.envelope import header
from mnemic.errors import SealBrokenError
from mnemic.store.postgres.agent_keys import current_key, delete_other_keys
from mnemic.store.postgres.session import Columns, Session
from mnemic.store.postgres.sql import AMONG, ENTRIES, ROW, SEALED_VECTORS
from mnemic.store.postgres.stored import reading_stored
from mnemic.store.postgres.vectors import opened
from mnemic.store.row_codec import COLUMN_NAMES, EncodedRow, sealed_ids
from mnemic.store.sealing_codec import PREFIX, SealingRowCodec, log_broken, sealed_prefix
from mnemic.store.values import StoredKey

_CONTENT: Final = 1 + COLUMN_NAMES.index("content")
_UNDER_OTHERS: Final = (
    f"SELECT row FROM {ENTRIES} WHERE agent_id = %s AND is_encrypted "
    f"AND left(content, {PREFIX}) <> %s AND row > %s "
    f"UNION SELECT entry_row FROM {SEALED_VECTORS} WHERE agent_id = %s "
    "AND substr(sealed, 1, 9) <> %s AND entry_row > %s"
)
_UPDATE: Final = (
    f"UPDATE {ENTRIES} AS e SET content = new.content, fingerprint = new.fingerprint, "
    "idempotency_key = new.key, key_fingerprint = new.of_key "
    "FROM unnest(%s::bigint[], %s::text[], %s::bytea[], %s::text[], %s::bytea[]) "
    "AS new (row, content, fingerprint, key, of_key) WHERE e.agent_id = %s AND e.row = new.row"
)
_VECTORS: Final = (
    f"SELECT entry_row, model, part, sealed FROM {SEALED_VECTORS} "
    "WHERE agent_id = %s AND entry_row = ANY(%s) ORDER BY entry_row, model, part"
)
_UPDATE_VECTORS: Final = (
    f"UPDATE {SEALED_VECTORS} AS v SET sealed = new.sealed "
    "FROM unnest(%s::bigint[], %s::integer[], %s::bytea[]) AS new (row, part, sealed) "
    "WHERE v.agent_id = %s AND v.model = %s AND v.entry_row = new.row AND v.part = new.part"
)


def is_under(row: Columns, prefixes: Collection[str]) -> bool:
    """Return whether a sealed row is sealed under one of the keys of these prefixes."""
    return row[_CONTENT][:PREFIX] in prefixes


def sealed_under_others(session: Session, agent_id: str, key_id: bytes) -> int:
    """Return the number of an agent's entries that are sealed under other keys than this one.

    Those with such a vector count.
    """
    sql = f"SELECT count(*) FROM ({_UNDER_OTHERS}) AS found"
    return int(session.value(sql, _others(agent_id, key_id, 0)))


def _others(agent_id: str, key_id: bytes, after: int) -> Columns:
    return agent_id, sealed_prefix(key_id), after, agent_id, header(key_id), after


def reseal(
    session: Session, codec: SealingRowCodec, agent_id: str, *, after: int, limit: int
) -> tuple[int, int]:
    """Seal the next entries that are sealed under other keys; return their number and last row."""
    key = _newest(session, codec, agent_id)
    sql = f"{_UNDER_OTHERS} ORDER BY 1 LIMIT %s"
    rows = [row for (row,) in session.fetch(sql, (*_others(agent_id, key.key_id, after), limit))]
    if not rows:
        return 0, 0
    sql = f"SELECT {ROW} FROM {ENTRIES} WHERE agent_id = %s AND {AMONG} ORDER BY row"
    stored = session.fetch(sql, (agent_id, rows))
    vectors: dict[int, list[Columns]] = {}
    for vector in session.fetch(_VECTORS, (agent_id, rows)):
        vectors.setdefault(vector[0], []).append(vector)
    return _reseal(session, codec, agent_id, stored, vectors), rows[-1]


def _reseal(
    session: Session,
    codec: SealingRowCodec,
    agent_id: str,
    stored: list[Columns],
    vectors: Mapping[int, list[Columns]],
) -> int:
    """Reseal rows; return how many. Those that do not open are logged, and stay as they are."""
    found = [vector for row in stored for vector in vectors.get(row[0], ())]
    try:
        with reading_stored("a memory"):
            plain = _opened(codec, agent_id, sealed_ids(stored), found)
            rows = codec.resealed([row[1:] for row in stored])
    except SealBrokenError as error:
        if len(stored) > 1:
            return sum(_reseal(session, codec, agent_id, [row], vectors) for row in stored)
        log_broken(error)
        return 0
    _write_rows(session, agent_id, stored, rows)
    _write_vectors(session, codec, agent_id, sealed_ids(stored), plain)
    return len(stored)


def _opened(
    codec: SealingRowCodec, agent_id: str, ids: Mapping[int, bytes], found: list[Columns]
) -> list[tuple[str, int, int, bytes]]:
    """Return vectors in plain text, each with its model, part and row."""
    plain = []
    for (row, model), parts in groupby(found, itemgetter(0, 1)):
        own = list(parts)
        vectors = opened(codec, (agent_id, ids[row]), model, [blob for *_, blob in own])
        plain += [
            (model, part, row, vector.tobytes())
            for (_, _, part, _), vector in zip(own, vectors, strict=True)
        ]
    return plain


def _write_rows(
    session: Session, agent_id: str, stored: Sequence[Columns], rows: Sequence[EncodedRow]
) -> None:
    contents = [row.columns[_CONTENT - 1].decode() for row in rows]
    more = [list(column) for column in zip(*(row.more for row in rows), strict=True)]
    session.run(_UPDATE, ([row[0] for row in stored], contents, *more, agent_id))


def _write_vectors(
    session: Session,
    codec: SealingRowCodec,
    agent_id: str,
    ids: Mapping[int, bytes],
    plain: list[tuple[str, int, int, bytes]],
) -> None:
    for (model, part), of_part in groupby(sorted(plain, key=_MODEL_AND_PART), _MODEL_AND_PART):
        vectors = list(of_part)
        rows = [row for *_, row, _ in vectors]
        sealed = codec.sealed_vectors(
            agent_id, [ids[row] for row in rows], model, part, [vector for *_, vector in vectors]
        )
        session.run(_UPDATE_VECTORS, (rows, [part] * len(rows), sealed, agent_id, model))


_MODEL_AND_PART: Final = itemgetter(0, 1)


def end_rotation(session: Session, codec: SealingRowCodec, agent_id: str) -> bool:
    """Destroy the keys of an agent but the newest, unless entries are sealed under them."""
    key = _newest(session, codec, agent_id)
    sql = f"SELECT EXISTS ({_UNDER_OTHERS})"
    if session.value(sql, _others(agent_id, key.key_id, 0)):
        return False
    delete_other_keys(session, agent_id, key.key_id)
    return True


def _newest(session: Session, codec: SealingRowCodec, agent_id: str) -> StoredKey:
    """Return the newest key of an agent, under its lock.

    Raises:
        WrongKeyError: If its master key is not given.
    """
    current_key(session, codec, agent_id)
    return codec.newest_key(agent_id)
