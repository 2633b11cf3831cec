"""Reads memories by ids and rows, their vectors, their earlier versions, and numbers of them."""

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from uuid import UUID

import msgspec

from mnemic.errors import StoreUnavailableError
from mnemic.model import (
    LinkType,
    LongTermMemoryStats,
    MemoryEntry,
    MemoryStatus,
    Scope,
    UserUsage,
    validation,
)
from mnemic.model.deadline import check_deadline
from mnemic.model.link import Direction
from mnemic.model.results import Lineage
from mnemic.model.timestamps import to_microseconds
from mnemic.model.validation import flag
from mnemic.observability.table import READ, RETRIEVED
from mnemic.observability.telemetry import milliseconds_since
from mnemic.repository.parts import Part, Shared
from mnemic.store import Store
from mnemic.store.operations import (
    EntriesById,
    EntriesByRow,
    Links,
    ScopeStatistics,
    Successors,
    Users,
    VectorsById,
)
from mnemic.store.values import EntryRow, EntryVectors, LinkedRows, OwnedId
from mnemic.threads.sync_bridge import run_blocking

MAX_ROUNDS = 4
"""How often entries are read while concurrent writes change them."""

_FEW = 16
"""More entries, of about 30 µs each, or their vectors are read in another thread."""


class Reader(Part):
    """Reads one agent's memories.

    Args:
        shared: What it shares with the others.
    """

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._counts_accesses = shared.settings.track_access

    async def get(
        self, scope: Scope, ids: Sequence[UUID], *, include_deleted: bool = False
    ) -> dict[UUID, MemoryEntry]:
        """Return the memories with these ids in a scope, and count accesses."""
        self._limits.require_storing()
        started, now = time.perf_counter(), self._now()
        if flag("include_forgotten", include_deleted):
            wanted = EntriesById(scope, ids, now=now, include_deleted=True)
            found = await run_blocking(lambda: self._store.read(wanted), self._store)
        elif len(ids) <= _FEW:
            found = self._cache.get(scope, ids, now)
        else:
            found = await run_blocking(lambda: self._cache.get(scope, ids, now), self._store)
        self._telemetry.record(READ, latency_ms=milliseconds_since(started))
        self._accesses.show_pending(dict(found.values()))
        if self._counts_accesses:
            rows = [row for row, entry in found.values() if entry.is_active(now)]
            self._accesses.count(rows, now)
        entries = {entry_id: entry for entry_id, (_, entry) in found.items()}
        for entry in entries.values() if self._telemetry.is_enabled(RETRIEVED) else ():
            await self._telemetry.emit(
                RETRIEVED, entry_id=entry.id, type=entry.type, was_decrypted=entry.is_encrypted
            )
        return entries

    async def stored(self, scope: Scope, ids: Sequence[UUID]) -> dict[UUID, MemoryEntry]:
        """Return the memories with these ids in a scope, in any state, without counting that."""
        self._limits.require_storing()
        wanted = EntriesById(scope, ids, now=self._now(), include_deleted=True)
        found = await run_blocking(lambda: self._store.read(wanted), self._store)
        return {entry_id: entry for entry_id, (_, entry) in found.items()}

    def locate(
        self, scope: Scope, entry_id: UUID, *, include_inactive: bool = False
    ) -> EntryRow | None:
        """Return an active memory of a scope with its row, or a present one if requested.

        That does not count as an access.
        """
        now = self._now()
        wanted = EntriesById(scope, [entry_id], now=now, include_deleted=include_inactive)
        found = self._store.read(wanted).get(entry_id)
        return found if found is not None and found.entry.is_present(now) else None

    def present(self, scope: Scope, rows: Sequence[int]) -> dict[int, MemoryEntry]:
        """Return the present memories of these rows in a scope, whatever their status."""
        now = self._now()
        found = self._store.read(EntriesByRow(scope, rows, now=now, include_deleted=True))
        return {row: entry for row, entry in found.items() if entry.is_present(now)}

    def links(
        self, scope: Scope, row: int, direction: Direction, kinds: Collection[LinkType] | None
    ) -> list[LinkedRows]:
        """Return a memory's links among present memories, the oldest first."""
        return self._store.read(Links(scope, self._now(), row, direction, kinds))

    async def attached(self, entries: Sequence[MemoryEntry]) -> list[MemoryEntry]:
        """Return entries with the vectors of the state that they show, in one read.

        An entry that another call has changed since is returned in its new state.
        """
        if len(entries) <= _FEW:
            return self._attached(entries)
        return await run_blocking(lambda: self._attached(entries), self._store)

    def _attached(self, entries: Sequence[MemoryEntry]) -> list[MemoryEntry]:
        model = self._models.now.stored_name
        if model is None:
            return list(entries)
        done: dict[OwnedId, MemoryEntry] = {}
        waiting = {_name(entry): entry for entry in entries}
        for _ in range(MAX_ROUNDS):
            found = self._store.read(VectorsById(self._agent_id, waiting.keys(), model))
            for name, entry in waiting.items():
                state = entry.version, to_microseconds(entry.updated_at)
                if name in found and found[name][:2] == state:  # that the entry shows
                    done[name] = _with_vectors(entry, found[name], model)
            changed = [name for name in waiting if name in found and name not in done]
            if not changed:
                break
            waiting = self._read(changed)
        return [done.get(_name(entry), entry) for entry in entries]

    def _read(self, names: Iterable[OwnedId]) -> dict[OwnedId, MemoryEntry]:
        now = self._now()
        read: dict[OwnedId, MemoryEntry] = {}
        for user_id, entry_id in names:
            scope = Scope(self._agent_id, user_id)
            found = self._store.read(EntriesById(scope, [entry_id], now, include_deleted=True))
            if entry_id in found:
                read[user_id, entry_id] = found[entry_id].entry
        return read

    async def stats(self, scope: Scope) -> LongTermMemoryStats:
        """Return statistics of a scope; figures of the embedder with all users alone."""
        self._limits.require_storing()
        wanted = ScopeStatistics(scope, now=self._now())
        stored = await run_blocking(lambda: self._store.read(wanted), self._store)
        if not stored.stored_entries:
            hint = await self._user_hints.of("stats", scope)
            stored = msgspec.structs.replace(stored, hint=hint)
        used = self._limits.usage(scope)
        if used is not None:
            stored = msgspec.structs.replace(
                stored, storage_bytes_used=used.size, storage_bytes_limit=used.limit
            )
        embedder = self._models.embedder
        if embedder is None or not scope.all_users:
            return stored
        return msgspec.structs.replace(
            stored,
            average_embedding_time_ms=embedder.calls.average_ms,
            total_embeddings_generated=embedder.calls.embedded,
        )

    async def users(self, limit: int, offset: int, prefix: str | None) -> list[UserUsage]:
        """Return the users of the agent who have memories; see `mnemic.store.operations.Users`."""
        self._limits.require_storing()
        validation.limit("limit", limit)
        validation.whole("offset", offset)
        if prefix is not None:
            validation.text("prefix", prefix)
        wanted = Users(self._agent_id, now=self._now(), limit=limit, offset=offset, prefix=prefix)
        return await run_blocking(lambda: self._store.read(wanted), self._store)


