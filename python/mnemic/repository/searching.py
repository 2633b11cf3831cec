"""Searches of a program: what is found, with the passages of long memories, made known."""

import time
from collections.abc import Mapping
from itertools import accumulate
from typing import NamedTuple
from uuid import UUID

import msgspec

from mnemic.model import KEYWORD, MemoryEntry, Scope, SearchResults
from mnemic.model.hit import MOST_READ, Passage, is_long, passage_of
from mnemic.model.search import Search
from mnemic.observability.telemetry import milliseconds_since
from mnemic.repository.find import Finder
from mnemic.repository.found import SearchOutcome
from mnemic.repository.parts import Part, Shared
from mnemic.store.operations import EntriesById, VectorsOfRow
from mnemic.threads.sync_bridge import run_blocking


class SimilaritySearch(NamedTuple):
    """A search for the memories most similar to one.

    Attributes:
        search: The stored vectors of that memory are its query.
        entry: That memory.
    """

    search: Search
    entry: MemoryEntry


class Searcher(Part):
    """Searches one agent's memories for a program.

    Args:
        shared: What it shares with the others.
        finder: Finds them.
    """

    def __init__(self, shared: Shared, finder: Finder) -> None:
        super().__init__(shared)
        self._finder = finder

    async def search(
        self, scope: Scope, search: Search, *, with_passages: bool = True
    ) -> SearchResults:
        """Return the best memories of a scope, best first.

        Args:
            scope: The scope.
            search: The request.
            with_passages: Whether long memories have passages, which take longer than the search.
        """
        started = time.perf_counter()
        outcome = await self._finder.found(scope, search)
        found = await self._results(outcome, search.text) if with_passages else outcome.results()
        milliseconds = milliseconds_since(started)
        if not found and search.limit > 0 and search.offset == 0:
            hint = await self._user_hints.of("search", scope)
            found = msgspec.structs.replace(found, hint=hint)
        search_type = "keyword" if found.degraded else search.search_type
        await self._telemetry.searched(search_type, search.text or "", len(found), milliseconds)
        return found

    async def similar(self, scope: Scope, entry_id: UUID, search: Search) -> SearchResults | None:
        """Return the memories of a scope most similar to one of it; None if it is not in the scope.

        The stored vectors of that memory are the query; reading it does not count as an access.

        Args:
            scope: The scope.
            entry_id: Id of the memory.
            search: The request; its text becomes the memory's content.
        """
        like = self.like(scope, entry_id, search)
        if like is None:
            return None
        started = time.perf_counter()
        found = await self._results(await self._finder.found(scope, like.search), like.search.text)
        milliseconds = milliseconds_since(started)
        await self._telemetry.searched(
            "similar",
            like.entry.content,
            len(found),
            milliseconds,
            is_sensitive=like.entry.hides_content,
        )
        return found

    async def _results(self, found: SearchOutcome, query: str | None) -> SearchResults:
        """Return found memories as a result, the long ones with their passages."""
        if query is None and any(hit.similarity is not None for hit in found.hits):
            query = ""  # they were found by a vector
        chunks = {hit.row: hit.chunk for hit in found.hits}
        passages = await self.passages(chunks, found.entries, query)
        return found._replace(passages=passages).results()

    async def passages(
        self,
        chunks: Mapping[int, int | None],
        entries: Mapping[int, MemoryEntry],
        query: str | None,
    ) -> Mapping[int, Passage]:
        """Return the passages of the long ones of found memories, by row.

        Args:
            chunks: The rows, best first, each with the number of the chunk nearest to the query.
            entries: The memories of these rows.
            query: What they were found by; None was no query, and there are no passages.
        """
        long = [] if query is None else [row for row in chunks if is_long(entries[row].content)]
        read = accumulate(len(entries[row].content) + len(query or "") for row in long)
        long = [row for row, characters in zip(long, read, strict=True) if characters <= MOST_READ]
        if query is None or not long:
            return {}
        return await run_blocking(
            lambda: {row: self._passage(entries[row], query, chunks[row]) for row in long},
            self._store,
        )

    def _passage(self, entry: MemoryEntry, query: str, chunk: int | None) -> Passage:
        embedder = self._models.now.embedder
        near = None
        if embedder is not None and chunk is not None:
            near = embedder.chunk_span(entry.content, chunk)
        return passage_of(entry, query, near)

    def like(self, scope: Scope, entry_id: UUID, search: Search) -> SimilaritySearch | None:
        """Return the search for the memories most similar to one of a scope, without itself.

        It is one by keywords if that memory has no vector to compare. With an embedder, a memory
        that lacks its vector is embedded.

        Args:
            scope: The scope.
            entry_id: Id of the memory; None is returned if it is not in the scope.
            search: The request; its text becomes the memory's content.
        """
        located = self._store.read(EntriesById(scope, [entry_id], now=self._now())).get(entry_id)
        if located is None:
            return None
        row, entry = located
        exclude = (entry_id, *search.exclude)
        search = msgspec.structs.replace(search, text=entry.content, exclude=exclude, like=row)
        model = self._models.now
        stored = self._store.read(VectorsOfRow(self._agent_id, row, model.name))
        may_be_embedded = model.embedder is not None and len(stored) == 0 and search.text
        if not (stored.any() or may_be_embedded):
            ranking = msgspec.structs.replace(KEYWORD, weights=search.ranking.weights)
            search = msgspec.structs.replace(
                search, ranking=ranking, like=None, min_similarity=None, uses_similarity_floor=False
            )
        elif model.embedder is None:
            search = msgspec.structs.replace(search, vectors=stored)
        return SimilaritySearch(search, entry)
