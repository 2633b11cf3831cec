"""The reads of the PostgreSQL store."""

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Protocol, TypeVar
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from mnemic.model import (
    Expression,
    LinkType,
    LongTermMemoryStats,
    MemoryEntry,
    MemoryFilter,
    MemoryLink,
    OnConflict,
    Scope,
    UserUsage,
)
from mnemic.model.agent_id import canonical, stored_spelling
from mnemic.model.distinct import DistinctQuery, DistinctValue
from mnemic.model.link import Direction
from mnemic.model.results import PageCursor
from mnemic.model.timestamps import to_microseconds
from mnemic.store.postgres import change_log, links, reads, reembedding, writes
from mnemic.store.postgres.session import Columns, Session
from mnemic.store.postgres.stored import active_entries
from mnemic.store.postgres.vectors import own_vectors
from mnemic.store.reembedding import ReembeddingProgress, reembedded_without_key
from mnemic.store.row_codec import RowCodec, uuid_of
from mnemic.store.values import (
    AccessedRows,
    EntryRow,
    EntryVectors,
    LinkEnd,
    Model,
    OwnedId,
    StoredEntry,
    StoredLink,
)

Result = TypeVar("Result")


class PostgresReads(Protocol):
    """Reads memories; see `Store` for what each method promises."""

    _codec: RowCodec

    def _read(
        self,
        agent_id: str | None,
        work: Callable[[Session], Result],
        *,
        deadline: float | None = None,
        one_moment: bool = False,
    ) -> Result:
        """Run reads on one connection, of an agent's rows; None is of every agent's."""
        ...

    def _cached_rows(
        self, agent_id: str, rows: Sequence[int], deadline: float | None
    ) -> list[Columns] | None:
        """Return rows that are cached in memory, as of now; None unless all of them are."""
        ...

    def get(
        self,
        scope: Scope,
        ids: Sequence[UUID],
        *,
        now: datetime,
        include_deleted: bool = False,
        deadline: float | None = None,
    ) -> dict[UUID, MemoryEntry]:
        """Return the entries of these ids that the scope has, without their embeddings."""
        found = self.located(
            scope, ids, now=now, include_deleted=include_deleted, deadline=deadline
        )
        return {entry_id: entry for entry_id, (_, entry) in found.items()}

    def located(
        self,
        scope: Scope,
        ids: Sequence[UUID],
        *,
        now: datetime,
        include_deleted: bool = False,
        deadline: float | None = None,
    ) -> dict[UUID, EntryRow]:
        """Return what `get` does, and the rows."""
        time = to_microseconds(now)
        return self._read(
            scope.agent_id,
            lambda on: reads.entries_of_ids(
                on, self._codec, scope, ids, time, include_deleted=include_deleted
            ),
            deadline=deadline,
        )

    def get_rows(
        self,
        scope: Scope,
        rows: Sequence[int],
        *,
        now: datetime,
        include_deleted: bool = False,
        deadline: float | None = None,
    ) -> dict[int, MemoryEntry]:
        """Return the entries of these rows that the scope has, without their embeddings."""
        time = to_microseconds(now)
        cached = None if include_deleted else self._cached_rows(scope.agent_id, rows, deadline)
        if cached is not None:
            return active_entries(self._codec, cached, scope, now)
        return self._read(
            scope.agent_id,
            lambda on: reads.entries_of_rows(
                on, self._codec, scope, rows, time, include_deleted=include_deleted
            ),
            deadline=deadline,
        )

    def row_of(self, scope: Scope, entry_id: UUID, *, now: datetime) -> int | None:
        """Return the row of an active entry, or None if the scope has no such entry."""
        return self._read(
            scope.agent_id,
            lambda on: reads.row_of(on, self._codec, scope, entry_id, to_microseconds(now)),
        )

    def need_vectors(
        self,
        agent_id: str,
        entries: Sequence[MemoryEntry],
        model: str,
        on_conflict: OnConflict,
    ) -> list[bool]:
        """Return for each entry whether an `add` of it needs its vectors, in the current state."""
        return self._read(
            agent_id,
            lambda on: writes.need_vectors(
                on, self._codec, agent_id, entries, model=model, on_conflict=on_conflict
            ),
            one_moment=True,
        )

    def links(
        self,
        scope: Scope,
        entry_id: UUID,
        direction: Direction,
        kinds: Collection[LinkType] | None,
        *,
        now: datetime,
    ) -> list[MemoryLink]:
        """Return the links of an entry whose ends both exist."""
        time = to_microseconds(now)
        return self._read(
            scope.agent_id,
            lambda on: links.links(
                on, self._codec, scope, entry_id, direction, kinds=kinds, now=time
            ),
            one_moment=True,
        )

    def link_ends(
        self,
        scope: Scope,
        row: int,
        direction: Direction,
        kinds: Collection[LinkType] | None,
        *,
        now: datetime,
    ) -> list[LinkEnd]:
        """Return the other ends of the links of a row's entry, in the order of `links`."""
        time = to_microseconds(now)
        return self._read(
            scope.agent_id,
            lambda on: links.link_ends(
                on, self._codec, scope, row, direction, kinds=kinds, now=time
            ),
            one_moment=True,
        )

    def successors(
        self, scope: Scope, rows: Sequence[int], *, now: datetime, deadline: float | None = None
    ) -> dict[int, MemoryEntry]:
        """Return the entries of a scope that supersede one of these rows, by their own rows."""

        def work(on: Session) -> dict[int, MemoryEntry]:
            newer, time = links.successor_rows(on, scope.agent_id, rows), to_microseconds(now)
            return reads.entries_of_rows(on, self._codec, scope, newer, time, include_deleted=True)

        found = self._read(scope.agent_id, work, deadline=deadline, one_moment=True)
        return {row: entry for row, entry in found.items() if entry.is_present(now)}

    def stored_after(
        self,
        scope: Scope,
        row: int,
        limit: int,
        *,
        now: datetime,
        include_deleted: bool,
        model: str | None,
        deadline: float | None = None,
    ) -> list[StoredEntry]:
        """Return entries of a scope, whatever their status, in the order they were stored."""
        moment = None if include_deleted else to_microseconds(now)
        return self._read(
            scope.agent_id,
            lambda on: reads.entries_stored_after(
                on, self._codec, scope, row, limit, present_at=moment, model=model
            ),
            deadline=deadline,
            one_moment=True,
        )

    def links_within(
        self, scope: Scope, *, now: datetime, include_deleted: bool, deadline: float | None = None
    ) -> list[StoredLink]:
        """Return the links between entries of one user that `stored_after` returns."""
        moment = None if include_deleted else to_microseconds(now)
        return self._read(
            scope.agent_id,
            lambda on: links.links_within(on, self._codec, scope, moment),
            deadline=deadline,
        )

    def stored_agent_id(self, agent_id: str) -> str:
        """Return an agent's id as it is stored."""
        # Also read where nothing is looked up, so that a closed store says so.
        stored = self._read(None, reads.agent_ids if canonical(agent_id) is not None else _none)
        return stored_spelling(agent_id, stored)

    def matching(
        self,
        scope: Scope,
        expression: Expression,
        page: MemoryFilter,
        *,
        now: datetime,
        deadline: float | None = None,
    ) -> list[MemoryEntry]:
        """Return the entries of a scope for which a filter's tree is true, ordered and cut."""
        time = to_microseconds(now)
        return self._read(
            scope.agent_id,
            lambda on: reads.entries_matching(on, self._codec, scope, expression, page, now=time),
            deadline=deadline,
            one_moment=True,
        )

    def page(
        self,
        scope: Scope,
        expression: Expression,
        after: PageCursor | None,
        limit: int,
        *,
        now: datetime,
        include_deleted: bool = False,
        offset: int = 0,
        deadline: float | None = None,
    ) -> list[MemoryEntry]:
        """Return the next entries of a scope for which a filter's tree is true, newest first."""
        return self._read(
            scope.agent_id,
            lambda on: reads.entries_after(
                on,
                self._codec,
                scope,
                expression,
                after,
                limit=limit,
                offset=offset,
                now=to_microseconds(now),
                include_deleted=include_deleted,
            ),
            deadline=deadline,
            one_moment=True,
        )

    def count(
        self,
        scope: Scope,
        expression: Expression | None = None,
        *,
        now: datetime,
        deadline: float | None = None,
    ) -> int:
        """Return the number of entries of a scope for which a filter's tree is true."""
        time = to_microseconds(now)
        return self._read(
            scope.agent_id,
            lambda on: reads.count(on, self._codec, scope, expression, time),
            deadline=deadline,
            one_moment=True,
        )

    def distinct(
        self,
        scope: Scope,
        expression: Expression,
        wanted: DistinctQuery,
        *,
        now: datetime,
        deadline: float | None = None,
    ) -> list[DistinctValue]:
        """Return the distinct values of a field in the entries for which a tree is true."""
        time = to_microseconds(now)
        return self._read(
            scope.agent_id,
            lambda on: reads.distinct(on, self._codec, scope, expression, wanted, now=time),
            deadline=deadline,
            one_moment=True,
        )

    def stats(
        self, scope: Scope, *, now: datetime, deadline: float | None = None
    ) -> LongTermMemoryStats:
        """Return statistics of a scope, as of one moment."""
        time = to_microseconds(now)
        return self._read(
            scope.agent_id,
            lambda on: reads.stats(on, self._codec, scope, time),
            deadline=deadline,
            one_moment=True,
        )

    def used_bytes(self, agent_id: str) -> int:
        """Return the bytes of the agent's contents, deleted entries included."""
        return self._read(agent_id, lambda on: change_log.used_bytes(on, agent_id))

    def used_by_user(self, agent_id: str, user_id: str | None) -> int:
        """Return the bytes of a user's contents, deleted entries included."""
        return self._read(agent_id, lambda on: change_log.used_by_user(on, agent_id, user_id))

    def stored_entries(self, scope: Scope) -> int:
        """Return the number of entries of a scope in any state."""
        return self._read(scope.agent_id, lambda on: reads.stored_entries(on, scope))

    def users(
        self, agent_id: str, *, prefix: str | None, limit: int, offset: int, now: datetime
    ) -> list[UserUsage]:
        """Return the users who have entries, and what these take."""
        time = to_microseconds(now)
        return self._read(
            agent_id,
            lambda on: reads.users(on, agent_id, prefix, limit=limit, offset=offset, now=time),
        )

    def embedding_model(self, agent_id: str) -> tuple[str, int] | None:
        """Return name and dimension of the agent's embedding model, None without any vector."""
        return self._read(agent_id, lambda on: change_log.embedding_model(on, agent_id))

    def contents(
        self, agent_id: str, rows: Sequence[int], *, deadline: float | None = None
    ) -> dict[int, str]:
        """Return the contents of those of these rows that are active."""
        return self._read(
            agent_id, lambda on: reads.contents(on, self._codec, agent_id, rows), deadline=deadline
        )

    def vectors(self, agent_id: str, row: int, model: str) -> NDArray[np.float32]:
        """Return the vectors of a row's chunks, shape (chunks, dimensions); (0, 0) for none."""
        found = self._read(
            agent_id, lambda on: own_vectors(on, self._codec, agent_id, [row], model)
        )
        return np.stack(found[row]) if found else np.empty((0, 0), dtype=np.float32)

    def vectors_of(
        self, agent_id: str, wanted: Collection[OwnedId], model: str
    ) -> dict[OwnedId, EntryVectors]:
        """Return the vectors of entries, in any state, by user and id."""

        def work(on: Session) -> dict[OwnedId, EntryVectors]:
            found = reads.owned(on, self._codec, agent_id, list(wanted))
            rows = [row for row, *_ in found]
            vectors = own_vectors(on, self._codec, agent_id, rows, model)
            return {
                (user_id, uuid_of(entry_id)): EntryVectors(
                    version, updated_at, np.stack(vectors[row]) if row in vectors else None
                )
                for row, user_id, entry_id, version, updated_at in found
            }

        return self._read(agent_id, work, one_moment=True)

    def to_embed(self, agent_id: str, model: Model) -> ReembeddingProgress:
        """Return how many entries lack a model's vectors, and how many need them."""

        def work(on: Session) -> ReembeddingProgress:
            if not self._codec.seals and reembedding.has_sealed(on, agent_id):
                raise reembedded_without_key(agent_id)
            return reembedding.to_embed(on, agent_id, model)

        return self._read(agent_id, work)

    def rows_to_embed(self, agent_id: str, model: Model, after: int, limit: int) -> list[int]:
        """Return rows that lack the shadow vectors of a model, ascending."""
        return self._read(
            agent_id, lambda on: reembedding.rows_to_embed(on, agent_id, model, after, limit)
        )

    def revision(self, scope: Scope) -> int:
        """Return a number that rises with every change within a user, and with no other change."""
        return self._read(scope.agent_id, lambda on: change_log.revision(on, scope))

    def changed_rows_since(self, agent_id: str, seq: int) -> list[int] | None:
        """Return the rows changed after a change, or None if the log has dropped some."""
        return self._read(
            agent_id, lambda on: change_log.changed_rows_since(on, agent_id, seq), one_moment=True
        )

    def accesses_since(self, agent_id: str, accesses: int) -> AccessedRows:
        """Return the accesses written after a number of access writes."""
        return self._read(
            agent_id, lambda on: change_log.accesses_since(on, agent_id, accesses), one_moment=True
        )


def _none(_: Session) -> list[str]:
    return []