def _name(entry: MemoryEntry) -> OwnedId:
    return entry.user_id, entry.id


def _with_vectors(entry: MemoryEntry, found: EntryVectors, model: str) -> MemoryEntry:
    vectors = found.vectors
    if vectors is None or not vectors.any():
        return entry
    return entry.with_vectors(vectors[0] if len(vectors) == 1 else vectors, model)


MAX_STEPS = 64
"""Most reads in each direction of a chain; older versions, and later rivals, are not read."""


class LineageReader(Part):
    """Reads lineages."""

    def lineages(
        self,
        scope: Scope,
        entries: Sequence[MemoryEntry],
        max_versions: int,
        deadline: float | None = None,
    ) -> list[Lineage]:
        """Return the lineage of each entry, in the order given.

        The versions of all entries are read together, one read for each step back. Nothing is read
        if no entry supersedes another.

        Args:
            scope: Only its memories are versions.
            entries: Memories of the scope.
            max_versions: Maximum number of versions of each, the latest ones.
            deadline: Time limit, in seconds of `time.monotonic()`; None is no limit.

        Raises:
            DeadlineExceededError: If the deadline passes.
            StoreUnavailableError: If versions are to be read, and the store's server is
                unreachable.
        """
        self._limits.require_storing()
        now = self._now()
        lineages = [Lineage(entry) for entry in entries]
        heads = {
            at: entry
            for at, entry in enumerate(entries)
            if entry.supersedes is not None and scope.has(entry)
        }
        # Waiting for it would take the deadline.
        if heads and self._store.stale_since(scope.agent_id) is not None:
            raise StoreUnavailableError(
                f"{self._store.path}: earlier versions are read from the server, and it is "
                "unreachable"
            )
        for user in {entry.user_id for entry in heads.values()}:
            own = msgspec.structs.replace(scope, user_id=user, all_users=False)
            chains = _VersionChains(self._store, own, now, deadline)
            of_user = {at: entry for at, entry in heads.items() if entry.user_id == user}
            for at, lineage in chains.lineages(of_user, max_versions).items():
                lineages[at] = lineage
        return lineages


