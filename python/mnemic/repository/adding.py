"""Stores new memories: give them vectors, write them, index them, publish them."""

import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, get_args
from uuid import UUID

import msgspec

from mnemic.arrays import Float32Array, np
from mnemic.embed.validated import ValidatedEmbedder
from mnemic.errors import (
    EmbedderRequiredError,
    EmbeddingError,
    EmbeddingModelMismatchError,
    MnemicError,
)
from mnemic.model import (
    AddedMemories,
    CheckedEntry,
    MemoryEntry,
    OnConflict,
    OnDuplicate,
    OnEmbedError,
    validation,
)
from mnemic.model.new_entry import ON_EMBED_ERROR, NewEntry, OwnVectors
from mnemic.observability.spans import embedding, records, traced
from mnemic.observability.table import EMPTIED, NOT_EMBEDDED, NOT_STORED, REPEATED, WRITTEN
from mnemic.observability.telemetry import milliseconds_since
from mnemic.reporting.progress import Report, silent
from mnemic.repository.parts import Erasure, Part, Shared
from mnemic.store.operations import Add, EntriesByRow, NeedVectors
from mnemic.store.values import NO_QUOTAS, Selection, WriteResult
from mnemic.threads.sync_bridge import arrived, run_blocking

if TYPE_CHECKING:
    from mnemic.repository.recall_guard import RecallGuard


Vectors: TypeAlias = Float32Array
Texts: TypeAlias = dict[int, tuple[str, ...]]
"""Texts to embed for each entry, by its position; none for an entry that shall have no vector."""

TEXTS_BETWEEN_REPORTS = 256


class NewVectors(Part):
    """Gives new entries of one agent their vectors.

    An entry that shall have none gets one vector of zeros, so that no later search embeds it; where
    the dimension is not known yet it stays without.
    """

    async def embedded(
        self,
        entries: Sequence[NewEntry],
        on_conflict: OnConflict,
        on_error: OnEmbedError,
        report: Report = silent,
    ) -> Sequence[NewEntry]:
        """Return the entries with their vectors, where they need any.

        Args:
            entries: The entries.
            on_conflict: What becomes of an entry whose id is stored already.
            on_error: Whether entries may stay without vectors where the embedder fails.
            report: Gets the number of entries that need no more vectors, and of all.

        Raises:
            EmbedderRequiredError: If an entry names texts to embed, and there is no embedder.
            EmbeddingError: If the embedder fails, unless entries may be stored without vectors.
            EmbeddingModelMismatchError: If given vectors do not fit the model.
        """
        model, vectors = self._models.now, dict[int, Vectors]()
        embedder = model.embedder
        if embedder is not None and model.known is None and _need_dimension(entries):
            await self._learn_dimension(embedder, entries, on_error)
        given = [new for new in entries if new.entry.embedding is not None]
        known = model.known
        dimensions = model.check_new(given) if given else known and known[1]
        texts = {at: new.texts for at, new in enumerate(entries) if new.entry.embedding is None}
        if embedder is None:
            self._refuse_texts(entries)
            texts = {at: () for at, of_entry in texts.items() if not of_entry}
        elif any(texts.values()):
            if on_conflict != "raise":
                need = partial(self._needed, embedder.model, entries, texts, on_conflict)
                texts = await run_blocking(need, self._store)
            vectors = await self._embedded(embedder, entries, texts, on_error, report)
        complete = list(entries)
        for at, new in enumerate(entries):
            own, embedding = vectors.get(at), new.entry.embedding
            if embedding is not None and new.entry.embedding_model is None:
                own = embedding[np.newaxis]
            elif texts.get(at) == () and dimensions is not None:
                own = np.zeros((1, dimensions), dtype=np.float32)
            if own is not None:
                own.flags.writeable = False
                entry = new.entry.with_vectors(own[0], model.name)
                complete[at] = NewEntry(entry, new.key, new.more or tuple(own[1:]), new.embed)
        return complete

    async def _learn_dimension(
        self, embedder: ValidatedEmbedder, entries: Sequence[NewEntry], on_error: OnEmbedError
    ) -> None:
        """Learn the length of vectors; if that fails, only empty contents may wait for theirs."""
        try:
            await run_blocking(embedder.learned_dimensions, self._store)
        except EmbeddingError:
            has_own = any(new.entry.embedding is not None or new.embed == () for new in entries)
            if on_error == "raise" or has_own:
                raise

    async def of_own(
        self, agent_id: str, entry_id: UUID, own: OwnVectors, now: datetime
    ) -> tuple[str, Vectors] | None:
        """Return the model and the vectors, shape (chunks, dimensions), for a stored entry.

        None is returned if it shall have none, and no dimension is known.

        Raises:
            As `embedded`.
        """
        entry = MemoryEntry.empty(
            id=entry_id, agent_id=agent_id, created_at=now, embedding=own.embedding
        )
        new = NewEntry.of_record(entry, embed=own.embed)
        (embedded,) = await self.embedded([new], "raise", "raise")
        first = embedded.entry.embedding
        model = embedded.entry.embedding_model
        if first is None or model is None:
            return None
        return model, np.stack([first, *embedded.more])

    def _refuse_texts(self, entries: Sequence[NewEntry]) -> None:
        if any(new.embed for new in entries):
            raise EmbedderRequiredError(
                "embed names texts, and this memory was opened with embedder=None, or waits for "
                "its re-embedding; open it with an embedder, give the vectors as embedding, or "
                "leave embed out"
            )

    async def _embedded(
        self,
        embedder: ValidatedEmbedder,
        entries: Sequence[NewEntry],
        texts: Texts,
        on_error: OnEmbedError,
        report: Report,
    ) -> dict[int, Vectors]:
        """Embed the texts of entries, by position, in one call, or in several with a report.

        Returns:
            The vectors, shape (chunks, dimensions), of each, a copy, so that a memory that is kept
            holds no vectors of others; none where the embedder fails and may.
        """
        wanted = {at: of_entry for at, of_entry in texts.items() if of_entry}
        listed = [text for of_entry in wanted.values() for text in of_entry]
        if not listed:
            return {}
        ends = list(accumulate(map(len, wanted.values())))
        size = len(listed) if report is silent else TEXTS_BETWEEN_REPORTS
        found: list[Vectors] = []
        try:
            for at in range(0, len(listed), size):
                with embedding(embedder):
                    found += await embedder.embed_awaited(listed[at : at + size], self._store)
                if report is not silent:
                    waiting = len(ends) - bisect_right(ends, len(found))
                    report(len(entries) - waiting, len(entries))
        except EmbeddingError as error:
            # Later the content would be embedded: other texts are not stored.
            if on_error == "raise" or any(entries[at].embed for at in wanted):
                raise
            self._telemetry.record(NOT_EMBEDDED, count=len(listed), error=str(error))
            return {}
        return {
            at: np.concatenate(found[end - len(of_entry) : end])
            for (at, of_entry), end in zip(wanted.items(), ends, strict=True)
        }

    def _needed(
        self, model: str, entries: Sequence[NewEntry], texts: Texts, on_conflict: OnConflict
    ) -> Texts:
        """Return the texts without contents that are stored already, as far as is known now."""
        of_content = [at for at in texts if entries[at].embed is None and texts[at]]
        given = [entries[at].entry for at in of_content]
        needed = self._store.read(NeedVectors(self._agent_id, given, model, on_conflict))
        # An id that comes again is compared with an entry of this call, which is not stored yet.
        times = Counter((new.entry.user_id, new.entry.id) for new in entries)
        left_out = {
            at
            for at, entry, is_needed in zip(of_content, given, needed, strict=True)
            if not is_needed and times[entry.user_id, entry.id] == 1
        }
        return {at: of_entry for at, of_entry in texts.items() if at not in left_out}


