"""Stores new memories: embed them, write them, index them, publish them."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, get_args

import msgspec

from mnemic.errors import MnemicError
from mnemic.model import (
    AddedMemories,
    CheckedEntry,
    MemoryEntry,
    OnConflict,
    OnDuplicate,
    OnEmbedError,
    validation,
)
from mnemic.model.new_entry import ON_EMBED_ERROR, NewEntry
from mnemic.observability.table import EMPTIED, NOT_STORED, REPEATED, WRITTEN
from mnemic.observability.telemetry import milliseconds_since
from mnemic.reporting.progress import Report, silent
from mnemic.repository.new_vectors import NewVectors
from mnemic.repository.parts import Erasure, Part, Shared
from mnemic.store.operations import Add, EntriesByRow
from mnemic.store.values import NO_QUOTAS, Selection, WriteResult
from mnemic.threads.sync_bridge import arrived

if TYPE_CHECKING:
    from mnemic.repository.recall_guard import RecallGuard

_ON_CONFLICT: tuple[str, ...] = get_args(OnConflict)
_ON_DUPLICATE: tuple[str, ...] = get_args(OnDuplicate)


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
        guard: Finds memories that were returned lately in new ones; None for none.
    """

    def __init__(
        self, shared: Shared, vectors: NewVectors, guard: "RecallGuard | None" = None
    ) -> None:
        super().__init__(shared)
        self._vectors = vectors
        self._guard = guard
        self._slow_embedding = shared.settings.slow_embedding
        self._time_zone = shared.time_zone

    async def add(
        self,
        entries: Sequence[NewEntry],
        *,
        on_conflict: OnConflict = "raise",
        on_duplicate: OnDuplicate = "keep",
        on_embed_error: OnEmbedError = "raise",
        may_repeat: bool = False,
        instead_of: Selection | None = None,
        report: Report = silent,
    ) -> AddedMemories:
        """Store checked entries, all or none.

        Args:
            entries: The entries.
            on_conflict: Treatment of an id that is stored already.
            on_duplicate: Treatment of a text that is stored already.
            on_embed_error: Treatment of a failing embedder.
            may_repeat: Whether they may repeat memories that were returned lately.
            instead_of: Memories that they take the place of.
            report: Gets the number of entries that have their vectors so far.

        Returns:
            The entries with their embeddings, or the existing ones, in the given order.
        """
        self._limits.require_storing()
        validation.word("on_conflict", on_conflict, _ON_CONFLICT)
        validation.word("on_duplicate", on_duplicate, _ON_DUPLICATE)
        validation.word("on_embed_error", on_embed_error, ON_EMBED_ERROR)
        if not entries:
            return AddedMemories()
        repeats = {}
        if self._guard is not None and not may_repeat:
            repeats = await self._guard.repeated(entries, on_duplicate)
        added = await self.store(
            entries,
            on_duplicate,
            on_embed_error,
            on_conflict=on_conflict,
            instead_of=instead_of,
            report=report,
        )
        report(len(entries), len(entries))
        stored = self._entries_of(added)
        for place, memory_id in repeats.items():
            if added.stored.is_new[place] or place in added.stored.replaced:
                entry = CheckedEntry.of(stored[place], repeats=memory_id)
                stored[place] = entry
                await self._telemetry.emit(REPEATED, entry_id=entry.id, repeats=memory_id)
        return AddedMemories(stored, added.stored.evicted)

    async def store(
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
        """Store entries as `add` does; ids that an import finds stored already are passed over."""
        started = time.perf_counter()
        quotas, milliseconds = self._limits.quotas, 0.0
        erasure: Erasure[WriteResult] | None = None

        async def write() -> tuple[Sequence[NewEntry], WriteResult]:
            nonlocal milliseconds, erasure
            started = time.perf_counter()
            embedded = await self._vectors.embedded(entries, on_conflict, on_embed_error, report)
            milliseconds = milliseconds_since(started)
            wanted = Add(
                self._agent_id,
                embedded,
                self._now(),
                quotas,
                on_conflict,
                on_duplicate,
                is_import=is_import,
                time_zone=self._time_zone,
                instead_of=instead_of,
            )
            written = self._store.write(wanted)
            erasure = Erasure(self._store, written, _is_sealed_now, _has_removed)
            return embedded, await arrived(written)

        try:
            entries = [new._replace(entry=self._store.marked(new.entry)) for new in entries]
            is_limited = quotas != NO_QUOTAS
            if is_limited and on_duplicate == "keep" and on_conflict == "raise":
                self._limits.check_capacity(entries, quotas)
            embedded, stored = await self._models.written(write)
        except MnemicError as error:
            self._telemetry.record(NOT_STORED, error=str(error))
            raise
        await self._active.apply(stored.batch)
        self._active.note_stored(is_pending=any(new.entry.embedding is None for new in embedded))
        self._telemetry.record(WRITTEN, latency_ms=milliseconds_since(started))
        pairs = zip(embedded, stored.is_new, strict=True)
        added = AdditionResult(embedded, stored, [new.returned for new, is_new in pairs if is_new])
        bare = {(new.entry.user_id, new.entry.id) for new in entries if new.entry.embedding is None}
        await self._telemetry.stored(added.fresh, bare, milliseconds, self._slow_embedding)
        await self._publish_changed(stored)
        if erasure is not None:
            await erasure.finish()
        await self._publish_removed(stored, instead_of)
        return added

    async def _publish_removed(self, stored: WriteResult, instead_of: Selection | None) -> None:
        """Publish what the write deleted, and warn where little space is left."""
        if instead_of is not None and stored.removed:
            scope = instead_of.scope
            await self._telemetry.deleted(EMPTIED, stored.removed, permanent=True, scope=scope)
        await self._limits.report_evicted(stored.evicted)
        await self._limits.warn()

    def _entries_of(self, added: AdditionResult) -> list[MemoryEntry]:
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

    async def _publish_changed(self, stored: WriteResult) -> None:
        """Publish memories that were replaced, or changed because others were stored."""
        for replaced in stored.replaced.values():
            changed = [(replaced.entry.id, replaced.entry.type)]
            await self._telemetry.updated(changed, content_changed=replaced.content_changed)
        if stored.changed:
            changed = [(entry.id, entry.type) for entry in self._present(stored.changed).values()]
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
