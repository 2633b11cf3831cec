"""What makes the vectors of another model the agent's own, in the stores in SQL."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from concurrent.futures import Future
from typing import Any, Final

from mnemic.arrays import Float32Array
from mnemic.errors import KeyUnavailableError
from mnemic.model import MemoryEntry, Scope
from mnemic.store.changes import Change
from mnemic.store.row_codec import RowCodec
from mnemic.store.sql.change_log import log_changes
from mnemic.store.sql.conditions import ENTRIES, visible
from mnemic.store.sql.dialect import Dialect
from mnemic.store.sql.opened import OpenedSql
from mnemic.store.sql.session import Condition, SqlSession
from mnemic.store.values import Model, ReembeddingProgress

_FIRST_VECTOR: Final = (
    "SELECT true FROM mnemic.agent_memory_embeddings AS v WHERE v.entry_row = e.row AND v.part = 0"
)


class SqlReembedding(OpenedSql, ABC):
    """Makes another model the agent's own; see `Reembedding`."""

    def add_shadow_vectors(
        self,
        agent_id: str,
        model: str,
        entries: Mapping[int, MemoryEntry],
        vectors: Mapping[int, Float32Array],
    ) -> Future[int]:
        """Store shadow vectors; return of how many rows."""

        def work(on: SqlSession) -> int:
            found = _unchanged(on, self._codec, agent_id, entries)
            self._write_shadow_vectors(on, agent_id, model, found, vectors)
            return len(found)

        return self._write(agent_id, work)

    def to_embed(self, agent_id: str, model: Model) -> ReembeddingProgress:
        """Return how many entries lack a model's vectors, and how many need them."""
        sealed = (
            f"SELECT EXISTS (SELECT 1 FROM {ENTRIES} "
            f"WHERE agent_id = ? AND {self._dialect.is_true('is_encrypted')})"
        )
        where, values = _wanting(self._dialect, agent_id, 0)
        lacks, bound = self._lacks(model)
        counts = f"SELECT count(*) FILTER (WHERE {lacks}), count(*) {where}"

        def work(on: SqlSession) -> ReembeddingProgress:
            if not self._codec.seals and on.value(sealed, (agent_id,)):
                raise KeyUnavailableError(
                    f"agent {agent_id!r} has sealed memories, which cannot be embedded without "
                    "their key; open the memory with encryption=Encryption(key=...)"
                )
            return ReembeddingProgress(*on.fetch(counts, (*bound, *values))[0])

        return self._read(agent_id, work)

    def rows_to_embed(self, agent_id: str, model: Model, after: int, limit: int) -> list[int]:
        """Return rows that lack the shadow vectors of a model, ascending."""
        return self._read(agent_id, lambda on: self._lacking(on, agent_id, model, after, limit))

    def switch_model(
        self, agent_id: str, model: Model, skipped: Collection[int] = (), max_missing: int = 0
    ) -> Future[bool]:
        """Make the shadow vectors of a model the agent's own, unless entries lack them."""
        may_lack = frozenset(skipped)
        limit = len(may_lack) + max_missing + 1

        def work(on: SqlSession) -> bool:
            if len(set(self._lacking(on, agent_id, model, 0, limit)) - may_lack) > max_missing:
                return False
            self._switch_vectors(on, agent_id, model, may_lack)
            _log_switch(on, agent_id, model)
            return True

        return self._write(agent_id, work)

    def _lacking(
        self, on: SqlSession, agent_id: str, model: Model, after: int, limit: int
    ) -> list[int]:
        where, values = _wanting(self._dialect, agent_id, after)
        lacks, bound = self._lacks(model)
        sql = f"SELECT e.row {where} AND {lacks} ORDER BY e.row LIMIT ?"
        return [row for (row,) in on.fetch(sql, (*values, *bound, limit))]

    @abstractmethod
    def _lacks(self, model: Model) -> Condition:
        """Return the condition of entries, `e`, without shadow vectors of a model."""

    @abstractmethod
    def _write_shadow_vectors(
        self,
        on: Any,
        agent_id: str,
        model: str,
        found: Mapping[int, MemoryEntry],
        vectors: Mapping[int, Float32Array],
    ) -> None:
        """Write shadow vectors of rows, with their stored entries, over those of the model."""

    @abstractmethod
    def _switch_vectors(
        self, on: Any, agent_id: str, model: Model, skipped: AbstractSet[int]
    ) -> None:
        """Make own vectors shadow vectors, and those of a model the agent's own."""


def _wanting(dialect: Dialect, agent_id: str, after: int) -> Condition:
    """Return FROM and WHERE of the entries that need vectors, in later rows.

    Whether their own is zero is looked up row by row: of NOT EXISTS a server may make a join that
    compares every row with every other, as long as a table has no statistics.
    """
    is_owned, owner = dialect.owned("v", agent_id)
    where = (
        f"FROM {ENTRIES} AS e {dialect.by_index('agent')} "
        "WHERE e.agent_id = ? AND e.row > ? AND e.forgotten_at IS NULL AND "
        f"({_FIRST_VECTOR} AND {is_owned} AND {dialect.is_own_zero} LIMIT 1) IS NULL"
    )
    return where, [agent_id, after, *owner]


def _unchanged(
    on: SqlSession, codec: RowCodec, agent_id: str, entries: Mapping[int, MemoryEntry]
) -> dict[int, MemoryEntry]:
    """Return the stored entries of those of these rows whose contents are still the same."""
    dialect = on.dialect
    sql = (
        f"SELECT {dialect.row} FROM {ENTRIES} {dialect.by_row} "
        f"WHERE agent_id = ? AND {dialect.among()} AND {visible(codec)} ORDER BY row"
    )
    stored = on.fetch_checked(sql, (agent_id, list(entries)))
    found = dialect.entries(codec, stored, Scope(agent_id, all_users=True))
    return {
        row: entry
        for (row, *_), entry in zip(stored, found, strict=True)
        if entry.content == entries[row].content
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
