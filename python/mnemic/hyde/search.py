"""Stages of a turn after the embedding: search by hypotheses, neighbours by links, versions."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from mnemic.errors import DeadlineExceededError
from mnemic.hyde.config import HydeConfig
from mnemic.hyde.turn_memory import TurnMemory
from mnemic.index import NeighbourRow, RankedRow
from mnemic.licensing import SEARCHING_BY_MEANING
from mnemic.model import SEMANTIC, Expression, LinkType, MemoryEntry, Scope
from mnemic.model.hops import Hops
from mnemic.model.search import Search
from mnemic.model.timestamps import to_microseconds
from mnemic.repository import Expansion, Repository, SearchOutcome
from mnemic.repository.found import LinkedHits


class Candidate(NamedTuple):
    """A memory that the search found.

    Attributes:
        row: The store's integer.
        score: Cosine similarity to the nearest hypothesis, 0 to 1.
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
        stale_since: Since when changes may be missing, because the store cannot be read; else None.
    """

    candidates: list[Candidate]
    seq: int
    neighbours: list[TurnMemory] | None = None
    error: Exception | None = None
    stale_since: datetime | None = None


def found_by_hypotheses(
    repository: Repository,
    scope: Scope,
    vectors: NDArray[np.float32],
    config: HydeConfig,
    *,
    model: str | None = None,
    filters: Expression | None = None,
    deadline: float | None = None,
) -> TurnSearchOutcome:
    """Return the active memories nearest to any hypothesis, each once, with its best score.

    Order: score, then last changed, then smallest id. At most `retrieval_top_k` memories are
    returned. Of several with the score of the last one, the newest are kept: the index cuts.
    Neighbours are found with them, unless each hypothesis is searched for alone.

    Args:
        repository: The agent's memories.
        scope: Only its memories are found.
        vectors: float32, shape (m, d): the hypotheses.
        config: `retrieval_top_k`, `candidates_per_hypothesis`, `min_similarity` and `drop_off`.
        model: Model of the vectors; None is that of the memories.
        filters: Only memories that match.
        deadline: In seconds of `time.monotonic()`; candidates that are complete then are returned.

    Raises:
        DeadlineExceededError: If the deadline passes before any memory is found.
        EmbeddingModelMismatchError: If the memories have vectors of another model.
    """
    limit, alone = config.retrieval_top_k, config.candidates_per_hypothesis
    search = Search(
        text=None,
        vectors=vectors,
        vectors_model=model,
        limit=limit,
        ranking=SEMANTIC,
        filters=filters,
        min_similarity=config.min_similarity,
        deadline=deadline,
        takes_partial=True,
    )
    # The best of each hypothesis, united and cut, are the best of all, unless each gives fewer.
    if alone is not None and alone < limit and len(vectors) > 1:
        searches = [msgspec.structs.replace(search, vectors=one, limit=alone) for one in vectors]
        return _united(repository, scope, searches, config)
    expansion = Expansion(_hops(config), partial(_starts, config=config))
    found = repository.find(scope, search, SEARCHING_BY_MEANING, expansion=expansion)
    if found.partial and not found.hits:
        raise DeadlineExceededError
    candidates = best_first(_candidates(found), config)
    linked = found.linked or LinkedHits([])
    neighbours = _neighbours(candidates, linked.hits, found.entries)
    return TurnSearchOutcome(candidates, found.seq, neighbours, linked.error, found.stale_since)


def best_first(candidates: Iterable[Candidate], config: HydeConfig) -> list[Candidate]:
    """Return the best candidates in the order of `found_by_hypotheses`, without far worse ones.

    Args:
        candidates: Each memory once.
        config: `retrieval_top_k` and `drop_off`.
    """
    ordered = sorted(candidates, key=lambda each: (-each.score, *_tie(each.entry)))
    best = ordered[: config.retrieval_top_k]
    if not best or config.drop_off is None:
        return best
    return [candidate for candidate in best if candidate.score >= best[0].score - config.drop_off]


def expanded(
    repository: Repository,
    scope: Scope,
    candidates: Sequence[Candidate],
    config: HydeConfig,
    *,
    filters: Expression | None = None,
    deadline: float | None = None,
) -> list[TurnMemory]:
    """Return candidates and the memories that links lead to from them, best first.

    The score of a neighbour is that of the memory before it on its best path, times the decay of
    the link's type and its strength. At most `max_neighbours` are added. Order: score, then
    candidates before neighbours, then last changed, then smallest id.

    Args:
        repository: The agent's memories.
        scope: Only its memories are found.
        candidates: What the search found.
        config: `retrieval_hop_depth`, `relation_decay`, `follow_incoming` and `max_neighbours`.
        filters: Only neighbours that match.
        deadline: In seconds of `time.monotonic()`.

    Raises:
        DeadlineExceededError: If the deadline passes.
    """
    starts = [(candidate.row, candidate.score) for candidate in candidates]
    found = repository.finder.neighbours(
        scope, starts, _hops(config), filters=filters, deadline=deadline
    )
    repository.note_returned(found.entries)
    return together(candidates, _neighbours(candidates, found.hits, found.entries))


def together(candidates: Iterable[Candidate], neighbours: Iterable[TurnMemory]) -> list[TurnMemory]:
    """Return candidates and their neighbours in the order of `expanded`."""
    return sorted([*ranked(candidates), *neighbours], key=_place)


def ranked(candidates: Iterable[Candidate]) -> list[TurnMemory]:
    """Return candidates as memories of a turn, in their order."""
    return [TurnMemory(each.entry, each.score) for each in candidates]


def with_versions(
    repository: Repository,
    scope: Scope,
    memories: Sequence[TurnMemory],
    config: HydeConfig,
    *,
    deadline: float | None = None,
) -> list[TurnMemory]:
    """Return memories with their earlier versions, and with others that replace the same ones.

    Args:
        repository: The agent's memories.
        scope: Only its memories are versions.
        memories: The memories of a turn; their order stays.
        config: `max_versions`.
        deadline: In seconds of `time.monotonic()`.

    Raises:
        DeadlineExceededError: If the deadline passes.
    """
    entries = [each.entry for each in memories]
    lineages = repository.lineages(scope, entries, config.max_versions, deadline)
    return [
        msgspec.structs.replace(
            each, versions=lineage.versions, contradicting=lineage.contradicting
        )
        if lineage.versions or lineage.contradicting
        else each
        for each, lineage in zip(memories, lineages, strict=True)
    ]


def _united(
    repository: Repository, scope: Scope, searches: Sequence[Search], config: HydeConfig
) -> TurnSearchOutcome:
    """Return what several searches find, each memory once with its best score."""
    best: dict[int, Candidate] = {}
    seq, stale_since = repository.finder.position().seq, None
    for search in searches:
        found = repository.find(scope, search, SEARCHING_BY_MEANING)
        stale_since = stale_since or found.stale_since
        if found.partial and not found.hits and not best:
            raise DeadlineExceededError
        for candidate in _candidates(found):
            known = best.get(candidate.row)
            if known is None or candidate.score > known.score:
                best[candidate.row] = candidate
    return TurnSearchOutcome(best_first(best.values(), config), seq, stale_since=stale_since)


def _candidates(found: SearchOutcome) -> list[Candidate]:
    return [Candidate(hit.row, hit.shown_score, found.entries[hit.row]) for hit in found.hits]


def _hops(config: HydeConfig) -> Hops:
    return Hops(
        config.retrieval_hop_depth, config.decays, config.follow_incoming, config.max_neighbours
    )


def _starts(hits: Sequence[RankedRow], config: HydeConfig) -> list[tuple[int, float]]:
    """Return the rows and scores of hits, without those that `best_first` leaves out."""
    if not hits or config.drop_off is None:
        return [(hit.row, hit.shown_score) for hit in hits]
    floor = max(hit.shown_score for hit in hits) - config.drop_off
    return [(hit.row, hit.shown_score) for hit in hits if hit.shown_score >= floor]


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