def _need_dimension(entries: Sequence[NewEntry]) -> bool:
    """Return whether any entry comes with vectors, or shall have none."""
    return any(new.entry.embedding is not None or not new.texts for new in entries)


_OPERATIONS = {"raise": "create_memory", "skip": "create_memory", "replace": "upsert_memory"}
_ON_CONFLICT: tuple[str, ...] = get_args(OnConflict)
_ON_DUPLICATE: tuple[str, ...] = get_args(OnDuplicate)


class _Written(NamedTuple):
    """What an addition wrote.

    Attributes:
        embedded: The entries, with their embeddings.
        stored: What the store did with each.
        milliseconds: How long embedding them took.
        erasure: That of the bytes that the write left.
    """

    embedded: Sequence[NewEntry]
    stored: WriteResult
    milliseconds: float
    erasure: Erasure[WriteResult]


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

    @traced(
        lambda named: _OPERATIONS[named.get("on_conflict", "raise")],
        lambda added, _: records(new.entry.id for new in added.given),
    )
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
        started, quotas = time.perf_counter(), self._limits.quotas
        addition = partial(
            Add,
            self._agent_id,
            quotas=quotas,
            on_conflict=on_conflict,
            on_duplicate=on_duplicate,
            is_import=is_import,
            time_zone=self._time_zone,
            instead_of=instead_of,
        )
        embed = partial(
            self._vectors.embedded, on_conflict=on_conflict, on_error=on_embed_error, report=report
        )
        try:
            entries = [new._replace(entry=self._store.marked(new.entry)) for new in entries]
            is_limited = quotas != NO_QUOTAS
            if is_limited and on_duplicate == "keep" and on_conflict == "raise":
                self._limits.check_capacity(entries, quotas)
            written = await self._written(entries, embed, addition)
        except MnemicError as error:
            self._telemetry.record(NOT_STORED, error=str(error))
            raise
        embedded, stored, milliseconds, erasure = written
        await self._active.apply(stored.batch)
        self._active.note_stored(is_pending=any(new.entry.embedding is None for new in embedded))
        self._telemetry.record(WRITTEN, latency_ms=milliseconds_since(started))
        pairs = zip(embedded, stored.is_new, strict=True)
        added = AdditionResult(embedded, stored, [new.returned for new, is_new in pairs if is_new])
        bare = {(new.entry.user_id, new.entry.id) for new in entries if new.entry.embedding is None}
        await self._telemetry.stored(added.fresh, bare, milliseconds, self._slow_embedding)
        await self._publish_changed(stored)
        await erasure.finish()
        await self._publish_removed(stored, instead_of)
        return added

    async def _written(
        self,
        entries: Sequence[NewEntry],
        embed: Callable[[Sequence[NewEntry]], Awaitable[Sequence[NewEntry]]],
        addition: Callable[[Sequence[NewEntry], datetime], Add],
    ) -> _Written:
        """Give entries their vectors and write them; again, if the model changes meanwhile."""
        while True:
            model, started = self._models.now, time.perf_counter()
            try:
                embedded = await embed(entries)
                milliseconds = (time.perf_counter() - started) * 1000
                written = self._store.write(addition(embedded, self._now()))
                # Plain bytes are left of what it has sealed, and others of what it has deleted.
                erasure = Erasure(
                    self._store,
                    written,
                    lambda stored: any(one.is_sealed_now for one in stored.replaced.values()),
                    lambda stored: bool(stored.removed),
                )
                return _Written(embedded, await arrived(written), milliseconds, erasure)
            except EmbeddingModelMismatchError:
                if not await run_blocking(partial(self._models.has_changed_from, model)):
                    raise

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
