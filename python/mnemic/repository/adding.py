"""Stores new memories: embed them, write them, index them, publish them."""

import time
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from mnemic.errors import MnemicError
from mnemic.model import MemoryEntry, OnConflict, OnDuplicate, OnEmbedError
from mnemic.model.new_entry import NewEntry
from mnemic.observability.table import EMPTIED, NOT_STORED, WRITTEN
from mnemic.observability.telemetry import milliseconds_since
from mnemic.reporting.progress import Report, silent
from mnemic.repository.erasure import Erasure
from mnemic.repository.new_vectors import NewVectors
from mnemic.repository.parts import Part, Shared
from mnemic.store.operations import Add, EntriesByRow
from mnemic.store.values import Selection, WriteResult


class AdditionResult(NamedTuple):
    """The outcome of an addition.

    Attributes:
        given: The entries, with their embeddings.
        stored: What the store did with each.
        fresh: Those that were not stored already.
    """

    given: Sequence[NewEntry]
    stored: WriteResult
    fresh: list[MemoryEntry]


class Adder(Part):
    """Adds memories of one agent.

    Args:
        shared: What it shares with the others.
        vectors: Gives them their vectors.
    """

    def __init__(self, shared: Shared, vectors: NewVectors) -> None:
        super().__init__(shared)
        self._vectors = vectors
        self._slow_embedding = shared.settings.slow_embedding
        self._time_zone = shared.settings.time_zone

    async def add(
        self,
        entries: Sequence[NewEntry],
        on_duplicate: OnDuplicate,
        on_embed_error: OnEmbedError,
        *,
        on_conflict: OnConflict = "raise",
        is_import: bool = False,
        instead_of: Selection | None = None,
        report: Report = silent,
    ) -> AdditionResult:
        """Store checked entries, all or none.

        Args:
            entries: Of one agent.
            on_conflict: What becomes of an entry whose id is stored already.
            on_duplicate: What becomes of an entry whose text is stored already.
            on_embed_error: Whether entries are stored without vectors where the embedder fails.
            is_import: Whether ids that are stored already are passed over.
            instead_of: Entries that they take the place of.
            report: Gets the number of entries that have their vectors so far.
        """
        started = time.perf_counter()
        milliseconds = 0.0
        erasure = Erasure(self._store, _is_sealed_now, _has_removed)

        async def write() -> tuple[Sequence[NewEntry], WriteResult]:
            nonlocal milliseconds
            started = time.perf_counter()
            embedded = await self._vectors.embedded(entries, on_conflict, on_embed_error, report)
            milliseconds = milliseconds_since(started)
            return embedded, await erasure.arrived(
                self._store.write(
                    Add(
                        self._agent_id,
                        embedded,
                        self._now(),
                        self._limits.quotas,
                        on_conflict,
                        on_duplicate,
                        is_import=is_import,
                        time_zone=self._time_zone,
                        instead_of=instead_of,
                    )
                )
            )

        try:
            entries = [new._replace(entry=self._store.marked(new.entry)) for new in entries]
            if on_duplicate == "keep" and on_conflict == "raise":
                await self._limits.check_capacity(entries)
            embedded, stored = await self._models.written(write)
        except MnemicError as error:
            self._telemetry.record(NOT_STORED, error=str(error))
            raise
        await self._indexes.active.apply(stored.batch)
        self._indexes.active.note_stored(
            is_pending=any(new.entry.embedding is None for new in embedded)
        )
        self._telemetry.record(WRITTEN, latency_ms=milliseconds_since(started))
        pairs = zip(embedded, stored.is_new, strict=True)
        fresh = [new.returned for new, is_new in pairs if is_new]
        bare = {(new.entry.user_id, new.entry.id) for new in entries if new.entry.embedding is None}
        await self._telemetry.stored(fresh, bare, milliseconds, self._slow_embedding)
        for replaced in stored.replaced.values():
            changed = [(replaced.entry.id, replaced.entry.type)]
            await self._telemetry.updated(changed, content_changed=replaced.content_changed)
        await erasure.finish()
        if stored.changed:
            await self._publish_changed(stored.changed)
        if instead_of is not None and stored.removed:
            scope = instead_of.scope
            await self._telemetry.deleted(EMPTIED, stored.removed, permanent=True, scope=scope)
        await self._limits.report_evicted(stored.evicted)
        await self._limits.warn()
        return AdditionResult(embedded, stored, fresh)

    async def entries_of(self, added: AdditionResult) -> list[MemoryEntry]:
        """Return each entry as it is stored now: as given, or as it was stored before."""
        if len(added.fresh) == len(added.given):
            return added.fresh
        own = self._own_entries(added)
        rows = [row for at, row in enumerate(added.stored.rows) if at not in own]
        found = self._present(rows) if rows else {}
        places = zip(added.given, added.stored.ids, added.stored.rows, strict=True)
        return [
            own.get(at) or found.get(row) or msgspec.structs.replace(new.entry, id=entry_id)
            for at, (new, entry_id, row) in enumerate(places)
        ]

    @staticmethod
    def _own_entries(added: AdditionResult) -> dict[int, MemoryEntry]:
        """Return by position the entries that were stored, in new rows or over others."""
        stored = added.stored
        own = {at: new.returned for at, new in enumerate(added.given) if stored.is_new[at]}
        for at, replaced in stored.replaced.items():
            own[at] = added.given[at]._replace(entry=replaced.entry).returned
        return own

    async def _publish_changed(self, rows: Sequence[int]) -> None:
        """Publish memories that changed because others were stored."""
        changed = [(entry.id, entry.type) for entry in self._present(rows).values()]
        await self._telemetry.updated(changed, content_changed=False)

    def _present(self, rows: Sequence[int]) -> dict[int, MemoryEntry]:
        return self._store.read(
            EntriesByRow(self._everyone, rows, now=self._now(), include_deleted=True)
        )


def _is_sealed_now(stored: WriteResult) -> bool:
    """Return whether plain bytes are left of what a write has sealed."""
    return any(one.is_sealed_now for one in stored.replaced.values())


def _has_removed(stored: WriteResult) -> bool:
    """Return whether bytes are left of what a write has deleted in favour of others."""
    return bool(stored.removed)