class _VersionChains:
    """The versions of one user's memories, read in one call."""

    def __init__(self, store: Store, scope: Scope, now: datetime, deadline: float | None) -> None:
        self._store = store
        self._scope = scope
        self._now = now
        self._deadline = deadline
        self._known: dict[UUID, MemoryEntry] = {}
        self._rows: dict[UUID, int] = {}

    def lineages(self, heads: Mapping[int, MemoryEntry], max_versions: int) -> dict[int, Lineage]:
        """Return the lineages of heads by their places."""
        chains = self._read_back(heads, max_versions)
        successors = self._read_forward({entry.id for chain in chains.values() for entry in chain})
        return {
            at: Lineage(
                head,
                tuple(reversed(self._shown(chains[at], max_versions))),
                _rivals(head, chains[at], successors),
            )
            for at, head in heads.items()
        }

    def _read_back(
        self, heads: Mapping[int, MemoryEntry], max_versions: int
    ) -> dict[int, list[MemoryEntry]]:
        """Return the versions of each head, latest first, deleted and expired ones included."""
        chains: dict[int, list[MemoryEntry]] = {at: [] for at in heads}
        for _ in range(MAX_STEPS):
            wanted = {
                at: previous
                for at, chain in chains.items()
                if (previous := _next_back(heads[at], chain)) is not None
                and (not chain or len(self._shown(chain, max_versions)) < max_versions)
            }
            self._read({entry_id for entry_id in wanted.values() if entry_id not in self._known})
            found = {at: self._known.get(entry_id) for at, entry_id in wanted.items()}
            if not any(found.values()):
                break
            for at, entry in found.items():
                if entry is not None:
                    chains[at].append(entry)
        return chains

    def _read(self, ids: Iterable[UUID]) -> None:
        check_deadline(self._deadline)
        wanted = list(ids)
        if not wanted:
            return
        found = self._store.read(
            EntriesById(self._scope, wanted, now=self._now, include_deleted=True),
            deadline=self._deadline,
        )
        for entry_id, (row, entry) in found.items():
            self._known[entry_id], self._rows[entry_id] = entry, row

    def _shown(self, chain: Sequence[MemoryEntry], max_versions: int) -> list[MemoryEntry]:
        return [entry for entry in chain if entry.is_present(self._now)][:max_versions]

    def _read_forward(self, predecessors: Iterable[UUID]) -> dict[UUID, list[MemoryEntry]]:
        """Return the present successors of memories, and those of inactive successors."""
        successors: dict[UUID, list[MemoryEntry]] = {}
        rows = [self._rows[entry_id] for entry_id in predecessors]
        for _ in range(MAX_STEPS):
            check_deadline(self._deadline)
            if not rows:
                break
            found = self._store.read(
                Successors(self._scope, rows, now=self._now), deadline=self._deadline
            )
            rows = []
            for row, entry in found.items():
                if entry.supersedes is not None:
                    successors.setdefault(entry.supersedes, []).append(entry)
                if not entry.is_active(self._now) and entry.id not in self._rows:
                    self._rows[entry.id] = row
                    rows.append(row)
        return successors


def _next_back(head: MemoryEntry, chain: Sequence[MemoryEntry]) -> UUID | None:
    """Return the id of the next version back; None if there is none, or it is in the chain."""
    last = chain[-1] if chain else head
    is_known = any(entry.id == last.supersedes for entry in (head, *chain))
    return None if is_known else last.supersedes


def _rivals(
    head: MemoryEntry,
    chain: Sequence[MemoryEntry],
    successors: Mapping[UUID, Sequence[MemoryEntry]],
) -> tuple[MemoryEntry, ...]:
    """Return the active memories that supersede one of a chain in place of the head."""
    found: dict[UUID, MemoryEntry] = {}
    left = [entry.id for entry in chain]
    seen = {head.id, *left}
    while left:
        for entry in successors.get(left.pop(), ()):
            if entry.id in seen:
                continue
            seen.add(entry.id)
            if entry.status is MemoryStatus.ACTIVE:
                found[entry.id] = entry
            else:
                left.append(entry.id)
    return tuple(sorted(found.values(), key=lambda entry: (-_changed(entry), entry.id.bytes)))


def _changed(entry: MemoryEntry) -> int:
    return to_microseconds(entry.updated_at)
