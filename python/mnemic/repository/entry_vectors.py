"""The stored vectors of memories: attached to entries, and as the query of a search."""

from collections.abc import Iterable, Sequence

import msgspec

from mnemic.model import KEYWORD, MemoryEntry, Scope
from mnemic.model.search import Search
from mnemic.model.timestamps import to_microseconds
from mnemic.repository.parts import Part
from mnemic.store.operations import EntriesById, VectorsById, VectorsOfRow
from mnemic.store.values import EntryVectors, OwnedId
from mnemic.threads.sync_bridge import run_blocking

MAX_ROUNDS = 4
"""How often entries are read while concurrent writes change them."""

_FEW = 16  # more vectors at once are read in another thread


class EntryVectorReader(Part):
    """Reads the vectors of one agent's memories."""

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
                if _is_of(entry, found.get(name)):
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

    def like(self, search: Search, row: int) -> Search:
        """Return a search like a memory, by its keywords if it has no vector to compare.

        With an embedder, a memory that lacks its vector is embedded.
        """
        model = self._models.now
        stored = self._store.read(VectorsOfRow(self._agent_id, row, model.name))
        may_be_embedded = model.embedder is not None and len(stored) == 0 and search.text
        if stored.any() or may_be_embedded:
            is_given = model.embedder is None
            return msgspec.structs.replace(search, vectors=stored) if is_given else search
        ranking = msgspec.structs.replace(KEYWORD, weights=search.ranking.weights)
        return msgspec.structs.replace(
            search, ranking=ranking, like=None, min_similarity=None, uses_similarity_floor=False
        )


def _name(entry: MemoryEntry) -> OwnedId:
    return entry.user_id, entry.id


def _is_of(entry: MemoryEntry, found: EntryVectors | None) -> bool:
    """Return whether vectors belong to the state that an entry shows."""
    return found is not None and found[:2] == (entry.version, to_microseconds(entry.updated_at))


def _with_vectors(entry: MemoryEntry, found: EntryVectors, model: str) -> MemoryEntry:
    vectors = found.vectors
    if vectors is None or not vectors.any():
        return entry
    return entry.with_stored_embedding(vectors, model)
