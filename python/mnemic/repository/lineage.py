"""Reads the earlier versions of memories, and other memories that supersede the same ones."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from uuid import UUID

import msgspec

from mnemic.errors import StoreUnavailableError
from mnemic.model import MemoryEntry, MemoryStatus, Scope
from mnemic.model.deadline import check_deadline
from mnemic.model.results import Lineage
from mnemic.model.timestamps import to_microseconds
from mnemic.repository.parts import Part
from mnemic.store import Store
from mnemic.store.operations import EntriesById, Successors

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
