"""Vectors of stored entries in the stores in SQL: missing ones, and those of another model."""

from collections.abc import Mapping
from typing import Final

from mnemic.errors import KeyUnavailableError
from mnemic.model import MemoryEntry, Scope
from mnemic.store.changes import Change
from mnemic.store.new_rows import new_vectors
from mnemic.store.operations import (
    AddEmbeddings,
    AddShadowVectors,
    CountToEmbed,
    DropShadowVectors,
    RowsToEmbed,
    SwitchModel,
)
from mnemic.store.row_codec import RowCodec
from mnemic.store.sql.change_log import log_changes
from mnemic.store.sql.conditions import ENTRIES, visible
from mnemic.store.sql.sealing import current_key
from mnemic.store.sql.session import Condition, SqlSession
from mnemic.store.values import Model, ReembeddingProgress

_ANY: Final[Condition] = ("true", [])

_FIRST_VECTOR: Final = (
    "SELECT true FROM mnemic.agent_memory_embeddings AS v WHERE v.entry_row = e.row AND v.part = 0"
)


def count_to_embed(on: SqlSession, codec: RowCodec, wanted: CountToEmbed) -> ReembeddingProgress:
    """Return how many entries lack a model's vectors, and how many need them."""
    agent_id = wanted.agent_id
    sealed = (
        f"SELECT EXISTS (SELECT 1 FROM {ENTRIES} "
        f"WHERE agent_id = ? AND {on.dialect.is_true('is_encrypted')})"
    )
    if not codec.seals and on.value(sealed, (agent_id,)):
        raise KeyUnavailableError(
            f"agent {agent_id!r} has sealed memories, which cannot be embedded without "
            "their key; open the memory with encryption=Encryption(key=...)"
        )
    where, values = _wanting(on, agent_id, 0)
    lacks, bound = on.dialect.lacks_shadow_vectors(wanted.model)
    counts = f"SELECT count(*) FILTER (WHERE {lacks}), count(*) {where}"
    return ReembeddingProgress(*on.fetch(counts, (*bound, *values))[0])


def rows_to_embed(on: SqlSession, _codec: RowCodec, wanted: RowsToEmbed) -> list[int]:
    """Return rows that lack the shadow vectors of a model, ascending."""
    where, values = _wanting(on, wanted.agent_id, wanted.after)
    lacks, bound = on.dialect.lacks_shadow_vectors(wanted.model)
    sql = f"SELECT e.row {where} AND {lacks} ORDER BY e.row LIMIT ?"
    return [row for (row,) in on.fetch(sql, (*values, *bound, wanted.limit))]


def add_embeddings(on: SqlSession, codec: RowCodec, wanted: AddEmbeddings) -> None:
    """Insert the vectors of those of these rows without any and with the same content."""
    dialect, agent_id = on.dialect, wanted.agent_id
    vectors = dict(zip(wanted.contents, wanted.vectors, strict=True))
    model = wanted.model, wanted.vectors[0].shape[1] if wanted.vectors else 0
    lacks = dialect.lacks_vector(agent_id, model[0])
    found = _unchanged(on, codec, agent_id, wanted.contents, lacks)
    if not found:
        return
    if any(entry.is_encrypted for entry in found.values()):
        current_key(on, codec, agent_id)
    new = [new_vectors(codec, row, entry, model[0], vectors[row]) for row, entry in found.items()]
    dialect.insert_vectors(on, agent_id, model, new)
    changes = [Change(row, entry.id.bytes, "embed", entry.user_id) for row, entry in found.items()]
    log_changes(on, agent_id, changes, model)


def add_shadow_vectors(on: SqlSession, codec: RowCodec, wanted: AddShadowVectors) -> int:
    """Store shadow vectors; return of how many rows."""
    contents = {row: entry.content for row, entry in wanted.entries.items()}
    found = _unchanged(on, codec, wanted.agent_id, contents)
    on.dialect.write_shadow_vectors(on, codec, wanted, found)
    return len(found)


def drop_shadow_vectors(on: SqlSession, _codec: RowCodec, wanted: DropShadowVectors) -> int:
    """Delete the shadow vectors of a model, or of all; return of how many entries."""
    dropped: set[tuple[int, str]] = set()
    for where, values in on.dialect.shadow_vectors(wanted.agent_id, wanted.model):
        dropped.update(on.fetch(f"DELETE {where} RETURNING entry_row, model", values))
    return len(dropped)


def switch_model(on: SqlSession, codec: RowCodec, wanted: SwitchModel) -> bool:
    """Make the shadow vectors of a model the agent's own, unless entries lack them."""
    agent_id, model, skipped = wanted.agent_id, wanted.model, frozenset(wanted.skipped)
    limit = len(skipped) + wanted.max_missing + 1
    lacking = rows_to_embed(on, codec, RowsToEmbed(agent_id, model, 0, limit))
    if len(set(lacking) - skipped) > wanted.max_missing:
        return False
    on.dialect.switch_vectors(on, agent_id, model, skipped)
    _log_switch(on, agent_id, model)
    return True


def _wanting(on: SqlSession, agent_id: str, after: int) -> Condition:
    """Return FROM and WHERE of the entries that need vectors, in later rows.

    Whether their own is zero is looked up row by row: of NOT EXISTS a server may make a join that
    compares every row with every other, as long as a table has no statistics.
    """
    dialect = on.dialect
    is_owned, owner = dialect.owned("v", agent_id)
    where = (
        f"FROM {ENTRIES} AS e {dialect.by_index('agent')} "
        "WHERE e.agent_id = ? AND e.row > ? AND e.forgotten_at IS NULL AND "
        f"({_FIRST_VECTOR} AND {is_owned} AND {dialect.is_own_zero} LIMIT 1) IS NULL"
    )
    return where, [agent_id, after, *owner]


def _unchanged(
    on: SqlSession,
    codec: RowCodec,
    agent_id: str,
    contents: Mapping[int, str],
    state: Condition = _ANY,
) -> dict[int, MemoryEntry]:
    """Return the entries of those of these rows whose contents are still the same, by row.

    Args:
        on: In the transaction.
        codec: Codec of the entries; those that it cannot read have no known content.
        agent_id: The agent.
        contents: The contents by row.
        state: A further condition.
    """
    dialect = on.dialect
    sql = (
        f"SELECT {dialect.row} FROM {ENTRIES} {dialect.by_row} WHERE agent_id = ? "
        f"AND {dialect.among('row')} AND {visible(codec)} AND {state[0]} ORDER BY row"
    )
    stored = on.fetch_checked(sql, (agent_id, list(contents), *state[1]))
    found = dialect.entries(codec, stored, Scope(agent_id, all_users=True))
    return {
        row: entry
        for (row, *_), entry in zip(stored, found, strict=True)
        if entry.content == contents[row]
    }


def _log_switch(on: SqlSession, agent_id: str, model: Model) -> None:
    first_rows = f"SELECT min(row) FROM {ENTRIES} WHERE agent_id = ? GROUP BY user_id"
    users = on.fetch(
        f"SELECT row, id, user_id FROM {ENTRIES} {on.dialect.by_row} "
        f"WHERE agent_id = ? AND row IN ({first_rows}) ORDER BY row",
        (agent_id, agent_id),
    )
    if users:
        changes = [Change(row, entry_id, "switch", user) for row, entry_id, user in users]
        log_changes(on, agent_id, changes, model)
