"""Stages of a turn after the embedding: search by hypotheses, neighbours by links, versions."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from mnemic.errors import DeadlineExceededError, StoreUnavailableError
from mnemic.hyde.config import HydeConfig
from mnemic.hyde.turn_memory import TurnMemory, entries_of
from mnemic.index import Hops, NeighbourRow, RankedRow
from mnemic.model import SEMANTIC, LinkType, MemoryEntry, MemoryStatus, Scope
from mnemic.model.filter import IS_NOT_SENSITIVE, All, Field, Op, Test
from mnemic.model.marks import UNMARKED, Marks
from mnemic.model.rows import State
from mnemic.model.search import Search
from mnemic.model.timestamps import to_microseconds
from mnemic.repository import Expansion, Repository, SearchOutcome, Service
from mnemic.repository.found import LinkedHits
from mnemic.repository.reading import LineageReader

_IS_SUPERSEDED = Test(Field("status"), Op.EQ, int(MemoryStatus.SUPERSEDED))


class Candidate(NamedTuple):
    """A memory that the search found.

    Attributes:
        row: The store's integer.
        score: Cosine similarity of it, or of an earlier version, to the nearest hypothesis, 0 to 1.
        entry: The memory.
    """

    row: int
    score: float
    entry: MemoryEntry


class TurnSearchOutcome(NamedTuple):
    """The memories that the search of a turn found.

    Attributes:
        candidates: Best first.
        seq: Number of the store's last change before the search.
        neighbours: The memories that links lead to from them; None where that was not looked up.
        error: The error of following links.
        marks: What holds of all of them.
    """

    candidates: list[Candidate]
    seq: int
    neighbours: list[TurnMemory] | None = None
    error: Exception | None = None
    marks: Marks = UNMARKED


class TurnSearch(Service):
    """Finds the memories of turns by vectors, by links, and as earlier versions.

    Args:
        repository: The agent's memories.
        scope: Only its memories are found.
        config: What is found, and how much of it; an attribute too.
        model: Model of the vectors; None is that of the memories.
        include_sensitive: Whether sensitive memories are found, and shown as earlier versions.
    """

    def __init__(
        self,
        repository: Repository,
        scope: Scope,
        config: HydeConfig,
        *,
        model: str | None = None,
        include_sensitive: bool = True,
    ) -> None:
        super().__init__(repository)
        self.config = config
        self._scope = scope
        self._model = model
        self._filters = None if include_sensitive else IS_NOT_SENSITIVE
        self._include_sensitive = include_sensitive
        self._hops = Hops(
            config.retrieval_hop_depth, config.decays, config.follow_incoming, config.max_neighbours
        )

    def found(
        self, vectors: NDArray[np.float32], deadline: float | None = None
    ) -> TurnSearchOutcome:
        """Return the active memories nearest to any hypothesis, each once, with its best score.

        A memory is as near as the nearest of it and its earlier versions. What a version leads to
        is left out while the store is unreachable, or where the deadline passes before it is known.

        Order: score, then last changed, then smallest id. At most `retrieval_top_k` memories are
        returned. Of several with the score of the last one, the newest are kept: the index cuts.
        Neighbours are found with them, unless each hypothesis is searched for alone.

        Args:
            vectors: float32, shape (m, d): the hypotheses.
            deadline: In seconds of `time.monotonic()`; candidates that are complete then are
                returned.

        Raises:
            DeadlineExceededError: If the deadline passes before any memory is found.
            EmbeddingModelMismatchError: If the memories have vectors of another model.
        """
        limit, alone = self.config.retrieval_top_k, self.config.candidates_per_hypothesis
        search = Search(
            text=None,
            vectors=vectors,
            vectors_model=self._model,
            limit=limit,
            ranking=SEMANTIC,
            filters=self._filters,
            min_similarity=self.config.min_similarity,
            deadline=deadline,
            takes_partial=True,
        )
        # The best of each hypothesis, united and cut, are the best of all, unless each gives fewer.
        if alone is not None and alone < limit and len(vectors) > 1:
            replaced = msgspec.structs.replace
            return self._united([replaced(search, vectors=one, limit=alone) for one in vectors])
        found = self._find(self._scope, search, expansion=Expansion(self._hops, self._starts))
        heads = self._heads(search)
        if found.marks.partial and not (found.hits or heads):
            raise DeadlineExceededError
        candidates = self._best_first([*_candidates(found), *heads])
        linked = found.linked or LinkedHits([])
        # Those of heads are not among them.
        neighbours = None if heads else _neighbours(candidates, linked.hits, found.entries)
        return TurnSearchOutcome(candidates, found.seq, neighbours, linked.error, found.marks)

    def expanded(
        self, candidates: Sequence[Candidate], deadline: float | None = None
    ) -> list[TurnMemory]:
        """Return candidates and the memories that links lead to from them, best first.

        The score of a neighbour is that of the memory before it on its best path, times the decay
        of the link's type and its strength. At most `max_neighbours` are added. Order: score, then
        candidates before neighbours, then last changed, then smallest id.

        Args:
            candidates: What the search found.
            deadline: In seconds of `time.monotonic()`.

        Raises:
            DeadlineExceededError: If the deadline passes.
        """
        starts = [(candidate.row, candidate.score) for candidate in candidates]
        found = self.repository.finder.neighbours(
            self._scope, starts, self._hops, filters=self._filters, deadline=deadline
        )
        self.repository.finder.note_returned(found.entries)
        return together(candidates, _neighbours(candidates, found.hits, found.entries))

    def with_versions(
        self, memories: Sequence[TurnMemory], deadline: float | None = None
    ) -> list[TurnMemory]:
        """Return memories with their earlier versions, and with others that replace the same ones.

        Args:
            memories: The memories of a turn; their order stays.
            deadline: In seconds of `time.monotonic()`.

        Raises:
            DeadlineExceededError: If the deadline passes.
        """
        entries = [each.entry for each in memories]
        lineages = LineageReader(self.repository.shared).lineages(
            self._scope, entries, self.config.max_versions, deadline
        )
        return [
            msgspec.structs.replace(
                each,
                versions=tuple(filter(self._shows, lineage.versions)),
                contradicting=tuple(filter(self._shows, lineage.contradicting)),
            )
            if lineage.versions or lineage.contradicting
            else each
            for each, lineage in zip(memories, lineages, strict=True)
        ]

    def has_vectors(self, deadline: float) -> bool:
        """Return whether any memory of the scope can be found.

        Raises:
            DeadlineExceededError: If the deadline passes.
        """
        return self.repository.readiness.has_vectors(self._scope, deadline)

    def present(self, memories: Sequence[TurnMemory], now: datetime) -> tuple[TurnMemory, ...]:
        """Return memories in their present state, without those deleted, expired or now sensitive.

        Args:
            memories: As they were found.
            now: The time.
        """
        entries = [entry for each in memories for entry in entries_of(each)]
        found = self.repository.readiness.present(self._scope, entries, now)
        shown = {key: entry for key, entry in found.items() if self._shows(entry)}

        def fresh(entries: Sequence[MemoryEntry]) -> tuple[MemoryEntry, ...]:
            keys = [(entry.user_id, entry.id) for entry in entries]
            return tuple(shown[key] for key in keys if key in shown)

        return tuple(
            msgspec.structs.replace(
                each,
                entry=shown[each.entry.user_id, each.id],
                versions=fresh(each.versions),
                contradicting=fresh(each.contradicting),
            )
            for each in memories
            if (each.entry.user_id, each.id) in shown
        )

    def _shows(self, entry: MemoryEntry) -> bool:
        return self._include_sensitive or not entry.sensitive

    def _best_first(self, candidates: Iterable[Candidate]) -> list[Candidate]:
        """Return the best candidates in the order of `found`, without far worse ones."""
        best, drop_off = _best(candidates, self.config.retrieval_top_k), self.config.drop_off
        if not best or drop_off is None:
            return best
        return [candidate for candidate in best if candidate.score >= best[0].score - drop_off]

    def _united(self, searches: Sequence[Search]) -> TurnSearchOutcome:
        """Return what several searches find, each memory once with its best score."""
        united: list[Candidate] = []
        seq, marks = self.repository.freshness.position().seq, UNMARKED
        for search in searches:
            found = self._find(self._scope, search)
            marks = marks.united(found.marks)
            candidates = [*_candidates(found), *self._heads(search)]
            if found.marks.partial and not candidates and not united:
                raise DeadlineExceededError
            united += _best(candidates, search.limit)
        return TurnSearchOutcome(self._best_first(united), seq, marks=marks)

    def _heads(self, search: Search) -> list[Candidate]:
        """Return the memories whose superseded versions a search finds, with the versions' scores.

        Versions of one memory may be many, so that more are searched for until there are enough
        memories.
        """
        repository, scope, filters = self.repository, self._scope, self._filters
        if repository.freshness.stale_since is not None:
            return []  # waiting for the server would take the deadline
        among = _IS_SUPERSEDED if filters is None else All((_IS_SUPERSEDED, filters))
        states = State.ACTIVE, State.INACTIVE
        wanted = msgspec.structs.replace(search, filters=among, states=states)
        hops = self._hops._replace(depth=0, limit=search.limit)
        with suppress(DeadlineExceededError, StoreUnavailableError):
            while True:
                versions = repository.finder.find(
                    scope, wanted, *self._by_meaning, is_returned=False
                )
                starts = [(hit.row, hit.shown_score) for hit in versions.hits]
                heads = repository.finder.neighbours(
                    scope, starts, hops, filters=filters, deadline=search.deadline
                )
                if len(heads.hits) == search.limit or len(starts) < wanted.limit:
                    break
                wanted = msgspec.structs.replace(wanted, limit=4 * wanted.limit)
            repository.finder.note_returned(heads.entries)
            return [Candidate(hit.row, hit.score, heads.entries[hit.row]) for hit in heads.hits]
        return []

    def _starts(self, hits: Sequence[RankedRow]) -> list[tuple[int, float]]:
        """Return the rows and scores of hits, without those that `_best_first` leaves out."""
        starts = [(hit.row, hit.shown_score) for hit in hits]
        if not starts or self.config.drop_off is None:
            return starts
        floor = max(score for _, score in starts) - self.config.drop_off
        return [(row, score) for row, score in starts if score >= floor]


def together(candidates: Iterable[Candidate], neighbours: Iterable[TurnMemory]) -> list[TurnMemory]:
    """Return candidates and their neighbours in the order of `TurnSearch.expanded`."""
    return sorted([*ranked(candidates), *neighbours], key=_place)


def ranked(candidates: Iterable[Candidate]) -> list[TurnMemory]:
    """Return candidates as memories of a turn, in their order."""
    return [TurnMemory(each.entry, each.score) for each in candidates]


def _candidates(found: SearchOutcome) -> list[Candidate]:
    return [Candidate(hit.row, hit.shown_score, found.entries[hit.row]) for hit in found.hits]


def _best(candidates: Iterable[Candidate], limit: int) -> list[Candidate]:
    """Return the best candidates, each once, in the order of `TurnSearch.found`."""
    ascending = sorted(candidates, key=lambda each: each.score)
    best_of_each = {each.row: each for each in ascending}.values()
    return sorted(best_of_each, key=lambda each: (-each.score, *_tie(each.entry)))[:limit]


def _neighbours(
    candidates: Iterable[Candidate],
    hits: Iterable[NeighbourRow],
    entries: Mapping[int, MemoryEntry],
) -> list[TurnMemory]:
    """Return the memories of neighbours, each with the link and the memory before it."""
    ids = {candidate.row: candidate.entry.id for candidate in candidates}
    hits = list(hits)
    ids |= {hit.row: entries[hit.row].id for hit in hits}
    return [
        TurnMemory(
            entries[hit.row],
            hit.score,
            relation=LinkType.numbered(hit.kind),
            via=ids.get(hit.via_row),
        )
        for hit in hits
    ]


def _place(memory: TurnMemory) -> tuple[object, ...]:
    return -memory.score, memory.relation is not None, *_tie(memory.entry)


def _tie(entry: MemoryEntry) -> tuple[int, bytes, str]:
    """Return the order of memories with equal scores: last changed, then smallest id, then user."""
    return -to_microseconds(entry.updated_at), entry.id.bytes, entry.user_id or ""
