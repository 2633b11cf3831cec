"""The vectors of memories to store: given ones, those of their texts, or none."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from itertools import accumulate
from typing import TypeAlias
from uuid import UUID

from mnemic.arrays import Float32Array, np
from mnemic.embed.validated import ValidatedEmbedder
from mnemic.errors import EmbedderRequiredError, EmbeddingError
from mnemic.model import MemoryEntry, OnConflict, OnEmbedError
from mnemic.model.new_entry import NewEntry, OwnVectors
from mnemic.observability.table import NOT_EMBEDDED
from mnemic.reporting.progress import Report, silent
from mnemic.repository.parts import Part
from mnemic.store.operations import NeedVectors
from mnemic.threads.sync_bridge import run_blocking

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
        return [
            _with_vectors(
                new, vectors.get(at), (model.name, dimensions), has_none=texts.get(at) == ()
            )
            for at, new in enumerate(entries)
        ]

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


def _with_vectors(
    new: NewEntry, vectors: Vectors | None, model: tuple[str, int | None], *, has_none: bool
) -> NewEntry:
    (name, dimensions), entry = model, new.entry
    if entry.embedding is not None:
        if entry.embedding_model is not None:
            return new
        own = entry.embedding[np.newaxis]
    elif has_none and dimensions is not None:
        own = np.zeros((1, dimensions), dtype=np.float32)
    elif vectors is not None:
        own = vectors
    else:
        return new
    own.flags.writeable = False
    entry = entry.with_vectors(own[0], name)
    return NewEntry(entry, new.key, new.more or tuple(own[1:]), new.embed)


def _need_dimension(entries: Sequence[NewEntry]) -> bool:
    """Return whether any entry comes with vectors, or shall have none."""
    return any(new.entry.embedding is not None or not new.texts for new in entries)
